"""The simulation against plain loops, item by item, and its promises about random numbers."""
import tracemalloc

import naive
import numba
import numpy as np
import pytest
from scipy import stats

from lib import dp, policies, posterior, simulate, streams
from lib.problem import make_problem, noise_var
from lib.policies.rules import INDEX, REGISTRY, THOMPSON
from lib.simulate import instances, kernels, square_root, vectorized
from lib.simulate.instances import Stream

POLICIES = [policies.exploit(), policies.ucb(0.7), policies.thompson(), policies.dtd_ucb(1.3)]


def test_every_index_policy_has_its_plain_rule_and_stands_in_the_list():
    """A new family of the registry needs a line in naive.RULES and a place in POLICIES."""
    index = {kind for kind, family in REGISTRY.items() if family.rule in (INDEX, THOMPSON)}
    assert index == {policy.kind for policy in POLICIES} and index < set(naive.RULES)


def dense(k=3, n=6, seed=0, rank=None, cost=0.4):
    """Random items, some features missing, one item without any, and a covariance of the given rank."""
    rng = np.random.default_rng(seed)
    items = rng.random((n, k)) * (rng.random((n, k)) < 0.8)
    items[-1] = 0
    A = rng.standard_normal((k, rank or k))
    return make_problem(items, rng.dirichlet(np.ones(n)), rng.random(k), A @ A.T, 0.5, cost, 0.9)


def grouped():
    """Five features in three groups, {0, 3}, {1, 4} and {2}, in an order that has to be undone."""
    Sigma = np.diag([1.0, 2.0, 0.5, 1.5, 1.0])
    Sigma[0, 3] = Sigma[3, 0] = 0.6
    items = [[1, 0, 0, 0, 0], [0, 1, 0, 0, 2], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]
    return make_problem(items, [0.3, 0.2, 0.1, 0.2, 0.2], [0.1, 0.2, 0.3, 0.4, 0.5], Sigma, 0.5, 0.3, 0.9)


def blocks():
    """A group of 33 features beside one of 3 and one alone, shuffled."""
    big, small = dense(33, 20, 5), dense(3, 6, 6)
    items, Sigma = np.zeros((28, 37)), np.zeros((37, 37))
    items[:20, :33], items[20:26, 33:36], items[26, 36] = big.items, small.items, 1
    Sigma[:33, :33], Sigma[33:36, 33:36], Sigma[36, 36] = big.Sigma, small.Sigma, 1
    order = np.random.default_rng(0).permutation(37)
    Sigma = Sigma[np.ix_(order, order)]
    return make_problem(items[:, order], np.full(28, 1 / 28), np.full(37, 0.2), Sigma, 0.5, 0.3, 0.9)


def unit_items(k=9):
    return make_problem(np.eye(k), np.full(k, 1 / k), np.full(k, 0.3), np.eye(k), 0.1, 0.5, 0.9)


PROBLEMS = {"dense": dense(), "singular": dense(5, 12, 1, 2), "one feature": dense(1, 3, 2), "grouped": grouped(),
            "unit items": unit_items(), "wide": dense(17, 30, 3), "vectors": dense(33, 50, 4),
            "vectors and groups": blocks(), "known theta": dense()._replace(Sigma=np.zeros((3, 3)))}


@pytest.mark.kernels
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("reward", ["expected", "realised"])
def test_every_decision_is_that_of_the_plain_loops(name, reward):
    problem, horizon = PROBLEMS[name], 40
    got = simulate.episodes(problem, POLICIES, 5, horizon, seed=3, reward=reward, first=126)
    L = streams.factor(problem.Sigma)
    for r in range(5):
        block, row = divmod(126 + r, streams.BLOCK)
        z, u, noise, thompson = (draw(3, purpose, block, steps)[row] for draw, purpose, steps in (
            (streams.normals, streams.THETA, len(L)), (streams.uniforms, streams.ITEMS, horizon),
            (streams.normals, streams.NOISE, horizon), (streams.normals, streams.THOMPSON, horizon)))
        theta = [problem.mu[i] + naive.inner(L[i], z) for i in range(len(L))]
        assert got.theta[r] == pytest.approx(theta, abs=1e-12)
        for p, policy in enumerate(POLICIES):
            want = naive.episode(problem, policy.kind, policy.alpha, theta, u, noise, thompson)
            assert got.items[r].tolist() == want[0]
            assert got.feedback[r] == pytest.approx(want[1], abs=1e-12)
            assert got.decisions[p, r].tolist() == want[2], (policy, r)
            assert got.rewards[p, r] == pytest.approx(want[3 if reward == "expected" else 4], abs=1e-11)


