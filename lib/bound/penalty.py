"""The penalty of the full-observation relaxation: what decisions are charged, along paths of items and feedback.

Between arrivals the belief is s = (mu, Sigma).  FO(s) is what full observation earns from s on: it sees every
feedback, forwarded or not.  Given the items z_1, z_2, ... that arrive,

    FO(s) = sum_m gamma^m E (z_m.mu_{m-1} - cost)^+,    z_m.mu_{m-1} ~ N(z_m.mu, z_m (Sigma - Sigma_{m-1}) z_m),

and after feedback on x the same with Sigma_{m-1} replaced by Sigma_{m-1} - g g' / (x.g + noise_var(x)),
g = Sigma_{m-1} x.  Their difference is VOI_x(s), and every term of it is nonnegative.  On arrival of x in s,

    a forward is charged (x.mu - cost)^-,    a skip (x.mu - cost)^+ + VOI_x(s),

and for every policy V^pi = FO - E sum_n gamma^n charge_n: an information relaxation with a penalty (Brown, Smith and
Sun 2010; chapter "Bounds beyond the paper").  The identity holds for T arrivals as well, with FO and VOI of the
arrivals that are left.  So reward plus charges minus FO is a control variate, and the charges of a policy, less the least
charges of any decisions on the same path, measure how far it stays below the dual bound.
"""
from heapq import heappop, heappush
from math import sqrt
from typing import NamedTuple

import numba as nb
import numpy as np

from lib import streams
from lib.bound.relaxations import require_noise
from lib.normal import excess, gain
from lib.problem import effective_horizon, noise_var

READY, SKIP, FORWARD = range(3)     # an open node: to be expanded, or a skip or forward still to be carried out
CHUNKS = 64                         # pieces of work for the threads
CUT = 6.0                           # standard deviations; what charges leave out of VOI is below 1e-10 of one


class Compiled(NamedTuple):
    """What the kernels read of a problem; item i has the non-zero elements start[i]:start[i + 1]."""

    start: np.ndarray     # (n + 1,)
    feature: np.ndarray   # (nnz,)
    size: np.ndarray      # (nnz,)
    noise: np.ndarray     # (n,) noise variances
    mu: np.ndarray        # (k,) prior mean
    Sigma: np.ndarray     # (k, k) prior covariance
    cost: float
    gamma: float


class Paths(NamedTuple):
    """What P users meet, and the arrivals that their values of information are averaged over."""

    first: np.ndarray     # (P,) the item that was forwarded before the path, -1 for none
    seen: np.ndarray      # (P,) feedback on it
    items: np.ndarray     # (P, T)
    feedback: np.ndarray  # (P, T)
    ahead: np.ndarray     # (P, R, H) R sequences of arrivals, drawn apart from the path


class Beliefs(NamedTuple):
    """Room for the beliefs that a search meets."""

    mu: np.ndarray       # (B, k)
    Sigma: np.ndarray    # (B, k, k)
    voi: np.ndarray      # (B, n) values of information, -1 where not computed yet


@nb.njit(cache=True)
def _dot(compiled, i, vector):
    total = 0.0
    for a in range(compiled.start[i], compiled.start[i + 1]):
        total += compiled.size[a] * vector[compiled.feature[a]]
    return total


@nb.njit(cache=True)
def _along(compiled, i, Sigma, out):
    """out = Sigma x; x Sigma x is returned."""
    out[:] = 0.0
    for a in range(compiled.start[i], compiled.start[i + 1]):
        row, size = Sigma[compiled.feature[a]], compiled.size[a]
        for b in range(len(out)):
            out[b] += size * row[b]
    return max(_dot(compiled, i, out), 0.0)


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
def learn(compiled, i, y, mu, Sigma, h):
    """The belief after feedback y on item i, in place; `h` is room for Sigma x."""
    total = _along(compiled, i, Sigma, h) + compiled.noise[i]
    if total > 0:
        surprise = (y - _dot(compiled, i, mu)) / total
        for a in range(len(mu)):
            mu[a] += surprise * h[a]
        _shrink(Sigma, h, total)


