"""The certified backward sweeps: an upper and a lower bound on the single-feature value (chapter "The dynamic program").

Scale and state as in lib.sweep: noise_sd = 1, net mean m, precision b, K = E[x]/(1 - gamma), and every level stores
D = w - K m^+ on a lattice -n d .. n d of the mean.  What an item leads to, w(., b + x^2), is bounded at the nodes from
the levels around b + x^2 and then averaged over the move of the mean:
  UPPER  log((w + K E theta^-) / sqrt(b)) is convex in b at fixed m: a chord between two levels; chords in m;
  LOWER  a policy made for a level also serves near it, with a slope in b and a curvature that is bounded; a law in m
         that the normal law dominates.
"""
import math

import numba as nb
import numpy as np

from lib.laws import hat_law, psi, shrunk, tail
from lib.sweep import LOWER, UPPER, Grid, learnable_sd, rounding, solve_point, thinned

PHI0 = 0.3989422804014327
AGAIN = 39              # times, at most, that a level is bounded with its own last bound


@nb.njit(cache=True)
def nodes(grid, level, values, stride):
    """`values` at every stride-th node of a level, m = 0 in the middle."""
    n = -grid.first[0, level]
    start = grid.ptr[level] + n % stride
    return values[start:grid.ptr[level] + 2 * n + 1:stride].copy()


@nb.njit(cache=True)
def ahead_upper(grid, K, b, known, coarse):
    """(D, d, level): at least w(., b) - K m^+ at nodes -n..n of spacing d, from the levels `known` and above.

    Where it is not bounded at b itself, level says at which level (more information is worth more).
    """
    levels, last = grid.levels, grid.levels.size - 1
    l, u = rounding(b, levels)
    if u > last or l == u or l < known:
        u = min(u, last)
        stride = thinned(grid.spacing[u], coarse)
        return nodes(grid, u, grid.D, stride), stride * grid.spacing[u], u if l < u <= last and l < known else -1
    ratio, stride = int(round(grid.spacing[l] / grid.spacing[u])), thinned(grid.spacing[l], coarse)
    below, log_l, log_u = (nodes(grid, l, grid.D, stride), nodes(grid, l, grid.extra, stride),
                           nodes(grid, u, grid.extra, ratio * stride))
    n, n_l, n_u = min(below.size, log_u.size) // 2, below.size // 2, log_u.size // 2
    s, d = 1 / math.sqrt(b), stride * grid.spacing[l]
    share = (b - levels[l]) / (levels[u] - levels[l])
    D = np.empty(2 * n + 1)
    for i in range(n + 1):
        known_part = K * s * psi(i * d / s)            # K E theta^- + K m^+
        for side in (-i, i):
            top = math.exp(share * log_u[n_u + side] + (1 - share) * log_l[n_l + side]) / s - known_part
            D[n + side] = max(min(top, below[n_l + side]), 0.0)
    return D, d, -1


@nb.njit(cache=True)
def ahead_lower(grid, b, known, coarse):
    """(D, slope, curvature, d): at most w(., b) - K m^+ at nodes -n..n, as a function of b near here.

    With beta the distance from b, w - K m^+ >= D + slope beta - curvature beta^2 within the reach of the level used.
    """
    levels, last = grid.levels, grid.levels.size - 1
    l, u = rounding(b, levels)
    if u > last:
        return np.zeros(3), np.zeros(3), 0.0, grid.spacing[last]
    rough = grid.extra.size == 0                        # no slopes were kept: the level above is worth less
    if not rough and l >= known and b - levels[l] < levels[u] - b:
        u = l
    stride = thinned(grid.spacing[u], coarse)
    D, d = nodes(grid, u, grid.D, stride), stride * grid.spacing[u]
    slope = np.zeros(D.size)
    beta, curvature = b - levels[u], 0.0
    if not rough:
        slope, curvature = nodes(grid, u, grid.extra, stride), grid.curvature[u]
        for i in range(D.size):
            D[i] += slope[i] * beta - curvature * beta * beta
            slope[i] -= 2 * curvature * beta
            if D[i] <= 0:
                D[i] = slope[i] = 0.0
    return D, slope, curvature, d


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
def outside(edge, b, gamma, K):
    """At most w - K m^+ at precision b where |m| > edge: all answers are seen for free until the discount is 1e-16."""
    s = learnable_sd(b, gamma)
    return K * (s * psi(-edge / s) + 1e-16 / math.sqrt(b))


