"""The dynamic program for items of any sign, charges of any kind: against loops, closed forms, and dp.solve."""
import math

import naive
import numpy as np
import pytest
from scipy.stats import norm

from lib import dp
from lib.dp import general


def drawn(seed):
    """A random problem: arguments of solve_general, and means of interest."""
    rng = np.random.default_rng(seed)
    n, var = rng.integers(1, 7), 10.0 ** rng.uniform(-1, 1)
    x, info = rng.normal(size=n), None
    if rng.random() < .4:
        info = x**2 * rng.uniform(0, 2, n) * (rng.random(n) < .8)
    if rng.random() < .3:
        x[0] = 0.0
    charge = rng.normal(size=n) * rng.choice([.1, 1])
    mean = rng.normal(size=5) * math.sqrt(var)
    means = (mean.min(), mean.max()) if rng.random() < .5 else None
    return dict(x=x, charge=charge, probs=rng.dirichlet(np.ones(n)) * rng.choice([1, .6]), gamma=rng.choice([.3, .7, .9]),
                noise_sd=1.0, var_max=var, info=info, means=means), mean


def commitment(asked, mean, sd):
    """E of the better of forwarding and discarding for ever where theta ~ N(mean, sd^2), by quadrature over quantiles."""
    theta = np.add.outer(mean, sd * norm.ppf((np.arange(4000) + .5) / 4000))
    pay = np.multiply.outer(theta, asked["x"]) - asked["charge"]
    return (np.maximum(pay, 0) @ asked["probs"]).mean(-1) / (1 - asked["gamma"])


@pytest.mark.slow
@pytest.mark.parametrize("seeds", (range(500), range(500, 1000)), ids=("first half", "second half"))
def test_brackets_of_random_problems_overlap_and_lie_between_commitment_and_hindsight(seeds):
    for seed in seeds:
        asked, mean = drawn(seed)
        coarse, fine = (dp.general_value(dp.solve_general(**asked, tol=tol), mean, asked["var_max"]) for tol in (.2, .07))
        below, above = commitment(asked, mean, 0.0), commitment(asked, mean, math.sqrt(asked["var_max"]))
        size = 1e-8 + 1e-3 * above
        assert (coarse.lower <= fine.upper).all() and (fine.lower <= coarse.upper).all(), seed
        assert (fine.lower <= fine.upper).all() and (fine.lower >= below - 1e-9 * (1 + below)).all(), seed
        assert (fine.upper <= above + size).all(), seed


PROBLEM = dict(x=[1.0, -1.4, 0.0, .7], charge=[.3, .2, .05, -.2], probs=[.35, .3, .1, .2], gamma=.6, info=[1, 2, 1, 0])


@pytest.mark.parametrize("mean", (-.4, .1, 1.0))
def test_value_iteration_in_plain_loops_lies_in_the_bracket(mean):
    oracle = naive.general_feature(m=mean, b=.5, units=8, **PROBLEM, step=.1, nodes=41)
    found = dp.general_value(dp.solve_general(**PROBLEM, noise_sd=1, var_max=2, tol=2e-3), mean, 2.0)
    assert found.lower - 2e-3 * found.value <= oracle <= found.upper + 2e-3 * found.value
    assert found.upper - found.lower < 4e-3 * found.value


@pytest.mark.parametrize("gamma, charge", ((.5, .05), (.9, .3), (.9, 3.0)))
def test_an_experiment_that_tells_all_solves_an_equation_in_one_number(gamma, charge):
    """Two items that pay by theta or -theta and teach nothing, and one that pays nothing and teaches everything."""
    m, s = .3, 1.5
    hindsight = (s * norm.pdf(m / s) * 2 + m * (2 * norm.cdf(m / s) - 1)) * .4 / (1 - gamma)        # .4 E |theta|
    now, tell = .4 * abs(m), gamma * hindsight - charge
    exact = max((now + .2 * tell) / (1 - .8 * gamma), now / (1 - gamma))
    asked = dict(x=[1.0, -1.0, 0.0], charge=[0, 0, charge], probs=[.4, .4, .2], gamma=gamma, info=[0, 0, 1e10])
    found = dp.general_value(dp.solve_general(**asked, noise_sd=1, var_max=s**2, tol=1e-3), m, s**2)
    assert found.lower <= exact + 1e-5 * exact and exact - 1e-5 * exact <= found.upper
    assert found.upper - found.lower < 3e-3 * exact


