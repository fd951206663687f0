"""Reading a swept Grid at any mean and precision (kernels of lib.dp), in table units.

One Bellman step from the levels around the point's successors, with the laws of the sweep on a lattice that need not
contain the point: the answer at any (m, b) is as sharp as on the grid.
"""
import math

import numba as nb
import numpy as np

from lib.dp.bellman import solve_point
from lib.dp.best import level_atoms
from lib.dp.certified import ahead_lower, ahead_upper, outside
from lib.dp.grid import UPPER, rounding, thinned
from lib.dp.quadrature import WIDTH, hat, shrunk
from lib.normal import excess, psi, tail


@nb.njit(cache=True)
def chords(D, first, d, m, t, reach):
    """E D(m + t Z), D linear between the nodes first d, (first + 1) d, ... and 0 outside, tails cut at `reach`."""
    total, h = 0.0, d / t
    lo, hi = int(math.floor((m - reach * t) / d)) - 1, int(math.ceil((m + reach * t) / d)) + 1
    for i in range(max(lo, first), min(hi, first + D.size - 1) + 1):
        total += hat((i * d - m) / t, h) * D[i - first]
    return total


@nb.njit(cache=True)
def smoothed(kind, D, first, d, edge, K, gamma, m, t, b, reach):
    """Bound on E w(m + t Z, b) from D = w - K m^+ at the nodes first d, ... of a lattice that ends at -edge and edge.

    A lower bound needs a lattice fine enough for t, and is nan otherwise.
    """
    if kind == UPPER:
        cut = outside(edge, b, gamma, K) + 2 * tail(reach) * outside(0.0, b, gamma, K)
        return K * excess(m, t) + cut + chords(D, first, d, m, t, reach)
    less = shrunk(t, d, reach)
    if not less > 0:
        return np.nan
    return K * (excess(m, less) - less * psi(-reach)) + chords(D, first, d, m, less, reach)


