"""Policies whose belief allows for drift and for several normal parts: a bank of Kalman filters for each user.

Part j has the weight w_j and believes theta ~ N(mu_j, Sigma_j).  Feedback updates every part as lib.posterior has it and
multiplies its weight by the density that it gave to that feedback.  Between two arrivals each part ages,

    mu_j -> m_j + sqrt(1 - drift) (mu_j - m_j),    Sigma_j -> (1 - drift) Sigma_j + drift S_j,

m_j and S_j its prior.  That is the exact posterior under drift and with kinds of users (Kalman 1960; Sorenson and Alspach
1971); Student's tails are approximated by PARTS quantiles, and noise counts as normal.

Any policy of the registry that asks for mean and standard deviation alone, and the knowledge gradient, act on the mixture's
mean and covariance.  The knowledge gradient counts what is learned with gamma sqrt(1 - drift) in the place of gamma, because
it is forgotten that fast.  Plain loops, one user after the other: `lib.simulate.replications` is the engine for one part at rest.
"""
from typing import NamedTuple

import numpy as np

from lib.bound.told import age
from lib.compiled import jit, put
from lib.policies import compile_rules, exploit, lookahead
from lib.policies.rules import GRADIENT, INDEX, TABLE, THOMPSON, as_policies, entry
from lib.posterior import COARSE, compile_problem, dot, noise_share, project, shrink
from lib.simulate import kernels
from lib.simulate.replications import _stream
from lib.simulate.truths import as_truth, parts


class Bank(NamedTuple):
    """The prior of a bank of filters."""

    weights: np.ndarray     # (m,)
    means: np.ndarray       # (m, k)
    Sigmas: np.ndarray      # (m, k, k)
    drift: float


class Minds(NamedTuple):
    """A bank's belief about one user, overwritten as it learns, and what it says of the item at hand."""

    weights: np.ndarray     # (m,)
    mu: np.ndarray          # (m, k)
    Sigma: np.ndarray       # (m, k, k)
    gain: np.ndarray        # (m, k) Sigma x
    mean: np.ndarray        # (m,) x.mu
    var: np.ndarray         # (m,) x Sigma x


@jit
def start(bank, minds):
    """The prior."""
    put(bank.weights, minds.weights)
    put(bank.means, minds.mu)
    put(bank.Sigmas, minds.Sigma)


@jit
def pass_on(bank, minds):
    """One arrival later, without feedback."""
    keep = np.sqrt(1 - bank.drift)
    for j in range(len(minds.mu)):
        for a in range(minds.mu.shape[1]):
            minds.mu[j, a] = bank.means[j, a] + keep * (minds.mu[j, a] - bank.means[j, a])
        age(minds.Sigma[j], bank.Sigmas[j], bank.drift)


@jit
def look(instance, minds, i):
    """Mean and variance of item i's worth; leaves those of every part."""
    mean = var = 0.0
    for j in range(len(minds.mu)):
        minds.var[j] = project(instance, i, minds.Sigma[j], minds.gain[j])
        minds.mean[j] = dot(instance, i, minds.mu[j])
        mean += minds.weights[j] * minds.mean[j]
    for j in range(len(minds.mu)):
        var += minds.weights[j] * (minds.var[j] + (minds.mean[j] - mean)**2)
    return mean, var


@jit
def hear(instance, minds, i, y):
    """The belief after feedback y on item i; needs what `look` leaves."""
    if len(minds.mu) > 1:
        for j in range(len(minds.mu)):
            total = minds.var[j] + instance.noise_var[i]
            minds.weights[j] = np.log(minds.weights[j]) - 0.5 * (np.log(total) + (y - minds.mean[j])**2 / total)
        most = minds.weights.max()
        for j in range(len(minds.mu)):
            minds.weights[j] = max(np.exp(minds.weights[j] - most), 1e-300)      # so that its logarithm stays finite
        put(minds.weights / minds.weights.sum(), minds.weights)
    for j in range(len(minds.mu)):
        total = minds.var[j] + instance.noise_var[i]
        for a in range(minds.mu.shape[1]):
            minds.mu[j, a] += minds.gain[j, a] * (y - minds.mean[j]) / total
        shrink(minds.Sigma[j], minds.gain[j], total)


