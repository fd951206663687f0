"""The certified lower bound: a backward sweep that errs downward, and one step of it from any state (kernels).

What an item leads to, w(., b + info), is bounded at the nodes from a level near b + info and then averaged over the
move of the mean (chapter "The certified sweep", section "A chord and a tangent"):
  in b  a policy made for a level also serves near it: at b + beta the bound on w - K m^+ is, at the nodes,
        max{0, D + tangent beta - curvature beta^2 - kinks |beta|}, the kinks, one above and one below b, deep enough
        for neighbouring levels to agree;
  in m  a law on the nodes that the normal one dominates.
After the last level nothing is learned.
"""
import math
from typing import NamedTuple

import numpy as np

from lib.compiled import checked_jit, put
from lib.dp.certified import (first_tried, informations, levels_of, lowest_found, magnitude, solve_nodes)
from lib.dp.grid import Nodes, Program, level_nodes, rounding, thinned
from lib.dp.quadrature import Step, bell, chords, expectation, shrunk, slide, slide_wide
from lib.normal import PHI0, excess, psi, tail

AGAIN = 8               # times, at most, that a level is bounded with what came out before
MORE = 1.5              # how much deeper than it seems to need a kink is made, for what it does to the level below


class LowerGrid(NamedTuple):
    """The levels of a lower sweep and its values."""

    levels: np.ndarray    # (J,) precisions, ascending
    spacing: np.ndarray   # (J,) lattice spacing in the mean, nonincreasing, halved now and then
    first: np.ndarray     # (2, J) first lattice index and number of points of each level
    ptr: np.ndarray       # (J,) where each level starts in D
    D: np.ndarray         # at most w - K m^+, level after level
    tangent: np.ndarray   # its slope in b; empty where precisions are those of the levels alone
    bend: np.ndarray      # (3, J) curvature, kink above and kink below
    program: Program      # what is swept
    read: float           # spacing of the lattice that a look-up reads, steps of the mean
    reach: float          # where tails are cut, standard deviations


class Tangents(NamedTuple):
    """At b + beta, D + slope beta - off(bend, beta) at the nodes -n d .. n d."""

    d: float
    D: np.ndarray
    slope: np.ndarray
    bend: np.ndarray      # (3,)


class Span(NamedTuple):
    """Precisions."""

    low: float
    high: float


class Answers(NamedTuple):
    """What follows an item of each group at each node, and for the precisions nearby."""

    value: np.ndarray     # (groups, nodes)
    change: np.ndarray    # (groups, nodes) its derivative in b
    bend: np.ndarray      # (groups, 3)


