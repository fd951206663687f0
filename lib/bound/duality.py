"""Upper bounds beyond the paper: the full-observation dual, and the first forward made exact.

Charges.  Full observation earns FO(s) = gamma E_x [ (x.mu - cost)^+ + E_y FO(s'_xy) ] from belief s.  A policy
that forwards x earns x.mu - cost and moves on to s'_xy; one that skips it earns nothing and stays in s.  So a
forward loses (x.mu - cost)^- against full observation, and a skip (x.mu - cost)^+ + VOI_x(s), with
VOI_x(s) = E_y FO(s'_xy) - FO(s) >= 0.  Added up over a life,

    V^pi(s_0) = FO(s_0) - E sum_n gamma^n charge_n,                                       (identity)
    V(s_0)   <= FO(s_0) - E min_u sum_n gamma^n charge_n(u),                              (dual)

the minimum being over all decisions u along a path of items and feedback that the searcher sees in advance.

First forward.  Nothing changes before the first forward, so with A_x = x.mu - cost + E_y V(s'_xy) the optimum
solves w = gamma E_x max(w, A_x).  Any upper bound in the place of V(s'_xy) gives an upper bound w.

All these are statistical: `limit` gives the one-sided 95 % upper limit of an estimate.  The chapter "Bounds
beyond the paper" has the proofs, also of what the sampling errors inside a minimum or a maximum do.
"""
from time import perf_counter
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from lib import posterior, streams
from lib.bound import penalty, relaxations
from lib.bound.penalty import arrivals, least_charges, steps
from lib.dp import first_forward
from lib.problem import Estimate, noise_var

Z95 = 1.6448536269514722                  # standard normal quantile, one-sided 95 %
LEAF = 8                                  # fewest paths for the leaf of one item, when there are paths enough


class Bound(NamedTuple):
    """An upper bound on V, in reward units with the leading gamma."""

    name: str
    mean: float     # estimate, its error on the safe side on average
    se: float       # its standard error
    upper: float    # one-sided 95 % upper limit


def _parts(seed):
    """A seed as a tuple, to which numbers of sub-experiments are appended."""
    return tuple(seed) if isinstance(seed, (tuple, list)) else (seed,)


def limit(estimate):
    """One-sided 95 % upper limit of an Estimate."""
    return float(estimate.mean + Z95 * estimate.se)


