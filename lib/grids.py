"""What a sweep of the single-feature problem starts from, the fewer atoms that it uses, and the tables that are kept.

None of these choices touches the validity of a bracket, only its width and its cost.  All in table units (lib.dp).
"""
import math
import os
from collections import OrderedDict
from threading import Lock
from typing import NamedTuple

import numba as nb
import numpy as np
from scipy.special import ndtr

from lib import envelopes, laws, store, sweep
from lib.laws import WIDTH
from lib.levels import CELLS, arrival, bound_lattices, ladder, lattices, precisions

REMEMBER = 200e6        # bytes of tables kept in memory
GUARD = Lock()          # of MEMORY: features are solved in threads


class Tables(OrderedDict):
    """Grids by key, the one asked for longest ago first; `held` bytes of values."""

    held = 0

    def keep(self, key, grid, most):
        """Add a grid, and forget the oldest while more than `most` bytes are held."""
        self.held += 0 if key in self else grid.D.nbytes
        self[key] = grid
        while self.held > most and len(self) > 1:
            self.held -= self.popitem(last=False)[1].D.nbytes

    def clear(self):
        super().clear()
        self.held = 0


MEMORY = Tables()


class Accuracy(NamedTuple):
    """How finely the best value is swept."""

    unit: float           # spacing of the levels, mean informations at the first; 0: the lattice of the items alone
    end: float            # what may be left to learn at the last level
    eta: float            # spacing of the lattice of the mean, posterior standard deviations (or see `lattices`)
    kappa: float          # lattice points in a step of the mean
    atoms: int            # informations kept
    read: float           # spacing of the lattice that a look-up reads, steps of the mean
    far: float            # largest informations above the first level that are served as sharply; 0: that level alone


class Fineness(NamedTuple):
    """How finely a bound is swept."""

    unit: float           # spacing of the levels over their precision; 0: the lattice of the items alone
    end: float            # what may be left to learn at the last level
    eta: float            # spacing of the lattice of the mean, posterior standard deviations (or see `lattices`)
    reach: float          # tails are cut at this many standard deviations, and paid for
    atoms: int            # informations kept
    read: float           # spacing of the lattice that a look-up reads, steps of the mean
    far: float            # largest informations above the first level that are served as sharply; 0: that level alone


def psi(z):
    """E (z + Z)^+ for Z ~ N(0, 1)."""
    return np.maximum(0, z * ndtr(z) + np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi))


@nb.njit(cache=True)
def mixed_calls(count, d, weight, t):
    """(2 count + 1,) sum_n weight[n] E (t[n] Z - |l| d)^+ for l = -count .. count."""
    out = np.zeros(2 * count + 1)
    for n in range(t.size):
        for l in range(count + 1):
            if l * d > 9 * t[n]:                       # psi is 0 to the last digit from there on
                break
            out[count + l] += weight[n] * t[n] * laws.psi(-l * d / t[n])
    for l in range(count):
        out[l] = out[2 * count - l]
    return out


def full_observation_edge(count, d, b, mean_x, mass, gamma):
    """What full observation earns above commitment at m = -count d .. count d: a sum over items that are not of size 0.

    E[x] / mass a/gamma sum_n a^n E (m_n^+ - m^+), a the discount from one to the next.  Each tells at most 1, and n is
    rounded up to about 60 values, so the sum errs upward.
    """
    a = arrival(gamma, mass)
    n = np.unique(np.ceil(np.geomspace(1, 45 / -math.log(a) + 1, 60)))
    weight = (a ** np.append(1, n + 1) - a ** np.append(n + 1, np.inf)) / (1 - a)
    return mean_x / mass * a / gamma * mixed_calls(count, d, weight, np.sqrt(1 / b - 1 / (b + np.append(n, np.inf))))


def solve_best(x, q, p, gamma, b0, accuracy):
    """The sweep of the best value in table units, as fine as `accuracy` asks."""
    x, q, p = thin(x, q, p, accuracy.atoms)
    far = b0 + accuracy.far + 3 / (1 - gamma)
    end = accuracy.end * (1 if accuracy.far else min(1, (1 / (1 - gamma) / b0) ** 0.5))     # little can be learned
    levels = precisions(b0, q, p, gamma, accuracy.unit, end, far if accuracy.far else 0.0)
    spacing = lattices(levels, q, p, gamma, accuracy.eta, accuracy.kappa, accuracy.far)
    n = int(WIDTH * sweep.learnable_sd(levels[-1], gamma) / spacing[-1])
    start = 0.5 * full_observation_edge(n, spacing[-1], levels[-1], np.sum(x * p), p.sum(), gamma)
    first, ptr, D = sweep.sweep(x, q, p, gamma, levels, spacing, start)
    return sweep.Grid(levels, spacing, first, ptr, D, x, q, p, np.array([accuracy.read]), np.zeros((0, 0)), np.zeros(0))


