"""The certified backward sweeps: an upper and a lower bound on the single-feature value (chapter "The dynamic program").

Scale and state as in lib.sweep; the steps from one level to those above it are those of lib.steps.
"""
import math

import numba as nb
import numpy as np

from lib.laws import PHI0, ROOT, psi, tail
from lib.levels import arrival, ladder, lattices
from lib.steps import step_lower, step_upper
from lib.sweep import UPPER, Grid, learnable_sd, nodes, rounding, solve_point
from lib.tangents import asked, excess, farthest

AGAIN = 8               # times, at most, that a level is bounded with what came out before
MORE = 1.5              # how much deeper than it seems to need a kink is made, for what it does to the level below
CLOSE = 0.0015          # what a level may be wrong by for having stopped, largest curvatures of w times d^2


@nb.njit(cache=True)
def full_observation_edge(count, d, b, mean_x, mass, gamma):
    """What full observation earns above commitment at m = -count d .. count d: a sum over items that are not of size 0.

    E[x] / mass a/gamma sum_n a^n E (m_n^+ - m^+), a the discount from one to the next.  Each tells at most 1, and n is
    rounded up to some 25 values, so the sum errs upward.
    """
    a = arrival(gamma, mass)
    out, most, n = np.zeros(2 * count + 1), 45 / -math.log(a) + 1, 0
    while n <= most:
        first, n = n + 1, max(n + 1, math.ceil(n * most ** (1 / 40)))
        last = n > most
        weight, sd = (a**first - (0.0 if last else a ** (n + 1))) / (1 - a), math.sqrt(1 / b if last else n / (b * (b + n)))
        for l in range(count + 1):
            if l * d > 9 * sd:                         # psi is 0 to the last digit from there on
                break
            out[count + l] += weight * sd * psi(-l * d / sd)
    for l in range(count + 1):
        out[count + l] *= mean_x / mass * a / gamma
        out[count - l] = out[count + l]
    return out


@nb.njit(cache=True)
def blank(kind, x, info, p, gamma, b0, fineness):
    """A Grid without values: level j has the nodes -half[j]..half[j]."""
    levels = ladder(b0, info, p, gamma, fineness)
    spacing = lattices(levels, info, p, gamma, fineness, True)
    first, ptr, size = np.empty((2, levels.size), np.int64), np.empty(levels.size, np.int64), 0
    for j in range(levels.size):
        half = int(math.ceil(fineness.reach * learnable_sd(levels[j], gamma) / spacing[j])) + 1
        first[0, j], first[1, j], ptr[j] = -half, 2 * half + 1, size
        size += first[1, j]
    extra = np.zeros((2 if kind == UPPER else 1, size if kind == UPPER or fineness.unit > 0 else 0))
    return Grid(levels, spacing, first, ptr, np.zeros(size), x, info, p, np.array([fineness.read, fineness.reach]), extra,
                np.zeros((3, levels.size)))


@nb.njit(cache=True, nogil=True)
def sweep(kind, x, info, p, gamma, b0, fineness):
    """One certified sweep from precision b0 on, over atoms with ascending information: a Grid."""
    grid, K = blank(kind, x, info, p, gamma, b0, fineness), np.sum(x * p) / (1 - gamma)
    J, lowest, group = grid.levels.size - 1, -fineness.reach, np.zeros(info.size, np.int64)
    for i in range(1, info.size):
        group[i] = group[i - 1] + (info[i] > info[i - 1])
    q = np.empty(group[-1] + 1)
    q[group] = info
    if kind == UPPER:
        grid.D[grid.ptr[J]:] = full_observation_edge(-grid.first[0, J], grid.spacing[J], grid.levels[J], np.sum(x * p),
                                                     p.sum(), gamma)
        full_observation(grid, K)
    for j in range(J - 1, -1, -1):                     # worth forwarding from `lowest` standard deviations on
        sd_step = grid.spacing[j] * math.sqrt(grid.levels[j])
        lo = max(int(1.2 * lowest / sd_step) - 4, grid.first[0, j])
        while True:
            if kind == UPPER:
                found = solve_upper(grid, j, lo, q, group, gamma, K)
            else:
                found = solve_lower(grid, j, lo, q, group, gamma, K)
            if found >= 0 or lo == grid.first[0, j]:
                break
            lo = max(2 * lo, grid.first[0, j])
        lowest = min((lo + max(found, 0)) * sd_step, -0.05)
    return grid