@pytest.mark.parametrize("name, alpha, noise", [
    ("dense", 1.0, "basis"), ("dense", 3.0, "model"), ("unit items", 1.0, "basis"), ("grouped", 0.5, "model"),
    ("known theta", 1.0, "basis")])
def test_dtd_dp_decides_as_the_plain_loops_do_with_the_program_itself(name, alpha, noise):
    """The oracle asks the dynamic program at each precision; the simulation reads a table."""
    problem, horizon, rows = PROBLEMS[name], 30, 8
    policy = policies.dtd_dp(alpha, noise)
    got = simulate.episodes(problem, [policy], rows, horizon, seed=4)
    laws, tables = policies.projections(problem), {}
    sd = np.sqrt(noise_var(problem)) if noise == "model" else np.full(len(problem.items), problem.noise_sd)

    def benefit(i, net_mean, var):
        if var <= 0:
            return 0.0
        if i not in tables:
            tables[i] = dp.solve(*laws[i], problem.gamma, sd[i], var, certify=False)
        discard, forward = dp.q_values(tables[i], net_mean, min(var, tables[i].var_max))
        return max(float(forward - discard) - net_mean, 0.0)

    for r in range(rows):
        u, z = streams.uniforms(4, streams.ITEMS, 0, horizon)[r], streams.normals(4, streams.NOISE, 0, horizon)[r]
        want = naive.episode(problem, "dtd_dp", alpha, list(got.theta[r]), u, z, np.zeros(horizon), benefit)
        assert got.decisions[0, r].tolist() == want[2]


@pytest.mark.parametrize("problem", [dense(), unit_items()], ids=["dense", "unit items"])
def test_one_thread_equals_two_and_the_first_hundred_of_a_thousand_equal_a_hundred(problem):
    default = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        one = simulate.replicate(problem, POLICIES, 1000, 30, seed=5)
        if default > 1:
            numba.set_num_threads(2)
        two = simulate.replicate(problem, POLICIES, 1000, 30, seed=5)
    finally:
        numba.set_num_threads(default)
    assert one.tobytes() == two.tobytes()
    assert simulate.replicate(problem, POLICIES, 100, 30, seed=5).tobytes() == one[:, :100].tobytes()


def test_memory_beside_the_result_is_flat_in_the_number_of_users():
    beside = []
    simulate.replicate(dense(), POLICIES, 300, 20)      # compiled
    for users in (3000, 100_000):
        tracemalloc.start()
        rewards = simulate.replicate(dense(), POLICIES, users, 20)
        beside.append(tracemalloc.get_traced_memory()[1] - rewards.nbytes)
        tracemalloc.stop()
    assert beside[1] < 2 * beside[0]


def test_pieces_policies_and_horizon_change_nothing_else():
    problem = dense()
    whole = simulate.episodes(problem, POLICIES, 300, 30, seed=1)
    rewards = [simulate.replicate(problem, POLICIES, n, 30, seed=1, first=first) for first, n in ((0, 77), (77, 223))]
    assert np.concatenate(rewards, axis=1).tobytes() == whole.rewards.tobytes()
    alone = simulate.replicate(problem, POLICIES[1:2], 300, 30, seed=1)
    assert alone.tobytes() == whole.rewards[1:2].tobytes()
    short = simulate.episodes(problem, POLICIES, 300, 12, seed=1)
    assert np.array_equal(short.decisions, whole.decisions[:, :, :12])
    assert np.array_equal(short.feedback, whole.feedback[:, :12])


