"""Truths that differ from the model, and beliefs that allow for them, against dense algebra, quadrature and samples."""
import numpy as np
import pytest
from scipy import integrate, stats

from lib import bound, policies, posterior, simulate
from lib.bound import told
from lib.experiments import published, robustness, self_selected, with_level
from lib.problem import make_problem, noise_var
from lib.simulate import full_first_of, full_observation_of, hindsight_of, informed, make_truth, meet, play, play_informed, truths

ITEMS = np.array([[1.0, 0, 0], [0, 1, .5], [.4, .4, .2], [0, 0, 1], [.5, 0, .5]])
SIGMA = np.array([[1.0, .3, .1], [.3, .8, .2], [.1, .2, .5]])
PROBLEM = make_problem(ITEMS, [.3, .2, .2, .2, .1], [.1, .2, -.1], SIGMA, .6, .3, .9)
INDEX = [policies.exploit(), policies.ucb(.5), policies.thompson(), policies.dtd_ucb(.6), policies.dtd_dp(1.1)]
GRADIENT = policies.knowledge_gradient(.9)
OTHERS = {"drift": dict(drift=.1), "tail": dict(tail=5.0), "noise tail": dict(noise_tail=4.0), "split": dict(split=.8),
          "all": dict(drift=.05, tail=6.0, noise_tail=5.0, split=.5)}


# --- the model itself ---------------------------------------------------------------------------------


