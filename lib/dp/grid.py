"""Precision levels and mean lattices of a sweep, the fewer atoms that it uses, and the Grid that it fills (table units).

None of these choices touches the validity of a bracket, only its width and its cost.
"""
import math
from typing import NamedTuple

import numba as nb
import numpy as np


class Fineness(NamedTuple):
    """How finely a table is swept."""

    unit: float           # spacing of the levels, over their precision or (best value) in mean informations at the first;
                          # 0: the lattice of the items alone
    end: float            # what may be left to learn at the last level
    eta: float            # spacing of the lattice of the mean, posterior standard deviations (or see `lattices`)
    kappa: float          # lattice points in a step of the mean
    reach: float          # tails are cut at this many standard deviations, and by a bound paid for
    atoms: int            # informations kept
    read: float           # spacing of the lattice that a look-up reads, steps of the mean
    far: float            # largest informations above the first level that are `served` as sharply; 0: that level alone


def groups(q, p, most):
    """(n,) group of each of the ascending informations q: at most `most` groups with like shares of E[q]."""
    share = np.cumsum(p * q) - 0.5 * p * q
    return np.minimum((share / np.sum(p * q) * most).astype(int), most - 1)


def rounded(kind, x, q, p, most):
    """Fewer atoms, no better (LOWER) or no worse (UPPER): chapter "The dynamic program", section "Many magnitudes".

    At most `most` informations: a group gets its largest (UPPER) or smallest.  Then atoms of one information whose
    magnitudes are close become their mean (LOWER) or are moved to the ends of their cell (UPPER).
    """
    if q.size > most and np.unique(q).size > most:
        group = groups(q, p, most)
        edge = np.full(most, -np.inf if kind == UPPER else np.inf)
        (np.maximum if kind == UPPER else np.minimum).at(edge, group, q)
        q = edge[group]
    if x.size <= min(most, CELLS):
        return x, q, p
    cell = np.minimum((x / x.max() * CELLS).astype(int), CELLS - 1)
    ends, where = np.unique(np.column_stack((q, cell)), axis=0, return_inverse=True)
    where, q = where.ravel(), ends[:, 0].copy()        # contiguous, or the kernels would be compiled again
    P = np.bincount(where, p)
    mean = np.bincount(where, p * x) / P
    if kind == LOWER:
        return mean, q, P
    low, high = np.full(P.size, np.inf), np.full(P.size, -np.inf)
    np.minimum.at(low, where, x)
    np.maximum.at(high, where, x)
    share = np.divide(mean - low, high - low, out=np.zeros(P.size), where=high > low)
    pairs = np.column_stack((low, high)).ravel(), np.repeat(q, 2), np.column_stack((P * (1 - share), P * share)).ravel()
    return tuple(part[pairs[2] > 0] for part in pairs)


def thin(x, q, p, most):
    """At most `most` atoms with the same E[x] and E[q]: neighbours are merged (no bound)."""
    if x.size <= most:
        return x, q, p
    group = groups(q, p, most)
    P = np.bincount(group, p)
    keep = P > 0
    return np.bincount(group, p * x)[keep] / P[keep], np.bincount(group, p * q)[keep] / P[keep], P[keep]


UPPER, LOWER, GUESS = 0, 1, 2


class Grid(NamedTuple):
    """The levels of one sweep and its values."""

    levels: np.ndarray    # (J,) precisions, ascending
    spacing: np.ndarray   # (J,) lattice spacing in the mean, nonincreasing, halved now and then
    first: np.ndarray     # (2, J) first lattice index and number of points of each level
    ptr: np.ndarray       # (J,) where each level starts in D
    D: np.ndarray         # w - K max(m, 0), level after level
    x: np.ndarray         # (n,) magnitudes of the sweep, and
    info: np.ndarray      # (n,) what each adds to the precision, ascending, and
    probs: np.ndarray     # (n,) their probabilities
    read: np.ndarray      # spacing of the lattice that a look-up reads, in steps of the mean; where tails are cut, in sd
    extra: np.ndarray     # upper: K (E theta^- + m^+) and its fall in b; lower: slope of w in b, if it is kept; one for each of D
    bend: np.ndarray      # (3, J) lower: curvature, kink above and kink below, lib.dp.certified


