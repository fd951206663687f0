"""Is this tree as fast as another one?  python bench/against.py OLD_TREE [--pairs 15] [--only WORD] [--out FILE]

OLD_TREE is a checkout of an earlier commit.  One process a tree is kept alive; they do the same jobs in turn, old first
in one pair and new first in the next, and never at once.  Times are CPU seconds of one thread, compiled before.  A row
has the median and quartiles of the pairs' ratios new/old, and the ratio of the two smallest times as a check: a busy
machine spreads the quartiles, and a job is slower only where both are.  `differs` is by how much the two results do,
relatively.
"""
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"                                              # before NumPy is imported
os.environ.pop("BOOK_TABLES", None)                                     # no tables from disk

import argparse
import importlib
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]


def named(*places):
    """What the first of the dotted names that exists stands for: things have moved between the trees."""
    for place in places:
        module, _, name = place.rpartition(".")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise ValueError(f"none of {', '.join(places)} exists in this tree")


def dense(k=6, items=1000):
    """Dense items and a correlated prior, as in bench/engine.py."""
    x, Sigma = np.random.default_rng(k).dirichlet(np.ones(k), items), 0.5 * np.eye(k) + 0.5
    return named("lib.problem.make_problem")(x, np.full(items, 1 / items), np.full(k, 0.3), Sigma, 0.1, 0.3, 0.9)


def units(n=100):
    """Unit vectors and an independent prior."""
    return named("lib.problem.make_problem")(np.eye(n), np.full(n, 1 / n), np.full(n, 0.3), np.eye(n), 1.0, 0.5, 0.9)


def solve(count, tol, repeats):
    """dp.solve of so many magnitudes from nothing, several times; what the problem is worth at net mean 0."""
    dp, memory = importlib.import_module("lib.dp"), named("lib.dp.program.MEMORY", "lib.grids.MEMORY")
    rng = np.random.default_rng(count)
    x, probs = np.sort(rng.uniform(0.05, 1, count)), rng.dirichlet(np.full(count, 5.0))

    def job():
        for _ in range(repeats):
            memory.clear()
            table = dp.solve(x, probs, 0.9, 1.0, 1.0, tol=tol, between=False)
        return dp.value(table, 0.0, 1.0).value
    return job


def full(problem, sequences):
    full_observation = named("lib.bound.full_observation", "lib.relaxations.full_observation")
    return lambda: full_observation(problem, sequences, 0, 100).mean


def charges(problem, paths):
    least_charges = named("lib.bound.least_charges", "lib.losses.least_charges")
    return lambda: least_charges(problem, np.full(paths, -1), effort=500).mean()


def replicate(problem, policy, users, *settings):
    simulate, policies = named("lib.simulate.replicate"), [named(*policy)(*settings)]
    return lambda: simulate(problem, policies, users, 100).mean()


def whole(policy):
    """Where a policy that looks at the whole belief is."""
    return f"lib.policies.{policy}", f"lib.lookahead.{policy}"


UCB, THOMPSON = ("lib.policies.ucb",), ("lib.policies.thompson",)
JOBS = {
    "dp.solve, one magnitude": lambda: solve(1, 1e-4, 20),
    "dp.solve, 32 magnitudes": lambda: solve(32, 1e-2, 1),
    "full observation, k = 6": lambda: full(dense(), 2000),
    "full observation, 100 unit items": lambda: full(units(), 100),
    "least charges, k = 6": lambda: charges(dense(items=50), 16),
    "least charges, 10 unit items": lambda: charges(units(10), 16),
    "replicate, UCB, k = 6": lambda: replicate(dense(), UCB, 5000, 1),
    "replicate, Thompson, k = 6": lambda: replicate(dense(), THOMPSON, 5000),
    "replicate, UCB, 100 unit items": lambda: replicate(units(), UCB, 10_000, 1),
    "replicate, Thompson, 100 unit items": lambda: replicate(units(), THOMPSON, 10_000),
    "knowledge gradient, k = 6": lambda: replicate(dense(items=100), whole("knowledge_gradient"), 100),
    "knowledge gradient, 30 unit items": lambda: replicate(units(30), whole("knowledge_gradient"), 100),
    "lookahead on scores, k = 6": lambda: replicate(dense(items=100), whole("scores"), 2000),
    "information-directed, k = 6": lambda: replicate(dense(items=100), whole("information_directed"), 100),
    "rollout, k = 6": lambda: replicate(dense(items=100), whole("rollout"), 4, 1, 20),
}


def serve(tree):
    """Do the jobs whose names come in, one a line, and print CPU seconds and result."""
    sys.path.insert(0, tree)
    made = {}
    for line in sys.stdin:
        name = line.strip()
        made.setdefault(name, JOBS[name]())
        start = time.process_time()
        result = made[name]()
        print(time.process_time() - start, result, flush=True)


def worker(tree):
    """A process that serves jobs in `tree`, with compiled code of its own."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tree / "_build" / "numba-against")}
    return subprocess.Popen([sys.executable, __file__, "--serve", str(tree)], stdin=subprocess.PIPE, text=True,
                            stdout=subprocess.PIPE, env=environment, cwd=tree)


def ask(process, name):
    """(CPU seconds, result) of one job."""
    print(name, file=process.stdin, flush=True)
    answer = process.stdout.readline()
    if not answer:
        raise ChildProcessError(f"the job {name!r} ended with an error, printed above")
    return tuple(map(float, answer.split()))


def compare(name, old, new, pairs):
    """Times (pairs, 2) of a job, old and new in turn, and how much the results differ."""
    (_, was), (_, now) = ask(old, name), ask(new, name)                 # not counted
    times = np.empty((pairs, 2))
    for n in range(pairs):
        for side in (0, 1) if n % 2 else (1, 0):
            times[n, side] = ask((old, new)[side], name)[0]
    return times, abs(now - was) / max(abs(was), 1e-300)


def commit(tree):
    """The commit that a tree is at."""
    command = ["git", "-C", str(tree), "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def report(write, old_tree, pairs, word):
    old, new = worker(old_tree), worker(ROOT)
    write(f"Old {commit(old_tree)}, new {commit(ROOT)}: {pairs} pairs in turn, CPU time of one thread on {os.cpu_count()} "
          f"cores, load average {os.getloadavg()[0]:.1f}.")
    write(f"{'':37}{'old ms':>8} {'new ms':>8} {'new/old':>8}  {'quartiles':13}{'minima':>8}  differs")
    for name in (name for name in JOBS if word in name):
        times, differs = compare(name, old, new, pairs)
        low, middle, high = np.quantile(times[:, 1] / times[:, 0], (.25, .5, .75))
        least, (was, now) = times.min(axis=0), 1e3 * np.median(times, axis=0)
        write(f"{name:37}{was:8.1f} {now:8.1f} {middle:8.3f}  {low:.3f}, {high:.3f} {least[1] / least[0]:8.3f}  {differs:.0e}")
    write(f"Load average at the end {os.getloadavg()[0]:.1f}.")
    for process in (old, new):
        process.stdin.close()
        process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path, nargs="?", help="a checkout of an earlier commit")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--only", default="", metavar="WORD", help="the jobs whose name holds it")
    parser.add_argument("--out", type=Path, help="a file for the table")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return serve(args.serve)
    if args.old is None or not (args.old / "lib").is_dir():
        parser.error(f"OLD_TREE is {args.old}: it must be a checkout with the folder lib")
    lines = []

    def write(line):
        print(line, flush=True)
        lines.append(line)
    report(write, args.old.resolve(), args.pairs, args.only)
    if args.out:
        args.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
