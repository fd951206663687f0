"""Index policies, which forward where mean + bonus * sd exceeds the cost, as the arrays that kernels read.

The bonus of DTD-DP is alpha E / sd, E the exploration benefit of a single-feature problem (paper, Algorithm 2).  E / sd
depends on the standardised net mean z = (mean - cost)/sd and on the precision noise_var/var alone, so one table per
direction serves every cost, user and alpha (of very many directions one serves many: `lib.policies.directions`).  It runs over steps of STEP in log precision, from the prior's to what
REACH/-log(gamma) items add, and over steps of FINE in z, counted from where the problem's value leaves zero, because
E has a kink there.  Further below than DEEP it is taken as 0.
"""
from typing import NamedTuple

import numpy as np

from lib.compiled import jit
from lib.dp import exploration_benefits
from lib.dp.program import DEEP, FINE, STEP
from lib.policies.directions import directions
from lib.policies.rules import INDEX, TABLE, THOMPSON, as_policies, entry
from lib.problem import checked
from lib.threads import side_by_side


class Rules(NamedTuple):
    """What a kernel reads about P policies: forward iff mean + bonus sd > cost, or = cost where ties."""

    kind: np.ndarray        # (P,) INDEX, TABLE or THOMPSON
    ties: np.ndarray        # (P,) bool
    bonus: np.ndarray       # (P, n) of INDEX rules; of TABLE rules, what the benefit is multiplied by
    row: np.ndarray         # (P, n) of TABLE rules: which row of the tables below,
    other: np.ndarray       # (P, n) and with which other
    share: np.ndarray       # (P, n) it is mixed in this share; 0: with none
    unit: np.ndarray        # (P, n) by which a variance is divided before it is looked up
    last: np.ndarray        # (rows,) number of the last log variance
    log_var: np.ndarray     # (rows,) the first of them; they fall
    kink: np.ndarray        # (rows, log variances) standardised net mean where the problem's value leaves zero
    benefit: np.ndarray     # (rows, log variances, z) exploration benefit / sd around it
    steps: np.ndarray       # (3,) spacing of log variance and of z, and how far below the kink z begins


def compile_rules(problem, policies):
    """The kernels' Rules for a sequence of policies on `problem`.

    Raises
    ------
    ValueError
        When there is no policy, or one is not a Policy of a known kind.
    """
    problem, policies = checked(problem), as_policies("policies", policies)
    families = [entry(policy) for policy in policies]
    for policy, family in zip(policies, families):
        if family.rule not in (INDEX, TABLE, THOMPSON):
            raise ValueError(f"policies holds {policy!r}: it looks at the whole belief, lib.policies.lookahead has its kernel")
    bonus, keys, found = np.zeros((len(policies), len(problem.items))), {}, {}
    row, other, share, unit = (np.zeros(bonus.shape, kind) for kind in (np.int32, np.int32, float, float))
    for p, (policy, family) in enumerate(zip(policies, families)):
        bonus[p], kind = family.bonus(problem, policy), (policy.noise, policy.law)
        if family.rule == TABLE:
            if kind not in found:
                found[kind] = directions(problem, *kind)
            rows = np.array([keys.setdefault(key, len(keys)) for key in found[kind].keys])
            row[p], other[p] = rows[found[kind].row], rows[found[kind].other]
            share[p], unit[p] = found[kind].share, found[kind].unit
    tables = side_by_side(lambda key: exploration_benefits(*key[1:]), keys) or [(np.zeros(2), np.zeros((2, 2)))]
    shape = tuple(np.max([benefit.shape for _, benefit in tables], axis=0))
    return Rules(
        kind=np.array([family.rule for family in families]),
        ties=np.array([family.ties for family in families]), bonus=bonus, row=row, other=other, share=share, unit=unit,
        last=np.array([len(kink) - 1 for kink, _ in tables]), log_var=np.array([key[0] for key in keys] or [0.0]),
        kink=np.array([np.pad(kink, (0, shape[0] - len(kink))) for kink, _ in tables]),
        benefit=np.array([np.pad(e, [(0, n - m) for n, m in zip(shape, e.shape)]) for _, e in tables]),
        steps=np.array([STEP, FINE, DEEP]))


@jit
def benefit(rules, row, z, var):
    """Exploration benefit / sd at standardised net mean z: linear in log variance and in z from the kink.

    Beyond the table, with little left to learn, net means and benefits scale with var as a random walk's do.
    """
    step, fine, deep = rules.steps
    last = rules.last[row]
    at = max((rules.log_var[row] - np.log(var)) / step, 0.0)
    stretch = np.exp(0.5 * step * max(at - last, 0.0))
    j = min(int(min(at, float(last))), last - 1)
    share = min(at, float(last)) - j
    kink = (1 - share) * rules.kink[row, j] + share * rules.kink[row, j + 1]
    u = (z * stretch - kink + deep) / fine
    if u < 0.0:
        return 0.0
    i = min(int(u), rules.benefit.shape[2] - 2)
    right = u - i
    upper, lower = rules.benefit[row, j], rules.benefit[row, j + 1]
    return ((1 - share) * ((1 - right) * upper[i] + right * upper[i + 1])
            + share * ((1 - right) * lower[i] + right * lower[i + 1])) / stretch


@jit
def explored(rules, p, i, z, var):
    """Exploration benefit / sd of item i under TABLE rule p: from one table, or between two."""
    var, share = var / rules.unit[p, i], rules.share[p, i]
    found = benefit(rules, rules.row[p, i], z, var)
    if share != 0.0:
        found = max((1 - share) * found + share * benefit(rules, rules.other[p, i], z, var), 0.0)
    return found
