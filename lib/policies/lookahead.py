"""Kernels of the policies that look at the whole belief, in plain dense loops (policies: lookahead.py).

In belief (mu, Sigma) forwarding item x moves the mean of item X' by a normal step of standard deviation

    st(x, X') = |X' Sigma x| / sqrt(x Sigma x + noise_var(x)),

and the one-step gain on X' is E (X'.mu + st Z - cost)^+ - (X'.mu - cost)^+ = st f(|X'.mu - cost| / st) with
f(z) = phi(z) - z Phi(-z).  A decision depends on the belief and the item alone, so it is kept until the belief
changes.  The kernels read and fill the same arrays as `kernels.run`: every policy of a simulation meets the
same users, items and noise.

Policies beyond the paper that look at the whole belief, as plain data, and what their kernels read.

    knowledge_gradient   forwards when what one feedback adds to every later item's value outweighs the loss
    scores               the same lookahead on one number only, the item's own score
    information_directed forwards while that lowers squared regret per bit of information
    bayes_ucb            UCB whose bonus is a posterior quantile that rises with time
    phased               explores until the forwards span the items, exploits for a while, explores again
    rollout              UCB, overruled where simulated futures clearly disagree

They run in `simulate.replicate` beside the policies of policies.py.  Formulas: chapter "Policies beyond the paper".
"""
from math import log1p, sqrt
from typing import NamedTuple

import numba
import numpy as np
from scipy.special import ndtri

from lib import streams
from lib.normal import gain
from lib.policies.projection import mean_projection
from lib.policies.rules import DIRECTED, GRADIENT, KINDS, PHASED, QUANTILE, ROLLOUT
from lib.problem import effective_horizon, noise_var as noise_var_

TINY = 1e-9                     # squared length, relative, below which a remainder counts as nothing
GUARD = 2.0                     # standard errors that a rollout must show before it overrules its base policy

jit = numba.njit(nogil=True, cache=True, error_model="numpy")


class World(NamedTuple):
    """What the kernels read of a problem, and futures that rollouts share."""

    items: np.ndarray       # (n, k)
    probs: np.ndarray       # (n,)
    noise_var: np.ndarray   # (n,)
    reach: np.ndarray       # (n,) M(x), the mean projection of a coming item on x
    mu: np.ndarray          # (k,)
    Sigma: np.ndarray       # (k, k)
    cost: float
    gamma: float
    rank: int               # dimension of what the items span
    quantile: np.ndarray    # (horizon,) standard normal quantiles 1 - 1/(n + 1)
    users: np.ndarray       # (F, k) standard normals
    coming: np.ndarray      # (F, H) items
    noise: np.ndarray       # (F, H + 1) standard normals


class Mind(NamedTuple):
    """One policy's belief, and what it remembers."""

    mu: np.ndarray          # (k,)
    Sigma: np.ndarray       # (k, k)
    known: np.ndarray       # (n,) decisions in this belief: 1 forward, 0 discard, -1 not computed yet
    basis: np.ndarray       # (k, k) orthonormal rows: directions explored in this phase
    phase: np.ndarray       # (3,) number of the phase, directions explored, items left to exploit


@jit
def dot(x, y):
    total = 0.0
    for a in range(len(x)):
        total += x[a] * y[a]
    return total


@jit
def along(Sigma, x):
    """Sigma x."""
    out = np.zeros(len(x))
    for a in range(len(x)):
        if x[a] != 0.0:
            for b in range(len(x)):
                out[b] += x[a] * Sigma[a, b]
    return out


@jit
def learn(mu, Sigma, x, y, noise_var):
    """The belief after feedback y on x, in place."""
    h = along(Sigma, x)
    total = max(dot(x, h), 0.0) + noise_var
    if total > 0.0:
        surprise = (y - dot(x, mu)) / total
        for a in range(len(mu)):
            mu[a] += surprise * h[a]
            for b in range(len(mu)):
                Sigma[a, b] -= h[a] * h[b] / total


@jit
def gradient(world, mu, Sigma, i, enough):
    """E over items X' of the one-step gain from forwarding item i; stops once it exceeds `enough`."""
    h = along(Sigma, world.items[i])
    total, gained = max(dot(world.items[i], h), 0.0) + world.noise_var[i], 0.0
    if total <= 0.0:
        return 0.0
    for j in range(len(world.probs)):
        sd = abs(dot(world.items[j], h)) / sqrt(total)
        net = dot(world.items[j], mu) - world.cost
        if world.probs[j] > 0.0 and net * net < 64 * sd * sd:
            gained += world.probs[j] * gain(net, sd)
            if gained > enough:
                break
    return gained


