"""Very many items: what is sampled above a threshold, what stays exact, and that memory grows with n k alone."""
import re
import tracemalloc
from typing import NamedTuple

import naive
import numba
import numpy as np
import pytest
from scipy.stats import norm

from lib import bound, dp, policies, posterior, simulate, streams
from lib.bound import catalogue, penalty
from lib.fetch import ask
from lib.policies import directions, index, lookahead
from lib.problem import make_problem, noise_var
from lib.simulate import instances
from lib.simulate.instances import group

N = posterior.EXACT + 900


def dense(n=N, k=3, low=0.0, gamma=.9, **changes):
    """n items with features from `low` to 1, unequal probabilities, a correlated prior."""
    rng = np.random.default_rng(n + k)
    items, probs = low + (1 - low) * rng.random((n, k)), rng.random(n) + .2
    return make_problem(items, probs / probs.sum(), np.full(k, .3), .5 * np.eye(k) + .3, .5, .6, gamma)._replace(**changes)


def test_variances_of_many_items_equal_the_loops():
    problem = dense()
    got = posterior.variances(problem.items, problem.Sigma)
    for i in (0, 1, 2500, N - 1):
        assert got[i] == pytest.approx(naive.variance(problem.Sigma, problem.items[i]), rel=1e-12)
    parts = posterior.blocks(2 * posterior.BLOCK + 5, 1)
    assert [(part.start, part.stop) for part in parts] == [(0, posterior.BLOCK), (posterior.BLOCK, 2 * posterior.BLOCK),
                                                           (2 * posterior.BLOCK, 2 * posterior.BLOCK + 5)]


def test_up_to_the_threshold_all_items_stand_for_a_coming_one():
    problem = dense(posterior.EXACT)
    stand = posterior.coming(problem)
    assert not stand.sampled and np.array_equal(stand.index, np.arange(len(problem.items))) and stand.probs is problem.probs


def test_means_over_sampled_items_are_unbiased_and_strata_narrow_them():
    problem = dense()
    worth = problem.items @ np.array([1., 2., 3.])              # near the leading direction
    other = np.cos(9 * problem.items[:, 0])
    drawn = [posterior.coming(problem, 64, seed) for seed in range(300)]
    for f, narrower in ((worth, .5), (other, 1.3)):
        means, exact = np.array([f[s.index] @ s.probs for s in drawn]), f @ problem.probs
        assert abs(means.mean() - exact) < 4 * means.std() / np.sqrt(300)
        sd = np.sqrt(problem.probs @ (f - exact)**2)
        assert means.std() < narrower * sd / np.sqrt(64)
    assert np.array_equal(drawn[3].index, posterior.coming(problem, 64, 3).index) and drawn[0].sampled


@pytest.mark.parametrize("law, low", [("euclid", -1.0), ("prior", -1.0), ("prior", 0.0), ("euclid", 0.0), ("own", 0.0), ("always", 0.0)])
def test_mean_projections_of_many_items_are_within_their_error(law, low):
    problem, some = dense(low=low), [0, 7, 3000]
    M, laws = policies.mean_projection(problem, law), policies.projections(problem, law, some)
    through = problem.items if law == "euclid" else problem.items @ problem.Sigma
    for i, (x, probs) in zip(some, laws):
        sizes = np.maximum(through @ problem.items[i] / (through[i] @ problem.items[i]), 0)
        sizes = {"own": np.eye(N)[i], "always": np.ones(N)}.get(law, sizes)
        exact = sizes @ problem.probs
        error = np.sqrt(problem.probs @ (sizes - exact)**2 / posterior.COMING)
        assert abs(M[i] - exact) < 1e-12 + (4 * error if low < 0 else 0)
        assert abs(x @ probs - exact) < 1e-12 + (4 * error if law not in ("own", "always") else 0)
        assert probs.sum() == pytest.approx(1)


def test_knowledge_gradient_over_sampled_items_is_within_its_error():
    problem = dense()
    ahead, compiled = lookahead.make_lookahead(problem, [policies.knowledge_gradient()], 1), posterior.compile_problem(problem)
    for i in (0, 9):
        gained = lookahead.gradient(compiled, ahead, problem.mu, problem.Sigma, i, np.inf)
        along = problem.Sigma @ problem.items[i]
        st = abs(problem.items @ along) / np.sqrt(problem.items[i] @ along + noise_var(problem)[i])
        z = abs(problem.items @ problem.mu - problem.cost) / st
        gains = st * (norm.pdf(z) - z * norm.sf(z))
        exact = problem.probs @ gains
        assert abs(gained - exact) < 4 * np.sqrt(problem.probs @ (gains - exact)**2 / lookahead.SAMPLE)
        assert len(ahead.weights) == lookahead.SAMPLE < posterior.COMING


