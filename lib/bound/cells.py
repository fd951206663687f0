"""Laws of general atoms (x, charge, info) on few of them that bound one on very many: Theorem 1 for a large catalogue of any items.

A single-feature problem whose atoms pay x theta - r and teach q has the value w(m, b) = E f(x, r, q),

    f(x, r, q) = max{gamma w(m, b), x m - r + gamma E w(m + t Z, b + q)},   t^2 = 1/b - 1/(b + q).

For the true w, f is convex in (x, r) together, as a maximum of two functions that are affine in them, and does not fall as q grows,
because who knows more may follow any rule of one who knows less.  Signs play no part.  So over a cell of atoms

    f(mean x, mean r, least q) <= mean of f(x, r, q) <= sum_v share_v f(x_v, r_v, largest q)

where v are the corners of a parallelogram around the (x, r) of the cell, each atom shared among them so that its own (x, r) is their
mean.  Either replacement changes Bellman's operator to one side at w; the operator is monotone and a contraction, so that
its fixed point lies to that side of w at every state.  `lib.bound.merged` is the case r = cost x, q = x^2, with the cells of a line.
"""
import heapq

import numpy as np

from lib.normal import expected_excess

MANY = 500              # items above which atoms are merged, where they are not those of `lib.bound.merged`
ATOMS = 4000            # cells of all features together, but no fewer than FEWEST of each and no more than MOST
FEWEST, MOST = 40, 800
TOL = 0.03              # a narrower bracket is not aimed for: merging alone makes it as wide
GOAL = 0.05             # for each feature, at first
WORTH = 0.1             # of what a feature gains by learning faster, were all that is forwarded; weighs cells, not bounds
LEAST = 0.01            # an information below this share of the average is none from below, and this share from above


def coordinates(piece, noise_sd):
    """(n, 3) what an atom pays at the mean, by how much that varies, and how much variance its answer takes; reward units."""
    spread = np.sqrt(piece.var + piece.sd**2)
    signal = piece.info * piece.var
    return np.column_stack([piece.x * piece.mean - piece.charge, piece.x * spread, signal / (noise_sd**2 + signal)])


def errors(at, probs, worth):
    """(3,) about what it costs not to split a cell along each coordinate; `worth`: a share of information taken is worth this."""
    mass, low, high = probs.sum(), at.min(axis=0), at.max(axis=0)
    mean = probs @ at / mass if mass > 0 else (low + high) / 2
    variance = (high - mean) * (mean - low)
    sd = np.maximum(np.abs(mean[1]), np.sqrt(max(variance[:2].max(), 0.0)))
    kink = np.exp(-.5 * min((mean[0] / sd) ** 2, 50.0)) / sd if sd > 0 else 0.0
    return mass * np.array([.2 * kink * variance[0], .2 * kink * variance[1], worth * (high[2] - low[2])])


def cells(at, probs, worth, count):
    """(n,) the cell of each atom, fewer than `count` or as many: that with the largest error is cut in two again and again.

    Parameters
    ----------
    at : ndarray (n, 3)
        From `coordinates`.
    probs : ndarray (n,)
    worth : float
    count : int

    Examples
    --------
    >>> cells(np.array([[0., 1, 0], [5, 1, 0], [5, 1, 0], [9, 1, 0]]), np.full(4, .25), 1.0, 3).tolist()
    [0, 1, 1, 2]
    """
    out, found = np.zeros(len(at), np.int64), 1

    def entry(members, name):
        each = errors(at[members], probs[members], worth)
        return -float(each.max()), name, int(each.argmax()), members
    heap = [entry(np.arange(len(at)), 0)]
    while found < count and heap and heap[0][0] < 0:
        _, name, axis, members = heapq.heappop(heap)
        values = at[members, axis]
        mass = probs[members].sum()
        cut = probs[members] @ values / mass if mass > 0 and axis < 2 else (values.min() + values.max()) / 2
        right = values > min(max(cut, values.min()), np.nextafter(values.max(), -np.inf))
        out[members[right]] = found
        heapq.heappush(heap, entry(members[~right], name))
        heapq.heappush(heap, entry(members[right], found))
        found += 1
    return out


