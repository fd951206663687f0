"""Kernels of the policies that look at the whole belief (policies beyond the paper; the chapter of that name).

In belief (mu, Sigma) forwarding item x moves the mean of item X' by a normal step of standard deviation

    st(x, X') = |X' Sigma x| / sqrt(x Sigma x + noise_var(x)),

and the one-step gain on X' is E (X'.mu + st Z - cost)^+ - (X'.mu - cost)^+ = st f(|X'.mu - cost| / st) with
f(z) = phi(z) - z Phi(-z).  A decision depends on the belief and the item alone, so it is kept until the belief
changes.  The kernels read and fill the same arrays as those of `lib.simulate`: every policy of a simulation meets the
same users, items and noise.

Knowledge gradient and information-directed sampling average over coming items: over all of them up to lib.posterior.EXACT,
above over a stratified sample of SAMPLE, drawn once (`lib.posterior.coming`): an error of at most 6 % of a
coming item's standard deviation.  A decision then costs no more than among SAMPLE items.

Most decisions of the knowledge gradient need no sum.  Coming items fall into PARTS of neighbours, X' = centre + rest.  By
Cauchy and Schwarz, and because a variance never grows,

    st(x, X') <= |centre Sigma x| / sqrt(total) + sqrt(x Sigma x / total) sqrt(rest Sigma_0 rest)

with total = x Sigma x + noise_var(x).  A gain rises with st and falls with |X'.mu - cost|.  So a part gains at most what this
bound at its largest and its item nearest to break-even give.  Three such bounds are tried, each dearer and sharper: with Sigma centre of the belief at hand,
and x Sigma x known to lie between (centre Sigma x)^2 / (centre Sigma centre) and the square of sqrt(centre Sigma centre) +
sqrt((x - centre) Sigma_0 (x - centre)); with x Sigma x itself; and with the largest |X' Sigma x| of each part.  Where one is
too little the item is discarded, else the sum decides, as if there were no bound.  Rounding is allowed for: a share of
noise of CLEAR or more, and at most LONG updates, leave a variance wrong by less than 1e-10 of the largest square that an
item's worth can have, and x Sigma x by less than 1e-4 of noise_var(x).
"""
from math import log1p, sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from lib import streams
from lib.compiled import inlined_jit, jit, once_jit, put
from lib.fetch import ask
from lib.normal import gain
from lib.policies.patience import Prospect, foresee, make_prospect, waiting, worth
from lib.policies.projection import mean_projection
from lib.policies.rules import DIRECTED, GRADIENT, PATIENT, PHASED, QUANTILE, ROLLOUT, SCORES, entry
from lib.posterior import (CACHE, COARSE, EXACT, Instance, blocks, coming, compile_problem, dot, leading, learn, noise_share,
                           project, variances)
from lib.problem import effective_horizon

AHEAD = 4                       # items of a user whose memory is asked for at once
LANES = 64                      # coming items whose products a processor works through side by side
SAMPLE = 256                    # coming items that stand for all where these are many
PARTS = 4                       # parts of these whose gains are bounded together
CLEAR, LONG = 1e-6, 10_000      # share of noise from which, and horizon up to which, they are
TINY = 1e-9                     # squared length, relative, below which a remainder counts as nothing
GUARD = 2.0                     # standard errors that a rollout must show before it overrules its base policy
REST = 0.02                     # discounted weight at which a rollout stops


class Futures(NamedTuple):
    """What rollouts sample, the same at every decision: F futures of H items."""

    users: np.ndarray       # (F, k) standard normals
    coming: np.ndarray      # (F, H) items
    noise: np.ndarray       # (F, H + 1) standard normals


class Parts(NamedTuple):
    """Parts of the coming items, neighbours where their worth varies most; none where nothing is bounded."""

    of: np.ndarray          # (m,) the part of each coming item
    mass: np.ndarray        # (parts,) probability
    centre: np.ndarray      # (parts, k) mean item
    spread: np.ndarray      # (parts,) at least the prior sd of an item's worth beside its centre's, rounding included
    away: float             # at least the prior sd of the worth of any item beside the first centre's, likewise
    slack: float            # by how much rounding may raise a variance, at most


