"""A user's filter at work against the simulation, plain loops, and what may be wrong with what it is given."""
from concurrent.futures import ThreadPoolExecutor
import itertools
import json
from statistics import NormalDist
from threading import Event

import numpy as np
import pytest

from lib import filter as service
from lib import dp, policies, posterior, simulate
from lib.filter import Filter, shared, vectors
from lib.filter.filters import exploration_benefit
from lib.policies import REGISTRY, directions
from lib.policies.index import explored
from lib.problem import make_problem, noise_var

ITEMS = [[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0], [0, 0.7, -2], [-.4, .3, .2]]
SIGMA = [[1, 0.4, 0], [0.4, 2, -0.3], [0, -0.3, 0.5]]
EACH = {"exploit": (), "thompson": (), "ucb": (.7,), "dtd_ucb": (1.3,), "dtd_dp": (1.0,), "knowledge_gradient": (1.0,), "scores": (1.0,),
        "directed": (1.0,), "bayes_ucb": (.8,), "phased": (1.0,), "patient": (1.0,), "rollout": (.5,)}
EXTRA = [policies.clusters(), policies.gittins(), policies.dtd_dp(1.2, "model", "prior"), policies.dtd_ucb(.8, "prior"),
         policies.rollout(.7, 8)]
LAWS = ["features", "constant", np.array([1., .5, 2., 3., 1.5])]


def problem(noise="features", cost=.35):
    return make_problem(ITEMS, [.3, .3, .2, .1, .1], [.1, .2, .1], SIGMA, 1, cost, .9, noise)


def family(kind):
    """A policy of a registered family, with few futures."""
    return policies.rollout(.7, 8) if kind == "rollout" else REGISTRY[kind].make(*EACH[kind])


def serve(user, met, r, p, items):
    """What a filter decides about replication r of some Episodes, learning what policy p was told."""
    found = []
    for n, i in enumerate(met.items[r]):
        found.append(user.decide(items[i], normal=met.thompson[r, n]))
        if found[-1]:
            user.learn(items[i], met.feedback[r, n])
    return found


def test_every_registered_family_has_a_line_here():
    assert set(EACH) == set(REGISTRY)


@pytest.mark.parametrize("noise", LAWS, ids=("features", "constant", "known"))
@pytest.mark.parametrize("policy", [*map(family, EACH), *EXTRA], ids=policies.label)
def test_decisions_are_those_of_the_simulation(policy, noise):
    p = problem(noise, cost=.12)
    met = simulate.episodes(p, [policy], 5, 60, seed=4)
    for r in range(5):
        user = Filter(p, policy)
        assert serve(user, met, r, 0, p.items) == met.decisions[0, r].tolist()
    assert 0 < met.decisions.mean() < 1


def test_beliefs_are_the_regression_of_what_was_told():
    p, told = problem(), [(0, 1.5), (3, -.4), (3, .2), (4, 1.0)]
    user = Filter(p, policies.ucb(.5))
    for i, y in told:
        user.learn(ITEMS[i], y)
    where = [i for i, _ in told]
    want = posterior.batch(p.mu, p.Sigma, p.items[where], [y for _, y in told], noise_var(p)[where])
    assert user.mu == pytest.approx(want.mu, abs=1e-12) and user.Sigma == pytest.approx(want.Sigma, abs=1e-12)


def test_a_bonus_by_hand():
    """mean .35 at cost .35: UCB forwards at equality, and .1 below it from alpha sd = .1 on."""
    p = make_problem([[1.0]], [1], [.25], [[.04]], 1, .35, .9)
    assert Filter(p, policies.ucb(.51)).decide([1]) and not Filter(p, policies.ucb(.49)).decide([1])
    assert Filter(p._replace(mu=np.array([.35])), policies.ucb(0)).decide([1])


