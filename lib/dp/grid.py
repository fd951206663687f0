"""Programs in table units, the fewer atoms that a sweep uses, and its precision levels and lattices of the mean.

Table units: noise_sd = 1, largest information per item 1.  State: net mean m and precision b.  Every sweep stores
D = w - K m^+, K = E[x] / (1 - gamma), on a lattice l d of the mean for each of its levels of precision; d falls by
halves from level to level, so that lattices are nested (chapter "The certified sweep", section "A sweep that errs to a
known side").  None of the choices made here touches the validity of a bracket, only its width and its cost.
"""
import math
from typing import NamedTuple

import numpy as np

from lib.compiled import checked_jit

CELLS = 64              # more magnitudes than this are merged, level by level
APART = 1e-12           # the first two levels are at least this far apart, of their precision


class Program(NamedTuple):
    """A single-feature problem in table units; atoms of magnitude 0 are left out."""

    x: np.ndarray         # (n,) magnitudes
    info: np.ndarray      # (n,) what each adds to the precision, ascending
    probs: np.ndarray     # (n,) their probabilities
    gamma: float          # discount factor, positive
    idle: float           # probability of an item of magnitude 0
    slope: float          # K = E[x] / (1 - gamma)
    b0: float             # least precision, that of var_max


def make_program(x, info, probs, gamma, b0):
    """The Program of atoms with ascending information."""
    return Program(x, info, probs, float(gamma), 1 - probs.sum(), np.sum(x * probs) / (1 - gamma), float(b0))


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


class Nodes(NamedTuple):
    """Values at the nodes first d, (first + 1) d, ... of a lattice of the mean, 0 outside."""

    first: int
    d: float
    D: np.ndarray


def groups(q, p, most):
    """(n,) group of each of the ascending informations q: at most `most` groups with like shares of E[q]."""
    share = np.cumsum(p * q) - 0.5 * p * q
    return np.minimum((share / np.sum(p * q) * most).astype(int), most - 1)


def grouped(program, most, edge, start):
    """(n,) informations: each group has its largest (edge = np.maximum) or its smallest (np.minimum)."""
    q = program.info
    if q.size <= most or np.unique(q).size <= most:
        return q
    group, ends = groups(q, program.probs, most), np.full(most, start)
    edge.at(ends, group, q)
    return ends[group]


def cells(x, q, p):
    """(informations, probabilities, mean magnitudes, cell of each atom) of atoms alike in information, close in magnitude."""
    cell = np.minimum((x / x.max() * CELLS).astype(int), CELLS - 1)
    ends, where = np.unique(np.column_stack((q, cell)), axis=0, return_inverse=True)
    where = where.ravel()
    P = np.bincount(where, p)
    return ends[:, 0].copy(), P, np.bincount(where, p * x) / P, where      # contiguous, or the kernels are compiled again


def no_better(program, most):
    """Fewer atoms that are worth no more: chapter "The certified sweep", section "Many magnitudes".

    At most `most` informations, each group with its smallest; close magnitudes of one information become their mean.
    """
    x, q, p = program.x, grouped(program, most, np.minimum, np.inf), program.probs
    if x.size > min(most, CELLS):
        q, p, x, _ = cells(x, q, p)
    return make_program(x, q, p, program.gamma, program.b0)


def no_worse(program, most):
    """Fewer atoms that are worth no less: each group has its largest information, and close magnitudes of one
    information are moved to the two ends of their cell.
    """
    x, q, p = program.x, grouped(program, most, np.maximum, -np.inf), program.probs
    if x.size > min(most, CELLS):
        q, P, mean, where = cells(x, q, p)
        low, high = np.full(P.size, np.inf), np.full(P.size, -np.inf)
        np.minimum.at(low, where, x)
        np.maximum.at(high, where, x)
        share = np.divide(mean - low, high - low, out=np.zeros(P.size), where=high > low)
        x, q, p = np.column_stack((low, high)).ravel(), np.repeat(q, 2), np.column_stack((P * (1 - share), P * share)).ravel()
        x, q, p = x[p > 0], q[p > 0], p[p > 0]
    return make_program(x, q, p, program.gamma, program.b0)


