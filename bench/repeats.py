"""How often the 95 % intervals of an experiment hold: python bench/repeats.py [--runs 500] [--users 128] [--out FILE]

The ratings experiment is run again and again, each time on a few users, other ones, and tuned on as many more.  Its intervals
are compared with the published table of 40,000 users, for each policy with the alpha that the run chose:

  mean       of what the policy earns, against the published mean of that alpha
  lead       over UCB with the alpha chosen for it, against the difference of the published means
  others     of what it earns from real users, which says what other real users would bring: each run draws as many as
             there are, with replacement, from those that there are, and the truth is the published mean over these

A share of 500 runs is known to .010 (one standard error).  `known` is the standard error of the published mean in per cent
of that of a run: what the comparison itself cannot see.
"""
import argparse
import datetime
from pathlib import Path
import sys

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from lib.estimate import half_width  # noqa: E402
from lib.experiments import problems, published, runner, specs  # noqa: E402

COSTS = (3.2, 3.6, 3.8, 4.0)


def others(run):
    """The problem of the ratings and its held-out users, drawn anew from those that there are."""
    problem, thetas = problems.rated()
    return problem, thetas[np.random.default_rng((7, run)).integers(len(thetas), size=len(thetas))]


def repetition(name, run, users):
    """Run number `run` of an experiment: one row a cost and policy, its published mean and that of the UCB chosen beside it."""
    spec = specs.SPECS[name]._replace(seed=1000 + run, costs=COSTS, replications=(users,) * 2, tuning=(users,) * 2,
                                      sequences=(2, 2), tol=None)
    if spec.thetas == "held_out":
        spec = spec._replace(problem="others", options=(("run", run),))
    picked, kept = (frame.assign(alpha=frame.alpha.fillna(0).round(6)) for frame in
                    (runner.best(runner.run(spec, progress=False)), published.load(name)))
    on = ["cost", "policy", "alpha"]
    rows = picked.merge(kept[[*on, "mean", "se"]], "left", on, suffixes=("", "_known"), validate="one_to_one")
    ucb = rows[rows.policy == "UCB"].set_index("cost").mean_known
    return rows.assign(lead_known=rows.mean_known - rows.cost.map(ucb))


def table(runs, users):
    """The shares of runs whose intervals hold, one row a cost and policy."""
    mine, real = (pd.concat([repetition(name, run, users) for run in range(runs)]) for name in ("ratings", "ratings_held_out"))
    for rows in (mine, real):
        rows["holds"] = (rows.low - 1e-12 <= rows.mean_known) & (rows.mean_known <= rows.high + 1e-12)
    apart = (mine.difference - mine.lead_known).abs()
    mine["leads"] = (apart <= half_width(mine.difference_se, users) + 1e-12).where(mine.policy != "UCB")
    by = ["cost", "policy"]
    known = 100 * (mine.se_known / mine.se).replace(np.inf, np.nan).groupby([mine.cost, mine.policy], sort=False).median()
    shares = mine.groupby(by, sort=False)[["holds", "leads"]].mean().set_axis(["mean", "lead"], axis=1)
    return shares.assign(others=real.groupby(by, sort=False).holds.mean(), known=known).reset_index()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Coverage of the 95 % intervals of an experiment.")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--users", type=int, default=128)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    problems.PROBLEMS["others"] = others
    found = table(args.runs, args.users)
    text = f"{args.runs} runs of {args.users} users, {datetime.date.today()}\n" + found.to_string(
        index=False, na_rep="", formatters={name: "{:.3f}".format for name in ("mean", "lead", "others")} | {"known": "{:.0f}".format})
    print(text)
    if args.out:
        args.out.write_text(text + "\n")
