"""Another unit of the features, the ratings, the cost or the time changes nothing but units, over twelve decades."""
import numpy as np
import pytest

from lib import bound, datasets, policies, report, simulate
from lib.datasets import priors, records
from lib.problem import make_problem
from lib.report import checks

NAMES = ("news", "sport", "art")


def stream(users=60, each=20, seed=1):
    """Items (9 or fewer shares of three features), ratings of theta ~ N(3.5, .25 1), noise .6, times a day apart."""
    rng = np.random.default_rng(seed)
    flags = np.array([[i >> j & 1 for j in range(3)] for i in rng.integers(1, 8, 40)], dtype=float)
    items, probs, rows = records.distinct(flags / flags.sum(axis=1, keepdims=True))
    item = np.concatenate([rows[rng.permutation(40)[:each]] for _ in range(users)])
    theta = np.repeat(3.5 + .5 * rng.standard_normal((users, 3)), each, axis=0)
    value = (items[item] * theta).sum(axis=1) + .6 * rng.standard_normal(len(item))
    kept = datasets.Ratings(np.arange(users + 1) * each, item.astype(np.int32), value, 86_400 * np.arange(len(item)))
    return datasets.Dataset("made up", NAMES, items, probs, np.arange(users).astype(str), kept, None, 0.0, (),
                           {"rating_range": (float(value.min()), float(value.max()))})


def in_units(data, feature=1.0, rating=1.0, time=1):
    """`data` with features, ratings and times in other units: numbers that many times as large."""
    kept = data.ratings._replace(value=data.ratings.value * rating, time=data.ratings.time * time)
    low, high = data.notes["rating_range"]
    return data._replace(items=data.items * feature, ratings=kept, notes={"rating_range": (low * rating, high * rating)})


DATA = stream()
UNITS = [(10.0**n, 1.0) for n in (-6, -2, -1, 2, 6)] + [(1.0, 1e-6), (1.0, 1e6), (.37, 730.), (np.array([1e-6, 1, 1e6]), 1.0)]
METHODS = ({"method": "empirical_bayes"}, {}, {"ridge": 2.0}, {"method": "empirical_bayes", "noise": "constant"})


@pytest.mark.parametrize("options", METHODS, ids=str)
@pytest.mark.parametrize("feature, rating", UNITS, ids=str)
def test_a_prior_changes_by_its_units_alone(feature, rating, options):
    there = options | ({"ridge": 2.0 * np.asarray(feature)**2} if "ridge" in options else {})
    one, other = prior(DATA, **options), prior(in_units(DATA, feature, rating), **there)
    by = rating / np.broadcast_to(feature, 3)
    np.testing.assert_allclose(other.mu / by, one.mu, rtol=1e-7)
    np.testing.assert_allclose(other.Sigma / np.outer(by, by), one.Sigma, rtol=1e-5, atol=1e-7)
    assert other.noise_sd / rating == pytest.approx(one.noise_sd, rel=1e-7)
    np.testing.assert_allclose(other.thetas_held_out / by, one.thetas_held_out, rtol=1e-6)
    assert other.counts["users_kept"] == one.counts["users_kept"] and not other.unconverged + other.undetermined


def prior(data, **options):
    return datasets.prior(data, **{"min_ratings": 10} | options)


@pytest.mark.parametrize("feature, rating", UNITS, ids=str)
def test_predictions_draws_and_cautions_change_by_their_units_alone(feature, rating):
    data, by = in_units(DATA, feature, rating, 1000), rating / np.broadcast_to(feature, 3)
    one, other = prior(DATA, method="empirical_bayes"), prior(data, method="empirical_bayes")
    made, found = datasets.predict(DATA, one, one.held_out), datasets.predict(data, other, one.held_out)
    np.testing.assert_allclose(found.mean / rating, made.mean, rtol=1e-6)
    np.testing.assert_allclose(found.sd / rating, made.sd, rtol=1e-6)
    draws = [datasets.theta_draws(d, p, p.held_out) / b for d, p, b in ((DATA, one, 1), (data, other, by))]
    np.testing.assert_allclose(draws[1], draws[0], rtol=1e-4, atol=1e-4)
    left = [datasets.residuals(d, one.train)[0] for d in (DATA, data)]
    np.testing.assert_allclose(left[1] / rating, left[0], atol=1e-9)
    said = [[c.name for c in checks.data_cautions(d, p, p.noise_sd)] for d, p in ((DATA, one), (data, other))]
    assert said[0] == said[1]


