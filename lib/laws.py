"""Laws of one step of the posterior mean on a lattice (kernels), for the certified sweep.

The mean moves by N(0, t^2).  With values known at the nodes l d of a lattice only, and w convex:
  hat_law    N(0, t^2) split linearly to its two neighbours: it dominates N(0, t^2), so it errs upward (chords);
  lower_law  a law on the nodes that N(0, t^2) dominates in convex order: it errs downward (Jensen);
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
def normal_calls(t, d):
    """E (t Z - l d)^+ for l = 0, 1, ... up to WIDTH standard deviations."""
    G = np.empty(int(WIDTH * t / d) + 3)
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
def hat_law(t, d):
    """(weights, calls) of N(0, t^2) split linearly to its two lattice neighbours: it dominates N(0, t^2)."""
    G = normal_calls(t, d)
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
def anchored(a, d, t):
    """Value at a of a line through (e, (-e)^+), e = a + d, that lies below g = E (t Z - .)^+ on [a, e].

    Where the tangent of g at s passes e at excess >= 0 above the anchor, the anchored line of the same slope lies
    below it; bisection takes s to the left as far as that goes.
    """
    end = max(-a - d, 0.0)
    low, high = a, a + d
    for _ in range(7):
        s = 0.5 * (low + high)
        if t * psi(-s / t) - 0.5 * math.erfc(s / t * 0.7071067811865476) * (a + d - s) >= end:
            high = s
        else:
            low = s
    return end + 0.5 * math.erfc(high / t * 0.7071067811865476) * d


@nb.njit(cache=True)
def cell_line(a, d, t):
    """Values at a and a + d of a line between (-.)^+ and g = E (t Z - .)^+ on the cell; nan where there is none.

    The tangent of g at the middle; where it falls below (-.)^+ at one end, a line through that end.
    """
    low, high = max(-a, 0.0), max(-a - d, 0.0)
    z = (a + 0.5 * d) / t
    g, slope = t * psi(-z), -0.5 * math.erfc(z * 0.7071067811865476)        # g'(a) = -Phi(-a/t)
    left, right = g - slope * 0.5 * d, g + slope * 0.5 * d
    if left < low and right < high:
        return (low, high) if a >= 0 or a + d <= 0 else (np.nan, np.nan)
    if right < high:
        left, right = anchored(a, d, t), high
    elif left < low:                                   # the mirror image: g(-a) = g(a) + a
        left, right = low, anchored(-a - d, d, t) - a - d
    if left < low or right < high:
        return (low, high) if a >= 0 or a + d <= 0 else (np.nan, np.nan)
    return left, right


@nb.njit(cache=True)
def lower_law(t, d):
    """(weights, calls) of a lattice law that N(0, t^2) dominates in convex order.

    Fine lattice: hat weights of a variance t1^2 with t^2 - t1^2 >= d^2/4 e^{WIDTH d/t1} t/t1.  Otherwise call prices on
    a convex polyline below those of N(0, t^2): a line in each cell, the smaller of two values at each node, and the
    lower convex hull.
    """
    h = d / t
    if h < FINE:
        return hat_law(math.sqrt(t * t - 0.25 * d * d * math.exp(WIDTH * h * 1.02) * 1.01), d)
    G = np.zeros(int(WIDTH / h) + 4)
    before = np.inf
    for l in range(G.size - 2):
        left, right = cell_line(l * d, d, t)
        G[l], before = min(before, left), right
    hull(G)
    return law(G, d), G


@nb.njit(cache=True)
def guess_law(t, d):
    """(weights, calls) of a lattice law of mean 0 and variance t^2: accurate, not a bound."""
    if t >= d:
        return hat_law(math.sqrt(t * t - d * d / 6), d)
    G = np.zeros(3)
    G[0] = 0.5 * t * t / d
    return law(G, d), G


@nb.njit(cache=True)
def hull(v):
    """Replace v, symmetric about v[0] up to a slope of -1, by its lower convex hull (in place)."""
    n = v.size
    stack = np.empty(n, np.int64)
    top = 0
    stack[0] = 0
    for i in range(1, n):
        while top >= 1:
            a, b = stack[top - 1], stack[top]
            if (v[b] - v[a]) * (i - a) >= (v[i] - v[a]) * (b - a):
                top -= 1
            else:
                break
        top += 1
        stack[top] = i
    for s in range(top):
        a, b = stack[s], stack[s + 1]
        for i in range(a + 1, b):
            v[i] = v[a] + (v[b] - v[a]) * (i - a) / (b - a)
