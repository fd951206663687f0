"""The charges that make Theorem 1 least: a convex search, steered by a lattice and certified at the end.

Let F(r) = gamma sum_j E W_j be the theorem's bound for charges r.  F is convex: for every rule of piece j what it earns is
affine in r, with slope -(the discounted number of times that it forwards item i) in r_j(i); W_j is the largest of these
over all rules, E and the sum keep convexity, and the charges whose rows add up to the cost are an affine set.  So no
minimum is local.  Where a piece neither earns from an item nor learns from it, x_j = q_j = 0, its charge is best at 0: a
positive one is never paid, and a negative one is always taken, which costs as much as any other piece can save by it.

The search descends by L-BFGS on the value of `lib.bound.slopes`, whose derivatives are exact for it.  What it finds, and
what it starts from, are then bounded by `theorem.decomposition`; the lesser upper end wins.
"""
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from lib.bound import theorem
from lib.bound.slopes import make_lattice, value_and_slopes
from lib.problem import Bracket, as_choice, as_count, as_scalar, checked

MOST = 20_000           # charges that are sought one by one
STARTS = ("even", .3), ("even", .1), ("even", 0.0), ("paper", 0.0)        # charges and `learning`; the best is the start


class Charged(NamedTuple):
    """Charges, and the certified bracket on Theorem 1 that they give."""

    charges: np.ndarray     # (n, k), every row adds up to the cost
    bracket: Bracket        # of `decomposition` with these charges: its upper end bounds every policy
    start: Bracket          # the same for the charges that the search began with
    evaluations: int        # of the sum over the lattices
    converged: bool         # whether the search stopped by itself


class Search(NamedTuple):
    """What does not change while charges move."""

    lattices: list          # Lattice of every feature, its own atoms only
    part: np.ndarray        # (n, k) bool: the item pays or teaches the feature
    free: np.ndarray        # (n, k) bool: a charge that can move
    unit: np.ndarray        # (n, 1) how far a step moves the charges of an item
    gamma: float


def searched(problem, pieces):
    """The Search for `pieces` of a problem."""
    part = (pieces.x != 0) | (pieces.info > 0)
    lattices = []
    for j, own in enumerate(part.T):
        piece = theorem.Pieces(*(field[own, j] if field.ndim == 2 else float(field[j]) for field in pieces))
        lattices.append(make_lattice(piece, problem.probs[own], problem.gamma, problem.noise_sd))
    spread = np.abs(pieces.x) @ np.sqrt(pieces.var + pieces.sd**2)
    spread = np.maximum(spread, 1e-3 * spread.max(initial=0.0))
    unit = np.sqrt(np.divide(spread, problem.probs, out=np.zeros_like(spread), where=problem.probs > 0))
    return Search(lattices, part, part & (part.sum(axis=1, keepdims=True) > 1), unit[:, None], problem.gamma)


def approximate(search, charges):
    """The lattices' value of Theorem 1 at `charges` (n, k), and its derivatives (n, k), both with the leading gamma.

    Items that no piece has a part in are left out: nothing moves their charges.
    """
    total, slopes = 0.0, np.zeros(charges.shape)
    for j, (lattice, own) in enumerate(zip(search.lattices, search.part.T)):
        value, slope = value_and_slopes(lattice, np.ascontiguousarray(charges[own, j]))
        total += search.gamma * value
        slopes[own, j] = search.gamma * slope
    return total, slopes


def levelled(array, free):
    """`array` (n, k) without the mean of the free elements of its row, and 0 where nothing is free."""
    count = np.maximum(free.sum(axis=1, keepdims=True), 1)
    return (array - (array * free).sum(axis=1, keepdims=True) / count) * free


def settled(charges, part, cost):
    """`charges` with none where a piece has no part in an item, every row adding up to the cost to the last digit."""
    some = part.any(axis=1)
    out = np.where(part | ~some[:, None], charges, 0.0)
    most = np.argmax(np.where(part, 1.0 + np.abs(out), 0.0), axis=1)[some]
    out[some, most] += cost - out[some].sum(axis=1)
    return out


