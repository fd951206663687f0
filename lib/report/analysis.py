"""A stream analysed from end to end: prior, noise, bound, policies with tuned alpha, gap, recommendation, warnings.

`lib.report` writes it as a page, the chapter "Your own stream" walks through it.
"""
from typing import NamedTuple

import numpy as np
import pandas as pd

from lib import bound, experiments, policies, simulate
from lib.experiments import moments, runner
from lib.problem import make_problem
from lib.report import checks

SUPPORT = 64                                  # most item vectors of the stream that is simulated
TRIED = 8                                     # users on whom alpha is tuned, for each on whom policies are evaluated
STEPS = (-.4, -.2, 0., .2, .4, .6, .8)        # other costs, in spreads of preference
TUNING, EVALUATION, BOUND, SHARP, REPLAY = 1, 2, 3, 4, 5


class Analysis(NamedTuple):
    """What `analyse` found."""

    dataset: object             # Dataset, items as used
    prior: object               # Prior
    problem: object             # Problem at the cost asked for
    table: pd.DataFrame         # as lib.experiments.run, with columns bound, bound_se and gap
    best: pd.DataFrame          # the tuned policies at the cost asked for, best on the tuning users first, see `sharpened`
    recommended: object         # Policy
    forwards: bool              # whether it ever forwards anything
    replayed: object            # DataFrame: tuned policies on held-out users' real ratings, or None
    cautions: list              # of Caution
    users: int                  # simulated users on whom alpha was tuned


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
    parts = [moments.moments(simulate.replicate(here, spec.policies, count, spec.horizon, (*seed, purpose)))
             for purpose, count in ((TUNING, spec.tuning[0]), (EVALUATION, spec.replications[0]))]
    limit = bound.dual_first(here, 200, seed=(*seed, BOUND))
    rows = runner.rows(spec, cost, *parts, {
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
        rewards = np.mean([experiments.replay(problem, dataset, users, tuned, 100, s, seed)[0] for s in shuffles], axis=0)
        mean, se = experiments.over_users(rewards, greedy)
        parts.append(pd.DataFrame({"order": order, "policy": names, "reward": rewards.mean(axis=1), "difference": mean,
                                   "difference_se": se}))
    return pd.concat(parts, ignore_index=True)


def sharpened(problem, tuned, best, count, seed):
    """`best` with means sharpened by a control variate (lib.bound.penalty), on users met neither in tuning nor before.

    Beside mean, se, gap and gap_se it gets `over_exploitation` and its error, paired.  Also returned: the Episodes.
    """
    seen = simulate.episodes(problem, tuned, count, 100, seed)
    control = bound.control(problem, seen, 2, seed)
    greedy = [policy.kind for policy in tuned].index("exploit")
    mean, se = np.transpose(bound.controlled_rows(seen.rewards, control))
    apart, apart_se = np.transpose(bound.controlled_rows(seen.rewards, control, greedy))
    return best.assign(replications=count, mean=mean, se=se, over_exploitation=apart, over_se=apart_se,
                       gap=best.bound - mean, gap_se=np.hypot(se, best.bound_se)), seen


def analyse(dataset, prior, cost, gamma=0.9, steps=STEPS, users=1024, seed=0):
    """Analyse a stream at one cost, and for the pictures at the costs around it.

    Parameters
    ----------
    dataset : Dataset
        With ratings.
    prior : Prior
        From `lib.datasets.prior(dataset, ...)`; the policies are also replayed on the users that it held out.
    cost : float
        What forwarding one item costs, in the unit of the ratings.
    gamma : float
        Discount factor in (0, 1): a user meets gamma / (1 - gamma) items on average.
    steps : sequence of float
        Other costs, in spreads of preference around the mean item.
    users : int
        Simulated users for the pictures; TRIED times as many tune alpha, half as many sharpen the result.
    seed : int

    Returns
    -------
    Analysis

    Raises
    ------
    ValueError
        Naming what is wrong with an argument.
    """
    problem = make_problem(dataset.items, dataset.probs, prior.mu, prior.Sigma, prior.noise_sd, cost, gamma)
    items, probs = support(dataset, seed)
    whole, problem = len(items) == len(dataset.items), problem._replace(items=items, probs=probs)
    spec = experiments.Spec("stream", "rated", replications=(users,) * 2, tuning=(TRIED * users,) * 2, seed=seed)
    costs = sorted({float(cost), *experiments.typical_costs(problem, steps)})
    table = pd.concat([measure(problem, c, spec, (seed,)) for c in costs], ignore_index=True)
    best = experiments.best(table[table.cost == cost]).sort_values("tuning_mean", ascending=False, kind="stable")
    tuned = [rule(*pair) for pair in zip(best.policy, best.alpha)]
    best, seen = sharpened(problem, tuned, best.reset_index(drop=True), max(users // 2, 2), (seed, SHARP))
    real = replayed(problem, dataset, prior.held_out, tuned, (seed, REPLAY)) if whole and len(prior.held_out) > 1 else None
    noise = prior.noise_sd * np.sqrt(np.count_nonzero(dataset.items, axis=1).mean())
    extra = [checks.silent(problem, policies.label(tuned[0]), seen.theta, seen.decisions[0]),
             thinned(dataset, len(items)), unresolved(best)]
    found = checks.data_cautions(dataset, prior, noise) + [caution for caution in extra if caution]
    return Analysis(dataset, prior, problem, table, best, tuned[0], bool(seen.decisions[0].any()), real, found, TRIED * users)


def thinned(dataset, count):
    """The stream stands on a sample of the items."""
    if count < len(dataset.items):
        return checks.Caution("a sample of the items", f"{len(dataset.items)} different item vectors: policies and bounds use a "
                                f"random {count} of them, so their level is that of the sample.")


def unresolved(best):
    """The recommended policy is not told apart from exploitation."""
    top = best.iloc[0]
    if top.policy == "Exploitation" or abs(top.over_exploitation) < 2 * top.over_se:
        return checks.Caution("exploration is not resolved", f"{top.policy} earns {top.over_exploitation:+.4g} beside exploitation "
                                f"(standard error {top.over_se:.2g}): at this cost exploring hardly matters.")
