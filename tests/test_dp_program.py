"""The certified dynamic program against independent numbers, and where it could be wrong."""
from concurrent.futures import ThreadPoolExecutor
import itertools
import math
from pathlib import Path
import subprocess
import sys
import time

from hypothesis import given, settings, strategies as st
import naive
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from lib import dp
from lib.dp import program
from lib.dp.grid import Fineness, make_program, nbytes
from lib.dp.upper import UpperGrid, sweep

GITTINS = {                                   # ten digits, computed by two independent methods; prior variance 1/n
    .5: {1: .2056692302, 2: .1216894569, 5: .0561586666, 20: .0154619086, 100: .0031895848},
    .9: {1: .7465837371, 2: .4662061427, 5: .2332404420, 20: .0712255731, 100: .0155790522},
    .99: {1: 1.5758202588, 2: 1.0414726251, 5: .5747255170, 20: .2094355584, 100: .0548594433}}
BERNOULLI = {                                 # x in {0, 1}, p = .5, gamma .9, prior variance 1, cost .2: nine digits
    .1: ((1.029243254, 1.587206911), (.653780206, .159375166, .100429265)),
    1.0: ((.767169356, 1.326870826), (.537547740, .329342838, .241668188))}
GENERAL = {                                   # x = 0, 1/4, 1/2, 1, gamma .9, b = 1: certified lower, upper
    -.5: (0.0, 0.0), -.2: (.39625825658809954, .3965211607931816), 0.0: (.7923241758136265, .7925818584790701),
    .2: (1.2588241958138908, 1.2591520155586133), .5: (2.063450639808452, 2.063810456961292)}


@pytest.mark.parametrize("gamma", GITTINS)
def test_the_best_value_changes_its_sign_at_the_gittins_index(gamma):
    """To four digits; `dp.indifference_cost` has them all, from another solver (tests/test_gittins.py)."""
    table = dp.solve([1], [1], gamma, 1, 1, certify=False)
    for n, index in GITTINS[gamma].items():
        assert -dp.boundary(table, 1.0, n) / math.sqrt(n) == pytest.approx(index, abs=5e-5)
        cost = dp.indifference_cost(table, 0.0, 1 / n)
        assert cost.lower < index + 5e-11 and index - 5e-11 < cost.upper


@pytest.mark.parametrize("gamma, tol, within", ((.7, 1e-5, 1e-4), (.95, 1e-5, 1e-4), (.999, 1e-4, 1e-3)))
def test_gittins_indices_bracketed_by_the_certificate_for_other_discounts(gamma, tol, within):
    """Just below the index the certified lower value is positive, just above it the upper value is rounding alone."""
    table = dp.solve([1], [1], gamma, 1, 1, tol=tol, between=False)
    index = float(dp.indifference_cost(table, 0.0, 1.0).value)
    assert dp.value(table, -(index - within), 1.0).lower > 0
    assert dp.value(table, -(index + within), 1.0).upper < 2 * program.slack(table) * table.slope * (1 + index + within)


@pytest.mark.parametrize("noise_var", BERNOULLI)
def test_bernoulli_magnitudes(noise_var):
    values, costs = BERNOULLI[noise_var]
    table = dp.solve([0, 1], [.5, .5], .9, noise_var**.5, 1)
    bracket = dp.value(table, np.array([-.2, 0.0]), 1.0)
    assert (bracket.lower <= values).all() and (values <= bracket.upper).all()
    assert bracket.value == pytest.approx(values, abs=1e-4)
    for n, cost in enumerate(costs):
        found = dp.indifference_cost(table, 0.0, 1 / (1 + n / noise_var))
        assert found.lower < cost + 5e-10 and cost - 5e-10 < found.upper and found.value == pytest.approx(cost, abs=1e-6)


def test_general_magnitudes():
    table = dp.solve([0, .25, .5, 1], [.4, .2, .2, .2], .9, 1, 1, tol=3e-3)
    for net, (lower, upper) in GENERAL.items():
        bracket = dp.value(table, net, 1.0)
        assert bracket.lower <= upper + 1e-12 and lower <= bracket.upper
        assert bracket.value == pytest.approx((lower + upper) / 2, abs=3e-4)
        assert bracket.upper - bracket.lower < 6e-3


