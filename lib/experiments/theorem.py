"""Theorem 1 in every version that the book knows, beside the other bounds: the published table "theorem".

Versions: two bases (the paper's, and the eigenvectors of Sigma, along which preferences are independent), three kinds of
charges, and how much of the other preferences is told.  Where preferences are independent they tell nothing of one another:
one version of `told` stands for all, and where they are so in the paper's basis, it is the other basis too.  Beside each
bracket stands what it gives away (`lib.bound.gifts`), from the same item sequences for all versions.
"""
import numpy as np
import pandas as pd

from lib import bound
from lib.experiments import problems, specs
from lib.problem import as_choice, checked

COSTS = {name: specs.SPECS[name].costs for name in ("simulated", "ratings", "documents")}
SIZES = {"told": (.4, .2, 0.0), "sequences": 2000, "paths": 1000, "inner": 4, "effort": 2000, "evaluations": 300}
SMALLER = {"simulated": {"sequences": 400, "paths": 100, "inner": 2, "effort": 300},    # a hundred features, or ten in all items:
           "documents": {"sequences": 1000, "evaluations": 150}}                        # less of what is slow there
TOL = 1e-2
ARTICLES = 32               # a sample: charges are sought one by one


def free(name):
    """The problem of an experiment of COSTS at no cost."""
    return problems.documents(articles=ARTICLES)[0] if name == "documents" else specs.build(specs.SPECS[name])[0]


def eigenbasis(problem):
    """Orthonormal eigenvectors of Sigma as columns; the identity where Sigma is diagonal."""
    problem = checked(problem)
    return np.eye(len(problem.mu)) if independent(problem) else np.linalg.eigh(problem.Sigma)[1]


def independent(problem):
    """Whether no two preferences are correlated."""
    return not (problem.Sigma - np.diag(np.diag(problem.Sigma))).any()


def versions(problem, told=SIZES["told"]):
    """(basis, charges, told) of each version: names, and a number, which is 1 or, with the tightest charges, of `told`."""
    own = [("paper", kind, 1.0) for kind in ("paper", "even", "tightest")]
    if independent(problem):
        return own
    turned = [("eigen", kind, 1.0) for kind in ("paper", "even", "tightest")]
    return own + [("paper", "tightest", share) for share in told] + turned


def version(problem, basis, charges, told, sizes=None, seed=2016):
    """One version of the theorem: its certified Bracket and what it gives away.

    Parameters
    ----------
    problem : Problem
    basis : str
        "paper" or "eigen".
    charges : str
        "paper", "even", or "tightest", those that `bound.tightest_charges` finds.
    told : float
    sizes : dict, optional
        As SIZES, which is the default.

    Returns
    -------
    Bracket, Gifts
    """
    sizes = {**SIZES, **(sizes or {})}
    B = eigenbasis(problem) if as_choice("basis", basis, ("paper", "eigen")) == "eigen" else None
    if as_choice("charges", charges, ("paper", "even", "tightest")) == "tightest":
        found = bound.tightest_charges(problem, B, told, tol=TOL, evaluations=sizes["evaluations"])
        charges, bracket = found.charges, found.bracket
    else:
        bracket = bound.decomposition(problem, TOL, "model", charges, B, told)
    return bracket, bound.gifts(problem, charges, B, told, sizes["sequences"], seed)


def others(problem, sizes, seed):
    """The other bounds at one cost: hindsight, full observation, the dual after an exact first forward, with their errors."""
    full = bound.full_observation(problem, SIZES["sequences"], seed)
    dual = bound.full_first(problem, sizes["paths"] // 2, seed)
    if dual.mean > 0:
        dual = bound.dual_first(problem, sizes["paths"], sizes["inner"], sizes["effort"], seed, sizes["paths"])
    return {"hindsight": bound.hindsight(problem), "full_observation": full.mean, "full_observation_se": full.se,
            "dual": dual.mean, "dual_se": dual.se, "dual_limit": dual.upper}


def theorem(sizes=None, seed=2016, costs=None):
    """Every version at every cost: a row each.  `learning_se` leaves out the width of the bracket.

    Parameters
    ----------
    sizes : dict, optional
        As SIZES, which is the default, with SMALLER where that has an experiment.
    seed : int
    costs : dict, optional
        As COSTS, which is the default.

    Returns
    -------
    DataFrame
        experiment, cost, basis, charges, told; lower and upper end of the theorem; `alone`, `others` and `learning` with
        their errors: what own decisions and the others' preferences add to full observation and own feedback takes off
        again; the other bounds at that cost.
    """
    given_sizes, rows = sizes or {}, []
    for name, at in (costs or COSTS).items():
        costless, sizes = free(name), {**SIZES, **SMALLER.get(name, {}), **given_sizes}
        for cost in at:
            problem = costless._replace(cost=float(cost))
            beside = others(problem, sizes, seed)
            for key in versions(problem, sizes["told"]):
                bracket, given = version(problem, *key, sizes=sizes, seed=seed)
                rows.append({"experiment": name, "cost": cost, **dict(zip(("basis", "charges", "told"), key)),
                             "lower": bracket.lower, "upper": bracket.upper,
                             "alone": given.alone.mean, "alone_se": given.alone.se,
                             "others": given.told.mean, "others_se": given.told.se,
                             "learning": given.total.mean - bracket.value, "learning_se": given.total.se, **beside})
    return pd.DataFrame(rows)