def elsewhere():
    """Another user, other items, other frequencies and other noise than `dense()` believes in, with a feature more."""
    rng = np.random.default_rng(8)
    A = rng.standard_normal((4, 4))
    return make_problem(rng.random((6, 4)), rng.dirichlet(np.ones(6)), rng.random(4), A @ A.T, 0.9, 0.4, 0.9)


@pytest.mark.parametrize("reward", ["expected", "realised"])
def test_wrong_beliefs_decide_as_the_plain_loops_do(reward):
    problem, truth, horizon = dense(), elsewhere(), 30
    got = simulate.episodes(problem, POLICIES, 5, horizon, seed=3, reward=reward, first=126, truth=truth)
    L = streams.factor(truth.Sigma)
    for r in range(5):
        block, row = divmod(126 + r, streams.BLOCK)
        z, u, noise, thompson = (draw(3, purpose, block, steps)[row] for draw, purpose, steps in (
            (streams.normals, streams.THETA, 4), (streams.uniforms, streams.ITEMS, horizon),
            (streams.normals, streams.NOISE, horizon), (streams.normals, streams.THOMPSON, horizon)))
        theta = [truth.mu[i] + naive.inner(L[i], z) for i in range(4)]
        assert got.theta[r] == pytest.approx(theta, abs=1e-12)
        for p, policy in enumerate(POLICIES):
            want = naive.episode(problem, policy.kind, policy.alpha, theta, u, noise, thompson, truth=truth)
            assert got.items[r].tolist() == want[0]
            assert got.feedback[r] == pytest.approx(want[1], abs=1e-12)
            assert got.decisions[p, r].tolist() == want[2], (policy, r)
            assert got.rewards[p, r] == pytest.approx(want[3 if reward == "expected" else 4], abs=1e-11)


def test_beliefs_change_decisions_only_and_the_truth_is_what_it_was():
    truth = dense()
    wrong = truth._replace(mu=truth.mu - 0.3, Sigma=2 * truth.Sigma, noise_sd=1.0)
    rules = [*POLICIES, policies.knowledge_gradient()]
    right, other = (simulate.episodes(beliefs, rules, 300, 25, truth=truth) for beliefs in (truth, wrong))
    assert right.rewards.tobytes() == simulate.replicate(truth, rules, 300, 25).tobytes()
    for part in ("theta", "items", "feedback", "thompson"):
        assert np.array_equal(getattr(right, part), getattr(other, part))
    assert (right.decisions != other.decisions).any(axis=(1, 2)).all()
    some = simulate.replicate(wrong, rules, 60, 25, truth=truth, first=140)
    assert some.tobytes() == other.rewards[:, 140:200].tobytes()
    assert np.array_equal(simulate.episodes(wrong, rules, 5, 25, thetas=[[1, 2, 3]], truth=truth).theta, [[1, 2, 3]] * 5)


def test_costs_share_users_items_and_noise():
    a, b = (simulate.episodes(dense(cost=cost), POLICIES, 20, 10) for cost in (0.1, 0.9))
    assert np.array_equal(a.theta, b.theta) and np.array_equal(a.feedback, b.feedback)


def test_real_users_are_taken_in_turn():
    thetas = [[0, 1, 0], [1, 0, 0], [2, 2, 2]]
    got = simulate.episodes(dense(), POLICIES, 7, 10, thetas=thetas, first=125)
    assert np.array_equal(got.theta, np.array(thetas)[(125 + np.arange(7)) % 3])
    drawn = simulate.episodes(dense(), POLICIES, 7, 10, first=125)
    assert np.array_equal(got.items, drawn.items)


def test_rewards_follow_from_the_decisions():
    problem = dense()
    for reward in ("expected", "realised"):
        got = simulate.episodes(problem, POLICIES, 50, 20, reward=reward)
        value = np.einsum("rnk,rk->rn", problem.items[got.items], got.theta) if reward == "expected" else got.feedback
        pay = 0.9 ** np.arange(1, 21) * (value - problem.cost)
        assert got.rewards == pytest.approx((got.decisions * pay).sum(axis=2), abs=1e-12)


