"""A piece of Theorem 1 on a coarse lattice, with its derivative in every charge: what a search for charges is steered by.

The state of a piece is (mean, precision).  Here the precision is one of a few levels, and the mean a point of a lattice on
which it moves as a symmetric random walk in continuous time, stopped at the two ends.  From one level to another the walk
runs as long as the variance falls: means and variances are exact, and moves follow one another as in the piece.  Between
levels a forward leads to the two neighbours, with weights that leave the variance right on average.

So the lattice is a decision problem of its own with finitely many states.  Its value is the largest, over policies, of
rewards that are affine in the charges: convex, and the derivative in charge i is minus the discounted number of times that
the best policy forwards item i.  That is no bound on the piece: `lib.bound.theorem` certifies what a search finds.
"""
from functools import lru_cache
import math
from typing import NamedTuple

import numpy as np

from lib.compiled import checked_jit

REACH = 4.5             # standard deviations of a preference that the lattice has on either side
LEVELS = 40             # precisions: what the lattice lacks shrinks with their number
POINTS = (8.0, 6.0)     # points for one standard deviation of the preference, and of what is left to learn
MOST = 80               # points on either side
FADED = 2e-3            # what comes after this discount is not told apart: the last level


class Lattice(NamedTuple):
    """A piece with all that does not depend on its charges; reward units, one piece has n atoms."""

    x: np.ndarray       # (n,)
    probs: np.ndarray   # (n,) may add up to less than 1: the rest is idle
    gamma: float
    means: np.ndarray   # (M,)
    waves: tuple        # (M, M) functions that the walk only shrinks, as columns, and the inverse
    decay: np.ndarray   # (L, L, M) by how much, from a level to a later one
    first: np.ndarray   # (L, n) the level that a forward leads to, or this one and the next
    share: np.ndarray   # (L, n) weight of the former
    begin: np.ndarray   # (M,) probabilities of the first mean


@lru_cache(maxsize=8)
def waves(points):
    """Eigenfunctions of a walk on `points` that is stopped at both ends, as columns, and the inverse matrix.

    The first and the last column are the linear functions that are 1 at one end and 0 at the other: the walk leaves them
    alone.
    """
    inner = np.arange(1, points - 1)
    columns = np.zeros((points, points))
    columns[:, 0], columns[:, -1] = np.linspace(1, 0, points), np.linspace(0, 1, points)
    columns[1:-1, 1:-1] = np.sqrt(2 / (points - 1)) * np.sin(np.pi * np.outer(inner, inner) / (points - 1))
    inverse = np.zeros_like(columns)
    inverse[1:-1, 1:-1] = columns[1:-1, 1:-1]
    inverse[1:-1, [0, -1]] = -columns[1:-1, 1:-1] @ columns[1:-1, [0, -1]]
    inverse[0, 0] = inverse[-1, -1] = 1.0
    return columns, inverse


def shrink(points, variance):
    """By how much each of `waves` shrinks while the walk collects these variances, in squared steps: (..., M)."""
    rate = 1 - np.cos(np.pi * np.arange(points) / (points - 1))
    rate[[0, -1]] = 0.0
    return np.exp(-np.multiply.outer(np.maximum(variance, 0.0), rate))


def levels_of(var, info, gamma):
    """(L,) variances of the levels, descending from `var`: precisions in geometric progression up to the last that counts."""
    steps = math.log(FADED) / math.log(gamma) if gamma > FADED else 1.0
    if var == 0 or not info.max(initial=0.0) * var * min(steps, 1000.0) > 1e-12:
        return np.array([var])
    return var / np.geomspace(1.0, 1 + info.max() * var * min(steps, 1000.0), LEVELS)


def make_lattice(piece, probs, gamma, noise_sd):
    """The Lattice of one of `theorem.Pieces`, its information in units of 1 / noise_sd^2 as there."""
    info = piece.info / noise_sd**2
    total = math.sqrt(piece.var + piece.sd**2)
    fine = max(POINTS[0], POINTS[1] * total / math.sqrt(piece.var)) if piece.var > 0 else POINTS[0]
    half = min(math.ceil(REACH * fine), MOST)
    step, points = (REACH * total / half or 1.0), 2 * half + 1
    variances = levels_of(piece.var, info, gamma)
    after = np.divide(variances[:, None], 1 + np.outer(variances, info))
    last = len(variances) - 1
    first = np.clip(np.searchsorted(-variances, -after, side="right") - 1, np.arange(last + 1)[:, None], last)
    upper, lower = variances[first], variances[np.minimum(first + 1, last)]
    share = np.clip(np.divide(after - lower, upper - lower, out=np.ones_like(after), where=upper > lower), 0, 1)
    functions, inverse = waves(points)
    begin = inverse.T @ (shrink(points, (piece.sd / step)**2) * functions[half])
    return Lattice(piece.x, probs, gamma, piece.mean + step * np.arange(-half, half + 1), (functions, inverse),
                   shrink(points, np.subtract.outer(variances, variances) / step**2), first, share, begin)


