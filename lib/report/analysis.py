"""A stream analysed from end to end: prior, noise, bound, policies with tuned alpha, gap, recommendation, warnings.

`lib.report` writes it as a page, the chapter "Your own stream" walks through it.

The bound is for a life without end, so policies are followed for as many items as `lib.problem.effective_horizon` has
for the discount factor: what is left is below a thousandth of the hindsight bound.  The longer the life, the fewer users
are simulated for tuning and pictures, so that the work stays what it is at gamma = .9.
"""
from typing import NamedTuple

import numpy as np
import pandas as pd

from lib import bound, experiments, policies, simulate
from lib.estimate import half_width
from lib.experiments import moments, runner, specs
from lib.posterior import COMING, EXACT
from lib.problem import effective_horizon, noise_var
from lib.report import checks
from lib.report.progress import step

TRIED = 8                                     # users on whom alpha is tuned, for each on whom policies are evaluated
TRIALS = (.5, 1.0, 2.0)                       # alphas of the policies that the book adds to the paper's
STEPS = (-.4, -.2, 0., .2, .4, .6, .8)        # other costs, in spreads of preference
FEWER = -.2, .2, .6                           # the same where each costs more, see WORK
USERS = 16, 10**6                             # fewest and most simulated users
LARGEST = 1e100                               # numbers beyond it, or below its inverse, have no squares
TUNING, EVALUATION, BOUND, SHARP, REPLAY = 1, 2, 3, 4, 5
FEW = 16                                      # simulated users, at least, behind every number
LONGEST = 20_000                              # items that a user may meet: gamma up to .99965
TABLES = 2_000                                # items beyond which the tables of DTD-DP cost minutes
RECORDED = 400                                # items of a user's real ratings that are replayed, at most
SEVERAL = 64                                  # item vectors beyond which the work of a study is counted and limited
WORK = 1.5e11                                 # multiplications of the simulations for the pictures, some two minutes of two cores
REPLAYED = 2e10                               # and of the replay


class Analysis(NamedTuple):
    """What `analyse` found."""

    dataset: object             # Dataset, items as used
    prior: object               # Prior
    problem: object             # Problem at the cost asked for
    table: pd.DataFrame         # as lib.experiments.run, with columns bound, bound_se and gap
    best: pd.DataFrame          # the tuned policies at the cost asked for, best on the tuning users first, see `sharpened`
    tuned: list                 # of Policy, one for each row of `best`
    forwards: bool              # whether the first of them ever forwards anything
    replayed: object            # DataFrame: tuned policies on held-out users' real ratings, or None
    cautions: list              # of Caution
    users: int                  # simulated users on whom alpha was tuned
    horizon: int                # items that a simulated user meets
    rest: float                 # the most that any policy can earn from the items after them
    noise: object = None        # NoiseChoice of the law of the noise, or None where it was not chosen

    @property
    def recommended(self):
        """The policy that did best on the tuning users."""
        return self.tuned[0]


def contest(horizon):
    """The policies that a report tries: the paper's, and of the book's those that are best somewhere.

    Knowledge gradient, hard clusters and DTD-DP with the model's noise; without the tables of dynamic programs where lives are
    longer than TABLES.

    Examples
    --------
    >>> len(contest(66)), {policy.kind for policy in contest(5000)} >= {"ucb", "knowledge_gradient"}
    (41, True)
    """
    added = (policies.knowledge_gradient, policies.clusters, lambda alpha: policies.dtd_dp(alpha, "model"))
    found = [*specs.GRID, *(make(alpha) for make in added for alpha in TRIALS)]
    return tuple(policy for policy in found if horizon <= TABLES or policy.kind != "dtd_dp")


def price(problem, arms):
    """Multiplications that these policies need for one arriving item, roughly."""
    n, k = problem.items.shape
    coming = n if n <= EXACT else COMING
    return sum(coming * k if policy.kind == "knowledge_gradient" else k**2 for policy in arms)


