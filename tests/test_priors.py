"""The prior against plain regressions, empirical Bayes against simulated truth, predictions against both."""
import numpy as np
import pytest
from scipy import stats

from lib import datasets
from lib.datasets import prediction, priors, records

ITEMS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [.5, .5, 0], [0, .5, .5], [1 / 3, 1 / 3, 1 / 3]])
MU = np.array([3.5, 3.0, 4.0])
SIGMA = np.array([[.5, .3, .1], [.3, .4, 0], [.1, 0, .2]])


def simulated(users, seed, low=8, high=40, noise_sd=.7, noise="features", Sigma=SIGMA, items=ITEMS):
    """Ratings of users drawn from N(MU, Sigma), and their theta."""
    rng = np.random.default_rng(seed)
    thetas = rng.multivariate_normal(MU, Sigma, users, method="svd")
    count = rng.integers(low, high, users)
    start = np.concatenate([[0], np.cumsum(count)])
    item = rng.integers(0, len(items), start[-1])
    spread = noise_sd * (np.sqrt(np.count_nonzero(items[item], axis=1)) if noise == "features" else 1)
    value = np.einsum("ri,ri->r", items[item], np.repeat(thetas, count, axis=0)) + spread * rng.normal(size=len(item))
    ratings = datasets.Ratings(start, item, value, np.arange(len(item)))
    names = np.arange(users).astype(str)
    data = datasets.Dataset("simulated", ("a", "b", "c"), items, np.full(len(items), 1 / len(items)), names,
                           ratings, None, 0.0, (), {})
    return data, thetas


def one_by_one(data, users, ridge=0.0, noise="constant"):
    """Coefficients, and the residual variance, by one weighted lstsq a user."""
    thetas, squares, freedom = [], 0.0, 0
    for u in users:
        (item, value, _), = datasets.histories(data, [u])
        x = data.items[item]
        k = x.shape[1]
        rows, targets = np.vstack([x, np.sqrt(ridge) * np.eye(k)]), np.concatenate([value, np.zeros(k)])
        thetas.append(np.linalg.lstsq(rows, targets)[0])
        root = np.sqrt(np.count_nonzero(x, axis=1)) if noise == "features" else np.ones(len(x))
        fit = np.linalg.lstsq(x / root[:, None], value / root)[0]
        squares += np.sum((value / root - x / root[:, None] @ fit)**2)
        freedom += len(x) - np.linalg.matrix_rank(x)
    return np.array(thetas), squares / freedom


def test_movielens_gives_the_known_prior():
    found = datasets.prior(datasets.movielens(), holdout=0)
    np.testing.assert_allclose(found.mu, [3.86, 3.48, 3.38, 3.68, 3.65, 3.63], atol=.006)
    sd = np.sqrt(np.diag(found.Sigma))
    assert .495 < sd.min() and sd.max() < .775
    assert found.counts["users_kept"] == 417 and found.counts["too_few_ratings"] == 671 - 417
    assert len(found.thetas_train) == 417 and found.thetas_held_out.shape == (0, 6)


@pytest.mark.parametrize("noise", ["features", "constant"])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_least_squares_against_plain_regressions(noise, ridge):
    data, _ = simulated(60, seed=1)
    found = datasets.prior(data, holdout=.3, seed=4, min_ratings=10, ridge=ridge, noise=noise)
    count = np.diff(data.ratings.start)
    kept = [u for u in range(60) if count[u] >= 10
            and (ridge or np.linalg.matrix_rank(data.items[datasets.histories(data, [u])[0][0]]) == 3)]
    assert sorted([*found.train, *found.held_out]) == kept
    assert len(found.held_out) == round(.3 * len(kept))
    thetas, noise_var = one_by_one(data, found.train, ridge, noise)
    np.testing.assert_allclose(found.thetas_train, thetas, atol=1e-9)
    np.testing.assert_allclose(found.thetas_held_out, one_by_one(data, found.held_out, ridge)[0], atol=1e-9)
    np.testing.assert_allclose(found.mu, thetas.mean(axis=0))
    np.testing.assert_allclose(found.Sigma, np.cov(thetas.T))
    assert found.noise_sd == pytest.approx(np.sqrt(noise_var)) and found.noise == noise


