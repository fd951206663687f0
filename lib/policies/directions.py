"""Which tables of exploration benefits serve which item: DTD-DP on few or on very many items (paper, Algorithm 2).

Item x poses a single-feature problem: the law G(. | x) of coming magnitudes, a prior variance and a noise variance.  Up to FEW
different ones each has a table of its own.  Above, a table serves many items:

- it starts at the smallest precision, noise variance over prior variance, of those that read it;
- its law pools those of EACH items with nearly the same mean M(x), and is merged to ATOMS atoms and zero;
- an item reads two tables, with means on both sides of its own, and what it finds is interpolated in M.

On 2,000 dense items benefits are off by less than .01 sd at 99 of 100 points; where the benefit sets in by up to .02, at the ends of
M too.  With 16 tables in each of four bands, by what M leaves open of the spread of G(. | x), it was no less.  All tables
take some four seconds there, and 13 on 100,000 items of 64 features (bench/results/catalogue.txt).
"""
from threading import Lock
from typing import NamedTuple

from cachetools import LRUCache, cached
import numpy as np

from lib.cache import digest
from lib.policies.projection import mean_projection, sizes
from lib.posterior import EXACT, coming, variances
from lib.problem import basis_var, noise_var

FEW = 64                        # different problems up to which each has its own table
LEAST, MOST, SERVED = 32, 64, 14    # tables otherwise: one for SERVED items, within these limits
ATOMS, EACH = 12, 16            # positive atoms of a law; items whose laws a table pools
ROUGH = 0.2                     # tolerance at which these are solved: less than what sharing them costs
BEYOND = 0.5                    # how far outside its two tables an item may lie, in units of their distance


class Directions(NamedTuple):
    """Tables, and which of them an item reads: row and other, the latter with weight share."""

    keys: list              # (log of the largest variance, then the arguments of lib.dp.exploration_benefits) of each table
    row: np.ndarray         # (n,)
    other: np.ndarray       # (n,)
    share: np.ndarray       # (n,) 0 where one table is enough
    unit: np.ndarray        # (n,) by which the item's variance is divided before it is looked up
    nodes: np.ndarray = np.zeros(0)     # M of the tables that are shared, keys[1:]; none where each item has its own
    least: np.ndarray = np.zeros(0)     # the precision, noise variance over prior variance, from which each of them reaches on


NOTHING = 0.0, b"", b"", 0.0, 0.0       # of an item from which nothing can be learned


def _content(problem, noise, law):
    """A key of what `directions` depends on: neither cost nor mean, so that a report finds them once."""
    return digest(problem.items, problem.probs, problem.Sigma, problem.noise_sd, problem.noise, problem.gamma, noise, law,
                  (FEW, LEAST, MOST, SERVED, ATOMS, EACH, ROUGH))


@cached(LRUCache(4), key=_content, lock=Lock())
def directions(problem, noise, law):
    """The Directions of every item of a checked problem; noise and law as in `dtd_dp`.  Kept: to be read, not written."""
    var = variances(problem.items, problem.Sigma)
    scale = noise_var(problem) if noise == "model" else basis_var(problem)
    return _each(problem, law, var, scale) or _pooled(problem, law, var, scale)


def _each(problem, law, var, scale):
    """A table for each different problem, or None where there are more than FEW."""
    n, keys = len(var), {}
    if n > EXACT:
        return None
    row = np.zeros(n, np.int32)
    for i, size in enumerate(sizes(problem, law)):
        x, where = np.unique(np.round(size, 12), return_inverse=True)
        atoms = x.tobytes(), np.bincount(where, problem.probs).tobytes()
        key = (np.log(var[i]), *atoms, problem.gamma, scale[i] / var[i]) if var[i] > 0 else NOTHING
        row[i] = keys.setdefault(key, len(keys))
        if len(keys) > FEW:
            return None
    return Directions(list(keys), row, row, np.zeros(n), np.ones(n))


