"""From users' ratings to the prior N(mu, Sigma) of a new user, and the noise level.

The paper's rule (section IV-A): one linear regression a user, then the sample mean and sample
covariance of the coefficients.  A sample covariance also carries each regression's own error;
`method="empirical_bayes"` takes it out by maximum likelihood of the random-coefficient model
theta_u ~ N(mu, Sigma), y = x.theta_u + noise, fitted by expectation-maximisation
(Laird and Ware 1982), whose Sigma is a mean of positive semi-definite matrices.

The paper names no noise level for its real data.  Here it comes from the residuals of one
regression a user: with noise="features" each is divided by I(x), the number of non-zero features,
as the model has it (Var eps = I(x) noise_sd^2); with noise="constant" it is not.
"""
from typing import NamedTuple

import numpy as np

from lib.datasets import records


class Prior(NamedTuple):
    """The prior of a new user, and the users it was or was not made from."""

    mu: np.ndarray               # (k,)
    Sigma: np.ndarray            # (k, k)
    noise_sd: float              # reward units; of one non-zero feature, or of a rating: see noise
    noise: str                   # "features": Var eps = I(x) noise_sd^2, "constant": Var eps = noise_sd^2
    thetas_train: np.ndarray     # (a, k) coefficients of the users behind mu and Sigma
    thetas_held_out: np.ndarray  # (b, k) coefficients of the others
    train: np.ndarray            # (a,) their positions in dataset.users
    held_out: np.ndarray         # (b,)
    counts: dict                 # users kept and dropped, by reason


def weights(dataset, noise):
    """(n,) weight of a rating of each item: 1/I(x) for noise="features", 1 for noise="constant"."""
    if noise not in ("features", "constant"):
        raise ValueError(f"noise is {noise!r}: it must be 'features' or 'constant'")
    return 1 / np.count_nonzero(dataset.items, axis=1) if noise == "features" else np.ones(len(dataset.items))


def user_sums(dataset, users, noise="constant"):
    """Sums of `users`; where only sums are kept, all items must have the same number of features."""
    weight = weights(dataset, noise)
    if dataset.ratings is not None:
        start = dataset.ratings.start
        return records.sums(dataset, start[users], start[users + 1], weight)
    if np.ptp(weight):
        raise ValueError(f"noise is {noise!r}: {dataset.source} keeps unweighted sums only, and its items "
                         "differ in their number of features")
    count, *rest = (part[users] for part in dataset.sums)
    return records.Sums(count, *(weight[0] * part for part in rest))


def ranks(gram):
    """(u,) numerical ranks: eigenvalues above 1e-9 of the largest (singular values above 3e-5)."""
    values = np.linalg.eigvalsh(gram)
    return (values > 1e-9 * values[:, -1:]).sum(axis=1)


def coefficients(sums, ridge=0.0):
    """(u, k) least squares coefficients, (gram + ridge 1)^-1 moment; of least norm where singular."""
    k = sums.moment.shape[1]
    inverse = np.linalg.pinv(sums.gram + ridge * np.eye(k), rcond=1e-9, hermitian=True)
    return np.einsum("uij,uj->ui", inverse, sums.moment)


def residual_variance(sums):
    """Pooled weighted residual variance, degrees of freedom taken off: sum of squares / sum (count - rank)."""
    fitted = np.einsum("ui,ui->u", coefficients(sums), sums.moment)
    freedom = (sums.count - ranks(sums.gram)).sum()
    if freedom < 1:
        raise ValueError(f"the noise level cannot be estimated: {sums.count.sum()} ratings of "
                         f"{len(sums.count)} users leave no degree of freedom")
    return max(float((sums.square - fitted).sum()), 0.0) / freedom


def posteriors(sums, mu, Sigma, noise_var):
    """Means (u, k) and covariances (u, k, k) of theta given each user's weighted sums.

    With L L' = Sigma: covariance L (1 + L' gram L / noise_var)^-1 L', so Sigma may be singular.
    """
    values, vectors = np.linalg.eigh(Sigma)
    L = vectors * np.sqrt(np.clip(values, 0, None))
    inner = np.linalg.inv(np.eye(len(mu)) + L.T @ sums.gram @ L / noise_var)
    covs = L @ inner @ L.T
    gap = sums.moment - sums.gram @ mu
    return mu + np.einsum("uij,uj->ui", covs, gap) / noise_var, covs


def theta_draws(dataset, prior, users, seed=0):
    """(v, k) one draw of theta for each of `users` from its posterior given the user's own ratings.

    Least squares coefficients spread more than the users' theta do, posterior means less; such draws, under
    the empirical-Bayes prior, as much.

    Examples
    --------
    >>> from lib import datasets
    >>> data = datasets.movielens()
    >>> fit = prior(data, method="empirical_bayes")
    >>> theta_draws(data, fit, fit.held_out).shape
    (104, 6)
    """
    means, covs = posteriors(user_sums(dataset, users, prior.noise), prior.mu, prior.Sigma, prior.noise_sd**2)
    values, vectors = np.linalg.eigh(covs)
    normal = np.random.default_rng(seed).standard_normal(means.shape)
    return means + np.einsum("uij,uj->ui", vectors, np.sqrt(np.clip(values, 0, None)) * normal)


