"""Theorem 1 for items of any sign and norm: an upper bound by features that decide for themselves (paper, section III-A).

The features may be counted in any basis B (k, k): X.theta = Z.eta with Z = B'X and eta = B^-1 theta ~ N(m, S).  Piece j earns
Z_j eta_j - r_j(X), where the charges r_j(X), of any sign, add up to the cost for every X.  It is told eta - delta_j eta_j, for a
vector delta_j with element j equal to 1.  Then Y shows it (Z.delta_j) eta_j + eps, and nothing else is unknown:

    V <= gamma sum_j E W_j(m_j + sqrt(S_jj - s_j^2) N, s_j^2),   s_j^2 = 1 / (delta_j' S^-1 delta_j),

with N standard normal and W_j(mean, var) the value before an item is seen of the single-feature problem with the atoms
(Z_j, r_j(X)) and the informations (Z.delta_j)^2 / noise_var(X).  The paper has delta_j = e_j: all other preferences are told.
With delta_j = S e_j / S_jj, the regression on eta_j, only what is independent of eta_j is told.  Between the two,
delta_j = told e_j + (1 - told) S e_j / S_jj, the precision is 1 / s_j^2 = told^2 (S^-1)_jj + (1 - told^2) / S_jj.
"""
from decimal import Decimal, localcontext
from typing import NamedTuple

import numpy as np

from lib import dp, streams
from lib.bound import cells, merged
from lib.bound.conditionals import conditional
from lib.bound.merged import as_in_paper
from lib.estimate import sample_mean
from lib.normal import expected_excess
from lib.problem import (Bracket, Estimate, as_choice, as_count, as_covariance, as_floats, as_scalar, basis_var, checked,
                         noise_factors, noise_var)
from lib.threads import side_by_side

EPS = np.finfo(float).eps
ROUNDED = 1e-11         # what rounding a change of basis may change, relative to what all pieces are worth if known
DIGITS = 60             # in which a basis is changed
NO_PART = 1e-14         # share of an item's worth below which a feature has no part in it: rounding, that ROUNDED covers
LARGE = 5000            # numbers in general items beyond which experiments leave the theorem out: minutes, for more than hindsight
FAR = 5.0               # standard deviations of the mean within which a piece is to be solved sharply
HARDLY = 0.8            # a bracket of merged atoms is kept that a finer solution leaves wider than this share of what it was
NEARLY = 1e-6           # a spread of the mean below this share of what is left to learn is bounded by its slope


class Pieces(NamedTuple):
    """The single-feature problems of one decomposition, reward units."""

    x: np.ndarray       # (n, k) magnitudes Z_j
    charge: np.ndarray  # (n, k) r_j(X); every row adds up to the cost
    info: np.ndarray    # (n, k) information of the item about eta_j, times noise_sd^2
    mean: np.ndarray    # (k,) m_j
    var: np.ndarray     # (k,) s_j^2, rounded down
    sd: np.ndarray      # (k,) sqrt(S_jj - s_j^2), rounded up
    doubt: np.ndarray   # (k,) how far var may lie below s_j^2


def exact(array):
    """An array of floats as Decimal."""
    return np.vectorize(Decimal, otypes=[object])(array)


def inverse(B):
    """The inverse of a matrix of Decimal by Gauss and Jordan, largest pivot first; ValueError where there is none."""
    k = len(B)
    rows = np.hstack([B, exact(np.eye(k))])
    least = max(abs(b) for b in B.ravel()) * Decimal("1e-12")
    for j in range(k):
        pivot = j + max(range(k - j), key=lambda i: abs(rows[j + i, j]))
        rows[[j, pivot]] = rows[[pivot, j]]
        if abs(rows[j, j]) <= least:
            raise ValueError("basis is singular to twelve digits: preferences cannot be counted in it")
        rows[j] = rows[j] / rows[j, j]
        for i in range(k):
            if i != j:
                rows[i] = rows[i] - rows[i, j] * rows[j]
    return rows[:, k:]


