"""The single-feature dynamic program, solved with a certificate (paper, sections III-A and III-B).

One feature of unknown worth theta ~ N(mean, var); an item of magnitude x ~ (x, probs) arrives, forwarding it
pays x (y - cost) with y ~ N(theta, noise_sd^2 / x^2), discarding pays 0 and shows nothing.  `solve` tabulates the
value before x is seen, without the leading gamma, for every cost, mean and variance up to var_max;
`value` reads a bracket off the table.  In the scale noise_sd = 1, m = (mean - cost)/noise_sd, b = noise_sd^2/var,

    w(m, b) = E_x max{gamma w(m, b), x m + gamma E w(m + t Z, b + x^2)},   t^2 = 1/b - 1/(b + x^2).

Tables are kept in memory, and on disk where BOOK_TABLES names a folder.
"""
from functools import lru_cache
import math
import os
from threading import Lock
from typing import NamedTuple

from cachetools import LRUCache, cached
import numpy as np

from lib import cache
from lib.dp import best, lookup, lower, quadrature, upper
from lib.dp.best import BestGrid
from lib.dp.grid import (Fineness, Nodes, Program, arrays, lattices, learnable_sd, make_program, nbytes, no_better, no_worse,
                         precisions, thin)
from lib.dp.lower import LowerGrid
from lib.dp.quadrature import WIDTH, Step
from lib.dp.upper import UpperGrid, full_observation_edge
from lib.problem import Bracket, as_flag, as_floats, as_made, as_numbers, as_probs, as_scalar

PATIENT = 0.9995        # the largest discount that is solved
LEAST, MOST = 1e-14, 2e12   # b0 that is solved, largest informations: levels one item apart differ beyond MOST by rounding
TINY = 1e-12            # discounts below it are solved as if they were it
NARROW = 1e-50          # magnitudes below this share of the largest are refused
FAR = 0.8               # share of the sweep of the best value, counted in precision, beyond which it is read by scaling
SLACK = 1e-10           # least relative widening of every bracket, for rounding errors (`rounding_error`)
MEMORY = LRUCache(200e6, getsizeof=nbytes)      # grids by key, at most so many bytes
GUARD = Lock()          # of MEMORY: features are solved in threads


class Table(NamedTuple):
    """A solved single-feature problem.  Table units: noise_sd = 1 and largest information 1."""

    gamma: float
    noise_sd: float       # reward units
    var_max: float        # reward units squared
    scale: float          # theta is measured in noise_sd / scale
    slope: float          # E[x] / (1 - gamma)
    upper: UpperGrid      # None where no certificate was asked for
    lower: LowerGrid
    program: Program      # what is solved, table units, and
    fineness: Fineness    # how finely the best value is swept
    tol: float = 1e-3     # what the bracket's relative width was to be

    @property
    def guess(self):
        """The sweep of the best value, made when it is first asked for (and kept)."""
        return stored("best", self.program, self.fineness)


def sweep_best(program, fineness):
    """The BestGrid of a program, as fine as `fineness` asks."""
    levels = precisions(program, fineness)
    spacing, first = lattices(program, levels, fineness, False), np.zeros((2, levels.size), np.int64)
    n = int(WIDTH * learnable_sd(levels[-1], program.gamma) / spacing[-1])
    first[:, -1] = -n, 2 * n + 1
    start = 0.5 * full_observation_edge(program, n, spacing[-1], levels[-1])
    return best.sweep(BestGrid(levels, spacing, first, np.zeros(levels.size, np.int64), start, program, fineness.read))


MERGE = {"best": thin, "upper": no_worse, "lower": no_better}
SWEEP = {"best": sweep_best, "upper": upper.sweep, "lower": lower.sweep}
GRID = {"best": BestGrid, "upper": UpperGrid, "lower": LowerGrid}