@pytest.mark.parametrize("noise", ["features", "constant"])
def test_the_noise_level_is_recovered(noise):
    data, _ = simulated(1000, seed=2, noise=noise)
    assert datasets.prior(data, min_ratings=8, noise=noise).noise_sd == pytest.approx(.7, abs=.012)


@pytest.mark.parametrize("method", ["least_squares", "empirical_bayes"])
def test_held_out_users_leave_no_trace(method):
    data, _ = simulated(60, seed=3)
    one = datasets.prior(data, method=method, min_ratings=8)
    value = data.ratings.value.copy()
    for u in one.held_out:
        value[data.ratings.start[u]:data.ratings.start[u + 1]] += 5
    other = datasets.prior(data._replace(ratings=data.ratings._replace(value=value)), method=method, min_ratings=8)
    for a, b in zip(one[:3], other[:3]):
        np.testing.assert_array_equal(a, b)
    assert (other.thetas_held_out != one.thetas_held_out).any()
    assert set(one.train).isdisjoint(one.held_out)
    again = datasets.prior(data, method=method, min_ratings=8, seed=1)
    assert set(again.held_out) != set(one.held_out)


def log_likelihood(data, mu, Sigma, noise_var):
    """Of all ratings, user by user, from the dense covariance."""
    total = 0.0
    for item, value, _ in datasets.histories(data, range(len(data.users))):
        x = data.items[item]
        cov = x @ Sigma @ x.T + noise_var * np.diag(np.count_nonzero(x, axis=1))
        gap = value - x @ mu
        total -= .5 * (gap @ np.linalg.solve(cov, gap) + np.linalg.slogdet(cov)[1] + len(x) * np.log(2 * np.pi))
    return total


def test_empirical_bayes_recovers_the_truth_where_least_squares_does_not():
    errors = {"least_squares": [], "empirical_bayes": []}
    for seed in range(4):
        data, _ = simulated(500, seed=seed, low=6, high=20)
        for method, found in errors.items():
            fit = datasets.prior(data, holdout=0, method=method, min_ratings=6)
            found.append(fit.Sigma - SIGMA)
            np.testing.assert_allclose(fit.mu, MU, atol=.2)
    bias = {method: np.mean(found, axis=0) for method, found in errors.items()}
    assert np.abs(bias["empirical_bayes"]).max() < .06                      # four runs: about 3 standard errors
    assert np.diag(bias["least_squares"]).min() > .2


def test_empirical_bayes_is_a_maximum_of_the_likelihood():
    data, _ = simulated(80, seed=5)
    fit = datasets.prior(data, holdout=0, method="empirical_bayes", min_ratings=1)
    best = log_likelihood(data, fit.mu, fit.Sigma, fit.noise_sd**2)
    rng = np.random.default_rng(0)
    for _ in range(20):
        step, tilt = .02 * rng.normal(size=3), .02 * rng.normal(size=(3, 3))
        assert log_likelihood(data, fit.mu + step, fit.Sigma, fit.noise_sd**2) < best
        turned = (np.eye(3) + tilt) @ fit.Sigma @ (np.eye(3) + tilt).T
        assert log_likelihood(data, fit.mu, turned, fit.noise_sd**2) < best + 1e-4
        assert log_likelihood(data, fit.mu, fit.Sigma, fit.noise_sd**2 * np.exp(.1 * rng.normal())) < best


def test_empirical_bayes_never_lowers_the_likelihood():
    data, _ = simulated(40, seed=6)
    sums = priors.user_sums(data, np.arange(40), "features")
    values = [log_likelihood(data, *priors.empirical_bayes(sums, iterations=n)[:3]) for n in range(1, 12)]
    assert (np.diff(values) > -1e-9).all() and values[-1] > values[0]