def test_realised_rewards_have_the_same_mean():
    expected, realised = (simulate.replicate(dense(), POLICIES, 20_000, 40, reward=reward)
                          for reward in ("expected", "realised"))
    gap = realised - expected
    assert (abs(gap.mean(axis=1)) < 4 * gap.std(axis=1) / np.sqrt(20_000)).all()
    assert (gap.std(axis=1) > 0.1).all()


def test_users_and_items_have_the_right_law():
    problem = dense(3, 6, 1)
    got = simulate.episodes(problem, [policies.exploit()], 20_000, 5, seed=9)
    assert got.theta.mean(axis=0) == pytest.approx(problem.mu, abs=0.05)
    assert np.cov(got.theta.T) == pytest.approx(problem.Sigma, abs=0.05 * abs(problem.Sigma).max())
    counts = np.bincount(got.items.ravel(), minlength=6)
    assert stats.chisquare(counts, problem.probs * counts.sum()).pvalue > 1e-3
    error = got.feedback - np.einsum("rnk,rk->rn", problem.items[got.items], got.theta)
    full = problem.items[got.items].any(axis=2)
    assert stats.kstest((error / np.sqrt(noise_var(problem))[got.items].clip(1e-9))[full], "norm").pvalue > 1e-3
    assert (error[~full] == 0).all()


def test_thompson_forwards_with_the_exact_posterior_probability():
    """Replay beliefs from what was seen: P(forward) must be the normal law's, in every range of it."""
    problem, rows = dense(3, 8, 4), 400
    got = simulate.episodes(problem, [policies.thompson()], rows, 25, seed=2)
    uniform, chance = [], []
    for r in range(rows):
        belief = posterior.Belief(problem.mu, problem.Sigma)
        for n, i in enumerate(got.items[r]):
            x = problem.items[i]
            if not x.any():
                continue
            mean, sd = x @ belief.mu, np.sqrt(x @ belief.Sigma @ x)
            draw = mean + sd * got.thompson[r, n]
            assert got.decisions[0, r, n] == (draw > problem.cost)
            uniform.append(stats.norm.cdf((draw - mean) / sd))
            chance.append((stats.norm.sf((problem.cost - mean) / sd), got.decisions[0, r, n]))
            if got.decisions[0, r, n]:
                belief = posterior.step(belief, x, got.feedback[r, n], noise_var(problem)[i])
    assert stats.kstest(uniform, "uniform").pvalue > 1e-3
    chance = np.array(chance)
    for low in np.arange(0, 1, 0.2):
        p, forwarded = chance[(chance[:, 0] >= low) & (chance[:, 0] < low + 0.2)].T
        assert abs((forwarded - p).sum()) < 4 * np.sqrt((p * (1 - p)).sum())


def test_ties_are_the_papers():
    """Known theta worth exactly its cost: exploitation and UCB forward, Thompson sampling and DTD-UCB do not."""
    problem = make_problem([[1, 0], [0, 0]], [0.5, 0.5], [0.25, 0], np.zeros((2, 2)), 1, 0.25, 0.9)
    for cost in (0.25, 0.0):
        got = simulate.episodes(problem._replace(cost=cost), POLICIES, 10, 20)
        tied = problem.items[got.items] @ problem.mu == cost
        assert tied.any()
        ties = [policies.REGISTRY[policy.kind].ties for policy in POLICIES]
        assert ties[:4] == [True, True, False, False]
        assert got.decisions[:, tied].all(axis=1).tolist() == got.decisions[:, tied].any(axis=1).tolist() == ties


@pytest.mark.parametrize("problem, horizon, vectors", [(dense(11, 40, 6), 10_000, False), (dense(40, 60, 7), 80, True)],
                         ids=["matrix", "vectors"])
