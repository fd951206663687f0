"""Certified Gittins indices against other methods, and what their proof rests on; decisions that a bracket can and cannot make."""
from fractions import Fraction
import math

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest
from scipy.integrate import quad, simpson
from scipy.optimize import brentq
from scipy.stats import norm

from lib import dp
from lib.dp import gittins
from lib.dp.decisions import as_arm
from lib.experiments import indices, published
from test_dp_program import GITTINS


def plain_index(gamma, b0, levels, points=801):
    """Index of mean 0 by Simpson's rule on even grids and a root finder, after `levels` items stop or never: no bound."""
    c, m, u = 0.0, np.linspace(0, 1, 3), np.zeros(3)
    for b in b0 + np.arange(levels)[::-1]:
        t = math.sqrt(1 / b - 1 / (b + 1))

        def ahead(x):
            a = (-c - x) / t
            return -x * norm.cdf(a) + t * norm.pdf(a) + simpson(u * norm.pdf(m, x[..., None], t), x=m)

        new = brentq(lambda x: gamma * ahead(np.array(-x)) - x, 0, 10 / math.sqrt(b), xtol=1e-13)
        grid = np.linspace(-new, -new + 9 / math.sqrt(b), points)
        c, m, u = new, grid, gamma * ahead(grid)
    return c


@pytest.mark.parametrize("gamma, b0, levels", ((.3, 1.0, 18), (.5, .37, 28), (.6, 4.0, 38)))
def test_a_plain_solver_with_simpsons_rule_finds_the_same_index(gamma, b0, levels):
    found = dp.gittins_index(0.0, 1 / b0, gamma)
    assert found.value == pytest.approx(plain_index(gamma, b0, levels), rel=3e-7)


@pytest.mark.parametrize("gamma", GITTINS)
def test_brackets_hold_indices_of_ten_digits(gamma):
    n = np.array(list(GITTINS[gamma]))
    found, known = dp.gittins_index(0.0, 1 / n, gamma, tol=1e-8), np.array(list(GITTINS[gamma].values()))
    assert (found.lower <= known + 5e-11).all() and (known - 5e-11 <= found.upper).all()
    assert (0 < found.upper - found.lower).all() and (found.upper - found.lower < 1e-8 * known).all()


@pytest.mark.parametrize("points", (gittins.POINTS, 5))
def test_a_coarse_rule_is_a_wide_bracket_and_a_wrong_rule_is_noticed(points):
    """The bound counts what a rule of few nodes loses; one that weighs a millionth too much is no rule, and misses the digits."""
    point, weight = gittins.rule(points)
    known = np.array([GITTINS[.9][n] for n in (1, 2)])
    lower, guess, upper = gittins.sweep(.9, 1.0, 2, 220, 1e-10, point, weight)
    if np.isfinite(lower).all():
        assert (lower < known).all() and (known < upper).all()
    if points == gittins.POINTS:
        lower, _, upper = gittins.sweep(.9, 1.0, 2, 220, 1e-10, point, weight * (1 + 1e-6))
        assert not ((lower < known) & (known < upper)).any()


@pytest.mark.parametrize("p, h", ((4, .5), (8, 1.5), (16, 2.0), (16, 3.0)))
def test_the_rule_errs_by_less_than_its_bound(p, h):
    """On a put of one step, as analytic as the proof assumes, at every mean around a piece."""
    t, t_next, c = .9, .8, .3
    point, weight = np.polynomial.legendre.leggauss(p)

    def u(y):                                       # E (c + t_next Z - y)^+: an average of stopped pay
        return t_next * (((c - y) / t_next) * norm.cdf((c - y) / t_next) + norm.pdf((c - y) / t_next))

    nodes = -c + h * (2 * np.arange(6)[:, None] + 1 + point)
    bound = gittins.rule_errors(h, t, t_next, u(-c), p)[0]
    for m in np.linspace(-2, 4, 13):
        exact = sum(quad(lambda y: u(y) * norm.pdf(y, m, t), -c + 2 * h * k, -c + 2 * h * (k + 1), epsabs=1e-14)[0] for k in range(6))
        assert abs(h * (weight * u(nodes) * norm.pdf(nodes, m, t)).sum() - exact) <= bound + 1e-14


