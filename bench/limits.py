"""How often the one-sided 95 % limits of sampled bounds hold: python bench/limits.py [--runs 2000] [--out FILE]

Two features, three item types, gamma .9.  What a bound estimates is known from one run with so many draws that its own
error is some twentieth of theirs.  Each line has the share of runs whose limit is not below it: of
the limits as they are, and of mean + 1.645 se, the normal quantile with the items of the first forward taken from the
estimate.  `bias` is in standard deviations `sd` of the estimates.  A share is known to .005 (one standard error at 2,000 runs).
"""
import argparse
import datetime
from functools import partial
from pathlib import Path
import sys

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from lib import bound  # noqa: E402
from lib.problem import make_problem  # noqa: E402

SMALL = make_problem([[1, 0], [0, 1], [.5, .5]], [.4, .4, .2], [0, 0], [[1, .3], [.3, 1]], 1, .2, .9)
EFFORT = {"inner": 2, "effort": 100}


def first(cost, sequences, seed):
    return bound.full_first(SMALL._replace(cost=cost), sequences, seed)


def both(cost, paths, seed):
    return bound.dual_first(SMALL._replace(cost=cost), paths, seed=seed, sequences=4 * paths, **EFFORT)


def any_law(cost, paths, seed):
    """The dual with a limit that rests on no normality."""
    return bound.finite_sample(SMALL._replace(cost=cost), paths, seed=seed, **EFFORT)[1]


def first_any_law(which, cost, paths, seed):
    """The first forward exact, 0, or the dual after it, 1, with such a limit."""
    return bound.finite_sample_first(SMALL._replace(cost=cost), paths, seed=seed, **EFFORT)[which]


CASES = [("first forward exact", first, cost, size, 400_000) for cost in (.2, .5) for size in (32, 100)]
CASES += [("first forward exact, then dual", both, cost, 32, 4_000) for cost in (.2, .5)]
CASES += [("first forward exact", first, .2, 400, 400_000)]
CASES += [("dual, by betting", any_law, cost, size, 20_000) for cost in (.2, .5) for size in (32, 100)]
CASES += [(name, partial(first_any_law, which), cost, 100, 20_000)
          for which, name in enumerate(("first, by betting", "first, then dual, by betting")) for cost in (.2, .5)]


def line(name, make, cost, size, many, runs):
    """One line of the table: a bound, its draws, the truth, and the coverage of both limits."""
    truth = make(cost, many, (1, 0))
    found = [make(cost, size, (2, run)) for run in range(runs)]
    mean, se, upper = (np.array([getattr(b, field) for b in found]) for field in ("mean", "se", "upper"))
    bias = (mean.mean() - truth.mean) / mean.std()
    return (f"{name:30} {cost:4} {size:5} {truth.mean:7.4f} {mean.std():7.4f} {bias:+6.2f} "
            f"{(upper >= truth.mean).mean():6.3f} {(mean + 1.645 * se >= truth.mean).mean():6.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Coverage of the one-sided 95 % limits.")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    lines = [f"{args.runs} runs, {datetime.date.today()}",
             f"{'bound':30} {'cost':>4} {'draws':>5} {'truth':>7} {'sd':>7} {'bias':>6} {'limit':>6} {'normal':>6}"]
    print(*lines, sep="\n", flush=True)
    for case in CASES:
        lines.append(line(*case, args.runs))
        print(lines[-1], flush=True)
    if args.out:
        args.out.write_text("\n".join(lines) + "\n")
