"""The report on a stream of one's own: a page from good files, one clear line and nothing else from bad ones."""
from functools import partial
from html import escape, unescape
import itertools
import os
from pathlib import Path
import re
import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import NamedTuple
import warnings

import numpy as np
import pytest

from lib import bound, datasets, experiments, policies, report
from lib.datasets import Ratings
from lib.problem import make_problem
from lib.report import analysis, checks, page, progress
from lib.report.page import arguments, followed, out_of_range, write

ITEMS = "item_id,news,music\na,1,0\nb,0,1\nc,0.5,0.5\n"


def write_stream(folder, users=60, times=True, seed=0):
    """Two files with ratings of known users: theta ~ N((3, 3.4), .5), noise .4 a feature."""
    rng = np.random.default_rng(seed)
    x = {"a": np.array([1, 0]), "b": np.array([0, 1]), "c": np.array([.5, .5])}
    lines = ["user_id,item_id,rating" + (",time" if times else "")]
    for u in range(users):
        theta = rng.normal([3, 3.4], .7)
        names = [f"{kind}{n}" for n in range(8) for kind in x]
        for n, name in enumerate(names):
            v = x[name[0]]
            y = v @ theta + .4 * np.sqrt(np.count_nonzero(v)) * rng.standard_normal()
            lines.append(f"u{u},{name},{y:.3f}" + (f",{1000 + n}" if times else ""))
    items = ["item_id,news,music"] + [f"{kind}{n},{v[0]},{v[1]}" for n in range(8) for kind, v in x.items()]
    (folder / "items.csv").write_text("\n".join(items) + "\n")
    (folder / "ratings.csv").write_text("\n".join(lines) + "\n")
    return folder / "items.csv", folder / "ratings.csv"


@pytest.mark.slow
def test_a_page_that_needs_nothing_else(tmp_path, capsys, monkeypatch):
    items, ratings = write_stream(tmp_path)
    page = tmp_path / "page.html"
    assert report.main([str(items), str(ratings), "--cost", "3.2", "--users", "128", "--output", str(page)]) == 0
    text = page.read_text()
    assert not re.search(r"(src|href)\s*=\s*[\"'](?!data:)", text) and "http" not in text and "<script" not in text
    assert text.count("data:image/png;base64,") == 4 and text.count(" alt=") == 4
    assert not re.search(r">[^<]*_[^<]*<", text.split("</style>")[1].replace(str(tmp_path), ""))     # no names of variables
    for words in ("DTD-UCB", "Thompson sampling", "alpha", "gap", "held out", "Choosing a cost", "cost 3.2 use"):
        assert words in text
    said = capsys.readouterr().out
    assert "At cost 3.2 use" in said and "written to" in said
    lines = unescape(re.search(r"<pre>(.*?)</pre>", text, re.DOTALL)[1])
    assert lines.count("\n") == 5
    monkeypatch.chdir(tmp_path)
    known = {}
    exec(lines, known)
    assert known["user"].met == 1 and policies.label(known["policy"]) in text and known["problem"].cost == 3.2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["items.csv", "page.html", "page.json", "ratings.csv"]


@pytest.mark.slow
@pytest.mark.parametrize("names", [("$", "$$", "$10-$20"), ("新闻 <b>_</b>", "أخبار 😀", "\\frac{^_}% " * 20)])
def test_names_of_features_are_text(tmp_path, capsys, names):
    """The made-up stream of `dollar-signs`: 60 users, 40 items, theta ~ N(3.5, .25), noise .6."""
    rng = np.random.default_rng(1)
    x = (rng.random((40, 3)) < .5).astype(float)
    x[x.sum(axis=1) == 0, 0] = 1
    x /= x.sum(axis=1, keepdims=True)
    theta = 3.5 + .5 * rng.standard_normal((60, 3))
    items = ["item_id," + ",".join(f'"{name}"' for name in names), *(f"i{i}," + ",".join(map(str, row)) for i, row in enumerate(x.tolist()))]
    ratings = ["user_id,item_id,rating,time", *(
        f"u{u},i{i},{x[i] @ theta[u] + .6 * rng.standard_normal()},{1_400_000_000 + 86_400 * n + u}"
        for u in range(60) for n, i in enumerate(rng.permutation(40)[:20]))]
    for name, lines in (("items", items), ("ratings", ratings)):
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    page = tmp_path / "page.html"
    words = [str(tmp_path / "items.csv"), str(tmp_path / "ratings.csv"), "--cost", "3.3", "--users", "16", "--output", str(page)]
    assert report.main(words) == 0
    said, text = capsys.readouterr(), page.read_text(encoding="utf-8")
    assert not said.err and "numbers out of range" not in text
    for name in names:
        assert f"<td>{escape(name.strip(), quote=False)}</td>" in text
    assert "<b>_</b>" not in text


