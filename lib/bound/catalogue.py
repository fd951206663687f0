"""Bounds from sampled items: the first forward exact where items are too many for a look at each.

With A_x = x.mu - cost + E_y W(s'_xy) the bound solves w = gamma E_x max(w, A_x).  Items are sampled, one from each
of m strata of equal probability, and each has its own estimate of A_x.  At a trial w the right side is then a mean of
independent numbers with an upper limit; the chapter "Bounds beyond the paper" proves that the crossing of that limit is a limit for w.
"""
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from lib import streams
from lib.bound import relaxations
from lib.bound.penalty import arrivals, arrivals_of_first, own_information
from lib.bound.relaxations import compile_checked
from lib.posterior import stratified
from lib.problem import Estimate

OWN = 8                                 # arrival sequences for each sampled item
FIRST_SHARE, FULL_SHARE = .04, .01      # how a limit's 5 % are shared between first forwards and full observation


class First(NamedTuple):
    """Estimates of A_x for a stratified sample of items, apart from full observation's value, which all share."""

    values: np.ndarray   # (m,) independent, x.mu - cost + VOI_x, less charges; neighbours are alike
    full: Estimate       # of FO(s_0)
    most: float          # what no A_x exceeds
    df: int              # degrees of freedom of the error of `full`


def sample(problem, items, sequences, seed):
    """The positions of sampled items, and their First with full observation after them."""
    horizon, net = arrivals_of_first(problem), problem.items @ problem.mu - problem.cost
    chosen = stratified(problem, items, streams.generator(seed, streams.Purpose.SEQUENCES, 1))
    ahead = arrivals(problem, (items, OWN, horizon), streams.generator(seed, streams.Purpose.SEQUENCES))
    values = net[chosen] + own_information(compile_checked(problem), chosen, ahead)
    full = relaxations.full_observation(problem, 10 * sequences, seed, horizon)
    return chosen, First(values, full, float(net.max() + relaxations.hindsight(problem)), 10 * sequences - 1)


def strata_var(values):
    """Squared standard error of the mean over the first axis of one draw from each of an even number of strata.

    Neighbours are alike, so that what sets them apart is their noise, and some of their means: it errs upward.

    Examples
    --------
    >>> strata_var(np.array([1.0, 3.0]))
    np.float64(1.0)
    """
    return ((values[::2] - values[1::2])**2).sum(axis=0) / len(values)**2


def crossing(values, gamma, quantile=0.0, most=-np.inf):
    """The w at which w = gamma (mean of max(w, values) + quantile standard errors): see `bounded`.

    Parameters
    ----------
    values : ndarray (m,)
        In the order of strata; m is even.
    gamma, quantile : float
    most : float
        One more value, which no value exceeds; left out at -inf.

    Returns
    -------
    float
        At least 0.
    """
    count = len(values) + (most > -np.inf)

    def right(w):
        y = np.maximum(values, w)
        extra = np.array([max(most, w)]) if most > -np.inf else np.zeros(0)
        square = ((y[::2] - y[1::2])**2).sum() + ((extra - y.max())**2).sum()
        return gamma * (y.sum() + extra.sum() + quantile * np.sqrt(square)) / count

    low, high = 0.0, max(values.max(), most, 0.0)
    if right(low) <= low:
        return 0.0
    for _ in range(60):
        w = (low + high) / 2
        low, high = (low, w) if right(w) <= w else (w, high)
    return high


def bounded(problem, first):
    """What sampled first forwards say of the bound: its estimate, standard error and 95 % upper limit.

    The right side of w = gamma E max(w, A_x) has for each trial w an upper limit, of which only the one at the true w has
    to hold: the limit less w falls in w, so a crossing below the true w means that it failed there.  Errors in A_x
    err upward, because max is convex.  The sample is joined by the largest value that could be: what it has not met by chance.
    """
    values, gamma, m = first.values + first.full.mean, problem.gamma, len(first.values)
    mean = crossing(values, gamma)
    y = np.maximum(values, mean)
    slope = 1 - gamma * (values <= mean).mean()
    own = gamma * np.sqrt(strata_var(y))
    se = np.hypot(own, gamma * (values > mean).mean() * first.full.se) / slope
    high = first.full.mean + stdtrit(first.df, 1 - FULL_SHARE) * first.full.se
    upper = crossing(first.values + high, gamma, stdtrit(m // 2, 1 - FIRST_SHARE), first.most)
    return mean, float(se), max(upper, mean)