@nb.njit(cache=True)
def bound(kind, grid, K, gamma, idle, b, ms, out):
    """Upper or lower values at the points (ms[i], b): one certified Bellman step, all points share its nodes."""
    x, q, p, reach = grid.x, grid.info, grid.probs, grid.read[1]
    A, B = np.empty((ms.size, x.size)), np.zeros((ms.size, x.size))
    for a in range(x.size):
        if a > 0 and q[a] == q[a - 1]:
            A[:, a] = A[:, a - 1] + (x[a] - x[a - 1]) * ms
            B[:, a] = B[:, a - 1]
            continue
        b_next = b + q[a]
        t = math.sqrt(q[a] / (b * b_next))
        if kind == UPPER:
            D, d = ahead_upper(grid, b_next, grid.read[0] * t)
        else:
            D, slope, bend, d = ahead_lower(grid, b_next, b_next, b_next, 1, grid.read[0] * t)
        for i in range(ms.size):
            ahead = smoothed(kind, D, -(D.size // 2), d, D.size // 2 * d, K, gamma, ms[i], t, b_next, reach)
            if np.isnan(ahead):
                A[i, a], B[i, a] = x[a] * ms[i], gamma
            else:
                A[i, a] = x[a] * ms[i] + gamma * ahead
    for i in range(ms.size):
        out[i] = solve_point(max(ms[i], 0.0) * K, gamma, idle, p, A[i], B[i])


@nb.njit(cache=True, nogil=True)
def bounds(kind, grid, gamma, m, b):
    """(n,) the upper or lower value at the points (m, b); b may be infinite."""
    K, idle, reach = np.sum(grid.x * grid.probs) / (1 - gamma), 1 - grid.probs.sum(), grid.read[1]
    out = np.empty(m.size)
    i = 0
    while i < m.size:
        j = i + 1
        while j < m.size and b[j] == b[i] and j - i < 64:      # neighbours of one precision share the work
            j += 1
        s = 1 / math.sqrt(b[i])
        if s > 0:
            bound(kind, grid, K, gamma, idle, b[i], m[i:j], out[i:j])
        for k in range(i, j):
            commit = K * max(m[k], 0.0)
            hindsight = commit + K * s * psi(-abs(m[k]) / s) if s > 0 else commit
            if s == 0 or abs(m[k]) > WIDTH * s:
                out[k] = hindsight if kind == UPPER else commit
            else:
                out[k] = min(max(out[k], commit), hindsight)
        i = j
    return out


@nb.njit(cache=True)
def step_value(grid, u, m, t, K):
    """E w(m + X, level u), the best value, X of variance t^2 on the lattice of level u."""
    stride = thinned(grid.spacing[u], grid.read[0] * t)
    first, n = grid.first[0, u], grid.first[1, u]
    skip, d = -first % stride, stride * grid.spacing[u]
    lo, hi = int(math.floor((m - WIDTH * t) / d)) - 1, int(math.ceil((m + WIDTH * t) / d)) + 1
    if t >= d:
        t = math.sqrt(t * t - d * d / 6)
    total, h = K * (max(m, 0.0) + t * psi(-abs(m) / t)), d / t
    for i in range(max(lo, (first + skip) // stride), min(hi + 1, (first + n + stride - 1) // stride)):
        k = i * stride - first
        if 0 <= k < n:
            total += hat((i * d - m) / t, h) * grid.D[grid.ptr[u] + k]
    return total


@nb.njit(cache=True)
def step_to(grid, u, m, b, reach, K):
    """E w(m + X, level u) from precision b; nan where level u is not above b, `reach` away where it is off the grid."""
    last = grid.levels.size - 1
    if u > last:
        return step_value(grid, last, m, math.sqrt(reach / (b * (b + reach))), K)
    if u < 0 or grid.levels[u] <= b * (1 + 1e-14):
        return np.nan
    return step_value(grid, u, m, math.sqrt(1 / b - 1 / grid.levels[u]), K)


@nb.njit(cache=True)
def point(grid, atoms, gamma, idle, reach, m, b, K):
    """The best value at (m, b) by one Bellman step over atoms = (x, p, key, share) as in sweep.level_values."""
    x, p, key, share = atoms
    A, B = x * m, np.zeros(x.size)
    now, upper, lower = -2, 0.0, 0.0
    for i in range(x.size):
        if key[i] != now:
            now = key[i]
            upper, lower = step_to(grid, now, m, b, reach, K), step_to(grid, now - 1, m, b, reach, K)
        for phi, part in ((upper, share[i]), (lower, 1 - share[i])):
            if part > 0 and np.isnan(phi):
                B[i] += gamma * part
            elif part > 0:
                A[i] += gamma * part * phi
    return solve_point(max(m, 0.0) * K, gamma, idle, p, A, B)


@nb.njit(cache=True, nogil=True)
def values(grid, gamma, m, b):
    """(n,) the best value at the points (m, b); b may be infinite."""
    x, q, p = grid.x, grid.info, grid.probs
    K, idle, reach = np.sum(x * p) / (1 - gamma), 1 - p.sum(), q.max()
    out = np.empty(m.size)
    for n in range(m.size):
        s = 1 / math.sqrt(b[n])
        commit, hindsight = K * max(m[n], 0.0), K * s * psi(-abs(m[n]) / s) if s > 0 else 0.0
        out[n] = commit
        if abs(m[n]) < WIDTH * s:
            w = point(grid, level_atoms(b[n], x, q, p, grid.levels), gamma, idle, reach, m[n], b[n], K)
            out[n] = min(max(w, commit), commit + hindsight)
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
                out[n] = step_to(grid, up, m[n], b[n], info, K)
                if np.isnan(out[n]):
                    out[n] = step_value(grid, up, m[n], math.sqrt(info / (b[n] * (b[n] + info))), K)
            else:
                share = (b[n] + info - grid.levels[down]) / (grid.levels[up] - grid.levels[down])
                out[n] = (share * step_to(grid, up, m[n], b[n], info, K)
                          + (1 - share) * step_to(grid, down, m[n], b[n], info, K))
    return out
