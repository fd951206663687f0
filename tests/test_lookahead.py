"""Policies that look at the whole belief, and the other laws of projection, against loops and closed forms."""
from statistics import NormalDist

import naive
import numba
import numpy as np
import pytest
from scipy.integrate import quad

from lib import bound, policies, posterior, simulate
from lib.policies import lookahead, patience
from lib.problem import make_problem

ITEMS = [[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0], [0, 0, 0], [0, 0.7, 2]]
SIGMA = [[1, 0.4, 0], [0.4, 2, -0.3], [0, -0.3, 0.5]]
ALPHAS = (0.3, 1.0, 3.0)


def problem(**changes):
    base = make_problem(ITEMS, [0.3, 0.3, 0.2, 0.1, 0.1], [0.1, 0.2, 0.1], SIGMA, 1, 0.35, 0.9)
    return base._replace(**changes)


def episodes(p, rules, replications=6, **options):
    """The Episodes of a simulation, horizon 40."""
    return simulate.episodes(p, rules, replications, horizon=40, **options)


def agree(p, rules, decisions_of):
    """Every decision of every policy equals `decisions_of(policy, items, feedback)` on the same stream."""
    run = episodes(p, rules)
    for policy, decisions in zip(rules, run.decisions):
        want = [decisions_of(policy, *stream) for stream in zip(run.items, run.feedback)]
        assert np.array_equal(decisions, want), policy
    assert 0 < run.decisions.mean() < 1


@pytest.mark.kernels
def test_knowledge_gradient_equals_the_loops():
    p = problem()

    def decisions(policy, items, feedback):
        return naive.belief_decisions(p, lambda mu, Sigma, i, n: policy.alpha * naive.knowledge_gradient(
            p, mu, Sigma, i) > p.cost - naive.inner(p.items[i], mu), items, feedback)
    agree(p, [policies.knowledge_gradient(a) for a in ALPHAS], decisions)


@pytest.mark.kernels
def test_an_item_at_a_tie_is_forwarded_for_what_its_feedback_adds():
    """All are worth their cost, and nothing is learned from the fourth, which has no feature."""
    arms = [policies.knowledge_gradient(), policies.scores(), policies.scores(0)]
    run = simulate.episodes(problem(mu=np.zeros(3), cost=0.0), arms, 40, horizon=1)
    assert np.array_equal(run.decisions[:2], [run.items != 3] * 2) and (run.items == 3).any() and not run.decisions[2].any()


@pytest.mark.kernels
def test_a_bound_on_the_gradient_takes_the_largest_step_of_each_part():
    """Coming items in parts, more of them than are worked on side by side: decisions are those of the loops, too."""
    rng, n = np.random.default_rng(1), lookahead.LANES + 9
    p = make_problem(rng.normal(size=(n, 2)), np.full(n, 1 / n), [.1, .2], [[1, .3], [.3, .5]], 1, .6, .7)
    arms = [policies.knowledge_gradient()]
    ahead, along, k = lookahead.make_lookahead(p, arms, 9), p.Sigma @ p.items[5], 2
    state = lookahead.State(p.mu.copy(), p.Sigma.copy(), np.zeros(n, np.int64), np.empty((k, k)), np.array([0, 0, 0, 1, 0, 0]),
                            np.zeros(1, np.int8), np.empty(2), np.empty((k, 4)), np.empty(5), np.empty(4), np.empty(4),
                            np.empty((0, k, k)), np.empty((0, 1)))
    assert not lookahead.too_little(posterior.compile_problem(p), ahead, state, 5, 0.0)
    want = [max(abs(naive.inner(p.items[j], along)) for j in range(n) if ahead.parts.of[j] == g) for g in range(lookahead.PARTS)]
    assert state.steps == pytest.approx(want, rel=1e-12) and len(set(want)) == 4
    run = simulate.episodes(p, arms, 3, horizon=9)
    for r in range(3):
        assert np.array_equal(run.decisions[0, r], naive.belief_decisions(
            p, lambda mu, Sigma, i, n: naive.knowledge_gradient(p, mu, Sigma, i) > p.cost - naive.inner(p.items[i], mu),
            run.items[r], run.feedback[r]))


