"""Time and peak memory of very many items: python bench/catalogue.py [--items 100 1000 ...] [--features 4 ...] [--out FILE]

Items are n dense vectors of k features under a correlated prior, gamma .9, lives of 100 items.  Each line is a process of its own on
one thread, in CPU seconds.  It first does everything at n = 100, so that kernels are loaded; `memory` is by how much its high-water
mark then rises, in MB, and `/nk` the same in units of the items' own array, 8 n k bytes.  `setup` is what a simulation takes
before its first user.  UCB, DTD-UCB, Thompson and KG (knowledge gradient) are thousands of decisions a second, and in brackets
relative to n = 100 in the same process, and to n = 100 with each item met once: the same work, as no item comes back.  DTD-DP
is the seconds of its tables, hindsight and full of these bounds (50 sequences), first of the first forward made exact (64 sampled
items, or all at n = 100), dual of the dual after it (two paths an item).

`--tables N` compares DTD-DP on N dense items of 10 features, whose tables are shared, with a table for each item's own law:
CPU seconds an item, the difference in benefit / sd over all items, net means and precisions, and values on common users.
`--theorem N ...` brackets Theorem 1 for N items of 4 features that sum to 1, to 1 %: width over value, CPU seconds, and by how
much the process's high-water mark rises above what it is with 1,000 items, in MB, the items' own array apart; then for the
catalogues of SIGNED, beside hindsight.
`--limits RUNS` counts instead how often the one-sided 95 % limit from sampled items holds at n = 60, where the finite sum is known.
"""
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"                                              # before NumPy is imported

import argparse
import datetime
from pathlib import Path
import resource
import subprocess
import sys
import time

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from lib import bound, policies, simulate  # noqa: E402
from lib.dp import exploration_benefits  # noqa: E402
from lib.policies import directions  # noqa: E402
from lib.policies.index import explored  # noqa: E402
from lib.posterior import variances  # noqa: E402
from lib.problem import make_problem, noise_var  # noqa: E402
from lib.simulate.instances import group  # noqa: E402
from lib.simulate.replications import _player  # noqa: E402

ITEMS, FEATURES, FIRST = (100, 1000, 10_000, 100_000, 1_000_000), (4, 16, 64, 128), 64
RULES = {"UCB": policies.ucb(.5), "DTD-UCB": policies.dtd_ucb(1.0), "Thompson": policies.thompson(),
         "KG": policies.knowledge_gradient()}
SIGNED = (1000, 4), (20_000, 32), (100_000, 50)      # signed catalogues of which Theorem 1 is bracketed
SECONDS = ("setup", "DTD-DP", "hindsight", "full", "first", "dual")


def make(n, k):
    """n dense items whose features sum to 1, under a prior with correlated features."""
    items = np.random.default_rng(k).random((n, k))
    items /= items.sum(axis=1, keepdims=True)
    Sigma = 0.5 * np.eye(k) + 0.5
    return make_problem(items, np.full(n, 1 / n), np.full(k, .3), Sigma, .1, .5, .9)


def seconds(function):
    """CPU seconds of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def rate(problem, policy, stream):
    """Decisions a second, the best of three, and the seconds before the first."""
    start = time.process_time()
    fill = _player(problem, [policy], group(problem, stream.items.shape[1])[0])
    setup = time.process_time() - start
    rewards = np.empty((1, len(stream.items)))
    decisions = np.empty((1, *stream.items.shape), bool)
    return stream.items.size / min(seconds(lambda: fill(stream, rewards, decisions)) for _ in range(3)), setup


def met(problem, users):
    """What users meet in 100 items."""
    life = simulate.episodes(problem, [policies.exploit()], users)
    return simulate.Stream(life.items, life.feedback, np.zeros(life.items.shape),
                           np.random.default_rng(0).standard_normal(life.items.shape))


def once(problem, users):
    """What users meet who see each of 100 items once, in an order of their own."""
    rng = np.random.default_rng(1)
    items = np.array([rng.permutation(100) for _ in range(users)])
    worth = np.take_along_axis(rng.multivariate_normal(problem.mu, problem.Sigma, users) @ problem.items.T, items, axis=1)
    feedback = worth + np.sqrt(noise_var(problem))[items] * rng.standard_normal(items.shape)
    return simulate.Stream(items, feedback, np.zeros(items.shape), rng.standard_normal(items.shape))


def measure(problem):
    """Decisions a second of each policy, and seconds of everything else."""
    found, stream = {}, met(problem, 128)
    for name, policy in RULES.items():
        found[name], setup = rate(problem, policy, stream)
        found.setdefault("setup", setup)
        if len(problem.items) == 100:
            found[name + " once"] = rate(problem, policy, once(problem, 128))[0]
    exploration_benefits.cache_clear()
    found["DTD-DP"] = seconds(lambda: policies.compile_rules(problem, [policies.dtd_dp()]))
    found["hindsight"] = seconds(lambda: bound.hindsight(problem))
    found["full"] = seconds(lambda: bound.full_observation(problem, 50, 0))
    items = None if len(problem.items) <= 100 else FIRST
    found["first"] = seconds(lambda: bound.full_first(problem, 50, 0, items))
    found["dual"] = seconds(lambda: bound.dual_first(problem, 2 * FIRST, 2, 200, 0, 50, items))
    return found


def memory():
    """The high-water mark of this process, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def line(n, k):
    """One line of the table."""
    small = measure(make(100, k))
    before = memory()
    found, own = (measure(make(n, k)), n * k * 8 / 1e6) if n > 100 else (small, .08 * k / 100)
    rose = memory() - before
    rates = " ".join(f"{found[name] / 1e3:8.1f} ({found[name] / small[name]:4.2f} {found[name] / small[name + ' once']:4.2f})" for name in RULES)
    return f"{n:8} {k:4} {rose:8.1f} {rose / own:7.1f} {rates} " + " ".join(f"{found[name]:9.3f}" for name in SECONDS)


