"""The single-feature dynamic program for items of any sign and charges of any kind, solved with a certificate.

One feature of unknown worth theta ~ N(mean, var); an item (x, charge, info) arrives with its probability.  Forwarding pays
x theta - charge and adds info / noise_sd^2 to the precision of theta; discarding pays 0 and shows nothing.  In the scale
noise_sd = 1, with b = noise_sd^2 / var,

    w(m, b) = E max{gamma w(m, b), x m - charge + gamma E w(m + t Z, b + info)},   t^2 = 1/b - 1/(b + info).

lib.dp.program has the case x >= 0, charge = cost x, where one table serves every cost (chapter "The certified sweep",
section "Items of any sign, charges of any kind").
"""
import math
from typing import NamedTuple

import numpy as np

from lib.dp import general_lower, general_upper, lower
from lib.dp.atoms import Atoms
from lib.dp.grid import Nodes, Program, grouped, make_program
from lib.dp.program import (NARROW, SLACK, TINY, as_number, fineness, in_table_units, precision, require_discount, require_served,
                            rounding_error)
from lib.dp.quadrature import Step
from lib.normal import expected_excess
from lib.problem import Bracket, as_flag, as_floats, as_made, as_numbers

SERVED = 5.0, 10.0, 20.0, 40.0      # break-even means farther than so many prior standard deviations from the means asked for are moved:
MOVED = 0.05            # the least at which charges move by no more than this share of `tol`, of what hindsight is worth, or the last
EXACT = 0.99            # up to this discount equal informations have the lattice of the precisions that they lead to
SIDES = {"upper": (general_upper, np.maximum, -np.inf), "lower": (general_lower, np.minimum, np.inf)}


class Side(NamedTuple):
    """One side of a bracket: a problem that is worth no less, or no more, and its sweep.  Table units."""

    atoms: Atoms
    center: float         # the mean that its own is counted from
    base: float           # what is added to its value
    grid: NamedTuple      # GeneralGrid or LowerGrid; None where there is nothing to solve


class GeneralTable(NamedTuple):
    """A solved general problem.  Table units: noise_sd = 1 and largest information 1."""

    gamma: float
    noise_sd: float       # reward units
    var_max: float        # reward units squared
    scale: float          # theta is measured in noise_sd / scale
    whole: Side           # all atoms, nothing solved: commitment and hindsight
    upper: Side
    lower: Side


def as_shares(probs, n):
    """`probs` as n nonnegative numbers that add up to at most 1, within 1e-9; or ValueError."""
    probs = as_floats("probs", as_numbers("probs", probs), 1)
    if probs.shape != (n,) or (probs < 0).any() or probs.sum() > 1 + 1e-9:
        raise ValueError(f"probs must be {n} nonnegative numbers that add up to at most 1, got {probs}")
    return probs / max(1.0, probs.sum())


def as_atoms(x, charge, probs, info):
    """(x, charge, probs, root, sure) of the atoms that matter, ascending in root, the root of the information.

    sure: what those earn, on average, that neither pay by theta nor teach.
    """
    x, charge = (as_floats(name, as_numbers(name, part), 1) for name, part in (("x", x), ("charge", charge)))
    if charge.shape != x.shape:
        raise ValueError(f"charge must have one element per x, got {charge.size} for {x.size}")
    probs, root = as_shares(probs, x.size), np.abs(x)
    if info is not None:
        info = as_floats("info", as_numbers("info", info), 1)
        if info.shape != x.shape or (info < 0).any():
            raise ValueError(f"info must be nonnegative, one number per x, got {info}")
        root = np.sqrt(info)
    idle, order = (x == 0) & (root == 0), np.argsort(root, kind="stable")
    order = order[(probs[order] > 0) & ~idle[order]]
    return x[order], charge[order], probs[order], root[order], float(np.sum((probs * np.maximum(-charge, 0))[idle]))


