"""Files that people really have: marks, blank lines, odd separators, gzip, locales, damage."""
import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest

from lib.datasets import _csv, readers

ROOT = Path(__file__).parents[1]


class Row(msgspec.Struct):
    """A record with one field of each type."""

    name: str
    value: float = 0.0


def read(path, **options):
    """All names of a file, and the notes."""
    notes = {}
    rows = readers.read_json(path, Row, lambda records: [r.name for r in records], notes, **options)
    return [name for batch in rows for name in batch], notes


@pytest.mark.parametrize("content, names", [
    (b'{"name": "a"}\n{"name": "b"}\n', ["a", "b"]),
    (b'{"name": "a"}\n{"name": "b"}', ["a", "b"]),                          # no newline at the end
    (b'\xef\xbb\xbf{"name": "a"}\n', ["a"]),                               # byte-order mark
    (b'\n\n{"name": "a"}\n  \n\r\n{"name": "b"}\r\n\n', ["a", "b"]),       # blank lines, CRLF
    ('{"name": "a\u2028b"}\n{"name": "\u2029\x85"}\n'.encode(), ["a\u2028b", "\u2029\x85"]),
    ('{"name": "Zoë 寿司 \\ud83c\\udf63"}\n'.encode(), ["Zoë 寿司 \U0001f363"]),
    (b'{"name": "a\\/b", "other": {"deep": [null, {"x": "u\'free\'"}]}, "hours": null}\n', ["a/b"]),
    (b'{"name": "a", "value": 4}\n{"name": "b", "value": 4.0}\n', ["a", "b"]),
    (b"", []),
    (b"\xef\xbb\xbf", []),
    (b"\n", []),
])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("block", [1, 7, 1 << 18])
def test_json_lines(tmp_path, monkeypatch, content, names, packed, block):
    monkeypatch.setattr(readers, "BLOCK", block)
    path = tmp_path / "rows.json"
    path.write_bytes(gzip.compress(content) if packed else content)
    assert read(path)[0] == names


@pytest.mark.parametrize("line", [
    b'{"name": "cut sho', b'{"name": "a"', b"{", b"[]", b"7", b'{"value": 1}', b'{"name": 7}', b'{"name": null}',
    b'{"name": "a", "value": "4"}', b'{"name": "a", "value": NaN}', b'{"name": "a"} {"name": "b"}', b'{"name": "a"},',
])
@pytest.mark.parametrize("block", [1, 1 << 18])
def test_a_damaged_line_is_named_or_counted(tmp_path, monkeypatch, line, block):
    monkeypatch.setattr(readers, "BLOCK", block)
    path = tmp_path / "rows.json"
    path.write_bytes(b'{"name": "x"}\n\n' + line + b'\n{"name": "y"}\n' + line)
    with pytest.raises(ValueError, match=r"rows\.json, line 3: "):
        read(path)
    assert read(path, skip_damaged=True) == (["x", "y"], {"lines_damaged": 2})


def test_a_last_line_cut_short_is_an_error(tmp_path):
    path = tmp_path / "rows.json"
    path.write_bytes(b'{"name": "x"}\n{"name": "y", "va')
    with pytest.raises(ValueError, match=r'line 2: .*truncated.*begins b\'{"name": "y", "va'):
        read(path)


@pytest.mark.parametrize("reader", [read, lambda path: list(readers.read_csv(path, ("name",))[1])])
@pytest.mark.parametrize("damage", ["cut", "bytes"])
def test_a_damaged_gzip_is_an_error(tmp_path, reader, damage):
    text = b"name\n" + b"\n".join(b'{"name": "%d"}' % i for i in range(5000))
    packed = gzip.compress(text[5:] if reader is read else text)
    path = tmp_path / "rows.gz"
    middle = len(packed) // 2
    path.write_bytes(packed[:middle] if damage == "cut" else packed[:middle] + b"\0\xff\0" * 9 + packed[middle + 27:])
    with pytest.raises(ValueError, match=r"rows\.gz.*(cannot be unpacked|line \d+: )"):
        reader(path)


def test_a_file_without_line_ends_is_not_swallowed(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "LONGEST", 1000)
    monkeypatch.setattr(readers, "BLOCK", 64)
    path = tmp_path / "rows.json"
    path.write_bytes(b'{"name": "x"}\n' * 9 + b"[" + b'{"name": "y"},' * 200 + b"]")
    with pytest.raises(ValueError, match=r"rows.json: a line after line \d+ is longer than 1000 bytes; there must be one"):
        read(path)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("header", ["item_id{0}price", " item_id {0} price", "ITEM_ID{0}price", "\ufeffItem_Id{0}price",
                                    '"item_id"{0}"price"', "paper{0}price"])