@pytest.mark.parametrize("x, probs", [([1], [1]), ([0, .5, 1], [.3, .3, .4])])
def test_the_bracket_holds_a_plain_loop_oracle(x, probs):
    gamma, b, m = .6, 1.3, -.1
    table = dp.solve(x, probs, gamma, 1, 1, tol=1e-2)
    bracket = dp.value(table, m, 1 / b)
    oracle = naive.single_feature(x, probs, gamma, m, b, depth=7)
    assert bracket.lower - 2e-3 <= oracle <= bracket.upper + 2e-3


def test_one_step_against_quadrature():
    """With a discount of 1e-6 two items matter: the second is forwarded iff the posterior mean is positive."""
    gamma, m, b = 1e-6, -.3, .5
    table = dp.solve([1], [1], gamma, 1, 2, tol=1e-4, certify=False)
    t = math.sqrt(1 / b - 1 / (b + 1))
    ahead = quad(lambda z: max(m + t * z, 0) * norm.pdf(z), -m / t, 12)[0]
    assert dp.q_values(table, m, 1 / b)[1] - m == pytest.approx(gamma * ahead, rel=2e-3)


problems = st.tuples(
    st.lists(st.floats(.05, 3), min_size=1, max_size=3), st.sampled_from([.2, .6, .9]),
    st.floats(.2, 3), st.floats(.2, 3), st.integers(0, 2**31))


def case(drawn):
    x, gamma, noise_sd, var_max, seed = drawn
    rng = np.random.default_rng(seed)
    return np.array(x), rng.dirichlet(np.ones(len(x))), gamma, noise_sd, var_max, rng


def overlap(drawn):
    x, probs, gamma, noise_sd, var_max, rng = case(drawn)
    between = bool(rng.integers(2))                     # the brackets of both sorts of tables hold for every variance
    coarse, fine = (dp.solve(x, probs, gamma, noise_sd, var_max, tol=tol, between=between) for tol in (.6, .15))
    var = var_max * rng.random(6) ** 2
    net = 1.5 * rng.standard_normal(6) * np.sqrt(var)
    a, b = dp.value(coarse, net, var), dp.value(fine, net, var)
    assert (a.lower <= b.upper).all() and (b.lower <= a.upper).all()
    assert (a.lower <= a.value).all() and (a.value <= a.upper).all()


@settings(max_examples=30)
@given(problems)
def test_brackets_of_a_coarse_and_a_fine_solve_overlap(drawn):
    overlap(drawn)


@pytest.mark.slow
@settings(max_examples=1000)
@given(problems)
def test_brackets_of_a_coarse_and_a_fine_solve_overlap_for_1000_problems(drawn):
    overlap(drawn)


@settings(max_examples=20)
@given(problems)
def test_shape_convex_monotone_in_variance_and_scale_invariant(drawn):
    x, probs, gamma, noise_sd, var_max, rng = case(drawn)
    table = dp.solve(x, probs, gamma, noise_sd, var_max, tol=.1)
    sd = math.sqrt(var_max)
    net = np.linspace(-2, 2, 17) * sd
    bracket = dp.value(table, net, var_max)
    chords = (bracket.upper[:-2] + bracket.upper[2:]) / 2
    assert (bracket.lower[1:-1] <= chords).all()                           # convex in the mean
    less = dp.value(table, net, var_max / 2)
    assert (less.lower <= bracket.upper).all()                             # nondecreasing in the variance
    s = 7.3
    scaled = dp.value(dp.solve(x, probs, gamma, s * noise_sd, s * s * var_max, tol=.1), s * net, s * s * var_max)
    assert np.allclose(scaled.upper, s * bracket.upper, rtol=1e-5, atol=1e-6 * s)


def test_many_magnitudes_are_merged_validly():
    rng = np.random.default_rng(3)
    x, probs = rng.random(300), rng.dirichlet(np.ones(300))
    many = dp.value(dp.solve(x, probs, .7, 1, 1, tol=.05), np.array([-.2, 0, .3]), 1.0)
    halves = np.round(x * 4) / 4                                           # 5 magnitudes, close to the 300
    assert (many.lower <= many.upper).all() and ((many.upper - many.lower) < .4 * many.value).all()
    near = dp.value(dp.solve(halves, probs, .7, 1, 1, tol=.05), np.array([-.2, 0, .3]), 1.0)
    assert np.allclose(many.value, near.value, rtol=.15)
    # information up and reward spread: above; information down and mean reward: below
    order = np.argsort(x)
    groups = np.array_split(order, 6)
    low_x = np.array([np.average(x[g], weights=probs[g]) for g in groups])
    low_q = np.array([x[g].min() ** 2 for g in groups])
    p = np.array([probs[g].sum() for g in groups])
    low = dp.value(dp.solve(low_x, p, .7, 1, 1, tol=.05, info=low_q), np.array([-.2, 0, .3]), 1.0)
    assert (low.lower <= many.upper).all()


