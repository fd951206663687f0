"""Policies side by side: tuned on some users, measured on others, on common random numbers and with control variates.

Two measures.  `evaluate` estimates values: rewards, sharpened by a control variate, a variable of known mean zero.
`gains` estimates differences: what a policy earns beyond exploitation, as the difference of what their decisions are
charged against full observation (`lib.bound.penalty`).  The identity V^pi = FO - E charges makes that unbiased, with a
fraction of the variance of the rewards' difference.

By default users meet as many items as `lib.problem.effective_horizon` has for the discount factor: what is left is below
a thousandth of the hindsight bound.
"""
from functools import partial
from typing import NamedTuple

import numpy as np

from lib import bound, policies, simulate, streams
from lib.estimate import controlled_rows, half_width, sample_mean
from lib.policies.rules import as_policies
from lib.posterior import variances
from lib.problem import Estimate, as_choice, as_count, as_floats, as_made, as_numbers, checked, effective_horizon

TUNING, EVALUATION = 1, 2            # seeds are (seed, purpose), `_apart`
LONG = 300                           # items beyond which full observation costs too much as a control variate


class Candidate(NamedTuple):
    """Policies that differ in alpha alone."""

    name: str
    rule: object            # a function from alpha to a Policy
    alphas: tuple           # the values it is tuned over; one value: untuned


class Values(NamedTuple):
    """What P policies earn, measured on the same users."""

    value: Estimate         # of two (P,) arrays: discounted reward
    lead: Estimate          # of two (P,) arrays: value less that of the reference policy, paired
    episodes: object        # the simulate.Episodes that they come from


def families(problem, names):
    """Families of the policies `names`, of the paper's and the knowledge gradient, with the book's grids of alpha.

    UCB has 0 and values just above the standard deviations by which an item's prior mean falls short of the cost, below which it is
    never forwarded; DTD-UCB the same divided by the largest of its M, so that both treat the item with the most to say alike.
    """
    problem = checked(problem)
    grid = np.append(0, short_of(problem) + np.array([.02, .05, .1, .2, .4, .8]))
    rules = {"UCB": (policies.ucb, grid), "DTD-DP": (policies.dtd_dp, np.geomspace(.5, 2.5, 5)),
             "Knowledge gradient": (policies.knowledge_gradient, np.geomspace(.5, 3, 5)),
             "DTD-DP (1)": (policies.dtd_dp, [1.0]), "Knowledge gradient (1)": (policies.knowledge_gradient, [1.0])}
    for name, law in (("DTD-UCB", "euclid"), ("DTD-UCB, prior", "prior")):
        most = policies.mean_projection(problem, law).max()
        rules[name] = partial(policies.dtd_ucb, law=law), grid / (most if most > 0 else 1)
    return [Candidate(name, rules[name][0], tuple(rules[name][1])) for name in _among(names, rules)]


def short_of(problem):
    """By how many prior standard deviations an item's mean falls short of the cost, the median over those that do, 0 for none.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> short_of(make_problem([[1, 0], [0, 1]], [.5, .5], [3, 1], [[1, 0], [0, 4]], 1, 2, .9))
    0.5
    """
    sd = np.sqrt(variances(problem.items, problem.Sigma))
    low = problem.cost - problem.items @ problem.mu
    some = np.flatnonzero((low > 0) & (sd > 0) & (problem.probs > 0))
    if not len(some):
        return 0.0
    depth, weight = low[some] / sd[some], problem.probs[some]
    order = np.argsort(depth, kind="stable")
    middle = order[np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)]
    return float(np.round(depth[middle], 12))


def _among(names, known):
    """`names` as a list of texts that are `known`, or ValueError."""
    if not isinstance(names, (list, tuple)):
        raise ValueError(f"names is {names!r}: it must be a list of names")
    return [as_choice("names", name, tuple(known)) for name in names]


def _entries(entries):
    """`entries` as a list of at least one Candidate with values of alpha, or ValueError."""
    if not isinstance(entries, (list, tuple)) or not entries:
        raise ValueError(f"entries is {entries!r}: it must be a list of at least one Candidate")
    for entry in entries:
        as_made("entries", entry, Candidate, "lib.experiments.Candidate")
        as_floats("alphas", entry.alphas, 1)
        if not callable(entry.rule):
            raise ValueError(f"rule of {entry.name} is {entry.rule!r}: it must make a Policy from alpha")
    return list(entries)


