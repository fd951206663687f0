"""The policies, as plain data, and their compilation into the arrays that the simulation's kernels read.

Every policy forwards item x when mean + bonus * sd exceeds the cost, with mean = x.mu and
sd = sqrt(x Sigma x); they differ in the bonus and in what they do at equality (paper, sections III-B to IV).

    exploit      0                                           forwards at equality
    ucb          alpha                                       forwards at equality
    thompson     a standard normal, drawn for each item
    dtd_ucb      alpha M(x), M(x) = x.E[X] / x.x, or x Sigma E[X] / x Sigma x
    dtd_dp       alpha E / sd, E the exploration benefit of the single-feature problem in the item's direction

E / sd depends on the standardised net mean z = (mean - cost)/sd and on the precision noise_var/var alone, so
one table per direction serves every cost, user and alpha.  It runs over steps of STEP in log precision, from
the prior's to what REACH/-log(gamma) items add, and over steps of FINE in z, counted from where the
problem's value leaves zero, because E has a kink there.  Further below than DEEP it is taken as 0.
"""
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import NamedTuple

import numba
import numpy as np

from lib import dp
from lib.problem import as_scalar, noise_var
from lib.scene import INDEX, TABLE, THOMPSON, Rules

STEP, REACH, FINE, DEEP = 0.1, 6.0, 0.05, 3.2
ALPHAS = np.logspace(-1, 1, 10)   # the values over which the paper tunes


class Policy(NamedTuple):
    """A policy's name and parameters; made by the functions below."""

    kind: str             # "exploit", "ucb", "thompson", "dtd_ucb", "dtd_dp", or one of lookahead.KINDS
    alpha: float = 0.0    # weight of exploration, nonnegative
    noise: str = "basis"  # of dtd_dp: noise of the current item, "basis" or "model"
    law: str = "euclid"   # of dtd_dp and dtd_ucb: how coming items project on the current one, see LAWS
    futures: int = 0      # of rollout: how many it samples


def exploit():
    """Forward iff x.mu >= cost: no exploration (paper, section IV)."""
    return Policy("exploit")


def ucb(alpha):
    """Forward iff x.mu + alpha sqrt(x Sigma x) >= cost (paper, section IV)."""
    return Policy("ucb", weight(alpha))


def thompson():
    """Forward iff theta.x > cost for theta drawn from the posterior (paper, section IV).

    theta.x is drawn instead of theta: it is N(x.mu, x Sigma x), the same law.
    """
    return Policy("thompson")


def dtd_ucb(alpha, law="euclid"):
    """Forward iff x.mu + alpha M(x) sqrt(x Sigma x) > cost (paper, Algorithm 3); law as `projections`."""
    return Policy("dtd_ucb", weight(alpha), law=_among("law", law, LAWS))


def dtd_dp(alpha=1.0, noise="basis", law="euclid"):
    """Forward iff x.mu + alpha E > cost, E the single-feature exploration benefit (paper, Algorithm 2).

    Parameters
    ----------
    alpha : float
        Factor of the exploration benefit, nonnegative.
    noise : {"basis", "model"}
        Noise variance of the single-feature problem: noise_sd^2, as the paper's change of basis implies, or
        I(x) noise_sd^2, what feedback on the item really has.
    law : str
        The law of the coming magnitudes, as `projections`.
    """
    return Policy("dtd_dp", weight(alpha), _among("noise", noise, ("basis", "model")), _among("law", law, LAWS))


def gittins(alpha=1.0):
    """Forward iff the item's Gittins index exceeds the cost, as if no other item ever came (alpha = 1)."""
    return dtd_dp(alpha, "model", "always")


def clusters(alpha=1.0):
    """Every distinct item its own cluster with its own preference, x.theta (Zhao and Frazier 2014).

    Optimal at alpha = 1 where the clusters' preferences are independent.
    """
    return dtd_dp(alpha, "model", "own")


def weight(alpha):
    """alpha as a nonnegative float, or ValueError."""
    alpha = as_scalar("alpha", alpha)
    if alpha < 0:
        raise ValueError(f"alpha is {alpha}: a weight of exploration is nonnegative")
    return alpha


def _among(name, value, known):
    if value not in known:
        raise ValueError(f"{name} is {value!r}: it must be one of {', '.join(map(repr, known))}")
    return value


