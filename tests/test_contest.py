"""Gains measured by charges, tuned and evaluated on different users."""
import numpy as np
import pytest

from lib import bound, estimate, experiments, policies, simulate
from lib.estimate import sample_mean
from lib.experiments import comparison, problems
from lib.problem import effective_horizon, make_problem

A = (0.3, 1.0, 3.0)


def problem(**changes):
    base = make_problem([[1, 0], [0, 1], [0.5, 0.5]], [0.4, 0.4, 0.2], [0, 0], [[1, 0.3], [0.3, 1]], 1, 0.2, 0.8)
    return base._replace(**changes)


def test_gains_have_the_mean_of_the_rewards_differences_and_less_noise():
    p, rules = problem(), [policies.ucb(0.5), policies.knowledge_gradient(), policies.exploit()]
    gains = experiments.gains(p, rules, 4000, 20, 3)
    rewards = simulate.replicate(p, [policies.exploit(), *rules], 4000, 20, 3)
    plain = rewards[1:] - rewards[0]
    apart = sample_mean(plain - gains)
    assert (abs(apart.mean) <= 4 * apart.se).all()
    assert (sample_mean(gains).se[:2] < 0.5 * sample_mean(plain).se[:2]).all()
    assert not gains[2].any()


def test_the_best_alpha_of_the_tuning_users_is_chosen():
    p, entry = problem(), experiments.Candidate("UCB", policies.ucb, A)
    means = experiments.gains(p, [policies.ucb(a) for a in A], 256, 20, (5, comparison.TUNING)).mean(axis=1)
    single = experiments.Candidate("knowledge gradient", policies.knowledge_gradient, (1.0,))
    assert experiments.tune(p, [single, entry], 256, 20, 5) == [policies.knowledge_gradient(),
                                                             policies.ucb(A[means.argmax()])]
    assert experiments.tune(p, [single], 256, 20, 5) == [policies.knowledge_gradient()]


def test_tuned_policies_are_measured_on_other_users():
    entries = [experiments.Candidate("UCB", policies.ucb, A), experiments.Candidate("UCB, alpha = 1", policies.ucb, (1.0,))]
    chosen, gains = experiments.tune_and_measure(problem(), (0.0, 0.3), entries, 64, 96, 15, 5)
    assert gains.shape == (2, 2, 96) and [rules[1] for rules in chosen] == [policies.ucb(1)] * 2
    again = experiments.gains(problem(cost=0.3), chosen[1], 96, 15, (5, comparison.EVALUATION))
    assert np.array_equal(gains[1], again)
    with pytest.raises(ValueError, match="entries share a name"):
        experiments.tune_and_measure(problem(), (0.0,), entries[:1] * 2, 8, 8)


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
    apart = sample_mean(plain - sharp)
    assert (abs(apart.mean) <= 4 * apart.se).all()
    assert (sample_mean(sharp).se < 0.7 * sample_mean(plain).se).all()
    assert (sample_mean(sharp).mean < -3 * sample_mean(sharp).se).all()
    assert np.array_equal(experiments.charges(truth, rules, 50, 20, 3), lost[1][:, :50])


def test_a_winner_leads_every_other_by_half_an_interval():
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


def test_the_leader_is_picked_on_the_tuning_users():
    p, rules = problem(), [policies.exploit(), policies.ucb(0.5), policies.ucb(3.0)]
    means = experiments.gains(p, rules, 256, 20, (5, comparison.TUNING)).mean(axis=1)
    assert experiments.leader(p, rules, 256, 20, 5) == means.argmax() == 1


def test_picking_on_other_users_takes_away_what_picking_on_the_same_adds():
    """Policies of equal value: the best of them, measured where it was picked, looks better than it is."""
    rng, same, other = np.random.default_rng(2), [], []
    for _ in range(2000):
        columns = rng.standard_normal((4, 60))
        first = int(columns[:, :20].mean(axis=1).argmax())
        same.append(columns[first, :20].mean())
        other.append(columns[first, 20:].mean())
    assert np.mean(same) > 0.2 and abs(np.mean(other)) < 4 * np.std(other) / np.sqrt(2000)


