"""What a policy needs to know of an item vector that is not in the catalogue.

Such a vector counts as an item of the stream that comes with probability 0: nobody waits for it, but feedback on it says
something about what comes.  Its law G(. | x) of coming items is that of their projections on itself, its mean projection
the mean of that law.  Under the law "own" no coming item is like it, so that there is nothing to explore for.

Of a large catalogue a sample stands for what comes, the one of `lib.posterior.coming`.

DTD-DP reads the tables that the catalogue's items share (`lib.policies.directions`) where there are such and they reach as
far, and otherwise solves the vector's single-feature problem coarsely, with ATOMS atoms, in some ten milliseconds.  Beside the
full law, solved sharply, benefits are then off by .001 sd on average, by .013 at 99 of 100 points and .06 at most (100 vectors
of four catalogues; a vector far shorter than what comes is solved more finely, in up to a tenth of a second).
"""
from typing import NamedTuple

import numpy as np

from lib import dp
from lib.policies.directions import merged
from lib.posterior import coming
from lib.problem import noise_factors

ATOMS, ROUGH, SHARP = 8, 0.9, 1e-3      # positive atoms of a vector's own dynamic program, its tolerance, and the least one


class Expected(NamedTuple):
    """What is needed of the items to come for the mean projection on any vector."""

    mean: np.ndarray        # (k,) E[X]
    items: np.ndarray       # (m, k) that stand for a coming one
    probs: np.ndarray       # (m,) their probabilities
    Sigma: np.ndarray       # (k, k) of the prior
    law: str                # of projections
    closed: bool            # no item is negative, nor Sigma where the law has it in


def expected(problem, stand, law):
    """The Expected of a checked problem whose `standing` is `stand`."""
    closed = problem.items.min() >= 0 and (law == "euclid" or problem.Sigma.min() >= 0)
    return Expected(problem.probs @ problem.items, stand.items, stand.probs, problem.Sigma, law, bool(closed))


def mean_on(x, coming):
    """M(x) of a vector x (k,), `coming` an Expected: what `mean_projection` of lib.policies finds where x is an item that never comes.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1, 0], [1, 1]], [.5, .5], [0, 0], [[1, 0], [0, 1]], 1, .2, .9)
    >>> mean_on(np.array([0., 2.]), expected(problem, problem, "euclid"))
    0.25
    """
    if coming.law in ("always", "own"):
        return float(coming.law == "always")
    along = coming.Sigma @ x if coming.law == "prior" else x
    norm = x @ along
    if not norm > 0:
        return 0.0
    if coming.closed and x.min() >= 0:
        return float(along @ coming.mean / norm)
    return float(np.maximum(coming.items @ along, 0) @ coming.probs / norm)


def standing(problem):
    """The problem with the items that stand for a coming one: itself up to lib.posterior.EXACT items."""
    index, probs, sampled = coming(problem)
    if not sampled:
        return problem
    noise = problem.noise if isinstance(problem.noise, str) else problem.noise[index]
    return problem._replace(items=np.ascontiguousarray(problem.items[index]), probs=probs, noise=noise)


def law(problem, x, name="euclid"):
    """The law G(. | x) of a coming item's projection on a vector x (k,): (distinct magnitudes, probabilities).

    For an item of the catalogue and every law but "own" it is that item's entry of `lib.policies.projections`.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1, 0], [1, 1]], [.5, .5], [0, 0], [[1, 0], [0, 1]], 1, .2, .9)
    >>> law(problem, np.array([0., 2.]))
    (array([0. , 0.5]), array([0.5, 0.5]))
    """
    n = len(problem.items)
    if name in ("always", "own"):
        sizes = np.full(n, float(name == "always"))
    else:
        along = problem.Sigma @ x if name == "prior" else x
        norm = x @ along
        sizes = np.maximum(problem.items @ along / norm, 0) if norm > 0 else np.zeros(n)
    found, where = np.unique(np.round(sizes, 12), return_inverse=True)
    return found, np.bincount(where, problem.probs)


def extended(problem, x, noise_var):
    """The problem with x as one more item, last and of probability 0, whose noise has the variance `noise_var`."""
    noise = problem.noise
    if isinstance(noise, np.ndarray) or np.count_nonzero(x) and noise_var != own_noise(problem, x):
        factors = noise_factors(problem)
        noise = np.append(np.where(factors > 0, factors, 1.0), noise_var / problem.noise_sd**2)      # an item of no feature has none
    return problem._replace(items=np.vstack([problem.items, x]), probs=np.append(problem.probs, 0.0), noise=noise)


def own_noise(problem, x):
    """Noise variance of feedback on a vector x: noise_sd^2, times I(x) unless noise is constant."""
    constant = isinstance(problem.noise, str) and problem.noise == "constant"
    return problem.noise_sd**2 * (1 if constant else np.count_nonzero(x))


def dtd_noise(problem, policy, x, noise_var):
    """Noise variance of a vector's single-feature problem, as DTD-DP is told to take it (`dtd_dp`, `lib.problem.basis_var`)."""
    basis = policy.noise == "basis" and isinstance(problem.noise, str) and noise_var == own_noise(problem, x)
    return problem.noise_sd**2 if basis else noise_var


def solved(problem, law_name, x, scale, var):
    """The single-feature problem of a vector x of prior variance `var` and noise variance `scale`: a coarse lib.dp.Table.

    The more an item to come can teach beside x, the finer.
    """
    sizes, probs = merged(*law(problem, x, law_name), ATOMS)
    tol = max(ROUGH / max(sizes.max(), 1.0)**4, SHARP)
    try:
        return dp.solve(sizes, probs, problem.gamma, np.sqrt(scale), var, tol, certify=False)
    except ValueError as error:
        raise ValueError(f"x is a vector for which DTD-DP has no table: {error}") from error