def test_knowledge_gradient_equals_quadrature():
    """E over the feedback of the best that each later item can then be worth, less what it is worth now."""
    p = problem()
    ahead = lookahead.make_lookahead(p, [], 1)
    for i in (0, 2, 4):
        x, noise = p.items[i], p.noise_sd**2 * np.count_nonzero(p.items[i])
        spread = x @ p.Sigma @ x + noise

        def after(y):
            mu, _ = naive.update(p.mu, p.Sigma, x, y, noise)
            return sum(q * max(naive.inner(X, mu) - p.cost, 0) for X, q in zip(p.items, p.probs))
        law = NormalDist(x @ p.mu, np.sqrt(spread))
        kinks = [x @ p.mu + (p.cost - X @ p.mu) * spread / (X @ p.Sigma @ x) for X in p.items if X @ p.Sigma @ x]
        low, high = law.mean - 10 * law.stdev, law.mean + 10 * law.stdev
        then = quad(lambda y: after(y) * law.pdf(y), low, high, points=sorted(k for k in kinks if low < k < high),
                    limit=200)[0]
        now = p.probs @ np.maximum(p.items @ p.mu - p.cost, 0)
        assert lookahead.gradient(posterior.compile_problem(p), ahead, p.mu, p.Sigma, i, np.inf) == pytest.approx(then - now, rel=1e-8)


def test_the_gain_is_utility_divergence_removed():
    """Zhang, Xu and Callan's measure: how much less a decision from the mean loses to one that knows theta."""
    p, i = problem(), 0
    ahead, rng = lookahead.make_lookahead(p, [], 1), np.random.default_rng(1)
    x = p.items[i]
    theta = rng.multivariate_normal(p.mu, p.Sigma, 200_000)
    y = theta @ x + p.noise_sd * rng.standard_normal(len(theta))
    step = p.Sigma @ x / (x @ p.Sigma @ x + p.noise_sd**2)
    worth = theta @ p.items.T - p.cost

    def divergence(means):
        return (np.maximum(worth, 0) - worth * (means @ p.items.T >= p.cost)) @ p.probs
    removed = divergence(p.mu[None, :]) - divergence(p.mu + np.outer(y - x @ p.mu, step))
    error = removed.std() / np.sqrt(len(removed))
    assert abs(removed.mean() - lookahead.gradient(posterior.compile_problem(p), ahead, p.mu, p.Sigma, i, np.inf)) < 4 * error


def test_scores_equal_the_loops():
    p = problem()

    def decisions(policy, items, feedback):
        return naive.belief_decisions(p, lambda mu, Sigma, i, n: policy.alpha * naive.score_gradient(
            p, mu, Sigma, i) > p.cost - naive.inner(p.items[i], mu), items, feedback)
    agree(p, [policies.scores(a) for a in ALPHAS], decisions)


def test_the_patient_lookahead_equals_the_loops():
    p = problem()
    blocks = patience.blocks(p.gamma).tolist()

    def forwards(mu, Sigma, i, alpha):
        worths, wait = naive.patient_worths(p, mu, Sigma, alpha, blocks)
        return naive.inner(p.items[i], mu) > p.cost or worths[i] > wait

    def decisions(policy, items, feedback):
        return naive.belief_decisions(p, lambda mu, Sigma, i, n: forwards(mu, Sigma, i, policy.alpha), items, feedback)
    agree(p, [policies.patient(a) for a in (0, *ALPHAS)], decisions)


def test_what_a_forward_is_worth_equals_quadrature():
    """At alpha = 0 nothing is learned later: A_x is the net mean and what the best decisions after one feedback earn."""
    p = problem()
    prospect, compiled = patience.make_prospect(p, True), posterior.compile_problem(p)
    for alpha in (0.0, 0.8):
        foreseen = patience.foresee(prospect, alpha, p.mu, p.Sigma)
        for i in (0, 2, 4):
            x, noise = p.items[i], p.noise_sd**2 * np.count_nonzero(p.items[i])
            law, total = NormalDist(0, 1), x @ p.mu - p.cost
            for S, (m, weight) in zip(foreseen[0], prospect.blocks):
                step = p.items @ S @ x / np.sqrt(x @ S @ x + noise)
                known = np.maximum(np.einsum("ij,jk,ik->i", p.items, p.Sigma - S, p.items), 0)
                assert m == 0 or alpha == 0 or (known[:3] > 0).all()
                for net, move, sd, q in zip(p.items @ p.mu - p.cost, step, np.sqrt(known), p.probs):
                    def after(z):
                        mean = net + move * z
                        return (mean * law.cdf(mean / sd) + sd * law.pdf(mean / sd) if sd > 1e-9 else max(mean, 0)) * law.pdf(z)
                    kink = [-net / move] if move and abs(net / move) < 9 else None
                    total += weight * q * quad(after, -9, 9, points=kink, limit=200)[0]
            assert patience.worth(compiled, prospect, foreseen, p.mu, i) == pytest.approx(total, rel=1e-7)