def solve_bound(kind, x, q, p, gamma, b0, fineness):
    """One certified sweep (sweep.UPPER or LOWER) in table units, as fine as `fineness` asks."""
    x, q, p = rounded(kind, x, q, p, fineness.atoms)
    infos, group = np.unique(q, return_inverse=True)
    levels = ladder(b0, q, p, gamma, fineness)
    spacing = bound_lattices(levels, q, p, gamma, fineness)
    sd = np.array([sweep.learnable_sd(b, gamma) for b in levels])
    half = np.ceil(fineness.reach * sd / spacing).astype(np.int64) + 1
    start = np.zeros(2 * half[-1] + 1)
    if kind == sweep.UPPER:
        start = full_observation_edge(half[-1], spacing[-1], levels[-1], np.sum(x * p), p.sum(), gamma)
    below = np.append(levels[0], np.maximum(levels[:-1], levels[0] + infos[0]))
    return envelopes.sweep(kind, x, infos, p, group, gamma, levels, spacing, half, start, below,
                           np.array([fineness.read, fineness.reach]), kind == sweep.UPPER or fineness.unit > 0)


def groups(q, p, most):
    """(n,) group of each of the ascending informations q: at most `most` groups with like shares of E[q]."""
    share = np.cumsum(p * q) - 0.5 * p * q
    return np.minimum((share / np.sum(p * q) * most).astype(int), most - 1)


def rounded(kind, x, q, p, most):
    """Fewer atoms, no better (LOWER) or no worse (UPPER): chapter "The dynamic program", section "Many magnitudes".

    At most `most` informations: a group gets its largest (UPPER) or smallest.  Then atoms of one information whose
    magnitudes are close become their mean (LOWER) or are moved to the ends of their cell (UPPER).
    """
    if q.size > most and np.unique(q).size > most:
        group = groups(q, p, most)
        edge = np.full(most, -np.inf if kind == sweep.UPPER else np.inf)
        (np.maximum if kind == sweep.UPPER else np.minimum).at(edge, group, q)
        q = edge[group]
    if x.size <= min(most, CELLS):
        return x, q, p
    cell = np.minimum((x / x.max() * CELLS).astype(int), CELLS - 1)
    ends, where = np.unique(np.column_stack((q, cell)), axis=0, return_inverse=True)
    where, q = where.ravel(), ends[:, 0].copy()        # contiguous, or the kernels would be compiled again
    P = np.bincount(where, p)
    mean = np.bincount(where, p * x) / P
    if kind == sweep.LOWER:
        return mean, q, P
    low, high = np.full(P.size, np.inf), np.full(P.size, -np.inf)
    np.minimum.at(low, where, x)
    np.maximum.at(high, where, x)
    share = np.divide(mean - low, high - low, out=np.zeros(P.size), where=high > low)
    pairs = np.column_stack((low, high)).ravel(), np.repeat(q, 2), np.column_stack((P * (1 - share), P * share)).ravel()
    return tuple(part[pairs[2] > 0] for part in pairs)


def thin(x, q, p, most):
    """At most `most` atoms with the same E[x] and E[q]: neighbours are merged (no bound)."""
    if x.size <= most:
        return x, q, p
    group = groups(q, p, most)
    P = np.bincount(group, p)
    keep = P > 0
    return np.bincount(group, p * x)[keep] / P[keep], np.bincount(group, p * q)[keep] / P[keep], P[keep]


def stored_side(kind, x, q, p, gamma, b0, accuracy):
    """`solve_best` or `solve_bound`, remembered in this process and, where BOOK_TABLES names a folder, on disk."""
    key = store.digest("sweep 8", kind, x, q, p, gamma, b0, accuracy)
    with GUARD:
        if key in MEMORY:
            MEMORY.move_to_end(key)
            return MEMORY[key]
    folder = os.environ.get("BOOK_TABLES")
    kept = store.load(folder, key) if folder else None
    try:
        grid = sweep.Grid(**kept)
    except TypeError:
        grid = (solve_best(x, q, p, gamma, b0, accuracy) if kind == sweep.GUESS else
                solve_bound(kind, x, q, p, gamma, b0, accuracy))
        if folder:
            store.save(folder, key, grid._asdict())
    with GUARD:
        MEMORY.keep(key, grid, REMEMBER)
    return grid