def in_basis(problem, basis):
    """The same problem with items B'x and preferences B^-1 theta, each number rounded once; its noise is `problem`'s.

    Parameters
    ----------
    problem : Problem
    basis : array-like (k, k)
        The columns are the directions that become features; not singular.

    Returns
    -------
    Problem

    Raises
    ------
    ValueError
        For a basis of another shape, or a singular one.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> turned = in_basis(make_problem([[1, 1]], [1], [3, 1], np.eye(2), 1, 2, .9), [[1, 1], [1, -1]])
    >>> turned.items, turned.mu
    (array([[2., 0.]]), array([2., 1.]))
    """
    problem = checked(problem)
    k = len(problem.mu)
    basis = as_floats("basis", basis, 2)
    if basis.shape != (k, k):
        raise ValueError(f"basis must have shape {(k, k)}, got {basis.shape}")
    with localcontext(prec=DIGITS):
        B = exact(basis)
        A = inverse(B)
        items, mu = (exact(problem.items) @ B).astype(float), (A @ exact(problem.mu)).astype(float)
        Sigma = (A @ exact(problem.Sigma) @ A.T).astype(float)
    scale = np.sqrt(np.maximum(np.diag(Sigma), 0))
    worth = np.abs(items) * (np.abs(mu) + scale)
    items[worth < NO_PART * worth.sum(axis=1, keepdims=True)] = 0.0
    Sigma[np.abs(Sigma) < EPS / 2 * np.outer(scale, scale)] = 0.0
    factors = np.where(noise_factors(problem) > 0, noise_factors(problem), 1.0)         # an item of no feature teaches nothing
    return problem._replace(items=items, mu=mu, Sigma=as_covariance("Sigma", Sigma, k), noise=factors)


def paper_charges(problem):
    """(n, k) cost |x_j| / ||x||, the paper's split of the cost; an item of no feature at all is charged to all alike."""
    size = np.abs(problem.items)
    norm = size.sum(axis=1, keepdims=True)
    norm = np.where(np.abs(norm - 1) <= 1e-9, 1.0, norm)
    share = np.divide(size, norm, out=np.full(size.shape, 1 / size.shape[1]), where=norm > 0)
    return problem.cost * share


def regressed(problem, told):
    """(n, k) coefficients Z.delta_j with which each item shows each preference, given what is told."""
    variance = np.diag(problem.Sigma)
    others = np.divide(problem.items @ problem.Sigma, variance, out=np.zeros_like(problem.items), where=variance > 0)
    return told * problem.items + (1 - told) * others


def even_charges(problem, told=1.0, learning=0.0):
    """Charges at which every piece is as many of its standard deviations from breaking even, for every item.

    With weights sd_j = (|x_j| + learning |x.delta_j|) Sigma_jj^(1/2), r_j = x_j mu_j - (x.mu - cost) sd_j / sum_i sd_i.  With
    learning = 0 they make sum_j E (x_j theta_j - r_j)^+ least, the worth of the pieces in hindsight.  With more a piece pays
    for items, or is paid, for what they teach it.

    Parameters
    ----------
    problem : Problem
    told : float
        As in `decomposition`; it says what an item teaches, x.delta_j.
    learning : float
        At least 0.

    Returns
    -------
    ndarray (n, k)
        Reward units; every row adds up to the cost.

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> even_charges(make_problem([[1, 1]], [1], [1, 0], [[4, 0], [0, 1]], 1, 4, .9))
    array([[3., 1.]])
    """
    problem, told, learning = checked(problem), as_share("told", told), as_weight("learning", learning)
    spread = np.abs(problem.items) + learning * np.abs(regressed(problem, told))
    spread = spread * np.sqrt(np.maximum(np.diag(problem.Sigma), 0))
    total = spread.sum(axis=1, keepdims=True)
    share = np.divide(spread, total, out=np.full(spread.shape, 1 / spread.shape[1]), where=total > 0)
    return problem.items * problem.mu - share * (problem.items @ problem.mu - problem.cost)[:, None]


def as_share(name, value):
    """`value` as a float in [0, 1], or ValueError."""
    value = float(as_floats(name, value, 0))
    if not 0 <= value <= 1:
        raise ValueError(f"{name} is {value}: it must lie in [0, 1]")
    return value


def as_weight(name, value):
    """`value` as a float of at least 0, or ValueError."""
    value = float(as_floats(name, value, 0))
    if not 0 <= value < 1e6:
        raise ValueError(f"{name} is {value}: it must lie in [0, 1e6)")
    return value