def as_range(means):
    """`means` as two ordered numbers, -inf and inf for None; or ValueError."""
    if means is None:
        return -np.inf, np.inf
    found = as_numbers("means", means)
    if found.shape != (2,) or found[0] > found[1]:
        raise ValueError(f"means must be the lowest and the highest, got {means!r}")
    return float(found[0]), float(found[1])


def make_side(x, charge, probs, gamma, forced):
    """A Side without a sweep for atoms in table units, those `forced` always forwarded.

    Its mean is counted from where the lines that commitment follows far to both sides meet.
    """
    horizon, paid, size = 1 / (1 - gamma), x != 0, probs * np.abs(x)
    near = paid & ~forced
    center = np.sum((probs * np.sign(x) * charge)[near]) / np.sum(size[near]) if near.any() else 0.0
    charge = charge - x * center
    kink, where = np.unique(charge[near] / x[near], return_inverse=True)
    bend, far = np.bincount(where, size[near], kink.size) * horizon, np.abs(kink)
    left = (x < 0) & near | ~paid & (charge < 0) | forced
    line = horizon * np.array([-np.sum((probs * charge)[left]), np.sum((probs * x)[left])])
    rest = horizon * np.sum((probs * np.abs(charge))[~paid])
    atoms = Atoms(x, charge, probs, forced, np.full(x.size, -1), line, kink, bend, float(rest),
                  float(far.max(initial=0.0)), float(bend @ far))
    return Side(atoms, float(center), 0.0, None)


def no_worse(x, charge, probs, gamma, low, high):
    """The Side of a problem that is worth no less, its break-even means between `low` and `high`.

    A charge that is lowered makes it worth more; one that is raised, less by no more than raise p / (1 - gamma).
    """
    moved = clipped(x, charge, low, high)
    raised = float(np.sum(probs * np.maximum(moved - charge, 0)) / (1 - gamma))
    return make_side(x, moved, probs, gamma, np.zeros(x.size, bool))._replace(base=raised)


def no_better(x, charge, probs, q, gamma, window):
    """(Side, atoms kept) of a problem that is worth no more: what pays from `low` to `high` is always forwarded.

    What does not pay anywhere there never is; but if it teaches, its charge is lowered until it pays, which makes the problem worth
    more by no more than the lowered sum / (1 - gamma), and that is taken off, up to what the window may lose.
    """
    low, high, loss = window
    ends, paid, moved = np.outer((low, high), x) - charge, x != 0, clipped(x, charge, low, high)
    forced, pays = paid & (ends >= 0).all(axis=0), ~paid | (ends > 0).any(axis=0)
    price = np.where(pays | (q <= 0), np.inf, probs * (charge - moved) / (1 - gamma))
    order = np.argsort(price, kind="stable")
    cheap = np.zeros(x.size, bool)
    cheap[order] = np.cumsum(price[order]) <= loss
    keep = pays | cheap
    side = make_side(x[keep], np.where(cheap, moved, charge)[keep], probs[keep], gamma, forced[keep])
    return side._replace(base=-float(price[cheap].sum())), keep


def served(whole, q, gamma, b0, means, tol):
    """The break-even means to which a problem is solved sharply, the narrowest of SERVED that MOVED lets through: (low, high, loss).

    Only what teaches counts: an item far from paying that teaches nothing is not forwarded anyway.  `loss` is what MOVED lets through.
    """
    if not np.isfinite(means[0]):
        return *means, 0.0
    atoms, sd = whole.atoms, 1 / math.sqrt(b0)
    x, charge, probs = atoms.x[q > 0], atoms.charge[q > 0] + atoms.x[q > 0] * whole.center, atoms.probs[q > 0]
    most = MOVED * tol * commitment(whole, np.array([sum(means) / 2]), np.array([sd]))[0]
    for far in SERVED:
        low, high = means[0] - far * sd, means[1] + far * sd
        moved = clipped(x, charge, low, high)
        if probs @ np.abs(charge - moved) <= (1 - gamma) * most:
            break
    return low, high, most


