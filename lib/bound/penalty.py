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

import numpy as np

from lib import streams
from lib.bound.relaxations import compile_checked
from lib.compiled import checked_jit, inlined_jit, put
from lib.normal import excess, gain
from lib.posterior import EXACT, blocks, dot, learn, project, shrink
from lib.problem import as_count, as_numbers, as_positions, checked, effective_horizon, noise_var
from lib.threads import by_rows

READY, SKIP, FORWARD = range(3)     # an open node: to be expanded, or a skip or forward still to be carried out
CUT = 6.0                           # standard deviations; what charges leave out of VOI is below 1e-10 of one


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
    voi: np.ndarray      # (B, min(n, T)) values of information of the path's items, -1 where not computed yet


@inlined_jit
def _explained(instance, j, Sigma, S, h):
    """What of the variance of x_j.theta under Sigma is gone under S, and what is left; h = S x_j."""
    left, prior = project(instance, j, S, h), 0.0
    for a in range(instance.start[j], instance.start[j + 1]):
        for b in range(instance.start[j], instance.start[j + 1]):
            prior += instance.size[a] * instance.size[b] * Sigma[instance.feature[a], instance.feature[b]]
    return max(prior - left, 0.0), left


@checked_jit
def full_value(instance, mu, Sigma, ahead, steps):
    """FO(s), averaged over the arrivals in the rows of `ahead` (R, H), the first `steps` of each."""
    k, total = len(mu), 0.0
    S, h = np.empty((k, k)), np.empty(k)
    for r in range(ahead.shape[0]):
        put(Sigma, S)
        discount = 1.0
        for m in range(min(steps, ahead.shape[1])):
            j = ahead[r, m]
            discount *= instance.gamma
            known, left = _explained(instance, j, Sigma, S, h)
            total += discount * excess(dot(instance, j, mu) - instance.cost, sqrt(known))
            shrink(S, h, left + instance.noise_var[j])
    return total / ahead.shape[0]


@checked_jit
def voi(instance, x, mu, Sigma, ahead, steps, cut):
    """VOI_x(s), averaged over the first `steps` arrivals in the rows of `ahead` (R, H).

    A summand counts as 0 where its mean is `cut` standard deviations from 0.  That lowers VOI: charges may be cut,
    and the dual bound loosens, but the value of a first forward may not (`cut` is infinite there).
    """
    k, total = len(mu), 0.0
    S, g, h = np.empty((k, k)), np.empty(k), np.empty(k)
    for r in range(ahead.shape[0]):
        put(Sigma, S)
        discount = 1.0
        spare = project(instance, x, S, g) + instance.noise_var[x]
        if spare <= 0:
            return 0.0
        for m in range(min(steps, ahead.shape[1])):
            j = ahead[r, m]
            discount *= instance.gamma
            net = dot(instance, j, mu) - instance.cost
            known, left = _explained(instance, j, Sigma, S, h)
            cross, total_j = dot(instance, j, g), left + instance.noise_var[j]
            more = known + min(cross * cross / spare, left)
            if cross != 0.0 and net * net < cut * cut * more:
                total += discount * max(gain(net, sqrt(more)) - gain(net, sqrt(known)), 0.0)
            if total_j > 0:
                ratio = cross / total_j
                for a in range(k):
                    g[a] -= ratio * h[a]
                spare = max(spare - ratio * cross, instance.noise_var[x])
            shrink(S, h, total_j)
    return total / ahead.shape[0]


@checked_jit
def numbered(items):
    """(T,) the items of a path by number, 0, 1, ... as they are met: columns for what a belief knows of them."""
    number, count = np.empty(len(items), np.int64), 0
    for n in range(len(items)):
        number[n] = -1
        for m in range(n):
            if items[m] == items[n]:
                number[n] = number[m]
                break
        if number[n] < 0:
            number[n], count = count, count + 1
    return number


