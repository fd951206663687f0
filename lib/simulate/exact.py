"""Values of policies without Monte Carlo, where features decouple.

When every item has one feature, no feature has two items, and the prior is independent, what a policy does
with item j depends on item j's history alone: its value is a sum of scalar chains, one for each item.  After
n forwards the item's worth x.theta is N(m, v_n), v_n = 1/(1/v_0 + n/noise_var), whatever was observed, and

    W_n(m) = rho_n(m) (m - cost + E W_{n+1}(m + t_n Z)),    t_n^2 = v_n - v_{n+1},
    rho_n = gamma p q / (1 - gamma + gamma p q),

with p the item's probability and q = q_n(m) the probability that the policy forwards it: 0 or 1, or Thompson
sampling's Phi((m - cost)/sqrt(v_n)).  A discard teaches nothing, so the time to the next forward is geometric,
and rho is its discount.  Far above the cost W is gamma p/(1 - gamma) (m - cost), forwarding for ever.
"""
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import ndtr

from lib.normal import expected_excess
from lib.policies import compile_rules
from lib.policies.index import TABLE, THOMPSON, explored
from lib.problem import as_count, checked, noise_var

FAR = 9.0           # standard deviations beyond which a normal tail is left out
LEFT = 1e-12        # discounted weight at which a chain is cut off


class Exact(NamedTuple):
    """A value and what is left of its numerical error, in reward units."""

    value: float
    error: float


def decoupled(problem, policy, nodes=240):
    """Value of a policy on a problem whose features decouple, over an infinite horizon.

    Parameters
    ----------
    problem : Problem
        Sigma diagonal; each item has at most one feature, each feature at most one item.
    policy : Policy
    nodes : int
        Points of a chain's grid, at least 12; the error is the change from half as many.

    Returns
    -------
    Exact

    Raises
    ------
    ValueError
        When the features do not decouple, or naming the argument and the value that is wrong.

    Examples
    --------
    >>> from lib.policies import exploit
    >>> from lib.problem import make_problem
    >>> decoupled(make_problem([[1]], [1], [1], [[0]], 1, .5, .5), exploit()).value
    0.5
    """
    problem, nodes = checked(problem), as_count("nodes", nodes, 12)
    used = problem.items != 0
    if np.any(problem.Sigma - np.diag(problem.Sigma.diagonal())):
        raise ValueError("Sigma is not diagonal: the features do not decouple")
    if (used.sum(axis=1) > 1).any() or (used.sum(axis=0) > 1).any():
        raise ValueError("items share features or have several: the features do not decouple")
    rules = compile_rules(problem, [policy])
    mean, var = problem.items @ problem.mu, problem.items**2 @ problem.Sigma.diagonal()
    known, total, error = {}, 0.0, 0.0
    for i, p in enumerate(problem.probs):
        key = (mean[i], var[i], p, rules.bonus[0, i], rules.row[0, i], rules.share[0, i])       # items alike have one chain
        if key not in known:
            fine, rough = (chain(problem, rules, i, mean[i], var[i], size) for size in (nodes, nodes // 2))
            known[key] = fine, abs(fine - rough) + LEFT * abs(fine)
        total, error = total + known[key][0], error + known[key][1]
    return Exact(float(total), float(error))


def lowest(rules, i, var):
    """The standardised net mean from which item i is forwarded, for an array of variances."""
    if rules.kind[0] != TABLE:
        return np.full(len(var), -rules.bonus[0, i])
    low, high = np.full(len(var), -FAR), np.zeros(len(var))
    for _ in range(50):
        z = (low + high) / 2
        go = [a + rules.bonus[0, i] * explored(rules, 0, i, a, v) > 0 for a, v in zip(z, var)]
        low, high = np.where(go, low, z), np.where(go, z, high)
    return high


def chain(problem, rules, i, mean, var, size):
    """Value of item i's chain, from `size` points on each level's range of standardised net means z."""
    p, net = problem.probs[i], mean - problem.cost
    slope = problem.gamma * p / (1 - problem.gamma)
    drawn, delta = rules.kind[0] == THOMPSON, slope / (1 + slope)
    if var <= 0:
        return slope * net * (net > 0 or (net == 0 and rules.ties[0]))
    levels = 2 + int(np.ceil(np.log(LEFT) / np.log(delta))) if delta > 0 else 2
    variances = 1 / (1 / var + np.arange(levels) / noise_var(problem)[i])
    low = np.full(levels, -FAR) if drawn else lowest(rules, i, variances)
    bend = (1 - np.cos(np.pi * np.arange(size) / (size - 1))) / 2        # denser at both ends
    nodes, weights = np.polynomial.legendre.leggauss(size // 3)

    def worth(n, z, following):
        """W_n at standardised net means z >= low[n], given W_{n+1} as a spline, or None: forward for ever."""
        m = z * np.sqrt(variances[n])
        if following is None:
            return slope * (np.maximum(m, 0) if drawn else m)
        rate = slope * ndtr(z) if drawn else slope
        t, s = np.sqrt(variances[n] - variances[n + 1]), np.sqrt(variances[n + 1])
        return rate / (1 + rate) * (m + ahead(m, t, s, low[n + 1], following))

    def ahead(m, t, s, start, following):
        """E W(m + t Z) over the next level, W = following(m/s) on start s < m < FAR s and linear above."""
        above = (m - FAR * s) / t
        left, right = np.maximum(start * s, m - FAR * t), np.minimum(FAR * s, m + FAR * t)
        half = np.maximum(right - left, 0) / 2
        y = ((left + right) / 2)[:, None] + half[:, None] * nodes
        inside = following(y / s) * np.exp(-((y - m[:, None]) / t) ** 2 / 2) / (t * np.sqrt(2 * np.pi))
        return half * (inside @ weights) + slope * (expected_excess(m - FAR * s, t) + FAR * s * ndtr(above))

    following = None
    for n in range(levels - 1, 0, -1):
        z = low[n] + (FAR - low[n]) * bend
        following = CubicSpline(z, worth(n, z, following))
    z = net / np.sqrt(var)
    if not drawn and (z < low[0] or (z == low[0] and not rules.ties[0])):
        return 0.0
    return worth(0, np.array([z]), following)[0]
