"""What a sweep of the single-feature problem starts from, the fewer atoms that it uses, and the tables that are kept.

None of these choices touches the validity of a bracket, only its width and its cost.  All in table units (lib.dp).

The single-feature dynamic program, solved with a certificate (paper, sections III-A and III-B).

One feature of unknown worth theta ~ N(mean, var); an item of magnitude x ~ (x, probs) arrives, forwarding it
pays x (y - cost) with y ~ N(theta, noise_sd^2 / x^2), discarding pays 0 and shows nothing.  `solve` tabulates the
value before x is seen, without the leading gamma, for every cost, mean and variance up to var_max;
`value` reads a bracket off the table.  In the scale noise_sd = 1, m = (mean - cost)/noise_sd, b = noise_sd^2/var,

    w(m, b) = E_x max{gamma w(m, b), x m + gamma E w(m + t Z, b + x^2)},   t^2 = 1/b - 1/(b + x^2).
"""
from functools import lru_cache
import math
import os
from threading import Lock
from typing import NamedTuple

import numpy as np

from lib import cache
from lib.cache import Tables
from lib.dp import lookup, quadrature
from lib.dp.best import sweep
from lib.dp.certified import full_observation_edge, sweep as sweep_
from lib.dp.grid import Fineness, GUESS, Grid, LOWER, UPPER, lattices, learnable_sd, precisions, rounded, thin
from lib.dp.quadrature import WIDTH
from lib.problem import Bracket, as_floats, as_probs, as_scalar

REMEMBER = 200e6        # bytes of tables kept in memory
GUARD = Lock()          # of MEMORY: features are solved in threads


MEMORY = Tables()


def solve_best(x, q, p, gamma, b0, fineness):
    """The sweep of the best value in table units, as fine as `fineness` asks."""
    x, q, p = thin(x, q, p, fineness.atoms)
    levels = precisions(b0, q, p, gamma, fineness)
    spacing = lattices(levels, q, p, gamma, fineness, False)
    n = int(WIDTH * learnable_sd(levels[-1], gamma) / spacing[-1])
    start = 0.5 * full_observation_edge(n, spacing[-1], levels[-1], np.sum(x * p), p.sum(), gamma)
    first, ptr, D = sweep(x, q, p, gamma, levels, spacing, start)
    return Grid(levels, spacing, first, ptr, D, x, q, p, np.array([fineness.read]), np.zeros((0, 0)), np.zeros((3, 0)))


def solve_bound(kind, x, q, p, gamma, b0, fineness):
    """One certified sweep (sweep.UPPER or LOWER) in table units, as fine as `fineness` asks."""
    return sweep_(kind, *rounded(kind, x, q, p, fineness.atoms), gamma, b0, fineness)


def stored_side(kind, x, q, p, gamma, b0, fineness):
    """`solve_best` or `solve_bound`, remembered in this process and, where BOOK_TABLES names a folder, on disk."""
    key = cache.digest("sweep 9", np.concatenate(((kind, gamma, b0), fineness, x, q, p)))
    with GUARD:
        if key in MEMORY:
            MEMORY.move_to_end(key)
            return MEMORY[key]
    folder = os.environ.get("BOOK_TABLES")
    kept = cache.load(folder, key) if folder else None
    try:
        grid = Grid(**kept)
    except TypeError:
        grid = (solve_best(x, q, p, gamma, b0, fineness) if kind == GUESS else
                solve_bound(kind, x, q, p, gamma, b0, fineness))
        if folder:
            cache.save(folder, key, grid._asdict())
    with GUARD:
        MEMORY.keep(key, grid, REMEMBER)
    return grid


SLACK = 1e-10           # relative widening of every bracket, for rounding errors (chapter "The dynamic program")
TINY = 1e-12            # discounts below it are solved as if they were it


class Table(NamedTuple):
    """A solved single-feature problem.  Table units: noise_sd = 1 and largest information 1."""

    gamma: float
    noise_sd: float       # reward units
    var_max: float        # reward units squared
    scale: float          # theta is measured in noise_sd / scale
    slope: float          # E[x] / (1 - gamma)
    upper: Grid     # D = w - slope * max(m, 0) of the upper and
    lower: Grid     # the lower bound (None where no certificate was asked for)
    best: tuple           # what the best value is swept with

    @property
    def guess(self):
        """The sweep of the best value, made when it is first asked for (lib.dp.program keeps it)."""
        return stored_side(GUESS, *self.best)