@checked_jit
def search(instance, items, feedback, ahead, effort, room, endless):
    """The least total charge of any decisions along a path, or a number below it when effort or room runs out.

    Row 0 of `room` holds the belief to start from.  Open nodes are (charge, -arrivals decided, kind, row of
    the belief).  Charges are nonnegative: the cheapest open node bounds all that is still possible.  A skip looks at
    all arrivals `ahead` if the stream is `endless`, and else at as many as are left of the path.
    """
    room.voi[0], beliefs, h, number = -1.0, 1, np.empty(room.mu.shape[1]), numbered(items)
    heap = [(0.0, 0, READY, 0)]
    for _ in range(effort):
        charge, depth, kind, s = heap[0]
        depth = -depth
        if depth == len(items) or kind == FORWARD and beliefs == len(room.mu):
            break
        heappop(heap)
        x, discount = items[depth], instance.gamma**(depth + 1)
        if kind == READY:
            net = dot(instance, x, room.mu[s]) - instance.cost
            heappush(heap, (charge + discount * max(-net, 0.0), -depth, FORWARD, s))
            heappush(heap, (charge + discount * max(net, 0.0), -depth, SKIP, s))
        elif kind == SKIP:
            at = number[depth]
            if room.voi[s, at] < 0 or not endless:
                steps = ahead.shape[1] if endless else len(items) - depth - 1
                room.voi[s, at] = voi(instance, x, room.mu[s], room.Sigma[s], ahead, steps, CUT)
            heappush(heap, (charge + discount * room.voi[s, at], -depth - 1, READY, s))
        else:
            put(room.mu[s], room.mu[beliefs])
            put(room.Sigma[s], room.Sigma[beliefs])
            room.voi[beliefs] = -1.0
            learn(instance, x, feedback[depth], room.mu[beliefs], room.Sigma[beliefs], h)
            heappush(heap, (charge, -depth - 1, READY, beliefs))
            beliefs += 1
    return heap[0][0]


@checked_jit
def follow(instance, items, feedback, ahead, decisions):
    """The total charge of given decisions when T items arrive in all: a skip looks at the arrivals left."""
    mu, Sigma, total, discount = instance.mu.copy(), instance.Sigma.copy(), 0.0, 1.0
    h = np.empty(len(mu))
    for n in range(len(items)):
        x = items[n]
        discount *= instance.gamma
        net = dot(instance, x, mu) - instance.cost
        if decisions[n]:
            total += discount * max(-net, 0.0)
            learn(instance, x, feedback[n], mu, Sigma, h)
        else:
            total += discount * (max(net, 0.0) + voi(instance, x, mu, Sigma, ahead, len(items) - n - 1, CUT))
    return total


@checked_jit
def least_of(instance, paths, effort, beliefs, endless):
    """(P,) `search` along each of the paths, with room for so many beliefs, after the feedback on its first item."""
    (P, T), k = paths.items.shape, len(instance.mu)
    met = min(T, len(instance.noise_var))
    room = Beliefs(np.empty((beliefs, k)), np.empty((beliefs, k, k)), np.empty((beliefs, met)))
    out, h = np.empty(P), np.empty(k)
    for p in range(P):
        put(instance.mu, room.mu[0])
        put(instance.Sigma, room.Sigma[0])
        if paths.first[p] >= 0:
            learn(instance, paths.first[p], paths.seen[p], room.mu[0], room.Sigma[0], h)
        out[p] = search(instance, paths.items[p], paths.feedback[p], paths.ahead[p], effort, room, endless)
    return out


def least_charge(instance, paths, effort, beliefs, endless):
    """`least_of` all paths, in threads."""
    return by_rows(lambda rows: least_of(instance, some(paths, rows), effort, beliefs, endless), len(paths.items))


def some(paths, rows):
    """The Paths in a slice of rows."""
    return Paths(*(part[rows] for part in paths))


@checked_jit
def information_of(instance, ahead):
    """(P, 1 + n) FO(s_0) over the arrivals `ahead` (P, R, H), then VOI of each item; nothing is cut."""
    out = np.empty((len(ahead), 1 + len(instance.noise_var)))
    for p in range(len(ahead)):
        out[p, 0] = full_value(instance, instance.mu, instance.Sigma, ahead[p], ahead.shape[2])
        for x in range(len(instance.noise_var)):
            out[p, 1 + x] = voi(instance, x, instance.mu, instance.Sigma, ahead[p], ahead.shape[2], np.inf)
    return out