@jit
def directed(world, mu, Sigma, alpha, known):
    """Fill `known` with the items whose forwarding lowers the ratio of squared regret to information."""
    n = len(world.probs)
    loss, info, regret, learned = np.empty(n), np.empty(n), 0.0, 0.0
    for i in range(n):
        var = max(dot(world.items[i], along(Sigma, world.items[i])), 0.0)
        loss[i] = world.cost - dot(world.items[i], mu)
        info[i] = log1p(var / world.noise_var[i]) / 2 if var > 0.0 else 0.0
        regret += world.probs[i] * gain(loss[i], sqrt(var))
        known[i] = loss[i] <= 0.0
        if known[i]:
            learned += world.probs[i] * info[i]
    order = np.argsort(np.where(info > 0.0, loss / np.where(info > 0.0, info, 1.0), np.inf), kind="mergesort")
    for i in order:
        if loss[i] <= 0.0:
            continue
        if info[i] <= 0.0 or not 2 * learned * loss[i] < alpha * regret * info[i]:
            break
        known[i] = 1
        regret, learned = regret + world.probs[i] * loss[i], learned + world.probs[i] * info[i]


@jit
def explores(world, mind, i):
    """Phased exploration: is item i a new direction of this phase?  Takes it into the basis if so."""
    rest, found = world.items[i].copy(), mind.phase[1]
    for _ in range(2):                                         # twice, against rounding
        for d in range(found):
            share = dot(mind.basis[d], rest)
            for a in range(len(rest)):
                rest[a] -= share * mind.basis[d, a]
    left = dot(rest, rest)
    if left <= TINY * dot(world.items[i], world.items[i]):
        return False
    for a in range(len(rest)):
        mind.basis[found, a] = rest[a] / sqrt(left)
    mind.phase[1] = found + 1
    return True


@jit
def _phased(world, mind, i, alpha, net):
    """Explore until the phase's forwards span the items, then exploit alpha times the phase's number of items."""
    if mind.phase[1] < world.rank:
        go = explores(world, mind, i) or net >= 0.0
        if mind.phase[1] == world.rank:
            mind.phase[2] = int(np.ceil(alpha * mind.phase[0]))
    else:
        go = net >= 0.0
        mind.phase[2] -= 1
    if mind.phase[1] == world.rank and mind.phase[2] <= 0:
        mind.phase[0], mind.phase[1] = mind.phase[0] + 1, 0
    return go


@jit
def optimistic(world, mu, Sigma, i, alpha):
    """UCB's rule."""
    x = world.items[i]
    return dot(x, mu) + alpha * sqrt(max(dot(x, along(Sigma, x)), 0.0)) >= world.cost


@jit
def follow(world, mu, Sigma, alpha, f, theta):
    """What UCB earns on future f of the user theta, from the belief (mu, Sigma), which it overwrites."""
    reward, discount = 0.0, 1.0
    for m in range(world.coming.shape[1]):
        i = world.coming[f, m]
        discount *= world.gamma
        if optimistic(world, mu, Sigma, i, alpha):
            worth = dot(world.items[i], theta)
            reward += discount * (worth - world.cost)
            learn(mu, Sigma, world.items[i], worth + sqrt(world.noise_var[i]) * world.noise[f, m + 1], world.noise_var[i])
    return reward


@jit
def root(Sigma):
    """L with L L' = Sigma, by Cholesky; directions of no variance are left out."""
    L, k = np.zeros(Sigma.shape), len(Sigma)
    for a in range(k):
        left = Sigma[a, a] - dot(L[a, :a], L[a, :a])
        if left > TINY * Sigma[a, a]:
            L[a, a] = sqrt(left)
            for b in range(a + 1, k):
                L[b, a] = (Sigma[b, a] - dot(L[b, :a], L[a, :a])) / L[a, a]
    return L