@pytest.mark.parametrize("Sigma", [np.zeros((3, 3)), np.diag([1., 0, 0]), np.ones((3, 3))])
@pytest.mark.parametrize("method", ["least_squares", "empirical_bayes"])
def test_covariances_are_positive_semi_definite(Sigma, method):
    data, _ = simulated(30, seed=7, Sigma=Sigma, low=20)
    found = datasets.prior(data, method=method, min_ratings=1).Sigma
    np.testing.assert_array_equal(found, found.T)
    assert np.linalg.eigvalsh(found)[0] > -1e-12


def test_posterior_means_against_the_dense_formula():
    data, _ = simulated(5, seed=8)
    sums = priors.user_sums(data, np.arange(5), "features")
    means, covs = priors.posteriors(sums, MU, np.diag([1., .5, 0]), .49)
    for u, (item, value, _) in enumerate(datasets.histories(data, range(5))):
        x, S = data.items[item], np.diag([1., .5, 0])
        gain = S @ x.T @ np.linalg.inv(x @ S @ x.T + .49 * np.diag(np.count_nonzero(x, axis=1)))
        np.testing.assert_allclose(means[u], MU + gain @ (value - x @ MU), atol=1e-9)
        np.testing.assert_allclose(covs[u], S - gain @ x @ S, atol=1e-9)


def test_draws_spread_as_theta_does():
    data, thetas = simulated(4000, seed=13)
    truth = datasets.Prior(MU, SIGMA, .7, "features", *[np.empty((0, 3))] * 2, *[np.arange(0)] * 2, {})
    users = np.arange(4000)
    draws = datasets.theta_draws(data, truth, users)
    np.testing.assert_allclose(np.cov(draws.T), SIGMA, atol=.06)               # five standard errors
    means, covs = priors.posteriors(priors.user_sums(data, users, "features"), MU, SIGMA, .49)
    assert np.trace(np.cov(means.T)) < .9 * np.trace(SIGMA)
    np.testing.assert_allclose(np.cov((draws - means).T), covs.mean(axis=0), atol=.04)
    np.testing.assert_array_equal(draws, datasets.theta_draws(data, truth, users))
    assert (draws != datasets.theta_draws(data, truth, users, seed=1)).any()


# Users that a regression cannot use

def with_poor_users():
    """Three full users, one with two ratings, one with ten ratings of one item."""
    item = np.concatenate([np.tile(np.arange(6), 3), np.tile(np.arange(6), 3), np.tile(np.arange(6), 3), [0, 1], [3] * 10])
    start = np.array([0, 18, 36, 54, 56, 66])
    value = np.random.default_rng(0).normal(3, 1, 66)
    data, _ = simulated(5, seed=0)
    return data._replace(ratings=datasets.Ratings(start, item, value, None))


def test_poor_users_are_dropped_and_counted():
    found = datasets.prior(with_poor_users(), holdout=0, min_ratings=3)
    assert found.train.tolist() == [0, 1, 2]
    assert {name: found.counts[name] for name in ("users", "too_few_ratings", "rank_deficient", "rank_deficient_kept",
                                                  "users_kept", "ratings_kept", "most_ratings")} == {
        "users": 5, "too_few_ratings": 1, "rank_deficient": 1, "rank_deficient_kept": False, "users_kept": 3,
        "ratings_kept": 54, "most_ratings": 18}
    assert datasets.prior(with_poor_users(), holdout=0, min_ratings=1).counts["rank_deficient"] == 2


@pytest.mark.parametrize("options", [{"ridge": 0.1}, {"method": "empirical_bayes"}])
def test_poor_users_are_regularised_and_counted(options):
    found = datasets.prior(with_poor_users(), holdout=0, min_ratings=3, **options)
    assert found.train.tolist() == [0, 1, 2, 4] and np.isfinite(found.thetas_train).all()
    assert found.counts["rank_deficient"] == 1 and found.counts["rank_deficient_kept"]