class Lookahead(NamedTuple):
    """What the kernels read of a problem beside its Instance: kept apart, because taking it out of a tuple costs time."""

    items: np.ndarray       # (n, k)
    reach: np.ndarray       # (n,) M(x), the mean projection of a coming item on x; empty where no policy asks
    rank: int               # dimension of what the items span; 0 where no policy asks
    coming: np.ndarray      # (k, m) the items that stand for a coming one, in columns
    weights: np.ndarray     # (m,) their probabilities
    sample: Instance        # of these items
    sampled: bool           # whether they are a sample rather than all
    quantile: np.ndarray    # (horizon,) standard normal quantiles 1 - 1/(n + 1)
    futures: Futures
    parts: Parts
    prospect: Prospect      # of the patient lookahead
    far: bool               # items do not fit into a core's cache: memory is asked for ahead


class State(NamedTuple):
    """One policy's belief, and what it remembers."""

    mu: np.ndarray          # (k,)
    Sigma: np.ndarray       # (k, k)
    known: np.ndarray       # (n,) last decision on each item: twice the number of its belief, plus 1 for a forward
    basis: np.ndarray       # (k, k) orthonormal rows: directions explored in this phase
    phase: np.ndarray       # (6,) number of the phase, directions explored, items left to exploit; number of this belief, of
                            # the one of which the two below are, and of that of the next four
    taken: np.ndarray       # (m,) of information-directed sampling: which coming items it forwards
    stop: np.ndarray        # (2,) expected regret and information of what it does; of the patient lookahead what waiting is worth
    toward: np.ndarray      # (k, parts) of the knowledge gradient's bound: Sigma centre,
    own: np.ndarray         # (parts + 1,) centre Sigma centre, rounded up, and at most x Sigma x of any item,
    near: np.ndarray        # (parts,) and the smallest |X'.mu - cost| in each part
    steps: np.ndarray       # (parts,) room
    left: np.ndarray        # (blocks, k, k) of the patient lookahead: what it foresees,
    told: np.ndarray        # (blocks, items that stand for a coming one)


@inlined_jit
def inner(x, y):
    """x.y; for the items as rows, which is quicker where few elements are zero."""
    total = 0.0
    for a in range(len(x)):
        total += x[a] * y[a]
    return total


@inlined_jit
def products(columns, first, count, vector, out):
    """out[j] = column first + j of `columns` times vector, `count` of them side by side."""
    for j in range(count):
        out[j] = 0.0
    for a in range(len(vector)):
        for j in range(count):
            out[j] += columns[a, first + j] * vector[a]


@jit
def gradient(instance, ahead, mu, Sigma, i, enough):
    """E over items X' of the one-step gain from forwarding item i; stops once it exceeds `enough`."""
    along, steps, means, gained = np.empty(len(mu)), np.empty(LANES), np.empty(LANES), 0.0
    total = project(instance, i, Sigma, along) + instance.noise_var[i]
    if total <= 0.0:
        return 0.0
    for first in range(0, len(ahead.weights), LANES):
        count = min(LANES, len(ahead.weights) - first)
        products(ahead.coming, first, count, along, steps)
        products(ahead.coming, first, count, mu, means)
        for j in range(count):
            sd, net, weight = abs(steps[j]) / sqrt(total), means[j] - instance.cost, ahead.weights[first + j]
            if weight > 0.0 and net * net < 64 * sd * sd:
                gained += weight * gain(net, sd)
                if gained > enough:
                    return gained
    return gained


@jit
def survey(instance, ahead, state):
    """What `too_little` reads of this belief."""
    parts, means, total = ahead.parts, np.empty(LANES), np.empty(len(state.mu))
    low, high = np.full(PARTS, np.inf), np.full(PARTS, -np.inf)
    for first in range(0, len(ahead.weights), LANES):
        count = min(LANES, len(ahead.weights) - first)
        products(ahead.coming, first, count, state.mu, means)
        for j in range(count):
            g, net = parts.of[first + j], means[j] - instance.cost
            low[g], high[g] = min(low[g], net), max(high[g], net)
    for g in range(PARTS):
        state.near[g], total[:] = max(low[g], -high[g], 0.0), 0.0
        for a in range(len(total)):
            for b in range(len(total)):
                total[b] += parts.centre[g, a] * state.Sigma[a, b]
        state.own[g] = max(inner(parts.centre[g], total), 0.0) + parts.slack
        put(total, state.toward[:, g])
    state.own[PARTS] = (sqrt(state.own[0]) + parts.away) ** 2
    state.phase[5] = state.phase[3]


