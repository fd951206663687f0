"""A problem and its streams as the plain arrays that the simulation's kernels read."""
from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components

from lib import streams
from lib.posterior import CACHE, blocks, compile_problem
from lib.simulate import kernels


class Grouped(NamedTuple):
    """An Instance whose features are ordered by group, and what saves work on it.  Rows have width >= k.

    The first nine fields are those of Instance, side by side with the others: a tuple within a tuple costs kernels time.
    """

    start: np.ndarray
    feature: np.ndarray     # (nnz,), or (k,) where every item has every feature
    size: np.ndarray
    noise_var: np.ndarray
    probs: np.ndarray
    mu: np.ndarray          # (width,) padded with zeros
    Sigma: np.ndarray       # (k, width) padded with zeros
    cost: float
    gamma: float
    low: np.ndarray         # (n,) where the group of item i begins
    high: np.ndarray        # (n,) and ends; both are 0 for an item without features
    groups: np.ndarray      # (m, 2) all groups
    prior_gain: np.ndarray  # (n, width) Sigma x of each item under the prior; empty in the matrix form
    prior_var: np.ndarray   # (n,) x Sigma x under the prior
    noise_sd: np.ndarray    # (n,) of each item's feedback
    cumulative: np.ndarray  # (n,) of the item probabilities
    guide: np.ndarray       # (m,) the item at which the search for u in [j/m, (j + 1)/m) begins
    discount: np.ndarray    # (horizon,) gamma^n
    vectors: bool           # keep the vectors h instead of the matrix
    dense: bool             # every item has every feature, so that their numbers are listed once
    far: bool               # items do not fit into a core's cache, so that the next one's memory is asked for


class Stream(NamedTuple):
    """What R replications meet."""

    items: np.ndarray       # (R, horizon) indices
    feedback: np.ndarray    # (R, horizon) y, shown to a policy only if it forwards
    pay: np.ndarray         # (R, horizon) discounted reward of forwarding
    thompson: np.ndarray    # (R, horizon) standard normals


def _groups(problem):
    """(k,) an order of the features in which groups are contiguous, and the groups' sizes."""
    links = problem.Sigma != 0
    for rows in blocks(*problem.items.shape):
        where, feature = np.nonzero(problem.items[rows])
        links[feature[np.searchsorted(where, where)], feature] = True     # an item's first feature with its others
    count, group = connected_components(links, directed=False)
    return np.argsort(group, kind="stable"), np.bincount(group, minlength=count)


def group(problem, horizon):
    """The kernels' Grouped form of a problem, and the order of the features in it."""
    order, sizes = _groups(problem)
    width, ends = -(-len(order) // 8) * 8, np.cumsum(sizes)
    groups = np.column_stack([ends - sizes, ends])
    groups[-1, 1] = width                                   # whole vectors for the last group, zeros beyond k
    instance = _padded(problem, order, width)
    start, full = instance.start, instance.start[1:] > instance.start[:-1]
    span = np.zeros((len(full), 2), np.int64)
    span[full] = groups[np.repeat(np.arange(len(sizes)), sizes)[instance.feature[start[:-1][full]]]]
    vectors = sizes.max() >= 32 and horizon <= 2 * sizes.max()
    cells = max(len(full), min(8 * len(full), 4096))        # many, so that the search seldom takes a step
    dense = len(instance.size) == len(full) * len(order)
    prior_gain = np.zeros((len(full) if vectors else 0, width))
    if dense:
        instance = instance._replace(feature=instance.feature[:len(order)].copy())
    grouped = Grouped(
        **instance._asdict(),
        low=span[:, 0].astype(np.uint64), high=span[:, 1].astype(np.uint64), groups=groups.astype(np.uint64),
        prior_gain=prior_gain, prior_var=np.zeros(len(full)),
        noise_sd=np.sqrt(instance.noise_var), cumulative=streams.cumulative(problem.probs),
        guide=streams.draw_items(problem.probs, np.arange(cells) / cells),
        discount=problem.gamma ** np.arange(1, horizon + 1), vectors=bool(vectors),
        dense=dense, far=instance.size.nbytes + prior_gain.nbytes > CACHE)
    kernels.tabulate(grouped)
    return grouped, order


def _padded(problem, order, width):
    """The Instance of a problem whose features are taken in another order, rows padded to `width`."""
    Sigma = np.zeros((len(order), width))
    Sigma[:, :len(order)] = problem.Sigma[np.ix_(order, order)]
    if (order != np.arange(len(order))).any():
        problem = problem._replace(items=np.ascontiguousarray(problem.items[:, order]))
    instance = compile_problem(problem)
    return instance._replace(mu=np.pad(problem.mu[order], (0, width - len(order))), Sigma=Sigma)
