"""The best value: a backward sweep whose steps have the right variance, and reading it anywhere (kernels).

It is no bound (lib.dp.upper and lib.dp.lower are): a step of the mean has the law of `quadrature.guess_law`, and a
precision that falls between two levels is interpolated.  Decisions are read off it.  Table units, see lib.dp.grid.
"""
import math
from typing import NamedTuple

import numpy as np

from lib.compiled import checked_jit, put
from lib.dp.bellman import solve_point
from lib.dp.grid import Nodes, Program, learnable_sd, rounding, thinned
from lib.dp.quadrature import WIDTH, Step, chords, expectation_under, guess_law
from lib.normal import excess, gain

COARSE = 0.125          # a lattice this much finer than the one it is seen from is thinned out


class BestGrid(NamedTuple):
    """The levels of the best value and its values; below the first node of a level w = 0, above the last D = 0."""

    levels: np.ndarray    # (J,) precisions, ascending
    spacing: np.ndarray   # (J,) lattice spacing in the mean, nonincreasing, halved now and then
    first: np.ndarray     # (2, J) first lattice index and number of points of each level
    ptr: np.ndarray       # (J,) where each level starts in D
    D: np.ndarray         # w - K m^+, level after level
    program: Program      # what is swept
    read: float           # spacing of the lattice that a look-up reads, steps of the mean


class Atoms(NamedTuple):
    """Where items of the same precision lead to: share E w(., level key) + (1 - share) E w(., level key - 1)."""

    key: np.ndarray       # (n,)
    share: np.ndarray     # (n,)


@checked_jit
def atoms_at(program, b, levels):
    """The atoms at precision b: information interpolated between levels."""
    n, last = program.x.size, levels.size - 1
    key, share = np.empty(n, np.int64), np.ones(n)
    for i in range(n):
        down, up = rounding(b + program.info[i], levels)
        key[i] = min(up, last)
        if down < up <= last:
            share[i] = (b + program.info[i] - levels[down]) / (levels[up] - levels[down])
    return Atoms(key, share)


@checked_jit
def thinned_nodes(grid, u, coarse):
    """Every stride-th node of level u, the spacing at most `coarse`."""
    stride = thinned(grid.spacing[u], coarse)
    skip, start = -grid.first[0, u] % stride, grid.ptr[u]
    return Nodes((grid.first[0, u] + skip) // stride, stride * grid.spacing[u],
                 grid.D[start + skip:start + grid.first[1, u]:stride])


@checked_jit
def expectations(grid, j, lo, hi, wanted):
    """(wanted.size, hi - lo + 1): E w(m + X, level) for the lattice points lo..hi of level j and each wanted level."""
    out, levels, spacing = np.zeros((wanted.size, hi - lo + 1)), grid.levels, grid.spacing
    b, last, reach = levels[j], levels.size - 1, grid.program.info.max()
    for g in range(wanted.size):
        u = min(wanted[g], last)
        info = reach if wanted[g] > last else levels[u] - b
        t = math.sqrt(info / (b * (b + info)))         # a long step: every stride-th node is enough
        values = thinned_nodes(grid, u, COARSE * spacing[j] * min(1.0, t * math.sqrt(b)))
        ratio = int(round(spacing[j] / values.d))
        expectation_under(guess_law(t, values.d), out[g], lo, ratio, values, grid.program.slope)
    return out


@checked_jit
def levels_wanted(j, key, share):
    """The levels above j that atoms of these keys and shares lead to, in order."""
    wanted = np.zeros(max(key.max(), j) + 1, np.bool_)
    for a in range(key.size):
        if key[a] > j:
            wanted[key[a]] = True
        if share[a] < 1 and key[a] > j + 1:
            wanted[key[a] - 1] = True
    return np.flatnonzero(wanted)


@checked_jit
def level_values(grid, j, lo, hi, atoms):
    """w on the lattice points lo..hi of level j, from the levels above it; level j itself: nothing is learned."""
    x, p, key, share = grid.program.x, grid.program.probs, atoms.key, atoms.share
    gamma, idle, d = grid.program.gamma, grid.program.idle, grid.spacing[j]
    wanted = levels_wanted(j, key, share)
    phi = expectations(grid, j, lo, hi, wanted)
    upper, lower = np.searchsorted(wanted, key), np.searchsorted(wanted, key - 1)
    A, B, w = np.empty(x.size), np.empty(x.size), np.zeros(hi - lo + 1)
    guess = 0.0
    for i in range(hi - lo, -1, -1):
        m = (lo + i) * d
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


@checked_jit
def sweep_level(grid, j, z_low):
    """(lo, w): the lowest node of level j that is worth forwarding at, looked for from z_low sd on, and w from there."""
    per_sd = learnable_sd(grid.levels[j], grid.program.gamma) / grid.spacing[j]
    hi, lo = int(WIDTH * per_sd), int(max(z_low * 1.1 - 0.05, -WIDTH) * per_sd) - 4
    atoms = atoms_at(grid.program, grid.levels[j], grid.levels)
    w = level_values(grid, j, lo, hi, atoms)
    while w[0] > 0 and lo > -WIDTH * per_sd:
        lo = 2 * lo
        w = level_values(grid, j, lo, hi, atoms)
    while lo < -1 and w[w.size - hi + lo] <= 0:
        lo += 1
    return lo, w[w.size - (hi - lo + 1):]