def values_of_information(instance, ahead):
    """`information_of` all arrivals, in threads."""
    return by_rows(lambda rows: information_of(instance, ahead[rows]), len(ahead))


def own_information(instance, items, ahead):
    """`own_of` all items, in threads."""
    return by_rows(lambda rows: own_of(instance, items[rows], ahead[rows]), len(items))


@checked_jit
def own_of(instance, items, ahead):
    """(m,) VOI of items (m,), each over arrivals of its own, ahead (m, R, H); nothing is cut."""
    out = np.empty(len(items))
    for i in range(len(items)):
        out[i] = voi(instance, items[i], instance.mu, instance.Sigma, ahead[i], ahead.shape[2], np.inf)
    return out


@checked_jit
def charges_of(instance, paths, decisions):
    """(A + 1, P) FO of the T arrivals in the rows of `ahead`, then the charges of decisions (A, P, T)."""
    A, P, T = decisions.shape
    out = np.empty((A + 1, P))
    for p in range(P):
        out[0, p] = full_value(instance, instance.mu, instance.Sigma, paths.ahead[p], T)
        for a in range(A):
            out[a + 1, p] = follow(instance, paths.items[p], paths.feedback[p], paths.ahead[p], decisions[a, p])
    return out


def charge_paths(instance, paths, decisions):
    """`charges_of` all paths, in threads."""
    return by_rows(lambda rows: charges_of(instance, some(paths, rows), np.ascontiguousarray(decisions[:, rows])), len(paths.items), axis=1)


def steps(gamma, rest, most):
    """Arrivals until gamma^steps falls below `rest`, at most `most`."""
    return min(effective_horizon(gamma, rest), most)


def arrivals_of_first(problem):
    """Arrivals over which the value of information of a first forward is averaged."""
    return steps(problem.gamma, 1e-4, 1500)