@pytest.mark.parametrize("between", (False, True))
def test_with_one_cost_it_is_the_table_for_every_cost(between):
    x, probs, cost = np.array([0, .3, .6, 1.0]), [.2, .3, .2, .3], .4
    special = dp.solve(x, probs, .9, .5, 1.0, tol=1e-2, between=between)
    table = dp.solve_general(x, cost * x, probs, .9, .5, 1.0, tol=1e-2, between=between)
    mean, var = np.array([-.6, .2, .4, 1.3]), np.array([[1.0], [.3], [.01], [0.0]])
    one, other = dp.value(special, mean - cost, var), dp.general_value(table, mean, var)
    assert (one.lower <= other.upper).all() and (other.lower <= one.upper).all()
    assert (other.upper - other.lower)[0] == pytest.approx((one.upper - one.lower)[0], rel=.05)
    one, other = dp.smoothed_value(special, -.2, .7, .8), dp.general_smoothed_value(table, .2, .7, .8)
    assert one.lower <= other.upper and other.lower <= one.upper


def test_mirrored_and_scaled_problems_have_the_same_brackets():
    asked, mean = drawn(7)
    asked |= dict(info=np.array([0.0, .5, 1, 1.5, 2, 2.5])[:len(asked["x"])], means=None)
    var = asked["var_max"]
    found = dp.general_value(dp.solve_general(**asked), mean, var)
    mirrored = dp.general_value(dp.solve_general(**asked | dict(x=-asked["x"])), -mean, var)
    assert np.allclose(mirrored.lower, found.lower, rtol=1e-6) and np.allclose(mirrored.upper, found.upper, rtol=1e-6)
    units = asked | dict(charge=3 * asked["charge"], noise_sd=3.0, var_max=9 * var)      # theta and rewards in thirds
    scaled = dp.general_value(dp.solve_general(**units), 3 * mean, 9 * var)
    assert np.allclose(scaled.upper, 3 * found.upper, rtol=1e-9) and np.allclose(scaled.lower, 3 * found.lower, rtol=1e-9)


def test_what_items_pay_for_certain_is_added():
    """A free item with a reward of its own, whatever theta is, and a mean that is known."""
    asked = dict(x=[1.0, -.5], charge=[.1, .2], probs=[.5, .3], gamma=.8, noise_sd=1, var_max=1, tol=1e-2)
    more = asked | dict(x=[1.0, -.5, 0], charge=[.1, .2, -2.0], probs=[.5, .3, .2], info=[1, .25, 0])
    one, other = (dp.general_value(dp.solve_general(**problem), [.3, -1], 1.0) for problem in (asked, more))
    assert np.allclose(other.upper - one.upper, .4 / .2, rtol=1e-6) and np.allclose(other.lower - one.lower, .4 / .2, rtol=1e-6)
    known = dp.general_value(dp.solve_general(**asked), -3.0, 0.0)
    assert known.lower == pytest.approx(.3 * 1.3 / .2, rel=1e-9) and known.upper == pytest.approx(known.lower, rel=1e-8)


def test_smoothing_averages_values():
    asked, mean = drawn(11)
    table = dp.solve_general(**asked | dict(means=(-3, 3), tol=2e-2))
    z = norm.ppf((np.arange(400) + .5) / 400)
    for sd in (.05, 1.0):
        each = dp.general_value(table, .2 + sd * z, .5 * asked["var_max"])
        found = dp.general_smoothed_value(table, .2, sd, .5 * asked["var_max"])
        assert found.lower <= each.upper.mean() * (1 + 1e-4) and each.lower.mean() * (1 - 1e-4) <= found.upper
        assert found.upper - found.lower < 2 * (each.upper - each.lower).mean() + .02 * found.value


def test_break_even_means_far_out_cost_no_width_where_they_do_not_matter():
    """Two items that pay, and do not, at every mean that matters: once said which these are, the bracket is sharp."""
    asked = dict(x=[1.0, -1, .01, .01, -.02], charge=[0, .1, 50.0, -40.0, -60.0], probs=[.3, .3, .1, .1, .1], gamma=.9, noise_sd=1,
                 var_max=1, tol=2e-2)
    wide, sharp = (dp.general_value(dp.solve_general(**asked, means=means), [0, 1.0], 1.0) for means in (None, (0, 1)))
    assert (wide.lower <= sharp.upper).all() and (sharp.lower <= wide.upper).all()
    sure = (.1 * 40 + .1 * 60) / (1 - .9)
    assert (sharp.lower > sure).all() and (sharp.upper - sharp.lower < .02 * (sharp.value - sure + 1)).all()
    far = dp.general_value(dp.solve_general(**asked, means=(0, 1)), [-6000.0, 6000.0], 1.0)      # the bracket holds there as well
    exact = np.array([(.3 * 5999.9 + .1 * 180 + 0), (.3 * 6000 + .1 * 10 + .1 * 100)]) / .1
    assert (far.lower <= exact * (1 + 1e-9)).all() and (far.upper >= exact * (1 - 1e-9)).all()


