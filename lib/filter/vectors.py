"""What a policy needs to know of an item vector that is not in the catalogue.

Such a vector counts as an item of the stream that comes with probability 0: nobody waits for it, but feedback on it says
something about what comes.  Its law G(. | x) of coming items is that of their projections on itself, its mean projection
the mean of that law.  Under the law "own" no coming item is like it, so that there is nothing to explore for.

Of a large catalogue a sample stands for what comes, the one of `lib.posterior.coming`.
"""
import numpy as np

from lib.dp import exploration_benefits
from lib.dp.program import DEEP, FINE, STEP
from lib.policies.directions import FEW, merged
from lib.policies.index import Rules
from lib.policies.rules import TABLE
from lib.posterior import coming
from lib.problem import noise_factors


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


def benefits(problem, policy, x, noise_var):
    """The Rules of DTD-DP for one vector x: a table of its own, its law merged where it has more than FEW atoms."""
    var = float(x @ problem.Sigma @ x)
    basis = policy.noise == "basis" and isinstance(problem.noise, str)
    scale = problem.noise_sd**2 if basis else noise_var
    sizes, probs = law(problem, x, policy.law)
    if len(sizes) > FEW:
        sizes, probs = merged(sizes, probs)
    arguments = (sizes.tobytes(), probs.tobytes(), problem.gamma, scale / var) if var > 0 else (b"", b"", 0.0, 0.0)
    kink, benefit = exploration_benefits(*arguments)
    rows = np.zeros((1, 1), np.int32)
    return Rules(np.array([TABLE]), np.zeros(1, bool), np.full((1, 1), policy.alpha), rows, rows, np.zeros((1, 1)), np.ones((1, 1)),
                 np.array([len(kink) - 1]), np.array([np.log(var) if var > 0 else 0.0]), kink[None], benefit[None],
                 np.array([STEP, FINE, DEEP]))