@jit
def _rollout(world, mu, Sigma, i, alpha, futures):
    """UCB's decision, unless `futures` sampled futures show the other to be better by GUARD standard errors."""
    base, L, x = optimistic(world, mu, Sigma, i, alpha), root(Sigma), world.items[i]
    mean, square = 0.0, 0.0
    for f in range(futures):
        theta = mu + along(L.T, world.users[f])
        after_mu, after_Sigma = mu.copy(), Sigma.copy()
        worth = dot(x, theta)
        learn(after_mu, after_Sigma, x, worth + sqrt(world.noise_var[i]) * world.noise[f, 0], world.noise_var[i])
        better = (worth - world.cost + follow(world, after_mu, after_Sigma, alpha, f, theta)
                  - follow(world, mu.copy(), Sigma.copy(), alpha, f, theta))
        mean, square = mean + better, square + better * better
    mean /= futures
    error = sqrt(max(square / futures - mean * mean, 0.0) / (futures - 1))
    return mean >= -GUARD * error if base else mean > GUARD * error


@jit
def decide(world, mind, kind, alpha, futures, i, n):
    """Does the policy forward item i, the n-th to arrive (from 0)?"""
    net = dot(world.items[i], mind.mu) - world.cost
    if kind == PHASED:
        return _phased(world, mind, i, alpha, net)
    if kind == QUANTILE:
        return optimistic(world, mind.mu, mind.Sigma, i, alpha * world.quantile[n])
    if mind.known[i] < 0:
        ahead = alpha * world.gamma / (1 - world.gamma)
        if kind == DIRECTED:
            directed(world, mind.mu, mind.Sigma, alpha, mind.known)
        elif kind == ROLLOUT:
            mind.known[i] = _rollout(world, mind.mu, mind.Sigma, i, alpha, futures)
        elif net > 0.0 or alpha == 0.0:
            mind.known[i] = net > 0.0
        elif kind == GRADIENT:
            mind.known[i] = ahead * gradient(world, mind.mu, mind.Sigma, i, -net / ahead) > -net
        else:
            var = max(dot(world.items[i], along(mind.Sigma, world.items[i])), 0.0)
            sd = var / sqrt(var + world.noise_var[i]) if var > 0.0 else 0.0
            mind.known[i] = ahead * world.reach[i] * gain(net, sd) > -net
    return mind.known[i] == 1


@jit
def run(world, kinds, alphas, futures, stream, rewards, decisions):
    """Every policy on every replication of `stream`: fills rewards (P, R) and decisions (P, R, horizon)."""
    n, k = world.items.shape
    mind = Mind(np.empty(k), np.empty((k, k)), np.empty(n, np.int8), np.empty((k, k)), np.empty(3, np.int64))
    for p in range(len(kinds)):
        for r in range(rewards.shape[1]):
            mind.mu[:], mind.Sigma[:], rewards[p, r] = world.mu, world.Sigma, 0.0
            mind.known[:] = -1
            mind.phase[0], mind.phase[1], mind.phase[2] = 1, 0, 0
            for t in range(decisions.shape[2]):
                i = stream.items[r, t]
                decisions[p, r, t] = decide(world, mind, kinds[p], alphas[p], futures[p], i, t)
                if decisions[p, r, t]:
                    rewards[p, r] += stream.pay[r, t]
                    learn(mind.mu, mind.Sigma, world.items[i], stream.feedback[r, t], world.noise_var[i])
                    mind.known[:] = -1


FUTURES = 40            # purpose of the stream that rollouts sample from
REST = 0.02             # discounted weight at which a rollout stops


def make_world(problem, policies, horizon):
    """The kernels' World of a problem."""
    used, k = problem.probs > 0, len(problem.mu)
    count = max([policy.futures for policy in policies], default=0)
    length = effective_horizon(problem.gamma, REST) if count else 0
    rng = streams.generator(0, FUTURES)
    return World(
        problem.items, problem.probs, noise_var_(problem), mean_projection(problem), problem.mu, problem.Sigma,
        problem.cost, problem.gamma, int(np.linalg.matrix_rank(problem.items[used])),
        ndtri(1 - 1 / (np.arange(horizon) + 2)), rng.standard_normal((count, k)),
        np.searchsorted(streams.cumulative(problem.probs), rng.random((count, length)), side="right"),
        rng.standard_normal((count, length + 1)))


def make_runner(problem, policies, horizon):
    """A function (stream, rewards, decisions) that lets whole-belief policies meet a stream and fills the arrays.

    Parameters
    ----------
    problem : Problem
    policies : sequence of Policy
        Of the kinds made in this module.
    horizon : int
    """
    world = make_world(problem, policies, horizon)
    kinds = np.array([KINDS[policy.kind] for policy in policies])
    alphas = np.array([policy.alpha for policy in policies])
    futures = np.array([policy.futures for policy in policies])
    return lambda stream, rewards, decisions: run(world, kinds, alphas, futures, stream, rewards, decisions)
