"""Bayesian linear regression in covariance form: what one or many observations do to N(mu, Sigma).

y = x.theta + eps, Var eps = noise_var.  Observing y moves the mean along Sigma x and takes a rank-one
matrix from the covariance,

    gain = Sigma x / (x Sigma x + noise_var),   mu + gain (y - x.mu),   Sigma - gain (Sigma x)',

which inverts nothing, so a singular prior is legal (paper, section II; Bayesian Data Analysis, chapter 14).

Rounding leaves errors of some 1e-16 times the prior variances in Sigma.  Where the noise is as small, x Sigma x may
come out below zero, and one more update multiplies what is wrong.  There, at a `noise_share` below COARSE, a square
root S of Sigma = S S' is kept instead (Potter 1963): with a = S'x and total = a.a + noise_var,

    mu + S a (y - x.mu) / total,   S - (S a) a' / (total + sqrt(noise_var total)),

and x Sigma x = a.a is never negative.  Below FINEST its own rounding counts, and the simulation refuses.

Kernels read a problem as an `Instance`; all that learn from one feedback at a time do so here.  The simulation has
other forms of the same update for speed (`lib.simulate.kernels`), which the tests compare with this one.
"""
from threading import Lock
from typing import NamedTuple

from cachetools import LRUCache, cached
import numpy as np

from lib.cache import digest
from lib.compiled import inlined_jit, jit
from lib.problem import as_count, as_covariance, as_floats, as_scalar, checked, noise_var as noise_vars
from lib.streams import Purpose, draw_items, factor, generator

EXACT = 4096        # distinct items up to which every pair of items is met; above, the coming ones are sampled
COMING = 1024       # how many then stand for all of them
BLOCK = 2**20       # numbers in a block of rows
CACHE = 2**20       # bytes that a core surely holds
COARSE = 1e-9       # `noise_share` from which a covariance matrix can be kept
FINEST = 1e-23      # and from which its square root can


class Instance(NamedTuple):
    """A problem as kernels read it; item i has the non-zero elements start[i]:start[i + 1]."""

    start: np.ndarray       # (n + 1,)
    feature: np.ndarray     # (nnz,) their features; unsigned, so that no loop looks out for negative ones
    size: np.ndarray        # (nnz,) their values
    noise_var: np.ndarray   # (n,) noise variance of each item
    probs: np.ndarray       # (n,)
    mu: np.ndarray          # (k,) prior mean
    Sigma: np.ndarray       # (k, k) prior covariance
    cost: float
    gamma: float


def compile_problem(problem):
    """The kernels' Instance of a problem; ValueError where `problem.checked` has one."""
    problem = checked(problem)
    there = problem.items != 0
    start = np.append(0, np.cumsum(np.count_nonzero(there, axis=1)))
    feature = np.broadcast_to(np.arange(len(problem.mu), dtype=np.uint32), there.shape)[there]
    return Instance(start, feature, problem.items[there], noise_vars(problem), problem.probs,
                    problem.mu, problem.Sigma, problem.cost, problem.gamma)


