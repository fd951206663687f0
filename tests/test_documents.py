"""Topics, readers' samples, the CiteULike derivation, and the path from an arXiv snapshot and clicks."""
import gzip
import hashlib
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from lib import datasets
from lib.datasets import _arxiv, _citeulike, topics
from lib.experiments import problems, sources

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "tests" / "arxiv_records.jsonl"
SHARED = ROOT.parent / "shared" / "data"
WORDS = [[a + b + c for b, c in itertools.product("aeiou", "klmnp")] for a in "bdg"]      # three topics' words


def mixtures(count, seed):
    """Documents of 80 words from three topics that share no word: shares (count, 3), lists of words."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet([.4] * 3, count)
    return shares, [[WORDS[t][rng.integers(25)] for t in rng.choice(3, 80, p=row)] for row in shares]


def topic_order(words):
    """Position of each topic of WORDS among the topics found, by their first letters."""
    return [[row[0][0] for row in words].index(letter) for letter in "bdg"]


# Rows of topics

@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4).filter(sum), min_size=1, max_size=5))
def test_steps_sum_exactly(rows):
    shares = np.array(rows) / np.sum(rows, axis=1, keepdims=True)
    found = topics.steps(shares)
    assert (found.sum(axis=1, dtype=int) == topics.STEPS).all() and found.min() >= 1
    assert np.abs(found / topics.STEPS - shares).max() < 5 / topics.STEPS


@pytest.mark.parametrize("row, flagged", [
    ([.5, .5], False), ([1, 0], False), ([.5, .5 + 9e-7], False), ([.5, .5 + 2e-6], True), ([0, 0], True),
    ([.5, .39], True), ([1.5, -.5], True), ([np.nan, 1], True), ([np.inf, 0], True), ([50, 50], True)])
def test_rows_that_do_not_sum_to_one_are_flagged(row, flagged):
    rows, mask = topics.checked([row, [.25, .75]])
    assert mask.tolist() == [flagged, False] and len(rows) == 2 - flagged
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-15)


@pytest.mark.slow
def test_topics_are_found_and_empty_documents_flagged():
    from scipy.sparse import csr_matrix
    shares, texts = mixtures(400, seed=0)
    index = {word: i for i, word in enumerate(itertools.chain(*WORDS))}
    counts = np.zeros((401, 75), dtype=int)
    for row, text in zip(counts, texts):
        np.add.at(row, [index[word] for word in text], 1)
    rows, order = topics.learn_topics(csr_matrix(counts), k=3)
    names = list(index)
    place = topic_order([[names[j] for j in topic[:5]] for topic in order])
    assert np.abs(rows[:400, place] / topics.STEPS - shares).mean() < .05
    assert rows[400].tolist() == [0, 0, 0] and (rows[:400].sum(axis=1, dtype=int) == topics.STEPS).all()
    again = topics.learn_topics(csr_matrix(counts), k=3)
    np.testing.assert_array_equal(again[0], rows)
    np.testing.assert_array_equal(again[1], order)
    assert (topics.learn_topics(csr_matrix(counts), k=3, seed=1)[0] != rows).any()


def test_the_unread_are_sampled_by_the_stated_rule():
    readable = np.ones(50, dtype=bool)
    readable[[3, 40]] = False
    library = np.array([1, 2, 40])
    draws = {ratio: topics.unread(library, readable, ratio, seed=0, reader=5) for ratio in (1, 4, 100)}
    assert draws[1].tolist() == draws[4][:3].tolist() and len(draws[4]) == 12       # nested
    assert sorted(draws[100]) == sorted(set(range(50)) - {1, 2, 3, 40})              # never read, never empty
    assert topics.unread(library, readable, 1, seed=0, reader=6).tolist() != draws[1].tolist()
    assert topics.unread(library, readable, 1, seed=1, reader=5).tolist() != draws[1].tolist()
    hits = np.bincount([topics.unread(library, readable, 1, 0, r)[0] for r in range(4600)], minlength=50)
    assert np.abs(hits[sorted(draws[100])] - 100).max() < 45                         # uniform: 4.5 sd


# CiteULike

def raw_folder(folder, readers=30):
    """A small collection in the layout of citeulike-t: 120 documents, one of them empty."""
    shares, texts = mixtures(120, seed=1)
    names = list(itertools.chain(*WORDS))
    lines = []
    for text in texts:
        pairs = [f"{names.index(word)}:{text.count(word)}" for word in sorted(set(text))]
        lines.append(f"{len(pairs)} {' '.join(pairs)}")
    lines[7] = "0"
    rng = np.random.default_rng(2)
    libraries = [rng.choice(120, rng.integers(3, 50), replace=False) for _ in range(readers)]
    folder.mkdir(exist_ok=True)
    (folder / "mult.dat").write_text("\n".join(lines) + "\n")
    (folder / "vocabulary.dat").write_text("\n".join(names) + "\n")
    (folder / "users.dat").write_text("".join(f"{len(x)} {' '.join(map(str, x))}\n" for x in libraries))
    return folder, libraries


def test_the_derivation_against_plain_loops(tmp_path):
    folder, libraries = raw_folder(tmp_path / "raw")
    rows, _ = topics.learn_topics(_citeulike.read_counts(folder / "mult.dat", 75), 3, seed=0)
    arrays = _citeulike.derive(folder, k=3)
    kept = [u for u, library in enumerate(libraries) if len(set(library) - {7}) >= 25]
    assert arrays["readers"].tolist() == kept
    notes = dict(zip(arrays["note_names"].tolist(), arrays["note_counts"].tolist()))
    assert notes == {"articles_read": 120, "articles_empty": 1, "readers_read": 30,
                     "readers_too_small": 30 - len(kept), "pairs_read": sum(map(len, libraries)),
                     "pairs_of_empty_articles": sum(7 in library for library in libraries)}
    readable = rows.any(axis=1)
    for position, ratio in enumerate((1, 4)):
        for u, reader in enumerate(kept):
            read = sorted(set(libraries[reader].tolist()) - {7})
            chosen = read + topics.unread(np.array(read), readable, ratio, 0, reader).tolist()
            gram, moment = np.zeros((3, 3)), np.zeros(3)
            for i, article in enumerate(chosen):
                x = rows[article] / 10_000
                gram += np.outer(x, x)
                moment += x * (i < len(read))
            np.testing.assert_allclose(arrays["gram"][position, u], gram[np.triu_indices(3)], rtol=1e-6)
            np.testing.assert_allclose(arrays["moment"][position, u], moment, rtol=1e-6)
            assert arrays["count"][position, u] == len(chosen) == min(len(read) * (1 + ratio), 119)
    assert len(arrays["topics"]) == 119 and arrays["topics"].sum(axis=1, dtype=int).tolist() == [10_000] * 119


@pytest.mark.slow
def test_the_script_writes_the_same_bytes_twice(tmp_path):
    folder, _ = raw_folder(tmp_path / "raw")
    contents = []
    for name in ("one.npz", "two.npz"):
        done = subprocess.run([sys.executable, ROOT / "data" / "derive_citeulike.py", folder, "--out", tmp_path / name],
                              capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        contents.append((tmp_path / name).read_bytes())
        assert f"{len(contents[-1])} bytes, sha256 {hashlib.sha256(contents[-1]).hexdigest()}" in done.stdout
    assert contents[0] == contents[1]


def test_interrupted_writing_leaves_nothing(tmp_path, monkeypatch):
    path = tmp_path / "some.npz"
    _citeulike.save({"a": np.arange(3)}, path)
    before = path.read_bytes()
    assert oct(os.stat(path).st_mode & 0o777) == "0o644"

    def interrupted(file, **arrays):
        file.write(b"half")
        raise KeyboardInterrupt
    monkeypatch.setattr(np, "savez_compressed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _citeulike.save({"a": np.arange(4)}, path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name, content, message", [
    ("users.dat", "2 1\n", "users.dat, line 1: begins with '2' and holds 1 entries"),
    ("users.dat", "1 1\n1 120\n", "users.dat, line 2: '120' is not an article number below 120"),
    ("users.dat", "1 -1\n", "'-1' is not an article number"), ("users.dat", "\n", "begins with ''"),
    ("users.dat", "2 1 2\n", "none of 1 readers has 25 articles"),
    ("mult.dat", "1 3:1\n2 1:1\n", "mult.dat, line 2: begins with '2' and holds 1 entries"),
    ("mult.dat", "1 75:1\n", "'75:1' is not word:count with a word below 75"), ("mult.dat", "1 7\n", "'7' is not word:count"),
])
def test_raw_files_that_do_not_fit(tmp_path, name, content, message):
    folder, _ = raw_folder(tmp_path / "raw")
    (folder / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        _citeulike.derive(folder, k=3)


@pytest.mark.parametrize("ratio", _citeulike.RATIOS[10])
def test_the_stored_readers(ratio):
    data = datasets.citeulike(ratio=ratio)
    assert data.items.shape[1] == 10 and 490 <= len(data.items) <= 500 and data.probs.sum() == pytest.approx(1)
    np.testing.assert_allclose(data.items.sum(axis=1), 1, atol=1e-12)
    assert data.notes["readers_read"] == 7947 and data.notes["pairs_read"] == 134_860
    assert data.notes["articles_read"] == 25_975 and data.notes["articles_flagged"] == 0
    assert len(data.users) == 7947 - data.notes["readers_too_small"] and len(data.features) == len(data.words) == 10
    read = data.sums.moment.sum(axis=1)
    np.testing.assert_allclose(data.sums.count, (1 + ratio) * np.round(read), atol=1e-9)
    np.testing.assert_allclose(data.sums.gram.sum(axis=(1, 2)), data.sums.count, rtol=1e-5)    # rows sum to 1
    assert np.linalg.eigvalsh(data.sums.gram)[:, 0].min() > -1e-5
    fit = datasets.prior(data)
    assert fit.counts["users_kept"] == len(data.users) and .05 < fit.noise_sd < .2
    assert np.linalg.eigvalsh(fit.Sigma)[0] > 0


def test_more_unread_articles_lower_the_prior_mean():
    means = [datasets.prior(datasets.citeulike(ratio=ratio), holdout=0).mu for ratio in (1, 4)]
    assert (means[1] < .7 * means[0]).all()


def test_the_ridge_is_the_best_of_those_tried():
    for topics, path in _citeulike.STORED.items():
        arrays = _citeulike.load(path)
        assert arrays["ridges"].tolist() == list(_citeulike.RIDGES)
        assert len(arrays["ridge_errors"]) == len(_citeulike.RATIOS[topics])
        assert all(_citeulike.RIDGES[best] == _citeulike.RIDGE[topics] for best in arrays["ridge_errors"].argmin(axis=1))


def test_the_stored_file_is_small_and_described():
    assert sum(path.stat().st_size for path in _citeulike.FOLDER.iterdir()) < 3_500_000
    for path in _citeulike.STORED.values():
        assert hashlib.sha256(path.read_bytes()).hexdigest() in (ROOT / "data" / "README.md").read_text()


@pytest.mark.parametrize("topics", _citeulike.RATIOS)
def test_all_articles_make_the_stream(topics):
    data = datasets.citeulike(articles=None, topics=topics)
    assert data.notes["articles_kept"] == 25_944 and data.notes["articles_flagged"] == 0
    assert data.items.shape[1] == topics == len(data.features) and 25_000 < len(data.items) <= 25_944
    assert data.probs.sum() == pytest.approx(1) and data.items.sum(axis=1) == pytest.approx(1)
    np.testing.assert_array_equal(datasets.citeulike(articles=len(data.items), topics=topics).sums.gram, data.sums.gram)


@pytest.mark.parametrize("options, message", [
    ({"ratio": 2}, r"ratio is 2: with 10 topics it must be one of \(1, 4\)"), ({"ratio": 4, "topics": 50}, "ratio is 4: with 50 topics"),
    ({"topics": 3}, r"topics is 3: it must be one of \(10, 50\)"), ({"articles": 0}, "articles must be an integer of at least 1, got 0"),
    ({"articles": 25_945}, "articles is 25945")])
def test_citeulike_errors(options, message):
    with pytest.raises(ValueError, match=message):
        datasets.citeulike(**options)


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / "citeulike-t").exists(), reason="the raw citeulike-t files are not here")
def test_the_stored_numbers_come_from_the_raw_files():
    stored, derived = _citeulike.load(), _citeulike.derive(SHARED / "citeulike-t")
    assert stored.keys() == derived.keys()
    for name, value in stored.items():
        if value.dtype.kind == "f":                    # the last digit of a sum is the processor's
            np.testing.assert_allclose(value, derived[name], rtol=1e-6 if value.dtype == np.float32 else 1e-12, err_msg=name)
        else:
            np.testing.assert_array_equal(value, derived[name], err_msg=name)


@pytest.mark.skipif(not (SHARED / "citeulike-t").exists(), reason="the raw citeulike-t files are not here")
@pytest.mark.parametrize("k", _citeulike.RATIOS)
def test_the_stored_sums_are_those_of_the_stored_topics(k):
    """Two readers in plain loops, from the raw libraries and the topics as they are stored."""
    stored = _citeulike.load(_citeulike.STORED[k])
    vocabulary = _citeulike.read_vocabulary(SHARED / "citeulike-t" / "vocabulary.dat")
    counts = _citeulike.read_counts(SHARED / "citeulike-t" / "mult.dat", len(vocabulary))
    libraries = _citeulike.read_libraries(SHARED / "citeulike-t" / "users.dat", counts.shape[0])
    readable = np.asarray(counts.sum(axis=1)).ravel() > 0
    rows = dict(zip(_citeulike.in_random_order(readable, 0).tolist(), stored["topics"] / 10_000))
    for u in (0, 500):
        reader = int(stored["readers"][u])
        read = [a for a in libraries[reader].tolist() if readable[a]]
        for position, ratio in enumerate(_citeulike.RATIOS[k]):
            chosen = read + topics.unread(np.array(read), readable, ratio, 0, reader).tolist()
            gram = sum(np.outer(rows[a], rows[a]) for a in chosen)
            found = datasets.citeulike(ratio=ratio, articles=10, topics=k).sums
            assert np.abs(found.gram[u] - gram).max() <= max(_citeulike.UNIT[k] / 2, 1e-5 * gram.max()) + 1e-12
            np.testing.assert_allclose(found.moment[u], sum(rows[a] for a in read), rtol=1e-5)
            assert found.count[u] == len(chosen)


def test_first_words_are_made_of_letters_and_filled_up():
    assert _citeulike.first_words(["ab", "abc", "x1y", "de-f"], 3) == ["abc", "de-f", ""]


def test_ridge_errors_against_plain_loops():
    """Half of each reader's sample, in a random order, foretells the other half."""
    rng = np.random.default_rng(2)
    shares, readable = rng.dirichlet(np.ones(3), 30), np.ones(30, dtype=bool)
    libraries = {4: np.array([1, 2, 5, 8, 9]), 7: np.array([0, 3, 11, 20])}
    expected = np.zeros(len(_citeulike.RIDGES))
    for reader, library in libraries.items():
        rows = [(shares[a], 1.0) for a in library] + [(shares[a], 0.0) for a in topics.unread(library, readable, 1, 0, reader)]
        order = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(reader, 1))).permutation(len(rows))
        rows = [rows[i] for i in order]
        learnt, rest = rows[:len(rows) // 2], rows[len(rows) // 2:]
        for r, ridge in enumerate(_citeulike.RIDGES):
            theta = np.linalg.solve(sum(np.outer(x, x) for x, _ in learnt) + ridge * np.eye(3), sum(x * y for x, y in learnt))
            expected[r] += sum((y - x @ theta)**2 for x, y in rest) / len(rest) / 2
    np.testing.assert_allclose(_citeulike.ridge_errors(libraries, shares, readable, 1, 0), expected)


# arXiv

@pytest.mark.parametrize("categories, expected", [
    ("cond-mat.stat-mech", True), ("cond-mat", True), ("hep-th cond-mat", True), ("physics.cond", False),
    ("cond-mattress", False), ("supr-con", False), ("math.MP", False), ("", False), (None, False)])
def test_whole_tokens(categories, expected):
    assert _arxiv.is_condmat(categories) == expected


@pytest.mark.parametrize("created, year", [
    ("Mon, 8 Sep 2003 17:01:44 GMT", 2003), ("Wed, 31 Dec 2014 23:59:59 GMT", 2014), ("Thu, 1 Jan 2015 00:00:00 GMT", 2015),
    ("Wed, 31 Dec 2014 23:30:00 -0200", 2015), ("Thu, 1 Jan 2015 00:30:00 +0100", 2014),
    ("Thu, 1 Jan 2015 00:30:00 -0000", 2015), (None, None), ("", None)])
def test_years(created, year):
    assert _arxiv.first_year([_arxiv.Version(created), _arxiv.Version("Mon, 8 Sep 1999 17:01:44 GMT")]) == year


def paper(name, categories="cond-mat.soft", created="Mon, 8 Sep 2014 17:01:44 GMT", text="", **more):
    versions = [{"version": "v1", "created": created}]
    return {"id": name, "submitter": None, "title": "A\n title", "categories": categories, "versions": versions,
            "abstract": text, "update_date": "2014-09-09", "authors_parsed": [["A", "B", ""]]} | more


def write_lines(path, rows):
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["snapshot.json", "snapshot.json.gz"])
def test_papers(tmp_path, name):
    rows = [paper("0704.0001"), paper("1501.00010"), paper("hep-th/9901001", text="old"), paper("a", "physics.cond"),
            paper("b", "cond-mat", "Mon, 8 Sep 2003 17:01:44 GMT"), paper("c", versions=[]), paper("d", versions=None),
            paper("e", "q-bio", versions=None), paper("hep-th/9901001", "hep-th cond-mat", text="$x$ new", title=None),
            paper("f", None), {"id": "g", "categories": "cond-mat", "update_date": "2014-01-01"}]
    texts, notes = _arxiv.papers(write_lines(tmp_path / name, rows))
    assert list(texts) == ["0704.0001", "1501.00010", "hep-th/9901001"]
    assert texts["hep-th/9901001"] == "\n$x$ new" and texts["0704.0001"] == "A\n title\n"
    assert notes == {"lines_damaged": 0, "papers_read": 11, "papers_elsewhere": 3, "papers_without_date": 3,
                     "papers_of_other_years": 1, "papers_repeated": 1}