@pytest.mark.parametrize("p, h", ((4, .5), (16, 2.0)))
def test_that_bound_is_the_one_of_the_proof(p, h):
    """With the largest real and imaginary part on the ellipse found on its points, z = h cosh(log rho + i angle)."""
    t, t_next, top = .9, .8, .7
    grow = t**-2 + t_next**-2
    rho = max(1.2, math.sqrt(8 * p / grow) / h)
    ellipse = h * np.cosh(math.log(rho) + 1j * np.linspace(0, 2 * math.pi, 721))
    a, c = ellipse.real.max(), ellipse.imag.max()
    each = 4.3 * h / t * rho**(-2 * p) / (1 - rho**-2) * (top + a - h) * math.exp(c * c * grow / 2)
    near = norm.pdf(0) * (a / h + 3) + t / (2 * h)
    assert gittins.rule_errors(h, t, t_next, top, p)[0] == pytest.approx(each * near, rel=1e-4)


@pytest.mark.parametrize("b", (.2, 1.0, 900.0))
def test_far_out_the_put_is_worth_no_more_than_full_observation_and_the_perpetual_put(b):
    gamma, s, t = .8, b**-.5, math.sqrt(1 / b - 1 / (b + 1))
    rate = math.sqrt(-2 * math.log(gamma)) / t
    for m in (0, .5 * s, 3 * s):
        plain = min(s * norm.pdf(m / s) - m * norm.sf(m / s), math.exp(-rate * m - 1) / rate)
        assert plain <= gittins.far_bound(m, b, gamma) <= plain * (1 + 1e-8)
    edge = gittins.reach(b, gamma, 1e-6)
    assert gittins.far_bound(edge, b, gamma) <= 1e-6 < gittins.far_bound(edge * (1 - 1e-6), b, gamma)


def test_the_rule_of_the_sweep_is_exact_to_rounding():
    """Powers up to degree 2p - 1, in rational numbers: `rounding` allows some units for points and weights."""
    point, weight = ([Fraction(float(number)) for number in part] for part in gittins.rule(gittins.POINTS))
    assert len(point) == gittins.POINTS
    for degree in range(0, 2 * gittins.POINTS, 2):
        found = sum(w * z**degree for z, w in zip(point, weight))
        assert abs(found * (degree + 1) / 2 - 1) < 2.0**-53 * (degree + 2)


@settings(max_examples=25, deadline=None)
@given(st.floats(0, .98), st.floats(-3, 6), st.integers(1, 4))
def test_coarse_brackets_hold_the_fine_ones(gamma, power, count):
    """Up to the fine bracket's width: whatever tol, both hold the index."""
    var = 1 / (10.0**power + np.arange(count))
    coarse, fine = (dp.gittins_index(0.0, var, gamma, tol=tol) for tol in (1e-2, 1e-7))
    assert (coarse.lower <= fine.lower).all() and (fine.upper <= coarse.upper).all()
    assert (fine.lower <= fine.value).all() and (fine.value <= fine.upper).all()
    assert (fine.upper - fine.lower <= 1e-7 * fine.value).all()


def test_indices_fall_with_experience_and_rise_with_patience():
    n = np.arange(1, 201)
    found = [dp.gittins_index(0.0, 1 / n, gamma) for gamma in (.5, .7, .9, .95, .99)]
    for bracket in found:
        assert (bracket.upper[1:] < bracket.lower[:-1]).all()
    for one, more in zip(found, found[1:]):
        assert (one.upper < more.lower).all()


def test_units_and_means_only_scale_and_shift():
    one = dp.gittins_index(0.0, .5, .9)
    other = dp.gittins_index([3.0, -1.0], .5 * 49, .9, noise_sd=7.0)
    for end, scaled in zip(one, other):
        assert scaled == pytest.approx([3 + 7 * end, -1 + 7 * end], rel=1e-13)
    assert dp.gittins_index(2.0, 0.0, .9) == (2.0, 2.0, 2.0) and dp.gittins_index(2.0, 1.0, 0.0) == (2.0, 2.0, 2.0)
    sharp = dp.gittins_index(0.0, 1e-13, .9)
    assert 0 == sharp.lower < sharp.value < sharp.upper < 1e-12


def test_the_kept_table_is_what_is_computed():
    table = published.load("gittins")
    assert len(table) == len(indices.GAMMAS) * len(indices.SAMPLES) and not table.duplicated(["gamma", "n"]).any()
    middle = (table.lower + table.upper) / 2
    assert (table.lower < table.upper).all() and (table.upper - table.lower < 1.1 * indices.TOL * middle).all()
    for gamma, rows in table[table.gamma <= .95].groupby("gamma"):
        found = dp.gittins_index(0.0, 1 / rows.n, gamma)                # wider brackets, by another sweep
        assert (found.lower < rows.lower).all() and (rows.upper < found.upper).all()
    again = indices.gittins((.8,)).astype(float)                        # one column anew: its digits, but for the machine's rounding
    assert np.allclose(again, table[table.gamma == .8], rtol=1e-10, atol=0)
    assert indices.outward(1 / 3, indices.ROUND_FLOOR) == "0.33333333333"
    assert indices.outward(1 / 3, indices.ROUND_CEILING) == "0.33333333334"