@pytest.mark.parametrize("gamma", [0.0, .3, .9, .999])
def test_blocks_of_arrivals_have_the_whole_discount(gamma):
    blocks, far = patience.blocks(gamma), np.arange(40_000)
    assert blocks[:, 1].sum() == pytest.approx(gamma / (1 - gamma))
    assert blocks[:, 0] @ blocks[:, 1] == pytest.approx(far @ gamma ** (far + 1.0))
    assert (np.diff(blocks[:, 0]) > 0).all()


def test_few_items_stand_for_many(monkeypatch):
    """What waiting and a forward are worth among 400 items, from a stratified sample and from all; items that never come do not count."""
    rng = np.random.default_rng(3)
    items = rng.dirichlet(np.ones(3), 400)
    p = make_problem(items, rng.dirichlet(np.full(400, 5.0)), [.1, .2, .1], SIGMA, 1, .35, .9)
    compiled, found = posterior.compile_problem(p), []
    for few in (patience.FEW, 1000):
        monkeypatch.setattr(patience, "FEW", few)
        prospect = patience.make_prospect(p, True)
        foreseen = patience.foresee(prospect, 1.0, p.mu, p.Sigma)
        found.append([patience.waiting(prospect, foreseen, p.mu), *(patience.worth(compiled, prospect, foreseen, p.mu, i) for i in range(5))])
    assert len(prospect.sample.probs) == 400 and found[0] == pytest.approx(found[1], abs=.05) and found[0] != found[1]
    never = make_problem(np.vstack([p.items, [[9., 9, 9]]]), [*p.probs, 0], p.mu, SIGMA, 1, .35, .9)
    assert len(patience.make_prospect(never, True).sample.probs) == 400


@pytest.mark.parametrize("cost", [.6, .7])
def test_patience_forwards_nothing_where_the_optimum_is_zero(cost):
    """The small instance of the chapter on bounds: the dual leaves nothing.  At alpha = 1 it would forward."""
    p = make_problem([[1, 0], [0, 1], [.5, .5]], [.4, .4, .2], [0, 0], [[1, .3], [.3, 1]], 1, cost, .9)
    assert bound.dual_first(p, 300, seed=1).mean < .02
    out, bold = simulate.episodes(p, [policies.patient(), policies.patient(1.0)], 50, 20).decisions
    assert not out.any() and bold.any() == (cost == .6)


def test_waiting_pays_where_a_better_item_comes():
    """Two items tell of one preference; the one that tells more is waited for, though the other is worth a forward."""
    p = make_problem([[1.0], [1.0]], [.5, .5], [0.0], [[1.0]], 1, .4, .9, [1.0, 4.0])
    chosen = simulate.episodes(p, [policies.patient(1.0), policies.knowledge_gradient()], 200, 1)
    assert np.array_equal(chosen.decisions[0], chosen.items == 0) and chosen.decisions[1].all()


def test_information_directed_equals_the_loops():
    p = problem()

    def decisions(policy, items, feedback):
        return naive.belief_decisions(p, lambda mu, Sigma, i, n: i in naive.directed_set(p, mu, Sigma, policy.alpha),
                                      items, feedback)
    agree(p, [policies.information_directed(a) for a in ALPHAS], decisions)


def test_bayes_ucb_equals_the_loops():
    p = problem()

    def decisions(policy, items, feedback):
        return naive.belief_decisions(
            p, lambda mu, Sigma, i, n: naive.inner(p.items[i], mu) + policy.alpha * NormalDist().inv_cdf(1 - 1 / (n + 2))
            * np.sqrt(naive.variance(Sigma, p.items[i])) >= p.cost, items, feedback)
    agree(p, [policies.bayes_ucb(a) for a in ALPHAS], decisions)


@pytest.mark.parametrize("items", [ITEMS, [[1, 0, 0], [0.5, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 0]]])
def test_phased_exploration_equals_the_loops(items):
    p = problem(items=np.array(items, float))
    agree(p, [policies.phased(a) for a in (0.5, 1, 4)],
          lambda policy, items, feedback: naive.phased_decisions(p, policy.alpha, items, feedback))