def magnitudes(x, probs, info):
    """Distinct positive magnitudes, their information and probabilities, sorted by information."""
    x = as_floats("x", x, 1)
    if (x < 0).any():
        raise ValueError(f"x[{np.argmin(x)}] is {x.min()}: magnitudes are nonnegative")
    probs = as_probs(probs, x.size)
    info = x * x if info is None else as_floats("info", info, 1)
    if info.shape != x.shape or (info[x > 0] <= 0).any():
        raise ValueError(f"info must be positive for every positive x, got {info}")
    keep = (x > 0) & (probs > 0)
    x, info, probs = x[keep], info[keep], probs[keep]
    order = np.lexsort((x, info))
    x, info = x[order], info[order]
    new = np.append(True, (np.diff(x) != 0) | (np.diff(info) != 0))[:x.size]
    return x[new], info[new], np.bincount(np.cumsum(new) - 1, probs[order], new.sum())


def solve(x, probs, gamma, noise_sd, var_max, tol=1e-3, certify=True, between=True, info=None):
    """Solve the single-feature problem for every cost, mean and variance in (0, var_max].

    Parameters
    ----------
    x, probs : array-like (n,)
        Magnitudes, nonnegative, and their probabilities (renormalised within 1e-9).
    gamma : float
        Discount factor in [0, 0.9995].
    noise_sd : float
        Noise standard deviation of an observation at x = 1, positive, in reward units.
    var_max : float
        Largest prior variance that will be asked for, positive, in reward units squared.
    tol : float
        Aim for the relative width of the bracket at var_max, which holds for every tol.  Work grows like tol^-0.6 where all
        informations are alike and `between` is False, else like tol^-1.2; 2,000 informations take seconds at 1e-3.
    certify : bool
        False leaves the two bounds out (`value` then fails) and sweeps at once what `q_values` and `boundary` read.
    between : bool
        False asks for sharp answers at var_max alone: much faster where informations are alike.  True asks for them down
        to what min(150, 5/tol) largest informations leave (or three times as many average ones, where that is less).
    info : array-like (n,), optional
        What a forwarded x adds to noise_sd^2 / variance, if not x^2.

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> table = solve([0, 1], [.5, .5], gamma=.9, noise_sd=.1**.5, var_max=1)
    >>> print("%.2f" % value(table, 0., 1.).value)
    1.59
    """
    x, q, p = magnitudes(x, probs, info)
    gamma = as_scalar("gamma", gamma, -1e-300, 0.9995)
    noise_sd, var_max = as_scalar("noise_sd", noise_sd, 0), as_scalar("var_max", var_max, 0)
    tol = as_scalar("tol", tol, 0, 1)
    if not x.size:
        return Table(gamma, noise_sd, var_max, 1.0, 0.0, None, None, ())
    scale = math.sqrt(q.max())
    b0 = (noise_sd / scale) ** 2 / var_max
    if not 1e-14 < b0 < 1e14:
        raise ValueError(f"noise_sd^2 / var_max is {b0} largest informations: only 1e-14 to 1e14 can be solved")
    x, q = x / scale, q / scale**2
    table = Table(gamma, noise_sd, var_max, scale, np.sum(x * p) / (1 - gamma), None, None,
                  (x, q, p, max(gamma, TINY), b0, fineness(GUESS, q, gamma, tol, between)))
    if not certify:
        stored_side(GUESS, *table.best)
        return table
    upper, lower = (stored_side(kind, *table.best[:-1], fineness(kind, q, gamma, tol, between))
                    for kind in (UPPER, LOWER))
    return table._replace(upper=upper, lower=lower)


def fineness(kind, q, gamma, tol, between):
    """`grids.Fineness`: bounds a relative width of about tol apart at var_max, the best value well within."""
    best, root, patience = kind == GUESS, math.sqrt(tol), min(max(10 * (1 - gamma), 0.02), 5) ** 0.1
    read, far = min(1.4 * root, 0.01 if best else 0.1), min(150.0, 5 / tol)
    reach = WIDTH if best else quadrature.reach(tol * (1 - gamma) * min(5e-3, 0.05 * (1 - gamma)))
    if q.min() == q.max() and not between:
        return Fineness(0.0, (3 if best else 4) * tol, math.sqrt(1.5 * tol), 1.0 if best else 2.0, reach, 1, read, 0.0)
    if best:
        eta = min(2.5 * root, max(0.05, 0.5 * root))
        return Fineness(max(0.1, min(tol, 0.4)), 1e-5, eta, 4.0, reach, 32, read, far)
    unit, eta, kappa = (0.45, 1.33, 0.5) if kind == UPPER else (0.48, 1.28, 2.0)
    return Fineness(min(unit * root * patience**2, 0.2), 2 * tol, min(eta * root * patience, 0.3), kappa, reach,
                    max(32, int(2 / tol)), read, far if between else 0.0)