def test_the_kernels_belief_is_the_posteriors(problem, horizon, vectors):
    grouped, order = instances.group(problem, horizon)
    assert grouped.vectors == vectors
    state, k = kernels.make_state(grouped), len(order)
    project, learn = (kernels.project_vectors, kernels.learn_vectors) if vectors else (
        kernels.project_matrix, kernels.learn_matrix)
    kernels.restore(grouped, state)
    belief, rng = posterior.Belief(problem.mu, problem.Sigma), np.random.default_rng(0)
    for i in rng.integers(0, len(problem.items) - 1, min(10_000, horizon)):
        x, y, noise = problem.items[i], rng.standard_normal() * 2, noise_var(problem)[i]
        mean, var = kernels.dot(grouped, i, state.mu), project(grouped, state, i)
        assert (mean, var) == pytest.approx((x @ belief.mu, x @ belief.Sigma @ x), abs=1e-9)
        learn(grouped, state, i, np.sqrt(var + noise), (y - mean) / np.sqrt(var + noise))
        belief = posterior.step(belief, x, y, noise)
    h = state.h[:int(state.count[1])]
    Sigma = (grouped.Sigma - h.T @ h if vectors else state.Sigma)[:, :k]
    assert np.array_equal(Sigma, Sigma.T)
    assert np.linalg.eigvalsh(Sigma)[0] > -1e-13 * abs(problem.Sigma).max()
    assert state.mu[:k] == pytest.approx(belief.mu[order], abs=1e-9)
    assert Sigma == pytest.approx(belief.Sigma[np.ix_(order, order)], abs=1e-9)


@pytest.mark.parametrize("problem", [dense(), dense(5, 12, 1, 2), dense(1, 3, 2), dense(30, 40, 8)])
def test_users_side_by_side_decide_as_they_do_alone(problem):
    """The two engines for short dense items, on a number of users that leaves lanes over."""
    rules = policies.compile_rules(problem, [*POLICIES, *([policies.dtd_dp(0.7)] if len(problem.mu) < 6 else [])])
    grouped, _ = instances.group(problem, 30)
    met = simulate.episodes(problem, [policies.thompson()], 150, 30)
    assert vectorized.fits(grouped)
    stream = Stream(met.items, met.feedback, met.feedback - problem.cost, met.thompson)
    results = []
    for engine in (kernels, vectorized):
        rewards = np.empty((len(rules.kind), 150))
        decisions = np.empty(rewards.shape + (30,), bool)
        engine.run(grouped, rules, stream, rewards, decisions)
        results.append((rewards, decisions))
    assert np.array_equal(results[0][1], results[1][1])
    assert results[0][0] == pytest.approx(results[1][0], abs=1e-11)
    assert results[0][1].any()


QUIET = [policies.exploit(), policies.ucb(1), policies.thompson(), policies.dtd_ucb(1)]


def quiet(share, k=3, unit=1.0, cost=0.5):
    """Dense items and noise of this share of the prior's sd; features measured in `unit`."""
    rng = np.random.default_rng(3)
    items = rng.random((8, k)) + 0.1
    return make_problem(items / unit, np.full(8, 1 / 8), np.full(k, 0.3) * unit, (0.5 * np.eye(k) + 0.5) * unit**2, share, cost, 0.9)


@pytest.mark.parametrize("noise_sd", [1e-1, 1e-4, 1e-6, 1e-8, 1e-10, 1e-11])
@pytest.mark.parametrize("k", [3, 6])
def test_tiny_noise_decides_as_eighty_digits_do(noise_sd, k):
    """The judge is exact but for its 80 digits.  Before, UCB fell apart from noise of 1e-8 of the prior's sd."""
    problem, rows, horizon = quiet(noise_sd, k), 6, 40
    got = simulate.episodes(problem, QUIET, rows, horizon, seed=3)
    noise = streams.normals(3, streams.NOISE, 0, horizon)
    for p, policy in enumerate(QUIET):
        for r in range(rows):
            decisions, reward = naive.precise_episode(problem, policy.kind, policy.alpha, got.theta[r], got.items[r],
                                                      noise[r], got.thompson[r])
            assert got.decisions[p, r].tolist() == decisions, (policy, r)
            assert got.rewards[p, r] == pytest.approx(reward, rel=1e-10)


