"""The simulation's inner loops: one replication is a user, a stream of items, and every policy on it.

The covariance is kept dense and updated by rank one (posterior.py derives it).  Two facts save work and
change no number.  Features fall into groups that neither the prior nor an item connects: an item moves
the belief about its own group only, so loops run over a group, one element where items are unit vectors
and the prior is independent.  And a belief changes only when an item is forwarded: until then the mean
and the variance of an item that has been seen before are looked up.

Kernels check nothing and allocate nothing per item; they release the interpreter's lock, and
simulate.py runs blocks of replications in threads.
"""
from typing import NamedTuple

import numba
import numpy as np

INDEX, TABLE, THOMPSON = range(3)   # what a rule adds to the mean: a multiple of the sd, fixed, tabulated or drawn
jit = numba.njit(nogil=True, cache=True, error_model="numpy")
inlined = numba.njit(nogil=True, error_model="numpy", inline="always")


class Scene(NamedTuple):
    """What a kernel reads about a problem.  Features are ordered by group; rows have width >= k."""

    start: np.ndarray       # (n + 1,) item i has the non-zero elements start[i]:start[i + 1] of the next two
    feature: np.ndarray     # (nnz,) their features
    size: np.ndarray        # (nnz,) their values
    low: np.ndarray         # (n,) where the group of item i begins
    high: np.ndarray        # (n,) and ends; both are 0 for an item without features
    groups: np.ndarray      # (m, 2) all groups
    mu: np.ndarray          # (width,) prior mean, padded with zeros
    Sigma: np.ndarray       # (k, width) prior covariance, padded with zeros
    noise_sd: np.ndarray    # (n,) of each item's feedback
    cumulative: np.ndarray  # (n,) of the item probabilities
    guide: np.ndarray       # (m,) the item at which the search for u in [j/m, (j + 1)/m) begins
    discount: np.ndarray    # (horizon,) gamma^n
    cost: float


class Rules(NamedTuple):
    """What a kernel reads about P policies: forward iff mean + bonus sd > cost, or = cost where ties."""

    kind: np.ndarray        # (P,) INDEX, TABLE or THOMPSON
    ties: np.ndarray        # (P,) bool
    bonus: np.ndarray       # (P, n) of INDEX rules
    row: np.ndarray         # (P, n) of TABLE rules: which row of `table`
    table: np.ndarray       # (rows, grid) bonus over a uniform grid of log variance
    log_var: np.ndarray     # (rows,) where each row's grid begins
    step: float             # and its step


class Stream(NamedTuple):
    """What R replications meet."""

    items: np.ndarray       # (R, horizon) indices
    feedback: np.ndarray    # (R, horizon) y, shown to a policy only if it forwards
    pay: np.ndarray         # (R, horizon) discounted reward of forwarding
    thompson: np.ndarray    # (R, horizon) standard normals


class State(NamedTuple):
    """One policy's belief, overwritten as it learns, and what has been computed from it."""

    mu: np.ndarray          # (width,)
    Sigma: np.ndarray       # (k, width)
    gain: np.ndarray        # (width,) Sigma x of the current item
    mean: np.ndarray        # (n,) x.mu of each item
    var: np.ndarray         # (n,) x Sigma x
    seen: np.ndarray        # (n,) the belief for which these were computed
    belief: np.ndarray      # (1,) number of the current belief


@jit
def correlate(mu, columns, first, last, z, theta):
    """theta[r] = mu + sum over p of z[r, p] columns[p], each non-zero on first[p]:last[p] only."""
    for r in range(len(z)):
        theta[r] = mu
        for p in range(len(columns)):
            for a in range(first[p], last[p]):
                theta[r, a] += z[r, p] * columns[p, a]


@jit
def arrive(scene, thetas, uniforms, noise, realised, stream):
    """Fill `stream` with the items, feedback and pay that the random numbers stand for."""
    for r in range(len(thetas)):
        for n in range(uniforms.shape[1]):
            u = uniforms[r, n]
            i = scene.guide[int(u * len(scene.guide))]
            while scene.cumulative[i] <= u:
                i += 1
            value = dot(scene, i, thetas[r])
            y = value + scene.noise_sd[i] * noise[r, n]
            stream.items[r, n], stream.feedback[r, n] = i, y
            stream.pay[r, n] = scene.discount[n] * ((y if realised else value) - scene.cost)


