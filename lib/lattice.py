"""Kernels of the two-feature sweep: bounds on the value at one belief state, and one layer of states.

A layer holds every state after the same number of forwards; `lib.optimum` builds the layers, says what is
computed and why both ends are bounds.
"""
from math import erfc, exp, pi, sqrt
from typing import NamedTuple

import numba as nb
import numpy as np


class Setting(NamedTuple):
    """What every layer of the sweep shares."""

    items: np.ndarray   # (n, 2)
    probs: np.ndarray   # (n,)
    cost: float
    gamma: float
    low: np.ndarray     # (2,) the smallest grid means
    sizes: np.ndarray   # (2,) grid points a feature
    step: float         # distance of neighbouring grid points
    per: float          # 1 / step
    tolerance: float    # the sweep stops where perfect information and commitment are this close
    nodes: np.ndarray   # (4, rules, longest) chord nodes, chord weights, tangent nodes, tangent weights
    lengths: np.ndarray  # (rules,) nodes of each rule


class Layer(NamedTuple):
    """All count vectors with one total."""

    after: np.ndarray   # (L, n) row of counts + e_x in the next layer
    sds: np.ndarray     # (L, n) standard deviation of x.theta
    moves: np.ndarray   # (L, n, 2) d_x, the move of the mean for one standard deviation of surprise
    rules: np.ndarray   # (L, n) which quadrature follows the move
    tails: np.ndarray   # (L, n) what the chords may miss beyond their reach
    spreads: np.ndarray  # (L, n, blocks) standard deviation of what can be learned of x.theta by the end of a block
    weights: np.ndarray  # (blocks,) discount of each block of arrivals


@nb.njit(cache=True)
def loss(z):
    """E (Z - z)^+ for standard normal Z."""
    return exp(-z * z / 2) / sqrt(2 * pi) - z * erfc(z / sqrt(2.0)) / 2


@nb.njit(cache=True)
def _ends(m1, m2, sds, setting):
    """Perfect information at mean (m1, m2), then commitment there: its value and its two slopes."""
    upper, lower, slope1, slope2 = 0.0, 0.0, 0.0, 0.0
    for x in range(len(sds)):
        weight = setting.probs[x] * setting.gamma / (1 - setting.gamma)
        net = setting.items[x, 0] * m1 + setting.items[x, 1] * m2 - setting.cost
        upper += weight * (sds[x] * loss(-net / sds[x]) if sds[x] > 0 else max(net, 0.0))
        if net > 0:
            lower += weight * net
            slope1 += weight * setting.items[x, 0]
            slope2 += weight * setting.items[x, 1]
    return upper, lower, slope1, slope2


@nb.njit(cache=True)
def _informed(m1, m2, spreads, weights, setting):
    """Perfect information held back: in block b of arrivals only `spreads[x, b]` of x.theta is known."""
    total = 0.0
    for x in range(spreads.shape[0]):
        net = setting.items[x, 0] * m1 + setting.items[x, 1] * m2 - setting.cost
        for b in range(len(weights)):
            sd = spreads[x, b]
            total += setting.probs[x] * weights[b] * (sd * loss(-net / sd) if sd > 0 else max(net, 0.0))
    return total


@nb.njit(cache=True)
def _first_forward(values, probs, gamma):
    """The solution of w = gamma sum_x probs_x max(w, values_x), by Newton steps from below."""
    w = 0.0
    while True:
        mass, total = 0.0, 0.0
        for x in range(len(values)):
            if values[x] > w:
                mass += probs[x]
                total += probs[x] * values[x]
        better = gamma * total / (1 - gamma + gamma * mass)
        if better <= w:
            return w
        w = better