@pytest.mark.parametrize("options, message", [
    ({"min_ratings": 19}, r"0 users are left to make a prior from, two are needed: .*'too_few_ratings': 5.*'most_ratings': 18"),
    ({"min_ratings": 18, "holdout": .8}, "1 users are left"),
    ({"holdout": 1}, r"holdout is 1: it must lie in \[0, 1\)"), ({"holdout": -.1}, "holdout is -0.1"),
    ({"method": "bayes"}, "method is 'bayes'"), ({"noise": "none"}, "noise is 'none'"),
    ({"ridge": -1}, "ridge is -1"), ({"ridge": np.nan}, "ridge is nan"),
])
def test_prior_errors(options, message):
    with pytest.raises(ValueError, match=message):
        datasets.prior(with_poor_users(), **{"min_ratings": 3} | options)


def test_no_degree_of_freedom_is_an_error():
    data, _ = simulated(3, seed=0)
    ratings = datasets.Ratings(np.arange(0, 10, 3), np.tile(np.arange(3), 3), np.ones(9), None)
    with pytest.raises(ValueError, match="noise level cannot be estimated: 9 ratings of 3 users"):
        datasets.prior(data._replace(ratings=ratings), holdout=0, min_ratings=3)


def test_empirical_bayes_needs_noise():
    data, _ = simulated(30, seed=0, noise_sd=0)
    with pytest.raises(ValueError, match="empirical Bayes needs noise"):
        datasets.prior(data, method="empirical_bayes", min_ratings=3)


@pytest.mark.parametrize("method", ["least_squares", "empirical_bayes"])
def test_sums_serve_as_ratings_do(method):
    dense = ITEMS + .1
    data, _ = simulated(50, seed=9, items=dense)
    few = records.thin(data, len(dense))
    for noise in ("features", "constant"):
        for a, b in zip(datasets.prior(data, method=method, noise=noise, min_ratings=3)[:3],
                        datasets.prior(few, method=method, noise=noise, min_ratings=3)[:3]):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    with pytest.raises(ValueError, match="noise is 'features': simulated keeps unweighted sums only"):
        datasets.prior(few._replace(items=ITEMS), min_ratings=3)


# Predictions

def test_scores_are_scipys():
    rng = np.random.default_rng(5)
    mean, sd, rating = rng.normal(size=50), rng.uniform(.5, 2, 50), 2 * rng.normal(size=50)
    found = datasets.scores(prediction.Predictions(np.arange(50), mean, sd, rating), (.5, .9))
    law = stats.norm(mean, sd)
    assert found["log_density"] == pytest.approx(law.logpdf(rating).mean())
    assert found["rmse"] == pytest.approx(np.sqrt(((rating - mean)**2).mean())) and found["bias"] == pytest.approx((rating - mean).mean())
    for level in (.5, .9):
        low, high = law.interval(level)
        assert found[f"coverage_{level}"] == np.mean((low <= rating) & (rating <= high))


@pytest.mark.parametrize("seen", [0, .3, .5])
def test_predictions_cover_what_they_say_under_the_model(seen):
    data, _ = simulated(400, seed=10)
    truth = datasets.Prior(MU, SIGMA, .7, "features", *[np.empty((0, 3))] * 2, *[np.arange(0)] * 2, {})
    made = datasets.predict(data, truth, np.arange(400), seen)
    found = datasets.scores(made)
    for level in (.5, .8, .95):
        assert found[f"coverage_{level}"] == pytest.approx(level, abs=.03)
    assert found["bias"] == pytest.approx(0, abs=.1) and found["ratings"] == len(made.mean)
    table = datasets.calibration(made, bins=8)
    assert table.shape == (8, 4) and table[:, 3].sum() == len(made.mean)
    assert (np.abs(table[:, 1] - table[:, 0]) < 4.5 * table[:, 2]).all()


