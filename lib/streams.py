"""Random streams that depend on (seed, purpose, replication) and on nothing else.

Replications come in blocks of BLOCK.  Every block and purpose has a generator of its own, and a block
is always drawn whole, step by step: what replication r meets at step n is the same whatever the number
of replications, the horizon, the threads or the policies.  Numbers for Thompson sampling have a purpose
of their own, so that adding it to an experiment leaves every other policy's stream alone.
"""
from enum import IntEnum

import numpy as np

BLOCK = 128


class Purpose(IntEnum):
    """What a stream is for: the first number of its key.  A number, once given, stays: draws depend on it."""

    THETA = 0               # users' preferences
    ITEMS = 1               # the items that they meet
    NOISE = 2               # of the feedback
    THOMPSON = 3            # normals of Thompson sampling
    DRIFT = 8               # by which tastes move between arrivals
    TAIL = 9                # how widely a user's tastes spread
    NOISE_TAIL = 10         # how loud the noise of a feedback is
    KIND = 11               # which of two kinds a user is
    THEOREM = 16            # Algorithm 1's draws of theta and x
    ARRIVALS = 17           # item sequences of full observation
    BOOTSTRAP = 20          # users drawn again
    PATHS = 32              # items and feedback that the dual's searcher sees
    AHEAD = 33              # arrivals over which values of information are averaged
    SEQUENCES = 34          # the same for the first forward
    COMING = 35             # items that stand for all of a large catalogue
    FUTURES = 40            # what rollouts sample
    REPLAY_ORDER = 40       # shuffled ratings; their key has a user and a number more than a rollout's
    REPLAY_THOMPSON = 41    # Thompson's normals on real ratings
    SERVICE = 42            # Thompson's normals of a filter at work
    SERVICES = 43           # users that come one after another, and draws of their mean


THETA, ITEMS, NOISE, THOMPSON = Purpose.THETA, Purpose.ITEMS, Purpose.NOISE, Purpose.THOMPSON


def numbers(seed):
    """A seed as a tuple, to which the numbers of sub-experiments are appended."""
    return tuple(seed) if isinstance(seed, (tuple, list)) else (seed,)


def generator(seed, *key):
    """A Generator for `seed` and the integer `key`, independent of every other key.

    Parameters
    ----------
    seed : int or sequence of int
        Nonnegative; a sequence keeps experiments apart, say (seed, 1) for tuning.
    key : int
        A Purpose and a block, or anything that names the stream; a reader's own draws take numbers from 50 up.

    Raises
    ------
    ValueError
        When the seed is not made of nonnegative integers.

    Examples
    --------
    >>> generator(1, ITEMS, 0).random() == generator(1, ITEMS, 0).random()
    True
    """
    parts = numbers(seed)
    if not parts or any(isinstance(s, bool) or not isinstance(s, (int, np.integer)) or s < 0 for s in parts):
        raise ValueError(f"seed must be a nonnegative integer or a sequence of them, got {seed!r}")
    return np.random.default_rng(np.random.SeedSequence([int(s) for s in parts], spawn_key=[int(part) for part in key]))


def normals(seed, purpose, block, steps):
    """(BLOCK, steps) standard normals; column n does not depend on `steps`."""
    return np.ascontiguousarray(generator(seed, purpose, block).standard_normal((steps, BLOCK)).T)


def uniforms(seed, purpose, block, steps):
    """(BLOCK, steps) uniforms on [0, 1); column n does not depend on `steps`."""
    return np.ascontiguousarray(generator(seed, purpose, block).random((steps, BLOCK)).T)


def cumulative(probs):
    """(n,) cumulative probabilities, as `draw_items` and the simulation's kernels read them.

    The last item of positive probability ends at exactly 1, so that no uniform below 1 falls past it,
    and items of probability 0 are never drawn.
    """
    total = np.cumsum(probs)
    total[np.flatnonzero(probs)[-1]:] = 1.0
    return total


def draw_items(probs, uniforms):
    """The item that each uniform stands for: the first whose cumulative probability exceeds it.

    Parameters
    ----------
    probs : ndarray (n,)
    uniforms : ndarray of any shape
        In [0, 1); independent, or stratified.

    Returns
    -------
    ndarray of int, of the same shape

    Examples
    --------
    >>> draw_items(np.array([.5, 0., .5]), np.array([.1, .5, .9]))
    array([0, 2, 2])
    """
    return np.searchsorted(cumulative(probs), uniforms, side="right")


def factor(Sigma):
    """(k, k) L with L L' = Sigma, by Cholesky with diagonal pivots: `Sigma` may be singular.

    Column p belongs to pivot p, so a diagonal Sigma has a diagonal factor.  It is built from elementwise
    operations alone, which round the same on every machine and for every number of threads.  What is left of a variable's
    variance counts as none below a rounding error of that variance, whatever the units of the others.

    Examples
    --------
    >>> factor(np.array([[4., 2.], [2., 1.]]))
    array([[2., 0.],
           [1., 0.]])
    """
    left, L = np.array(Sigma, dtype=float), np.zeros(np.shape(Sigma))
    smallest = np.finfo(float).eps * len(left) * np.maximum(left.diagonal(), 0.0)
    for _ in range(len(left)):
        p = int(np.where(left.diagonal() > smallest, left.diagonal(), 0.0).argmax())
        if left[p, p] <= smallest[p]:
            break
        L[:, p] = left[:, p] / np.sqrt(left[p, p])
        left -= np.outer(L[:, p], L[:, p])
        left[p] = left[:, p] = 0.0
    return L
