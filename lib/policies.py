"""The policies, as plain data, and their compilation into the arrays that the simulation's kernels read.

Every policy forwards item x when mean + bonus * sd exceeds the cost, with mean = x.mu and
sd = sqrt(x Sigma x); they differ in the bonus and in what they do at equality (paper, sections 3.2 to 4).

    exploit      0                                           forwards at equality
    ucb          alpha                                       forwards at equality
    thompson     a standard normal, drawn for each item
    dtd_ucb      alpha M(x), M(x) = x.E[X] / x.x
    dtd_dp       minus the standardised net mean at which the single-feature problem breaks even
"""
from typing import NamedTuple

import numpy as np

from lib.kernels import INDEX, TABLE, THOMPSON, Rules
from lib.problem import as_scalar

ALPHAS = np.logspace(-1, 1, 10)   # the values over which the paper tunes


class Policy(NamedTuple):
    """A policy's name and parameters; made by the functions below."""

    kind: str             # "exploit", "ucb", "thompson", "dtd_ucb", "dtd_dp"
    alpha: float = 0.0    # weight of exploration, nonnegative
    noise: str = "basis"  # of dtd_dp: noise of the current item, "basis" or "model"


def exploit():
    """Forward iff x.mu >= cost: no exploration (paper, section 4)."""
    return Policy("exploit")


def ucb(alpha):
    """Forward iff x.mu + alpha sqrt(x Sigma x) >= cost (paper, section 4)."""
    return Policy("ucb", _weight(alpha))


def thompson():
    """Forward iff theta.x > cost for theta drawn from the posterior (paper, section 4).

    theta.x is drawn instead of theta: it is N(x.mu, x Sigma x), the same law.
    """
    return Policy("thompson")


def dtd_ucb(alpha):
    """Forward iff x.mu + alpha M(x) sqrt(x Sigma x) > cost (paper, Algorithm 3)."""
    return Policy("dtd_ucb", _weight(alpha))


def _weight(alpha):
    alpha = as_scalar("alpha", alpha)
    if alpha < 0:
        raise ValueError(f"alpha is {alpha}: a weight of exploration is nonnegative")
    return alpha


def label(policy):
    """A policy's name for tables and legends.

    Examples
    --------
    >>> label(ucb(.5))
    'UCB, alpha = 0.5'
    """
    name = {"exploit": "Exploitation", "ucb": "UCB", "thompson": "Thompson sampling",
            "dtd_ucb": "DTD-UCB", "dtd_dp": "DTD-DP"}[policy.kind]
    noise = ", noise of the model" if policy.kind == "dtd_dp" and policy.noise == "model" else ""
    return name + noise + (f", alpha = {policy.alpha:.4g}" if policy.kind in ("ucb", "dtd_ucb", "dtd_dp") else "")


def projections(problem):
    """G(. | x) for every item x: the law of the projection x.X / x.x of a coming item X (paper, section 3.2).

    Returns
    -------
    list of (magnitudes, probs)
        For each item, the distinct magnitudes in increasing order and their probabilities.  An item
        without features projects everything to 0, as does an item that is orthogonal to all others.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1, 0], [1, 1]], [.5, .5], [0, 0], [[1, 0], [0, 1]], 1, .2, .9)
    >>> [x.tolist() for x, _ in projections(problem)]
    [[1.0], [0.5, 1.0]]
    """
    inner = problem.items @ problem.items.T
    norms = inner.diagonal()
    laws = []
    for row, norm in zip(inner, norms):
        size = np.round(row / norm, 12) if norm > 0 else np.zeros(len(row))
        x, where = np.unique(size, return_inverse=True)
        laws.append((x, np.bincount(where, problem.probs)))
    return laws


def mean_projection(problem):
    """(n,) M(x) = x.E[X] / x.x, the mean of G(. | x); 0 for an item without features (paper, section 3.3)."""
    norms = (problem.items**2).sum(axis=1)
    return np.divide(problem.items @ (problem.probs @ problem.items), norms, np.zeros(len(norms)), where=norms > 0)


def compile_rules(problem, policies):
    """The kernels' Rules for a sequence of policies on `problem`.

    Raises
    ------
    ValueError
        When there is no policy, or one is not a Policy of a known kind.
    """
    policies = list(policies)
    if not policies:
        raise ValueError("policies is empty: give at least one")
    for policy in policies:
        if not isinstance(policy, Policy) or policy.kind not in _KINDS:
            raise ValueError(f"policies holds {policy!r}: use the functions of lib.policies")
    ones, n = np.ones(len(problem.items)), len(problem.items)
    scale = {"ucb": ones, "dtd_ucb": mean_projection(problem)}
    bonus = np.array([policy.alpha * scale.get(policy.kind, 0 * ones) for policy in policies])
    return Rules(kind=np.array([_KINDS[policy.kind] for policy in policies]),
                 ties=np.array([policy.kind in ("exploit", "ucb") for policy in policies]),
                 bonus=bonus, row=np.zeros((len(policies), n), np.int64),
                 table=np.zeros((1, 2)), log_var=np.zeros(1), step=1.0)


_KINDS = {"exploit": INDEX, "ucb": INDEX, "thompson": THOMPSON, "dtd_ucb": INDEX, "dtd_dp": TABLE}
