"""Replays on real ratings, against plain loops."""
import naive
import numpy as np
import pytest

from lib import experiments, policies
from lib.datasets import Dataset, Ratings
from lib.problem import make_problem

ITEMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    start = np.array([0, 4, 4, 15, 60])
    rated = Ratings(start, rng.integers(3, size=60).astype(np.int32), rng.normal(3, 1, 60), np.arange(60))
    return Dataset("test", ("a", "b"), ITEMS, np.array([.4, .4, .2]), np.array(list("wxyz")), rated, None, 0., (), {})


@pytest.fixture
def problem(data):
    return make_problem(ITEMS, data.probs, [3.1, 2.8], [[.5, .2], [.2, .4]], .8, 3.0, .9)


def plain(problem, items, ratings, kind, alpha):
    """One user, one policy, in plain loops: (reward, decisions)."""
    mu, Sigma = list(problem.mu), [list(row) for row in problem.Sigma]
    reward, decisions = 0.0, []
    for n, (i, y) in enumerate(zip(items, ratings)):
        x = list(problem.items[i])
        projection = naive.mean_projection(problem.items, problem.probs, x)
        forward = naive.wanted(kind, alpha, naive.inner(x, mu), naive.inner(x, naive.times(Sigma, x)), problem.cost,
                               projection)
        if forward:
            reward += problem.gamma ** (n + 1) * (y - problem.cost)
            mu, Sigma = naive.update(mu, Sigma, x, y, problem.noise_sd**2 * sum(a != 0 for a in x))
        decisions.append(bool(forward))
    return reward, decisions


def test_replay_is_the_plain_loop(problem, data):
    rules = [policies.exploit(), policies.ucb(.5), policies.dtd_ucb(.7)]
    users = np.array([0, 1, 2, 3])
    rewards, decisions = experiments.replay(problem, data, users, rules, horizon=20)
    start = data.ratings.start
    for u in users:
        span = slice(start[u], min(start[u + 1], start[u] + 20))
        for p, rule in enumerate(rules):
            reward, forwarded = plain(problem, data.ratings.item[span], data.ratings.value[span], rule.kind, rule.alpha)
            assert rewards[p, u] == pytest.approx(reward, abs=1e-12)
            assert decisions[p, u].tolist() == forwarded + [False] * (20 - len(forwarded))
    assert decisions.any() and not decisions[:, 3].all()


def test_a_shuffle_changes_the_order_alone(problem, data):
    always = [policies.ucb(1e6)]                            # forwards everything: the reward tells the order
    first = experiments.replay(problem._replace(gamma=.999999), data, [3], always, horizon=45)[0]
    mixed = [experiments.replay(problem._replace(gamma=.999999), data, [3], always, 45, shuffle=s)[0] for s in (0, 0, 1)]
    np.testing.assert_allclose(mixed, np.broadcast_to(first, (3, 1, 1)), atol=1e-2)
    near = [experiments.replay(problem, data, [3], always, 45, shuffle=s)[0][0, 0] for s in (0, 0, 1)]
    assert near[0] == near[1] != near[2]


def test_differences_are_paired():
    rng = np.random.default_rng(0)
    user = rng.normal(size=50)
    found = experiments.over_users(np.array([user, user + 1]), 0)
    np.testing.assert_allclose(found.mean, [0, 1])
    np.testing.assert_allclose(found.se, 0, atol=1e-12)


@pytest.mark.parametrize("change, words", [
    ({"users": []}, "users must be a list of at least 1 integers, got"),
    ({"horizon": 0}, "horizon must be an integer of at least 1, got 0"),
    ({"items": ITEMS[:2]}, "problem.items"),
])
def test_wrong_arguments_are_named(problem, data, change, words):
    if "items" in change:
        problem = problem._replace(items=change.pop("items"), probs=np.array([.5, .5]))
    with pytest.raises(ValueError, match=words):
        experiments.replay(**({"problem": problem, "dataset": data, "users": [0], "policies": [policies.exploit()]} | change))


def test_sums_cannot_be_replayed(problem, data):
    with pytest.raises(ValueError, match="sums over ratings only|no Sums"):
        experiments.replay(problem, data._replace(ratings=None), [0], [policies.exploit()])


def test_the_first_row_past_the_last_is_no_reference():
    with pytest.raises(ValueError, match="reference must be an integer of at least 0 and at most 1, got 2"):
        experiments.over_users(np.ones((2, 3)), 2)
