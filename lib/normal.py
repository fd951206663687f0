"""Expectations under the standard normal law that several modules share, as kernels and for arrays."""
import math

import numba as nb
import numpy as np
from scipy.special import ndtr

PHI0, ROOT = 0.3989422804014327, 0.7071067811865476     # normal density at 0; 1/sqrt(2)


@nb.njit(cache=True)
def psi(z):
    """E (z + Z)^+ for Z ~ N(0, 1): z Phi(z) + phi(z)."""
    return max(0.0, 0.5 * z * math.erfc(-z * ROOT) + PHI0 * math.exp(-0.5 * z * z))


@nb.njit(cache=True)
def tail(z):
    """P(Z > z) for Z ~ N(0, 1)."""
    return 0.5 * math.erfc(z * ROOT)


def expected_positive(z):
    """E (z + Z)^+ for Z ~ N(0, 1)."""
    return np.maximum(0, z * ndtr(z) + np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi))


@nb.njit(cache=True)
def excess(m, t):
    """E (m + t Z)^+."""
    return t * psi(-abs(m) / t) + max(m, 0.0)


def expected_excess(mean, sd):
    """E (mean + sd Z)^+, elementwise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.where(sd > 0, sd * expected_positive(-np.abs(mean) / np.where(sd > 0, sd, 1)), 0.0)
    return np.maximum(mean, 0) + spread
