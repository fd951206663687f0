"""Truths that differ from the model in law: tastes that drift, heavy tails, two kinds of users.

Mean and covariance of theta, items, cost and noise are those of a Problem, at every arrival; what differs is the shape.
Given two numbers, a user's spread s and kind b = -1 or 1, tastes are normal:

    theta_1 ~ N(mu + b h, s (Sigma - h h')),    theta' = m + sqrt(1 - drift) (theta - m) + sqrt(drift) eta,    m = mu + b h,

eta an independent draw of the same spread about 0.  s is (tail - 2)/chi-square(tail), so that theta is Student's t, and 1 for
normal tails; h is `split` of the variance along the direction in which items' worth varies most.

What users meet is a Stream: policies play it by whatever they believe (`lib.simulate.play`), on the draws of `replicate`.
"""
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri, poch, stdtr

from lib import streams
from lib.bound import full_observation_told
from lib.bound.relaxations import arrivals
from lib.bound.told import as_drift
from lib.dp import first_forward
from lib.estimate import sample_mean
from lib.normal import expected_excess
from lib.posterior import variances
from lib.problem import Estimate, Problem, as_count, as_made, as_numbers, checked, noise_var
from lib.simulate.instances import Stream

PARTS = 9           # normal parts that stand for Student's law in a belief


class Truth(NamedTuple):
    """What users come from; built by `make_truth`."""

    problem: Problem            # items, noise, cost, gamma; mean and covariance of theta at every arrival
    drift: float = 0.0          # share of the variance that is drawn anew between two arrivals
    tail: float = np.inf        # degrees of freedom of theta, more than 2
    noise_tail: float = np.inf  # and of the noise
    split: float = 0.0          # share of the variance, in the leading direction, that tells two kinds of users apart


class Met(NamedTuple):
    """What R users met."""

    theta: np.ndarray           # (R, k) tastes at the first arrival
    worth: np.ndarray           # (R, horizon) x_n.theta_n
    stream: Stream


def make_truth(problem, drift=0.0, tail=np.inf, noise_tail=np.inf, split=0.0):
    """A checked Truth: by default the problem's own.

    Parameters
    ----------
    problem : Problem
    drift : float
        In [0, 1]; the correlation of a taste with itself n arrivals later is (1 - drift)^(n/2).
    tail, noise_tail : float
        Degrees of freedom, more than 2; infinite: normal.
    split : float
        In [0, 1).

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> make_truth(make_problem([[1]], [1], [0], [[1]], 1, 0, .5), drift=.1).drift
    0.1
    """
    return Truth(checked(problem), as_drift(drift), _freedom("tail", tail), _freedom("noise_tail", noise_tail), _split(split))


def _freedom(name, value):
    """Degrees of freedom of a law with a variance, or ValueError."""
    if isinstance(value, (float, np.floating)) and value == np.inf:
        return np.inf
    number = as_numbers(name, value)
    if number.ndim or number <= 2:
        raise ValueError(f"{name} is {value!r}: it must be above 2, for a variance, or infinite")
    return float(number)


def _split(value):
    """A share of the variance below 1, or ValueError."""
    number = as_numbers("split", value)
    if number.ndim or not 0 <= number < 1:
        raise ValueError(f"split is {value!r}: it must be one share of the variance, from 0 to below 1")
    return float(number)


def as_truth(truth):
    """`truth` as `make_truth` would have it, or ValueError."""
    as_made("truth", truth, Truth, "lib.simulate.make_truth")
    return make_truth(*truth)


def kinds(truth):
    """(weights (m,), means (m, k), covariance (k, k)) of the kinds of users of a checked Truth: one, or two."""
    problem, root = truth.problem, streams.factor(truth.problem.Sigma)
    if truth.split == 0:
        return np.ones(1), problem.mu[None], problem.Sigma
    weighted = problem.items * np.sqrt(problem.probs)[:, None]
    h = np.sqrt(truth.split) * root @ np.linalg.eigh((weighted @ root).T @ (weighted @ root))[1][:, -1]
    return np.full(2, .5), np.array([problem.mu - h, problem.mu + h]), problem.Sigma - np.outer(h, h)