@pytest.mark.parametrize("name", ["euclid", "prior", "always"])
def test_the_law_of_a_vector_is_that_of_the_item_it_equals(name):
    p = problem()
    for x, (sizes, probs) in zip(p.items, policies.projections(p, name)):
        got = vectors.law(p, x, name)
        assert got[0] == pytest.approx(sizes) and got[1] == pytest.approx(probs)
    assert [part.tolist() for part in vectors.law(p, p.items[0], "own")] == [[0], [pytest.approx(1)]]


@pytest.mark.parametrize("noise", LAWS, ids=("features", "constant", "known"))
@pytest.mark.parametrize("policy", [*map(family, EACH), *EXTRA[1:]], ids=policies.label)
def test_a_foreign_vector_counts_as_an_item_of_probability_0(policy, noise):
    """The last item never comes: without it in the catalogue, and with its noise given, its decisions are the same."""
    factors = {"features": [1, 1, 2, 2, 3, 2], "constant": [1] * 6}.get(noise if isinstance(noise, str) else "", [1, .5, 2, 3, 1.5, .7])
    whole = make_problem([*ITEMS, [.3, 0, .9]], [.3, .3, .2, .1, .1, 0], [.1, .2, .1], SIGMA, 1, .35, .9,
                         noise if isinstance(noise, str) else factors)
    part, told = problem(noise), np.random.default_rng(1).normal(.3, 1, 30)
    inside, outside = Filter(whole, policy), Filter(part, policy)
    given = {} if isinstance(noise, str) else {"noise_var": .7}
    decided = []
    for n, y in enumerate(told):
        i = (5, n % 6)[n % 2]
        more = given if i == 5 else {}
        pair = inside.decide(whole.items[i]), outside.decide(whole.items[i], **more)
        assert pair[0] == pair[1], n
        decided.append(pair[0])
        if n % 3 == 0:
            inside.learn(whole.items[i], y)
            outside.learn(whole.items[i], y, **more)
    assert inside.mu == pytest.approx(outside.mu, abs=1e-12)


def test_hard_clusters_see_nothing_to_explore_in_a_foreign_vector():
    p = make_problem([[1, 0], [0, 1]], [.5, .5], [0, 0], [[1, 0], [0, 1]], 1, .1, .9)
    user = Filter(p, policies.clusters())
    assert user.decide([1, 0]) and not user.decide([1, 1e-9]) and not user.decide([.9, .1])


def test_noise_of_a_foreign_vector():
    for noise, want in zip(LAWS, (2, 1, 2)):
        user = Filter(problem(noise), policies.exploit())
        user.learn([1, 1, 0], 1.0)
        total = np.array([1, 1, 0]) @ SIGMA @ [1, 1, 0] + want
        assert user.mu == pytest.approx(np.array([.1, .2, .1]) + np.array(SIGMA) @ [1, 1, 0] * (1 - .3) / total)


@pytest.mark.parametrize("policy", [*map(family, EACH), *EXTRA], ids=policies.label)
def test_a_filter_goes_on_from_its_state(policy):
    p = problem()
    met = simulate.episodes(p, [policy], 1, 40, seed=5)
    one, other = Filter(p, policy, seed=(1, 2)), Filter(p, policy, seed=(1, 2))
    found = []
    for n, i in enumerate(met.items[0]):
        if n in (7, 23):
            other = Filter.load(other.state(), p, policy)
        pair = one.decide(p.items[i]), other.decide(p.items[i])
        found.append(pair)
        for user, forwarded in zip((one, other), pair):
            if forwarded:
                user.learn(p.items[i], met.feedback[0, n])
    assert all(a == b for a, b in found) and other.met == 40
    assert json.loads(one.state()) == json.loads(other.state())


def test_a_state_is_as_small_as_a_belief():
    content = json.loads(Filter(problem(), policies.ucb(.5)).state())["content"]
    assert len(content["mu"]) == 3 and len(content["Sigma"]) == 6 and content.keys() == {"problem", "policy", "met", "seed", "mu", "Sigma"}


