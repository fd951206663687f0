"""The words that every module shares: the problem, a bracket, an estimate.

An item is a row x of `items`, drawn with probability `probs`; a user is theta ~ N(mu, Sigma).
Forwarding pays y - cost, y = x.theta + eps; discarding pays 0 and shows nothing.  The noise has the variance
Var eps = I(x) noise_sd^2, I(x) the number of non-zero elements of x, or another that is known of each item.  The value of a policy is
V = E sum_{n >= 1} gamma^n U_n (x_n.theta - cost): the first item already carries one gamma
(Chen and Frazier 2016, section II, equation 2).
"""
import math
from os import PathLike
from typing import NamedTuple

import numpy as np

SHARE = 1e-3            # of the value: what a study may leave out at its end


class Problem(NamedTuple):
    """A validated problem; build it with `make_problem`, vary it with `_replace(cost=...)`."""

    items: np.ndarray   # (n, k) the distinct feature vectors, of any sign
    probs: np.ndarray   # (n,) their probabilities
    mu: np.ndarray      # (k,) prior mean of theta
    Sigma: np.ndarray   # (k, k) prior covariance of theta
    noise_sd: float     # standard deviation of the noise of one non-zero feature: see `noise`
    cost: float         # cost of forwarding one item, in reward units
    gamma: float        # discount factor, P(N >= n) = gamma^n
    noise: object = "features"      # law of the noise, Var eps / noise_sd^2: I(x), "constant": 1, or an array (n,)


class Bracket(NamedTuple):
    """lower <= truth <= upper, and a best guess between the two (floats or arrays)."""

    lower: np.ndarray
    value: np.ndarray
    upper: np.ndarray


class Estimate(NamedTuple):
    """A sample mean and its standard error (floats or arrays)."""

    mean: np.ndarray
    se: np.ndarray


NOISES = ("features", "constant")
LARGEST = 1e150     # reward units: squares of what a problem holds must be floating-point numbers


def as_floats(name, value, ndim):
    """`value` as a finite, C-contiguous float64 array of `ndim` dimensions, itself where it is one; or ValueError naming it."""
    if np.ma.is_masked(value):
        raise ValueError(f"{name} is a masked array with missing values: every value must be there")
    try:
        array = np.asarray(value)
        if array.dtype.kind in "USmM" or array.dtype.kind == "O" and any(each is None for each in array.flat):
            raise TypeError(f"{name} is text that looks like a number, a time, or holds None, which would be read as nan")
        array = np.asarray(array, dtype=float, order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numeric, got {value!r}") from error
    if array.ndim != ndim or array.size == 0 and ndim:
        raise ValueError(f"{name} must be a non-empty array of {ndim} dimensions, got shape {array.shape}")
    if array.size and not (np.isfinite(array.min()) and np.isfinite(array.max())):       # no copy of what may be large
        bad = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name}{list(bad) if bad else ''} is {array[bad]}: every value must be finite")
    return array


def as_numbers(name, value):
    """`value` as a finite float64 array of any shape; ValueError naming it for text, masked elements, nan or inf."""
    if np.ma.is_masked(value):
        raise ValueError(f"{name} has masked elements: {value!r}")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be numeric, got {value!r}") from error
    if array.dtype.kind not in "buif":
        raise ValueError(f"{name} must be numeric, got {value!r}")
    if not np.isfinite(array).all():
        bad = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name}{list(bad) if bad else ''} is {array[bad]}: every value must be finite")
    return array.astype(float)


def as_probs(probs, n):
    """`probs` as n probabilities that sum to 1; renormalised within 1e-9, ValueError otherwise."""
    probs = as_floats("probs", probs, 1)
    if probs.shape != (n,):
        raise ValueError(f"probs must have one element per item, got {probs.shape[0]} for {n}")
    if (probs < 0).any():
        raise ValueError(f"probs[{np.argmin(probs)}] is {probs.min()}: probabilities are nonnegative")
    total = probs.sum()
    if abs(total - 1) > 1e-9:
        raise ValueError(f"probs sum to {float(total)!r}, not to 1")
    return probs / total


def as_covariance(name, Sigma, k):
    """`Sigma` as a symmetric positive semi-definite (k, k) matrix, or ValueError."""
    Sigma = as_floats(name, Sigma, 2)
    if Sigma.shape != (k, k):
        raise ValueError(f"{name} must have shape {(k, k)}, got {Sigma.shape}")
    scale = np.abs(Sigma).max()
    if np.abs(Sigma - Sigma.T).max() > 1e-9 * scale:
        raise ValueError(f"{name} is not symmetric: it differs from its transpose by {np.abs(Sigma - Sigma.T).max()}")
    Sigma = (Sigma + Sigma.T) / 2
    try:
        np.linalg.cholesky(Sigma + 1e-9 * scale * np.eye(k))       # much quicker than eigenvalues
    except np.linalg.LinAlgError:
        smallest = np.linalg.eigvalsh(Sigma)[0]
        if smallest < -1e-9 * scale:
            raise ValueError(f"{name} is not positive semi-definite: its smallest eigenvalue is {smallest}") from None
    return Sigma


