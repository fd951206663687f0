"""The simulation's inner loops for short dense items: WIDTH users at once, one in each lane.

The same beliefs and rules as kernels.py, for problems whose features form one small group.  Where a product has
six terms the time goes into waiting, not into arithmetic; here every number is a row of WIDTH users' numbers,
and a processor works through a row eight at a time.  Users who discard keep their belief: their step has length 0.
No operation mixes lanes, so a user's result does not depend on who is beside.
"""
from typing import NamedTuple

import numpy as np

from lib.compiled import jit
from lib.policies.index import INDEX, TABLE, explored

WIDTH = 64


class Arrivals(NamedTuple):
    """What the users in the lanes meet."""

    items: np.ndarray       # (horizon, WIDTH)
    x: np.ndarray           # (horizon, k, WIDTH)
    feedback: np.ndarray    # (horizon, WIDTH)
    pay: np.ndarray         # (horizon, WIDTH)
    thompson: np.ndarray    # (horizon, WIDTH)
    noise_var: np.ndarray   # (horizon, WIDTH)


class Beliefs(NamedTuple):
    """One policy's belief about each user, and what it says of the item that has arrived."""

    mu: np.ndarray          # (k, WIDTH)
    Sigma: np.ndarray       # (k (k + 1) / 2, WIDTH) the lower triangle, row by row
    gain: np.ndarray        # (k, WIDTH) Sigma x
    mean: np.ndarray        # (WIDTH,) x.mu
    var: np.ndarray         # (WIDTH,) x Sigma x
    go: np.ndarray          # (WIDTH,) 1 where the item is forwarded, else 0
    move: np.ndarray        # (WIDTH,) room for steps of the mean
    total: np.ndarray       # (WIDTH,) rewards so far


def fits(grouped):
    """Is `run` made for this problem: all features in one group, and fewer of them than pay for another form?"""
    return len(grouped.groups) == 1 and not grouped.vectors and len(grouped.Sigma) < 32