@jit
def bounded(ahead, state, scale, share):
    """At most the gain, where a part's st is at most |steps| scale + share spread."""
    gained = 0.0
    for g in range(PARTS):
        gained += ahead.parts.mass[g] * gain(state.near[g], abs(state.steps[g]) * scale + share * ahead.parts.spread[g])
    return gained


@jit
def too_little(instance, ahead, state, i, enough):
    """Is `gradient` of item i below `enough` in this belief, by one of three bounds?  False where none says so."""
    if state.phase[5] != state.phase[3]:
        survey(instance, ahead, state)
    steps, most, noise = state.steps, 0.0, (1 - 1e-4) * instance.noise_var[i]
    products(state.toward, 0, PARTS, ahead.items[i], steps)
    for g in range(PARTS):
        most = max(most, steps[g] * steps[g] / state.own[g])
    widest = state.own[PARTS]
    if bounded(ahead, state, 1 / sqrt(most + noise), sqrt(widest / (widest + noise))) < enough:
        return True
    along, found = np.empty(len(state.mu)), np.empty(LANES)
    var = project(instance, i, state.Sigma, along)
    scale = 1 / sqrt(var + noise)
    if bounded(ahead, state, scale, scale * sqrt(var + 1e-4 * noise)) < enough:
        return True
    steps[:] = 0.0
    for first in range(0, len(ahead.weights), LANES):
        count = min(LANES, len(ahead.weights) - first)
        products(ahead.coming, first, count, along, found)
        for j in range(count):
            g = ahead.parts.of[first + j]
            steps[g] = max(steps[g], abs(found[j]))
    return bounded(ahead, state, scale, 0.0) < enough


@jit
def directed(instance, mu, Sigma, alpha, known):
    """Fill `known` with the items whose forwarding lowers the ratio of squared regret to information; returns both."""
    n, along = len(instance.probs), np.empty(len(mu))
    loss, info, price, regret, learned = np.empty(n), np.empty(n), np.full(n, np.inf), 0.0, 0.0
    for i in range(n):
        var = project(instance, i, Sigma, along)
        loss[i] = instance.cost - dot(instance, i, mu)
        info[i] = log1p(var / instance.noise_var[i]) / 2 if var > 0.0 else 0.0
        regret += instance.probs[i] * gain(loss[i], sqrt(var))
        if info[i] > 0.0:
            price[i] = loss[i] / info[i]
        known[i] = loss[i] <= 0.0
        if known[i]:
            learned += instance.probs[i] * info[i]
    for i in np.argsort(price, kind="mergesort"):
        if loss[i] <= 0.0:
            continue
        if info[i] <= 0.0 or not 2 * learned * loss[i] < alpha * regret * info[i]:
            break
        known[i] = 1
        regret, learned = regret + instance.probs[i] * loss[i], learned + instance.probs[i] * info[i]
    return regret, learned


@once_jit
def informed(instance, ahead, state, alpha, i, net):
    """Does information-directed sampling forward item i: is it taken, or by its ratio where only a sample is looked at?"""
    if state.phase[4] != state.phase[3]:
        state.stop[0], state.stop[1] = directed(ahead.sample, state.mu, state.Sigma, alpha, state.taken)
        state.phase[4] = state.phase[3]
    if not ahead.sampled:
        return state.taken[i] == 1
    var = project(instance, i, state.Sigma, np.empty(len(state.mu)))
    info = log1p(var / instance.noise_var[i]) / 2 if var > 0.0 else 0.0
    return net >= 0.0 or 2 * state.stop[1] * -net < alpha * state.stop[0] * info


@jit
def explores(ahead, state, i):
    """Phased exploration: is item i a new direction of this phase?  Takes it into the basis if so."""
    rest, found = ahead.items[i].copy(), state.phase[1]
    for _ in range(2):                                         # twice, against rounding
        for d in range(found):
            share = inner(state.basis[d], rest)
            for a in range(len(rest)):
                rest[a] -= share * state.basis[d, a]
    left = inner(rest, rest)
    if left <= TINY * inner(ahead.items[i], ahead.items[i]):
        return False
    for a in range(len(rest)):
        state.basis[found, a] = rest[a] / sqrt(left)
    state.phase[1] = found + 1
    return True