def test_one_prediction_by_hand():
    data, _ = simulated(2, seed=11)
    truth = datasets.Prior(MU, SIGMA, .7, "features", *[np.empty((0, 3))] * 2, *[np.arange(0)] * 2, {})
    (item, value, _), = datasets.histories(data, [1])
    cut = int(.5 * len(item))
    x, later = data.items[item[:cut]], data.items[item[cut]]
    inner = np.linalg.inv(np.linalg.inv(SIGMA) + x.T @ (x / np.count_nonzero(x, axis=1)[:, None]) / .49)
    mean = inner @ (np.linalg.inv(SIGMA) @ MU + x.T @ (value[:cut] / np.count_nonzero(x, axis=1)) / .49)
    made = datasets.predict(data, truth, np.array([1]))
    assert made.mean[0] == pytest.approx(later @ mean) and made.rating[0] == value[cut] and set(made.user) == {1}
    assert made.sd[0] == pytest.approx(np.sqrt(later @ inner @ later + .49 * np.count_nonzero(later)))


def test_empirical_bayes_predicts_better_on_movielens():
    data = datasets.movielens()
    log_density = []
    for method in ("least_squares", "empirical_bayes"):
        fit = datasets.prior(data, method=method)
        log_density.append(datasets.scores(datasets.predict(data, fit, fit.held_out))["log_density"])
    assert log_density[1] > log_density[0]


@pytest.mark.parametrize("law", ["features", "constant"])
@pytest.mark.parametrize("method", ["least_squares", "empirical_bayes"])
def test_the_law_of_the_noise_is_found(law, method):
    chosen = datasets.choose_noise(simulated(120, 5, noise=law, low=20)[0], method=method, min_ratings=10)
    sign = 1 if law == "constant" else -1
    assert chosen.law == law and sign * chosen.lead.mean > 3 * chosen.lead.se
    assert chosen.lead.mean == pytest.approx(chosen.log_density["constant"] - chosen.log_density["features"])
    assert {name: fit.noise for name, fit in chosen.priors.items()} == {"features": "features", "constant": "constant"}


def test_the_error_of_a_lead_is_that_of_other_users():
    """Held-out users drawn again, each with all of their ratings."""
    data, _ = simulated(160, 5, noise="constant", low=20)
    chosen = datasets.choose_noise(data, min_ratings=10, holdout=.5)
    told = [prediction.predict(data, fit, fit.held_out) for fit in chosen.priors.values()]
    apart = prediction.log_density(told[1]) - prediction.log_density(told[0])
    rows = [apart[told[0].user == user] for user in np.unique(told[0].user)]
    rng = np.random.default_rng(1)
    again = [np.concatenate([rows[i] for i in rng.integers(len(rows), size=len(rows))]).mean() for _ in range(1000)]
    assert np.std(again) == pytest.approx(chosen.lead.se, rel=.1)


def test_laws_that_are_one_are_not_told_apart():
    chosen = datasets.choose_noise(simulated(60, 5, items=np.eye(3))[0], min_ratings=5)
    assert chosen.law == "features" and chosen.lead.mean == 0
    with pytest.raises(ValueError, match="holdout leaves 0 users"):
        datasets.choose_noise(simulated(60, 5)[0], min_ratings=5, holdout=0)


def test_prediction_errors():
    data, _ = simulated(20, seed=0)
    fit = datasets.prior(data, min_ratings=3)
    for wrong in (1, -.1):
        with pytest.raises(ValueError, match=f"seen is {wrong}"):
            datasets.predict(data, fit, fit.train, seen=wrong)
    with pytest.raises(ValueError, match="there is nothing to predict|no Sums"):
        datasets.predict(data._replace(ratings=None), fit, fit.train)