def clipped(x, charge, low, high):
    """Charges whose break-even means lie between `low` and `high`, where an item pays by theta."""
    ends = np.sort(np.outer((low, high), x), axis=0)
    return np.where(x != 0, np.clip(charge, *ends), charge)


def swept(kind, side, q, gamma, b0, tol, between):
    """The side with its sweep; as it is where there is nothing to learn, or nothing to learn for.

    Informations that are merged become the largest of their group above, the smallest below.
    """
    teach = q > 0
    if not teach.any() or not side.atoms.kink.size:
        return side
    kernels, edge, first = SIDES[kind]
    exact = q[teach] if gamma <= EXACT else np.array([0.5, 1.0])           # a long horizon has too many levels one item apart
    fine = fineness(kind, exact, gamma, tol, between)
    program = make_program(np.zeros(teach.sum()), q[teach], side.atoms.probs[teach], gamma, b0)
    info, where = np.unique(grouped(program, fine.atoms, edge, first), return_inverse=True)
    P, group = np.bincount(where, side.atoms.probs[teach]), np.full(q.size, -1)
    group[teach] = where
    program = Program(np.zeros(info.size), info, P, gamma, 1 - P.sum(), float(side.atoms.bend.sum()), b0)
    atoms = side.atoms._replace(group=group)
    return side._replace(atoms=atoms, grid=kernels.sweep(program, atoms, fine))


def solve_general(x, charge, probs, gamma, noise_sd, var_max, tol=1e-2, between=False, info=None, means=None):
    """Solve the single-feature problem with items of any sign, charges of any kind, for every mean and variance up to var_max.

    Ten arguments: six state the problem, and four, with defaults, are best given by name.

    Parameters
    ----------
    x, charge, probs : array-like (n,)
        What forwarding pays, x theta - charge, and how probable it is; probabilities may add up to less than 1, the rest is idle.
    gamma : float
        Discount factor in [0, 0.9995].
    noise_sd : float
        Noise standard deviation of an observation of information 1, positive, in reward units.
    var_max : float
        Largest prior variance that will be asked for, positive, in reward units squared.
    tol : float
        Aim for the relative width of the bracket at var_max, which holds for every tol.  0.1 is quick: a few hundredths of
        a second for ten atoms at gamma = 0.9, and some ten times as long at 0.999.
    between : bool
        False asks for sharp answers at var_max alone, True also below it (see `lib.dp.solve`).
    info : array-like (n,), optional
        What forwarding adds to noise_sd^2 / variance, if not x^2; 0 teaches nothing.
    means : (float, float), optional
        The lowest and the highest mean that matter, reward units.  Where items break even much farther out, a table that knows
        them is sharper, and faster; the bracket holds outside of them as well.

    Returns
    -------
    GeneralTable

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> table = solve_general([1, -1], [0.2, 0.2], [.5, .5], gamma=.9, noise_sd=1, var_max=1, tol=.1)
    >>> print("%.1f" % general_value(table, 0., 1.).value)
    2.0
    """
    x, charge, probs, root, sure = as_atoms(x, charge, probs, info)
    gamma, tol, between = as_number("gamma", gamma), as_number("tol", tol, 0, 1), as_flag("between", between)
    require_discount(gamma)
    noise_sd, var_max = as_number("noise_sd", noise_sd, 0), as_number("var_max", var_max, 0)
    scale = float(root.max(initial=0.0)) or float(np.abs(x).max(initial=0.0)) or 1.0
    x, charge, q, b0 = x / scale, charge / noise_sd, (root / scale) ** 2, precision(noise_sd, scale, var_max)
    if (q > 0).any():
        require_range(b0, root, q)
    gamma, means = max(gamma, TINY), as_range(means)
    whole = make_side(x, charge, probs, gamma, np.zeros(x.size, bool))
    window = served(whole, q, gamma, b0, tuple(end * scale / noise_sd for end in means), tol)
    below, keep = no_better(x, charge, probs, q, gamma, window) if np.isfinite(window[0]) else (None, np.full(x.size, True))
    above = no_worse(x, charge, probs, gamma, *window[:2]) if below else whole
    sides = (whole, swept("upper", above, q, gamma, b0, tol, between),
             swept("lower", below or whole, q[keep], gamma, b0, tol, between))
    sure /= noise_sd * (1 - gamma)
    return GeneralTable(gamma, noise_sd, var_max, scale, *(side._replace(base=side.base + sure) for side in sides))


