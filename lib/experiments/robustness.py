"""Policies tuned under the model and run where it is wrong: the published table "robustness" (chapter "When the model is wrong").

A Case is a belief, by which policies decide and on whose users alpha is tuned, and a Truth, from which users come.  Beside the
policies stand two that assume a drift of FORGET whether there is one or not, and the best that knows the truth, tuned on its own
users (`informed`).  All meet the same users; values have hindsight as a control variate, whose mean is known under every truth.
"""
from typing import NamedTuple

import numpy as np
import pandas as pd

from lib import policies, simulate
from lib.cache import digest
from lib.estimate import sample_mean
from lib.experiments import comparison, problems, specs
from lib.posterior import variances
from lib.problem import Estimate, Problem, as_count, as_made, checked, effective_horizon, noise_factors

INSTANCES = (("ratings", 3.8), ("simulated", .6), ("ratings", 3.5), ("documents", .34))
SIZES = {"tuning": 1024, "users": 6144, "sequences": 1000}
SMALLER = {"simulated": {"tuning": 256, "users": 1536, "sequences": 40},     # a hundred features
           "documents": {"tuning": 512, "users": 3072, "sequences": 200}}    # 25,093 items
FORGET = .05                # share of the variance that forgetful policies take to be drawn anew between two arrivals
MODEL, BEST, AGING = "as the model says", "Knows the truth", ", forgetting"
KNOWN = "UCB", "DTD-UCB", "DTD-DP", "Knowledge gradient"      # families among which the informed policy is chosen
FEW = 1000                  # items above which policies with a table for each item are left out
TUNING, EVALUATION = 1, 2   # seeds are (seed, purpose)


class Case(NamedTuple):
    """One way in which a model is wrong."""

    name: str
    belief: Problem
    truth: simulate.Truth


def cases(model):
    """The ways in which a model is wrong here, the first of them not at all.

    Returns
    -------
    list of Case
        Those about the law of the noise are left out where every item has the same number of features.

    Examples
    --------
    >>> [case.name for case in cases(problems.from_knobs(problems.Knobs()))][:3]
    ['as the model says', 'drift of 2 %', 'drift of 10 %']
    """
    model = checked(model)
    sd = model.probs @ np.sqrt(variances(model.items, model.Sigma))
    is_so, flat = simulate.make_truth(model), problems.even_noise(model)
    found = [Case(MODEL, model, is_so), Case("drift of 2 %", model, is_so._replace(drift=.02)),
             Case("drift of 10 %", model, is_so._replace(drift=.1)),
             Case("tastes with t(5) tails", model, is_so._replace(tail=5.0)),
             Case("noise with t(3) tails", model, is_so._replace(noise_tail=3.0)),
             Case("two kinds of users", model, is_so._replace(split=.9)),
             Case("users have a level", model, simulate.make_truth(problems.with_level(model, .5 * sd))),
             Case("noise variance 4 times", model, simulate.make_truth(problems.wrong(model, noise=2.0))),
             Case("noise variance a quarter", model, simulate.make_truth(problems.wrong(model, noise=.5))),
             Case("users rate what they like", problems.self_selected(model, .5), is_so),
             Case("users rate what they dislike", problems.self_selected(model, -.5), is_so)]
    if np.ptp(noise_factors(model)) > 0:
        found += [Case("noise is constant", model, simulate.make_truth(flat)), Case("noise grows", flat, is_so)]
    return found


def _entries(belief):
    """The Candidates of a believer."""
    entries = comparison.families(belief, (*KNOWN, "Knowledge gradient (1)"))
    entries += [comparison.Candidate("DTD-DP, noise of the model", lambda alpha: policies.dtd_dp(alpha, "model"), entries[2].alphas),
                comparison.Candidate("Bayes-UCB", policies.bayes_ucb, tuple(np.geomspace(.05, .8, 5)))]
    if len(belief.items) <= FEW:
        entries += [comparison.Candidate("Hard clusters", policies.clusters, (1.0,)),
                    comparison.Candidate("Information-directed", policies.information_directed, tuple(np.geomspace(.25, 4, 5)))]
    return entries


