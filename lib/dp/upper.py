"""The certified upper bound: a backward sweep that errs upward, and one step of it from any state (kernels).

What an item leads to, w(., b + info), is bounded at the nodes from the levels around b + info and then averaged over
the move of the mean (chapter "The certified sweep"):
  in b  log((w + K E theta^-) / sqrt(b)) is convex at fixed m: a chord between two levels;
  in m  w is convex: chords, that is a law on the nodes that dominates the normal one.
At the last level all later answers are seen for free.
"""
import math
from typing import NamedTuple

import numpy as np

from lib.compiled import checked_jit, jit, put
from lib.dp.certified import (first_tried, informations, levels_of, lowest_found, magnitude, outside, solve_nodes)
from lib.dp.grid import Nodes, Program, arrival, level_nodes, rounding, thinned
from lib.dp.quadrature import Step, chords, expectation
from lib.normal import PHI0, ROOT, excess, psi, tail

AGAIN = 8               # times, at most, that a level is bounded with what came out before
CLOSE = 0.0015          # what a level may be wrong by for having stopped, largest curvatures of w times d^2


class UpperGrid(NamedTuple):
    """The levels of an upper sweep and its values."""

    levels: np.ndarray    # (J,) precisions, ascending
    spacing: np.ndarray   # (J,) lattice spacing in the mean, nonincreasing, halved now and then
    first: np.ndarray     # (2, J) first lattice index and number of points of each level
    ptr: np.ndarray       # (J,) where each level starts in D
    D: np.ndarray         # at least w - K m^+, level after level
    known: np.ndarray     # K (E theta^- + m^+) at the same nodes
    fall: np.ndarray      # how fast that falls in b
    program: Program      # what is swept
    read: float           # spacing of the lattice that a look-up reads, steps of the mean
    reach: float          # where tails are cut, standard deviations


class Level(NamedTuple):
    """w - K m^+ at precision b on the nodes -n d .. n d, and `known` of an UpperGrid there."""

    b: float
    d: float
    D: np.ndarray
    known: np.ndarray


