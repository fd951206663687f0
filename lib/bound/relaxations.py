"""Upper bounds on what any policy can earn (paper, section III-A; chapter "The upper bound").

All are bounds on V = E sum_{n >= 1} gamma^n U_n (x_n.theta - cost) and carry the leading gamma.
"""
from concurrent.futures import ThreadPoolExecutor
import math
import os

import numpy as np

from lib import dp, posterior, streams
from lib.bound.conditionals import conditional
from lib.estimate import sample_mean
from lib.normal import expected_excess
from lib.problem import Bracket, Estimate, as_choice, as_count, as_scalar, basis_var, checked, effective_horizon, noise_var


def normalised(problem):
    """The checked problem; ValueError unless every item sums to 1, the case in which the theorem splits the cost."""
    problem = checked(problem)
    if problem.items.min() < 0:
        i, j = np.unravel_index(problem.items.argmin(), problem.items.shape)
        raise ValueError(f"items[{i}, {j}] is {problem.items[i, j]}: the decomposition needs features of at least 0")
    norms = problem.items.sum(axis=1)
    if np.abs(norms - 1).max() > 1e-9:
        i = int(np.argmax(np.abs(norms - 1)))
        raise ValueError(f"items[{i}] sums to {norms[i]}: the decomposition needs items of L1 norm 1")
    return problem


def feature_table(problem, j, var, tol, noise):
    """The single-feature table of feature j, for variances up to var; noise is "basis" or "model"."""
    return dp.solve(problem.items[:, j], problem.probs, problem.gamma, problem.noise_sd, var, tol=tol, between=False,
                    info=informations(problem, j, noise))


def informations(problem, j, noise):
    """(n,) what an observation of each item adds to noise_sd^2 / variance of feature j."""
    variance = basis_var(problem) if noise == "basis" else noise_var(problem)
    return problem.items[:, j]**2 * np.divide(problem.noise_sd**2, variance, out=np.zeros(len(variance)), where=variance > 0)


def feature_bracket(problem, j, law, tol, noise):
    """(3,) lower, best and upper value of E W_j(mu_j + sd Z, var), without the leading gamma, in reward units."""
    mean, var, sd = problem.mu[j] - problem.cost, law.var[j], law.sd[j]
    stake = problem.probs @ problem.items[:, j] / (1 - problem.gamma)
    if var == 0:                                       # theta_-j tells theta_j: commit for good
        z = mean / sd if sd > 0 else 0.0
        out = stake * expected_excess(mean, sd) * (1 + 4 * np.finfo(float).eps * (1 + z * z) * np.array([-1, 0, 1]))
    else:
        table = feature_table(problem, j, var, tol, noise)
        out = np.array(dp.smoothed_value(table, mean, sd, var) if sd > 0 and table.slope else dp.value(table, mean, var))
    out[0] = max(out[0] - stake * given_away(law.doubt[j], sd), stake * max(mean, 0.0))
    return np.array([out[0], max(out[1], out[0]), out[2]])


def given_away(doubt, sd):
    """How much E W(mean + sd Z, var) may fall when var grows by `doubt`, for a W with slopes in [0, 1].

    The mean then varies less by as much.  W is convex and nondecreasing in var: so the fall is at most that of a kink,
    E (sd Z)^+ - E (sqrt(sd^2 - doubt) Z)^+.
    """
    return (sd - np.sqrt(max(sd**2 - doubt, 0.0))) / np.sqrt(2 * np.pi)


def decomposition(problem, tol=1e-3, noise="basis"):
    """Theorem 1 without sampling: a bracket on the sum of the single-feature values (paper, Theorem 1).

    Given theta_-j, theta_j has the fixed variance s_j^2 and a mean that is itself normal, so the sum is
    gamma sum_j E W_j(mu_j + sqrt(Sigma_jj - s_j^2) Z, s_j^2): one Gaussian integral of a convex function a feature.

    Parameters
    ----------
    problem : Problem
        With items of L1 norm 1.
    tol : float
        Aim for the relative width of the bracket, or 0.1 tol noise_sd where the value is smaller.
    noise : str
        "basis": feature j of item x is observed with variance basis_var / x_j^2, noise_sd^2 / x_j^2 as in the paper;
        "model": with noise_var / x_j^2, what is really seen given theta_-j: a little tighter.

    Returns
    -------
    Bracket
        lower <= the theorem's bound <= upper, reward units; the optimal value never exceeds upper.

    Raises
    ------
    ValueError
        Where an item does not sum to 1, or for an unknown noise.
    """
    problem, noise = normalised(problem), as_choice("noise", noise, ("basis", "model"))
    tol = as_scalar("tol", tol, 0, 1)
    law = conditional(problem)
    columns = np.column_stack((problem.items.T, problem.mu, law.var, law.sd, law.doubt))
    distinct, where = np.unique(columns, axis=0, return_index=True, return_inverse=True)[1:]
    times = np.bincount(where.ravel())
    goal, floor = first_goal(problem, tol, noise)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        while True:
            parts = list(pool.map(lambda j: feature_bracket(problem, j, law, goal, noise), distinct))
            low, best, high = problem.gamma * (times @ np.array(parts))
            wanted = tol * max(best, 0.1 * problem.noise_sd)
            if high - low <= wanted or goal < floor:
                return Bracket(float(low), float(best), float(high))
            goal *= max(0.02, min(0.5, 0.7 * wanted / (high - low)))