def _horizon(problem, horizon):
    """The number of items of a study: `horizon` where it is given, else `effective_horizon`."""
    return effective_horizon(problem.gamma) if horizon is None else as_count("horizon", horizon)


def control(problem, seen, seed=0):
    """A variable of known mean zero for each policy and user of some Episodes, that goes along with the rewards.

    Up to LONG items it is the identity of `lib.bound.control`.  Its price grows with the square of their number.  For
    longer lives it is what hindsight earns of the items that came, less its mean: most of what makes users differ then,
    and the same for all policies.

    Parameters
    ----------
    problem : Problem
    seen : Episodes
        With theta drawn from the prior.
    seed : int or sequence of int

    Returns
    -------
    ndarray (P, R)
    """
    horizon = seen.items.shape[1]
    if horizon <= LONG:
        return bound.control(problem, seen, 2, seed)
    worth = np.maximum(seen.theta @ problem.items.T - problem.cost, 0)
    earned = np.take_along_axis(worth, seen.items, axis=1) @ problem.gamma ** np.arange(1, horizon + 1)
    centred = earned - (1 - problem.gamma**horizon) * bound.hindsight(problem)
    return np.broadcast_to(centred, seen.rewards.shape)


def evaluate(problem, rules, users, horizon=None, seed=0, reference=0):
    """What rules earn on users drawn from the prior, sharpened by a control variate.

    Parameters
    ----------
    problem : Problem
    rules : sequence of Policy
    users : int
        At least 3.
    horizon : int, optional
        Items a user meets; by default `effective_horizon`.
    seed : int or sequence of int
    reference : int
        The rule beyond which `lead` is counted.

    Returns
    -------
    Values

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1]], [1], [1], [[0]], 1, .5, .5)
    >>> evaluate(problem, [policies.exploit()], 4, horizon=3).value.mean
    array([0.4375])
    """
    problem, rules, users = checked(problem), as_policies("rules", rules), as_count("users", users, 3)
    reference, horizon = as_count("reference", reference, 0, len(rules) - 1), _horizon(problem, horizon)
    seen = simulate.episodes(problem, rules, users, horizon, seed)
    zero = control(problem, seen, seed)
    return Values(controlled_rows(seen.rewards, zero), controlled_rows(seen.rewards, zero, reference), seen)


def charges(problem, rules, replications, horizon=None, seed=0, truth=None):
    """What each rule loses against full observation, one column a user, up to a constant.

    The rules decide by what they believe.  Charges are counted in the beliefs that one would hold knowing the
    truth: their identity is about decisions, on whatever grounds those were taken.

    Parameters
    ----------
    problem : Problem
        What the rules believe.
    rules : sequence of Policy
    replications : int
    horizon : int, optional
        Items a user meets; by default `effective_horizon`.
    seed : int or sequence of int
    truth : Problem, optional
        What is so, as `simulate.replicate` takes it.

    Returns
    -------
    ndarray (P, R)
        Paired between rules, and between calls with the same seed and truth.  Only differences mean something:
        full observation itself, the same for all, is left out.
    """
    problem, rules = checked(problem), as_policies("rules", rules)
    truth = problem if truth is None else checked(truth, "truth")
    horizon = _horizon(problem, horizon)
    run = simulate.episodes(problem, rules, replications, horizon, seed, truth=truth)
    return bound.control(truth, run, inner=1, seed=seed) - run.rewards


