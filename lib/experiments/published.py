"""Results at publication size: made once by `python -m lib.experiments.published`, kept as text, met by every fresh run.

Two kinds of table.  TABLES hold an experiment as `lib.experiments.run` gives it: every cost, policy and alpha.  SHARP
hold the tuned policies of one of them again, on other users and with a control variate (`lib.bound.penalty`), beside
the tightest bound of `lib.bound.duality`, on the same lives where that can be (`lib.experiments.shortfall`).  The table
"combinations" does so for two instances on which all bounds are loose, "others" for constant noise and for fifty topics; "alignment" has the
paper's policies on items more or less aligned with a basis, "theorem" every version of Theorem 1, "unsampled" the bounds that rest on no
sample, "gittins" certified indices, "robustness" policies where the model is wrong, and "many_users" services that learn the prior while
they serve.
All draws are other than those of the book's own runs, so that the two can be compared.
"""
import argparse
from importlib.metadata import version
import json
import os
from pathlib import Path
import platform
import re
from time import perf_counter

import numpy as np
import pandas as pd

from lib import bound, cache, policies
from lib.experiments import (comparison, indices, many_users, problems, robustness, runner, shortfall, sources, specs, theorem,
                             unsampled)

FOLDER = Path(__file__).parents[2] / "data" / "results"
RECORDS = Path(__file__).parents[2] / "bench" / "results"         # what the scripts of bench have measured
TABLES = ("simulated", "ratings", "ratings_held_out", "documents", "documents_held_out", "documents_50")
SHARP = {"ratings": (3.2, 3.4, 3.5, 3.6, 3.7, 3.8, 3.9, 4.0, 4.2), "documents": (.2, .24, .29, .34, .39, .44)}
SEED = 2016                                     # the book's own runs start from small numbers
SIZES = {"tuning": 1024, "users": 4096, "paths": 8000, "outer": 16, "items": 1024}       # of the sharp tables
FIFTY = {"tuning": 256, "users": 1024, "paths": 2000, "items": 256}         # with fifty features
LEADING, FEWER = 3, 8                       # policies that meet all the lives of a shortfall; the others meet one in so many
SECOND = {"ratings": (3.8, 3.9, 4.0), "documents": ()}     # costs at which few items are worth the first forward: two exact ones are affordable
TWICE = ("Knowledge gradient", "Patient lookahead")                 # policies for which they are made exact
TOL = 1e-2                                  # of Theorem 1 where the book's own runs leave it out
EVALUATION, BOUND = 2, 3                    # seeds are (SEED, purpose); `comparison.tune` has 1
KEPT = ["cost", "policy", "alpha", "replications", "mean", "se", "se_users", "difference", "difference_se",
        "difference_se_users", "chosen", "optimism", "optimism_se", "decomposition_lower", "decomposition_upper",
        "hindsight", "full_observation", "full_observation_se", "bound"]
BEYOND = (comparison.Candidate("UCB, fine grid", policies.ucb, tuple(np.linspace(.05, .8, 8))),
          comparison.Candidate("DTD-DP, model's noise", lambda alpha: policies.dtd_dp(alpha, noise="model"),
                            tuple(np.linspace(.2, 3.2, 8))),
          comparison.Candidate("Knowledge gradient", policies.knowledge_gradient, (.3, .45, .6, .8, 1.0, 1.3)),
          comparison.Candidate("Knowledge gradient, untuned", policies.knowledge_gradient, (1.0,)),
          comparison.Candidate("Patient lookahead", policies.patient, (.5,)),
          comparison.Candidate("Phased exploration", policies.phased, (.5, 1.0, 2.0, 5.0, 10.0, 20.0)))


def table(name):
    """One experiment at publication size, on draws of its own."""
    spec = specs.SPECS[name]
    users, tuning, sequences = spec.replications[1], spec.tuning[1], spec.sequences[1]
    spec = spec._replace(seed=SEED, replications=(users,) * 2, tuning=(tuning,) * 2, sequences=(sequences,) * 2, tol=spec.tol or TOL)
    return runner.run(spec)[KEPT]