@nb.njit(cache=True)
def rounding(b, levels):
    """(l, u): levels[l] <= b <= levels[u], equal where b is a level; -1 below all, levels.size above all."""
    u = np.searchsorted(levels, b * (1 - 1e-14))
    if u < levels.size and levels[u] <= b * (1 + 1e-14):
        return u, u
    return u - 1, u


@nb.njit(cache=True)
def thinned(d, coarse):
    """The largest power of two that keeps the spacing d at most `coarse`, at least 1."""
    stride = 1
    while 2 * stride * d <= coarse:
        stride *= 2
    return stride


@nb.njit(cache=True)
def nodes(grid, level, values, stride):
    """`values` at every stride-th node of a level, m = 0 in the middle."""
    n = -grid.first[0, level]
    start = grid.ptr[level] + n % stride
    return values[start:grid.ptr[level] + 2 * n + 1:stride].copy()


@nb.njit(cache=True)
def learnable_sd(b, gamma):
    """Standard deviation of all later moves of the mean that the discount does not drown (gamma^n < 1e-16)."""
    n = 37 / -math.log(gamma)
    return math.sqrt(n / (b * (b + n)))


CELLS = 64              # more magnitudes than this are merged, level by level


@nb.njit(cache=True)
def arrival(gamma, mass):
    """Expected discount from one item to the next that is not of size 0, their probability being `mass`."""
    return gamma * mass / (1 - gamma * (1 - mass))


@nb.njit(cache=True)
def last_precision(b0, q, p, gamma, end, least):
    """From where at most about `end` of the value is left to learn, and at least `least`; q ascending.

    E gamma^N, N the items until b is reached when all are forwarded, falls like exp(-rate (b - b0)), where a step
    with that rate for interest is fair: gamma (E e^(rate q) + idle) = 1, by Newton's method from above.
    """
    idle = 1 - p.sum()
    need = 1 / gamma - idle
    rate, moved = min(math.log(need / p.sum()) * p.sum() / np.sum(p * q), math.log(need / p[-1]) / q[-1]), 1.0
    while moved > 1e-3 * rate:
        grown = p * np.exp(rate * q)
        moved = (grown.sum() - need) / np.sum(grown * q)
        rate -= moved
    log = -math.log(arrival(gamma, p.sum()))
    scale = math.sqrt(b0) * (1 + log) / log**1.5
    step, last = q[-1], b0 + q[-1]
    while math.exp(-rate * (last - b0)) / last * scale > end or last < least:
        step *= 1.05
        last += step
    return last


def precisions(b0, q, p, gamma, fineness):
    """Ascending precision levels of the best value, from b0 to where nothing is left to learn.

    Information alike for all items: the exact lattice b0 + j q; unit = 0 asks for it alone.  Otherwise the levels
    are `unit` mean informations apart at b0 and wider where the future is discounted.
    """
    if not fineness.unit:
        return ladder(b0, q, p, gamma, fineness)
    rate, square, most = np.sum(p * q), np.sum(p * q * q), q.max()
    last = last_precision(b0, q, p, gamma, fineness.end, b0 + fineness.far + 3 / (1 - gamma))
    chain = b0 + np.arange(math.ceil((last - b0) / most) + 1) * most if q.min() == most else b0 + np.unique(q)[:CELLS]
    levels = [b0]
    while levels[-1] < max(last, chain[-1]):
        b = levels[-1]
        later = min(-0.5 * math.log(gamma) * (b - b0) * rate / square, 50.0)
        graded = fineness.unit * rate / p.sum() * math.sqrt(b / b0) * math.exp(later)
        levels.append(b + max(min(graded, most / 2, 0.1 * b), 3e-4 * b))
    levels = np.union1d(chain, levels)
    return levels[np.append(True, np.diff(levels) > 1e-12 * levels[1:])]


@nb.njit(cache=True)
def learnable(b, q, p, gamma):
    """Share of the standard deviation of theta that the horizon lets anyone learn from precision b on, in (0, 1]."""
    ahead = np.sum(p * q) / p.sum() * max(1.0, p.sum() / -math.log(gamma))
    return math.sqrt(ahead / (b + ahead))


