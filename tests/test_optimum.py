"""The two-feature sweep against closed forms, an independent Gittins reduction and a simulated policy."""
from fractions import Fraction

import numba
import numpy as np
import pytest

from lib.bound import optimum
from lib.problem import make_problem

ITEMS, PROBS = [[1, 0], [0, 1], [.5, .5]], [.4, .4, .2]
COSTS = -.5, 0, .2, .4, .6


def small(cost=0., gamma=.9, Sigma=((1, .3), (.3, 1)), items=ITEMS, probs=PROBS, mu=(0, 0)):
    return make_problem(items, probs, mu, Sigma, 1, cost, gamma)


def simulated_ucb(problem, alpha, replications, arrivals, seed):
    """Plain vectorised episodes of UCB; nothing of lib but the Problem tuple."""
    rng = np.random.default_rng(seed)
    theta = rng.multivariate_normal(problem.mu, problem.Sigma, replications)
    mu = np.tile(problem.mu, (replications, 1))
    Sigma = np.tile(problem.Sigma, (replications, 1, 1))
    total = np.zeros(replications)
    noise = np.count_nonzero(problem.items, axis=1) * problem.noise_sd**2
    for n in range(1, arrivals + 1):
        drawn = rng.choice(len(problem.probs), replications, p=problem.probs)
        x = problem.items[drawn]
        spread = np.einsum("rij,rj->ri", Sigma, x)
        var, mean = (spread * x).sum(1), (x * mu).sum(1)
        forward = mean + alpha * np.sqrt(var) >= problem.cost
        worth = (x * theta).sum(1)
        total += problem.gamma**n * forward * (worth - problem.cost)
        y = worth + np.sqrt(noise[drawn]) * rng.standard_normal(replications)
        gain = np.where(forward, 1 / (var + noise[drawn]), 0)
        mu += spread * ((y - mean) * gain)[:, None]
        Sigma -= np.einsum("ri,rj,r->rij", spread, spread, gain)
    return total.mean(), total.std() / np.sqrt(replications)


@pytest.fixture(scope="module")
def table():
    return optimum.solve(small(), COSTS, step=.2, depth=12)


def test_known_preferences_leave_nothing_to_learn():
    problem = small(cost=.3, Sigma=np.zeros((2, 2)), mu=(.5, .2))
    bracket = optimum.value(optimum.solve(problem, depth=2, step=.1), problem.mu)
    truth = 9 * (.4 * .2 + .2 * .05)
    assert bracket.lower == pytest.approx(truth, abs=1e-9) == bracket.upper


@pytest.mark.parametrize("mean, value", [(0., 1.326870826), (-.2, .767169356)])
def test_independent_features_decompose_into_gittins_problems(mean, value):
    """One feature seen with probability 1/2, prior and noise variance 1, gamma .9: value before x is seen,
    without the leading gamma, from the reduction to the Gittins index of a normal reward process."""
    problem = small(items=[[1, 0], [0, 1]], probs=[.5, .5], Sigma=np.eye(2))
    bracket = optimum.value(optimum.solve(problem, [0, -mean], step=.1, depth=20), [0, 0], -mean)
    assert bracket.lower < 2 * .9 * value < bracket.upper
    assert bracket.value == pytest.approx(2 * .9 * value, abs=2e-3)
    assert bracket.upper - bracket.lower < .03


@pytest.mark.parametrize("cost", COSTS)
def test_bracket_is_ordered_and_below_hindsight(table, cost):
    lower, value, upper = optimum.value(table, [0, 0], cost)
    sds = np.sqrt(np.einsum("xi,ij,xj->x", np.array(ITEMS), np.array([[1, .3], [.3, 1]]), np.array(ITEMS)))
    draws = np.maximum(sds[:, None] * np.random.default_rng(0).standard_normal((3, 10**5)) - cost, 0)
    assert 0 <= lower <= value <= upper <= 9 * (np.array(PROBS) @ draws.mean(axis=1)) + .05


@pytest.mark.slow
def test_finer_steps_and_deeper_sweeps_narrow_the_bracket(table):
    coarse = optimum.value(table, [0, 0], .2)
    deep = optimum.value(optimum.solve(small(.2), step=.2, depth=16), [0, 0])
    fine = optimum.value(optimum.solve(small(.2), step=.15, depth=12), [0, 0])
    assert deep.upper < coarse.upper and deep.lower > coarse.lower - 1e-3
    assert fine.upper - fine.lower < .8 * (coarse.upper - coarse.lower)
    for other in deep, fine:
        assert other.value == pytest.approx(coarse.value, abs=.01)
        assert max(other.lower, coarse.lower) <= min(other.upper, coarse.upper)


def test_cost_is_a_shift_of_the_mean_when_the_items_lie_on_a_plane(table):
    here = optimum.value(optimum.solve(small(.4), step=.2, depth=12), [0, 0])
    there = optimum.value(table, [0, 0], .4)
    assert here.value == pytest.approx(there.value, abs=5e-3)          # the two grids are shifted
    assert here.lower <= there.upper and there.lower <= here.upper