@inlined
def dot(scene, i, vector):
    """x.vector for item i."""
    total = 0.0
    for e in range(scene.start[i], scene.start[i + 1]):
        total += scene.size[e] * vector[scene.feature[e]]
    return total


@inlined
def restore(scene, state):
    """Back to the prior."""
    state.mu[:] = scene.mu
    Sigma, prior = state.Sigma, scene.Sigma
    for g in range(len(scene.groups)):
        low, high = scene.groups[g, 0], scene.groups[g, 1]
        for a in range(low, min(high, np.uint64(len(Sigma)))):
            for b in range(low, high):
                Sigma[a, b] = prior[a, b]
    state.belief[0] += 1


@inlined
def along(scene, state, i):
    """gain = Sigma x for item i, on the item's group; it is zero elsewhere."""
    low, high, gain, Sigma = scene.low[i], scene.high[i], state.gain, state.Sigma
    for a in range(low, high):
        gain[a] = 0.0
    for e in range(scene.start[i], scene.start[i + 1]):
        size, f = scene.size[e], scene.feature[e]
        for a in range(low, high):
            gain[a] += size * Sigma[f, a]


@inlined
def learn(scene, state, i, y):
    """The rank-one update for feedback y on item i; `gain` must hold Sigma x and is scaled."""
    low, high, mu, gain, Sigma = scene.low[i], scene.high[i], state.mu, state.gain, state.Sigma
    sd = np.sqrt(state.var[i] + scene.noise_sd[i] ** 2)
    surprise = (y - state.mean[i]) / sd
    for a in range(low, high):
        gain[a] /= sd
        mu[a] += surprise * gain[a]
    for a in range(low, min(high, np.uint64(len(Sigma)))):
        scale = gain[a]
        for b in range(low, high):
            Sigma[a, b] -= scale * gain[b]
    state.belief[0] += 1


@inlined
def interpolate(rules, row, var):
    """The tabulated bonus at `var`, linear in log variance, constant beyond the grid."""
    last = rules.table.shape[1] - 1
    at = min(max((np.log(var) - rules.log_var[row]) / rules.step, 0.0), float(last))
    left = min(int(at), last - 1)
    return rules.table[row, left] + (at - left) * (rules.table[row, left + 1] - rules.table[row, left])


@inlined
def forwards(rules, p, i, state, z, cost):
    """Does policy p forward item i?  `z` is a standard normal for Thompson sampling."""
    kind, var = rules.kind[p], state.var[i]
    if kind == INDEX:
        bonus = rules.bonus[p, i]
    elif kind == THOMPSON:
        bonus = z
    else:
        bonus = interpolate(rules, rules.row[p, i], var) if var > 0.0 else 0.0
    index = state.mean[i] + bonus * np.sqrt(var)
    return index > cost or (index == cost and rules.ties[p])


@jit
def play(scene, rules, p, stream, r, state, decisions):
    """Policy p meets replication r: its discounted reward; `decisions` (horizon,) gets what it forwards."""
    reward = 0.0
    restore(scene, state)
    for n in range(len(decisions)):
        i = stream.items[r, n]
        known = state.seen[i] == state.belief[0]
        if not known:
            along(scene, state, i)
            state.mean[i], state.var[i] = dot(scene, i, state.mu), max(dot(scene, i, state.gain), 0.0)
            state.seen[i] = state.belief[0]
        decisions[n] = forwards(rules, p, i, state, stream.thompson[r, n], scene.cost)
        if decisions[n]:
            reward += stream.pay[r, n]
            if known:
                along(scene, state, i)
            if scene.high[i] > 0:
                learn(scene, state, i, stream.feedback[r, n])
    return reward


@jit
def run(scene, rules, stream, rewards, decisions):
    """Every policy on every replication of `stream`: fills rewards (P, R) and decisions (P, R, horizon)."""
    n, (k, width) = len(scene.noise_sd), scene.Sigma.shape
    state = State(np.empty(width), np.empty((k, width)), np.empty(width),
                  np.empty(n), np.empty(n), np.zeros(n, np.int64), np.zeros(1, np.int64))
    for r in range(rewards.shape[1]):
        for p in range(len(rules.kind)):
            rewards[p, r] = play(scene, rules, p, stream, r, state, decisions[p, r])
