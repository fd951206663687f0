"""The simulation's inner loops: one replication is a user, a stream of items, and every policy on it.

Three facts save work and change no number beyond rounding.
Groups.  Features fall into groups that neither the prior nor an item connects; an item moves the belief
about its own group only, so loops run over a group: one element where items are unit vectors and the
prior is independent.
Memory.  A belief changes only when an item is forwarded; until then the mean and the variance of an item
that has been seen before are looked up.
Form.  After f forwards Sigma = prior - sum of f terms h h' (posterior.py).  Either the k x k matrix is
kept, at k^2 a decision, or the f vectors h are, at k f a decision and k f more a forward: less where
the horizon is short beside k.  The prior's part, Sigma_0 x and x Sigma_0 x, is tabulated for every item.

Kernels check nothing and allocate nothing per item; they release the interpreter's lock, and
simulate.py runs blocks of replications in threads.  Unsigned indices and inlining let loops vectorise.
"""
import numba
import numpy as np

from lib.policies.index import TABLE, THOMPSON, benefit
from lib.simulate.arrays import State

jit = numba.njit(nogil=True, cache=True, error_model="numpy")
inlined = numba.njit(nogil=True, error_model="numpy", inline="always")


@jit
def make_state(scene):
    """Room for one belief and what is computed from it."""
    n, (k, width), horizon = len(scene.low), scene.Sigma.shape, len(scene.discount)
    full, steps = (0, horizon) if scene.vectors else (k, 0)
    return State(np.empty(width), np.empty((full, width)), np.empty((steps, width)), np.empty((k, steps)),
                 np.zeros(2, np.uint64), np.empty(width), np.empty(steps),
                 np.empty(n), np.empty(n), np.zeros(n, np.uint64))


@inlined
def dot(scene, i, vector):
    """x.vector for item i; four sums run side by side, because additions wait for one another."""
    a = b = c = d = 0.0
    size, feature, e, end = scene.size, scene.feature, scene.start[i], scene.start[i + 1]
    while e + 4 <= end:
        a += size[e] * vector[feature[e]]
        b += size[e + 1] * vector[feature[e + 1]]
        c += size[e + 2] * vector[feature[e + 2]]
        d += size[e + 3] * vector[feature[e + 3]]
        e += 4
    while e < end:
        a += size[e] * vector[feature[e]]
        e += 1
    return (a + b) + (c + d)


@inlined
def rows(scene, i, matrix, low, high, out):
    """out[low:high] = sum over the features j of item i of x_j matrix[j, low:high], four rows at a time."""
    size, feature, e, end = scene.size, scene.feature, scene.start[i], scene.start[i + 1]
    for a in range(low, high):
        out[a] = 0.0
    while e + 4 <= end:
        i0, i1, i2, i3 = feature[e], feature[e + 1], feature[e + 2], feature[e + 3]
        x0, x1, x2, x3 = size[e], size[e + 1], size[e + 2], size[e + 3]
        for a in range(low, high):
            out[a] += (x0 * matrix[i0, a] + x1 * matrix[i1, a]) + (x2 * matrix[i2, a] + x3 * matrix[i3, a])
        e += 4
    while e < end:
        i0, x0 = feature[e], size[e]
        for a in range(low, high):
            out[a] += x0 * matrix[i0, a]
        e += 1


@jit
def tabulate(scene):
    """Fill the prior's Sigma x and x Sigma x of every item, where the vectors are kept."""
    for i in range(len(scene.prior_gain)):
        rows(scene, i, scene.Sigma, scene.low[i], scene.high[i], scene.prior_gain[i])
        scene.prior_var[i] = dot(scene, i, scene.prior_gain[i])


@inlined
def restore(scene, state):
    """Back to the prior."""
    Sigma, prior = state.Sigma, scene.Sigma
    for a in range(len(scene.mu)):
        state.mu[a] = scene.mu[a]
    state.count[0] += np.uint64(1)
    state.count[1] = 0
    if not scene.vectors:
        for g in range(len(scene.groups)):
            low, high = scene.groups[g, 0], scene.groups[g, 1]
            for a in range(low, min(high, np.uint64(len(Sigma)))):
                for b in range(low, high):
                    Sigma[a, b] = prior[a, b]


@inlined
def project_matrix(scene, state, i):
    """x Sigma x of item i; leaves `gain` = Sigma x, on the item's group."""
    rows(scene, i, state.Sigma, scene.low[i], scene.high[i], state.gain)
    return max(dot(scene, i, state.gain), 0.0)