def test_residuals():
    data, _ = simulated(6, seed=12)
    found, item, place = datasets.residuals(data, np.array([4, 2]))
    span = slice(data.ratings.start[4], data.ratings.start[5])
    size = span.stop - span.start
    x = data.items[data.ratings.item[span]]
    fit = np.linalg.lstsq(x, data.ratings.value[span])[0]
    np.testing.assert_allclose(found[:size], data.ratings.value[span] - x @ fit)
    assert place[0] == 0 and place[size - 1] == 1 and place[-1] == 1 and (item[:size] == data.ratings.item[span]).all()
    quantiles, sorted_values = datasets.normal_quantiles(found)
    assert (np.diff(sorted_values) >= 0).all() and sorted_values.std() == pytest.approx(1)
    assert quantiles[0] == pytest.approx(-quantiles[-1])


def many_features(k=20, users=12, seed=3):
    """Signed items of more features than WIDE, and ratings of users who differ in their number."""
    rng = np.random.default_rng(seed)
    items, lengths = rng.standard_normal((50, k)), rng.integers(5, 60, users)
    items[rng.random(items.shape) < .3] = 0
    start = np.append(0, np.cumsum(lengths))
    item = rng.integers(0, 50, start[-1])
    theta = rng.standard_normal((users, k))
    value = np.einsum("rk,rk->r", items[item], np.repeat(theta, lengths, axis=0)) + rng.standard_normal(start[-1])
    return records.Dataset("made", tuple(f"f{j}" for j in range(k)), items, np.full(50, .02), np.arange(users).astype(str),
                           records.Ratings(start, item, value, None), None, 0.0, (), {})


def test_sums_of_many_features_are_those_of_few(monkeypatch):
    data = many_features()
    begin, end, weights = data.ratings.start[:-1], data.ratings.start[1:], priors.weights(data, "features")
    wide = records.sums(data, begin, end, weights)
    monkeypatch.setattr(records, "WIDE", 99)
    for got, want in zip(wide, records.sums(data, begin, end, weights)):
        assert got == pytest.approx(want, rel=1e-12, abs=1e-10)


def test_parts_of_the_users_give_the_numbers_of_all(monkeypatch):
    data = many_features()
    whole = datasets.prior(data, min_ratings=1, method="empirical_bayes")
    seen = datasets.predict(data, whole, whole.held_out)
    monkeypatch.setattr(records, "ROOM", 20 * 20 * 2)
    assert [len(part) for part in records.chunks(np.arange(5), 20)] == [2, 2, 1]
    again = datasets.prior(data, min_ratings=1, method="empirical_bayes")
    ranks = [np.linalg.matrix_rank(data.items[item]) for item, *_ in records.histories(data, np.arange(12))]
    assert again.counts == whole.counts and again.counts["rank_deficient"] == (np.array(ranks) < 20).sum() > 0
    for got, want in zip([again.thetas_train, again.thetas_held_out, *datasets.predict(data, whole, whole.held_out)],
                         [whole.thetas_train, whole.thetas_held_out, *seen]):
        assert got == pytest.approx(want, rel=1e-9, abs=1e-9)


def test_a_fit_of_many_users_takes_a_sample_and_says_so(monkeypatch):
    data = many_features(k=3, users=40)
    monkeypatch.setattr(priors, "EFFORT", 27 * 10)
    fit = datasets.prior(data, min_ratings=1, method="empirical_bayes")
    assert len(fit.train) == len(fit.thetas_train) == 10 and fit.counts["users_spared_the_fit"] == 20 and len(fit.held_out) == 10


def test_the_error_of_a_calibration_is_over_users():
    """Two users, three ratings: totals of the gaps of each about their mean."""
    told = prediction.Predictions(np.array([0, 0, 1]), np.zeros(3), np.ones(3), np.array([1., 2., 6.]))
    (mean, rating, error, count), = prediction.calibration(told, 1)
    assert (mean, rating, count) == (0, 3, 3) and error == pytest.approx(np.sqrt(3.0**2 + 3.0**2) / 3)
