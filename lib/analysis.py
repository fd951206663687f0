"""A stream analysed from end to end: prior, noise, bound, policies with tuned alpha, gap, recommendation, warnings.

`lib.report` writes it as a page, the chapter "Your own stream" walks through it.
"""
from typing import NamedTuple

import numpy as np
import pandas as pd

from lib import bound, cautions, datasets, dual, experiments, policies, replay, simulate, sources, statistics
from lib.problem import make_problem

SUPPORT = 64                                  # most item vectors of the stream that is simulated
STEPS = (-.4, -.2, 0., .2, .4, .6, .8)        # other costs, in spreads of preference
TUNING, EVALUATION, BOUND, LAST, REPLAY = 1, 2, 3, 4, 5


class Analysis(NamedTuple):
    """What `analyse` found."""

    dataset: object             # Dataset, items as used
    prior: object               # Prior
    problem: object             # Problem at the cost asked for
    table: pd.DataFrame         # as lib.experiments.run, with columns bound, bound_se and gap
    best: pd.DataFrame          # the tuned policies at the cost asked for, best on the tuning users first
    recommended: object         # Policy
    prior_forwards: bool        # whether it forwards anything before any feedback
    replayed: pd.DataFrame      # tuned policies on the held-out users' real ratings, minus exploitation
    cautions: list              # of Caution
    method: str                 # of the prior
    users: tuple                # simulated users for tuning and evaluation


def support(dataset, seed=0, most=SUPPORT):
    """At most `most` item vectors for the simulated stream: all, or a random sample by probability, equally likely.

    Examples
    --------
    >>> from lib import datasets
    >>> support(datasets.movielens(), most=10)[1].sum().round(12)
    np.float64(1.0)
    """
    if len(dataset.items) <= most:
        return dataset.items, dataset.probs
    chosen = np.sort(np.random.default_rng(seed).choice(len(dataset.items), most, replace=False, p=dataset.probs))
    return dataset.items[chosen], np.full(most, 1 / most)


def measure(problem, cost, spec, seed):
    """The rows of one cost: all policies tuned and evaluated, and the bound."""
    here = problem._replace(cost=cost)
    parts = [statistics.moments(simulate.replicate(here, spec.policies, count, spec.horizon, (*seed, purpose)))
             for purpose, count in ((TUNING, spec.tuning[0]), (EVALUATION, spec.replications[0]))]
    limit = dual.dual_first(here, 200, seed=(*seed, BOUND))
    rows = experiments.rows(spec, cost, *parts, {
        "bound": limit.mean, "bound_se": limit.se, "hindsight": bound.hindsight(here)})
    return rows.assign(gap_se=np.hypot(rows.se, limit.se))


def rule(name, alpha):
    """The Policy of a table's row."""
    makers = {"Exploitation": policies.exploit, "Thompson sampling": policies.thompson, "UCB": policies.ucb,
              "DTD-UCB": policies.dtd_ucb, "DTD-DP": policies.dtd_dp}
    return makers[name]() if np.isnan(alpha) else makers[name](float(alpha))


def replayed(problem, dataset, users, tuned, seed):
    """Each tuned policy's real reward minus exploitation's over `users`, in time order and shuffled."""
    names = [policies.label(policy).split(", alpha")[0] for policy in tuned]
    greedy, parts = names.index("Exploitation"), []
    for order, shuffles in (("in time order", [None]), ("shuffled", range(10))):
        rewards = np.mean([replay.replay(problem, dataset, users, tuned, 100, s, seed)[0] for s in shuffles], axis=0)
        mean, se = replay.compare(rewards, greedy)
        parts.append(pd.DataFrame({"order": order, "policy": names, "reward": rewards.mean(axis=1), "difference": mean,
                                   "difference_se": se}))
    return pd.concat(parts, ignore_index=True)


def analyse(dataset, cost, gamma=0.9, method="empirical_bayes", min_ratings=None, steps=STEPS, users=(1024, 1024), seed=0):
    """Analyse a stream at one cost, and for the pictures at the costs around it.

    Parameters
    ----------
    dataset : Dataset
        With ratings.
    cost : float
        What forwarding one item costs, in the unit of the ratings.
    gamma : float
        Discount factor in (0, 1): a user meets gamma / (1 - gamma) items on average.
    method : str
        As in `lib.datasets.prior`.
    min_ratings : int or None
        Users with fewer ratings are left out; None takes 10, or three a feature if that is more.
    steps : sequence of float
        Other costs, in spreads of preference around the mean item.
    users : (int, int)
        Simulated users on whom alpha is tuned and everything is evaluated.
    seed : int

    Returns
    -------
    Analysis

    Raises
    ------
    ValueError
        Naming what is wrong with an argument or missing in the data.
    """
    k = len(dataset.features)
    low, high = dataset.notes["rating_range"]
    if low == high:
        raise ValueError(f"every rating is {low:g}: there is nothing to learn")
    prior = datasets.prior(dataset, seed=seed, method=method, min_ratings=max(10, 3 * k) if min_ratings is None else min_ratings)
    problem = make_problem(dataset.items, dataset.probs, prior.mu, prior.Sigma, prior.noise_sd, cost, gamma)
    items, probs = support(dataset, seed)
    small = problem._replace(items=items, probs=probs)
    spec = experiments.Spec("stream", "rated", replications=(users[1],) * 2, tuning=(users[0],) * 2, seed=seed)
    costs = sorted({float(cost), *sources.typical_costs(small, steps)})
    table = pd.concat([measure(small, c, spec, (seed,)) for c in costs], ignore_index=True)
    best = experiments.best(table[table.cost == cost]).sort_values("tuning_mean", ascending=False, kind="stable")
    tuned = [rule(*pair) for pair in zip(best.policy, best.alpha)]
    first = simulate.episodes(small, tuned[:1], 500, 100, (seed, LAST))
    forwards = bool(first.decisions[0].any())
    real = replayed(problem, dataset, prior.held_out, tuned, (seed, REPLAY)) if len(prior.held_out) > 1 and (
        len(items) == len(dataset.items)) else pd.DataFrame()
    noise = prior.noise_sd * np.sqrt(np.count_nonzero(dataset.items, axis=1).mean())
    found = cautions.data_cautions(dataset, prior, noise)
    extra = [cautions.silent(small, policies.label(tuned[0]), first.theta, first.decisions[0]),
             thinned(dataset, len(items)), unresolved(best)]
    return Analysis(dataset, prior, small, table, best, tuned[0], forwards, real, found + [c for c in extra if c],
                    method.replace("_", " "), users)


def thinned(dataset, count):
    """The stream stands on a sample of the items."""
    if count < len(dataset.items):
        return cautions.Caution("a sample of the items", f"{len(dataset.items)} different item vectors: policies and bounds use a "
                                f"random {count} of them, so their level is that of the sample.")


def unresolved(best):
    """The recommended policy is not told apart from exploitation."""
    top, greedy = best.iloc[0], best[best.policy == "Exploitation"].iloc[0]
    apart = top["mean"] - greedy["mean"]
    if abs(apart) < 2 * np.hypot(top.difference_se, greedy.difference_se) or top.policy == "Exploitation":
        return cautions.Caution("exploration is not resolved", f"{top.policy} earns {apart:+.4g} beside exploitation, which is within "
                                "the error of the simulation or nothing: at this cost exploring hardly matters.")