def field(belief, tuning, seed=0):
    """{name: Policy} of the policies that a believer has, tuned on users of the belief.

    Parameters
    ----------
    belief : Problem
    tuning : int
        Number of users.
    seed : int or sequence of int
    """
    entries = _entries(checked(belief))
    rules = comparison.tune(belief, entries, tuning, seed=seed)
    return ({"Exploitation": policies.exploit(), "Thompson sampling": policies.thompson()} |
            {entry.name: rule for entry, rule in zip(entries, rules)})


def kept(belief, rows):
    """The policies of a believer that rows of the published table name: as `field` and as `forgetful` give them."""
    makers = {"Exploitation": lambda _: policies.exploit(), "Thompson sampling": lambda _: policies.thompson()}
    makers |= {entry.name: entry.rule for entry in _entries(checked(belief))}
    named = list(zip(rows.policy, rows.alpha))
    return ({name: makers[name](alpha) for name, alpha in named if name in makers},
            {name: makers[name.removesuffix(AGING)](alpha) for name, alpha in named if name.endswith(AGING)})


def informed(truth, tuning, seed=0):
    """The best policy of those that know a truth, picked among the families KNOWN on users of its own.

    Parameters
    ----------
    truth : Truth
    tuning : int
        Number of users.
    seed : int or sequence of int

    Returns
    -------
    Policy
        For `simulate.play_informed`.
    """
    problem = as_made("truth", truth, simulate.Truth, "lib.simulate.make_truth").problem
    rules = [policies.exploit(), *_tried(problem, KNOWN)]
    if truth[1:] == simulate.Truth(problem)[1:]:      # a problem as any other: charges tell its policies apart sooner
        return rules[comparison.leader(problem, rules, tuning, seed=seed)]
    return _leader(truth, rules, tuning, seed)


def forgetful(belief, tuning, seed=0):
    """{name: Policy} of those that assume a drift of FORGET, tuned on users who drift so: for `simulate.play_informed`."""
    truth = simulate.make_truth(belief, FORGET)
    return {name + AGING: _leader(truth, _tried(belief, [name]), tuning, seed) for name in ("UCB", "Knowledge gradient")}


def _tried(problem, names):
    """The policies of some families with every alpha that experiments try."""
    return [entry.rule(alpha) for entry in comparison.families(problem, names) for alpha in entry.alphas]


def _leader(truth, rules, tuning, seed):
    """The rule that earns most of users of a truth, which it knows."""
    stream = simulate.meet(truth, tuning, effective_horizon(truth.problem.gamma), comparison._apart(seed, TUNING)).stream
    return rules[int(simulate.play_informed(truth, rules, stream)[0].mean(axis=1).argmax())]


def rewards(case, rules, best=None, users=1024, seed=0):
    """What every policy earns from the same users of a case's truth, less a multiple of a control of mean zero.

    Parameters
    ----------
    case : Case
    rules : pair of dict of str: Policy
        What `field` and `forgetful` give for the belief.
    best : Policy, optional
        What `informed` gives for the truth.
    users : int
    seed : int or sequence of int

    Returns
    -------
    {name: ndarray (users,)}
        Those of `rules` and, where `best` is given, BEST.
    """
    problem, users = as_made("case", case, Case, "lib.experiments.robustness.cases").truth.problem, as_count("users", users, 3)
    (plain, aging), horizon = rules, effective_horizon(problem.gamma)
    met = simulate.meet(case.truth, users, horizon, comparison._apart(seed, EVALUATION))
    earned = dict(zip(plain, simulate.play(case.belief, plain.values(), met.stream)[0]))
    if aging:
        earned |= zip(aging, simulate.play_informed(simulate.make_truth(case.belief, FORGET), aging.values(), met.stream)[0])
    if best is not None:
        earned[BEST] = simulate.play_informed(case.truth, [best], met.stream)[0][0]
    return sharpened(case.truth, met, earned)


def sharpened(truth, met, earned):
    """{name: ndarray (users,)} of rewards less a multiple of what hindsight earned beyond its mean, which a truth tells.

    Parameters
    ----------
    truth : Truth
    met : simulate.Met
        What its users met.
    earned : {name: ndarray (users,)}
        Their rewards.
    """
    problem, horizon = truth.problem, met.worth.shape[1]
    control = np.maximum(met.worth - problem.cost, 0) @ problem.gamma ** np.arange(1, horizon + 1)
    control -= (1 - problem.gamma**horizon) * simulate.hindsight_of(truth)
    about = control - control.mean()
    return {name: column - (about @ column) / (about @ about) * control for name, column in earned.items()}


