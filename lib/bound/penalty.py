"""Kernels of the full-observation dual: values of information, their charges, and the search over decisions.

Between arrivals the belief is s = (mu, Sigma).  FO(s) is what full observation earns from s on: it sees every
feedback, forwarded or not.  Given the items z_1, z_2, ... that arrive,

    FO(s) = sum_m gamma^m E (z_m.mu_{m-1} - cost)^+,    z_m.mu_{m-1} ~ N(z_m.mu, z_m (Sigma - Sigma_{m-1}) z_m),

and after feedback on x the same with Sigma_{m-1} replaced by Sigma_{m-1} - g g' / (x.g + noise_var(x)),
g = Sigma_{m-1} x.  Their difference is VOI_x(s), and every term of it is nonnegative.  On arrival of x in s,

    a forward is charged (x.mu - cost)^-,    a skip (x.mu - cost)^+ + VOI_x(s);

`lib.bound.duality` says why the charges measure what any policy loses against full observation.

What decisions lose against full observation, on sampled paths: charges, control variates, gaps.

The identity V^pi = FO - E sum_n gamma^n charge_n (`lib.bound.duality`) holds for T arrivals as well, with full observation of
the arrivals that are left.  So reward plus charges minus FO has mean zero for every policy, and the charges of a
policy, less the least charges on the same paths, measure how far it stays below the dual bound.
"""
from heapq import heappop, heappush
from math import sqrt
from typing import NamedTuple

import numba as nb
import numpy as np

from lib import streams
from lib.normal import excess, gain
from lib.problem import effective_horizon, noise_var

READY, SKIP, FORWARD = range(3)     # an open node: to be expanded, or a skip or forward still to be carried out
CHUNKS = 64                         # pieces of work for the threads


class Compiled(NamedTuple):
    """What the kernels read of a problem; item i has the non-zero elements start[i]:start[i + 1]."""

    start: np.ndarray     # (n + 1,)
    feature: np.ndarray   # (nnz,)
    size: np.ndarray      # (nnz,)
    noise: np.ndarray     # (n,) noise variances
    cost: float
    gamma: float


class Beliefs(NamedTuple):
    """Room for the beliefs that a search meets."""

    mu: np.ndarray       # (B, k)
    Sigma: np.ndarray    # (B, k, k)
    voi: np.ndarray      # (B, n) values of information, -1 where not computed yet


@nb.njit(cache=True)
def _dot(scene, i, vector):
    total = 0.0
    for a in range(scene.start[i], scene.start[i + 1]):
        total += scene.size[a] * vector[scene.feature[a]]
    return total


@nb.njit(cache=True)
def _along(scene, i, Sigma, out):
    """out = Sigma x; x Sigma x is returned."""
    out[:] = 0.0
    for a in range(scene.start[i], scene.start[i + 1]):
        row, size = Sigma[scene.feature[a]], scene.size[a]
        for b in range(len(out)):
            out[b] += size * row[b]
    return max(_dot(scene, i, out), 0.0)


@nb.njit(cache=True)
def _shrink(Sigma, h, total):
    """Sigma -= h h' / total."""
    if total > 0:
        for a in range(len(h)):
            if h[a] != 0.0:
                scale = h[a] / total
                for b in range(len(h)):
                    Sigma[a, b] -= scale * h[b]


@nb.njit(cache=True)
def learn(scene, i, y, mu, Sigma, h):
    """The belief after feedback y on item i, in place; `h` is room for Sigma x."""
    total = _along(scene, i, Sigma, h) + scene.noise[i]
    if total > 0:
        surprise = (y - _dot(scene, i, mu)) / total
        for a in range(len(mu)):
            mu[a] += surprise * h[a]
        _shrink(Sigma, h, total)


