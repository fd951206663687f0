"""Laws of one step of the posterior mean on a lattice, and expectations under them (kernels).

The mean moves by N(0, t^2).  With values known at the nodes l d of a lattice only, and w convex:
  hat_law    N(0, t^2) split linearly to its two neighbours: it dominates N(0, t^2), so it errs upward (chords);
  shrunk     the hat law of a smaller variance, which N(0, t^2) dominates: it errs downward (Jensen);
  guess_law  a law on the nodes with the variance t^2: neither, but closer than both.
A symmetric law of mean 0 is given by its call prices G(a) = E (X - a)^+ at the nodes: its weights are the second
differences of G, and X <= Y in convex order where G_X <= G_Y (chapter "The certified sweep").
"""
import math
from typing import NamedTuple

import numpy as np

from lib.compiled import checked_jit
from lib.normal import PHI0, excess, psi

WIDTH = 8.25            # Gaussian tails are cut at this many standard deviations (mass 2e-16)
AGAIN = 32              # call prices are computed anew after this many nodes
WIDE = 64               # a law with this many times the nodes of the values is not tabulated
FINE = 0.25             # below this d/t the series for the hat weights is exact to 1e-13


@checked_jit
def reach(rest):
    """From how many standard deviations on E (Z - z)^+ <= rest, rounded up to a twentieth; at most WIDTH."""
    z = 1.0
    while z < WIDTH and psi(-z) > rest:
        z += 0.05
    return min(z, WIDTH)


@checked_jit
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


@checked_jit
def hat_law(t, d, reach=WIDTH):
    """(weights, calls) of N(0, t^2) split linearly to its two lattice neighbours: it dominates N(0, t^2).

    Nodes beyond `reach` standard deviations are left out.  At the nodes the calls are the normal law's; from one node
    in AGAIN on they are summed up from the weights, which is faster and adds AGAIN roundings.
    """
    h = d / t
    R = int(reach / h) + 1
    p, G = np.empty(2 * R + 1), np.empty(R + 2)
    for l in range(R + 1):
        p[R + l] = p[R - l] = hat(l * h, h)
    for top in range(R, -1, -AGAIN):
        G[top], G[top + 1] = t * psi(-top * h), t * psi(-(top + 1) * h)
        for l in range(top, max(top - AGAIN, 0), -1):
            G[l - 1] = 2 * G[l] - G[l + 1] + d * p[R + l]
    return p, G


@checked_jit
def enough(less, t, d, reach):
    """Whether t'^2 = t^2 - less does for `shrunk`: at distance 0, and at the last cell within reach (so between, too)."""
    e, t1 = less / (t * t), math.sqrt(t * t - less)
    z, h = reach + d / t1, 1 + (1 - e) * math.log1p(-e) / e
    return less * t1 >= 0.25 * d * d * t * math.exp(z * z * max(0.125 * (d / t1) ** 2 - 0.5 * h, 0.0))


