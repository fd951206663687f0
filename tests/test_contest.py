"""Gains measured by charges, tuned and evaluated on different users."""
import numpy as np
import pytest

from lib import contest, lookahead, policies, simulate
from lib.problem import make_problem

A = (0.3, 1.0, 3.0)


def problem(**changes):
    base = make_problem([[1, 0], [0, 1], [0.5, 0.5]], [0.4, 0.4, 0.2], [0, 0], [[1, 0.3], [0.3, 1]], 1, 0.2, 0.8)
    return base._replace(**changes)


def test_gains_have_the_mean_of_the_rewards_differences_and_less_noise():
    p, rules = problem(), [policies.ucb(0.5), lookahead.knowledge_gradient(), policies.exploit()]
    gains = contest.gains(p, rules, 4000, 20, 3)
    rewards = simulate.replicate(p, [policies.exploit(), *rules], 4000, 20, 3)
    plain = rewards[1:] - rewards[0]
    apart = contest.estimate(plain - gains)
    assert (abs(apart.mean) <= 4 * apart.se).all()
    assert (contest.estimate(gains).se[:2] < 0.5 * contest.estimate(plain).se[:2]).all()
    assert not gains[2].any()


def test_the_best_alpha_of_the_tuning_users_is_chosen():
    p, entry = problem(), contest.Entry("UCB", policies.ucb, A)
    means = contest.gains(p, [policies.ucb(a) for a in A], 256, 20, (5, contest.TUNING)).mean(axis=1)
    single = contest.Entry("knowledge gradient", lookahead.knowledge_gradient, (1.0,))
    assert contest.tune(p, [single, entry], 256, 20, 5) == [lookahead.knowledge_gradient(),
                                                             policies.ucb(A[means.argmax()])]
    assert contest.tune(p, [single], 256, 20, 5) == [lookahead.knowledge_gradient()]


def test_play_evaluates_on_other_users():
    entries = [contest.Entry("UCB", policies.ucb, A), contest.Entry("UCB, alpha = 1", policies.ucb, (1.0,))]
    chosen, gains = contest.play(problem(), (0.0, 0.3), entries, 64, 96, 15, 5)
    assert gains.shape == (2, 2, 96) and [rules[1] for rules in chosen] == [policies.ucb(1)] * 2
    again = contest.gains(problem(cost=0.3), chosen[1], 96, 15, (5, contest.EVALUATION))
    assert np.array_equal(gains[1], again)
    with pytest.raises(ValueError, match="entries share a name"):
        contest.play(problem(), (0.0,), entries[:1] * 2, 8, 8)


def test_the_error_of_a_share_is_that_of_repeated_samples():
    rng = np.random.default_rng(0)
    reference = 1 + rng.standard_normal((400, 500))
    columns = 0.5 * reference + 0.3 * rng.standard_normal(reference.shape)
    shares = [contest.share(a, b) for a, b in zip(columns, reference)]
    assert np.mean([s.mean for s in shares]) == pytest.approx(0.5, abs=0.005)
    assert np.std([s.mean for s in shares]) == pytest.approx(np.mean([s.se for s in shares]), rel=0.15)


def test_charges_under_wrong_beliefs_have_the_mean_of_the_rewards_and_less_noise():
    truth, rules = problem(), [policies.ucb(0.5), lookahead.knowledge_gradient()]
    wrong = truth._replace(mu=truth.mu - 0.2, noise_sd=2.0)
    lost = [contest.charges(beliefs, rules, 4000, 20, 3, truth) for beliefs in (wrong, truth)]
    rewards = [simulate.replicate(beliefs, rules, 4000, 20, 3, truth=truth) for beliefs in (wrong, truth)]
    sharp, plain = lost[1] - lost[0], rewards[0] - rewards[1]
    apart = contest.estimate(plain - sharp)
    assert (abs(apart.mean) <= 4 * apart.se).all()
    assert (contest.estimate(sharp).se < 0.7 * contest.estimate(plain).se).all()
    assert (contest.estimate(sharp).mean < -3 * contest.estimate(sharp).se).all()
    assert np.array_equal(contest.charges(truth, rules, 50, 20, 3), lost[1][:, :50])


def test_a_winner_leads_every_other_by_two_standard_errors():
    rng = np.random.default_rng(0)
    base, names = rng.standard_normal(400), ["a", "b", "c"]
    near = np.array([base, base - 0.02 + 0.3 * rng.standard_normal(400), base - 1])
    assert contest.winner(near, names) == "" and contest.winner(near[[0, 2]], ["a", "c"]) == "a"
    assert contest.winner(near[::-1] - [[1], [0], [0]], names) == ""
    assert contest.winner(np.array([base, base + 0.1]), ["a", "b"]) == "b"      # paired: the lead has no error at all
    assert contest.winner(np.array([base, base]), ["a", "b"]) == ""


def test_luck_names_a_winner_of_equals_as_seldom_as_two_standard_errors_allow():
    rng = np.random.default_rng(1)
    named = [contest.winner(rng.standard_normal((2, 200)), ["a", "b"]) != "" for _ in range(2000)]
    assert np.mean(named) == pytest.approx(0.0455, abs=0.015)
