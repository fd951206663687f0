"""Threshold rules: brackets against spectral values, the dynamic program and users simulated one by one."""
import numpy as np
import pytest
from scipy.stats import norm

from lib import dp, policies, simulate
from lib.problem import make_problem
from lib.simulate import silence


def lone(cost, gamma=.9, noise_sd=1.0, var=1.0):
    return make_problem([[1]], [1], [0], [[var]], noise_sd, cost, gamma)


@pytest.mark.parametrize("cost, gamma, bonus, fineness", [(-.2, .9, 0, .1), (-.2, .9, .3, .1), (.2, .9, .3, .5), (-1.5, .99, .1, .2),
                                                        (.1, .5, 1.0, 1.0)])
def test_values_are_those_of_another_method(cost, gamma, bonus, fineness):
    problem = lone(cost, gamma, noise_sd=2.0, var=3.0)
    value, error = simulate.decoupled(problem, policies.ucb(bonus))
    found = simulate.threshold_rule(problem, bonus, 80, fineness).value
    assert found.lower - error <= value <= found.upper + error
    assert found.upper - found.lower < (.01 if fineness <= .2 else 1.0) * max(value, 1)


def silent_share(cost, bonus, runs=20_000, users=300, spread=.6, noise=.8):
    """Share of runs that stop within `users` users of one item each: mean, users and feedback drawn one after the other."""
    rng, var = np.random.default_rng(5), np.ones(runs)
    mu, mean, going = rng.standard_normal(runs), np.zeros(runs), np.ones(runs, bool)
    for _ in range(users):
        going &= mean + bonus * np.sqrt(var) >= cost
        y = mu + spread * rng.standard_normal(runs) + noise * rng.standard_normal(runs)
        gain = var / (var + spread**2 + noise**2)
        mean, var = np.where(going, mean + gain * (y - mean), mean), np.where(going, var - gain * var, var)
    return 1 - going.mean(), np.sqrt(going.mean() * (1 - going.mean()) / runs)


@pytest.mark.parametrize("cost, bonus", [(-.3, 0.0), (.1, .4)])
def test_silence_is_that_of_simulated_users(cost, bonus):
    share, se = silent_share(cost, bonus)
    found = simulate.threshold_rule(lone(cost), bonus, 150, .1).silent
    late = .02                                              # who stops after the last user: as in a longer run
    assert found.lower - late - 4 * se <= share <= found.upper + 4 * se
    assert found.upper - found.lower < .01


def test_silence_lies_between_its_limits_and_nothing_below_the_threshold_is_sent():
    for cost in (-1.0, -.1):
        found = simulate.threshold_rule(lone(cost), 0.0, 60, .1).silent
        assert norm.cdf(cost) < found.lower < found.upper < 2 * norm.cdf(cost)     # mean below cost; ever below, if watched always
    assert simulate.threshold_rule(lone(.5), .4, 20, .2) == ((0, 0, 0), (1, 1, 1))


def test_the_optimal_thresholds_earn_the_optimum():
    problem = lone(.3)
    table = dp.solve([1], [1], .9, 1, 1)
    bonus = -dp.boundary(table, 1.0, 1.0 + np.arange(81))
    found, best = simulate.threshold_rule(problem, bonus, 80, .1).value, dp.value(table, -.3, 1)
    assert .9 * best.lower - .003 < found.lower <= .9 * best.upper and .9 * best.lower <= found.upper < .9 * best.upper + .003
    assert found.lower > simulate.decoupled(problem, policies.ucb(1.5)).value


def test_a_finer_lattice_lies_within_a_coarser_one():
    rough, fine = (simulate.threshold_rule(lone(-.2), .2, 60, spacing) for spacing in (.6, .1))
    for a, b in zip(rough, fine):
        assert a.lower <= b.lower <= b.upper <= a.upper


def test_a_chord_that_counts_as_the_function_is_found_out(monkeypatch):
    """Without the allowance for curvature the bracket misses the value that the other method has."""
    whole, (value, error) = silence.ahead, simulate.decoupled(lone(-.2), policies.exploit())
    monkeypatch.setattr(silence, "ahead", lambda *given: (whole(*given)[0], 0 * whole(*given)[1]))
    found = simulate.threshold_rule(lone(-.2), 0.0, 80, 1.0).value
    assert not found.lower - error <= value <= found.upper + error


def test_what_is_refused():
    for problem in (make_problem([[2]], [1], [0], [[1]], 1, 0, .9), make_problem([[1]], [1], [0], [[0]], 1, 0, .9),
                    make_problem([[1, 0], [0, 1]], [.5, .5], [0, 0], np.eye(2), 1, 0, .9)):
        with pytest.raises(ValueError, match="problem must have one item"):
            simulate.threshold_rule(problem)
    with pytest.raises(ValueError, match="bonus must be nonnegative, one number or 101"):
        simulate.threshold_rule(lone(0), [0.0, 1.0])
    with pytest.raises(ValueError, match="bonus"):
        simulate.threshold_rule(lone(0), -1.0)