def test_the_transcribed_table_is_within_its_digits():
    for gamma, column in indices.TRANSCRIBED.items():
        assert dp.gittins_index(0.0, 1 / column.index.to_numpy(), gamma).value == pytest.approx(column.to_numpy(), abs=1e-3)


def test_break_even_costs_follow_the_tolerance_and_need_no_table_for_one_arm():
    for tol in (1e-3, 1e-5, 1e-7):
        table = dp.solve([0, 1], [.5, .5], .9, .5, 2.0, tol=tol, certify=False, between=False)
        cost = dp.indifference_cost(table, .3, [2.0, .5])
        assert (cost.upper - cost.lower < tol * (cost.value - .3)).all()
        arm = dp.gittins_index(.3, [2.0, .5], as_arm(table), .5)
        assert (cost.lower <= arm.upper).all() and (arm.lower <= cost.upper).all()


def test_break_even_costs_of_other_magnitudes_come_from_the_tables_bracket():
    """One arm dressed up as two magnitudes, the second too rare to matter, and a table that proves nothing."""
    table = dp.solve([.999999, 1], [1e-6, 1 - 1e-6], .7, 1, 1, tol=1e-2)
    cost, arm = dp.indifference_cost(table, 0.0, 1.0), dp.gittins_index(0.0, 1.0, .7)
    assert as_arm(dp.solve([1, 2], [.5, .5], .7, 1, 1, certify=False, info=[1, 1])) is None       # alike in information alone
    assert as_arm(table) is None and cost.lower <= arm.value <= cost.upper and cost.upper - cost.lower < .05 * arm.value
    with pytest.raises(ValueError, match="certify"):
        dp.indifference_cost(dp.solve([.5, 1], [.5, .5], .7, 1, 1, tol=.1, certify=False), 0.0, 1.0)


def test_q_brackets_hold_the_guesses_and_bellmans_equation():
    table, net = dp.solve([0, 1], [.4, .6], .9, 1, 1, tol=1e-2), np.linspace(-1, 1, 9)
    discard, forward = dp.q_brackets(table, net, .8)
    for bracket, guess in zip((discard, forward), dp.q_values(table, net, .8)):
        assert (bracket.lower <= guess + 1e-3).all() and (guess - 1e-3 <= bracket.upper).all()
        assert (bracket.upper - bracket.lower < .1).all()
    here = dp.value(table, net, .8)                 # w = .4 discard + .6 max(discard, forward)
    assert (here.lower <= .4 * discard.upper + .6 * np.maximum(discard.upper, forward.upper) + 1e-9).all()
    assert (.4 * discard.lower + .6 * np.maximum(discard.lower, forward.lower) <= here.upper + 1e-9).all()


@pytest.mark.parametrize("alpha", (.5, 1.0, 2.0))
def test_decisions_are_those_of_a_finer_table_wherever_they_are_made(alpha):
    net = np.linspace(-.6, .1, 71)
    coarse, fine = (dp.solve([0, 1], [.4, .6], .8, 1, 1, tol=tol) for tol in (1e-1, 1e-3))
    made, sharp = (dp.decide(table, net, .8, alpha) for table in (coarse, fine))
    decided = made != "undecided"
    assert (made[decided] == sharp[decided]).all() and {"forward", "discard"} <= set(made)
    assert (sharp == "undecided").mean() <= (made == "undecided").mean() < (.05 if alpha == 1 else .7)
    guess = net > dp.boundary(fine, alpha, 1 / .8) * math.sqrt(.8)
    assert (guess[decided] == (made[decided] == "forward")).all()


def test_a_decision_at_the_break_even_cost_is_not_made():
    table = dp.solve([1], [1], .9, 1, 1, tol=1e-3, certify=False)
    cost = dp.indifference_cost(table, 0.0, 1.0)
    assert dp.decide(table, [-cost.lower * .999, -cost.value, -cost.upper * 1.001], 1.0).tolist() == ["forward", "undecided", "discard"]
