"""The single-feature problem, side by side: python bench/dp.py [--repeats 9] [--out bench/results/dp.txt]

x in {0, 1}, p = .5, gamma .9, noise variance .1, prior variance 1: time to equal error, largest over five means,
against QuantEcon's DiscreteDP (value, policy and modified policy iteration) and against backward sweeps in plain
NumPy.  Truth is the middle of a bracket ten thousand times narrower.  A peer gets the cheapest setting that keeps
the error: (points, levels, reach in prior sd, bend) of its grid of means, with levels and reach converged; `errors
cancel` is the cheapest of all, where what is cut off makes up for the chords: it can be found only because the
truth is known.  lib's error is counted twice, as that of its best value and as half the width of its bracket, which
holds whatever the truth is; the peers have no bracket.
Then lib alone: many magnitudes, growth with their number, with 1/width and with 1/(1 - gamma), and memory.
CPU seconds of one thread, medians; compiled before; lib's memory of tables is emptied before every solve.
"""
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"                                              # before NumPy is imported
os.environ.pop("BOOK_TABLES", None)                                     # no tables from disk

import argparse
import datetime
import itertools
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scipy.sparse
from scipy.special import ndtr

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from clock import seconds  # noqa: E402
from lib import dp  # noqa: E402
from lib.dp import program  # noqa: E402

P, GAMMA, B0 = 0.5, 0.9, 0.1
SCALE = B0**0.5                                 # noise_sd, in reward units: the prior variance is 1
NET = np.array([-0.4, -0.2, 0.0, 0.2, 0.4])     # mean - cost, reward units
POINTS = (51, 71, 101, 141, 201, 251, 301, 401, 601, 851, 1201)
ERROR = 2.3e-4                                  # reward units; values are .54 to 2.4


def solve(x, probs, gamma, noise_sd, tol, **options):
    """dp.solve from nothing."""
    program.MEMORY.clear()
    return dp.solve(x, probs, gamma, noise_sd, 1, tol=tol, between=False, **options)


def psi(z):
    return z * ndtr(z) + np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)


def step(level):
    """Standard deviation of the move of the mean after `level` observations."""
    return np.sqrt(1 / (B0 + level) - 1 / (B0 + level + 1))


# --- QuantEcon: states (level, mean), actions discard and forward, values before x is seen

def grid(points, reach, bend):
    """An odd number of means within reach prior standard deviations, `bend` times log-denser in the middle."""
    u = np.linspace(-1, 1, points | 1)
    return reach / np.sqrt(B0) * (np.sinh(bend * u) / np.sinh(bend) if bend else u)


def transitions(m, t):
    """(n, n) exact Gaussian integrals of the hat functions of the grid m, its ends absorbing."""
    calls = t * psi((m[:, None] - m) / t)
    slopes = np.diff(calls, axis=1) / np.diff(m)
    W = np.zeros_like(calls)
    W[:, 1:-1] = np.diff(slopes, axis=1)
    W[:, -1] = -slopes[:, -1]
    W[W < 1e-10] = 0
    W[:, 0] = np.maximum(1 - W[:, 1:].sum(axis=1), 0)
    return W


def quantecon_problem(points, levels, reach, bend):
    """The DiscreteDP, sparse state-action pairs, and its grid of means."""
    from quantecon.markov import DiscreteDP
    m = grid(points, reach, bend)
    points = m.size
    states = np.arange(points * levels)
    rows, columns, weights = [2 * states], [states], [np.ones(states.size)]                 # discard
    rows, columns, weights = rows + [2 * states + 1], columns + [states], weights + [np.full(states.size, 1 - P)]
    for level in range(levels):
        last = level == levels - 1
        W = np.eye(points) if last else transitions(m, step(level))
        i, j = np.nonzero(W)
        rows.append(2 * (level * points + i) + 1)
        columns.append((level + 1 - last) * points + j)
        weights.append(P * W[i, j])
    Q = scipy.sparse.csr_matrix((np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns))))
    R = np.column_stack((np.zeros(states.size), np.tile(P * m, levels))).ravel()
    return DiscreteDP(R, Q, GAMMA, np.repeat(states, 2), np.tile([0, 1], states.size)), m