@checked_jit
def solve_level(level, paid, probs, gamma, first, share, ahead, w, taken):
    """Bellman's equation at the means of one level by policy iteration: fills w (M,) and taken (M, n).

    paid (M, n): what forwarding pays; ahead (L, M): expected value at later levels.  Nine arguments: what a kernel reads and
    what it fills, plain arrays.
    """
    known, stay = np.empty(probs.size), np.empty(probs.size)
    for j in range(w.size):
        for i in range(probs.size):
            here = first[i] == level
            stay[i] = share[i] if here else 0.0
            rest = 0.0 if here else share[i] * ahead[first[i], j]
            if share[i] < 1.0:
                rest += (1 - share[i]) * ahead[first[i] + 1, j]
            known[i] = paid[j, i] + gamma * rest
        w[j], again = 0.0, True
        taken[j] = False
        while again:
            again, above, below = False, 0.0, 1 - gamma
            for i in range(probs.size):
                if not taken[j, i] and known[i] > gamma * w[j] * (1 - stay[i]) + 1e-14 * abs(known[i]):
                    taken[j, i], again = True, True
                elif taken[j, i] and known[i] < gamma * w[j] * (1 - stay[i]) - 1e-14 * abs(known[i]):
                    taken[j, i], again = False, True
                if taken[j, i]:
                    above += probs[i] * known[i]
                    below += gamma * probs[i] * (1 - stay[i])
            w[j] = above / below


@checked_jit
def count_level(level, mass, probs, gamma, first, share, taken, counts, sent):
    """Add the forwards of one level to counts (n,), and to sent (L, M) the mass that they lead to; nine arguments, as above."""
    for j in range(mass.size):
        below = 1 - gamma
        for i in range(probs.size):
            if taken[j, i]:
                below += gamma * probs[i] * (1 - (share[i] if first[i] == level else 0.0))
        for i in range(probs.size):
            if taken[j, i]:
                often = probs[i] * mass[j] / below
                counts[i] += often
                if first[i] != level:
                    sent[first[i], j] += gamma * share[i] * often
                if share[i] < 1.0:
                    sent[first[i] + 1, j] += gamma * (1 - share[i]) * often


def solved(lattice, charge):
    """The values (L, M) of a lattice at these charges (n,), and what is forwarded, (L, M, n)."""
    (functions, inverse), count = lattice.waves, len(lattice.first)
    values = np.empty((count, len(lattice.means)))
    parts, ahead = np.zeros_like(values), np.zeros_like(values)
    taken = np.zeros((*values.shape, len(lattice.x)), bool)
    paid = np.multiply.outer(lattice.means, lattice.x) - charge
    for level in range(count - 1, -1, -1):
        ahead[level + 1:] = (lattice.decay[level, level + 1:] * parts[level + 1:]) @ functions.T
        solve_level(level, paid, lattice.probs, lattice.gamma, lattice.first[level], lattice.share[level], ahead,
                    values[level], taken[level])
        parts[level] = inverse @ values[level]
    return values, taken


def value_and_slopes(lattice, charge):
    """The lattice's value of a piece, without the leading gamma, and its derivatives in the charges.

    Parameters
    ----------
    lattice : Lattice
    charge : ndarray (n,)
        Reward units.

    Returns
    -------
    float, ndarray (n,)
        Reward units; the derivatives are minus the discounted numbers of forwards, between -probs / (1 - gamma) and 0.
    """
    values, taken = solved(lattice, charge)
    functions, inverse = lattice.waves
    counts, mass = np.zeros(len(charge)), np.zeros_like(values)
    parts = np.zeros_like(values)
    for level in range(len(values)):
        mass = lattice.begin if level == 0 else inverse.T @ parts[level]
        sent = np.zeros_like(values)
        count_level(level, mass, lattice.probs, lattice.gamma, lattice.first[level], lattice.share[level], taken[level],
                    counts, sent)
        parts[level + 1:] += lattice.decay[level, level + 1:] * (sent[level + 1:] @ functions)
    return float(lattice.begin @ values[0]), -counts