@pytest.mark.parametrize("feature, rating", UNITS[-4:], ids=str)
def test_a_singular_maximum_changes_by_its_units_alone(feature, rating):
    """Twelve users with alike preferences: maximum likelihood takes a mixture of preferences as known."""
    data = stream(users=12, seed=5)
    one = prior(data, method="empirical_bayes", holdout=0)
    other = prior(in_units(data, feature, rating), method="empirical_bayes", holdout=0)
    by = rating / np.broadcast_to(feature, 3)
    assert np.linalg.eigvalsh(one.Sigma)[0] < 1e-9 and not one.unconverged
    np.testing.assert_allclose(other.Sigma / np.outer(by, by), one.Sigma, rtol=1e-6, atol=1e-8)


def test_order_and_names_do_not_matter():
    base, order, people = prior(DATA, holdout=0, method="empirical_bayes"), [2, 0, 1], np.arange(60)[::-1]
    rows = np.random.default_rng(0).permutation(len(DATA.items))
    start, item, value, time = DATA.ratings
    spans = [np.arange(start[u], start[u + 1]) for u in people]
    moved = datasets.Ratings(start, np.argsort(rows)[item[np.concatenate(spans)]], value[np.concatenate(spans)], time)
    data = DATA._replace(features=("c", "a", "b"), items=DATA.items[rows][:, order], probs=DATA.probs[rows],
                         users=DATA.users[people], ratings=moved)
    found = prior(data, holdout=0, method="empirical_bayes")
    np.testing.assert_allclose(found.mu, base.mu[order], rtol=1e-7)
    np.testing.assert_allclose(found.Sigma, base.Sigma[np.ix_(order, order)], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("method", ["empirical_bayes", "least_squares"])
def test_ratings_far_from_zero_lose_no_digits(method):
    """Shares sum to 1, so ratings plus a million are preferences plus a million."""
    far = DATA._replace(ratings=DATA.ratings._replace(value=DATA.ratings.value + 1e6))
    one, other = prior(DATA, method=method), prior(far, method=method)
    np.testing.assert_allclose(other.mu - 1e6, one.mu, atol=1e-7)
    np.testing.assert_allclose(other.Sigma, one.Sigma, rtol=1e-5, atol=1e-6)
    assert other.noise_sd == pytest.approx(one.noise_sd, rel=1e-6)
    np.testing.assert_allclose(other.thetas_held_out - 1e6, one.thetas_held_out, atol=1e-6)
    np.testing.assert_allclose(datasets.residuals(far, one.train)[0], datasets.residuals(DATA, one.train)[0], atol=1e-8)


@pytest.mark.slow
def test_the_fit_is_the_maximum_that_expectation_maximisation_finds():
    """Laird and Ware's iteration in plain loops, from another start."""
    fit = prior(DATA, holdout=0, method="empirical_bayes")
    mu, Sigma, noise_var = np.zeros(3), np.eye(3), 1.0
    history = [(DATA.items[item], value) for item, value, _ in datasets.histories(DATA, range(60))]
    history = [(x / np.sqrt(np.count_nonzero(x, axis=1))[:, None], y / np.sqrt(np.count_nonzero(x, axis=1))) for x, y in history]
    for _ in range(150):
        covs = [np.linalg.inv(np.linalg.inv(Sigma) + x.T @ x / noise_var) for x, _ in history]
        means = [mu + cov @ x.T @ (y - x @ mu) / noise_var for cov, (x, y) in zip(covs, history)]
        mu = np.mean(means, axis=0)
        Sigma = np.mean(covs, axis=0) + np.cov(np.transpose(means), ddof=0)
        noise_var = np.mean([((y - x @ m)**2).sum() + np.trace(x @ c @ x.T) for (x, y), m, c in zip(history, means, covs)]) / 20
    np.testing.assert_allclose(fit.mu, mu, rtol=1e-6)
    np.testing.assert_allclose(fit.Sigma, Sigma, rtol=1e-4, atol=1e-6)
    assert fit.noise_sd**2 == pytest.approx(noise_var, rel=1e-5)


def test_twenty_features_converge_within_a_hundred_steps():
    """Of eighty users with fifteen ratings each: expectation-maximisation crawls towards a singular maximum for thousands."""
    rng = np.random.default_rng(2)
    items = np.eye(20)[np.arange(60) % 20] + np.eye(20)[rng.integers(20, size=60)]
    item = rng.integers(60, size=80 * 15)
    value = (items[item] * np.repeat(rng.normal(3, .5, (80, 20)), 15, axis=0)).sum(axis=1) + rng.normal(size=len(item))
    data = datasets.Dataset("made up", tuple(map(str, range(20))), items, np.full(60, 1 / 60), np.arange(80).astype(str),
                           datasets.Ratings(np.arange(81) * 15, item, value, None), None, 0.0, (), {})
    found = prior(data, holdout=0, method="empirical_bayes")
    assert found.unconverged == () and found.counts["fit_steps"] < 100
    moved = prior(data._replace(items=data.items * rng.uniform(.1, 10, 20)), holdout=0, method="empirical_bayes")
    assert moved.counts["fit_steps"] < 100 and np.linalg.eigvalsh(found.Sigma)[0] < 1e-6


# What a fit says of itself

def test_a_fit_that_stopped_early_names_the_features(monkeypatch):
    whole = priors.empirical_bayes
    monkeypatch.setattr(priors, "empirical_bayes", lambda sums: whole(sums, iterations=2))
    found = prior(DATA, method="empirical_bayes")
    assert set(found.unconverged) <= set(NAMES) and found.unconverged and found.counts["fit_steps"] == 2
    said = {c.name: c.text for c in checks.data_cautions(DATA, found, .6)}["the prior has not converged"]
    assert "After 2 steps" in said and all(name in said for name in found.unconverged)


def with_column(data, column, name):
    return data._replace(items=np.column_stack([data.items, column]), features=(*data.features, name))


@pytest.mark.parametrize("factor", [1.0, 1e-6, 300.0])
def test_equal_columns_are_named_and_share_what_they_earn(factor):
    data = with_column(DATA, DATA.items[:, 1] * factor, "sport again")
    found, plain = (prior(d, method="empirical_bayes", noise="constant") for d in (data, DATA))
    assert found.undetermined == (("sport", "sport again"),) and np.linalg.cond(found.Sigma * np.outer(*[[1, 1, 1, factor]] * 2)) < 50
    assert found.mu[1] == pytest.approx(found.mu[3] * factor) and found.Sigma[1, 1] == pytest.approx(found.Sigma[3, 3] * factor**2)
    np.testing.assert_allclose(data.items @ found.mu, DATA.items @ plain.mu, rtol=1e-6)
    np.testing.assert_allclose(data.items @ found.Sigma @ data.items.T, DATA.items @ plain.Sigma @ DATA.items.T, rtol=1e-4, atol=1e-6)
    said = {c.name: c.text for c in checks.data_cautions(data, found, .6)}
    assert "sport and sport again" in said["features are not told apart"]


def test_a_feature_that_no_rating_shows_keeps_a_usual_spread():
    items = np.vstack([DATA.items, [0, 0, 0]])
    data = with_column(DATA._replace(items=items), np.append(np.zeros(len(DATA.items)), 5.0), "chess")
    found, plain = prior(data, method="empirical_bayes"), prior(DATA, method="empirical_bayes")
    assert found.undetermined == (("chess",),) and np.allclose(found.Sigma[3, :3], 0)
    size = DATA.items.max(axis=0)
    assert 25 * found.Sigma[3, 3] == pytest.approx(np.mean(np.diag(plain.Sigma) * size**2), rel=.2)
    assert 5 * found.mu[3] == pytest.approx(3.5, abs=.2)
    assert "chess (in no rated item)" in checks.not_told_apart(found).text


def test_least_squares_says_which_columns_stand_in_its_way():
    data = with_column(DATA, DATA.items[:, 1], "sport again")
    with pytest.raises(ValueError, match="0 users are left .*; no rating tells sport from sport again$"):
        prior(data)
    with pytest.raises(ValueError, match="0 users are left .*; no rated item has chess$"):
        prior(with_column(DATA, 0 * DATA.items[:, 1], "chess"))
    assert prior(data, ridge=1.0).undetermined == (("sport", "sport again"),)


def test_sums_of_columns_are_named():
    data = with_column(DATA, DATA.items[:, 0] + DATA.items[:, 2], "news or art")
    assert prior(data, method="empirical_bayes").undetermined == (("news", "art", "news or art"),)


# Bounds, policies and the whole analysis

def problem(feature=1.0, rating=1.0):
    Sigma = np.array([[.5, .3, .1], [.3, .4, 0], [.1, 0, .2]])
    return make_problem(DATA.items * feature, DATA.probs, np.array([3.5, 3.1, 3.3]) * rating / feature,
                        Sigma * (rating / feature)**2, .6 * rating, 3.4 * rating, .9)


@pytest.mark.slow
@pytest.mark.parametrize("feature, rating", [(1e-6, 1.0), (1e6, 1.0), (1.0, 1e-6), (1.0, 1e6), (.37, 730.)])
def test_policies_decide_the_same(feature, rating):
    rules = [policies.exploit(), policies.thompson(), policies.ucb(.5), policies.dtd_ucb(.5), policies.dtd_dp(.5)]
    one = simulate.episodes(problem(), rules, 64, 50, 3)
    other = simulate.episodes(problem(feature, rating), rules, 64, 50, 3)
    np.testing.assert_array_equal(one.decisions, other.decisions)
    np.testing.assert_allclose(other.rewards / rating, one.rewards, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("feature, rating", [(1e-6, 1.0), (1e6, 1.0), (1.0, 1e-6), (1.0, 1e6)])
def test_bounds_change_by_their_units_alone(feature, rating):
    one, other = problem(), problem(feature, rating)
    assert bound.hindsight(other) / rating == pytest.approx(bound.hindsight(one), rel=1e-9)
    for a, b in zip(bound.full_observation(one, 200, 1), bound.full_observation(other, 200, 1)):
        assert b / rating == pytest.approx(a, rel=1e-7)
    if feature == 1:
        np.testing.assert_allclose(np.array(bound.decomposition(other)) / rating, bound.decomposition(one), rtol=1e-7)


@pytest.mark.slow
def test_an_analysis_changes_by_its_units_alone():
    one, other = (report.analyse(data, prior(data, method="empirical_bayes"), cost, steps=(), users=32)
                  for data, cost in ((DATA, 3.3), (in_units(DATA, .01, 100.0), 330.0)))
    assert other.best.policy.tolist() == one.best.policy.tolist() and other.forwards
    np.testing.assert_array_equal(other.best.alpha, one.best.alpha)
    columns = ["mean", "se", "bound", "over_exploitation", "gap"]
    np.testing.assert_allclose(other.best[columns] / 100, one.best[columns], rtol=1e-6, atol=1e-7)
    assert [c.name for c in other.cautions] == [c.name for c in one.cautions]