@nb.njit(cache=True)
def _explained(compiled, j, Sigma, S, h):
    """What of the variance of x_j.theta under Sigma is gone under S, and what is left; h = S x_j."""
    left, prior = _along(compiled, j, S, h), 0.0
    for a in range(compiled.start[j], compiled.start[j + 1]):
        for b in range(compiled.start[j], compiled.start[j + 1]):
            prior += compiled.size[a] * compiled.size[b] * Sigma[compiled.feature[a], compiled.feature[b]]
    return max(prior - left, 0.0), left


@nb.njit(cache=True)
def full_value(compiled, mu, Sigma, ahead, steps):
    """FO(s), averaged over the arrivals in the rows of `ahead` (R, H), the first `steps` of each."""
    k, total = len(mu), 0.0
    S, h = np.empty((k, k)), np.empty(k)
    for r in range(ahead.shape[0]):
        S[:], discount = Sigma, 1.0
        for m in range(min(steps, ahead.shape[1])):
            j = ahead[r, m]
            discount *= compiled.gamma
            known, left = _explained(compiled, j, Sigma, S, h)
            total += discount * excess(_dot(compiled, j, mu) - compiled.cost, sqrt(known))
            _shrink(S, h, left + compiled.noise[j])
    return total / ahead.shape[0]


@nb.njit(cache=True)
def voi(compiled, x, mu, Sigma, ahead, steps, cut):
    """VOI_x(s), averaged over the first `steps` arrivals in the rows of `ahead` (R, H).

    A summand counts as 0 where its mean is `cut` standard deviations from 0.  That lowers VOI: charges may be cut,
    and the dual bound loosens, but the value of a first forward may not (`cut` is infinite there).
    """
    k, total = len(mu), 0.0
    S, g, h = np.empty((k, k)), np.empty(k), np.empty(k)
    for r in range(ahead.shape[0]):
        S[:], discount = Sigma, 1.0
        spare = _along(compiled, x, S, g) + compiled.noise[x]
        if spare <= 0:
            return 0.0
        for m in range(min(steps, ahead.shape[1])):
            j = ahead[r, m]
            discount *= compiled.gamma
            net = _dot(compiled, j, mu) - compiled.cost
            known, left = _explained(compiled, j, Sigma, S, h)
            cross, total_j = _dot(compiled, j, g), left + compiled.noise[j]
            more = known + min(cross * cross / spare, left)
            if net * net < cut * cut * more:
                total += discount * max(gain(net, sqrt(more)) - gain(net, sqrt(known)), 0.0)
            if total_j > 0:
                ratio = cross / total_j
                for a in range(k):
                    g[a] -= ratio * h[a]
                spare = max(spare - ratio * cross, compiled.noise[x])
            _shrink(S, h, total_j)
    return total / ahead.shape[0]


@nb.njit(cache=True)
def search(compiled, items, feedback, ahead, effort, room, endless):
    """The least total charge of any decisions along a path, or a number below it when effort or room runs out.

    Row 0 of `room` holds the belief to start from.  Open nodes are (charge, -arrivals decided, kind, row of
    the belief).  Charges are nonnegative: the cheapest open node bounds all that is still possible.  A skip looks at
    all arrivals `ahead` if the stream is `endless`, and else at as many as are left of the path.
    """
    room.voi[0], beliefs, h = -1.0, 1, np.empty(room.mu.shape[1])
    heap = [(0.0, 0, READY, 0)]
    for _ in range(effort):
        charge, depth, kind, s = heap[0]
        depth = -depth
        if depth == len(items) or kind == FORWARD and beliefs == len(room.mu):
            break
        heappop(heap)
        x, discount = items[depth], compiled.gamma**(depth + 1)
        if kind == READY:
            net = _dot(compiled, x, room.mu[s]) - compiled.cost
            heappush(heap, (charge + discount * max(-net, 0.0), -depth, FORWARD, s))
            heappush(heap, (charge + discount * max(net, 0.0), -depth, SKIP, s))
        elif kind == SKIP:
            if room.voi[s, x] < 0 or not endless:
                steps = ahead.shape[1] if endless else len(items) - depth - 1
                room.voi[s, x] = voi(compiled, x, room.mu[s], room.Sigma[s], ahead, steps, CUT)
            heappush(heap, (charge + discount * room.voi[s, x], -depth - 1, READY, s))
        else:
            room.mu[beliefs], room.Sigma[beliefs], room.voi[beliefs] = room.mu[s], room.Sigma[s], -1.0
            learn(compiled, x, feedback[depth], room.mu[beliefs], room.Sigma[beliefs], h)
            heappush(heap, (charge, -depth - 1, READY, beliefs))
            beliefs += 1
    return heap[0][0]