def table_units(table, net_mean, var):
    """net_mean and var as broadcast arrays (m, b) in table units; b is infinite where var is 0."""
    net_mean, var = np.broadcast_arrays(np.asarray(net_mean, float), np.asarray(var, float))
    if not (np.isfinite(net_mean).all() and np.isfinite(var).all()):
        raise ValueError("net_mean and var must be finite")
    if (var < 0).any():
        raise ValueError(f"var is {var.min()}: a variance is nonnegative")
    if (var > table.var_max * (1 + 1e-12)).any():
        raise ValueError(f"var is {var.max()}, above the table's var_max {table.var_max}")
    with np.errstate(divide="ignore"):
        b = table.noise_sd**2 / (np.minimum(var, table.var_max) * table.scale**2)
    return net_mean * (table.scale / table.noise_sd), b


def hold(table, net_mean, var, points):
    """`points(m, b)` on raveled table units, reshaped and in reward units."""
    m, b = table_units(table, net_mean, var)
    out = points(m.ravel(), b.ravel()) * table.noise_sd
    return out.reshape(out.shape[:-1] + m.shape)


def require_bounds(table):
    """ValueError for a table without bounds."""
    if table.slope and table.upper is None:
        raise ValueError("this table was solved with certify=False: it has no bracket")


def value(table, net_mean, var):
    """The value before x is seen, without the leading gamma (paper, V_j averaged over x).

    Parameters
    ----------
    table : Table
        From `solve`, with its certificate.
    net_mean : array-like
        mean - cost, reward units.
    var : array-like
        Variance of theta, 0 <= var <= var_max, reward units squared; broadcast with net_mean.

    Returns
    -------
    Bracket
        lower <= truth <= upper at every point, on the grid and between; value is their middle.

    Raises
    ------
    ValueError
        For a variance below 0 or above var_max, NaN, or a table without certificate.
    """
    require_bounds(table)

    def points(m, b):
        low, high = (read(table, kind, m, b) for kind in (LOWER, UPPER))
        pad = SLACK * table.slope * (np.abs(m) + 1 / np.sqrt(b))
        low, high = np.maximum(low - pad, table.slope * np.maximum(m, 0)), high + pad
        return np.array([low, (low + high) / 2, high])
    return Bracket(*hold(table, net_mean, var, points))


def smoothed_value(table, net_mean, sd, var):
    """Bracket on E value(net_mean + sd Z, var): chords above, a law that the normal dominates below.

    Parameters
    ----------
    table : Table
    net_mean, sd, var : float
        Reward units; sd > 0, 0 < var <= var_max.

    Returns
    -------
    Bracket
    """
    require_bounds(table)
    if not table.slope:
        return Bracket(0.0, 0.0, 0.0)
    m, b = table_units(table, net_mean, var)
    m, b, t = float(m), float(b), float(sd) * table.scale / table.noise_sd
    s, ends = 1 / math.sqrt(b), []
    for kind, grid in ((LOWER, table.lower), (UPPER, table.upper)):
        reach, first, d = grid.read[1], int(grid.first[0, 0]), grid.spacing[0] * math.sqrt(grid.levels[0] / b)
        edge = -first * d
        if grid.levels[0] == b and d <= 0.2 * t:
            D = grid.D[:grid.first[1, 0]]
        else:                                          # a lattice of its own, where the mean may fall
            while d > 0.2 * t:
                d /= 2
            first = math.ceil(max(-edge, m - reach * t - 2 * d) / d)
            nodes = np.arange(first, math.floor(min(edge, m + reach * t + 2 * d) / d) + 1) * d
            D = np.maximum(read(table, kind, nodes, np.full(nodes.size, b)) - table.slope * np.maximum(nodes, 0), 0)
        ends.append(lookup.smoothed(kind, D, first, d, edge, table.slope, max(table.gamma, TINY), m, t, b, reach))
    pad = SLACK * table.slope * (abs(m) + s + t)
    low, high = ends[0] - pad, ends[1] + pad
    return Bracket(*(table.noise_sd * w for w in (low, (low + high) / 2, high)))


