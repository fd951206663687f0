"""The concave envelope of the value of a decision in the variance of what is known: scalar kernels.

Where x.mu' is normal with mean net (after the cost) and variance v, a decision is worth E (net + sqrt(v) Z)^+ = net^+ + F(v),
with a = |net| and F(v) = sqrt(v) psi(-a / sqrt(v)).  F' = phi(a / sqrt(v)) / (2 sqrt(v)) rises up to v = a^2 and falls from there:
F is convex first, then concave.  Its least concave majorant on [low, high] is a line from low up to the point t >= a^2 where it
touches F, F'(t) (t - low) = F(t) - F(low), and F from there on; or the chord where t lies beyond high.  A random V in [low, high] of
mean v has E F(V) <= majorant(v), and no less holds for all of them.

t / a^2 is a decreasing function of low / a^2 alone.  It is kept as a table; a line that touches F beyond t is a majorant as well, so
the table may be read at the next entry below.
"""
import math

import numpy as np
from scipy.optimize import brentq

from lib.compiled import jit
from lib.normal import PHI0, ROOT

CELLS = 4096        # of the table of touching points
MARGIN = 1e-9       # by which they are raised, far above the rounding of the root
FAR = 36.0          # standard deviations beyond which F is below the smallest positive number times sqrt(v)


def touching(low):
    """t >= 1 where the tangent of F for a = 1 meets F at `low` in [0, 1]: F'(t) (t - low) = F(t) - F(low)."""
    start = rise(1.0, low)[0] if low > 0 else 0.0

    def gap(t):
        value, slope = rise(1.0, t)
        return slope * (t - low) - value + start

    return brentq(gap, 1.0, 3.0, xtol=1e-13) if low < 1 - 1e-3 else 1 + 0.51 * (1 - low)


def touching_points():
    """(3, CELLS + 2) for a = 1: t at low = i / CELLS from above, which touches at or beyond t for any low from there on; F(t), F'(t)."""
    exact = np.array([touching(i / CELLS) for i in range(CELLS + 1)] + [1.0])
    points = np.maximum.accumulate((exact + MARGIN)[::-1])[::-1]
    return np.array([points, *np.transpose([rise(1.0, t) for t in points])])


@jit
def rise(a, v):
    """F(v) and F'(v) for a >= 0 and v > 0."""
    s = math.sqrt(v)
    if a > FAR * s:
        return 0.0, 0.0
    z = a / s
    density = PHI0 * math.exp(-0.5 * z * z)
    return max(0.0, s * density - a * 0.5 * math.erfc(z * ROOT)), density / (2 * s)


@jit
def majorant(a, v, low, high, table):
    """The least concave majorant of F on [low, high] at v, and its slope there; from above, where the table is read between entries.

    Parameters
    ----------
    a : float
        At least 0.
    v, low, high : float
        0 <= low <= high; v is taken to the nearest of the interval.
    table : ndarray
        `touching_points()`.

    Returns
    -------
    float, float
    """
    v = min(max(v, low), high)
    if not v > 0 and low >= a * a:                  # a = 0: nothing is known, or its slope is infinite
        return 0.0, 0.0
    square = a * a
    place = int(low / square * CELLS) if low < square else -1
    if place < 0 or v >= table[0, place] * square:
        return rise(a, v)
    if high >= (table[0, place + 1] - 2 * MARGIN) * square:
        slope = table[2, place] / a
        return max(a * table[1, place] - slope * (table[0, place] * square - v), 0.0), slope
    if not high - low > 1e-9 * high:
        return rise(a, high)
    start = rise(a, low)[0] if low > 0 else 0.0     # the line would touch beyond: the chord
    slope = (rise(a, high)[0] - start) / (high - low)
    return start + slope * (v - low), slope
