"""The certified backward sweeps: an upper and a lower bound on the single-feature value (chapter "The dynamic program").

Scale and state as in lib.sweep; the steps from one level to those above it are those of lib.steps.
"""
import math

import numba as nb
import numpy as np

from lib.laws import PHI0, psi, tail
from lib.steps import nodes, step_lower, step_upper
from lib.sweep import UPPER, Grid, rounding, solve_point

AGAIN = 8               # times, at most, that a level is bounded with what came out before
CLOSE = 0.0015          # what a level may be wrong by for having stopped, largest curvatures of w times d^2


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
                np.zeros((2 if kind == UPPER else 1, size if slopes else 0)), np.zeros(J + 1))
    grid.D[ptr[J]:] = start
    if kind == UPPER:
        full_observation(grid, K)
    lowest = -read[1]                                  # worth forwarding from there on, in standard deviations
    for j in range(J - 1, -1, -1):
        sd_step = spacing[j] * math.sqrt(levels[j])
        lo = max(int(1.2 * lowest / sd_step) - 4, -half[j])
        while True:
            if kind == UPPER:
                found = solve_upper(grid, j, lo, q, group, gamma, K)
            else:
                found = solve_lower(grid, j, lo, q, group, gamma, K, below[j])
            if found >= 0 or lo == -half[j]:
                break
            lo = max(2 * lo, -half[j])
        lowest = min((lo + max(found, 0)) * sd_step, -0.05)
    return grid


@nb.njit(cache=True)
def full_observation(grid, K):
    """Fill `extra` of an upper grid: Q - D = K (E theta^- + m^+) and how fast it falls in b."""
    for j in range(grid.levels.size):
        n, root = -grid.first[0, j], math.sqrt(grid.levels[j])
        for i in range(n + 1):
            z = i * grid.spacing[j] * root
            for k in (grid.ptr[j] + n - i, grid.ptr[j] + n + i):
                grid.extra[0, k] = K / root * psi(z)
                grid.extra[1, k] = K * PHI0 * math.exp(-0.5 * z * z) / (2 * root**3)


@nb.njit(cache=True)
def predict(D, grid, j, lo, near):
    """Replace D at the nodes lo.. of level j by what the next three levels extrapolate to, where all are positive."""
    levels, spacing, last = grid.levels, grid.spacing, min(j + 3, grid.levels.size - 1)
    total, good = np.zeros(D.size), np.zeros(D.size, np.int64)
    for u in range(last, j, -1):
        weight = 1.0
        for v in range(j + 1, last + 1):
            weight *= (levels[j] - levels[v]) / (levels[u] - levels[v]) if v != u else 1.0
        known = nodes(grid, u, grid.D, int(round(spacing[j] / spacing[u])))
        skip = lo + known.size // 2                    # node lo + i is known[skip + i]
        for i in range(max(0, -skip), min(D.size, known.size - skip)):
            total[i] += weight * known[skip + i]
            good[i] += known[skip + i] > 0
            if u == j + 1 and good[i] == last - j:
                D[i] = min(max(total[i], known[skip + i]) + near, D[i])