def sweep_key(kind, program, fineness):
    """The name under which a sweep is kept."""
    numbers = np.concatenate(((program.gamma, program.b0), fineness, program.x, program.info, program.probs))
    return cache.digest("sweep 11", kind, numbers)


@cached(MEMORY, key=sweep_key, lock=GUARD)
def stored(kind, program, fineness):
    """The sweep of one kind, a key of SWEEP: from memory, from the folder BOOK_TABLES, or made and kept in both."""
    merged, folder = MERGE[kind](program, fineness.atoms), os.environ.get("BOOK_TABLES")
    key = sweep_key(kind, program, fineness)
    kept = cache.load(folder, key) if folder else None
    if kept is not None:
        cuts = {} if kind == "best" else {"reach": fineness.reach}
        return GRID[kind](**kept, program=merged, read=fineness.read, **cuts)
    grid = SWEEP[kind](merged, fineness)
    if folder:
        cache.save(folder, key, arrays(grid))
    return grid


def as_number(name, value, low=-np.inf, high=np.inf):
    """`value` as a float strictly between `low` and `high`, or ValueError."""
    return as_scalar(name, as_numbers(name, value), low, high)


def magnitudes(x, probs, info):
    """(x, info, probs, scale) of the distinct positive magnitudes, by information; the largest information is 1.

    x is divided by scale, the root of the largest information.
    """
    x = as_floats("x", as_numbers("x", x), 1)
    if (x < 0).any():
        raise ValueError(f"x[{np.argmin(x)}] is {x.min()}: magnitudes are nonnegative")
    probs, root = as_probs(as_numbers("probs", probs), x.size), x
    if info is not None:
        info = as_floats("info", as_numbers("info", info), 1)
        if info.shape != x.shape or (info < 0).any() or (info[x > 0] <= 0).any():
            raise ValueError(f"info must be nonnegative, and positive for every positive x, got {info}")
        root = np.sqrt(info)
    keep = (x > 0) & (probs > 0)
    if not keep.any():
        return np.zeros(0), np.zeros(0), np.zeros(0), 1.0
    scale = float(root[keep].max())
    x, q, probs = x[keep] / scale, (root[keep] / scale) ** 2, probs[keep]
    if not (np.isfinite(x).all() and q.min() > NARROW**2):
        raise ValueError(f"{'x' if info is None else 'info'} spans too much: the smallest information is {q.min()} of the largest")
    order = np.lexsort((x, q))
    x, q = x[order], q[order]
    new = np.append(True, (np.diff(x) != 0) | (np.diff(q) != 0))
    return x[new], q[new], np.bincount(np.cumsum(new) - 1, probs[order], new.sum()), scale