def thin(program, most):
    """At most `most` atoms with the same E[x] and E[info]: neighbours are merged (no bound)."""
    x, q, p = program.x, program.info, program.probs
    if x.size <= most:
        return program
    group = groups(q, p, most)
    P = np.bincount(group, p)
    keep = P > 0
    x, q = np.bincount(group, p * x)[keep] / P[keep], np.bincount(group, p * q)[keep] / P[keep]
    return make_program(x, q, P[keep], program.gamma, program.b0)


@checked_jit
def rounding(b, levels):
    """(l, u): levels[l] <= b <= levels[u], equal where b is a level; -1 below all, levels.size above all."""
    u = np.searchsorted(levels, b * (1 - 1e-14))
    if u < levels.size and levels[u] <= b * (1 + 1e-14):
        return u, u
    return u - 1, u


@checked_jit
def thinned(d, coarse):
    """The largest power of two that keeps the spacing d at most `coarse`, at least 1."""
    stride = 1
    while 2 * stride * d <= coarse:
        stride *= 2
    return stride


def arrays(grid):
    """A grid's own arrays by name, without those of its program."""
    return {name: part for name, part in grid._asdict().items() if isinstance(part, np.ndarray)}


def nbytes(grid):
    """Bytes of all arrays of a grid."""
    return sum(part.nbytes for part in (*grid, *grid.program) if isinstance(part, np.ndarray))


@checked_jit
def level_nodes(grid, level, values, stride):
    """`values` at every stride-th node of a level, m = 0 in the middle."""
    n = -grid.first[0, level]
    start = grid.ptr[level] + n % stride
    return values[start:grid.ptr[level] + 2 * n + 1:stride].copy()


@checked_jit
def learnable_sd(b, gamma):
    """Standard deviation of all later moves of the mean that the discount does not drown (gamma^n < 1e-16)."""
    n = 37 / -math.log(gamma)
    return math.sqrt(n / (b * (b + n)))


@checked_jit
def arrival(gamma, mass):
    """Expected discount from one item to the next that is not of size 0, their probability being `mass`."""
    return gamma * mass / (1 - gamma * (1 - mass))


@checked_jit
def last_precision(program, end, least):
    """From where at most about `end` of the value is left to learn, and at least `least`; q ascending.

    E gamma^N, N the items until b is reached when all are forwarded, falls like exp(-rate (b - b0)), where a step
    with that rate for interest is fair: gamma (E e^(rate q) + idle) = 1, by Newton's method from above.
    """
    q, p, b0, gamma = program.info, program.probs, program.b0, program.gamma
    need = 1 / gamma - program.idle
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


def precisions(program, fineness):
    """Ascending precision levels of the best value, from b0 to where nothing is left to learn.

    Information alike for all items: the exact lattice b0 + j q; unit = 0 asks for it alone.  Otherwise the levels
    are `unit` mean informations apart at b0 and wider where the future is discounted, though not more than e times:
    decisions are read there as well.
    """
    if not fineness.unit:
        return ladder(program, fineness)
    q, p, b0, gamma = program.info, program.probs, program.b0, program.gamma
    rate, square, most = np.sum(p * q), np.sum(p * q * q), q.max()
    last = last_precision(program, fineness.end, b0 + fineness.far + 3 / (1 - gamma))
    chain = b0 + np.arange(math.ceil((last - b0) / most) + 1) * most if q.min() == most else b0 + np.unique(q)[:CELLS]
    levels = [b0]
    while levels[-1] < max(last, chain[-1]):
        b = levels[-1]
        later = min(-0.5 * math.log(gamma) * (b - b0) * rate / square, 1.0)
        graded = fineness.unit * rate / p.sum() * math.sqrt(b / b0) * math.exp(later)
        levels.append(b + max(min(graded, most / 2, 0.1 * b), min(3e-4 * b, max(most / 2, 3e-4 * (b - b0)))))
    levels = np.union1d(chain, levels)
    return levels[np.append(True, np.diff(levels) > 1e-12 * levels[1:])]


@checked_jit
def learnable(program, b):
    """Share of the standard deviation of theta that the horizon lets anyone learn from precision b on, in (0, 1]."""
    mass = program.probs.sum()
    ahead = np.sum(program.probs * program.info) / mass * max(1.0, mass / -math.log(program.gamma))
    return math.sqrt(ahead / (b + ahead))


