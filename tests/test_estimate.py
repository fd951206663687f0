"""Means, errors and intervals against SciPy, least squares and plain loops."""
from fractions import Fraction
import math
import statistics

from hypothesis import given, strategies as st
import numpy as np
import pytest
from scipy import stats

from lib import estimate
from lib.problem import effective_horizon

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(7,), (3, 2), (2, 4, 30)])
def test_a_sample_mean_is_scipys(shape):
    values = RNG.standard_normal(shape)
    mean, se = estimate.sample_mean(values)
    assert mean == pytest.approx(values.mean(axis=-1)) and se == pytest.approx(stats.sem(values, axis=-1))
    row = values.reshape(-1, shape[-1])[0].tolist()
    assert np.ravel(mean)[0] == pytest.approx(statistics.fmean(row))
    assert np.ravel(se)[0] == pytest.approx(statistics.stdev(row) / math.sqrt(len(row)))


@pytest.mark.parametrize("values", [[], [1.0], 3.0, np.zeros((4, 1))])
def test_one_value_shows_no_spread(values):
    with pytest.raises(ValueError, match="an error needs at least 2"):
        estimate.sample_mean(values)


@pytest.mark.parametrize("count", [3, 5, 32])
def test_the_interval_is_scipys_and_covers_with_few_values(count):
    values = np.random.default_rng(count).standard_normal((4000, count))
    mean, se = estimate.sample_mean(values)
    half = estimate.half_width(se, count)
    low, high = stats.t.interval(.95, count - 1, loc=mean, scale=se)
    assert mean - half == pytest.approx(low) and mean + half == pytest.approx(high)
    assert np.mean(np.abs(mean) <= half) == pytest.approx(.95, abs=.012)          # 1.96 covers .81 with 3 values


def test_an_error_that_is_known_has_the_normal_quantile():
    assert estimate.half_width(2.0) == pytest.approx(2 * stats.norm.ppf(.975))
    assert estimate.interval(1, .1) == "1.00 ± 0.20" and estimate.interval(1, .1, count=2) == "1.0 ± 1.3"


def regression(values, controls):
    """Intercept of values on controls and its standard error where the controls' mean is known to be zero, in plain loops."""
    n, (a, b) = len(values), (math.fsum(part) / len(values) for part in (values, controls))
    slope = math.fsum((y - a) * (z - b) for y, z in zip(values, controls)) / math.fsum((z - b) ** 2 for z in controls)
    rest = math.fsum((y - a - slope * (z - b)) ** 2 for y, z in zip(values, controls))
    return a - slope * b, math.sqrt(rest / (n - 2) * (1 / n + b**2 / math.fsum((z - b) ** 2 for z in controls)))


@given(value=st.floats(allow_infinity=False, allow_nan=False), digits=st.integers(0, 15))
def test_what_is_rounded_outward_is_the_nearest_on_its_side(value, digits):
    """In fractions of integers."""
    exact, unit = Fraction(repr(value)), Fraction(1, 10**digits)
    up, down = math.ceil(exact / unit) * unit, math.floor(exact / unit) * unit
    assert estimate.rounded_up(value, digits) == float(up) and estimate.rounded_down(value, digits) == float(down)
    assert estimate.rounded_up(float(up), digits) == float(up)


def test_rounding_outward_keeps_shapes_and_what_is_no_number():
    found = estimate.rounded_up([[.1234, np.nan], [-np.inf, -0.00001]], 3)
    assert np.array_equal(found, [[.124, np.nan], [-np.inf, 0]], equal_nan=True) and not np.signbit(found[1, 1])


def test_controlled_is_the_intercept_of_a_regression():
    controls = RNG.standard_normal((4, 50))
    values = 3 + np.array([[0], [1], [2], [-1]]) * controls + RNG.standard_normal((4, 50))
    for row, zero in zip(values, controls):
        found = estimate.controlled(row, zero)
        assert found == pytest.approx(regression(row.tolist(), zero.tolist()))
        fit = stats.linregress(zero, row)
        assert found == pytest.approx((fit.intercept, fit.intercept_stderr))
    assert estimate.controlled(values[0], np.zeros(50)).mean == pytest.approx(values[0].mean())


def test_rows_are_paired_with_the_reference():
    controls = RNG.standard_normal((3, 20))
    values = controls + RNG.standard_normal(20)
    alone, apart = estimate.controlled_rows(values, controls), estimate.controlled_rows(values, controls, 1)
    for p in range(3):
        assert (alone.mean[p], alone.se[p]) == estimate.controlled(values[p], controls[p])
        assert (apart.mean[p], apart.se[p]) == estimate.controlled(values[p] - values[1], controls[p] - controls[1])
    assert apart.mean == pytest.approx(0) and apart.se == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("values, controls", [([1., 2.], [0., 0.]), ([1., 2., 3.], [0., 0.]), (np.ones((3, 3)),) * 2])