def check_sizes(dataset, cost):
    """Nothing that is read is so large or so small that its square is no number.

    Raises
    ------
    ValueError
        Naming the cost, or the file and what stands in it.

    Examples
    --------
    >>> from lib import datasets
    >>> check_sizes(datasets.movielens(), 1e308)
    Traceback (most recent call last):
    ValueError: cost is 1e+308: numbers beyond 1e+100 cannot be computed with
    """
    ratings, features = dataset.ratings.value, np.abs(dataset.items[dataset.items != 0])
    sizes = {"cost is": cost, f"{dataset.source}: the lowest rating is": ratings.min(), f"{dataset.source}: the highest rating is": ratings.max(),
             f"{dataset.source}: the largest feature is": features.max()}
    for name, value in sizes.items():
        if not abs(value) <= LARGEST:
            raise ValueError(f"{name} {value:g}: numbers beyond {LARGEST:g} cannot be computed with")
    for name, value in (("ratings differ by", np.ptp(ratings)), ("the smallest feature beside 0 is", features.min())):
        if 0 < value < 1 / LARGEST:
            raise ValueError(f"{dataset.source}: {name} {value:g}: numbers below {1 / LARGEST:g} cannot be computed with")


def measure(problem, cost, spec):
    """The rows of one cost: all policies tuned and evaluated, and the bound."""
    here = problem._replace(cost=cost)
    step(f"policies at cost {cost:g}")
    drawn = [simulate.replicate_controlled(here, spec.policies, count, spec.horizon, (spec.seed, purpose))
             for purpose, count in ((TUNING, spec.tuning[0]), (EVALUATION, spec.replications[0]))]
    parts = [moments.controlled(moments.moments(moments.with_control(rows))) for rows in drawn]
    step(f"upper bound at cost {cost:g}")
    limit = upper_bound(here, spec.horizon, (spec.seed, BOUND))
    rows = runner.rows(spec, cost, *parts, {
        "bound": limit.mean, "bound_se": limit.se, "hindsight": bound.hindsight(here),
        "truncation": max(map(abs, simulate.truncation(here, spec.horizon)))})
    return rows.assign(gap_se=np.hypot(rows.se, limit.se))


def upper_bound(problem, horizon, seed):
    """The bound with its error; in a long life the search along a path stops earlier, which only loosens it."""
    return bound.dual_first(problem, 200, effort=2000 if horizon <= 100 else 200, seed=seed)


def replayed(problem, dataset, users, tuned, seed):
    """Each tuned policy's real reward minus exploitation's over `users`, in time order and shuffled.

    Where that is too much work for all of them it is done for the first at random, and with fewer shuffles.
    """
    names, parts = [policies.family_name(policy) for policy in tuned], []
    horizon, shuffles = min(effective_horizon(problem.gamma), RECORDED), 10
    if len(problem.items) > SEVERAL:
        shuffles, each = 3, price(problem, tuned) * horizon
        most = max(int(REPLAYED / (4 * each)), checks.USERS)
        users = users if len(users) <= most else np.sort(np.random.default_rng(seed).choice(users, most, replace=False))
    for order, numbers in (("in time order", [None]), ("shuffled", range(shuffles))):
        step(f"real ratings {order}")
        rewards = np.mean([experiments.replay(problem, dataset, users, tuned, horizon, s, seed)[0] for s in numbers], axis=0)
        mean, se = experiments.over_users(rewards, names.index("Exploitation"))
        parts.append(pd.DataFrame({"order": order, "policy": names, "users": len(users), "reward": rewards.mean(axis=1), "difference": mean,
                                   "difference_se": se}))
    return pd.concat(parts, ignore_index=True)


def sharpened(found, best, count):
    """`best` with the means of `found`, Values over `count` users met neither in tuning nor before.

    Beside mean, se, gap and gap_se it gets `over_exploitation` and its error, paired.
    """
    mean, se = found.value
    alike = (found.lead.se <= 1e-12 * se) & (np.abs(found.lead.mean) <= 1e-12 * np.abs(mean))      # the same decisions, up to rounding
    lead, lead_se = (np.where(alike, 0.0, part) for part in found.lead)
    return best.assign(replications=count, mean=mean, se=se, over_exploitation=lead, over_se=lead_se,
                       gap=best.bound - mean, gap_se=np.hypot(se, best.bound_se))


