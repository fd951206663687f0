"""First forwards with limits for any law: sets of items by brute force, coverage of a law that is not normal, the optimum, planted errors."""
from itertools import product

import numpy as np
import pytest

from lib import bound, dp
from lib.bound import betting, optimum
from lib.bound.penalty import values_of_information
from lib.bound.relaxations import compile_checked
from lib.dp import first_forward
from lib.estimate import sample_mean, upper_limit
from lib.problem import make_problem

SMALL = make_problem([[1, 0], [0, 1], [.5, .5]], [.4, .4, .2], [0, 0], [[1, .3], [.3, 1]], 1, .4, .9)
EASY = {"inner": 2, "effort": 200}


def brute(base, gains, stake):
    """The least log capital over all sets of items."""
    return min(np.log1p(stake * (base - gains @ np.array(chosen))).sum() for chosen in product((0.0, 1.0), repeat=gains.shape[1]))


def games(count, rows=20):
    """Random gains of up to 7 items, some near indifference, with the most that a stake may be."""
    rng = np.random.default_rng(3)
    for _ in range(count):
        items = rng.integers(1, 8)
        gains = rng.normal(size=(rows, items)) * rng.random(items) + rng.normal(size=items) * .2
        yield .2 * rng.random(), gains, .75 / max(np.maximum(gains, 0).sum(axis=1).max(), .1)


def test_the_least_capital_is_that_of_the_worst_set():
    for base, gains, stake in games(60):
        worst = brute(base, gains, stake)
        assert betting.least_capital(base, gains, stake, 7) == pytest.approx(worst, abs=1e-10)
        assert all(betting.least_capital(base, gains, stake, splits) <= worst + 1e-10 for splits in range(3))


@pytest.mark.parametrize("planted", [
    lambda base, gains, stake: np.log1p(stake * (base - gains[:, gains.mean(axis=0) > 0].sum(axis=1))).sum(),   # the set that looks best
    lambda base, gains, stake: np.log1p(stake * (base - gains.sum(axis=1))).sum(),                              # all items
    lambda base, gains, stake: betting.least_capital(base, gains, stake / 2)])                                  # another gambler
def test_a_capital_that_is_not_the_least_is_found(planted):
    assert any(planted(*game) > brute(*game) + 1e-6 for game in games(60))


def held(rare, runs=200, count=100, **planted):
    """Shares of runs in which the limit, and the normal one of the set that looks best, is at least the true w.

    Rows of A_x - FO of the items of SMALL have mean (-.3, -.5, -.6); with `rare`, a part of it comes in rare rows.
    """
    rng, part = np.random.default_rng(5), .1 * rare
    truth, _ = first_forward(np.array([.7, .5, .4]), SMALL.probs, SMALL.gamma)
    game = {"start": .5 * truth, "variance": 2.0 if rare else .01} | planted
    betted, normal = [], []
    for _ in range(runs):
        rows = np.array([-.3, -.5, -.6]) - part + 200 * part * (rng.random((count, 1)) < .005) + .1 * rng.normal(size=(count, 3)).clip(-3, 3)
        betted.append(betting.sets_limit(SMALL, 1.0, rows, np.full(3, 200 * part + .3), **game) >= truth)
        chosen = first_forward(1 + rows.mean(axis=0), SMALL.probs, SMALL.gamma)[1]
        normal.append(upper_limit(*sample_mean((1 + rows) @ chosen), count - 1) >= truth)
    return np.mean(betted), np.mean(normal)


@pytest.mark.slow
def test_the_limit_holds_where_a_normal_one_fails():
    betted, normal = held(True)
    assert betted > .96 and normal < .6
    assert held(True, variance=1e-9)[0] > .96 and held(True, count=5)[0] > .96      # whatever the stake
    assert held(False)[0] > .96


def test_a_gambler_who_asks_too_little_is_found(monkeypatch):
    monkeypatch.setattr(betting, "SETS_SHARE", .8)
    assert held(False, 100)[0] < .9


@pytest.fixture(scope="module")
def exact():
    return optimum.value(optimum.solve(SMALL, step=.25, depth=10), [0, 0])