def test_wrong_states_are_named():
    p, policy = problem(), policies.ucb(.5)
    state = Filter(p, policy).state()
    content = json.loads(state)["content"]

    def made(**parts):
        return service.files.sealed("belief", content | parts)

    def without(name):
        return service.files.sealed("belief", {key: value for key, value in content.items() if key != name})
    for text, words in ((state[:-9], "no JSON"), (None, "no JSON"), ("[]", "lib.filter did not write it"), (state.replace("0.4", "0.5"), "checksum"),
                        (state.replace('"version": 1', '"version": 2'), "version 2"), (state.replace('"belief"', '"other"'), "lib.filter did not"),
                        (made(mu=[1, 2]), "2 and 6 numbers"), (made(mu=[1, 2, "x"]), "mu"), (made(Sigma=[-1] * 6), "Sigma is not positive"),
                        (made(met=-1), "met must be"), (made(seed=["a"]), "seed must be"), (made(seed=None), "seed must be"),
                        (without("Sigma"), "damaged: it lacks Sigma"), (made(mu={"a": 1}), "mu must")):
        with pytest.raises(ValueError, match="^state .*" + words):
            Filter.load(text, p, policy)
    with pytest.raises(ValueError, match="another problem"):
        Filter.load(state, problem(cost=.36), policy)
    with pytest.raises(ValueError, match="another policy.*0.5"):
        Filter.load(state, p, policies.ucb(.6))


@pytest.mark.parametrize("parts, words", [
    ({"phase": [1, 0]}, "phase must hold three"), ({"phase": [1, 4, 0]}, "phase must be an integer of at least 0 and at most 3, got 4"),
    ({"phase": [0, 0, 0]}, "phase must be an integer of at least 1"), ({"phase": [1, 0, 2**70]}, "phase must be"), ({"phase": 3}, "phase must hold"),
    ({"basis": [[0.0] * 9]}, r"basis must have shape \(3, 3\), got \(1, 9\)"), ({"basis": None}, "basis must"),
    ({"phase": [1, .5, 0]}, "phase must be")])
def test_a_state_of_phases_is_checked_before_a_kernel_reads_it(parts, words):
    p, policy = problem(), policies.phased()
    content = json.loads(Filter(p, policy).state())["content"]
    with pytest.raises(ValueError, match="^state is damaged: " + words):
        Filter.load(service.files.sealed("belief", content | parts), p, policy)


def test_what_leaves_the_range_of_numbers_is_refused():
    user = Filter(make_problem([[1.0]], [1], [0], [[1e8]], 1, .5, .9), policies.ucb(1))
    before = user.state()
    for wrong, words in ((lambda: user.learn([1e-4], 1.7e308), "y is 1.7e.308"), (lambda: user.decide([1e150]), "x is too large, 1e.150"),
                         (lambda: user.learn([-1e149], 1), "x is too large")):
        with pytest.raises(ValueError, match=words):
            wrong()
    assert user.state() == before


def test_feedback_on_a_foreign_vector_needs_no_table(monkeypatch):
    """Learning before any decision, and on what was never asked for."""
    p, policy = problem(), policies.dtd_dp()
    user, plain = Filter(p, policy), Filter(p, policies.exploit())
    monkeypatch.setattr(vectors, "solved", lambda *_: 1 / 0)
    for each in (user, plain):
        each.learn([.3, 0, .9], 1.5)
        each.learn([.1, .1, .1], -.5, noise_var=3.0)
    assert np.array_equal(user.mu, plain.mu) and np.array_equal(user.Sigma, plain.Sigma) and user.met == 0
    want = posterior.batch(p.mu, p.Sigma, [[.3, 0, .9], [.1, .1, .1]], [1.5, -.5], [2, 3])
    assert user.mu == pytest.approx(want.mu, abs=1e-12)