@pytest.mark.parametrize("wrong, message", [
    (paper(812.3874), "Expected `str`, got `float`"), (paper(" "), "id is blank"), (paper(None), "id"),
    (paper("a", created="in September"), "in September"), ({"id": "a"}, "categories"), (paper("a", ["cond-mat"]), "categories"),
])
def test_a_wrong_paper_is_named_or_counted(tmp_path, wrong, message):
    path = write_lines(tmp_path / "snapshot.json", [paper("x"), wrong, paper("y")])
    with pytest.raises(ValueError, match=rf"snapshot\.json, line 2: .*{message}"):
        _arxiv.papers(path)
    texts, notes = _arxiv.papers(path, skip_damaged=True)
    assert list(texts) == ["x", "y"] and notes["lines_damaged"] == 1


def test_no_paper_left_says_what_was_there(tmp_path):
    path = write_lines(tmp_path / "snapshot.json", [paper("x", "hep-th"), paper("y", versions=[])])
    with pytest.raises(ValueError, match="no cond-mat paper first submitted in 2014: .*'papers_elsewhere': 1, 'papers_w"):
        _arxiv.papers(path)


def test_real_records():
    texts, notes = _arxiv.papers(RECORDS)
    assert len(texts) == 27 and notes["papers_of_other_years"] == 3     # ids of 2014, first submitted in 2013
    assert all(name.startswith("14") and len(text) > 100 for name, text in texts.items())
    assert set(_arxiv.papers(RECORDS, year=2013)[0]) == {"1401.0047", "1401.1786", "1401.0226"}