def require_range(b0, root, q):
    """ValueError for precisions and informations that floating point does not tell apart; `root` may be 0 where q is."""
    require_served(b0)
    if not q[root > 0].min() > NARROW**2:
        raise ValueError(f"info spans too much: the smallest information is {q[root > 0].min()} of the largest")


def commitment(side, m, s):
    """What committing is worth that knows theta ~ N(m, s^2) afterwards: commitment for s = 0, hindsight for s = b^(-1/2)."""
    atoms, m = side.atoms, m - side.center
    beyond = expected_excess(m[..., None] - atoms.kink, s[..., None])
    return side.base + atoms.line[0] + atoms.line[1] * m + beyond @ atoms.bend


def table_units(table, mean, var):
    """(m, b) in table units, broadcast; b is infinite where var is 0."""
    return in_table_units(as_made("table", table, GeneralTable, "lib.dp.solve_general"), mean, var, "mean")


def rounded(table, side, m):
    """At most the error of commitment at means m, and of the line and the shift of the mean in a sweep, once a step."""
    atoms = side.atoms
    steep = np.abs(atoms.line[1]) + atoms.bend.sum()
    return 1e-15 / (1 - table.gamma) * (
        steep * (np.abs(m) + np.abs(side.center)) + atoms.moment + np.abs(atoms.line[0]) + abs(side.base))


def slack(table, kind, m, s):
    """At most the rounding error of a side at means m: as in `lib.dp.program.rounding_error`, which counts a sweep.

    A state solves an equation of all atoms, and `known` is a sum over all break-even means.  All terms are at most
    sum bend (|m - kink| + s), rest, and what is `rounded`.
    """
    side, patience = getattr(table, kind), 1 / (1 - table.gamma)
    atoms = side.atoms
    each = max(SLACK, rounding_error(side.grid) if side.grid else 0.0) + 2e-15 * (atoms.x.size + atoms.kink.size) * patience
    size = atoms.bend.sum() * (np.abs(m - side.center) + s) + atoms.moment + atoms.rest
    return each * size + rounded(table, side, m)


def side_values(table, kind, m, b):
    """(n,) the value of one side at the points (m, b), between commitment and hindsight."""
    side = getattr(table, kind)
    commit, hindsight = (commitment(table.whole, m, s) for s in (np.zeros_like(m), 1 / np.sqrt(b)))
    if not side.grid:                                  # commitment is all there is, or all that is known
        return commit
    out, inside = (hindsight if kind == "upper" else commit).copy(), np.isfinite(b) & (hindsight > commit)
    found = SIDES[kind][0].values(side.grid, side.atoms, m[inside] - side.center, b[inside]) + side.base
    out[inside] = np.clip(found, commit[inside], hindsight[inside])
    return out


def as_bracket(table, low, high, m, least):
    """A Bracket in reward units; `least` is commitment, which is known to the last digits."""
    low = np.maximum(low, least - rounded(table, table.whole, m))
    return Bracket(*(table.noise_sd * end for end in (low, (low + high) / 2, high)))