def test_those_who_share_another_problem_do_not_wait(monkeypatch):
    """While one problem is compiled a filter of another can be made, and one that fails is tried again."""
    slow, quick, begun, go_on = problem(), problem(cost=.2), Event(), Event()
    made = shared._made

    def held(p, policy):
        if p is slow:
            begun.set()
            assert go_on.wait(60)
        return made(p, policy)
    monkeypatch.setattr(shared, "_made", held)
    with ThreadPoolExecutor(2) as pool:
        first, second = (pool.submit(Filter, slow, policies.ucb(.3)) for _ in range(2))
        assert begun.wait(60)
        assert Filter(quick, policies.ucb(.3)).decide([1, 0, 0]) in (True, False)
        go_on.set()
        assert first.result()._shared is second.result()._shared
    broken = problem()._replace(noise_sd=1e-9)
    for _ in range(2):
        with pytest.raises(ValueError, match="noise_sd"):
            Filter(broken, policies.ucb(1))


@pytest.mark.parametrize("method, arguments, words", [
    ("decide", ([1, 2],), "x must have one element"), ("decide", ([1, 2, np.nan],), r"x\[2\] is nan"), ("decide", ("abc",), "x must"),
    ("decide", ([1, 0, 0], -1.0), "noise_var is -1"), ("decide", ([1, 0, 0], None, np.inf), "normal"), ("learn", ([1, 0, 0], np.nan), "y"),
    ("learn", ([1, 0, 0], "good"), "y"), ("learn", ([1, 0, 0], 1, 0), "noise_var is 0"), ("learn", ([1],  1), "x must"),
    ("learn", ([1, 0, 0], np.inf), "y is inf"), ("learn", ([1, 0, np.inf], 1), r"x\[2\] is inf"), ("learn", ([1, 0, 0], [1, 2]), "y must"),
    ("learn", ([1, 0, 0], None), "y "), ("decide", ([],), "x must"), ("decide", ([[1, 0, 0]],), "x must"),
    ("decide_many", ([1, 0, 0],), "X must"), ("decide_many", ([[1, 0]],), "X must have one column")])
def test_bad_values_are_refused_and_change_nothing(method, arguments, words):
    user = Filter(problem(), policies.thompson())
    before = user.state()
    with pytest.raises(ValueError, match=words):
        getattr(user, method)(*arguments)
    assert user.state() == before


def test_noise_too_small_for_a_covariance_is_refused():
    with pytest.raises(ValueError, match="noise_sd 1e-09"):
        Filter(problem()._replace(noise_sd=1e-9), policies.ucb(1))


@pytest.mark.parametrize("policy", [*map(family, EACH), *EXTRA], ids=policies.label)
def test_many_at_once_are_one_after_the_other(policy):
    p = problem()
    X = np.vstack([p.items, [[.3, .3, .4], [-1, 0, 2], [0, 0, 0]]])
    one, many = Filter(p, policy, 7), Filter(p, policy, 7)
    for user in (one, many):
        user.learn(ITEMS[2], .9)
    assert many.decide_many(X).tolist() == [one.decide(x) for x in X] and one.met == many.met == len(X)


@pytest.mark.parametrize("policy", [policies.ucb(.7), policies.knowledge_gradient(), policies.scores(), policies.phased()], ids=policies.label)
def test_users_in_threads_get_what_they_get_alone(policy):
    """Foreign vectors pass through one slot of the shared arrays: without its lock they would mix."""
    p = problem()

    def life(seed):
        rng, user, found = np.random.default_rng(seed), Filter(p, policy, seed), []
        for x in rng.standard_normal((60, 3)):
            found.append(user.decide(x))
            if found[-1]:
                user.learn(x, float(rng.normal()))
        return found, user.mu.tolist()
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(life, range(8)))
    assert together == list(map(life, range(8)))