def clicked_folder(folder, users=40, shown=100, only_clicks=False):
    """300 documents, users with known theta in [0, 1] who click with probability x.theta; returns theta, shares."""
    shares, texts = mixtures(300, seed=3)
    names = [f"1409.{i:04d}" for i in range(300)]
    write_lines(folder / "snapshot.json", [paper(name, text=" ".join(text), title=None) for name, text in zip(names, texts)])
    rng = np.random.default_rng(4)
    thetas = rng.uniform(0, 1, (users, 3))
    lines = ["user,paper,clicked,time"]
    for u, theta in enumerate(thetas):
        for second, i in enumerate(rng.choice(300, shown, replace=False)):
            clicked = rng.random() < shares[i] @ theta
            if clicked or not only_clicks:
                lines.append(f"u{u:02d},{names[i]},{clicked:d},{1_400_000_000 + second}")
    (folder / "clicks.csv").write_text("\n".join([*lines, "u00,0704.0001,1,1400000000"]) + "\n")
    return thetas


def test_theta_is_recovered_from_clicks(tmp_path):
    thetas = clicked_folder(tmp_path)
    data = datasets.arxiv(tmp_path / "snapshot.json", tmp_path / "clicks.csv", k=3, articles=50)
    place = topic_order(data.words)
    fit = datasets.prior(data, holdout=0)
    errors = fit.thetas_train[:, place] - thetas
    assert np.sqrt(np.mean(errors**2)) < .17 and np.abs(errors.mean(axis=0)).max() < .08
    assert np.corrcoef(fit.thetas_train[:, place].ravel(), thetas.ravel())[0, 1] > .85
    assert data.items.shape == (50, 3) and data.notes["ratings_of_unknown_items"] == 1
    assert [words[:1] == words[1:2] for words in map(lambda row: [w[0] for w in row[:20]], data.words)] == [True] * 3