def test_two_thousand_magnitudes_stay_small():
    rng = np.random.default_rng(5)
    table = dp.solve(rng.random(2000), rng.dirichlet(np.ones(2000)), .8, 1, 1, tol=.1)
    assert sum(map(nbytes, (table.upper, table.lower, table.guess))) < 60e6
    bracket = dp.value(table, 0.0, 1.0)
    assert bracket.lower < bracket.value < bracket.upper < 1.3 * bracket.lower


MANY = """
import re
import numpy as np
from lib import dp
rng = np.random.default_rng(2000)
x, probs = rng.uniform(.05, 1, 2000), rng.dirichlet(np.full(2000, 5.0))
bracket = dp.value(dp.solve(x, probs, .9, 1, 1, tol=1e-2, between=False), 0.0, 1.0)
peak = re.search("VmHWM: *([0-9]+) kB", open("/proc/self/status").read().replace("\\t", " "))[1]
print((bracket.upper - bracket.lower) / bracket.value, int(peak) / 1024)
"""


@pytest.mark.slow
def test_two_thousand_magnitudes_stay_within_200_megabytes():
    """In a process of its own: interpreter, compiler and libraries are counted."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of a process's own memory is read from Linux's /proc")
    for _ in range(2):                                  # the first may compile, which takes 20 MB more
        lines = subprocess.run([sys.executable, "-c", MANY], check=True, capture_output=True, text=True).stdout
    width, megabytes = map(float, lines.split())
    assert width < .015
    assert megabytes < 200


def hindsight(mean_x, gamma, m, sd):
    return mean_x / (1 - gamma) * (m * norm.cdf(m / sd) + sd * norm.pdf(m / sd))


@pytest.mark.parametrize("noise_sd", (1e-6, 1e-3, 1e3, 1e6))
def test_extreme_noise(noise_sd):
    table = dp.solve([0, 1], [.5, .5], .9, noise_sd, 1, tol=1e-2)
    bracket = dp.value(table, np.array([-.5, 0.0, .5]), 1.0)
    full = [hindsight(.5, .9, m, 1) for m in (-.5, 0, .5)]
    if noise_sd < 1:                          # one observation tells all
        one = [max(0, v) for v in (m * .5 / .55 + .9 * .5 / .55 * f for m, f in zip((-.5, 0, .5), full))]
        assert bracket.value == pytest.approx(one, rel=5e-3, abs=5e-3)
    else:                                     # nothing to learn
        assert bracket.value == pytest.approx([0, 0, 2.5], abs=3e-2)
    assert (bracket.upper <= np.array(full) * (1 + 1e-9)).all() and (bracket.lower <= bracket.upper).all()


def test_known_preference_gamma_zero_and_idle_items():
    table = dp.solve([0, 1], [.5, .5], .9, 1, 1, tol=1e-2)
    assert dp.value(table, np.array([-1.0, 2.0]), 0.0).upper == pytest.approx([0, 10], abs=1e-8)
    myopic = dp.value(dp.solve([.5, 1], [.5, .5], 0, 1, 1), np.array([-1.0, 2.0]), 1.0)
    assert myopic.value == pytest.approx([0, 1.5], abs=1e-8)
    rare = dp.value(dp.solve([0, 1], [.9999, .0001], .9, 1, 1), 0.1, 1.0)
    g = .9 * .0001 / (1 - .9 * .9999)
    always = dp.value(dp.solve([1], [1], g, 1, 1), 0.1, 1.0)
    assert rare.value == pytest.approx(g / .9 * always.value, rel=1e-3)
    nothing = dp.value(dp.solve([0], [1], .9, 1, 1), np.array([-1.0, 1.0]), 1.0)
    assert (nothing.upper == 0).all()


def test_far_means_and_magnitudes_far_apart():
    table = dp.solve([1e-4, 1], [.5, .5], .9, 1, 1, tol=1e-2)
    bracket = dp.value(table, np.array([-1e6, 1e6]), 1.0)
    assert bracket.lower[0] == 0 and bracket.upper[0] < 1e-2
    assert bracket.value[1] == pytest.approx(1e6 * .50005 / .1, rel=1e-9)


def test_patience_near_one():
    table = dp.solve([1], [1], .999, 1, 1, tol=3e-2, between=False)
    bracket = dp.value(table, 0.0, 1.0)
    assert bracket.lower < bracket.upper < 1.05 * bracket.lower
    assert bracket.upper < hindsight(1, .999, 0, 1)


@pytest.mark.parametrize("arguments, words", [
    (dict(x=[-1]), "x\\[0\\] is -1"), (dict(x=[np.nan]), "x\\[0\\] is nan"), (dict(probs=[.4]), "sum to 0.4"),
    (dict(probs=[-1.0]), "probs\\[0\\] is -1"), (dict(gamma=1.0), "gamma is 1"), (dict(gamma=-.1), "gamma is -0.1"),
    (dict(noise_sd=0), "noise_sd is 0"), (dict(var_max=-1), "var_max is -1"), (dict(tol=0), "tol is 0"),
    (dict(var_max=1e20), "1e-14 to 2"), (dict(info=[0.0]), "info"), (dict(gamma=.99951), "0 to 0.9995"),
    (dict(x="a"), "x must be"), (dict(var_max="1"), "var_max must be"), (dict(noise_sd=None), "noise_sd must be"),
    (dict(x=np.ma.masked_less([.5], 1)), "x has masked"), (dict(x=[1e-60, 1], probs=[.5, .5]), "x spans")])
def test_wrong_arguments_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        dp.solve(**{**dict(x=[1], probs=[1], gamma=.5, noise_sd=1, var_max=1), **arguments})


def test_probabilities_off_by_rounding_and_wrong_queries():
    table = dp.solve([0, 1], [.5, .5 + 5e-10], .5, 1, 1, tol=.1)
    assert table.upper.program.probs.sum() < .5 + 1e-9
    with pytest.raises(ValueError, match="var is 1.1, above the table's var_max 1.0"):
        dp.value(table, 0.0, 1.1)
    with pytest.raises(ValueError, match="var is -1"):
        dp.value(table, 0.0, -1.0)
    with pytest.raises(ValueError, match="finite"):
        dp.value(table, np.nan, 1.0)
    with pytest.raises(ValueError, match="certify"):
        dp.value(dp.solve([1], [1], .5, 1, 1, certify=False), 0.0, 1.0)


def test_exploration_benefit_is_nonnegative_and_q_values_meet_bellman():
    table = dp.solve([.5, 1], [.5, .5], .9, 1, 1, tol=1e-2)
    net, var = np.linspace(-1, 1, 21)[:, None], np.array([.1, .4, 1.0])
    total = 0.0
    for x in (.5, 1.0):
        discard, forward = dp.q_values(table, net, var, x)
        assert (forward - discard - x * net >= -1e-4).all()
        total = total + .5 * np.maximum(discard, forward)
    assert np.allclose(total, dp.value(table, net, var).value, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("alpha", (.1, 1.0, 10.0))
def test_the_sign_of_net_reward_changes_once(alpha):
    table = dp.solve([.3, 1, 1.5], [.3, .4, .3], .9, 1, 1, certify=False)
    for b in (1.0, 3.0, 20.0):
        edge = float(dp.boundary(table, alpha, b))
        z = np.linspace(-8, 1, 181)
        discard, forward = dp.q_values(table, z / np.sqrt(b), 1 / b)
        benefit = np.maximum(forward - discard - z / np.sqrt(b), 0)
        go = z / np.sqrt(b) + alpha * benefit > 0
        assert (go == (z > edge))[np.abs(z - edge) > .05].all()


def test_tables_are_kept_on_disk_and_damage_is_ignored(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOK_TABLES", str(tmp_path))
    program.MEMORY.clear()
    first = dp.solve([1], [1], .5, 1, 1, tol=.1)
    files = sorted(tmp_path.glob("*.npz"))
    assert len(files) == 2 and not list(tmp_path.glob("*.part"))
    files[0].write_bytes(files[0].read_bytes()[:100])
    files[1].write_bytes(b"not a table")
    program.MEMORY.clear()
    again = dp.solve([1], [1], .5, 1, 1, tol=.1)
    assert all(np.array_equal(a, b) for name in ("upper", "lower")
               for a, b in zip(getattr(first, name)[:-3], getattr(again, name)[:-3]))
    program.MEMORY.clear()


@pytest.mark.slow
def test_rounding_errors_fit_into_the_slack():
    """A whole upper sweep by exactly rounded sums, in plain loops: it uses less than a hundredth of the slack."""
    one = np.ones(1)
    grid = sweep(make_program(one, one, one, .5, 1.0), Fineness(0.0, .09, .2, 2.0, 8.25, 1, .1, 0.0))
    ours = grid.D[grid.ptr[0] + np.arange(grid.first[1, 0])]
    assert np.abs(naive.upper_sweep(grid, .5) - ours).max() < program.SLACK / 100 * 2


EXACT = [(.9, .1, .5), (.9, 1.0, 1.0), (.5, .3, .2), (.97, 3.0, .7)]     # gamma, noise variance, P(x = 1)


@pytest.mark.parametrize("gamma, noise_var, p", EXACT)
@pytest.mark.parametrize("tol", (.3, .03, .003))
def test_interpolated_precisions_bracket_what_exact_ones_give(gamma, noise_var, p, tol):
    """x in {0, 1}: the lattice b0 + j needs no interpolation; the graded levels must bracket its answer at any variance."""
    law = dict(x=[0, 1], probs=[1 - p, p], gamma=gamma, noise_sd=noise_var**.5)
    graded = dp.solve(**law, var_max=1, tol=tol)
    for var in (1.0, .8, .31, .1):
        net = np.linspace(-2, 2, 21) * var**.5
        exact = dp.value(dp.solve(**law, var_max=var, tol=1e-5, between=False), net, var)
        bracket = dp.value(graded, net, var)
        assert (bracket.lower <= exact.upper).all() and (exact.lower <= bracket.upper).all()
        assert (exact.upper - exact.lower).max() < 3e-5 * (exact.value[10] + 1e-3)


def test_several_informations_close_in_from_both_sides():
    """Nested tolerances: each bracket holds the finer ones, and the width falls at least as fast as the tolerance."""
    x, probs = [.2, .5, .9], [.3, .3, .4]
    net = np.linspace(-2, 2, 41)
    brackets = [dp.value(dp.solve(x, probs, .9, 1, 1, tol=tol, between=False), net, 1.0) for tol in (.1, .01, .001, 1e-4)]
    finest = brackets[-1]
    for tol, bracket in zip((.1, .01, .001), brackets):
        assert (bracket.lower <= finest.lower + 1e-7).all() and (finest.upper <= bracket.upper + 1e-7).all()
        assert bracket.upper[20] - bracket.lower[20] < 1.5 * tol * finest.value[20]


def test_thirty_two_magnitudes_to_a_tenth_of_a_percent():
    rng = np.random.default_rng(32)
    x, probs = np.sort(rng.uniform(.05, 1, 32)), rng.dirichlet(np.full(32, 5.0))
    bracket = dp.value(dp.solve(x, probs, .9, 1, 1, tol=1e-3, between=False), 0.0, 1.0)
    assert 0 < bracket.upper - bracket.lower < 1e-3 * bracket.lower


@pytest.mark.parametrize("sd", (1e-9, 1e-4, .03, .5))
def test_smoothing_over_a_mean_that_is_almost_known(sd):
    """However short the move of the mean is, a few hundred nodes do: the answer is that of quadrature."""
    table = dp.solve([.4, 1], [.5, .5], .9, 1, 1, tol=1e-2, between=False)
    for net in (-.3, .4, 3.0):
        z, weight = np.polynomial.hermite_e.hermegauss(60)
        inner = dp.value(table, net + sd * z, 1.0)
        bracket = dp.smoothed_value(table, net, sd, 1.0)
        lower, upper = weight @ inner.lower / weight.sum(), weight @ inner.upper / weight.sum()
        assert bracket.lower <= upper and lower <= bracket.upper
        assert bracket.upper - bracket.lower < 2 * (upper - lower) + 1e-3


@pytest.mark.parametrize("x, noise_sd", (([1e-8, .3, .6], 1.0), ([3e-6, .08], 8.0), ([1e-4, .07, .2], 1200.0)))
@pytest.mark.parametrize("between", (False, True))
def test_informations_below_the_last_digit_of_the_precision(x, noise_sd, between):
    """Items that teach nothing that floating point can tell from nothing, and levels that are thousands of items apart."""
    probs = [1 / len(x)] * len(x)
    without = dp.value(dp.solve([0, *x[1:]], probs, .9, noise_sd, 1, tol=.03, between=between), .1, 1.0)
    bracket = dp.value(dp.solve(x, probs, .9, noise_sd, 1, tol=.03, between=between), .1, 1.0)
    assert without.lower <= bracket.upper and bracket.lower <= without.upper + 1e-3 * without.value


@pytest.mark.parametrize("x, gamma, noise_sd, tol", (([1], .9, 1.0, .3), ([.9, 1], .5, .3, .5), ([.3, 1], .9, 1.0, .5), ([1], .5, 1.0, .5)))
@pytest.mark.parametrize("between", (False, True))
def test_no_node_is_above_hindsight(x, gamma, noise_sd, tol, between):
    """Every node of every level, the first and the outermost included: lower <= hindsight, and lower <= upper of a fine solve."""
    law = dict(x=x, probs=[1 / len(x)] * len(x), gamma=gamma, noise_sd=noise_sd, var_max=1, between=between)
    table = dp.solve(**law, tol=tol)
    for j, b in enumerate(table.lower.levels):
        D = table.lower.D[table.lower.ptr[j]:table.lower.ptr[j] + table.lower.first[1, j]]
        z = np.abs(np.arange(D.size) - D.size // 2) * table.lower.spacing[j] * b**.5
        assert (D <= table.slope / b**.5 * (norm.pdf(z) - z * norm.sf(z)) + 1e-12 * table.slope).all()
    for net in (2.5, 3.7, 4.5):
        for steps in (5.01, 8.0):
            bracket = dp.smoothed_value(table, net, steps * table.lower.spacing[0] * noise_sd, 1.0)
            assert bracket.lower <= bracket.upper


def test_reading_at_almost_no_variance():
    for x in ([0, 1], [.01, 1]):
        table = dp.solve(x, [.5, .5], .9, 1, 1, tol=.1)
        for var in (1e-13, 1e-16, 1e-17):
            for net in (-1.0, 0.0, 1.0):
                bracket = dp.value(table, net, var)
                assert bracket.lower <= bracket.upper <= table.slope * (max(net, 0) + var**.5)
                assert np.isfinite(dp.q_values(table, net, var)).all()
            assert -9 < dp.boundary(table, 1.0, 1 / var) <= 0


@pytest.fixture
def no_work(monkeypatch):
    """Sweeps that cost nothing and claim 40 MB, in the memory of 200 MB, under threads that change often."""
    monkeypatch.delenv("BOOK_TABLES", raising=False)
    one, many = np.ones(1), np.broadcast_to(0.0, 5_000_000)
    grid = UpperGrid(*[one] * 4, many, one, one, make_program(one, one, one, .5, 1.0), .1, 5.0)
    monkeypatch.setitem(program.SWEEP, "upper", lambda *_: grid)
    program.MEMORY.clear()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)
    program.MEMORY.clear()


def test_threads_share_a_memory_of_bounded_size(no_work):
    one, fineness = np.ones(1), Fineness(0.0, .1, .1, 1.0, 5.0, 1, .1, 0.0)
    programs = [make_program(one, one, one, .5, 1.0 + i) for i in range(30)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: program.stored("upper", programs[i % 30], fineness), range(1000)))
    assert len(program.MEMORY) == 4 and program.MEMORY.currsize <= 200e6
    kept = program.stored("upper", programs[0], fineness)
    assert program.stored("upper", programs[0], fineness) is kept


WRONG = ("a", "1", None, np.nan, np.inf, [1.0, np.nan], np.ma.masked_greater([.5, 2.0], 1), [[1.0], [1.0, 2.0]])


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_every_query_names_what_is_no_number(wrong):
    """NaN, infinities, text, None, masked and ragged arrays, as each argument of each query."""
    table = dp.solve([0, 1], [.5, .5], .9, 1, 1, tol=.1)
    nothing = dp.solve([0], [1], .9, 1, 1)
    queries = {dp.value: ("net_mean", "var"), dp.q_values: ("net_mean", "var", "x"), dp.boundary: ("alpha", "prec", "x"),
               dp.indifference_cost: ("mean", "var"), dp.smoothed_value: ("net_mean", "sd", "var")}
    right = dict(net_mean=0.0, mean=0.0, var=.5, x=1.0, alpha=1.0, prec=2.0, sd=.1)
    for query, names in queries.items():
        for name in names:
            for solved in (table, nothing):
                with pytest.raises((ValueError, TypeError), match=name):
                    query(solved, **{**{n: right[n] for n in names}, name: wrong})


@pytest.mark.parametrize("query, arguments, words", (
    (dp.boundary, dict(alpha=1.0, prec=-1.0), "prec is -1"), (dp.boundary, dict(alpha=1.0, prec=[2.0, 0.0]), "prec is 0"),
    (dp.boundary, dict(alpha=0.0, prec=2.0), "alpha is 0"), (dp.boundary, dict(alpha=-1.0, prec=2.0), "alpha is -1"),
    (dp.boundary, dict(alpha=1.0, prec=.5), "table's smallest"), (dp.boundary, dict(alpha=1.0, prec=2.0, x=0), "x is 0"),
    (dp.q_values, dict(net_mean=0.0, var=.5, x=-1.0), "x is -1"), (dp.indifference_cost, dict(mean=0.0, var=-.5), "var is -0.5"),
    (dp.indifference_cost, dict(mean=0.0, var=1.5), "var is 1.5"), (dp.smoothed_value, dict(net_mean=0.0, sd=-.1, var=.5), "sd is -0.1"),
    (dp.smoothed_value, dict(net_mean=0.0, sd=0.0, var=.5), "sd is 0"), (dp.smoothed_value, dict(net_mean=0.0, sd=.1, var=0.0), "var is 0")))
def test_queries_out_of_range_are_named(query, arguments, words):
    with pytest.raises(ValueError, match=words):
        query(dp.solve([0, 1], [.5, .5], .9, 1, 1, tol=.1), **arguments)


def test_lists_are_taken_for_arrays():
    table = dp.solve([0, 1], [.5, .5], .9, 1, 1, tol=.1)
    assert (dp.value(table, [-1, 0], [.5, 1]).upper == dp.value(table, np.array([-1.0, 0]), np.array([.5, 1])).upper).all()
    assert dp.boundary(table, 1, [1, 2]).shape == (2,)


def test_the_largest_discount_is_the_one_that_is_documented():
    bracket = dp.value(dp.solve([1], [1], .9995, 1, 1, tol=.3, between=False), 0.0, 1.0)
    assert 0 < bracket.lower < bracket.upper < hindsight(1, .9995, 0, 1)


@pytest.mark.parametrize("x", ([0, 1], [.4, 1]))
@pytest.mark.parametrize("between", (False, True))
@pytest.mark.parametrize("noise_sd", (1e-6, 1e-3, 1e3, 1e6))
def test_extreme_noise_is_solved_as_sharply_and_as_soon(x, between, noise_sd):
    """From noise that one answer sees through to a prior as sharp as a million million answers."""
    start = time.thread_time()
    table = dp.solve(x, [.5, .5], .9, noise_sd, 1, tol=1e-2, between=between)
    bracket = dp.value(table, 0.0, 1.0)
    assert 0 < bracket.upper - bracket.lower < 5e-2 * bracket.lower
    assert time.thread_time() - start < 100             # 158 s before at 1e-6, without compilation, which counts here


@pytest.mark.parametrize("power", range(-6, 7, 3))
def test_units_change_nothing_but_units(power):
    """Rewards, and magnitudes with what they are worth, in units of 10^power: over twelve decades the same numbers."""
    x, net, unit = np.array([.3, .6, 1]), np.linspace(-1.5, 1.5, 7), 10.0**power
    law = dict(probs=[.3, .3, .4], gamma=.9, tol=.05)
    table = dp.solve(x, noise_sd=.7, var_max=2.0, **law)
    rewards = dp.solve(x, noise_sd=.7 * unit, var_max=2.0 * unit**2, **law)
    items = dp.solve(x * unit, noise_sd=.7, var_max=2.0 / unit**2, **law)
    for var in (2.0, .3):
        for end, first, second in zip(dp.value(table, net, var), dp.value(rewards, net * unit, var * unit**2),
                                      dp.value(items, net / unit, var / unit**2)):
            assert first == pytest.approx(end * unit, rel=1e-8)
            assert second == pytest.approx(end, rel=1e-8)
        q, again = dp.q_values(table, net, var), dp.q_values(items, net / unit, var / unit**2, unit)
        assert np.allclose(again, q, rtol=1e-8)
        cost = dp.indifference_cost(table, 1.0, var)
        assert dp.indifference_cost(rewards, unit, var * unit**2) == pytest.approx([end * unit for end in cost], rel=1e-6)
    mean = dp.smoothed_value(table, .1, .3, 2.0)
    assert np.allclose(dp.smoothed_value(items, .1 / unit, .3 / unit, 2.0 / unit**2), mean, rtol=1e-8)


@pytest.mark.parametrize("tol", (1e-2, 1e-4))
def test_smoothing_by_little_is_as_sharp_as_the_table(tol):
    """Whatever the move is, the width falls with the tolerance: it was at least 3e-4 of the value."""
    table = dp.solve([0, 1], [.5, .5], .9, .3, 1, tol=tol, between=False)
    for sd in (1e-3, .05, .1, .2):
        bracket = dp.smoothed_value(table, 0.0, sd, 1.0)
        assert bracket.upper - bracket.lower < 1.5 * tol * bracket.lower


@pytest.mark.parametrize("x, probs, gamma", (([0, 1], [.5, .5], .9), ([0, .3, 1], [.4, .5, .1], .9),
                                             ([0, .3, 1], [.4, .5, .1], .98), ([0, 1], [.5, .5], .995)))
def test_beyond_the_last_level_of_the_sweep_benefits_go_on_falling(x, probs, gamma):
    table, z = dp.solve(x, probs, gamma, 1.0, 1.0, certify=False), np.linspace(-2, 2, 41)
    last = table.guess.levels[-1]

    def benefit(table, prec):
        """Exploration benefit over sd at the net means z."""
        discard, forward = dp.q_values(table, z / np.sqrt(prec), np.full(z.shape, 1 / prec))
        return (forward - discard) * np.sqrt(prec) - z

    for prec in last * np.array([.85, 1.0, 1.5, 20.0]):
        sharp = dp.solve(x, probs, gamma, 1.0, 1 / prec)
        assert np.abs(benefit(table, prec) - benefit(sharp, prec)).max() < .01
        discard, _ = dp.q_values(table, z / np.sqrt(prec), np.full(z.shape, 1 / prec))
        bracket = dp.value(sharp, z / np.sqrt(prec), 1 / prec)
        slip = 2e-3 * (np.dot(x, probs) / (1 - gamma)) / np.sqrt(prec)
        assert ((bracket.lower - slip < discard / gamma) & (discard / gamma < bracket.upper + slip)).all()
    peaks = [benefit(table, prec).max() for prec in last * np.geomspace(.5, 1e6, 15)]
    assert (np.diff(peaks) <= 1e-3).all() and peaks[-1] < 1e-3


def test_nothing_left_to_learn_is_committed_to():
    table = dp.solve([0, 1], [.5, .5], .9, 1.0, 1.0, certify=False)
    discard, forward = dp.q_values(table, [-1.0, 0.0, 2.0], 0.0)
    assert discard == pytest.approx([0, 0, 9.0]) and forward == pytest.approx([-1, 0, 11.0])


@pytest.mark.parametrize("count, patient", ((40, .9), (120, .9), (120, .5)))
def test_the_best_guess_lies_near_its_bracket_far_below_the_prior_variance(count, patient):
    """Magnitudes of every size, most of them small, as dense items project on one another."""
    items = np.random.default_rng(3).dirichlet(np.full(10, .5), count)
    x = items @ items[0] / (items[0] @ items[0])
    table, z = dp.solve(x, np.full(count, 1 / count), patient, 1.0, 1.0, tol=.02), np.array([-.3, -.1, 0.0, .1])
    for share in np.exp([-1.0, -2.0, -3.0, -4.0]):
        sd = np.sqrt(share)
        bracket, found = dp.value(table, z * sd, share), dp.q_values(table, z * sd, np.full(4, share))[0] / patient
        assert (np.maximum(bracket.lower - found, found - bracket.upper) < .006 * sd).all()


@pytest.mark.parametrize("x", (1.0, .5, .2, .05))
def test_an_item_far_shorter_than_what_comes_adds_no_more_than_it_teaches(x):
    """An item that teaches less than one level of the sweep does not count as if it taught all of it."""
    table = dp.solve([2.0, 3.0, x], [.5, .4, .1], .9, .5, 1.0, 4e-4)
    for z, var in itertools.product((-.8, -.3, 0.0), (1.0, .3)):
        after = 1 / (1 / var + x * x / .25)
        now, later = dp.value(table, z * var**.5, var), dp.smoothed_value(table, z * var**.5, (var - after) ** .5, after)
        discard, forward = dp.q_values(table, z * var**.5, var, x)
        found = (forward - discard - x * z * var**.5) / var**.5
        assert .9 * (later.lower - now.upper) / var**.5 - .02 < found < .9 * (later.upper - now.lower) / var**.5 + .02
