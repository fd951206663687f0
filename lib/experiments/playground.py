"""What the page with sliders and the game shows, as plain data.

`sheets` solves the single-feature problem for every combination of settings; `rewards` and `leads` read published tables;
`game` draws users with two preferences, and what each policy did with the same items and the same ratings.
"""
from typing import NamedTuple

import numpy as np

from lib import dp, simulate
from lib.estimate import upper_limit
from lib.experiments import published
from lib.problem import as_choice, as_count, as_floats, as_scalar, checked, noise_var

CURVES = ("simulated", "ratings", "documents")      # published tables with every cost, policy and bound
SHARPEST = "first forward exact, then dual"      # what the tables SHARP have, at some of the costs


class Sheets(NamedTuple):
    """The single-feature problem over mean and standard deviation, for every combination of settings."""

    gammas: np.ndarray      # (g,) discounts
    noises: np.ndarray      # (n,) standard deviations of a rating, reward units
    shares: np.ndarray      # (f,) shares of the coming items that have the feature
    net_mean: np.ndarray    # (m,) mean - cost, reward units
    sd: np.ndarray          # (s,) of the belief, reward units
    boundary: np.ndarray    # (g, n, f, s) net mean from which an item is forwarded, at most 0
    benefit: np.ndarray     # (g, n, f, s, m) exploration benefit, at least 0


class Rewards(NamedTuple):
    """A published experiment over the forwarding cost."""

    costs: np.ndarray       # (c,)
    policies: dict          # name: (values (c,), standard errors (c,)), alpha tuned at each cost
    bounds: dict            # name: (costs, upper bounds), 95 % upper limits where they are estimates


class Leads(NamedTuple):
    """How far policies lie ahead of UCB on the built instances, in per cent of what exploration can gain."""

    correlations: np.ndarray    # (r,) of any two preferences
    mixes: np.ndarray           # (m,) 0: each item has one feature, 1: two in equal parts
    policies: dict              # name: (leads (r, m), standard errors (r, m))


class Game(NamedTuple):
    """Users with two preferences, their items and ratings, and what P policies did with them."""

    problem: object         # the Problem that everyone believes in
    theta: np.ndarray       # (R, 2) the preferences
    items: np.ndarray       # (R, horizon) indices into problem.items
    feedback: np.ndarray    # (R, horizon) ratings, seen only where an item was forwarded
    decisions: np.ndarray   # (P, R, horizon) True where forwarded
    rewards: np.ndarray     # (P, R) sum of gamma^n (x.theta - cost) over the forwarded items
    hindsight: np.ndarray   # (R,) the same for whoever knows theta: nothing does better with these items
    noise_var: np.ndarray   # noise variance of each item of the problem, reward units squared


def _settings(name, values, low, high):
    """`values` as an increasing array, each strictly between `low` and `high`, or ValueError."""
    values = as_floats(name, values, 1)
    for value in values:
        as_scalar(name, value, low, high)
    if (np.diff(values) <= 0).any():
        raise ValueError(f"{name} is {values}: the values must increase")
    return values


def sheets(gammas, noises, shares, net_mean, sd, tol=1e-3):
    """Forwarding boundary and exploration benefit of one feature for every discount, noise and frequency (section III-B).

    A coming item has the feature, with magnitude 1, with the probability `share`, and is worth 0 otherwise.

    Parameters
    ----------
    gammas, noises, shares : array-like (g,), (n,), (f,)
        Discounts in (0, 1), standard deviations of a rating, shares in (0, 1); each increasing.
    net_mean, sd : array-like (m,), (s,)
        Mean - cost and standard deviation of the belief, reward units, increasing; sd positive.
    tol : float
        As `lib.dp.solve` takes it.

    Returns
    -------
    Sheets

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> found = sheets([.5, .9], [1.], [.5], [-1., 0.], [1.], tol=.01)
    >>> found.boundary.shape, bool(found.boundary[0, 0, 0, 0] > found.boundary[1, 0, 0, 0])
    ((2, 1, 1, 1), True)
    """
    gammas, noises, shares = _settings("gammas", gammas, 0, 1), _settings("noises", noises, 0, np.inf), _settings("shares", shares, 0, 1)
    net_mean, sd = _settings("net_mean", net_mean, -np.inf, np.inf), _settings("sd", sd, 0, np.inf)
    boundary = np.empty((len(gammas), len(noises), len(shares), len(sd)))
    benefit = np.empty(boundary.shape + net_mean.shape)
    mean, var = np.meshgrid(net_mean, sd**2)
    for at in np.ndindex(boundary.shape[:3]):
        gamma, noise, share = gammas[at[0]], noises[at[1]], shares[at[2]]
        table = dp.solve([0, 1], [1 - share, share], gamma, noise, sd[-1] ** 2, tol=tol, certify=False)
        boundary[at] = dp.boundary(table, 1.0, noise**2 / sd**2) * sd
        discard, forward = dp.q_values(table, mean, var)
        benefit[at] = np.maximum(forward - discard - mean, 0)
    return Sheets(gammas, noises, shares, net_mean, sd, boundary, benefit)