@pytest.mark.slow
def test_limits_lie_above_the_optimum_and_near_those_that_assume_normality(exact):
    first, after = bound.finite_sample_first(SMALL, 3000, seed=1, **EASY)
    normal = bound.full_first(SMALL, 3000, 1), bound.dual_first(SMALL, 3000, seed=1, sequences=3000, **EASY)
    for found, other in zip((first, after), normal):
        assert found.name == other.name
        assert abs(found.mean - other.mean) < 4 * np.hypot(found.se, other.se)
        assert exact.lower < other.upper < found.upper < 1.1 * other.upper
    wide = bound.finite_sample_first(SMALL, 200, seed=1, **EASY)
    assert all(few.upper - few.mean > 2 * (many.upper - many.mean) for few, many in zip(wide, (first, after)))


@pytest.mark.slow
def test_charges_counted_twice_are_found(exact, monkeypatch):
    draw = betting.draw
    monkeypatch.setattr(betting, "draw", lambda *args: (draw(*args)[0], 2 * draw(*args)[1]))
    assert bound.finite_sample_first(SMALL, 3000, seed=1, **EASY)[1].upper < exact.lower


@pytest.mark.slow
def test_items_above_the_cost_are_in_every_set():
    """One item, or forty of its kind, each on few paths: above the cost the set is known."""
    one = make_problem([[1.0]], [1.0], [.3], [[1.0]], 1.0, .2, .9)
    above = .9 * dp.value(dp.solve([1.0], [1.0], .9, 1.0, 1.0, between=False), .1, 1.0).lower
    found = bound.finite_sample_first(one, 2000, seed=2, **EASY)[1]
    assert above < found.upper < 1.06 * above
    many = one._replace(items=np.ones((40, 1)), probs=np.full(40, 1 / 40))
    assert above < bound.finite_sample_first(many, 400, seed=2, **EASY)[1].upper < 1.12 * above


def test_no_sequence_teaches_more_than_the_bound():
    rng = np.random.default_rng(2)
    for seed in range(12):
        k, n = rng.integers(1, 4), rng.integers(1, 6)
        root = rng.normal(size=(k, k))
        problem = make_problem(rng.normal(size=(n, k)), np.full(n, 1 / n), rng.normal(size=k), root @ root.T, 10**rng.uniform(-2, 1), .2,
                               rng.choice([.3, .9, .99]), "constant")
        top = betting.most_taught(problem)
        ahead = rng.integers(0, n, (50, 1, 200))
        ahead[:n] = np.arange(n)[:, None, None]                         # one item for ever
        taught = values_of_information(compile_checked(problem), ahead)[:, 1:]
        assert (taught <= top).all()
    one = make_problem([[1.0]], [1.0], [0.0], [[1e-4]], 1.0, 0.0, .5)     # little to learn, soon over: nothing is left out
    assert values_of_information(compile_checked(one), np.zeros((1, 1, 60), int))[0, 1] > .5 * betting.most_taught(one)[0]


def test_what_is_certain_and_what_is_refused():
    closed = bound.finite_sample_first(SMALL._replace(cost=3.0), 200, seed=1, **EASY)
    assert [found[1:] for found in closed] == [(0.0, 0.0, 0.0)] * 2
    surely = make_problem([[1.0]], [1.0], [2.0], [[0.0]], 1.0, .5, .9)                  # nothing to learn
    for found in bound.finite_sample_first(surely, 50, seed=1):
        assert found.mean == pytest.approx(13.5) and 13.5 <= found.upper < 13.5 * (1 + 1e-6)
    unseen = SMALL._replace(items=np.vstack([SMALL.items, [9.0, 9.0]]), probs=np.append(SMALL.probs, 0.0))
    assert [f.upper for f in bound.finite_sample_first(unseen, 100, seed=1, **EASY)] == pytest.approx(
        [f.upper for f in bound.finite_sample_first(SMALL, 100, seed=1, **EASY)])
    assert bound.finite_sample_first(SMALL._replace(gamma=.01), 10)[1].upper >= 0
    many = make_problem(np.ones((1025, 1)), np.full(1025, 1 / 1025), [0.0], [[1.0]], 1.0, 0.0, .5)
    with pytest.raises(ValueError, match="problem has 1025 items: at most 1024"):
        bound.finite_sample_first(many, 2)