@checked_jit
def step(out, change, grid, first, j, info, span):
    """out[i] <= E w((first + i) d + t Z, b + info) of level j with its derivative in b, `change`; returns the bend.

    The three describe a lower bound for all precisions of `span`: -inf where the lattice is too wide.
    """
    b, reach, K, below, above = grid.levels[j], grid.reach, grid.program.slope, span.low, span.high
    near = ahead(grid, Span(below + info, above + info), b + info, j + 1, 0.0)
    short, D, d = math.sqrt(info / (above * (above + info))), near.D, near.d
    shorter = shrunk(short, d, reach)
    if not shorter > 0:
        out[:] = -np.inf
        return near.bend
    lost = short * short - shorter * shorter           # of t^2, at every precision
    move = Step(math.sqrt(info / (b * (b + info)) - lost), reach)
    fast = fastest(info, below)
    longest = math.sqrt(info / (below * (below + info)) - lost)
    cut = K * longest * psi(-reach)                    # where call prices of the law may exceed the normal ones
    edge, steep = PHI0 * math.exp(-0.5 * reach**2) / shorter, max(magnitude(D[1:] - D[:-1]), D[0], D[-1]) / d
    cut += (above - below) * fast * edge * (2 * reach / shorter * magnitude(D) + steep + 0.5 * K)   # left out of `change`
    out[:] = -cut - (above - below) * 2 * tail(reach) * magnitude(near.slope)
    ratio = int(round(grid.spacing[j] / d))
    weights = expectation(out, first, ratio, Nodes(-(D.size // 2), d, D), move, K)
    if grid.tangent.size > 0:
        kinks = slope_changes(D, d)
        kinks[kinks.size // 2] += K
        change[:] = 0.0
        move_kinks(change, first, ratio, Nodes(-(kinks.size // 2), d, kinks), move, weights)
        rate = 1 / (b + info) ** 2 - 1 / b**2          # of t^2 in b
        for i in range(out.size):
            change[i] *= rate
        move_slopes(change, first, ratio, Nodes(-(D.size // 2), d, near.slope), move, weights)
        near.bend[0] += step_bend(near, kinks, shorter, info, span)
    return near.bend


@checked_jit
def fastest(info, b):
    """How fast t^2 = 1/b - 1/(b + info) falls at b."""
    return 1 / b**2 - 1 / (b + info) ** 2


@checked_jit
def move_kinks(out, first, ratio, kinks, move, weights):
    """out[i] += d/d(t^2) of what slope changes are worth, tabulated where the weights of the law are."""
    if weights.size == 0:
        slide_wide(out, first, ratio, kinks, move, True)
        return
    density = np.empty(weights.size)
    for l in range(density.size):
        density[l] = bell(l * kinks.d / move.t, move.t)
    slide(out, first, ratio, density, kinks)


@checked_jit
def move_slopes(out, first, ratio, slopes, move, weights):
    """out[i] += the mean of slopes in b under the law of the step."""
    if weights.size == 0:
        slide_wide(out, first, ratio, slopes, move, False)
    else:
        slide(out, first, ratio, weights, slopes)


@checked_jit
def step_bend(near, kinks, shorter, info, span):
    """C of the proposition "A policy also serves near its precision": the curvature that a step adds."""
    below, above, fast, slope = span.low, span.high, fastest(info, span.low), near.slope
    drift = min(0.242 * np.ptp(slope) / shorter**2,
                0.5 * magnitude(slope_changes(slope, near.d)) * (1 / near.d + PHI0 / shorter))
    square = 0.5 * fast**2 / shorter**2
    convex = max(square - 2 / above**3 + 2 / (above + info) ** 3, 0.0)      # of convex kinks; 0 unless t is short
    concave = negative(kinks) * (square + 2 / below**3 - 2 / (below + info) ** 3)
    return fast * drift + 0.25 * PHI0 / shorter * (convex * negative(-kinks) + concave)


@checked_jit
def slope_changes(D, d):
    """Of the lattice function D, 0 outside, from the node before its first to the one after its last."""
    out, rate = np.zeros(D.size + 2), 1 / d
    for i in range(D.size):
        out[i] = rate * D[i]
    for i in range(D.size):
        out[i + 1] -= 2 * rate * D[i]
    for i in range(D.size):
        out[i + 2] += rate * D[i]
    return out


@checked_jit
def negative(a):
    """Sum of the negative parts."""
    total = 0.0
    for v in a:
        total -= min(v, 0.0)
    return total


@checked_jit
def asked(grid, j, least):
    """The precisions for which the lower bound of level j is made; `least` is the smallest information."""
    if j == 0 or grid.tangent.size == 0:
        return Span(grid.levels[j], grid.levels[j])
    return Span(max(grid.levels[j - 1], grid.levels[0] + least), grid.levels[j + 1])


@checked_jit
def farthest(levels, u):
    """Up to which precision the lower bound of level u is kept below that of level u + 1, which holds there."""
    return min(1.5 * levels[u + 1] - 0.5 * levels[u], levels[min(u + 2, levels.size - 1)])


@checked_jit
def off(bend, beta):
    """What a lower bound loses beside its tangent at a distance of beta from its precision."""
    return bend[0] * beta * beta + (bend[1] * beta if beta > 0 else -bend[2] * beta)


@checked_jit
def ahead(grid, span, b, least, coarse):
    """Tangents at b: at most w - K m^+ at nodes -n .. n, for the precisions of `span`.

    The level nearest to b is used, but none before `least`.
    """
    levels, last, bent = grid.levels, grid.levels.size - 1, grid.tangent.size > 0
    l, u = rounding(b, levels)
    if u > last:
        return Tangents(grid.spacing[last], np.zeros(3), np.zeros(3), np.zeros(3))
    if bent and l >= least and b - levels[l] < levels[u] - b:
        u = l
    if u < last and span.high > farthest(levels, u) * (1 + 1e-12) or span.low < levels[max(u - 2, 0)]:
        u, bent = min(np.searchsorted(levels, span.high), last), False      # beyond what is known of u: w falls in b
    stride = thinned(grid.spacing[u], coarse)
    if u > 0 and span.low < levels[u - 1]:                  # there it is known at the nodes of the level below alone
        stride = max(stride, int(round(grid.spacing[u - 1] / grid.spacing[u])))
    D, d = level_nodes(grid, u, grid.D, stride), stride * grid.spacing[u]
    if not bent:
        return Tangents(d, D, np.zeros(D.size), np.zeros(3))
    slope, bend, beta = level_nodes(grid, u, grid.tangent, stride), grid.bend[:, u].copy(), b - levels[u]
    cost = off(bend, beta)
    for i in range(D.size):
        moved = D[i] + slope[i] * beta - cost
        D[i], slope[i] = (moved, slope[i] - 2 * bend[0] * beta) if moved > 0 else (0.0, 0.0)
    return Tangents(d, D, slope, bend)


@checked_jit
def exceeds(grid, u, v, span):
    """At most how far the lower bound of level u exceeds that of its neighbour v, over `span`, at common nodes.

    Both are parabolas there: neither level lies inside of `span`.
    """
    low, high = span.low, span.high
    d, wide = max(grid.spacing[u], grid.spacing[v]), 0.25 * (high - low) ** 2
    strides = int(round(d / grid.spacing[u])), int(round(d / grid.spacing[v]))
    D, slope = level_nodes(grid, u, grid.D, strides[0]), level_nodes(grid, u, grid.tangent, strides[0])
    D_v, slope_v = level_nodes(grid, v, grid.D, strides[1]), level_nodes(grid, v, grid.tangent, strides[1])
    bend, bend_v, skip, worst = grid.bend[:, u], grid.bend[:, v], D_v.size // 2 - D.size // 2, 0.0
    for i in range(D.size):
        most, over = -np.inf, -np.inf
        for b in (low, high):
            beta, beta_v, other = b - grid.levels[u], b - grid.levels[v], 0.0
            own = D[i] + slope[i] * beta - off(bend, beta)
            if 0 <= i + skip < D_v.size:
                other = D_v[i + skip] + slope_v[i + skip] * beta_v - off(bend_v, beta_v)
            most, over = max(most, own), max(over, own - other)
        worst = max(worst, min(most + bend[0] * wide, over + max(bend[0] - bend_v[0], 0.0) * wide))
    return worst


@checked_jit
def solve_level(grid, j, lo, q, group):
    """Fill the nodes of level j from those above it, with the slopes in b of the policy that it finds, and their bend.

    Returns how far from lo the lowest node is worth forwarding at, or -1.

    Where level j + 1 is used for precisions that level j is made for, it must not exceed level j, and the other way
    round: the kink of the one that does is deepened.  Short items of level j itself go by level j + 1 there: after its
    kink was deepened they are looked at again, and what it still exceeds by is paid for.
    """
    n, last, span = -grid.first[0, j] - lo + 1, grid.levels.size - 1, asked(grid, j, q[0])
    after = Answers(np.empty((q.size, n)), np.empty((q.size, n)), np.zeros((q.size, 3)))
    short, over, mass, gamma = span.low + q < grid.levels[j], 0.0, 0.0, grid.program.gamma
    gap, before = grid.levels[j + 1] - grid.levels[j], Span(span.low, grid.levels[j])
    for turn in range(AGAIN):
        for g in range(q.size):
            if turn == 0 or short[g]:
                put(step(after.value[g], after.change[g], grid, lo, j, q[g], span), after.bend[g])
        found = solve_nodes(grid, j, lo, group, after.value, True)
        if grid.tangent.size == 0 or j == 0 or found < 0 and lo > grid.first[0, j]:
            return found
        mass = fill_tangents(grid, j, lo, group, after, short)
        if j + 1 == last:
            return found
        over = exceeds(grid, j + 1, j, before)
        if over == 0 or mass == 0:
            break
        grid.bend[2, j + 1] += MORE * over / gap
    if over > 0:
        for k in range(grid.ptr[j], grid.ptr[j + 1]):
            grid.D[k] = max(grid.D[k] - gamma * mass / (1 - gamma) * over, 0.0)
            grid.tangent[k] *= grid.D[k] > 0
        grid.bend[2, j + 1] += exceeds(grid, j + 1, j, before) / gap
    beyond = Span(grid.levels[j + 1], farthest(grid.levels, j))
    grid.bend[1, j] += exceeds(grid, j, j + 1, beyond) / gap
    return found


@checked_jit
def fill_tangents(grid, j, lo, group, after, short):
    """Fill the slopes and the bend of level j: what a node forwards at b, it forwards at precisions near b as well.

    Returns the largest probability that a node learns from a short item.
    """
    program, at, most = grid.program, grid.ptr[j] - grid.first[0, j] + lo, 0.0
    x, p, gamma, idle, K = program.x, program.probs, program.gamma, program.idle, program.slope
    grid.tangent[grid.ptr[j]:grid.ptr[j + 1]], grid.bend[:, j] = 0.0, 0.0
    for i in range(after.value.shape[1]):
        if grid.D[at + i] == 0:
            continue
        m, slope, kept, mass, bend = (lo + i) * grid.spacing[j], 0.0, gamma * idle, 0.0, np.zeros(3)
        w = grid.D[at + i] + K * max(m, 0.0)
        for a in range(x.size):
            g = group[a]
            if x[a] * m + gamma * after.value[g, i] <= gamma * w:
                kept += p[a] * gamma
            else:
                mass += p[a] if short[g] else 0.0
                slope += p[a] * gamma * after.change[g, i]
                for c in range(3):
                    bend[c] += p[a] * gamma * after.bend[g, c]
        grid.tangent[at + i] = slope / (1 - kept)
        for c in range(3):
            grid.bend[c, j] = max(grid.bend[c, j], bend[c] / (1 - kept))
        most = max(most, mass)
    return most


@checked_jit
def sweep(program, fineness):
    """One sweep from precision b0 on: a LowerGrid."""
    levels, spacing, first, ptr, size = levels_of(program, fineness)
    grid = LowerGrid(levels, spacing, first, ptr, np.zeros(size), np.zeros(size if fineness.unit > 0 else 0),
                     np.zeros((3, levels.size)), program, fineness.read, fineness.reach)
    lowest = -fineness.reach
    q, group = informations(program)
    for j in range(levels.size - 2, -1, -1):
        lo = first_tried(grid, j, lowest)
        found = solve_level(grid, j, lo, q, group)
        while found < 0 and lo > first[0, j]:
            lo = max(2 * lo, first[0, j])
            found = solve_level(grid, j, lo, q, group)
        lowest = lowest_found(grid, j, lo, found)
    return grid


@checked_jit
def mean_value(grid, values, m, move):
    """At most E w(m + t Z, b) from w - K m^+ at precision b at some nodes; nan where they are too far apart for t."""
    less = shrunk(move.t, values.d, move.reach)
    if not less > 0:
        return np.nan
    return grid.program.slope * (excess(m, less) - less * psi(-move.reach)) + chords(values, m, Step(less, move.reach))


@checked_jit
def forward_values(grid, b, ms):
    """(n, points) at most what follows each atom at the points (ms, b): E w(m + t Z, b + info); nan: not known."""
    q = grid.program.info
    out = np.empty((q.size, ms.size))
    for a in range(q.size):
        if a > 0 and q[a] == q[a - 1]:
            put(out[a - 1], out[a])
            continue
        b_next = b + q[a]
        move = Step(math.sqrt(q[a] / (b * b_next)), grid.reach)
        near = ahead(grid, Span(b_next, b_next), b_next, 1, grid.read * move.t)
        values = Nodes(-(near.D.size // 2), near.d, near.D)
        for i in range(ms.size):
            out[a, i] = mean_value(grid, values, ms[i], move)
    return out