def test_the_square_root_is_the_matrix_where_both_can_be_had():
    problem = quiet(1e-3)
    got = simulate.episodes(problem, QUIET, 150, 40, seed=1)
    pay = 0.9 ** np.arange(1, 41) * (np.einsum("rnk,rk->rn", problem.items[got.items], got.theta) - problem.cost)
    rewards, decisions = np.empty((4, 150)), np.empty((4, 150, 40), bool)
    square_root.run(posterior.compile_problem(problem), streams.factor(problem.Sigma), policies.compile_rules(problem, QUIET),
                    Stream(got.items, got.feedback, pay, got.thompson), rewards, decisions)
    assert np.array_equal(decisions, got.decisions)
    assert rewards == pytest.approx(got.rewards, abs=1e-10)


def test_too_little_noise_is_refused_in_every_unit():
    assert posterior.noise_share(quiet(1e-4)) == pytest.approx(posterior.noise_share(quiet(1e-4, unit=1e6)))
    for unit in (1e-6, 1.0, 1e6):
        with pytest.raises(ValueError, match="noise_sd is 1e-13: with these items and this prior it must be .*e-1. or more"):
            simulate.replicate(quiet(1e-13, unit=unit), QUIET, 2, 5)
        with pytest.raises(ValueError, match="noise_sd is 1e-07: .* look at the whole belief need .*e-05 or more"):
            simulate.replicate(quiet(1e-7, unit=unit), [policies.knowledge_gradient()], 2, 5)


@pytest.mark.parametrize("change, name", [
    (dict(mu=np.full(3, np.nan)), r"mu\[0\] is nan"), (dict(cost="0.2"), "cost must be numeric, got '0.2'"),
    (dict(items=np.full((6, 3), 1e308)), r"items\[0\] is too large"), (dict(noise_sd=1e200), "noise_sd is too large"),
    (dict(noise_sd=1e-200), "noise_sd is 1e-200"), (dict(gamma=1.0), "gamma is 1.0"),
    (dict(mu=np.ma.masked_less([0.1, 0.2, 0.3], 0.2)), "mu is a masked array"), (dict(probs=[1.0]), "probs must have one"),
    (dict(Sigma=-np.eye(3)), "Sigma is not positive")])
@pytest.mark.parametrize("function", [
    lambda p: simulate.replicate(p, POLICIES, 2, 3), lambda p: simulate.episodes(p, POLICIES, 2, 3), simulate.truncation,
    lambda p: simulate.decoupled(p, policies.exploit()), lambda p: policies.compile_rules(p, POLICIES),
    policies.mean_projection, policies.projections])
def test_a_problem_is_checked_where_it_is_used(function, change, name):
    with pytest.raises(ValueError, match=name):
        function(dense()._replace(**change))


def test_lists_will_do_where_arrays_are_meant_and_nothing_else_is_a_problem():
    problem = dense()
    lists = problem._replace(items=problem.items.tolist(), mu=problem.mu.tolist(), Sigma=problem.Sigma.tolist())
    assert np.array_equal(simulate.replicate(lists, POLICIES, 3, 5), simulate.replicate(problem, POLICIES, 3, 5))
    with pytest.raises(ValueError, match="problem is 'dense', no Problem: use lib.problem.make_problem"):
        simulate.replicate("dense", POLICIES, 2, 3)


def test_truncation_bounds_what_comes_after():
    problem = dense()
    low, high = simulate.truncation(problem, 20)
    assert low < 0 < high
    rest = simulate.replicate(problem, POLICIES, 4000, 120) - simulate.replicate(problem, POLICIES, 4000, 20)
    error = 3 * rest.std(axis=1) / np.sqrt(4000)
    assert (rest.mean(axis=1) < high + error).all() and (rest.mean(axis=1) > low - error).all()
    sure = make_problem([[1]], [1], [2], [[0]], 1, 1, 0.5)
    assert simulate.truncation(sure, 3) == (0, pytest.approx(0.5**4 / 0.5))
    theta = np.random.default_rng(0).multivariate_normal(problem.mu, problem.Sigma, 200_000)
    gain = np.maximum(theta @ problem.items.T - problem.cost, 0) @ problem.probs * 0.9**21 / 0.1
    assert high == pytest.approx(gain.mean(), abs=5 * gain.std() / np.sqrt(len(gain)))