def spreads(rng, freedom, shape):
    """Draws of (freedom - 2)/chi-square(freedom), of mean 1; ones where the freedom is infinite."""
    return np.ones(shape) if freedom == np.inf else (freedom - 2) / rng.chisquare(freedom, shape)


def meet(truth, users, horizon=100, seed=0):
    """What users of a truth meet, by the random numbers of `replicate`: user r depends on (seed, r) alone.

    Parameters
    ----------
    truth : Truth
    users : int
    horizon : int
    seed : int or sequence of int

    Returns
    -------
    Met

    Examples
    --------
    >>> from lib.policies import exploit
    >>> from lib.problem import make_problem
    >>> from lib.simulate import play
    >>> problem = make_problem([[1]], [1], [1], [[0]], 1, .5, .5)
    >>> play(problem, [exploit()], meet(make_truth(problem), 2, 2).stream)[0]
    array([[0.375, 0.375]])
    """
    truth, users, horizon = as_truth(truth), as_count("users", users), as_count("horizon", horizon)
    streams.generator(seed)
    pieces = [_block(truth, horizon, seed, block) for block in range(-(-users // streams.BLOCK))]
    theta, worth, *stream = (np.concatenate(parts)[:users] for parts in zip(*pieces))
    return Met(theta, worth, Stream(*stream))


def _block(truth, horizon, seed, block):
    """theta, worth and the fields of a Stream of one whole block of users."""
    problem, rows = truth.problem, streams.BLOCK
    k, (_, means, Sigma) = len(problem.mu), kinds(truth)
    root = streams.factor(Sigma)
    kind = np.minimum((streams.uniforms(seed, streams.Purpose.KIND, block, 1)[:, 0] * len(means)).astype(int), len(means) - 1)
    spread = spreads(streams.generator(seed, streams.Purpose.TAIL, block), truth.tail, rows)
    centre, scale = means[kind], np.sqrt(spread)[:, None]
    away = scale * (streams.normals(seed, streams.THETA, block, k) @ root.T)
    items = streams.draw_items(problem.probs, streams.uniforms(seed, streams.ITEMS, block, horizon))
    theta, worth = centre + away, np.empty((rows, horizon))
    fresh = streams.normals(seed, streams.Purpose.DRIFT, block, k * (horizon - 1)) if truth.drift else None
    for n in range(horizon):
        if n and truth.drift:
            new = fresh[:, (n - 1) * k:n * k] @ root.T
            away = np.sqrt(1 - truth.drift) * away + np.sqrt(truth.drift) * scale * new
        worth[:, n] = np.einsum("rk,rk->r", problem.items[items[:, n]], centre + away)
    eps = streams.normals(seed, streams.NOISE, block, horizon)
    loud = spreads(streams.generator(seed, streams.Purpose.NOISE_TAIL, block), truth.noise_tail, (horizon, rows)).T
    feedback = worth + np.sqrt(noise_var(problem)[items] * loud) * eps
    pay = problem.gamma ** np.arange(1, horizon + 1) * (worth - problem.cost)
    return theta, worth, items, feedback, pay, streams.normals(seed, streams.THOMPSON, block, horizon)


def hindsight_of(truth):
    """gamma / (1 - gamma) E (x.theta - cost)^+ under a truth: tastes known at every arrival, however they drift.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> round(hindsight_of(make_truth(make_problem([[1.]], [1.], [0.], [[1.]], 1., 0., .5), tail=3)), 4)
    0.3183
    """
    truth = as_truth(truth)
    problem, (weights, means, Sigma) = truth.problem, kinds(truth)
    sd = np.sqrt(variances(problem.items, Sigma))
    gains = [weight * problem.probs @ _excess(problem.items @ mean - problem.cost, sd, truth.tail)
             for weight, mean in zip(weights, means)]
    return float(problem.gamma / (1 - problem.gamma) * sum(gains))


def _excess(mean, sd, tail):
    """E (mean + sd T)^+, T of variance 1, Student's with `tail` degrees of freedom or normal."""
    if tail == np.inf:
        return expected_excess(mean, sd)
    scale = np.where(sd > 0, sd * np.sqrt((tail - 2) / tail), 1.0)
    at = mean / scale
    density = poch(tail / 2, .5) / np.sqrt(tail * np.pi) * (1 + at**2 / tail)**(-(tail + 1) / 2)
    value = mean * stdtr(tail, at) + scale * (tail + at**2) / (tail - 1) * density
    return np.where(sd > 0, np.maximum(value, 0), np.maximum(mean, 0))


def full_observation_of(truth, sequences, seed=0):
    """Every feedback shown, and spread, kind and loudness told: an upper bound on what any policy earns under a truth.

    Parameters
    ----------
    truth : Truth
    sequences : int
        At least 2.
    seed : int or sequence of int

    Returns
    -------
    Estimate

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1.]], [1.], [0.], [[1.]], 1., 0., .5)
    >>> full_observation_of(make_truth(problem, tail=3), 8).mean < hindsight_of(make_truth(problem, tail=3))
    True
    """
    truth, sequences = as_truth(truth), as_count("sequences", sequences, 2)
    return Estimate(*map(float, sample_mean(_told(truth, sequences, seed)())))


def full_first_of(truth, sequences, seed=0):
    """The same with the first forward exact: before it nothing is shown nor told, and beliefs stay the prior.

    w solves w = gamma E_x max(w, A_x), A_x = x.mu - cost + what full observation earns after feedback on x
    (`lib.bound.full_first`).  w is convex in A, so that sampling errors of A raise it on average.  One run for each item.

    Parameters
    ----------
    truth, sequences, seed
        As `full_observation_of` takes them.

    Returns
    -------
    Estimate
        Its error is that of the first forwards chosen.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1.]], [1.], [-3.], [[1.]], 1., 0., .9)
    >>> full_first_of(make_truth(problem, drift=.1), 8).mean
    0.0
    """
    truth, sequences = as_truth(truth), as_count("sequences", sequences, 2)
    problem, after = truth.problem, _told(truth, sequences, seed)
    net = problem.items @ problem.mu - problem.cost
    values = np.array([after(x) for x in range(len(net))]) + net[:, None]
    w, slope = first_forward(values.mean(axis=1), problem.probs, problem.gamma)
    return Estimate(float(w), float(sample_mean(slope @ values).se))


def _told(truth, sequences, seed):
    """A function from an item seen first, or None, to the values (sequences,) of full observation under a truth."""
    problem, (weights, means, Sigma) = truth.problem, kinds(truth)
    rng = streams.generator(seed, streams.Purpose.TAIL)
    spread = spreads(rng, truth.tail, sequences)
    loud = spreads(rng, truth.noise_tail, (sequences, arrivals(problem) + 1))

    def values(first=None):
        return sum(weight * full_observation_told(problem._replace(mu=mean, Sigma=Sigma), sequences, seed, truth.drift, spread, loud,
                                                  first) for weight, mean in zip(weights, means))

    return values


def parts(truth, count=PARTS):
    """The belief of one who knows a truth: weights (m,), means (m, k) and covariances (m, k, k) of its normal parts.

    Exact but for Student's law, of whose spread `count` quantiles of equal weight stand for all, scaled to mean 1.
    """
    weights, means, Sigma = kinds(truth)
    if truth.tail == np.inf:
        return weights, means, np.repeat(Sigma[None], len(means), axis=0)
    spread = (truth.tail - 2) / chdtri(truth.tail, (np.arange(count) + .5) / count)
    spread /= spread.mean()
    return (np.repeat(weights, count) / count, np.repeat(means, count, axis=0),
            np.tile(spread, len(means))[:, None, None] * Sigma)
