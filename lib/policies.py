"""The policies, as plain data, and their compilation into the arrays that the simulation's kernels read.

Every policy forwards item x when mean + bonus * sd exceeds the cost, with mean = x.mu and
sd = sqrt(x Sigma x); they differ in the bonus and in what they do at equality (paper, sections 3.2 to 4).

    exploit      0                                           forwards at equality
    ucb          alpha                                       forwards at equality
    thompson     a standard normal, drawn for each item
    dtd_ucb      alpha M(x), M(x) = x.E[X] / x.x
    dtd_dp       alpha E / sd, E the exploration benefit of the single-feature problem in the item's direction

E / sd depends on the standardised net mean z = (mean - cost)/sd and on the precision noise_var/var alone, so
one table per direction serves every cost, user and alpha.  It runs over steps of STEP in log precision, from
the prior's to what REACH/-log(gamma) items add, and over steps of FINE in z, counted from where the
problem's value leaves zero, because E has a kink there.  Further below than DEEP it is taken as 0.
"""
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from lib import dp
from lib.problem import as_scalar, noise_var
from lib.scene import INDEX, TABLE, THOMPSON, Rules

STEP, REACH, FINE, DEEP = 0.1, 6.0, 0.05, 3.2
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
    bonus, keys = np.zeros((len(policies), len(problem.items))), {}
    row = np.zeros(bonus.shape, int)
    for p, policy in enumerate(policies):
        bonus[p] = policy.alpha * (mean_projection(problem) if policy.kind == "dtd_ucb" else 1)
        if policy.kind == "dtd_dp":
            row[p] = [keys.setdefault(key, len(keys)) for key in _directions(problem, policy.noise)]
    tables = [_benefits(*key[1:]) for key in keys] or [(np.zeros(2), np.zeros((2, 2)))]
    shape = tuple(np.max([benefit.shape for _, benefit in tables], axis=0))
    return Rules(
        kind=np.array([_KINDS[policy.kind] for policy in policies]),
        ties=np.array([policy.kind in ("exploit", "ucb") for policy in policies]), bonus=bonus, row=row,
        last=np.array([len(kink) - 1 for kink, _ in tables]), log_var=np.array([key[0] for key in keys] or [0.0]),
        kink=np.array([np.pad(kink, (0, shape[0] - len(kink))) for kink, _ in tables]),
        benefit=np.array([np.pad(e, [(0, n - m) for n, m in zip(shape, e.shape)]) for _, e in tables]),
        steps=np.array([STEP, FINE, DEEP]))


def _directions(problem, noise):
    """For each item the key of its table: (log prior variance, then the arguments of _benefits)."""
    var = np.einsum("ij,jk,ik->i", problem.items, problem.Sigma, problem.items)
    noise = noise_var(problem) if noise == "model" else np.full(len(var), problem.noise_sd**2)
    for (x, probs), v, scale in zip(projections(problem), var, noise):
        law = (x.tobytes(), probs.tobytes(), problem.gamma)
        yield (np.log(v), *law, scale / v) if v > 0 else (0.0, b"", b"", 0.0, 0.0)


@lru_cache(maxsize=1024)
def _benefits(x, probs, gamma, prec):
    """Where the value leaves zero, (n,), and E / sd around it, (n, m), at precisions prec exp(STEP n), noise 1."""
    x, probs = np.frombuffer(x), np.frombuffer(probs)
    if not x.any():
        return np.zeros(2), np.zeros((2, 2))
    table = dp.solve(x, probs, gamma, 1.0, 1 / prec, certify=False)
    reach = REACH / -np.log(gamma) * max(x.max() ** 2, 1.0)
    sd = np.exp(-STEP / 2 * np.arange(2 + int(np.log1p(reach / prec) / STEP))) / np.sqrt(prec)
    low, high = np.full(len(sd), -8.0), np.zeros(len(sd))
    for _ in range(16):
        kink = (low + high) / 2
        worth = dp.q_values(table, kink * sd, sd**2)[0] > 1e-9 * sd
        low, high = np.where(worth, low, kink), np.where(worth, kink, high)
    z = high[:, None] + FINE * np.arange(-round(DEEP / FINE), 2 + int(-high.min() / FINE))
    discard, forward = dp.q_values(table, z * sd[:, None], sd[:, None] ** 2)
    return high, np.maximum((forward - discard) / sd[:, None] - z, 0)


_KINDS = {"exploit": INDEX, "ucb": INDEX, "thompson": THOMPSON, "dtd_ucb": INDEX, "dtd_dp": TABLE}
