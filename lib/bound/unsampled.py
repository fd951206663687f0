"""Upper bounds without sampling: full observation by concavity, and the first forwards exact by chords.

Full observation from belief s earns sum_n gamma^n E (X_n.mu' - c)^+, mu' the mean after all n - 1 earlier arrivals.  With G the information
of these, X_n.mu' has variance v(G) = x'(Sigma - (Sigma^-1 + G)^-1) x, which is concave in G.  So the majorant of `lib.bound.envelope` at
v((n - 1) E g) bounds what the n-th arrival is worth, and what several in a row are worth is bounded by that at their mean number.  This
is the bound at depth 0.

First forwards.  U = gamma E_x max{U, A_x}, A_x a bound on x.mu - c + E_y V(s'_xy).  At depth 1 full observation stands for V after the
feedback, the information then being g_x and what arrives later: the feedback needs no integral, and v is at least what g_x explains.  At
depth d the bound of depth d - 1 stands there.  It is convex in the mean, which moves along a line, so chords on a lattice bound its
average.  The chapter "Bounds without sampling" has the proofs.
"""
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from lib.bound.envelope import majorant, touching_points
from lib.bound.relaxations import require_noise
from lib.compiled import jit
from lib.dp.bellman import first_value
from lib.normal import expected_positive
from lib.problem import as_count, checked, noise_var

REACH = 4.5             # standard deviations that the chords cover; beyond it, slope times tail
SPREAD = 3**0.5         # the lattice is even on the quantiles of a normal law with this standard deviation
GROWTH = 0.3            # arrivals are taken together when they are at most this share of those before
LAST = 6.0              # mean lives 1 / (1 - gamma) after which all arrivals are taken together
MANY = 1024             # items above which what one teaches of another is bounded by tangents, and two forwards at most are made exact
OPEN = 1e-4             # of the bound with one forward exact: what may be left open at a mean further on
ROUNDED = 1e-12         # relative rounding of a sum, by which every value is raised
VAR_ROUNDED = 1e-14     # the same of a variance, times |x|^2 tr Sigma
DEEPEST = 9             # forwards that may be made exact
LEAST = -1e300          # of an item that need not be looked at


class Certified(NamedTuple):
    """An upper bound on V that holds with certainty."""

    upper: float            # V <= upper, reward units, with the leading gamma
    active: np.ndarray      # items that the bound would forward first
    depth: int              # forwards that are exact


class Frame(NamedTuple):
    """What does not change with the belief: the stream, the blocks of arrivals, the lattice of feedbacks."""

    items: np.ndarray       # (n, k)
    probs: np.ndarray       # (n,)
    cost: float
    gamma: float
    noise: np.ndarray       # (n,) noise variances; 1 where there is no feature, and nothing to be seen
    info: np.ndarray        # (k, k) mean information of an arrival
    slack: np.ndarray       # (n,) rounding of a variance of x.theta
    arrivals: np.ndarray    # (b,) mean number of earlier arrivals in each block
    weights: np.ndarray     # (b,) sum of gamma^n over the block
    nodes: np.ndarray       # (q,) feedbacks, in standard deviations
    masses: np.ndarray      # (q,) their weights
    beyond: float           # E (Z - z)^+ at the last node z
    table: np.ndarray       # `touching_points()`


class State(NamedTuple):
    """A covariance B B' with B' info B diagonal, and what it says of every item."""

    root: np.ndarray        # (k, k) B
    rows: np.ndarray        # (n, k) items B
    keep: np.ndarray        # (b, k) share of the variance of each column of B that is left after a block's arrivals
    known: np.ndarray       # (b, n) variance of x.theta that the arrivals explain
    high: np.ndarray        # (n,) all of its variance
    likely: np.ndarray      # (b, n) what forwarding one item explains of it beyond the arrivals, on average
    taught: np.ndarray      # (b, n, n) what forwarding x explains of z beyond them, at [., x, z]; empty above MANY items


