"""A decision of a user's filter, on catalogue vectors and on others: python bench/filter.py [--repeats 5] [--out ...]

The reader's UCB is two NumPy lines, x @ mu + alpha sqrt(x @ Sigma @ x) >= cost, with no check and no catalogue.  k = 10 features,
dense items of which `items` make the catalogue; nothing is learned between decisions, so that knowledge gradient and scores find an
item that comes again decided.  Columns: a decision on an item of the catalogue as they come (1,000 of them), over NumPy's; on a
vector outside it that was met before, and on one that is new, over the catalogue's.  The latter are 50 vectors, each new once.
CPU microseconds of one thread, medians of the repeats, which all the ratios of a row share.
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
from lib.dp import program  # noqa: E402
from lib.filter import Filter  # noqa: E402
from lib.problem import make_problem  # noqa: E402

K, ITEMS, DECISIONS, STRANGERS = 10, 500, 1000, 50
RULES = {"exploitation": policies.exploit(), "UCB": policies.ucb(1.0), "Thompson sampling": policies.thompson(),
         "DTD-UCB": policies.dtd_ucb(1.0), "DTD-DP": policies.dtd_dp(), "Bayes-UCB": policies.bayes_ucb(1.0),
         "phased": policies.phased(1.0), "scores": policies.scores(1.0), "knowledge gradient": policies.knowledge_gradient()}
ELSEWHERE = ("DTD-DP", 20), ("DTD-UCB", 100_000), ("DTD-DP", 100_000)       # other sizes of the catalogue


def stream(items):
    """The problem, what arrives, and vectors that are not in the catalogue."""
    rng = np.random.default_rng(K)
    x = rng.dirichlet(np.ones(K), items)
    problem = make_problem(x, np.full(items, 1 / items), np.full(K, .3), .5 * np.eye(K) + .5, .1, .5, .9)
    return problem, [problem.items[i].copy() for i in rng.integers(0, items, DECISIONS)], list(rng.dirichlet(np.ones(K), STRANGERS))


def reader(problem, arrivals, alpha=1.0):
    """UCB as a reader would write it."""
    mu, Sigma, cost = problem.mu, problem.Sigma, problem.cost
    return [x @ mu + alpha * np.sqrt(x @ Sigma @ x) >= cost for x in arrivals]


def row(name, problem, arrivals, strangers, repeats):
    """(microseconds on the catalogue, met before, new; decisions on the catalogue) of a policy's filter."""
    user = Filter(problem, RULES[name])

    def serve(vectors, anew=False):
        user._decided = {}
        if anew:                                                        # as in a service that has just begun
            user._shared.foreign.clear()
            program.MEMORY.clear()
        return [user.decide(x) for x in vectors]
    took, found = seconds(lambda: serve(arrivals), repeats)
    new, before = (seconds(lambda: serve(strangers, anew), repeats)[0] for anew in (True, False))
    return *(1e6 * np.array([took / DECISIONS, before / STRANGERS, new / STRANGERS])), found


def main():
    """Print the table, and write it where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out")
    chosen = parser.parse_args()
    worlds = {ITEMS: stream(ITEMS)}
    problem, arrivals, _ = worlds[ITEMS]
    plain, decided = seconds(lambda: reader(problem, arrivals), chosen.repeats)
    plain *= 1e6 / DECISIONS
    lines = [f"{'':<20}{'items':>8}{'catalogue':>11}{'over NumPy':>12}{'outside':>10}{'over':>7}{'new':>10}{'over':>9}",
             f"{'NumPy, UCB':<20}{ITEMS:>8}{plain:>11.1f}{1.0:>12.2f}"]
    for name, items in [*((name, ITEMS) for name in RULES), *ELSEWHERE]:
        if items not in worlds:
            worlds[items] = stream(items)
        took, before, new, found = row(name, *worlds[items], chosen.repeats)
        assert name != "UCB" or found == decided
        lines.append(f"{name:<20}{items:>8}{took:>11.1f}{took / plain:>12.2f}{before:>10.1f}{before / took:>7.1f}{new:>10.1f}{new / took:>9.1f}")
        print(lines[-1], file=sys.stderr, flush=True)
    print("\n".join(lines))
    if chosen.out:
        Path(chosen.out).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