def test_every_paper_keeps_the_order_of_the_clicks(tmp_path):
    clicked_folder(tmp_path, users=5)
    paths = tmp_path / "snapshot.json", tmp_path / "clicks.csv"
    full = datasets.arxiv(*paths, k=3, articles=None)
    assert full.sums is None and all((np.diff(time) > 0).all() for _, _, time in datasets.histories(full, range(5)))
    few = datasets.arxiv(*paths, k=3)
    assert few.ratings is None and len(few.items) == len(full.items) <= 300        # fewer papers than the support
    np.testing.assert_allclose(datasets.prior(few, holdout=0).mu, datasets.prior(full, holdout=0).mu)


def test_a_log_of_clicks_alone_needs_a_ratio(tmp_path):
    clicked_folder(tmp_path, users=6, only_clicks=True)
    paths = tmp_path / "snapshot.json", tmp_path / "clicks.csv"
    with pytest.raises(ValueError, match="every line is a click; give `ratio`"):
        datasets.arxiv(*paths, k=3)
    data = datasets.arxiv(*paths, k=3, articles=None, ratio=2)
    for item, value, time in datasets.histories(data, range(6)):
        assert time is None and len(value) == 3 * value.sum()


def test_one_setting_replaces_citeulike_and_the_snapshot_is_read_once(tmp_path, monkeypatch):
    clicked_folder(tmp_path)
    paths = [str(tmp_path / name) for name in ("snapshot.json", "clicks.csv")]
    reads, read = [], _arxiv.papers
    monkeypatch.setattr(_arxiv, "papers", lambda *arguments: reads.append(arguments) or read(*arguments))
    sources._catalogue.cache_clear()
    monkeypatch.setenv("BOOK_ARXIV", os.pathsep.join(paths))
    sizes = []
    for ratio, articles in ((1, 20), (4, 20), (1, 50)):
        data = sources.documents(ratio, articles)
        assert data.items.shape == (articles, 10)
        np.testing.assert_array_equal(data.sums.count, np.minimum((1 + ratio) * data.sums.square, 300))     # papers there are
        sizes.append(data.sums.count.sum())
        problem, held_out = problems.documents(ratio, articles, min_ratings=20)
        assert problem.items.shape == (articles, 10) and len(held_out)
    assert sizes[0] == sizes[2] < sizes[1] and len(reads) == 1
    for wrong in (paths[0], os.pathsep.join([*paths, "more"]), os.pathsep.join([paths[0], ""])):
        monkeypatch.setenv("BOOK_ARXIV", wrong)
        with pytest.raises(ValueError, match="it must be a snapshot and a click log"):
            sources.documents()
    monkeypatch.delenv("BOOK_ARXIV")
    assert sources.documents().source == datasets.citeulike().source


