"""How coming items project on the current one: G(. | x) and its mean M(x) (paper, sections III-B and III-C).

Up to lib.posterior.EXACT distinct items every pair is met.  Above, the coming item is one of lib.posterior.COMING that are
drawn once, stratified: memory and time then grow with n, not with n^2.  Means that have a closed form are exact for any n.
"""
from threading import Lock

from cachetools import LRUCache, cached
import numpy as np

from lib.cache import digest
from lib.posterior import EXACT, blocks, coming, few, variances
from lib.problem import as_choice, as_positions, checked


LAWS = ("euclid", "prior", "always", "own")


def projections(problem, law="euclid", of=None):
    """G(. | x) for every item x: the law of the projection of a coming item X on x (paper, section III-B).

    Parameters
    ----------
    problem : Problem
    law : {"euclid", "prior", "always", "own"}
        "euclid": x.X / x.x, the paper's.  "prior": x Sigma X / x Sigma x, the regression of X.theta on x.theta
        under the prior.  Both are 0 where negative: what points the other way counts for nothing.  "always": 1.
        "own": 1 if X = x, else 0.
    of : array-like of int, optional
        The items x, rows of `problem.items`; all of them when absent.

    Returns
    -------
    list of (magnitudes, probs)
        For each item, the distinct magnitudes in increasing order and their probabilities.  An item
        without features (of no variance) projects everything to 0, as does an item orthogonal to all others.
        With more than EXACT items X is one of COMING items that stand for all (`lib.posterior.coming`).

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1, 0], [1, 1]], [.5, .5], [0, 0], [[1, 0], [0, 1]], 1, .2, .9)
    >>> [x.tolist() for x, _ in projections(problem)]
    [[1.0], [0.5, 1.0]]
    """
    problem, law, n = checked(problem), as_choice("law", law, LAWS), len(problem.items)
    of = None if of is None else as_positions("of", of, n)
    if n <= EXACT:
        rows, probs = sizes(problem, law) if of is None else sizes(problem, law)[of], problem.probs
    elif law == "own":
        return [(np.array([0.0, 1.0]), np.array([1 - p, p])) for p in problem.probs[slice(None) if of is None else of]]
    else:
        (met, probs, _), of = coming(problem), np.arange(n) if of is None else of
        rows = (row for part in blocks(len(of), len(met)) for row in sizes(problem, law, of[part], met))
    return [(x, np.bincount(where, probs)) for x, where in
            (np.unique(np.round(row, 12), return_inverse=True) for row in rows)]


def sizes(problem, law, of=None, met=None):
    """(len(of), len(met)) the projection on item of[i] of item met[j]; of all items where both are None."""
    items = problem.items
    on, others = (items, items) if of is None else (items[of], items[met])
    if law in ("always", "own"):
        same = np.eye(len(items)) if of is None else (of[:, None] == met).astype(float)
        return np.ones(same.shape) if law == "always" else same
    inner = on @ (others if law == "euclid" else others @ problem.Sigma).T
    norms = inner.diagonal() if of is None else _norms(on, problem.Sigma, law)
    return np.maximum(np.divide(inner, norms[:, None], np.zeros(inner.shape), where=norms[:, None] > 0), 0)


def _norms(items, Sigma, law):
    """(n,) x.x, or x Sigma x, by which projections are divided."""
    return variances(items, Sigma) if law == "prior" else np.einsum("ij,ij->i", items, items)


def mean_projection(problem, law="euclid"):
    """(n,) M(x), the mean of G(. | x) (paper, section III-C).

    For "euclid" it is x.E[X] / x.x, and for "prior" x Sigma E[X] / x Sigma x, where no pair of items is negative: one pass.
    Otherwise every pair counts, or with more than EXACT items each against COMING that stand for all: an error
    of at most sd / sqrt(COMING), 3 % of the standard deviation of G(. | x).
    """
    problem, law, n = checked(problem), as_choice("law", law, LAWS), len(problem.items)
    if law == "euclid" and problem.items.min() >= 0:
        return _ratio(problem.items, (problem.probs[:, None] * problem.items).sum(axis=0), (problem.items**2).sum(axis=1))
    if few(problem):
        return sizes(problem, law) @ problem.probs
    if law in ("always", "own"):
        return np.ones(n) if law == "always" else problem.probs.copy()
    if problem.items.min() >= 0 and problem.Sigma.min() >= 0:
        return _ratio(problem.items, problem.Sigma @ (problem.probs @ problem.items), _norms(problem.items, problem.Sigma, law))
    return _against_coming(problem, law).copy()


def _content(problem, law):
    """A key of what `_against_coming` depends on."""
    return digest(problem.items, problem.probs, problem.Sigma, law)


@cached(LRUCache(4), key=_content, lock=Lock())           # policies that differ in alpha alone ask for the same
def _against_coming(problem, law):
    """(n,) M(x) where a sample stands for coming items."""
    n = len(problem.items)
    stand, out = coming(problem), np.empty(n)
    others = (problem.items[stand.index] if law == "euclid" else problem.items[stand.index] @ problem.Sigma).T
    for rows in blocks(n, len(stand.index)):
        inner = problem.items[rows] @ others
        out[rows] = np.maximum(inner, 0, out=inner) @ stand.probs
    norms = _norms(problem.items, problem.Sigma, law)
    return np.divide(out, norms, np.zeros(n), where=norms > 0)


def _ratio(items, mean, norms):
    """(n,) x.mean / norms, 0 for an item without features."""
    inner = (items * mean).sum(axis=1)
    return np.divide(inner, norms, np.zeros(len(norms)), where=norms > 0)
