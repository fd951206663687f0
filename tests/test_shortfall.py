"""How far policies stay below the bounds, on the same lives: against values and bounds that are known otherwise."""
import numpy as np
import pytest

from lib import bound, policies, simulate
from lib.bound import duality, penalty
from lib.experiments import comparison, shortfall
from lib.experiments.shortfall import Effort
from lib.problem import make_problem

SEPARATE = make_problem(np.eye(3), [.5, .3, .2], [.3, .1, .2], np.diag([1, .5, 2]), .7, .4, .9)       # preferences are independent
TANGLED = make_problem([[1, 0], [0, 1], [.5, .5]], [.4, .4, .2], [0, 0], [[1, .3], [.3, 1]], 1, .2, .9)

MANY = TANGLED._replace(items=np.repeat(TANGLED.items, 400, axis=0), probs=np.repeat(TANGLED.probs, 400) / 400)


@pytest.mark.slow
def test_it_is_the_bound_less_the_value_where_both_are_known():
    """The optimal policy, UCB at two weights, and one that forwards other items first than the bound."""
    rules = [policies.clusters(), policies.ucb(.2), policies.ucb(.6), policies.exploit()]
    limit = bound.dual_first(SEPARATE, 1500, seed=1, sequences=2000)
    values = np.array([simulate.decoupled(SEPARATE, rule).value for rule in rules])
    found = shortfall.shortfall(SEPARATE, rules, Effort(300), 2)
    assert (abs(found.mean - (limit.mean - values)) < 4 * np.hypot(found.se, limit.se)).all()
    assert 0 < found.mean[0] < found.mean[1:].min()
    optimum = bound.decomposition(SEPARATE, 1e-3)
    assert (found.mean + 4 * found.se > optimum.lower - values).all()                   # never below what the optimum has beyond it


@pytest.mark.slow
def test_with_two_forwards_exact_less_is_left_and_not_too_little():
    rules = [policies.clusters(), policies.ucb(.6)]
    one, two = (shortfall.shortfall(SEPARATE, rules, Effort(400, outer=outer), 3) for outer in (0, 4))
    optimum = bound.decomposition(SEPARATE, 1e-3)
    values = np.array([simulate.decoupled(SEPARATE, rule).value for rule in rules])
    assert (two.mean < one.mean).all() and (two.mean + 4 * two.se > optimum.lower - values).all()
    second = bound.dual_second(SEPARATE, 4, 200, seed=4, sequences=1000)
    assert (abs(two.mean - (second.mean - values)) < 4 * np.hypot(two.se, second.se)).all()


@pytest.mark.slow
def test_errors_are_those_of_repeated_runs_and_far_below_those_of_independent_ones():
    rule = [policies.knowledge_gradient(.8)]
    found = [shortfall.shortfall(TANGLED, rule, Effort(80, 2), (5, run)) for run in range(20)]
    mean, se = (np.array([getattr(part, field)[0] for part in found]) for field in ("mean", "se"))
    assert .65 < mean.std(ddof=1) / np.sqrt((se**2).mean()) < 1.45
    limit = bound.dual_first(TANGLED, 80, 2, seed=6, sequences=80)
    value = comparison.evaluate(TANGLED, rule, 80, 100, 7).value
    assert se.mean() < np.hypot(limit.se, value.se[0]) / 2


def test_a_policy_that_forwards_nothing_is_short_of_the_whole_bound():
    problem = TANGLED._replace(cost=.5)
    lost = shortfall.shortfall(problem, [policies.exploit()], Effort(200, 2), 8)
    assert not shortfall.forwarded_first(problem, [policies.exploit()]).any()
    sample = duality.first_forwards(problem, 200, 2, 2000, (8, 0), 200)
    whole = duality._first_forward("", sample, problem)
    assert lost.mean[0] == pytest.approx(whole.mean) and lost.se[0] == pytest.approx(whole.se, rel=1e-6)


def test_after_the_first_item_lives_go_on_from_the_belief_that_it_leaves():
    """One item: the arrivals ahead are known, and the rest of a life is one of the problem that is left."""
    problem = make_problem([[1.0]], [1.0], [.1], [[1.0]], 1.0, .2, .9)
    rules = [policies.knowledge_gradient(), policies.ucb(.5)]
    met = shortfall.lives(problem, rules, np.zeros(6, int), 9)
    assert met.decisions[:, :, 0].all()
    found = penalty.gap_after(problem, met, 1)
    for r in range(6):
        left = duality.after(problem, 0, met.feedback[r, 0])
        rest = simulate.Episodes(None, met.items[r:r + 1, 1:], met.feedback[r:r + 1, 1:], None, met.decisions[:, r:r + 1, 1:], None)
        assert found[:, r] == pytest.approx(bound.gap(left, rest, 1)[:, 0], abs=1e-12)


