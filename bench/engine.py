"""Decisions per second on one core, side by side: python bench/engine.py [--repeats 5] [--out bench/results/engine.txt]

Every user has a model of their own and meets T = 100 items; Thompson sampling and UCB (alpha = 1) decide.  Items
are 1,000 dense vectors, theta has mean 0.3 and covariance 0.5 I + 0.5, gamma 0.9; about half is forwarded.
Peers meet items and feedback that are drawn beforehand, and scaled so that their prior, N(0, I) with noise 1,
is the problem's.  lib and the row `with draws` draw users, items, noise and Thompson's normals inside the time,
which is what a simulation costs; `lib, ten alphas` is ten policies on the same streams.  Times are CPU seconds
of one thread, medians of the repeats.  `agrees` is the share of UCB's decisions equal to the rank-one loop's.
"""
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"                                              # before NumPy is imported

import argparse
import platform
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from clock import seconds  # noqa: E402
from lib import policies, simulate  # noqa: E402
from lib.problem import make_problem, noise_var  # noqa: E402
from lib.simulate.instances import group  # noqa: E402

T, ITEMS, QUANTILE = 100, 1000, 0.8413447460685429


class Users(NamedTuple):
    """What R users meet, scaled to prior N(0, I) and noise 1."""

    x: np.ndarray       # (R, T, k)
    y: np.ndarray       # (R, T)
    bar: np.ndarray     # (R, T) forward iff the index reaches it


def make(k):
    """The problem at k features."""
    items = np.random.default_rng(k).dirichlet(np.ones(k), ITEMS)
    Sigma = 0.5 * np.eye(k) + 0.5
    return make_problem(items, np.full(ITEMS, 1 / ITEMS), np.full(k, 0.3), Sigma, 0.1, 0.3, 0.9)


def meet(problem, users):
    """Items and feedback of `users` users."""
    met, sd = simulate.episodes(problem, [policies.exploit()], users, T), np.sqrt(noise_var(problem))
    scaled = problem.items @ np.linalg.cholesky(problem.Sigma) / sd[:, None]
    mean = problem.items @ problem.mu
    return Users(scaled[met.items], (met.feedback - mean[met.items]) / sd[met.items],
                 ((problem.cost - mean) / sd)[met.items])


def loop(users, thompson, rng):
    """NumPy, one rank-one update at a time."""
    R, _, k = users.x.shape
    out = np.zeros((R, T), bool)
    for r in range(R):
        mu, Sigma = np.zeros(k), np.eye(k)
        for n in range(T):
            x = users.x[r, n]
            gain = Sigma @ x
            mean, var = x @ mu, x @ gain
            if mean + (rng.standard_normal() if thompson else 1) * np.sqrt(var) >= users.bar[r, n]:
                out[r, n] = True
                mu += gain * ((users.y[r, n] - mean) / (var + 1))
                Sigma -= np.outer(gain, gain / (var + 1))
    return out


def drawn(problem, users, thompson, rng, size):
    """The same with everything drawn, batch by batch."""
    sd, L = np.sqrt(noise_var(problem)), np.linalg.cholesky(problem.Sigma)
    scaled, cumulative = problem.items @ L / sd[:, None], np.cumsum(problem.probs)
    bar, out = (problem.cost - problem.items @ problem.mu) / sd, []
    for _ in range(0, users, size):
        items = np.searchsorted(cumulative[:-1], rng.random((size, T)), side="right")
        x, w = scaled[items], rng.standard_normal((size, len(L)))
        y = np.matmul(x, w[:, :, None])[..., 0] + rng.standard_normal((size, T))
        out.append(batched(Users(x, y, bar[items]), thompson, rng, size))
    return np.concatenate(out)