def as_charges(problem, charges, told, learning):
    """(n, k) charges by name or as given, or ValueError where a row does not add up to the cost."""
    if isinstance(charges, str):
        named = as_choice("charges", charges, ("paper", "even"))
        return paper_charges(problem) if named == "paper" else even_charges(problem, told, learning)
    charges = as_floats("charges", charges, 2)
    if charges.shape != problem.items.shape:
        raise ValueError(f"charges must have one element per item and feature, got shape {charges.shape}")
    off = np.abs(charges.sum(axis=1) - problem.cost)
    if (off > 1e-12 * (np.abs(charges).sum(axis=1) + abs(problem.cost))).any():
        i = int(off.argmax())
        raise ValueError(f"charges[{i}] add up to {charges[i].sum()}, not to the cost {problem.cost}")
    return charges


def decompose(problem, noise, charges, basis, told, learning=0.0):
    """The Pieces of `decomposition`, whose arguments these are."""
    told, learning = as_share("told", told), as_weight("learning", learning)
    if noise == "basis" and (basis is not None or told < 1):
        raise ValueError('noise is "basis", the split of the noise over the paper\'s features: use "model" with basis or told')
    turned = problem if basis is None else in_basis(problem, basis)
    charges, law, variance = as_charges(turned, charges, told, learning), conditional(turned), np.diag(turned.Sigma)
    noise = basis_var(problem) if noise == "basis" else noise_var(problem)
    ratio = np.divide(problem.noise_sd**2, noise, out=np.zeros(len(noise)), where=noise > 0)
    var, most = between(law.var, variance, told), between(law.var + law.doubt, variance, told)
    var = np.minimum(var, variance) if told == 1 else np.minimum(var * (1 - 8 * EPS), variance)
    sd = np.where(var < variance, np.nextafter(np.sqrt(variance - var), np.inf), 0.0)
    info, doubt = regressed(turned, told)**2 * ratio[:, None], np.maximum(most - var, law.doubt)
    return Pieces(turned.items, charges, info, turned.mu, var, sd, doubt)


def between(var, variance, told):
    """s_j^2 where 1 / s_j^2 = told^2 / var + (1 - told^2) / variance."""
    if told == 1:
        return var
    if told == 0:
        return variance
    down = told**2 * variance + (1 - told**2) * var
    return np.divide(var * variance, down, out=np.zeros_like(var), where=down > 0)


def piece_bracket(problem, piece, tol):
    """(3,) lower, best and upper value of E W_j(mean + sd N, var) of one piece, without the leading gamma."""
    probs, horizon = problem.probs, 1 / (1 - problem.gamma)
    slope = horizon * probs @ np.abs(piece.x)
    if idle(piece):
        return committed(piece, horizon * probs)
    out = np.array(learned(problem, piece, tol, slope))
    commitment = horizon * probs @ np.maximum(piece.x * piece.mean - piece.charge, 0)
    out[0] = max(out[0] - slope * given_away(piece.doubt, piece.sd), commitment)
    return np.array([out[0], max(out[1], out[0]), out[2]])


def committed(piece, weights):
    """(3,) `piece_bracket` where nothing is learned: commit for good, each item with its weight, within rounding."""
    price, sd = unit_price(piece), np.abs(piece.x) * piece.sd
    net = piece.x * piece.mean - piece.charge if price is None else piece.x * (piece.mean - price)
    z = np.divide(net, sd, out=np.zeros_like(net), where=sd > 0)
    parts = weights * expected_excess(net, sd)
    error = 4 * EPS * (parts @ (1 + z * z) + (0 if price is not None else weights @ np.abs(piece.charge)))
    return np.array([max(parts.sum() - error, 0.0), parts.sum(), parts.sum() + error])


def learned(problem, piece, tol, slope):
    """Bracket on E W_j(mean + sd N, var) where there is something to learn; `slope` bounds that of W_j."""
    price = unit_price(piece)
    if price is None:
        table = dp.solve_general(piece.x, piece.charge, problem.probs, problem.gamma, problem.noise_sd, piece.var, tol=tol,
                                 info=piece.info, means=(piece.mean - FAR * piece.sd, piece.mean + FAR * piece.sd))
        mean, read, average = piece.mean, dp.general_value, dp.general_smoothed_value
    else:
        table = dp.solve(piece.x, problem.probs, problem.gamma, problem.noise_sd, piece.var, tol=tol, between=False,
                         info=piece.info)
        mean, read, average = piece.mean - price, dp.value, dp.smoothed_value
        if not table.slope:
            return 0.0, 0.0, 0.0
    if piece.sd > NEARLY * np.sqrt(piece.var):
        return average(table, mean, piece.sd, piece.var)
    lower, value, upper = read(table, mean, piece.var)
    return lower, value, upper + slope * piece.sd