def blocks(rows, width):
    """Slices that cover `rows` rows of `width` numbers, each of some BLOCK numbers: what a step of a large product holds."""
    size = max(BLOCK // max(width, 1), 1)
    return [slice(first, min(first + size, rows)) for first in range(0, rows, size)]


def variances(items, Sigma):
    """x Sigma x of every row x: the prior variance of an item's worth.

    Parameters
    ----------
    items : ndarray (n, k)
    Sigma : ndarray (k, k)

    Returns
    -------
    ndarray (n,)
        Reward units squared, never below zero.  Memory beside it does not grow with n.

    Examples
    --------
    >>> variances(np.array([[1., 1.], [0., 2.]]), np.array([[1., .5], [.5, 1.]]))
    array([3., 4.])
    """
    items, Sigma = as_floats("items", items, 2), as_covariance("Sigma", Sigma, np.shape(items)[1])
    if len(items) <= EXACT:
        return np.maximum(np.einsum("ij,jk,ik->i", items, Sigma, items), 0)
    out = np.empty(len(items))
    for rows in blocks(*items.shape):
        out[rows] = np.einsum("ij,ij->i", items[rows] @ Sigma, items[rows])
    return np.maximum(out, 0, out=out)


class Coming(NamedTuple):
    """Items that stand for a coming one: all of them, or a sample."""

    index: np.ndarray       # (m,) rows of problem.items
    probs: np.ndarray       # (m,) their weights, which sum to 1
    sampled: bool


def few(problem):
    """Whether every pair of items is met: no more than EXACT of them have a probability."""
    return np.count_nonzero(checked(problem).probs) <= EXACT


def coming(problem, count=COMING, seed=0):
    """The items that stand for a coming one: all up to EXACT, above that `count` drawn once, stratified.

    Strata have equal probability and follow each other along the direction in which the items' worth varies most under the
    prior: the leading eigenvector of L' C L, with C the covariance of the items and L L' = Sigma.  One item is drawn in
    each, so that the mean over the sample of any function of an item is unbiased, with an error of at most
    its standard deviation over sqrt(count).

    Parameters
    ----------
    problem : Problem
    count : int
    seed : int or sequence of int

    Returns
    -------
    Coming
        Sampled items in the order of their strata.

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> coming(make_problem([[1, 0], [0, 1]], [.5, .5], [0, 0], [[1, 0], [0, 1]], 1, .2, .9)).index
    array([0, 1])
    """
    problem, count = checked(problem), as_count("count", count)
    rng = generator(seed, Purpose.COMING)
    if few(problem):
        return Coming(np.arange(len(problem.items)), problem.probs, False)
    return Coming(_kept(problem, count, seed, rng).copy(), np.full(count, 1 / count), True)


def _drawn_from(problem, count, seed, rng):
    """A key of what `_kept` depends on: not on cost, mean, noise or discount, so that a report draws once."""
    return digest(problem.items, problem.probs, problem.Sigma, count, str(seed))


@cached(LRUCache(16), key=_drawn_from, lock=Lock())
def _kept(problem, count, seed, rng):
    """`stratified` of a generator that is made of `seed`."""
    return stratified(problem, count, rng)


def stratified(problem, count, rng):
    """(count,) items, one of each of `count` strata of equal probability; neighbours are alike (see `coming`)."""
    order = np.argsort(leading(problem), kind="stable")
    uniforms = (np.arange(count) + rng.random(count)) / count
    return order[draw_items(problem.probs[order], np.minimum(uniforms, np.nextafter(1, 0)))]


def leading(problem):
    """(n,) coordinate of every item along the direction in which its worth varies most under the prior."""
    items, root = problem.items, factor(problem.Sigma)
    mean, square = problem.probs @ items, np.zeros(root.shape)
    for rows in blocks(*items.shape):
        square += (items[rows].T * problem.probs[rows]) @ items[rows]
    spread = root.T @ (square - np.outer(mean, mean)) @ root
    return items @ (root @ np.linalg.eigh(spread)[1][:, -1])


def noise_share(problem):
    """The smallest share that noise has in an item's feedback: noise_var / (|x|.sd)^2, sd the prior's; inf without any.

    (|x|.sd)^2 is the largest variance that x.theta can have, and the scale of rounding errors in x Sigma x.  The
    share has no unit: features, ratings and cost can be measured in any.
    """
    problem = checked(problem)
    sd, scale = np.sqrt(np.maximum(np.diag(problem.Sigma), 0)), np.empty(len(problem.items))
    for rows in blocks(*problem.items.shape):
        scale[rows] = (np.abs(problem.items[rows]) @ sd) ** 2
    there = scale > 0
    return float((noise_vars(problem)[there] / scale[there]).min()) if there.any() else np.inf


@inlined_jit
def dot(instance, i, vector):
    """x.vector for item i."""
    total = 0.0
    for e in range(instance.start[i], instance.start[i + 1]):
        total += instance.size[e] * vector[instance.feature[e]]
    return total


@inlined_jit
def times(instance, i, matrix, out):
    """out = matrix' x for item i: Sigma x where the matrix is symmetric."""
    out[:] = 0.0
    for e in range(instance.start[i], instance.start[i + 1]):
        row, size = matrix[instance.feature[e]], instance.size[e]
        for b in range(len(out)):
            out[b] += size * row[b]


@inlined_jit
def project(instance, i, Sigma, gain):
    """gain = Sigma x; x Sigma x is returned."""
    times(instance, i, Sigma, gain)
    return max(dot(instance, i, gain), 0.0)


@inlined_jit
def shrink(Sigma, gain, total):
    """Sigma -= gain gain' / total, symmetric to the last bit; nothing where total is 0."""
    if total > 0.0:
        scale = 1.0 / total
        for a in range(len(gain)):
            if gain[a] != 0.0:
                for b in range(len(gain)):
                    Sigma[a, b] -= gain[a] * gain[b] * scale


@jit
def shrink_root(root, along, a, noise_var):
    """A square root after feedback with a = root' x, along = root a; returns the variance of that feedback."""
    square = 0.0
    for b in range(len(a)):
        square += a[b] * a[b]
    total = square + noise_var
    if square > 0.0:
        scale = 1.0 / (total + np.sqrt(noise_var * total))
        for c in range(len(along)):
            for b in range(len(a)):
                root[c, b] -= along[c] * a[b] * scale
    return total


@jit
def learn(instance, i, y, mu, Sigma, gain):
    """The belief after feedback y on item i, in place; `gain` is room for Sigma x."""
    total = project(instance, i, Sigma, gain) + instance.noise_var[i]
    if total > 0.0:
        surprise = (y - dot(instance, i, mu)) / total
        for a in range(len(mu)):
            mu[a] += surprise * gain[a]
        shrink(Sigma, gain, total)


class Belief(NamedTuple):
    """theta ~ N(mu, Sigma)."""

    mu: np.ndarray      # (k,)
    Sigma: np.ndarray   # (k, k)


def _checked(mu, Sigma):
    mu = as_floats("mu", mu, 1)
    return Belief(mu, as_covariance("Sigma", Sigma, len(mu)))


def _item(x, k):
    x = as_floats("x", x, 1)
    if x.shape != (k,):
        raise ValueError(f"x must have one element per feature, got {x.shape[0]} for {k}")
    return x


def predictive(mu, Sigma, x):
    """Mean and variance of x.theta, the expected feedback on item x.

    Parameters
    ----------
    mu, Sigma : array-like (k,), (k, k)
        The belief.
    x : array-like (k,)
        The item.

    Returns
    -------
    tuple of float
        x.mu and x Sigma x, the second never below zero.

    Examples
    --------
    >>> predictive([1, 2], [[1, 0], [0, 4]], [1, 1])
    (3.0, 5.0)
    """
    mu, Sigma = _checked(mu, Sigma)
    x = _item(x, len(mu))
    return float(x @ mu), max(float(x @ Sigma @ x), 0.0)


def step(belief, x, y, noise_var):
    """`update` without its checks, for inner loops over arrays that have been checked."""
    scale = np.abs(x) @ np.sqrt(np.maximum(belief.Sigma.diagonal(), 0))
    if noise_var < COARSE * scale**2:
        return _step_root(belief, x, y, noise_var)
    gain = belief.Sigma @ x
    total = max(x @ gain, 0.0) + noise_var
    if total == 0:
        return belief
    Sigma = belief.Sigma.copy()
    shrink(Sigma, gain, total)
    return Belief(belief.mu + gain * ((y - x @ belief.mu) / total), Sigma)


def _step_root(belief, x, y, noise_var):
    """`step` by way of a square root: Sigma stays positive semi-definite, whatever the noise."""
    root = factor(belief.Sigma)
    a = root.T @ x
    along = root @ a
    total = shrink_root(root, along, a, noise_var)
    mu = belief.mu + along * ((y - x @ belief.mu) / total) if total > 0 else belief.mu
    return Belief(mu, root @ root.T)


def update(mu, Sigma, x, y, noise_var):
    """The belief after seeing feedback y on item x: one rank-one step.

    Parameters
    ----------
    mu, Sigma : array-like (k,), (k, k)
        The belief before; Sigma may be singular.
    x : array-like (k,)
        The item.
    y : float
        Its feedback, in reward units.
    noise_var : float
        Variance of the feedback around x.theta, positive.

    Returns
    -------
    Belief
        Its Sigma is symmetric to the last bit.

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> update([0, 0], [[1, 0], [0, 1]], [1, 0], 2, 1)
    Belief(mu=array([1., 0.]), Sigma=array([[0.5, 0. ],
           [0. , 1. ]]))
    """
    belief = _checked(mu, Sigma)
    return step(belief, _item(x, len(belief.mu)), as_scalar("y", y), as_scalar("noise_var", noise_var, 0))


def as_feedback(X, y, noise_var, k=None):
    """X (n, k), y (n,) and the noise variances (n,) of one user's feedback, checked; `noise_var` may be one number, k any."""
    X, y, noise_var = as_floats("X", X, 2), as_floats("y", y, 1), as_floats("noise_var", noise_var, np.ndim(noise_var))
    k = X.shape[1] if k is None else as_count("k", k)
    if X.shape != (len(y), k):
        raise ValueError(f"X must have shape {(len(y), k)}, got {X.shape}")
    if noise_var.shape not in ((), y.shape):
        raise ValueError(f"noise_var must be one number or have shape {y.shape}, got {noise_var.shape}")
    if (noise_var <= 0).any():
        raise ValueError(f"noise_var is {noise_var.min()}: it must be positive")
    return X, y, np.broadcast_to(noise_var, y.shape)


def batch(mu, Sigma, X, y, noise_var):
    """The belief after all rows of X at once: the regression that the rank-one steps must add up to.

    With Sigma = L L' and A = X L it is theta = mu + L w, w ~ N(0, I) regressed on y - X mu: the
    covariance is L (I + A' R^-1 A)^-1 L', and only that well-conditioned matrix is solved.

    Parameters
    ----------
    mu, Sigma : array-like (k,), (k, k)
        The prior; Sigma may be singular.
    X, y : array-like (n, k), (n,)
        Items and their feedback.
    noise_var : array-like (n,) or float
        Noise variance of each row, positive.

    Returns
    -------
    Belief

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> batch([0], [[1]], [[1], [1]], [1, 2], 1).mu
    array([1.])
    """
    mu, Sigma = _checked(mu, Sigma)
    X, y, noise_var = as_feedback(X, y, noise_var, len(mu))
    L, root = factor(Sigma), np.sqrt(noise_var)
    A = (X @ L) / root[:, None]
    prec = np.eye(len(mu)) + A.T @ A
    mean = np.linalg.solve(prec, A.T @ ((y - X @ mu) / root))
    spread = np.linalg.solve(np.linalg.cholesky(prec), L.T)
    return Belief(mu + L @ mean, spread.T @ spread)