def descend(search, charges, evaluations):
    """Charges that L-BFGS reaches from `charges`, how often it evaluated, and whether it stopped by itself.

    A row moves in steps of the size at which its own share of the curvature is the same as that of every other.
    """
    unit, shape = search.unit, charges.shape

    def steered(z):
        moved = charges + levelled(unit * z.reshape(shape), search.free)
        value, slopes = approximate(search, moved)
        return value, (unit * levelled(slopes, search.free)).ravel()

    found = minimize(steered, np.zeros(charges.size), jac=True, method="L-BFGS-B",
                     options={"maxfun": evaluations, "maxiter": evaluations, "ftol": 1e-7, "gtol": 0.0, "maxcor": 20})
    return charges + levelled(unit * found.x.reshape(shape), search.free), int(found.nfev), bool(found.success)


def begun(turned, start, told):
    """The charges (n, k) among which a search begins with the best, or ValueError."""
    if not isinstance(start, str):
        try:
            return [theorem.as_charges(turned, start, told, 0.0)]
        except ValueError as error:
            raise ValueError(f"start: {error}") from error
    if as_choice("start", start, ("best", "paper", "even")) == "best":
        return [theorem.as_charges(turned, name, told, learning) for name, learning in STARTS]
    return [theorem.as_charges(turned, start, told, 0.0)]


def tightest_charges(problem, basis=None, told=1.0, start="best", tol=1e-2, evaluations=300):
    """Charges that make Theorem 1 nearly least, and the certified bound that they give (paper, Theorem 1).

    The bound is convex in the charges, so there is no local minimum; the argument is at the top of `lib.bound.charges`.
    The search is steered by an approximation and may stop short of the minimum.  Whatever it finds is a bound.

    Parameters
    ----------
    problem : Problem
        With at most 20,000 numbers in its items: there is a charge for each.
    basis : array-like (k, k), optional
    told : float
        As `decomposition` takes them; its noise is "model".
    start : str or array-like (n, k)
        "paper", "even", "best" (the better of these, also with features that pay for what they learn), or charges.
    tol : float
        As `decomposition` takes it, for the certificate.
    evaluations : int
        At most so many of the approximation.

    Returns
    -------
    Charged
        The start itself where its certified upper end is the lower.

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong; for a problem of more charges.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1, 1], [1, 0]], [.5, .5], [0, 0], [[1, .2], [.2, 2]], 1, .2, .5)
    >>> found = tightest_charges(problem, tol=.05)
    >>> found.bracket.upper <= found.start.upper, found.charges.sum(axis=1)
    (True, array([0.2, 0.2]))
    """
    problem, told, tol = checked(problem), theorem.as_share("told", told), as_scalar("tol", tol, 0, 1)
    evaluations = as_count("evaluations", evaluations)
    if problem.items.size > MOST:
        raise ValueError(f"problem.items has {problem.items.size} numbers: charges are sought one by one for at most {MOST}; "
                         "take decomposition with charges=\"even\"")
    turned = problem if basis is None else theorem.in_basis(problem, basis)
    starts = begun(turned, start, told)
    search = searched(problem, theorem.decompose(problem, "model", starts[0], basis, told))
    starts = [settled(charges, search.part, problem.cost) for charges in starts]
    first = min(starts, key=lambda charges: approximate(search, charges)[0])
    moved, count, converged = descend(search, first, evaluations) if search.free.any() else (first, 0, True)
    moved = settled(moved, search.part, problem.cost)
    begin, end = (theorem.decomposition(problem, tol, "model", charges, basis, told) for charges in (first, moved))
    found = (moved, end) if end.upper < begin.upper else (first, begin)
    return Charged(*found, begin, count, converged)