@pytest.mark.slow
def test_no_warning_of_numpy_reaches_a_user(tmp_path, capsys):
    sample, page = Path(report.__file__).parents[2] / "data" / "sample", tmp_path / "page.html"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert report.main([str(sample / "items.csv"), str(sample / "ratings.csv"), "--cost", "-1e-3", "--min-ratings", "2",
                            "--scale", "-10:10", "--users", "16", "--output", str(page)]) == 0
    said = capsys.readouterr()
    assert not said.err and "out of range" not in said.out and "nan" not in re.sub("base64,[^\"]*", "", page.read_text())


def test_a_warning_of_the_calculation_is_a_warning_on_the_page():
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("default")
        np.array([1e300]) ** 2
        warnings.warn("for programmers", DeprecationWarning)
    caution, = out_of_range(raised)
    assert caution.name == "numbers out of range" and "overflow encountered in square" in caution.text
    assert out_of_range(raised[1:]) == []


@pytest.mark.slow
def test_the_numbers_behind_it(tmp_path):
    data = datasets.ratings(*write_stream(tmp_path, users=200))
    found = report.analyse(data, datasets.prior(data, min_ratings=10), 3.2, steps=(), users=512)
    assert found.prior.mu == pytest.approx([3, 3.4], abs=.2) and found.prior.noise_sd == pytest.approx(.4, abs=.05)
    assert set(found.best.policy) == {"Exploitation", "Thompson sampling", "UCB", "DTD-UCB", "DTD-DP", "Knowledge gradient",
                                      "Hard clusters", "DTD-DP, noise of the model"}
    assert (found.best["mean"] - 3.5 * found.best.gap_se < found.best.bound).all()
    assert found.best.gap.to_numpy() == pytest.approx((found.best.bound - found.best["mean"]).to_numpy())
    assert found.best.tuning_mean.is_monotonic_decreasing and found.recommended.kind != "thompson"
    assert list(found.replayed.order.unique()) == ["in time order", "shuffled"]
    assert "too few users" not in [c.name for c in found.cautions]