def unit_price(piece):
    """The price h where every charge is h x, with x >= 0 and nothing to be seen without x; else None."""
    if (piece.x < 0).any() or (piece.info[piece.x == 0] > 0).any() or not (piece.info[piece.x > 0] > 0).all():
        return None
    most = piece.x.argmax()
    price = piece.charge[most] / piece.x[most] if piece.x[most] else 0.0
    return price if (np.abs(piece.charge - price * piece.x) <= 2 * EPS * np.abs(piece.charge)).all() else None


def given_away(doubt, sd):
    """How much E W(mean + sd Z, var) may fall when var grows by `doubt`, for a W whose slopes span 1.

    The mean then varies less by as much.  W is convex and nondecreasing in var: so the fall is at most that of a kink,
    E (sd Z)^+ - E (sqrt(sd^2 - doubt) Z)^+.
    """
    return (sd - np.sqrt(max(sd**2 - doubt, 0.0))) / np.sqrt(2 * np.pi)


def decomposition(problem, tol=1e-3, noise="basis", charges="paper", basis=None, told=1.0, learning=0.0):
    """Theorem 1 without sampling, for any items: a bracket on the sum of the single-feature values (paper, Theorem 1).

    Parameters
    ----------
    problem : Problem
    tol : float
        Aim for the relative width of the bracket, or 0.1 tol noise_sd where the value is smaller.  Of more than 20,000 items that
        sum to 1, in the paper's charges and noise, magnitudes are merged first (`lib.bound.merged`), which costs less than .002;
        of more than 500 whose charges are no price of x, atoms are (`lib.bound.cells`), which costs
        some .05, and .1 where nearly all is to be earned by learning.
    noise : str
        "basis": feature j of item x is observed with variance basis_var / x_j^2, noise_sd^2 / x_j^2 as in the paper;
        "model": with noise_var, what is really seen given what is told: a little tighter, and the only choice with a basis or
        with told < 1.
    charges : str or array-like (n, k)
        What each feature is charged for each item, of any sign, every row adding up to the cost: "paper", cost |x_j| / ||x||;
        "even", those of `even_charges`; or an array.
    basis : array-like (k, k), optional
        Features are counted along its columns: items B'x, preferences B^-1 theta.
    told : float
        In [0, 1].  1: feature j is told all other preferences, as in the paper; 0: only what is independent of its own.
    learning : float
        Of `even_charges`: how much features pay for items that teach them.

    Returns
    -------
    Bracket
        lower <= the theorem's bound <= upper, reward units; the optimal value never exceeds upper.

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1, 0], [-1, 1]], [.5, .5], [0, 0], np.eye(2), 1, .2, .5)
    >>> found = decomposition(problem, tol=.05, noise="model", charges="even")
    >>> bool(0 < found.lower < found.upper)
    True
    """
    problem, noise = checked(problem), as_choice("noise", noise, ("basis", "model"))
    tol = as_scalar("tol", tol, 0, 1)
    plain = basis is None and isinstance(charges, str) and charges == "paper"
    if plain and noise == "basis" and len(problem.items) > merged.MANY and merged.suits(problem):
        return decomposition_of_many(problem, tol, decompose(first_item(problem), noise, charges, basis, told, learning))
    pieces = decompose(problem, noise, charges, basis, told, learning)
    if len(problem.items) <= cells.MANY:
        columns = np.column_stack([np.atleast_2d(part).T if part.ndim == 1 else part.T for part in pieces])
        distinct, where = np.unique(columns, axis=0, return_index=True, return_inverse=True)[1:]
    else:
        distinct = where = np.arange(len(problem.mu))
    pairs = [within(problem, one_piece(pieces, j)) for j in distinct]
    found = solved(problem, pairs, np.bincount(where.ravel()), tol)
    if plain and not any(merging(pair) for pair in pairs):
        return found
    return widened(found, ROUNDED * problem.gamma / (1 - problem.gamma) * known(problem, pieces))


def one_piece(pieces, j):
    """Piece j of Pieces: arrays (n,), and numbers."""
    return Pieces(*(part[:, j].copy() if part.ndim == 2 else float(part[j]) for part in pieces))


