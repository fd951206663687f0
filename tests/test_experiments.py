"""Tables against plain sums over the same rewards; chunks, threads, interruptions and clusters change no bit."""
import math
import os
from pathlib import Path
import signal
import statistics as plain
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib import bound, cache, experiments, policies, simulate, streams
from lib.experiments import SPECS, Spec, best, moments, problems, run, runner, size
from lib.problem import noise_var

ROOT = Path(__file__).parents[1]
ARMS = (policies.exploit(), policies.thompson(), policies.ucb(.2), policies.ucb(1.), policies.ucb(3.),
        policies.dtd_ucb(.5), policies.dtd_ucb(2.))
TINY = Spec("tiny", "simulated", (("features", 3), ("favour", 3.)), costs=(.2, .6), policies=ARMS, horizon=12,
            replications=(700, 7000), tuning=(300, 3000), sequences=(40, 400))
PEOPLE = np.array([[.1, .9, .3], [1.2, .2, .4], [-.5, .8, 1.5], [.7, .7, .7], [2., -1., 0.]])


@pytest.fixture
def people(monkeypatch):
    """TINY with five real users."""
    monkeypatch.setitem(problems.PROBLEMS, "people", lambda: (problems.simulated(3, favour=3.)[0], PEOPLE))
    experiments.build.cache_clear()
    yield TINY._replace(name="people", problem="people", options=(), thetas="held_out")
    experiments.build.cache_clear()


@pytest.fixture(scope="module")
def table():
    return run(TINY, progress=False)


def rewards(spec, cost, purpose, count):
    """Rewards less their regression on what hindsight earns of the items that came, in plain loops, and by how much that widens errors."""
    problem, thetas = experiments.build(spec)
    problem, thetas = problem._replace(cost=cost), thetas if purpose == 2 else None
    met = simulate.episodes(problem, spec.policies, count, spec.horizon, (spec.seed, purpose), thetas)
    worth = lambda theta, x: max(float(theta @ x) - cost, 0)
    surprise = np.array([sum(problem.gamma ** (n + 1) * worth(theta, problem.items[i]) for n, i in enumerate(came))
                         for theta, came in zip(met.theta, met.items)])
    weight = sum(problem.gamma ** (n + 1) for n in range(spec.horizon))
    if thetas is None:
        surprise -= weight * (1 - problem.gamma) / problem.gamma * bound.hindsight(problem)
        around = surprise - surprise.mean()
    else:
        surprise -= [weight * sum(p * worth(theta, x) for p, x in zip(problem.probs, problem.items)) for theta in met.theta]
        around = surprise.copy()
        for user in range(len(thetas)):
            around[user::len(thetas)] -= around[user::len(thetas)].mean()
    df = count - (1 if thetas is None else len(thetas))
    mean = surprise.mean() if thetas is None else np.mean([surprise[user::len(thetas)].mean() for user in range(len(thetas))])
    share = 1 / count if thetas is None else sum(1 / len(surprise[u::len(thetas)]) for u in range(len(thetas))) / len(thetas) ** 2
    wider = math.sqrt(df / (df - 1) * (1 + mean**2 / (around @ around) / share))
    return met.rewards - np.outer(met.rewards @ around / (around @ around), surprise), wider


def same(a, b):
    pd.testing.assert_frame_equal(a, b, check_exact=True)
    return True


# --- sizes and specs ----------------------------------------------------------------------------------


def test_one_switch_sets_every_size(monkeypatch):
    monkeypatch.delenv("BOOK_SIZE", raising=False)
    assert size(3, 4) == 3
    monkeypatch.setenv("BOOK_SIZE", "publication")
    assert size(3, 4) == 4
    monkeypatch.setenv("BOOK_SIZE", "large")
    with pytest.raises(ValueError, match="BOOK_SIZE is 'large'.*default, publication"):
        size(3, 4)


def test_specs_are_plain_data():
    assert {"simulated", "ratings", "ratings_held_out"} <= set(SPECS)
    for name, spec in SPECS.items():
        assert spec.name == name and hash(spec) == hash(spec._replace())
        assert eval(repr(spec), {"Spec": Spec, "Policy": policies.Policy}) == spec      # printable, and all there is to it


