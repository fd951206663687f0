"""Services that learn the prior while they serve, and what the first users cost: the published table "many_users".

Two instances: the ratings at cost 3.8, and the paper's simulated instance with ten features at cost 0.6, the first as frequent as
all others together.  With `unit` the prior standard deviation of an item's worth, averaged over items, a service starts with a
mean that is right, half a unit too low or half a unit too high in every feature, and knows the mean up to a normal error of
0.6 units common to all features and 0.4 units of each one's own.
"""
import numpy as np
import pandas as pd

from lib import policies, simulate
from lib.experiments import problems
from lib.experiments.comparison import share
from lib.posterior import variances
from lib.problem import as_covariance, as_floats, as_scalar, checked, noise_var
from lib.simulate import Service, Start

SIZES = {"users": 200, "runs": 64, "horizon": 60}
STARTS = {"right": 0.0, "too low": -0.5, "too high": 0.5}       # units
COMMON, OWN = 0.6, 0.4                                          # units
BLOCK, FIRST, LAST = 10, 100, 50                                # users of a point, of the cost, and of what is left at the end
GRADIENT, KNOWS = policies.knowledge_gradient(), "Knows the prior"


def instance(name):
    """The (Problem, weight of UCB) of an instance, "ratings" or "simulated"."""
    if name == "ratings":
        return problems.rated()[0]._replace(cost=3.8), .25
    return problems.simulated(features=10, favour=9.0)[0]._replace(cost=.6), .35


def field(alpha):
    """The services of the table by name; all but two decide by the knowledge gradient, UCB has the weight alpha."""
    return {KNOWS: Service(GRADIENT, "all"),
            "Learns nothing": Service(GRADIENT, "nothing"),
            "Exploitation": Service(policies.exploit()),
            "UCB": Service(policies.ucb(alpha)),
            "Knowledge gradient": Service(GRADIENT),
            "Doubt ignored": Service(GRADIENT, doubt="ignored"),
            "Optimism": Service(GRADIENT, doubt="ignored", optimism=1.0),
            "Thompson over users": Service(GRADIENT, doubt="drawn"),
            "Ten welcomed": Service(GRADIENT, welcome=10),
            "EM": Service(GRADIENT, "prior"),
            "EM, optimism": Service(GRADIENT, "prior", "ignored", 1.0),
            "EM, Thompson over users": Service(GRADIENT, "prior", "drawn")}


def beginning(problem, shift):
    """The Start of a service whose mean is `shift` units off.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> beginning(make_problem([[1]], [1], [3], [[4]], 1, 2, .9), -.5)[:2]
    (array([2.]), array([[2.08]]))
    """
    problem, shift = checked(problem), as_scalar("shift", shift)
    unit, k = problem.probs @ np.sqrt(variances(problem.items, problem.Sigma)), len(problem.mu)
    V = unit**2 * (COMMON**2 + OWN**2 * np.eye(k))
    return Start(problem.mu + shift * unit, V, np.trace(problem.Sigma) / k * np.eye(k))


def one_item_a_user(problem, mu, V, gamma):
    """The problem of a service whose users see one item each: the paper's, with the mean of all users in the place of theta.

    A user's theta is that mean plus N(0, Sigma), which is noise to the service: the noise variance of item x is
    x Sigma x + Var eps.

    Parameters
    ----------
    problem : Problem
        Its mu is not used.
    mu, V : array-like (k,), (k, k)
        What is believed of the mean of all users.
    gamma : float
        Discount factor from user to user.

    Returns
    -------
    Problem

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> noise_var(one_item_a_user(make_problem([[1]], [1], [3], [[4]], 1, 2, .9), [0], [[1]], .99))
    array([5.])
    """
    problem, gamma = checked(problem), as_scalar("gamma", gamma, 0, 1)
    mu = as_floats("mu", mu, 1)
    if mu.shape != problem.mu.shape:
        raise ValueError(f"mu must have one element per feature, got {len(mu)} for {len(problem.mu)}")
    heard = variances(problem.items, problem.Sigma) + noise_var(problem)
    return problem._replace(mu=mu, Sigma=as_covariance("V", V, len(mu)), gamma=gamma, noise=heard / problem.noise_sd**2)


def rows(served, names):
    """One row a service and a block of users: what it costs in units of what the first service earns from one user.

    Blocks of BLOCK users, beside them the first FIRST together and the last LAST, per user.  `silent` is the share of
    runs in which nothing would be sent to the block's last user, `away` the root mean square error of the
    believed mean worth of an item there, reward units.
    """
    users, out = served.rewards.shape[2], []
    blocks = [(a, a + BLOCK) for a in range(0, users, BLOCK)] + [(0, min(FIRST, users)), (max(users - LAST, 0), users)]
    kinds = ["block"] * (len(blocks) - 2) + ["first", "last"]
    unit = served.rewards[0].mean(axis=1)
    for s, name in enumerate(names):
        for kind, (a, b) in zip(kinds, blocks):
            lost = (served.rewards[0] - served.rewards[s])[:, a:b]
            cost = share(lost.sum(axis=1) if kind == "first" else lost.mean(axis=1), unit)
            out.append({"service": name, "kind": kind, "first": a + 1, "last": b, "cost": cost.mean, "cost_se": cost.se,
                        "silent": (~served.open[s, :, b - 1]).mean(), "away": np.sqrt((served.away[s, :, b - 1]**2).mean()),
                        "sent": served.forwards[s, :, a:b].mean(), "runs": len(lost)})
    return pd.DataFrame(out)


def many_users(sizes=None, seed=2016, starts=None, instances=("ratings", "simulated")):
    """Every service from every start on every instance: `rows`, with the instance, the start, and what the unit is.

    Parameters
    ----------
    sizes : dict, optional
        As SIZES, which is the default.
    seed : int
    starts : sequence of str, optional
        Keys of STARTS, all by default.
    instances : sequence of str

    Returns
    -------
    DataFrame
    """
    sizes, found = {**SIZES, **(sizes or {})}, []
    for place in instances:
        problem, alpha = instance(place)
        services = field(alpha)
        for start in starts or STARTS:
            served = simulate.serve(problem, list(services.values()), beginning(problem, STARTS[start]), seed=seed, **sizes)
            table = rows(served, services)
            table.insert(0, "start", start)
            table.insert(0, "instance", place)
            found.append(table.assign(unit=served.rewards[0].mean()))
    return pd.concat(found, ignore_index=True)


def apart(fresh, kept):
    """Fresh costs against kept ones of the same instance, start, service and users: both, and z, largest |z| first.

    The error of the fresh cost is the kept one scaled to its number of runs, as in `lib.experiments.published.compare`.
    """
    on = ["instance", "start", "service", "kind", "first", "last"]
    both = fresh.merge(kept, on=on, suffixes=("", "_kept"))
    if both.empty:
        raise ValueError("the fresh rows and the kept ones have nothing in common")
    error = both.cost_se_kept * np.sqrt(1 + both.runs_kept / both.runs)
    off = both.cost - both.cost_kept
    z = np.where(error > 0, off / error.where(error > 0, 1), np.where(np.abs(off) < 1e-9, 0, np.inf))
    return both.assign(z=z)[[*on, "cost", "cost_kept", "z"]].iloc[np.argsort(-np.abs(z), kind="stable")].reset_index(drop=True)
