"""Reading the certified sweeps at any mean and precision (kernels), in table units.

One Bellman step from the levels around the point's successors, with the laws of the sweep on a lattice that need not
contain the point: the answer at any (m, b) is as sharp as on the grid.  Both ends are kept between commitment and
hindsight, which also serve where nothing is left to learn.
"""
import math

import numpy as np

from lib.compiled import checked_jit
from lib.dp.bellman import solve_point
from lib.dp.lower import forward_values as lower_ahead
from lib.dp.quadrature import WIDTH
from lib.dp.upper import forward_values as upper_ahead
from lib.normal import gain

TOGETHER = 64           # points of one precision that share their nodes


@checked_jit
def solve_points(program, ahead, ms, out):
    """Bellman's equation at the points ms, given what follows each atom, (n, points): nan where nothing is known."""
    x, p, gamma, idle, K = program.x, program.probs, program.gamma, program.idle, program.slope
    A, B = np.empty(x.size), np.empty(x.size)
    for i in range(ms.size):
        for a in range(A.size):
            A[a], B[a] = x[a] * ms[i], 0.0
            if np.isnan(ahead[a, i]):
                B[a] = gamma
            else:
                A[a] += gamma * ahead[a, i]
        out[i] = solve_point(max(ms[i], 0.0) * K, gamma, idle, p, A, B)


@checked_jit
def alike(b, i):
    """One past the last of at most TOGETHER points from i on that have the precision b[i]."""
    j = i + 1
    while j < b.size and b[j] == b[i] and j - i < TOGETHER:
        j += 1
    return j


@checked_jit
def between_ends(program, m, b, out, far):
    """Keep `out` between commitment and hindsight; where nothing is left to learn it is hindsight (far) or commitment."""
    K = program.slope
    for k in range(m.size):
        s, commit = 1 / math.sqrt(b[k]), K * max(m[k], 0.0)
        hindsight = commit + K * gain(m[k], s)
        if s == 0 or abs(m[k]) > WIDTH * s:
            out[k] = hindsight if far else commit
        else:
            out[k] = min(max(out[k], commit), hindsight)


@checked_jit
def upper_values(grid, m, b):
    """(n,) the upper value at the points (m, b); b may be infinite."""
    out, i = np.zeros(m.size), 0
    while i < m.size:
        j = alike(b, i)
        if b[i] < np.inf:
            solve_points(grid.program, upper_ahead(grid, b[i], m[i:j]), m[i:j], out[i:j])
        i = j
    between_ends(grid.program, m, b, out, True)
    return out


@checked_jit
def lower_values(grid, m, b):
    """(n,) the lower value at the points (m, b); b may be infinite."""
    out, i = np.zeros(m.size), 0
    while i < m.size:
        j = alike(b, i)
        if b[i] < np.inf:
            solve_points(grid.program, lower_ahead(grid, b[i], m[i:j]), m[i:j], out[i:j])
        i = j
    between_ends(grid.program, m, b, out, False)
    return out
