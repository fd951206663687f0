"""The simulation's inner loops: one replication is a user, a stream of items, and every policy on it.

Four facts save work and change no number beyond rounding.
Groups.  Features fall into groups that neither the prior nor an item connects; an item moves the belief
about its own group only, so loops run over a group: one element where items are unit vectors and the
prior is independent.
Memory.  A belief changes only when an item is forwarded; until then the mean and the variance of an item
that has been seen before are looked up.
Form.  After f forwards Sigma = prior - sum of f terms h h' (lib.posterior).  Either the k x k matrix is
kept, at k^2 a decision, or the f vectors h are, at k f a decision and k f more a forward: less where
the horizon is short beside k.  The prior's part, Sigma_0 x and x Sigma_0 x, is tabulated for every item.

Memory ahead.  Where items are very many each lies in memory that no cache holds.  The stream says which come next, so
that their lines are asked for while the current one is decided (`lib.fetch`).

The update of a belief is that of lib.posterior in forms that the dense one cannot be: on a group, on a thin set of
vectors, with loops that vectorise.  tests/test_simulate.py compares them with it.

Kernels check nothing and allocate nothing per item; they release the interpreter's lock, and `replications`
runs blocks of users in threads.  Unsigned indices and inlining let loops vectorise.
"""
from typing import NamedTuple

import numpy as np

from lib.compiled import jit, once_jit, put
from lib.fetch import ask
from lib.policies.index import TABLE, THOMPSON, explored

AHEAD = 4               # items of a user whose memory is asked for at once


class State(NamedTuple):
    """One policy's belief, overwritten as it learns, and what has been computed from it."""

    mu: np.ndarray          # (width,)
    Sigma: np.ndarray       # (k, width), or empty
    h: np.ndarray           # (horizon, width) vectors of the other form, or empty
    ht: np.ndarray          # (k, horizon) their transpose
    count: np.ndarray       # (2,) number of the current belief, and of vectors in it
    gain: np.ndarray        # (width,) Sigma x of the current item
    hx: np.ndarray          # (horizon,) h.x of the current item
    met: np.ndarray         # (n, 4) of each item: number of the belief in which it was met last; x.mu and x Sigma x
                            # in it; x Sigma x a priori


@jit
def make_state(grouped):
    """Room for one belief and what is computed from it."""
    n, (k, width), horizon = len(grouped.low), grouped.Sigma.shape, len(grouped.discount)
    full, steps = (0, horizon) if grouped.vectors else (k, 0)
    met = np.zeros((n, 4))                                  # side by side, because they lie far away where items are many
    put(grouped.prior_var, met[:, 3])
    return State(np.empty(width), np.empty((full, width)), np.empty((steps, width)), np.empty((k, steps)),
                 np.zeros(2, np.uint64), np.empty(width), np.empty(steps), met)


@once_jit
def dot(grouped, i, vector):
    """x.vector for item i; four sums run side by side, because additions wait for one another."""
    a = b = c = d = 0.0
    size, feature, start = grouped.size, grouped.feature, grouped.start
    e, end = start[i], start[i + 1]
    f = 0 if grouped.dense else e
    while e + 4 <= end:
        a += size[e] * vector[feature[f]]
        b += size[e + 1] * vector[feature[f + 1]]
        c += size[e + 2] * vector[feature[f + 2]]
        d += size[e + 3] * vector[feature[f + 3]]
        e, f = e + 4, f + 4
    while e < end:
        a += size[e] * vector[feature[f]]
        e, f = e + 1, f + 1
    return (a + b) + (c + d)


@once_jit
def rows(grouped, i, matrix, low, high, out):
    """out[low:high] = sum over the features j of item i of x_j matrix[j, low:high], four rows at a time."""
    size, feature, start = grouped.size, grouped.feature, grouped.start
    e, end = start[i], start[i + 1]
    f = 0 if grouped.dense else e
    for a in range(low, high):
        out[a] = 0.0
    while e + 4 <= end:
        i0, i1, i2, i3 = feature[f], feature[f + 1], feature[f + 2], feature[f + 3]
        x0, x1, x2, x3 = size[e], size[e + 1], size[e + 2], size[e + 3]
        for a in range(low, high):
            out[a] += (x0 * matrix[i0, a] + x1 * matrix[i1, a]) + (x2 * matrix[i2, a] + x3 * matrix[i3, a])
        e, f = e + 4, f + 4
    while e < end:
        i0, x0 = feature[f], size[e]
        for a in range(low, high):
            out[a] += x0 * matrix[i0, a]
        e, f = e + 1, f + 1


