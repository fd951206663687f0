"""The certified lower bound for items of any sign and charge: the sweep of lib.dp.lower with another Bellman equation (kernels).

What an item leads to is bounded by the kernels of lib.dp.lower, as that is a question of the mean and the precision alone;
here are the fixed points, and which items a node forwards (chapter "The certified sweep", section "Items of any sign,
charges of any kind").
"""
import numpy as np

from lib.compiled import checked_jit, put
from lib.dp.atoms import committed, levels_of, solve_nodes, solve_points
from lib.dp.lookup import alike
from lib.dp.lower import AGAIN, MORE, Answers, LowerGrid, Span, asked, exceeds, farthest, forward_values, step


@checked_jit
def fill_tangents(grid, atoms, j, after, short):
    """Fill the slopes and the bend of level j: what a node forwards at b, it forwards at precisions near b as well.

    Returns the largest probability that a node learns from a short item.
    """
    at, most, gamma, K = grid.ptr[j], 0.0, grid.program.gamma, grid.program.slope
    grid.tangent[at:at + grid.first[1, j]], grid.bend[:, j], idle = 0.0, 0.0, 1 - atoms.probs.sum()
    for i in range(after.value.shape[1]):
        m, slope, kept, mass, bend = (grid.first[0, j] + i) * grid.spacing[j], 0.0, gamma * idle, 0.0, np.zeros(3)
        if grid.D[at + i] <= committed(atoms, m):
            continue
        line = atoms.line[0] + atoms.line[1] * m
        w = grid.D[at + i] + K * max(m, 0.0) + line
        for a in range(atoms.x.size):
            g, p = atoms.group[a], atoms.probs[a]
            value = after.value[g, i] if g >= 0 else -np.inf
            pays = atoms.x[a] * m - atoms.charge[a] + gamma * (value + line) > gamma * w
            if value == -np.inf or not (pays or atoms.forced[a]):
                kept += p * gamma
                continue
            mass += p if short[g] else 0.0
            slope += p * gamma * after.change[g, i]
            for c in range(3):
                bend[c] += p * gamma * after.bend[g, c]
        grid.tangent[at + i] = slope / (1 - kept)
        for c in range(3):
            grid.bend[c, j] = max(grid.bend[c, j], bend[c] / (1 - kept))
        most = max(most, mass)
    return most


@checked_jit
def lowered(grid, atoms, j, less):
    """Take `less` off the D of level j, down to commitment, where nothing depends on the precision."""
    for i in range(grid.first[1, j]):
        k, least = grid.ptr[j] + i, committed(atoms, (grid.first[0, j] + i) * grid.spacing[j])
        grid.D[k] -= less
        if grid.D[k] <= least:
            grid.D[k], grid.tangent[k] = least, 0.0


@checked_jit
def solve_level(grid, atoms, j):
    """Fill the nodes of level j from those above it, with the slopes in b of the policy that it finds, and their bend.

    Neighbouring levels are made to agree as in lib.dp.lower.solve_level.
    """
    q, n, last = grid.program.info, grid.first[1, j], grid.levels.size - 1
    span, gamma, over, mass = asked(grid, j, q[0]), grid.program.gamma, 0.0, 0.0
    after = Answers(np.empty((q.size, n)), np.empty((q.size, n)), np.zeros((q.size, 3)))
    short, gap, before = span.low + q < grid.levels[j], grid.levels[j + 1] - grid.levels[j], Span(span.low, grid.levels[j])
    for turn in range(AGAIN):
        for g in range(q.size):
            if turn == 0 or short[g]:
                put(step(after.value[g], after.change[g], grid, grid.first[0, j], j, q[g], span), after.bend[g])
        solve_nodes(grid, atoms, j, after.value, True)
        if grid.tangent.size == 0 or j == 0:
            return
        mass = fill_tangents(grid, atoms, j, after, short)
        if j + 1 == last:
            return
        over = exceeds(grid, j + 1, j, before)
        if over == 0 or mass == 0:
            break
        grid.bend[2, j + 1] += MORE * over / gap
    if over > 0:
        lowered(grid, atoms, j, gamma * mass / (1 - gamma) * over)
        grid.bend[2, j + 1] += exceeds(grid, j + 1, j, before) / gap
    beyond = Span(grid.levels[j + 1], farthest(grid.levels, j))
    grid.bend[1, j] += exceeds(grid, j, j + 1, beyond) / gap


@checked_jit
def sweep(program, atoms, fineness):
    """One sweep from precision b0 on: a LowerGrid."""
    levels, spacing, first, ptr, size = levels_of(program, atoms, fineness)
    grid = LowerGrid(levels, spacing, first, ptr, np.zeros(size), np.zeros(size if fineness.unit > 0 else 0),
                     np.zeros((3, levels.size)), program, fineness.read, fineness.reach)
    last = levels.size - 1
    for i in range(first[1, last]):
        grid.D[ptr[last] + i] = committed(atoms, (first[0, last] + i) * spacing[last])
    for j in range(last - 1, -1, -1):
        solve_level(grid, atoms, j)
    return grid


@checked_jit
def values(grid, atoms, m, b):
    """(n,) the lower value at the points (m, b), all b finite."""
    out, i = np.zeros(m.size), 0
    while i < m.size:
        j = alike(b, i)
        solve_points(grid.program, atoms, forward_values(grid, b[i], m[i:j]), m[i:j], out[i:j])
        i = j
    return out