def read(table, kind, m, b):
    """The lower, best or upper value at (m, b), all in table units."""
    if not table.slope:
        return np.zeros(m.shape)
    gamma = max(table.gamma, TINY)
    if kind == GUESS:
        return lookup.values(table.guess, gamma, m, b)
    return lookup.bounds(kind, table.upper if kind == UPPER else table.lower, gamma, m, b)


def forwards(table, m, b, x):
    """(discard, forward) in table units for an item of magnitude x (table units)."""
    learned = lookup.expected(table.guess, table.slope, m, b, x * x)
    return table.gamma * read(table, GUESS, m, b), x * m + table.gamma * learned


def q_values(table, net_mean, var, x=1.0):
    """Q factors of an item of magnitude x: (discard, forward), reward units (paper, section III-B).

    Both are best guesses, accurate to about 1e-4 of the value, but to percents alone where frequent items teach ten
    thousand times less than a rare one or than the prior (compare `value`).  x need not be in the table's support, and
    teaches x^2.
    """
    x = as_scalar("x", x, 0)
    if not table.slope:
        zero = np.zeros(np.broadcast(net_mean, var).shape)
        return zero, x * np.asarray(net_mean, float) + zero
    both = hold(table, net_mean, var, lambda m, b: np.array(forwards(table, m, b, x / table.scale)))
    return both[0], both[1]


def thresholds(table, b, alpha, x):
    """Standardised net mean z = m sqrt(b) at which x m + alpha (exploration benefit) changes sign, by bisection.

    The exploration benefit is forward - discard - x m >= 0, so the sign changes at z <= 0.
    """
    low, high = np.full(b.shape, -WIDTH), np.zeros(b.shape)
    for _ in range(30):
        z = (low + high) / 2
        discard, forward = forwards(table, z / np.sqrt(b), b, x)
        m = x * z / np.sqrt(b)
        go = m + alpha * np.maximum(forward - discard - m, 0) > 0
        low, high = np.where(go, low, z), np.where(go, z, high)
    return high


def boundary(table, alpha, prec, x=1.0):
    """Forwarding thresholds of DTD-DP: forward iff sqrt(prec) m > boundary (paper, Algorithm 2).

    Parameters
    ----------
    table : Table
    alpha : float
        Factor of the exploration benefit, positive.
    prec : array-like
        Precisions noise_sd^2 / var.
    x : float
        Magnitude of the item at hand.

    Returns
    -------
    ndarray
        Thresholds of the standardised net mean (mean - cost) / sqrt(var), at most 0, shaped like prec.
    """
    prec = np.asarray(prec, float)
    if not table.slope:
        return np.zeros(prec.shape)
    return thresholds(table, prec.ravel() / table.scale**2, alpha, x / table.scale).reshape(prec.shape)


def indifference_cost(table, mean, var):
    """The cost at which forwarding x = 1 breaks even with discarding it, reward units.

    For x = 1 always it is the Gittins index of a normal reward process (chapter "The dynamic program").
    """
    m, b = table_units(table, mean, var)
    if not table.slope:
        return m * table.noise_sd / table.scale
    z = np.zeros(b.shape)
    finite = np.isfinite(b)
    z[finite] = thresholds(table, b[finite], 1.0, 1 / table.scale) / np.sqrt(b[finite])
    return (m - z) * (table.noise_sd / table.scale)


STEP, REACH, FINE, DEEP = 0.1, 6.0, 0.05, 3.2


@lru_cache(maxsize=1024)
def exploration_benefits(x, probs, gamma, prec):
    """Where the value leaves zero, (n,), and E / sd around it, (n, m), at precisions prec exp(STEP n), noise 1."""
    x, probs = np.frombuffer(x), np.frombuffer(probs)
    if not x.any():
        return np.zeros(2), np.zeros((2, 2))
    table = solve(x, probs, gamma, 1.0, 1 / prec, certify=False)
    reach = REACH / -np.log(gamma) * max(x.max() ** 2, 1.0)
    sd = np.exp(-STEP / 2 * np.arange(2 + int(np.log1p(reach / prec) / STEP))) / np.sqrt(prec)
    low, high = np.full(len(sd), -8.0), np.zeros(len(sd))
    for _ in range(16):
        kink = (low + high) / 2
        worth = q_values(table, kink * sd, sd**2)[0] > 1e-9 * sd
        low, high = np.where(worth, low, kink), np.where(worth, kink, high)
    z = high[:, None] + FINE * np.arange(-round(DEEP / FINE), 2 + int(-high.min() / FINE))
    discard, forward = q_values(table, z * sd[:, None], sd[:, None] ** 2)
    return high, np.maximum((forward - discard) / sd[:, None] - z, 0)