@checked_jit
def shrunk(t, d, reach):
    """t' < t such that N(0, t'^2), split linearly to the lattice, has call prices below those of N(0, t^2).

    For cells within `reach` standard deviations t', and with the same t^2 - t'^2 for every wider t; nan where d is too
    wide (chapter "The certified sweep", "Lower law").
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


@checked_jit
def guess_law(t, d):
    """(weights, calls) of a lattice law of mean 0 and variance t^2: accurate, not a bound."""
    if t >= d:
        return hat_law(math.sqrt(t * t - d * d / 6), d)
    side = 0.5 * t * t / (d * d)
    return np.array([side, 1 - 2 * side, side]), np.array([side * d, 0.0, 0.0])


class Step(NamedTuple):
    """A move of the posterior mean by N(0, t^2), tails cut at `reach` standard deviations."""

    t: float
    reach: float


@checked_jit
def slide(out, first, ratio, weights, values):
    """out[i] += sum_l weights[|l|] values at node (first + i) ratio + l, 0 outside the nodes."""
    R, n, D = weights.size - 1, out.size, values.D
    near = np.empty(n + 2 * R // ratio + 4)
    for residue in range(min(ratio, 2 * R + 1)):
        l = residue - R                                # the first of l, l + ratio, ... up to R
        near[:] = 0.0
        at = first * ratio + l - values.first          # near[k] = D[at + k ratio]
        for k in range(max(0, -(at // ratio)), min(near.size, (D.size - 1 - at) // ratio + 1)):
            near[k] = D[at + k * ratio]
        shift = 0
        while l + 3 * ratio <= R:                      # four at a time: out is read once for them
            a, b, c, e = (weights[abs(l)], weights[abs(l + ratio)], weights[abs(l + 2 * ratio)],
                          weights[abs(l + 3 * ratio)])
            for i in range(n):
                k = i + shift
                out[i] += a * near[k] + b * near[k + 1] + c * near[k + 2] + e * near[k + 3]
            l, shift = l + 4 * ratio, shift + 4
        while l <= R:
            a = weights[abs(l)]
            for i in range(n):
                out[i] += a * near[i + shift]
            l, shift = l + ratio, shift + 1


@checked_jit
def bell(z, t):
    """d/d(t^2) of the call price t psi(-z) at a distance of z standard deviations: half the normal density."""
    return 0.5 * PHI0 / t * math.exp(-0.5 * z * z)


@checked_jit
def slide_wide(out, first, ratio, values, step, density):
    """As `slide`, weight by weight: for a law with many more nodes than `values`, or (`density`) for `bell`."""
    h = values.d / step.t
    for i in range(out.size):
        m = (first + i) * ratio
        for k in range(values.D.size):
            z = (values.first + k - m) * h
            if abs(z) <= step.reach + h and values.D[k] != 0:
                out[i] += (bell(z, step.t) if density else hat(z, h)) * values.D[k]


@checked_jit
def too_wide(values, step):
    """Whether the law of a step is not to be tabulated: it has far more nodes than `values`."""
    return 2 * step.reach * step.t > WIDE * values.D.size * values.d


@checked_jit
def prices(out, first, ratio, law_calls, K, d):
    """out[i] += K E ((first + i) ratio d + X)^+ from the call prices of X at 0, d, 2 d, ..."""
    for i in range(out.size):
        out[i] += K * max((first + i) * ratio * d, 0.0)
    most = (law_calls.size - 1) // ratio
    for l in range(max(first, -most), min(first + out.size - 1, most) + 1):
        out[l - first] += K * law_calls[abs(l) * ratio]


@checked_jit
def expectation_under(law, out, first, ratio, values, K):
    """out[i] += E [D(m + X) + K (m + X)^+] at m = (first + i) ratio d, X of a law (weights, calls) on the lattice of D."""
    weights, calls = law
    prices(out, first, ratio, calls, K, values.d)
    slide(out, first, ratio, weights[weights.size // 2:], values)


@checked_jit
def expectation(out, first, ratio, values, step, K):
    """out[i] += E [D(m + X) + K (m + X)^+] at m = (first + i) ratio d, X the hat law of the step on the lattice of D.

    Returns the weights of the law at 0, d, 2 d, ...: none where it is too wide.
    """
    if too_wide(values, step):
        for i in range(out.size):
            out[i] += K * excess((first + i) * ratio * values.d, step.t)
        slide_wide(out, first, ratio, values, step, False)
        return np.empty(0)
    law = hat_law(step.t, values.d, step.reach)
    expectation_under(law, out, first, ratio, values, K)
    return law[0][law[0].size // 2:]


@checked_jit
def chords(values, m, step):
    """E D(m + t Z), D linear between its nodes and 0 outside, tails cut."""
    total, d, h = 0.0, values.d, values.d / step.t
    lo, hi = int(math.floor((m - step.reach * step.t) / d)) - 1, int(math.ceil((m + step.reach * step.t) / d)) + 1
    for i in range(max(lo, values.first), min(hi, values.first + values.D.size - 1) + 1):
        total += hat((i * d - m) / step.t, h) * values.D[i - values.first]
    return total