def test_a_first_item_that_a_policy_discards_says_nothing_of_it():
    problem = TANGLED._replace(cost=.5)
    rules = [policies.exploit(), policies.knowledge_gradient(2.0)]
    found = penalty.gap_after(problem, shortfall.lives(problem, rules, np.array([0, 1]), 10))
    assert np.isnan(found[0]).all() and (found[1] > -1e-12).all()


@pytest.mark.slow
def test_an_item_that_only_the_policy_forwards_first_has_its_charges_in_the_bound_too():
    """The bound gives it no lives of its own, as it never is worth a first forward: once nothing was charged after it."""
    problem = make_problem(np.eye(2), [.1, .9], [.5, -.9], np.diag([1, .09]), 1.5, 0, .9, noise=[1, 1e-4])
    rule = policies.ucb(3.05)
    assert shortfall.forwarded_first(problem, [rule]).all()
    found = [shortfall.shortfall(problem, [rule], Effort(400, 2), (11, run)) for run in range(6)]
    mean, se = np.mean([part.mean[0] for part in found]), np.mean([part.se[0] for part in found]) / np.sqrt(6)
    least = bound.decomposition(problem, 1e-3).lower - simulate.decoupled(problem, rule).value
    limit = bound.dual_first(problem, 4000, seed=12, sequences=2000)
    assert mean + 3 * se > least and abs(mean - (limit.mean - simulate.decoupled(problem, rule).value)) < 4 * np.hypot(se, limit.se)


def test_an_item_that_never_comes_is_no_first_forward():
    problem = make_problem(np.eye(2), [1, 0], [.2, .5], np.eye(2), 1, 0, .5)
    found = shortfall.shortfall(problem, [policies.exploit()], Effort(50, 2), 13)
    assert np.isfinite(found).all() and found.mean[0] > 0


def test_what_is_refused():
    rules = [policies.ucb(.5)]
    for wrong, words in ((policies.thompson(), "depends on chance"), (policies.bayes_ucb(), "the time"), (policies.phased(), "or a phase")):
        with pytest.raises(ValueError, match=words):
            shortfall.shortfall(TANGLED, [wrong])
    with pytest.raises(ValueError, match="outer is 3: it must be even"):
        shortfall.shortfall(TANGLED, rules, Effort(100, outer=3))
    with pytest.raises(ValueError, match="paths"):
        shortfall.shortfall(TANGLED, rules, Effort(1))
    with pytest.raises(ValueError, match="effort"):
        shortfall.shortfall(TANGLED, rules, (100, 4, 2000, 0))
    with pytest.raises(ValueError, match="1200 items: two forwards are exact for at most 1024, not with outer 4"):
        shortfall.shortfall(MANY, rules, Effort(100, outer=4))
    with pytest.raises(ValueError, match="items is 33: it must be even"):
        shortfall.shortfall(MANY, rules, Effort(100, items=33))


@pytest.mark.slow
def test_of_a_sample_of_many_items_it_is_that_of_all():
    """Copies of three items, so that each of these can be looked at, the bound's own first forwards and others."""
    rules = [policies.knowledge_gradient(.8), policies.ucb(.8), policies.exploit()]
    whole = shortfall.shortfall(TANGLED, rules, Effort(400), 14)
    part = shortfall.shortfall(MANY, rules, Effort(200, items=64), 15)
    assert (abs(part.mean - whole.mean) < 4 * np.hypot(part.se, whole.se) + .01 * whole.mean).all()
    found = [shortfall.shortfall(MANY, rules[:2], Effort(40, 2, items=32), (16, run)) for run in range(10)]
    mean, se = (np.array([getattr(each, field) for each in found]) for field in ("mean", "se"))
    ratio = mean.std(axis=0, ddof=1) / np.sqrt((se**2).mean(axis=0))
    assert (.5 < ratio).all() and (ratio < 1.6).all()


def test_where_many_items_are_worth_no_forward_nothing_is_left():
    closed = MANY._replace(cost=9.0)
    found = shortfall.shortfall(closed, [policies.exploit(), policies.ucb(.5)], Effort(40, items=16), 17)
    assert found.mean.tolist() == [0.0, 0.0] and found.se.tolist() == [0.0, 0.0]


def test_a_policy_pays_all_its_charges_for_a_first_forward_that_no_bound_would_make():
    """Nothing is worth a forward, so that what a policy stays below the bound is what it loses; the items are sampled."""
    closed, rules = MANY._replace(cost=.8), [policies.ucb(2.0), policies.ucb(4.0)]
    found = shortfall.shortfall(closed, rules, Effort(400, items=64), 2)
    lost = -simulate.replicate(TANGLED._replace(cost=.8), rules, 20_000, 120, 5)
    assert bound.full_first(closed, 100).mean == 0
    assert (abs(found.mean - lost.mean(axis=1)) < 4 * np.hypot(found.se, lost.std(axis=1) / 20_000**.5)).all()
