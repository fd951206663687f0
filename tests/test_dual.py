"""The bounds beyond the paper: against plain loops, brute force, known optima, policies, and one another."""
from itertools import product
from math import erf, exp, pi, sqrt
from typing import NamedTuple

import naive
import numba
import numpy as np
import pytest
from scipy.stats import norm, t as student

from lib import bound, dp, streams
from lib.bound import duality, optimum, penalty, relaxations
from lib.estimate import controlled, upper_limit
from lib.bound.relaxations import compile_checked
from lib.problem import checked, make_problem

ITEMS, PROBS = [[1, 0], [0, 1], [.5, .5]], [.4, .4, .2]


def small(cost=0., gamma=.9, mu=(0, 0)):
    return make_problem(ITEMS, PROBS, mu, [[1, .3], [.3, 1]], 1, cost, gamma)


def one_hot(cost, k=100):
    """The paper's simulated instance: one feature in half of the items, the others rare."""
    return make_problem(np.eye(k), [k / (2 * k - 1)] + [1 / (2 * k - 1)] * (k - 1), [.3] * k, np.eye(k), .1, cost, .9)


def random_problem(seed):
    """Correlated prior, up to four features and six items, gamma from .6 to .9."""
    rng = np.random.default_rng(seed)
    k, n = rng.integers(1, 5), rng.integers(1, 7)
    items = rng.random((n, k)) * (rng.random((n, k)) < .7)
    root = rng.standard_normal((k, k)) * rng.uniform(.2, 1)
    return make_problem(items, rng.dirichlet(np.ones(n)), rng.standard_normal(k), root @ root.T,
                        rng.uniform(.3, 2), rng.uniform(-.5, .8), rng.uniform(.6, .9))


class Lives(NamedTuple):
    """What `control` and `gap` read."""

    items: np.ndarray
    feedback: np.ndarray
    decisions: np.ndarray
    rewards: np.ndarray


def tuned_ucb(problem, replications, arrivals, seed):
    """Items, feedback, decisions and rewards of UCB at three weights, in plain array code."""
    _, items, feedback = penalty.sample_paths(problem, np.full(replications, -1), arrivals, streams.generator(seed, 90))
    noise = np.count_nonzero(problem.items, axis=1) * problem.noise_sd**2
    decisions, rewards = [], []
    for alpha in 0, .3, .6:
        mu, Sigma = np.tile(problem.mu, (replications, 1)), np.tile(problem.Sigma, (replications, 1, 1))
        forwards, total = np.zeros(items.shape, bool), np.zeros(replications)
        for n in range(arrivals):
            x = problem.items[items[:, n]]
            spread = np.einsum("rij,rj->ri", Sigma, x)
            var, mean = np.maximum((spread * x).sum(1), 0), (x * mu).sum(1)
            forwards[:, n] = mean + alpha * np.sqrt(var) >= problem.cost
            total += problem.gamma**(n + 1) * forwards[:, n] * (mean - problem.cost)
            gain = np.where(forwards[:, n] & (var > 0), 1 / np.maximum(var + noise[items[:, n]], 1e-300), 0)
            mu = mu + spread * ((feedback[:, n] - mean) * gain)[:, None]
            Sigma = Sigma - np.einsum("ri,rj,r->rij", spread, spread, gain)
        decisions.append(forwards)
        rewards.append(total)
    return Lives(items, feedback, np.array(decisions), np.array(rewards))


# --- oracles in plain loops ------------------------------------------------------------------------------


def gain_of(net, var):
    """E (net + sd Z)^+"""
    if var <= 1e-14:
        return max(net, 0.)
    z = net / sqrt(var)
    return net * (1 + erf(z / sqrt(2))) / 2 + sqrt(var) * exp(-z * z / 2) / sqrt(2 * pi)