def test_filters_share_what_is_compiled():
    p = problem()
    assert Filter(p, policies.dtd_dp())._shared is Filter(p, policies.dtd_dp())._shared is service.share(p, policies.dtd_dp())
    assert service.share(p, policies.dtd_dp(2)) is not service.share(p, policies.dtd_dp())
    assert service.share(problem(), policies.dtd_dp()) is not service.share(p, policies.dtd_dp())


def test_foreign_vectors_are_forgotten_in_their_order(monkeypatch):
    monkeypatch.setattr(shared, "FOREIGN", 2)
    user = Filter(problem(), policies.dtd_ucb(1.0))
    for a in (.1, .2, .3):
        user.decide([a, 0, 0])
    assert [np.frombuffer(key)[0] for key, _ in user._shared.foreign] == [.2, .3]


def test_own_normals_of_thompson_sampling_are_normal_and_differ_between_users():
    p = make_problem([[1.0]], [1], [0], [[1]], 1, .5, .9)
    share = [np.mean([Filter(p, policies.thompson(), (user, part)).decide_many(np.ones((500, 1))).mean() for part in range(4)]) for user in range(2)]
    assert share == pytest.approx([NormalDist().cdf(-.5)] * 2, abs=.04) and share[0] != share[1]


def test_a_file_gives_back_problem_and_policy(tmp_path):
    for noise in LAWS:
        p = problem(noise)
        service.write(tmp_path / "s.json", p, policies.dtd_dp(1.2, "model", "prior"))
        found, policy = service.read(tmp_path / "s.json")
        assert policy == policies.dtd_dp(1.2, "model", "prior") and all(np.array_equal(a, b) for a, b in zip(found, p))


def test_wrong_files_are_named(tmp_path):
    path = tmp_path / "s.json"
    service.write(path, problem(), policies.ucb(1))
    text, content = path.read_text(), json.loads(path.read_text())["content"]
    for bad, words in ((text[:50], "no JSON"), (text.replace("0.35", "0.36"), "checksum"), ("{}", "did not write it"),
                       (service.files.sealed("problem and policy", content | {"gamma": 2}), "gamma is 2.0"),
                       (service.files.sealed("problem and policy", content | {"policy": {"kind": "best"}}), "best"),
                       (service.files.sealed("problem and policy", {"policy": {}}), "lacks Sigma, cost")):
        path.write_text(bad)
        with pytest.raises(ValueError, match=f"(?s)s.json.*{words}"):
            service.read(path)
    with pytest.raises(ValueError, match="cannot be read"):
        service.read(tmp_path / "none.json")


def test_an_item_without_features_in_the_catalogue_is_no_error():
    problem = make_problem([[0, 0], [1, 1]], [.5, .5], [0.3, 0.3], np.eye(2), 1.0, .5, .9)
    for policy in (policies.knowledge_gradient(1.0), policies.ucb(.5)):
        user = Filter(problem, policy)
        assert user.decide([1, 1]) in (True, False)
        assert user.decide([2, 1], noise_var=3.0) in (True, False)


def test_one_vector_with_two_noises_is_refused():
    problem = make_problem([[1, 0], [1, 0]], [.5, .5], [0, 0], np.eye(2), 1.0, .5, .9, [1.0, 100.0])
    with pytest.raises(ValueError, match=r"items\[0\] and items\[1\] of the problem are the same vector with noise variances 1.0 and 100.0"):
        Filter(problem, policies.ucb(.5))


def test_the_catalogues_own_noise_given_by_hand_changes_nothing():
    problem = make_problem([[1, 0], [0, 1]], [.5, .5], [.45, .45], np.eye(2), 1.0, .5, .9)
    one, other = (Filter(problem, policies.clusters()) for _ in range(2))
    assert one.decide([1, 0]) and other.decide([1, 0], noise_var=1.0)