@nb.njit(cache=True)
def step_upper(out, grid, K, gamma, first, d, b, info, known, hindsight):
    """out[i] >= E w((first + i) d + t Z, b + info), t^2 = 1/b - 1/(b + info), and at most hindsight[i]."""
    reach = grid.read[1]
    D, d_next, level = ahead_upper(grid, K, b + info, known, 0.0)
    b_next = grid.levels[level] if level >= 0 else b + info
    t = math.sqrt(1 / b - 1 / b_next)
    weights, calls = hat_law(t, d_next, reach)
    weights, ratio = weights[weights.size // 2:], int(round(d / d_next))
    n, R, thin = D.size // 2, weights.size - 1, tail(reach)
    cut, most = outside(n * d_next, b_next, gamma, K), np.empty(n + 1)      # most: of D from node l outwards
    for l in range(n, -1, -1):
        most[l] = max(D[n - l], D[n + l], most[l + 1] if l < n else 0.0)
    for i in range(out.size):
        l = abs(first + i) * ratio
        beyond = 2 * thin * most[min(max(R - l, 0), n)]     # of the law
        out[i] = K * (calls[min(l, calls.size - 1)] + max((first + i) * d, 0.0)) + cut + beyond
    slide(out, first, ratio, weights, D)
    for i in range(out.size):
        out[i] = min(out[i], hindsight[i])


@nb.njit(cache=True)
def step_lower(out, change, grid, K, gamma, first, d, b, info, known, below, above):
    """out[i] <= E w((first + i) d + t Z, b + info) with its derivative in b, `change`; returns (ok, curvature).

    The three describe a lower bound for all precisions from `below` to `above`; without ok nothing is learned.
    """
    reach = grid.read[1]
    D, slope, curvature, d_next = ahead_lower(grid, b + info, known, 0.0)
    t = math.sqrt(1 / b - 1 / (b + info))
    short = math.sqrt(1 / above - 1 / (above + info))
    shorter = shrunk(short, d_next, reach)
    if not shorter > 0:
        return False, 0.0
    t = math.sqrt(t * t - short * short + shorter * shorter)
    weights, calls = hat_law(t, d_next, reach)
    weights, ratio = weights[weights.size // 2:], int(round(d / d_next))
    fast = 1 / below**2 - 1 / (below + info) ** 2      # at most, of t^2 in b
    cut = K * t * psi(-reach)                          # where call prices of the law may exceed the normal ones
    cut += (above - below) * fast * outside(0.0, b, gamma, K) * PHI0 * reach * math.exp(-0.5 * reach**2) / shorter**2
    for i in range(out.size):
        l = abs(first + i) * ratio
        out[i] = K * ((calls[l] if l < calls.size else 0.0) + max((first + i) * d, 0.0)) - cut
        change[i] = 0.0
    slide(out, first, ratio, weights, D)
    if grid.extra.size == 0:
        return True, 0.0
    slide(change, first, ratio, weights, slope)
    bell = np.empty(weights.size)                      # d/d(t^2) of call prices is half the density
    for l in range(bell.size):
        bell[l] = 0.5 * PHI0 / t * math.exp(-0.5 * (l * d_next / t) ** 2)
    n = D.size // 2
    kinks = np.empty(D.size)
    for i in range(D.size):
        kinks[i] = ((D[i - 1] if i > 0 else 0.0) - 2 * D[i] + (D[i + 1] if i < 2 * n else 0.0)) / d_next
    kinks[n] += K
    turn = np.abs(kinks).sum() + (D[0] + D[2 * n]) / d_next
    moved = np.zeros(out.size)
    slide(moved, first, ratio, bell, kinks)
    rate = 1 / (b + info) ** 2 - 1 / b**2              # of t^2 in b
    for i in range(out.size):
        change[i] += rate * moved[i]
    bent = 2 / below**3 - 2 / (below + info) ** 3
    spread = slope.max() - slope.min()
    return True, curvature + 0.5 * (0.5 * PHI0 * bent * turn / shorter + 0.25 * PHI0 * fast**2 * turn / shorter**3
                                    + 0.484 * fast * spread / shorter**2)


@nb.njit(cache=True, nogil=True)
def sweep(kind, x, q, p, group, gamma, levels, spacing, half, start, below, read, slopes):
    """One certified sweep over `levels` (ascending); atom i has magnitude x[i], probability p[i], information q[group[i]].

    Level j has the nodes -half[j]..half[j]; `start` (2 half[-1] + 1,) are the last level's D; level j is asked about
    precisions from below[j] on.  Returns a Grid.
    """
    J, K = levels.size - 1, np.sum(x * p) / (1 - gamma)
    first, ptr = np.empty((2, J + 1), np.int64), np.zeros(J + 1, np.int64)
    first[0], first[1] = -half, 2 * half + 1
    for j in range(J):
        ptr[j + 1] = ptr[j] + first[1, j]
    size = ptr[J] + first[1, J]
    grid = Grid(levels, spacing, first, ptr, np.zeros(size), x, q[group], p, read,
                np.zeros(size if slopes else 0), np.zeros(J + 1))
    grid.D[ptr[J]:] = start
    if kind == UPPER:
        logarithms(grid, K, J)
    z_low = -read[1]
    for j in range(J - 1, -1, -1):
        sd_step = spacing[j] * math.sqrt(levels[j])
        lo = max(int(1.2 * z_low / sd_step) - 4, -half[j])
        while not solve_level(kind, grid, j, lo, q, group, gamma, K, below[j]) and lo > -half[j]:
            lo = max(2 * lo, -half[j])
        if kind == UPPER:
            logarithms(grid, K, j)
        worth = np.nonzero(grid.D[ptr[j]:ptr[j] + first[1, j]] > 0)[0]
        lowest = worth[0] - half[j] if worth.size else half[j]
        z_low = min(lowest * sd_step, -0.05)
    return grid


@nb.njit(cache=True)
def solve_level(kind, grid, j, lo, q, group, gamma, K, below):
    """Fill the nodes lo.. of level j from the levels above it; False if the lowest is still worth forwarding at.

    An upper bound is repeated while that pays where an information ends below level j + 1: it then takes level j's own last
    bound for what lies in between.
    """
    b, d, n = grid.levels[j], grid.spacing[j], -grid.first[0, j] - lo + 1
    ahead, change, hindsight = np.empty((q.size, n)), np.empty((q.size, n)), np.empty(n)
    stay, curved = np.zeros(q.size, np.bool_), np.zeros(q.size)
    if kind == LOWER:
        for g in range(q.size):
            ok, curved[g] = step_lower(ahead[g], change[g], grid, K, gamma, lo, d, b, q[g], j + 1,
                                       below, 0.5 * (b + grid.levels[j + 1]))
            stay[g] = not ok
        return level_values(kind, grid, j, lo, group, gamma, K, ahead, change, stay, curved)
    for i in range(n):
        hindsight[i] = K / math.sqrt(b) * psi((lo + i) * d * math.sqrt(b))
    for g in range(q.size):
        step_upper(ahead[g], grid, K, gamma, lo, d, b, q[g], j + 1, hindsight)
    ended = level_values(kind, grid, j, lo, group, gamma, K, ahead, change, stay, curved)
    fall, own = 0.0, grid.D[grid.ptr[j]:grid.ptr[j] + grid.first[1, j]]
    short = np.array([rounding(b + info, grid.levels)[0] <= j for info in q])
    for _ in range(AGAIN if (ended or n == own.size) and short.any() else 0):
        logarithms(grid, K, j)
        before = own.copy()
        for g in np.nonzero(short)[0]:
            step_upper(ahead[g], grid, K, gamma, lo, d, b, q[g], j, hindsight)
        ended = level_values(kind, grid, j, lo, group, gamma, K, ahead, change, stay, curved)
        less = (before - own).max()
        fall = max(fall, less)
        if less <= 0.25 * fall:
            break
    return ended


@nb.njit(cache=True)
def logarithms(grid, K, j):
    """Fill `extra` of level j: log((w + K E theta^-) / sqrt(b))."""
    n, s = -grid.first[0, j], 1 / math.sqrt(grid.levels[j])
    for i in range(n + 1):
        part = K * s * psi(i * grid.spacing[j] / s)
        for side in (-i, i):
            k = grid.ptr[j] + n + side
            grid.extra[k] = math.log((grid.D[k] + part) * s)


@nb.njit(cache=True)
def level_values(kind, grid, j, lo, group, gamma, K, ahead, change, stay, curved):
    """Solve Bellman's equation at the nodes lo.. of level j; False if the lowest is still worth forwarding at."""
    x, p, n, d = grid.x, grid.probs, ahead.shape[1], grid.spacing[j]
    A, B, idle = np.empty(x.size), np.zeros(x.size), 1 - p.sum()
    at = grid.ptr[j] - grid.first[0, j] + lo
    w = 0.0
    for i in range(n - 1, -1, -1):
        m = (lo + i) * d
        for a in range(x.size):
            g = group[a]
            A[a] = x[a] * m if stay[g] else x[a] * m + gamma * ahead[g, i]
            B[a] = gamma if stay[g] else 0.0
        w = solve_point(w, gamma, idle, p, A, B)
        if w <= 0 and m < 0:
            grid.D[at:at + i + 1] = 0.0
            return True
        grid.D[at + i] = max(w - K * max(m, 0.0), 0.0)
        if kind == UPPER or grid.extra.size == 0 or grid.D[at + i] == 0:
            continue
        slope, bend, kept = 0.0, 0.0, gamma * idle     # of the policy that decides as at level j
        for a in range(x.size):
            g = group[a]
            if stay[g] or A[a] <= gamma * w:
                kept += p[a] * gamma
            else:
                slope += p[a] * gamma * change[g, i]
                bend += p[a] * gamma * curved[g]
        grid.extra[at + i] = slope / (1 - kept)
        grid.curvature[j] = max(grid.curvature[j], bend / (1 - kept))
    return False