@nb.njit(cache=True)
def _forward(m1, m2, x, layer, s, after, setting):
    """Bounds on x.m - cost + E V(s + e_x, m + d_x Z): the upper, then the lower plane's value and slopes.

    `after` is (uppers, planes, sds) of the next layer.  Off the grid its two ends stand in.
    """
    uppers, planes, sds = after
    t, rule, step = layer.after[s, x], layer.rules[s, x], setting.step
    move1, move2, slope1, slope2 = layer.moves[s, x, 0], layer.moves[s, x, 1], setting.items[x, 0], setting.items[x, 1]
    low = slope1 * m1 + slope2 * m2 - setting.cost
    high = low + layer.tails[s, x]
    for q in range(setting.lengths[rule]):
        z, weight = setting.nodes[0, rule, q], setting.nodes[1, rule, q]
        f1, f2 = (m1 + z * move1 - setting.low[0]) * setting.per, (m2 + z * move2 - setting.low[1]) * setting.per
        if f1 < 0 or f2 < 0 or f1 >= setting.sizes[0] - 1 or f2 >= setting.sizes[1] - 1:
            high += weight * _ends(m1 + z * move1, m2 + z * move2, sds[t], setting)[0]
        else:
            i, j = int(f1), int(f2)
            a, b = f1 - i, f2 - j
            high += weight * ((1 - a) * ((1 - b) * uppers[t, i, j] + b * uppers[t, i, j + 1])
                              + a * ((1 - b) * uppers[t, i + 1, j] + b * uppers[t, i + 1, j + 1]))
        z, weight = setting.nodes[2, rule, q], setting.nodes[3, rule, q]
        f1, f2 = (m1 + z * move1 - setting.low[0]) * setting.per, (m2 + z * move2 - setting.low[1]) * setting.per
        if f1 < 0 or f2 < 0 or f1 >= setting.sizes[0] - 1 or f2 >= setting.sizes[1] - 1:
            _, value, part1, part2 = _ends(m1 + z * move1, m2 + z * move2, sds[t], setting)
        else:
            i, j = int(f1 + 0.5), int(f2 + 0.5)
            part1, part2 = planes[t, i, j, 1], planes[t, i, j, 2]
            value = planes[t, i, j, 0] + step * (part1 * (f1 - i) + part2 * (f2 - j))
        low += weight * value
        slope1 += weight * part1
        slope2 += weight * part2
    return high, low, slope1, slope2


@nb.njit(cache=True)
def _point(m1, m2, layer, s, after, setting, plane):
    """Bounds on V at one belief state: the upper is returned, `plane` receives the lower."""
    ceiling, plane[0], plane[1], plane[2] = _ends(m1, m2, layer.sds[s], setting)
    if ceiling - plane[0] < setting.tolerance:
        return ceiling
    n = len(setting.probs)
    values = np.empty((4, n))
    for x in range(n):
        values[0, x], values[1, x], values[2, x], values[3, x] = _forward(m1, m2, x, layer, s, after, setting)
    w = _first_forward(values[1], setting.probs, setting.gamma)
    if w > plane[0]:
        mass = 0.0
        plane[:] = 0.0
        for x in range(n):
            if values[1, x] > w:
                mass += setting.probs[x]
                for i in range(3):
                    plane[i] += setting.probs[x] * values[1 + i, x]
        plane *= setting.gamma / (1 - setting.gamma + setting.gamma * mass)
    return min(ceiling, _first_forward(values[0], setting.probs, setting.gamma))


@nb.njit(cache=True, parallel=True)
def sweep(layer, after, setting, last):
    """One layer, its states in parallel: (L, m1, m2) uppers and (L, m1, m2, 3) planes; `last` only starts."""
    states, m1, m2 = len(layer.sds), setting.sizes[0], setting.sizes[1]
    uppers, planes = np.empty((states, m1, m2)), np.empty((states, m1, m2, 3))
    for s in nb.prange(states):
        for i in range(m1):
            for j in range(m2):
                mean1, mean2 = setting.low[0] + i * setting.step, setting.low[1] + j * setting.step
                if last:
                    uppers[s, i, j] = _informed(mean1, mean2, layer.spreads[s], layer.weights, setting)
                    planes[s, i, j] = _ends(mean1, mean2, layer.sds[s], setting)[1:]
                else:
                    uppers[s, i, j] = _point(mean1, mean2, layer, s, after, setting, planes[s, i, j])
    return uppers, planes
