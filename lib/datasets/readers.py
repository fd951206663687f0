"""Files that people really have, read in one pass: JSON lines and CSV, plain or gzip.

A wrong line is an error that names file and line; nothing is skipped in silence.  Lines end at
"\n" alone (a U+2028 inside a string is text), the encoding is UTF-8 whatever the locale, a
byte-order mark and blank lines are fine.  Ids stay text.  An archive, a workbook or a web page in
the place of a text file is told by its first bytes.
"""
import csv
import datetime
import decimal
import gzip
import io
import os
from pathlib import Path
import re
import zlib

import msgspec
import numpy as np
from tqdm import tqdm

BLOCK = 1 << 16
LONGEST = 1 << 26                  # bytes of a line: a file without line ends is not read into memory
BOM = b"\xef\xbb\xbf"
HEADER = 100                       # lines over which a quoted cell of the header may run
GZIP = b"\x1f\x8b"
ARCHIVE = "unpack it and give the file that it holds"
FOREIGN = (                        # place of the first bytes, the bytes, what such a file is, what to do
    (30, (b"[Content_Types]", b"_rels/", b"docProps/", b"xl/"), "an Excel workbook", "save the sheet as CSV in UTF-8"),
    (30, (b"mimetypeapplication/vnd.oasis",), "an OpenDocument file", "save the sheet as CSV in UTF-8"),
    (0, (b"\xd0\xcf\x11\xe0",), "an old Excel workbook", "save the sheet as CSV in UTF-8"),
    (0, (b"PK\x03\x04", b"PK\x05\x06"), "a zip archive", ARCHIVE),
    (257, (b"ustar",), "a tar archive", ARCHIVE),
    (0, (b"7z\xbc\xaf\x27\x1c",), "a 7z archive", ARCHIVE),
    (0, (b"Rar!\x1a",), "a rar archive", ARCHIVE),
    (0, (b"BZh",), "packed by bzip2", "unpack it; only gzip is read as it is"),
    (0, (b"\xfd7zXZ\0",), "packed by xz", "unpack it; only gzip is read as it is"),
    (0, (b"\x28\xb5\x2f\xfd",), "packed by zstd", "unpack it; only gzip is read as it is"),
    (0, (b"PAR1",), "a Parquet table", "write it as CSV, or as JSON with one object a line"),
    (0, (b"ARROW1", b"FEA1"), "a Feather or Arrow table", "write it as CSV, or as JSON with one object a line"),
    (0, (b"SQLite format 3\0",), "an SQLite database", "write its table as CSV"),
    (0, (b"\x89HDF",), "an HDF5 file", "write its table as CSV"),
    (0, (b"%PDF",), "a PDF", "give the table behind it"),
    (0, (b"<!DOCTYPE html", b"<!doctype html", b"<html"), "a web page", "the download led to a page, not to the file"),
    (0, (b"\xff\xfe", b"\xfe\xff"), "not UTF-8 but UTF-16", "save the file as UTF-8"),
)


def open_bytes(path):
    """(stream of the plain bytes, raw file): gzip is told by its first two bytes, not by the name.

    Raises
    ------
    ValueError
        A folder, an archive, a workbook or another file that holds no lines of text: what it is, and what to do.
    """
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder: give a file")
    raw = open(path, "rb")
    packed = raw.peek(2)[:2] == GZIP
    stream = gzip.GzipFile(fileobj=raw) if packed else raw
    try:
        start = stream.peek(512)
    except (EOFError, OSError, zlib.error):
        start = b""                                      # damaged: whoever reads on says after which line
    found = foreign(start)
    if found:
        raw.close()
        raise ValueError(f"{path} is {'gzip that holds a file that is ' if packed else ''}{found}")
    return stream, raw


def foreign(start):
    """What a file with these first bytes (512 or all) is, and what to do; None where it may be lines of text.

    Examples
    --------
    >>> foreign(b"PAR1..."), foreign(b"item_id,news")
    ('a Parquet table: write it as CSV, or as JSON with one object a line', None)
    """
    if start.startswith(GZIP):
        return "packed by gzip: unpack it once"
    for place, marks, kind, remedy in FOREIGN:
        if start[place:].startswith(marks) and (place != 30 or start.startswith(b"PK")):
            return f"{kind}: {remedy}"


