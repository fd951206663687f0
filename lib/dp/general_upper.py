"""The certified upper bound for items of any sign and charge: the sweep of lib.dp.upper with another Bellman equation (kernels).

In b  log((w + E L(theta)) / sqrt(b)) is convex at fixed m, L(theta) = E (x theta - charge)^- / (1 - gamma): a chord between
two levels, and Taylor's polynomial of degree three below E L; in m chords, that is a law on the nodes that dominates the
normal one; at the last level all later answers are seen for free (chapter "The certified sweep", section "Items of any sign,
charges of any kind").
"""
import math
from typing import NamedTuple

import numpy as np

from lib.compiled import checked_jit, jit
from lib.dp.atoms import committed, levels_of, outside, solve_nodes, solve_points
from lib.dp.certified import magnitude
from lib.dp.grid import Nodes, Program, arrival, level_nodes, rounding, thinned
from lib.dp.lookup import alike
from lib.dp.quadrature import Step, chords, expectation
from lib.dp.upper import AGAIN, CLOSE, on_level, predict
from lib.normal import PHI0, ROOT, excess, gain, psi, tail


class GeneralGrid(NamedTuple):
    """The levels of an upper sweep and its values."""

    levels: np.ndarray    # (J,) precisions, ascending
    spacing: np.ndarray   # (J,) lattice spacing in the mean, nonincreasing, halved now and then
    first: np.ndarray     # (2, J) first lattice index and number of points of each level
    ptr: np.ndarray       # (J,) where each level starts in D
    D: np.ndarray         # at least w - line - K m^+, level after level
    known: np.ndarray     # (4, size) E L + line + K m^+ at the same nodes, and its first three derivatives in b, without sign
    program: Program      # what is swept
    read: float           # spacing of the lattice that a look-up reads, steps of the mean
    reach: float          # where tails are cut, standard deviations


@checked_jit
def ahead(grid, b, coarse):
    """At least D at precision b at nodes -n .. n, from the levels around b."""
    levels, last = grid.levels, grid.levels.size - 1
    l, u = rounding(b, levels)
    if l == u or u > last:
        return on_level(grid, min(u, last), coarse)
    ratio, stride = int(round(grid.spacing[l] / grid.spacing[u])), thinned(grid.spacing[l], coarse)
    D, D_u = level_nodes(grid, l, grid.D, stride), level_nodes(grid, u, grid.D, ratio * stride)
    known_u = level_nodes(grid, u, grid.known[0], ratio * stride)
    n = min(D.size, D_u.size) // 2
    low, cut, skip = D.size // 2 - n, grid.ptr[l] - grid.first[0, l] - n * stride, D_u.size // 2 - n
    D = D[low:low + 2 * n + 1]
    known = grid.known[:, cut:cut + 2 * n * stride + 1:stride]
    share, beta = (b - levels[l]) / (levels[u] - levels[l]), b - levels[l]
    chord(D, known, D_u[skip:] + known_u[skip:], share, beta, (levels[l], levels[u]))
    return Nodes(-n, stride * grid.spacing[l], D)


@jit
def chord(D, known, Q_u, share, beta, ends):
    """Turn the D of a level into a bound `beta` above it, `share` of the way between the two `ends`.

    With Q = D + known: Q sqrt(b/below) (1 - e)^share, 1 - e the ratio of Q / sqrt(b) at the two levels; the series
    of the power has no positive terms after the first, and Taylor's of `known` none that is negative after the last.
    """
    up, ratio = math.sqrt(1 + beta / ends[0]), math.sqrt(ends[0] / ends[1])
    c1, c2, c3, c4 = share, (1 - share) / 2, (2 - share) / 3, (3 - share) / 4
    for i in range(D.size):
        Q = D[i] + known[0, i]
        e = max(1 - ratio * Q_u[i] / Q, 0.0)
        top = Q * up * (1 - c1 * e * (1 + c2 * e * (1 + c3 * e * (1 + c4 * e))))
        less = known[0, i] - beta * (known[1, i] - beta / 2 * (known[2, i] - beta / 3 * known[3, i]))
        D[i] = max(min(top - less, D[i]), 0.0)


