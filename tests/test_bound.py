"""The paper's bounds: certified values, brute force, and the inputs that they refuse."""
from fractions import Fraction
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
    law = bound.conditional(problem)
    s2, sd = law.var, law.sd
    assert s2 == pytest.approx([.91, .91]) and sd == pytest.approx([.3, .3])
    table = dp.solve([0, .5, 1], [.4, .2, .4], .9, 1, .91, tol=1e-2)
    z = np.linspace(-7, 7, 281)
    weight = norm.pdf(z) / norm.pdf(z).sum()
    inner = dp.value(table, -.3 + .3 * z, .91)
    bracket = bound.decomposition(problem, tol=1e-2)
    assert 2 * .9 * weight @ inner.lower <= bracket.upper and bracket.lower <= 2 * .9 * weight @ inner.upper
    assert bracket.value == pytest.approx(2 * .9 * weight @ inner.value, rel=2e-3)


def test_conditional_variances_of_a_singular_prior():
    law = bound.conditional(small(Sigma=((1, 1), (1, 1))))
    assert (law.var == 0).all() and law.sd == pytest.approx([1, 1])
    bracket = bound.decomposition(small(0.0, Sigma=((1, 1), (1, 1))))
    assert bracket.upper == pytest.approx(2 * 9 * .5 * norm.pdf(0))       # theta_-j tells theta_j: commit
    zero = bound.decomposition(small(.2, Sigma=((0, 0), (0, 0))))
    assert zero.upper == 0 and zero.lower == 0


@pytest.mark.parametrize("d", [1e-8, 1e-7, 1e-5, 1e-3, .125])
def test_nearly_singular_priors_err_upward(d):
    """theta_3 = (theta_2 - theta_1) / d is known from the others, and so are they: Theorem 1 is hindsight."""
    problem = make_problem(np.eye(3), [.2, .2, .6], np.zeros(3), [[1, 1, 0], [1, 1 + d * d, d], [0, d, 1]], 1, .5, .9)
    truth = bound.hindsight(problem)
    bracket, sampled = bound.decomposition(problem), bound.decomposition_sampled(problem, 20_000, 1)
    assert bracket.lower <= truth <= bracket.upper < truth + 1e-12
    assert abs(sampled.mean - truth) < 4 * sampled.se


def determinant(rows):
    """Of a symmetric matrix of Fractions, by elimination with diagonal pivots; 0 as soon as no pivot is left."""
    rows, out = [list(row) for row in rows], Fraction(1)
    while rows:
        p = max(range(len(rows)), key=lambda i: rows[i][i])
        pivot = rows[p][p]
        if pivot <= 0:
            return Fraction(0)
        out *= pivot
        rest = [i for i in range(len(rows)) if i != p]
        rows = [[rows[i][j] - rows[i][p] * rows[p][j] / pivot for j in rest] for i in rest]
    return out


@pytest.mark.parametrize("seed", range(30))
def test_conditional_variances_against_rational_arithmetic(seed):
    """Products of small integers and powers of two are exact: Sigma is as singular as it is meant to be."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 6))
    root = rng.integers(-3, 4, (k, k)) * 2.0**-rng.integers(0, 12, (k, 1))
    root[:, -1] *= 2.0**-int(rng.integers(0, 8)) * (seed % 3 > 0)
    Sigma = root @ root.T
    law = bound.conditional(make_problem(np.eye(k), np.full(k, 1 / k), np.zeros(k), Sigma, 1, 0, .9))
    exact = [[Fraction(v) for v in row] for row in Sigma]
    for j in range(k):
        minor = determinant([[row[i] for i in range(k) if i != j] for n, row in enumerate(exact) if n != j])
        if minor > 0:
            truth = determinant(exact) / minor
            assert Fraction(law.var[j]) <= truth <= Fraction(law.var[j]) + Fraction(law.doubt[j])
            assert Fraction(law.sd[j])**2 >= exact[j][j] - truth
            assert law.doubt[j] < 1e-6 * Sigma[j, j] or law.var[j] == 0
        assert 0 <= law.var[j] <= Sigma[j, j]


def test_a_direction_that_others_do_not_share_stays_unknown():
    """Two features that are one leave a third, and a fourth of its own, as uncertain as they were."""
    Sigma = [[1, 1, .5, 0], [1, 1, .5, 0], [.5, .5, 4, 0], [0, 0, 0, 2]]
    law = bound.conditional(make_problem(np.eye(4), np.full(4, .25), np.zeros(4), Sigma, 1, 0, .9))
    assert law.var == pytest.approx([0, 0, 3.75, 2]) and law.sd == pytest.approx([1, 1, .5, 0])
    assert law.weights[2] @ [1, 1, 0, 0] == pytest.approx(.5)


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
    index = np.array([[0, 0], [0, 1], [1, 0]])
    sd = relaxations.revealed_sd(compile_problem(problem), index)
    assert sd[:, 0] == pytest.approx([0, 0, 0])
    assert sd[:, 1] == pytest.approx([np.sqrt(1 / 2), np.sqrt(.25 / 2), np.sqrt(.25 / 2)])


@pytest.mark.parametrize("change, words", [
    (lambda: bound.decomposition_sampled(make_problem([[1, 1]], [1], [0, 0], np.eye(2), 1, 0, .9), 10, 0), "items\\[0\\] sums to 2"),
    (lambda: bound.decomposition(small(), noise="both"), "noise is 'both'"),
    (lambda: bound.decomposition(small(), tol=2), "tol is 2"),
    (lambda: bound.decomposition_sampled(small(), 1, 0), "draws must be an integer of at least 2, got 1"),
    (lambda: bound.full_observation(small(), 1, 0), "sequences must be an integer of at least 2, got 1"),
    (lambda: bound.full_observation(small()._replace(noise_sd=1e-9), 10, 0), "noise_sd is 1e-09")])
def test_wrong_arguments_are_named(change, words):
    with pytest.raises(ValueError, match=words):
        change()