def test_clicks_are_sampled_for_each_user():
    user, item, clicked = np.array([2, 0, 2, 2, 0, 1, 1]), np.array([3, 1, 3, 5, 2, -1, 4]), np.array([1, 1, 1, 1, 0, 1, 0])
    found = _arxiv.with_unread((user, item, clicked, None), np.ones(9, dtype=bool), 2, 0)
    rows = list(zip(*(column.tolist() for column in found[:3])))
    assert sorted(row for row in rows if row[2]) == [(0, 1, 1), (2, 3, 1), (2, 5, 1)] and found[3] is None
    assert [sum(u == v and not y for u, _, y in rows) for v in range(3)] == [2, 0, 4] and len(set(rows)) == 9
    with pytest.raises(ValueError, match="no user clicked on one of these papers"):
        _arxiv.with_unread((user, item, 0 * clicked, None), np.ones(9, dtype=bool), 2, 0)


@pytest.mark.parametrize("row, message", [
    ("u,1409.0001,2", "line 2, column clicked is 2: the scale is 0 to 1"), ("u,1409.0001,0.5", "column clicked holds 0.5"),
    ("u,1409.0001,yes", "column clicked is 'yes'"), ("u,,1", "column item_id is blank")])
def test_wrong_clicks(tmp_path, row, message):
    clicked_folder(tmp_path, users=1)
    (tmp_path / "clicks.csv").write_text(f"user_id,item_id,clicked\n{row}\n")
    with pytest.raises(ValueError, match=message):
        datasets.arxiv(tmp_path / "snapshot.json", tmp_path / "clicks.csv", k=3)


