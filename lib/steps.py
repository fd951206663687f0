"""One certified step of the mean: bounds on E w(m + t Z, b + information) from the levels of a Grid (kernels).

Scale and state as in lib.sweep: noise_sd = 1, net mean m, precision b, K = E[x]/(1 - gamma), and every level stores
D = w - K m^+ on a lattice -n d .. n d of the mean.  What an item leads to, w(., b + x^2), is bounded at the nodes from
the levels around b + x^2 and then averaged over the move of the mean (chapter "The dynamic program"):
  UPPER  log((w + K E theta^-) / sqrt(b)) is convex in b at fixed m: a chord between two levels; chords in m;
  LOWER  the tangent of lib.tangents in b; a law in m that the normal law dominates.
"""
import math

import numba as nb
import numpy as np

from lib.laws import PHI0, hat_law, psi, shrunk, tail
from lib.sweep import learnable_sd, nodes, rounding, thinned
from lib.tangents import ahead_lower


@nb.njit(cache=True)
def ahead_upper(grid, b, coarse):
    """(D, d): at least w(., b) - K m^+ at nodes -n..n of spacing d, from the levels around b."""
    levels, last = grid.levels, grid.levels.size - 1
    l, u = rounding(b, levels)
    if l == u or u > last:
        u = min(u, last)
        stride = thinned(grid.spacing[u], coarse)
        return nodes(grid, u, grid.D, stride), stride * grid.spacing[u]
    ratio, stride = int(round(grid.spacing[l] / grid.spacing[u])), thinned(grid.spacing[l], coarse)
    D, known, fall = (nodes(grid, l, grid.D, stride), nodes(grid, l, grid.extra[0], stride),
                      nodes(grid, l, grid.extra[1], stride))
    D_u, known_u = nodes(grid, u, grid.D, ratio * stride), nodes(grid, u, grid.extra[0], ratio * stride)
    if D_u.size < D.size:
        cut = (D.size - D_u.size) // 2
        D, known, fall = D[cut:-cut], known[cut:-cut], fall[cut:-cut]
    cut = (D_u.size - D.size) // 2
    chord(D, known, fall, D_u[cut:], known_u[cut:], levels[l], b, levels[u], stride * grid.spacing[l])
    return D, stride * grid.spacing[l]


@nb.njit(cache=True, error_model="numpy")              # no check of the division, so that the loop is vectorized
def chord(D, known, fall, D_u, known_u, below, b, above, d):
    """Turn D = w - K m^+ at the precision `below` into a bound at b, with the level `above` (D_u).

    With Q = D + known: Q sqrt(b/below) (1 - e)^share, 1 - e the ratio of Q / sqrt(b) at the two levels; the series
    of the power has no positive terms after the first, and Taylor's of `known` none that is negative after the last.
    """
    share, beta, up, ratio = (b - below) / (above - below), b - below, math.sqrt(b / below), math.sqrt(below / above)
    c1, c2, c3, c4 = share, (1 - share) / 2, (2 - share) / 3, (3 - share) / 4
    a0, a2, b2, middle = 1.5 / below, 0.5 * d * d, 1.5 / below**2, D.size // 2
    for i in range(D.size):
        Q, l = D[i] + known[i], i - middle
        e = max(1 - ratio * (D_u[i] + known_u[i]) / Q, 0.0)
        top = Q * up * (1 - c1 * e * (1 + c2 * e * (1 + c3 * e * (1 + c4 * e))))
        a = a0 + a2 * l * l
        D[i] = max(min(top - known[i] + fall[i] * beta * (1 - 0.5 * a * beta + (a * a + b2) * beta * beta / 6), D[i]), 0.0)