def blocks(path):
    """Yield (number of the first line, list of lines as bytes), with a progress bar on a terminal.

    Raises
    ------
    ValueError
        A gzip file that is cut short or damaged, or a line of more than 64 MB, with file and line.
    """
    stream, raw = open_bytes(path)
    silent = True if os.environ.get("CI") else None      # None: silent unless a terminal watches
    first = 1
    with raw, tqdm(total=os.path.getsize(path), unit="B", unit_scale=True, desc=Path(path).name,
                   disable=silent, leave=False) as bar:
        while True:
            try:
                text = stream.read(BLOCK) + stream.readline(LONGEST)
            except (EOFError, OSError, zlib.error) as error:
                raise ValueError(f"{path}: cannot be unpacked after line {first - 1}: {error}") from error
            bar.update(raw.tell() - bar.n)
            if not text:
                return
            if len(text) >= LONGEST and not text.endswith(b"\n"):
                raise ValueError(f"{path}: a line after line {first} is longer than {LONGEST} bytes; there must be "
                                 "one JSON object a line")
            lines = (text.removeprefix(BOM) if first == 1 else text).removesuffix(b"\n").split(b"\n")
            yield first, lines
            first += len(lines)


def read_json(path, record, columns, notes, skip_damaged=False):
    """Yield `columns(records)` for batches of the JSON objects of `path`, one object a line.

    Parameters
    ----------
    path : str or Path
        Plain or gzip.
    record : type
        A msgspec.Struct: the fields to read and their types.  Other fields are passed over.
    columns : function
        From a list of records to anything, without side effects; it raises ValueError on a record that it
        cannot use.  It is called with whole batches, and line by line only where a batch fails.
    notes : dict
        Where lines are counted.
    skip_damaged : bool
        False: a line that cannot be used is an error.  True: it is counted in notes["lines_damaged"].

    Raises
    ------
    ValueError
        Naming file and line.
    """
    decode = msgspec.json.Decoder(record).decode
    for first, lines in blocks(path):
        try:
            result = columns(list(map(decode, lines)))
        except (ValueError, RecursionError):
            result = columns(list(_sound(f"{path}, line", first, lines, decode, columns, skip_damaged, notes)))
        yield result


def _sound(where, first, lines, decode, columns, skip_damaged, notes):
    """The usable records among `lines`, blank lines left out; the others raise or are counted."""
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        try:
            record = decode(line)
            columns([record])
        except (ValueError, RecursionError) as error:
            if not skip_damaged:
                hint = " (there must be one JSON object a line)" if line.lstrip()[:1] == b"[" else ""
                raise ValueError(f"{where} {number}: {str(error)[:300]}{hint}; the line begins {line[:60]!r}") from error
            notes["lines_damaged"] = notes.get("lines_damaged", 0) + 1
        else:
            yield record


def read_csv(path, required, optional=(), aliases=None):
    """Names of the other columns, an iterator over (line number, dict) of a CSV file, and what was renamed.

    The separator is a comma, a semicolon or a tab: the one that makes the header hold `required`.  A row's
    number is that of the line on which it begins.

    Parameters
    ----------
    path : str or Path
        Plain or gzip.
    required, optional : sequences of str
        Names of columns, matched whatever their case; where a name is absent, `userId` and `User ID` stand
        for user_id.
    aliases : dict or None
        Other names, in small letters and digits alone, and the column that each may stand for where that
        column is absent.

    Returns
    -------
    others : list of str
        Columns that are none of these, as the file has them.
    rows : iterator of (int, dict)
    renamed : dict
        Column: the name that the file has for it, where that is another.

    Raises
    ------
    ValueError
        No header that fits, a name twice, two names for one column, a row with too few or too many cells, a
        quote that is not closed (named where it was opened), or bytes that are not UTF-8; with file and line.
    """
    lines = _text_lines(path)
    separator, header, count = _header(path, lines, required, aliases or {})
    where = f"{path}, line {count}"
    names, renamed = _named(header, (*required, *optional), aliases or {}, where)
    if "" in names:
        raise ValueError(f"{where}: column {names.index('') + 1} has no name. A first column without a name is mostly a "
                         "table's row numbers, a last one a separator at the end of the line: remove it")
    if len(set(names)) < len(names):
        raise ValueError(f"{where}: a column has a name that is taken: {shown(names, 300)}")
    others = [name for name in names if name not in {*required, *optional}]
    return others, _rows(path, lines, separator, names, count), renamed