def test_the_simulated_instance_is_the_papers():
    problem, thetas = experiments.build(SPECS["simulated"])
    assert thetas is None and problem.items.tolist() == np.eye(100).tolist()
    assert problem.probs == pytest.approx([100 / 199] + 99 * [1 / 199], rel=1e-12)
    assert (problem.noise_sd, problem.gamma, set(problem.mu)) == (.1, .9, {.3})
    assert (problem.Sigma == np.eye(100)).all()
    costs = SPECS["simulated"].costs
    assert min(costs) == -1 and max(costs) == 1.1 and sum(.3 <= c <= 1 for c in costs) >= 10


def test_ratings_come_with_both_kinds_of_users():
    problem, thetas = experiments.build(SPECS["ratings"])
    again, held_out = experiments.build(SPECS["ratings_held_out"])
    assert thetas is None and held_out.shape[1] == problem.items.shape[1] == 6 and len(held_out) > 50
    assert (problem.mu == again.mu).all()
    assert (SPECS["ratings"].costs[0], SPECS["ratings"].costs[-1]) == (2.6, 4.8)


@pytest.mark.parametrize("change, message", [
    ({"problem": "nonsense"}, "problem is 'nonsense', it must be one of simulated"),
    ({"thetas": "mine"}, "thetas is 'mine'"),
    ({"thetas": "held_out"}, 'simulated has no held-out users'),
    ({"reference": "Gittins"}, "reference is 'Gittins'"), ({"tol": 1.5}, "tol is 1.5"),
])
def test_a_wrong_spec_is_an_error(change, message):
    with pytest.raises(ValueError, match=message):
        run(TINY._replace(**change), progress=False)


@pytest.mark.parametrize("options, message", [({"chunk": 3}, "chunk is 3"), ({"target_se": 0}, "target_se is 0"),
                                              ({"replications": 1}, "1 replications: an error needs at least 2")])
def test_a_wrong_argument_is_an_error(options, message):
    with pytest.raises(ValueError, match=message):
        run(TINY, progress=False, **options)


def test_the_law_of_the_noise_is_the_priors():
    assert noise_var(problems.rated(noise="constant")[0]) == pytest.approx(.8657, abs=1e-4)
    counted = problems.rated()[0]
    assert noise_var(counted) == pytest.approx(np.count_nonzero(counted.items, axis=1) * counted.noise_sd**2)


def test_a_study_of_the_paper_has_a_hundred_items():
    assert experiments.specs.PAPER == 100 and {spec.horizon for spec in experiments.SPECS.values()} == {100}


@pytest.mark.parametrize("setting", ["a", "a:", ":b", "a:b:c", ":"])
def test_two_paths_stand_for_documents_or_none(setting, monkeypatch):
    monkeypatch.setenv("BOOK_ARXIV", setting.replace(":", os.pathsep))
    with pytest.raises(ValueError, match="must be a snapshot and a click log"):
        experiments.sources.documents()


def test_a_snapshot_and_a_log_are_handed_on(monkeypatch):
    monkeypatch.setenv("BOOK_ARXIV", f"snapshot{os.pathsep}log")
    monkeypatch.setattr(experiments.sources, "_catalogue", lambda path, k: (path, k))
    monkeypatch.setattr(experiments.sources._arxiv, "with_clicks", lambda *given, **named: (given, named))
    assert experiments.sources.documents(4, None, 50) == ((("snapshot", 50), "log"), {"ratio": 4, "articles": None})


def test_the_built_instance_is_the_same_every_time():
    plain, correlated = (problems.combinations(kind)[0] for kind in (False, True))
    np.testing.assert_array_equal(plain.items, correlated.items)
    assert plain.items.shape == (24, 6) and plain.items @ np.arange(6) == pytest.approx([
        5, 4.5, 4, 4, 3.5, 3, 10 / 3, 3, 3.5, 3, 10 / 3, 3, 8 / 3, 2, 3, 1, 8 / 3, 5 / 3, 4 / 3, 2.5, 2, 1.5, .5, 0])
    assert np.array_equal(plain.Sigma, np.eye(6)) and correlated.Sigma[0].tolist() == [.61] + [.25] * 5


