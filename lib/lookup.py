"""Reading a swept Grid at any mean and precision (kernels of lib.dp), in table units.

One Bellman step from the levels above the point, with the three laws of lib.sweep on a lattice that need not contain
the point: the answer at any (m, b) is as sharp as on the grid.
"""
import math

import numba as nb
import numpy as np

from lib.laws import FINE, WIDTH, cell_line, hull, psi
from lib.sweep import GUESS, LOWER, UPPER, level_atoms, rounding, solve_point


@nb.njit(cache=True)
def hat(z, h):
    """Weight of a node at distance z from the mean, spacing h, both in steps: E of its hat function."""
    z = abs(z)
    if h < FINE:
        z2 = z * z
        return h * 0.3989422804014327 * math.exp(-0.5 * z2) * (
            1 + h * h * ((z2 - 1) / 12 + h * h * (z2 * z2 - 6 * z2 + 3) / 360))
    return max(0.0, psi(-z - h) - 2 * psi(-z) + (psi(-z + h) if z > h else psi(z - h) + h - z)) / h


@nb.njit(cache=True)
def lower_calls(lo, n, d, m, t):
    """Call prices, at the nodes (lo + i) d - m, of a lattice law that N(0, t^2) dominates; nan where there is none."""
    G = np.empty(n)
    before = np.inf
    for i in range(n - 1):
        left, right = cell_line((lo + i) * d - m, d, t)
        if np.isnan(left):
            return np.full(n, np.nan)
        G[i], before = min(before, left), right
    G[n - 1] = before
    hull(G)
    return G


@nb.njit(cache=True)
def step_value(kind, grid, u, m, t, K):
    """E w(m + X, level u), N(0, t^2) replaced by the law of `kind` on the lattice of level u; nan where it has none."""
    d, stride = grid.spacing[u], 1
    while 2 * stride * d <= grid.read[0] * t:      # finer than needed: it is thinned out
        stride *= 2
    first, n = grid.first[0, u], grid.first[1, u]
    skip = -first % stride
    d *= stride
    lo, hi = int(math.floor((m - WIDTH * t) / d)) - 1, int(math.ceil((m + WIDTH * t) / d)) + 1
    h = d / t
    if kind == LOWER and h >= FINE:
        G = lower_calls(lo, hi - lo + 1, d, m, t)
        if np.isnan(G[0]):
            return np.nan
        total = K * (G[-lo] if lo <= 0 <= hi else max(m, 0.0))
        for i in range(max(lo + 1, (first + skip) // stride), min(hi, (first + n + stride - 1) // stride)):
            k = i * stride - first
            if 0 <= k < n:
                total += max(0.0, G[i - lo - 1] - 2 * G[i - lo] + G[i - lo + 1]) / d * grid.D[grid.ptr[u] + k]
        return total
    if kind == LOWER:
        t = math.sqrt(t * t - 0.25 * d * d * math.exp(WIDTH * h * 1.02) * 1.01)
    if kind == GUESS and t >= d:
        t = math.sqrt(t * t - d * d / 6)
    total, h = K * (max(m, 0.0) + t * psi(-abs(m) / t)), d / t
    for i in range(max(lo, (first + skip) // stride), min(hi + 1, (first + n + stride - 1) // stride)):
        k = i * stride - first
        if 0 <= k < n:
            total += hat((i * d - m) / t, h) * grid.D[grid.ptr[u] + k]
    return total


@nb.njit(cache=True)
def step_to(kind, grid, u, m, b, reach, K):
    """E w(m + X, level u) from precision b; nan where level u is not above b, `reach` away where it is off the grid."""
    last = grid.levels.size - 1
    if u > last:
        return step_value(kind, grid, last, m, math.sqrt(1 / b - 1 / (b + reach)), K)
    if u < 0 or grid.levels[u] <= b * (1 + 1e-14):
        return np.nan
    return step_value(kind, grid, u, m, math.sqrt(1 / b - 1 / grid.levels[u]), K)


@nb.njit(cache=True)
def point(kind, grid, atoms, gamma, idle, reach, m, b, K):
    """w at (m, b) by one Bellman step over atoms = (x, p, key, share) as in sweep.level_values."""
    x, p, key, share = atoms
    A, B = x * m, np.zeros(x.size)
    now, upper, lower = -2, 0.0, 0.0
    for i in range(x.size):
        if key[i] != now:
            now = key[i]
            upper = step_to(kind, grid, now, m, b, reach, K)
            lower = step_to(kind, grid, now - 1, m, b, reach, K) if kind == GUESS else 0.0
        for phi, part in ((upper, share[i]), (lower, 1 - share[i])):
            if part > 0 and np.isnan(phi):
                B[i] += gamma * part
            elif part > 0:
                A[i] += gamma * part * phi
    return solve_point(max(m, 0.0) * K, gamma, idle, p, A, B)


@nb.njit(cache=True, nogil=True)
def values(kind, grid, gamma, m, b, cells):
    """(n,) the upper, lower or best value at the points (m, b); b may be infinite."""
    x, q, p = grid.x, grid.info, grid.probs
    K, idle, reach = np.sum(x * p) / (1 - gamma), 1 - p.sum(), q.max()
    out = np.empty(m.size)
    for n in range(m.size):
        s = 1 / math.sqrt(b[n])
        commit, hindsight = K * max(m[n], 0.0), K * s * psi(-abs(m[n]) / s) if s > 0 else 0.0
        out[n] = commit
        if abs(m[n]) < WIDTH * s:
            atoms = level_atoms(kind, b[n], x, q, p, grid.levels, cells)
            w = point(kind, grid, atoms, gamma, idle, reach, m[n], b[n], K)
            out[n] = min(max(w, commit), commit + hindsight)
        elif kind == UPPER:
            out[n] = commit + hindsight
    return out


@nb.njit(cache=True, nogil=True)
def expected(grid, K, m, b, info):
    """(n,) best guess of E w(m + t Z, b + info), t^2 = 1/b - 1/(b + info)."""
    out = np.empty(m.size)
    for n in range(m.size):
        out[n] = K * max(m[n], 0.0)
        if abs(m[n]) < 4 * WIDTH / math.sqrt(b[n]):
            down, up = rounding(b[n] + info, grid.levels)
            up = min(up, grid.levels.size - 1) if down < up else up
            if down == up or grid.levels[down] <= b[n]:
                out[n] = step_to(GUESS, grid, up, m[n], b[n], info, K)
                if np.isnan(out[n]):
                    out[n] = step_value(GUESS, grid, up, m[n], math.sqrt(1 / b[n] - 1 / (b[n] + info)), K)
            else:
                share = (b[n] + info - grid.levels[down]) / (grid.levels[up] - grid.levels[down])
                out[n] = (share * step_to(GUESS, grid, up, m[n], b[n], info, K)
                          + (1 - share) * step_to(GUESS, grid, down, m[n], b[n], info, K))
    return out