@nb.njit(cache=True)
def follow(compiled, items, feedback, ahead, decisions):
    """The total charge of given decisions when T items arrive in all: a skip looks at the arrivals left."""
    mu, Sigma, total, discount = compiled.mu.copy(), compiled.Sigma.copy(), 0.0, 1.0
    h = np.empty(len(mu))
    for n in range(len(items)):
        x = items[n]
        discount *= compiled.gamma
        net = _dot(compiled, x, mu) - compiled.cost
        if decisions[n]:
            total += discount * max(-net, 0.0)
            learn(compiled, x, feedback[n], mu, Sigma, h)
        else:
            total += discount * (max(net, 0.0) + voi(compiled, x, mu, Sigma, ahead, len(items) - n - 1, CUT))
    return total


@nb.njit(cache=True, parallel=True)
def least_charge(compiled, paths, effort, beliefs, endless):
    """(P,) `search` along each of the paths, with room for so many beliefs, after the feedback on its first item."""
    P, k = len(paths.items), len(compiled.mu)
    out, chunks = np.empty(P), min(P, CHUNKS)
    for c in nb.prange(chunks):
        room = Beliefs(np.empty((beliefs, k)), np.empty((beliefs, k, k)), np.empty((beliefs, len(compiled.noise))))
        h = np.empty(k)
        for p in range(c, P, chunks):
            room.mu[0], room.Sigma[0] = compiled.mu, compiled.Sigma
            if paths.first[p] >= 0:
                learn(compiled, paths.first[p], paths.seen[p], room.mu[0], room.Sigma[0], h)
            out[p] = search(compiled, paths.items[p], paths.feedback[p], paths.ahead[p], effort, room, endless)
    return out


@nb.njit(cache=True, parallel=True)
def values_of_information(compiled, ahead):
    """(P, 1 + n) FO(s_0) over the arrivals `ahead` (P, R, H), then VOI of each item; nothing is cut."""
    out = np.empty((len(ahead), 1 + len(compiled.noise)))
    for p in nb.prange(len(ahead)):
        out[p, 0] = full_value(compiled, compiled.mu, compiled.Sigma, ahead[p], ahead.shape[2])
        for x in range(len(compiled.noise)):
            out[p, 1 + x] = voi(compiled, x, compiled.mu, compiled.Sigma, ahead[p], ahead.shape[2], np.inf)
    return out


@nb.njit(cache=True, parallel=True)
def charge_paths(compiled, paths, decisions):
    """(A + 1, P) FO of the T arrivals in the rows of `ahead`, then the charges of decisions (A, P, T)."""
    A, P, T = decisions.shape
    out = np.empty((A + 1, P))
    for p in nb.prange(P):
        out[0, p] = full_value(compiled, compiled.mu, compiled.Sigma, paths.ahead[p], T)
        for a in range(A):
            out[a + 1, p] = follow(compiled, paths.items[p], paths.feedback[p], paths.ahead[p], decisions[a, p])
    return out