def _pooled(problem, law, var, scale):
    """Some tables for all items."""
    mean, keys = mean_projection(problem, law), [NOTHING]
    live = np.flatnonzero((var > 0) & (mean > 0))
    row, share, unit = np.zeros(len(var), np.int32), np.zeros(len(var)), np.where(scale > 0, scale, 1.0)
    other = row.copy()
    tables, nodes, prec = int(np.clip(len(live) // SERVED, LEAST, MOST)), np.zeros(0), np.zeros(1)
    if len(live):
        live = live[np.argsort(mean[live], kind="stable")]
        parts = _parts(live, np.log(mean[live]), tables)
        nodes = np.array([mean[part].mean() for part in parts])
        at, share[live] = _between(mean[live], nodes)
        row[live], other[live] = 1 + at, 1 + np.minimum(at + 1, len(parts) - 1)
        prec = np.full(1 + len(parts), np.inf)
        for reads in row[live], other[live]:
            np.minimum.at(prec, reads, scale[live] / var[live])
        stand = coming(problem)
        keys += [(-np.log(b), *_law(problem, law, part, stand, mean[part].mean()), problem.gamma, b, ROUGH)
                 for part, b in zip(parts, prec[1:])]
    return Directions(keys, row, other, share, unit, nodes, prec[1:])


def reads(found, mean, prec):
    """Which shared tables of `found` a vector outside the catalogue reads: (row, other, share), None where they do not reach it.

    Parameters
    ----------
    found : Directions
    mean, prec : float
        M(x), and noise variance over prior variance, both positive.

    Examples
    --------
    >>> found = Directions([], None, None, None, None, np.array([1., 2.]), np.array([.1, .3]))
    >>> reads(found, 1.25, .3), reads(found, 1.25, .2), reads(found, 2.6, .3)
    ((1, 2, 0.25), None, None)
    """
    nodes, last = found.nodes, len(found.nodes) - 1
    if last < 0:
        return None
    at = min(max(int(np.searchsorted(nodes, mean)) - 1, 0), max(last - 1, 0))
    after = min(at + 1, last)
    gap, away = nodes[after] - nodes[at], mean - nodes[at]
    near = -BEYOND * gap <= away <= (1 + BEYOND) * gap if gap > 0 else abs(away) <= 1e-9 * nodes[at]
    if not near or prec < max(found.least[at], found.least[after]):
        return None
    return 1 + at, 1 + after, float(away / gap) if gap > 0 else 0.0


def _parts(items, height, count):
    """At most `count` parts of `items`, whose heights rise: alike in number and in height, so that rare extremes have their own."""
    rise = height - height[0]
    if rise[-1] < 1e-9:
        return [items]
    place = np.arange(len(items)) / len(items) + rise / rise[-1]
    part = np.minimum((place / 2 * count).astype(int), count - 1)
    return np.split(items, np.flatnonzero(np.diff(part)) + 1)


def _between(values, nodes):
    """For each value the node below it, and how far on the way to the next one it lies."""
    if len(nodes) == 1:
        return np.zeros(len(values), int), np.zeros(len(values))
    at = np.clip(np.searchsorted(nodes, values) - 1, 0, len(nodes) - 2)
    gap = nodes[at + 1] - nodes[at]
    return at, np.clip(np.divide(values - nodes[at], gap, np.zeros(len(values)), where=gap > 0), -BEYOND, 1 + BEYOND)


def _law(problem, law, part, stand, mean):
    """(magnitudes, probs) as bytes: the law with this mean that stands for those of the items `part`; `stand`: items to come."""
    if law in ("always", "own"):
        x, probs = np.array([0.0, 1.0]), np.array([max(1 - mean, 0.0), min(mean, 1.0)])
        return x.tobytes(), probs.tobytes()
    pick = part[np.unique(np.linspace(0, len(part) - 1, EACH).astype(int))]
    x, probs = merged(sizes(problem, law, pick, stand.index).ravel(), np.tile(stand.probs / len(pick), len(pick)))
    total = x @ probs
    return (x * (mean / total) if total > 0 else x).tobytes(), probs.tobytes()


def merged(x, probs, atoms=ATOMS):
    """A law on zero and at most `atoms` positive atoms, which are the means of quantile classes: the same mean, less spread.

    Examples
    --------
    >>> x, probs = merged(np.array([0., 3., 1., 2., 4.]), np.full(5, .2), 2)
    >>> x.round(3).tolist(), probs.round(3).tolist()
    ([0.0, 1.5, 3.5], [0.2, 0.4, 0.4])
    """
    order = np.argsort(x, kind="stable")
    order = order[(x[order] > 0) & (probs[order] > 0)]
    values, weights = x[order], probs[order]
    if not len(order):
        return np.zeros(1), np.ones(1)
    middle = np.cumsum(weights) - weights / 2
    group = np.minimum((middle / weights.sum() * atoms).astype(int), atoms - 1)
    share = np.bincount(group, weights, atoms)
    there = share > 0
    means = np.bincount(group, weights * values, atoms)[there] / share[there]
    rest = max(1 - share.sum(), 0.0)
    return np.append(0.0, means), np.append(rest, share[there]) / (rest + share.sum())