@pytest.mark.parametrize("change, name", [
    (dict(replications=0), "replications must be"), (dict(replications=2.0), "replications must be"),
    (dict(horizon=0), "horizon must be"), (dict(horizon=True), "horizon must be"),
    (dict(seed=-1), "seed must be"), (dict(first=-1), "first must be"),
    (dict(thetas=[[1, 2]]), "thetas must have one column per feature, got 2 for 3"),
    (dict(thetas=[1, 2, 3]), "thetas must be"), (dict(thetas=[[1, 2, np.nan]]), r"thetas\[0, 2\] is nan"),
    (dict(truth=dense(3, 5)), "truth must have the number of items of the problem, 6, got 5"),
    (dict(truth=dense(cost=1.0)), "truth must have the cost of the problem, 0.4, got 1.0"),
    (dict(truth=dense()._replace(gamma=.5)), "truth must have the gamma of the problem, 0.9, got 0.5"),
    (dict(reward="both"), "reward is 'both'"), (dict(policies=[]), "policies is empty"),
])
@pytest.mark.parametrize("function", [simulate.replicate, simulate.episodes])
def test_bad_arguments_are_named(function, change, name):
    with pytest.raises(ValueError, match=name):
        function(**{**dict(problem=dense(), policies=POLICIES, replications=2, horizon=3), **change})


def test_an_item_forwarded_at_a_tie_counts_once():
    """Prior means at the cost exactly: exploitation forwards, is paid, and learns, as from any other item."""
    problem = make_problem([[1, 0], [.5, .5]], [.5, .5], [.25, .25], [[1, .5], [.5, 1]], 1, .25, .9)
    theta = np.random.default_rng(2).standard_normal((70, 2))
    met = simulate.episodes(problem, [policies.exploit()], 70, 12, 4, theta)
    assert met.decisions[0, :, 0].all()
    for r in range(70):
        mu, Sigma, total = [.25, .25], [[1, .5], [.5, 1]], 0.0
        for n, (i, y) in enumerate(zip(met.items[r], met.feedback[r]), 1):
            x = problem.items[i].tolist()
            assert met.decisions[0, r, n - 1] == (naive.inner(x, mu) >= .25)
            if met.decisions[0, r, n - 1]:
                total += .9**n * (naive.inner(x, theta[r]) - .25)
                mu, Sigma = naive.update(mu, Sigma, x, y, noise_var(problem)[i])
        assert met.rewards[0, r] == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("make", [dense, grouped, lambda: dense(4, 7, 2, rank=1)._replace(noise="constant")])
@pytest.mark.parametrize("thetas", [None, np.array([[1.0, 0, 2, 0, 1], [0.5, 0.5, -1, 1, 0], [0, 0, 0, 0, 0]])])
def test_the_control_variate_is_what_hindsight_earns_less_its_mean(make, thetas):
    problem, first, count = make(), 128, 20_000
    thetas = None if thetas is None else thetas[:, :len(problem.mu)]
    rows = simulate.replicate_controlled(problem, POLICIES, count, 15, 3, thetas, first=first)
    np.testing.assert_array_equal(rows[:-1], simulate.replicate(problem, POLICIES, count, 15, 3, thetas, first=first))
    met = simulate.episodes(problem, POLICIES[:1], 50, 15, 3, thetas, first=first)
    for r in range(50):
        worth = [max(float(met.theta[r] @ problem.items[i]) - problem.cost, 0) for i in met.items[r]]
        earned = sum(problem.gamma ** (n + 1) * w for n, w in enumerate(worth))
        mean = earned - rows[-1, r]
        if thetas is not None:
            each = sum(p * max(float(met.theta[r] @ x) - problem.cost, 0) for p, x in zip(problem.probs, problem.items))
            assert mean == pytest.approx(sum(problem.gamma ** n for n in range(1, 16)) * each, abs=1e-12)
    assert abs(rows[-1].mean()) <= 4 * rows[-1].std() / np.sqrt(count)
