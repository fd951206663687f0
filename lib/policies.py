"""The policies, as plain data, and their compilation into the arrays that the simulation's kernels read.

Every policy forwards item x when mean + bonus * sd exceeds the cost, with mean = x.mu and
sd = sqrt(x Sigma x); they differ in the bonus and in what they do at equality (paper, sections 3.2 to 4).

    exploit      0                                           forwards at equality
    ucb          alpha                                       forwards at equality
    thompson     a standard normal, drawn for each item
    dtd_ucb      alpha M(x), M(x) = x.E[X] / x.x
    dtd_dp       minus the standardised net mean at which forwarding breaks even in the single-feature problem
                 of the item's direction, a function of the precision: tabulated

The table of dtd_dp runs over steps of STEP in log precision, from the prior's to what REACH/-log(gamma) items
add.  Beyond, the break-even net mean is inversely proportional to the precision: with little left to
learn it is that of a random walk with steps in this proportion.
"""
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from lib import dp
from lib.problem import as_scalar, noise_var
from lib.scene import INDEX, TABLE, THOMPSON, Rules

STEP, REACH = 0.1, 6.0
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


def dtd_dp(alpha=1.0, noise="basis"):
    """Forward iff x.mu + alpha E > cost, E the single-feature exploration benefit (paper, Algorithm 2).

    Parameters
    ----------
    alpha : float
        Factor of the exploration benefit, nonnegative.
    noise : {"basis", "model"}
        Noise variance of the single-feature problem: noise_sd^2, as the paper's change of basis implies, or
        I(x) noise_sd^2, what feedback on the item really has.
    """
    if noise not in ("basis", "model"):
        raise ValueError(f'noise is {noise!r}: it must be "basis" or "model"')
    return Policy("dtd_dp", _weight(alpha), noise)


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
    inner = (problem.items * (problem.probs[:, None] * problem.items).sum(axis=0)).sum(axis=1)
    return np.divide(inner, norms, np.zeros(len(norms)), where=norms > 0)


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
    bonus, tables = np.zeros((len(policies), len(problem.items))), {}
    row = np.zeros(bonus.shape, int)
    for p, policy in enumerate(policies):
        if policy.kind == "dtd_dp":
            row[p] = [tables.setdefault(key, len(tables)) for key in _directions(problem, policy)]
        elif policy.kind in ("ucb", "dtd_ucb"):
            bonus[p] = policy.alpha * (mean_projection(problem) if policy.kind == "dtd_ucb" else 1)
    kept = [_breakeven(*key[1:]) for key in tables] or [np.zeros(2)]
    length = max(len(thresholds) for thresholds in kept)
    return Rules(kind=np.array([_KINDS[policy.kind] for policy in policies]),
                 ties=np.array([policy.kind in ("exploit", "ucb") for policy in policies]), bonus=bonus, row=row,
                 table=-np.array([_extend(thresholds, length) for thresholds in kept]),
                 log_var=np.array([key[0] for key in tables] or [0.0]), step=STEP)


def _directions(problem, policy):
    """For each item the key of its break-even table: (log prior variance, then the arguments of _breakeven)."""
    var = np.einsum("ij,jk,ik->i", problem.items, problem.Sigma, problem.items)
    noise = noise_var(problem) if policy.noise == "model" else np.full(len(var), problem.noise_sd**2)
    for (x, probs), v, scale in zip(projections(problem), np.maximum(var, 0), noise):
        prec = scale / v if v > 0 else 1.0
        yield np.log(v) if v > 0 else 0.0, x.tobytes(), probs.tobytes(), problem.gamma, prec, policy.alpha * (v > 0)


def _extend(thresholds, length):
    """Thresholds continued by their tail law to `length` points."""
    return np.append(thresholds, thresholds[-1] * np.exp(-STEP / 2 * np.arange(1, length - len(thresholds) + 1)))


@lru_cache(maxsize=4096)
def _breakeven(x, probs, gamma, prec, alpha):
    """Standardised net means at which forwarding breaks even, at precisions prec exp(STEP n), noise 1."""
    x, probs = np.frombuffer(x), np.frombuffer(probs)
    reach = REACH / -np.log(gamma) * max(x.max() ** 2, 1.0)
    grid = prec * np.exp(STEP * np.arange(2 + int(np.log1p(reach / prec) / STEP)))
    if alpha == 0:
        return np.zeros(len(grid))
    return dp.boundary(dp.solve(x, probs, gamma, 1.0, 1 / prec, certify=False), alpha, grid)


_KINDS = {"exploit": INDEX, "ucb": INDEX, "thompson": THOMPSON, "dtd_ucb": INDEX, "dtd_dp": TABLE}
