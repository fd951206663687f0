"""The study of services that learn the prior: its table, its rows, and one item a user as the paper's problem."""
import numpy as np
import pytest

from lib import simulate
from lib.experiments import many_users, published
from lib.problem import make_problem, noise_var

SMALL = {"users": 20, "runs": 4, "horizon": 5}


@pytest.fixture(scope="module")
def kept():
    return published.load("many_users")


def test_the_table_is_whole(kept):
    names = many_users.field(.3)
    assert len(kept) == 2 * len(many_users.STARTS) * len(names) * (many_users.SIZES["users"] // many_users.BLOCK + 2)
    assert (kept.runs == many_users.SIZES["runs"]).all() and np.isfinite(kept[["cost", "cost_se", "away", "unit"]]).all(axis=None)
    assert (kept.cost[kept.service == many_users.KNOWS] == 0).all()
    blocks = kept[(kept.kind == "block") & (kept["last"] <= many_users.FIRST)].groupby(["instance", "start", "service"]).cost.sum()
    whole = kept[kept.kind == "first"].set_index(["instance", "start", "service"]).cost
    np.testing.assert_allclose(blocks * many_users.BLOCK, whole[blocks.index], atol=1e-4)


def test_who_is_silent_for_ever_costs_a_unit_a_user(kept):
    mute = kept[(kept.service == "Exploitation") & (kept.start == "too low") & (kept.kind == "first")]
    assert len(mute) == 2 and (mute.silent == 1).all()
    assert (np.abs(mute.cost - many_users.FIRST) < 4 * mute.cost_se).all()


def test_rows_are_sums_over_users_and_a_shifted_cost_is_found_out():
    found = many_users.many_users(SMALL, 3, ("right", "too low"), ("simulated",))
    assert found.index.is_unique and set(found.start) == {"right", "too low"}
    found = found[found.start == "right"]
    problem, alpha = many_users.instance("simulated")
    services = many_users.field(alpha)
    served = simulate.serve(problem, list(services.values()), many_users.beginning(problem, 0.0), seed=3, **SMALL)
    s = list(services).index("Optimism")
    row = found[(found.service == "Optimism") & (found.kind == "block") & (found["first"] == 11)].iloc[0]
    lost = served.rewards[0, :, 10:20] - served.rewards[s, :, 10:20]
    assert row.cost == pytest.approx(lost.mean() / served.rewards[0].mean(), rel=1e-12)
    assert row["last"] == 20 and row.silent == (~served.open[s, :, 19]).mean()
    assert not many_users.apart(found, found).z.any()
    worse = found.assign(cost=found.cost.where(found.index != row.name, found.cost + 9 * found.cost_se))
    first = many_users.apart(worse, found).iloc[0]
    assert abs(first.z) > 6 and first.service == "Optimism" and first["first"] == 11
    with pytest.raises(ValueError, match="nothing in common"):
        many_users.apart(found, found.assign(start="nowhere"))


def test_a_start_guesses_that_users_differ_alike_in_every_direction():
    problem = make_problem(np.eye(3), [.5, .3, .2], [0, 0, 0], np.diag([.2, .4, .6]), 1, .1, .9)
    begun = many_users.beginning(problem, 0.0)
    assert begun.guess == pytest.approx(.4 * np.eye(3)) and np.trace(begun.guess) == pytest.approx(np.trace(problem.Sigma))


def test_one_item_a_user_hears_the_users_spread_as_noise():
    problem = make_problem([[1, 0], [.5, .5]], [.5, .5], [3, 4], [[.6, .2], [.2, .5]], .7, 3.5, .9)
    found = many_users.one_item_a_user(problem, [3, 3], .1 * np.eye(2), .95)
    rng = np.random.default_rng(0)
    theta = rng.multivariate_normal([3, 3], problem.Sigma, 200_000)
    for x, noise, var in zip(problem.items, noise_var(problem), noise_var(found)):
        heard = theta @ x + np.sqrt(noise) * rng.standard_normal(len(theta))
        assert heard.var() == pytest.approx(var, rel=.02)
    assert found.gamma == .95 and found.cost == problem.cost
    with pytest.raises(ValueError, match="mu must have one element"):
        many_users.one_item_a_user(problem, [3], [[1]], .9)