@checked_jit
def on_level(grid, u, coarse):
    """The D of level u at nodes -n .. n, thinned to a spacing of at most `coarse`."""
    stride = thinned(grid.spacing[u], coarse)
    D = level_nodes(grid, u, grid.D, stride)
    return Nodes(-(D.size // 2), stride * grid.spacing[u], D)


@checked_jit
def ahead(grid, b, coarse):
    """At least w(., b) - K m^+ at nodes -n .. n, from the levels around b."""
    levels, last = grid.levels, grid.levels.size - 1
    l, u = rounding(b, levels)
    if l == u or u > last:
        return on_level(grid, min(u, last), coarse)
    ratio, stride = int(round(grid.spacing[l] / grid.spacing[u])), thinned(grid.spacing[l], coarse)
    D, known, fall = (level_nodes(grid, l, grid.D, stride), level_nodes(grid, l, grid.known, stride),
                      level_nodes(grid, l, grid.fall, stride))
    D_u, known_u = level_nodes(grid, u, grid.D, ratio * stride), level_nodes(grid, u, grid.known, ratio * stride)
    if D_u.size < D.size:
        cut = (D.size - D_u.size) // 2
        D, known, fall = D[cut:-cut], known[cut:-cut], fall[cut:-cut]
    cut, d = (D_u.size - D.size) // 2, stride * grid.spacing[l]
    chord(Level(levels[l], d, D, known), Level(levels[u], d, D_u[cut:], known_u[cut:]), fall, b)
    return Nodes(-(D.size // 2), d, D)


@jit              # no check of the division, so that the loop is vectorized
def chord(level, above, fall, b):
    """Turn the D of a level, where `known` falls by `fall`, into a bound at the precision b, with the level `above` it.

    With Q = D + known: Q sqrt(b/below) (1 - e)^share, 1 - e the ratio of Q / sqrt(b) at the two levels; the series
    of the power has no positive terms after the first, and Taylor's of `known` none that is negative after the last.
    """
    below, D, known, D_u, known_u = level.b, level.D, level.known, above.D, above.known
    share, beta, up, ratio = (b - below) / (above.b - below), b - below, math.sqrt(b / below), math.sqrt(below / above.b)
    c1, c2, c3, c4 = share, (1 - share) / 2, (2 - share) / 3, (3 - share) / 4
    a0, a2, b2, middle = 1.5 / below, 0.5 * level.d * level.d, 1.5 / below**2, D.size // 2
    for i in range(D.size):
        Q, l = D[i] + known[i], i - middle
        e = max(1 - ratio * (D_u[i] + known_u[i]) / Q, 0.0)
        top = Q * up * (1 - c1 * e * (1 + c2 * e * (1 + c3 * e * (1 + c4 * e))))
        a = a0 + a2 * l * l
        D[i] = max(min(top - known[i] + fall[i] * beta * (1 - 0.5 * a * beta + (a * a + b2) * beta * beta / 6), D[i]), 0.0)


@checked_jit
def step(out, grid, first, j, info, hindsight):
    """out[i] >= E w((first + i) d + t Z, b + info) of level j, t^2 = 1/b - 1/(b + info), and at most hindsight[i]."""
    b, b_next, K = grid.levels[j], grid.levels[j] + info, grid.program.slope
    values, move = ahead(grid, b_next, 0.0), Step(math.sqrt(info / (b * b_next)), grid.reach)
    cut = outside(grid.program, values.D.size // 2 * values.d, b_next)
    out[:] = cut + 2 * tail(grid.reach) * magnitude(values.D) + K * move.t * psi(-grid.reach)
    expectation(out, first, int(round(grid.spacing[j] / values.d)), values, move, K)
    for i in range(out.size):
        out[i] = min(out[i], hindsight[i])


@checked_jit
def full_observation_edge(program, count, d, b):
    """What full observation earns above commitment at m = -count d .. count d: a sum over items that are not of size 0.

    E[x] / mass a/gamma sum_n a^n E (m_n^+ - m^+), a the discount from one to the next.  Each tells at most 1, and n is
    rounded up to some 25 values, so the sum errs upward.
    """
    mass, gamma = program.probs.sum(), program.gamma
    a, mean_x = arrival(gamma, mass), np.sum(program.x * program.probs)
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


@checked_jit
def full_observation(grid):
    """Fill `known` of a grid, and how fast it falls in b."""
    K = grid.program.slope
    for j in range(grid.levels.size):
        n, root = -grid.first[0, j], math.sqrt(grid.levels[j])
        for i in range(n + 1):
            z = i * grid.spacing[j] * root
            density = PHI0 * math.exp(-0.5 * z * z)
            for k in (grid.ptr[j] + n - i, grid.ptr[j] + n + i):
                grid.known[k] = K / root * (0.5 * z * math.erfc(-z * ROOT) + density)
                grid.fall[k] = K * density / (2 * root**3)


@checked_jit
def predict(D, grid, j, lo, near):
    """Replace D at the nodes lo.. of level j by what the next three levels extrapolate to, where all are positive."""
    levels, spacing, last = grid.levels, grid.spacing, min(j + 3, grid.levels.size - 1)
    total, good = np.zeros(D.size), np.zeros(D.size, np.int64)
    for u in range(last, j, -1):
        weight = 1.0
        for v in range(j + 1, last + 1):
            weight *= (levels[j] - levels[v]) / (levels[u] - levels[v]) if v != u else 1.0
        known = level_nodes(grid, u, grid.D, int(round(spacing[j] / spacing[u])))
        skip = lo + known.size // 2                    # node lo + i is known[skip + i]
        for i in range(max(0, -skip), min(D.size, known.size - skip)):
            total[i] += weight * known[skip + i]
            good[i] += known[skip + i] > 0
            if u == j + 1 and good[i] == last - j:
                D[i] = min(max(total[i], known[skip + i]) + near, D[i])


@checked_jit
def solve_level(grid, j, lo, q, group):
    """Fill the nodes of level j from those above it; returns how far from lo the lowest is worth forwarding at, or -1.

    Where an information ends below level j + 1, level j itself is needed: a prediction c serves, and is replaced by
    what comes out, T(c).  As T has modulus M < 1, T(c) + M/(1 - M) max(T(c) - c, 0) is an upper bound for every c.
    """
    b, d, n, beyond = grid.levels[j], grid.spacing[j], -grid.first[0, j] - lo + 1, 2 * tail(grid.reach)
    gamma, K = grid.program.gamma, grid.program.slope
    end = grid.ptr[j] + grid.first[1, j]
    own, hindsight = grid.D[grid.ptr[j]:end], grid.known[end - n:end].copy()
    here, after = own[own.size - n:], np.empty((q.size, n))
    for i in range(-lo):
        hindsight[i] = max(hindsight[i] + K * (lo + i) * d, 0.0)
    short, mass = np.zeros(q.size, np.bool_), 0.0
    for a in range(group.size):
        short[group[a]] = rounding(b + q[group[a]], grid.levels)[0] <= j
        mass += grid.program.probs[a] if short[group[a]] else 0.0
    near, own[:] = CLOSE * K * d * d * math.sqrt(b), 0.0
    if mass > 0:                                       # at most: all that is left to the next level is told at once
        step(here, grid, lo, j, grid.levels[j + 1] - b, hindsight)
        for i in range(max(0, -lo), n):
            here[i] -= K * (lo + i) * d
        predict(here, grid, j, lo, near)
    for turn in range(AGAIN):
        before = own.copy()
        for g in range(q.size):
            if turn == 0 or short[g]:
                step(after[g], grid, lo, j, q[g], hindsight)
        found = solve_nodes(grid, j, lo, group, after, False)
        slack = gamma * mass * (1 + beyond) / (1 - gamma - gamma * beyond) * max((own - before).max(), 0.0)
        if mass == 0 or slack <= near and (before - own).max() <= 100 * near:
            break
    for i in range(own.size):
        own[i] += slack
    return found


@checked_jit
def sweep(program, fineness):
    """One sweep from precision b0 on: an UpperGrid."""
    levels, spacing, first, ptr, size = levels_of(program, fineness)
    grid = UpperGrid(levels, spacing, first, ptr, np.zeros(size), np.empty(size), np.empty(size), program,
                     fineness.read, fineness.reach)
    J, lowest = levels.size - 1, -fineness.reach
    q, group = informations(program)
    put(full_observation_edge(program, -first[0, J], spacing[J], levels[J]), grid.D[ptr[J]:])
    full_observation(grid)
    for j in range(J - 1, -1, -1):
        lo = first_tried(grid, j, lowest)
        found = solve_level(grid, j, lo, q, group)
        while found < 0 and lo > first[0, j]:
            lo = max(2 * lo, first[0, j])
            found = solve_level(grid, j, lo, q, group)
        lowest = lowest_found(grid, j, lo, found)
    return grid


@checked_jit
def mean_value(grid, values, edge, m, move, b):
    """At least E w(m + t Z, b) from w - K m^+ at some nodes of a lattice that ends at -edge and edge."""
    program, reach = grid.program, grid.reach
    cut = outside(program, edge, b) + 2 * tail(reach) * outside(program, 0.0, b)
    return program.slope * excess(m, move.t) + cut + chords(values, m, move)


@checked_jit
def forward_values(grid, b, ms):
    """(n, points) at least what follows each atom at the points (ms, b): E w(m + t Z, b + info)."""
    q = grid.program.info
    out = np.empty((q.size, ms.size))
    for a in range(q.size):
        if a > 0 and q[a] == q[a - 1]:
            put(out[a - 1], out[a])
            continue
        b_next = b + q[a]
        move = Step(math.sqrt(q[a] / (b * b_next)), grid.reach)
        values = ahead(grid, b_next, grid.read * move.t)
        for i in range(ms.size):
            out[a, i] = mean_value(grid, values, values.D.size // 2 * values.d, ms[i], move, b_next)
    return out