@once_jit
def phased(ahead, state, i, alpha, net):
    """Explore until the phase's forwards span the items, then exploit alpha times the phase's number of items."""
    if state.phase[1] < ahead.rank:
        go = explores(ahead, state, i) or net >= 0.0
        if state.phase[1] == ahead.rank:
            state.phase[2] = int(np.ceil(alpha * state.phase[0]))
    else:
        go = net >= 0.0
        state.phase[2] -= 1
    if state.phase[1] == ahead.rank and state.phase[2] <= 0:
        state.phase[0], state.phase[1] = state.phase[0] + 1, 0
    return go


@jit
def optimistic(instance, mu, Sigma, i, alpha):
    """UCB's rule."""
    var = project(instance, i, Sigma, np.empty(len(mu)))
    return dot(instance, i, mu) + alpha * sqrt(var) >= instance.cost


@jit
def follow(instance, ahead, mu, Sigma, alpha, f, theta):
    """What UCB earns on future f of the user theta, from the belief (mu, Sigma), which it overwrites."""
    room, reward, discount = np.empty(len(mu)), 0.0, 1.0
    for m in range(ahead.futures.coming.shape[1]):
        i = ahead.futures.coming[f, m]
        discount *= instance.gamma
        if optimistic(instance, mu, Sigma, i, alpha):
            worth = dot(instance, i, theta)
            reward += discount * (worth - instance.cost)
            y = worth + sqrt(instance.noise_var[i]) * ahead.futures.noise[f, m + 1]
            learn(instance, i, y, mu, Sigma, room)
    return reward


@jit
def root(Sigma):
    """L with L L' = Sigma, by Cholesky; directions of no variance are left out."""
    L, k = np.zeros(Sigma.shape), len(Sigma)
    for a in range(k):
        left = Sigma[a, a] - inner(L[a, :a], L[a, :a])
        if left > TINY * Sigma[a, a]:
            L[a, a] = sqrt(left)
            for b in range(a + 1, k):
                L[b, a] = (Sigma[b, a] - inner(L[b, :a], L[a, :a])) / L[a, a]
    return L


@jit
def overruled(instance, ahead, mu, Sigma, i, alpha, futures):
    """UCB's decision, unless `futures` sampled futures show the other to be better by GUARD standard errors."""
    drawn, base, L, room = ahead.futures, optimistic(instance, mu, Sigma, i, alpha), root(Sigma), np.empty(len(mu))
    mean, square = 0.0, 0.0
    for f in range(futures):
        theta = mu.copy()
        for a in range(len(mu)):
            theta[a] += inner(L[a], drawn.users[f])
        after_mu, after_Sigma, worth = mu.copy(), Sigma.copy(), dot(instance, i, theta)
        learn(instance, i, worth + sqrt(instance.noise_var[i]) * drawn.noise[f, 0], after_mu, after_Sigma, room)
        better = (worth - instance.cost + follow(instance, ahead, after_mu, after_Sigma, alpha, f, theta)
                  - follow(instance, ahead, mu.copy(), Sigma.copy(), alpha, f, theta))
        mean, square = mean + better, square + better * better
    mean /= futures
    error = sqrt(max(square / futures - mean * mean, 0.0) / (futures - 1))
    return mean >= -GUARD * error if base else mean > GUARD * error


@inlined_jit
def outweighs(instance, ahead, belief, i, net, later):
    """The knowledge gradient's rule: item i pays at once, or what its feedback adds to `later` items is above the loss -net."""
    if net > 0.0 or later == 0.0:
        return net > 0.0
    mu, Sigma = belief
    return later * gradient(instance, ahead, mu, Sigma, i, -net / later) > -net


@once_jit
def by_gain(instance, ahead, state, kind, alpha, i, net):
    """Knowledge gradient and lookahead on scores: what one feedback adds to later items against the loss -net."""
    if net > 0.0 or alpha == 0.0:
        return net > 0.0
    later = alpha * instance.gamma / (1 - instance.gamma)
    if kind == GRADIENT:
        if len(ahead.parts.mass) > 0 and too_little(instance, ahead, state, i, (1 - 1e-6) * -net / later):
            return False
        return outweighs(instance, ahead, (state.mu, state.Sigma), i, net, later)
    var = project(instance, i, state.Sigma, np.empty(len(state.mu)))
    sd = var / sqrt(var + instance.noise_var[i]) if var > 0.0 else 0.0
    return later * ahead.reach[i] * gain(net, sd) > -net