def test_a_zero_with_a_sign_is_the_same_feature():
    """In the catalogue and in what is asked for, with a bonus of the catalogue and with one that is made."""
    signed = make_problem(np.array([[1, -0.0], [-0.0, 1]]), [.7, .3], [.1, .1], np.eye(2), 1, .3, .9)
    for policy in (policies.ucb(.7), policies.dtd_dp(1.0)):
        known = service.filters.share(signed, policy)
        for x in ([1, 0.0], [1, -0.0]):
            _, item = Filter(signed, policy)._item(np.array(x), None)
            assert item.column == 0 and item is known.known[np.array([1, 0.0]).tobytes()]
        assert not known.foreign and len(known.known) == 2


def many(n=4400, noise="features", low=-.2):
    """More items than are met in pairs: dense, some features negative, unequal probabilities."""
    rng = np.random.default_rng(n)
    items, probs = low + (1 - low) * rng.random((n, 3)), rng.random(n) + .2
    noise = rng.uniform(.5, 2, n) if noise == "known" else noise
    return make_problem(items, probs / probs.sum(), [.4, .1, .2], .4 * np.eye(3) + .3, .8, .4, .85, noise)


@pytest.fixture
def few_tables(monkeypatch):
    """Eight shared tables, that more items than 64 read."""
    monkeypatch.setattr(directions, "LEAST", 8)
    monkeypatch.setattr(directions, "MOST", 8)


@pytest.mark.slow
@pytest.mark.parametrize("n, noise", [(100, "features"), (4400, "features"), (4400, "known")])
@pytest.mark.parametrize("policy", [*map(family, EACH), *EXTRA], ids=policies.label)
def test_decisions_on_many_items_are_those_of_the_simulation(policy, n, noise, few_tables):
    """Shared tables, and sampled coming items above 4,096."""
    p = many(n, noise)
    met = simulate.episodes(p, [policy], 4, 50, seed=6)
    for r in range(4):
        assert serve(Filter(p, policy), met, r, 0, p.items) == met.decisions[0, r].tolist()
    assert 0 < met.decisions.mean() < 1


@pytest.mark.slow
@pytest.mark.parametrize("policy", [*(family(kind) for kind in EACH if kind != "dtd_dp"), *EXTRA[1:2], EXTRA[3]], ids=policies.label)
@pytest.mark.parametrize("low", (-.2, 0))
def test_a_foreign_vector_beside_many_items_counts_as_one_of_probability_0(policy, low, few_tables):
    part = many(4400, low=low)
    strangers = np.random.default_rng(2).normal(.6, .4, (12, 3))
    whole = part._replace(items=np.vstack([part.items, strangers]), probs=np.append(part.probs, np.zeros(12)))
    inside, outside, decided = Filter(whole, policy), Filter(part, policy), []
    for n, (x, y) in enumerate(zip(np.vstack([strangers] * 3), np.random.default_rng(1).normal(.4, 1, 36))):
        decided.append(inside.decide(x))
        assert decided[-1] == outside.decide(x), n
        if n % 3 == 0:
            inside.learn(x, y)
            outside.learn(x, y)
    assert 0 < np.mean(decided) < 1


def explorations(p, policy, x, noise_var, precs):
    """(precs, 12) exploration benefit / sd of a vector as its filter has it, and by its full law's own sharp table."""
    user = Filter(p, policy)
    _, item = user._item(np.array(x), noise_var)
    var, z = x @ p.Sigma @ x, np.linspace(-1.3, 0, 12)
    basis = policy.noise == "basis" and noise_var is None and isinstance(p.noise, str)
    table = dp.solve(*vectors.law(user._shared.stand, x, policy.law), p.gamma, p.noise_sd if basis else item.noise_var**.5, var, 2e-4,
                     certify=False)
    sd = np.sqrt(var * precs)[:, None]
    discard, forward = dp.q_values(table, z * sd, sd**2)
    own = isinstance(item.rules, dp.Table)
    got = [[exploration_benefit(item.rules, a, b) if own else explored(item.rules, 0, 0, a, b) for a in z] for b in var * precs]
    return own, np.array(got), np.maximum((forward - discard) / sd - z, 0)


