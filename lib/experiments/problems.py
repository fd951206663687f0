"""Problems that experiments are about: the paper's simulated instance, real data, and instances made on purpose.

In an instance of some `Knobs` every item is a priori worth N(0, 1), and every feedback has the same noise.  So each item
alone is the same problem for every setting of `features`, `mix`, `correlation` and `favour`: these change only how often
items come and what one tells about the others.
"""
from itertools import permutations
from typing import NamedTuple

import numpy as np

from lib import datasets
from lib.datasets.priors import as_prior
from lib.datasets.records import as_dataset
from lib.experiments import sources
from lib.posterior import variances
from lib.problem import as_count, as_floats, as_made, as_scalar, checked, make_problem, noise_factors, noise_var


def simulated(features=100, mean=0.3, sd=1.0, noise_sd=0.1, gamma=0.9, favour=100.0):
    """The paper's simulated instance (section IV-C): item e_1 comes `favour` times as often as each other unit vector.

    Returns
    -------
    Problem (with cost 0), users' thetas (None: there are none)
    """
    probs = np.full(features, 1.0)
    probs[0] = favour
    return make_problem(np.eye(features), probs / probs.sum(), np.full(features, mean), sd**2 * np.eye(features),
                        noise_sd, 0.0, gamma), None


def believed(dataset, prior, cost, gamma):
    """The Problem of a Dataset's stream and the Prior of its users, with that prior's law of the noise."""
    dataset = as_dataset(dataset)
    prior = as_prior(prior, dataset)
    return make_problem(dataset.items, dataset.probs, prior.mu, prior.Sigma, prior.noise_sd, cost, gamma, noise=prior.noise)


def rated(dataset="movielens", gamma=0.9, **options):
    """Items and the prior of a data set's users (paper, sections IV-A and IV-B), and the held-out users' thetas.

    `dataset` as `lib.experiments.sources.rated`, which says how BOOK_YELP replaces it; `options` go to `lib.datasets.prior`.
    """
    data = sources.rated(dataset)
    prior = datasets.prior(data, **options)
    return believed(data, prior, 0.0, gamma), prior.thetas_held_out


def documents(ratio=1, articles=40, gamma=0.9, topics=10, **options):
    """Documents as topics and the prior of their readers (paper, section IV-B), and the held-out readers' thetas.

    `ratio`, `articles` and `topics` as `lib.experiments.sources.documents`; `options` go to `lib.datasets.prior`.
    """
    data = sources.documents(ratio, articles, topics)
    prior = datasets.prior(data, **options)
    return believed(data, prior, 0.0, gamma), prior.thetas_held_out


def combinations(correlated=False, features=6, items=40, cost=4.0, gamma=0.9):
    """Random combinations of one to three features, and preferences just below the cost: bounds are loosest here.

    Prior means run from 3.4 to 3.9; Sigma is the identity, or .25 + .36 I where `correlated`.

    Returns
    -------
    Problem (with its cost), users' thetas (None: there are none)
    """
    rng = np.random.default_rng(5)
    drawn = np.zeros((items, features))
    for row, count in zip(drawn, rng.integers(1, 4, items)):
        row[rng.choice(features, count, replace=False)] = 1 / count
    drawn = np.unique(drawn, axis=0)
    Sigma = .25 + .36 * np.eye(features) if correlated else np.eye(features)
    return make_problem(drawn, np.full(len(drawn), 1 / len(drawn)), np.linspace(3.4, 3.9, features), Sigma, 0.7, cost, gamma), None


PROBLEMS = {"simulated": simulated, "rated": rated, "documents": documents, "combinations": combinations}


class Knobs(NamedTuple):
    """Settings of an instance; vary one with `_replace`."""

    features: int = 4
    mix: float = 0.0            # 0: items are the basis vectors; 1: they lie halfway between two of them
    correlation: float = 0.0    # of any two preferences
    favour: float = 10.0        # how many times as often items of the first feature come as those of another
    noise: float = 1.0          # standard deviation of a feedback, in prior standard deviations of an item's worth
    cost: float = 0.3           # in the same unit, above the prior mean
    gamma: float = 0.9


def from_knobs(knobs):
    """The Problem of some Knobs.

    Items are (1 - mix/2) e_i + (mix/2) e_j for every ordered pair of features, and come in proportion to the
    favour of e_i; for mix = 0 they are the e_i.  Sigma is the same for all pairs, scaled to x Sigma x = 1.

    Raises
    ------
    ValueError
        Naming the knob and the value that is wrong.

    Examples
    --------
    >>> from_knobs(Knobs(features=2, favour=3.0)).probs
    array([0.75, 0.25])
    """
    k, mix = as_count("features", as_made("knobs", knobs, Knobs, "lib.experiments.Knobs").features, 2), as_scalar("mix", knobs.mix)
    if not 0 <= mix <= 1:
        raise ValueError(f"mix is {mix}: it must lie in [0, 1]")
    favour = as_scalar("favour", knobs.favour, 0)
    correlation = as_scalar("correlation", knobs.correlation, -1 / (k - 1), 1)
    basis = np.eye(k)
    pairs = list(permutations(range(k), 2)) if mix else [(i, i) for i in range(k)]
    items = np.array([(1 - mix / 2) * basis[i] + mix / 2 * basis[j] for i, j in pairs])
    weight = np.array([1.0 if i else favour for i, _ in pairs])
    Sigma = (1 - correlation) * basis + correlation
    noise_sd = as_scalar("noise", knobs.noise, 0, 1e100) / np.sqrt(np.count_nonzero(items[0]))
    return make_problem(items, weight / weight.sum(), np.zeros(k), Sigma / (items[0] @ Sigma @ items[0]), noise_sd,
                        knobs.cost, knobs.gamma)