@nb.njit(cache=True)
def full_observation(grid, K):
    """Fill `extra` of an upper grid: Q - D = K (E theta^- + m^+) and how fast it falls in b."""
    for j in range(grid.levels.size):
        n, root = -grid.first[0, j], math.sqrt(grid.levels[j])
        for i in range(n + 1):
            z = i * grid.spacing[j] * root
            density = PHI0 * math.exp(-0.5 * z * z)
            for k in (grid.ptr[j] + n - i, grid.ptr[j] + n + i):
                grid.extra[0, k] = K / root * (0.5 * z * math.erfc(-z * ROOT) + density)
                grid.extra[1, k] = K * density / (2 * root**3)


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
    end = grid.ptr[j] + grid.first[1, j]
    own, hindsight = grid.D[grid.ptr[j]:end], grid.extra[0, end - n:end].copy()
    here, ahead = own[own.size - n:], np.empty((q.size, n))
    for i in range(-lo):
        hindsight[i] = max(hindsight[i] + K * (lo + i) * d, 0.0)
    short, stay, mass = np.zeros(q.size, np.bool_), np.zeros(q.size, np.bool_), 0.0
    for a in range(group.size):
        short[group[a]] = rounding(b + q[group[a]], grid.levels)[0] <= j
        mass += grid.probs[a] if short[group[a]] else 0.0
    near, own[:] = CLOSE * K * d * d * math.sqrt(b), 0.0
    if mass > 0:                                       # at most: all that is left to the next level is told at once
        step_upper(here, grid, K, gamma, lo, j, grid.levels[j + 1] - b, hindsight)
        for i in range(max(0, -lo), n):
            here[i] -= K * (lo + i) * d
        predict(here, grid, j, lo, near)
    for turn in range(AGAIN):
        before = own.copy()
        for g in range(q.size):
            if turn == 0 or short[g]:
                step_upper(ahead[g], grid, K, gamma, lo, j, q[g], hindsight)
        found = solve_nodes(grid, j, lo, group, gamma, K, ahead, False)
        slack = gamma * mass * (1 + beyond) / (1 - gamma - gamma * beyond) * max((own - before).max(), 0.0)
        if mass == 0 or slack <= near and (before - own).max() <= 100 * near:
            break
    for i in range(own.size):
        own[i] += slack
    return found


@nb.njit(cache=True)
def solve_lower(grid, j, lo, q, group, gamma, K):
    """As solve_upper, for the lower bound, with the slopes in b of the policy that it finds, and their bend.

    Where level j + 1 is used for precisions that level j is made for, it must not exceed level j, and the other way
    round: the kink of the one that does is deepened.  Short items of level j itself go by level j + 1 there: after its
    kink was deepened they are looked at again, and what it still exceeds by is paid for.
    """
    n, last, (low, high) = -grid.first[0, j] - lo + 1, grid.levels.size - 1, asked(grid, j, q[0])
    ahead, change, bends = np.empty((q.size, n)), np.empty((q.size, n)), np.zeros((q.size, 3))
    short, over, mass = low + q < grid.levels[j], 0.0, 0.0
    gap = grid.levels[j + 1] - grid.levels[j]
    for turn in range(AGAIN):
        for g in range(q.size):
            if turn == 0 or short[g]:
                bends[g] = step_lower(ahead[g], change[g], grid, K, gamma, lo, j, q[g], low, high)
        found = solve_nodes(grid, j, lo, group, gamma, K, ahead, True)
        if grid.extra.size == 0 or j == 0 or found < 0 and lo > grid.first[0, j]:
            return found
        mass = fill_tangents(grid, j, lo, group, gamma, K, ahead, change, bends, short)
        if j + 1 == last:
            return found
        over = excess(grid, j + 1, j, low, grid.levels[j])
        if over == 0 or mass == 0:
            break
        grid.bend[2, j + 1] += MORE * over / gap
    if over > 0:
        for k in range(grid.ptr[j], grid.ptr[j + 1]):
            grid.D[k] = max(grid.D[k] - gamma * mass / (1 - gamma) * over, 0.0)
            grid.extra[0, k] *= grid.D[k] > 0
        grid.bend[2, j + 1] += excess(grid, j + 1, j, low, grid.levels[j]) / gap
    grid.bend[1, j] += excess(grid, j, j + 1, grid.levels[j + 1], farthest(grid.levels, j)) / gap
    return found


