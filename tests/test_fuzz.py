"""Every reader on damaged files: an answer, or one clear error that names the file and, where there is one, the line.

200 examples a reader; FUZZ_EXAMPLES=10000 in the environment asks for more.  Python warnings are failures.
"""
import gzip
import json
import os
import re
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from lib import datasets
from lib.datasets import _arxiv, _citeulike

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", 200))
WHOLE = ("holds no rating", "no feature column", "has a non-zero feature", "more than once", "no cond-mat paper", "no review",
         "no business", "and no times", "no item has that category", "every line is a click", "is not a stored", " is gzip that holds",
         "unpack it", "in UTF-8", "save the file as UTF-8", "led to a page", "write it", "write its table", "table behind it")
LINE = re.compile(r"\w+\.(csv|json|dat)(, line \d+|: (a line |cannot be unpacked )after line \d+)")

PAPERS = "".join(json.dumps({"id": f"14{n:02d}.00001", "categories": "cond-mat.soft hep-th", "title": "Ein Titel, \\( x \\)",
                             "abstract": "Zoë\u2028", "versions": [{"version": "v1", "created": created}]}) + "\n"
                 for n, created in enumerate(["Wed, 31 Dec 2014 23:30:00 GMT", "Mon, 8 Sep 2014 17:01:44 -0200"]))
KNOWN = _arxiv.Catalogue("s", ("a", "b", "ü"), np.array([[5000, 5000], [2000, 8000], [9000, 1000]]), (("x",), ("y",)), {})
FILES = {
    "items": 'item_id,news,"sp""ort"\na,1,0.5\n"b ü",0,1\n007,1e-3,2\n',
    "ratings": 'user_id;item_id;rating;time;note\nu;a;4;2015-01-01;"good; ""very""\nso"\nv;b;3.5;2016-02-03T04:05:06.7+01:00;\n'
               'v;a;1;1420070400;é\n',
    "clicks": "user\tpaper\tclicked\ttime\nu\ta\t1\t1420070400123\nu\tb\t0\t1420070400124\nv\tü\t1\t1420070400125\n",
    "papers": PAPERS,
    "business": '{"business_id": "a", "categories": ["Food", "Golf"]}\n'
                '{"business_id": "b\\u00fc", "categories": "Food, Caf\\/e"}\n',
    "review": '{"user_id": "u", "business_id": "a", "stars": 4, "date": "2014-05-06"}\n'
              '{"user_id": "v", "business_id": "bü", "stars": 4.5, "date": "2014-05-06 10:11:12", "text": "\u2028"}\n',
    "users": "2 0 1\n1 2\n3 0 1 2\n",
    "mult": "2 0:3 1:1\n1 2:7\n0\n",
    "vocabulary": "the\nzoë\nend\n",
}
OTHER = {                                # the files beside the one that is damaged
    "items": ("ratings.csv", "user_id,item_id,rating\nu,a,4\nu,007,2\n"), "ratings": ("items.csv", "item_id,x\na,1\nb,2\n"),
    "business": ("review.json", FILES["review"]), "review": ("business.json", FILES["business"])}
TOKEN = re.compile(r'[^",;\t\n{}\[\]]+')          # a value, a name or a number of a file
ODD = ("", " ", "0", "-1", "1e300", "-1e-320", "1e999", "nan", "9" * 400, "0x10", "1_000", "NULL", "item_id", "user_id", "time",
       "2014-02-30", "+002014-01", "-214-01-01", "0000-01-01", "2014-01-01T00:00+01", "20200301", "1420070400", "1420070400123",
       "9223372036854775807", "-9223372036854775808", "0001-01-01T00:00+23:59", "9999-12-31T23:59:59.999999999-23:59",
       "Fri, 31 Dec 9999 23:00:00 -2300", "Mon, 8 Sep 99999999999 17:01:44 GMT", "Mon, 8 Sep 2014 17:01:44 +99999999", "\\ud800",
       "2014-01-01 00:00:00.1234567890123", "1420070400.123456789012345678901234567890123", "٤", "²", "x\ny", "a\"b", "\"\"")
NAMES = {"items": "items.csv", "ratings": "ratings.csv", "clicks": "clicks.csv", "papers": "papers.json",
         "business": "business.json", "review": "review.json"}


def read(kind, path):
    """Give the file to its reader; the numbers that it made of it."""
    if kind in ("items", "ratings"):
        data = datasets.ratings(path.parent / "items.csv", path.parent / "ratings.csv")
        return data.items, data.probs, data.ratings.value
    if kind == "clicks":
        data = _arxiv.with_clicks(KNOWN, path, articles=None, time_unit="ms")
        return data.items, data.ratings.value
    if kind == "papers":
        return [len(_arxiv.papers(path)[0])]
    if kind in ("business", "review"):
        data = datasets.yelp(path.parent, ["Food"])
        return data.items, data.ratings.value
    if kind == "users":
        return _citeulike.read_libraries(path, 3)
    if kind == "mult":
        return [_citeulike.read_counts(path, 3).data]
    return [len(_citeulike.read_vocabulary(path))]