def blocks(gamma, growth=GROWTH):
    """Blocks of arrivals n = 1, 2, ...: mean number of earlier ones, weighed by gamma^n, and sum of gamma^n.  The last has no end."""
    start, number, weight = 0, [], []
    while start * (1 - gamma) < LAST:
        length = max(1, int(growth * start))
        within = gamma**np.arange(length if length < 100_000 else 1)
        mean = np.arange(len(within)) @ within / within.sum() if len(within) == length else (length - 1) / 2    # no more than that
        number.append(start + mean)
        weight.append(gamma**(start + 1) * -np.expm1(length * np.log(gamma)) / (1 - gamma))
        start += length
    return np.array([*number, start + gamma / (1 - gamma)]), np.array([*weight, gamma**(start + 1) / (1 - gamma)])


def lattice(size):
    """(nodes, masses): `size` feedbacks from -REACH to REACH, denser in the middle, and the masses of their hat functions."""
    end = ndtr(-REACH / SPREAD)
    z = SPREAD * ndtri(np.linspace(end, 1 - end, size))
    rise = np.concatenate([[1.0], -np.diff(expected_positive(-z)) / np.diff(z), [0.0]])     # of a ramp between neighbours
    return z, -np.diff(rise)


@lru_cache(maxsize=1)
def table():
    """`touching_points`, made once."""
    return touching_points()


def frame_of(problem, size, growth=GROWTH):
    """The Frame of a problem, with `size` nodes."""
    noise = noise_var(problem)
    noise = np.where(problem.items.any(axis=1), noise, 1.0)
    rows = problem.items * np.sqrt(problem.probs / noise)[:, None]
    length = np.sqrt(np.trace(problem.Sigma)) * np.linalg.norm(problem.items, axis=1)
    nodes, masses = lattice(size)
    return Frame(problem.items, problem.probs, problem.cost, problem.gamma, noise, rows.T @ rows,
                 (np.sqrt(VAR_ROUNDED) * length)**2, *blocks(problem.gamma, growth), nodes, masses,
                 float(expected_positive(nodes[[0, -1]] * [1, -1]).max()), table())


def prior_root(Sigma):
    """A root B of Sigma = B B'."""
    values, vectors = np.linalg.eigh(Sigma)
    return vectors * np.sqrt(np.maximum(values, 0))


def state_of(frame, root):
    """The State of the covariance root root'."""
    values, vectors = np.linalg.eigh(root.T @ frame.info @ root)
    values = np.maximum(values, 0) + VAR_ROUNDED * len(values) * np.abs(values).max()       # no information is lost by rounding
    root = root @ vectors
    rows, learned = frame.items @ root, frame.arrivals[:, None] * values
    keep = 1 / (1 + learned)
    squares = rows**2
    own = np.sqrt(frame.noise + keep @ squares.T)
    many = len(rows) > MANY
    likely, taught = np.empty(own.shape), np.empty((0, 0, 0) if many else (len(keep), len(rows), len(rows)))
    for b, share in enumerate(keep):
        scaled = rows * share / own[b][:, None]
        likely[b] = ((rows @ (scaled.T * frame.probs @ scaled)) * rows).sum(axis=1)
        if not many:
            taught[b] = (scaled @ rows.T)**2
    return State(root, rows, keep, (learned * keep) @ squares.T, squares.sum(axis=1), likely, taught)


def after(frame, state, x):
    """The State after feedback on item x, and how far one standard deviation of the feedback moves the mean."""
    row = state.rows[x]
    seen = row @ row
    if not seen > 0:
        return state, np.zeros(len(row))
    total, along = frame.noise[x] + seen, state.root @ row
    root = state.root - np.outer(along, row) / (total + np.sqrt(frame.noise[x]) * np.sqrt(total))
    return state_of(frame, root), along / np.sqrt(total)