@checked_jit
def step(out, grid, atoms, j, info, hindsight):
    """out[i] >= E (w - line)(m_i + t Z, b + info) at the nodes m_i of level j, t^2 = 1/b - 1/(b + info), and at most hindsight[i]."""
    b, b_next, K = grid.levels[j], grid.levels[j] + info, grid.program.slope
    values, move = ahead(grid, b_next, 0.0), Step(math.sqrt(info / (b * b_next)), grid.reach)
    cut = outside(grid.program, atoms, values.D.size // 2 * values.d, b_next)
    out[:] = cut + 2 * tail(grid.reach) * magnitude(values.D) + K * move.t * psi(-grid.reach)
    expectation(out, grid.first[0, j], int(round(grid.spacing[j] / values.d)), values, move, K)
    for i in range(out.size):
        out[i] = min(out[i], hindsight[i])


@checked_jit
def full_observation_gain(program, b, z):
    """What full observation earns above commitment, for one break-even mean at a distance of z and a slope change of 1.

    (1 - gamma) / mass a/gamma sum_n a^n E ((z + t_n Z)^+ - z^+), a the discount from one item that teaches to the next.
    Each tells at most 1, and n is rounded up to some 25 values, so the sum errs upward.
    """
    a, total, n = arrival(program.gamma, program.probs.sum()), 0.0, 0
    most = 45 / -math.log(a) + 1
    while n <= most:
        first, n = n + 1, max(n + 1, math.ceil(n * most ** (1 / 40)))
        last = n > most
        total += (a**first - (0.0 if last else a ** (n + 1))) * gain(z, math.sqrt(1 / b if last else n / (b * (b + n))))
    return total


@checked_jit
def start(grid, atoms):
    """Fill the last level: all later answers are seen for free, each that teaches telling as much as the best."""
    j = grid.levels.size - 1
    for i in range(grid.first[1, j]):
        m = (grid.first[0, j] + i) * grid.spacing[j]
        grid.D[grid.ptr[j] + i] = committed(atoms, m)
        for k in range(atoms.kink.size):
            if abs(m - atoms.kink[k]) < 9 / math.sqrt(grid.levels[j]):
                grid.D[grid.ptr[j] + i] += atoms.bend[k] * full_observation_gain(grid.program, grid.levels[j], m - atoms.kink[k])


@checked_jit
def fill_known(grid, atoms, j):
    """Fill `known` of level j: sum_k bend_k E (theta - kink_k)^- + K m^+ + rest, and its derivatives in b without sign."""
    b, root, at = grid.levels[j], math.sqrt(grid.levels[j]), grid.ptr[j]
    for i in range(grid.first[1, j]):
        m, known = (grid.first[0, j] + i) * grid.spacing[j], grid.known[:, at + i]
        known[0], known[1:] = atoms.rest + grid.program.slope * max(m, 0.0), 0.0
        for k in range(atoms.kink.size):
            z, bend = (m - atoms.kink[k]) * root, atoms.bend[k]
            known[0] += bend * max(-z, 0.0) / root
            if abs(z) < 9:
                density = PHI0 * math.exp(-0.5 * z * z)
                fall, a = bend * density / (2 * root**3), 1.5 / b + 0.5 * z * z / b
                known[0] += bend * max(density - 0.5 * abs(z) * math.erfc(abs(z) * ROOT), 0.0) / root
                known[1] += fall
                known[2] += fall * a
                known[3] += fall * (a * a + 1.5 / b**2)


@checked_jit
def short_items(grid, atoms, j):
    """(informations,) which end below level j + 1, and the probability of their atoms."""
    short, mass = np.zeros(grid.program.info.size, np.bool_), 0.0
    for g in range(short.size):
        short[g] = rounding(grid.levels[j] + grid.program.info[g], grid.levels)[0] <= j
        mass += grid.program.probs[g] if short[g] else 0.0
    return short, mass


@checked_jit
def solve_level(grid, atoms, j):
    """Fill the nodes of level j from those above it.

    Where an information ends below level j + 1, level j itself is needed: a prediction c serves, and is replaced by
    what comes out, T(c).  As T has modulus M < 1, T(c) + M/(1 - M) max(T(c) - c, 0) is an upper bound for every c.
    """
    b, d, n, beyond = grid.levels[j], grid.spacing[j], grid.first[1, j], 2 * tail(grid.reach)
    gamma, K, q = grid.program.gamma, grid.program.slope, grid.program.info
    own, hindsight, after = grid.D[grid.ptr[j]:grid.ptr[j] + n], np.empty(n), np.empty((q.size, n))
    short, mass = short_items(grid, atoms, j)
    near, slack = CLOSE * K * d * d * math.sqrt(b), 0.0
    for i in range(n):
        hindsight[i] = grid.known[0, grid.ptr[j] + i] - atoms.rest + K * min((grid.first[0, j] + i) * d, 0.0)
    if mass > 0:                                       # at most: all that is left to the next level is told at once
        step(own, grid, atoms, j, grid.levels[j + 1] - b, hindsight)
        for i in range(n):
            own[i] -= K * max((grid.first[0, j] + i) * d, 0.0)
        predict(own, grid, j, grid.first[0, j], near)
    for turn in range(AGAIN):
        before = own.copy()
        for g in range(q.size):
            if turn == 0 or short[g]:
                step(after[g], grid, atoms, j, q[g], hindsight)
        solve_nodes(grid, atoms, j, after, False)
        slack = gamma * mass * (1 + beyond) / (1 - gamma - gamma * beyond) * max((own - before).max(), 0.0)
        if mass == 0 or slack <= near and (before - own).max() <= 100 * near:
            break
    for i in range(n):
        own[i] += slack


@checked_jit
def sweep(program, atoms, fineness):
    """One sweep from precision b0 on: a GeneralGrid."""
    levels, spacing, first, ptr, size = levels_of(program, atoms, fineness)
    grid = GeneralGrid(levels, spacing, first, ptr, np.zeros(size), np.empty((4, size)), program, fineness.read, fineness.reach)
    start(grid, atoms)
    for j in range(levels.size - 1, -1, -1):
        fill_known(grid, atoms, j)
        if j < levels.size - 1:
            solve_level(grid, atoms, j)
    return grid


@checked_jit
def mean_value(grid, atoms, values, m, move, b, edge):
    """At least E (w - line)(m + t Z, b) from D at some nodes of a lattice that ends at -edge and edge."""
    program, reach = grid.program, grid.reach
    cut = outside(program, atoms, edge, b) + 2 * tail(reach) * outside(program, atoms, 0.0, b)
    return program.slope * excess(m, move.t) + cut + chords(values, m, move)


@checked_jit
def forward_values(grid, atoms, b, ms):
    """(informations, points) at least what follows each information at the points (ms, b), less its line."""
    q = grid.program.info
    out = np.empty((q.size, ms.size))
    for g in range(q.size):
        move = Step(math.sqrt(q[g] / (b * (b + q[g]))), grid.reach)
        values = ahead(grid, b + q[g], grid.read * move.t)
        for i in range(ms.size):
            out[g, i] = mean_value(grid, atoms, values, ms[i], move, b + q[g], values.D.size // 2 * values.d)
    return out


@checked_jit
def values(grid, atoms, m, b):
    """(n,) the upper value at the points (m, b), all b finite."""
    out, i = np.zeros(m.size), 0
    while i < m.size:
        j = alike(b, i)
        solve_points(grid.program, atoms, forward_values(grid, atoms, b[i], m[i:j]), m[i:j], out[i:j])
        i = j
    return out