def test_value_is_convex_and_nondecreasing_in_the_mean(table):
    diagonal = np.diag(table.upper)
    assert (np.diff(diagonal) >= -1e-3).all()                           # the sweep stops at the tolerance
    assert (np.diff(np.diag(table.lower[..., 0])) >= -1e-12).all()
    assert (np.diff(diagonal, 2) >= -2e-3).all()


def test_bracket_holds_a_simulated_policy(table):
    mean, se = simulated_ucb(small(.2), .45, 40000, 70, seed=3)
    bracket = optimum.value(table, [0, 0], .2)
    assert mean - 3 * se < bracket.upper
    assert mean + 3 * se > bracket.lower - .08                        # tuned UCB is close to the optimum


def test_between_its_nodes_the_table_of_a_plane_is_that_plane():
    """Also at another cost, which is a change of the mean."""
    grids, shift = (.5 * np.arange(4), .25 * np.arange(3) - .2), np.array([.5, .25])

    def plane(mu):
        return 1 + 2 * mu[0] - 3 * mu[1]
    nodes = plane(np.meshgrid(*grids, indexing="ij"))
    lower = np.stack([nodes, np.full(nodes.shape, 2.0), np.full(nodes.shape, -3.0)], axis=-1)
    made = optimum.Table(*grids, nodes, lower, .1, shift)
    assert optimum.value(made, [.7, -.1]) == pytest.approx([plane([.7, -.1])] * 3)
    assert optimum.value(made, [.7, .1], .3) == pytest.approx([plane(np.array([.7, .1]) - .2 * shift)] * 3)


def test_zero_item_and_unequal_noise():
    problem = make_problem([[0, 0], [1, .5]], [.3, .7], [.1, .1], [[1, 0], [0, .5]], .5, .2, .7)
    bracket = optimum.value(optimum.solve(problem, step=.2, depth=10), problem.mu)
    assert 0 < bracket.lower < bracket.upper < bracket.lower + .1


@pytest.mark.parametrize("noise_sd", [1., 1e-3, 1e-12])
def test_posteriors_against_rational_arithmetic(noise_sd):
    """Updates one observation at a time, in fractions: also where an answer leaves next to nothing unknown."""
    problem = make_problem([[1, 0], [.5, .25], [.5, .25 + 2**-30]], [.4, .4, .2], [0, 0], [[1, .5], [.5, .25 + 2**-20]],
                           noise_sd, 0, .9)
    posterior = optimum._posteriors(np.array([[0, 3, 1], [2, 0, 1]]), problem)
    for s, counts in enumerate([(0, 3, 1), (2, 0, 1)]):
        S = [[Fraction(v) for v in row] for row in problem.Sigma]
        items = [[Fraction(v) for v in x] for x in problem.items]
        for x, times in zip(items, counts):
            noise = Fraction(noise_sd)**2 * sum(v != 0 for v in x)
            for _ in range(times):
                g = [sum(a * b for a, b in zip(row, x)) for row in S]
                total = sum(a * b for a, b in zip(g, x)) + noise
                S = [[S[i][j] - g[i] * g[j] / total for j in range(2)] for i in range(2)]
        var = [float(sum(x[i] * S[i][j] * x[j] for i in range(2) for j in range(2))) for x in items]
        assert posterior.var[s] == pytest.approx(var, rel=1e-9, abs=0)


def test_small_noise_approaches_no_noise():
    tiny, small_noise = (optimum.value(optimum.solve(small(.2)._replace(noise_sd=sd), step=.4, depth=5), [0, 0]) for sd in (1e-12, 1e-4))
    assert tiny == pytest.approx(small_noise, rel=1e-4)


def test_one_thread_equals_two():
    runs = []
    for threads in 1, min(2, numba.config.NUMBA_NUM_THREADS):
        numba.set_num_threads(threads)
        runs.append(optimum.solve(small(), step=.5, depth=6))
    assert (runs[0].upper == runs[1].upper).all() and (runs[0].lower == runs[1].lower).all()


@pytest.mark.parametrize("call, words", [
    (lambda t: optimum.solve(small(), step=0), "step is 0"),
    (lambda t: optimum.solve(small()._replace(noise_sd=1e-70)), "noise_sd is 1e-70"),
    (lambda t: optimum.solve(small(), depth=-1), "depth is -1"),
    (lambda t: optimum.solve(small(), tolerance=0), "tolerance is 0"),
    (lambda t: optimum.solve(make_problem([[1]], [1], [0], [[1]], 1, 0, .5)), "has 1 features"),
    (lambda t: optimum.value(t, [90, 0]), r"mu\[0\] is 90"),
    (lambda t: optimum.value(optimum.solve(small(items=[[1, 0], [1, 1], [.5, .5]]), step=.5, depth=1), [0, 0], 1),
     "no shift"),
])
def test_errors_name_the_argument(table, call, words):
    with pytest.raises(ValueError, match=words):
        call(table)