def wrong(problem, noise=1.0, prior=1.0, mean=0.0):
    """What somebody believes who takes noise_sd times `noise`, Sigma times `prior`, and mu plus `mean` throughout.

    Examples
    --------
    >>> wrong(from_knobs(Knobs()), mean=-1).mu
    array([-1., -1., -1., -1.])
    """
    problem = checked(problem)
    return checked(problem._replace(noise_sd=problem.noise_sd * as_scalar("noise", noise, 0),
                                    Sigma=problem.Sigma * as_scalar("prior", prior, 0),
                                    mu=problem.mu + as_scalar("mean", mean)))


def even_noise(problem, sd=None):
    """The problem with noise that does not grow with I(x): every feedback has standard deviation `sd`.

    Parameters
    ----------
    problem : Problem
    sd : float, optional
        In reward units; by default the root of the mean noise variance of the items as they come.

    Returns
    -------
    Problem

    Examples
    --------
    >>> noise_var(even_noise(make_problem([[1, 0], [1, 1]], [.5, .5], [0, 0], [[1, 0], [0, 1]], 1, .2, .9), 2.0))
    array([4., 4.])
    """
    problem = checked(problem)
    sd = np.sqrt(problem.probs @ noise_var(problem)) if sd is None else as_scalar("sd", sd, 0)
    return problem._replace(noise_sd=float(sd), noise="constant")


def with_level(problem, sd):
    """The problem of users who differ in a general level too: x.theta plus a number of their own, N(0, sd^2), independent.

    The level is one more feature, 1 in every item; the noise of each item stays what it was.

    Parameters
    ----------
    problem : Problem
    sd : float
        In reward units.

    Returns
    -------
    Problem

    Examples
    --------
    >>> with_level(from_knobs(Knobs()), .5).Sigma.diagonal()
    array([1.  , 1.  , 1.  , 1.  , 0.25])
    """
    problem, sd = checked(problem), as_scalar("sd", sd, 0)
    n, k = problem.items.shape
    Sigma = np.zeros((k + 1, k + 1))
    Sigma[:k, :k], Sigma[k, k] = problem.Sigma, sd**2
    return checked(problem._replace(items=np.hstack([problem.items, np.ones((n, 1))]), mu=np.append(problem.mu, 0.0),
                                    Sigma=Sigma, noise=noise_factors(problem).astype(float)))


def self_selected(problem, strength):
    """What is believed from ratings of items that users chose for themselves: the mean is drawn towards what they like.

    A user rates item x at a rate proportional to exp(s x.theta).  Then theta among the ratings of x is N(mu + s Sigma x,
    Sigma), an exponential tilt of the normal law, and its mean over the stream is mu + s Sigma E[X].

    Parameters
    ----------
    problem : Problem
        What is so.
    strength : float
        s times the mean prior standard deviation of an item's worth: by how much in log rate one more such deviation
        attracts.  Negative where people rate what they dislike.

    Returns
    -------
    Problem

    Examples
    --------
    >>> self_selected(from_knobs(Knobs(features=2, favour=1.0)), .5).mu
    array([0.25, 0.25])
    """
    problem, strength = checked(problem), as_scalar("strength", strength)
    sd = problem.probs @ np.sqrt(variances(problem.items, problem.Sigma))
    if not sd > 0:
        raise ValueError("problem has no variance in Sigma: there is nothing to choose by")
    return checked(problem._replace(mu=problem.mu + strength / sd * problem.Sigma @ (problem.probs @ problem.items)))


def typical_costs(problem, steps):
    """Costs around the stream's mean reward, in units of the spread of preferences: rounded to two digits.

    A cost of mean + t sd is one at which a typical item loses t prior standard deviations.

    Parameters
    ----------
    problem : Problem
        Its own cost does not matter.
    steps : sequence of float
        Values of t.

    Returns
    -------
    tuple of float

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> typical_costs(make_problem([[1]], [1], [3], [[4]], 1, 0, .9), (-.5, 0, .25))
    (2.0, 3.0, 3.5)
    """
    problem = checked(problem)
    if isinstance(steps, (list, tuple)) and not steps:
        return ()
    steps = as_floats("steps", steps, 1)
    mean = problem.probs @ problem.items @ problem.mu
    sd = np.sqrt(problem.probs @ variances(problem.items, problem.Sigma))
    digits = 1 - int(np.floor(np.log10(sd))) if sd > 0 else 2
    return tuple(float(round(mean + t * sd, digits)) for t in steps)