def solve(x, probs, gamma, noise_sd, var_max, tol=1e-3, certify=True, between=True, info=None):
    """Solve the single-feature problem for every cost, mean and variance in (0, var_max].

    Nine arguments: five state the problem, and four, with defaults, are best given by name.

    Parameters
    ----------
    x, probs : array-like (n,)
        Magnitudes, nonnegative, and their probabilities (renormalised within 1e-9).
    gamma : float
        Discount factor in [0, 0.9995].
    noise_sd : float
        Noise standard deviation of an observation at x = 1, positive, in reward units.
    var_max : float
        Largest prior variance that will be asked for, positive, in reward units squared; noise_sd^2 / var_max may lie
        between 1e-14 and 2e12 largest informations.
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
    x, q, p, scale = magnitudes(x, probs, info)
    gamma, tol = as_number("gamma", gamma), as_number("tol", tol, 0, 1)
    certify, between = as_flag("certify", certify), as_flag("between", between)
    require_discount(gamma)
    noise_sd, var_max = as_number("noise_sd", noise_sd, 0), as_number("var_max", var_max, 0)
    if not x.size:
        return Table(gamma, noise_sd, var_max, 1.0, 0.0, None, None, None, None, tol)
    b0 = precision(noise_sd, scale, var_max)
    require_served(b0)
    program = make_program(x, q, p, max(gamma, TINY), b0)
    table = Table(gamma, noise_sd, var_max, scale, np.sum(x * p) / (1 - gamma), None, None, program,
                  fineness("best", q, gamma, tol, between), tol)
    if not certify:
        stored("best", program, table.fineness)
        return table
    bounds = {kind: stored(kind, program, fineness(kind, q, gamma, tol, between)) for kind in ("upper", "lower")}
    return table._replace(**bounds)


def fineness(kind, q, gamma, tol, between):
    """`grid.Fineness`: bounds a relative width of about tol apart at var_max, the best value well within."""
    best, root, patience = kind == "best", math.sqrt(tol), min(max(10 * (1 - gamma), 0.02), 5) ** 0.1
    read, far = min(1.4 * root, 0.01 if best else 0.1), min(150.0, 5 / tol)
    reach = WIDTH if best else quadrature.reach(tol * (1 - gamma) * min(5e-3, 0.05 * (1 - gamma)))
    if q.min() == q.max() and not between:
        return Fineness(0.0, (3 if best else 4) * tol, math.sqrt(1.5 * tol), 1.0 if best else 2.0, reach, 1, read, 0.0)
    if best:
        eta = min(2.5 * root, max(0.05, 0.5 * root))
        return Fineness(max(0.1, min(tol, 0.4)), 1e-5, eta, 4.0, reach, 32, read, far)
    unit, eta, kappa = (0.45, 1.33, 0.5) if kind == "upper" else (0.48, 1.28, 2.0)
    return Fineness(min(unit * root * patience**2, 0.2), 2 * tol, min(eta * root * patience, 0.3), kappa, reach,
                    max(32, int(2 / tol)), read, far if between else 0.0)


def require_discount(gamma):
    """ValueError for a discount that is not solved."""
    if not 0 <= gamma <= PATIENT:
        raise ValueError(f"gamma is {gamma}: discounts from 0 to {PATIENT} can be solved")


def require_served(b0):
    """ValueError for a least precision, in largest informations, that floating point does not tell from its neighbours."""
    if not LEAST < b0 < MOST:
        raise ValueError(f"noise_sd^2 / var_max is {b0} largest informations: only {LEAST} to {MOST} can be solved")


def as_table(table):
    """`table` where it is a Table, or ValueError."""
    return as_made("table", table, Table, "lib.dp.solve")


def precision(noise_sd, scale, var):
    """Table units of a variance: in largest informations; infinite where it is 0."""
    with np.errstate(divide="ignore"):
        return (noise_sd / scale / np.sqrt(var)) ** 2


def table_units(table, mean, var, name="net_mean"):
    """The mean, called `name`, and var as broadcast arrays (m, b) in table units; b is infinite where var is 0."""
    return in_table_units(as_table(table), mean, var, name)


def in_table_units(table, mean, var, name):
    """`table_units` for any table that has the fields var_max, scale and noise_sd."""
    mean, var = as_numbers(name, mean), as_numbers("var", var)
    if (var < 0).any():
        raise ValueError(f"var is {var.min()}: a variance is nonnegative")
    if (var > table.var_max * (1 + 1e-12)).any():
        raise ValueError(f"var is {var.max()}, above the table's var_max {table.var_max}")
    mean, var = np.broadcast_arrays(mean, np.minimum(var, table.var_max))
    return mean * (table.scale / table.noise_sd), precision(table.noise_sd, table.scale, var)


def hold(table, net_mean, var, points):
    """`points(m, b)` on raveled table units, reshaped and in reward units."""
    m, b = table_units(table, net_mean, var)
    out = points(m.ravel(), b.ravel()) * table.noise_sd
    return out.reshape(out.shape[:-1] + m.shape)


def require_bounds(table):
    """ValueError for a table without bounds."""
    if as_table(table).slope and table.upper is None:
        raise ValueError("this table was solved with certify=False: it has no bracket")


def rounding_error(grid):
    """At most the rounding error of a certified value, relative to K (|m| + s), s = b^(-1/2).

    A step of the sweep is a sum of nonnegative terms, as many as a level has nodes, of weights that the series leaves
    wrong by 5e-14 in all; every other operation is one of fewer than 1,500.  A tangent's slopes divide by d^2.  Steps
    count with the discount of getting there (chapter "The certified sweep", section "What rounding may do").
    """
    unit = 2.0**-53
    each = unit * (2 * float(grid.first[1].max()) + 4 * grid.program.x.size + 1500) + 5e-14
    if isinstance(grid, LowerGrid) and grid.tangent.size and grid.levels.size > 2:
        gap = (np.diff(grid.levels) / grid.levels[:-1])[1:].max()
        each += 4 * unit * gap * (1 / (grid.levels * grid.spacing**2)).max()
    return 2 * each / (1 - grid.program.gamma)


def slack(table):
    """What every end of a bracket is widened by, relative to K (|m| + s)."""
    return max(SLACK, *(rounding_error(grid) for grid in (table.upper, table.lower))) if table.slope else 0.0


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
        For a variance below 0 or above var_max, what is no finite number, or a table without certificate.
    """
    require_bounds(table)

    def points(m, b):
        low, high = (read(table, kind, m, b) for kind in ("lower", "upper"))
        pad = slack(table) * table.slope * (np.abs(m) + 1 / np.sqrt(b))
        low, high = np.maximum(low - pad, (1 - 1e-15) * table.slope * np.maximum(m, 0)), high + pad
        return np.array([low, (low + high) / 2, high])
    return Bracket(*hold(table, net_mean, var, points))


