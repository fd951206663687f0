"""How far policies stay below the bounds, on the same lives: what chance does to both drops out.

Nothing changes before the first forward.  A policy whose first forwards are the items F earns V = sum_F a_x V_x with
a_x = gamma p_x / (1 - gamma + gamma p(F)); the bound with one forward exact is w = sum a'_x B_x, over the set that makes it
largest (`lib.bound.duality`).  So

    w - V = sum (a'_x - a_x) B_x + sum_F a_x E [charges of the policy - least charges],

both charged along the same items and feedback after a first forward of x.  Where F is the bound's own set, as it mostly is, the first
sum is 0.  With two forwards exact B_x is an average, over the feedback on x, of w from the belief that it leaves, and
B_x - V_x of w - V from there on.

Lives end when gamma^arrivals <= REST after the first forward; bound and policy are charged for as many.  `bound.dual_first` itself cuts
some sums elsewhere, by less.
"""
from typing import NamedTuple

import numpy as np

from lib import simulate, streams
from lib.bound import duality, penalty
from lib.bound.catalogue import strata_var
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


def stationary(policy):
    """Whether what a policy does depends on its belief and the item alone: not on chance, the time, nor a phase."""
    return entry(policy).rule not in (THOMPSON, QUANTILE, PHASED)


def forwarded_first(problem, rules):
    """(P, n) whether each rule forwards each item before it has learned anything."""
    items = np.arange(len(problem.items))[:, None]
    none = np.zeros(items.shape)
    return simulate.play(problem, rules, simulate.Stream(items, none, none, none))[1][:, :, 0]


def lives(problem, rules, first, seed):
    """What the rules do in lives that begin with the items `first` (R,): items, feedback and decisions, as `bound.gap` takes them."""
    rng = streams.generator(seed, streams.Purpose.PATHS)
    seen, items, feedback = penalty.sample_paths(problem, first, effective_horizon(problem.gamma, REST), rng)
    items, feedback = np.column_stack([first, items]), np.column_stack([seen, feedback])
    stream = simulate.Stream(items, feedback, np.zeros(feedback.shape), rng.standard_normal(feedback.shape))
    return simulate.Episodes(None, items, feedback, stream.thompson, simulate.play(problem, rules, stream)[1], None)


def below_the_dual(problem, rules, some, effort, seed):
    """Of each of the items `some`, B_x - V_x with the dual after it: means and squared errors, (P, n) each, NaN elsewhere."""
    share = problem.probs[some] / problem.probs[some].sum()
    counts = np.maximum(np.round(effort.paths * share), LEAF).astype(int)
    met = lives(problem, rules, np.repeat(some, counts), seed)
    lost = np.split(penalty.gap_after(problem, met, effort.inner, effort.effort, seed), np.cumsum(counts)[:-1], axis=1)
    mean, var = np.full((2, len(rules), len(problem.items)), np.nan)
    for x, part in zip(some, lost):
        mean[:, x], var[:, x] = part.mean(axis=1), part.var(axis=1, ddof=1) / part.shape[1]
    return mean, var


def below_the_second(problem, rules, some, effort, seed):
    """The same with one more forward exact after it: over strata of the feedback on it, neighbours giving the error."""
    mean, var = np.full((2, len(rules), len(problem.items)), np.nan)
    each = effort._replace(paths=max(effort.paths // effort.outer, 2), outer=0)
    for x in some:
        left = duality.after_strata(problem, x, effort.outer, streams.generator(seed, streams.Purpose.PATHS, int(x)))
        lost = np.array([shortfall(rest, rules, each, (*seed, int(x), n)).mean for n, rest in enumerate(left)])
        mean[:, x], var[:, x] = lost.mean(axis=0), strata_var(lost)
    return mean, var


def shortfall(problem, rules, effort=Effort(), seed=0):
    """What the bound with one or two forwards exact, and the dual after them, leaves above each policy.

    Parameters
    ----------
    problem : Problem
        With at most `bound.duality.EVERY` items.
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
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> from lib import policies
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1.0]], [1.0], [-.1], [[1.0]], 1.0, 0.0, .5)
    >>> lost = shortfall(problem, [policies.exploit(), policies.knowledge_gradient()], Effort(200))
    >>> bool(lost.mean[0] > lost.mean[1] >= 0)
    True
    """
    problem, rules = checked(problem), as_policies("rules", rules)
    for rule in rules:
        if not stationary(rule):
            raise ValueError(f"rules holds {rule!r}: what it does depends on chance, the time or a phase, not on the belief alone")
    as_made("effort", effort, Effort, "lib.experiments.shortfall.Effort")
    as_count("paths", effort.paths, 2)
    if len(problem.items) > EVERY:
        raise ValueError(f"problem has {len(problem.items)} items: a first forward of each is looked at for at most {EVERY}")
    if as_count("outer", effort.outer, 0) % 2:
        raise ValueError(f"outer is {effort.outer}: it must be even")
    seed = streams.numbers(seed)
    firsts = forwarded_first(problem, rules) & (problem.probs > 0)
    some = np.flatnonzero(firsts.any(axis=0))
    sample = duality.first_forwards(problem, effort.paths, effort.inner, effort.effort, (*seed, 0), effort.paths, some)
    lost = [below_the_dual(problem, rules, some, effort, (*seed, 1)) if len(some) else np.full((2, *firsts.shape), np.nan)]
    if effort.outer and len(some):
        lost.insert(0, below_the_second(problem, rules, some, effort, (*seed, 2)))
    found = [_below(problem, sample, firsts[p], *[(mean[p], var[p]) for mean, var in lost]) for p in range(len(rules))]
    return Estimate(*np.array(found).T)


def _below(problem, sample, first, exact, dual=None):
    """(mean, se) of w - V for a policy of these first forwards, of which B_x - V_x is `exact`, means and squared errors.

    Where that is with another forward made exact, and `dual` what it is without, B_x of the sample falls by their difference.
    """
    own = duality.slope_of(first, problem.probs, problem.gamma)
    lost, var = (np.where(first, part, 0.0) for part in exact)
    before, before_var = (lost, 0.0) if dual is None else (np.where(first, part, 0.0) for part in dual)
    values = sample.known.mean(axis=0) - sample.own - (before - lost)
    more = first_forward(values, problem.probs, problem.gamma)[1] - own
    known = sample_mean(sample.known @ more).se
    both = own if dual is None else own + more              # what is lost counts in the bound as well
    return more @ values + own @ lost, np.sqrt(known**2 + more**2 @ (sample.var + before_var) + both**2 @ var)