def full_value(problem, mu, Sigma, arrivals, start=None):
    """Full observation on given arrivals, the covariance updated as if from `start`, a feedback not yet drawn."""
    items, noise = problem.items.tolist(), [sum(v != 0 for v in x) * problem.noise_sd**2 for x in problem.items]
    known = start if start is not None else Sigma
    total = 0.
    for m, j in enumerate(arrivals, 1):
        x = items[j]
        learned = naive.inner(x, naive.times(Sigma, x)) - naive.inner(x, naive.times(known, x))
        total += problem.gamma**m * gain_of(naive.inner(x, mu) - problem.cost, learned)
        known = naive.update(mu, known, x, 0., noise[j])[1]
    return total


def plain_voi(problem, x, mu, Sigma, ahead):
    """E_y FO after feedback on x, minus FO, averaged over the rows of ahead."""
    item = problem.items[x].tolist()
    after = naive.update(mu, Sigma, item, 0., sum(v != 0 for v in item) * problem.noise_sd**2)[1]
    return sum(full_value(problem, mu, Sigma, row, after) - full_value(problem, mu, Sigma, row) for row in ahead) / len(ahead)


def plain_charge(problem, path, ahead, decisions, ends=False):
    """Total charge of decisions along a path; a skip looks at `ahead` in full, or where the stream `ends` at what is left."""
    mu, Sigma, total = problem.mu.tolist(), problem.Sigma.tolist(), 0.
    for n, (x, y, forward) in enumerate(zip(*path, decisions), 1):
        item = problem.items[x].tolist()
        net = naive.inner(item, mu) - problem.cost
        if forward:
            total += problem.gamma**n * max(-net, 0.)
            mu, Sigma = naive.update(mu, Sigma, item, y, sum(v != 0 for v in item) * problem.noise_sd**2)
        else:
            total += problem.gamma**n * (max(net, 0.) + plain_voi(problem, x, mu, Sigma, ahead[:, :len(decisions) - n] if ends else ahead))
    return total


@pytest.mark.parametrize("seed", range(4))
def test_voi_is_the_plain_loops(seed):
    problem, rng = random_problem(seed), np.random.default_rng(seed)
    ahead = rng.integers(0, len(problem.probs), (2, 9))
    for x in range(len(problem.probs)):
        ours = penalty.voi(compile_checked(problem), x, problem.mu, problem.Sigma, ahead, 9, 6.)
        assert ours == pytest.approx(plain_voi(problem, x, problem.mu.tolist(), problem.Sigma.tolist(), ahead), abs=2e-8)
        assert ours >= 0
    ours = penalty.full_value(compile_checked(problem), problem.mu, problem.Sigma, ahead, 9)
    assert ours == pytest.approx(np.mean([full_value(problem, problem.mu.tolist(), problem.Sigma.tolist(), row)
                                          for row in ahead]), abs=1e-8)


