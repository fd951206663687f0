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

All these are statistical: a Bound has a one-sided 95 % upper limit beside its estimate.  The chapter "Bounds beyond
the paper" has the proofs, also of what the sampling errors inside a minimum or a maximum do; bench/limits.py counts
how often the limits hold.
"""
from time import perf_counter
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from lib import streams
from lib.bound import catalogue, relaxations, theorem
from lib.bound.penalty import arrivals, arrivals_of_first, least_charges, values_of_information
from lib.bound.relaxations import compile_checked
from lib.dp import first_forward
from lib.estimate import betting_limit, degrees_of_freedom, sample_mean, upper_limit
from lib.posterior import Belief, step, variances
from lib.problem import as_count, as_scalar, checked, noise_var

SAMPLED = "full observation", "first forward exact", "dual", "first forward exact, then dual"
EVERY = 1024                              # items up to which a first forward of each is looked at; above, a sample
FIRST, LEAVES = 1024, 256                 # sampled first forwards, and those with a dual after them
TOL = 1e-2                                # of Theorem 1 where items are not the paper's
HALF = .975                               # level of a limit of which two make 95 %
LEAF = 8                                  # fewest paths for the leaf of one item, when there are paths enough


class Bound(NamedTuple):
    """An upper bound on V, in reward units with the leading gamma."""

    name: str
    mean: float     # estimate, its error on the safe side on average
    se: float       # its standard error, with the first forward held fixed
    upper: float    # one-sided 95 % upper limit


def forward_values(problem, sequences=400, seed=0):
    """Full observation from s_0, and A_x = x.mu - cost + E_y FO(s'_xy), on sampled arrival sequences.

    Returns
    -------
    ndarray (rows, n + 1)
        Rows are independent, each the mean of up to 8 stratified sequences; there are at least 8, to know their spread,
        if there are as many sequences.  Column 0 is FO(s_0), column 1 + x is A_x.  Their means are the two values, what
        comes after the sampled arrivals being counted at hindsight.
    """
    problem, sequences = checked(problem), as_count("sequences", sequences, 2)
    horizon = arrivals_of_first(problem)
    strata = min(max(sequences // 8, 1), 8)
    ahead = arrivals(problem, (max(sequences // strata, 2), strata, horizon), streams.generator(seed, streams.Purpose.SEQUENCES))
    out = values_of_information(compile_checked(problem), ahead)
    out[:, 0] += problem.gamma**horizon * relaxations.hindsight(problem)
    out[:, 1:] += out[:, :1] + problem.items @ problem.mu - problem.cost
    return out


def slope_of(items, probs, gamma):
    """(n,) what the worth of a first forward of each of `items` (n,) bool adds to that of forwarding the first of them that comes."""
    slope = np.where(items, gamma * probs, 0.0)
    return slope / (1 - gamma + slope.sum())


class Sample(NamedTuple):
    """Independent estimates of A_x, the value of a first forward of each item: mean known[:, x] minus own[x]."""

    known: np.ndarray    # (R, n) full observation's part, rows independent
    own: np.ndarray      # (n,) mean least charges after a first forward
    var: np.ndarray      # (n,) squared standard errors of `own`
    df: np.ndarray       # (n,) their degrees of freedom

    def limit(self, probs, gamma, items):
        """Forward the first of `items` (n,) bool: what it is worth, its standard error, its 95 % upper limit."""
        slope = slope_of(items, probs, gamma)
        value, se = sample_mean(self.known @ slope)
        variances = np.append(slope**2 * self.var, se**2)
        mean, error = value - slope @ self.own, np.sqrt(variances.sum())
        df = degrees_of_freedom(variances, np.append(self.df, len(self.known) - 1))
        return float(mean), float(error), float(upper_limit(mean, error, df))


def _sample(known, leaves, paired=()):
    """The Sample of rows `known` and of charges leaves[x], an array of draws for each item.

    The leaves of items in `paired` are one draw from each of an even number of strata: neighbours give the error.
    """
    var = np.array([leaf.var(ddof=1) / len(leaf) if len(leaf) > 1 else 0.0 for leaf in leaves])
    df = np.array([max(len(leaf) - 1, 1) for leaf in leaves])
    for x in paired:
        var[x] = catalogue.strata_var(leaves[x])
        df[x] = len(leaves[x]) // 2
    return Sample(known, np.array([leaf.mean() for leaf in leaves]), var, df)


def _first_forward(name, sample, problem):
    """T of A_x as a Bound.  T(A) is the largest, over sets of items, of what forwarding the first of them is worth.

    So the largest of the limits of these, each linear in A, is an upper limit for T(A).  It is sought from the set that
    is best by the estimates and from the items whose own limit is positive, an item at a time in or out.
    """
    def limit(items):
        return sample.limit(problem.probs, problem.gamma, items)

    mean = sample.known.mean(axis=0) - sample.own
    forwarded = first_forward(mean, problem.probs, problem.gamma)[1] > 0
    alone = np.eye(len(mean), dtype=bool) & (problem.probs > 0)
    hopeful = np.array([limit(items)[2] > 0 for items in alone])
    value, se, high = limit(forwarded) if forwarded.any() else (0.0, 0.0, 0.0)
    for start in forwarded, hopeful:
        high = max(high, _climb(lambda items: limit(items)[2] if items.any() else 0.0, start, alone))
    return Bound(name, value, se, float(high))


def _climb(worth, items, moves):
    """The largest worth of a set that is reached from `items` by adding or dropping one of `moves` at a time."""
    best = worth(items)
    while True:
        worths = [worth(items ^ move) for move in moves]
        i = int(np.argmax(worths))
        if not worths[i] > best:
            return best
        items, best = items ^ moves[i], worths[i]


def as_even(name, value, least=1):
    """`value` as an even count, of at least so many, or ValueError."""
    if as_count(name, value, least) % 2:
        raise ValueError(f"{name} is {value}: it must be even")
    return value


def full_first(problem, sequences=400, seed=0, items=None):
    """The first forward exact, full observation after it: a Bound.

    Parameters
    ----------
    problem : Problem
    sequences : int
        Arrival sequences; full observation takes ten times as many where items are sampled.
    seed : int or sequence of int
    items : int, optional
        How many items are sampled to stand for the first forward, even.  When absent: none up to EVERY distinct ones, each of
        which is then looked at, and FIRST above.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> full_first(make_problem([[1.]], [1.], [-3.], [[1.]], 1., 0., .9)).mean
    0.0
    """
    problem, sequences = checked(problem), as_count("sequences", sequences, 2)
    if items is not None or len(problem.probs) > EVERY:
        items = as_even("items", FIRST if items is None else items, 4)
        return Bound("first forward exact", *catalogue.bounded(problem, catalogue.sample(problem, items, sequences, seed)[1]))
    known = forward_values(problem, sequences, seed)[:, 1:]
    return _first_forward("first forward exact", _sample(known, [np.zeros(1)] * len(problem.probs)), problem)


def dual(problem, paths=400, inner=4, effort=2000, seed=0):
    """The full-observation dual: a Bound; arguments as `least_charges`."""
    return _dual_of(*_dual_parts(problem, paths, inner, effort, seed))


def _dual_of(observed, charged):
    """The dual from its two samples."""
    full, least = sample_mean(observed), sample_mean(charged)
    mean, se = float(full.mean - least.mean), float(np.hypot(full.se, least.se))
    df = degrees_of_freedom([full.se**2, least.se**2], [len(observed) - 1, len(charged) - 1])
    return Bound("dual", mean, se, float(upper_limit(mean, se, df)))


def _dual_parts(problem, paths, inner, effort, seed):
    """What full observation earns of each of 10 paths sequences, and the least charges of each of `paths` paths."""
    problem, paths = checked(problem), as_count("paths", paths, 2)
    inner, effort = as_count("inner", inner), as_count("effort", effort)
    observed = relaxations.observed_values(problem, 10 * paths, seed, relaxations.arrivals(problem))
    return observed, least_charges(problem, np.full(paths, -1), inner, effort, seed)


def finite_sample(problem, paths=400, inner=4, effort=2000, seed=0):
    """Full observation and the dual with limits that rest on no normality: `estimate.betting_limit` of bounded values.

    The estimates and streams are those of `dual`.  A sequence is worth at most the best item at every arrival to full
    observation.  Least charges are cut there: that lowers their mean.  Of the dual's 5 % either part has a half.

    Parameters
    ----------
    problem, paths, inner, effort, seed
        As `dual` takes them.

    Returns
    -------
    Bound, Bound
        "full observation" and "dual".

    Raises
    ------
    ValueError
        As `dual`.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1.0]], [1.0], [0.0], [[1.0]], 1.0, .3, .5)
    >>> full, after = finite_sample(problem, 200)
    >>> after.mean < full.mean <= full.upper
    True
    """
    observed, charged = _dual_parts(problem, paths, inner, effort, seed)
    most = relaxations.most_observed(problem, relaxations.arrivals(problem))
    if not most > 0:
        return _certain("full observation", 0.0), _certain("dual", 0.0)
    at_least = most - betting_limit(most - np.minimum(charged, most), most, HALF)
    return (Bound("full observation", *map(float, sample_mean(observed)), betting_limit(observed, most)),
            _dual_of(observed, charged)._replace(upper=betting_limit(observed, most, HALF) - at_least))


def commitment(problem):
    """What forwarding without learning earns, an item wherever its prior mean is above the cost."""
    return problem.gamma / (1 - problem.gamma) * problem.probs @ np.maximum(problem.items @ problem.mu - problem.cost, 0)


def _leaves(problem, known, paths, inner, effort, seed, items=()):
    """Least charges after a first forward of each item, some `paths` in all, shared out by probability.

    An item that even full observation leaves below commitment without learning is never forwarded first:
    it needs no paths, unless it is among `items`.
    """
    error = known.std(axis=0, ddof=1) / np.sqrt(len(known))
    wanted = (known.mean(axis=0) + 4 * error > commitment(problem)) & (problem.probs > 0)
    wanted[list(items)] = True
    share = problem.probs * wanted
    fewest = min(LEAF, 2 + paths // 100)
    shares = np.round(paths * share / max(share.sum(), 1e-300))
    counts = np.where(wanted, np.maximum(fewest, shares), 0).astype(int)
    least = least_charges(problem, np.repeat(np.arange(len(counts)), counts), inner, effort, seed)
    return [leaf if len(leaf) else np.zeros(1) for leaf in np.split(least, np.cumsum(counts)[:-1])]


def dual_first(problem, paths=1000, inner=4, effort=2000, seed=0, sequences=400, items=None):
    """The first forward exact, the full-observation dual after it: a Bound; arguments as `least_charges` and `full_first`.

    Of sampled items there are LEAVES by default; those that may be worth it share the paths.
    """
    problem, paths, sequences = checked(problem), as_count("paths", paths), as_count("sequences", sequences, 2)
    inner, effort = as_count("inner", inner), as_count("effort", effort)
    if items is not None or len(problem.probs) > EVERY:
        items = as_even("items", LEAVES if items is None else items, 4)
        sampled = catalogue.sample(problem, items, sequences, seed)
        return Bound("first forward exact, then dual", *catalogue.bounded(problem, charged(problem, sampled, paths, inner, effort, seed)))
    return _first_forward("first forward exact, then dual", first_forwards(problem, paths, inner, effort, seed, sequences), problem)


def first_forwards(problem, paths, inner, effort, seed, sequences, items=()):
    """The Sample of what first forwards are worth with the dual after them, and of `items` surely; checked arguments of `dual_first`."""
    known = forward_values(problem, sequences, seed)[:, 1:]
    return _sample(known, _leaves(problem, known, paths, inner, effort, seed, items))


def charged(problem, sampled, paths, inner, effort, seed, surely=False):
    """The First of items as `catalogue.sample` gives them, less the least charges after them; checked arguments of `dual_first`.

    An item that even full observation leaves below commitment without learning is never forwarded first by the bound: it has no paths,
    and keeps full observation after it, unless it is among `surely` (m,).
    """
    chosen, first = sampled
    met = np.flatnonzero((first.values + first.full.mean > commitment(problem)) | surely)
    each = max(paths // max(len(met), 1), 1)
    least = np.zeros(len(chosen))
    if len(met):
        least[met] = least_charges(problem, np.repeat(chosen[met], each), inner, effort, seed).reshape(-1, each).mean(axis=1)
    return first._replace(values=first.values - least)


def after(problem, x, y):
    """The problem that is left after feedback y on item x."""
    prior = Belief(problem.mu, problem.Sigma)
    belief = step(prior, problem.items[x], y, noise_var(problem)[x])
    return problem if belief is prior else problem._replace(mu=belief.mu, Sigma=without_rounding(belief.Sigma))


def after_strata(problem, x, outer, rng):
    """The problems left after `outer` feedbacks on x, one from each of as many strata of equal probability."""
    mean, sd = problem.items[x] @ problem.mu, np.sqrt(variances(problem.items[[x]], problem.Sigma)[0] + noise_var(problem)[x])
    return [after(problem, x, mean + sd * z) for z in ndtri((np.arange(outer) + rng.random(outer)) / outer)]


def without_rounding(Sigma):
    """Sigma, or Sigma without the negative eigenvalues that rounding left where nearly everything has been learned."""
    values, vectors = np.linalg.eigh(Sigma)
    return Sigma if values[0] >= -1e-12 * values[-1] else (vectors * np.maximum(values, 0)) @ vectors.T


def dual_second(problem, outer=16, paths=300, inner=4, effort=2000, seed=0, sequences=400):
    """The first two forwards exact, the dual after them: a Bound.

    A first pass, on other streams, picks the items that may be forwarded first; their leaves are `dual_first`
    after each of `outer` draws of their feedback, an even number of strata.  The other items keep a dual leaf.  `sequences` is
    that of `full_first`; the other arguments are those of `least_charges`.

    Raises
    ------
    ValueError
        If `outer` is not even and positive.
    """
    problem, paths, sequences = checked(problem), as_count("paths", paths), as_count("sequences", sequences, 2)
    inner, effort = as_count("inner", inner), as_count("effort", effort)
    outer = as_even("outer", outer)
    streams.generator(seed)
    seed = streams.numbers(seed)
    known = forward_values(problem, sequences, (*seed, 0))[:, 1:]
    pilot = _leaves(problem, known, paths, inner, effort, (*seed, 0))
    slope = first_forward(known.mean(axis=0) - [leaf.mean() for leaf in pilot], problem.probs, problem.gamma)[1]
    known = forward_values(problem, sequences, (*seed, 1))[:, 1:]
    leaves = _leaves(problem, known, paths, inner, effort, (*seed, 1))
    for x in np.flatnonzero(slope):
        rng = streams.generator((*seed, 2), streams.Purpose.PATHS, int(x))
        rest = after_strata(problem, x, outer, rng)
        leaves[x] = np.array([relaxations.full_observation(left, 400, seed=int(rng.integers(2**31))).mean
                              - dual_first(left, paths, inner, effort, (*seed, 4, int(x), i), 80).mean
                              for i, left in enumerate(rest)])
    return _first_forward("two forwards exact, then dual", _sample(known, leaves, np.flatnonzero(slope)), problem)


def _certain(name, value):
    """A value that is known as a Bound."""
    return Bound(name, float(value), 0.0, float(value))


def _observed(problem, sequences, seed):
    """Full observation as a Bound."""
    mean, se = relaxations.full_observation(problem, sequences, seed)
    return Bound("full observation", mean, se, float(upper_limit(mean, se, sequences - 1)))


def _rung(problem, name, paths, seed):
    """The sampled bound of that name."""
    makers = {"full observation": lambda: _observed(problem, 10 * paths, seed),
              "first forward exact": lambda: full_first(problem, paths, seed),
              "dual": lambda: dual(problem, paths, seed=seed),
              "first forward exact, then dual": lambda: dual_first(problem, paths, seed=seed)}
    found = makers[name]()
    return found._replace(mean=max(found.mean, 0.0), upper=max(found.upper, 0.0))


def ladder(problem, paths=1000, seed=0):
    """Every bound from the loosest idea to the tightest: a list of Bound.

    Theorem 1 is `decomposition_for`, to TOL where items are not the paper's, and left out for a large catalogue of such.  `paths`
    sets the sampling effort.  An estimate below 0 is reported as 0, which every V reaches by forwarding nothing.
    """
    problem, paths = checked(problem), as_count("paths", paths, 2)
    streams.generator(seed)
    rungs = [_certain("hindsight", relaxations.hindsight(problem))]
    if theorem.as_in_paper(problem):
        rungs += [_certain(name, max(theorem.decomposition(problem, noise=noise).upper, 0.0))
                  for name, noise in (("Theorem 1", "basis"), ("Theorem 1, sharper noise", "model"))]
    elif theorem.affordable(problem):
        rungs.append(_certain("Theorem 1", max(theorem.decomposition_for(problem, TOL).upper, 0.0)))
    return rungs + [_rung(problem, name, paths, seed) for name in SAMPLED]


def best(problem, budget_seconds=10.0, seed=0):
    """The tightest bound that the budget affords, as a Bound.

    A pilot run picks the rung; a sampled one is then estimated afresh, on other streams: the least of several noisy
    estimates would be biased down.  The number of paths follows the measured speed, so it varies between machines;
    what it estimates does not.

    Raises
    ------
    ValueError
        If the budget is not positive.
    """
    problem, budget_seconds = checked(problem), as_scalar("budget_seconds", budget_seconds, 0)
    streams.generator(seed)
    seed, begin = streams.numbers(seed), perf_counter()
    winner = min(ladder(problem, 100, (*seed, 0)), key=lambda rung: rung.upper)
    if winner.name not in SAMPLED:
        return winner
    start = perf_counter()
    _rung(problem, winner.name, 100, (*seed, 1))
    speed = 100 / (perf_counter() - start)
    paths = int(np.clip(speed * (budget_seconds - (perf_counter() - begin)), 200, 1e5))
    return _rung(problem, winner.name, paths, (*seed, 2))