@pytest.mark.parametrize("x, charge, share", ((1e-6, 5e-5, .5), (1e-3, .006, .02), (1e-4, -.009, .1)))
def test_a_cheap_item_that_hardly_pays_is_kept_for_what_it_teaches(x, charge, share):
    """Its charge moves by little, however far out it breaks even: left out, it once took half of the value with it."""
    asked = dict(x=[1, x], charge=[0, charge], probs=[.5, share], gamma=.9, noise_sd=1, var_max=1, info=[0, 1], tol=.02)
    whole, found = (dp.general_value(dp.solve_general(**asked, means=means), [0.0, .5], 1.0) for means in (None, (0, .5)))
    assert (found.lower <= whole.upper).all() and (whole.lower <= found.upper).all()
    assert (found.upper - found.lower < .03 * whole.value).all()


@pytest.mark.parametrize("far", (7.0, 15.0, 35.0))
def test_an_item_that_breaks_even_far_out_is_worth_forwarding_for_what_it_teaches(far):
    """Its charge is its price: moved to where an item would pay within five deviations, it left half of the value open for every tol."""
    asked = dict(x=[1.0, .01], charge=[.5, .01 * far], probs=[.5, .5], gamma=.9, noise_sd=1.0, var_max=1.0, info=[.01, 1.0])
    whole = dp.general_value(dp.solve_general(**asked, tol=1e-3), 0.0, 1.0)
    for tol in (1e-2, 1e-3):
        found = dp.general_value(dp.solve_general(**asked, tol=tol, means=(0, 0)), 0.0, 1.0)
        assert found.lower <= whole.upper and whole.lower <= found.upper and found.upper - found.lower < 10 * tol * found.value


def test_what_is_refused_says_why():
    good = dict(x=[1.0, 0], charge=[0, 0], probs=[.5, .5], gamma=.9, noise_sd=1, var_max=1)
    for wrong in (dict(charge=[0.0]), dict(probs=[.5, .6]), dict(info=[1.0]), dict(info=[1, 1e-120]), dict(means=(2, 1)),
                  dict(gamma=.9996), dict(var_max=1e15)):
        with pytest.raises(ValueError, match=list(wrong)[0]):
            dp.solve_general(**good | wrong)
    table = dp.solve_general(**good | dict(info=[0, 0]))
    with pytest.raises(ValueError, match="var is 2"):
        dp.general_value(table, 0.0, 2.0)
    with pytest.raises(ValueError, match="table"):
        dp.general_value(dp.solve([0], [1], .9, 1, 1), 0.0, 1.0)
    assert general.as_range(None) == (-np.inf, np.inf)


@pytest.mark.parametrize("gamma", (.6, .99))
def test_brackets_are_widened_by_all_that_rounding_may_do(gamma):
    """At least a share SLACK, and 1e-15 a step, of every term: of sum bend (|m - kink| + s), of the line, of the means."""
    table = dp.solve_general(**{**PROBLEM, "gamma": gamma}, noise_sd=1, var_max=2, tol=.3)
    means = np.array([0.0, .3, -2.0, 50.0])
    for kind in ("upper", "lower"):
        side = getattr(table, kind)
        atoms = side.atoms
        for m in [*means, side.center]:
            for s in (0.0, 1.0, 100.0):
                terms = sum(bend * (abs(m - side.center - kink) + s) for bend, kink in zip(atoms.bend, atoms.kink))
                steep = abs(atoms.line[1]) + sum(atoms.bend)
                last = 1e-15 / (1 - gamma) * (steep * (abs(m) + abs(side.center)) + abs(atoms.line[0]) + abs(side.base))
                assert general.rounded(table, side, m) >= last * (1 - 1e-12)
                share = 1e-10 + 2e-15 * (len(atoms.x) + len(atoms.kink)) / (1 - gamma)
                assert general.slack(table, kind, m, s) >= (share * terms + last) * (1 - 1e-12)