def plain(name):
    """A column's name in small letters and digits alone.

    Examples
    --------
    >>> plain("user_id"), plain("User ID"), plain("userId")
    ('userid', 'userid', 'userid')
    """
    return "".join(filter(str.isalnum, name.lower()))


def _named(header, wanted, aliases, where=None):
    """The `header` with the names in `wanted` where it means them, and {wanted name: name in the file} of the others.

    A column that has the wanted name goes before those that may stand for it; several of these are an error where
    `where` is given.
    """
    exact = {name.lower(): name for name in wanted}
    names, renamed = [exact.get(name.lower(), name) for name in header], {}
    known = aliases | {plain(name): name for name in wanted}
    for missing in [name for name in wanted if name not in names]:
        found = [i for i, name in enumerate(names) if known.get(plain(name)) == missing]
        if len(found) > 1 and where:
            raise ValueError(f"{where}: each of the columns {', '.join(header[i][:60] for i in found)[:300]} could be {missing}: "
                             f"give the right one the name {missing}")
        if found:
            names[found[0]], renamed[missing] = missing, header[found[0]]
    return names, renamed


def _header(path, lines, required, aliases):
    """Separator, names, and the number of lines up to the header's last: blank ones before it, and line ends in quotes."""
    taken, blank = [], 0
    for line in lines:
        if not taken and not line.strip():
            blank += 1
            continue
        taken.append(line)
        for separator in ",;\t":
            names = _cells(taken, separator)
            if set(required) <= set(_named(names, required, aliases)[0]):
                return separator, names, blank + len(taken)
        if "".join(taken).count('"') % 2 == 0 or len(taken) == HEADER:
            break
    text, where = "".join(taken), f"{path}, line {blank + 1}"
    if text.count('"') % 2:
        raise ValueError(f"{where}: a quote is opened in the header and not closed in {len(taken)} lines; it begins "
                         f"{shown(text)}")
    what = f"it is {shown(text.strip(), 300)}" if text else "the file is empty"
    raise ValueError(f"{where}: the header must hold the columns {', '.join(required)}, separated by commas, semicolons or tabs; {what}")


def _cells(lines, separator):
    """The names in the header's `lines`, spaces and line ends within them made single spaces; [] where a quote is open."""
    try:
        return [" ".join(name.split()) for name in next(csv.reader(lines, delimiter=separator, strict=True), [])]
    except csv.Error:
        return []