@jit
def outwaits(instance, ahead, state, alpha, i, net):
    """The patient lookahead: item i pays at once, or a forward of it is worth more than waiting."""
    if net > 0.0:
        return True
    foreseen = state.left, state.told
    if state.phase[4] != state.phase[3]:
        left, told = foresee(ahead.prospect, alpha, state.mu, state.Sigma)
        put(left, state.left)
        put(told, state.told)
        state.stop[0], state.phase[4] = waiting(ahead.prospect, foreseen, state.mu), state.phase[3]
    return worth(instance, ahead.prospect, foreseen, state.mu, i) > state.stop[0]


@once_jit
def decide(instance, ahead, state, rule, i, n):
    """Does the policy `rule` = (kind, alpha, futures) forward item i, the n-th to arrive (from 0)?"""
    kind, alpha, futures = rule
    net = inner(ahead.items[i], state.mu) - instance.cost
    if kind == PHASED:
        return phased(ahead, state, i, alpha, net)
    if kind == QUANTILE:
        return optimistic(instance, state.mu, state.Sigma, i, alpha * ahead.quantile[n])
    if state.known[i] >> 1 != state.phase[3]:
        if kind == DIRECTED:
            go = informed(instance, ahead, state, alpha, i, net)
        elif kind == PATIENT:
            go = outwaits(instance, ahead, state, alpha, i, net)
        elif kind == ROLLOUT:
            go = overruled(instance, ahead, state.mu, state.Sigma, i, alpha, futures)
        else:
            go = by_gain(instance, ahead, state, kind, alpha, i, net)
        state.known[i] = 2 * state.phase[3] + (1 if go else 0)
    return state.known[i] & 1 == 1


@jit
def look_ahead(instance, ahead, stream, r, first, state):
    """Ask for the memory of AHEAD items of a user, from number `first` on (`lib.fetch`)."""
    k = ahead.items.shape[1]
    for i in stream.items[r, first:first + AHEAD]:
        ask(ahead, "items", i * k, (i + 1) * k)
        ask(state, "known", i, i + 1)
        ask(instance, "noise_var", i, i + 1)


@once_jit
def play(instance, ahead, rule, stream, r, state, decisions):
    """One policy meets replication r: its discounted reward; `decisions` (horizon,) gets what it forwards."""
    room, reward = np.empty(len(state.mu)), 0.0
    put(instance.mu, state.mu)
    put(instance.Sigma, state.Sigma)
    state.phase[0], state.phase[1], state.phase[2], state.phase[3] = 1, 0, 0, state.phase[3] + 1
    for n in range(len(decisions)):
        if ahead.far and n % AHEAD == 0:
            look_ahead(instance, ahead, stream, r, n + AHEAD, state)
        i = stream.items[r, n]
        decisions[n] = decide(instance, ahead, state, rule, i, n)
        if decisions[n]:
            reward += stream.pay[r, n]
            learn(instance, i, stream.feedback[r, n], state.mu, state.Sigma, room)
            state.phase[3] += 1
    return reward


@jit
def run(instance, ahead, rules, stream, rewards, decisions):
    """Every policy on every replication of `stream`: fills rewards (P, R) and decisions (P, R, horizon)."""
    kinds, alphas, futures = rules
    (n, k), blocks = ahead.items.shape, len(ahead.prospect.blocks)
    state = State(np.empty(k), np.empty((k, k)), np.zeros(n, np.int64), np.empty((k, k)), np.zeros(6, np.int64),
                  np.empty(len(ahead.weights), np.int8), np.empty(2),
                  np.empty((k, PARTS)), np.empty(PARTS + 1), np.empty(PARTS), np.empty(PARTS),
                  np.empty((blocks, k, k)), np.empty((blocks, len(ahead.prospect.sample.probs))))
    for p in range(len(kinds)):
        rule = kinds[p], alphas[p], futures[p]
        for r in range(rewards.shape[1]):
            rewards[p, r] = play(instance, ahead, rule, stream, r, state, decisions[p, r])