@jit
def tabulate(grouped):
    """Fill the prior's Sigma x and x Sigma x of every item, where the vectors are kept."""
    for i in range(len(grouped.prior_gain)):
        rows(grouped, i, grouped.Sigma, grouped.low[i], grouped.high[i], grouped.prior_gain[i])
        grouped.prior_var[i] = dot(grouped, i, grouped.prior_gain[i])


@once_jit
def restore(grouped, state):
    """Back to the prior."""
    Sigma, prior = state.Sigma, grouped.Sigma
    for a in range(len(grouped.mu)):
        state.mu[a] = grouped.mu[a]
    state.count[0] += np.uint64(1)
    state.count[1] = 0
    if not grouped.vectors:
        for g in range(len(grouped.groups)):
            low, high = grouped.groups[g, 0], grouped.groups[g, 1]
            for a in range(low, min(high, np.uint64(len(Sigma)))):
                for b in range(low, high):
                    Sigma[a, b] = prior[a, b]


@once_jit
def project_matrix(grouped, state, i):
    """x Sigma x of item i; leaves `gain` = Sigma x, on the item's group."""
    rows(grouped, i, state.Sigma, grouped.low[i], grouped.high[i], state.gain)
    return max(dot(grouped, i, state.gain), 0.0)


@jit
def project_vectors(grouped, state, i):
    """x Sigma x of item i in the other form; leaves `hx`."""
    hx, var = state.hx, state.met[i, 3]
    rows(grouped, i, state.ht, np.uint64(0), state.count[1], hx)
    for m in range(state.count[1]):
        var -= hx[m] * hx[m]
    return max(var, 0.0)


@once_jit
def learn_matrix(grouped, state, i, sd, surprise):
    """The belief after a forward that came out `surprise` predictive sd above its mean; needs `gain`."""
    low, high, mu, gain, Sigma = grouped.low[i], grouped.high[i], state.mu, state.gain, state.Sigma
    for a in range(low, high):
        gain[a] /= sd
        mu[a] += surprise * gain[a]
    for a in range(low, min(high, np.uint64(len(Sigma)))):
        scale = gain[a]
        for b in range(low, high):
            Sigma[a, b] -= scale * gain[b]


@jit
def learn_vectors(grouped, state, i, sd, surprise):
    """The same in the other form; needs `hx`."""
    mu, gain, h, ht, hx, f = state.mu, state.gain, state.h, state.ht, state.hx, state.count[1]
    for a in range(len(gain)):
        gain[a] = grouped.prior_gain[i, a]
    m = np.uint64(0)
    for m in range(f % 4):
        for a in range(len(gain)):
            gain[a] -= hx[m] * h[m, a]
    for m in range(f % 4, f, 4):
        x0, x1, x2, x3 = hx[m], hx[m + 1], hx[m + 2], hx[m + 3]
        for a in range(len(gain)):
            gain[a] -= (x0 * h[m, a] + x1 * h[m + 1, a]) + (x2 * h[m + 2, a] + x3 * h[m + 3, a])
    for a in range(len(gain)):
        gain[a] /= sd
        mu[a] += surprise * gain[a]
        h[f, a] = gain[a]
    for a in range(len(ht)):
        ht[a, f] = gain[a]
    state.count[1] += np.uint64(1)


@once_jit
def forwards(rules, p, i, mean, var, z, cost):
    """Does policy p forward item i, whose feedback has this mean and variance?  `z` is Thompson's standard normal."""
    kind, bonus = rules.kind[p], rules.bonus[p, i]
    if kind == TABLE and mean <= cost and var > 0.0:
        bonus *= explored(rules, p, i, (mean - cost) / np.sqrt(var), var)
    if kind == THOMPSON:
        bonus = z
    index = mean + bonus * np.sqrt(var)
    return index > cost or (index == cost and rules.ties[p])