@nb.njit(cache=True)
def voi(scene, x, mu, Sigma, ahead, steps):
    """VOI_x(s), averaged over the arrivals in the rows of `ahead` (R, H), the first `steps` of each.

    x = -1 asks for FO(s) itself on these arrivals.
    """
    k, total = len(mu), 0.0
    S, g, h = np.empty((k, k)), np.empty(k), np.empty(k)
    for r in range(ahead.shape[0]):
        S[:], discount = Sigma, 1.0
        spare = _along(scene, x, S, g) + scene.noise[x] if x >= 0 else 0.0
        if x >= 0 and spare <= 0:
            return 0.0
        for m in range(min(steps, ahead.shape[1])):
            j = ahead[r, m]
            discount *= scene.gamma
            net, left = _dot(scene, j, mu) - scene.cost, _along(scene, j, S, h)
            prior = 0.0
            for a in range(scene.start[j], scene.start[j + 1]):
                for b in range(scene.start[j], scene.start[j + 1]):
                    prior += scene.size[a] * scene.size[b] * Sigma[scene.feature[a], scene.feature[b]]
            known, total_j = prior - left, left + scene.noise[j]
            if x < 0:
                total += discount * excess(net, sqrt(max(known, 0.0)))
            else:
                cross = _dot(scene, j, g)
                more = known + cross * cross / spare
                if net * net < 36 * more:
                    total += discount * max(gain(net, sqrt(more)) - gain(net, sqrt(max(known, 0.0))), 0.0)
                if total_j > 0:
                    ratio = cross / total_j
                    for a in range(k):
                        g[a] -= ratio * h[a]
                    spare -= ratio * cross
            _shrink(S, h, total_j)
    return total / ahead.shape[0]


@nb.njit(cache=True)
def search(scene, items, feedback, ahead, effort, room):
    """The least total charge of any decisions along a path, or a number below it when effort or room runs out.

    Row 0 of `room` holds the belief to start from.  Open nodes are (charge, -arrivals decided, kind, row of
    the belief).  Charges are nonnegative: the cheapest open node bounds all that is still possible.
    """
    room.voi[0], beliefs, h = -1.0, 1, np.empty(room.mu.shape[1])
    heap = [(0.0, 0, READY, 0)]
    for _ in range(effort):
        charge, depth, kind, s = heap[0]
        depth = -depth
        if depth == len(items) or kind == FORWARD and beliefs == len(room.mu):
            break
        heappop(heap)
        x, discount = items[depth], scene.gamma**(depth + 1)
        if kind == READY:
            net = _dot(scene, x, room.mu[s]) - scene.cost
            heappush(heap, (charge + discount * max(-net, 0.0), -depth, FORWARD, s))
            heappush(heap, (charge + discount * max(net, 0.0), -depth, SKIP, s))
        elif kind == SKIP:
            if room.voi[s, x] < 0:
                room.voi[s, x] = voi(scene, x, room.mu[s], room.Sigma[s], ahead, ahead.shape[1])
            heappush(heap, (charge + discount * room.voi[s, x], -depth - 1, READY, s))
        else:
            room.mu[beliefs], room.Sigma[beliefs], room.voi[beliefs] = room.mu[s], room.Sigma[s], -1.0
            learn(scene, x, feedback[depth], room.mu[beliefs], room.Sigma[beliefs], h)
            heappush(heap, (charge, -depth - 1, READY, beliefs))
            beliefs += 1
    return heap[0][0]


@nb.njit(cache=True)
def follow(scene, mu, Sigma, items, feedback, ahead, decisions):
    """The total charge of given decisions when T items arrive in all: a skip looks at the arrivals left."""
    mu, Sigma, h, total, discount = mu.copy(), Sigma.copy(), np.empty(len(mu)), 0.0, 1.0
    for n in range(len(items)):
        x = items[n]
        discount *= scene.gamma
        net = _dot(scene, x, mu) - scene.cost
        if decisions[n]:
            total += discount * max(-net, 0.0)
            learn(scene, x, feedback[n], mu, Sigma, h)
        else:
            total += discount * (max(net, 0.0) + voi(scene, x, mu, Sigma, ahead, len(items) - n - 1))
    return total


