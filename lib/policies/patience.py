"""Kernels of the patient lookahead: a forward must be worth more than waiting for a better item.

In belief (mu, Sigma) let q_x = P(x.theta > cost), the share of users to whom x should go.  Suppose that from now on every arrival
teaches as much as if only that share of it were forwarded: after m arrivals the covariance is S_m = (Sigma^-1 + m G)^-1 with
G = alpha E[q_X X X' / noise_var(X)].  A user is then worth, in closed form,

    W = sum_m gamma^{m+1} E (X.mu_m - cost)^+,    X.mu_m ~ N(X.mu, X (Sigma - S_m) X),

and after feedback on x, averaged over it, the same with the variance (X S_m x)^2 / (x S_m x + noise_var(x)) more.  With that W,
A_x = x.mu - cost + E W is what a forward of x is worth, and waiting is worth the w that solves w = gamma E max(w, A_X)
(`lib.dp.first_forward`).  Forward iff x.mu > cost or A_x > w.  At alpha = 0 nothing is learned later, as for the knowledge gradient.

Arrivals are taken in blocks whose lengths double.  Where more than FEW items come, a stratified sample of FEW stands for them.
"""
from math import sqrt
from typing import NamedTuple

import numpy as np

from lib import streams
from lib.compiled import jit, put
from lib.dp.bellman import first_value
from lib.normal import excess, tail
from lib.posterior import Instance, compile_problem, dot, project, shrink, stratified

FEW = 64            # items up to which all coming ones are looked at
LATE = .05          # discount from which on all arrivals are one block


class Prospect(NamedTuple):
    """What the rule reads of a problem."""

    sample: Instance        # the items that stand for a coming one; one alone where no policy asks
    blocks: np.ndarray      # (B, 2) arrivals before the mean one of each block, and the sum of their discounts


def blocks(gamma):
    """(B, 2) blocks of arrivals: discounted mean number of arrivals before one of a block, and the sum of their discounts.

    Examples
    --------
    >>> blocks(.5).round(4).tolist()
    [[0.0, 0.5], [1.3333, 0.375], [3.7333, 0.1172], [8.0, 0.0078]]
    """
    found, begin, length = [], 0, 1
    while gamma**begin > LATE:
        m = np.arange(begin, begin + length)
        weights = gamma ** (m + 1.0)
        found.append((m @ weights / max(weights.sum(), 1e-300), weights.sum()))
        begin, length = begin + length, 2 * length
    return np.array(found + [(begin + gamma / (1 - gamma), gamma ** (begin + 1) / (1 - gamma))])


def make_prospect(problem, wanted):
    """The Prospect of a problem; of its likeliest item alone unless `wanted`, because nothing is then asked of it."""
    index = np.flatnonzero(problem.probs > 0) if wanted else np.array([problem.probs.argmax()])
    probs = problem.probs[index] / problem.probs[index].sum()
    if len(index) > FEW:
        index, probs = stratified(problem, FEW, streams.generator(0, streams.Purpose.COMING)), np.full(FEW, 1 / FEW)
    noise = problem.noise if isinstance(problem.noise, str) else problem.noise[index]
    return Prospect(compile_problem(problem._replace(items=problem.items[index], probs=probs, noise=noise)), blocks(problem.gamma))


@jit
def foresee(prospect, alpha, mu, Sigma):
    """S_m of each block (B, k, k), and what of every item's variance is known by then (B, n)."""
    sample, times, S, gain = prospect.sample, prospect.blocks[:, 0], Sigma.copy(), np.empty(len(mu))
    n = len(sample.probs)
    left, known = np.empty((len(times), len(mu), len(mu))), np.empty((len(times), n))
    before, rate, passed = np.empty(n), np.zeros(n), 0.0
    for j in range(n):
        before[j] = project(sample, j, Sigma, gain)
        net = dot(sample, j, mu) - sample.cost
        wanted = tail(-net / sqrt(before[j])) if before[j] > 0.0 else (1.0 if net > 0.0 else 0.0)
        if sample.noise_var[j] > 0.0:
            rate[j] = alpha * wanted * sample.probs[j] / sample.noise_var[j]
    for b in range(len(times)):
        for j in range(n):
            more = (times[b] - passed) * rate[j]
            if more > 0.0:
                shrink(S, gain, project(sample, j, S, gain) + 1 / more)
        passed = times[b]
        put(S, left[b])
        for j in range(n):
            known[b, j] = max(before[j] - project(sample, j, S, gain), 0.0)
    return left, known


@jit
def worth(instance, prospect, foreseen, mu, i):
    """A_x of item i of `instance`."""
    sample, along, total = prospect.sample, np.empty(len(mu)), dot(instance, i, mu) - instance.cost
    left, known = foreseen
    for b in range(len(left)):
        spread = project(instance, i, left[b], along) + instance.noise_var[i]
        for j in range(len(sample.probs)):
            step = dot(sample, j, along)
            told = known[b, j] + (step * step / spread if spread > 0.0 else 0.0)
            total += prospect.blocks[b, 1] * sample.probs[j] * excess(dot(sample, j, mu) - sample.cost, sqrt(told))
    return total


@jit
def waiting(prospect, foreseen, mu):
    """What waiting for the first good item is worth: w = gamma E max(w, A_X)."""
    sample = prospect.sample
    values = np.empty(len(sample.probs))
    for j in range(len(values)):
        values[j] = worth(sample, prospect, foreseen, mu, j)
    return first_value(values, sample.probs, sample.gamma)