def bounds(truth, sequences, seed=0):
    """{column: number} of the bounds under a truth: the first forward exact where items are few, else missing."""
    full = simulate.full_observation_of(truth, sequences, seed)
    few = len(truth.problem.items) <= FEW
    first = simulate.full_first_of(truth, sequences, seed) if few else Estimate(np.nan, np.nan)
    return {"hindsight": simulate.hindsight_of(truth), "full_observation": full.mean, "full_observation_se": full.se,
            "first_exact": first.mean, "first_exact_se": first.se}


def measured(case, rules, best, users, seed=0):
    """A DataFrame of one case, a row each policy; arguments as `rewards`.

    Returns
    -------
    DataFrame
        truth, policy, alpha, users; `value` and `se`; `share` in per cent of the value of BEST and `share_se`, paired.
    """
    earned, known, rows = rewards(case, rules, best, users, seed), {**rules[0], **rules[1], BEST: best}, []
    for name, column in earned.items():
        value, share = sample_mean(column), comparison.share(100 * column, earned[BEST])
        rows.append({"truth": case.name, "policy": name,
                     "alpha": known[name].alpha if policies.is_tuned(known[name]) else np.nan, "users": users,
                     "value": value.mean, "se": value.se, "share": share.mean, "share_se": share.se})
    return pd.DataFrame(rows)


def instance(model, sizes, seed=2016):
    """Every policy under every truth of one model: rows of `measured` with the bounds beside them.

    Parameters
    ----------
    model : Problem
    sizes : dict
        With the keys of SIZES: users on whom everything is tuned, others, and item sequences for bounds.
    seed : int
    """
    rules, best, limits, found = {}, {}, {}, []
    for case in cases(model):
        believed, true = digest(*case.belief), digest(*case.truth.problem, *case.truth[1:])
        if believed not in rules:
            rules[believed] = field(case.belief, sizes["tuning"], seed), forgetful(case.belief, sizes["tuning"], seed)
        if true not in best:
            best[true] = informed(case.truth, sizes["tuning"], seed)
            limits[true] = bounds(case.truth, sizes["sequences"], seed)
        found.append(measured(case, rules[believed], best[true], sizes["users"], seed).assign(**limits[true]))
    return pd.concat(found, ignore_index=True)


def again(rows, names, users, seed=0):
    """Policies of the published table on other users: their fresh values beside the kept ones.

    Parameters
    ----------
    rows : DataFrame
        Of one instance.
    names : sequence of str
        Policies.
    users : int
    seed : int or sequence of int

    Returns
    -------
    DataFrame
        truth, policy, value and se as kept, `fresh` and `fresh_se`, and `z`, how far apart the two are in standard errors:
        the kept one, scaled to the fresh number of users, as a small sample without a rare event would underrate its own.
    """
    rows = rows[rows.policy.isin(names)]
    model, found = specs.build(specs.SPECS[rows.instance.iloc[0]])[0]._replace(cost=float(rows.cost.iloc[0])), []
    for case in cases(model):
        mine = rows[rows.truth == case.name]
        earned = rewards(case, kept(case.belief, mine), users=users, seed=seed)
        fresh = sample_mean([earned[name] for name in mine.policy])
        found.append(mine.assign(fresh=fresh.mean, fresh_se=fresh.se))
    found = pd.concat(found, ignore_index=True)
    error, apart = found.se * np.sqrt(1 + found.users / users), found.fresh - found.value
    z = np.where(error > 0, apart / error.where(error > 0, 1), np.where(apart == 0, 0, np.inf))
    return found.assign(z=z)[["truth", "policy", "alpha", "value", "se", "fresh", "fresh_se", "z"]]


def table(instances=INSTANCES, sizes=None, seed=2016):
    """`instance` for every pair of a key of SPECS and a cost, which stand before its rows; sizes as SIZES and SMALLER."""
    found = []
    for name, cost in instances:
        given = {**SIZES, **SMALLER.get(name, {}), **(sizes or {})}
        rows = instance(specs.build(specs.SPECS[name])[0]._replace(cost=cost), given, seed)
        rows.insert(0, "instance", name)
        rows.insert(1, "cost", cost)
        found.append(rows)
    return pd.concat(found, ignore_index=True)
