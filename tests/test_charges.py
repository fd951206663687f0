"""The search for charges: the lattice against a matrix exponential and plain value iteration, its slopes against differences, the
theorem's convexity, a scan of one charge, and the optimum below whatever is found."""
import numpy as np
import pytest
from scipy.linalg import expm

from lib import bound
from lib.bound import charges, optimum, slopes, theorem
from lib.normal import expected_excess
from lib.problem import make_problem


def signed(seed, k=2, n=3, gamma=.8):
    """A random problem with items of any sign and norm."""
    rng = np.random.default_rng(seed)
    items, A = rng.normal(size=(n, k)), rng.normal(size=(k, k))
    items[0, 0] = 0.0
    return make_problem(items, rng.dirichlet(np.ones(n)), rng.normal(size=k) / 2, A @ A.T, rng.uniform(.4, 1.5),
                        rng.normal() / 2, gamma)


def search(problem, told=1.0, kind="even", basis=None):
    """(Search, charges) at named charges."""
    pieces = theorem.decompose(problem, "model", kind, basis, told)
    found = charges.searched(problem, pieces)
    return found, charges.settled(pieces.charge, found.part, problem.cost)


def generator(points):
    """Half the second difference, nothing at the ends: the generator of the stopped walk."""
    out = np.zeros((points, points))
    for i in range(1, points - 1):
        out[i, i - 1:i + 2] = .5, -1, .5
    return out


def test_the_walk_is_that_of_a_matrix_exponential():
    functions, inverse = slopes.waves(9)
    np.testing.assert_allclose(functions @ inverse, np.eye(9), atol=1e-13)
    for variance in (0.0, .3, 4.0):
        walk = functions @ (slopes.shrink(9, variance)[:, None] * inverse)
        np.testing.assert_allclose(walk, expm(variance * generator(9)), atol=1e-12)
        assert walk.min() > -1e-12 and walk.sum(axis=1) == pytest.approx(1) and walk @ np.arange(9.) == pytest.approx(np.arange(9.))


def iterated(lattice, levels, charge, step, rounds=400):
    """The values (L, M) by plain value iteration; the levels' variances are all that is taken over."""
    M, walks = len(lattice.means), {}
    for u in range(len(levels)):
        for v in range(u, len(levels)):
            walks[u, v] = expm((levels[u] - levels[v]) / step**2 * generator(M))
    w = np.zeros((len(levels), M))
    for _ in range(rounds):
        new = np.zeros_like(w)
        for u in range(len(levels)):
            new[u] += (1 - lattice.probs.sum()) * lattice.gamma * w[u]
            for i, p in enumerate(lattice.probs):
                v, share = lattice.first[u, i], lattice.share[u, i]
                after = share * walks[u, v] @ w[v] + ((1 - share) * walks[u, v + 1] @ w[v + 1] if share < 1 else 0)
                new[u] += p * np.maximum(lattice.gamma * w[u], lattice.x[i] * lattice.means - charge[i] + lattice.gamma * after)
        w = new
    return w


def test_values_of_a_lattice_are_those_of_plain_value_iteration(monkeypatch):
    monkeypatch.setattr(slopes, "LEVELS", 4)
    monkeypatch.setattr(slopes, "MOST", 12)
    problem = signed(5, k=2, n=4, gamma=.7)
    found, at = search(problem, told=.5)
    pieces = theorem.decompose(problem, "model", at, None, .5)
    for j, lattice in enumerate(found.lattices):
        own = found.part[:, j]
        info = pieces.info[own, j] / problem.noise_sd**2
        levels, step = slopes.levels_of(pieces.var[j], info, .7), lattice.means[1] - lattice.means[0]
        for u, variance in enumerate(levels):                       # where a forward leads to, on average
            v, share = lattice.first[u], lattice.share[u]
            after = share * levels[v] + (1 - share) * levels[np.minimum(v + 1, len(levels) - 1)]
            np.testing.assert_allclose(after, np.maximum(1 / (1 / variance + info), levels[-1]), rtol=1e-12)
        values = slopes.solved(lattice, at[own, j])[0]
        np.testing.assert_allclose(values, iterated(lattice, levels, at[own, j], step), atol=1e-9)
        assert lattice.begin.sum() == pytest.approx(1) and lattice.begin @ lattice.means == pytest.approx(problem.mu[j])
        spread = lattice.begin @ (lattice.means - problem.mu[j])**2
        assert spread == pytest.approx(pieces.sd[j]**2, rel=.02, abs=1e-12)


