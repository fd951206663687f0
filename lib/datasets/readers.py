"""Files that people really have, read in one pass: JSON lines and CSV, plain or gzip.

A wrong line is an error that names file and line; nothing is skipped in silence.  Lines end at
"\n" alone (a U+2028 inside a string is text), the encoding is UTF-8 whatever the locale, a
byte-order mark and blank lines are fine.  Ids stay text.
"""
import csv
import datetime
import gzip
import io
import os
from pathlib import Path
import zlib

import msgspec
from tqdm import tqdm

BLOCK = 1 << 16
LONGEST = 1 << 26                  # bytes of a line: a file without line ends is not read into memory
BOM = b"\xef\xbb\xbf"


def open_bytes(path):
    """(stream of the plain bytes, raw file): gzip is told by its first two bytes, not by the name."""
    raw = open(path, "rb")
    packed = raw.peek(2)[:2] == b"\x1f\x8b"
    return (gzip.GzipFile(fileobj=raw) if packed else raw), raw


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
        except ValueError:
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
        except ValueError as error:
            if not skip_damaged:
                raise ValueError(f"{where} {number}: {error}; the line begins {line[:60]!r}") from error
            notes["lines_damaged"] = notes.get("lines_damaged", 0) + 1
        else:
            yield record


def read_csv(path, required, optional=(), aliases=None):
    """Names of the other columns, and an iterator over (line number, dict) of a CSV file.

    The separator is a comma, a semicolon or a tab: the one that makes the header hold `required`.
    Names are stripped; `required`, `optional` and `aliases` (other name: name) are matched whatever
    their case.

    Raises
    ------
    ValueError
        No header that fits, a name twice, a row with too few or too many cells, or bytes that are not
        UTF-8; with file and line.
    """
    lines = _text_lines(path)
    known = (aliases or {}) | {name.lower(): name for name in (*required, *optional)}
    header_line = next(lines, "")
    for separator in ",;\t":
        names = [name.strip() for name in next(csv.reader([header_line], delimiter=separator), [])]
        names = [known.get(name.lower(), name) for name in names]
        if set(required) <= set(names):
            break
    else:
        raise ValueError(f"{path}, line 1: the header must hold the columns {', '.join(required)}, separated "
                         f"by commas, semicolons or tabs; it is {header_line.strip()!r}")
    if len(set(names)) < len(names) or "" in names:
        raise ValueError(f"{path}, line 1: a column has no name or a name that is taken: {names}")
    return [name for name in names if name not in known.values()], _rows(path, lines, separator, names)


def _rows(path, lines, separator, names):
    reader = csv.reader(lines, delimiter=separator, strict=True)
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise ValueError(f"{path}, line {reader.line_num + 1}: {error}") from error
        if cells is None:
            return
        if not cells or cells == [""]:
            continue
        if len(cells) != len(names):
            raise ValueError(f"{path}, line {reader.line_num + 1}: {len(cells)} cells where the header has "
                             f"{len(names)}: {cells}")
        yield reader.line_num + 1, dict(zip(names, cells))


def _text_lines(path):
    stream, raw = open_bytes(path)
    with raw, io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
        try:
            yield from text
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: byte {error.object[error.start]:#x} is not UTF-8 ({error.reason}): "
                             "save the file as UTF-8") from error
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path}: cannot be unpacked: {error}") from error


def identifier(cell, where):
    """An id as stripped text; ValueError where it is blank."""
    if not cell.strip():
        raise ValueError(f"{where} is blank: every row needs an id")
    return cell.strip()


def number(cell, where):
    """A finite number; ValueError with `where` and the text otherwise."""
    try:
        value = float(cell)
    except ValueError:
        value = float("nan")
    if value - value != 0 or "_" in cell:
        raise ValueError(f"{where} is {cell!r}: it must be a finite number with a decimal point")
    return value


def seconds(cell, where):
    """Seconds since 1970 in UTC from a number of seconds or an ISO date or time (UTC where no zone is given)."""
    try:
        return int(float(cell))
    except (ValueError, OverflowError):
        pass
    try:
        moment = datetime.datetime.fromisoformat(cell.strip())
    except ValueError as error:
        raise ValueError(f"{where} is {cell!r}: it must be seconds since 1970 or an ISO date and time") from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=datetime.timezone.utc)).timestamp())
