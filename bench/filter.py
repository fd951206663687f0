"""A decision of a user's filter, side by side with what a reader would write: python bench/filter.py [--repeats 5] [--out ...]

The reader's UCB is two NumPy lines, x @ mu + alpha sqrt(x @ Sigma @ x) >= cost, with no check and no catalogue.  k = 10 features,
500 dense items (20 for DTD-DP), 1,000 decisions on items of the catalogue as they come; nothing is learned between them, so that
knowledge gradient and scores find an item that comes again decided.  CPU seconds of one thread, medians of the repeats.
"""
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"                                              # before NumPy is imported

import argparse
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from clock import seconds  # noqa: E402
from lib import policies  # noqa: E402
from lib.filter import Filter  # noqa: E402
from lib.problem import make_problem  # noqa: E402

K, ITEMS, DECISIONS = 10, 500, 1000
RULES = {"exploitation": policies.exploit(), "UCB": policies.ucb(1.0), "Thompson sampling": policies.thompson(),
         "DTD-UCB": policies.dtd_ucb(1.0), "DTD-DP": policies.dtd_dp(), "Bayes-UCB": policies.bayes_ucb(1.0),
         "phased": policies.phased(1.0), "scores": policies.scores(1.0), "knowledge gradient": policies.knowledge_gradient()}


def stream(items):
    """The problem and what arrives."""
    rng = np.random.default_rng(K)
    x = rng.dirichlet(np.ones(K), items)
    problem = make_problem(x, np.full(items, 1 / items), np.full(K, .3), .5 * np.eye(K) + .5, .1, .5, .9)
    return problem, [problem.items[i].copy() for i in rng.integers(0, items, DECISIONS)]


def reader(problem, arrivals, alpha=1.0):
    """UCB as a reader would write it."""
    mu, Sigma, cost = problem.mu, problem.Sigma, problem.cost
    return [x @ mu + alpha * np.sqrt(x @ Sigma @ x) >= cost for x in arrivals]


def main():
    """Print the table, and write it where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out")
    chosen = parser.parse_args()
    problem, arrivals = stream(ITEMS)
    few = stream(20)                                # a table of DTD-DP for every item: fewer of them
    plain, decided = seconds(lambda: reader(problem, arrivals), chosen.repeats)
    lines = [f"{'':<20}{'microseconds':>14}{'over NumPy':>12}", f"{'NumPy, UCB':<20}{1e6 * plain / DECISIONS:>14.1f}{1.0:>12.2f}"]
    for name, policy in RULES.items():
        world, coming = few if name == "DTD-DP" else (problem, arrivals)
        user = Filter(world, policy)

        def serve():
            user._decided = {}
            return [user.decide(x) for x in coming]
        took, found = seconds(serve, chosen.repeats)
        assert name != "UCB" or found == decided
        lines.append(f"{name:<20}{1e6 * took / DECISIONS:>14.1f}{took / plain:>12.2f}")
    print("\n".join(lines))
    if chosen.out:
        Path(chosen.out).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