@pytest.mark.parametrize("seed, told, gamma", [(0, 1.0, .8), (1, .4, .9), (2, 0.0, .5), (3, .7, .95)])
def test_slopes_are_differences_of_values(seed, told, gamma):
    found, at = search(signed(seed, k=3, n=4, gamma=gamma), told)
    rng = np.random.default_rng(seed)
    at = at + rng.normal(size=at.shape) * .1
    value, slope = charges.approximate(found, at)
    assert value > 0 and (slope <= 0).all()
    for _ in range(4):
        move = rng.normal(size=at.shape) * found.part
        up, down = (charges.approximate(found, at + h * move)[0] for h in (1e-6, -1e-6))
        assert (up - down) / 2e-6 == pytest.approx((slope * move).sum(), rel=1e-4, abs=1e-6)


def test_the_lattice_is_near_what_is_certified():
    for seed, told in (0, 1.0), (1, .4), (2, 0.0):
        problem = signed(seed)
        found, at = search(problem, told)
        exact = bound.decomposition(problem, .02, "model", at, told=told)
        assert charges.approximate(found, at)[0] == pytest.approx(exact.value, rel=.04)


def test_nothing_to_learn_is_a_closed_form():
    problem = make_problem([[1, -.5], [.3, 1]], [.3, .7], [.2, .4], [[1, .999999], [.999999, 1]], 1e4, .3, .9)
    found, at = search(problem)
    worth = expected_excess(problem.items * problem.mu - at, np.abs(problem.items))
    assert charges.approximate(found, at)[0] == pytest.approx(9 * problem.probs @ worth.sum(axis=1), rel=.01)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_theorem_is_convex_in_the_charges(seed):
    problem, rng = signed(seed), np.random.default_rng(seed)
    found, at = search(problem, .5)
    ends = [at + charges.levelled(rng.normal(size=at.shape), found.free) for _ in range(2)]
    middle = (ends[0] + ends[1]) / 2
    first, second, between = (bound.decomposition(problem, .02, "model", part, told=.5) for part in (*ends, middle))
    assert between.lower <= (first.upper + second.upper) / 2
    values = [charges.approximate(found, part)[0] for part in (*ends, middle)]
    assert values[2] <= (values[0] + values[1]) / 2 + 1e-12


@pytest.mark.parametrize("seed, told, basis", [(0, 1.0, None), (1, .5, None), (2, 0.0, None), (1, .4, [[1, .4], [-.5, 1]])])
def test_what_is_found_is_no_looser_and_above_the_optimum(seed, told, basis):
    problem = signed(seed)
    best = optimum.value(optimum.solve(problem, step=.25, depth=8, tolerance=.02), problem.mu)
    found = bound.tightest_charges(problem, basis, told, tol=.02)
    assert found.bracket.upper >= best.lower and found.bracket.upper <= found.start.upper
    np.testing.assert_allclose(found.charges.sum(axis=1), problem.cost, rtol=0, atol=1e-13)
    for kind in ("paper", "even"):
        assert found.bracket.lower <= bound.decomposition(problem, .02, "model", kind, basis, told).upper
    again = bound.decomposition(problem, .02, "model", found.charges, basis, told)
    assert again == found.bracket