def test_csv_headers(tmp_path, separator, header):
    path = tmp_path / "rows.csv"
    path.write_bytes(f"{header}\r\n007{{0}}1\r\n\r\nNA{{0}}2".format(separator).encode())
    others, rows, _ = readers.read_csv(path, ("item_id",), aliases={"paper": "item_id"})
    assert others == ["price"]
    assert list(rows) == [(2, {"item_id": "007", "price": "1"}), (4, {"item_id": "NA", "price": "2"})]


def test_csv_cells_keep_text(tmp_path):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress('item_id,note\n1,"a, ""b""\nc\u2028"\n2,é\n'.encode()))
    assert [cells["note"] for _, cells in readers.read_csv(path, ("item_id",))[1]] == ['a, "b"\nc\u2028', "é"]


@pytest.mark.parametrize("content, message", [
    (b"", "line 1: the header must hold the columns item_id.*the file is empty"),
    (b"name,price\n", "line 1: the header must hold the columns item_id.*it is 'name,price'"),
    (b"item_id|price\n", "line 1: the header must hold"),
    (b"item_id,Item_ID\n", "line 1: a column has a name that is taken"),
    (b"item_id,price, price\n", "line 1: a column has a name that is taken"),
    (b"item_id,\n", "line 1: column 2 has no name.*a separator at the end of the line"),
    (b"\n\n,item_id,price\n0,a,1\n", "line 3: column 1 has no name.*row numbers"),
    (b"itemId,item id\na,b\n", "line 1: each of the columns itemId, item id could be item_id"),
    (b"item_id,price\na,1\nb\n", "line 3: 1 cells where the header has 2"),
    (b"item_id;price\na;1;2\n", "line 2: 3 cells where the header has 2"),
    (b'item_id,price\n"a,1\n', "line 2: a quote is opened there, .*line 2: unexpected end of data"),
    (b"item_id,price\na,1\n\xff\xfe,1\n", "line 3: byte 0xff is not UTF-8"),
    ("item_id,price\né,1\nü,1\n".encode("latin-1"), "line 2: byte 0xe9 is not UTF-8"),
    ("item_id,price\na,1\n".encode("utf-16"), "not UTF-8 but UTF-16"),
    ("item_id,price\na,1\n".encode("utf-16-le"), "line 1: it holds a zero byte"),
    (b'item_id,"price\nand so on\n', "line 1: a quote is opened in the header and not closed"),
])
def test_csv_errors(tmp_path, content, message):
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        list(readers.read_csv(path, ("item_id",))[1])
    assert "rows.csv" in str(caught.value)


ROWS = [f"i{n},{n}" for n in range(1000)]


@pytest.mark.parametrize("line, text, end", [
    (2, '"i0,0', 1001), (500, 'a,"1', 1001),                                # to the end of the file
    (7, '"two\nlines",1\nb,"open', 1003), (7, '"x",1\n"y,2\nz,3\n"w",4', 10),  # after a good one; closed by the next quote
    (7, '5" disk,"open', 1001),                                             # a quote within a cell opens nothing
])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_an_open_quote_is_named_where_it_was_opened(tmp_path, line, text, end, ending):
    path = tmp_path / "rows.csv"
    rows = ["item_id,price", *ROWS]
    rows[line - 1] = text
    path.write_bytes("\n".join([*rows, ""]).replace("\n", ending).encode())
    opened = line + {'"two\nlines",1\nb,"open': 2, '"x",1\n"y,2\nz,3\n"w",4': 1}.get(text, 0)
    with pytest.raises(ValueError, match=rf"rows\.csv, line {opened}: a quote is opened there, and .* line {end}: "):
        list(readers.read_csv(path, ("item_id",))[1])


