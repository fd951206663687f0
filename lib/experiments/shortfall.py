"""How far policies stay below the bounds, on the same lives: what chance does to both drops out.

Nothing changes before the first forward.  A policy whose first forwards are the items F earns V = sum_F a_x V_x with
a_x = gamma p_x / (1 - gamma + gamma p(F)); the bound with one forward exact is w = sum a'_x B_x, over the set that makes it
largest (`lib.bound.duality`).  So

    w - V = sum (a'_x - a_x) B_x + sum_F a_x E [charges of the policy - least charges],

both charged along the same items and feedback after a first forward of x.  Where F is the bound's own set, as it mostly is, the first
sum is 0.  With two forwards exact B_x is an average, over the feedback on x, of w from the belief that it leaves, and
B_x - V_x of w - V from there on.

Where items are too many for a look at each, both sums go over the same stratified sample of them, as in `bound.dual_first`.

Lives end when gamma^arrivals <= REST after the first forward; bound and policy are charged for as many.  `bound.dual_first` itself cuts
some sums elsewhere, by less.
"""
from typing import NamedTuple

import numpy as np

from lib import simulate, streams
from lib.bound import catalogue, duality, penalty
from lib.bound.catalogue import crossing, strata_var
from lib.bound.duality import EVERY, LEAF
from lib.dp import first_forward
from lib.estimate import sample_mean
from lib.policies.rules import PHASED, QUANTILE, THOMPSON, as_policies, entry
from lib.problem import Estimate, as_count, as_made, checked, effective_horizon

REST = 1e-4                 # discount at which a life ends


class Effort(NamedTuple):
    """How much work goes into a shortfall."""

    paths: int = 1000       # lives after a first forward, some in all, shared out by probability
    inner: int = 4          # as `bound.least_charges` takes it,
    effort: int = 2000      # and this
    outer: int = 0          # feedbacks on each first forward, even, with paths / outer lives after each; 0: one forward exact, not two
    items: int = 1024       # sampled first forwards, even, where the problem has more than `bound.duality.EVERY` items


def stationary(policy):
    """Whether what a policy does depends on its belief and the item alone: not on chance, the time, nor a phase."""
    return entry(policy).rule not in (THOMPSON, QUANTILE, PHASED)


def forwarded_first(problem, rules, items=None):
    """(P, m) whether each rule forwards each of `items` (m,), by default all, before it has learned anything."""
    items = np.arange(len(problem.items))[:, None] if items is None else items[:, None]
    none = np.zeros(items.shape)
    return simulate.play(problem, rules, simulate.Stream(items, none, none, none))[1][:, :, 0]


def lives(problem, rules, first, seed):
    """What the rules do in lives that begin with the items `first` (R,): items, feedback and decisions, as `bound.gap` takes them."""
    rng = streams.generator(seed, streams.Purpose.PATHS)
    seen, items, feedback = penalty.sample_paths(problem, first, effective_horizon(problem.gamma, REST), rng)
    items, feedback = np.column_stack([first, items]), np.column_stack([seen, feedback])
    stream = simulate.Stream(items, feedback, np.zeros(feedback.shape), rng.standard_normal(feedback.shape))
    return simulate.Episodes(None, items, feedback, stream.thompson, simulate.play(problem, rules, stream)[1], None)


def below_the_dual(problem, rules, some, share, effort, seed):
    """Of each of the items `some` (m,), B_x - V_x with the dual after it: means and squared errors, (P, m) each.

    `share` (m,), which sums to 1, is that of the lives which begin with each.
    """
    counts = np.maximum(np.round(effort.paths * share), LEAF).astype(int)
    met = lives(problem, rules, np.repeat(some, counts), seed)
    lost = penalty.gap_after(problem, met, effort.inner, effort.effort, seed)
    parts = np.split(lost, np.cumsum(counts)[:-1], axis=1)
    return np.array([(part.mean(axis=1), part.var(axis=1, ddof=1) / part.shape[1]) for part in parts]).transpose(1, 2, 0)