PATHS, AHEAD = 32, 33      # purposes of the random streams


def compile_problem(problem):
    """What the kernels read of a problem; ValueError where they cannot be exact (`relaxations.require_noise`)."""
    require_noise(problem)
    where, feature = np.nonzero(problem.items)
    start = np.searchsorted(where, np.arange(len(problem.items) + 1))
    return Compiled(start, feature, problem.items[where, feature], noise_var(problem), problem.mu, problem.Sigma,
                    problem.cost, problem.gamma)


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
    first, gamma, compiled = np.asarray(first, dtype=np.int64), problem.gamma, compile_problem(problem)
    seen, items, feedback = sample_paths(problem, first, steps(gamma, .002, 200), streams.generator(seed, PATHS))
    ahead = arrivals(problem, (len(first), inner, steps(gamma, .015, 120)), streams.generator(seed, AHEAD))
    return least_charge(compiled, Paths(first, seen, items, feedback, ahead), effort, beliefs(problem, effort), True)


def _met(problem, episodes, decisions, inner, seed):
    """The Paths of `episodes`, checked, with as many arrivals ahead as there were items."""
    items, feedback = np.asarray(episodes.items, dtype=np.int64), np.ascontiguousarray(episodes.feedback, dtype=float)
    if items.ndim != 2 or decisions.ndim != 3 or not items.shape == feedback.shape == decisions.shape[1:]:
        raise ValueError(f"items, feedback and decisions must have shapes (R, T), (R, T) and (policies, R, T), got "
                         f"{items.shape}, {feedback.shape} and {decisions.shape}")
    if not 0 <= items.min() <= items.max() < len(problem.items):
        raise ValueError(f"items holds {items.min()} to {items.max()}: there are {len(problem.items)} items")
    ahead = arrivals(problem, (len(items), inner, items.shape[1]), streams.generator(seed, AHEAD))
    return Paths(np.full(len(items), -1), np.zeros(len(items)), items, feedback, ahead)


def control(problem, episodes, inner=2, seed=0):
    """A variable of mean zero for each policy and replication: reward plus charges minus full observation.

    The identity at the head of this module holds on average over the paths and over the arrival sequences,
    drawn apart from them, that stand for the future in FO and VOI.

    Parameters
    ----------
    problem : Problem
    episodes : lib.simulate.Episodes, or anything with these four
        items, feedback (R, T), what each replication met; decisions (P, R, T) of bool, what each policy forwarded;
        rewards (P, R), discounted, of these T items.
    inner : int
        Arrival sequences for each replication.
    seed : int or sequence of int

    Returns
    -------
    ndarray (P, R)
        Reward units.

    Raises
    ------
    ValueError
        Where shapes do not agree, an item is unknown, or the noise is too small for the belief updates.
    """
    decisions = np.asarray(episodes.decisions, dtype=bool)
    if np.shape(episodes.rewards) != decisions.shape[:2]:
        raise ValueError(f"rewards must have shape {decisions.shape[:2]}, got {np.shape(episodes.rewards)}")
    charged = charge_paths(compile_problem(problem), _met(problem, episodes, decisions, inner, seed), decisions)
    return np.asarray(episodes.rewards) + charged[1:] - charged[0]


def gap(problem, episodes, inner=4, effort=2000, seed=0):
    """How far policies stay below the dual bound when T items arrive in all, from the same paths.

    Policy and searcher are charged alike, a skip with the arrivals that are left.  Arguments are those of `control`
    (rewards are not used) and of `least_charges`.

    Returns
    -------
    ndarray (P, R)
        Charges of each policy minus the least charges that the searcher found, nonnegative: the mean is the gap.
    """
    decisions, compiled = np.asarray(episodes.decisions, dtype=bool), compile_problem(problem)
    paths = _met(problem, episodes, decisions, inner, seed)
    least = least_charge(compiled, paths, effort, beliefs(problem, effort), False)
    return charge_paths(compiled, paths, decisions)[1:] - least