def test_the_models_own_truth_is_the_engines():
    rules = [*INDEX, GRADIENT, policies.phased(1.0)]
    seen, met = simulate.episodes(PROBLEM, rules, 200, 30, 4), meet(make_truth(PROBLEM), 200, 30, 4)
    assert (met.stream.items == seen.items).all() and (met.stream.thompson == seen.thompson).all()
    assert np.allclose(met.theta, seen.theta, rtol=0, atol=1e-13) and np.allclose(met.stream.feedback, seen.feedback, rtol=0, atol=1e-13)
    rewards, decisions = play(PROBLEM, rules, met.stream)
    assert (decisions == seen.decisions).all() and np.allclose(rewards, seen.rewards, rtol=0, atol=1e-12)
    rewards, decisions = play_informed(make_truth(PROBLEM), rules[:-1], met.stream)
    assert (decisions == seen.decisions[:-1]).all() and np.allclose(rewards, seen.rewards[:-1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", OTHERS)
def test_users_do_not_depend_on_how_many_there_are_nor_on_the_horizon(name):
    truth = make_truth(PROBLEM, **OTHERS[name])
    few, many = meet(truth, 3, 5, 1), meet(truth, 140, 9, 1)
    assert np.allclose(few.worth, many.worth[:3, :5], rtol=0, atol=1e-14) and (few.theta == many.theta[:3]).all()
    assert np.allclose(few.stream.feedback, many.stream.feedback[:3, :5], rtol=0, atol=1e-14)


def test_no_drift_is_drift_zero():
    plain = bound.full_observation(PROBLEM, 50, 3)
    assert bound.full_observation_told(PROBLEM, 50, 3).mean() == plain.mean == full_observation_of(make_truth(PROBLEM), 50, 3).mean
    still = meet(make_truth(PROBLEM, drift=0.0), 20, 8).worth
    slow = meet(make_truth(PROBLEM, drift=1e-14), 20, 8).worth
    assert np.allclose(still, slow, atol=1e-5) and not np.allclose(still, meet(make_truth(PROBLEM, drift=.1), 20, 8).worth, atol=.1)


@pytest.mark.parametrize("first", [-1, 2])
def test_what_is_tracked_is_what_conditioning_on_all_tastes_at_once_explains(first):
    """Users and feedback with spreads of their own: each reader's variance that the feedback before explains."""
    rng, drift, R, T, k = np.random.default_rng(7), .2, 3, 5, len(PROBLEM.mu)
    index, spread, loud = rng.integers(0, len(PROBLEM.items), (R, T)), np.array([.4, 1.0, 2.5]), rng.uniform(.3, 3, (R, T + 1))
    found = told.tracked_sd(posterior.compile_problem(PROBLEM), index, first, drift, spread, loud)
    for r in range(R):
        met, noise = ([first, *index[r]], loud[r]) if first >= 0 else (index[r], loud[r, 1:])
        lag = np.abs(np.subtract.outer(np.arange(len(met)), np.arange(len(met))))
        X = PROBLEM.items[met]
        joint = np.sqrt(1 - drift)**lag * (X @ (spread[r] * PROBLEM.Sigma) @ X.T)
        for n in range(T):
            at = n + len(met) - T
            cross = joint[:at, at]
            explained = cross @ np.linalg.solve(joint[:at, :at] + np.diag(noise[:at] * noise_var(PROBLEM)[met[:at]]), cross)
            assert found[r, n] == pytest.approx(np.sqrt(explained), rel=1e-9, abs=1e-9)


def test_spreads_below_one_are_spreads():
    small, large = bound.full_observation_told(PROBLEM, 2, 0, spread=[.25, .25]), bound.full_observation_told(PROBLEM, 2, 0, spread=[1, 1])
    assert (small < large).all()


def test_a_known_taste_is_worth_what_its_item_pays():
    problem = make_problem([[1.0]], [1], [.5], [[0.0]], 1, .2, .9)
    assert full_first_of(make_truth(problem), 2).mean == pytest.approx(9 * .3, rel=1e-9)


def test_the_first_forward_exact_agrees_with_the_books_bound():
    ours, other = full_first_of(make_truth(PROBLEM), 4000, 3), bound.full_first(PROBLEM, 4000, 4)
    assert abs(ours.mean - other.mean) < 4 * np.hypot(ours.se, other.se) and ours.se < .02


# --- the belief ---------------------------------------------------------------------------------------


def dense(truth, items, feedback, n):
    """Mean and variance of x_n.theta_n after feedback[:n] on items[:n], all tastes of all times conditioned at once."""
    k, keep, problem = len(SIGMA), np.sqrt(1 - truth.drift), truth.problem
    weights, means, Sigmas = truths.parts(truth)
    X = np.zeros((n + 1, (n + 1) * k))
    for t in range(n + 1):
        X[t, t * k:(t + 1) * k] = problem.items[items[t]]
    found = []
    for weight, mean, Sigma in zip(weights, means, Sigmas):
        lag = np.abs(np.subtract.outer(np.arange(n + 1), np.arange(n + 1)))
        joint = X @ np.kron(keep**lag, Sigma) @ X.T
        total, centre = joint[:n, :n] + np.diag(noise_var(problem)[items[:n]]), X @ np.tile(mean, n + 1)
        gain = np.linalg.solve(total, joint[:n, n]) if n else np.zeros(0)
        found.append((np.log(weight) + (stats.multivariate_normal.logpdf(feedback[:n], centre[:n], total) if n and len(weights) > 1 else 0),
                      centre[n] + gain @ (feedback[:n] - centre[:n]), joint[n, n] - gain @ joint[:n, n]))
    logs, mean, var = np.transpose(found)
    share = np.exp(logs - logs.max())
    share /= share.sum()
    return share @ mean, share @ (var + mean**2) - (share @ mean)**2


def tracked(truth, items, feedback):
    """The same by the bank of filters, at every step."""
    instance, (weights, means, Sigmas) = posterior.compile_problem(truth.problem), truths.parts(truth)
    m, k = means.shape
    bank = informed.Bank(weights, means, np.ascontiguousarray(Sigmas), truth.drift)
    minds, found = informed.Minds(np.empty(m), np.empty((m, k)), np.empty((m, k, k)), np.empty((m, k)), np.empty(m), np.empty(m)), []
    informed.start(bank, minds)
    for n, (i, y) in enumerate(zip(items, feedback)):
        if n:
            informed.pass_on(bank, minds)
        found.append(informed.look(instance, minds, i))
        informed.hear(instance, minds, i, y)
    return np.array(found)


@pytest.mark.parametrize("name", ["drift", "tail", "split", "all"])
def test_the_filter_is_the_conditional_law_of_all_tastes_at_once(name):
    truth, rng = make_truth(PROBLEM, **OTHERS[name]), np.random.default_rng(2)
    items, feedback = rng.integers(0, 5, 12), rng.normal(0, 1.5, 12)
    expected = np.array([dense(truth, items, feedback, n) for n in range(12)])
    assert np.allclose(tracked(truth, items, feedback), expected, rtol=1e-9, atol=1e-12)
    other = truth._replace(drift=truth.drift + .02)
    assert np.abs(tracked(other, items, feedback) - expected).max() > 1e-3, "a drift that is wrong by 0.02 must be seen"


@pytest.mark.parametrize("drift, users, horizon", [(.15, 6, 14), (.6, 150, 2)])
def test_decisions_under_drift_follow_the_dense_law(drift, users, horizon):
    truth = make_truth(PROBLEM, drift=drift)
    stream, rule = meet(truth, users, horizon, 5).stream, policies.ucb(.4)
    _, (decisions,) = play_informed(truth, [rule], stream)
    for items, feedback, went in zip(stream.items, stream.feedback, decisions):
        for n in range(len(items)):
            mean, var = at(truth, items, feedback, went, n)
            assert went[n] == (mean + .4 * np.sqrt(var) >= PROBLEM.cost)
    assert 0 < decisions.mean() < 1


def at(truth, items, feedback, went, n):
    """As `dense`, with the feedback of forwarded items alone: others have noise without end."""
    quiet = truth.problem._replace(items=truth.problem.items[items], probs=np.full(len(items), 1 / len(items)),
                                   noise=np.where(went, noise_var(truth.problem)[items] / truth.problem.noise_sd**2, 1e12))
    return dense(truth._replace(problem=quiet), np.arange(len(items)), feedback, n)


# --- the laws of users --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OTHERS)
def test_mean_and_covariance_are_the_problems_at_every_arrival(name):
    truth = make_truth(PROBLEM, **OTHERS[name])
    met = meet(truth, 20_000, 6, 7)
    off = met.theta - PROBLEM.mu
    products = np.concatenate([off, off[:, [0, 0, 1, 2]] * off[:, [0, 1, 1, 2]]], axis=1)
    expected = np.concatenate([np.zeros(3), SIGMA[[0, 0, 1, 2], [0, 1, 1, 2]]])
    assert (np.abs(products.mean(axis=0) - expected) < 4.5 * products.std(axis=0) / np.sqrt(len(off))).all()
    last = met.worth[:, -1] - (PROBLEM.items @ PROBLEM.mu)[met.stream.items[:, -1]]
    square = last**2 - posterior.variances(ITEMS, SIGMA)[met.stream.items[:, -1]]
    noise = (met.stream.feedback[:, -1] - met.worth[:, -1])**2 - noise_var(PROBLEM)[met.stream.items[:, -1]]
    for column in (last, square, noise):
        assert abs(column.mean()) < 4.5 * column.std() / np.sqrt(len(column))
    assert stats.kurtosis(off[:, 0]) > .5 or truth.tail == np.inf
    assert stats.kurtosis(met.stream.feedback[:, 0] - met.worth[:, 0]) > .5 or truth.noise_tail == np.inf


def test_tastes_forget_at_the_stated_rate():
    one = make_problem([[1.0]], [1.0], [0.5], [[2.0]], 1, 0, .9)
    worth = meet(make_truth(one, drift=.19), 40_000, 8, 3).worth - .5
    for lag in (1, 4, 7):
        product = worth[:, 0] * worth[:, lag] / 2
        assert abs(product.mean() - .9**lag) < 4.5 * product.std() / 200


def test_two_kinds_lie_apart_where_worth_varies_most():
    truth = make_truth(PROBLEM, split=.9)
    theta = meet(truth, 4000, 1).theta
    weights, means, Sigma = truths.kinds(truth)
    h = (means[1] - means[0]) / 2
    assert np.allclose(Sigma + np.outer(h, h), SIGMA) and np.linalg.eigvalsh(Sigma)[0] > 0
    along = (theta - PROBLEM.mu) @ np.linalg.solve(SIGMA, h) / np.sqrt(h @ np.linalg.solve(SIGMA, h))
    assert stats.kurtosis(along) < -1.3                     # two separate humps; 0 for a normal law
    spread = [PROBLEM.probs @ (ITEMS @ v)**2 for v in (h, *(np.sqrt(.9) * np.linalg.cholesky(SIGMA)).T)]
    assert spread[0] > max(spread[1:])


@pytest.mark.parametrize("name", OTHERS)
def test_hindsight_by_quadrature(name):
    truth = make_truth(PROBLEM, **OTHERS[name])
    weights, means, Sigma = truths.kinds(truth)
    total = 0.0
    for weight, mean in zip(weights, means):
        for p, x in zip(PROBLEM.probs, ITEMS):
            sd = np.sqrt(x @ Sigma @ x)
            law = stats.norm(x @ mean, sd) if truth.tail == np.inf else stats.t(
                truth.tail, x @ mean, sd * np.sqrt((truth.tail - 2) / truth.tail))
            total += weight * p * integrate.quad(lambda w: (w - .3) * law.pdf(w), .3, np.inf)[0]
    assert hindsight_of(truth) == pytest.approx(9 * total, rel=1e-7)


# --- bounds -------------------------------------------------------------------------------------------


def above(truth, values, limits):
    """Whether each limit lies above every mean of rewards (P, R), up to four standard errors."""
    mean, se = values.mean(axis=1), values.std(axis=1) / np.sqrt(values.shape[1])
    return [bool((mean - 4 * np.hypot(se, e.se) <= e.mean).all()) for e in limits]


@pytest.mark.parametrize("name", OTHERS)
def test_bounds_lie_above_every_policy_and_in_order(name):
    truth = make_truth(PROBLEM, **OTHERS[name])
    stream, rules = meet(truth, 2000, 66, 2).stream, [*INDEX, GRADIENT]
    values = np.concatenate([play(PROBLEM, rules, stream)[0], play_informed(truth, [INDEX[1], GRADIENT], stream)[0]])
    limits = full_first_of(truth, 200, 1), full_observation_of(truth, 200, 1)
    assert above(truth, values, limits) == [True, True]
    assert limits[0].mean - 3 * limits[0].se <= limits[1].mean <= hindsight_of(truth) + 4 * limits[1].se
    seer = np.maximum(stream.pay, 0).sum(axis=1)[None]      # planted: decides by what it cannot know
    assert above(truth, seer, limits[:1]) == [False]


def test_an_informed_policy_gains_by_what_it_knows():
    cheap = PROBLEM._replace(cost=.1)
    truth = make_truth(cheap, drift=.3)
    stream = meet(truth, 4000, 66, 3).stream
    lead = play_informed(truth, [policies.exploit()], stream)[0][0] - play(cheap, [policies.exploit()], stream)[0][0]
    assert lead.mean() > 4 * lead.std() / np.sqrt(len(lead))


# --- beliefs that are wrong in other ways -------------------------------------------------------------


def test_self_selection_is_what_weighted_ratings_say():
    theta = np.random.default_rng(1).multivariate_normal(PROBLEM.mu, SIGMA, 200_000)
    sd = PROBLEM.probs @ np.sqrt(posterior.variances(ITEMS, SIGMA))
    believed, total = self_selected(PROBLEM, .5).mu, np.zeros(3)
    for p, x in zip(PROBLEM.probs, ITEMS):
        rate = np.exp(.5 / sd * theta @ x)
        total += p * (rate @ theta) / rate.sum()
    assert np.allclose(believed, total, atol=.01) and np.abs(believed - PROBLEM.mu).max() > .1


def test_a_level_adds_the_same_to_every_item():
    wide = with_level(PROBLEM, .7)
    assert np.allclose(wide.items @ wide.Sigma @ wide.items.T, ITEMS @ SIGMA @ ITEMS.T + .49)
    assert np.allclose(noise_var(wide), noise_var(PROBLEM)) and (wide.items[:, :3] == ITEMS).all()


# --- the study ----------------------------------------------------------------------------------------


def test_cases_differ_from_the_model_by_what_they_say():
    cases = {case.name: case for case in robustness.cases(PROBLEM)}
    first = cases[robustness.MODEL]
    assert first.belief is PROBLEM and first.truth == make_truth(PROBLEM)
    assert cases["noise grows"].belief.noise == "constant" and cases["noise is constant"].truth.problem.noise == "constant"
    assert cases["noise variance 4 times"].truth.problem.noise_sd == 2 * PROBLEM.noise_sd
    unit = make_problem(np.eye(2), [.5, .5], [0, 0], np.eye(2), 1, .2, .9)
    assert len(robustness.cases(unit)) == len(cases) - 2


@pytest.mark.slow
def test_a_study_is_paired_and_the_best_informed_policy_is_worth_100():
    table = robustness.instance(make_problem(np.eye(2), [.8, .2], [0, 0], np.eye(2), 1, .2, .8),
                                {"tuning": 40, "users": 60, "sequences": 20})
    assert set(table.truth) == {case.name for case in robustness.cases(PROBLEM)} - {"noise is constant", "noise grows"}
    best = table[table.policy == robustness.BEST]
    assert np.allclose(best.share, 100) and np.allclose(best.share_se, 0) and np.isfinite(table.first_exact).all()


@pytest.mark.slow
def test_other_users_earn_what_the_published_table_says():
    table = published.load("robustness")
    rows = table[(table.instance == "simulated") & (table.policy == "UCB")]
    again = robustness.again(rows, ["UCB"], 100, 3)
    assert len(again) == len(rows) and np.abs(again.z).max() < 5 and np.abs(again.fresh - again.value).max() > 0


def test_the_published_table_is_whole_and_below_its_bounds():
    table = published.load("robustness")
    assert {*zip(table.instance, table.cost)} == set(robustness.INSTANCES)
    assert table.groupby(["instance", "cost", "truth"]).policy.nunique().min() >= 11
    for name, rows in table.groupby("instance"):
        assert set(rows.users) == {{**robustness.SIZES, **robustness.SMALLER.get(name, {})}["users"]}
    limit = table[["full_observation", "first_exact"]].min(axis=1) + 4 * np.hypot(table.se, table.full_observation_se)
    assert (table.value <= limit).all() and (table.share[table.policy == robustness.BEST] == 100).all()