@pytest.mark.parametrize("gamma, horizon", [(0.8, None), (0.99, 688)])
def test_values_are_those_of_the_rewards_and_sharper(gamma, horizon):
    """At 0.99 the control variate is hindsight on the items that came; its mean is known."""
    p, rules = problem(gamma=gamma), [policies.ucb(0.3), policies.ucb(0.5)]
    found = experiments.evaluate(p, rules, 1500, horizon, 7)
    plain = sample_mean(simulate.replicate(p, rules, 1500, found.episodes.items.shape[1], 7))
    assert found.episodes.items.shape[1] == (31 if horizon is None else horizon)
    assert (found.value.se < 0.8 * plain.se).all()
    assert (abs(found.value.mean - plain.mean) < 4 * plain.se).all()
    zero = sample_mean(comparison.control(p, found.episodes, 7))
    assert (abs(zero.mean) < 4 * zero.se).all()
    assert found.lead.mean[0] == found.lead.se[0] == 0
    assert found.lead.mean[1] == pytest.approx(found.value.mean[1] - found.value.mean[0], abs=4 * found.lead.se[1])


def test_a_study_lasts_until_a_thousandth_is_left():
    """What a policy earns later is below gamma^horizon of hindsight, and the value is not that of the first hundred items."""
    p, rules = problem(gamma=0.97), [policies.ucb(0.3)]
    long = simulate.replicate(p, rules, 300, 500, 3).mean()
    ours, hundred = (simulate.replicate(p, rules, 300, n, 3).mean() for n in (effective_horizon(0.97), 100))
    assert abs(ours - long) <= 1e-3 * bound.hindsight(p) and long - hundred > 0.03 * long


# Arithmetic of the comparison, on rewards and controls that are given: quick, and nothing is simulated

ZERO = np.array([.5, -.5, .25, -.25])
EARNED = {None: [1., 2., 3., 4.], .5: [2., 2., 3., 5.], 1.: [0., 9., 3., 4.], 2.: [1., 1., 1., 1.]}


@pytest.fixture
def given(monkeypatch):
    """Every rule earns what EARNED says of its alpha; the list holds the arguments of each simulation."""
    asked = []

    def episodes(problem, rules, users, horizon, seed, truth=None):
        asked.append((users, horizon, seed, truth))
        rewards = np.array([EARNED[rule.alpha if rule.kind == "ucb" else None] for rule in rules])
        return simulate.Episodes(*[None] * len(simulate.Episodes._fields))._replace(rewards=rewards, items=np.zeros((4, horizon), dtype=int))
    monkeypatch.setattr(simulate, "episodes", episodes)
    monkeypatch.setattr(bound, "control", lambda problem, run, inner, seed=0: inner * ZERO + run.rewards / 2)
    return asked


def test_charges_and_gains_are_differences_of_control_and_rewards(given):
    p = make_problem([[1]], [1], [1], [[0]], 1, .5, .9)
    rules = [policies.ucb(.5), policies.ucb(1.)]
    exploit, half, one = (np.array(EARNED[alpha]) for alpha in (None, .5, 1.))
    assert experiments.charges(p, rules, 4).tolist() == [(ZERO - half / 2).tolist(), (ZERO - one / 2).tolist()]
    assert experiments.gains(p, rules, 4, 7, 3).tolist() == [((half - exploit) / 2).tolist(), ((one - exploit) / 2).tolist()]
    assert given == [(4, 66, 0, p), (4, 7, 3, p)]


def test_values_and_leads_are_of_the_rewards(given):
    p = make_problem([[1]], [1], [1], [[0]], 1, .5, .9)
    rules = [policies.ucb(.5), policies.ucb(1.), policies.exploit()]
    found = experiments.evaluate(p, rules, 4, 5, 1, reference=2)
    rewards = np.array([EARNED[.5], EARNED[1.], EARNED[None]])
    zero = 2 * ZERO + rewards / 2
    for i in range(3):
        assert (found.value.mean[i], found.value.se[i]) == estimate.controlled(rewards[i], zero[i])
        assert (found.lead.mean[i], found.lead.se[i]) == estimate.controlled(rewards[i] - rewards[2], zero[i] - zero[2])


