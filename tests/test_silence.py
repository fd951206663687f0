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


def test_a_step_of_a_function_that_jumps_and_the_bound_on_its_curvature():
    """f jumps at the threshold of the next level and bends at its nodes: mean and second derivative term by term."""
    sweep = silence.Sweep(1.0, .9, 1, *silence.lattices(1.0, np.array([2.0, 0.0]), .5))
    rng, slope, d, t, start = np.random.default_rng(1), 10.0, sweep.d[0], sweep.step[0], sweep.start[1]
    y = start + sweep.d[1] * np.arange(sweep.count[1])
    f = 7 + np.cumsum(rng.uniform(0, .2, len(y)))
    mean, curved = silence.ahead(sweep, 0, f, slope)
    kinks = np.diff(np.concatenate([[0], np.diff(f) / sweep.d[1], [slope]]))
    for i in range(len(mean)):
        m = sweep.start[0] + d * (i + np.linspace(0, 1, 40)[:, None])
        z, jump = (m - y) / t, (m - start) / t
        exact = f[0] * norm.cdf(jump[0]) + (kinks * t * (z[0] * norm.cdf(z[0]) + norm.pdf(z[0]))).sum()
        second = (kinks * norm.pdf(z)).sum(1) / t - f[0] * (jump * norm.pdf(jump))[:, 0] / t**2
        assert mean[i] == pytest.approx(exact[0], rel=1e-7)
        apart = (np.abs(kinks) * norm.pdf(z)).sum(1) / t + f[0] * (np.abs(jump) * norm.pdf(jump))[:, 0] / t**2
        assert np.abs(second).max() <= curved[i] * (1 + 1e-9) and curved[i] <= 2 * apart.max()


def test_ends_are_those_of_one_sweep_on_either_side():
    problem, levels = lone(-.2, noise_sd=2.0, var=3.0), silence.lattices(4 / 3, np.full(41, .2), .5)
    found = simulate.threshold_rule(problem, .2, 40, .5).value
    ends = [2 * .9 * silence.bound(silence.Sweep(1.0, .9, side, *levels), .1) for side in (-1, 1)]
    assert (found.lower, found.upper) == pytest.approx(ends, rel=1e-12) and ends[0] < ends[1]


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
