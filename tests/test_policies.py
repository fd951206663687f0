"""Policies as data, the projections behind them, and what the compiler refuses."""
import naive
import numpy as np
import pytest

from lib import dp, policies
from lib.dp import program
from lib.policies.index import benefit
from lib.policies.rules import INDEX, THOMPSON
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
    every = [policies.exploit(), policies.thompson(), policies.ucb(0.5), policies.ucb(2), policies.dtd_ucb(0.5),
             policies.dtd_dp(), policies.dtd_dp(0.5), policies.dtd_dp(noise="model")]
    assert len({policies.label(policy) for policy in every}) == len(every)
    assert policies.label(policies.exploit()) == "Exploitation"


@pytest.mark.parametrize("policy, name", [
    (policies.ucb(.5), "UCB, alpha = 0.5"), (policies.thompson(), "Thompson sampling"), (policies.dtd_ucb(.5), "DTD-UCB, alpha = 0.5"),
    (policies.dtd_ucb(1, "prior"), "DTD-UCB, law prior, alpha = 1"), (policies.dtd_dp(), "DTD-DP, alpha = 1"),
    (policies.dtd_dp(2, "model"), "DTD-DP, noise of the model, alpha = 2"), (policies.dtd_dp(1, law="own"), "DTD-DP, law own, alpha = 1"),
    (policies.dtd_dp(1, "model", "prior"), "DTD-DP, noise of the model, law prior, alpha = 1"),
    (policies.gittins(), "Gittins, x = 1, alpha = 1"), (policies.clusters(), "Hard clusters, alpha = 1"),
    (policies.rollout(.5, 7), "Rollout of 7, alpha = 0.5")])
def test_a_label_says_the_family_its_noise_and_its_law(policy, name):
    assert policies.label(policy) == name


def test_defaults_are_those_that_the_docstrings_state():
    assert policies.Policy("ucb") == ("ucb", 0, "basis", "euclid", 0)
    assert policies.dtd_dp() == policies.dtd_dp(1, "basis", "euclid") and policies.dtd_ucb(1) == policies.dtd_ucb(1, "euclid")
    assert policies.gittins() == policies.dtd_dp(1, "model", "always") and policies.clusters() == policies.dtd_dp(1, "model", "own")
    assert policies.rollout(1).futures == 200 and policies.patient().alpha == .5
    for make in (policies.knowledge_gradient, policies.scores, policies.information_directed, policies.bayes_ucb, policies.phased):
        assert make().alpha == 1


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
    assert rules.kind.tolist() == [INDEX] * 3 + [THOMPSON]
    assert rules.ties.tolist() == [True, True, False, False]
    assert rules.bonus[:2] == pytest.approx(np.outer([0, 2], np.ones(5)))
    assert rules.bonus[2] == pytest.approx(3 * policies.mean_projection(problem()))


@pytest.mark.parametrize("noise", ["basis", "model"])
def test_the_table_holds_the_programs_exploration_benefit(noise):
    p = problem(gamma=0.95)
    rules = policies.compile_rules(p, [policies.exploit(), policies.dtd_dp(2, noise)])
    assert rules.bonus[1].tolist() == [2] * 5
    prior = np.einsum("ij,jk,ik->i", p.items, p.Sigma, p.items)
    scale, rng = p.noise_sd * np.sqrt([1, 1, 2, 1, 1] if noise == "model" else np.ones(5)), np.random.default_rng(0)
    for i in (0, 1, 2, 4):
        x, probs = policies.projections(p)[i]
        table = dp.solve(x, probs, p.gamma, scale[i], prior[i], certify=False)
        var, z = prior[i] * np.exp(-4 * rng.random(100)), -3 * rng.random(100)
        discard, forward = dp.q_values(table, z * np.sqrt(var), var)
        want = (forward - discard) / np.sqrt(var) - z
        got = [benefit(rules, rules.row[1, i], *at) for at in zip(z, var)]
        assert got == pytest.approx(want, abs=8e-3)
    assert benefit(rules, rules.row[1, 3], -0.1, 1.0) == 0


@pytest.mark.parametrize("gamma", [0.2, 0.5])
def test_a_table_of_benefits_reaches_as_far_as_it_must_and_one_step_further(gamma):
    prec = 0.7
    high, benefits = dp.exploration_benefits(np.array([0.5, 2.0]).tobytes(), np.array([0.4, 0.6]).tobytes(), gamma, prec)
    rows, columns = benefits.shape
    reach = program.REACH / -np.log(gamma) * 4                      # what REACH items of the largest magnitude tell
    assert len(high) == rows and rows - 2 <= np.log(1 + reach / prec) / program.STEP < rows - 1
    last = high.min() + program.FINE * (columns - 1) - program.DEEP
    assert 0 < last <= program.FINE                                 # z from DEEP below the kink to the cost


