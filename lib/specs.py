"""What is run, as plain data: an experiment names its problem, costs, policies, users and sizes.

A spec is immutable, hashable and printable, and any machine that has lib and the data builds the same problem from it.
"""
from functools import lru_cache
import os
from typing import NamedTuple

import numpy as np

from lib import datasets, policies, sources
from lib.problem import make_problem

GRID = (policies.exploit(), policies.thompson(), *(rule(float(alpha)) for rule in
        (policies.ucb, policies.dtd_ucb, policies.dtd_dp) for alpha in policies.ALPHAS))


class Spec(NamedTuple):
    """An experiment, as plain data.  Pairs are (default, publication) sizes."""

    name: str
    problem: str                            # a key of PROBLEMS, and
    options: tuple = ()                     # ((argument, value), ...) of that function
    costs: tuple = ()
    policies: tuple = GRID
    thetas: str = "prior"                   # users: "prior", drawn from it, or "held_out", real ones in turn
    horizon: int = 100
    replications: tuple = (2048, 40_000)    # users on whom everything is evaluated
    tuning: tuple = (1024, 20_000)          # other users, on whom alpha is chosen
    sequences: tuple = (500, 20_000)        # item sequences for the bound by full observation
    tol: float | None = 1e-3                # aim for the relative width of the decomposition bound; None leaves it out
    seed: int = 0
    reference: str = "UCB"                  # differences are to this policy, tuned


def size(default, publication):
    """`publication` where the environment variable BOOK_SIZE says so, else `default`.

    Raises
    ------
    ValueError
        When BOOK_SIZE is neither "default" nor "publication".
    """
    sizes = {"default": default, "publication": publication}
    name = os.environ.get("BOOK_SIZE", "default")
    if name not in sizes:
        raise ValueError(f"BOOK_SIZE is {name!r}: it must be one of {', '.join(sizes)}")
    return sizes[name]


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


def rated(dataset="movielens", gamma=0.9, **options):
    """Items and the prior of a data set's users (paper, sections IV-A and IV-B), and the held-out users' thetas.

    `dataset` as `lib.sources.rated`, which says how BOOK_YELP replaces it; `options` go to `lib.datasets.prior`.
    """
    data = sources.rated(dataset)
    prior = datasets.prior(data, **options)
    if prior.noise != "features" and np.ptp(np.count_nonzero(data.items, axis=1)):
        raise ValueError(f"noise is {prior.noise!r}: the model's noise grows with the number of features")
    return make_problem(data.items, data.probs, prior.mu, prior.Sigma, prior.noise_sd, 0.0, gamma), prior.thetas_held_out


def documents(ratio=1, articles=40, gamma=0.9, **options):
    """Documents as topics and the prior of their readers (paper, section IV-B), and the held-out readers' thetas.

    `ratio` and `articles` as `lib.sources.documents`; `options` go to `lib.datasets.prior`.
    """
    data = sources.documents(ratio, articles)
    prior = datasets.prior(data, **options)
    return make_problem(data.items, data.probs, prior.mu, prior.Sigma, prior.noise_sd, 0.0, gamma), prior.thetas_held_out


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


STARS = (2.6, 2.8, 3.0, 3.2, 3.4, 3.5, 3.6, 3.7, 3.8, 3.9, 4.0, 4.2, 4.5, 4.8)
SHARES = (.19, .24, .29, .34, .38, .43, .48)
PROBLEMS = {"simulated": simulated, "rated": rated, "documents": documents, "combinations": combinations}
SPECS = {spec.name: spec for spec in (
    Spec("simulated", "simulated",
         costs=(-1.0, -.5, 0.0, .2, .3, .4, .45, .5, .55, .6, .65, .7, .75, .8, .85, .9, 1.0, 1.1)),
    Spec("ratings", "rated", costs=STARS, tuning=(2048, 20_000), tol=1e-3),
    Spec("ratings_held_out", "rated", costs=STARS, tuning=(2048, 20_000), tol=1e-3, thetas="held_out"),
    Spec("documents", "documents", (("articles", 32), ("ratio", 1)), SHARES, replications=(1024, 40_000), tol=None, seed=6),
    Spec("documents_held_out", "documents", (("articles", 32), ("ratio", 1)), SHARES, replications=(1128, 40_000),
         tuning=(564, 20_000), tol=None, thetas="held_out", seed=6))}


@lru_cache(maxsize=8)
def build(spec):
    """The (Problem, thetas) of a spec; thetas is None where users are drawn from the prior."""
    if spec.problem not in PROBLEMS:
        raise ValueError(f"{spec.name}: the problem is {spec.problem!r}, it must be one of {', '.join(PROBLEMS)}")
    if spec.thetas not in ("prior", "held_out"):
        raise ValueError(f'{spec.name}: thetas is {spec.thetas!r}, it must be "prior" or "held_out"')
    problem, thetas = PROBLEMS[spec.problem](**dict(spec.options))
    if spec.thetas == "held_out" and (thetas is None or not len(thetas)):
        raise ValueError(f"{spec.name}: {spec.problem} has no held-out users")
    return problem, thetas if spec.thetas == "held_out" else None
