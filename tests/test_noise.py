"""Signed items, and noise that counts features, counts none or is known of each item: against plain loops."""
import numpy as np
import pytest

from lib import bound, policies, simulate, streams
from lib.bound import optimum
from lib.problem import basis_var, make_problem, noise_var
import naive

SIGNED = np.array([[1, 0, 0, 0], [0.5, -0.5, 0, 0], [-0.2, 0.3, 0.5, 0], [0, 0, -1, 0], [0.3, 0.1, -0.4, 0.8], [0, 0, 0, 0]])
LAWS = ("features", "constant", np.array([0.5, 2, 1, 3, 0.1, 1]))
RULES = [policies.exploit(), policies.ucb(0.5), policies.dtd_ucb(0.8), policies.thompson()]
WHOLE = [policies.knowledge_gradient(0.7), policies.information_directed(1.0), policies.bayes_ucb(0.5)]


def signed(noise="features", k=4, cost=0.1):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((k, k))
    return make_problem(SIGNED[:, :k], [0.2, 0.2, 0.2, 0.15, 0.15, 0.1], rng.normal(0, 0.5, k), A @ A.T / k, 0.6, cost, 0.9, noise)


def test_the_three_laws():
    problem = signed()
    assert noise_var(problem) == pytest.approx(0.36 * np.array([1, 2, 3, 1, 4, 0]))
    assert noise_var(signed("constant")) == pytest.approx(np.full(6, 0.36))
    assert noise_var(signed(LAWS[2])) == pytest.approx(0.36 * LAWS[2])
    assert basis_var(problem) == pytest.approx(np.full(6, 0.36))
    assert basis_var(signed(LAWS[2])) == pytest.approx(0.36 * LAWS[2])


@pytest.mark.parametrize("noise, words", [
    ("even", "noise is 'even'"), ([1, 2], "noise must have one element per item, got 2 for 6"), ([1, 1, 0, 1, 1, 1], r"noise\[2\] is 0"),
    ([1, 1, np.nan, 1, 1, 1], r"noise\[2\] is nan"), (np.full(6, 1e-320), "too small or too large"), (np.full(6, 1e305), "too small or too large"),
    (None, "noise"), (np.ones((6, 1)), "noise must be a non-empty array of 1 dimensions")])
def test_what_is_no_law_is_refused(noise, words):
    with pytest.raises(ValueError, match=words):
        signed(noise)


def test_a_law_of_its_own_shape_is_refused_when_items_are_replaced():
    problem = signed(LAWS[2])
    with pytest.raises(ValueError, match="noise must have one element per item, got 6 for 2"):
        noise_var(problem._replace(items=problem.items[:2], probs=[.5, .5]))


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_index_policies_decide_as_plain_loops_do(law):
    problem = signed(law)
    got = simulate.episodes(problem, RULES, 12, 30, 7)
    uniforms, noise, z = (draw(7, purpose, 0, 30) for draw, purpose in (
        (streams.uniforms, streams.ITEMS), (streams.normals, streams.NOISE), (streams.normals, streams.THOMPSON)))
    for p, rule in enumerate(RULES):
        for r in range(12):
            _, feedback, decisions, reward, _ = naive.episode(problem, rule.kind, rule.alpha, got.theta[r], uniforms[r], noise[r], z[r])
            assert got.decisions[p, r].tolist() == decisions and got.rewards[p, r] == pytest.approx(reward)
            assert got.feedback[r] == pytest.approx(feedback)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_full_observation_and_hindsight_bound_every_policy(law):
    problem = signed(law)
    earned = simulate.episodes(problem, RULES + WHOLE, 2000, 66, 2)
    full = bound.full_observation(problem, 500, 1)
    for rewards in earned.rewards:
        assert rewards.mean() - 4 * rewards.std() / np.sqrt(len(rewards)) < full.mean + 4 * full.se
    assert full.mean - 4 * full.se < bound.hindsight(problem)
    assert bound.dual_first(problem, 60, seed=1).upper < bound.hindsight(problem)


def test_turning_a_feature_round_changes_nothing():
    """theta_1 and every x_1 with the other sign: the same rewards, for any law of the noise."""
    turn = np.array([-1.0, 1, 1, 1])
    for law in LAWS:
        problem = signed(law)
        turned = problem._replace(items=problem.items * turn, mu=problem.mu * turn, Sigma=problem.Sigma * np.outer(turn, turn))
        thetas = np.random.default_rng(0).standard_normal((30, 4))
        one = simulate.replicate(problem, RULES + WHOLE, 30, 40, 5, thetas=thetas)
        other = simulate.replicate(turned, RULES + WHOLE, 30, 40, 5, thetas=thetas * turn)
        assert one == pytest.approx(other)
        assert bound.hindsight(problem) == pytest.approx(bound.hindsight(turned))
        assert bound.full_observation(problem, 50, 1).mean == pytest.approx(bound.full_observation(turned, 50, 1).mean)


def test_the_optimum_of_two_features_bounds_policies_on_signed_items():
    problem = make_problem([[1, -0.5], [-0.3, 1], [0.7, 0.6]], [0.4, 0.3, 0.3], [0.1, -0.1], [[1, 0.3], [0.3, 0.5]], 0.8, 0.2, 0.7, "constant")
    best = optimum.value(optimum.solve(problem, step=0.1, depth=8), problem.mu)
    earned = simulate.replicate(problem, RULES, 20_000, 30, 3)
    assert earned.mean(axis=1).max() < best.upper + 4 * (earned.std(axis=1) / np.sqrt(20_000)).max()
    assert best.lower <= best.upper < bound.hindsight(problem)


def test_a_factor_keeps_small_units_beside_large_ones():
    Sigma = np.array([[1, 0.5e-8], [0.5e-8, 1e-16]])
    L = streams.factor(Sigma)
    assert L @ L.T == pytest.approx(Sigma, rel=1e-12, abs=0)