@nb.njit(cache=True)
def slide(out, first, ratio, weights, D):
    """out[i] += sum_l weights[|l|] D[(first + i) ratio + l], where D has its middle node at 0 and is 0 outside."""
    R, n, half = weights.size - 1, out.size, D.size // 2
    near = np.empty(n + 2 * R // ratio + 4)
    for residue in range(min(ratio, 2 * R + 1)):
        l = residue - R                                # the first of l, l + ratio, ... up to R
        near[:] = 0.0
        at = first * ratio + l + half                  # near[k] = D[at + k ratio]
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


@nb.njit(cache=True)
def prices(out, first, ratio, d, K, calls, add):
    """out[i] = add + K E ((first + i) ratio d + X)^+ from the call prices of X at 0, d, 2 d, ..."""
    for i in range(out.size):
        out[i] = add + K * max((first + i) * ratio * d, 0.0)
    most = (calls.size - 1) // ratio
    for l in range(max(first, -most), min(first + out.size - 1, most) + 1):
        out[l - first] += K * calls[abs(l) * ratio]


@nb.njit(cache=True)
def outside(edge, b, gamma, K):
    """At most w - K m^+ at precision b where |m| > edge: all answers are seen for free until the discount is 1e-16."""
    s = learnable_sd(b, gamma)
    return K * (s * psi(-edge / s) + 1e-16 / math.sqrt(b))


@nb.njit(cache=True)
def step_upper(out, grid, K, gamma, first, j, info, hindsight):
    """out[i] >= E w((first + i) d + t Z, b + info) of level j, t^2 = 1/b - 1/(b + info), and at most hindsight[i]."""
    b, b_next, reach = grid.levels[j], grid.levels[j] + info, grid.read[1]
    D, d = ahead_upper(grid, b_next, 0.0)
    t = math.sqrt(info / (b * b_next))
    weights, calls = hat_law(t, d, reach)
    ratio = int(round(grid.spacing[j] / d))
    cut = outside(D.size // 2 * d, b_next, gamma, K) + 2 * tail(reach) * magnitude(D) + K * t * psi(-reach)
    prices(out, first, ratio, d, K, calls, cut)
    slide(out, first, ratio, weights[weights.size // 2:], D)
    for i in range(out.size):
        out[i] = min(out[i], hindsight[i])


@nb.njit(cache=True)
def step_lower(out, change, grid, K, gamma, first, j, info, below, above):
    """out[i] <= E w((first + i) d + t Z, b + info) of level j with its derivative in b, `change`; returns the bend.

    The three describe a lower bound for all precisions from `below` to `above`: -inf where the lattice is too wide.
    """
    b, reach = grid.levels[j], grid.read[1]
    D, slope, bend, d = ahead_lower(grid, below + info, b + info, above + info, j + 1, 0.0)
    short = math.sqrt(info / (above * (above + info)))
    shorter = shrunk(short, d, reach)
    if not shorter > 0:
        out[:] = -np.inf
        return bend
    lost = short * short - shorter * shorter           # of t^2, at every precision
    t = math.sqrt(info / (b * (b + info)) - lost)
    weights, calls = hat_law(t, d, reach)
    weights, ratio = weights[weights.size // 2:], int(round(grid.spacing[j] / d))
    fast = 1 / below**2 - 1 / (below + info) ** 2      # at most, of t^2 in b
    longest = math.sqrt(info / (below * (below + info)) - lost)
    cut = K * longest * psi(-reach)                    # where call prices of the law may exceed the normal ones
    edge, steep = PHI0 * math.exp(-0.5 * reach**2) / shorter, max(np.abs(np.diff(D)).max(), D[0], D[-1]) / d
    cut += (above - below) * fast * edge * (2 * reach / shorter * magnitude(D) + steep + 0.5 * K)   # left out of `change`
    cut += (above - below) * 2 * tail(reach) * magnitude(slope)
    prices(out, first, ratio, d, K, calls, -cut)
    slide(out, first, ratio, weights, D)
    if grid.extra.size == 0:
        return bend
    bell = np.empty(weights.size)                      # d/d(t^2) of call prices is half the density
    for l in range(bell.size):
        bell[l] = 0.5 * PHI0 / t * math.exp(-0.5 * (l * d / t) ** 2)
    kinks, moved, rate = slope_changes(D, d), np.zeros(out.size), 1 / (b + info) ** 2 - 1 / b**2    # of t^2 in b
    kinks[kinks.size // 2] += K
    slide(moved, first, ratio, bell, kinks)
    for i in range(out.size):
        change[i] = rate * moved[i]
    slide(change, first, ratio, weights, slope)
    drift = min(0.242 * np.ptp(slope) / shorter**2, 0.5 * magnitude(slope_changes(slope, d)) * (1 / d + PHI0 / shorter))
    fastest = 0.5 * fast**2 / shorter**2
    excess = max(fastest - 2 / above**3 + 2 / (above + info) ** 3, 0.0)     # of convex kinks; 0 unless t is short
    concave = negative(kinks) * (fastest + 2 / below**3 - 2 / (below + info) ** 3)
    bend[0] += fast * drift + 0.25 * PHI0 / shorter * (excess * negative(-kinks) + concave)
    return bend


@nb.njit(cache=True)
def slope_changes(D, d):
    """Of the lattice function D, 0 outside, from the node before its first to the one after its last."""
    out, rate = np.zeros(D.size + 2), 1 / d
    for i in range(D.size):
        out[i] = rate * D[i]
    for i in range(D.size):
        out[i + 1] -= 2 * rate * D[i]
    for i in range(D.size):
        out[i + 2] += rate * D[i]
    return out


@nb.njit(cache=True)
def negative(a):
    """Sum of the negative parts."""
    total = 0.0
    for v in a:
        total -= min(v, 0.0)
    return total


@nb.njit(cache=True)
def magnitude(a):
    """Largest absolute value, 0 of none."""
    top = 0.0
    for v in a:
        top = max(top, abs(v))
    return top