def plan(problem, users, costs, seed):
    """The Spec of a study of this problem at so many costs: horizon, users and policies.

    Raises
    ------
    ValueError
        When a life is longer than can be followed.
    """
    horizon = effective_horizon(problem.gamma)
    if horizon > LONGEST:
        raise ValueError(f"gamma is {problem.gamma}: a user would have to be followed for {horizon} items, this goes up to {LONGEST}")
    arms, count = contest(horizon), users * min(horizon, 100) // horizon
    if len(problem.items) > SEVERAL:
        count = min(count, int(WORK / (price(problem, arms) * horizon * costs * (1 + TRIED))))
    count = max(FEW, count)
    return experiments.Spec("stream", "rated", policies=arms, horizon=horizon, replications=(count,) * 2,
                            tuning=(TRIED * count,) * 2, seed=seed)


def analyse(dataset, prior, cost, gamma=0.9, steps=None, users=1024, seed=0):
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
    steps : sequence of float, optional
        Other costs, in spreads of preference around the mean item; by default STEPS, FEWER for more than SEVERAL item vectors.
    users : int
        Simulated users for the pictures, within USERS, fewer where lives are long; TRIED times as many tune alpha.  Half of
        `users` sharpen the result.
    seed : int

    Returns
    -------
    Analysis

    Raises
    ------
    ValueError
        Naming what is wrong with an argument.
    """
    check_sizes(dataset, cost)
    if not USERS[0] <= users <= USERS[1]:
        raise ValueError(f"users is {users}: from {USERS[0]} to {USERS[1]:,} can be simulated, fewer have no standard error")
    problem = experiments.believed(dataset, prior, cost, gamma)
    steps = (FEWER if len(problem.items) > SEVERAL else STEPS) if steps is None else steps
    costs = sorted({float(cost), *experiments.typical_costs(problem, steps)})
    spec = plan(problem, users, len(costs), seed)
    table = pd.concat([measure(problem, c, spec) for c in costs], ignore_index=True)
    here = table[table.cost == cost]
    best = experiments.best(here).sort_values("tuning_mean", ascending=False, kind="stable").reset_index(drop=True)
    arms = experiments.chosen(spec, here)
    tuned, count = [arms[name] for name in best.policy], max(users // 2, FEW)
    step("the tuned policies on other users")
    values = experiments.evaluate(problem, tuned, count, spec.horizon, (seed, SHARP), list(best.policy).index("Exploitation"))
    best = sharpened(values, best, count)
    real = replayed(problem, dataset, prior.held_out, tuned, (seed, REPLAY)) if len(prior.held_out) > 1 else None
    rest = simulate.truncation(problem, spec.horizon)[1]
    return Analysis(dataset, prior, problem, table, best, tuned, bool(values.episodes.decisions[0].any()), real,
                    cautions(dataset, prior, problem, best, tuned[0], values.episodes), spec.tuning[0], spec.horizon, rest)


def cautions(dataset, prior, problem, best, recommended, seen):
    """Every Caution of the data, the prior and the result."""
    noise = float(np.sqrt(noise_var(problem).mean()))
    extra = [checks.silent(problem, policies.label(recommended), seen.theta, seen.decisions[0]), unresolved(best), left_out(best)]
    return checks.data_cautions(dataset, prior, noise) + [caution for caution in extra if caution]


def unresolved(best):
    """The recommended policy is not told apart from exploitation."""
    top = best.iloc[0]
    if top.policy == "Exploitation" or abs(top.over_exploitation) < half_width(top.over_se, top.replications):
        return checks.Caution("exploration is not resolved", f"{top.policy} earns {top.over_exploitation:+.4g} beside exploitation "
                                f"(standard error {top.over_se:.2g}): at this cost exploring hardly matters.")


def left_out(best):
    """DTD-DP was not tried."""
    if "DTD-DP" not in set(best.policy):
        return checks.Caution("DTD-DP was not tried", "Lives are so long that its dynamic programs would take minutes; UCB and "
                              "DTD-UCB stand for it.")