def forward_values(problem, sequences=400, seed=0):
    """Full observation from s_0, and A_x = x.mu - cost + E_y FO(s'_xy), on sampled arrival sequences.

    Returns
    -------
    ndarray (sequences // 8, n + 1)
        Rows are independent; column 0 is FO(s_0), column 1 + x is A_x.  Their means are the two values, what
        comes after the sampled arrivals being counted at hindsight.
    """
    horizon = steps(problem.gamma, 1e-4, 1500)
    ahead = arrivals(problem, (max(sequences // 8, 2), 8, horizon), streams.generator(seed, streams.Purpose.SEQUENCES))
    out = penalty.full_observation_values(posterior.compile_problem(problem), problem.mu, problem.Sigma, ahead, np.arange(-1, len(problem.probs)))
    out[:, 0] += problem.gamma**horizon * relaxations.hindsight(problem)
    out[:, 1:] += out[:, :1] + problem.items @ problem.mu - problem.cost
    return out


def _estimate(known, leaves, problem, paired=()):
    """T of A_x = mean of known[:, x] minus mean of leaves[x]; its standard error by the slopes of T.

    The leaves of items in `paired` are one draw from each of an even number of strata: neighbours give the error.
    Where no item is worth a forward T = 0 has no slope: the limit is then T of simultaneous limits of A.
    """
    mean = known.mean(axis=0) - [leaf.mean() for leaf in leaves]
    own = np.array([leaf.var(ddof=1) / len(leaf) if len(leaf) > 1 else 0.0 for leaf in leaves])
    for x in paired:
        own[x] = ((leaves[x][::2] - leaves[x][1::2])**2).sum() / len(leaves[x])**2
    w, slope = first_forward(mean, problem.probs, problem.gamma)
    if w == 0:
        se = np.sqrt(own + known.var(axis=0, ddof=1) / len(known))
        high = mean + norm.isf(.05 / len(mean)) * se
        return Estimate(0.0, first_forward(high, problem.probs, problem.gamma)[0] / Z95)
    return Estimate(float(w), float(np.sqrt((known @ slope).var(ddof=1) / len(known) + slope**2 @ own)))


def full_first(problem, sequences=400, seed=0):
    """The first forward exact, full observation after it: an Estimate.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> full_first(make_problem([[1.]], [1.], [-3.], [[1.]], 1., 0., .9)).mean
    0.0
    """
    known = forward_values(problem, sequences, seed)[:, 1:]
    return _estimate(known, [np.zeros(1)] * len(problem.probs), problem)


def dual(problem, paths=400, inner=4, effort=2000, seed=0):
    """The full-observation dual: an Estimate; arguments as `least_charges`."""
    full = relaxations.full_observation(problem, 10 * paths, seed)
    least = least_charges(problem, np.full(paths, -1), inner, effort, seed)
    return Estimate(float(full.mean - least.mean()), float(np.hypot(full.se, least.std(ddof=1) / np.sqrt(paths))))


def _leaves(problem, known, paths, inner, effort, seed):
    """Least charges after a first forward of each item, some `paths` in all, shared out by probability.

    An item that even full observation leaves below commitment without learning is never forwarded first:
    it needs no paths.
    """
    net = problem.items @ problem.mu - problem.cost
    commitment = problem.gamma / (1 - problem.gamma) * problem.probs @ np.maximum(net, 0)
    error = known.std(axis=0, ddof=1) / np.sqrt(len(known))
    wanted = (known.mean(axis=0) + 4 * error > commitment) & (problem.probs > 0)
    share = problem.probs * wanted
    counts = np.where(wanted, np.maximum(min(LEAF, 2 + paths // 100), np.round(paths * share / max(share.sum(), 1e-300))), 0).astype(int)
    least = least_charges(problem, np.repeat(np.arange(len(counts)), counts), inner, effort, seed)
    return [leaf if len(leaf) else np.zeros(1) for leaf in np.split(least, np.cumsum(counts)[:-1])]


def dual_first(problem, paths=1000, inner=4, effort=2000, seed=0, sequences=400):
    """The first forward exact, the full-observation dual after it: an Estimate; arguments as `least_charges`."""
    known = forward_values(problem, sequences, seed)[:, 1:]
    return _estimate(known, _leaves(problem, known, paths, inner, effort, seed), problem)


def after(problem, x, y):
    """The problem that is left after feedback y on item x."""
    prior = posterior.Belief(problem.mu, problem.Sigma)
    belief = posterior.step(prior, problem.items[x], y, noise_var(problem)[x])
    return problem if belief is prior else problem._replace(mu=belief.mu, Sigma=belief.Sigma)


def dual_second(problem, outer=16, paths=300, inner=4, effort=2000, seed=0):
    """The first two forwards exact, the dual after them: an Estimate.

    A first pass, on other streams, picks the items that may be forwarded first; their leaves are `dual_first`
    after each of `outer` draws of their feedback, an even number of strata.  The other items keep a dual leaf.

    Raises
    ------
    ValueError
        If `outer` is not even and positive.
    """
    if outer < 2 or outer % 2:
        raise ValueError(f"outer is {outer}: it must be even and positive")
    seed = _parts(seed)
    known = forward_values(problem, seed=(*seed, 0))[:, 1:]
    pilot = _leaves(problem, known, paths, inner, effort, (*seed, 0))
    slope = first_forward(known.mean(axis=0) - [leaf.mean() for leaf in pilot], problem.probs, problem.gamma)[1]
    known = forward_values(problem, seed=(*seed, 1))[:, 1:]
    leaves = _leaves(problem, known, paths, inner, effort, (*seed, 1))
    sd = np.sqrt(np.einsum("xi,ij,xj->x", problem.items, problem.Sigma, problem.items) + noise_var(problem))
    for x in np.flatnonzero(slope):
        rng = streams.generator((*seed, 2), streams.Purpose.PATHS, int(x))
        z = norm.ppf((np.arange(outer) + rng.random(outer)) / outer)
        rest = [after(problem, x, problem.items[x] @ problem.mu + sd[x] * z[i]) for i in range(outer)]
        leaves[x] = np.array([relaxations.full_observation(left, 400, seed=int(rng.integers(2**31))).mean
                              - dual_first(left, paths, inner, effort, (*seed, 4, int(x), i), 80).mean
                              for i, left in enumerate(rest)])
    return _estimate(known, leaves, problem, np.flatnonzero(slope))


def _bound(name, estimate):
    """An Estimate as a Bound, raised to 0 where it is below."""
    return Bound(name, max(float(estimate.mean), 0.0), float(estimate.se), max(limit(estimate), 0.0))


def ladder(problem, paths=1000, seed=0):
    """Every bound from the loosest idea to the tightest: a list of Bound.

    Theorem 1 is left out where the items do not sum to 1.  `paths` sets the sampling effort.  An estimate below
    0 is reported as 0, which every V reaches by forwarding nothing.
    """
    rungs = [("hindsight", Estimate(relaxations.hindsight(problem), 0.0))]
    if np.abs(problem.items.sum(axis=1) - 1).max() < 1e-9:
        rungs += [(name, Estimate(relaxations.decomposition(problem, noise=noise).upper, 0.0))
                  for name, noise in (("Theorem 1", "basis"), ("Theorem 1, sharper noise", "model"))]
    rungs += [("full observation", relaxations.full_observation(problem, 10 * paths, seed)),
              ("first forward exact", full_first(problem, max(paths, 100), seed)),
              ("dual", dual(problem, paths, seed=seed)),
              ("first forward exact, then dual", dual_first(problem, paths, seed=seed))]
    return [_bound(name, estimate) for name, estimate in rungs]


def best(problem, budget_seconds=10.0, seed=0):
    """The tightest bound that the budget affords, as a Bound.

    A pilot run picks the rung; the rung is then estimated afresh, on other streams: the minimum of several noisy
    estimates would be biased down.  The number of paths follows the measured speed, so it varies between machines;
    what it estimates does not.

    Raises
    ------
    ValueError
        If the budget is not positive.
    """
    if not budget_seconds > 0:
        raise ValueError(f"budget_seconds is {budget_seconds}: it must be positive")
    seed, begin = _parts(seed), perf_counter()
    pilot = {rung.name: rung for rung in ladder(problem, 100, (*seed, 0))}
    start = perf_counter()
    winner = min(pilot.values(), key=lambda rung: rung.upper)
    if winner.se == 0:                    # nothing was sampled, or nothing is worth a forward
        return winner
    dual_first(problem, 100, seed=(*seed, 1))
    speed = 100 / (perf_counter() - start)
    paths = int(np.clip(speed * (budget_seconds - (perf_counter() - begin)), 200, 1e5))
    final = {"full observation": lambda: relaxations.full_observation(problem, 10 * paths, (*seed, 2)),
             "first forward exact": lambda: full_first(problem, paths, (*seed, 2)),
             "dual": lambda: dual(problem, paths, seed=(*seed, 2)),
             "first forward exact, then dual": lambda: dual_first(problem, paths, seed=(*seed, 2))}[winner.name]()
    return _bound(winner.name, final)
