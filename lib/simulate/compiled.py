"""simulate.compiled."""
import numpy as np
from scipy.sparse.csgraph import connected_components

from lib import streams
from lib.problem import noise_var
from lib.simulate import kernels
from lib.simulate.arrays import Scene


def _groups(problem, where, feature):
    """(k,) an order of the features in which groups are contiguous, and the groups' sizes."""
    links = problem.Sigma != 0
    links[feature[np.searchsorted(where, where)], feature] = True     # an item's first feature with its others
    count, group = connected_components(links, directed=False)
    return np.argsort(group, kind="stable"), np.bincount(group, minlength=count)


def make_scene(problem, horizon):
    """The kernels' Scene of a problem, and the order of the features in it."""
    order, sizes = _groups(problem, *np.nonzero(problem.items))
    k, width = len(order), -(-len(order) // 8) * 8
    ends = np.cumsum(sizes)
    groups = np.column_stack([ends - sizes, ends])
    groups[-1, 1] = width                                   # whole vectors for the last group, zeros beyond k
    items, Sigma = problem.items[:, order], np.zeros((k, width))
    Sigma[:, :k] = problem.Sigma[np.ix_(order, order)]
    vectors = sizes.max() >= 32 and horizon <= 2 * sizes.max()
    where, feature = map(np.ascontiguousarray, np.nonzero(items))
    start = np.searchsorted(where, np.arange(len(items) + 1))
    full = start[1:] > start[:-1]
    span = np.zeros((len(items), 2), np.int64)
    span[full] = groups[np.repeat(np.arange(len(sizes)), sizes)[feature[start[:-1][full]]]]
    cumulative = streams.cumulative(problem.probs)
    cells = max(len(items), min(8 * len(items), 4096))       # many, so that the search seldom takes a step
    guide = np.searchsorted(cumulative, np.arange(cells) / cells, side="right")
    scene = Scene(
        start=start, feature=feature.astype(np.uint32), size=items[where, feature],
        low=span[:, 0].astype(np.uint64), high=span[:, 1].astype(np.uint64), groups=groups.astype(np.uint64),
        mu=np.pad(problem.mu[order], (0, width - k)), Sigma=Sigma,
        prior_gain=np.zeros((len(items) if vectors else 0, width)), prior_var=np.zeros(len(items)),
        noise_sd=np.sqrt(noise_var(problem)), cumulative=cumulative, guide=guide,
        discount=problem.gamma ** np.arange(1, horizon + 1), cost=problem.cost, vectors=bool(vectors))
    kernels.tabulate(scene)
    return scene, order