@pytest.mark.parametrize("items, ratings, words", [
    (ITEMS, "user_id,item_id,rating\nu,a,x\n", ["ratings.csv, line 2, column rating", "'x'"]),
    (ITEMS, "user_id,item_id,rating\nu,z,3\n", ["ratings.csv, line 2, column item_id", "'z'"]),
    (ITEMS, "user_id,item_id,rating\nu,a,11\n", ["ratings.csv, line 2, column rating", "11", "1.0 to 5.0"]),
    (ITEMS, "user_id,item_id,rating\nu,a,3\nv,b,4\n", ["0 users are left"]),
    (ITEMS, "user_id,item_id,rating\nu,a,3\nv,b,3\n", ["every rating is 3"]),
    ("item_id,news\na,x\n", "user_id,item_id,rating\nu,a,3\n", ["items.csv, line 2, column news", "'x'"]),
    ("item_id,news\na,1\n", None, ["ratings.csv"]),
])
def test_wrong_files_leave_one_line_and_no_page(tmp_path, capsys, items, ratings, words):
    (tmp_path / "items.csv").write_text(items)
    if ratings is not None:
        (tmp_path / "ratings.csv").write_text(ratings)
    page = tmp_path / "page.html"
    page.write_text("the page of yesterday")
    assert report.main([str(tmp_path / "items.csv"), str(tmp_path / "ratings.csv"), "--cost", "3", "--scale", "1:5",
                        "--output", str(page)]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("error: ") and said.err.count("\n") == 1 and not said.out
    for word in words:
        assert word in said.err
    assert page.read_text() == "the page of yesterday"
    assert len(list(tmp_path.iterdir())) == 2 + (ratings is not None)


@pytest.mark.parametrize("words", [
    ["i", "r"], ["i", "r", "--cost", "much"], ["i", "r", "--cost", "3", "--scale", "5:1"],
    ["i", "r", "--cost", "3", "--scale", "5"], ["i", "r", "--cost", "3", "--scale", "a:b"], ["i", "r", "--cost", "--users", "3"],
    ["i", "r", "--cost", "3", "--time-unit", "h"]])
def test_wrong_arguments_exit_with_2(words, capsys):
    with pytest.raises(SystemExit) as stop:
        report.main(words)
    said = capsys.readouterr().err
    assert stop.value.code == 2 and said.startswith("error: ") and said.count("\n") == 1


@pytest.mark.parametrize("words, cost, scale", [
    (["--cost", "-1e-3", "--scale", "-10:10"], -1e-3, (-10, 10)), (["--cost=-.5", "--scale=-2.5:-1"], -.5, (-2.5, -1)),
    (["--scale", "-1e1:-1e0", "--cost", "-2"], -2, (-10, -1)), (["--cost", "-INF", "--scale", "-.5:inf"], -np.inf, (-.5, np.inf))])
def test_negative_numbers_as_users_type_them(words, cost, scale):
    chosen = arguments([*words, "i", "r"])
    assert (chosen.cost, chosen.scale, chosen.items, chosen.ratings) == (cost, scale, "i", "r")


@pytest.mark.parametrize("option, words", [(["--gamma", "1"], "gamma is 1.0"), (["--cost", "nan"], "cost is nan"),
                                           (["--min-ratings", "1000"], "users are left"), (["--users", "0"], "users is 0"),
                                           *((["--users", n], f"users is {n}") for n in ("1", "2", "4", "9" * 20)),
                                           (["--cost", "1e308"], "cost is 1e+308"), (["--cost", "-1e101"], "cost is -1e+101"),
                                           (["--seed", "-1"], "seed is -1"), (["--min-ratings", "0"], "min_ratings is 0")])
def test_wrong_values_are_named(tmp_path, capsys, option, words):
    items, ratings = write_stream(tmp_path, users=12)
    assert report.main([str(items), str(ratings), "--cost", "3", *option, "--output", str(tmp_path / "p.html")]) == 2
    assert words in capsys.readouterr().err and not (tmp_path / "p.html").exists()


def test_a_failed_write_leaves_the_old_page(tmp_path, monkeypatch):
    page = tmp_path / "page.html"
    write("old", page)
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write("new", page)
    assert page.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize("ratings, features, words", [
    ("1,2", "1,1e200", "items.csv, RATINGS: the largest feature is 1e+200"), ("1,2", "1,1e-200", "smallest feature beside 0 is 1e-200"),
    ("-1e200,2", "1,1", "the lowest rating is -1e+200"), ("1e-200,2e-200", "1,1", "ratings differ by 1e-200")])
@pytest.mark.filterwarnings("error")
def test_numbers_that_have_no_square_are_refused(tmp_path, capsys, ratings, features, words):
    items, rated = tmp_path / "items.csv", tmp_path / "ratings.csv"
    items.write_text("item_id,news,music\na,{}\nb,1,0\n".format(features))
    rated.write_text("user_id,item_id,rating\nu,a,{}\nu,b,{}\n".format(*ratings.split(",")))
    assert report.main([str(items), str(rated), "--cost", "1", "--min-ratings", "1", "--output", str(tmp_path / "p.html")]) == 2
    assert words.replace("RATINGS", str(rated)) in capsys.readouterr().err


@pytest.mark.parametrize("output, words", [
    ("items.csv", "which it would replace"), ("ratings.csv", "which it would replace"), ("nowhere/p.html", "its folder is missing"),
    ("", "a folder"), ("pipe", "a pipe"), ("fixed.html", "read-only")])
def test_an_output_that_cannot_be_written_is_refused_before_the_work(tmp_path, capsys, monkeypatch, output, words):
    items, ratings = write_stream(tmp_path, users=2)
    before = items.read_bytes(), ratings.read_bytes()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "fixed.html").touch(0o400)
    monkeypatch.setattr(datasets, "ratings", lambda *_: pytest.fail("the files were read"))
    path = str(tmp_path / output)
    assert report.main([str(items), str(ratings), "--cost", "3", "--output", path]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: output is {path!r}: ") and words in said and said.count("\n") == 1
    assert (items.read_bytes(), ratings.read_bytes()) == before


def test_the_unit_of_times_is_handed_on_where_it_is_given(tmp_path, monkeypatch, capsys):
    asked = []

    def read(*_, **options):
        asked.append(options)
        raise ValueError("two\nlines")
    monkeypatch.setattr(datasets, "ratings", read)
    for words in ([], ["--time-unit", "ms"]):
        assert report.main(["i", "r", "--cost", "3", *words, "--output", str(tmp_path / "p.html")]) == 2
    assert asked == [{}, {"time_unit": "ms"}] and capsys.readouterr().err == "error: two lines\n" * 2


def test_an_interruption_is_one_line(tmp_path, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt
    monkeypatch.setattr(datasets, "ratings", interrupted)
    assert report.main(["i", "r", "--cost", "3", "--output", str(tmp_path / "p.html")]) == 130
    assert capsys.readouterr().err == "interrupted: no page was written\n" and not list(tmp_path.iterdir())


def command(folder):
    """The command as a process of its own, reading the items from the pipe items.csv, modules of `folder` found first."""
    default = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)         # also where the suite runs in the background
    return subprocess.Popen([sys.executable, "-m", "lib.report", str(folder / "items.csv"), "r", "--cost", "3", "--output",
                             str(folder / "page.html")], stderr=subprocess.PIPE, text=True, cwd=Path(report.__file__).parents[2],
                            env=os.environ | {"PYTHONPATH": str(folder)}, preexec_fn=default)


@pytest.mark.slow
def test_ctrl_c_while_modules_are_loaded_is_one_line(tmp_path):
    (tmp_path / "pandas.py").write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n")
    with command(tmp_path) as run:
        assert (run.stderr.read(), run.wait()) == ("interrupted: no page was written\n", 130)


@pytest.mark.slow
def test_ctrl_c_while_it_works_is_one_line(tmp_path):
    os.mkfifo(tmp_path / "items.csv")
    with command(tmp_path) as run, open(tmp_path / "items.csv", "w"):       # opens when the command reads
        run.send_signal(signal.SIGINT)
        assert (run.stderr.read(), run.wait()) == ("interrupted: no page was written\n", 130)
    assert [path.name for path in tmp_path.iterdir()] == ["items.csv"]


def stream(tmp_path, **options):
    data = datasets.ratings(*write_stream(tmp_path, **options))
    return data, datasets.prior(data, min_ratings=10)


def names(data, prior):
    return [c.name for c in checks.data_cautions(data, prior, .5)]


def test_a_good_stream_gets_no_warning(tmp_path):
    assert names(*stream(tmp_path)) == []


def test_warnings_about_users_times_and_prior(tmp_path):
    data, prior = stream(tmp_path, users=12, times=False)
    assert names(data, prior) == ["too few users", "no times"]
    assert checks.dropped_users(prior._replace(counts=prior.counts | {"users_kept": 5})).name == "most users are left out"
    assert checks.ill_conditioned(prior._replace(Sigma=np.ones((2, 2)))).name == "ill-conditioned prior"
    assert "music (60)" in checks.wide_preferences(data, prior._replace(Sigma=np.diag([1, 3600.])), data.features).text


@pytest.mark.parametrize("level, column, found", [(3.5, False, True), (3.5, True, False), (0.0, False, False), (-3.5, False, True)])
def test_a_level_that_centred_features_cannot_have_is_told(tmp_path, level, column, found):
    """Signed features around 0 and ratings around 3.5: without a column of ones the prior expects about 0 of every item."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(200, 3))
    lines = ["user_id,item_id,rating"]
    for u in range(80):
        theta, theirs = rng.normal(0, .5, 3), rng.choice(200, 30, replace=False)
        lines += [f"u{u},i{i},{level + x[i] @ theta + .3 * rng.standard_normal():.4f}" for i in theirs]
    (tmp_path / "ratings.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "items.csv").write_text("item_id,a,b,c" + ",one" * column + "\n" + "".join(
        f"i{i},{','.join(map(str, v))}" + ",1" * column + "\n" for i, v in enumerate(x)))
    data = datasets.ratings(tmp_path / "items.csv", tmp_path / "ratings.csv")
    for method in ("empirical_bayes", "least_squares"):
        prior = datasets.prior(data, method=method, noise="constant", min_ratings=10)
        assert ("the level of ratings is missing" in [c.name for c in checks.data_cautions(data, prior, 1.0)]) == found


def test_warnings_about_residuals(tmp_path):
    data, prior = stream(tmp_path)
    start, item, value, time = data.ratings
    odd = value + np.where(np.random.default_rng(1).random(len(value)) < .03, 8, 0)
    assert "residuals far from normal" in names(data._replace(ratings=Ratings(start, item, odd, time)), prior)
    place = np.concatenate([np.linspace(0, 1, n) for n in np.diff(start)])
    moved = data._replace(ratings=Ratings(start, item, value + .8 * place, time))
    assert "drift over time" in names(moved, prior)
    up_or_down = np.repeat(np.where(np.arange(len(start) - 1) % 2, 1, -1), np.diff(start))
    apart = data._replace(ratings=Ratings(start, item, value + .8 * up_or_down * place, time))
    found = {c.name: c.text for c in checks.data_cautions(apart, prior, .5)}["drift over time"]
    assert abs(float(re.search(r"mean over users is (\S+) ", found)[1])) < .1 < float(re.search(r"typically (\S+) ", found)[1])
    narrow = np.where(np.count_nonzero(data.items, axis=1)[item] == 2, .3, 1.) * np.random.default_rng(2).normal(size=len(value))
    assert checks.constant_noise(data, narrow, item).name == "noise does not grow with features"
    assert checks.constant_noise(data, narrow / .3, np.zeros_like(item)) is None


def test_the_variance_of_a_move_is_that_over_all_orders():
    for values in ([1., 4., -2., 0., 3., 3.], [2., -1., 0.], [0., 5.]):
        n, place = len(values), np.arange(len(values)) / (len(values) - 1)
        moves = [np.mean([v for v, p in zip(order, place) if p > 2 / 3]) - np.mean([v for v, p in zip(order, place) if p < 1 / 3])
                 for order in itertools.permutations(values)]
        twice = checks.moves(np.array([n, n]), np.array(values * 2), np.tile(place, 2))
        np.testing.assert_allclose(twice, [[moves[0]] * 2, [np.var(moves)] * 2])
        np.testing.assert_allclose(np.mean(moves), 0, atol=1e-12)


def test_one_history_is_too_few_to_see_drift(tmp_path):
    data, prior = stream(tmp_path, users=12)
    residual, place = np.array([1., 0., 9.]), np.array([0., 0., 1.])
    ratings = Ratings(np.array([0, 1, 3]), np.zeros(3, int), residual, np.arange(3))
    assert checks.drift(data._replace(ratings=ratings), np.array([0, 1]), residual, place, 1.) is None


def test_silence_at_once_and_after_bad_luck(tmp_path):
    data, prior = stream(tmp_path, users=12)
    problem = make_problem(data.items, data.probs, prior.mu, prior.Sigma, .4, 3.0, .9)
    theta = np.array([[5., 5.], [5., 5.], [0., 0.]])
    never, early = np.zeros((3, 10), bool), np.zeros((3, 10), bool)
    early[0], early[1, :3] = True, True
    assert checks.silent(problem, "UCB", theta, never).name == "nothing is ever forwarded"
    assert "50 %" in checks.silent(problem, "UCB", theta, early).text
    assert checks.silent(problem, "UCB", theta[[0, 2]], early[[0, 2]]) is None


def test_a_study_follows_its_users_as_long_as_gamma_asks():
    for gamma, horizon, users in ((.9, 66, 1024), (.97, 227, 451), (.99, 688, 148), (.999, 6905, 16)):
        spec = analysis.plan(make_problem([[1]], [1], [0], [[1]], 1, 0, gamma), 1024, 8, 0)
        assert (spec.horizon, spec.replications[0], spec.tuning[0]) == (horizon, users, 8 * users)
        assert any(policy.kind == "dtd_dp" for policy in spec.policies) == (gamma < .999)
    with pytest.raises(ValueError, match="gamma is 0.9999: a user would have to be followed for 69075 items"):
        analysis.plan(make_problem([[1]], [1], [0], [[1]], 1, 0, .9999), 1024, 8, 0)


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [.97, .999])
def test_long_lives_are_judged_over_their_length(tmp_path, gamma):
    """Judged over a hundred items they would have less than the share 1 - gamma^100 of the bound."""
    data = datasets.ratings(*write_stream(tmp_path, users=200))
    found = report.analyse(data, datasets.prior(data, min_ratings=10), 3.2, gamma, steps=(), users=32)
    top = found.best.iloc[0]
    assert .9 < (top["mean"] + 3 * top.gap_se) / top.bound and (top["mean"] - 4 * top.gap_se) < top.bound
    assert found.rest <= 1.01e-3 * bound.hindsight(found.problem)
    assert f"followed for {found.horizon:,} items" in followed(found)
    assert (found.table.high - found.table.low >= 2 * found.table.truncation).all()


# Rules and limits, on numbers that are given


@pytest.mark.parametrize("horizon, effort", [(100, 2000), (101, 200)])
def test_a_long_life_is_searched_less(horizon, effort, monkeypatch):
    monkeypatch.setattr(bound, "dual_first", lambda problem, paths, effort, seed: (problem, paths, effort, seed))
    assert analysis.upper_bound("p", horizon, 3) == ("p", 200, effort, 3)


@pytest.mark.parametrize("users", analysis.USERS)
def test_the_least_and_the_largest_number_of_users_are_allowed(users, monkeypatch):
    monkeypatch.setattr(analysis, "check_sizes", lambda *_: None)
    monkeypatch.setattr(experiments, "believed", lambda *_: 1 / 0)         # what comes after the check
    dataset = SimpleNamespace(items=None, probs=None)
    prior = SimpleNamespace(mu=None, Sigma=None, noise_sd=None)
    with pytest.raises(ZeroDivisionError):
        analysis.analyse(dataset, prior, 1.0, users=users)
    with pytest.raises(ValueError, match="users is "):
        analysis.analyse(dataset, prior, 1.0, users=users + (1 if users == analysis.USERS[1] else -1))


def noisy(*groups):
    """A data set of items with 1, 2, ... features and residuals: for each number of features how many and their variance."""
    items = np.tril(np.ones((len(groups), len(groups))))
    residual = np.concatenate([np.sqrt(variance) * (-1.0) ** np.arange(2 * (count // 2)) for count, variance in groups])
    return SimpleNamespace(items=items), residual, np.repeat(np.arange(len(groups)), [2 * (count // 2) for count, _ in groups])


@pytest.mark.parametrize("groups, words", [
    ([(200, 4.0), (200, 5.5)], "is 4 for items of 1 and 5.5 for items of 2"), ([(200, 4.0), (200, 5.8)], None),     # root 2 is 1.414
    ([(200, .25), (200, .35), (98, 9.0)], "items of 1 and 0.35 for items of 2"), ([(100, 1.0), (98, 1.0)], None),
    ([(100, 1.0), (100, 1.0)], "items of 1 and 1 for items of 2"), ([(98, 1.0), (100, 4.0), (100, 4.0)], "items of 2 and 4 for items of 3")])
def test_noise_that_does_not_grow_is_told_by_the_ends(groups, words):
    found = checks.constant_noise(*noisy(*groups))
    assert (found is None) == (words is None) and (found is None or words in found.text)


@pytest.mark.parametrize("sd, flagged", [(1.9, False), (2.1, True)])
def test_a_prior_wider_than_the_range_of_ratings_is_flagged(sd, flagged):
    dataset = SimpleNamespace(notes={"rating_range": (3.0, 5.0)}, items=np.eye(2))
    prior = SimpleNamespace(Sigma=np.diag([1.0, sd**2]))
    found = checks.wide_preferences(dataset, prior, ("a", "b"))
    assert (found is not None) == flagged and (not flagged or "larger for b (2.1)" in found.text)


def test_the_guide_to_costs_counts_what_is_at_the_cost():
    dataset = SimpleNamespace(items=np.array([[1.], [2.], [4.]]), probs=np.array([.5, .3, .2]), ratings=SimpleNamespace(value=np.array([1., 2., 2., 5.])))
    found = page.guide(dataset, SimpleNamespace(mu=np.array([1.])), [1, 2, 5])
    assert found.to_numpy().tolist() == [[1, 100, 100], [2, 75, 50], [5, 25, 0]]


@pytest.mark.parametrize("words", [["-1"], ["x", "-1"], ["--cost", "abc"], ["--cost=1", "-1"], []])
def test_words_that_belong_to_no_option_stay(words):
    assert page.tied(words) == words


def test_a_scale_has_two_different_ends():
    assert page.scale("-1:5") == (-1, 5)
    for text in ("3:3", "5:1", "3", "nan:1"):
        with pytest.raises(Exception, match="is not low:high"):
            page.scale(text)


def test_warnings_while_it_works_join_the_cautions(monkeypatch):
    class Found(NamedTuple):
        dataset: object = SimpleNamespace(source="<s>")
        cautions: tuple = ("one",)
        problem: object = None
        recommended: object = None
    pages = {}

    def pictures(found):
        warnings.warn("overflow", RuntimeWarning)
    monkeypatch.setattr(page, "analysed", lambda chosen: Found())
    monkeypatch.setattr(page, "pictures", pictures)
    monkeypatch.setattr(page, "out_of_range", lambda raised: (str(raised[0].message),))
    monkeypatch.setattr(page, "render", lambda found, shown, file: f"{file} {found.cautions}")
    monkeypatch.setattr(page.filter, "write", lambda *_: None)
    monkeypatch.setattr(page, "write", lambda text, output: pages.update({output: text}))
    assert page.run(SimpleNamespace(output="o")).cautions == ("one", "overflow")
    assert pages["o"] == "o.json ('one', 'overflow')"


def test_a_large_study_is_cut_to_its_work_and_a_small_one_is_not():
    def problem(n, k):
        items = np.random.default_rng(0).standard_normal((n, k))
        return make_problem(items, np.full(n, 1 / n), np.zeros(k), np.eye(k), 1, 0, .9)
    small, large = analysis.plan(problem(64, 6), 1024, 8, 0), analysis.plan(problem(5000, 40), 1024, 4, 0)
    assert small.replications == (1024,) * 2 and small.tuning == (8192,) * 2
    spent = analysis.price(problem(5000, 40), large.policies) * large.horizon * 4 * (large.replications[0] + large.tuning[0])
    assert analysis.FEW < large.replications[0] < 1024 and .9 * analysis.WORK < spent <= analysis.WORK


def test_the_contest_holds_what_the_book_recommends():
    kinds = {policies.family_name(policy) for policy in analysis.contest(66)}
    assert kinds >= {"UCB", "DTD-UCB", "DTD-DP", "Knowledge gradient", "Hard clusters", "DTD-DP, noise of the model"}
    assert {policy.kind for policy in analysis.contest(5000)} == {"exploit", "thompson", "ucb", "dtd_ucb", "knowledge_gradient"}


def choice(law, mean, se):
    return SimpleNamespace(log_density={"features": -1.2, "constant": -1.2 + mean}, lead=SimpleNamespace(mean=mean, se=se), law=law)


@pytest.mark.parametrize("law, mean, words", [("constant", .05, "is the same for all items. Of the two laws"),
                                              ("features", -.05, "grows with the number of features. Of the two laws")])
def test_the_page_says_which_law_of_the_noise_predicts_better(law, mean, words):
    said = page.noise_found(SimpleNamespace(prior=SimpleNamespace(noise=law, noise_sd=.5), noise=choice(law, mean, .01)))
    assert words in said and "0.050 ± 0.020" in said
    assert {"constant": "(-1.15 against -1.2)", "features": "(-1.2 against -1.25)"}[law] in said
    assert page.noise_found(SimpleNamespace(prior=SimpleNamespace(noise=law, noise_sd=.5), noise=None)).endswith(".") and "0.5" in said


def test_the_noise_is_chosen_where_items_differ_in_features_unless_it_is_given(tmp_path):
    data = datasets.ratings(*write_stream(tmp_path))
    chosen = arguments(["i", "r", "--cost", "3"])
    prior, found = page.fitted(data, chosen)
    assert found.law == prior.noise == "features" and found.priors["features"] is prior       # as the ratings were made
    prior, found = page.fitted(data, arguments(["i", "r", "--cost", "3", "--noise", "constant"]))
    assert found is None and prior.noise == "constant"


def test_the_page_may_not_have_the_name_of_its_companion():
    assert str(page.companion("a/b.html")) == "a/b.json"
    with pytest.raises(ValueError, match="^output is 'b.json'"):
        page.companion("b.json")


def test_a_bar_says_what_is_done_on_a_terminal_alone(monkeypatch, capsys):
    monkeypatch.delenv("CI", raising=False)
    with progress.shown(2) as bar:
        progress.step("reading")
        assert bar.disable
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("CI", "true")
    with progress.shown(2) as bar:
        assert bar.disable                              # nobody watches there, whatever the terminal says
    monkeypatch.delenv("CI")
    with progress.shown(2) as bar:
        for ended, doing in enumerate(("reading", "counting", "more", "still more")):
            progress.step(doing)
            assert bar.n == min(ended, 2)
        assert bar.n == 2 and bar.desc == "still more"
    assert "counting" in capsys.readouterr().err
    progress.step("nobody watches")


def test_a_stream_falls_silent_for_many_items_as_for_few(monkeypatch):
    rng = np.random.default_rng(0)
    problem = make_problem(rng.standard_normal((50, 2)), rng.dirichlet(np.ones(50)), [0, 0], np.eye(2), 1, 0, .9)
    theta, decided = rng.standard_normal((30, 2)), rng.random((30, 8)) < .1
    whole = checks.silent(problem, "UCB", theta, decided)
    monkeypatch.setattr(checks, "BLOCK", 7)
    assert whole is not None and checks.silent(problem, "UCB", theta, decided) == whole


@pytest.mark.parametrize("features, squares, bayes", [(1, 10, 10), (3, 10, 10), (4, 12, 12), (8, 24, 24), (11, 33, 30), (40, 120, 30)])
def test_a_user_needs_three_ratings_a_feature_and_thirty_are_enough_for_empirical_bayes(features, squares, bayes):
    assert (page.least_ratings(features, "least_squares"), page.least_ratings(features, "empirical_bayes")) == (squares, bayes)


@pytest.mark.parametrize("each, left", [(1e6, 40), (1e8, 40), (2e8, 25), (1e9, 10)])
def test_real_ratings_of_a_large_catalogue_are_replayed_for_as_many_users_as_their_work_allows(each, left, monkeypatch):
    """Four orders (in time, and three shuffles) of the users' items are REPLAYED multiplications at most; ten users, at least."""
    asked, problem = [], make_problem(np.random.default_rng(0).standard_normal((100, 2)), np.full(100, .01), [0, 0], np.eye(2), 1, 0, .9)

    def replay(problem, dataset, users, tuned, horizon, shuffle, seed):
        asked.append((users, shuffle))
        return np.ones((len(tuned), len(users))), None

    monkeypatch.setattr(analysis, "price", lambda problem, policies: each / 66)
    monkeypatch.setattr(analysis.experiments, "replay", replay)
    found = analysis.replayed(problem, None, np.arange(40) + 100, [policies.exploit(), policies.ucb(.5)], 3)
    assert [shuffle for _, shuffle in asked] == [None, 0, 1, 2] and (found.users == left).all()
    users = asked[0][0]
    assert len(users) == left and set(users) <= set(range(100, 140)) and (np.diff(users) > 0).all()
    assert all(np.array_equal(users, other) for other, _ in asked) and (found.reward == 1).all() and (found.difference == 0).all()


@pytest.mark.parametrize("counts, chosen", [([10] * 8, True), ([10] * 7 + [9], False), ([10] * 7 + [11], True), ([9] * 40, False)])
def test_a_law_of_the_noise_is_chosen_by_eight_users_with_just_enough_ratings(counts, chosen, monkeypatch):
    asked = []
    monkeypatch.setattr(page.datasets.records, "counts", lambda data: np.array(counts))
    monkeypatch.setattr(page.datasets, "choose_noise", lambda data, **options: asked.append(options) or SimpleNamespace(priors={"a": "prior"}, law="a"))
    monkeypatch.setattr(page.datasets, "prior", lambda data, **options: asked.append(options) or "prior")
    data = SimpleNamespace(items=np.array([[1, 0], [.5, .5]]), features=("a", "b"))
    prior, choice = page.fitted(data, arguments(["i", "r", "--cost", "3"]))
    assert prior == "prior" and (choice is not None) == chosen and ("noise" not in asked[0]) == chosen and asked[0]["min_ratings"] == 10


def test_importing_the_report_leaves_a_programs_own_answer_to_ctrl_c():
    code = "import signal, lib.report; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    default = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, preexec_fn=default,
                          cwd=Path(__file__).parents[1], env={**os.environ, "PYTHONPATH": "."})
    assert done.stdout == "True\n", done.stderr