# --- the numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", TINY.costs)
def test_means_errors_and_differences_are_those_of_the_rewards(table, cost):
    rows = table[table.cost == cost]
    (fresh, wider), (tuning, _) = rewards(TINY, cost, 2, 700), rewards(TINY, cost, 1, 300)
    assert len(rows) == len(ARMS) and set(rows.replications) == {700}
    picked = {}
    for kind in ("exploit", "thompson", "ucb", "dtd_ucb"):
        members = [p for p, policy in enumerate(ARMS) if policy.kind == kind]
        picked[kind] = max(members, key=lambda p: plain.fmean(tuning[p]))
    for p, (_, row) in enumerate(rows.iterrows()):
        assert row["mean"] == pytest.approx(plain.fmean(fresh[p]), abs=1e-12)
        assert row.se == row.se_users == pytest.approx(wider * plain.stdev(fresh[p]) / math.sqrt(700), rel=1e-9)
        assert row.tuning_mean == pytest.approx(plain.fmean(tuning[p]), abs=1e-12)
        apart = [a - b for a, b in zip(fresh[p], fresh[picked["ucb"]])]
        assert row.difference == pytest.approx(plain.fmean(apart), abs=1e-12)
        assert row.difference_se == pytest.approx(wider * plain.stdev(apart) / math.sqrt(700), abs=1e-9)
        assert row.chosen == (p in picked.values())
        assert row.gap == row.bound - row["mean"]


def test_the_best_of_ten_on_the_same_draws_is_never_worse(table):
    for (_, name), rows in table.groupby(["cost", "policy"]):
        assert (rows.in_sample == rows["mean"].max()).all()
        assert rows.optimism.to_numpy() == pytest.approx((rows["mean"].max() - rows["mean"][rows.chosen]).iloc[0], abs=1e-12)
        assert (rows.optimism >= 0).all()
    assert best(table).groupby("cost").policy.apply(list).tolist() == [
        ["Exploitation", "Thompson sampling", "UCB", "DTD-UCB"]] * 2


def test_bounds_are_those_of_the_problem(table):
    problem = experiments.build(TINY)[0]
    for cost, rows in table.groupby("cost"):
        priced = problem._replace(cost=cost)
        split = bound.decomposition(priced, TINY.tol)
        assert (rows.decomposition_upper == split.upper).all() and (rows.hindsight == bound.hindsight(priced)).all()
        assert (rows.bound == min(split.upper, bound.hindsight(priced))).all()
        assert (rows["mean"] - 3 * rows.se < rows.bound + rows.truncation).all()
        low, high = simulate.truncation(priced, TINY.horizon)
        assert (rows.truncation == max(-low, high)).all()


def test_items_of_other_norms_have_a_decomposition(monkeypatch):
    long = problems.simulated(3, favour=3.)[0]._replace(items=2 * np.eye(3))
    monkeypatch.setitem(problems.PROBLEMS, "long", lambda: (long, None))
    rows = run(TINY._replace(problem="long", options=()), replications=130, progress=False)
    for cost, part in rows.groupby("cost"):
        limit = bound.decomposition_for(long._replace(cost=cost), TINY.tol)
        assert (part.decomposition_upper == limit.upper).all() and (part.bound <= limit.upper).all()
        assert (part["mean"] - 3 * part.se < part.bound + part.truncation).all()
    monkeypatch.setattr("lib.bound.theorem.LARGE", 0)
    runner.BOUNDS_FOUND.clear()
    rows = run(TINY._replace(problem="long", options=()), replications=130, progress=False)
    assert rows.decomposition.isna().all() and (rows.bound == rows.hindsight).all()


def test_the_decomposition_can_be_left_out():
    rows = run(TINY._replace(tol=None), replications=130, progress=False)
    assert rows.decomposition.isna().all() and (rows.bound == rows.hindsight).all()


