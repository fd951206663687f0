"""How coming items project on the current one: G(. | x) and its mean M(x) (paper, sections III-B and III-C)."""
import numpy as np

from lib.problem import as_choice, checked


LAWS = ("euclid", "prior", "always", "own")


def projections(problem, law="euclid"):
    """G(. | x) for every item x: the law of the projection of a coming item X on x (paper, section III-B).

    Parameters
    ----------
    problem : Problem
    law : {"euclid", "prior", "always", "own"}
        "euclid": x.X / x.x, the paper's.  "prior": x Sigma X / x Sigma x, the regression of X.theta on x.theta
        under the prior.  Both are 0 where negative: what points the other way counts for nothing.  "always": 1.
        "own": 1 if X = x, else 0.

    Returns
    -------
    list of (magnitudes, probs)
        For each item, the distinct magnitudes in increasing order and their probabilities.  An item
        without features (of no variance) projects everything to 0, as does an item orthogonal to all others.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1, 0], [1, 1]], [.5, .5], [0, 0], [[1, 0], [0, 1]], 1, .2, .9)
    >>> [x.tolist() for x, _ in projections(problem)]
    [[1.0], [0.5, 1.0]]
    """
    problem, laws = checked(problem), []
    for row in _sizes(problem, law):
        x, where = np.unique(np.round(row, 12), return_inverse=True)
        laws.append((x, np.bincount(where, problem.probs)))
    return laws


def _sizes(problem, law):
    """(n, n) the projection on item i of item j."""
    n, law = len(problem.items), as_choice("law", law, LAWS)
    if law in ("always", "own"):
        return np.ones((n, n)) if law == "always" else np.eye(n)
    inner = problem.items @ (problem.items if law == "euclid" else problem.items @ problem.Sigma).T
    norms = inner.diagonal()[:, None]
    return np.maximum(np.divide(inner, norms, np.zeros((n, n)), where=norms > 0), 0)


def mean_projection(problem, law="euclid"):
    """(n,) M(x), the mean of G(. | x) (paper, section III-C); for "euclid" x.E[X] / x.x, in one pass."""
    problem = checked(problem)
    if law != "euclid" or problem.items.min() < 0:
        return _sizes(problem, law) @ problem.probs
    norms = (problem.items**2).sum(axis=1)
    inner = (problem.items * (problem.probs[:, None] * problem.items).sum(axis=0)).sum(axis=1)
    return np.divide(inner, norms, np.zeros(len(norms)), where=norms > 0)