def general_value(table, mean, var):
    """The value before an item is seen, without the leading gamma.

    Parameters
    ----------
    table : GeneralTable
        From `solve_general`.
    mean : array-like
        Mean of theta, reward units.
    var : array-like
        Variance of theta, 0 <= var <= var_max, reward units squared; broadcast with mean.

    Returns
    -------
    Bracket
        lower <= truth <= upper at every point; value is their middle.

    Raises
    ------
    ValueError
        For a variance below 0 or above var_max, or what is no finite number.

    Examples
    --------
    >>> table = solve_general([1, -1], [0, 0], [.5, .5], .9, noise_sd=1, var_max=1, info=[0, 0])
    >>> print("%.4f" % general_value(table, -.5, 1.).upper)     # nothing is learned: commitment
    2.5000
    """
    m, b = table_units(table, mean, var)
    flat, prec = m.ravel(), b.ravel()
    s = 1 / np.sqrt(prec)
    low = side_values(table, "lower", flat, prec) - slack(table, "lower", flat, s)
    high = side_values(table, "upper", flat, prec) + slack(table, "upper", flat, s)
    found = as_bracket(table, low, high, flat, commitment(table.whole, flat, np.zeros_like(s)))
    return Bracket(*(end.reshape(m.shape)[()] for end in found))


def near(table, kind, m, b, move):
    """(Nodes, edge): D of one side at precision b where its mean m may move to; the lattice ends at -edge and edge.

    The nodes are a fifth of the move apart at most, and as far as those that a look-up reads.
    """
    side = getattr(table, kind)
    d, edge = side.grid.spacing[0], side.atoms.far + side.grid.reach / math.sqrt(b)
    while d > min(0.2 * move.t, side.grid.read / math.sqrt(b)):
        d /= 2
    wide = move.reach * move.t + 2 * d
    first = math.ceil(max(-edge, m - wide) / d)
    nodes = np.arange(first, math.floor(min(edge, m + wide) / d) + 1) * d
    w = side_values(table, kind, nodes + side.center, np.full(nodes.size, b)) - side.base
    D = w - side.atoms.line[0] - side.atoms.line[1] * nodes - side.grid.program.slope * np.maximum(nodes, 0)
    return Nodes(first, d, np.maximum(D, 0)), edge


def smoothed(table, kind, m, t, b):
    """One side of E w(m + t Z, b), table units: nan where the lower lattice is too wide."""
    side = getattr(table, kind)
    move, own = Step(t, side.grid.reach), m - side.center
    values, edge = near(table, kind, own, b, move)
    if kind == "lower":
        found = lower.mean_value(side.grid, values, own, move)
    else:
        found = general_upper.mean_value(side.grid, side.atoms, values, own, move, b, edge)
    return found + side.base + side.atoms.line[0] + side.atoms.line[1] * own


def general_smoothed_value(table, mean, sd, var):
    """Bracket on E general_value(mean + sd Z, var): chords above, a law that the normal dominates below.

    Parameters
    ----------
    table : GeneralTable
        From `solve_general`.
    mean, sd, var : float
        Reward units; sd > 0, 0 < var <= var_max.

    Returns
    -------
    Bracket

    Raises
    ------
    ValueError
        For an sd or a variance that is not positive, or what is no finite number.

    Examples
    --------
    >>> table = solve_general([1, -1], [0, 0], [.5, .5], .9, noise_sd=1, var_max=1, info=[0, 0])
    >>> print("%.3f" % general_smoothed_value(table, 0., 1., 1.).value)      # E |Z| 5
    3.989
    """
    mean, sd, var = as_number("mean", mean), as_number("sd", sd, 0), as_number("var", var, 0)
    m, b = (float(number) for number in table_units(table, mean, var))
    t, s = sd * table.scale / table.noise_sd, 1 / math.sqrt(b)
    commit, hindsight = (float(commitment(table.whole, np.array(m), np.array(r))) for r in (t, math.hypot(t, s)))
    low, high = commit, hindsight if table.upper.grid else commit
    if table.lower.grid:
        low = np.fmax(low, smoothed(table, "lower", m, t, b))
    if table.upper.grid:
        high = min(high, smoothed(table, "upper", m, t, b))
    low, high = low - slack(table, "lower", m, s + t), high + slack(table, "upper", m, s + t)
    return Bracket(*(float(end) for end in as_bracket(table, low, high, m, commit)))