def test_voi_is_the_expectation_over_feedback():
    """The closed form against a quadrature over y of FO from the posterior mean and covariance."""
    problem, ahead = small(.2, mu=(.1, -.2)), np.array([[0, 1, 2]])
    z = np.linspace(-7, 7, 2801)
    weights = np.exp(-z * z / 2) * (z[1] - z[0]) / sqrt(2 * pi)
    for x in range(3):
        item = problem.items[x]
        along, noise = problem.Sigma @ item, np.count_nonzero(item)
        sd = sqrt(item @ along + noise)
        after = problem.Sigma - np.outer(along, along) / sd**2
        means = problem.mu + np.outer(z, along / sd)
        value = sum(w * full_value(problem, m.tolist(), after.tolist(), ahead[0]) for w, m in zip(weights, means))
        value -= full_value(problem, problem.mu.tolist(), problem.Sigma.tolist(), ahead[0])
        ours = penalty.voi(compile_checked(problem), x, problem.mu, problem.Sigma, ahead, 3, 6.)
        assert ours == pytest.approx(value, abs=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_search_finds_the_least_charge_of_all_decisions(seed):
    problem, rng = random_problem(seed), np.random.default_rng(seed)
    items, T = rng.integers(0, len(problem.probs), 5), 5
    feedback, ahead = rng.normal(problem.cost, 1, T), rng.integers(0, len(problem.probs), (2, 6))
    brute = min(plain_charge(problem, (items, feedback), ahead, u) for u in product((False, True), repeat=T))
    found = []
    for effort in 3, 10, 1000:
        k = len(problem.mu)
        room = penalty.Beliefs(np.empty((64, k)), np.empty((64, k, k)), np.empty((64, len(problem.probs))))
        room.mu[0], room.Sigma[0] = problem.mu, problem.Sigma
        found.append(penalty.search(compile_checked(problem), items, feedback, ahead, effort, room, True))
    assert found[2] == pytest.approx(brute, abs=1e-7)
    assert 0 <= found[0] <= found[1] <= found[2]


@pytest.mark.parametrize("seed", range(3))
def test_where_the_stream_ends_policy_and_searcher_look_at_the_arrivals_left(seed):
    """The gap is the plain charges of the decisions minus their minimum over all decisions, along every path."""
    problem, rng, T = random_problem(seed), np.random.default_rng(seed), 5
    lives = Lives(rng.integers(0, len(problem.probs), (3, T)), rng.normal(problem.cost, 1, (3, T)), rng.random((2, 3, T)) < .5, None)
    ahead = penalty.arrivals(problem, (3, 2, T), streams.generator(seed, streams.Purpose.AHEAD))
    gaps = bound.gap(problem, lives, inner=2, seed=seed)
    for r in range(3):
        def charge(u):
            return plain_charge(problem, (lives.items[r], lives.feedback[r]), ahead[r], u, ends=True)
        least = min(charge(u) for u in product((False, True), repeat=T))
        assert gaps[:, r] == pytest.approx([charge(u) - least for u in lives.decisions[:, r]], abs=1e-7)
    assert (gaps > -1e-12).all()


def test_no_summand_of_a_first_forwards_value_is_cut():
    """Far below its cost an item still has a value of information, of 7 standard deviations; charges leave it out."""
    problem = make_problem([[1.]], [1.], [0.], [[1.]], 1., 0., .9)
    problem = problem._replace(cost=7 * sqrt(.5))
    compiled, ahead = compile_checked(problem), np.zeros((1, 1), dtype=int)
    whole, cut = (penalty.voi(compiled, 0, problem.mu, problem.Sigma, ahead, 1, limit) for limit in (np.inf, penalty.CUT))
    assert cut == 0 and whole == pytest.approx(.9 * sqrt(.5) * (norm.pdf(7) - 7 * norm.sf(7)), rel=1e-6)
    first = bound.forward_values(problem)[0]
    assert first[1] > first[0] - problem.cost


def test_a_search_without_room_stops_early_below():
    problem, k = small(.2), 2
    rng = np.random.default_rng(1)
    items, feedback, ahead = rng.integers(0, 3, 30), rng.normal(0, 1, 30), rng.integers(0, 3, (2, 20))
    least = []
    for rows in 2, 5, 500:
        room = penalty.Beliefs(np.empty((rows, k)), np.empty((rows, k, k)), np.empty((rows, 3)))
        room.mu[0], room.Sigma[0] = problem.mu, problem.Sigma
        least.append(penalty.search(compile_checked(problem), items, feedback, ahead, 5000, room, True))
    assert least[0] <= least[1] <= least[2]


# --- the operator T --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_first_forward_solves_its_equation_and_is_monotone_and_convex(seed):
    rng = np.random.default_rng(seed)
    values, other, probs, gamma = rng.normal(0, 1, 7), rng.normal(0, 1, 7), rng.dirichlet(np.ones(7)), rng.uniform(.1, .99)
    w, slope = dp.first_forward(values, probs, gamma)
    assert w == pytest.approx(gamma * probs @ np.maximum(w, values), abs=1e-12)
    assert dp.first_forward(values + rng.random(7), probs, gamma)[0] >= w
    half = dp.first_forward((values + other) / 2, probs, gamma)[0]
    assert half <= (w + dp.first_forward(other, probs, gamma)[0]) / 2 + 1e-12
    assert dp.first_forward(other, probs, gamma)[0] >= w + slope @ (other - values) - 1e-12


@pytest.mark.parametrize("n", [1, 2, 50])
def test_first_forward_needs_no_more_steps_than_it_may_take(n):
    """The worst order: each step leaves out the lowest item that is left."""
    gamma, values, probs = 1 - 1e-9, -np.geomspace(1, 1e-12, n)[::-1] + 1, np.geomspace(1, 1e-9, n)[::-1]
    probs /= probs.sum()
    w, _ = dp.first_forward(values, probs, gamma)
    assert w == pytest.approx(gamma * probs @ np.maximum(w, values), rel=1e-9)


def test_t_of_full_observation_never_exceeds_it():
    for cost in -.5, .2, .6:
        full, first = bound.full_observation(small(cost), 2000, 1), bound.full_first(small(cost))
        assert first.mean <= full.mean + 3 * np.hypot(first.se, full.se)


def test_worthless_items_are_proved_so():
    estimate = bound.full_first(small(3.))
    assert estimate[1:] == (0., 0., 0.)
    assert bound.best(small(3.), .2).upper == 0


# --- known optima ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def optima():
    return optimum.solve(small(), [-.5, .6], step=.15, depth=15)


@pytest.mark.slow
@pytest.mark.parametrize("cost", [-.5, 0, .2, .4, .6])
def test_bounds_of_the_small_instance_stay_above_the_optimum(optima, cost):
    problem, lower = small(cost), optimum.value(optima, [0, 0], cost).lower
    full = bound.full_observation(problem, 1000, 1).mean
    for estimate in bound.full_first(problem), bound.dual(problem, 300, seed=1), bound.dual_first(problem, 300, seed=1):
        assert estimate.mean + 3 * estimate.se >= lower
        assert estimate.mean <= full + .01
    assert bound.dual_first(problem, 300).mean < optimum.value(optima, [0, 0], cost).value + .06


@pytest.mark.slow
def test_two_forwards_exact_are_still_above(optima):
    estimate = bound.dual_second(small(.2), outer=6, paths=60)
    assert estimate.mean + 3 * estimate.se >= optimum.value(optima, [0, 0], .2).lower
    assert estimate.mean <= bound.dual_first(small(.2), 300).mean + 3 * estimate.se + .02


@pytest.mark.slow
@pytest.mark.parametrize("cost, truth", [(0., 3.73525), (.3, 1.55019), (.5, .96865), (.8, .31931)])
def test_bounds_of_the_simulated_instance_stay_above_its_optimum(cost, truth):
    """Independent features that never meet: Theorem 1's certified value is the optimum."""
    problem = one_hot(cost)
    for estimate in bound.full_first(problem, 64), bound.dual(problem, 64, inner=2, effort=300), \
            bound.dual_first(problem, 64, inner=2, effort=300, sequences=32):
        assert estimate.mean + 3 * estimate.se >= truth


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [.7, .95, .99])
def test_other_discounts(gamma):
    """One feature seen by every item: Theorem 1 is exact."""
    problem = make_problem([[1.]], [1.], [-.1], [[1.]], 1., 0., gamma)
    truth = bound.decomposition(problem)
    for estimate in bound.dual(problem, 60, inner=2, effort=1000), bound.dual_first(problem, 60, inner=2, effort=1000):
        assert estimate.mean + 3 * estimate.se >= truth.lower
        assert estimate.mean <= bound.hindsight(problem)