def test_real_users_count_alike_and_their_error_is_the_larger(people):
    rows, cost = run(people, replications=701, progress=False), people.costs[0]
    values, wider = rewards(people, cost, 2, 701)
    for p, (_, row) in enumerate(rows[rows.cost == cost].iterrows()):
        each = [values[p][user::5] for user in range(5)]
        assert row["mean"] == pytest.approx(plain.fmean(map(plain.fmean, each)), abs=1e-12)
        within = math.fsum((v - plain.fmean(e)) ** 2 for e in each for v in e) / (701 - 5)
        assert row.se == pytest.approx(wider * math.sqrt(within * sum(1 / len(e) for e in each)) / 5, rel=1e-8)
        over_users = plain.pstdev(map(plain.fmean, each)) / math.sqrt(5)         # what the bootstrap converges to
        assert row.se_users == pytest.approx(over_users, rel=.06)
        assert row.low <= row["mean"] <= row.high
    assert rows.tuning_mean.tolist() == run(TINY, replications=128, progress=False).tuning_mean.tolist()
    with pytest.raises(ValueError, match="2 of 5 users have no replication: give at least 6"):
        run(people, replications=3, progress=False)


def test_a_control_variate_halves_the_error_and_moves_no_mean_beyond_it(table):
    raw = np.array([simulate.replicate(experiments.build(TINY)[0]._replace(cost=cost), ARMS, 700, 12, (0, 2)) for cost in TINY.costs])
    mean, se = raw.mean(axis=2).ravel(), raw.std(axis=2, ddof=1).ravel() / math.sqrt(700)
    assert (table.se < .5 * se + 1e-9).sum() > len(table) / 2 and (table.se <= 1.002 * se).all()
    assert (np.abs(table["mean"] - mean) <= 3 * np.sqrt(np.maximum(se**2 - table.se**2, 0)) + 1e-9).all()


def controlled(values, control):
    return moments.controlled(moments.moments(moments.with_control(np.vstack([values, control]))))


def test_a_controlled_mean_is_the_intercept_of_a_regression():
    rng = np.random.default_rng(0)
    control = rng.standard_normal(60)
    values = np.array([[1.0], [.2]]) * control + rng.standard_normal((2, 60)) + 3
    found = moments.estimate(controlled(values, control + .3))
    lines = [stats.linregress(control + .3, row) for row in values]
    assert found.mean == pytest.approx([line.intercept for line in lines]) and found.se == pytest.approx([line.intercept_stderr for line in lines])
    apart = stats.linregress(control + .3, values[0] - values[1])
    assert moments.difference(controlled(values, control + .3), 0, 1) == pytest.approx((apart.intercept, apart.intercept_stderr))


def test_a_control_that_does_not_vary_or_varies_in_few_replications_is_left_alone():
    rng = np.random.default_rng(0)
    values, few = rng.standard_normal((2, 300)), np.where(np.arange(300) < 5, rng.exponential(size=300), -.01)
    for control in (np.zeros(300), np.full(300, -1e-9), 1e-9 * (1 + 1e-15 * values[0]), few):
        assert all(np.array_equal(a, b) for a, b in zip(controlled(values, control), moments.moments(values)))
    assert moments.estimate(controlled(values[:, :8], values[0, :8])).se[0] == moments.estimate(moments.moments(values[:, :8])).se[0] > 0


def test_intervals_with_a_control_cover_where_it_is_rare_or_replications_are_few():
    rng, covered = np.random.default_rng(1), np.zeros(2)
    for trial in range(2000):
        for case, (count, often) in enumerate(((40, 1.0), (128, .3))):
            control = np.where(rng.random(count) < often, rng.exponential(size=count), 0) - often
            found = moments.estimate(controlled((.5 * control + .1 * rng.standard_normal(count))[None], control))
            covered[case] += abs(found.mean[0]) <= stats.t.ppf(.975, count - 2) * found.se[0]
    assert (covered / 2000 > .91).all()


def test_the_interval_over_users_covers():
    rng, covered = np.random.default_rng(0), 0
    for trial in range(300):
        means = rng.standard_normal(40)
        values = np.tile(means, 4)[None] + .1 * rng.standard_normal((1, 160))
        low, high = np.percentile(moments.bootstrap(moments.moments(values, 0, 40), trial), [2.5, 97.5])
        covered += low <= 0 <= high
    assert .9 <= covered / 300 <= .99