def quantecon(method):
    """(build, run) of one method: run(build(*setting)) gives the values at NET in reward units."""
    def run(built):
        problem, m = built
        options = {} if method == "policy_iteration" else {"epsilon": 1e-4}
        value = problem.solve(method=method, max_iter=10_000, **options).v
        return SCALE * np.interp(NET / SCALE, m, value[:m.size])
    return quantecon_problem, run


# --- backward sweeps in NumPy: one level after the other, the discarded item solved in closed form

def sweep(m, levels, forward):
    """w at level 0; forward(D, level) = E D(m + t Z) for D = w - K max(m, 0) of the level above."""
    K, kink, D = P / (1 - GAMMA), np.maximum(m, 0), np.zeros_like(m)
    for level in range(levels - 1, -1, -1):
        t = step(level)
        w = P * (m + GAMMA * (K * t * psi(m / t) + forward(D, level))) / (1 - GAMMA * (1 - P))
        D = np.maximum(w, 0) - K * kink
    return SCALE * np.interp(NET / SCALE, m, D + K * kink)


def numpy_quadrature(points, levels, reach, bend):
    """121 Gauss-Hermite nodes and np.interp."""
    m = grid(points, reach, bend)
    z, weight = np.polynomial.hermite_e.hermegauss(121)
    weight = weight / weight.sum()
    return sweep(m, levels, lambda D, level: np.interp(m[:, None] + step(level) * z, m, D) @ weight)


def numpy_matrix(points, levels, reach, bend):
    """The integrals of the hat functions, a matrix a level."""
    m = grid(points, reach, bend)
    return sweep(m, levels, lambda D, level: transitions(m, step(level)) @ D)


def numpy_convolution(points, levels, reach, bend):
    """The same integrals on an even grid, where the distance alone matters: a convolution a level."""
    m = grid(points, reach, 0)
    d = m[1] - m[0]

    def forward(D, level):
        t = step(level)
        half = min(int(6 * t / d) + 1, m.size - 1)
        weights = np.diff(t * psi(np.arange(-half - 1, half + 2) * d / t), 2) / d
        full = np.convolve(D, weights)
        return full[half:half + m.size]
    return sweep(m, levels, forward)


def converged(build, run):
    """(levels, reach): the smallest that change no value by more than a tenth of ERROR."""
    def smallest(choices, setting):
        values = [run(build(*setting(choice))) for choice in choices]
        return next(c for c, v in zip(choices, values) if np.abs(v - values[-1]).max() < ERROR / 10)
    levels = smallest((8, 10, 12, 15, 20, 25, 30, 45), lambda levels: (201, levels, 5, 3))
    return levels, smallest((2.5, 3, 3.5, 4, 4.5, 5, 6), lambda reach: (int(60 * reach), levels, reach, 0))


def cheapest(build, run, settings, truth, repeats):
    """The fastest setting whose error is at most ERROR: (build + run seconds, run seconds, error, setting) or None."""
    best = None
    for setting in settings:
        if best and setting[0] * setting[1] > 3 * best[3][0] * best[3][1]:
            continue
        start = time.process_time()
        error = np.abs(run(build(*setting)) - truth).max()
        if error <= ERROR and (best is None or time.process_time() - start < 3 * best[0]):
            both = seconds(lambda: run(build(*setting)), repeats)[0]
            if best is None or both < best[0]:
                built = build(*setting)
                best = both, seconds(lambda: run(built), repeats)[0], error, setting
    return best


