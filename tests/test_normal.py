"""The expectations that modules share, against SciPy."""
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from lib import normal

Z = np.linspace(-8, 8, 161)


def test_psi_and_tail_agree_with_scipy():
    assert np.allclose([normal.psi(z) for z in Z], norm.pdf(Z) + Z * norm.cdf(Z), rtol=0, atol=1e-15)
    assert np.allclose([normal.tail(z) for z in Z], norm.sf(Z), rtol=1e-13)


@pytest.mark.parametrize("m, t", ((0.0, 1.0), (-3.0, 2.0), (4.0, .5), (-5.0, 1.0)))
def test_the_excess_is_its_integral(m, t):
    integral = quad(lambda x: x * norm.pdf(x, m, t), 0, max(m, 0) + 12 * t, points=[max(m, 0)], epsabs=0)[0]
    assert normal.excess(m, t) == pytest.approx(integral, rel=1e-9)
    assert normal.gain(m, t) == pytest.approx(normal.excess(-abs(m), t), rel=1e-12)
    assert normal.expected_excess(m, t) == pytest.approx(integral, rel=1e-9)


def test_kernels_and_arrays_are_one_function():
    t = np.array([-1.0, 0, 1e-300, 1e-3, 1, 7])
    together = normal.expected_excess(Z[:, None], t)
    assert np.allclose(together, [[normal.excess(m, sd) for sd in t] for m in Z], rtol=1e-13, atol=1e-15)
    assert (together[:, :2] == np.maximum(Z, 0)[:, None]).all()             # no spread, no option
    assert np.allclose(normal.expected_positive(Z), [normal.psi(z) for z in Z], rtol=1e-13, atol=1e-15)
