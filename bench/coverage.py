"""How often the 95 % intervals of an experiment hold: python bench/coverage.py [--runs 500] [--users 256] [--out FILE]

The ratings experiment is run again and again, each time on other users, a few of them, and each interval is compared with the
published table of 40,000 users.  What is printed for each policy with the alpha that this run chose:

  mean         the interval of its mean, against the published mean of that alpha
  lead         its difference to UCB with the alpha chosen, against the difference of the published means
  held out     the interval of its mean over real users, which says what other real users would bring: each run has
               as many as there are, drawn with replacement, and the truth is the mean over all of them

A share is known to .01 (one standard error at 500 runs); the published means have errors of their own, at most `known`
of the width of the intervals.
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


def checks(rows, truth, centre=None):
    """For each policy with its chosen alpha: whether its interval, and that of its lead, hold what was published.

    `centre` stands for the published mean where the users are others.
    """
    picked, here = runner.best(rows), truth.set_index(["policy", "alpha"])["mean"]
    at = [here.loc[(row.policy, row.alpha)] for row in picked.itertuples()]
    ucb = at[list(picked.policy).index("UCB")]
    holds = (picked.low <= at) & (at <= picked.high)
    half = half_width(picked.difference_se_users, picked.replications.iloc[0])
    lead = np.abs(picked.difference - (np.array(at) - ucb)) <= half + 1e-12
    return pd.DataFrame({"cost": picked.cost, "policy": picked.policy, "mean": holds, "lead": lead.where(picked.policy != "UCB")})


def once(spec, table, run, users, tuning):
    """One repetition of an experiment: the checks of all costs."""
    rows = runner.run(spec._replace(seed=1000 + run, replications=(users,) * 2, tuning=(tuning,) * 2, sequences=(2, 2), tol=None),
                      progress=False)
    return pd.concat([checks(part, table[table.cost == cost]) for cost, part in rows.groupby("cost")])


def resampled(run):
    """The held-out spec with its users drawn anew from those that there are."""
    def people():
        problem, thetas = problems.rated()
        return problem, thetas[np.random.default_rng((7, run)).integers(len(thetas), size=len(thetas))]
    problems.PROBLEMS["resampled"] = people
    specs.build.cache_clear()
    return specs.SPECS["ratings_held_out"]._replace(problem="resampled", costs=COSTS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Coverage of the 95 % intervals of an experiment.")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--users", type=int, default=256)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