@nb.njit(cache=True)
def solve_upper(grid, j, lo, q, group, gamma, K):
    """Fill the nodes of level j from those above it; returns how far from lo the lowest is worth forwarding at, or -1.

    Where an information ends below level j + 1, level j itself is needed: a prediction c serves, and is replaced by
    what comes out, T(c).  As T has modulus M < 1, T(c) + M/(1 - M) max(T(c) - c, 0) is an upper bound for every c.
    """
    b, d, n, beyond = grid.levels[j], grid.spacing[j], -grid.first[0, j] - lo + 1, 2 * tail(grid.read[1])
    own = grid.D[grid.ptr[j]:grid.ptr[j] + grid.first[1, j]]
    asked, ahead, hindsight = own[own.size - n:], np.empty((q.size, n)), np.empty(n)
    for i in range(n):
        hindsight[i] = K / math.sqrt(b) * psi((lo + i) * d * math.sqrt(b))
    short, stay = np.array([rounding(b + info, grid.levels)[0] <= j for info in q]), np.zeros(q.size, np.bool_)
    mass, near, own[:] = grid.probs[short[group]].sum(), CLOSE * K * d * d * math.sqrt(b), 0.0
    if mass > 0:                                       # at most: all that is left to the next level is told at once
        step_upper(asked, grid, K, gamma, lo, j, grid.levels[j + 1] - b, hindsight)
        for i in range(max(0, -lo), n):
            asked[i] -= K * (lo + i) * d
        predict(asked, grid, j, lo, near)
    for turn in range(AGAIN):
        before = own.copy()
        for g in range(q.size):
            if turn == 0 or short[g]:
                step_upper(ahead[g], grid, K, gamma, lo, j, q[g], hindsight)
        found = solve_nodes(grid, j, lo, group, gamma, K, ahead, stay)
        slack = gamma * mass * (1 + beyond) / (1 - gamma - gamma * beyond) * max((own - before).max(), 0.0)
        if mass == 0 or slack <= near and (before - own).max() <= 100 * near:
            break
    for i in range(own.size):
        own[i] += slack
    return found


@nb.njit(cache=True)
def solve_lower(grid, j, lo, q, group, gamma, K, below):
    """As solve_upper, for the lower bound, with the slopes in b and the curvature of the policy that it finds."""
    n, x, p = -grid.first[0, j] - lo + 1, grid.x, grid.probs
    ahead, change = np.empty((q.size, n)), np.empty((q.size, n))
    stay, curved = np.zeros(q.size, np.bool_), np.zeros(q.size)
    for g in range(q.size):
        ok, curved[g] = step_lower(ahead[g], change[g], grid, K, gamma, lo, j, q[g], below)
        stay[g] = not ok
    found = solve_nodes(grid, j, lo, group, gamma, K, ahead, stay)
    at = grid.ptr[j] - grid.first[0, j] + lo
    for i in range(n if grid.extra.size else 0):
        if grid.D[at + i] == 0:
            continue
        m, slope, bend, kept = (lo + i) * grid.spacing[j], 0.0, 0.0, gamma * (1 - p.sum())
        w = grid.D[at + i] + K * max(m, 0.0)
        for a in range(x.size):
            g = group[a]
            if stay[g] or x[a] * m + gamma * ahead[g, i] <= gamma * w:
                kept += p[a] * gamma
            else:
                slope += p[a] * gamma * change[g, i]
                bend += p[a] * gamma * curved[g]
        grid.extra[0, at + i] = slope / (1 - kept)
        grid.curvature[j] = max(grid.curvature[j], bend / (1 - kept))
    return found


@nb.njit(cache=True)
def solve_nodes(grid, j, lo, group, gamma, K, ahead, stay):
    """Solve Bellman's equation at the nodes lo.. of level j; returns how far from lo forwarding pays, or -1.

    ahead[g]: what follows an item of group g; where stay[g], such an item teaches nothing.
    """
    x, p, n, d = grid.x, grid.probs, ahead.shape[1], grid.spacing[j]
    A, B, w, at = np.empty(x.size), np.zeros(x.size), 0.0, grid.ptr[j] - grid.first[0, j] + lo
    for a in range(x.size):
        B[a] = gamma if stay[group[a]] else 0.0
    for i in range(n - 1, -1, -1):
        m = (lo + i) * d
        for a in range(x.size):
            A[a] = x[a] * m + (0.0 if stay[group[a]] else gamma * ahead[group[a], i])
        w = solve_point(w, gamma, 1 - p.sum(), p, A, B)
        if w <= 0 and m < 0:
            grid.D[grid.ptr[j]:at + i + 1] = 0.0
            return i + 1
        grid.D[at + i] = max(w - K * max(m, 0.0), 0.0)
    return -1
