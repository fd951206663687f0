"""Files that people really have: marks, blank lines, odd separators, gzip, locales, damage."""
import gzip
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from lib.datasets import readers

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
    others, rows = readers.read_csv(path, ("item_id",), aliases={"paper": "item_id"})
    assert others == ["price"]
    assert list(rows) == [(2, {"item_id": "007", "price": "1"}), (4, {"item_id": "NA", "price": "2"})]


def test_csv_cells_keep_text(tmp_path):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress('item_id,note\n1,"a, ""b""\nc\u2028"\n2,é\n'.encode()))
    assert [cells["note"] for _, cells in readers.read_csv(path, ("item_id",))[1]] == ['a, "b"\nc\u2028', "é"]


@pytest.mark.parametrize("content, message", [
    (b"", "line 1: the header must hold the columns item_id"),
    (b"item id,price\n", "line 1: the header must hold"),
    (b"item_id|price\n", "line 1: the header must hold"),
    (b"item_id,Item_ID\n", "line 1: a column has no name or a name that is taken"),
    (b"item_id,price, price\n", "line 1: a column has no name or a name that is taken"),
    (b"item_id,\n", "line 1: a column has no name"),
    (b"item_id,price\na,1\nb\n", "line 3: 1 cells where the header has 2"),
    (b"item_id;price\na;1;2\n", "line 2: 3 cells where the header has 2"),
    (b'item_id,price\n"a,1\n', "line 2: unexpected end of data"),
    (b"item_id,price\n\xff\xfe,1\n", "not UTF-8"),
    ("item_id,price\na,1\n".encode("utf-16"), "not UTF-8"),
])
def test_csv_errors(tmp_path, content, message):
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        list(readers.read_csv(path, ("item_id",))[1])
    assert "rows.csv" in str(caught.value)


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "", " ", "3,5", "1_000", "four", "0x10"])
def test_numbers_that_are_none(text):
    with pytest.raises(ValueError, match="column price is"):
        readers.number(text, "column price")


@pytest.mark.parametrize("text, value", [("4", 4.0), (" 4.5 ", 4.5), ("1e-3", 0.001), ("-2", -2.0)])
def test_numbers(text, value):
    assert readers.number(text, "x") == value


@pytest.mark.parametrize("text, value", [
    ("1420070400", 1420070400), ("1420070400.9", 1420070400), ("2015-01-01", 1420070400),
    ("2015-01-01 00:00:07", 1420070407), ("2015-01-01T02:00:00+02:00", 1420070400), ("2015-01-01T00:00:00Z", 1420070400),
])
def test_times(text, value):
    assert readers.seconds(text, "x") == value


@pytest.mark.parametrize("text", ["", "yesterday", "2015-13-01", "nan", "inf", "01/02/2015"])
def test_times_that_are_none(text):
    with pytest.raises(ValueError, match="column time is"):
        readers.seconds(text, "column time")


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
    code = ("import sys; from lib import readers; import msgspec\n"
            "assert sys.flags.utf8_mode == 0 and sys.getfilesystemencoding() != ''\n"
            "R = msgspec.defstruct('R', [('name', str)])\n"
            "print(ascii([list(readers.read_json('rows.json', R, lambda rows: rows[0].name, {})),\n"
            "             list(readers.read_csv('rows.csv', ('item_id',))[1])]))")
    environment = os.environ | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == ascii([["Zoë"], [(2, {"item_id": "寿司", "é": "1"})]]), done.stderr