@jit
def look_ahead(grouped, rules, p, stream, r, first, state):
    """Ask for the memory of AHEAD items of a user from number `first` on, and for where that of the AHEAD after them stands.

    Several at a time, because to take the tuples apart takes longer than to ask; few, because the nearest cache is small.
    """
    items, start, met, now, n = stream.items[r], grouped.start, state.met, float(state.count[0]), rules.bonus.shape[1]
    for i in items[max(first + AHEAD, 0):max(first + 2 * AHEAD, 0)]:
        ask(state, "met", 4 * i, 4 * i + 4)
        ask(grouped, "start", i, i + 2)
    for i in items[max(first, 0):max(first + AHEAD, 0)]:
        if met[i, 0] != now:
            ask(grouped, "size", start[i], start[i + 1])
            ask(grouped, "noise_sd", i, i + 1)
            ask(grouped, "high", i, i + 1)
            ask(rules, "bonus", p * n + i, p * n + i + 1)
            if rules.kind[p] == TABLE:
                ask(rules, "row", p * n + i, p * n + i + 1)
                ask(rules, "other", p * n + i, p * n + i + 1)
                ask(rules, "share", p * n + i, p * n + i + 1)
                ask(rules, "unit", p * n + i, p * n + i + 1)


@jit
def play(grouped, rules, p, stream, r, state, decisions):
    """Policy p meets replication r: its discounted reward; `decisions` (horizon,) gets what it forwards."""
    reward = 0.0
    restore(grouped, state)
    if grouped.far:
        look_ahead(grouped, rules, p, stream, r, -AHEAD, state)
        look_ahead(grouped, rules, p, stream, r, 0, state)
    for n in range(len(decisions)):
        if grouped.far and n % AHEAD == 0:
            look_ahead(grouped, rules, p, stream, r, n + AHEAD, state)
        i, now = stream.items[r, n], float(state.count[0])
        known = state.met[i, 0] == now
        if not known:
            state.met[i, 2] = project_vectors(grouped, state, i) if grouped.vectors else project_matrix(grouped, state, i)
            state.met[i, 1], state.met[i, 0] = dot(grouped, i, state.mu), now
        mean, var = state.met[i, 1], state.met[i, 2]
        decisions[n] = forwards(rules, p, i, mean, var, stream.thompson[r, n], grouped.cost)
        if decisions[n]:
            reward += stream.pay[r, n]
            if grouped.high[i] > 0:
                sd = np.sqrt(var + grouped.noise_sd[i] ** 2)
                surprise = (stream.feedback[r, n] - mean) / sd
                if grouped.vectors:
                    if known:
                        project_vectors(grouped, state, i)
                    learn_vectors(grouped, state, i, sd, surprise)
                else:
                    if known:
                        project_matrix(grouped, state, i)
                    learn_matrix(grouped, state, i, sd, surprise)
                state.count[0] += np.uint64(1)
    return reward


@jit
def run(grouped, rules, stream, rewards, decisions):
    """Every policy on every replication of `stream`: fills rewards (P, R) and decisions (P, R, horizon)."""
    state = make_state(grouped)
    for r in range(rewards.shape[1]):
        for p in range(len(rules.kind)):
            rewards[p, r] = play(grouped, rules, p, stream, r, state, decisions[p, r])


@jit
def correlate(mu, columns, begin, end, z, theta):
    """theta[r] = mu + sum over p of z[r, p] columns[p], each non-zero on begin[p]:end[p] only."""
    for r in range(len(z)):
        put(mu, theta[r])
        for p in range(len(columns)):
            for a in range(begin[p], end[p]):
                theta[r, a] += z[r, p] * columns[p, a]


@jit
def arrive(grouped, thetas, uniforms, noise, realised, stream):
    """Fill `stream` with the items, feedback and pay that the random numbers stand for."""
    items, feedback, pay, cells = stream.items, stream.feedback, stream.pay, len(grouped.guide)
    for r in range(len(thetas)):
        for n in range(uniforms.shape[1]):
            i = grouped.guide[int(uniforms[r, n] * cells)]
            while grouped.cumulative[i] <= uniforms[r, n]:
                i += 1
            items[r, n] = i
            if grouped.far:
                ask(grouped, "start", i, i + 2)
                ask(grouped, "noise_sd", i, i + 1)
        theta = thetas[r]
        for n in range(uniforms.shape[1]):
            i = items[r, n]
            if grouped.far and n + 1 < uniforms.shape[1]:
                ask(grouped, "size", grouped.start[items[r, n + 1]], grouped.start[items[r, n + 1] + 1])
            value = dot(grouped, i, theta)
            feedback[r, n] = value + grouped.noise_sd[i] * noise[r, n]
            pay[r, n] = grouped.discount[n] * ((feedback[r, n] if realised else value) - grouped.cost)