def _rows(path, lines, separator, names, before):
    """Yield (line on which it begins, dict) of the rows after the `before` lines of the header."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST))     # the process's limit is 131,072; never lowered here
    row = []                                                       # the lines of the row that is read
    reader = csv.reader(_noted(lines, row), delimiter=separator, strict=True)
    while True:
        row.clear()
        line = before + reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise ValueError(f"{path}, line {line + _opened(''.join(row), separator)}: a quote is opened there, and its "
                             f"cell does not end well on line {before + reader.line_num}: {error}") from error
        if cells is None:
            return
        if not cells or cells == [""]:
            continue
        if len(cells) != len(names):
            raise ValueError(f"{path}, line {line}: {len(cells)} cells where the header has {len(names)}: "
                             f"{shown(cells, 200)}")
        yield line, dict(zip(names, cells))


def _noted(lines, row):
    for line in lines:
        row.append(line)
        yield line


QUOTED = re.compile(r'"[^"]*(?:""[^"]*)*("?)')           # a quoted cell, to its closing quote or to the end
LINE_END = re.compile(r"\r\n|\r|\n")


def _opened(text, separator):
    """On which line of a row, from 0, begins the cell whose quote is not closed, or closed before more text.

    Examples
    --------
    >>> _opened('a,"b\\nc",d\\n', ","), _opened('a,"b\\nc",d,"e\\nf,g\\n', ",")
    (0, 1)
    """
    after = re.compile(f"[{separator}\r\n]")
    place = 0
    while place < len(text):
        end = place
        if text[place] == '"':
            cell = QUOTED.match(text, place)
            end = cell.end()
            if not cell[1] or not (end == len(text) or after.match(text, end)):
                return len(LINE_END.findall(text[:place]))
        gap = after.search(text, end)
        place = gap.end() if gap else len(text)
    return 0


def _text_lines(path):
    """Yield the lines of a text file with their ends; ValueError naming the line that is too long or no UTF-8."""
    stream, raw = open_bytes(path)
    number = 0
    with raw, io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
        try:
            for number, line in enumerate(iter(lambda: text.readline(LONGEST), ""), 1):
                if not line.isascii():
                    _check_utf8(line, f"{path}, line {number}")
                if "\0" in line:
                    raise ValueError(f"{path}, line {number}: it holds a zero byte: the file is not text in UTF-8 "
                                     "(UTF-16, or damaged); save it as UTF-8")
                if len(line) == LONGEST and line[-1] not in "\r\n":
                    raise ValueError(f"{path}, line {number} is longer than {LONGEST} characters: is it a table?")
                yield line
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path}: cannot be unpacked after line {number}: {error}") from error


def _check_utf8(line, where):
    wrong = re.search("[\ud800-\udfff]", line)
    if wrong:
        raise ValueError(f"{where}: byte {ord(wrong[0]) - 0xdc00:#x} is not UTF-8: save the file as UTF-8")


def shown(value, most=60):
    """`value` as an error shows it, cut where it is long."""
    text = repr(value[:most + 1] if isinstance(value, str) else value)
    return text if len(text) <= most + 2 else text[:most] + "…"


def identifier(cell, where):
    """An id as stripped text; ValueError where it is blank or holds a line end."""
    name = cell.strip()
    if not name:
        raise ValueError(f"{where} is blank: every row needs an id")
    if "\n" in name or "\r" in name:
        raise ValueError(f"{where} is {shown(name)}: an id on several lines, so a quote may be open")
    return name


def number(cell, where):
    """A finite number; ValueError with `where` and the text otherwise."""
    try:
        value = float(cell)
    except ValueError:
        value = float("nan")
    if value - value != 0 or "_" in cell:
        raise ValueError(f"{where} is {shown(cell)}: it must be a finite number with a decimal point")
    return value


UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}            # nanoseconds
SINCE, UNTIL = 10**8, 4_102_444_800                                # March 1973 and 2100, seconds since 1970
COUNT = re.compile(r"[+-]?\d{1,30}(\.\d{0,30})?", re.ASCII)
DIGITS = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])([01]\d|2[0-3])?([0-5]\d){0,2}", re.ASCII)
DATE = re.compile(r"\d{4}-?(\d\d-?\d\d|W\d\d(-?\d)?)([Tt ].*)?", re.ASCII)
FRACTION = re.compile(r"(.*:\d\d)[.,](\d+)(.*)", re.ASCII)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def moment(cell, where, unit=None):
    """Nanoseconds since 1970 in UTC, and the kind of time that `cell` looks like.

    Parameters
    ----------
    cell : str
        An ISO date or time (UTC where it names no zone), or a number of `unit`.
    where : str
        File, line and column, to word errors.
    unit : None, "s", "ms", "us" or "ns"
        None takes a number for seconds and refuses what may be something else: numbers that are times from
        1973 to 2100 in another unit, dates written as digits (20200301), and other large numbers.

    Returns
    -------
    int, str
        The kind is "date", the unit in which the number is a time from 1973 to 2100, or "count" where there
        is none: see `one_unit`.

    Raises
    ------
    ValueError
        No time, an ambiguous one, or one outside 1678 to 2261, which 64 bits cannot hold.

    Examples
    --------
    >>> moment("2015-01-01", "time"), moment("1420070400.5", "time"), moment("7", "time")
    ((1420070400000000000, 'date'), (1420070400500000000, 's'), (7000000000, 'count'))
    """
    text = cell.strip()
    found, kind = _counted(text, where, unit) if COUNT.fullmatch(text) else (_iso(text, where), "date")
    if abs(found) >= 2**63:
        raise ValueError(f"{where} is {shown(text)}: times must lie in the years 1678 to 2261")
    return found, kind


def _counted(text, where, unit):
    """A number of `unit`, or of seconds where that is plain, as nanoseconds, and its kind."""
    value = int(text) if text.isdigit() else decimal.Decimal(text)
    low, high = SINCE * UNITS["s"], UNTIL * UNITS["s"]
    kind = next((name for name, size in UNITS.items() if low <= value * size < high), "count")
    if unit is None and DIGITS.fullmatch(text):
        raise ValueError(f"{where} is {text}: a date written as digits, or a number of seconds? Write a date as 2020-03-01, "
                         "or give time_unit ('s', 'ms', 'us' or 'ns')")
    if unit is None and kind not in ("s", "count"):
        date = utc(int(value * UNITS[kind]))
        raise ValueError(f"{where} is {text}: no plausible number of seconds; in {kind} it is {date}. Give time_unit={kind!r} "
                         "if that is meant")
    if unit is None and kind == "count" and abs(value) >= SINCE:
        raise ValueError(f"{where} is {text}: as seconds since 1970 it does not lie in 1973 to 2100. Write dates, or give "
                         "time_unit ('s', 'ms', 'us' or 'ns')")
    return round(value * UNITS[unit or "s"]), kind


def _iso(text, where):
    """An ISO date or time as nanoseconds, with up to nine digits of a second."""
    fraction = FRACTION.fullmatch(text)
    try:
        if not DATE.fullmatch(text):
            raise ValueError("no ISO date")
        found = datetime.datetime.fromisoformat(fraction[1] + fraction[3] if fraction else text)
        since = (found if found.tzinfo else found.replace(tzinfo=datetime.timezone.utc)) - EPOCH
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{where} is {shown(text)}: it must be seconds since 1970 or an ISO date and time") from error
    return since // datetime.timedelta(microseconds=1) * 1000 + (int(fraction[2][:9].ljust(9, "0")) if fraction else 0)


def utc(time):
    """Nanoseconds since 1970 as a date and time, to the second."""
    return str(np.datetime64(time // UNITS["s"], "s")).replace("T", " ")


def one_unit(kinds, unit=None):
    """Check that the times of a column can be of one unit.

    Parameters
    ----------
    kinds : dict
        Kind (see `moment`): (where, cell) of a time of that kind.
    unit : None, "s", "ms", "us" or "ns"
        As given to `moment`.

    Raises
    ------
    ValueError
        Without a unit, small numbers beside times from 1973 to 2100; with one, numbers that are such times in
        that unit, or dates, beside numbers that are such times in another.
    """
    usual = [kinds[kind] for kind in ("date", unit or "s") if kind in kinds]
    other = [kinds[kind] for kind in (UNITS if unit else ("count",)) if kind in kinds and kind != unit]
    if usual and other:
        (here, cell), (there, odd) = usual[0], other[0]
        raise ValueError(f"{here} is {cell[:60]}, and {there} is {odd[:60]}: no unit makes both times from 1973 to 2100. Write all as "
                         "dates, or as numbers of one unit" + ("" if unit else ", and give time_unit"))


def seconds(time):
    """Nanoseconds (r,) as seconds: whole numbers where all are, else floating point, right to a microsecond.

    Examples
    --------
    >>> seconds(np.array([1_000_000_000, 2_000_000_000])), seconds(np.array([1_500_000_000]))
    (array([1, 2]), array([1.5]))
    """
    whole, rest = np.divmod(time, UNITS["s"])
    return whole + rest / UNITS["s"] if rest.any() else whole