def gains(problem, rules, replications, horizon=None, seed=0):
    """What each rule earns beyond exploitation, one column a user; arguments as `charges`.

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
    charged = charges(problem, [policies.exploit(), *as_policies("rules", rules)], replications, horizon, seed)
    return charged[0] - charged[1:]


def _apart(seed, purpose):
    """The seed of one purpose; `seed` is an integer or a sequence of them, or ValueError."""
    streams.generator(seed)
    return (*streams.numbers(seed), purpose)


def tune(problem, entries, replications, horizon=None, seed=0):
    """For each Candidate the rule with the best mean gain on the tuning users; those with one alpha are not simulated."""
    problem, entries, replications = checked(problem), _entries(entries), as_count("replications", replications)
    streams.generator(seed)
    _horizon(problem, horizon)
    tried = [(entry.name, entry.rule(alpha)) for entry in entries if len(entry.alphas) > 1 for alpha in entry.alphas]
    rules = [rule for _, rule in tried]
    means = gains(problem, rules, replications, horizon, _apart(seed, TUNING)).mean(axis=1) if rules else []
    best = {}
    for (name, rule), mean in zip(tried, means):
        if name not in best or mean > best[name][0]:
            best[name] = mean, rule
    return [best[entry.name][1] if entry.name in best else entry.rule(entry.alphas[0]) for entry in entries]


def leader(problem, rules, replications, horizon=None, seed=0):
    """Position of the rule with the best mean gain on the tuning users.

    Its gain on other users is then an unbiased estimate: the largest of several gains, picked on the users on whom
    they are measured, would be too large on average.
    """
    return int(gains(problem, rules, replications, horizon, _apart(seed, TUNING)).mean(axis=1).argmax())


def tune_and_measure(problem, costs, entries, tuning, users, horizon=None, seed=0):
    """Tune every Candidate at every cost, and measure its gain on other users, the same at every cost.

    Parameters
    ----------
    problem : Problem
    costs : sequence of float
    entries : sequence of Candidate
        With different names.
    tuning, users : int
        Numbers of users to tune on, and of others to measure on.
    horizon, seed
        As `charges` takes them.

    Returns
    -------
    chosen : list of list of Policy
        For each cost, the rule of each entry.
    gains : ndarray (costs, entries, users)
    """
    problem, costs, entries = checked(problem), as_floats("costs", costs, 1), _entries(entries)
    tuning, users = as_count("tuning", tuning), as_count("users", users)
    if len({entry.name for entry in entries}) < len(entries):
        raise ValueError(f"entries share a name: {sorted(entry.name for entry in entries)}")
    chosen, measured = [], []
    for cost in costs:
        here = problem._replace(cost=float(cost))
        chosen.append(tune(here, entries, tuning, horizon, seed))
        measured.append(gains(here, chosen[-1], users, horizon, _apart(seed, EVALUATION)))
    return chosen, np.array(measured)


def share(columns, reference):
    """Mean of columns (..., R) over that of reference (R,), an Estimate of the ratio with its paired error.

    Examples
    --------
    >>> share(np.array([2., 4.]), np.array([1., 2.]))
    Estimate(mean=np.float64(2.0), se=np.float64(0.0))
    """
    columns, reference = as_numbers("columns", columns), as_floats("reference", reference, 1)
    if columns.shape[-1:] != reference.shape:
        raise ValueError(f"columns must have {len(reference)} values in a row, as reference has, got shape {columns.shape}")
    scale = reference.mean()
    if scale == 0:
        raise ValueError("reference has the mean 0: there is nothing to take a share of")
    ratio = columns.mean(axis=-1) / scale
    return Estimate(ratio, sample_mean(columns - np.multiply.outer(ratio, reference)).se / abs(scale))


def winner(columns, names):
    """The name that leads every other by more than half a 95 % interval, paired; "" where there is none.

    Parameters
    ----------
    columns : ndarray (P, R)
        Gains, one column a user.
    names : sequence of str (P,)

    Examples
    --------
    >>> winner(np.array([[1., 2., 3.], [0., 1., 2.1], [0., 0., 0.]]), ["a", "b", "c"])
    ''
    >>> winner(np.array([[1., 2., 3.], [0., 1., 2.1], [-1., 0., 1.]]), ["a", "b", "c"])
    'a'
    """
    columns = as_floats("columns", columns, 2)
    if not isinstance(names, (list, tuple)) or len(names) != len(columns):
        raise ValueError(f"names must be a list of {len(columns)}, one for each row of columns, got {names!r}")
    first = int(columns.mean(axis=1).argmax())
    lead = sample_mean(columns[first] - np.delete(columns, first, axis=0))
    return names[first] if (lead.mean > half_width(lead.se, columns.shape[1])).all() else ""
