"""What the two certified sweeps share: their levels, Bellman's equation on a level, and what lies beyond a lattice.

`lib.dp.upper` and `lib.dp.lower` sweep the levels of precision from the last one down; both keep D = w - K m^+ at the
nodes -n d .. n d of each level (table units, see lib.dp.grid; chapter "The certified sweep").
"""
import math

import numpy as np

from lib.compiled import checked_jit
from lib.dp.bellman import solve_point
from lib.dp.grid import ladder, lattices, learnable_sd
from lib.normal import gain


@checked_jit
def levels_of(program, fineness):
    """(levels, spacing, first, ptr, size): level j has the nodes first[0, j] .. -first[0, j], size in all."""
    levels = ladder(program, fineness)
    spacing = lattices(program, levels, fineness, True)
    first, ptr, size = np.empty((2, levels.size), np.int64), np.empty(levels.size, np.int64), 0
    for j in range(levels.size):
        half = int(math.ceil(fineness.reach * learnable_sd(levels[j], program.gamma) / spacing[j])) + 1
        first[0, j], first[1, j], ptr[j] = -half, 2 * half + 1, size
        size += first[1, j]
    return levels, spacing, first, ptr, size


@checked_jit
def informations(program):
    """(q, group): the distinct informations, ascending, and which of them each atom has."""
    info = program.info
    group = np.zeros(info.size, np.int64)
    for i in range(1, info.size):
        group[i] = group[i - 1] + (info[i] > info[i - 1])
    q = np.empty(group[-1] + 1)
    for i in range(info.size):
        q[group[i]] = info[i]
    return q, group


@checked_jit
def first_tried(grid, j, lowest):
    """The node of level j to begin at, forwarding having paid from `lowest` standard deviations on at the level above."""
    return max(int(1.2 * lowest / (grid.spacing[j] * math.sqrt(grid.levels[j]))) - 4, grid.first[0, j])


@checked_jit
def lowest_found(grid, j, lo, found):
    """From how many standard deviations on forwarding pays at level j, `found` nodes above the node lo."""
    return min((lo + max(found, 0)) * grid.spacing[j] * math.sqrt(grid.levels[j]), -0.05)


@checked_jit
def solve_nodes(grid, j, lo, group, ahead, ignore):
    """Solve Bellman's equation at the nodes lo.. of level j; returns how far from lo forwarding pays, or -1.

    ahead[g, i]: what follows an item of group g at node lo + i.  With `ignore` its answer is not looked at where that
    is worth less than to stay, and there ahead becomes -inf.
    """
    program, n, d = grid.program, ahead.shape[1], grid.spacing[j]
    x, p, gamma, idle, K = program.x, program.probs, program.gamma, program.idle, program.slope
    A, B, w, at = np.empty(x.size), np.zeros(x.size), 0.0, grid.ptr[j] - grid.first[0, j] + lo
    for i in range(n - 1, -1, -1):
        m, again = (lo + i) * d, True
        for a in range(x.size):
            A[a], B[a] = x[a] * m + gamma * ahead[group[a], i], 0.0
        while again:
            w, again = solve_point(w, gamma, idle, p, A, B), False
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


@checked_jit
def outside(program, edge, b):
    """At most w - K m^+ at precision b where |m| > edge: all answers are seen for free until the discount is 1e-16."""
    return program.slope * (gain(edge, learnable_sd(b, program.gamma)) + 1e-16 / math.sqrt(b))


@checked_jit
def magnitude(a):
    """Largest absolute value, 0 of none."""
    top = 0.0
    for v in a:
        top = max(top, abs(v))
    return top
