"""The bounds without sampling at every cost of three experiments: the published table "unsampled".

Beside the costs of an experiment it has those at which each depth was asked where the market closes, found by halving: the bound falls
with the cost, so from the least cost with bound 0 up nothing should be forwarded.
"""
import pandas as pd

from lib import bound
from lib.experiments import specs
from lib.problem import as_count, as_scalar, checked

NODES = {0: 3, 1: 3, 2: 17, 3: 13}                                  # of the lattice, at each depth
FROM = {"simulated": {0: -9.0, 1: -9.0}, "documents": {0: -9.0, 1: -9.0},           # least cost of each depth
        "ratings": {0: -9.0, 1: -9.0, 2: -9.0, 3: 3.8}}
CLOSING = {"ratings": (4.0, 4.6), "documents": (.44, .6)}           # costs between which it is sought, to STEP
STEP = .005
DEEPER = {"documents": (2, 9, (.52,))}                               # beside these: a depth, its nodes, and costs; five minutes


def row(name, problem, cost, depth, nodes=None):
    """One row of the table."""
    found = bound.certified(problem._replace(cost=float(cost)), depth, NODES[depth] if nodes is None else nodes)
    return {"experiment": name, "cost": cost, "depth": depth, "upper": found.upper, "active": len(found.active)}


def closing(problem, depth, low, high, step=STEP):
    """The costs tried to find where the bound reaches 0, between `low`, where it is positive, and `high`: cost, upper.

    Parameters
    ----------
    problem : Problem
    depth : int
        At least 1, as `bound.certified` takes it; nodes are those of the table.
    low, high : float
        Costs; the bound at `low` must be positive and at `high` 0.
    step : float
        The least cost with bound 0 is found to this, above `low`.

    Returns
    -------
    list of (cost, upper)

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong, or the end at which the bound is not as it should be.

    Examples
    --------
    >>> import numpy as np
    >>> from lib.problem import make_problem
    >>> tried = closing(make_problem([[1.0]], [1], [0.0], [[1.0]], 1.0, 0.0, .5), 1, 0.0, 2.0, .1)
    >>> min(cost for cost, upper in tried if upper == 0)
    0.3
    """
    problem, depth = checked(problem), as_count("depth", depth, 1, max(NODES))
    step, low = as_scalar("step", step, 0), as_scalar("low", low)
    last = round((as_scalar("high", high, low) - low) / step)
    costs = [round(low + i * step, 9) for i in range(last + 1)]

    def upper(i):
        return bound.certified(problem._replace(cost=costs[i]), depth, NODES[depth]).upper

    tried = {i: upper(i) for i in (0, last)}
    for name, i, wrong in ("low", 0, tried[0] == 0), ("high", last, tried[last] > 0):
        if wrong:
            raise ValueError(f"{name} is {costs[i]}: there the bound is {tried[i]}")
    start, end = 0, last
    while end - start > 1:
        middle = (start + end) // 2
        tried[middle] = upper(middle)
        start, end = (middle, end) if tried[middle] > 0 else (start, middle)
    return [(costs[i], tried[i]) for i in sorted(tried)]


def unsampled(costs=None, ends=None, deeper=None):
    """The table: a row for each experiment, cost and depth.

    Parameters
    ----------
    costs : dict, optional
        Costs of each experiment, those of its spec by default.
    ends, deeper : dict, optional
        As CLOSING and DEEPER, which are the defaults.

    Returns
    -------
    DataFrame
        experiment, cost, depth, upper, and `active`, the number of items that the bound would forward first.
    """
    rows = []
    for name, depths in FROM.items():
        problem = specs.build(specs.SPECS[name])[0]
        at = specs.SPECS[name].costs if costs is None else costs.get(name, ())
        rows += [row(name, problem, cost, depth) for depth, least in depths.items() for cost in at if cost >= least]
        low_high = (CLOSING if ends is None else ends).get(name)
        for depth in set(depths) - {0} if low_high else ():
            rows += [row(name, problem, cost, depth) for cost, _ in closing(problem, depth, *low_high) if cost not in at]
        depth, nodes, more = (DEEPER if deeper is None else deeper).get(name, (0, None, ()))
        rows += [row(name, problem, cost, depth, nodes) for cost in more]
    return pd.DataFrame(rows)
