"""Bayesian linear regression in covariance form: what one or many observations do to N(mu, Sigma).

y = x.theta + eps, Var eps = noise_var.  Observing y moves the mean along Sigma x and takes a rank-one
matrix from the covariance,

    gain = Sigma x / (x Sigma x + noise_var),   mu + gain (y - x.mu),   Sigma - gain (Sigma x)',

which inverts nothing, so a singular prior is legal (paper, section II; Bayesian Data Analysis, chapter 14).
"""
from typing import NamedTuple

import numpy as np

from lib.problem import as_covariance, as_floats, as_scalar
from lib.streams import factor


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
    along = belief.Sigma @ x
    total = max(x @ along, 0.0) + noise_var
    mu = belief.mu + along * ((y - x @ belief.mu) / total)
    return Belief(mu, belief.Sigma - np.outer(along, along) / total)


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
    X, y = as_floats("X", X, 2), as_floats("y", y, 1)
    if X.shape[1] != len(mu) or len(y) != len(X):
        raise ValueError(f"X must have shape {(len(y), len(mu))}, got {X.shape}")
    noise_var = as_floats("noise_var", noise_var, np.ndim(noise_var))
    if noise_var.shape not in ((), y.shape):
        raise ValueError(f"noise_var must be one number or have shape {y.shape}, got {noise_var.shape}")
    if (noise_var <= 0).any():
        raise ValueError(f"noise_var is {noise_var.min()}: it must be positive")
    L = factor(Sigma)
    root = np.sqrt(np.broadcast_to(noise_var, y.shape))
    A = (X @ L) / root[:, None]
    prec = np.eye(len(mu)) + A.T @ A
    mean = np.linalg.solve(prec, A.T @ ((y - X @ mu) / root))
    spread = np.linalg.solve(np.linalg.cholesky(prec), L.T)
    return Belief(mu + L @ mean, spread.T @ spread)
