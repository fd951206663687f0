"""The simulation's inner loops for short dense items: WIDTH users at once, one in each lane.

The same beliefs and rules as kernels.py, for problems whose features form one small group.  Where a product has
six terms the time goes into waiting, not into arithmetic; here every number is a row of WIDTH users' numbers,
and a processor works through a row eight at a time.  Users who discard keep their belief: their step has length 0.
No operation mixes lanes, so a user's result does not depend on who is beside.
"""
import numba
import numpy as np

from lib.policies.index import INDEX, TABLE, benefit

WIDTH = 64
jit = numba.njit(nogil=True, cache=True, error_model="numpy")


def fits(scene):
    """Is `run` made for this scene: all features in one group, and fewer of them than pay for another form?"""
    return len(scene.groups) == 1 and not scene.vectors and len(scene.Sigma) < 32


@jit
def gather(scene, dense, stream, first, x, y, pay, z, noise_var, items):
    """What lanes meet, user first + lane in each; the last user fills the lanes that are left over."""
    for n in range(len(y)):
        for lane in range(WIDTH):
            r = min(first + lane, len(stream.items) - 1)
            i = stream.items[r, n]
            for a in range(dense.shape[1]):
                x[n, a, lane] = dense[i, a]
            items[n, lane], noise_var[n, lane] = i, scene.noise_sd[i] ** 2
            y[n, lane], pay[n, lane], z[n, lane] = stream.feedback[r, n], stream.pay[r, n], stream.thompson[r, n]


@jit
def begin(scene, mu, Sigma):
    """The prior, in every lane; Sigma holds the lower triangle row by row."""
    t = 0
    for a in range(len(mu)):
        for lane in range(WIDTH):
            mu[a, lane] = scene.mu[a]
        for b in range(a + 1):
            for lane in range(WIDTH):
                Sigma[t, lane] = scene.Sigma[a, b]
            t += 1


@jit
def project(mu, Sigma, x, gain, mean, var):
    """gain = Sigma x, mean = x.mu, var = x Sigma x, two columns at a time."""
    k = len(x)
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
def explore(rules, p, items, mean, var, cost, bonus):
    """The bonus of a TABLE rule, lane by lane."""
    for lane in range(WIDTH):
        bonus[lane] = 0.0
        if mean[lane] <= cost and var[lane] > 0.0:
            net, row = (mean[lane] - cost) / np.sqrt(var[lane]), rules.row[p, items[lane]]
            bonus[lane] = rules.bonus[p, items[lane]] * benefit(rules, row, net, var[lane])


@jit
def choose(rules, p, items, mean, var, z, cost, go):
    """go = 1 where policy p forwards, else 0, as `kernels.forwards` has it; returns how many do."""
    kind, ties, count = rules.kind[p], 1.0 if rules.ties[p] else 0.0, 0.0
    if kind == TABLE:
        explore(rules, p, items, mean, var, cost, go)
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
def learn(mu, Sigma, gain, mean, var, y, noise_var, go, move):
    """The rank-one update of the lanes that forward."""
    for lane in range(WIDTH):
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
def run(scene, rules, stream, rewards, decisions):
    """As `kernels.run`: every policy on every replication of `stream`, fills rewards and decisions."""
    (R, horizon), k = stream.items.shape, len(scene.Sigma)
    dense = np.zeros((len(scene.low), k))
    for i in range(len(dense)):
        for e in range(scene.start[i], scene.start[i + 1]):
            dense[i, scene.feature[e]] = scene.size[e]
    x, items = np.empty((horizon, k, WIDTH)), np.empty((horizon, WIDTH), np.int64)
    y, pay = np.empty((horizon, WIDTH)), np.empty((horizon, WIDTH))
    z, noise_var = np.empty((horizon, WIDTH)), np.empty((horizon, WIDTH))
    mu, Sigma, gain = np.empty((k, WIDTH)), np.empty((k * (k + 1) // 2, WIDTH)), np.empty((k, WIDTH))
    mean, var, total = np.empty(WIDTH), np.empty(WIDTH), np.empty(WIDTH)
    go, move = np.empty(WIDTH), np.empty(WIDTH)
    for first in range(0, R, WIDTH):
        lanes = min(WIDTH, R - first)
        gather(scene, dense, stream, first, x, y, pay, z, noise_var, items)
        for p in range(len(rules.kind)):
            begin(scene, mu, Sigma)
            total[:] = 0.0
            for n in range(horizon):
                project(mu, Sigma, x[n], gain, mean, var)
                count = choose(rules, p, items[n], mean, var, z[n], scene.cost, go)
                for lane in range(lanes):
                    decisions[p, first + lane, n] = go[lane] > 0.0
                if count > 0.0:
                    for lane in range(WIDTH):
                        total[lane] += go[lane] * pay[n, lane]
                    learn(mu, Sigma, gain, mean, var, y[n], noise_var[n], go, move)
            for lane in range(lanes):
                rewards[p, first + lane] = total[lane]