def test_one_charge_is_found_as_by_a_scan():
    problem = make_problem([[1, .4], [0, 1.0]], [.6, .4], [.1, .5], [[1, .3], [.3, .4]], .8, .4, .85)
    found = bound.tightest_charges(problem, tol=.01)
    assert found.converged and found.charges[1] == pytest.approx([0, .4])            # nothing is free in the second row

    def at(first):
        return bound.decomposition(problem, .01, "model", [[first, .4 - first], [0, .4]]).upper
    scan = [at(first) for first in np.linspace(-.4, .8, 13)]
    assert found.bracket.upper <= min(scan) * 1.005 and min(scan) < 0.98 * max(scan)


def test_at_the_minimum_all_features_forward_an_item_equally_often():
    problem = signed(4, k=3, n=4)
    found = bound.tightest_charges(problem, told=.5, tol=.05)
    within, _ = search(problem, .5)
    before = charges.levelled(charges.approximate(within, search(problem, .5)[1])[1], within.free)
    after = charges.levelled(charges.approximate(within, found.charges)[1], within.free)
    assert np.abs(after).max() < .25 * np.abs(before).max()


def test_where_nothing_can_move_the_start_comes_back():
    problem = make_problem(np.eye(3), [.5, .3, .2], [.1, .2, .3], np.eye(3), .5, .2, .9)
    found = bound.tightest_charges(problem)
    assert found.evaluations == 0 and found.converged and found.bracket == found.start
    np.testing.assert_allclose(found.charges, .2 * np.eye(3), atol=1e-15)
    known = make_problem([[0, 0], [1, 1]], [.5, .5], [.6, .7], np.zeros((2, 2)), 1, 1, .9)
    found = bound.tightest_charges(known, tol=.01)
    assert found.bracket.upper == pytest.approx(9 * .5 * .3, rel=1e-6)


def test_charges_without_a_part_are_dropped_and_that_never_loosens():
    problem = make_problem([[1, 0], [0, 1]], [.5, .5], [.3, .4], np.diag([1, .5]), 1, .2, .9)
    for odd in ([[.5, -.3], [0, .2]], [[-.1, .3], [.4, -.2]]):
        found = bound.tightest_charges(problem, start=odd, tol=.01)
        assert found.charges == pytest.approx(.2 * np.eye(2))
        assert found.bracket.upper <= bound.decomposition(problem, .01, "model", odd).upper * (1 + 1e-9)


@pytest.mark.parametrize("wrong, words", [
    (dict(start="fair"), "start is 'fair'"), (dict(start=np.ones((3, 2))), "start: charges\\[0\\] add up to 2"), (dict(told=2), "told is 2"),
    (dict(evaluations=0), "evaluations must be an integer"), (dict(tol=0), "tol is 0"), (dict(tol=1), "tol is 1"), (dict(tol=1.5), "tol is 1.5")])
def test_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        bound.tightest_charges(signed(0)._replace(cost=.5), **wrong)


def test_a_large_catalogue_is_refused():
    problem = make_problem(np.random.default_rng(0).random((10_001, 2)), np.full(10_001, 1 / 10_001), [0, 0], np.eye(2), 1, .2, .9)
    with pytest.raises(ValueError, match="problem.items has 20002 numbers"):
        bound.tightest_charges(problem)


def test_a_step_moves_an_item_by_the_root_of_its_spread_over_its_frequency():
    """In plain loops; an item that is worth nearly the same to all moves as if it spread by a thousandth of the widest."""
    problem = make_problem([[1.0, 2], [-3, 1], [1e-6, 1e-6]], [.5, .3, .2], [0, 0], [[2, .5], [.5, 1]], 1, .3, .8)
    pieces = theorem.decompose(problem, "model", "even", None, 1.0)
    own = [sum(abs(x) * np.sqrt(problem.Sigma[j, j]) for j, x in enumerate(item)) for item in pieces.x]
    found = charges.searched(problem, pieces).unit
    assert found.shape == (3, 1)
    assert found[:, 0] == pytest.approx([np.sqrt(max(spread, max(own) / 1000) / p) for spread, p in zip(own, problem.probs)])
