"""What decisions lose against full observation, on sampled paths: charges, control variates, gaps.

The identity V^pi = FO - E sum_n gamma^n charge_n (`lib.dual`) holds for T arrivals as well, with full observation of
the arrivals that are left.  So reward plus charges minus FO has mean zero for every policy, and the charges of a
policy, less the least charges on the same paths, measure how far it stays below the dual bound.
"""
import numpy as np

from lib import charges, streams
from lib.problem import Estimate, noise_var

PATHS, AHEAD = 32, 33      # purposes of the random streams


def make_scene(problem):
    """What the kernels read of a problem."""
    where, feature = np.nonzero(problem.items)
    start = np.searchsorted(where, np.arange(len(problem.items) + 1))
    return charges.Scene(start, feature, problem.items[where, feature], noise_var(problem), problem.cost, problem.gamma)


def steps(gamma, rest, most):
    """Arrivals until gamma^steps falls below `rest`, at most `most`."""
    return int(min(np.ceil(np.log(rest) / np.log(gamma)), most))


def beliefs(problem, effort):
    """How many beliefs a search may keep: as many as its effort, or as fit into some 16 MB."""
    return max(2, min(effort, int(2e6) // (len(problem.mu) ** 2 + len(problem.probs))))


def arrivals(problem, shape, rng):
    """(P, R, H) arrivals; the R rows of one path are stratified, each still an independent sequence of items."""
    u = rng.permuted((np.arange(shape[1])[:, None] + rng.random(shape)) / shape[1], axis=1)
    return np.searchsorted(streams.cumulative(problem.probs), u, side="right")


def sample_paths(problem, first, horizon, rng):
    """Feedback on item first[p], then the items and feedback of `horizon` arrivals: (P,), (P, T), (P, T)."""
    theta = problem.mu + rng.standard_normal((len(first), len(problem.mu))) @ streams.factor(problem.Sigma).T
    items = np.searchsorted(streams.cumulative(problem.probs), rng.random((len(first), horizon)), side="right")
    every = np.column_stack([np.maximum(first, 0), items])
    worth = np.take_along_axis(theta @ problem.items.T, every, axis=1)
    feedback = worth + np.sqrt(noise_var(problem))[every] * rng.standard_normal(every.shape)
    return feedback[:, 0], items, np.ascontiguousarray(feedback[:, 1:])


def least_charges(problem, first, inner=4, effort=2000, seed=0):
    """The least total charge along sampled paths, the searcher seeing items and feedback in advance.

    Parameters
    ----------
    problem : Problem
    first : array-like (P,) of int
        For each path the item that was forwarded before it starts, or -1 for none.
    inner : int
        Arrival sequences, drawn apart from the path, over which its values of information are averaged.
    effort : int
        Nodes that a search may open; stopping early lowers the charge, which loosens the bound.
    seed : int or sequence of int

    Returns
    -------
    ndarray (P,)
        Nonnegative, discounted, in reward units.
    """
    first, gamma = np.asarray(first, dtype=np.int64), problem.gamma
    seen, *paths = sample_paths(problem, first, steps(gamma, .002, 200), streams.generator(seed, PATHS))
    ahead = arrivals(problem, (len(first), inner, steps(gamma, .015, 120)), streams.generator(seed, AHEAD))
    return charges.least(make_scene(problem), problem.mu, problem.Sigma, (first, seen), tuple(paths), ahead, effort,
                         beliefs(problem, effort))


def _charged(problem, items, feedback, decisions, inner, seed):
    """`charges.charged` of arrays that are checked here, and the arrivals it looked ahead to."""
    items, feedback = np.asarray(items, dtype=np.int64), np.ascontiguousarray(feedback, dtype=float)
    if items.ndim != 2 or decisions.ndim != 3 or not items.shape == feedback.shape == decisions.shape[1:]:
        raise ValueError(f"items, feedback and decisions must have shapes (R, T), (R, T) and (policies, R, T), got "
                         f"{items.shape}, {feedback.shape} and {decisions.shape}")
    if not 0 <= items.min() <= items.max() < len(problem.items):
        raise ValueError(f"items holds {items.min()} to {items.max()}: there are {len(problem.items)} items")
    ahead = arrivals(problem, (len(items), inner, items.shape[1]), streams.generator(seed, AHEAD))
    return charges.charged(make_scene(problem), problem.mu, problem.Sigma, (items, feedback), ahead, decisions), ahead


def control(problem, items, feedback, decisions, rewards, inner=2, seed=0):
    """A variable of mean zero for each policy and replication: reward plus charges minus full observation.

    The identity at the head of this module holds on average over the paths and over the arrival sequences,
    drawn apart from them, that stand for the future in FO and VOI.

    Parameters
    ----------
    problem : Problem
    items, feedback : array-like (R, T) of int, of float
        What each replication met.
    decisions : array-like (P, R, T) of bool
        What each policy forwarded.
    rewards : array-like (P, R)
        Discounted rewards of these T items.
    inner : int
        Arrival sequences for each replication.
    seed : int or sequence of int

    Returns
    -------
    ndarray (P, R)
    """
    decisions = np.asarray(decisions, dtype=bool)
    if np.shape(rewards) != decisions.shape[:2]:
        raise ValueError(f"rewards must have shape {decisions.shape[:2]}, got {np.shape(rewards)}")
    out = _charged(problem, items, feedback, decisions, inner, seed)[0]
    return np.asarray(rewards) + out[1:] - out[0]


def controlled(rewards, controls):
    """The mean of rewards (R,) sharpened by controls (R,) of mean zero: regression estimate and standard error.

    The coefficient is fitted on the same sample, which costs a bias of order 1/R, far below the error.

    Examples
    --------
    >>> controlled(np.array([1., 2., 3.]), np.array([-1., 0., 1.]))
    Estimate(mean=2.0, se=0.0)
    """
    rewards, controls = np.asarray(rewards, dtype=float), np.asarray(controls, dtype=float)
    spread = controls - controls.mean()
    slope = spread @ rewards / (spread @ spread) if spread.any() else 0.0
    rest = rewards - slope * controls
    return Estimate(float(rest.mean()), float(rest.std(ddof=2) / np.sqrt(len(rest))))


def controlled_rows(rewards, controls, reference=None):
    """`controlled` for each row of rewards and controls (P, R), or for its difference to row `reference`, paired.

    Examples
    --------
    >>> rewards = np.array([[1., 2., 3.], [2., 3., 4.]])
    >>> controlled_rows(rewards, rewards - 2, 0)[1].mean
    1.0
    """
    if reference is not None:
        rewards, controls = rewards - rewards[reference], controls - controls[reference]
    return [controlled(r, z) for r, z in zip(rewards, controls)]


def gap(problem, items, feedback, decisions, inner=4, effort=2000, seed=0):
    """How far policies stay below the dual bound of T arrivals, from the same paths; arguments as `control`.

    Returns
    -------
    ndarray (P, R)
        Charges of each policy minus the least charges that the searcher found: the mean is the gap.
    """
    decisions = np.asarray(decisions, dtype=bool)
    out, ahead = _charged(problem, items, feedback, decisions, inner, seed)
    paths = np.asarray(items, dtype=np.int64), np.ascontiguousarray(feedback, dtype=float)
    none = np.full(len(paths[0]), -1), np.zeros(len(paths[0]))
    least = charges.least(make_scene(problem), problem.mu, problem.Sigma, none, paths, ahead, effort,
                          beliefs(problem, effort))
    return out[1:] - least