def header():
    """The names of the columns."""
    return (f"{'n':>8} {'k':>4} {'memory':>8} {'/nk':>7} " + " ".join(f"{name:>20}" for name in RULES) + " "
            + " ".join(f"{name:>9}" for name in SECONDS))


def limits(runs):
    """Lines: how often the limit from sampled items is not below the bound that the finite sum gives."""
    lines = [f"{'after it':>16} {'cost':>5} {'items':>6} {'truth':>8} {'mean':>8} {'limit':>8} {'holds':>6}"]
    rng = np.random.default_rng(60)
    problem = make_problem(rng.dirichlet(np.ones(3), 60), rng.dirichlet(np.full(60, 3.0)), [.3, .5, .4], .5 * np.eye(3) + .2, .5, .5, .9)

    def full(at, sequences, seed, items=None):
        return bound.full_first(at, sequences, seed, items)

    def dual(at, sequences, seed, items=None):
        """Two paths an item: what a searcher of so little effort charges is compared with itself."""
        return bound.dual_first(at, 2 * items if items else 30 * sequences, 2, 100, seed, sequences, items)

    for after, make, cost in [("full observation", full, cost) for cost in (.4, .8, .9)] + [("dual", dual, cost) for cost in (.4, .8, .9)]:
        at = problem._replace(cost=cost)
        truth = make(at, 4000, (1, 0)).mean
        for items in (32, 128):
            found = [make(at, 100, (2, run), items) for run in range(runs)]
            mean, upper = (np.array([getattr(b, field) for b in found]) for field in ("mean", "upper"))
            lines.append(f"{after:>16} {cost:5} {items:6} {truth:8.4f} {mean.mean():8.4f} {upper.mean():8.4f} {(upper >= truth).mean():6.3f}")
            print(lines[-1], flush=True)
    return lines


def theorem(sizes, k=4):
    """Lines: Theorem 1 for catalogues of these sizes, smallest first."""
    bound.decomposition(make(1000, k), .01)                             # kernels are loaded
    lines, base = [f"{'n':>8} {'lower':>9} {'upper':>9} {'width':>7} {'seconds':>8} {'MB':>7}"], memory()
    print(lines[0], flush=True)
    for n in sizes:
        problem, start = make(n, k), time.process_time()
        found = bound.decomposition(problem, .01)
        spent, extra = time.process_time() - start, max(memory() - base - problem.items.nbytes / 1e6, 0)
        lines.append(f"{n:8} {found.lower:9.5f} {found.upper:9.5f} {(found.upper - found.lower) / found.value:7.4f} {spent:8.1f} {extra:7.0f}")
        print(lines[-1], flush=True)
    return lines


def general(sizes):
    """Lines: Theorem 1 of dense signed items, (n, k) each, beside hindsight."""
    lines = ["signed items", f"{'n':>8} {'k':>4} {'lower':>9} {'upper':>9} {'seconds':>8} {'hindsight':>10}"]
    print(*lines, sep="\n", flush=True)
    for n, k in sizes:
        rng = np.random.default_rng(0)
        A, items = rng.standard_normal((k, k)) / np.sqrt(k) * .6, rng.standard_normal((n, k)) * .3 + .2
        problem = make_problem(items, np.full(n, 1 / n), rng.standard_normal(k) * .3, A @ A.T, .8, .5, .9, noise="constant")
        start = time.process_time()
        found = bound.decomposition_for(problem)
        lines.append(f"{n:8} {k:4} {found.lower:9.4f} {found.upper:9.4f} {time.process_time() - start:8.1f} {bound.hindsight(problem):10.4f}")
        print(lines[-1], flush=True)
    return lines