def first_goal(problem, tol, noise):
    """The tolerance that the features are first solved with, and the one at which `decomposition` gives up.

    Coarse at first, because the linear part of the value has no error; but where a feature comes in one size its
    precisions are not rounded, the width is second order in the work, and two more digits cost next to nothing.
    """
    found = (informations(problem, j, noise) for j in range(problem.mu.size))
    one_size = all(np.unique(info[info > 0]).size <= 1 for info in found)
    goal = 0.03 * tol if one_size else min(8 * tol, 0.5)
    return goal, goal / 400


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
    table = feature_table(problem, j, s2, 1e-3, "basis")
    out = np.empty(net.size)
    for size in np.unique(x):
        here = x == size
        discard, forward = dp.q_values(table, net[here], s2, size) if size > 0 else [problem.gamma * dp.value(
            table, net[here], s2).value] * 2
        out[here] = np.maximum(discard, forward)
    return out


def hindsight(problem):
    """gamma / (1 - gamma) E (theta.X - cost)^+: theta known from the start (paper, section III-A).

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> round(hindsight(make_problem([[1.]], [1.], [0.], [[1.]], 1., 0., .5)), 4)
    0.3989
    """
    problem = checked(problem)
    sd = np.sqrt(posterior.variances(problem.items, problem.Sigma))
    return float(problem.gamma / (1 - problem.gamma) * problem.probs @ expected_excess(problem.items @ problem.mu - problem.cost, sd))


def require_noise(problem):
    """Raise ValueError where the noise is too small, or too large, for belief updates in double precision.

    Against 80-digit arithmetic values of information are exact to 2e-8 at the smallest noise that passes, also for items
    that differ in the seventh digit alone; a tenth of it costs 6e-6.
    """
    spread = float(np.sqrt(posterior.variances(problem.items, problem.Sigma).max()))
    if not 1e-5 * spread <= problem.noise_sd <= 1e150:
        raise ValueError(f"noise_sd is {problem.noise_sd}: with preferences of standard deviation {spread} it must lie "
                         f"between {1e-5 * spread} and 1e150")


def compile_checked(problem):
    """The kernels' Instance of a problem whose noise they can serve, or ValueError."""
    problem = checked(problem)
    require_noise(problem)
    return posterior.compile_problem(problem)


def full_observation(problem, sequences, seed, horizon=None):
    """Every rating is shown, forwarded or not: an upper bound, never above hindsight (not in the paper).

    The best policy is then myopic.  Given the items, x_n.mu'_{n-1} is normal with variance
    x_n (Sigma - Sigma'_{n-1}) x_n, so only the item sequence is sampled; items after `horizon` are counted at hindsight.

    Parameters
    ----------
    problem : Problem
    sequences : int
        Number of item sequences, at least 2.
    seed : int
    horizon : int, optional
        Items played out; by default until gamma^horizon <= 1e-5, at most 2,000.

    Returns
    -------
    Estimate
        Mean and standard error, reward units, with the leading gamma.
    """
    problem, sequences = checked(problem), as_count("sequences", sequences, 2)
    instance = compile_checked(problem)
    horizon = min(effective_horizon(problem.gamma, 1e-5), 2000) if horizon is None else as_count("horizon", horizon)
    rng = streams.generator(seed, streams.Purpose.ARRIVALS)
    index = streams.draw_items(problem.probs, rng.random((sequences, horizon)))
    sd = revealed_sd(instance, index)
    gain = expected_excess((problem.items @ problem.mu - problem.cost)[index], sd)
    values = gain @ problem.gamma ** np.arange(1, horizon + 1) + problem.gamma**horizon * hindsight(problem)
    return Estimate(*map(float, sample_mean(values)))


@posterior.jit
def revealed_sd(instance, index):
    """(sequences, horizon) sd of x_n.mu'_{n-1} when the ratings of all earlier items of a row of `index` are seen."""
    out, gain = np.empty(index.shape), np.empty(len(instance.mu))
    prior = np.full(len(instance.probs), -1.0)
    for r in range(index.shape[0]):
        Sigma = instance.Sigma.copy()
        for n in range(index.shape[1]):
            i = index[r, n]
            if prior[i] < 0.0:                                  # only what is met is computed
                prior[i] = posterior.project(instance, i, instance.Sigma, gain)
            now = posterior.project(instance, i, Sigma, gain)
            out[r, n] = math.sqrt(max(prior[i] - now, 0.0))
            posterior.shrink(Sigma, gain, now + instance.noise_var[i])
    return out
