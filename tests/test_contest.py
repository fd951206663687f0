"""Gains measured by charges, tuned and evaluated on different users."""
import numpy as np
import pytest

from lib import experiments, policies, simulate
from lib.experiments import comparison
from lib.problem import make_problem

A = (0.3, 1.0, 3.0)


def problem(**changes):
    base = make_problem([[1, 0], [0, 1], [0.5, 0.5]], [0.4, 0.4, 0.2], [0, 0], [[1, 0.3], [0.3, 1]], 1, 0.2, 0.8)
    return base._replace(**changes)


def test_gains_have_the_mean_of_the_rewards_differences_and_less_noise():
    p, rules = problem(), [policies.ucb(0.5), policies.knowledge_gradient(), policies.exploit()]
    gains = experiments.gains(p, rules, 4000, 20, 3)
    rewards = simulate.replicate(p, [policies.exploit(), *rules], 4000, 20, 3)
    plain = rewards[1:] - rewards[0]
    apart = comparison.estimate_rows(plain - gains)
    assert (abs(apart.mean) <= 4 * apart.se).all()
    assert (comparison.estimate_rows(gains).se[:2] < 0.5 * comparison.estimate_rows(plain).se[:2]).all()
    assert not gains[2].any()


def test_the_best_alpha_of_the_tuning_users_is_chosen():
    p, entry = problem(), experiments.Entry("UCB", policies.ucb, A)
    means = experiments.gains(p, [policies.ucb(a) for a in A], 256, 20, (5, comparison.TUNING)).mean(axis=1)
    single = experiments.Entry("knowledge gradient", policies.knowledge_gradient, (1.0,))
    assert experiments.tune(p, [single, entry], 256, 20, 5) == [policies.knowledge_gradient(),
                                                             policies.ucb(A[means.argmax()])]
    assert experiments.tune(p, [single], 256, 20, 5) == [policies.knowledge_gradient()]


def test_play_evaluates_on_other_users():
    entries = [experiments.Entry("UCB", policies.ucb, A), experiments.Entry("UCB, alpha = 1", policies.ucb, (1.0,))]
    chosen, gains = experiments.play(problem(), (0.0, 0.3), entries, 64, 96, 15, 5)
    assert gains.shape == (2, 2, 96) and [rules[1] for rules in chosen] == [policies.ucb(1)] * 2
    again = experiments.gains(problem(cost=0.3), chosen[1], 96, 15, (5, comparison.EVALUATION))
    assert np.array_equal(gains[1], again)
    with pytest.raises(ValueError, match="entries share a name"):
        experiments.play(problem(), (0.0,), entries[:1] * 2, 8, 8)


def test_the_error_of_a_share_is_that_of_repeated_samples():
    rng = np.random.default_rng(0)
    reference = 1 + rng.standard_normal((400, 500))
    columns = 0.5 * reference + 0.3 * rng.standard_normal(reference.shape)
    shares = [experiments.share(a, b) for a, b in zip(columns, reference)]
    assert np.mean([s.mean for s in shares]) == pytest.approx(0.5, abs=0.005)
    assert np.std([s.mean for s in shares]) == pytest.approx(np.mean([s.se for s in shares]), rel=0.15)


def test_charges_under_wrong_beliefs_have_the_mean_of_the_rewards_and_less_noise():
    truth, rules = problem(), [policies.ucb(0.5), policies.knowledge_gradient()]
    wrong = truth._replace(mu=truth.mu - 0.2, noise_sd=2.0)
    lost = [experiments.charges(beliefs, rules, 4000, 20, 3, truth) for beliefs in (wrong, truth)]
    rewards = [simulate.replicate(beliefs, rules, 4000, 20, 3, truth=truth) for beliefs in (wrong, truth)]
    sharp, plain = lost[1] - lost[0], rewards[0] - rewards[1]
    apart = comparison.estimate_rows(plain - sharp)
    assert (abs(apart.mean) <= 4 * apart.se).all()
    assert (comparison.estimate_rows(sharp).se < 0.7 * comparison.estimate_rows(plain).se).all()
    assert (comparison.estimate_rows(sharp).mean < -3 * comparison.estimate_rows(sharp).se).all()
    assert np.array_equal(experiments.charges(truth, rules, 50, 20, 3), lost[1][:, :50])


def test_a_winner_leads_every_other_by_two_standard_errors():
    rng = np.random.default_rng(0)
    base, names = rng.standard_normal(400), ["a", "b", "c"]
    near = np.array([base, base - 0.02 + 0.3 * rng.standard_normal(400), base - 1])
    assert experiments.winner(near, names) == "" and experiments.winner(near[[0, 2]], ["a", "c"]) == "a"
    assert experiments.winner(near[::-1] - [[1], [0], [0]], names) == ""
    assert experiments.winner(np.array([base, base + 0.1]), ["a", "b"]) == "b"      # paired: the lead has no error at all
    assert experiments.winner(np.array([base, base]), ["a", "b"]) == ""


def test_luck_names_a_winner_of_equals_as_seldom_as_two_standard_errors_allow():
    rng = np.random.default_rng(1)
    named = [experiments.winner(rng.standard_normal((2, 200)), ["a", "b"]) != "" for _ in range(2000)]
    assert np.mean(named) == pytest.approx(0.0455, abs=0.015)
