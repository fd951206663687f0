"""What Theorem 1 gives away, one gift after another, between full observation and the theorem.

Full observation (`lib.bound.relaxations`) sees every feedback and takes one decision an item.  For one item sequence,

    observed   = E sum_n gamma^n (x_n.mu'_n - cost)^+                     one decision, for all features together;
    + alone    : E sum_n gamma^n sum_j (z_nj m'_nj - r_j(x_n))^+          every feature decides for itself, on the same knowledge;
    + told     : the same, m'_nj given also what feature j is told        and it is told of the others' preferences;
    - learning : Theorem 1, where a feature sees only feedback on items that it forwards itself.

mu'_n is the mean of theta given all feedback before item n, m'_nj the same of preference j in the basis.  So

    Theorem 1 = observed + alone + told - learning,

and all four terms are at least 0: (sum of a)^+ <= sum of a^+, and to know more never hurts (Jensen).  The first three are
averages over item sequences, the same for all three.
"""
from typing import NamedTuple

import numpy as np

from lib import streams
from lib.bound import relaxations, theorem
from lib.estimate import sample_mean
from lib.normal import expected_excess
from lib.problem import Estimate, as_count, checked, effective_horizon, noise_var

LONGEST = 2000          # items played out at most
BLOCK = 2**22           # numbers of the covariances that are kept at a time


class Gifts(NamedTuple):
    """Estimates, reward units with the leading gamma; the first three are paired."""

    observed: Estimate      # full observation
    alone: Estimate         # what is added where every feature decides for itself
    told: Estimate          # what is added where it is told of the others' preferences
    total: Estimate         # the sum of the three: at least Theorem 1 with the same charges


def gifts(problem, charges="paper", basis=None, told=1.0, sequences=400, seed=0):
    """What own decisions and the others' preferences add to full observation, on the way to Theorem 1 (not in the paper).

    Parameters
    ----------
    problem : Problem
    charges, basis, told
        As `decomposition` takes them; its noise is "model".
    sequences : int
        Number of item sequences, at least 2; those of `full_observation` with the same seed.
    seed : int

    Returns
    -------
    Gifts

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> one = make_problem([[1]], [1], [0], [[1]], 1, .2, .9)
    >>> found = gifts(one, sequences=2)
    >>> found.alone.mean, found.told.mean
    (0.0, 0.0)
    """
    problem, sequences = checked(problem), as_count("sequences", sequences, 2)
    relaxations.require_noise(problem)
    pieces = theorem.decompose(problem, "model", charges, basis, told)
    turned = problem if basis is None else theorem.in_basis(problem, basis)
    horizon = min(effective_horizon(problem.gamma, 1e-5), LONGEST)
    rng = streams.generator(seed, streams.Purpose.ARRIVALS)
    index = streams.draw_items(problem.probs, rng.random((sequences, horizon)))
    weights = problem.gamma ** np.arange(1, horizon + 1)
    rows = max(BLOCK // len(problem.mu)**2, 1)
    blocks = [played(turned, pieces, index[start:start + rows]) for start in range(0, sequences, rows)]
    one, each = map(np.concatenate, zip(*blocks))
    informed = alone_and_told(problem, pieces, index)
    sums = np.array([one @ weights, each @ weights, informed @ weights])
    last = problem.gamma**horizon
    sums[0] += last * relaxations.hindsight(problem)
    sums[1:] += last * known(problem, pieces)
    steps = [sums[0], sums[1] - sums[0], sums[2] - sums[1], sums[2]]
    return Gifts(*(Estimate(*map(float, sample_mean(step))) for step in steps))


def known(problem, pieces):
    """gamma / (1 - gamma) E sum_j (Z_j eta_j - r_j)^+: what pieces that know their preference earn."""
    sd = np.abs(pieces.x) * np.sqrt(pieces.var + pieces.sd**2)
    worth = expected_excess(pieces.x * pieces.mean - pieces.charge, sd).sum(axis=1)
    return problem.gamma / (1 - problem.gamma) * problem.probs @ worth


def played(turned, pieces, index):
    """Expected gains (sequences, horizon) of one decision an item and of one a feature, all feedback being seen."""
    one, each = np.empty(index.shape), np.empty(index.shape)
    prior, noise = np.diag(turned.Sigma), noise_var(turned)
    net, parts = turned.items @ turned.mu - turned.cost, pieces.x * pieces.mean - pieces.charge
    before = np.einsum("ij,jk,ik->i", turned.items, turned.Sigma, turned.items)
    Sigma = np.repeat(turned.Sigma[None], len(index), axis=0)
    for n, now in enumerate(index.T):
        x = turned.items[now]
        seen = np.einsum("rjk,rk->rj", Sigma, x)
        left = np.maximum(np.einsum("rj,rj->r", x, seen), 0.0)
        one[:, n] = expected_excess(net[now], np.sqrt(np.maximum(before[now] - left, 0.0)))
        learned = np.sqrt(np.maximum(prior - np.diagonal(Sigma, axis1=1, axis2=2), 0.0))
        each[:, n] = expected_excess(parts[now], np.abs(x) * learned).sum(axis=1)
        Sigma -= seen[:, :, None] * (seen / (left + noise[now])[:, None])[:, None, :]
    return one, each


def alone_and_told(problem, pieces, index):
    """Expected gains (sequences, horizon) of one decision a feature, each told of the others and seeing all feedback."""
    out, info = np.empty(index.shape), pieces.info / problem.noise_sd**2
    total, parts = pieces.var + pieces.sd**2, pieces.x * pieces.mean - pieces.charge
    collected = np.zeros((len(index), len(total)))
    for n, now in enumerate(index.T):
        left = pieces.var / (1 + collected * pieces.var)
        sd = np.abs(pieces.x[now]) * np.sqrt(np.maximum(total - left, 0.0))
        out[:, n] = expected_excess(parts[now], sd).sum(axis=1)
        collected += info[now]
    return out