# --- limits ----------------------------------------------------------------------------------------------


def test_a_limit_is_the_largest_over_all_sets_of_items():
    """Against every set of items, for a sample with correlated rows, means and Student's quantile by hand."""
    rng = np.random.default_rng(3)
    known, leaves = rng.normal(.2, 1, (6, 4)) + rng.normal(0, 1, (6, 1)), [rng.normal(0, 1, 5) for _ in range(4)]
    probs, gamma, limits = np.array([.1, .2, .3, .4]), .9, [0.]
    for items in product((False, True), repeat=4):
        slope = np.where(items, gamma * probs, 0) / (1 - gamma + gamma * probs @ items)
        parts = [slope[x]**2 * leaves[x].var(ddof=1) / 5 for x in range(4)] + [(known @ slope).var(ddof=1) / 6]
        if any(items):
            df = sum(parts)**2 / (sum(v * v for v in parts[:4]) / 4 + parts[4]**2 / 5)
            mean = (known @ slope).mean() - sum(slope[x] * leaves[x].mean() for x in range(4))
            limits.append(mean + student.ppf(.95, df) * sqrt(sum(parts)))
    problem = make_problem(np.eye(4), probs, [0] * 4, np.eye(4), 1, 0, gamma)
    found = duality._first_forward("", duality._sample(known, leaves), problem)
    assert found.upper == pytest.approx(max(limits))


