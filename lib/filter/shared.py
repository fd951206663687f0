"""What the filters of all users read: the problem, the policy, and all that was computed from the two, once.

Filters of different users may be used in different threads: nothing here changes but a memory of foreign vectors, under
a lock.
"""
from collections import OrderedDict
from threading import Lock
from typing import NamedTuple

import numpy as np

from lib import cache
from lib.filter import vectors
from lib.policies import compile_rules, lookahead
from lib.policies.directions import directions, reads
from lib.policies.rules import SCORES, TABLE, THOMPSON, Family, Policy, entry, even_bonus, no_bonus, projected_bonus
from lib.posterior import COARSE, Instance, compile_problem, noise_share
from lib.problem import LARGEST, Problem, checked, noise_var

FOREIGN = 10_000                # vectors outside the catalogue that are remembered
KEPT = 8                        # pairs of problem and policy that are remembered


class Known(NamedTuple):
    """What is known of an item vector, whatever the belief."""

    bonus: float        # of an index rule: multiple of the standard deviation, or what a tabulated benefit is multiplied by
    rules: object       # Rules whose item `column` has its tabulated benefit, or the lib.dp.Table of its own that has it
    column: int
    noise_var: float    # of feedback on it, reward units squared
    place: int          # row of `Shared.instance`; -1: it is not in the catalogue
    reach: float        # M(x) of the lookahead on scores


class Shared(NamedTuple):
    """A problem and a policy, compiled; made by `share`."""

    problem: Problem
    stand: Problem          # the same with the items that stand for a coming one, and
    expected: object        # what M(x) needs of them: vectors.Expected
    policy: Policy
    family: Family
    key: str                # of the problem: a state belongs to one
    known: dict             # bytes of an item of the catalogue: its Known
    rules: object           # Rules of the policy, or the three arrays that lookahead.run takes
    tables: object          # of DTD-DP: the Directions that say which of its tables serves what
    instance: Instance      # of a whole-belief policy: the catalogue and one slot more, for a foreign vector
    ahead: object           # lookahead.Lookahead of the same
    most: float             # what an element of a vector may be at most
    lock: object            # around that slot and the memory
    foreign: OrderedDict    # (bytes, noise variance): Known


_FOUND, _LOCK = OrderedDict(), Lock()       # (id of a problem, policy): the problem, a lock, and a list of what was made


def share(problem, policy):
    """What all filters of a problem and a policy read: a Shared, the same one for the same Problem object and policy.

    The first call compiles; for DTD-DP that is a dynamic program for every distinct item.  `Filter` calls it.  The arrays of
    the problem must not be written to afterwards.

    Parameters
    ----------
    problem : Problem
    policy : Policy

    Returns
    -------
    Shared

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong, or where the noise is too small beside the prior for a covariance
        matrix to hold what was learned.

    Examples
    --------
    >>> from lib.policies import ucb
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1]], [1], [0], [[1]], 1, .2, .9)
    >>> share(problem, ucb(.5)) is share(problem, ucb(.5))
    True
    """
    entry(policy, "policy")
    with _LOCK:
        name = id(problem), policy
        _, lock, made = _FOUND.setdefault(name, (problem, Lock(), []))      # kept alive, so that no other has its id
        _FOUND.move_to_end(name)
        if len(_FOUND) > KEPT:
            _FOUND.popitem(last=False)
    with lock:                              # those who ask for another problem do not wait
        if not made:
            made.append(_made(problem, policy))
    return made[0]