def indifference(rules, var):
    """Standardised net mean at which item 0 breaks even under policy 0, by bisection."""
    low, high = -8.0, 0.0
    for _ in range(50):
        z = (low + high) / 2
        go = z + rules.bonus[0, 0] * benefit(rules, rules.row[0, 0], z, var) > 0
        low, high = (low, z) if go else (z, high)
    return high


def test_the_table_breaks_even_at_gittins_indices():
    """Items are always 1: indices after 1 to 100 observations, from two methods that are not this project's."""
    for gamma, known in ((0.5, {1: 0.2056692302, 2: 0.1216894569, 5: 0.0561586666, 100: 0.0031895848}),
                         (0.9, {1: 0.7465837371, 5: 0.2332404420, 20: 0.0712255731, 100: 0.0155790522})):
        rules = policies.compile_rules(make_problem([[1]], [1], [0], [[1]], 1, 0, gamma), [policies.dtd_dp()])
        for n, index in known.items():
            tolerance = 0.12 if n > program.REACH / -np.log(gamma) else 0.01
            assert -indifference(rules, 1 / n) / np.sqrt(n) == pytest.approx(index, rel=tolerance)


def test_forwarding_need_not_be_a_threshold_in_the_mean():
    """Where other items teach more for what they cost, a mean nearer the cost can be worth waiting with."""
    items = np.array([[1, 0], [0.5, np.sqrt(3) / 2], [1.3, 0], [0, 1]])
    p = make_problem(items, [0.2, 0.2, 0.2, 0.4], [0, 0], np.eye(2) * 100, 1, 0, 0.99)
    rules = policies.compile_rules(p, [policies.dtd_dp()])
    z = np.linspace(-1.3, 0, 400)
    go = [a + benefit(rules, rules.row[0, 0], a, 1 / 8) > 0 for a in z]
    x, probs = policies.projections(p)[0]
    discard, forward = dp.q_values(dp.solve(x, probs, 0.99, 1, 100, certify=False), z / np.sqrt(8), 1 / 8)
    clear = abs(forward - discard) > 0.004
    assert np.array_equal(np.array(go)[clear], (forward > discard)[clear])


def test_rows_are_shared_by_items_that_pose_the_same_problem():
    k = 20
    p = make_problem(np.eye(k), np.append(1 / 2, np.full(k - 1, 1 / 2 / (k - 1))), np.zeros(k), np.eye(k), 1, 0.2, 0.9)
    rules = policies.compile_rules(p, [policies.dtd_dp(), policies.dtd_dp(noise="model"), policies.dtd_dp(2)])
    assert rules.benefit.shape[0] == 2
    assert np.array_equal(rules.row[0], rules.row[1]) and np.array_equal(rules.row[0], rules.row[2])


def test_known_directions_and_no_weight_explore_nothing():
    p = problem(Sigma=np.zeros((3, 3)))
    assert not policies.compile_rules(p, [policies.dtd_dp()]).benefit.any()
    assert not policies.compile_rules(problem(), [policies.dtd_dp(0)]).bonus.any()


@pytest.mark.parametrize("call, name", [
    (lambda: policies.dtd_dp(1, "none"), "noise is 'none'"),
    (lambda: policies.dtd_dp(-0.1), "alpha is -0.1"),
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


def test_a_table_is_linear_up_to_its_end_and_zero_beyond():
    problem = make_problem([[1, 0], [0, 1], [.5, .5]], [.4, .4, .2], [0, 0], [[1, .3], [.3, 1]], 1, .2, .9)
    rules = policies.compile_rules(problem, [policies.dtd_dp(1.0)])
    end, var = rules.kink[0, 0] - rules.steps[2], np.exp(rules.log_var[0])
    for u in (.25, .75, 1.5, 40.25, 63.75):
        i, right = int(u), u % 1
        line = (1 - right) * rules.benefit[0, 0, i] + right * rules.benefit[0, 0, i + 1]
        assert benefit(rules, 0, end + u * rules.steps[1], var) == pytest.approx(line, rel=1e-9) and line > 0
    assert benefit(rules, 0, end - .01, var) == 0