def test_the_interval_over_few_users_covers_too():
    rng, users, covered, narrow = np.random.default_rng(1), 6, 0, 0
    for trial in range(400):
        values = np.tile(rng.standard_normal(users), 3)[None] + .1 * rng.standard_normal((1, 3 * users))
        kept = moments.moments(values, 0, users)
        *_, low, high = runner.errors(kept, 0, trial)
        covered += low[0] <= 0 <= high[0]
        low, high = np.percentile(moments.bootstrap(kept, trial), [2.5, 97.5])
        narrow += low <= 0 <= high
    assert .92 <= covered / 400 <= .98 and narrow / 400 < .91


def test_one_real_user_has_no_error():
    with pytest.raises(ValueError, match="thetas holds 1 user"):
        runner.errors(moments.moments(np.ones((1, 5)), 0, 1), 0, 0)


def test_without_a_horizon_gamma_decides_and_the_rest_is_in_the_interval():
    spec = TINY._replace(horizon=None, costs=(.2,), replications=(128,) * 2, tuning=(128,) * 2, tol=None)
    rows = run(spec, progress=False)
    assert same(rows, run(spec._replace(horizon=66), progress=False))
    half = stats.t.ppf(.975, 127) * rows.se + rows.truncation
    assert rows.high.to_numpy() == pytest.approx((rows["mean"] + half).to_numpy()) and (rows.truncation > 0).all()
    assert rows.low.to_numpy() == pytest.approx((rows["mean"] - half).to_numpy())


def test_a_target_error_is_reached_and_not_overshot():
    target, unit = .01, runner.CHUNK * streams.BLOCK
    rows = run(TINY, target_se=target, progress=False)
    worst = rows.groupby("cost").agg(se=("se", "max"), n=("replications", "first"))
    assert (worst.se <= target).all() and (worst.n % unit == 0).all() and (worst.n > unit).any()
    wanted = worst.n * (worst.se / target) ** 2
    assert (worst.n <= 1.15 * wanted + unit).all()
    assert same(rows, run(TINY, target_se=target, progress=False, chunk=8))


def test_shares_of_what_is_forwarded_are_counts():
    problem = experiments.build(TINY)[0]._replace(cost=.5)
    share = experiments.forwarded(problem, ARMS, [0, 1, 1], 200, 6, 3)
    met = simulate.episodes(problem, ARMS, 200, 6, 3)
    assert share.shape == (len(ARMS), 2, 6)
    for p in range(len(ARMS)):
        for n in range(6):
            for kind in range(2):
                seen = [met.decisions[p, r, n] for r in range(200) if (met.items[r, n] > 0) == kind]
                assert share[p, kind, n] == sum(seen) / len(seen)


def test_curves_are_the_best_rows(table):
    lines = experiments.curves(table)
    assert list(lines) == ["Exploitation", "Thompson sampling", "UCB", "DTD-UCB"]
    rows = best(table)[lambda t: t.policy == "UCB"]
    value, low, high = lines["UCB"]
    assert value.tolist() == rows["mean"].tolist() and low.tolist() == rows.low.tolist() and high.tolist() == rows.high.tolist()
    gap, low, high = experiments.curves(table, "gap")["UCB"]
    assert gap.tolist() == rows.gap.tolist() and (low <= gap).all() and (gap <= high).all()
    assert low.tolist() == (rows.bound - rows.high).tolist()


# --- the same numbers, however they are computed ------------------------------------------------------


def test_sums_do_not_depend_on_the_chunks():
    values = np.random.default_rng(1).standard_normal((3, 23 * streams.BLOCK + 17))
    whole = moments.moments(values, 0, 7)
    for blocks in (1, 2, 4, 8, 16, 32):
        step, stack = blocks * streams.BLOCK, ()
        for first in range(0, values.shape[1], step):
            stack = moments.append(stack, moments.moments(values[:, first:first + step], first, 7))
        assert len(stack) <= 6
        for a, b in zip(moments.total(stack), whole):
            assert np.array_equal(a, b)
    assert whole.total == pytest.approx(values.sum(axis=1), abs=1e-9)
    assert whole.cross == pytest.approx(values @ values.T, rel=1e-12)
    with pytest.raises(ValueError, match="first is 5"):
        moments.moments(values, 5)


@pytest.mark.parametrize("chunk", [1, 2, 16])
def test_the_table_does_not_depend_on_the_chunks(table, chunk):
    assert same(table, run(TINY, progress=False, chunk=chunk))