@checked_jit
def discounted(program, b, sharp):
    """-log of the discount of what is reached at precision b, counted from precision `sharp` on."""
    each = np.sum(program.probs * program.info) / program.probs.sum()
    return -math.log(program.gamma) / each * max(b - sharp, 0.0)


@checked_jit
def served(program, far):
    """`far` largest informations, or three times as many average ones where the largest are rare."""
    return far * min(1.0, 3 * np.sum(program.probs * program.info) / program.probs.sum())


@checked_jit
def ladder(program, fineness):
    """Ascending precision levels of a bound: b0, then from b0 + the least information that counts on.

    unit = 0: the lattice b0 + j q of items of one information.  Otherwise the spacing grows with the precision and,
    beyond what is `served` sharply, where the future is discounted.  Of a prior that is sharp already it is counted
    from the prior on: what is learned is that much, and each level lets a policy learn from one more item.
    """
    q, b0, horizon = program.info, program.b0, 1 / (1 - program.gamma)
    end = fineness.end * min(1.0, math.sqrt(horizon / b0))
    if fineness.unit == 0:
        last = last_precision(program, end, 0.0)
        return b0 + np.arange(math.ceil((last - b0) / q[-1]) + 1) * q[-1]
    sharp = b0 + served(program, fineness.far)
    least = sharp + served(program, 3 * horizon) if fineness.far > 0 else 0.0
    last, levels = last_precision(program, end, least), [b0, b0 + max(q[0], APART * b0)]
    while levels[-1] < last:
        b = levels[-1]
        later = discounted(program, b, sharp) / 4
        unit = min(fineness.unit * b * learnable(program, min(b, sharp)), max(q[-1], 2 * fineness.unit * (b - b0)))
        levels.append(b + min(unit * math.exp(min(later, 3.0)), max(q[-1], unit)))
    return np.array(levels)


@checked_jit
def spread(program, levels, eta):
    """(share, a): spacings of share a^(-items/4) standard deviations are worth a relative error of about eta^2 at the
    first level.  An error at a level is made with the discounted probability of getting there, so they may widen.
    """
    mass = program.probs.sum()
    a, mean = max(arrival(program.gamma, mass), 1e-3), np.sum(program.probs * program.info) / mass
    value, error = 0.0, 0.0                             # of a lattice of spacing sd weight^-1/4
    for j in range(1, levels.size):
        each = (levels[j] - levels[j - 1]) / mean
        weight = max(a ** ((levels[j] - levels[0]) / mean), 1e-60)
        moved = math.sqrt((levels[j] - levels[0]) / (levels[0] * levels[j]))
        value += each * weight * moved
        error += each * math.sqrt(weight) / levels[j] / moved
    return min(eta * math.sqrt((1 - a) * value / (error / 8)), 1.0), a


@checked_jit
def lattices(program, levels, fineness, bound):
    """Lattice spacing of each level: the widest that start with the first target and halve now and then.

    The target is at most 1/kappa of a step of the mean, for the information that teaches most, and a share of the
    posterior standard deviation: eta, or as `spread` has it where only the first level has to be sharp; of a `bound`
    between levels it counts what can be learned, and grows beyond what is served, where the future is discounted.
    """
    q, p, b0, eta = program.info, program.probs, levels[0], fineness.eta
    out, halvings, sharp = np.empty(levels.size), 0.0, b0 + served(program, fineness.far)
    first, a = spread(program, levels, eta) if fineness.far == 0 else (eta, 1.0)
    graded, info, mean = bound and fineness.unit > 0, np.sum(p * q * q) / np.sum(p * q), np.sum(p * q) / p.sum()
    for j in range(levels.size):
        b = levels[j]
        share = first * max(a ** ((b - b0) / mean), 1e-60) ** -0.25
        if graded and fineness.far == 0:
            share = min(max(share, 0.15 * eta * learnable(program, b0)), 0.3)      # where levels are many items apart
        elif graded:
            share *= learnable(program, min(b, sharp)) * math.exp(min(discounted(program, b, sharp) / 4, 2.0))
        target = share / math.sqrt(b)
        if not graded or fineness.far == 0:
            target = min(target, math.sqrt(info / (b * (b + info))) / fineness.kappa)
        if j == 0:
            out[0] = target
        halvings = max(halvings, math.ceil(math.log2(out[0] / target) - 1e-9))
        out[j] = out[0] * 0.5**halvings
    return out