def test_a_regression_needs_three_pairs(values, controls):
    with pytest.raises(ValueError, match="at least 3"):
        estimate.controlled(values, controls)


def test_the_error_of_a_controlled_mean_is_that_of_repeated_samples():
    rng = np.random.default_rng(1)
    zero = rng.standard_normal((10_000, 12))
    found = estimate.controlled_rows(zero + .5 * rng.standard_normal(zero.shape), zero)
    assert np.abs(found.mean.mean()) < 4 * found.mean.std() / 100
    assert np.mean(found.se**2) == pytest.approx(found.mean.var(), rel=.05)


@pytest.mark.parametrize("gamma, share", [(.9, 1e-3), (.9, .9**7), (.5, .25), (.999, 1e-4), (.001, .5), (.97, .03)])
def test_the_horizon_is_the_first_number_of_items_that_leaves_no_more_than_the_share(gamma, share):
    count = 0
    while gamma**count > share or count == 0:
        count += 1
    assert effective_horizon(gamma, share) == count
    assert effective_horizon(.9) == 66


@pytest.mark.parametrize("wrong", [{"gamma": 1.0}, {"gamma": 0}, {"gamma": np.nan}, {"share": 0}, {"share": 1.5}])
def test_a_wrong_horizon_is_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        effective_horizon(**({"gamma": .9} | wrong))


def test_the_first_row_past_the_last_is_no_reference():
    values = np.array([[1., 2., 3.], [2., 3., 4.]])
    with pytest.raises(ValueError, match="reference must be an integer of at least 0 and at most 1, got 2"):
        estimate.controlled_rows(values, values - 2, 2)


def test_degrees_of_freedom_have_no_unit():
    for unit in (1e-200, 1.0, 1e200):
        assert estimate.degrees_of_freedom([unit, unit], [4, 4]) == pytest.approx(8)


def test_a_betting_limit_holds_where_a_normal_one_fails():
    """A rare large value, which most samples lack: the normal limit knows nothing of it."""
    rng, n, runs = np.random.default_rng(0), 60, 2000
    drawn = rng.random((runs, n)) * .05 + (rng.random((runs, n)) < .01)
    mean, most = .025 + .01, 1.05
    normal = [estimate.upper_limit(*estimate.sample_mean(row), n - 1) for row in drawn]
    betting = [estimate.betting_limit(row, most) for row in drawn]
    assert (np.array(normal) >= mean).mean() < .6 and (np.array(betting) >= mean).mean() > .95
    tame = rng.random((runs, n))
    assert (np.array([estimate.betting_limit(row, 1.0) for row in tame]) >= .5).mean() > .95


def test_a_betting_limit_is_where_the_gambler_has_won_enough():
    """In plain loops: 1 / .05 at the limit, less above it no more; the unit is free, and many values leave little open."""
    values = np.random.default_rng(1).beta(2, 5, 300)
    limit = estimate.betting_limit(values, 1.0)

    def capital(m):
        money, total, squares = 1.0, .5, .25
        for n, value in enumerate(values, 1):
            mean = total / n
            stake = min(np.sqrt(2 * np.log(20) / (squares / n * len(values))), estimate.STAKE)
            money *= 1 + stake * (m - value)
            total, squares = total + value, squares + (value - mean)**2
        return money

    assert capital(limit) == pytest.approx(20, rel=1e-6) and capital(limit - .01) < 20 < capital(limit + .01)
    assert estimate.betting_limit(7 * values, 7.0) == pytest.approx(7 * limit, rel=1e-9)
    assert values.mean() < limit < estimate.upper_limit(*estimate.sample_mean(values)) + .05
    assert estimate.betting_limit(values, 1.0, .5) < limit < estimate.betting_limit(values, 1.0, .999)


@pytest.mark.parametrize("wrong, words", [
    (([.5, 1.2], 1.0), "most = 1.0"), (([-.1], 1.0), "got -0.1"), (([], 1.0), "non-empty"), (([.5], 0.0), "most is 0"),
    (([.5], 1.0, 1.0), "level is 1"), (([np.nan], 1.0), "values")])
def test_what_no_bet_can_be_made_on_is_named(wrong, words):
    with pytest.raises(ValueError, match=words):
        estimate.betting_limit(*wrong)