def test_the_table_does_not_depend_on_threads(table):
    import numba
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        assert same(table, run(TINY, progress=False))
    finally:
        numba.set_num_threads(before)


@pytest.mark.parametrize("a, b", [(0, 1), (1, 0), (2, 0)])
def test_a_difference_is_that_of_the_pairs(a, b):
    values = np.random.default_rng(3).standard_normal((3, 300)) + np.array([[1], [3], [-2]])
    apart = (values[a] - values[b]).tolist()
    found = moments.difference(moments.moments(values), a, b)
    assert found.mean == pytest.approx(plain.fmean(apart)) and found.se == pytest.approx(plain.stdev(apart) / math.sqrt(300))


def test_a_mean_over_users_is_that_of_the_pairs():
    values = np.random.default_rng(4).standard_normal((3, 40)) + np.array([[1], [3], [-2]])
    found = experiments.over_users(values, 1)
    for p in range(3):
        apart = (values[p] - values[1]).tolist()
        assert found.mean[p] == pytest.approx(plain.fmean(apart)) and found.se[p] == pytest.approx(plain.stdev(apart) / math.sqrt(40))


def test_equal_policies_differ_by_exactly_nothing():
    values = np.random.default_rng(2).standard_normal(400)
    assert moments.difference(moments.moments(np.array([values, values])), 0, 1) == (0, 0)


# --- kept on disk ---------------------------------------------------------------------------------------


def counted(monkeypatch):
    done = []
    compute = runner.compute
    monkeypatch.setattr(runner, "compute", lambda task: done.append(task) or compute(task))
    return done


def test_finished_chunks_are_not_computed_again(table, tmp_path, monkeypatch):
    done = counted(monkeypatch)
    assert same(table, run(TINY, folder=tmp_path, progress=False, chunk=2))
    assert len(done) == 2 * (2 + 3 + 1) == len(list(tmp_path.iterdir()))
    done.clear()
    assert same(table, run(TINY, folder=tmp_path, progress=False, chunk=2)) and not done
    monkeypatch.setenv("BOOK_CHUNKS", str(tmp_path))
    assert len(run(TINY._replace(costs=TINY.costs[:1]), progress=False, chunk=2)) == len(ARMS) and not done