@jit
def together(minds):
    """Mean and covariance of the mixture."""
    m, k = minds.mu.shape
    mu, Sigma = np.zeros(k), np.zeros((k, k))
    for j in range(m):
        mu += minds.weights[j] * minds.mu[j]
    for j in range(m):
        off = minds.mu[j] - mu
        for a in range(k):
            for b in range(k):
                Sigma[a, b] += minds.weights[j] * (minds.Sigma[j, a, b] + off[a] * off[b])
    return mu, Sigma


@jit
def teaches(instance, ahead, minds, alpha, i, net, drift):
    """The knowledge gradient's rule in the mixture's mean and covariance."""
    if net > 0.0:                                               # no need of the mixture
        return True
    keep = instance.gamma * np.sqrt(1 - drift)
    belief = (minds.mu[0], minds.Sigma[0]) if len(minds.mu) == 1 else together(minds)
    return lookahead.outweighs(instance, ahead, belief, i, net, alpha * keep / (1 - keep))


@jit
def run(instance, ahead, bank, rules, gradients, stream, rewards, decisions):
    """Every policy on every user of `stream`, where `gradients` (P,) is nan by `rules`, else the knowledge gradient's alpha.

    Eight arguments: a compiled problem has three parts, policies two, and what users meet and what comes out stand alone.
    """
    m, k = bank.means.shape
    minds = Minds(np.empty(m), np.empty((m, k)), np.empty((m, k, k)), np.empty((m, k)), np.empty(m), np.empty(m))
    P, R, horizon = decisions.shape
    for p in range(P):
        for r in range(R):
            start(bank, minds)
            rewards[p, r] = 0.0
            for n in range(horizon):
                if n > 0 and bank.drift > 0.0:
                    pass_on(bank, minds)
                i = stream.items[r, n]
                mean, var = look(instance, minds, i)
                if np.isnan(gradients[p]):
                    go = kernels.forwards(rules, p, i, mean, var, stream.thompson[r, n], instance.cost)
                else:
                    go = teaches(instance, ahead, minds, gradients[p], i, mean - instance.cost, bank.drift)
                decisions[p, r, n] = go
                if go:
                    rewards[p, r] += stream.pay[r, n]
                    hear(instance, minds, i, stream.feedback[r, n])


def play_informed(truth, policies, stream):
    """Policies that believe a truth, on users, items and feedback that are given (`lib.simulate.play` believes a Problem).

    Parameters
    ----------
    truth : Truth
        What the policies believe, which need not be so.
    policies : sequence of Policy
        Of the kinds that ask for mean and standard deviation alone, or knowledge gradients.
    stream : Stream
        What R users meet over a horizon.

    Returns
    -------
    rewards : ndarray (P, R)
    decisions : ndarray (P, R, horizon) of bool

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong, or a policy that looks at the belief in another way.

    Examples
    --------
    >>> from lib.policies import exploit
    >>> from lib.problem import make_problem
    >>> from lib.simulate import make_truth, meet
    >>> truth = make_truth(make_problem([[1]], [1], [1], [[0]], 1, .5, .5), drift=.1)
    >>> play_informed(truth, [exploit()], meet(truth, 2, 2).stream)[0]
    array([[0.375, 0.375]])
    """
    truth, policies = as_truth(truth), as_policies("policies", policies)
    problem, found = truth.problem, [entry(policy).rule for policy in policies]
    for policy, rule in zip(policies, found):
        if rule not in (INDEX, TABLE, THOMPSON, GRADIENT):
            raise ValueError(f"policies holds {policy!r}: a bank of filters has no rule for it")
    if noise_share(problem) < COARSE:
        raise ValueError(f"noise_sd is {problem.noise_sd}: too small for covariance matrices to hold what was learned")
    stream = _stream(problem, stream)
    gradients = np.array([policy.alpha if rule == GRADIENT else np.nan for policy, rule in zip(policies, found)])
    rules = compile_rules(problem, [exploit() if rule == GRADIENT else policy for policy, rule in zip(policies, found)])
    ahead = lookahead.make_lookahead(problem, policies, 1)
    rewards = np.empty((len(policies), len(stream.items)))
    decisions = np.empty(rewards.shape + (stream.items.shape[1],), np.bool_)
    bank = Bank(*(np.ascontiguousarray(part) for part in parts(truth)), truth.drift)
    run(compile_problem(problem), ahead, bank, rules, gradients, stream, rewards, decisions)
    return rewards, decisions