@nb.njit(cache=True)
def discounted(b, sharp, q, p, gamma):
    """-log of the discount of what is reached at precision b, counted from precision `sharp` on."""
    return -math.log(gamma) * p.sum() / np.sum(p * q) * max(b - sharp, 0.0)


@nb.njit(cache=True)
def served(q, p, far):
    """`far` largest informations, or three times as many average ones where the largest are rare."""
    return far * min(1.0, 3 * np.sum(p * q) / p.sum())


@nb.njit(cache=True)
def ladder(b0, q, p, gamma, fineness):
    """Ascending precision levels of a bound: b0, then from b0 + the least information that counts on.

    unit = 0: the lattice b0 + j q of items of one information.  Otherwise the spacing grows with the precision and,
    beyond what is `served` sharply, where the future is discounted.
    """
    if fineness.unit == 0:
        last = last_precision(b0, q, p, gamma, fineness.end * min(1.0, math.sqrt(1 / (1 - gamma) / b0)), 0.0)
        return b0 + np.arange(math.ceil((last - b0) / q[-1]) + 1) * q[-1]
    sharp = b0 + served(q, p, fineness.far)
    least = sharp + served(q, p, 3 / (1 - gamma)) if fineness.far > 0 else 0.0
    last, levels = last_precision(b0, q, p, gamma, fineness.end, least), [b0, b0 + max(q[0], 1e-9 * b0)]
    while levels[-1] < last:
        b = levels[-1]
        later = discounted(b, sharp, q, p, gamma) / 4
        unit = fineness.unit * b * learnable(min(b, sharp), q, p, gamma)
        levels.append(b + min(unit * math.exp(min(later, 3.0)), max(q[-1], unit)))
    return np.array(levels)


@nb.njit(cache=True)
def spread(levels, q, p, gamma, eta):
    """(share, a): spacings of share a^(-items/4) standard deviations are worth a relative error of about eta^2 at the
    first level.  An error at a level is made with the discounted probability of getting there, so they may widen.
    """
    a, mean = max(arrival(gamma, p.sum()), 1e-3), np.sum(p * q) / p.sum()
    value, error = 0.0, 0.0                             # of a lattice of spacing sd weight^-1/4
    for j in range(1, levels.size):
        each = (levels[j] - levels[j - 1]) / mean
        weight = max(a ** ((levels[j] - levels[0]) / mean), 1e-60)
        moved = math.sqrt(1 / levels[0] - 1 / levels[j])
        value += each * weight * moved
        error += each * math.sqrt(weight) / levels[j] / moved
    return min(eta * math.sqrt((1 - a) * value / (error / 8)), 1.0), a


@nb.njit(cache=True)
def lattices(levels, q, p, gamma, fineness, bound):
    """Lattice spacing of each level: the widest that start with the first target and halve now and then.

    The target is at most 1/kappa of a step of the mean, for the information that teaches most, and a share of the
    posterior standard deviation: eta, or as `spread` has it where only the first level has to be sharp; of a `bound`
    between levels it counts what can be learned, and grows beyond what is served, where the future is discounted.
    """
    b0, eta, out, halvings = levels[0], fineness.eta, np.empty(levels.size), 0.0
    sharp = b0 + served(q, p, fineness.far)
    first, a = spread(levels, q, p, gamma, eta) if fineness.far == 0 else (eta, 1.0)
    graded, info, mean = bound and fineness.unit > 0, np.sum(p * q * q) / np.sum(p * q), np.sum(p * q) / p.sum()
    for j in range(levels.size):
        b = levels[j]
        share = first * max(a ** ((b - b0) / mean), 1e-60) ** -0.25
        if graded and fineness.far == 0:
            share = min(max(share, 0.15 * eta * learnable(b0, q, p, gamma)), 0.3)      # where levels are many items apart
        elif graded:
            share *= learnable(min(b, sharp), q, p, gamma) * math.exp(min(discounted(b, sharp, q, p, gamma) / 4, 2.0))
        target = share / math.sqrt(b)
        if not graded or fineness.far == 0:
            target = min(target, math.sqrt(1 / b - 1 / (b + info)) / fineness.kappa)
        if j == 0:
            out[0] = target
        halvings = max(halvings, math.ceil(math.log2(out[0] / target) - 1e-9))
        out[j] = out[0] * 0.5**halvings
    return out
