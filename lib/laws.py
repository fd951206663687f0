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

WIDTH = 8.25            # Gaussian tails are cut at this many standard deviations (mass 2e-16)
FINE = 0.05             # below this d/t the series for the hat weights is exact to 1e-13


@nb.njit(cache=True)
def psi(z):
    """E (z + Z)^+ for Z ~ N(0, 1): z Phi(z) + phi(z)."""
    return max(0.0, 0.5 * z * math.erfc(-z * 0.7071067811865476) + 0.3989422804014327 * math.exp(-0.5 * z * z))


@nb.njit(cache=True)
def normal_calls(t, d, reach):
    """E (t Z - l d)^+ for l = 0, 1, ... up to `reach` standard deviations."""
    G = np.empty(int(reach * t / d) + 3)
    for l in range(G.size):
        G[l] = t * psi(-l * d / t)
    return G


@nb.njit(cache=True)
def law(G, d):
    """Weights on l = -R..R of the symmetric lattice law whose call prices at l d are G[l]: second differences."""
    R = G.size - 2
    p = np.empty(2 * R + 1)
    p[R] = 2 * (G[1] - G[0]) / d + 1
    for l in range(1, R + 1):
        p[R + l] = p[R - l] = max(0.0, (G[l - 1] - 2 * G[l] + G[l + 1]) / d)
    return p


@nb.njit(cache=True)
def hat_law(t, d, reach=WIDTH):
    """(weights, calls) of N(0, t^2) split linearly to its two lattice neighbours: it dominates N(0, t^2).

    Nodes beyond `reach` standard deviations are left out.
    """
    G = normal_calls(t, d, reach)
    h = d / t
    if h >= FINE:
        return law(G, d), G
    R = G.size - 2
    p = np.empty(2 * R + 1)
    for l in range(R + 1):                             # the differences as a series, without cancellation
        z = l * h
        z2 = z * z
        p[R + l] = p[R - l] = h * 0.3989422804014327 * math.exp(-0.5 * z2) * (
            1 + h * h * ((z2 - 1) / 12 + h * h * ((z2 * z2 - 6 * z2 + 3) / 360
                         + h * h * (z2 * z2 * z2 - 15 * z2 * z2 + 45 * z2 - 15) / 20160)))
    return p, G


@nb.njit(cache=True)
def tail(z):
    """P(Z > z) for Z ~ N(0, 1)."""
    return 0.5 * math.erfc(z * 0.7071067811865476)


@nb.njit(cache=True)
def shrunk(t, d, reach):
    """t' < t such that N(0, t'^2), split linearly to the lattice, has call prices below those of N(0, t^2).

    For cells within `reach` standard deviations: t^2 - t'^2 >= d^2/4 t/t' exp(((reach + d/t') d/t')^2 / 8); nan where
    d is too wide.
    """
    less = 0.25 * d * d
    while less < 0.9 * t * t:
        t1 = math.sqrt(t * t - less)
        enough = 0.25 * d * d * t / t1 * math.exp(((reach + d / t1) * d / t1) ** 2 / 8)
        if enough <= less:
            return t1
        less = enough * 1.0001
    return np.nan


@nb.njit(cache=True)
def guess_law(t, d):
    """(weights, calls) of a lattice law of mean 0 and variance t^2: accurate, not a bound."""
    if t >= d:
        return hat_law(math.sqrt(t * t - d * d / 6), d)
    G = np.zeros(3)
    G[0] = 0.5 * t * t / d
    return law(G, d), G