@checked_jit
def with_room(grid, size):
    """The grid with room for at least `size` values."""
    D = np.zeros(max(size, 2 * grid.D.size, 1 << 14))
    put(grid.D, D[:grid.D.size])
    return BestGrid(grid.levels, grid.spacing, grid.first, grid.ptr, D, grid.program, grid.read)


@checked_jit
def sweep(grid):
    """Fill a BestGrid that holds the last level alone, on the nodes -n..n; the levels below are appended to D."""
    J, used, z_low, K = grid.levels.size - 1, grid.D.size, -WIDTH, grid.program.slope
    for j in range(J - 1, -1, -1):
        lo, w = sweep_level(grid, j, z_low)
        if used + w.size > grid.D.size:
            grid = with_room(grid, used + w.size)
        for i in range(w.size):
            grid.D[used + i] = max(w[i] - K * (lo + i) * grid.spacing[j], 0.0) if lo + i >= 0 else w[i]
        grid.first[0, j], grid.first[1, j], grid.ptr[j] = lo, w.size, used
        used += w.size
        z_low = lo * grid.spacing[j] / learnable_sd(grid.levels[j], grid.program.gamma)
    return BestGrid(grid.levels, grid.spacing, grid.first, grid.ptr, grid.D[:used].copy(), grid.program, grid.read)


@checked_jit
def step_value(grid, u, m, t):
    """E w(m + X, level u), X of variance t^2 on the lattice of level u."""
    values = thinned_nodes(grid, u, grid.read * t)
    if t >= values.d:
        t = math.sqrt(t * t - values.d * values.d / 6)
    return grid.program.slope * excess(m, t) + chords(values, m, Step(t, WIDTH))


@checked_jit
def step_to(grid, u, m, b, reach):
    """E w(m + X, level u) from precision b; nan where level u is not above b, `reach` away where it is off the grid."""
    last = grid.levels.size - 1
    if u > last:
        return step_value(grid, last, m, math.sqrt(reach / (b * (b + reach))))
    if u < 0 or grid.levels[u] <= b * (1 + 1e-14):
        return np.nan
    return step_value(grid, u, m, math.sqrt((grid.levels[u] - b) / (b * grid.levels[u])))


@checked_jit
def point(grid, m, b):
    """The best value at (m, b) by one Bellman step, as in `level_values`."""
    program, atoms, reach = grid.program, atoms_at(grid.program, b, grid.levels), grid.program.info.max()
    A, B = program.x * m, np.zeros(program.x.size)
    now, upper, lower = -2, 0.0, 0.0
    for i in range(A.size):
        if atoms.key[i] != now:
            now = atoms.key[i]
            upper, lower = step_to(grid, now, m, b, reach), step_to(grid, now - 1, m, b, reach)
        for phi, part in ((upper, atoms.share[i]), (lower, 1 - atoms.share[i])):
            if part > 0 and np.isnan(phi):
                B[i] += program.gamma * part
            elif part > 0:
                A[i] += program.gamma * part * phi
    return solve_point(max(m, 0.0) * program.slope, program.gamma, program.idle, program.probs, A, B)


@checked_jit
def value_at(grid, m, b):
    """The best value at one point; b may be infinite."""
    sd, commit = 1 / math.sqrt(b), grid.program.slope * max(m, 0.0)
    if not abs(m) < WIDTH * sd:
        return commit
    return min(max(point(grid, m, b), commit), commit + grid.program.slope * gain(m, sd))


@checked_jit
def values(grid, m, b):
    """(n,) the best value at the points (m, b)."""
    out = np.empty(m.size)
    for n in range(m.size):
        out[n] = value_at(grid, m[n], b[n])
    return out


@checked_jit
def forward_values(grid, m, b, info):
    """(n,) best guess of E w(m + t Z, b + info), t^2 = 1/b - 1/(b + info), between two levels interpolated as in `atoms_at`.

    Where information ends below the level after b, the value at b itself stands for the lower of the two.
    """
    levels, out = grid.levels, np.empty(m.size)
    for n in range(m.size):
        out[n] = grid.program.slope * max(m[n], 0.0)
        if abs(m[n]) < 4 * WIDTH / math.sqrt(b[n]):
            down, up = rounding(b[n] + info, levels)
            up = min(up, levels.size - 1) if down < up else up
            far = step_to(grid, up, m[n], b[n], info)
            if np.isnan(far):
                out[n] = step_value(grid, up, m[n], math.sqrt(info / (b[n] * (b[n] + info))))
            elif levels[up] <= b[n] + info or down == up:
                out[n] = far
            elif levels[down] <= b[n]:
                share = info / (levels[up] - b[n])
                out[n] = share * far + (1 - share) * value_at(grid, m[n], b[n])
            else:
                share = (b[n] + info - levels[down]) / (levels[up] - levels[down])
                out[n] = share * far + (1 - share) * step_to(grid, down, m[n], b[n], info)
    return out