CROWDS = {"sampled": dense(), "signed": dense(low=-1.0), "all": dense(300, 4, cost=.4), "apart": dense(90, 3)._replace(
    items=np.eye(90), mu=np.full(90, .3), Sigma=np.eye(90), cost=.32), "tied": dense(200, 3, Sigma=np.full((3, 3), .4)),
    "patient": dense(400, 5, gamma=.99, cost=1.2, noise_sd=.05)}


@pytest.mark.parametrize("name", CROWDS)
def test_bounds_on_the_knowledge_gradient_change_no_decision(name, monkeypatch):
    """They are never below the sum, in beliefs after many items, and save sums; without them all decisions are the same."""
    problem, arms = CROWDS[name], [policies.knowledge_gradient(alpha) for alpha in (1.0, .1, 5.0)]
    bounded = simulate.episodes(problem, arms, 20, 60)
    ahead, compiled = lookahead.make_lookahead(problem, arms, 60), posterior.compile_problem(problem)
    assert len(ahead.parts.mass) == lookahead.PARTS and ahead.parts.mass.sum() == pytest.approx(1)
    discarded, k = 0, len(problem.mu)
    for r in range(20):
        mu, Sigma, i = problem.mu.copy(), problem.Sigma.copy(), bounded.items[r, 0]
        for n in np.flatnonzero(bounded.decisions[0, r])[:r]:
            posterior.learn(compiled, bounded.items[r, n], bounded.feedback[r, n], mu, Sigma, np.empty(k))
        state = lookahead.State(mu, Sigma, np.zeros(1, np.int64), np.empty((k, k)), np.array([0, 0, 0, 1, 0, 0]),
                                np.zeros(1, np.int8), np.empty(2), np.empty((k, 4)), np.empty(5), np.empty(4), np.empty(4),
                                np.empty((0, k, k)), np.empty((0, 1)))
        gained = lookahead.gradient(compiled, ahead, mu, Sigma, i, np.inf)
        assert not lookahead.too_little(compiled, ahead, state, i, gained)
        discarded += lookahead.too_little(compiled, ahead, state, i, 30 * gained + 1e-9)
    assert discarded > 0 or name == "apart"
    monkeypatch.setattr(lookahead, "LONG", 0)
    plain = simulate.episodes(problem, arms, 20, 60)
    assert np.array_equal(bounded.decisions, plain.decisions) and np.array_equal(bounded.rewards, plain.rewards)
    assert 0 < plain.decisions.mean() < 1


def test_the_knowledge_gradient_is_bounded_only_where_rounding_is_known():
    problem, arms = CROWDS["all"], [policies.knowledge_gradient()]
    for changed, policy, horizon in (
            (problem, arms, 1), (problem, arms, lookahead.LONG + 1), (problem._replace(noise_sd=1e-4), arms, 9),
            (problem, [policies.scores()], 9), (dense(lookahead.LANES, 3), arms, 9)):
        assert len(lookahead.make_lookahead(changed, policy, horizon).parts.mass) == 0
    assert len(lookahead.make_lookahead(problem, arms, 9).parts.mass) == lookahead.PARTS


@pytest.mark.parametrize("problem", [dense(200, 40), dense(200, 3), make_problem(
    np.eye(200)[:, :90], np.full(200, 1 / 200), np.zeros(90), np.eye(90) + .1, 1, .1, .9)], ids=["vectors", "lanes", "sparse"])
def test_memory_asked_for_ahead_changes_no_bit(problem, monkeypatch):
    arms = [policies.ucb(.5), policies.thompson(), policies.dtd_ucb(1.0), policies.dtd_dp(), policies.knowledge_gradient()]
    found = []
    for cache in (0, 2**40):
        monkeypatch.setattr(instances, "CACHE", cache)
        monkeypatch.setattr(lookahead, "CACHE", cache)
        assert group(problem, 30)[0].far == (cache == 0) == lookahead.make_lookahead(problem, arms[-1:], 30).far
        found.append(simulate.episodes(problem, arms, 9, 30))
    assert np.array_equal(found[0].decisions, found[1].decisions) and np.array_equal(found[0].rewards, found[1].rewards)
    assert 0 < found[0].decisions.mean() < 1