def sharp(name, rows, sizes=None):
    """The tuned policies of one cost on `users` other users, beside the tightest bound.

    Parameters
    ----------
    name : str
        A key of SHARP.
    rows : DataFrame
        The rows of one cost of that table.
    sizes : dict, optional
        As SIZES, which is the default.

    Returns
    -------
    DataFrame
        `cost`, then the columns of `judged`, one row a policy.
    """
    sizes, cost, spec = {**SIZES, **(sizes or {})}, float(rows.cost.iloc[0]), specs.SPECS[name]
    problem = specs.build(spec)[0]._replace(cost=cost)
    arms = runner.chosen(spec, rows) | tuned(problem, BEYOND, sizes)
    found = judged(problem, arms, sizes, "UCB", TWICE if cost in SECOND[name] else ())
    return found.assign(cost=cost)[["cost", *found.columns]]


def tuned(problem, entries, sizes):
    """Each of the entries with its best weight, by name."""
    return dict(zip((entry.name for entry in entries), comparison.tune(problem, entries, sizes["tuning"], seed=SEED)))


def judged(problem, arms, sizes, rival, twice=()):
    """Policies beside the tightest bound.

    Parameters
    ----------
    problem : Problem
    arms : dict
        Policies by name.
    sizes : dict
        As SIZES.
    rival : str
        The policy that is UCB.
    twice : sequence of str
        Policies for which two forwards are made exact as well.

    Returns
    -------
    DataFrame
        One row a policy: value and se; `over_ucb` and its se, paired, beside `rival`; `bound`, `bound_se` and `limit`, the one-sided
        95 % upper limit; `short` and its se, what the policy stays below that bound, on the same lives (`shortfall`; NaN where the policy is
        not stationary), `second` the same with two forwards exact; what follows from them (`shared`).
    """
    found = comparison.evaluate(problem, arms.values(), sizes["users"], specs.PAPER, (SEED, EVALUATION, 1), reference=list(arms).index(rival))
    limit = bound.full_first(problem, sizes["paths"] // 8, (SEED, BOUND))
    if limit.mean > 0:
        items = 2 * sizes["items"] if len(problem.items) > shortfall.EVERY else None
        limit = bound.dual_first(problem, sizes["paths"], seed=(SEED, BOUND), sequences=sizes["paths"], items=items)
    out = pd.DataFrame({"policy": list(arms), "alpha": list(map(runner.weight, arms.values())), "users": sizes["users"],
                        "value": found.value.mean, "se": found.value.se, "over_ucb": found.lead.mean, "over_ucb_se": found.lead.se,
                        "bound": limit.mean, "bound_se": limit.se, "limit": limit.upper})
    out[["short", "short_se", "second", "second_se"]] = np.nan
    one = shortfall.Effort(sizes["paths"], items=sizes["items"])
    few, both = one._replace(paths=one.paths // FEWER, items=one.items // FEWER), one._replace(paths=one.paths // 4, outer=sizes["outer"])
    steady = out.policy.map(lambda name: shortfall.stationary(arms[name])) & (limit.mean > 0)
    twice = steady & out.policy.isin(twice)
    leading = steady & ~twice & out.index.isin(out.value[steady].nlargest(LEADING).index)
    for rows, effort in (leading, one), (steady & ~twice & ~leading, few), (twice, both):
        if rows.any():
            least = shortfall.stages(problem, [arms[name] for name in out.policy[rows]], effort, (SEED, BOUND, 4))
            for column, stage in zip(("short", "second"), least):
                out.loc[rows, [column, f"{column}_se"]] = np.column_stack(stage)
    return shared(out)


def shared(rows):
    """Rows with value, bound, short and second, their errors, and what follows from them.

    `left`, what is left below the bound on the same lives, is `second` or else `short`, and NaN where there is neither; `share` of the
    bound is value / (value + left), or value / bound, the two being independent (NaN where the bound is 0).
    """
    left, left_se = rows.second.fillna(rows.short), rows.second_se.fillna(rows.short_se)
    whole = np.where(left.notna(), rows.value + left, rows.bound)
    whole = np.where(whole > 0, whole, np.nan)
    share = rows.value / whole
    apart = np.where(left.notna(), np.hypot(left / whole * rows.se, share * left_se), np.hypot(rows.se, share * rows.bound_se))
    return rows.assign(left=left, left_se=left_se, share=share, share_se=apart / whole)


def once(rows):
    """Rows of `shared` by the bound with one forward exact alone."""
    return shared(rows.assign(second=np.nan, second_se=np.nan))


def beside_bounds(instance, problem, sizes, twice=()):
    """The policies of BEYOND, tuned, on a problem: `instance`, a name, and `cost`, the columns of `judged`, full observation and its se."""
    rows = judged(problem, tuned(problem, BEYOND, sizes), sizes, BEYOND[0].name, twice)
    full = bound.full_observation(problem, sizes["paths"], (SEED, BOUND, 0))
    found = rows.assign(instance=instance, cost=problem.cost, full=full.mean, full_se=full.se)
    return found[["instance", "cost", *rows.columns, "full", "full_se"]]


def combinations(sizes=None):
    """`beside_bounds` where both prior and items are hard (`problems.combinations`)."""
    sizes = {**SIZES, **(sizes or {})}
    return pd.concat([beside_bounds(instance, problems.combinations(correlated)[0], sizes, TWICE)
                      for instance, correlated in (("independent", False), ("correlated", True))], ignore_index=True)


def others(sizes=None):
    """`beside_bounds` on the ratings with noise that is alike for all items, and on documents of fifty topics."""
    sizes, smaller = {**SIZES, **(sizes or {})}, {**SIZES, **FIFTY, **(sizes or {})}
    even, fifty = problems.rated(noise="constant")[0], specs.build(specs.SPECS["documents_50"])[0]
    found = [beside_bounds("constant noise", even._replace(cost=cost), sizes, twice) for cost, twice in ((3.5, ()), (3.8, TWICE), (4.0, TWICE))]
    found += [beside_bounds("fifty topics", fifty._replace(cost=cost), smaller) for cost in (.25, .35)]
    return pd.concat(found, ignore_index=True)


def alignment(sizes=None):
    """The paper's policies beside UCB, all tuned, as items leave the basis: correlation, mix, policy, lead and its se.

    Instances are those of `lib.experiments.problems`; a lead is paired, in per cent of the knowledge gradient's gain.
    """
    sizes, rows = {**SIZES, **(sizes or {})}, []
    for correlation, mix in ((r, m) for r in (0.0, .5, .9) for m in (0.0, .5, 1.0)):
        problem = problems.from_knobs(problems.Knobs(correlation=correlation, mix=mix))
        entries = comparison.families(problem, ("UCB", "DTD-UCB", "DTD-DP", "Knowledge gradient"))
        _, gains = comparison.tune_and_measure(problem, (problem.cost,), entries, sizes["tuning"], sizes["users"], seed=SEED)
        lead = comparison.share(100 * (gains[0, 1:3] - gains[0, 0]), gains[0, 3])
        rows += [(correlation, mix, entry.name, mean, se) for entry, mean, se in zip(entries[1:3], lead.mean, lead.se)]
    return pd.DataFrame(rows, columns=["correlation", "mix", "policy", "lead", "lead_se"])


def manifest(runs):
    """What the tables rest on: versions, seed, sizes, machine, and for each table its minutes and the code that made it."""
    return {"python": platform.python_version(),
            "packages": dict(zip(runner.PACKAGES, map(version, runner.PACKAGES))),
            "machine": f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores",
            "seed": SEED, "sharp": SIZES,
            "tables": {name: {"users": specs.SPECS[name].replications[1], "tuning": specs.SPECS[name].tuning[1],
                              "policies": len(specs.SPECS[name].policies), "costs": len(specs.SPECS[name].costs)}
                       for name in TABLES},
            "runs": runs}


def write(path, text):
    """A text file, all or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with cache.whole(path) as file:
        file.write(text)


def tables(folder=FOLDER):
    """For each table its name and the function that makes it, in the order in which they need one another."""
    makers = {name: lambda name=name: table(name) for name in TABLES}
    for name, costs in SHARP.items():
        makers[f"{name}_sharp"] = lambda name=name, costs=costs: pd.concat(
            [sharp(name, rows) for cost, rows in load(name, folder).groupby("cost") if cost in costs])
    return makers | {"combinations": combinations, "others": others, "alignment": alignment, "theorem": theorem.theorem,
                     "unsampled": unsampled.unsampled, "gittins": indices.gittins, "robustness": robustness.table,
                     "many_users": many_users.many_users}


def check_names(names, makers):
    """Raise ValueError for the first of `names` that is no table."""
    for name in names:
        if name not in makers:
            raise ValueError(f"{name}: no such table, there are {', '.join(makers)}")


def publish(folder=FOLDER, names=None):
    """Run everything, or the tables `names` alone, and write it to `folder`; with BOOK_CHUNKS set, a stopped run goes on.

    Raises
    ------
    ValueError
        When there is no table of one of the names, before anything is run.
    """
    makers = tables(folder)
    check_names(names or (), makers)
    record = Path(folder) / "manifest.json"
    runs = json.loads(record.read_text())["runs"] if names and record.exists() else {}
    for name in names or makers:
        begin = perf_counter()
        found = makers[name]()
        write(Path(folder) / f"{name}.csv", found.to_csv(index=False, float_format="%.7g"))
        runs[name] = {"minutes": round((perf_counter() - begin) / 60, 1), "lib": cache.code_version()[:12]}
        print(f"{name}: {len(found)} rows, {runs[name]['minutes']} minutes", flush=True)
        write(record, json.dumps(manifest(runs), indent=1) + "\n")


def record(name):
    """The lines of a record of `bench`, each as its cells: what two spaces or more part.

    Raises
    ------
    OSError
        When there is none of that name.
    """
    return [re.split(r"\s{2,}", line.strip()) for line in (RECORDS / f"{name}.txt").read_text(encoding="utf-8").splitlines()]


def load(name, folder=FOLDER):
    """A published table.

    Raises
    ------
    ValueError
        When there is none of that name, naming those that there are.

    Examples
    --------
    >>> load("simulated").policy.nunique()
    5
    """
    path = Path(folder) / f"{name}.csv"
    if not path.exists():
        raise ValueError(f"{name}: no published table, there are {', '.join(sorted(p.stem for p in Path(folder).glob('*.csv')))}")
    return pd.read_csv(path)


def compare(fresh, name, folder=FOLDER):
    """How far a fresh run lies from the published one, in standard errors.

    Parameters
    ----------
    fresh : DataFrame
        From `lib.experiments.run` of the same experiment, on other draws.
    name : str
        The published table; costs and policies that only one of the two has are left out.

    Returns
    -------
    DataFrame
        cost, policy, alpha, the two means and `z`, largest |z| first.  The error of the fresh mean is the published
        standard error, scaled to its number of users: a small sample without a rare event would underrate its own.
        No row where BOOK_YELP or BOOK_ARXIV puts other data in the table's place.

    Raises
    ------
    ValueError
        When the two have no row in common.
    """
    on = ["cost", "policy", "alpha"]
    if sources.replaced(specs.SPECS[name].problem):
        return pd.DataFrame(columns=[*on, "mean", "mean_published", "z"], dtype=float)
    mine, theirs = (frame.assign(alpha=frame.alpha.fillna(-1).round(6), cost=frame.cost.round(9))
                    for frame in (fresh, load(name, folder)))
    both = mine.merge(theirs, on=on, suffixes=("", "_published"))
    if both.empty:
        raise ValueError(f"{name}: the fresh run has no cost, policy and alpha in common with the published table")
    error = both.se_published * np.sqrt(1 + both.replications_published / both.replications)
    apart = both["mean"] - both.mean_published
    z = np.where(error > 0, apart / error.where(error > 0, 1), np.where(np.abs(apart) < 1e-9, 0, np.inf))
    both = both.assign(z=z, alpha=both.alpha.where(both.alpha >= 0))[[*on, "mean", "mean_published", "z"]]
    return both.iloc[np.argsort(-np.abs(z), kind="stable")].reset_index(drop=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m lib.experiments.published", description="Run the experiments at publication size.")
    parser.add_argument("tables", nargs="*", help=f"all of them by default: {', '.join(tables())}")
    wanted = parser.parse_args().tables
    try:
        check_names(wanted, tables())
    except ValueError as error:
        parser.error(error)
    publish(names=wanted)
