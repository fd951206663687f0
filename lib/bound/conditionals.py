"""The law of one preference given all the others, rounded to the side on which Theorem 1 stays an upper bound.

Given theta_-j, theta_j is normal.  Its variance s_j^2 = 1 / (Sigma^-1)_jj is a number, its mean is
N(mu_j, Sigma_jj - s_j^2), and the theorem's term is E W_j(mu_j + sqrt(Sigma_jj - s_j^2) Z, s_j^2).  The smaller s_j^2,
the more is given away: the term grows, by at most what `doubt` says.  So s_j^2 is rounded down.

Nearly singular Sigma cannot be solved in double precision: what is known of theta_j hangs on its last digits.  Sigma is
therefore swept (Goodnight 1979, "A tutorial on the SWEEP operator") with DIGITS digits, in units in which every variance is 1.
What rounding every element of Sigma in its last place may change is taken off too.
"""
from decimal import Decimal, localcontext
from typing import NamedTuple

import numpy as np

from lib.problem import checked

DIGITS = 100                    # of the sweep
NOTHING = Decimal("1e-60")      # a variance below this is none
ROUNDING = 2.0**-53             # relative error of an element of Sigma
RELATED = 1e-14                 # a coefficient below this is rounding


class Conditional(NamedTuple):
    """Each theta_j given the others: mean mu_j + weights[j] @ (theta - mu), variance between var and var + doubt."""

    var: np.ndarray       # (k,) s_j^2, rounded down; 0 where theta_j is known from the others
    sd: np.ndarray        # (k,) standard deviation of the mean, rounded up
    doubt: np.ndarray     # (k,) how far var may lie below s_j^2
    weights: np.ndarray   # (k, k) zero on the diagonal; all zero in a row with var 0, where theta_j itself is the mean


def sweep(A, p):
    """A symmetric matrix swept on its p-th variable, in place."""
    column, pivot = A[:, p].copy(), A[p, p]
    A -= np.outer(column, column / pivot)
    A[p, :] = A[:, p] = column / pivot
    A[p, p] = -1 / pivot


def swept(R):
    """R (k, k) of Decimal swept on as many variables as are not known from those before, and which those are."""
    A, free = R.copy(), np.zeros(len(R), dtype=bool)
    for _ in R:
        p = max(np.flatnonzero(~free), key=lambda i: A[i, i])
        if A[p, p] <= NOTHING:
            break
        sweep(A, p)
        free[p] = True
    return A, free


def contrast(A, free, j):
    """(k,) of Decimal: the combination theta_j - E(theta_j | others), and its variance.

    Where a variable i is a combination of the free ones and theta_j enters it, the others tell theta_j by that.
    """
    if free[j]:
        tied = [i for i in np.flatnonzero(~free) if abs(A[i, j]) > RELATED]
        if not tied:
            return np.where(free, A[j] / A[j, j], Decimal(0)), -1 / A[j, j]
        i = max(tied, key=lambda i: abs(A[i, j]))
    else:
        i = j
    out = np.where(free, -A[i], Decimal(0))
    out[i] = Decimal(1)
    return out / out[j], Decimal(0)


def conditional(problem):
    """The law of each theta_j given the others.  Sigma may be singular.

    Returns
    -------
    Conditional

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> law = conditional(make_problem([[1, 0], [0, 1]], [.5, .5], [0, 0], [[1, .6], [.6, 1]], 1, 0, .9))
    >>> law.var.round(4), law.sd.round(4)
    (array([0.64, 0.64]), array([0.6, 0.6]))
    """
    problem = checked(problem)
    Sigma, k = problem.Sigma, len(problem.mu)
    variance = np.diag(Sigma).copy()
    var, doubt, weights = variance.copy(), np.zeros(k), np.zeros((k, k))
    linked = np.flatnonzero(((Sigma != 0).sum(axis=1) > 1) & (variance > 0))
    if len(linked):
        part = np.ix_(linked, linked)
        scale = np.sqrt(variance[linked])
        law = _correlated(Sigma[part], scale)
        var[linked], doubt[linked], weights[part] = law
    return Conditional(var, np.where(var < variance, np.nextafter(np.sqrt(variance - var), np.inf), 0.0), doubt, weights)


def _correlated(Sigma, scale):
    """var, doubt and weights of variables with standard deviations `scale`, none of them 0."""
    k, weights = len(scale), np.zeros(Sigma.shape)
    low, doubt = np.zeros(k), np.zeros(k)
    with localcontext(prec=DIGITS):
        sds = np.array([Decimal(s) for s in scale])
        R = np.array([[Decimal(c) for c in row] for row in Sigma]) / np.outer(sds, sds)
        A, free = swept(R)
        size = np.abs(R.astype(float))
        for j in range(k):
            a, var = contrast(A, free, j)
            a = a.astype(float)
            slack = 4 * ROUNDING * min(np.abs(a) @ size @ np.abs(a), 1 / ROUNDING)
            rest = max(float(var) - slack, 0.0)
            low[j] = rest if rest > 1e-12 else 0.0
            doubt[j] = min(float(var) + slack, 1.0) - low[j]
            if low[j]:
                weights[j] = -a * scale[j] / scale
                weights[j, j] = 0.0
    return low * scale**2 * (1 - 4 * ROUNDING), doubt * scale**2 + 8 * ROUNDING * scale**2, weights