def test_rollouts_equal_the_loops():
    p = problem(gamma=0.6)
    rules = [policies.rollout(a, 12) for a in (0.2, 1.5)]
    ahead = lookahead.make_lookahead(p, rules, 40)
    futures = [part.tolist() for part in ahead.futures]
    assert len(futures[0]) == 12
    agree(p, rules, lambda policy, items, feedback: naive.belief_decisions(
        p, lambda mu, Sigma, i, n: naive.rollout_decision(p, mu, Sigma, i, policy.alpha, *futures), items, feedback))


def test_a_singular_belief_has_a_root():
    Sigma = np.array([[1.0, 2, 0], [2, 4, 0], [0, 0, 0]])
    L = lookahead.root(Sigma)
    assert L @ L.T == pytest.approx(Sigma)


EVERY = [policies.ucb(0.5), policies.knowledge_gradient(), policies.thompson(), policies.scores(),
         policies.information_directed(), policies.dtd_dp(law="prior"), policies.bayes_ucb(), policies.phased(),
         policies.rollout(0.5, 4), policies.patient()]


def test_company_and_order_change_nothing():
    """Each policy's rewards are those it has alone: all meet the same streams."""
    p = problem(gamma=0.7)
    together = simulate.replicate(p, EVERY, 5, horizon=20)
    alone = np.vstack([simulate.replicate(p, [policy], 5, horizon=20) for policy in EVERY])
    assert np.array_equal(together, alone)
    assert np.array_equal(together[::-1], simulate.replicate(p, EVERY[::-1], 5, horizon=20))


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="numba was started with one thread")
def test_threads_change_nothing():
    p = problem(gamma=0.7)
    two = simulate.replicate(p, EVERY, 200, horizon=15)
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        assert np.array_equal(two, simulate.replicate(p, EVERY, 200, horizon=15))
    finally:
        numba.set_num_threads(before)


def test_hard_clusters_attain_the_bound():
    """Clusters with independent preferences: the policy's exact value is the certified bound."""
    p = make_problem(np.eye(3), [0.5, 0.3, 0.2], [0.1, 0.4, -0.2], np.diag([1, 0.5, 2]), 0.7, 0.4, 0.9)
    best = simulate.decoupled(p, policies.clusters())
    limits = bound.decomposition(p, 1e-3)
    assert best.value == pytest.approx(limits.value, rel=1e-4)
    assert best.value <= limits.upper + best.error
    assert best.value > simulate.decoupled(p, policies.ucb(0.5)).value


def test_laws_of_projection():
    p = problem()
    assert policies.mean_projection(p, "own") == pytest.approx(p.probs)
    assert policies.mean_projection(p, "always") == pytest.approx(np.ones(5))
    want = [sum(q * max(naive.inner(X, naive.times(SIGMA, x)), 0) for X, q in zip(ITEMS, p.probs))
            / (naive.variance(SIGMA, x) or 1) for x in ITEMS]
    assert policies.mean_projection(p, "prior") == pytest.approx(want)
    for law in policies.LAWS:
        means = [x @ weight for x, weight in policies.projections(p, law)]
        assert policies.mean_projection(p, law) == pytest.approx(means)
        assert all((x >= 0).all() for x, _ in policies.projections(p, law))


def test_an_isotropic_prior_projects_as_the_paper_does():
    p = problem(Sigma=0.3 * np.eye(3))
    assert policies.mean_projection(p, "prior") == pytest.approx(policies.mean_projection(p))


def test_labels_tell_the_policies_apart():
    every = [*EVERY, policies.dtd_dp(), policies.dtd_ucb(1), policies.dtd_ucb(1, "prior"), policies.gittins(),
             policies.clusters(), policies.dtd_dp(1, "model"), policies.rollout(0.5, 8)]
    assert len({policies.label(policy) for policy in every}) == len(every)


@pytest.mark.parametrize("call, name", [
    (lambda: policies.dtd_dp(law="cosine"), "law is 'cosine'"),
    (lambda: policies.dtd_ucb(1, "cosine"), "law is 'cosine'"),
    (lambda: policies.knowledge_gradient(-1), "alpha is -1"),
    (lambda: policies.rollout(1, 1), "futures must be an integer of at least 2, got 1"),
    (lambda: policies.rollout(1, 2.5), "futures must be an integer of at least 2, got 2.5"),
    (lambda: simulate.replicate(problem(), [], 1), "policies is empty"),
    (lambda: simulate.replicate(problem(), [policies.phased(), "ucb"], 1), "policies holds 'ucb'"),
    (lambda: policies.compile_rules(problem(), [policies.phased()]), "policies holds Policy"),
])
def test_bad_arguments_are_named(call, name):
    with pytest.raises(ValueError, match=name):
        call()