def affordable(problem):
    """Whether `decomposition_for` is worth its time beside other bounds: not for a large catalogue of general items."""
    return as_in_paper(problem) or problem.items.size <= LARGE


def within(problem, piece):
    """Two (problem, piece): worth no more and no less than this one, on few atoms where it has many; else both are this one."""
    if len(problem.probs) <= (cells.MANY if unit_price(piece) is None else merged.MANY) or idle(piece):
        return ((problem, piece),) * 2
    where, pair = cells.cut(piece, problem.probs, problem.noise_sd, problem.gamma, cells.number(len(problem.mu))), []
    for law in (cells.inward, cells.outward):
        x, charge, info, probs = law(piece, problem.probs, where)
        pair.append((problem._replace(probs=probs), piece._replace(x=x, charge=charge, info=info)))
    return tuple(pair)


def idle(piece):
    """Whether a piece learns nothing."""
    return piece.var == 0 or not (piece.info > 0).any()


def merging(pair):
    """Whether the two of `within` are different."""
    return pair[0] is not pair[1]


def decomposition_for(problem, tol=1e-3):
    """Theorem 1 as experiments state it, for items of any norm and sign (paper, Theorem 1).

    Where no feature is negative and every item sums to 1 it is the paper's own, `decomposition(problem, tol)`.  Else it is the lesser,
    by the upper end, of those with the paper's and with even charges, with the model's noise; of more than 500 items, that with
    even ones.

    Parameters
    ----------
    problem : Problem
    tol : float
        As `decomposition` takes it.

    Returns
    -------
    Bracket
        lower <= the theorem's bound <= upper, reward units; the optimal value never exceeds upper.

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[2.0]], [1], [0], [[1]], 1, .2, .5)
    >>> found = decomposition_for(problem, .05)
    >>> bool(0 < found.lower < found.upper)
    True
    """
    problem, tol = checked(problem), as_scalar("tol", tol, 0, 1)
    if as_in_paper(problem):
        return decomposition(problem, tol)
    kinds = ("paper", "even") if len(problem.items) <= cells.MANY else ("even",)
    return min((decomposition(problem, tol, "model", charges) for charges in kinds), key=lambda found: found.upper)


def first_item(problem):
    """The problem without its other items: what a piece knows and is told does not depend on them."""
    noise = problem.noise if isinstance(problem.noise, str) else problem.noise[:1]
    return problem._replace(items=problem.items[:1], probs=np.ones(1), noise=noise)


def decomposition_of_many(problem, tol, told):
    """`decomposition` of a problem that suits `lib.bound.merged`, one feature at a time; `told` has mean, var, sd and doubt of each."""
    goal, pairs = min(8 * tol, 0.5), []
    for j in range(len(problem.mu)):
        laws = [law(problem.items[:, j], problem.probs, merged.CLASSES) for law in (merged.inward, merged.outward)]
        pairs.append([(problem._replace(probs=probs), Pieces(x, problem.cost * x, info, *(float(part[j]) for part in told[3:])))
                      for x, info, probs in laws])
    while True:
        low = high = 0.0
        for inner, outer in pairs:
            low += problem.gamma * piece_bracket(*inner, goal)[0]
            high += problem.gamma * piece_bracket(*outer, goal)[2]
        wanted = tol * max((low + high) / 2, 0.1 * problem.noise_sd)
        if high - low <= wanted or goal < tol / 10:
            break
        goal *= max(0.1, min(0.5, 0.7 * wanted / (high - low)))
    worth = problem.probs @ problem.items @ (np.abs(problem.mu - problem.cost) + np.sqrt(np.diag(problem.Sigma)))
    return widened(Bracket(float(low), float((low + high) / 2), float(high)), 1e-12 * problem.gamma / (1 - problem.gamma) * worth)


def known(problem, pieces):
    """What all pieces are worth a step at most, were they known: the scale of rounding errors."""
    spread = np.abs(pieces.mean) + np.sqrt(pieces.var) + pieces.sd
    return problem.probs @ (np.abs(pieces.x) @ spread + np.abs(pieces.charge).sum(axis=1))


def widened(found, slack):
    """A Bracket with both ends moved outward."""
    return Bracket(max(found.lower - float(slack), 0.0), found.value, found.upper + float(slack))