def test_too_few_papers_for_topics(tmp_path):
    path = write_lines(tmp_path / "snapshot.json", [paper("x", text="one two three")])
    (tmp_path / "clicks.csv").write_text("user,paper,clicked\nu,x,0\n")
    with pytest.raises(ValueError, match="1 papers are too few or too alike to learn topics from"):
        datasets.arxiv(path, tmp_path / "clicks.csv")


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / "arxiv").exists(), reason="the sample of 1,500 arXiv records is not here")
def test_clicks_on_the_real_sample(tmp_path):
    snapshot = SHARED / "arxiv" / "condmat-2014-sample.jsonl"
    texts, notes = _arxiv.papers(snapshot)
    assert len(texts) == 1497 and notes["papers_of_other_years"] == 3
    rows, words = _arxiv.topics_of(list(texts.values()), 10, 0)
    rng = np.random.default_rng(0)
    thetas = rng.uniform(0, 1, (30, 10))
    lines = [f"u{u:02d},{name},{rng.random() < x @ theta:d}" for u, theta in enumerate(thetas)
             for name, x in zip(texts, rows / topics.STEPS)]
    (tmp_path / "clicks.csv").write_text("\n".join(["user,paper,clicked", *lines]) + "\n")
    data = datasets.arxiv(snapshot, tmp_path / "clicks.csv")
    fit = datasets.prior(data, holdout=0)
    assert data.words == words and fit.counts["users_kept"] == 30
    weight = rows.mean(axis=0) / topics.STEPS
    error = np.sqrt(np.average(np.mean((fit.thetas_train - thetas)**2, axis=0), weights=weight))
    assert error < .12


def test_topics_are_learned_by_one_thread_so_that_no_machine_adds_in_another_order(monkeypatch):
    import threadpoolctl
    asked, limits = [], threadpoolctl.threadpool_limits
    monkeypatch.setattr(threadpoolctl, "threadpool_limits", lambda count: asked.append(count) or limits(count))
    topics.learn_topics(np.eye(4, 6) + 1, k=2, passes=1)
    assert asked == [1]