def each_own_table(function):
    """What `function` gives where every item has a table of its own law."""
    usual, directions.FEW = directions.FEW, 10**6
    try:
        return function()
    finally:
        directions.FEW = usual


def benefits(problem, rules):
    """(n, variances, net means) exploration benefit / sd."""
    prior, z, shrunk = variances(problem.items, problem.Sigma), np.linspace(-1.5, 0, 16), np.exp([0, -.5, -1, -2, -3])
    return np.array([[[explored(rules, 0, i, a, prior[i] * s) for a in z] for s in shrunk] for i in range(len(prior))])


def tables(n, users=20_000):
    """Lines: shared tables against one for each item."""
    rng, rule = np.random.default_rng(3), [policies.dtd_dp()]
    items, A = rng.dirichlet(np.full(10, .5), n), rng.standard_normal((10, 10))
    problem = make_problem(items, np.full(n, 1 / n), rng.normal(.3, .3, 10), .5 * np.eye(10) + .05 * A @ A.T, .5, .5, .9)
    policies.compile_rules(make(100, 10), rule)                         # kernels are loaded
    start, shared = time.process_time(), policies.compile_rules(problem, rule)
    middle, own = time.process_time(), each_own_table(lambda: policies.compile_rules(problem, rule))
    end, apart = time.process_time(), benefits(problem, shared) - benefits(problem, own)
    lines = [f"{n} items: {1e3 * (middle - start) / n:.1f} ms an item shared, {1e3 * (end - middle) / n:.0f} ms each its own",
             f"benefit / sd, difference: root mean square {np.sqrt((apart**2).mean()):.4f}, 99 % below "
             f"{np.quantile(abs(apart), .99):.4f}, largest {abs(apart).max():.4f}",
             f"{'cost':>5} {'shared':>9} {'own':>9} {'s.e.':>8} {'shared - own':>13} {'s.e.':>8}"]
    for cost in (.1, .3, .5, .7):
        def earned(at=problem._replace(cost=cost)):
            return simulate.replicate(at, rule, users, seed=5)[0]
        with_shared, with_own = earned(), each_own_table(earned)
        gap, root = with_shared - with_own, users**.5
        lines.append(f"{cost:5} {with_shared.mean():9.5f} {with_own.mean():9.5f} {with_own.std() / root:8.5f} "
                     f"{gap.mean():13.5f} {gap.std() / root:8.5f}")
    print(*lines, sep="\n", flush=True)
    return lines


def table(sizes, out):
    """The lines of all sizes, each from a process of its own."""
    lines = [header()]
    print(lines[0], flush=True)
    for n, k in sizes:
        run = subprocess.run([sys.executable, __file__, "--one", str(n), str(k)], capture_output=True, text=True)
        lines.append(run.stdout.rstrip("\n") if run.returncode == 0 else f"{n:8} {k:4} failed: {run.stderr.strip()[-200:]}")
        print(lines[-1], flush=True)
        if out:                                                         # what is there stays if a later size is too large
            out.write_text("\n".join([f"one thread, CPU seconds, {datetime.date.today()}", *lines]) + "\n")
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Time and memory against the number of items and features.")
    parser.add_argument("--items", type=int, nargs="+", default=ITEMS)
    parser.add_argument("--features", type=int, nargs="+", default=FEATURES)
    parser.add_argument("--one", type=int, nargs=2)
    parser.add_argument("--limits", type=int)
    parser.add_argument("--tables", type=int)
    parser.add_argument("--theorem", type=int, nargs="+")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.one:
        print(line(*args.one))
    else:
        lines = [f"{args.limits} runs, {datetime.date.today()}", *limits(args.limits)] if args.limits else [
            f"20,000 users, {datetime.date.today()}", *tables(args.tables)] if args.tables else [
            f"one thread, {datetime.date.today()}", *theorem(args.theorem), *general(SIGNED)] if args.theorem else [
            f"one thread, CPU seconds, {datetime.date.today()}", *table([(n, k) for n in args.items for k in args.features], args.out)]
        if args.out:
            args.out.write_text("\n".join(lines) + "\n")
