"""Does the model describe people?  Predictions of ratings that were not seen, and residuals.

Ratings are those that users chose to give, on items that they chose: agreement here says that the
model describes such ratings, not what users would have said of items that they never rated.
"""
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from lib.datasets import priors, records
from lib.estimate import sample_mean
from lib.problem import NOISES, Estimate, as_count, as_floats, as_made, as_positions, as_scalar


class Predictions(NamedTuple):
    """Ratings to come, each with the belief's normal prediction of it."""

    user: np.ndarray    # (r,) position in dataset.users
    mean: np.ndarray    # (r,) x.m
    sd: np.ndarray      # (r,) sqrt(x V x + noise variance)
    rating: np.ndarray  # (r,) what the user gave


def item_noise(dataset, prior):
    """(n,) noise variance of a rating of each item under the prior's noise model."""
    return prior.noise_sd**2 / priors.weights(dataset, prior.noise)


def predict(dataset, prior, users, seen=0.5):
    """Predict the later ratings of `users` from their earlier ones, in time order.

    Parameters
    ----------
    dataset : Dataset
        With ratings.
    prior : Prior
    users : int array
        Positions in dataset.users, such as prior.held_out.
    seen : float in [0, 1)
        Share of each user's ratings that the belief is made from; 0 predicts from the prior alone.

    Returns
    -------
    Predictions
    """
    if records.as_dataset(dataset).ratings is None:
        raise ValueError(f"the dataset {dataset.source} keeps sums over ratings only: there is nothing to predict")
    prior, users = priors.as_prior(prior, dataset), as_positions("users", users, len(dataset.users))
    as_scalar("seen", seen)
    if not 0 <= seen < 1:
        raise ValueError(f"seen is {seen}: it must lie in [0, 1)")
    parts = [_predicted(dataset, prior, part, seen) for part in records.chunks(users, dataset.items.shape[1])]
    return Predictions(*(np.concatenate(column) for column in zip(*parts)))


def _predicted(dataset, prior, users, seen):
    """The Predictions of some users."""
    begin, end = dataset.ratings.start[users], dataset.ratings.start[users + 1]
    cut = begin + np.floor(seen * (end - begin)).astype(np.int64)
    past = records.sums(dataset, begin, cut, priors.weights(dataset, prior.noise))
    means, covs = priors.posteriors(past, prior.mu, prior.Sigma, prior.noise_sd**2)
    later = np.concatenate([np.zeros(0, np.int64), *(np.arange(a, b) for a, b in zip(cut, end))])
    owner = np.repeat(np.arange(len(users)), end - cut)
    item = dataset.ratings.item[later]
    mean, var = np.empty(len(later)), item_noise(dataset, prior)[item]
    for rows in records.chunks(np.arange(len(later)), dataset.items.shape[1]):
        x = dataset.items[item[rows]]
        mean[rows] = np.einsum("ri,ri->r", x, means[owner[rows]])
        var[rows] = np.einsum("ri,rij,rj->r", x, covs[owner[rows]], x) + var[rows]
    return Predictions(np.asarray(users)[owner], mean, np.sqrt(var), dataset.ratings.value[later])


def as_predictions(predictions):
    """`predictions` with four finite arrays of one length and positive spreads, or ValueError."""
    as_made("predictions", predictions, Predictions, "lib.datasets.predict")
    parts = {name: as_floats(name, part, 1) for name, part in predictions._asdict().items()}
    for name, part in parts.items():
        if len(part) != len(parts["user"]):
            raise ValueError(f"{name} of the predictions must have {len(parts['user'])} elements, as user has, got {len(part)}")
    if (parts["sd"] <= 0).any():
        raise ValueError(f"sd of the predictions is {parts['sd'].min()}: it must be positive")
    return Predictions(predictions.user, parts["mean"], parts["sd"], parts["rating"])


def scores(predictions, levels=(0.5, 0.8, 0.95)):
    """How well predictions fit: root mean square error, bias, mean log density, and interval coverage.

    Examples
    --------
    >>> p = Predictions(np.zeros(2), np.zeros(2), np.ones(2), np.array([.1, -3.]))
    >>> scores(p)["coverage_0.95"]
    0.5
    """
    predictions = as_predictions(predictions)
    for level in as_floats("levels", levels, 1):
        as_scalar("levels", level, 0, 1)
    z = (predictions.rating - predictions.mean) / predictions.sd
    found = {"ratings": len(z), "rmse": float(np.sqrt(np.mean((z * predictions.sd)**2))),
             "bias": float(np.mean(z * predictions.sd)),
             "log_density": float(np.mean(log_density(predictions)))}
    inside = ndtr(np.abs(z)) * 2 - 1
    return found | {f"coverage_{level}": float(np.mean(inside <= level)) for level in levels}


