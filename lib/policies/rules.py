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
from typing import NamedTuple

import numpy as np

from lib.problem import as_scalar

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


LAWS = ("euclid", "prior", "always", "own")
NAMES = {"exploit": "Exploitation", "ucb": "UCB", "thompson": "Thompson sampling", "dtd_ucb": "DTD-UCB",
         "dtd_dp": "DTD-DP", "knowledge_gradient": "Knowledge gradient", "scores": "Lookahead on scores",
         "directed": "Information-directed", "bayes_ucb": "Bayes-UCB", "phased": "Phased exploration",
         "rollout": "Rollout"}

GRADIENT, SCORES, DIRECTED, QUANTILE, PHASED, ROLLOUT = range(6)

KINDS = {"knowledge_gradient": GRADIENT, "scores": SCORES, "directed": DIRECTED,
         "bayes_ucb": QUANTILE, "phased": PHASED, "rollout": ROLLOUT}


def knowledge_gradient(alpha=1.0):
    """Forward iff alpha gamma/(1-gamma) E_X'[st f(|X'.mu - cost|/st)] > cost - x.mu (Ryzhov, Powell and Frazier 2012).

    st = |X' Sigma x| / sqrt(x Sigma x + noise_var(x)) is the step of X'.mu that feedback on x brings, and
    f(z) = phi(z) - z Phi(-z).  Exact if x were the last item to learn from.

    Examples
    --------
    >>> knowledge_gradient().alpha
    1.0
    """
    return Policy("knowledge_gradient", weight(alpha))


def scores(alpha=1.0):
    """Forward iff alpha gamma/(1-gamma) M(x) st f(|x.mu - cost|/st) > cost - x.mu (after Zhang, Xu and Callan 2003).

    st = x Sigma x / sqrt(x Sigma x + noise_var(x)); a coming item counts as x scaled by its projection on x.
    """
    return Policy("scores", weight(alpha))


def information_directed(alpha=1.0):
    """Information-directed sampling with contexts, made deterministic (after Russo and Van Roy 2018).

    Items are taken in increasing order of loss per information, (cost - x.mu) / I(x) with
    I(x) = log(1 + x Sigma x / noise_var(x))/2, as long as it stays below alpha R/(2 G): R is the expected
    regret of one arrival and G its expected information under the items taken so far.
    """
    return Policy("directed", weight(alpha))


def bayes_ucb(alpha=1.0):
    """Forward the n-th item iff x.mu + alpha q_n sqrt(x Sigma x) >= cost, q_n the normal quantile of 1 - 1/(n + 1).

    After Kaufmann, Cappe and Garivier (2012); the first item, whose quantile would be that of 0, gets the median.
    """
    return Policy("bayes_ucb", weight(alpha))


def phased(alpha=1.0):
    """Phased exploration and greedy exploitation (after Rusmevichientong and Tsitsiklis 2010).

    Phase m forwards every arriving item that is linearly independent of those already explored in the phase,
    until they span all items, and then forwards iff x.mu >= cost for the next alpha m items.  Items cannot be
    chosen here, so the basis is the first that arrives; estimates are posterior means.
    """
    return Policy("phased", weight(alpha))


def rollout(alpha, futures=200):
    """UCB with weight alpha, overruled when the other decision is better by two standard errors over `futures`.

    A future is a user drawn from the belief, items and noise; UCB follows on both branches.

    Raises
    ------
    ValueError
        Unless `futures` is an integer of at least 2.
    """
    if isinstance(futures, bool) or not isinstance(futures, (int, np.integer)) or futures < 2:
        raise ValueError(f"futures is {futures!r}: a standard error needs an integer of at least 2")
    return Policy("rollout", weight(alpha), futures=int(futures))