@jit
def observed(net, frame, state, slopes):
    """Full observation beyond commitment at one mean; if one item is seen first, at most a constant plus slopes (b, n) times what it
    teaches: the majorant lies below the line that touches it where an average item would bring it.  Returns both constants.
    """
    total = constant = 0.0
    for x in range(len(net)):
        a, top = abs(net[x]), state.high[x] + frame.slack[x]
        for b in range(len(frame.weights)):
            weight, v = frame.weights[b] * frame.probs[x], state.known[b, x] + frame.slack[x]
            total += weight * majorant(a, v, 0.0, top, frame.table)[0]
            touch = min(v + state.likely[b, x], top)
            value, slope = majorant(a, touch, 0.0, top, frame.table)
            constant += weight * (value - slope * (touch - v))
            slopes[b, x] = weight * slope
    return total, constant


@jit
def observed_after(x, net, frame, state):
    """Full observation beyond commitment at one mean, if item x is seen first."""
    total = 0.0
    for z in range(len(net)):
        slack = frame.slack[z]
        a, top, low = abs(net[z]), state.high[z] + slack, max(state.taught[0, x, z] - slack, 0.0)
        for b in range(len(frame.weights)):
            v = state.known[b, z] + state.taught[b, x, z] + slack
            total += frame.weights[b] * frame.probs[z] * majorant(a, v, low, top, frame.table)[0]
    return total


@jit
def sharpen(net, values, raised, frame, state):
    """values (n,), bounds on A_x by tangents, replaced by `observed_after` wherever that can matter; the first value of them.

    Items in falling order of their bounds: once an item's is below the first value of those before, so are all after it.
    """
    gamma, probs = frame.gamma, frame.probs
    sharp, worth, mass, total = np.full(len(values), LEAST), 0.0, 0.0, 0.0
    for x in np.argsort(-values):
        if values[x] <= worth:
            break
        if probs[x] > 0:
            found = observed_after(x, net, frame, state)
            sharp[x] = values[x] = min(values[x], raised[x] + (1 + ROUNDED) * found)
            if sharp[x] > worth:
                mass += probs[x]
                total += probs[x] * sharp[x]
                worth = gamma * total / (1 - gamma + gamma * mass)
    return first_value(sharp, probs, gamma)


class First(NamedTuple):
    """Bounds at Q means of one covariance."""

    commitment: np.ndarray  # (Q,) a lower bound: forward for good what is worth it now
    none: np.ndarray        # (Q,) upper bounds, no forward exact
    one: np.ndarray         # (Q,) upper bounds, the first forward exact
    forwards: np.ndarray    # (Q, n) bounds on A_x


def first(frame, state, means):
    """The First at means (Q, k)."""
    nets, horizon = means @ frame.items.T - frame.cost, frame.gamma / (1 - frame.gamma)
    commitment = horizon * (np.maximum(nets, 0) @ frame.probs)
    raised = nets + commitment[:, None] + ROUNDED * (size_of(frame, means) / (1 - frame.gamma) + commitment[:, None])
    none, one, forwards = np.empty(len(nets)), np.empty(len(nets)), np.empty(nets.shape)
    slopes = np.empty(state.known.shape)
    for q, net in enumerate(nets):
        free, constant = observed(net, frame, state, slopes)
        none[q] = (1 + ROUNDED) * (commitment[q] + free)
        forwards[q] = raised[q] + (1 + ROUNDED) * (constant + tangents(frame, state, slopes))
        if state.taught.size:
            one[q] = sharpen(net, forwards[q], raised[q], frame, state)
        else:
            one[q] = first_value(forwards[q], frame.probs, frame.gamma)
    return First(commitment, none, np.minimum(none, (1 + ROUNDED) * one), forwards)


def size_of(frame, means):
    """(Q, n) what the terms of x.m - cost add up to without their signs: the scale of its rounding."""
    return np.abs(means) @ np.abs(frame.items.T) + abs(frame.cost)


def tangents(frame, state, slopes):
    """(n,) slopes (b, n) times what is taught of each item, for a first forward of each."""
    if state.taught.size:
        return np.einsum("bxz,bz->x", state.taught, slopes)
    out = np.zeros(len(frame.items))
    for share, slope in zip(state.keep, slopes):
        own = np.sqrt(frame.noise + state.rows**2 @ share)
        scaled = state.rows * share / own[:, None]
        out += ((scaled @ (state.rows.T * slope @ state.rows)) * scaled).sum(axis=1)
    return out


