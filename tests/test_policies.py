"""Policies as data, the projections behind them, and what the compiler refuses."""
import naive
import numpy as np
import pytest

from lib import kernels, policies
from lib.problem import make_problem

ITEMS = [[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0], [0, 0, 0], [0, 0, 2]]


def problem(**changes):
    base = make_problem(ITEMS, [0.3, 0.3, 0.2, 0.1, 0.1], [0.1, 0.2, 0.3], np.diag([1, 2, 0.5]), 1, 0.2, 0.9)
    return base._replace(**changes)


def test_policies_are_plain_hashable_data():
    assert policies.ucb(1) == policies.ucb(1.0) and hash(policies.ucb(1)) == hash(policies.ucb(1.0))
    assert len({policies.exploit(), policies.ucb(1), policies.thompson(), policies.dtd_ucb(1)}) == 4
    assert policies.ALPHAS == pytest.approx([10 ** (-1 + 2 * i / 9) for i in range(10)])


def test_labels_tell_policies_apart():
    every = [policies.exploit(), policies.thompson(), policies.ucb(0.5), policies.ucb(2), policies.dtd_ucb(0.5)]
    assert len({policies.label(policy) for policy in every}) == len(every)
    assert policies.label(policies.exploit()) == "Exploitation"


def test_mean_projection_equals_the_loops_and_the_mean_of_the_law():
    p = problem()
    means = policies.mean_projection(p)
    assert means == pytest.approx([naive.mean_projection(ITEMS, p.probs, x) for x in ITEMS])
    assert means[3] == 0
    laws = policies.projections(p)
    assert means == pytest.approx([x @ weight for x, weight in laws])
    assert all(weight.sum() == pytest.approx(1) and (np.diff(x) > 0).all() for x, weight in laws)
    assert laws[2][0] == pytest.approx([0, 1]) and laws[2][1] == pytest.approx([0.2, 0.8])


def test_projections_merge_magnitudes_that_differ_by_rounding():
    items = np.array([[0.1, 0.2], [0.3, 0.6], [0.1 * 3, 0.2 * 3 + 1e-16]])
    laws = policies.projections(make_problem(items, [0.2, 0.3, 0.5], [0, 0], np.eye(2), 1, 0, 0.9))
    assert [len(x) for x, _ in laws] == [2, 2, 2]


def test_compiled_rules_hold_each_policys_bonus_and_tie():
    rules = policies.compile_rules(problem(), [policies.exploit(), policies.ucb(2), policies.dtd_ucb(3),
                                               policies.thompson()])
    assert rules.kind.tolist() == [kernels.INDEX] * 3 + [kernels.THOMPSON]
    assert rules.ties.tolist() == [True, True, False, False]
    assert rules.bonus[:2] == pytest.approx(np.outer([0, 2], np.ones(5)))
    assert rules.bonus[2] == pytest.approx(3 * policies.mean_projection(problem()))


@pytest.mark.parametrize("call, name", [
    (lambda: policies.ucb(-1), "alpha is -1"),
    (lambda: policies.ucb(np.nan), "alpha"),
    (lambda: policies.dtd_ucb("much"), "alpha must be numeric"),
    (lambda: policies.compile_rules(problem(), []), "policies is empty"),
    (lambda: policies.compile_rules(problem(), ["ucb"]), "policies holds 'ucb'"),
    (lambda: policies.compile_rules(problem(), [policies.Policy("oracle")]), "policies holds Policy"),
])
def test_bad_policies_are_named(call, name):
    with pytest.raises(ValueError, match=name):
        call()