@nb.njit(cache=True)
def fill_tangents(grid, j, lo, group, gamma, K, ahead, change, bends, short):
    """Fill the slopes and the bend of level j: what a node forwards at b, it forwards at precisions near b as well.

    Returns the largest probability that a node learns from a short item.
    """
    x, p, at, most = grid.x, grid.probs, grid.ptr[j] - grid.first[0, j] + lo, 0.0
    grid.extra[0, grid.ptr[j]:grid.ptr[j + 1]], grid.bend[:, j] = 0.0, 0.0
    for i in range(ahead.shape[1]):
        if grid.D[at + i] == 0:
            continue
        m, slope, kept, mass, bend = (lo + i) * grid.spacing[j], 0.0, gamma * (1 - p.sum()), 0.0, np.zeros(3)
        w = grid.D[at + i] + K * max(m, 0.0)
        for a in range(x.size):
            g = group[a]
            if x[a] * m + gamma * ahead[g, i] <= gamma * w:
                kept += p[a] * gamma
            else:
                mass += p[a] if short[g] else 0.0
                slope += p[a] * gamma * change[g, i]
                for c in range(3):
                    bend[c] += p[a] * gamma * bends[g, c]
        grid.extra[0, at + i] = slope / (1 - kept)
        for c in range(3):
            grid.bend[c, j] = max(grid.bend[c, j], bend[c] / (1 - kept))
        most = max(most, mass)
    return most


@nb.njit(cache=True)
def solve_nodes(grid, j, lo, group, gamma, K, ahead, ignore):
    """Solve Bellman's equation at the nodes lo.. of level j; returns how far from lo forwarding pays, or -1.

    ahead[g, i]: what follows an item of group g at node lo + i.  With `ignore` its answer is not looked at where that
    is worth less than to stay, and there ahead becomes -inf.
    """
    x, p, n, d = grid.x, grid.probs, ahead.shape[1], grid.spacing[j]
    A, B, w, at = np.empty(x.size), np.zeros(x.size), 0.0, grid.ptr[j] - grid.first[0, j] + lo
    for i in range(n - 1, -1, -1):
        m, again = (lo + i) * d, True
        for a in range(x.size):
            A[a], B[a] = x[a] * m + gamma * ahead[group[a], i], 0.0
        while again:
            w, again = solve_point(w, gamma, 1 - p.sum(), p, A, B), False
            for a in range(x.size if ignore else 0):
                if B[a] == 0 and ahead[group[a], i] < w:
                    A[a], B[a], again = x[a] * m, gamma, True
        for a in range(x.size if ignore else 0):
            if B[a] > 0:
                ahead[group[a], i] = -np.inf
        if w <= 0 and m < 0:
            grid.D[grid.ptr[j]:at + i + 1] = 0.0
            return i + 1
        grid.D[at + i] = max(w - K * max(m, 0.0), 0.0)
    return -1