def values(frame, state, means, depth, tolerance):
    """Bounds with `depth` >= 1 forwards exact at means (Q, k): (Q,) on U, (Q, n) on A_x, and commitment (Q,) from below.

    An item is looked at only where one forward less leaves it a chance, and a mean only where it leaves more than `tolerance` open.
    """
    if depth == 1:
        found = first(frame, state, means)
        return found.one, found.forwards, found.commitment
    upper, forwards, commitment = values(frame, state, means, depth - 1, tolerance)
    sharp, low, open_ = np.full(forwards.shape, LEAST), commitment.copy(), upper - commitment > tolerance
    for x in np.argsort(-(forwards - low[:, None])[open_].max(axis=0, initial=LEAST)):
        need = np.flatnonzero(open_ & (forwards[:, x] > low) & (frame.probs[x] > 0))
        if len(need):
            sharp[need, x] = np.minimum(forwards[need, x], forwarded(frame, state, means[need], x, depth - 1, tolerance))
            low[need] = [max(low[q], first_value(sharp[q], frame.probs, frame.gamma)) for q in need]
    worth = (1 + ROUNDED) * np.array([first_value(row, frame.probs, frame.gamma) for row in sharp])
    return np.where(open_, np.minimum(worth, upper), upper), np.where(open_[:, None], sharp, forwards), commitment


def forwarded(frame, state, means, x, depth, tolerance):
    """(Q,) bounds on x.m - cost + E U(belief after feedback on x), U with `depth` forwards exact: chords, and slopes beyond them."""
    left, move = after(frame, state, x)
    around = means[:, None] + frame.nodes[:, None] * move
    found = values(frame, left, around.reshape(-1, means.shape[1]), depth, tolerance)[0].reshape(len(means), -1)
    slope = frame.gamma / (1 - frame.gamma) * frame.probs @ np.abs(frame.items @ move)
    raised = means @ frame.items[x] - frame.cost + ROUNDED * size_of(frame, means)[:, x] / (1 - frame.gamma)
    return raised + (1 + ROUNDED) * (found @ frame.masses + slope * frame.beyond)


def certified(problem, depth=1, nodes=17):
    """An upper bound on V that rests on no sample: full observation by concavity, after `depth` exact forwards.

    Items may have any sign, norm and noise.  Where no item is worth a first forward the bound is exactly 0: that nothing should ever be
    forwarded is then proved.  Rounding is on the safe side.

    Parameters
    ----------
    problem : Problem
        Above MANY items (1024) memory grows with their number alone, so does time up to depth 1, and depth is at most 2.
    depth : int
        0 to 9.  0: full observation alone; 1: the first forward exact; d: the first d.  One more may take a hundred times as long.
    nodes : int
        3 to 1001: feedbacks on the lattice of each exact forward but the last.

    Returns
    -------
    Certified

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong; where the noise is too small or too large for double precision; for a depth
        above 2 with more than MANY items.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1.0], [-1.0]], [.5, .5], [0.0], [[1.0]], 1.0, .3, .9)
    >>> first, second = certified(problem), certified(problem, depth=2)
    >>> bool(0 < second.upper < first.upper)
    True
    >>> certified(problem._replace(cost=2.0)).upper
    0.0
    """
    problem, depth, nodes = checked(problem), as_count("depth", depth, 0, DEEPEST), as_count("nodes", nodes, 3, 1001)
    require_noise(problem)
    if depth > 2 and len(problem.items) > MANY:
        raise ValueError(f"depth is {depth}: with {len(problem.items)} items, more than {MANY}, it must be at most 2")
    frame, means = frame_of(problem, nodes), problem.mu[None]
    state = state_of(frame, prior_root(problem.Sigma))
    start = first(frame, state, means)
    if depth == 0:
        return Certified(float(start.none[0]), np.flatnonzero(problem.probs > 0), 0)
    upper, forwards, _ = values(frame, state, means, depth, OPEN * start.one[0])
    return Certified(float(upper[0]), np.flatnonzero((forwards[0] > upper[0]) & (problem.probs > 0)), depth)