def below_the_second(problem, rules, some, effort, seed):
    """The same with one more forward exact after it: over strata of the feedback on it, neighbours giving the error."""
    found = np.empty((2, len(rules), len(some)))
    each = effort._replace(paths=max(effort.paths // effort.outer, 2), outer=0)
    for n, x in enumerate(some):
        left = duality.after_strata(problem, x, effort.outer, streams.generator(seed, streams.Purpose.PATHS, int(x)))
        lost = np.array([shortfall(rest, rules, each, (*seed, int(x), y)).mean for y, rest in enumerate(left)])
        found[:, :, n] = lost.mean(axis=0), strata_var(lost)
    return found


def shortfall(problem, rules, effort=Effort(), seed=0):
    """What the bound with one or two forwards exact, and the dual after them, leaves above each policy.

    Parameters
    ----------
    problem : Problem
    rules : sequence of Policy
        All of them `stationary`.
    effort : Effort
    seed : int or sequence of int

    Returns
    -------
    Estimate of two (P,) arrays
        Reward units with the leading gamma; its error is on the upper side on average, as the bound's is.

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong; for two exact forwards among more than `bound.duality.EVERY` items.

    Examples
    --------
    >>> from lib import policies
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1.0]], [1.0], [-.1], [[1.0]], 1.0, 0.0, .5)
    >>> lost = shortfall(problem, [policies.exploit(), policies.knowledge_gradient()], Effort(200))
    >>> bool(lost.mean[0] > lost.mean[1] >= 0)
    True
    """
    return stages(problem, rules, effort, seed)[-1]


def stages(problem, rules, effort=Effort(), seed=0):
    """`shortfall` with one forward exact and, where `effort` has an outer, with two: a list of Estimate; arguments as there."""
    problem, rules = checked(problem), as_policies("rules", rules)
    for rule in rules:
        if not stationary(rule):
            raise ValueError(f"rules holds {rule!r}: what it does depends on chance, the time or a phase, not on the belief alone")
    as_made("effort", effort, Effort, "lib.experiments.shortfall.Effort")
    as_count("paths", effort.paths, 2)
    duality.as_even("outer", effort.outer, 0)
    seed = streams.numbers(seed)
    if len(problem.items) <= EVERY:
        return _of_every(problem, rules, effort, seed)
    if effort.outer:
        raise ValueError(f"problem has {len(problem.items)} items: two forwards are exact for at most {EVERY}, not with outer {effort.outer}")
    return _of_sampled(problem, rules, effort, seed)


def _of_every(problem, rules, effort, seed):
    """The stages where each item is looked at as a first forward."""
    firsts = forwarded_first(problem, rules) & (problem.probs > 0)
    some = np.flatnonzero(firsts.any(axis=0))
    sample = duality.first_forwards(problem, effort.paths, effort.inner, effort.effort, (*seed, 0), effort.paths, some)
    lost = np.zeros((2, 2, *firsts.shape))                  # exact first, then both
    if len(some):
        share = problem.probs[some] / problem.probs[some].sum()
        lost[0][:, :, some] = below_the_dual(problem, rules, some, share, effort, (*seed, 1))
        if effort.outer:
            lost[1][:, :, some] = below_the_second(problem, rules, some, effort, (*seed, 2))
    one, two = np.where(firsts, lost, 0.0)
    found = [[_below(problem, sample, firsts[p], one[:, p]) for p in range(len(rules))]]
    if effort.outer:
        found.append([_below(problem, sample, firsts[p], two[:, p], one[:, p]) for p in range(len(rules))])
    return [Estimate(*np.array(part).T) for part in found]


def _below(problem, sample, first, exact, dual=None):
    """(mean, se) of w - V for a policy of these first forwards, of which B_x - V_x is `exact`, means and squared errors.

    Where that is with another forward made exact, and `dual` what it is without, B_x of the sample falls by their difference.
    """
    own = duality.slope_of(first, problem.probs, problem.gamma)
    (lost, var), (before, before_var) = exact, (exact[0], 0.0) if dual is None else dual
    values = sample.known.mean(axis=0) - sample.own - (before - lost)
    more = first_forward(values, problem.probs, problem.gamma)[1] - own
    known = sample_mean(sample.known @ more).se
    both = own if dual is None else own + more              # what is lost counts in the bound as well
    return more @ values + own @ lost, np.sqrt(known**2 + more**2 @ (sample.var + before_var) + both**2 @ var)


def _of_sampled(problem, rules, effort, seed):
    """The one stage from a stratified sample of items: bound and policies on the same, neighbours giving the error."""
    m = duality.as_even("items", effort.items, 4)
    sampled = catalogue.sample(problem, m, effort.paths, (*seed, 0))
    chosen = sampled[0]
    firsts = forwarded_first(problem, rules, chosen)
    first = duality.charged(problem, sampled, effort.paths, effort.inner, effort.effort, (*seed, 0), firsts.any(axis=0))
    values, some = first.values + first.full.mean, np.flatnonzero(firsts.any(axis=0))
    lost = np.zeros(firsts.shape)
    if len(some):
        met = below_the_dual(problem, rules, chosen[some], np.full(len(some), 1 / len(some)), effort, (*seed, 1))[0]
        lost[:, some] = np.where(firsts[:, some], met, 0.0)
    even = np.full(m, 1 / m)
    best = duality.slope_of(values > crossing(values, problem.gamma), even, problem.gamma)
    w, found = best @ values, []
    for forwards, less in zip(firsts, lost):
        own = duality.slope_of(forwards, even, problem.gamma)
        v = own @ (values - less)
        adds = m * (best * (values - w) - own * (values - less - v))        # what each item adds to w - V
        found.append((w - v, np.hypot(np.sqrt(strata_var(adds)), (best - own).sum() * first.full.se)))
    return [Estimate(*np.array(found).T)]