def empirical_bayes(sums, iterations=2000, tolerance=1e-6):
    """Maximum-likelihood (mu, Sigma, noise_var, steps) of the random-coefficient model, by EM.

    Parameters
    ----------
    sums : Sums
        Weighted sums of u users; none needs full rank.
    iterations, tolerance : int, float
        Stops when no entry of mu or Sigma moves by more than tolerance times the prior's scale.
    """
    thetas = coefficients(sums, ridge=1.0)
    mu, Sigma = thetas.mean(axis=0), np.cov(thetas.T, ddof=0) + 1e-3 * np.eye(thetas.shape[1])
    noise_var = residual_variance(sums)
    if noise_var <= 1e-12 * sums.square.sum() / sums.count.sum():
        raise ValueError("empirical Bayes needs noise: every rating is an exact linear function of its item")
    for step in range(1, iterations + 1):
        means, covs = posteriors(sums, mu, Sigma, noise_var)
        old, scale = (mu, Sigma), np.abs(Sigma).max()
        mu = means.mean(axis=0)
        Sigma = covs.mean(axis=0) + (means - mu).T @ (means - mu) / len(means)
        misfit = sums.square - 2 * np.einsum("ui,ui->u", means, sums.moment)
        misfit += np.einsum("uij,uij->u", sums.gram, covs + means[:, :, None] * means[:, None, :])
        noise_var = misfit.sum() / sums.count.sum()
        if np.abs(Sigma - old[1]).max() < tolerance * scale and np.abs(mu - old[0]).max() < tolerance * scale**.5:
            break
    return mu, (Sigma + Sigma.T) / 2, float(noise_var), step


def eligible(dataset, min_ratings, keep_deficient):
    """Positions of the users that the regression rule keeps, and counts of the others by reason."""
    count = records.counts(dataset)
    enough = np.flatnonzero(count >= max(min_ratings, 1))
    full = ranks(user_sums(dataset, enough).gram) == dataset.items.shape[1] if len(enough) else enough > 0
    kept = enough if keep_deficient else enough[full]
    notes = {"users": len(count), "too_few_ratings": len(count) - len(enough),
             "rank_deficient": int((~full).sum()), "rank_deficient_kept": bool(keep_deficient),
             "most_ratings": int(count.max(initial=0)), "users_kept": len(kept), "ratings_kept": int(count[kept].sum())}
    return kept, notes


def split(users, holdout, seed):
    """`users` split at random into (train, held out), both sorted; `holdout` is the share held out."""
    if not 0 <= holdout < 1:
        raise ValueError(f"holdout is {holdout}: it must lie in [0, 1)")
    shuffled = np.random.default_rng(seed).permutation(users)
    cut = round(holdout * len(users))
    return np.sort(shuffled[cut:]), np.sort(shuffled[:cut])


def prior(dataset, holdout=0.25, seed=0, method="least_squares", min_ratings=50, ridge=None, noise="features"):
    """The prior of a new user from a share of the users; the others are held out (paper, section IV-A).

    Parameters
    ----------
    dataset : Dataset
    holdout, seed : float in [0, 1), int
        Share of the users held out, and the seed that picks them; neither mu, Sigma nor noise_sd sees them.
    method : str
        "least_squares": the paper's rule, sample mean and sample covariance of the coefficients.
        "empirical_bayes": maximum likelihood of the random-coefficient model, and thetas are posterior means.
    min_ratings : int
        Users with fewer ratings are dropped and counted.
    ridge : float or None
        Added to the diagonal of each user's sum of x x'; None takes dataset.ridge.  Without a ridge, users
        whose items span fewer than k dimensions are dropped and counted; with one, or by empirical Bayes,
        they are kept and counted.
    noise : str
        "features": Var eps = I(x) noise_sd^2; "constant": Var eps = noise_sd^2.

    Returns
    -------
    Prior

    Raises
    ------
    ValueError
        An argument out of range, or fewer than two users left: the message says what there was.

    Examples
    --------
    >>> from lib import datasets
    >>> prior(datasets.movielens(), holdout=0).mu.round(1)
    array([3.9, 3.5, 3.4, 3.7, 3.7, 3.6])
    """
    if method not in ("least_squares", "empirical_bayes"):
        raise ValueError(f"method is {method!r}: it must be 'least_squares' or 'empirical_bayes'")
    ridge = dataset.ridge if ridge is None else ridge
    if not 0 <= ridge < np.inf:
        raise ValueError(f"ridge is {ridge}: it must be finite and nonnegative")
    kept, counts = eligible(dataset, min_ratings, ridge > 0 or method == "empirical_bayes")
    train, held_out = split(kept, holdout, seed)
    if len(train) < 2:
        raise ValueError(f"{len(train)} users are left to make a prior from, two are needed: min_ratings is {min_ratings}, {counts}")
    counts = counts | {"train": len(train), "held_out": len(held_out)}
    scaled = user_sums(dataset, train, noise)
    if method == "empirical_bayes":
        mu, Sigma, noise_var, counts["em_steps"] = empirical_bayes(scaled)
        thetas = [posteriors(user_sums(dataset, part, noise), mu, Sigma, noise_var)[0] for part in (train, held_out)]
    else:
        thetas = [coefficients(user_sums(dataset, part), ridge) for part in (train, held_out)]
        mu, Sigma, noise_var = thetas[0].mean(axis=0), np.cov(thetas[0].T), residual_variance(scaled)
    return Prior(mu, Sigma, noise_var**.5, noise, *thetas, train, held_out, counts)