def test_the_best_mean_on_the_tuning_users_is_taken(given):
    p = make_problem([[1]], [1], [1], [[0]], 1, .5, .9)
    family, single = experiments.Candidate("UCB", policies.ucb, (2., 1., .5)), experiments.Candidate("one", policies.ucb, (.5,))
    assert [rule.alpha for rule in experiments.tune(p, [family, single], 4, 5, 7)] == [1., .5]
    assert experiments.leader(p, [policies.ucb(alpha) for alpha in (2., .5, 1.)], 4, 5, 7) == 2
    chosen, gained = experiments.tune_and_measure(p, [.1, .2], [family, single], 4, 4, 5, 7)
    assert [[rule.alpha for rule in row] for row in chosen] == [[1., .5]] * 2 and gained.shape == (2, 2, 4)
    assert [seed for _, _, seed, _ in given] == [(7, 1)] * 2 + [(7, 1), (7, 2)] * 2


@pytest.mark.parametrize("horizon", [comparison.LONG, comparison.LONG + 1])
def test_a_long_life_is_controlled_by_hindsight(horizon, monkeypatch):
    monkeypatch.setattr(bound, "control", lambda *arguments: arguments[2:])
    p = make_problem([[1, 0], [0, 2]], [.5, .5], [1, 0], np.eye(2), 1, .5, .9)
    rng = np.random.default_rng(0)
    theta, items = rng.normal(size=(3, 2)), rng.integers(0, 2, (3, horizon))
    seen = simulate.Episodes(*[None] * len(simulate.Episodes._fields))._replace(theta=theta, items=items, rewards=np.zeros((4, 3)))
    found = experiments.comparison.control(p, seen, 5)
    if horizon == comparison.LONG:
        assert found == (2, 5)
    else:
        wanted = [sum(.9**(n + 1) * max(theta[r] @ p.items[i] - .5, 0) for n, i in enumerate(items[r])) for r in range(3)]
        mean = (1 - .9**horizon) * bound.hindsight(p)
        assert found.shape == (4, 3) and (found == found[0]).all() and found[0] == pytest.approx(np.array(wanted) - mean)


def test_the_grids_of_the_papers_policies():
    """UCB: 0 and just above the cost; DTD-UCB the same over the largest mean projection."""
    p = make_problem([[1, 0], [0, 1]], [.75, .25], [0, 0], np.eye(2), 1, .3, .9)
    ucb, dtd = experiments.families(p, ("UCB", "DTD-UCB"))
    assert ucb.alphas == pytest.approx([0, .32, .35, .4, .5, .7, 1.1])
    assert dtd.alphas == pytest.approx(np.array(ucb.alphas) / .75)


@pytest.mark.parametrize("mean, unit", [(0.0, 1.0), (3.0, 1.0), (-2.0, 1e-3), (.5, 1e6)])
def test_grids_do_not_depend_on_units_or_the_zero_of_rewards(mean, unit):
    """The same items in other units of reward and with other prior means, as far below the cost: the same alphas."""
    p = problems.from_knobs(problems.Knobs(cost=.4, mix=.5))
    moved = p._replace(mu=unit * (p.mu + mean), Sigma=unit**2 * p.Sigma, noise_sd=unit * p.noise_sd, cost=unit * (p.cost + mean))
    names = "UCB", "DTD-UCB", "DTD-DP", "Knowledge gradient"
    for one, other in zip(experiments.families(p, names), experiments.families(moved, names)):
        assert one.alphas == pytest.approx(other.alphas, rel=1e-9)
    assert experiments.families(p, ["UCB"])[0].alphas[1] == pytest.approx(.42)


def test_grids_where_nothing_falls_short_begin_at_zero():
    p = problems.from_knobs(problems.Knobs(cost=-.4))
    assert experiments.families(p, ["UCB"])[0].alphas[:2] == (0, .02)
    known = p._replace(Sigma=0 * p.Sigma, cost=1.0)
    assert experiments.families(known, ["UCB"])[0].alphas[:2] == (0, .02)