def beliefs(problem, effort, horizon):
    """How many beliefs a search along `horizon` items may keep: as many as its effort, or as fit into some 16 MB."""
    return max(2, min(effort, int(2e6) // (len(problem.mu) ** 2 + min(len(problem.probs), horizon))))


def arrivals(problem, shape, rng):
    """(P, R, H) arrivals; the R rows of one path are stratified, each still an independent sequence of items."""
    u = rng.permuted((np.arange(shape[1])[:, None] + rng.random(shape)) / shape[1], axis=1)
    return streams.draw_items(problem.probs, u)


def sample_paths(problem, first, horizon, rng):
    """Feedback on item first[p], then the items and feedback of `horizon` arrivals: (P,), (P, T), (P, T)."""
    theta = problem.mu + rng.standard_normal((len(first), len(problem.mu))) @ streams.factor(problem.Sigma).T
    items = streams.draw_items(problem.probs, rng.random((len(first), horizon)))
    every = np.column_stack([np.maximum(first, 0), items])
    worth = worths(problem.items, theta, every)
    feedback = worth + np.sqrt(noise_var(problem))[every] * rng.standard_normal(every.shape)
    return feedback[:, 0].copy(), items, feedback[:, 1:].copy()


def worths(items, theta, met):
    """(P, T) x.theta[p] of the items met[p] (P, T): from a table of all items where that is small, else in blocks."""
    if len(items) <= EXACT:
        return np.take_along_axis(theta @ items.T, met, axis=1)
    out = np.empty(met.shape)
    for rows in blocks(len(met), met.shape[1] * items.shape[1]):
        out[rows] = np.einsum("ptk,pk->pt", items[met[rows]], theta[rows])
    return out


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

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.
    """
    problem, inner, effort = checked(problem), as_count("inner", inner), as_count("effort", effort)
    first = as_positions("first", first, len(problem.probs), first=-1)
    gamma, instance = problem.gamma, compile_checked(problem)
    seen, items, feedback = sample_paths(problem, first, steps(gamma, .002, 200), streams.generator(seed, streams.Purpose.PATHS))
    ahead = arrivals(problem, (len(first), inner, steps(gamma, .015, 120)), streams.generator(seed, streams.Purpose.AHEAD))
    return least_charge(instance, Paths(first, seen, items, feedback, ahead), effort, beliefs(problem, effort, items.shape[1]),
                        True)


def _met_array(episodes, name):
    """The field `name` of episodes as a finite C-contiguous float64 array, or ValueError."""
    if not hasattr(episodes, name):
        raise ValueError(f"episodes has no {name}: use lib.simulate.episodes")
    return np.ascontiguousarray(as_numbers(name, getattr(episodes, name)))


def _decided(episodes):
    """The decisions of episodes as a bool array, or ValueError."""
    decisions = _met_array(episodes, "decisions")
    if not ((decisions == 0) | (decisions == 1)).all():
        raise ValueError(f"decisions runs from {decisions.min()} to {decisions.max()}: it must hold True and False")
    return decisions.astype(bool)


def _met(problem, episodes, decisions, inner, seed):
    """The Paths of `episodes`, checked, with as many arrivals ahead as there were items."""
    items, feedback = (_met_array(episodes, name) for name in ("items", "feedback"))
    if items.ndim != 2 or decisions.ndim != 3 or not items.shape == feedback.shape == decisions.shape[1:]:
        raise ValueError(f"items, feedback and decisions must have shapes (R, T), (R, T) and (policies, R, T), got "
                         f"{items.shape}, {feedback.shape} and {decisions.shape}")
    items = as_positions("items", items.ravel(), len(problem.items), 1).reshape(items.shape)
    ahead = arrivals(problem, (len(items), as_count("inner", inner), items.shape[1]), streams.generator(seed, streams.Purpose.AHEAD))
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
    problem, decisions, rewards = checked(problem), _decided(episodes), _met_array(episodes, "rewards")
    if rewards.shape != decisions.shape[:2]:
        raise ValueError(f"rewards must have shape {decisions.shape[:2]}, got {rewards.shape}")
    charged = charge_paths(compile_checked(problem), _met(problem, episodes, decisions, inner, seed), decisions)
    return rewards + charged[1:] - charged[0]


def gap(problem, episodes, inner=4, effort=2000, seed=0):
    """How far policies stay below the dual bound when T items arrive in all, from the same paths.

    Policy and searcher are charged alike, a skip with the arrivals that are left.  Arguments are those of `control`
    (rewards are not used) and of `least_charges`.

    Returns
    -------
    ndarray (P, R)
        Charges of each policy minus the least charges that the searcher found, nonnegative: the mean is the gap.
    """
    problem, decisions, effort = checked(problem), _decided(episodes), as_count("effort", effort)
    instance = compile_checked(problem)
    paths = _met(problem, episodes, decisions, inner, seed)
    least = least_charge(instance, paths, effort, beliefs(problem, effort, paths.items.shape[1]), False)
    return charge_paths(instance, paths, decisions)[1:] - least


def gap_after(problem, episodes, inner=4, effort=2000, seed=0):
    """`gap` after the first item, in its time, of lives in which that is forwarded: ndarray (P, R), NaN where a policy does not."""
    problem, decisions, effort = checked(problem), _decided(episodes), as_count("effort", effort)
    instance, met = compile_checked(problem), _met(problem, episodes, decisions, inner, seed)
    first, rest = met.items[:, 0].copy(), [np.ascontiguousarray(part[:, 1:]) for part in (met.items, met.feedback)]
    paths = Paths(first, met.feedback[:, 0].copy(), *rest, met.ahead)
    least = least_charge(instance, paths, effort, beliefs(problem, effort, rest[0].shape[1]), False)
    at_first = np.maximum(problem.cost - problem.items[first] @ problem.mu, 0)
    charged = charge_paths(instance, met, decisions)[1:] / problem.gamma - at_first
    return np.where(decisions[:, :, 0], charged - least, np.nan)