def as_scalar(name, value, low=-np.inf, high=np.inf):
    """`value` as a float strictly between `low` and `high`, or ValueError."""
    value = float(as_floats(name, value, 0))
    if not low < value < high:
        raise ValueError(f"{name} is {value}: it must lie in the open interval ({low}, {high})")
    return value


def as_count(name, value, low=1, high=np.inf):
    """`value` as an int of at least `low` and at most `high`, or ValueError."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
        most = f" and at most {high}" if high < np.inf else ""
        raise ValueError(f"{name} must be an integer of at least {low}{most}, got {value!r}")
    return int(value)


def as_positions(name, value, count, least=0, first=0):
    """`value` as an array of at least `least` integers from `first` to count - 1, or ValueError."""
    found = np.zeros(0, np.int64) if np.shape(value) == (0,) else as_numbers(name, value)
    if found.ndim != 1 or len(found) < least or np.asarray(value).dtype.kind == "b":
        raise ValueError(f"{name} must be a list of at least {least} integers, got {value!r}")
    if not ((found >= first) & (found < count) & (found == np.floor(found))).all():
        raise ValueError(f"{name} runs from {found.min():g} to {found.max():g}: it must hold integers from {first} to {count - 1}")
    return found.astype(np.int64)


def as_choice(name, value, known):
    """`value` where it is one of the texts `known`, or ValueError."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} is {value!r}: it must be one of {', '.join(map(repr, known))}")
    return value


def as_path(name, value):
    """`value`, the name of a file or folder as text or a Path, or ValueError."""
    if not isinstance(value, (str, PathLike)) or not str(value):
        raise ValueError(f"{name} is {value!r}: it must be the name of a file or folder")
    return value