def attempt(folder, kind, content):
    """Read `content` as a file of `kind`: finite numbers, or an error that names file and line."""
    path = folder / NAMES.get(kind, f"{kind}.dat")
    path.write_bytes(content)
    if kind in OTHER:
        (folder / OTHER[kind][0]).write_text(OTHER[kind][1], encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            for numbers in read(kind, path):
                assert np.isfinite(np.asarray(numbers, dtype=float)).all()
        except ValueError as error:
            said = str(error)
            assert "\n" not in said and len(said) < 1000
            assert LINE.search(said) or any(words in said for words in WHOLE) and str(folder) in said, said


def changed(text):
    """Strategy: the bytes of `text` after up to four kinds of damage."""
    plain = text.encode()
    lines = plain.split(b"\n")
    odd = st.sampled_from(ODD) | st.text(max_size=12)
    value = st.tuples(st.sampled_from([m.span() for m in TOKEN.finditer(text)]), odd).map(
        lambda t: lambda b: (text[:t[0][0]] + t[1] + text[t[0][1]:]).encode("utf-8", "replace"))     # of the file as it is
    bits = st.sampled_from([b'"', b",", b";", b"\t", b"\n", b"\r", b"\0", b"\xff", b"\xef\xbb\xbf", b"{", b"[", b"}", b"'", b" ",
                            b"-", b"1e999", b"nan", b"9" * 25, b"-9223372036854775808", b"null", b"\\ud800", "٣²".encode(),
                            b"20200301", b"1420070400000", b"\xe2\x80"])
    long = st.sampled_from([(b"[", 2000), (b"x", 140_000)]).map(lambda part: part[0] * part[1])
    place = st.integers(0, len(plain))
    insert = st.tuples(place, st.integers(0, 12), bits | long | st.binary(max_size=4)).map(
        lambda t: lambda b: b[:t[0]] + t[2] + b[t[0] + t[1]:])
    cut = place.map(lambda n: lambda b: b[:n])
    drop = place.map(lambda n: lambda b: b[n:])
    shuffle = st.permutations(lines).map(lambda rows: lambda b: b"\n".join(rows))
    code = st.sampled_from(["utf-16", "utf-16-le", "utf-32", "cp1252", "utf-8-sig", "cp037"]).map(
        lambda name: lambda b: b.decode("utf-8", "replace").encode(name, "replace"))
    ends = st.sampled_from([b"\r\n", b"\r", b"\n\n"]).map(lambda end: lambda b: b.replace(b"\n", end))
    pack = st.integers(0, 40).map(lambda n: lambda b: gzip.compress(b, mtime=0)[:-n or None])

    def apply(steps):
        content = plain
        for step in steps:
            content = step(content)
        return content
    steps = st.lists(st.one_of(insert, insert, cut, drop, shuffle, code, ends, pack), min_size=1, max_size=4)
    return value.map(lambda step: step(plain)) | steps.map(apply)


@pytest.mark.parametrize("kind", FILES)
def test_the_file_as_it_is(tmp_path, kind):
    attempt(tmp_path, kind, FILES[kind].encode())
    path = tmp_path / NAMES.get(kind, f"{kind}.dat")
    assert all(np.size(numbers) for numbers in read(kind, path))


@pytest.mark.parametrize("kind", FILES)
def test_cut_at_each_byte(tmp_path, kind):
    content = FILES[kind].encode()
    for n in range(len(content)):
        attempt(tmp_path, kind, content[:n])


@pytest.mark.parametrize("kind", FILES)
def test_packed_and_cut_at_each_byte(tmp_path, kind):
    content = gzip.compress(FILES[kind].encode(), mtime=0)
    for n in range(len(content)):
        attempt(tmp_path, kind, content[:n])


@pytest.mark.slow
@pytest.mark.parametrize("kind", FILES)
def test_damaged(tmp_path, kind):
    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(changed(FILES[kind]) | st.binary(max_size=300))
    def run(content):
        attempt(tmp_path, kind, content)
    run()


def test_a_damaged_file_of_derived_numbers(tmp_path):
    path = tmp_path / "derived.npz"
    _citeulike.save({"topics": np.arange(6), "words": np.array(["a", "b"])}, path)
    content = path.read_bytes()
    for n in range(0, len(content), 7):
        for wrong in (content[:n], content[:n] + bytes([content[n] ^ 16]) + content[n + 1:]):
            path.write_bytes(wrong)
            try:
                _citeulike.load(path)                    # a byte that nothing depends on may have changed
            except ValueError as error:
                assert f"{path}: damaged" in str(error)
