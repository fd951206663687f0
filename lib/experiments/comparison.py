"""Policies side by side: what exploration earns beyond exploitation, tuned on some users and measured on others.

The gain of a policy over another is measured by what their decisions are charged against full observation
(`lib.bound.penalty`): the identity V^pi = FO - E charges makes the difference of charges, on common random numbers, an
unbiased estimate of the difference of values, with a fraction of the variance of the rewards' difference.
"""
from functools import partial
from typing import NamedTuple

import numpy as np

from lib import bound, policies, simulate
from lib.problem import Estimate

TUNING, EVALUATION = 1, 2            # seeds are (seed, purpose)


class Entry(NamedTuple):
    """A family of policies that takes part."""

    name: str
    rule: object            # a function from alpha to a Policy
    alphas: tuple           # the values it is tuned over; one value: untuned


def field(problem, names):
    """Entries of the policies `names`, of the paper's and the knowledge gradient, with the grids of the book's contests.

    UCB has 0 and values just above the cost, below which an item of prior mean 0 and standard deviation 1 is never
    forwarded; DTD-UCB the same divided by the largest of its M, so that both treat the item with the most to say alike.
    """
    grid = np.append(0, max(problem.cost, 0) + np.array([.02, .05, .1, .2, .4, .8]))
    rules = {"UCB": (policies.ucb, grid), "DTD-DP": (policies.dtd_dp, np.geomspace(.5, 2.5, 5)),
             "Knowledge gradient": (policies.knowledge_gradient, np.geomspace(.5, 3, 5)),
             "DTD-DP (1)": (policies.dtd_dp, [1.0]), "Knowledge gradient (1)": (policies.knowledge_gradient, [1.0])}
    for name, law in (("DTD-UCB", "euclid"), ("DTD-UCB, prior", "prior")):
        rules[name] = partial(policies.dtd_ucb, law=law), grid / policies.mean_projection(problem, law).max()
    return [Entry(name, rules[name][0], tuple(rules[name][1])) for name in names]


def charges(problem, rules, replications, horizon=60, seed=0, truth=None):
    """What each rule loses against full observation, one column a user, up to a constant.

    The rules decide by what they believe.  Charges are counted in the beliefs that one would hold knowing the
    truth: their identity is about decisions, on whatever grounds those were taken.

    Parameters
    ----------
    problem : Problem
        What the rules believe.
    rules : sequence of Policy
    replications, horizon : int
    seed : int or sequence of int
    truth : Problem, optional
        What is so, as `simulate.replicate` takes it.

    Returns
    -------
    ndarray (P, R)
        Paired between rules, and between calls with the same seed and truth.  Only differences mean something:
        full observation itself, the same for all, is left out.
    """
    truth = problem if truth is None else truth
    run = simulate.episodes(problem, rules, replications, horizon, seed, truth=truth)
    return bound.control(truth, run, inner=1, seed=seed) - run.rewards


def gains(problem, rules, replications, horizon=60, seed=0):
    """What each rule earns beyond exploitation, one column a user.

    Parameters
    ----------
    problem : Problem
    rules : sequence of Policy
    replications, horizon : int
    seed : int or sequence of int

    Returns
    -------
    ndarray (P, R)
        Its mean over users is the difference of values over `horizon` items; single columns mean nothing.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1]], [1], [1], [[0]], 1, .5, .5)
    >>> gains(problem, [policies.exploit()], 2, horizon=3)
    array([[0., 0.]])
    """
    charged = charges(problem, [policies.exploit(), *rules], replications, horizon, seed)
    return charged[0] - charged[1:]


def estimate_rows(columns):
    """Mean over the last axis and its standard error."""
    return Estimate(columns.mean(axis=-1), columns.std(axis=-1, ddof=1) / np.sqrt(columns.shape[-1]))


def tune(problem, entries, replications, horizon=60, seed=0):
    """For each entry the rule with the best mean gain on the tuning users; entries with one alpha are not simulated."""
    tried = [(entry, alpha) for entry in entries for alpha in entry.alphas if len(entry.alphas) > 1]
    rules = [entry.rule(alpha) for entry, alpha in tried]
    means = gains(problem, rules, replications, horizon, (seed, TUNING)).mean(axis=1) if rules else []
    best = {}
    for (entry, _), rule, mean in zip(tried, rules, means):
        if entry.name not in best or mean > best[entry.name][0]:
            best[entry.name] = mean, rule
    return [best[entry.name][1] if len(entry.alphas) > 1 else entry.rule(entry.alphas[0]) for entry in entries]


def play(problem, costs, entries, tuning, evaluation, horizon=60, seed=0):
    """Tune every entry at every cost, and measure its gain on other users, the same at every cost.

    Parameters
    ----------
    problem : Problem
    costs : sequence of float
    entries : sequence of Entry
        With different names.
    tuning, evaluation : int
        Numbers of users.

    Returns
    -------
    chosen : list of list of Policy
        For each cost, the rule of each entry.
    gains : ndarray (costs, entries, evaluation)
    """
    if len({entry.name for entry in entries}) < len(entries):
        raise ValueError(f"entries share a name: {sorted(entry.name for entry in entries)}")
    chosen, measured = [], []
    for cost in costs:
        here = problem._replace(cost=float(cost))
        chosen.append(tune(here, entries, tuning, horizon, seed))
        measured.append(gains(here, chosen[-1], evaluation, horizon, (seed, EVALUATION)))
    return chosen, np.array(measured)


def share(columns, reference):
    """Mean of columns (..., R) over that of reference (R,), an Estimate of the ratio with its paired error.

    Examples
    --------
    >>> share(np.array([2., 4.]), np.array([1., 2.]))
    Estimate(mean=np.float64(2.0), se=np.float64(0.0))
    """
    scale = reference.mean()
    ratio = columns.mean(axis=-1) / scale
    rest = columns - np.multiply.outer(ratio, reference)
    return Estimate(ratio, rest.std(axis=-1, ddof=1) / np.sqrt(len(reference)) / abs(scale))


def winner(columns, names):
    """The name whose mean lead over every other exceeds two standard errors, paired; "" where there is none.

    Parameters
    ----------
    columns : ndarray (P, R)
        Gains, one column a user.
    names : sequence of str (P,)

    Examples
    --------
    >>> winner(np.array([[1., 2., 3.], [0., 1., 2.1], [0., 0., 0.]]), ["a", "b", "c"])
    'a'
    >>> winner(np.array([[1., 2., 3.], [1., 2., 3.]]), ["a", "b"])
    ''
    """
    first = int(columns.mean(axis=1).argmax())
    lead = estimate_rows(columns[first] - np.delete(columns, first, axis=0))
    return names[first] if (lead.mean > 2 * lead.se).all() else ""
