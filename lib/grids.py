"""What a sweep of the single-feature problem starts from, the fewer atoms that it uses, and the tables that are kept.

None of these choices touches the validity of a bracket, only its width and its cost.  All in table units (lib.dp).
"""
import math
import os
from collections import OrderedDict
from threading import Lock
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from lib import envelopes, store, sweep
from lib.envelopes import full_observation_edge
from lib.laws import WIDTH
from lib.levels import CELLS, lattices, precisions

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


class Fineness(NamedTuple):
    """How finely a table is swept."""

    unit: float           # spacing of the levels, over their precision or (best value) in mean informations at the first;
                          # 0: the lattice of the items alone
    end: float            # what may be left to learn at the last level
    eta: float            # spacing of the lattice of the mean, posterior standard deviations (or see `lattices`)
    kappa: float          # lattice points in a step of the mean
    reach: float          # tails are cut at this many standard deviations, and by a bound paid for
    atoms: int            # informations kept
    read: float           # spacing of the lattice that a look-up reads, steps of the mean
    far: float            # largest informations above the first level that are `served` as sharply; 0: that level alone


def psi(z):
    """E (z + Z)^+ for Z ~ N(0, 1)."""
    return np.maximum(0, z * ndtr(z) + np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi))


def solve_best(x, q, p, gamma, b0, fineness):
    """The sweep of the best value in table units, as fine as `fineness` asks."""
    x, q, p = thin(x, q, p, fineness.atoms)
    levels = precisions(b0, q, p, gamma, fineness)
    spacing = lattices(levels, q, p, gamma, fineness, False)
    n = int(WIDTH * sweep.learnable_sd(levels[-1], gamma) / spacing[-1])
    start = 0.5 * full_observation_edge(n, spacing[-1], levels[-1], np.sum(x * p), p.sum(), gamma)
    first, ptr, D = sweep.sweep(x, q, p, gamma, levels, spacing, start)
    return sweep.Grid(levels, spacing, first, ptr, D, x, q, p, np.array([fineness.read]), np.zeros((0, 0)), np.zeros((3, 0)))


def solve_bound(kind, x, q, p, gamma, b0, fineness):
    """One certified sweep (sweep.UPPER or LOWER) in table units, as fine as `fineness` asks."""
    return envelopes.sweep(kind, *rounded(kind, x, q, p, fineness.atoms), gamma, b0, fineness)


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


def stored_side(kind, x, q, p, gamma, b0, fineness):
    """`solve_best` or `solve_bound`, remembered in this process and, where BOOK_TABLES names a folder, on disk."""
    key = store.digest("sweep 9", np.concatenate(((kind, gamma, b0), fineness, x, q, p)))
    with GUARD:
        if key in MEMORY:
            MEMORY.move_to_end(key)
            return MEMORY[key]
    folder = os.environ.get("BOOK_TABLES")
    kept = store.load(folder, key) if folder else None
    try:
        grid = sweep.Grid(**kept)
    except TypeError:
        grid = (solve_best(x, q, p, gamma, b0, fineness) if kind == sweep.GUESS else
                solve_bound(kind, x, q, p, gamma, b0, fineness))
        if folder:
            store.save(folder, key, grid._asdict())
    with GUARD:
        MEMORY.keep(key, grid, REMEMBER)
    return grid