@nb.njit(cache=True, parallel=True)
def least_charge(scene, mu, Sigma, firsts, paths, ahead, effort, beliefs):
    """(P,) least charges along `paths` = (items, feedback), after feedback on an item if `firsts` names one."""
    (items, feedback), (first, seen) = paths, firsts
    P, k = len(items), len(mu)
    out, chunks = np.empty(P), min(P, CHUNKS)
    for c in nb.prange(chunks):
        room = Beliefs(np.empty((beliefs, k)), np.empty((beliefs, k, k)), np.empty((beliefs, len(scene.noise))))
        h = np.empty(k)
        for p in range(c, P, chunks):
            room.mu[0], room.Sigma[0] = mu, Sigma
            if first[p] >= 0:
                learn(scene, first[p], seen[p], room.mu[0], room.Sigma[0], h)
            out[p] = search(scene, items[p], feedback[p], ahead[p], effort, room)
    return out


@nb.njit(cache=True, parallel=True)
def full_observation_values(scene, mu, Sigma, ahead, which):
    """(P, len(which)) `voi` of each item in `which` (-1: FO itself) over the arrivals `ahead` (P, R, H)."""
    out = np.empty((len(ahead), len(which)))
    for p in nb.prange(len(ahead)):
        for x in range(len(which)):
            out[p, x] = voi(scene, which[x], mu, Sigma, ahead[p], ahead.shape[2])
    return out


@nb.njit(cache=True, parallel=True)
def charge_paths(scene, mu, Sigma, paths, ahead, decisions):
    """(A + 1, P) FO of the T arrivals in the rows of `ahead`, then the charges of decisions (A, P, T)."""
    items, feedback = paths
    A, P, T = decisions.shape
    out = np.empty((A + 1, P))
    for p in nb.prange(P):
        out[0, p] = voi(scene, -1, mu, Sigma, ahead[p], T)
        for a in range(A):
            out[a + 1, p] = follow(scene, mu, Sigma, items[p], feedback[p], ahead[p], decisions[a, p])
    return out


PATHS, AHEAD = 32, 33      # purposes of the random streams


def compile_problem(problem):
    """What the kernels read of a problem."""
    where, feature = np.nonzero(problem.items)
    start = np.searchsorted(where, np.arange(len(problem.items) + 1))
    return Compiled(start, feature, problem.items[where, feature], noise_var(problem), problem.cost, problem.gamma)


def steps(gamma, rest, most):
    """Arrivals until gamma^steps falls below `rest`, at most `most`."""
    return min(effective_horizon(gamma, rest), most)


