"""A user's filter at work against the simulation, plain loops, and what may be wrong with what it is given."""
from concurrent.futures import ThreadPoolExecutor
import json
from statistics import NormalDist

import numpy as np
import pytest

from lib import filter as service
from lib import policies, posterior, simulate
from lib.filter import Filter, shared, vectors
from lib.policies import REGISTRY
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
                        (made(met=-1), "met must be"), (made(seed=["a"]), "seed must be"), (without("Sigma"), "damaged: 'Sigma'")):
        with pytest.raises(ValueError, match="^state .*" + words):
            Filter.load(text, p, policy)
    with pytest.raises(ValueError, match="another problem"):
        Filter.load(state, problem(cost=.36), policy)
    with pytest.raises(ValueError, match="another policy.*0.5"):
        Filter.load(state, p, policies.ucb(.6))


@pytest.mark.parametrize("method, arguments, words", [
    ("decide", ([1, 2],), "x must have one element"), ("decide", ([1, 2, np.nan],), r"x\[2\] is nan"), ("decide", ("abc",), "x must"),
    ("decide", ([1, 0, 0], -1.0), "noise_var is -1"), ("decide", ([1, 0, 0], None, np.inf), "normal"), ("learn", ([1, 0, 0], np.nan), "y"),
    ("learn", ([1, 0, 0], "good"), "y"), ("learn", ([1, 0, 0], 1, 0), "noise_var is 0"), ("learn", ([1],  1), "x must"),
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


@pytest.mark.parametrize("policy", [policies.dtd_dp(1.0), policies.dtd_dp(.7, "model"), policies.dtd_dp(1.2, "model", "prior")], ids=policies.label)
def test_the_table_of_a_foreign_vector_is_that_of_an_item_of_probability_0(policy):
    whole = make_problem([*ITEMS, [.3, 0, .9]], [.3, .3, .2, .1, .1, 0], [.1, .2, .1], SIGMA, .4, .35, .9)
    part = make_problem(ITEMS, [.3, .3, .2, .1, .1], [.1, .2, .1], SIGMA, .4, .35, .9)
    inside, outside = policies.compile_rules(whole, [policy]), vectors.benefits(part, policy, whole.items[-1], noise_var(whole)[-1])
    var = whole.items[-1] @ whole.Sigma @ whole.items[-1]
    for z in (-1.0, -.4, -.1, 0.0):
        for shrunk in (1.0, .5, .1):
            assert explored(outside, 0, 0, z, var * shrunk) == pytest.approx(explored(inside, 0, 5, z, var * shrunk), rel=1e-9)
    assert explored(outside, 0, 0, 0.0, var) > .1