def test_best_estimates_afresh_what_a_pilot_has_at_zero(monkeypatch):
    seeds = []
    real = duality.full_first
    monkeypatch.setattr(duality, "full_first", lambda problem, sequences, seed: (seeds.append(seed), real(problem, sequences, seed))[1])
    assert bound.best(small(3.), .2, seed=5) == bound.Bound("first forward exact", 0., 0., 0.)
    assert (5, 0) in seeds and (5, 2) in seeds


# --- policies --------------------------------------------------------------------------------------------


def test_control_has_mean_zero_and_sharpens():
    problem = small(.2, mu=(.4, .3))
    lives = tuned_ucb(problem, 1500, 25, seed=2)
    # x.mu in the place of x.theta: the same mean by conditioning, so the control's mean is still zero
    controls = bound.control(problem, lives, seed=3)
    for reward, control in zip(lives.rewards, controls):
        assert abs(control.mean()) < 3.5 * control.std() / sqrt(len(control))
        sharp = controlled(reward, control)
        assert sharp.se < .5 * reward.std() / sqrt(len(reward))
        assert abs(sharp.mean - reward.mean()) < 3.5 * reward.std() / sqrt(len(reward))


def test_gap_is_what_the_dual_bound_leaves():
    problem = small(.2, gamma=.7)
    lives = tuned_ucb(problem, 600, 25, seed=5)
    gaps = bound.gap(problem, lives)
    estimate = bound.dual(problem, 400, seed=6)
    for reward, gap in zip(lives.rewards, gaps):
        error = np.hypot(estimate.se, (reward + gap).std() / sqrt(len(gap)))
        assert reward.mean() + gap.mean() == pytest.approx(estimate.mean, abs=4 * error)
        assert gap.mean() > 0


@pytest.mark.slow
def test_bounds_are_above_policies_on_200_random_problems():
    for seed in range(200):
        problem = random_problem(seed)
        lives = tuned_ucb(problem, 150, 40, seed)
        controls = bound.control(problem, lives, inner=1, seed=(seed, 1))
        values = [controlled(*pair) for pair in zip(lives.rewards, controls)]
        lower = max(value.mean - 4 * value.se for value in values)
        for estimate in bound.full_first(problem, 32), bound.dual(problem, 24, inner=2, effort=400), \
                bound.dual_first(problem, 24, inner=2, effort=400, sequences=32):
            assert estimate.mean + 4 * estimate.se >= lower - 1e-9, (seed, estimate, values)


def test_ladder_and_best_agree_within_error():
    rungs = {rung.name: rung for rung in bound.ladder(small(.2), 200)}
    best = bound.best(small(.2), 1., seed=(3, 1))
    assert best.name in rungs and best.upper >= upper_limit(best.mean, best.se)
    assert abs(best.mean - rungs[best.name].mean) < 4 * np.hypot(best.se, rungs[best.name].se)
    assert best.mean < rungs["full observation"].mean < rungs["hindsight"].mean


def test_the_ladder_has_theorem_1_for_items_of_any_norm():
    twice = make_problem([[2.]], [1.], [0.], [[1.]], 1., 0., .5)
    names = {rung.name: rung for rung in bound.ladder(twice, 100)}
    assert names["Theorem 1"].upper == pytest.approx(bound.decomposition(twice, noise="model").upper, rel=.02)
    assert names["Theorem 1"].se == 0 and "Theorem 1, sharper noise" not in names


def test_the_ladder_leaves_theorem_1_out_for_many_general_items(monkeypatch):
    monkeypatch.setattr("lib.bound.theorem.LARGE", 0)
    assert "Theorem 1" not in {r.name for r in bound.ladder(make_problem([[2.]], [1.], [0.], [[1.]], 1., 0., .5), 100)}