def batched(users, thompson, rng, size):
    """NumPy, `size` users at once; the step of those who discard is 0."""
    R, _, k = users.x.shape
    out = np.zeros((R, T), bool)
    for first in range(0, R, size):
        rows = slice(first, first + size)
        x, y, bar = users.x[rows], users.y[rows], users.bar[rows]
        mu, Sigma = np.zeros((len(x), k)), np.tile(np.eye(k), (len(x), 1, 1))
        for n in range(T):
            gain = np.matmul(Sigma, x[:, n, :, None])[..., 0]
            mean, var = (x[:, n] * mu).sum(1), (x[:, n] * gain).sum(1)
            go = mean + (rng.standard_normal(len(x)) if thompson else 1) * np.sqrt(var) >= bar[:, n]
            out[rows, n] = go
            weight = go / (var + 1)
            mu += gain * (weight * (y[:, n] - mean))[:, None]
            Sigma -= gain[:, :, None] * (gain * weight[:, None])[:, None, :]
    return out


def one_by_one(new, index, learn):
    """A peer as a function of (users, thompson, rng): a model a user, its index, its update."""
    def decide(users, thompson, rng):
        R, _, k = users.x.shape
        out = np.zeros((R, T), bool)
        for r in range(R):
            model = new(k, thompson, int(rng.integers(2**31)))
            for n in range(T):
                x = users.x[r, n]
                if index(model, x, thompson, rng) >= users.bar[r, n]:
                    out[r, n] = True
                    learn(model, x, users.y[r, n])
        return out
    return decide


def mabwiser():
    from mabwiser.mab import MAB, LearningPolicy

    def new(k, thompson, seed):
        policy = LearningPolicy.LinTS if thompson else LearningPolicy.LinUCB
        model = MAB([1], policy(alpha=1, l2_lambda=1), seed=seed)
        model.fit([1], [0.0], np.zeros((1, k)))             # an empty fit: it predicts only after one
        return model
    return one_by_one(new, lambda model, x, thompson, rng: model.predict_expectations(x[None])[1],
                      lambda model, x, y: model.partial_fit([1], [y], x[None]))


def contextualbandits():
    from contextualbandits.online import LinTS, LinUCB

    def new(k, thompson, seed):
        model = (LinTS if thompson else LinUCB)(nchoices=2, fit_intercept=False, use_float=False, random_state=seed)
        model.partial_fit(np.zeros((1, k)), np.array([0]), np.array([0.0]))
        return model
    return one_by_one(new, lambda model, x, thompson, rng: model.decision_function(x[None])[0, 0],
                      lambda model, x, y: model.partial_fit(x[None], np.array([0]), np.array([y])))


def river():
    from river.linear_model import BayesianLinearRegression

    def index(model, x, thompson, rng):
        belief = model.predict_one(dict(enumerate(x.tolist())), with_dist=True)
        return belief.mu + (rng.standard_normal() if thompson else 1) * np.sqrt(max(belief.sigma**2 - 1, 0))
    return one_by_one(lambda k, thompson, seed: BayesianLinearRegression(alpha=1, beta=1), index,
                      lambda model, x, y: model.learn_one(dict(enumerate(x.tolist())), y))


def bayesianbandits():
    from bayesianbandits import NormalRegressor

    def index(model, x, thompson, rng):
        draws = model.sample_marginal(x[None], size=1 if thompson else 1000)
        return draws[0, 0] if thompson else np.quantile(draws, QUANTILE)
    return one_by_one(lambda k, thompson, seed: NormalRegressor(alpha=1, beta=1, random_state=seed), index,
                      lambda model, x, y: model.partial_fit(x[None], np.array([y])))


NOTES = {
    "lib, NumPy with draws": "users, items, noise and Thompson's normals are drawn inside the time",
    "NumPy, batched": "the best of batches of 16, 64, 256 and 1,024 users",
    "contextualbandits": "two arms at least, computes both; LinTS draws with the precision as covariance: another law",
    "river": "its sigma contains the noise, taken out here",
    "bayesianbandits": "Thompson draws x.theta exactly; UCB is the quantile of 1,000 draws",
    "mabwiser": "an empty fit first; ridge 1, the only one for which its prior is right before an arm's first fit",
}


@numba.njit
def axpy(y, x, times):
    """times * (y -= s x): what the engine's loops do, without anything else."""
    for n in range(times):
        s = 1e-9 * n
        for a in range(len(y)):
            y[a] -= s * x[a]


def limit(size, repeats):
    """Floating-point operations a second of `axpy` on vectors of `size` numbers."""
    x, times = np.random.default_rng(0).random(size), 20_000_000 // size
    taken, _ = seconds(lambda: axpy(x.copy(), x, times), repeats)
    return 2 * size * times / taken