@pytest.mark.parametrize("damage", [lambda b: b"", lambda b: b[:len(b) // 2], lambda b: b[:200] + b"\0\1" + b[202:],
                                    lambda b: b"PK\3\4" + b"junk"])
def test_damaged_files_are_computed_again(table, tmp_path, damage):
    run(TINY, folder=tmp_path, progress=False)
    for path in tmp_path.iterdir():
        path.write_bytes(damage(path.read_bytes()))
    assert same(table, run(TINY, folder=tmp_path, progress=False))


def test_foreign_files_are_computed_again(table, tmp_path):
    run(TINY._replace(seed=5), folder=tmp_path / "other", progress=False)
    run(TINY, folder=tmp_path, progress=False)
    mine = sorted(path for path in tmp_path.glob("*.npz"))
    for path, other in zip(mine, sorted((tmp_path / "other").iterdir())):
        path.write_bytes(other.read_bytes())
    assert same(table, run(TINY, folder=tmp_path, progress=False))


def test_a_key_holds_all_that_a_chunk_depends_on(people):
    task = runner.Task(TINY, .2, 2, 0, 128)
    limits = task._replace(count=0)
    others = [task._replace(cost=.3), task._replace(purpose=1), task._replace(first=128), task._replace(count=127),
              task._replace(spec=people), limits, task._replace(spec=people, purpose=1, first=256)]
    for change in ({"seed": 1}, {"horizon": 13}, {"policies": ARMS[1:]}, {"options": (("features", 4),)},
                   {"options": (("features", 3), ("noise_sd", .2))}):
        others.append(task._replace(spec=TINY._replace(**change)))
    others += [limits._replace(spec=TINY._replace(**c)) for c in ({"tol": .1}, {"sequences": (41, 1)}, {"seed": 1})]
    keys = [runner.key(t) for t in (task, *others)]
    assert len(set(keys)) == len(keys)
    assert runner.key(task._replace(spec=TINY._replace(name="x", replications=(9, 9)))) == keys[0]


def test_the_versions_hold_the_code_of_lib_and_the_packages(monkeypatch):
    before = runner.versions.__wrapped__()
    monkeypatch.setattr(cache, "code_version", lambda: "another lib")
    assert runner.versions.__wrapped__() != before
    monkeypatch.undo()
    monkeypatch.setattr(runner, "version", lambda package: "0.1")
    assert runner.versions.__wrapped__() != before


JOB = """
import sys
sys.path[:0] = [{root!r}, {tests!r}]
from test_experiments import TINY, run
print("ready", flush=True)
sys.stdin.readline()
run(TINY, replications=25_000, folder={folder!r}, progress=False, chunk=1).to_pickle({out!r})
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no kill -9")
def test_a_run_killed_at_any_moment_goes_on_where_it_was(tmp_path):
    folder, out = tmp_path / "chunks", tmp_path / "table.pickle"
    code = JOB.format(root=str(ROOT), tests=str(ROOT / "tests"), folder=str(folder), out=str(out))
    jobs = [subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(4)]
    rng, kept = np.random.default_rng(os.getpid()), [0]
    for job in jobs:
        assert job.stdout.readline() == b"ready\n"
    for job in jobs[:-1]:
        job.stdin.write(b"go\n")
        job.stdin.flush()
        started = time.monotonic()
        while len(list(folder.glob("*.npz"))) <= kept[-1] and job.poll() is None and time.monotonic() < started + 60:
            time.sleep(.001)
        time.sleep(rng.uniform(0, .2))
        job.send_signal(signal.SIGKILL)
        job.communicate()
        kept.append(len(list(folder.glob("*.npz"))))
    assert kept == sorted(kept) and kept[1] > 0 and not out.exists()
    jobs[-1].communicate(b"go\n", timeout=300)
    assert jobs[-1].returncode == 0
    assert same(pd.read_pickle(out), run(TINY, replications=25_000, progress=False))


# --- progress -------------------------------------------------------------------------------------------


def test_progress_is_silent_in_the_book_and_shown_on_a_terminal(monkeypatch, capsys):
    for name in ("CI", "BOOK_BUILD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    assert runner.progress_bar(1).disable                                    # captured: not a terminal
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert not runner.progress_bar(1).disable
    for name in ("CI", "BOOK_BUILD"):
        with monkeypatch.context() as context:
            context.setenv(name, "1")
            assert runner.progress_bar(1).disable
    capsys.readouterr()
    run(TINY, replications=130, progress=True)
    assert "100%" in capsys.readouterr().err


# --- a cluster ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason="dask.distributed is optional: requirements-cluster.txt")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0) as started:
        with distributed.Client(started) as client:
            yield started, client


@pytest.mark.slow
def test_a_cluster_gives_the_same_table_though_a_worker_is_killed(cluster, tmp_path):
    started, client = cluster
    alone = run(TINY, replications=25_000, progress=False)
    victim = next(iter(client.run(os.getpid).values()))
    killed = False

    tasks = [runner.Task(TINY, TINY.costs[0], 2, first, 128) for first in range(0, 100 * 128, 128)]
    stack = ()
    for arrays in runner.collected(runner.compute, tasks, runner.key, tmp_path, client):
        stack = moments.append(stack, moments.Moments(**arrays))
        if not killed:
            os.kill(victim, signal.SIGKILL)
            killed = True
    problem = experiments.build(TINY)[0]._replace(cost=TINY.costs[0])
    rows = simulate.replicate_controlled(problem, ARMS, 100 * 128, TINY.horizon, (TINY.seed, 2))
    direct = moments.moments(moments.with_control(rows))
    assert all(np.array_equal(a, b) for a, b in zip(moments.total(stack), direct))
    assert victim not in client.run(os.getpid).values()
    assert same(alone, run(TINY, replications=25_000, client=client, progress=False, chunk=2))


@pytest.mark.slow
def test_a_worker_with_other_code_is_an_error(cluster):
    _, client = cluster
    task = runner.Task(TINY, .2, 2, 0, 128)
    with pytest.raises(RuntimeError, match="not the client's"):
        list(runner.collected(runner.compute, [task], Elsewhere(), client=client))


class Elsewhere:
    """A key that is another on every process."""

    def __call__(self, task):
        return f"{os.getpid()}"
