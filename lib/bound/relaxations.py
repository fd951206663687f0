"""Hindsight and full observation: upper bounds by telling more (paper, section III-A; chapter "The upper bound").

Both are bounds on V = E sum_{n >= 1} gamma^n U_n (x_n.theta - cost) and carry the leading gamma.
"""
import math

import numpy as np

from lib import posterior, streams
from lib.compiled import jit
from lib.estimate import sample_mean
from lib.normal import expected_excess
from lib.problem import Estimate, as_count, checked, effective_horizon


def hindsight(problem):
    """gamma / (1 - gamma) E (theta.X - cost)^+: theta known from the start (paper, section III-A).

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> round(hindsight(make_problem([[1.]], [1.], [0.], [[1.]], 1., 0., .5)), 4)
    0.3989
    """
    problem = checked(problem)
    sd = np.sqrt(posterior.variances(problem.items, problem.Sigma))
    return float(problem.gamma / (1 - problem.gamma) * problem.probs @ expected_excess(problem.items @ problem.mu - problem.cost, sd))


def require_noise(problem):
    """Raise ValueError where the noise is too small, or too large, for belief updates in double precision.

    Against 80-digit arithmetic values of information are exact to 2e-8 at the smallest noise that passes, also for items
    that differ in the seventh digit alone; a tenth of it costs 6e-6.
    """
    spread = float(np.sqrt(posterior.variances(problem.items, problem.Sigma).max()))
    if not 1e-5 * spread <= problem.noise_sd <= 1e150:
        raise ValueError(f"noise_sd is {problem.noise_sd}: with preferences of standard deviation {spread} it must lie "
                         f"between {1e-5 * spread} and 1e150")


def compile_checked(problem):
    """The kernels' Instance of a problem whose noise they can serve, or ValueError."""
    problem = checked(problem)
    require_noise(problem)
    return posterior.compile_problem(problem)


def arrivals(problem):
    """Items that full observation plays out: until gamma^horizon <= 1e-5, at most 2,000."""
    return min(effective_horizon(problem.gamma, 1e-5), 2000)


def full_observation(problem, sequences, seed, horizon=None):
    """Every rating is shown, forwarded or not: an upper bound, never above hindsight (not in the paper).

    The best policy is then myopic.  Given the items, x_n.mu'_{n-1} is normal with variance
    x_n (Sigma - Sigma'_{n-1}) x_n, so only the item sequence is sampled; items after `horizon` are counted at hindsight.

    Parameters
    ----------
    problem : Problem
    sequences : int
        Number of item sequences, at least 2.
    seed : int
    horizon : int, optional
        Items played out; by default until gamma^horizon <= 1e-5, at most 2,000.

    Returns
    -------
    Estimate
        Mean and standard error, reward units, with the leading gamma.
    """
    problem, sequences = checked(problem), as_count("sequences", sequences, 2)
    horizon = arrivals(problem) if horizon is None else as_count("horizon", horizon)
    return Estimate(*map(float, sample_mean(observed_values(problem, sequences, seed, horizon))))


def observed_values(problem, sequences, seed, horizon):
    """(sequences,) what full observation earns of each sequence of items, their mean being `full_observation`."""
    rng = streams.generator(seed, streams.Purpose.ARRIVALS)
    index = streams.draw_items(problem.probs, rng.random((sequences, horizon)))
    sd = revealed_sd(compile_checked(problem), index)
    gain = expected_excess((problem.items @ problem.mu - problem.cost)[index], sd)
    return gain @ problem.gamma ** np.arange(1, horizon + 1) + problem.gamma**horizon * hindsight(problem)


def most_observed(problem, horizon):
    """What no sequence of items is worth in `observed_values`: the best item at every arrival, theta known; rounded up."""
    each = expected_excess(problem.items @ problem.mu - problem.cost, np.sqrt(posterior.variances(problem.items, problem.Sigma)))
    left = problem.gamma**horizon
    best = problem.gamma / (1 - problem.gamma) * (1 - left) * float(each[problem.probs > 0].max())
    return (1 + 1e-9) * (best + left * hindsight(problem))


@jit
def revealed_sd(instance, index):
    """(sequences, horizon) sd of x_n.mu'_{n-1} when the ratings of all earlier items of a row of `index` are seen."""
    out, gain = np.empty(index.shape), np.empty(len(instance.mu))
    prior = np.full(len(instance.probs), -1.0)
    for r in range(index.shape[0]):
        Sigma = instance.Sigma.copy()
        for n in range(index.shape[1]):
            i = index[r, n]
            if prior[i] < 0.0:                                  # only what is met is computed
                prior[i] = posterior.project(instance, i, instance.Sigma, gain)
            now = posterior.project(instance, i, Sigma, gain)
            out[r, n] = math.sqrt(max(prior[i] - now, 0.0))
            posterior.shrink(Sigma, gain, now + instance.noise_var[i])
    return out
