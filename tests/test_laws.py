"""Laws of one step of the mean: mass, mean, and convex order against the normal law (chapter "The dynamic program")."""
import numpy as np
import pytest
from scipy.stats import norm

from lib.dp import quadrature

STEPS = [(1.0, d) for d in (0.005, 0.02, 0.049, 0.051, 0.2, 0.5, 0.9, 1.1, 1.7, 4.0)] + [(30.0, 0.9), (1e-3, 4e-4)]


def nodes(weights, d):
    return (np.arange(weights.size) - weights.size // 2) * d


def normal_call(a, t):
    return t * norm.pdf(a / t) - a * norm.sf(a / t)


@pytest.mark.parametrize("t, d", STEPS)
@pytest.mark.parametrize("law", (quadrature.hat_law, quadrature.guess_law))
def test_a_law_has_mass_one_mean_zero_and_its_call_prices(law, t, d):
    weights, calls = law(t, d)
    x = nodes(weights, d)
    assert (weights >= 0).all()
    assert abs(weights.sum() - 1) < 1e-12 and abs(weights @ x) < 1e-12 * t
    for l in range(0, calls.size, max(1, calls.size // 20)):
        assert weights @ np.maximum(x - l * d, 0) == pytest.approx(calls[l], abs=1e-12 * t)


@pytest.mark.parametrize("t, d", STEPS)
def test_the_upper_law_dominates(t, d):
    a = np.linspace(-6 * t, 6 * t, 2001)
    weights, _ = quadrature.hat_law(t, d)
    calls = np.maximum(nodes(weights, d)[:, None] - a, 0).T @ weights
    assert (calls - normal_call(a, t) >= -1e-13 * t).all()


@pytest.mark.parametrize("t, d", [s for s in STEPS if s[1] < 1.0])
def test_the_upper_law_closes_in_quadratically(t, d):
    h2 = (d / t) ** 2
    weights, _ = quadrature.hat_law(t, d)
    assert 0.9 * h2 / 6 - 1e-12 <= weights @ nodes(weights, d) ** 2 / t**2 - 1 <= 1.5 * h2 / 6 + 1e-12


@pytest.mark.parametrize("t, d", STEPS)
def test_the_best_guess_has_the_variance_of_the_step(t, d):
    weights, _ = quadrature.guess_law(t, d)
    assert weights @ nodes(weights, d) ** 2 == pytest.approx(t * t, rel=1e-8)


@pytest.mark.parametrize("shift", (0.0, 0.31, 0.5, 0.77))
@pytest.mark.parametrize("d", (0.06, 0.2, 0.5, 0.7))
@pytest.mark.parametrize("reach", (3.0, 4.5, 5.5))
def test_the_shrunk_law_is_dominated_wherever_the_lattice_lies(d, shift, reach):
    """Chords of the call prices of the smaller variance stay below those of the normal law, within the reach.

    So they do for a wider law with the same loss of variance.
    """
    less = quadrature.shrunk(1.0, d, reach)
    for t in (1.0, 1.1, 1.5, 4.0):
        t1 = np.sqrt(t * t - 1 + less * less)
        nodes = (np.arange(int(2 * t * reach / d) + 3) - int(t * reach / d) - 1 - shift) * d
        nodes = nodes[np.abs(nodes) <= reach * t1 + d]
        wide = np.linspace(nodes[0], nodes[-1], 6001)
        assert (np.interp(wide, nodes, normal_call(nodes, t1)) <= normal_call(wide, t) + 1e-15).all()
    nodes = (np.arange(int(2 * reach / d) + 1) - int(reach / d) - shift) * d
    fine = np.linspace(nodes[0], nodes[-1], 3001)
    mid = np.abs(fine) < 1
    loss = normal_call(fine, 1.0) - np.interp(fine, nodes, normal_call(nodes, less))
    assert loss[mid].max() < (0.3 if d < 0.7 else 0.4) * d * d                # and close: second order in d


def test_a_step_too_small_for_the_lattice_has_no_lower_law():
    assert np.isnan(quadrature.shrunk(0.05, 1.0, 4.5))
