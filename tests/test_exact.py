"""Values without Monte Carlo: certified optima, closed forms, the simulation, and what is refused."""
import numpy as np
import pytest

from lib import dp, policies, simulate
from lib.problem import make_problem

EVERY = [policies.exploit(), policies.ucb(0.4), policies.ucb(3), policies.thompson(), policies.dtd_ucb(1),
         policies.dtd_dp(), policies.dtd_dp(4)]


def simulated_instance(cost, k=100):
    probs = np.full(k, 1 / (2 * k - 1))
    probs[0] = k / (2 * k - 1)
    return make_problem(np.eye(k), probs, np.full(k, 0.3), np.eye(k), 0.1, cost, 0.9)


def small(cost=0.2):
    """Four features of unequal worth and scale, one known, an item without features, unequal probabilities."""
    items = [[1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 0.5, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    probs, mu = [0.3, 0.2, 0.25, 0.15, 0.1], [0.1, 0.2, 0.3, 0.4]
    return make_problem(items, probs, mu, np.diag([1, 0.3, 2, 0]), 0.7, cost, 0.9)


@pytest.mark.parametrize("cost, lower, upper", [
    (0.0, 3.7352522022675307, 3.7352580536180056), (0.3, 1.5501896120490304, 1.5501898074741023),
    (0.5, 0.9686438797507203, 0.9686564095736522), (0.8, 0.3192996251153886, 0.31931703682642787)])
def test_dtd_dp_is_worth_the_certified_optimum_of_the_simulated_instance(cost, lower, upper):
    value, error = simulate.decoupled(simulated_instance(cost), policies.dtd_dp())
    assert error < 1e-7
    assert lower - 1e-5 < value < upper + 1e-7


def test_one_feature_is_the_dynamic_program():
    """DTD-DP at alpha = 1 is greedy for the program, so it earns the program's value, gamma ahead."""
    for cost in (-0.5, 0.0, 0.4):
        p = make_problem([[1]], [1], [0], [[1]], 1, cost, 0.9)
        bracket = dp.value(dp.solve([1], [1], 0.9, 1, 1), -cost, 1)
        value, error = simulate.decoupled(p, policies.dtd_dp())
        assert 0.9 * bracket.lower - 1e-4 < value < 0.9 * bracket.upper + error


@pytest.mark.parametrize("cost", [-0.2, 0.2, 0.6])
def test_the_simulation_agrees(cost):
    p, users = small(cost), 8_000
    got = simulate.replicate(p, EVERY, users, seed=7)
    low, high = simulate.truncation(p)
    for policy, rewards in zip(EVERY, got):
        value, error = simulate.decoupled(p, policy)
        margin = 4 * rewards.std() / np.sqrt(users) + error + max(high, -low)
        assert abs(rewards.mean() - value) < margin, policy
        assert error < 1e-5


def test_more_nodes_change_no_more_than_the_error():
    for policy in EVERY:
        rough, fine = (simulate.decoupled(small(), policy, nodes) for nodes in (120, 240))
        assert abs(rough.value - fine.value) <= rough.error


def test_known_theta_is_a_closed_form_with_the_papers_ties():
    p = make_problem([[1, 0], [0, 2], [0, 0]], [0.5, 0.3, 0.2], [1, 0.2], np.zeros((2, 2)), 1, 0.4, 0.8)
    assert simulate.decoupled(p, policies.exploit()).value == pytest.approx(4 * 0.5 * 0.6)
    free = p._replace(cost=-0.1)
    assert simulate.decoupled(free, policies.thompson()).value == pytest.approx(4 * (0.5 * 1.1 + 0.3 * 0.5 + 0.2 * 0.1))


def test_a_first_decision_at_equality_is_a_tie():
    p = make_problem([[1]], [1], [0.25], [[1]], 1, 0.25, 0.9)
    assert simulate.decoupled(p, policies.exploit()).value > 0.5
    assert simulate.decoupled(p, policies.dtd_ucb(0)).value == 0


@pytest.mark.parametrize("change, name", [
    (dict(Sigma=np.array([[1, 0.1], [0.1, 1]])), "Sigma is not diagonal"),
    (dict(items=np.array([[1, 0], [2, 0]])), "items share features"),
    (dict(items=np.array([[1, 1], [0, 0]])), "items share features or have several"),
])
def test_what_does_not_decouple_is_refused(change, name):
    p = make_problem(np.eye(2), [0.5, 0.5], [0, 0], np.eye(2), 1, 0, 0.9)
    with pytest.raises(ValueError, match=name):
        simulate.decoupled(p._replace(**change), policies.exploit())
