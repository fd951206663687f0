"""Laws of one step of the mean: mass, mean, and convex order against the normal law (chapter "The certified sweep")."""
import numpy as np
import pytest
from scipy.stats import norm

from lib.dp import quadrature
from lib.dp.grid import Nodes

pytestmark = pytest.mark.kernels

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


@pytest.mark.parametrize("reach, d", [(3.0, .2), (3.0, .7), (4.5, .06), (4.5, .5), (8.25, .7)])
def test_the_shrunk_law_meets_the_condition_of_its_proposition_and_hardly_more(reach, d):
    """The proposition "Lower law", at distance 0 and one cell beyond the reach, in logarithms."""
    t = 1.3
    t1 = quadrature.shrunk(t, d * t, reach)
    loss, eps = t * t - t1 * t1, d * t / t1
    delta = loss / t**2
    h = 1 + (1 - delta) / delta * np.log(1 - delta)
    spare = [np.log(loss * t1 / t / (d * t / 2) ** 2) + z * z * (h / 2 - eps * eps / 8) for z in (0, reach + eps)]
    assert -1e-12 <= min(spare) < .01


def test_a_step_too_small_for_the_lattice_has_no_lower_law():
    assert np.isnan(quadrature.shrunk(0.05, 1.0, 4.5))


@pytest.mark.parametrize("h", (1e-6, 1e-4, .01, .3))
def test_call_prices_do_not_lose_digits_however_fine_the_lattice(h):
    """Summed up from the far end they were wrong by 1e-9 at d/t = 1e-6, above the slack of a bracket."""
    weights, calls = quadrature.hat_law(1.0, h, 4.0)
    at = np.unique(np.linspace(0, calls.size - 2, 300).astype(int))
    assert np.abs(calls[at] - normal_call(at * h, 1.0)).max() < 2e-14
    assert abs(weights.sum() + 2 * norm.sf(4.0) - 1) < 1e-4 * h + 1e-4


@pytest.mark.parametrize("density", (False, True))
def test_a_wide_law_is_the_one_that_would_be_tabulated(density):
    rng, d, t, ratio = np.random.default_rng(1), .01, 1.0, 16
    values, step = Nodes(-7, d, rng.random(15)), quadrature.Step(t, 5.0)
    weights = (np.array([quadrature.bell(l * d / t, t) for l in range(502)]) if density
               else quadrature.hat_law(t, d, 5.0)[0][501:])
    slid, direct = np.zeros(61), np.zeros(61)
    quadrature.slide(slid, -30, ratio, weights, values)
    quadrature.slide_wide(direct, -30, ratio, values, step, density)
    assert np.allclose(slid, direct, rtol=1e-9, atol=1e-12)
    assert quadrature.too_wide(values, quadrature.Step(t, 5.0)) and not quadrature.too_wide(values, quadrature.Step(.9, 5.0))