def solved(problem, pairs, times, tol):
    """The bracket of a sum of pieces, the j-th counted times[j] times: solved ever finer until it is tol wide.

    Each is a pair from `within`.  Where atoms are merged, it ends as well when a finer solution hardly narrows it.
    """
    coarse, width = any(merging(pair) for pair in pairs), np.inf
    tol = max(tol, cells.TOL) if coarse else tol
    goal, floor = first_goal([piece for (_, piece), _ in pairs], tol)
    goal = min(goal, cells.GOAL) if coarse else goal
    while True:
        parts = side_by_side(lambda pair: pair_bracket(pair, goal), pairs)
        low, best, high = problem.gamma * (times @ np.array(parts))
        wanted = tol * max(best, 0.1 * problem.noise_sd)
        if high - low <= wanted or goal < floor or coarse and high - low > HARDLY * width:
            return Bracket(float(low), float(best), float(high))
        goal, width = goal * max(0.02, min(0.5, 0.7 * wanted / (high - low))), high - low


def pair_bracket(pair, goal):
    """(3,) `piece_bracket` from the two of `within`: the lower end of the first, the upper one of the second."""
    under = piece_bracket(*pair[0], goal)
    if not merging(pair):
        return under
    above = piece_bracket(*pair[1], goal)
    return np.array([under[0], (under[0] + above[2]) / 2, above[2]])


def first_goal(singles, tol):
    """The tolerance that the pieces are first solved with, and the one at which `decomposition` gives up.

    Coarse at first, because the linear part of the value has no error; but where a feature comes in one size its
    precisions are not rounded, the width is second order in the work, and two more digits cost next to nothing.
    """
    one_size = all(np.unique(piece.info[piece.info > 0]).size <= 1 and unit_price(piece) is not None for piece in singles)
    goal = 0.03 * tol if one_size else min(8 * tol, 0.5)
    return goal, goal / 400


def normalised(problem):
    """The checked problem; ValueError unless every item sums to 1, the case of Algorithm 1."""
    problem = checked(problem)
    if problem.items.min() < 0:
        i, j = np.unravel_index(problem.items.argmin(), problem.items.shape)
        raise ValueError(f"items[{i}, {j}] is {problem.items[i, j]}: Algorithm 1 needs features of at least 0")
    norms = problem.items.sum(axis=1)
    if np.abs(norms - 1).max() > 1e-9:
        i = int(np.argmax(np.abs(norms - 1)))
        raise ValueError(f"items[{i}] sums to {norms[i]}: Algorithm 1 needs items of L1 norm 1")
    return problem


def decomposition_sampled(problem, draws, seed):
    """Algorithm 1 to the letter: draw theta and x, average the value of the state that they leave (paper, III-A).

    Parameters
    ----------
    problem : Problem
        With items of L1 norm 1.
    draws : int
        M, the number of draws, at least 2.
    seed : int

    Returns
    -------
    Estimate
        Mean and standard error of the bound, reward units, with the leading gamma.
    """
    problem, draws = normalised(problem), as_count("draws", draws, 2)
    rng = streams.generator(seed, streams.Purpose.THEOREM)
    theta = problem.mu + rng.standard_normal((draws, problem.mu.size)) @ streams.factor(problem.Sigma).T
    items = problem.items[streams.draw_items(problem.probs, rng.random(draws))]
    law = conditional(problem)
    total = np.zeros(draws)
    for j in range(problem.mu.size):
        mean = theta[:, j] if law.var[j] == 0 else problem.mu[j] + (theta - problem.mu) @ law.weights[j]
        total += state_values(problem, j, law.var[j], mean - problem.cost, items[:, j])
    return Estimate(*map(float, sample_mean(problem.gamma * total)))


def state_values(problem, j, s2, net, x):
    """V_j(mean, s2, x) = max(discard, forward) at the drawn states (paper, Bellman equation)."""
    stake = problem.probs @ problem.items[:, j] / (1 - problem.gamma)
    if s2 == 0 or stake == 0:
        return np.maximum(net, 0) * (x + problem.gamma * stake)
    info = problem.items[:, j]**2 * problem.noise_sd**2 / basis_var(problem)
    table = dp.solve(problem.items[:, j], problem.probs, problem.gamma, problem.noise_sd, s2, tol=1e-3, between=False, info=info)
    out = np.empty(net.size)
    for size in np.unique(x):
        here = x == size
        discard, forward = dp.q_values(table, net[here], s2, size) if size > 0 else [problem.gamma * dp.value(
            table, net[here], s2).value] * 2
        out[here] = np.maximum(discard, forward)
    return out