def number(features):
    """How many cells each of so many features has.

    Examples
    --------
    >>> number(1), number(32), number(1000)
    (800, 125, 40)
    """
    return min(max(ATOMS // features, FEWEST), MOST)


def cut(piece, probs, noise_sd, gamma, count):
    """(n,) cells of a piece's atoms, -1 for those that neither pay nor teach.

    A share `taken` of what is unknown, a step, leaves taken / (taken + 1 - gamma) of it known on average, counted with discount.
    """
    at, busy = coordinates(piece, noise_sd), (piece.x != 0) | (piece.info > 0)
    gain = probs @ (expected_excess(at[:, 0], np.abs(at[:, 1])) - np.maximum(at[:, 0], 0))
    taken, out = probs @ at[:, 2], np.full(len(probs), -1)
    if busy.any():
        out[busy] = cells(at[busy], probs[busy], WORTH * gain * (1 - gamma) / (taken + 1 - gamma)**2, count)
    return out


def passive(piece, probs, where):
    """(x, charge, info, probs) of one atom for all that neither pay nor teach: of what they are charged only the negative counts."""
    there = where < 0
    weight = probs[there]
    charge = weight @ np.minimum(piece.charge[there], 0) / (weight.sum() or 1.0)
    return np.zeros(1), np.array([charge]), np.zeros(1), np.array([weight.sum()])


def outward(piece, probs, where):
    """A law worth at least that of the atoms: for each cell four corners around it, with its largest information.

    Parameters
    ----------
    piece : Pieces
        Of one feature: x, charge, info (n,), and numbers.
    probs : ndarray (n,)
    where : ndarray (n,)
        The cell of each atom, from `cut`; -1 where it neither pays nor teaches.

    Returns
    -------
    x, charge, info, probs : ndarray (m,)
        The means of x and charge are kept, save where a charge alone keeps an item from being forwarded.
    """
    busy = where >= 0
    label, x, charge, weight = where[busy], piece.x[busy], piece.charge[busy], probs[busy]
    count = int(label.max(initial=-1)) + 1
    mass = np.bincount(label, weight, count)
    slope, mean, level = lines(label, x, charge, weight, mass)
    apart = charge - level[label] - slope[label] * (x - mean[label])
    (low, size), (under, height) = ranges(label, x, count), ranges(label, apart, count)
    u, v = shared(x, low[label], size[label]), shared(apart, under[label], height[label])
    most = extremes(np.maximum, label, piece.info[busy], count)
    most = np.where(most > 0, np.maximum(most, LEAST * (mass @ most)), 0.0)
    parts = [passive(piece, probs, where)]
    for right in (0, 1):
        for top in (0, 1):
            share = np.bincount(label, weight * (u if right else 1 - u) * (v if top else 1 - v), count)
            end = low + right * size
            parts.append((end, level + slope * (end - mean) + under + top * height, most, share))
    return tuple(np.concatenate(part) for part in zip(*parts))


def inward(piece, probs, where):
    """A law worth at most that of the atoms: for each cell its mean, with its least information.

    Parameters and returns are those of `outward`.
    """
    busy = where >= 0
    label, weight = where[busy], probs[busy]
    count = int(label.max(initial=-1)) + 1
    mass = np.bincount(label, weight, count)
    x, charge = (np.bincount(label, weight * part[busy], count) / np.where(mass > 0, mass, 1.0) for part in (piece.x, piece.charge))
    least = extremes(np.minimum, label, piece.info[busy], count)
    least = np.where(least >= LEAST * (mass @ least), least, 0.0)
    return tuple(np.concatenate(part) for part in zip(passive(piece, probs, where), (x, charge, least, mass)))


def lines(label, x, charge, weight, mass):
    """For each cell the slope of the line of charges over x by least squares, the direction of its parallelogram, and the means of both."""
    some = np.where(mass > 0, mass, 1.0)
    mean, level = (np.bincount(label, weight * part, len(mass)) / some for part in (x, charge))
    off = x - mean[label]
    square = np.bincount(label, weight * off**2, len(mass))
    slope = np.divide(np.bincount(label, weight * off * (charge - level[label]), len(mass)), square, out=np.zeros(len(mass)),
                      where=square > 1e-20 * some * mean**2)
    return slope, mean, level


def extremes(which, label, values, count):
    """The largest or least of `values` in each cell, 0 in an empty one."""
    out = np.full(count, -np.inf if which is np.maximum else np.inf)
    which.at(out, label, values)
    return np.where(np.bincount(label, minlength=count) > 0, out, 0.0)


def ranges(label, values, count):
    """The least of each cell, and how far it is to the largest."""
    low = extremes(np.minimum, label, values, count)
    return low, extremes(np.maximum, label, values, count) - low


def shared(values, low, size):
    """Where values lie between the ends of their cell, from 0 to 1."""
    return np.clip(np.divide(values - low, size, out=np.zeros(len(values)), where=size > 0), 0.0, 1.0)