def own(certify, width, truth, repeats):
    """(seconds, error, half width) of the loosest tolerance at which the error (or the half width) is at most ERROR."""
    for tol in 2.0 ** np.arange(-1, -16, -0.5):
        table = solve([0, 1], [1 - P, P], GAMMA, SCALE, tol, certify=certify)
        bracket = dp.value(table, NET, 1.0) if certify else None
        value = bracket.value if certify else dp.q_values(table, NET, 1.0, 1.0)[0] / GAMMA
        error = np.abs(value - truth).max()
        half = (bracket.upper - bracket.lower).max() / 2 if certify else np.nan
        if (half if width else error) <= ERROR:
            break
    taken = seconds(lambda: solve([0, 1], [1 - P, P], GAMMA, SCALE, tol, certify=certify), repeats)[0]
    return taken, error, half, tol


def side_by_side(repeats, write):
    fine = dp.value(solve([0, 1], [1 - P, P], GAMMA, SCALE, 2.0**-25), NET, 1.0)
    truth = (fine.lower + fine.upper) / 2
    write(f"\nEqual error {ERROR} on x in {{0, 1}}; truth within {(fine.upper - fine.lower).max() / 2:.1e}.")
    write(f"{'':42}{'ms':>8} {'run ms':>8} {'error':>8}  certified   setting")
    ours = {}
    for name, certify, width in (("lib, half the bracket below", True, True),
                                 ("lib, error below, with bracket", True, False),
                                 ("lib, error below, no bracket", False, False)):
        taken, error, half, tol = own(certify, width, truth, 4 * repeats)
        ours[name], within = taken, f"+- {half:.1e}" if certify else "no"
        write(f"{name:42}{1e3 * taken:8.2f} {1e3 * taken:8.2f} {error:8.1e}  {within:10}  tol {tol:.1e}")
    certified, close = list(ours.values())[:2]
    peers = [(f"QuantEcon, {name.replace('_', ' ')}", *quantecon(name))
             for name in ("value_iteration", "policy_iteration", "modified_policy_iteration")]
    peers += [(f"NumPy, {name}", lambda *setting: setting, lambda setting, f=f: f(*setting)) for name, f in (
        ("quadrature and np.interp", numpy_quadrature), ("matrix a level", numpy_matrix),
        ("convolution", numpy_convolution))]
    for name, build, run in peers:
        points = POINTS if "convolution" in name else POINTS[:9]
        bends = (0,) if "convolution" in name else (0, 2, 3, 4)
        enough = converged(build, run)
        shapes = {"": [(n, *enough, bend) for n in points for bend in bends],
                  ", even grid": [(n, *enough, 0) for n in points if len(bends) > 1],
                  ", errors cancel": itertools.product(POINTS[:5], (6, 8, 10, 15), (3, 4, 5), bends[::2])}
        for label, settings in shapes.items():
            best = cheapest(build, run, settings, truth, repeats)
            if best is None and label != ", even grid":
                write(f"{name + label:42} no setting reaches the error")
            if best is None:
                continue
            both, alone, error, setting = best
            write(f"{name + label:42}{1e3 * both:8.2f} {1e3 * alone:8.2f} {error:8.1e}  no          {setting}")
            write(f"  lib faster {both / certified:.1f} x (half the bracket below), {both / close:.1f} x (error below)"
                  + (f"; {alone / certified:.1f} x, {alone / close:.1f} x the solver alone" if "Quant" in name else ""))


# --- lib alone

def magnitudes(n):
    rng = np.random.default_rng(n)
    return np.sort(rng.uniform(0.05, 1, n)), rng.dirichlet(np.full(n, 5.0))


def relative(table):
    bracket = dp.value(table, 0.0, 1.0)
    return float((bracket.upper - bracket.lower) / bracket.value)


def to_width(x, probs, gamma, width, noise_sd=1.0):
    """(seconds, width) of one solve whose relative width at m = 0 is just below `width`."""
    tol = 0.8 * width
    for _ in range(4):
        start = time.process_time()
        got = relative(solve(x, probs, gamma, noise_sd, tol))
        taken = time.process_time() - start
        if 0.6 * width <= got <= width:
            break
        tol *= 0.85 * width / got
    return taken, got


def growth(pairs):
    """Slope of log seconds over the log of the other."""
    return np.polyfit(*np.log(np.array(pairs)).T, 1)[0]