def test_an_open_quote_that_ends_in_another_cell(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('item_id,price\n"a,1\nb,"\nc,2\n')
    with pytest.raises(ValueError, match=r"line 2: 1 cells where the header has 2"):
        list(readers.read_csv(path, ("item_id",))[1])
    with pytest.raises(ValueError, match=r"line 2, column item_id is 'a\\nb': an id on several lines, so a quote may be open"):
        readers.identifier("a\nb", "line 2, column item_id")


def test_a_cell_of_any_length(tmp_path):
    path = tmp_path / "rows.csv"
    text = "long, " * 50_000
    path.write_text(f'item_id,"free\ntext"\na,"{text}"\nb,x\n')
    others, rows, _ = readers.read_csv(path, ("item_id",))
    assert others == ["free text"] and list(rows) == [(3, {"item_id": "a", "free text": text}), (4, {"item_id": "b", "free text": "x"})]


def test_a_table_without_line_ends_is_not_swallowed(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "LONGEST", 1000)
    path = tmp_path / "rows.csv"
    path.write_text("item_id,price\na,1\n" + "b,2," * 1000)
    with pytest.raises(ValueError, match="rows.csv, line 3 is longer than 1000 characters"):
        list(readers.read_csv(path, ("item_id",))[1])


@pytest.mark.parametrize("header, names, renamed", [
    ("userId,movieId,score,timestamp", ["user_id", "item_id", "rating", "time"],
     {"user_id": "userId", "item_id": "movieId", "rating": "score", "time": "timestamp"}),
    ("User ID;Item-Id;Rating;DateTime", ["user_id", "item_id", "rating", "time"],
     {"user_id": "User ID", "item_id": "Item-Id", "time": "DateTime"}),
    ("user,product_id,stars", ["user_id", "item_id", "rating"], {"user_id": "user", "item_id": "product_id", "rating": "stars"}),
    ("user_id,item_id,rating,score,movie", ["user_id", "item_id", "rating", "score", "movie"], {}),    # the exact name goes first
    ('user_id,"item\r\nid",rating', ["user_id", "item_id", "rating"], {"item_id": "item id"}),
])
def test_usual_names_of_columns(tmp_path, header, names, renamed):
    path = tmp_path / "rows.csv"
    path.write_text(header + "\n" + ",;"[";" in header].join("abcde"[:len(names)]), newline="")
    _, rows, found = readers.read_csv(path, ("user_id", "item_id", "rating"), ("time",), _csv.ALIASES)
    assert found == renamed and list(rows) == [(3 if "\n" in header else 2, dict(zip(names, "abcde")))]


def workbook(first):
    """A zip archive as Excel and LibreOffice write it: its first member tells them."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(first, "application/vnd.oasis.opendocument.spreadsheet")
    return file.getvalue()


def tar():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("review.json"), io.BytesIO(b""))
    return file.getvalue()


@pytest.mark.parametrize("content, message", [
    (workbook("[Content_Types].xml"), "is an Excel workbook: save the sheet as CSV"),
    (workbook("docProps/app.xml"), "is an Excel workbook: save the sheet as CSV"),
    (workbook("mimetype"), "is an OpenDocument file: save the sheet as CSV"),
    (workbook("ratings.csv"), "is a zip archive: unpack it"), (workbook("a" * 40), "is a zip archive: unpack it"),
    (tar(), "is a tar archive: unpack it"), (gzip.compress(tar()), "is gzip that holds a file that is a tar archive"),
    (gzip.compress(gzip.compress(b"item_id")), "is gzip that holds a file that is packed by gzip: unpack it once"),
    (bz2.compress(b"item_id"), "is packed by bzip2"), (lzma.compress(b"item_id"), "is packed by xz"),
    (b"PAR1\x15\x04", "is a Parquet table: write it as CSV"), (b"SQLite format 3\0\x10", "is an SQLite database"),
    (b"<!DOCTYPE html><html>", "is a web page: the download led to a page"), (b"\xff\xfei\0", "is not UTF-8 but UTF-16"),
], ids=lambda value: value if isinstance(value, str) else f"{len(value)} bytes")       # archives hold the time of day
@pytest.mark.parametrize("reader", [read, lambda path: list(readers.read_csv(path, ("name",))[1])])
def test_files_of_another_kind(tmp_path, reader, content, message):
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"rows\.csv {message}"):
        reader(path)


@pytest.mark.parametrize("reader", [read, lambda path: list(readers.read_csv(path, ("name",))[1])])
def test_a_folder_is_no_file(tmp_path, reader):
    with pytest.raises(ValueError, match=f"{tmp_path} is a folder: give a file"):
        reader(tmp_path)


def test_one_array_is_no_file_of_lines(tmp_path):
    path = tmp_path / "rows.json"
    path.write_text('[\n{"name": "a"},\n{"name": "b"}\n]\n')
    with pytest.raises(ValueError, match=r"rows.json, line 1: .*there must be one JSON object a line"):
        read(path)


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "", " ", "3,5", "1_000", "four", "0x10"])
def test_numbers_that_are_none(text):
    with pytest.raises(ValueError, match="column price is"):
        readers.number(text, "column price")


@pytest.mark.parametrize("text, value", [("4", 4.0), (" 4.5 ", 4.5), ("1e-3", 0.001), ("-2", -2.0)])
def test_numbers(text, value):
    assert readers.number(text, "x") == value


NEW_YEAR = 1_420_070_400 * 10**9                          # 2015-01-01 in UTC


@pytest.mark.parametrize("text, unit, time", [
    ("1420070400", None, NEW_YEAR), (" 1420070400.9 ", None, NEW_YEAR + 9 * 10**8), ("2015-01-01", None, NEW_YEAR),
    ("2015-01-01 00:00:07", None, NEW_YEAR + 7 * 10**9), ("2015-01-01T02:00:00+02:00", None, NEW_YEAR),
    ("2015-01-01T00:00:00Z", None, NEW_YEAR), ("20150101T000000", None, NEW_YEAR), ("2015-01-01 00:00:00,25", None, NEW_YEAR + 25 * 10**7),
    ("2015-01-01T01:00:00.123456789+01:00", None, NEW_YEAR + 123_456_789),
    ("1969-12-31T23:59:59.5", None, -5 * 10**8), ("1420070400.000000001", None, NEW_YEAR + 1),
    ("1420070400000", "ms", NEW_YEAR), ("1420070400000.5", "ms", NEW_YEAR + 500_000), ("1420070400000000", "us", NEW_YEAR),
    ("1420070400000000001", "ns", NEW_YEAR + 1), ("20200301", "s", 20_200_301 * 10**9), ("2015-01-01", "ms", NEW_YEAR),
    ("7", None, 7 * 10**9), ("-7", None, -7 * 10**9), ("0.5", None, 5 * 10**8), ("5000000000", "s", 5 * 10**18),
])
def test_times(text, unit, time):
    assert readers.moment(text, "x", unit)[0] == time


@pytest.mark.parametrize("text", ["", "yesterday", "2015-13-01", "nan", "inf", "01/02/2015", "1_420_070_400", "1.42007E+09", "1" * 40, "2015010112:00"])
def test_times_that_are_none(text):
    with pytest.raises(ValueError, match="column time is .*: it must be seconds since 1970 or an ISO date"):
        readers.moment(text, "column time")


@pytest.mark.parametrize("text, unit, message", [
    ("1420070400000", None, "no plausible number of seconds; in ms it is 2015-01-01 00:00:00. Give time_unit='ms' if that"),
    ("1420070400000000", None, "in us it is 2015-01-01"), ("1420070400000000000", None, "in ns it is 2015-01-01"),
    ("20200301", None, ": a date written as digits, or a number of seconds"), ("202003011230", None, "a date written as digits"),
    ("20200301123000", None, "a date written as digits"), ("9200000000000000000", None, "does not lie in 1973 to 2100"),
    ("-9200000000000000000", None, "does not lie in 1973"), ("-1420070400", None, "does not lie in 1973"),
    ("9200000000000000000", "s", "times must lie in the years 1678 to 2261"), ("-9223372036854775809", "ns", "1678 to 2261"),
    ("2262-04-12", None, "1678 to 2261"), ("1677-01-01", None, "1678 to 2261"), ("9999-12-31", "s", "1678 to 2261"),
])
def test_times_that_are_ambiguous_or_out_of_range(text, unit, message):
    with pytest.raises(ValueError, match=f"column time is '?{text}.*{message}"):
        readers.moment(text, "column time", unit)


@pytest.mark.parametrize("unit", list(readers.UNITS))
def test_units_against_pandas(unit):
    numbers = np.random.default_rng(0).integers(-10**9, 10**9, 200) * (10**9 // readers.UNITS[unit])
    expected = pd.to_datetime(pd.Series(numbers), unit=unit).to_numpy().astype("datetime64[ns]").astype(np.int64)
    assert [readers.moment(str(n), "x", unit)[0] for n in numbers] == expected.tolist()
    texts = [f"{date}Z" for date in expected.astype("datetime64[ns]")]
    assert [readers.moment(text, "x")[0] for text in texts] == expected.tolist()


def test_seconds_keep_their_fractions():
    time = np.array([NEW_YEAR, NEW_YEAR + 250_000_000, -250_000_000])
    assert readers.seconds(time[:1]).dtype == np.int64 and readers.seconds(time).tolist() == [1420070400, 1420070400.25, -.25]


@pytest.mark.parametrize("text", ["", "  ", "\t"])
def test_blank_ids(text):
    with pytest.raises(ValueError, match="is blank"):
        readers.identifier(text, "line 3, column user_id")


def test_no_progress_bar_without_a_terminal(tmp_path, capfd, monkeypatch):
    path = tmp_path / "rows.json"
    path.write_bytes(b'{"name": "x"}\n' * 1000)
    for environment in ({"CI": "1"}, {}):
        monkeypatch.delenv("CI", raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        read(path)
    assert capfd.readouterr() == ("", "")


def test_ascii_locale(tmp_path):
    (tmp_path / "rows.json").write_bytes('{"name": "Zoë"}\n'.encode())
    (tmp_path / "rows.csv").write_bytes("item_id,é\n寿司,1\n".encode())
    code = ("import sys; from lib.datasets import readers; import msgspec\n"
            "assert sys.flags.utf8_mode == 0 and sys.getfilesystemencoding() != ''\n"
            "R = msgspec.defstruct('R', [('name', str)])\n"
            "print(ascii([list(readers.read_json('rows.json', R, lambda rows: rows[0].name, {})),\n"
            "             list(readers.read_csv('rows.csv', ('item_id',))[1])]))")
    environment = os.environ | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == ascii([["Zoë"], [(2, {"item_id": "寿司", "é": "1"})]]), done.stderr


@pytest.mark.parametrize("text, line", [
    ('a,"b\nc",d,"open\nand so on', 1), ('a,"b\nc",d\n"e"f\n', 2), ('"open', 0), ('a\n"b" \n', 1), ('a,"b"\n', 0), ('a,"b"', 0),
    ('a;"b"\n"c', 1)])
def test_where_a_quote_is_opened(text, line):
    assert readers._opened(text, ",") == line


def test_a_line_may_be_as_long_as_the_longest_with_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "LONGEST", 8)
    path = tmp_path / "a.csv"
    path.write_text("abcdefg\nx\n")
    assert list(readers._text_lines(path)) == ["abcdefg\n", "x\n"]
    path.write_text("a\nabcdefgh\n")
    with pytest.raises(ValueError, match="line 2 is longer than 8 characters"):
        list(readers._text_lines(path))


@pytest.mark.parametrize("row, timed, want", [
    ("u,a,3,1400000000", True, ("u", 0, 3.0, 1_400_000_000_000_000_000)), (" u , a ,3e0,1400000000", True, ("u", 0, 3.0, 1_400_000_000_000_000_000)),
    ("u,a,3,1400000000", False, None), ("u,a,3,1999010112", True, None), ("u,a,3,99999999", True, None), ("u,a,3,2000-01-01", True, None),
    ("u,a,3,", True, None), ("u,a,nan,1400000000", True, None), ("u,a,3_0,1400000000", True, None), ("u,a,6,1400000000", True, None),
    (",a,3,1400000000", True, None), ("u,z,3,1400000000", True, None), ("u,a,x,1400000000", True, None)])
def test_a_row_is_read_at_once_only_where_nothing_is_to_be_said(row, timed, want):
    cells = dict(zip(("user_id", "item_id", "rating", "time"), row.split(",")))
    assert _csv._plain_row(cells, {"a": 0}, "rating", 1, 5, timed) == want


def test_rows_read_at_once_and_one_by_one_are_the_same(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    times = 1_400_000_000 + rng.permutation(200)
    lines = [f"u{rng.integers(9)},i{n % 7},{rng.integers(1, 6)},{times[n]}" for n in range(200)]
    (tmp_path / "r.csv").write_text("\n".join(["user_id,item_id,rating,time", *lines]))
    codes = {f"i{n}": n for n in range(7)}
    quick = _csv.read_ratings(tmp_path / "r.csv", codes, "rating")
    monkeypatch.setattr(_csv, "_plain_row", lambda *_: None)
    slow = _csv.read_ratings(tmp_path / "r.csv", codes, "rating")
    assert quick[0] == slow[0] and quick[2] == slow[2] and all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(quick[1], slow[1]))
