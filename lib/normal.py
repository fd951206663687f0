"""Expectations of a standard normal Z that several modules share: scalar kernels, and two of them for arrays.

    psi(z) = E (z + Z)^+ = z Phi(z) + phi(z),    E (m + t Z)^+ = m^+ + t psi(-|m| / t),

the price of a call (Bachelier), the expected improvement and the linear loss of inventory theory are all this number.
For z < 0 it is a difference of numbers up to z^2 times as large: its relative error is that many roundings.
"""
import math

import numpy as np
from scipy.special import ndtr

from lib.compiled import jit

PHI0, ROOT = 0.3989422804014327, 0.7071067811865476     # normal density at 0; 1/sqrt(2)


@jit
def psi(z):
    """E (z + Z)^+."""
    return max(0.0, 0.5 * z * math.erfc(-z * ROOT) + PHI0 * math.exp(-0.5 * z * z))


@jit
def tail(z):
    """P(Z > z)."""
    return 0.5 * math.erfc(z * ROOT)


@jit
def gain(m, t):
    """E (m + t Z)^+ - m^+, what the option to stop at 0 is worth beside the better of m and 0; 0 where t <= 0."""
    return t * psi(-abs(m) / t) if t > 0 else 0.0


@jit
def excess(m, t):
    """E (m + t Z)^+; m^+ where t <= 0."""
    return max(m, 0.0) + gain(m, t)


def expected_positive(z):
    """`psi` of an array."""
    with np.errstate(over="ignore"):                   # far out the density is 0
        return np.maximum(0, z * ndtr(z) + np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi))


def expected_excess(mean, sd):
    """`excess` of arrays, broadcast: E (mean + sd Z)^+."""
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.where(sd > 0, sd * expected_positive(-np.abs(mean) / np.where(sd > 0, sd, 1)), 0.0)
    return np.maximum(mean, 0) + spread
