"""The backward sweep of the best value: numba kernels of the single-feature dynamic program.

Scale noise_sd = 1, largest information per item 1.  State: net mean m and precision b.
w(m, b) is the value before the magnitude is seen; every level stores D = w - K m^+ on a lattice
m = i d (i an integer, d halving as b grows, so that lattices are nested), K = E[x]/(1 - gamma).

The best value is no bound (lib.dp.certified has those): a step of the mean has the law of lib.dp.quadrature.guess_law, and a
precision that falls between two levels is interpolated.
"""
import math

import numba as nb
import numpy as np

from lib.dp.bellman import solve_point
from lib.dp.grid import learnable_sd, rounding, thinned
from lib.dp.quadrature import WIDTH, guess_law

COARSE = 0.125          # a lattice this much finer than the one it is seen from is thinned out


@nb.njit(cache=True)
def expect(out, first, weights, calls, K, D, D_first, ratio, d):
    """out[i] = E w'(m_{first + i} + X): D' on its finer lattice by convolution, the rest by call prices."""
    n, R, n_D = out.size, weights.size // 2, D.size
    for i in range(n):
        a = (first + i) * ratio
        g = calls[abs(a)] if abs(a) < calls.size else 0.0
        out[i] = K * (g + (a * d if a > 0 else 0.0))
    for residue in range(ratio):
        strided = D[residue::ratio].copy()             # D' index residue + ratio * q
        for l in range(-R, R + 1):
            # target index (first + i) * ratio + l - D_first = residue + ratio * q
            a = first * ratio + l - D_first - residue
            if a % ratio:
                continue
            shift = a // ratio
            lo, hi = max(0, -shift), min(n, strided.size - shift)
            w = weights[R + l]
            for i in range(lo, hi):
                out[i] += w * strided[i + shift]


@nb.njit(cache=True)
def expectations(j, lo, hi, wanted, reach, K, levels, spacing, first, ptr, D):
    """(wanted.size, hi - lo + 1): E w(m + X, level) for the lattice points lo..hi of level j and each wanted level."""
    out = np.empty((wanted.size, hi - lo + 1))
    last = levels.size - 1
    for g in range(wanted.size):
        u = min(wanted[g], last)
        b_next = levels[j] + reach if wanted[g] > last else levels[u]
        t = math.sqrt(1 / levels[j] - 1 / b_next)
        stride = thinned(spacing[u], COARSE * spacing[j] * min(1.0, t * math.sqrt(levels[j])))
        d = stride * spacing[u]                        # a long step: every stride-th node is enough
        weights, calls = guess_law(t, d)
        ratio = int(round(spacing[j] / d))
        skip = -first[0, u] % stride
        expect(out[g], lo, weights, calls, K, D[ptr[u] + skip:ptr[u] + first[1, u]:stride],
               (first[0, u] + skip) // stride, ratio, d)
    return out


@nb.njit(cache=True)
def level_values(j, lo, hi, atoms, idle, gamma, reach, K, levels, spacing, first, ptr, D):
    """w on the lattice points lo..hi of level j, from the levels above it.

    atoms = (x, p, key, share): the forward value is x m + gamma (share E w(., key) + (1 - share) E w(., key - 1)),
    where level j itself means that nothing is learned.
    """
    x, p, key, share = atoms
    wanted = np.unique(np.concatenate((key[key > j], key[(share < 1) & (key > j + 1)] - 1)))
    phi = expectations(j, lo, hi, wanted, reach, K, levels, spacing, first, ptr, D)
    upper, lower = np.searchsorted(wanted, key), np.searchsorted(wanted, key - 1)
    A, B, w = np.empty(x.size), np.empty(x.size), np.zeros(hi - lo + 1)
    guess = 0.0
    for i in range(hi - lo, -1, -1):
        m = (lo + i) * spacing[j]
        for a in range(x.size):
            A[a], B[a] = x[a] * m, 0.0
            if key[a] == j:
                B[a] = gamma
            else:
                A[a] += gamma * share[a] * phi[upper[a], i]
                if share[a] < 1 and key[a] - 1 == j:
                    B[a] = gamma * (1 - share[a])
                elif share[a] < 1:
                    A[a] += gamma * (1 - share[a]) * phi[lower[a], i]
        guess = w[i] = solve_point(guess, gamma, idle, p, A, B)
        if guess <= 0.0 and m < 0:
            break
    return w


@nb.njit(cache=True)
def level_atoms(b, x, q, p, levels):
    """The atoms at precision b, (x, p, key, share): information interpolated between levels."""
    n, last = x.size, levels.size - 1
    key, share = np.empty(n, np.int64), np.ones(n)
    for i in range(n):
        down, up = rounding(b + q[i], levels)
        key[i] = min(up, last)
        if down < up <= last:
            share[i] = (b + q[i] - levels[down]) / (levels[up] - levels[down])
    return x, p, key, share


@nb.njit(cache=True, nogil=True)
def sweep(x, q, p, gamma, levels, spacing, start):
    """One backward sweep over `levels` (ascending), from D = `start` on the last one's lattice -n..n.

    Returns (first, ptr, D): level j holds the lattice indices first[0, j] .. first[0, j] + first[1, j] - 1, and
    D[ptr[j]:ptr[j] + first[1, j]] are its values.  Below the first index w = 0; above the last D is negligible.
    """
    J, idle = levels.size - 1, 1 - p.sum()
    K, reach = np.sum(x * p) / (1 - gamma), q.max()
    first, ptr = np.zeros((2, J + 1), np.int64), np.zeros(J + 1, np.int64)
    D = np.zeros(max(4 * start.size, 1 << 14))
    D[:start.size] = start
    first[0, J], first[1, J] = -(start.size // 2), start.size
    used, z_low = start.size, -WIDTH
    for j in range(J - 1, -1, -1):
        per_sd = learnable_sd(levels[j], gamma) / spacing[j]
        hi, lo = int(WIDTH * per_sd), int(max(z_low * 1.1 - 0.05, -WIDTH) * per_sd) - 4
        atoms = level_atoms(levels[j], x, q, p, levels)
        w = level_values(j, lo, hi, atoms, idle, gamma, reach, K, levels, spacing, first, ptr, D)
        while w[0] > 0 and lo > -WIDTH * per_sd:
            lo = 2 * lo
            w = level_values(j, lo, hi, atoms, idle, gamma, reach, K, levels, spacing, first, ptr, D)
        while lo < -1 and w[w.size - hi + lo] <= 0:
            lo += 1
        n = hi - lo + 1
        if used + n > D.size:
            D = np.concatenate((D, np.zeros(D.size + n)))
        D[used:used + n] = w[w.size - n:]
        for i in range(max(0, -lo), n):
            D[used + i] = max(D[used + i] - K * (lo + i) * spacing[j], 0.0)
        first[0, j], first[1, j], ptr[j] = lo, n, used
        used, z_low = used + n, lo / per_sd
    return first, ptr, D[:used].copy()