class Record(NamedTuple):
    one: np.ndarray
    size: np.ndarray


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="without compilation nothing is asked")
def test_a_kernel_asks_for_memory_to_be_read_and_kept_near():
    """The instruction is in what is compiled: address, read, keep, data; a field that is no array is refused."""
    @numba.njit
    def kernel(record, first, last):
        ask(record, "size", first, last)
    kernel(Record(np.zeros(2), np.zeros(40)), 3, 20)
    assert re.search(r"call void @llvm\.prefetch\.p0(i8)?\((ptr|i8\*) [^,]+, i32 0, i32 3, i32 1\)", kernel.inspect_llvm(kernel.signatures[0]))
    with pytest.raises(numba.TypingError):
        kernel(Record(np.zeros(2), 1.0), 3, 20)


def test_information_directed_sampling_over_sampled_items_is_that_over_all_nearly_always():
    problem = dense(cost=1.0)
    chosen, every = np.zeros(N, np.int8), posterior.compile_problem(problem)
    lookahead.directed(every, problem.mu, problem.Sigma, 1.0, chosen)
    life = simulate.episodes(problem, [policies.information_directed()], 128, horizon=1)
    agree = life.decisions[0, :, 0] == (chosen[life.items[:, 0]] == 1)
    assert agree.mean() > .95 and 0 < chosen.mean() < 1


def test_the_dimension_of_many_items():
    items = dense().items
    problem = dense(items=np.column_stack([items, items @ [1, 1, 0]]), mu=np.zeros(4), Sigma=np.eye(4))
    assert lookahead.dimension(problem) == 3 and lookahead.dimension(dense()) == 3


@pytest.mark.parametrize("policy", [policies.ucb(.5), policies.thompson()])
def test_a_hundred_thousand_items_against_the_loops(policy):
    problem = dense(100_000, 4)
    life, noise = simulate.episodes(problem, [policy], 4, horizon=15), noise_var(problem)
    assert life.items.max() > 90_000 and 0 < life.decisions.mean() < 1
    for r in range(4):
        mu, Sigma = problem.mu.tolist(), problem.Sigma.tolist()
        for n, i in enumerate(life.items[r]):
            x = problem.items[i].tolist()
            go = naive.wanted(policy.kind, policy.alpha, naive.inner(x, mu), naive.variance(Sigma, x), problem.cost, z=life.thompson[r, n])
            assert go == life.decisions[0, r, n], (r, n)
            if go:
                mu, Sigma = naive.update(mu, Sigma, x, life.feedback[r, n], noise[i])


# --- DTD-DP --------------------------------------------------------------------------------------


def test_a_report_finds_the_tables_of_many_items_once_and_draws_coming_items_once(monkeypatch):
    """Neither depends on cost or mean; whatever else changes is asked anew.  Compared with what is found without memory."""
    calls, pooled, leading = {"tables": 0, "draws": 0}, directions._pooled, posterior.leading

    def counted(name, function):
        def call(*args):
            calls[name] += 1
            return function(*args)
        return call

    monkeypatch.setattr(directions, "_pooled", counted("tables", pooled))
    monkeypatch.setattr(posterior, "leading", counted("draws", leading))
    problem = dense(N + 1)
    found = [directions.directions(problem._replace(cost=cost, mu=np.full(3, cost)), "basis", "euclid") for cost in (.1, .2, .9)]
    stand = [posterior.coming(problem._replace(cost=cost, gamma=cost)) for cost in (.1, .2)]
    assert calls == {"tables": 1, "draws": 1} and found[0] is found[2]
    assert np.array_equal(stand[0].index, posterior.stratified(problem, posterior.COMING, streams.generator(0, streams.Purpose.COMING)))
    stand[0].index[:] = 0                                       # what is handed out is the caller's own
    assert np.array_equal(posterior.coming(problem).index, stand[1].index) and stand[1].index.any()
    calls.update(tables=0, draws=0)
    for changes in ({"gamma": .8}, {"noise_sd": .7}, {"noise": "constant"}, {"Sigma": np.eye(3)}, {"items": problem.items * .9},
                    {"probs": problem.probs[::-1].copy()}):
        directions.directions(problem._replace(**changes), "basis", "euclid")
    for name, law in (("model", "euclid"), ("basis", "prior")):
        directions.directions(problem, name, law)
    assert calls == {"tables": 8, "draws": 3}
    monkeypatch.setattr(directions, "LEAST", 4)
    directions.directions(problem, "basis", "euclid")
    assert calls["tables"] == 9