def operations(problem, decisions):
    """Floating-point operations a decision of the engine's products and updates, for the decisions taken."""
    k, f = len(problem.mu), np.cumsum(decisions, axis=-1) - decisions
    if group(problem, T)[0].vectors:
        return (2 * k * f + 2 * f + 2 * k + decisions * (2 * k * f + 3 * k)).mean()
    return (2 * k * k + 4 * k + decisions * (2 * k * k + 3 * k)).mean()


def measure(k, repeats, write):
    problem = make(k)
    few, some, many = (max(n // k, 4) for n in (60, 240, 60_000))
    small, large = meet(problem, few), meet(problem, max(1024, some))
    sizes = [size for size in (16, 64, 256, 1024) if size * k * k < 3e6]
    peers = [("NumPy, batched", large, lambda u, t, g, size=size: batched(u, t, g, size)) for size in sizes]
    peers += [("NumPy, with draws", large, lambda u, t, g, size=size: drawn(problem, len(u.y), t, g, size))
              for size in sizes]
    peers += [("NumPy, one by one", small, loop)]
    peers += [(peer.__name__, small, peer()) for peer in (mabwiser, contextualbandits, river, bayesianbandits)]
    for thompson, name in ((True, "Thompson sampling"), (False, "UCB")):
        policy = policies.thompson() if thompson else policies.ucb(1)
        users = min(many, 12_800)
        taken, _ = seconds(lambda: simulate.replicate(problem, [policy], users, T), repeats)
        decisions = simulate.episodes(problem, [policy], 500, T).decisions[0]
        own, work = users * T / taken, operations(problem, decisions)
        write(f"\nk = {k}, {name}")
        write(f"  {'lib':20s}{own:14,.0f} a second              forwarded {decisions.mean():.2f}"
              f"   {work:,.0f} operations a decision, {work * own / 1e9:.2f} billion a second")
        if not thompson:
            every = [policies.ucb(alpha) for alpha in policies.ALPHAS]
            taken, _ = seconds(lambda: simulate.replicate(problem, every, users // 5, T), repeats)
            write(f"  {'lib, ten alphas':20s}{users // 5 * T * 10 / taken:14,.0f} a second")
        truth = loop(small, thompson, np.random.default_rng(0))
        best = {}
        for peer, data, decide in peers:
            taken, got = seconds(lambda: decide(data, thompson, np.random.default_rng(0)), repeats)
            same = not thompson and "draws" not in peer
            agrees = f"   agrees {(got[:len(truth)] == truth).mean():.3f}" if same else ""
            best[peer] = max(best.get(peer, (0, "")), (got.size / taken, f"  forwarded {got.mean():.2f}{agrees}"))
        for peer, (rate, note) in sorted(best.items(), key=lambda item: -item[1][0]):
            write(f"  {peer:20s}{rate:14,.0f} a second, lib {own / rate:6,.1f} x{note}")


def machine():
    """Processor and versions, one line each."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = {line.split(":")[1].strip() for line in lines if line.startswith("model name")}
    packages = ("numpy", "numba", "mabwiser", "contextualbandits", "river", "bayesianbandits")
    return [f"{', '.join(names) or platform.processor()}, {platform.system()}, Python {platform.python_version()}",
            ", ".join(f"{name} {version(name)}" for name in packages)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "engine.txt")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    args.out.parent.mkdir(exist_ok=True)
    with open(args.out, "w", encoding="utf-8") as file:
        def write(line):
            print(line, flush=True)
            print(line, file=file)
        write(f"Decisions a second of CPU time, one thread, T = {T}, a model a user; medians of {args.repeats}.")
        for line in machine():
            write(line)
        for label, note in NOTES.items():
            write(f"{label}: {note}.")
        near, far = limit(512, args.repeats), limit(40_000, args.repeats)
        write(f"The core's limit, y -= s x: {near / 1e9:.1f} billion operations a second in the first cache, "
              f"{far / 1e9:.1f} in the second.")
        for k in (6, 10, 100):
            measure(k, args.repeats, write)


if __name__ == "__main__":
    main()