def beliefs(problem, effort):
    """How many beliefs a search may keep: as many as its effort, or as fit into some 16 MB."""
    return max(2, min(effort, int(2e6) // (len(problem.mu) ** 2 + len(problem.probs))))


def arrivals(problem, shape, rng):
    """(P, R, H) arrivals; the R rows of one path are stratified, each still an independent sequence of items."""
    u = rng.permuted((np.arange(shape[1])[:, None] + rng.random(shape)) / shape[1], axis=1)
    return np.searchsorted(streams.cumulative(problem.probs), u, side="right")


def sample_paths(problem, first, horizon, rng):
    """Feedback on item first[p], then the items and feedback of `horizon` arrivals: (P,), (P, T), (P, T)."""
    theta = problem.mu + rng.standard_normal((len(first), len(problem.mu))) @ streams.factor(problem.Sigma).T
    items = np.searchsorted(streams.cumulative(problem.probs), rng.random((len(first), horizon)), side="right")
    every = np.column_stack([np.maximum(first, 0), items])
    worth = np.take_along_axis(theta @ problem.items.T, every, axis=1)
    feedback = worth + np.sqrt(noise_var(problem))[every] * rng.standard_normal(every.shape)
    return feedback[:, 0], items, np.ascontiguousarray(feedback[:, 1:])


def least_charges(problem, first, inner=4, effort=2000, seed=0):
    """The least total charge along sampled paths, the searcher seeing items and feedback in advance.

    Parameters
    ----------
    problem : Problem
    first : array-like (P,) of int
        For each path the item that was forwarded before it starts, or -1 for none.
    inner : int
        Arrival sequences, drawn apart from the path, over which its values of information are averaged.
    effort : int
        Nodes that a search may open; stopping early lowers the charge, which loosens the bound.
    seed : int or sequence of int

    Returns
    -------
    ndarray (P,)
        Nonnegative, discounted, in reward units.
    """
    first, gamma = np.asarray(first, dtype=np.int64), problem.gamma
    seen, *paths = sample_paths(problem, first, steps(gamma, .002, 200), streams.generator(seed, PATHS))
    ahead = arrivals(problem, (len(first), inner, steps(gamma, .015, 120)), streams.generator(seed, AHEAD))
    return least_charge(compile_problem(problem), problem.mu, problem.Sigma, (first, seen), tuple(paths), ahead, effort,
                         beliefs(problem, effort))


def _charged(problem, items, feedback, decisions, inner, seed):
    """`charges.charged` of arrays that are checked here, and the arrivals it looked ahead to."""
    items, feedback = np.asarray(items, dtype=np.int64), np.ascontiguousarray(feedback, dtype=float)
    if items.ndim != 2 or decisions.ndim != 3 or not items.shape == feedback.shape == decisions.shape[1:]:
        raise ValueError(f"items, feedback and decisions must have shapes (R, T), (R, T) and (policies, R, T), got "
                         f"{items.shape}, {feedback.shape} and {decisions.shape}")
    if not 0 <= items.min() <= items.max() < len(problem.items):
        raise ValueError(f"items holds {items.min()} to {items.max()}: there are {len(problem.items)} items")
    ahead = arrivals(problem, (len(items), inner, items.shape[1]), streams.generator(seed, AHEAD))
    return charge_paths(compile_problem(problem), problem.mu, problem.Sigma, (items, feedback), ahead, decisions), ahead


def control(problem, items, feedback, decisions, rewards, inner=2, seed=0):
    """A variable of mean zero for each policy and replication: reward plus charges minus full observation.

    The identity at the head of this module holds on average over the paths and over the arrival sequences,
    drawn apart from them, that stand for the future in FO and VOI.

    Parameters
    ----------
    problem : Problem
    items, feedback : array-like (R, T) of int, of float
        What each replication met.
    decisions : array-like (P, R, T) of bool
        What each policy forwarded.
    rewards : array-like (P, R)
        Discounted rewards of these T items.
    inner : int
        Arrival sequences for each replication.
    seed : int or sequence of int

    Returns
    -------
    ndarray (P, R)
    """
    decisions = np.asarray(decisions, dtype=bool)
    if np.shape(rewards) != decisions.shape[:2]:
        raise ValueError(f"rewards must have shape {decisions.shape[:2]}, got {np.shape(rewards)}")
    out = _charged(problem, items, feedback, decisions, inner, seed)[0]
    return np.asarray(rewards) + out[1:] - out[0]


def gap(problem, items, feedback, decisions, inner=4, effort=2000, seed=0):
    """How far policies stay below the dual bound of T arrivals, from the same paths; arguments as `control`.

    Returns
    -------
    ndarray (P, R)
        Charges of each policy minus the least charges that the searcher found: the mean is the gap.
    """
    decisions = np.asarray(decisions, dtype=bool)
    out, ahead = _charged(problem, items, feedback, decisions, inner, seed)
    paths = np.asarray(items, dtype=np.int64), np.ascontiguousarray(feedback, dtype=float)
    none = np.full(len(paths[0]), -1), np.zeros(len(paths[0]))
    least = least_charge(compile_problem(problem), problem.mu, problem.Sigma, none, paths, ahead, effort,
                          beliefs(problem, effort))
    return out[1:] - least