@pytest.mark.parametrize("law", ("euclid", "prior", "always", "own"))
def test_a_pooled_law_has_the_mean_asked_for(law):
    part = np.arange(40, 400)
    for mean in (.1, .35, .8):
        x, probs = map(np.frombuffer, directions._law(dense(), law, part, posterior.coming(dense()), mean))
        assert x @ probs == pytest.approx(mean) and probs.sum() == pytest.approx(1) and (x >= 0).all() and (probs >= 0).all()
        assert len(x) <= directions.ATOMS + 1 and (np.diff(x) > 0).all()


def test_tables_are_for_items_alike_in_number_and_in_height_and_an_extreme_has_its_own():
    """Half of a part's number comes from how many items lie below, half from how high it lies."""
    items, height = np.arange(100) + 7, np.append(np.linspace(0, .97, 99), 10.0)
    parts = directions._parts(items, height, 4)
    assert np.concatenate(parts).tolist() == items.tolist() and [len(part) for part in parts] == [46, 45, 8, 1]        # i/100 + i/1010 against halves
    even = directions._parts(items, np.linspace(2, 3, 100), 4)
    assert [len(part) for part in even] == pytest.approx([25] * 4, abs=1)
    assert directions._parts(items, np.full(100, .3), 4)[0] is items


def test_an_item_reads_the_tables_on_either_side_of_it():
    nodes, values = np.array([1.0, 2, 4]), np.array([.2, 1, 1.5, 2, 3, 4, 9])
    at, share = directions._between(values, nodes)
    for value, below, part in zip(values, at, share):
        want = max(j for j in (0, 1) if j == 0 or nodes[j] < value)            # the last pair serves whatever lies beyond
        assert below == want
        assert part == pytest.approx(np.clip((value - nodes[want]) / (nodes[want + 1] - nodes[want]), -.5, 1.5))
    assert [part.tolist() for part in directions._between(values[:2], nodes[:1])] == [[0, 0], [0, 0]]


def test_full_observation_after_sampled_items_has_ten_times_their_sequences(monkeypatch):
    asked = []
    monkeypatch.setattr(catalogue.relaxations, "full_observation", lambda problem, *args: asked.append(args) or bound.full_first)
    _, first = catalogue.sample(dense(60), 4, 6, 3)
    assert asked == [(60, 3, penalty.steps(.9, 1e-4, 1500))] and first.df == 59 and len(first.values) == 4


def benefits(rules, var, items, z=(-1.0, -.5, -.2, 0.0), shrunk=(1.0, .5, .1)):
    return np.array([[[index.explored(rules, 0, i, a, var[i] * s) for a in z] for s in shrunk] for i in items])


def test_shared_tables_are_near_those_of_each_item(monkeypatch):
    """Clusters: law {0, 1}, each item with its own probability, variance and noise."""
    rng = np.random.default_rng(5)
    problem = make_problem(np.diag(rng.uniform(.5, 2, 90)), rng.dirichlet(np.full(90, 3.0)), np.zeros(90), np.diag(rng.uniform(.5, 2, 90)),
                           1.0, 0.0, .9, rng.uniform(.5, 2, 90))
    var, some = posterior.variances(problem.items, problem.Sigma), [0, 20, 50, 89, int(problem.probs.argmax())]
    shared = policies.compile_rules(problem, [policies.clusters()])
    assert 4 < len(np.unique(shared.row)) < len(shared.log_var) <= directions.LEAST + 1
    monkeypatch.setattr(directions, "FEW", 100)
    each = policies.compile_rules(problem, [policies.clusters()])
    assert len(each.log_var) == 90 and (each.share == 0).all()
    apart = benefits(shared, var, some) - benefits(each, var, some)
    assert abs(apart).max() < .01 < benefits(each, var, some).max()


@pytest.mark.slow
def test_dense_items_share_tables_within_two_hundredths_of_their_sd_and_the_most_extreme_within_three():
    problem = dense(80, 3)
    rules, var = policies.compile_rules(problem, [policies.dtd_dp()]), posterior.variances(problem.items, problem.Sigma)
    laws = policies.projections(problem)
    for i, within in ((int(policies.mean_projection(problem).argmax()), .03), (40, .02)):
        table = dp.solve(*laws[i], problem.gamma, problem.noise_sd, var[i], certify=False)
        z = np.array([-1.0, -.5, -.2, 0.0])
        for shrunk in (1.0, .5, .2):
            sd = np.sqrt(var[i] * shrunk)
            discard, forward = dp.q_values(table, z * sd, np.full(4, sd**2))
            assert benefits(rules, var, [i], z, [shrunk])[0, 0] == pytest.approx((forward - discard) / sd - z, abs=within)