@jit
def project_vectors(scene, state, i):
    """x Sigma x of item i in the other form; leaves `hx`."""
    hx, var = state.hx, scene.prior_var[i]
    rows(scene, i, state.ht, np.uint64(0), state.count[1], hx)
    for m in range(state.count[1]):
        var -= hx[m] * hx[m]
    return max(var, 0.0)


@inlined
def learn_matrix(scene, state, i, sd, surprise):
    """The belief after a forward that came out `surprise` predictive sd above its mean; needs `gain`."""
    low, high, mu, gain, Sigma = scene.low[i], scene.high[i], state.mu, state.gain, state.Sigma
    for a in range(low, high):
        gain[a] /= sd
        mu[a] += surprise * gain[a]
    for a in range(low, min(high, np.uint64(len(Sigma)))):
        scale = gain[a]
        for b in range(low, high):
            Sigma[a, b] -= scale * gain[b]


@jit
def learn_vectors(scene, state, i, sd, surprise):
    """The same in the other form; needs `hx`."""
    mu, gain, h, ht, hx, f = state.mu, state.gain, state.h, state.ht, state.hx, state.count[1]
    for a in range(len(gain)):
        gain[a] = scene.prior_gain[i, a]
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


@inlined
def forwards(rules, p, i, state, z, cost):
    """Does policy p forward item i?  `z` is a standard normal for Thompson sampling."""
    kind, mean, var, bonus = rules.kind[p], state.mean[i], state.var[i], rules.bonus[p, i]
    if kind == TABLE and mean <= cost and var > 0.0:
        bonus *= benefit(rules, rules.row[p, i], (mean - cost) / np.sqrt(var), var)
    if kind == THOMPSON:
        bonus = z
    index = mean + bonus * np.sqrt(var)
    return index > cost or (index == cost and rules.ties[p])


@jit
def play(scene, rules, p, stream, r, state, decisions):
    """Policy p meets replication r: its discounted reward; `decisions` (horizon,) gets what it forwards."""
    reward = 0.0
    restore(scene, state)
    for n in range(len(decisions)):
        i = stream.items[r, n]
        known = state.seen[i] == state.count[0]
        if not known:
            state.var[i] = project_vectors(scene, state, i) if scene.vectors else project_matrix(scene, state, i)
            state.mean[i], state.seen[i] = dot(scene, i, state.mu), state.count[0]
        decisions[n] = forwards(rules, p, i, state, stream.thompson[r, n], scene.cost)
        if decisions[n]:
            reward += stream.pay[r, n]
            if scene.high[i] > 0:
                sd = np.sqrt(state.var[i] + scene.noise_sd[i] ** 2)
                surprise = (stream.feedback[r, n] - state.mean[i]) / sd
                if scene.vectors:
                    if known:
                        project_vectors(scene, state, i)
                    learn_vectors(scene, state, i, sd, surprise)
                else:
                    if known:
                        project_matrix(scene, state, i)
                    learn_matrix(scene, state, i, sd, surprise)
                state.count[0] += np.uint64(1)
    return reward


@jit
def run(scene, rules, stream, rewards, decisions):
    """Every policy on every replication of `stream`: fills rewards (P, R) and decisions (P, R, horizon)."""
    state = make_state(scene)
    for r in range(rewards.shape[1]):
        for p in range(len(rules.kind)):
            rewards[p, r] = play(scene, rules, p, stream, r, state, decisions[p, r])


@jit
def correlate(mu, columns, begin, end, z, theta):
    """theta[r] = mu + sum over p of z[r, p] columns[p], each non-zero on begin[p]:end[p] only."""
    for r in range(len(z)):
        theta[r] = mu
        for p in range(len(columns)):
            for a in range(begin[p], end[p]):
                theta[r, a] += z[r, p] * columns[p, a]


@jit
def arrive(scene, thetas, uniforms, noise, realised, stream):
    """Fill `stream` with the items, feedback and pay that the random numbers stand for."""
    items, feedback, pay, cells = stream.items, stream.feedback, stream.pay, len(scene.guide)
    for r in range(len(thetas)):
        for n in range(uniforms.shape[1]):
            i = scene.guide[int(uniforms[r, n] * cells)]
            while scene.cumulative[i] <= uniforms[r, n]:
                i += 1
            items[r, n] = i
        theta = thetas[r]
        for n in range(uniforms.shape[1]):
            i = items[r, n]
            value = dot(scene, i, theta)
            feedback[r, n] = value + scene.noise_sd[i] * noise[r, n]
            pay[r, n] = scene.discount[n] * ((feedback[r, n] if realised else value) - scene.cost)
