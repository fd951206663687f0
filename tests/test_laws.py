"""Laws of one step of the mean: mass, mean, and convex order against the normal law (chapter "The dynamic program")."""
import numpy as np
import pytest
from scipy.stats import norm

from lib import laws, lookup

STEPS = [(1.0, d) for d in (0.005, 0.02, 0.049, 0.051, 0.2, 0.5, 0.9, 1.1, 1.7, 4.0)] + [(30.0, 0.9), (1e-3, 4e-4)]


def nodes(weights, d):
    return (np.arange(weights.size) - weights.size // 2) * d


def normal_call(a, t):
    return t * norm.pdf(a / t) - a * norm.sf(a / t)


@pytest.mark.parametrize("t, d", STEPS)
@pytest.mark.parametrize("law", (laws.hat_law, laws.lower_law, laws.guess_law))
def test_a_law_has_mass_one_mean_zero_and_its_call_prices(law, t, d):
    weights, calls = law(t, d)
    x = nodes(weights, d)
    assert (weights >= 0).all()
    assert abs(weights.sum() - 1) < 1e-12 and abs(weights @ x) < 1e-12 * t
    for l in range(0, calls.size, max(1, calls.size // 20)):
        assert weights @ np.maximum(x - l * d, 0) == pytest.approx(calls[l], abs=1e-12 * t)


@pytest.mark.parametrize("t, d", STEPS)
def test_the_upper_law_dominates_and_the_lower_law_is_dominated(t, d):
    a = np.linspace(-6 * t, 6 * t, 2001)
    for law, sign in ((laws.hat_law, 1), (laws.lower_law, -1)):
        weights, _ = law(t, d)
        calls = np.maximum(nodes(weights, d)[:, None] - a, 0).T @ weights
        assert (sign * (calls - normal_call(a, t)) >= -1e-13 * t).all()


@pytest.mark.parametrize("t, d", [s for s in STEPS if s[1] < 1.0])
def test_the_laws_close_in_quadratically(t, d):
    h2 = (d / t) ** 2
    for law, low, high in ((laws.hat_law, 0.9 * h2 / 6, 1.5 * h2 / 6), (laws.lower_law, -0.9 * h2, 0)):
        weights, _ = law(t, d)
        assert low - 1e-12 <= weights @ nodes(weights, d) ** 2 / t**2 - 1 <= high + 1e-12


@pytest.mark.parametrize("t, d", STEPS)
def test_the_best_guess_has_the_variance_of_the_step(t, d):
    weights, _ = laws.guess_law(t, d)
    assert weights @ nodes(weights, d) ** 2 == pytest.approx(t * t, rel=1e-8)


@pytest.mark.parametrize("shift", (0.0, 0.31, 0.77))
@pytest.mark.parametrize("d", (0.06, 0.2, 0.8))
def test_the_lower_law_off_the_lattice_is_dominated(d, shift):
    t, lo, n = 1.0, int(-9 / d) - 1, int(18 / d) + 4
    calls = lookup.lower_calls(lo, n, d, shift * d, t)
    assert np.isfinite(calls).all()
    a = (lo + np.arange(n)) * d - shift * d
    weights = np.diff(calls, 2) / d
    assert (weights >= -1e-12).all() and abs(weights.sum() - 1) < 1e-10
    fine = np.linspace(a[1], a[-2], 3001)
    assert (np.interp(fine, a, calls) <= normal_call(fine, t) + 1e-13).all()


def test_a_step_too_small_for_the_lattice_has_no_lower_law():
    assert np.isnan(lookup.lower_calls(-3, 8, 1.0, 0.4, 0.05)).all()    # mean 0.4 between nodes needs a variance


def test_psi_agrees_with_scipy():
    z = np.linspace(-8, 8, 161)
    assert np.allclose([laws.psi(v) for v in z], norm.pdf(z) + z * norm.cdf(z), rtol=0, atol=1e-15)