def as_flag(name, value):
    """`value` as True or False, or ValueError."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} is {value!r}: it must be True or False")
    return bool(value)


def as_made(name, value, kind, maker):
    """`value` where it is of type `kind`, or ValueError saying what makes one."""
    if not isinstance(value, kind):
        raise ValueError(f"{name} is {str(value)[:60]!r}, no {kind.__name__}: use {maker}")
    return value


def as_noise(noise, n):
    """`noise` as one of NOISES or n positive numbers, or ValueError."""
    if isinstance(noise, str):
        return as_choice("noise", noise, NOISES)
    factors = as_floats("noise", noise, 1)
    if factors.shape != (n,):
        raise ValueError(f"noise must have one element per item, got {factors.shape[0]} for {n}")
    if factors.min() <= 0:
        raise ValueError(f"noise[{factors.argmin()}] is {factors.min()}: it multiplies noise_sd^2 and must be positive")
    return factors


def make_problem(items, probs, mu, Sigma, noise_sd, cost, gamma, noise="features"):
    """Check the parts of a problem and return them as a Problem (paper, section II).

    Eight arguments: seven state the problem, and the last, with its default, is best given by name.


    Parameters
    ----------
    items : array-like (n, k)
        Distinct feature vectors; negative elements are allowed, the paper has none.
    probs : array-like (n,)
        Their probabilities; renormalised when they sum to 1 within 1e-9.
    mu, Sigma : array-like (k,), (k, k)
        Prior mean and covariance of theta; Sigma may be singular.
    noise_sd : float
        Noise standard deviation of one non-zero feature, positive, in reward units.
    cost : float
        Cost of forwarding one item, in reward units.
    gamma : float
        Discount factor in (0, 1).
    noise : {"features", "constant"} or array-like (n,)
        The variance of each item's noise in units of noise_sd^2: I(x), the number of non-zero features, as in the paper;
        1; or a positive number for each item.

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> make_problem([[1, 0], [0, 1]], [.5, .5], [0, 0], [[1, 0], [0, 1]], 1, .2, .9).mu
    array([0., 0.])
    """
    given = items, probs, mu, Sigma, noise_sd, cost, gamma, noise
    made = _made(given)
    return Problem(*(part.copy() if isinstance(part, np.ndarray) and np.shares_memory(part, old) else part
                     for part, old in zip(made, given)))


def _made(parts):
    """`make_problem` that copies no array that is as it should be, of its arguments."""
    items, probs, mu, Sigma, noise_sd, cost, gamma, noise = parts
    items = as_floats("items", items, 2)
    n, k = items.shape
    mu = as_floats("mu", mu, 1)
    if mu.shape != (k,):
        raise ValueError(f"mu must have one element per feature of items, got {mu.shape[0]} for {k}")
    return _representable(Problem(
        items, as_probs(probs, n), mu, as_covariance("Sigma", Sigma, k), as_scalar("noise_sd", noise_sd, 0),
        as_scalar("cost", cost), as_scalar("gamma", gamma, 0, 1), as_noise(noise, n)))


def _representable(problem):
    """`problem` where its squares are floating-point numbers, or ValueError naming what is too large or too small."""
    k, sizes = len(problem.mu), np.maximum(problem.items.max(axis=1), -problem.items.min(axis=1))
    mean, spread = np.abs(problem.mu).max(), np.sqrt(np.maximum(np.diag(problem.Sigma), 0)).max()
    most = LARGEST / k / max(mean, spread, 1.0)
    for name, size, limit in (("mu", mean, LARGEST / k), ("Sigma", spread, LARGEST / k), ("cost", abs(problem.cost), LARGEST),
                              ("noise_sd", problem.noise_sd, LARGEST / k), (f"items[{sizes.argmax()}]", sizes.max(), most)):
        if size > limit:
            raise ValueError(f"{name} is too large, {size:.3g}: squares of rewards must stay below 1e300")
    if problem.noise_sd < 1 / LARGEST:
        raise ValueError(f"noise_sd is {problem.noise_sd}: it must be at least {1 / LARGEST:g}")
    if isinstance(problem.noise, np.ndarray):
        sds = problem.noise_sd * np.sqrt([problem.noise.min(), problem.noise.max()])
        if not 1 / LARGEST <= sds[0] <= sds[1] <= LARGEST / k:
            raise ValueError(f"noise gives standard deviations from {sds[0]:.3g} to {sds[1]:.3g}: too small or too large")
    return problem


def checked(problem, name="problem"):
    """`problem`, an argument called `name`, as `make_problem` would have it: for every public function that takes one.

    A Problem can be varied with `_replace`, which checks nothing.  One that is as `make_problem` left it comes back
    itself, the same object; lists and integers are made arrays and floats.

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong, or when it is no Problem.

    Examples
    --------
    >>> problem = make_problem([[1]], [1], [0], [[1]], 1, .2, .9)
    >>> checked(problem) is problem, checked(problem._replace(mu=[2])).mu
    (True, array([2.]))
    """
    made = _made(as_made(name, problem, Problem, "lib.problem.make_problem"))
    same = all(type(old) is type(new) and (not isinstance(new, np.ndarray) or (
        old.dtype == new.dtype and old.flags.c_contiguous)) for old, new in zip(problem, made))
    return problem if same else made


def effective_horizon(gamma, share=SHARE):
    """The number of items T of a study: the smallest with gamma^T <= share.

    Items after the T-th are worth at most gamma^T times the hindsight bound to any policy (`lib.simulate.truncation`).

    Parameters
    ----------
    gamma : float
        Discount factor in (0, 1).
    share : float
        In (0, 1): what may be left.

    Returns
    -------
    int
        At least 1; of order log(1 / share) / (1 - gamma).

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> effective_horizon(.9), effective_horizon(.999), effective_horizon(.9, .5)
    (66, 6905, 7)
    """
    gamma, share = as_scalar("gamma", gamma, 0, 1), as_scalar("share", share, 0, 1)
    items = max(math.ceil(math.log(share) / math.log(gamma)), 1)
    return items if gamma**items <= share else items + 1         # the quotient of logarithms is rounded


def noise_factors(problem):
    """(n,) noise variance of each item in units of noise_sd^2: I(x) (paper, section II), 1, or as given."""
    return _factors(checked(problem))


def _factors(problem):
    """`noise_factors` of a checked problem."""
    if isinstance(problem.noise, str):
        return np.count_nonzero(problem.items, axis=1) if problem.noise == "features" else np.ones(len(problem.items))
    return problem.noise


def noise_var(problem):
    """(n,) noise variance of each item, reward units squared."""
    problem = checked(problem)
    return _factors(problem) * problem.noise_sd**2


def basis_var(problem):
    """(n,) noise variance of each item as the paper's single-feature problems have it, reward units squared.

    The paper writes an item in another basis, in which it has one non-zero element: noise_sd^2, whatever I(x) was.  A
    noise that does not count features stays what it is.
    """
    problem = checked(problem)
    counts = isinstance(problem.noise, str) and problem.noise == "features"
    return (np.ones(len(problem.items)) if counts else _factors(problem)) * problem.noise_sd**2