def rewards(name):
    """Each policy, alpha tuned at every cost, and every upper bound of a published experiment.

    Parameters
    ----------
    name : {"simulated", "ratings", "documents"}

    Returns
    -------
    Rewards
        Bounds are certified (Theorem 1), exact (hindsight), or one-sided 95 % upper limits of estimates.

    Raises
    ------
    ValueError
        When there is no such experiment.

    Examples
    --------
    >>> found = rewards("documents")
    >>> list(found.bounds)
    ['Theorem 1', 'hindsight', 'full observation', 'first forward exact, then dual']
    """
    rows = published.load(as_choice("name", name, CURVES))
    rows = rows[rows.chosen]
    values, errors = (rows.pivot(index="cost", columns="policy", values=column) for column in ("mean", "se"))
    policies = {policy: (values[policy].to_numpy(), errors[policy].to_numpy()) for policy in rows.policy.unique()}
    one = rows.groupby("cost").first()
    costs = one.index.to_numpy(float)
    limits = {"Theorem 1": one.decomposition_upper, "hindsight": one.hindsight,
              "full observation": upper_limit(one.full_observation, one.full_observation_se)}
    bounds = {label: (costs, np.asarray(limit, float)) for label, limit in limits.items() if not np.isnan(limit).any()}
    if name in published.SHARP:
        sharp = published.load(f"{name}_sharp").groupby("cost").limit.first()
        bounds[SHARPEST] = sharp.index.to_numpy(float), sharp.to_numpy()
    return Rewards(costs, policies, bounds)


def leads():
    """DTD-UCB and DTD-DP beside UCB, all tuned, on the built instances (`lib.experiments.from_knobs`), as published.

    Returns
    -------
    Leads

    Examples
    --------
    >>> leads().correlations
    array([0. , 0.5, 0.9])
    """
    rows = published.load("alignment")
    grids = {policy: [some.pivot(index="correlation", columns="mix", values=column) for column in ("lead", "lead_se")]
             for policy, some in rows.groupby("policy", sort=False)}
    shape = next(iter(grids.values()))[0]
    return Leads(shape.index.to_numpy(float), shape.columns.to_numpy(float),
                 {policy: tuple(grid.to_numpy() for grid in both) for policy, both in grids.items()})


def game(problem, policies, users=12, horizon=20, seed=0):
    """Simulated users with two preferences, and policies on the same items and ratings.

    Parameters
    ----------
    problem : Problem
        With two features.
    policies : sequence of Policy
    users, horizon : int
        Number of users, and of items that each of them meets.
    seed : int or sequence of int

    Returns
    -------
    Game
        Rewards count x.theta - cost, without the noise of the ratings (equation 2, chapter "Formulation").

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> from lib.policies import exploit
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1, 0], [0, 1]], [.5, .5], [1, 1], [[1, 0], [0, 1]], 1, .5, .9)
    >>> found = game(problem, [exploit()], users=3, horizon=5)
    >>> found.items.shape, found.decisions.shape
    ((3, 5), (1, 3, 5))
    """
    problem = checked(problem)
    if len(problem.mu) != 2:
        raise ValueError(f"problem has {len(problem.mu)} features: a belief is drawn in a plane, so it must have 2")
    met = simulate.episodes(problem, policies, as_count("users", users), as_count("horizon", horizon), seed)
    worth = np.einsum("rnk,rk->rn", problem.items[met.items], met.theta) - problem.cost
    hindsight = np.maximum(worth, 0) @ problem.gamma ** np.arange(1, horizon + 1)
    return Game(problem, met.theta, met.items, met.feedback, met.decisions, met.rewards, hindsight, noise_var(problem))