@jit
def make_room(k, horizon):
    """Room for WIDTH users' arrivals and beliefs."""
    arrivals = Arrivals(np.empty((horizon, WIDTH), np.int64), np.empty((horizon, k, WIDTH)), np.empty((horizon, WIDTH)),
                        np.empty((horizon, WIDTH)), np.empty((horizon, WIDTH)), np.empty((horizon, WIDTH)))
    beliefs = Beliefs(np.empty((k, WIDTH)), np.empty((k * (k + 1) // 2, WIDTH)), np.empty((k, WIDTH)), np.empty(WIDTH),
                      np.empty(WIDTH), np.empty(WIDTH), np.empty(WIDTH), np.empty(WIDTH))
    return arrivals, beliefs


@jit
def gather(grouped, stream, first, arrivals):
    """What lanes meet, user first + lane in each; the last user fills the lanes that are left over."""
    for n in range(len(arrivals.items)):
        for lane in range(WIDTH):
            r = min(first + lane, len(stream.items) - 1)
            i = stream.items[r, n]
            for a in range(arrivals.x.shape[1]):
                arrivals.x[n, a, lane] = 0.0
            start = grouped.start[i]
            for e in range(start, grouped.start[i + 1]):
                arrivals.x[n, grouped.feature[e - start if grouped.dense else e], lane] = grouped.size[e]
            arrivals.items[n, lane], arrivals.noise_var[n, lane] = i, grouped.noise_var[i]
            arrivals.feedback[n, lane], arrivals.pay[n, lane] = stream.feedback[r, n], stream.pay[r, n]
            arrivals.thompson[n, lane] = stream.thompson[r, n]


@jit
def begin(grouped, beliefs):
    """The prior, in every lane, and no reward."""
    t, beliefs.total[:] = 0, 0.0
    for a in range(len(beliefs.mu)):
        for lane in range(WIDTH):
            beliefs.mu[a, lane] = grouped.mu[a]
        for b in range(a + 1):
            for lane in range(WIDTH):
                beliefs.Sigma[t, lane] = grouped.Sigma[a, b]
            t += 1


@jit
def project(beliefs, x):
    """gain = Sigma x, mean = x.mu, var = x Sigma x, two columns at a time."""
    mu, Sigma, gain, mean, var, k = beliefs.mu, beliefs.Sigma, beliefs.gain, beliefs.mean, beliefs.var, len(x)
    for lane in range(WIDTH):
        mean[lane] = var[lane] = 0.0
    for a in range(k):
        row = a * (a + 1) // 2
        for lane in range(WIDTH):
            gain[a, lane] = Sigma[row, lane] * x[0, lane]
        b = 1
        while b + 1 < k:
            s = row + b if b <= a else b * (b + 1) // 2 + a
            t = row + b + 1 if b + 1 <= a else (b + 1) * (b + 2) // 2 + a
            for lane in range(WIDTH):
                gain[a, lane] += Sigma[s, lane] * x[b, lane] + Sigma[t, lane] * x[b + 1, lane]
            b += 2
        if b < k:
            s = row + b if b <= a else b * (b + 1) // 2 + a
            for lane in range(WIDTH):
                gain[a, lane] += Sigma[s, lane] * x[b, lane]
        for lane in range(WIDTH):
            mean[lane] += mu[a, lane] * x[a, lane]
            var[lane] += gain[a, lane] * x[a, lane]
    for lane in range(WIDTH):
        var[lane] = max(var[lane], 0.0)


@jit
def explore(rules, p, items, cost, beliefs):
    """The bonus of a TABLE rule, lane by lane, in `go`."""
    mean, var = beliefs.mean, beliefs.var
    for lane in range(WIDTH):
        beliefs.go[lane] = 0.0
        if mean[lane] <= cost and var[lane] > 0.0:
            net = (mean[lane] - cost) / np.sqrt(var[lane])
            beliefs.go[lane] = rules.bonus[p, items[lane]] * explored(rules, p, items[lane], net, var[lane])


@jit
def choose(rules, p, arrivals, n, cost, beliefs):
    """go = 1 where policy p forwards the n-th item, else 0, as `kernels.forwards` has it; returns how many do."""
    kind, ties, count = rules.kind[p], 1.0 if rules.ties[p] else 0.0, 0.0
    items, z, go, mean, var = arrivals.items[n], arrivals.thompson[n], beliefs.go, beliefs.mean, beliefs.var
    if kind == TABLE:
        explore(rules, p, items, cost, beliefs)
    elif kind == INDEX:
        for lane in range(WIDTH):
            go[lane] = rules.bonus[p, items[lane]]
    else:
        for lane in range(WIDTH):
            go[lane] = z[lane]
    for lane in range(WIDTH):
        index = mean[lane] + go[lane] * np.sqrt(var[lane])
        go[lane] = 1.0 if index > cost else (ties if index == cost else 0.0)
    for lane in range(WIDTH):
        count += go[lane]
    return count


@jit
def learn(arrivals, n, beliefs):
    """Rewards, and the rank-one update, of the lanes that forward the n-th item."""
    y, noise_var, pay, go, move = arrivals.feedback[n], arrivals.noise_var[n], arrivals.pay[n], beliefs.go, beliefs.move
    mu, Sigma, gain, mean, var = beliefs.mu, beliefs.Sigma, beliefs.gain, beliefs.mean, beliefs.var
    for lane in range(WIDTH):
        beliefs.total[lane] += go[lane] * pay[lane]
        total = var[lane] + noise_var[lane]
        go[lane] /= np.sqrt(total if total > 0.0 else 1.0)
        move[lane] = go[lane] * (y[lane] - mean[lane])
    t = 0
    for a in range(len(mu)):
        for lane in range(WIDTH):
            gain[a, lane] *= go[lane]
            mu[a, lane] += move[lane] * gain[a, lane]
        for b in range(a + 1):
            for lane in range(WIDTH):
                Sigma[t, lane] -= gain[a, lane] * gain[b, lane]
            t += 1


@jit
def run(grouped, rules, stream, rewards, decisions):
    """As `kernels.run`: every policy on every replication of `stream`, fills rewards and decisions."""
    (R, horizon), k = stream.items.shape, len(grouped.Sigma)
    arrivals, beliefs = make_room(k, horizon)
    for first in range(0, R, WIDTH):
        lanes = min(WIDTH, R - first)
        gather(grouped, stream, first, arrivals)
        for p in range(len(rules.kind)):
            begin(grouped, beliefs)
            for n in range(horizon):
                project(beliefs, arrivals.x[n])
                count = choose(rules, p, arrivals, n, grouped.cost, beliefs)
                for lane in range(lanes):
                    decisions[p, first + lane, n] = beliefs.go[lane] > 0.0
                if count > 0.0:
                    learn(arrivals, n, beliefs)
            for lane in range(lanes):
                rewards[p, first + lane] = beliefs.total[lane]