def test_merged_laws_keep_mean_and_zero():
    rng = np.random.default_rng(0)
    x, probs = np.maximum(rng.normal(0, 1, 500), 0), rng.dirichlet(np.ones(500))
    y, q = directions.merged(x, probs, 12)
    assert len(y) <= 13 and y[0] == 0 and q[0] == pytest.approx(probs[x == 0].sum()) and q.sum() == pytest.approx(1)
    assert y @ q == pytest.approx(x @ probs) and .95 * (x**2 @ probs) < y**2 @ q <= x**2 @ probs
    assert [part.tolist() for part in directions.merged(np.zeros(3), np.full(3, 1 / 3))] == [[0], [1]]


# --- bounds --------------------------------------------------------------------------------------


def test_the_crossing_is_where_it_should_be():
    values, gamma = np.array([-1.0, .5, 2.0, 3.0]), .8
    w = catalogue.crossing(values, gamma)
    assert w == pytest.approx(gamma * np.maximum(w, values).mean()) == pytest.approx(dp.first_forward(values, np.full(4, .25), gamma)[0])
    high = catalogue.crossing(values, gamma, 2.0)
    y = np.maximum(values, high)
    se = np.sqrt((y[0] - y[1])**2 + (y[2] - y[3])**2) / 4
    assert high == pytest.approx(gamma * (y.mean() + 2 * se)) and high > w
    assert catalogue.crossing(-values[2:], gamma) == 0 < catalogue.crossing(-values[2:], gamma, 2.0, 5.0)


def test_limits_from_sampled_items_hold_about_as_often_as_they_say():
    """40 runs at 95 %: more than 6 failures have a probability of .3 %.  Without quantile and largest value half would fail."""
    rng = np.random.default_rng(60)
    problem = make_problem(rng.dirichlet(np.ones(3), 60), rng.dirichlet(np.full(60, 3.0)), [.3, .5, .4], .5 * np.eye(3) + .2, .5, .8, .9)
    truth = bound.full_first(problem, 4000, 1).mean
    found = [bound.full_first(problem, 50, (2, run), 64) for run in range(40)]
    assert sum(b.upper < truth for b in found) <= 6 < sum(b.mean < truth for b in found)
    means = np.array([b.mean for b in found])
    assert abs(means.mean() - truth) < .05 * truth and .5 < np.mean([b.se for b in found]) / means.std() < 2


def test_many_items_are_sampled_and_the_bound_is_that_of_all():
    problem = dense(2000, 2, gamma=.8)
    exact = dp.first_forward(bound.forward_values(problem, 64).mean(axis=0)[1:], problem.probs, problem.gamma)[0]
    found = bound.full_first(problem, 200, 3)
    assert abs(found.mean - exact) < 4 * found.se + .03 * exact and found.mean < found.upper < 1.2 * exact
    leaves = bound.dual_first(problem, 64, effort=50, seed=3, items=32)
    assert 0 <= leaves.mean <= leaves.upper and leaves.name == "first forward exact, then dual"


def test_an_odd_number_of_items_is_refused():
    with pytest.raises(ValueError, match="items is 5: it must be even"):
        bound.full_first(dense(60), items=5)


def test_worths_along_paths_do_not_depend_on_how_they_are_found():
    problem, rng = dense(), np.random.default_rng(1)
    theta, met = rng.standard_normal((6, 3)), rng.integers(0, N, (6, 9))
    want = [[naive.inner(problem.items[i], t) for i in row] for t, row in zip(theta, met)]
    assert penalty.worths(problem.items, theta, met) == pytest.approx(np.array(want))
    small = problem.items[:50]
    assert penalty.worths(small, theta, met % 50) == pytest.approx(np.einsum("ptk,pk->pt", small[met % 50], theta))


def test_items_of_a_path_are_numbered_as_they_are_met():
    assert penalty.numbered(np.array([7, 3, 7, 900_000, 3])).tolist() == [0, 1, 0, 2, 1]


# --- memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize("work", [
    bound.hindsight, policies.mean_projection, lambda p: group(p, 100), posterior.noise_share,
    lambda p: posterior.coming(p, 64), lambda p: policies.compile_rules(p, [policies.ucb(1), policies.dtd_ucb(1)]),
    lambda p: lookahead.make_lookahead(p, [policies.knowledge_gradient()], 10),
    lambda p: penalty.sample_paths(p, np.full(64, -1), 50, streams.generator(0, 90))])
def test_memory_grows_with_items_times_features(work):
    problem = dense(60_000, 16)
    tracemalloc.start()
    try:
        work(problem)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2.5 * problem.items.nbytes + 30e6                # pairs would be 1,800 times the items, squares 16 times