def alone(write):
    write("\n32 magnitudes, noise variance 1, gamma .9: seconds to a relative width at m = 0")
    x, probs = magnitudes(32)
    pairs = []
    for width in (1e-1, 3e-2, 1e-2, 3e-3, 1e-3):
        taken, got = to_width(x, probs, 0.9, width)
        pairs.append((1 / got, taken))
        write(f"  {100 * got:7.3f} %  {taken:8.3f} s")
    write(f"  seconds ~ (1/width)^{growth(pairs):.2f}")
    write("x in {0, 1}, p = .5, noise variance .1, gamma .9")
    pairs = []
    for width in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
        taken, got = to_width([0, 1], [.5, .5], 0.9, width, SCALE)
        pairs.append((1 / got, taken))
        write(f"  {100 * got:9.5f} %  {taken:8.4f} s")
    write(f"  seconds ~ (1/width)^{growth(pairs[-3:]):.2f} over the last three")
    write("magnitudes, at a width of 1 %")
    pairs = []
    for n in (2, 4, 8, 16, 32, 64):
        taken, got = to_width(*magnitudes(n), 0.9, 1e-2)
        pairs.append((n, taken))
        write(f"  {n:5}  {100 * got:.3f} %  {taken:8.3f} s")
    write(f"  seconds ~ magnitudes^{growth(pairs):.2f}")
    for name, law, width in (("x = 1", ([1.0], [1.0]), 1e-3), ("8 magnitudes", magnitudes(8), 3e-2)):
        write(f"1/(1 - gamma), {name}, at a width of {100 * width:g} %")
        pairs = []
        for gamma in (0.5, 0.8, 0.9, 0.95, 0.98, 0.99):
            taken, got = to_width(*law, gamma, width)
            pairs.append((1 / (1 - gamma), taken))
            write(f"  {1 / (1 - gamma):5.0f}  {100 * got:.3f} %  {taken:8.4f} s")
        write(f"  seconds ~ (1/(1 - gamma))^{growth(pairs):.2f}")


def peak():
    """Megabytes that this process has held at most; getrusage would count its parent's too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def memory(tol):
    """Seconds, relative width and peak megabytes (before, after) of 2,000 magnitudes, in this process."""
    solve([0.5, 1], [.5, .5], 0.9, 1.0, 0.5)
    before = peak()
    start = time.process_time()
    table = solve(*magnitudes(2000), 0.9, 1.0, tol)
    taken = time.process_time() - start
    return taken, relative(table), before, peak()


def machine():
    """Processor, system, versions, date and how busy the machine was, in two lines."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    model = next((line.split(": ")[1] for line in lines if line.startswith("model name")), platform.processor())
    packages = ", ".join(f"{name} {version(name)}" for name in ("quantecon", "numpy", "scipy", "numba"))
    return (f"{datetime.date.today()}, {model}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}\n"
            f"Python {platform.python_version()}, {packages}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "dp.txt")
    parser.add_argument("--only", choices=("peers", "alone", "memory"), help="one part, printed and not written")
    parser.add_argument("--memory", type=float, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.memory:
        print(*memory(args.memory))
        return
    with open(os.devnull if args.only else args.out, "w", encoding="utf-8") as file:
        def write(line):
            print(line, flush=True)
            print(line, file=file)
        write(f"CPU seconds of one thread, compilation excluded, medians of {args.repeats} (part two: single runs).")
        write(machine())
        if args.only in (None, "peers"):
            side_by_side(args.repeats, write)
        if args.only in (None, "alone"):
            alone(write)
        for tol in (1e-2, 5e-3, 1e-3) if args.only in (None, "memory") else ():
            command = [sys.executable, __file__, "--memory", str(tol)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            taken, width, before, after = map(float, output.split())
            write(f"2,000 magnitudes, tol {tol:g}: {taken:.1f} s, width {100 * width:.3f} %, "
                  f"peak memory {after:.0f} MB, {after - before:.0f} MB of it by the solve")


if __name__ == "__main__":
    main()
