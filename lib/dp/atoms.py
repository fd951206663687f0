"""Items of any sign and charge as the kernels see them: Bellman's equation, and what the two sweeps over them share.

Forwarding an atom pays x m - charge and teaches one of the program's informations, or nothing.  Of the value w the sweeps
keep D = w - line - K m^+ at the nodes -n d .. n d of each level, with K = E|x| / (1 - gamma) and `line` what commitment earns
far to the left; the mean is counted from where the two lines of commitment meet (chapter "The certified sweep", section
"Items of any sign, charges of any kind").
"""
import math
from typing import NamedTuple

import numpy as np

from lib.compiled import checked_jit
from lib.dp.bellman import solve_point
from lib.dp.grid import ladder, lattices, learnable_sd
from lib.normal import gain

NODES = 16384           # a level has hardly more: where break-even means lie far apart, its lattice is wider


class Atoms(NamedTuple):
    """The atoms of a program, table units; the mean is counted from where the lines of commitment meet."""

    x: np.ndarray         # (n,) magnitudes, of any sign
    charge: np.ndarray    # (n,) what is paid for forwarding
    probs: np.ndarray     # (n,) their probabilities
    forced: np.ndarray    # (n,) whether it is always forwarded
    group: np.ndarray     # (n,) which of the program's informations each teaches; -1: nothing
    line: np.ndarray      # (2,) constant and slope of what commitment earns far to the left
    kink: np.ndarray      # (k,) distinct break-even means
    bend: np.ndarray      # (k,) slope changes of commitment there; they add up to K
    rest: float           # E |charge| / (1 - gamma) of the atoms with x = 0
    far: float            # the largest |kink|
    moment: float         # sum of bend |kink|


@checked_jit
def levels_of(program, atoms, fineness):
    """(levels, spacing, first, ptr, size): level j has the nodes first[0, j] .. -first[0, j], size in all."""
    levels, far = ladder(program, fineness), atoms.far
    spacing = lattices(program, levels, fineness, True)
    first, ptr, size = np.empty((2, levels.size), np.int64), np.empty(levels.size, np.int64), 0
    spacing *= max(1.0, 2 * (far + fineness.reach * learnable_sd(levels[0], program.gamma)) / (NODES * spacing[0]))
    for j in range(levels.size):
        edge = far + fineness.reach * learnable_sd(levels[j], program.gamma)
        while 2 * edge > NODES * spacing[j] * (1 + 1e-12):
            spacing[j] *= 2
        half = int(math.ceil(edge / spacing[j])) + 1
        first[0, j], first[1, j], ptr[j] = -half, 2 * half + 1, size
        size += first[1, j]
    return levels, spacing, first, ptr, size


@checked_jit
def committed(atoms, m):
    """What commitment is worth above its two lines."""
    total = 0.0
    for k in range(atoms.kink.size):
        total += atoms.bend[k] * max(m - atoms.kink[k] if m < 0 else atoms.kink[k] - m, 0.0)
    return total


@checked_jit
def outside(program, atoms, edge, b):
    """At most D at precision b where |m| > edge: all answers are seen for free until the discount is 1e-16."""
    far = atoms.far
    top = 0.0 if edge >= far else 0.5 * atoms.moment
    return top + program.slope * (gain(max(edge - far, 0.0), learnable_sd(b, program.gamma)) + 1e-16 / math.sqrt(b))


@checked_jit
def fixed_point(atoms, gamma, w, A, B, work):
    """w = gamma idle w + sum of p max(gamma w, A + B w), or of p (A + B w) where that is forced; B is 0 or gamma."""
    sure, mass, p, forced = 0.0, 0.0, atoms.probs, atoms.forced
    for a in range(A.size):
        sure += p[a] * A[a] if forced[a] else 0.0
        mass += p[a] if forced[a] and B[a] == 0 else 0.0
    sure /= 1 - gamma + gamma * mass                   # what is left after it is an equation without forced atoms
    for a in range(A.size):
        work[a] = -np.inf if forced[a] else A[a] - (gamma * sure if B[a] == 0 else 0.0)
    return sure + solve_point(w - sure, gamma, 1 - p.sum() - mass, p, work, B)


@checked_jit
def solve_state(program, atoms, m, after, ignore, w, work):
    """The value w at the mean m, given what follows each information, less its line: nan or -inf where it is not known.

    With `ignore` an answer is not looked at where that is worth less than to stay, and there `after` becomes -inf.
    w: a guess; work: (3, n), its first two rows become what follows an atom, A + B w.
    """
    A, B, gamma, line, again = work[0], work[1], program.gamma, atoms.line[0] + atoms.line[1] * m, True
    for a in range(A.size):
        known = atoms.group[a] >= 0 and after[atoms.group[a]] > -np.inf
        B[a] = 0.0 if known else gamma
        A[a] = atoms.x[a] * m - atoms.charge[a] + (gamma * (after[atoms.group[a]] + line) if known else 0.0)
    while again:
        w, again = fixed_point(atoms, gamma, w, A, B, work[2]), False
        for a in range(A.size if ignore else 0):
            if B[a] == 0 and after[atoms.group[a]] + line < w:
                A[a], B[a], again = atoms.x[a] * m - atoms.charge[a], gamma, True
    for a in range(A.size if ignore else 0):
        if B[a] > 0 and atoms.group[a] >= 0:
            after[atoms.group[a]] = -np.inf
    return w


@checked_jit
def solve_nodes(grid, atoms, j, after, ignore):
    """Solve Bellman's equation at the nodes of level j, with `after` (informations, nodes) as in `solve_state`."""
    d, first, n, w = grid.spacing[j], grid.first[0, j], grid.first[1, j], 0.0
    work, K = np.empty((3, atoms.x.size)), grid.program.slope
    for i in range(n):
        m = (first + i) * d
        w = solve_state(grid.program, atoms, m, after[:, i], ignore, w, work)
        D = w - atoms.line[0] - atoms.line[1] * m - K * max(m, 0.0)
        grid.D[grid.ptr[j] + i] = max(D, committed(atoms, m))


@checked_jit
def solve_points(program, atoms, ahead, ms, out):
    """Bellman's equation at the points ms, given what follows each information, (informations, points)."""
    work, w = np.empty((3, atoms.x.size)), 0.0
    for i in range(ms.size):
        out[i] = w = solve_state(program, atoms, ms[i], ahead[:, i], False, w, work)