def _made(problem, policy):
    """The Shared of checked arguments."""
    problem, family = checked(problem), entry(policy)
    share_of_noise = noise_share(problem)
    if share_of_noise < COARSE:
        raise ValueError(f"problem has noise_sd {problem.noise_sd}: with these items and this prior a filter needs "
                         f"{problem.noise_sd * np.sqrt(COARSE / share_of_noise):.3g} or more")
    bonus, rules, tables, instance, ahead = np.zeros(len(problem.items)), None, None, None, None
    if family.rule > THOMPSON:
        slot = vectors.extended(problem, np.ones(len(problem.mu)), problem.noise_sd**2)
        instance, ahead = compile_problem(slot), lookahead.make_lookahead(slot, [policy], 1)
        ahead = ahead._replace(items=ahead.items.copy(), reach=ahead.reach.copy())         # written to by `put`
        rules = np.array([family.rule]), np.array([policy.alpha]), np.array([policy.futures])
    elif family.rule == TABLE:
        rules, tables = compile_rules(problem, [policy]), directions(problem, policy.noise, policy.law)
        bonus = rules.bonus[0]
    else:
        bonus = family.bonus(problem, policy)
    known = {}
    for i, (row, weight, noise) in enumerate(zip(problem.items + 0.0, bonus.tolist(), noise_var(problem).tolist())):  # 0.0: no -0
        before = known.setdefault(row.tobytes(), Known(weight, rules, i, noise, i, 0.0))
        if before.noise_var != noise:
            raise ValueError(f"items[{before.column}] and items[{i}] of the problem are the same vector with noise variances "
                             f"{before.noise_var} and {noise}: a filter could not tell which is meant")
    stand, size = vectors.standing(problem), max(np.abs(problem.mu).max(), np.sqrt(np.abs(problem.Sigma).max()), 1.0)
    expected, most = vectors.expected(problem, stand, policy.law), LARGEST / len(problem.mu) / size
    return Shared(problem, stand, expected, policy, family, cache.digest(*problem), known, rules, tables, instance, ahead, most, Lock(),
                  OrderedDict())


def noise_of(shared, x, known, noise_var):
    """Noise variance of feedback on a vector x: as given, of its Known, or by the law of the noise."""
    if noise_var is not None:
        return noise_var
    return known.noise_var if known else float(vectors.own_noise(shared.problem, x))


def foreign(shared, x, noise_var=None):
    """The Known of a vector x (k,), without -0, that the catalogue has not or with another noise variance; remembered."""
    key, noise_var = x.tobytes(), noise_of(shared, x, None, noise_var)
    with shared.lock:
        found = shared.foreign.get((key, noise_var))
    if found is None:
        found = _new(shared, x, noise_var)                  # without the lock: nobody waits for another's vector
        with shared.lock:
            shared.foreign[key, noise_var] = found
            if len(shared.foreign) > FOREIGN:
                shared.foreign.popitem(last=False)
    return found


def _new(shared, x, noise_var):
    """The Known of a vector that was not met before."""
    policy, rule, plain = shared.policy, shared.family.rule, {no_bonus: 0.0, even_bonus: shared.policy.alpha}
    found = Known(0.0, None, 0, noise_var, -1, 0.0)
    if rule == TABLE:
        return _tabulated(shared, x, found)
    if rule > THOMPSON:
        return found._replace(reach=vectors.mean_on(x, shared.expected)) if rule == SCORES else found
    if shared.family.bonus is projected_bonus:
        return found._replace(bonus=policy.alpha * vectors.mean_on(x, shared.expected))
    if shared.family.bonus in plain:
        return found._replace(bonus=plain[shared.family.bonus])
    return found._replace(bonus=float(shared.family.bonus(vectors.extended(shared.stand, x, noise_var), policy)[-1]))


def _tabulated(shared, x, found):
    """The Known of a vector under DTD-DP: two of the tables that items share, or where they do not reach it its own."""
    problem, policy = shared.problem, shared.policy
    var, mean = float(x @ problem.Sigma @ x), vectors.mean_on(x, shared.expected)
    if not (var > 0 and mean > 0):
        return found                                        # nothing to learn, or nothing to learn it for
    scale = vectors.dtd_noise(problem, policy, x, found.noise_var)
    place = reads(shared.tables, mean, scale / var)
    if place is None:
        return found._replace(bonus=policy.alpha, rules=vectors.solved(shared.stand, policy.law, x, scale, var))
    numbers = list(dict.fromkeys(shared.tables.keys))       # the rows of `rules`: what two tables have alike stands once
    row, other = (np.full((1, 1), numbers.index(shared.tables.keys[t]), np.int32) for t in place[:2])
    rules = shared.rules._replace(row=row, other=other, share=np.full((1, 1), place[2]), unit=np.full((1, 1), scale))
    return found._replace(bonus=policy.alpha, rules=rules)


def put(shared, x, item):
    """Write a foreign vector into the slot after the catalogue, its lock held; returns the slot's row."""
    row, k, ahead = len(shared.problem.items), len(x), shared.ahead
    ahead.items[row], ahead.reach[row:] = x, item.reach         # without lookahead on scores `reach` is empty
    for instance in (shared.instance, ahead.sample)[:1 if ahead.sampled else 2]:
        instance.size[-k:], instance.noise_var[row] = x, item.noise_var
    return row