def test_after_is_one_update():
    left = duality.after(small(), 2, .7)
    mu, Sigma = naive.update([0, 0], [[1, .3], [.3, 1]], [.5, .5], .7, 2.)
    assert np.allclose(left.mu, mu) and np.allclose(left.Sigma, Sigma)
    certain = make_problem([[0., 0.]], [1.], [0, 0], np.eye(2), 1, .2, .9)
    assert duality.after(certain, 0, 1.) is certain


def test_threads_and_seeds():
    runs = []
    for threads in 1, min(2, numba.config.NUMBA_NUM_THREADS):
        numba.set_num_threads(threads)
        runs.append(bound.least_charges(small(.1), [-1, 0, 2] * 30, seed=4))
    assert (runs[0] == runs[1]).all()
    assert (runs[0] != bound.least_charges(small(.1), [-1, 0, 2] * 30, seed=5)).any()


@pytest.mark.parametrize("call, words", [
    (lambda: bound.best(small(), 0), "budget_seconds is 0"),
    (lambda: bound.dual_second(small(), outer=3), "outer is 3"),
    (lambda: bound.dual_first(small()._replace(noise_sd=1e-12), 10), "noise_sd is 1e-12"),
    (lambda: bound.full_first(small()._replace(noise_sd=1e200), 32), r"noise_sd is too large, 1e\+200"),
    (lambda: bound.control(small(), Lives([[0]], [[0.]], [[[True, False]]], [[0.]])), "must have shapes"),
    (lambda: bound.control(small(), Lives([[0]], [[0.]], [[[True]]], [[0.], [1.]])), r"rewards must have shape \(1, 1\)"),
    (lambda: bound.gap(small(), Lives([[3]], [[0.]], [[[True]]], None)), "items runs from 3 to 3: it must hold integers from 0 to 2"),
])
def test_errors_name_the_argument(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_what_a_prior_of_rank_one_leaves_at_the_smallest_noise_is_a_problem():
    for seed in range(30):                                     # rounding left a negative eigenvalue in two of them
        rng = np.random.default_rng(seed)
        v, items = rng.normal(size=3), rng.normal(size=(3, 3))
        spread = np.abs(items @ v).max()
        sharp = make_problem(items, [.3, .3, .4], np.zeros(3), np.outer(v, v), 1.0001e-5 * spread, .1, .9, "constant")
        left = checked(duality.after(sharp, 0, .3))
        assert items[0] @ left.Sigma @ items[0] <= 1.0001 * sharp.noise_sd**2


def test_limits_without_normality_are_those_of_the_same_estimates():
    problem = small()._replace(cost=.3)
    full, after = bound.finite_sample(problem, 300, 2, 200, 5)
    dual = bound.dual(problem, 300, 2, 200, 5)
    assert (after.name, after.mean, after.se) == ("dual", dual.mean, dual.se) and after.upper > dual.upper
    seen = bound.full_observation(problem, 3000, 5)
    assert (full.name, full.mean, full.se) == ("full observation", *seen) and seen.mean + seen.se < full.upper < seen.mean + .1
    wide, narrow = (bound.finite_sample(problem, paths, 2, 200, 5)[1] for paths in (100, 1600))
    assert narrow.upper - narrow.mean < (wide.upper - wide.mean) / 2


def test_no_sequence_of_items_is_worth_more_than_the_best_item_at_every_arrival():
    for cost in (-1.0, .3, 2.0):
        problem = small()._replace(cost=cost)
        for horizon in (3, 60):
            values = relaxations.observed_values(problem, 200, 1, horizon)
            assert (values <= relaxations.most_observed(problem, horizon)).all()
    surely = make_problem([[1.0]], [1.0], [2.0], [[0.0]], 1.0, .5, .9)              # nothing to learn: all are worth that
    assert relaxations.observed_values(surely, 2, 0, 50) == pytest.approx(relaxations.most_observed(surely, 50), rel=1e-8)
    assert bound.finite_sample(surely._replace(cost=3.0), 2)[1] == bound.Bound("dual", 0.0, 0.0, 0.0)