class NoiseChoice(NamedTuple):
    """The laws of the noise, each with the prior that it leads to, and how well those predict held-out users."""

    law: str            # the one that predicts better, a key of lib.problem.NOISES
    priors: dict        # {law: Prior}, of the same users
    log_density: dict   # {law: mean log density of a later rating of the held-out users}
    lead: Estimate      # of "constant" over "features", log density a rating, with its error over users


def choose_noise(dataset, holdout=0.25, seed=0, method="least_squares", min_ratings=50, ridge=None):
    """Fit the prior with noise that counts features and with constant noise, and see which predicts held-out users better.

    The later half of the held-out users' ratings is predicted from the earlier half (`predict`).  Where all items have
    as many features the laws are one, "features".

    Parameters
    ----------
    dataset : Dataset
        With ratings.
    holdout, seed, method, min_ratings, ridge
        As `prior` takes them; some users must be held out.

    Returns
    -------
    NoiseChoice

    Raises
    ------
    ValueError
        As `prior` and `predict`, or where fewer than two users are held out.

    Examples
    --------
    >>> from lib import datasets
    >>> choose_noise(datasets.movielens()).law
    'constant'
    """
    fits = {law: priors.prior(dataset, holdout, seed, method, min_ratings, ridge, noise=law) for law in NOISES}
    held_out = fits["features"].held_out
    if len(held_out) < 2:
        raise ValueError(f"holdout leaves {len(held_out)} users to predict: two are needed to choose between laws of the noise")
    told = {law: predict(dataset, fit, held_out) for law, fit in fits.items()}
    density = {law: log_density(parts) for law, parts in told.items()}
    _, owner = np.unique(told["features"].user, return_inverse=True)
    count, apart = np.bincount(owner), np.bincount(owner, density["constant"] - density["features"])
    mean = apart.sum() / count.sum()
    lead = Estimate(float(mean), float(sample_mean((apart - mean * count) / count.mean()).se))
    means = {law: float(values.mean()) for law, values in density.items()}
    return NoiseChoice("constant" if lead.mean > 0 else "features", fits, means, lead)


def log_density(predictions):
    """(r,) log density that each rating has under its prediction."""
    z = (predictions.rating - predictions.mean) / predictions.sd
    return -z**2 / 2 - np.log(predictions.sd) - np.log(2 * np.pi) / 2


def calibration(predictions, bins=10):
    """(mean prediction, mean rating, standard error over users, count) in bins of equal size by prediction.

    Ratings of one user go together, so the standard error is that of a mean over users' totals.
    """
    predictions = as_predictions(predictions)
    bins = as_count("bins", bins, 1, len(predictions.mean))
    order = np.argsort(predictions.mean, kind="stable")
    rows = []
    for part in np.array_split(order, bins):
        gap = predictions.rating[part] - predictions.mean[part]
        _, owner = np.unique(predictions.user[part], return_inverse=True)
        total = np.bincount(owner, gap - gap.mean())
        rows.append((predictions.mean[part].mean(), predictions.rating[part].mean(),
                     np.sqrt((total**2).sum()) / len(part), len(part)))
    return np.array(rows)


def residuals(dataset, users):
    """Residuals of each user's own least squares: (residual, row of item, place in the history from 0 to 1).

    For the spread by number of features, departures from the normal, and drift over time.
    """
    if records.as_dataset(dataset).ratings is None:
        raise ValueError(f"the dataset {dataset.source} keeps sums over ratings only: there are no residuals")
    users = as_positions("users", users, len(dataset.users), 1)
    dataset = priors.rescaled(dataset, priors.sizes(dataset))
    dataset = priors.less(dataset, priors.common(priors.user_sums(dataset, users)))
    thetas = priors.coefficients(priors.user_sums(dataset, users))
    parts = []
    for theta, (item, value, _) in zip(thetas, records.histories(dataset, users)):
        parts.append((value - dataset.items[item] @ theta, item, np.arange(len(item)) / max(len(item) - 1, 1)))
    return tuple(np.concatenate(column) for column in zip(*parts))


def normal_quantiles(values):
    """(standard normal quantiles, sorted standardised values), for a quantile plot."""
    values = as_floats("values", values, 1)
    if not np.ptp(values):
        raise ValueError(f"values are all {values[0]}: they cannot be standardised")
    values = np.sort((values - np.mean(values)) / np.std(values))
    return ndtri((np.arange(len(values)) + 0.5) / len(values)), values
