"""The large kernels on sizes small enough to run without compilation, or with every index checked (.ci/run)."""
import naive
import numpy as np
import pytest

from lib import bound, dp
from lib.bound import optimum
from lib.dp import lookup
from lib.problem import make_problem

pytestmark = pytest.mark.kernels
GAMMA = 0.5


def test_the_certified_program_holds_the_value_of_the_loops():
    table = dp.solve([1.0], [1.0], GAMMA, 1.0, 1.0, tol=0.05)
    for mean in (-0.3, 0.0, 0.4):
        oracle = naive.single_feature([1.0], [1.0], GAMMA, mean, 1.0, depth=3, step=0.1, nodes=41)
        found = dp.value(table, mean, 1.0)
        assert found.lower - 2e-3 <= oracle <= found.upper + 2e-3 and found.upper - found.lower < 0.05
        assert dp.q_values(table, mean, 1.0)[0] == pytest.approx(GAMMA * found.value, abs=0.02)


def test_points_asked_for_together_are_those_asked_for_one_by_one():
    """Runs of one variance, one longer than `lookup.TOGETHER`, with a variance of zero and a far mean between them."""
    table = dp.solve([0.6, 1.0], [0.5, 0.5], GAMMA, 1.0, 1.0, tol=0.2)
    means = np.concatenate([np.linspace(-0.5, 0.5, lookup.TOGETHER + 2), [0.3, -0.2, 0.0, 9.0, -9.0, 0.1]])
    var = np.concatenate([np.full(lookup.TOGETHER + 2, 0.5), [1.0, 0.0, 0.25, 1.0, 1.0, 0.25]])
    found, actions = dp.value(table, means, var), np.array(dp.q_values(table, means, var))
    for n in [0, 1, *range(lookup.TOGETHER - 1, means.size)]:
        alone = dp.value(table, means[n], var[n])
        assert (found.lower[n], found.upper[n]) == pytest.approx((alone.lower, alone.upper), rel=1e-9, abs=1e-12)
        assert actions[:, n] == pytest.approx(np.array(dp.q_values(table, means[n], var[n])), rel=1e-9, abs=1e-12)
    sure = (var == 0) | (np.abs(means) > 8)                             # nothing to learn: all or nothing, for ever
    assert found.lower[sure] == pytest.approx(0.8 / (1 - GAMMA) * np.maximum(means[sure], 0), abs=1e-7)
    assert found.upper[sure] == pytest.approx(0.8 / (1 - GAMMA) * np.maximum(means[sure], 0), abs=1e-7)


def test_the_best_value_lies_in_the_bracket_and_is_the_better_action():
    table = dp.solve([0.6, 1.0], [0.5, 0.5], GAMMA, 1.0, 1.0, tol=0.2)
    means = np.linspace(-0.6, 0.6, 7)
    for var in (1.0, 0.4):
        found, (discard, forward) = dp.value(table, means, np.full(7, var)), dp.q_values(table, means, np.full(7, var))
        assert (GAMMA * found.lower - 1e-9 <= discard).all() and (discard <= GAMMA * found.upper + 1e-9).all()
        assert (np.diff(discard) >= 0).all() and (np.diff(forward - discard) > 0).all()


def test_the_dual_lies_between_the_optimum_and_hindsight():
    problem = make_problem([[1.0]], [1.0], [0.4], [[1.0]], 1.0, 0.4, GAMMA)
    best = GAMMA * dp.value(dp.solve([1.0], [1.0], GAMMA, 1.0, 1.0, tol=0.05), 0.0, 1.0).lower
    found = bound.dual_first(problem, paths=16, inner=2, effort=50, sequences=64)
    assert best - 4 * found.se <= found.mean <= bound.hindsight(problem) + 4 * found.se


def test_the_optimum_of_two_features_apart_is_the_sum_of_two_programs():
    """Unit items and independent features: Theorem 1 is the optimum."""
    problem = make_problem(np.eye(2), [0.5, 0.5], [0.0, 0.0], np.eye(2), 1.0, 0.2, GAMMA)
    found = optimum.value(optimum.solve(problem, [0.2], step=0.5, depth=2), problem.mu)
    exact = bound.decomposition(problem, tol=0.02)
    assert found.lower - 1e-9 <= exact.upper and exact.lower <= found.upper + 1e-9


def test_the_general_program_holds_the_value_of_the_certified_one():
    """One item at one charge: both brackets hold the same number; an item of the other sign is worth more beside it."""
    table = dp.solve([1.0], [1.0], GAMMA, 1.0, 1.0, tol=0.05)
    general = dp.solve_general([1.0], [0.3], [1.0], GAMMA, 1.0, 1.0, tol=0.3)
    half = dp.solve([0.0, 1.0], [0.5, 0.5], GAMMA, 1.0, 1.0, tol=0.05)
    both = dp.solve_general([1.0, -1.0], [0.3, 0.3], [0.5, 0.5], GAMMA, 1.0, 1.0, tol=0.3)
    for mean in (-0.2, 0.3):
        exact, found = dp.value(table, mean - 0.3, 1.0), dp.general_value(general, mean, 1.0)
        assert found.lower <= exact.upper and exact.lower <= found.upper
        assert dp.general_value(both, mean, 1.0).upper >= dp.value(half, mean - 0.3, 1.0).lower