def label(policy):
    """A policy's name for tables and legends.

    Examples
    --------
    >>> label(ucb(.5))
    'UCB, alpha = 0.5'
    """
    name, special = NAMES[policy.kind], {"always": "Gittins, x = 1", "own": "Hard clusters"}
    if policy.kind == "dtd_dp" and policy.noise == "model":
        name = special.get(policy.law, name + ", noise of the model")
    if policy.law != "euclid" and name not in special.values():
        name += f", law {policy.law}"
    if policy.kind == "rollout":
        name += f" of {policy.futures}"
    return name + (f", alpha = {policy.alpha:.4g}" if policy.kind not in ("exploit", "thompson") else "")


def projections(problem, law="euclid"):
    """G(. | x) for every item x: the law of the projection of a coming item X on x (paper, section III-B).

    Parameters
    ----------
    problem : Problem
    law : {"euclid", "prior", "always", "own"}
        "euclid": x.X / x.x, the paper's.  "prior": x Sigma X / x Sigma x, the regression of X.theta on x.theta
        under the prior, 0 where negative.  "always": 1.  "own": 1 if X = x, else 0.

    Returns
    -------
    list of (magnitudes, probs)
        For each item, the distinct magnitudes in increasing order and their probabilities.  An item
        without features (of no variance) projects everything to 0, as does an item orthogonal to all others.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1, 0], [1, 1]], [.5, .5], [0, 0], [[1, 0], [0, 1]], 1, .2, .9)
    >>> [x.tolist() for x, _ in projections(problem)]
    [[1.0], [0.5, 1.0]]
    """
    laws = []
    for row in _sizes(problem, law):
        x, where = np.unique(np.round(row, 12), return_inverse=True)
        laws.append((x, np.bincount(where, problem.probs)))
    return laws


def _sizes(problem, law):
    """(n, n) the projection on item i of item j."""
    n = len(problem.items)
    if law in ("always", "own"):
        return np.ones((n, n)) if law == "always" else np.eye(n)
    inner = problem.items @ (problem.items if law == "euclid" else problem.items @ problem.Sigma).T
    norms = inner.diagonal()[:, None]
    return np.maximum(np.divide(inner, norms, np.zeros((n, n)), where=norms > 0), 0)


def mean_projection(problem, law="euclid"):
    """(n,) M(x), the mean of G(. | x) (paper, section III-C); for "euclid" x.E[X] / x.x, in one pass."""
    if law != "euclid":
        return _sizes(problem, law) @ problem.probs
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
        bonus[p] = policy.alpha * (mean_projection(problem, policy.law) if policy.kind == "dtd_ucb" else 1)
        if policy.kind == "dtd_dp":
            row[p] = [keys.setdefault(key, len(keys)) for key in _directions(problem, policy.noise, policy.law)]
    with ThreadPoolExecutor(numba.get_num_threads()) as pool:
        tables = list(pool.map(lambda key: _benefits(*key[1:]), keys)) or [(np.zeros(2), np.zeros((2, 2)))]
    shape = tuple(np.max([benefit.shape for _, benefit in tables], axis=0))
    return Rules(
        kind=np.array([_KINDS[policy.kind] for policy in policies]),
        ties=np.array([policy.kind in ("exploit", "ucb") for policy in policies]), bonus=bonus, row=row,
        last=np.array([len(kink) - 1 for kink, _ in tables]), log_var=np.array([key[0] for key in keys] or [0.0]),
        kink=np.array([np.pad(kink, (0, shape[0] - len(kink))) for kink, _ in tables]),
        benefit=np.array([np.pad(e, [(0, n - m) for n, m in zip(shape, e.shape)]) for _, e in tables]),
        steps=np.array([STEP, FINE, DEEP]))


def _directions(problem, noise, law):
    """For each item the key of its table: (log prior variance, then the arguments of _benefits)."""
    var = np.einsum("ij,jk,ik->i", problem.items, problem.Sigma, problem.items)
    noise = noise_var(problem) if noise == "model" else np.full(len(var), problem.noise_sd**2)
    for (x, probs), v, scale in zip(projections(problem, law), var, noise):
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


LAWS = ("euclid", "prior", "always", "own")
NAMES = {"exploit": "Exploitation", "ucb": "UCB", "thompson": "Thompson sampling", "dtd_ucb": "DTD-UCB",
         "dtd_dp": "DTD-DP", "knowledge_gradient": "Knowledge gradient", "scores": "Lookahead on scores",
         "directed": "Information-directed", "bayes_ucb": "Bayes-UCB", "phased": "Phased exploration",
         "rollout": "Rollout"}
_KINDS = {"exploit": INDEX, "ucb": INDEX, "thompson": THOMPSON, "dtd_ucb": INDEX, "dtd_dp": TABLE}