@pytest.mark.slow
@pytest.mark.parametrize("policy, n", [(policies.dtd_dp(1.0), 5), (policies.dtd_dp(.7, "model"), 20),
                                       (policies.dtd_dp(1.2, "model", "prior"), 5), (policies.gittins(), 20)])
def test_a_foreign_vector_beside_few_items_has_a_coarse_table_of_its_own(policy, n):
    """Where each item has its own: sparse, dense and long vectors; off by .002 sd on average, .04 at most."""
    p = problem() if n == 5 else many(n)
    found = [explorations(p, policy, np.array(x), v, np.array([1, .8, .3, .1]))
             for x, v in (([.3, 0, .9], None), ([.5, .6, .2], None), ([5, 4, 1], .7), ([1, 0, 1], None), ([0, 1, -1], None))]
    apart = [abs(got - want) for own, got, want in found if own]
    assert len(apart) >= 4 and np.mean(apart) < .002 and np.max(apart) < .04 and max(want.max() for *_, want in found) > .1


@pytest.mark.slow
@pytest.mark.parametrize("short", (1, .5, .25, .1))
def test_the_benefit_of_a_vector_far_shorter_than_what_comes_lies_in_its_certified_bracket(short):
    """What it teaches is a small share of what others do."""
    p, x = problem(), np.array([.5, .6, .2]) * short
    var, noise = float(x @ p.Sigma @ x), p.noise_sd**2 * 3
    sharp = dp.solve(*vectors.law(p, x), p.gamma, noise**.5, var, 4e-4)
    item = Filter(p, policies.dtd_dp(1.0, "model"))._item(x, None)[1]
    for z, v in itertools.product((-.8, -.3, 0.0), (var, .3 * var)):
        after = v * noise / (v + noise)
        now, later = dp.value(sharp, z * v**.5, v), dp.smoothed_value(sharp, z * v**.5, (v - after)**.5, after)
        low, high = p.gamma * (later.lower - now.upper) / v**.5, p.gamma * (later.upper - now.lower) / v**.5
        assert high - low < .02 and low - .03 < exploration_benefit(item.rules, z, v) < high + .03


@pytest.mark.slow
@pytest.mark.parametrize("n", (400, 4400))
def test_a_foreign_vector_beside_many_items_reads_their_tables(n):
    """The same tables as items of the catalogue, so as far from the full law as these (tests/test_catalogue.py), save where
    they do not reach it; and as near to a catalogue that has the vector."""
    p, policy = many(n), policies.dtd_dp()
    strangers = np.random.default_rng(3).uniform(.1, .9, (5, 3))
    whole = p._replace(items=np.vstack([p.items, strangers]), probs=np.append(p.probs, np.zeros(5)))
    inside, shared_ones = policies.compile_rules(whole, [policy]), 0
    for j, x in enumerate(strangers):
        own, got, want = explorations(p, policy, x, None, np.array([1, .5, .2]))
        var = x @ p.Sigma @ x
        catalogued = [[explored(inside, 0, n + j, z, var * b) for z in np.linspace(-1.3, 0, 12)] for b in (1, .5, .2)]
        shared_ones += not own
        assert abs(got - want).max() < .03 and abs(got - catalogued).max() < .03
    assert shared_ones >= 4


def test_a_new_vector_beside_many_items_copies_no_catalogue(monkeypatch):
    """What it costs does not depend on their number: nothing of the catalogue is made anew for it."""
    monkeypatch.setattr(vectors, "extended", lambda *_: 1 / 0)
    p = many()
    for policy in (policies.dtd_ucb(1.0), policies.dtd_ucb(1.0, "prior"), policies.ucb(.5), policies.exploit(), policies.thompson()):
        assert Filter(p, policy).decide([9.0, 9.0, 9.0])