def make_lookahead(problem, policies, horizon):
    """The kernels' Lookahead of a problem."""
    kinds, k = {entry(policy).rule for policy in policies}, len(problem.mu)
    count = max([policy.futures for policy in policies], default=0)
    length = effective_horizon(problem.gamma, REST) if count else 0
    rng = streams.generator(0, streams.Purpose.FUTURES)
    users, uniforms = rng.standard_normal((count, k)), rng.random((count, length))
    futures = Futures(users, streams.draw_items(problem.probs, uniforms), rng.standard_normal((count, length + 1)))
    index, weights, sampled = coming(problem, SAMPLE)
    noise = problem.noise if isinstance(problem.noise, str) else problem.noise[index]
    sample = problem._replace(items=problem.items[index], probs=weights, noise=noise)
    return Lookahead(problem.items, mean_projection(problem) if SCORES in kinds else np.zeros(0),
                     dimension(problem) if PHASED in kinds else 0, np.ascontiguousarray(sample.items.T), weights,
                     compile_problem(sample), sampled, ndtri(1 - 1 / (np.arange(horizon) + 2)), futures,
                     make_parts(problem, sample, sampled, GRADIENT in kinds and 1 < horizon <= LONG),
                     make_prospect(problem, PATIENT in kinds), problem.items.nbytes > CACHE)


def make_parts(problem, sample, sampled, wanted):
    """The Parts of the coming items of `sample`: none unless wanted, where they are few, or where noise is too little."""
    m, k = sample.items.shape
    if not wanted or m <= LANES or noise_share(problem) < CLEAR:
        return Parts(np.zeros(m, np.int64), np.zeros(0), np.zeros((0, k)), np.zeros(0), 0.0, 0.0)
    order, of = np.arange(m) if sampled else np.argsort(leading(sample), kind="stable"), np.empty(m, np.int64)
    of[order] = np.arange(m) * PARTS // m
    centre = np.array([sample.items[of == g].mean(axis=0) for g in range(PARTS)])
    rest = np.array([variances(sample.items[of == g] - centre[g], problem.Sigma).max() for g in range(PARTS)])
    sd, largest, away = np.sqrt(np.diag(problem.Sigma)), 0.0, 0.0
    for rows in blocks(*problem.items.shape):
        largest = max(largest, (np.abs(problem.items[rows]) @ sd).max())
        away = max(away, variances(problem.items[rows] - centre[0], problem.Sigma).max())
    slack = float(1e-10 * largest**2)
    return Parts(of, np.bincount(of, sample.probs, PARTS), centre, np.sqrt(rest + slack), float(np.sqrt(away + slack)), slack)


def dimension(problem):
    """The dimension of what the items that come span; of many items by way of a (k, k) triangle with their singular values."""
    used, rows = problem.items[problem.probs > 0], np.zeros((0, len(problem.mu)))
    if len(used) <= EXACT:
        return int(np.linalg.matrix_rank(used))
    for part in blocks(*used.shape):
        rows = np.linalg.qr(np.vstack([rows, used[part]]), mode="r")
    values = np.linalg.svd(rows, compute_uv=False)
    return int(np.count_nonzero(values > values.max() * len(used) * np.finfo(float).eps))


def make_runner(problem, policies, horizon):
    """A function (stream, rewards, decisions) that lets whole-belief policies meet a stream and fills the arrays.

    Parameters
    ----------
    problem : Problem
    policies : sequence of Policy
        Of the kinds that look at the whole belief.
    horizon : int

    Raises
    ------
    ValueError
        When the noise is too small beside the prior for a covariance matrix to hold what was learned.
    """
    share = noise_share(problem)
    if share < COARSE:
        raise ValueError(f"noise_sd is {problem.noise_sd}: with these items and this prior, policies that look at the whole "
                         f"belief need {problem.noise_sd * np.sqrt(COARSE / share):.3g} or more")
    instance, ahead = compile_problem(problem), make_lookahead(problem, policies, horizon)
    rules = (np.array([entry(policy).rule for policy in policies]), np.array([policy.alpha for policy in policies]),
             np.array([policy.futures for policy in policies]))
    return lambda stream, rewards, decisions: run(instance, ahead, rules, stream, rewards, decisions)