def near(table, kind, m, b, move):
    """(Nodes, edge): w - K m^+ of one side at precision b where the mean m may move to; its lattice ends at -edge, edge.

    The nodes of the first level where they do, else nodes of their own: a fifth of the move apart at most, and as far as
    those that a look-up reads.
    """
    grid = getattr(table, kind)
    first, d = int(grid.first[0, 0]), grid.spacing[0] * math.sqrt(grid.levels[0] / b)
    edge = -first * d
    if grid.levels[0] == b and d <= 0.2 * move.t:
        return Nodes(first, d, grid.D[:grid.first[1, 0]]), edge
    while d > min(0.2 * move.t, grid.read / math.sqrt(b)):
        d /= 2
    wide = move.reach * move.t + 2 * d
    first = math.ceil(max(-edge, m - wide) / d)
    nodes = np.arange(first, math.floor(min(edge, m + wide) / d) + 1) * d
    D = np.maximum(read(table, kind, nodes, np.full(nodes.size, b)) - table.slope * np.maximum(nodes, 0), 0)
    return Nodes(first, d, D), edge


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

    Raises
    ------
    ValueError
        For an sd or a variance that is not positive, what is no finite number, or a table without certificate.
    """
    net_mean, sd, var = as_number("net_mean", net_mean), as_number("sd", sd, 0), as_number("var", var, 0)
    require_bounds(table)
    if not table.slope:
        return Bracket(0.0, 0.0, 0.0)
    m, b = (float(number) for number in table_units(table, net_mean, var))
    t = sd * table.scale / table.noise_sd
    move = Step(t, table.lower.reach)
    low = lower.mean_value(table.lower, near(table, "lower", m, b, move)[0], m, move)
    move = Step(t, table.upper.reach)
    high = upper.mean_value(table.upper, *near(table, "upper", m, b, move), m, move, b)
    pad = slack(table) * table.slope * (abs(m) + 1 / math.sqrt(b) + t)
    low, high = low - pad, high + pad
    return Bracket(*(table.noise_sd * w for w in (low, (low + high) / 2, high)))


def resolved(table, m, b):
    """(m, b, share): where the sweep of the best value is read for the points (m, b), and what is read counts by `share`.

    Its last level knows nothing of what comes after.  From FAR of the sweep on, where little is left to learn, values are
    those of a random walk: w(m, b) = (B/b) w(m b/B, B).  The share is 0 where nothing is left at all.
    """
    levels = table.guess.levels
    edge = levels[0] + FAR * (levels[-1] - levels[0])
    share = np.minimum(edge / b, 1.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scaled = np.where(share > 0, m / share, 0.0)
    return scaled, np.minimum(b, edge), share


def best_values(table, m, b):
    """(n,) the best value at (m, b), table units."""
    m_read, b_read, share = resolved(table, m, b)
    found = share * best.values(table.guess, m_read, b_read)
    return np.where(share > 0, found, table.slope * np.maximum(m, 0))


READ = {"best": best_values,
        "upper": lambda table, m, b: lookup.upper_values(table.upper, m, b),
        "lower": lambda table, m, b: lookup.lower_values(table.lower, m, b)}


def read(table, kind, m, b):
    """The lower, best or upper value at (m, b), all in table units."""
    return READ[kind](table, m, b) if table.slope else np.zeros(m.shape)


def forwards(table, m, b, x):
    """(discard, forward) in table units for an item of magnitude x (table units)."""
    m_read, b_read, share = resolved(table, m, b)
    # an item's information shrinks with what is known, as that of every item that the sweep knows of
    learned = share * best.forward_values(table.guess, m_read, b_read, x * x)
    learned = np.where(share > 0, learned, table.slope * np.maximum(m, 0))
    return table.gamma * read(table, "best", m, b), x * m + table.gamma * learned


def q_values(table, net_mean, var, x=1.0):
    """Q factors of an item of magnitude x: (discard, forward), reward units (paper, section III-B).

    Both are best guesses, near the variance that the table starts at accurate to about 1e-4 of the value.  Far below it, or
    where frequent items teach a hundred times less than a rare one, they may be off by .02 sd (gamma up to .9; compare
    `value`).  x need not be in the table's support, and teaches x^2.
    """
    table, x = as_table(table), as_number("x", x, 0)
    if not table.slope:
        m, b = table_units(table, net_mean, var)
        return np.zeros(m.shape), x * m * table.noise_sd
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
        Precisions noise_sd^2 / var of variances up to var_max.
    x : float
        Magnitude of the item at hand, positive.

    Returns
    -------
    ndarray
        Thresholds of the standardised net mean (mean - cost) / sqrt(var), at most 0, shaped like prec.

    Raises
    ------
    ValueError
        For a precision below that of var_max, an alpha or x that is not positive, or what is no finite number.
    """
    alpha, x, prec = as_number("alpha", alpha, 0), as_number("x", x, 0), as_numbers("prec", prec)
    table = as_table(table)
    least = (table.noise_sd / np.sqrt(table.var_max)) ** 2
    if not (prec >= least * (1 - 1e-12)).all():
        raise ValueError(f"prec is {prec.min()}: the table's smallest is noise_sd^2 / var_max = {least}")
    if not table.slope:
        return np.zeros(prec.shape)
    b = np.maximum(prec.ravel() / table.scale / table.scale, table.program.b0)
    return thresholds(table, b, alpha, x / table.scale).reshape(prec.shape)


STEP, REACH, FINE, DEEP = 0.1, 6.0, 0.05, 3.2


@lru_cache(maxsize=1024)
def exploration_benefits(x, probs, gamma, prec, tol=1e-3):
    """Where the value leaves zero, (n,), and E / sd around it, (n, m), at precisions prec exp(STEP n), noise 1; tol as in `solve`."""
    x, probs = np.frombuffer(x), np.frombuffer(probs)
    if not x.any():
        return np.zeros(2), np.zeros((2, 2))
    table = solve(x, probs, gamma, 1.0, 1 / prec, tol, certify=False)
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
