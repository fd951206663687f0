"""Full observation where tastes drift, and where a user's spread of taste or the noise of each feedback is told too.

Between two arrivals a share d of the variance is drawn anew, theta' = mu + sqrt(1 - d) (theta - mu) + sqrt(d) eta with eta of
covariance Sigma: the prior stays the law of theta at every arrival, and the covariance P of a belief becomes (1 - d) P + d Sigma
(Kalman 1960).  With every feedback seen, x.m, m the filter's mean, is N(x.mu, x (Sigma - P) x) given the items.

A law that is normal once a number is told, as Student's is when its scale is, has a bound by telling that number: whoever
knows more earns no less (chapter "When the model is wrong").
"""
import math

import numpy as np

from lib import posterior, streams
from lib.bound.relaxations import arrivals, compile_checked
from lib.compiled import jit
from lib.normal import expected_excess
from lib.problem import as_count, as_numbers, checked


def as_drift(drift):
    """`drift` as a share of the variance, from 0 (tastes stay) to 1 (every arrival meets another user), or ValueError."""
    value = as_numbers("drift", drift)
    if value.ndim or not 0 <= value <= 1:
        raise ValueError(f"drift is {drift!r}: it must be one share of the variance, from 0 to 1")
    return float(value)


def as_spread(name, spread, shape):
    """`spread` as positive factors of a variance in an array of `shape`, ones where it is None, or ValueError."""
    if spread is None:
        return np.ones(shape)
    spread = as_numbers(name, spread)
    if spread.shape != shape or not (spread > 0).all():
        raise ValueError(f"{name} must hold positive numbers in shape {shape}, got shape {spread.shape}")
    return spread


def full_observation_told(problem, sequences, seed, drift=0.0, spread=None, noise_spread=None, first=None):
    """What full observation earns of a taste that drifts, sequence by sequence: its mean is an upper bound, never above hindsight.

    As `full_observation`, and on the same items: they are played out until gamma^horizon <= 1e-5, at most 2,000, and what comes
    after is counted at hindsight.

    Parameters
    ----------
    problem : Problem
        Its prior is the law of theta at every arrival.
    sequences : int
        Number of item sequences, at least 2.
    seed : int
    drift : float
        Share of the variance that is drawn anew between two arrivals.
    spread : array-like (sequences,), optional
        Factor of Sigma for each sequence's user, who is known to have it; 1 when absent.
    noise_spread : array-like (sequences, horizon + 1), optional
        Factor of the noise variance of each feedback, known, that of `first` before the others; 1 when absent.
    first : int, optional
        An item whose feedback is seen one arrival before the sequence begins.

    Returns
    -------
    ndarray (sequences,)
        Reward units, with the leading gamma.

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> from lib.bound import full_observation
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1.]], [1.], [0.], [[1.]], 1., 0., .5)
    >>> full_observation_told(problem, 4, 0).mean() == full_observation(problem, 4, 0).mean
    np.True_
    >>> full_observation_told(problem, 4, 0, drift=1.0).max().round(4)
    np.float64(0.0)
    """
    problem, sequences = checked(problem), as_count("sequences", sequences, 2)
    instance, drift, horizon = compile_checked(problem), as_drift(drift), arrivals(problem)
    spread = as_spread("spread", spread, (sequences,))
    noise_spread = as_spread("noise_spread", noise_spread, (sequences, horizon + 1))
    first = -1 if first is None else as_count("first", first, 0, len(problem.probs) - 1)
    rng = streams.generator(seed, streams.Purpose.ARRIVALS)
    index = streams.draw_items(problem.probs, rng.random((sequences, horizon)))
    net = problem.items @ problem.mu - problem.cost
    gain = expected_excess(net[index], tracked_sd(instance, index, first, drift, spread, noise_spread))
    sd = np.sqrt(posterior.variances(problem.items, problem.Sigma))
    known, of = np.unique(spread, return_inverse=True)
    later = np.array([problem.probs @ expected_excess(net, math.sqrt(factor) * sd) for factor in known])[of]
    rest = problem.gamma**horizon * problem.gamma / (1 - problem.gamma)
    return gain @ problem.gamma ** np.arange(1, horizon + 1) + rest * later


@jit
def age(Sigma, prior, drift):
    """The covariance of a belief one arrival later, in place: (1 - drift) Sigma + drift prior."""
    if drift > 0.0:
        for a in range(len(Sigma)):
            for b in range(len(Sigma)):
                Sigma[a, b] += drift * (prior[a, b] - Sigma[a, b])


@jit
def tracked_sd(instance, index, first, drift, spread, noise_spread):
    """(sequences, horizon) sd of x_n.m_n when the feedback of `first`, unless negative, and of all earlier items is seen."""
    out, gain = np.empty(index.shape), np.empty(len(instance.mu))
    for r in range(index.shape[0]):
        prior = spread[r] * instance.Sigma
        Sigma = prior.copy()
        if first >= 0:
            posterior.shrink(Sigma, gain, posterior.project(instance, first, Sigma, gain) + noise_spread[r, 0] * instance.noise_var[first])
            age(Sigma, prior, drift)
        for n in range(index.shape[1]):
            i = index[r, n]
            before = posterior.project(instance, i, prior, gain)
            now = posterior.project(instance, i, Sigma, gain)
            out[r, n] = math.sqrt(max(before - now, 0.0))
            posterior.shrink(Sigma, gain, now + noise_spread[r, n + 1] * instance.noise_var[i])
            age(Sigma, prior, drift)
    return out
