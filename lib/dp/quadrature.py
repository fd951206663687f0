"""Laws of one step of the posterior mean on a lattice (kernels), for the certified sweep.

The mean moves by N(0, t^2).  With values known at the nodes l d of a lattice only, and w convex:
  hat_law    N(0, t^2) split linearly to its two neighbours: it dominates N(0, t^2), so it errs upward (chords);
  shrunk     the hat law of a smaller variance, which N(0, t^2) dominates: it errs downward (Jensen);
  guess_law  a law on the nodes with the variance t^2: neither, but closer than both.
A symmetric law of mean 0 is given by its call prices G(a) = E (X - a)^+ at the nodes: its weights are the second
differences of G, and X <= Y in convex order where G_X <= G_Y (chapter "The dynamic program").
"""
import math

import numba as nb
import numpy as np

from lib.normal import PHI0, psi

WIDTH = 8.25            # Gaussian tails are cut at this many standard deviations (mass 2e-16)
FINE = 0.25             # below this d/t the series for the hat weights is exact to 1e-13


@nb.njit(cache=True)
def reach(rest):
    """From how many standard deviations on E (Z - z)^+ <= rest, rounded up to a twentieth; at most WIDTH."""
    z = 1.0
    while z < WIDTH and psi(-z) > rest:
        z += 0.05
    return min(z, WIDTH)


@nb.njit(cache=True)
def hat(z, h):
    """E of the hat function of a node at distance z from the mean, spacing h, both in standard deviations.

    The second difference of psi, divided by h; for small h as a series, without cancellation.
    """
    z = abs(z)
    if h >= FINE:
        return max(0.0, psi(-z - h) - 2 * psi(-z) + (psi(-z + h) if z > h else psi(z - h) + h - z)) / h
    y, k = z * z, h * h
    return h * PHI0 * math.exp(-0.5 * y) * (
        1 + k / 12 * (y - 1 + k / 30 * ((y - 6) * y + 3 + k / 56 * (((y - 15) * y + 45) * y - 15
        + k / 90 * ((((y - 28) * y + 210) * y - 420) * y + 105
        + k / 132 * (((((y - 45) * y + 630) * y - 3150) * y + 4725) * y - 945))))))


@nb.njit(cache=True)
def hat_law(t, d, reach=WIDTH):
    """(weights, calls) of N(0, t^2) split linearly to its two lattice neighbours: it dominates N(0, t^2).

    Nodes beyond `reach` standard deviations are left out.
    """
    h = d / t
    R = int(reach / h) + 1
    p, G = np.empty(2 * R + 1), np.empty(R + 2)
    for l in range(R + 1):
        p[R + l] = p[R - l] = hat(l * h, h)
    G[R], G[R + 1] = t * psi(-R * h), t * psi(-(R + 1) * h)
    for l in range(R, 0, -1):
        G[l - 1] = 2 * G[l] - G[l + 1] + d * p[R + l]
    return p, G


@nb.njit(cache=True)
def enough(less, t, d, reach):
    """Whether t'^2 = t^2 - less does for `shrunk`: at distance 0, and at the last cell within reach (so between, too)."""
    e, t1 = less / (t * t), math.sqrt(t * t - less)
    z, h = reach + d / t1, 1 + (1 - e) * math.log1p(-e) / e
    return less * t1 >= 0.25 * d * d * t * math.exp(z * z * max(0.125 * (d / t1) ** 2 - 0.5 * h, 0.0))


@nb.njit(cache=True)
def shrunk(t, d, reach):
    """t' < t such that N(0, t'^2), split linearly to the lattice, has call prices below those of N(0, t^2).

    For cells within `reach` standard deviations t', and with the same t^2 - t'^2 for every wider t; nan where d is too
    wide (chapter "The dynamic program", "Lower law").
    """
    low, high = 0.25 * d * d, min(0.6 * t * t, 1.5 * d * d)
    if high <= low or not enough(high, t, d, reach):
        return np.nan
    while high > 1.002 * low:
        less = math.sqrt(low * high)
        if enough(less, t, d, reach):
            high = less
        else:
            low = less
    return math.sqrt(t * t - high)


@nb.njit(cache=True)
def guess_law(t, d):
    """(weights, calls) of a lattice law of mean 0 and variance t^2: accurate, not a bound."""
    if t >= d:
        return hat_law(math.sqrt(t * t - d * d / 6), d)
    side = 0.5 * t * t / (d * d)
    return np.array([side, 1 - 2 * side, side]), np.array([side * d, 0.0, 0.0])
