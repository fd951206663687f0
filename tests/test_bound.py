"""The paper's bounds: certified values, brute force, and the inputs that they refuse."""
import time

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from lib import bound, dp
from lib.bound import relaxations
from lib.posterior import compile_problem
from lib.problem import make_problem

SIMULATED = {        # cost: Theorem 1's lower and upper, hindsight, full observation, computed independently
    0.0: (3.7352522022675307, 3.7352580536180056, 5.1008511790548905, 3.7366666982604078),
    .3: (1.5501896120490304, 1.5501898074741023, 3.590480523612895, 1.5516924908269605),
    .5: (.9686438797507203, .9686564095736522, 2.7620517227694887, 1.1930068213381),
    .8: (.3192996251153886, .31931703682642787, 1.7801690166117552, .7681148505095692)}


def simulated(cost):
    return make_problem(np.eye(100), [100 / 199] + [1 / 199] * 99, np.full(100, .3), np.eye(100), .1, cost, .9)


def small(cost=.2, Sigma=((1, .3), (.3, 1))):
    return make_problem([[1, 0], [0, 1], [.5, .5]], [.4, .4, .2], [0, 0], Sigma, 1, cost, .9)


@pytest.mark.parametrize("cost", SIMULATED)
def test_the_simulated_instance(cost):
    lower, upper, hindsight, full = SIMULATED[cost]
    problem = simulated(cost)
    bracket = bound.decomposition(problem)
    assert bracket.upper >= lower and bracket.lower <= upper
    assert bracket.value == pytest.approx((lower + upper) / 2, abs=1e-3)
    assert bracket.upper - bracket.lower < 1e-3 * bracket.value
    assert bound.hindsight(problem) == pytest.approx(hindsight, rel=1e-12)
    observed = bound.full_observation(problem, 400, 1)
    assert abs(observed.mean - full) < 4 * observed.se + 1e-4


@pytest.mark.parametrize("cost", SIMULATED)
def test_tolerance_buys_digits(cost):
    lower, upper = SIMULATED[cost][:2]
    start = time.process_time()
    bracket = bound.decomposition(simulated(cost), tol=1e-6)
    assert bracket.upper - bracket.lower < 1e-6 * bracket.value
    assert bracket.upper >= lower and bracket.lower <= upper
    coarse = bound.decomposition(simulated(cost), tol=1e-3)
    assert coarse.lower <= bracket.upper and bracket.lower <= coarse.upper
    assert abs(coarse.value - bracket.value) < coarse.upper - coarse.lower
    assert time.process_time() - start < 60                                # half a second, and compiling


def test_algorithm_1_converges_to_the_bracket():
    problem = small()
    bracket, sampled = bound.decomposition(problem), bound.decomposition_sampled(problem, 40_000, 1)
    assert abs(sampled.mean - bracket.value) < 4 * sampled.se + 1e-3
    assert sampled.se < .02
    again = bound.decomposition_sampled(problem, 40_000, 1)
    assert again == sampled


def test_the_gaussian_integral_over_the_revealed_features():
    problem = small(.3)
    s2, sd = bound.conditional(problem)
    assert s2 == pytest.approx([.91, .91]) and sd == pytest.approx([.3, .3])
    table = dp.solve([0, .5, 1], [.4, .2, .4], .9, 1, .91, tol=1e-2)
    z = np.linspace(-7, 7, 281)
    weight = norm.pdf(z) / norm.pdf(z).sum()
    inner = dp.value(table, -.3 + .3 * z, .91)
    bracket = bound.decomposition(problem, tol=1e-2)
    assert 2 * .9 * weight @ inner.lower <= bracket.upper and bracket.lower <= 2 * .9 * weight @ inner.upper
    assert bracket.value == pytest.approx(2 * .9 * weight @ inner.value, rel=2e-3)


def test_conditional_variances_of_a_singular_prior():
    s2, sd = bound.conditional(small(Sigma=((1, 1), (1, 1))))
    assert (s2 == 0).all() and sd == pytest.approx([1, 1])
    bracket = bound.decomposition(small(0.0, Sigma=((1, 1), (1, 1))))
    assert bracket.upper == pytest.approx(2 * 9 * .5 * norm.pdf(0))       # theta_-j tells theta_j: commit
    zero = bound.decomposition(small(.2, Sigma=((0, 0), (0, 0))))
    assert zero.upper == 0 and zero.lower == 0


def test_the_models_noise_tightens_the_bound_and_full_observation_stays_below_hindsight():
    problem = small()
    assert bound.decomposition(problem, noise="model").upper < bound.decomposition(problem).lower
    observed = bound.full_observation(problem, 500, 2)
    assert observed.mean - 4 * observed.se < bound.hindsight(problem)
    assert bound.hindsight(problem) > 1.283        # the optimum


def test_hindsight_against_quadrature():
    problem = small(.2)
    total = 0.0
    for x, p in zip(problem.items, problem.probs):
        sd = np.sqrt(x @ problem.Sigma @ x)
        total += p * quad(lambda y: (y - .2) * norm.pdf(y, 0, sd), .2, 12)[0]
    assert bound.hindsight(problem) == pytest.approx(9 * total, rel=1e-8)


def test_full_observation_of_two_items_by_enumeration():
    problem = make_problem([[1, 0], [0, 1]], [.5, .5], [0, 0], [[1, .5], [.5, 1]], 1, .1, .5)
    index = np.array([[0, 0], [0, 1]])
    sd = relaxations.revealed_sd(compile_problem(problem), index)
    assert sd[:, 0] == pytest.approx([0, 0])
    assert sd[:, 1] == pytest.approx([np.sqrt(1 / 2), np.sqrt(.25 / 2)])


@pytest.mark.parametrize("change, words", [
    (lambda: bound.decomposition(make_problem([[1, 1]], [1], [0, 0], np.eye(2), 1, 0, .9)), "items\\[0\\] sums to 2"),
    (lambda: bound.decomposition(small(), noise="both"), "noise is 'both'"),
    (lambda: bound.decomposition(small(), tol=2), "tol is 2"),
    (lambda: bound.decomposition_sampled(small(), 1, 0), "draws is 1"),
    (lambda: bound.full_observation(small(), 1, 0), "sequences is 1")])
def test_wrong_arguments_are_named(change, words):
    with pytest.raises(ValueError, match=words):
        change()
