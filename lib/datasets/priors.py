"""From users' ratings to the prior N(mu, Sigma) of a new user, and the noise level.

The paper's rule (section IV-A): one linear regression a user, then the sample mean and sample
covariance of the coefficients.  A sample covariance also carries each regression's own error;
`method="empirical_bayes"` takes it out by maximum likelihood of the random-coefficient model
theta_u ~ N(mu, Sigma), y = x.theta_u + noise (Laird and Ware 1982).  Mean and noise are profiled out,
and the likelihood is climbed over a factor of Sigma / noise variance (Bates, Maechler, Bolker and
Walker 2015, "Fitting linear mixed-effects models using lme4"): Sigma is positive semi-definite, and
may be singular, where maximum likelihood often puts it.

The paper names no noise level for its real data.  Here it comes from the residuals of one
regression a user: with noise="features" each is divided by I(x), the number of non-zero features,
as the model has it (Var eps = I(x) noise_sd^2); with noise="constant" it is not.

Units.  Features are divided by their largest absolute value, and one theta fitted to all ratings is taken off
the ratings, before anything is compared with a threshold: another unit of a feature or of the ratings
changes mu, Sigma and noise_sd by that unit alone, and ratings far from 0 lose no digits.
"""
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.csgraph import connected_components
from threadpoolctl import threadpool_limits

from lib.datasets import records
from lib.problem import as_choice, as_count, as_covariance, as_floats, as_made, as_numbers, as_positions, as_scalar

CUT = 1e-9              # share of the largest eigenvalue below which a sum of x x' is singular in a direction
EFFORT = 100_000_000    # users times k^3 behind an empirical-Bayes fit, at most: 800 users of 50 features
STALLED = 1e-6          # share of the spreads by which a covariance may still move when a fit counts as converged


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
    unconverged: tuple = ()      # names of the features whose spread still moved when the iteration stopped
    undetermined: tuple = ()     # tuples of names: features that the ratings do not tell apart, or say nothing of


def as_prior(prior, dataset):
    """`prior` where it is a Prior over the features of `dataset`, or ValueError naming what is wrong."""
    as_made("prior", prior, Prior, "lib.datasets.prior")
    k = dataset.items.shape[1]
    mu = as_floats("mu", prior.mu, 1)
    if mu.shape != (k,):
        raise ValueError(f"mu of the prior must have one element per feature, got {len(mu)} for {k}")
    as_choice("noise", prior.noise, ("features", "constant"))
    return prior._replace(mu=mu, Sigma=as_covariance("Sigma", prior.Sigma, k), noise_sd=as_scalar("noise_sd", prior.noise_sd, 0))


def weights(dataset, noise):
    """(n,) weight of a rating of each item: 1/I(x) for noise="features", 1 for noise="constant"."""
    as_choice("noise", noise, ("features", "constant"))
    return 1 / np.count_nonzero(dataset.items, axis=1) if noise == "features" else np.ones(len(dataset.items))


def sizes(dataset):
    """(k,) the largest absolute value of each feature over the items, 1 for a feature that no item has."""
    largest = np.maximum(dataset.items.max(axis=0), -dataset.items.min(axis=0))
    return np.where(largest > 0, largest, 1.0)


def rescaled(dataset, size):
    """`dataset` with features divided by `size` (k,): theta is then in rating units."""
    kept = dataset.sums
    if kept is not None:
        kept = kept._replace(gram=kept.gram / np.outer(size, size), moment=kept.moment / size)
    return dataset._replace(items=dataset.items / size, sums=kept)


def less(dataset, theta):
    """`dataset` with x.theta taken off every rating, so that sums of squares keep their digits."""
    if dataset.ratings is not None:
        value = dataset.ratings.value - (dataset.items @ theta)[dataset.ratings.item]
        return dataset._replace(ratings=dataset.ratings._replace(value=value))
    count, gram, moment, square = dataset.sums
    left = moment - gram @ theta
    return dataset._replace(sums=records.Sums(count, gram, left, square - (moment + left) @ theta))


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
    return (values > CUT * values[:, -1:]).sum(axis=1)


def coefficients(sums, ridge=0.0, about=0.0):
    """(u, k) least squares coefficients, (gram + ridge 1)^-1 moment; of least norm where singular.

    `ridge` is a number or one a feature.  Where x.about was taken off the ratings, the ridge still draws
    about + coefficients to 0.
    """
    extra = np.broadcast_to(ridge, sums.moment.shape[1:])
    inverse = np.linalg.pinv(sums.gram + np.diag(extra), rcond=CUT, hermitian=True)
    return np.einsum("uij,uj->ui", inverse, sums.moment - extra * about)


def common(sums):
    """(k,) one theta for all users by least squares; the nearest to equal preferences where that leaves a choice."""
    gram, moment = sums.gram.sum(axis=0), sums.moment.sum(axis=0)
    total = gram.sum()                          # 0 where the features of every item add up to 0
    equal = np.full(len(moment), moment.sum() / total if total > CUT * np.trace(gram) else 0.0)
    return equal + np.linalg.pinv(gram, rcond=CUT, hermitian=True) @ (moment - gram @ equal)


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
    sd = np.sqrt(np.diag(Sigma))                # eigenvalues of the correlations: features may differ in unit
    size = np.where(sd > 0, sd, 1.0)
    values, vectors = np.linalg.eigh(Sigma / np.outer(size, size))
    L = size[:, None] * vectors * np.sqrt(np.clip(values, 0, None))
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
    dataset = records.as_dataset(dataset)
    prior, users = as_prior(prior, dataset), as_positions("users", users, len(dataset.users))
    as_count("seed", seed, 0)
    means, covs = posteriors(user_sums(dataset, users, prior.noise), prior.mu, prior.Sigma, prior.noise_sd**2)
    size = sizes(dataset)
    values, vectors = np.linalg.eigh(covs * np.outer(size, size))
    normal = np.random.default_rng(seed).standard_normal(means.shape)
    return means + np.einsum("uij,uj->ui", vectors, np.sqrt(np.clip(values, 0, None)) * normal) / size


class Fit(NamedTuple):
    """A maximum of the likelihood, and how far the search was from it when it stopped."""

    mu: np.ndarray        # (k,)
    Sigma: np.ndarray     # (k, k)
    noise_var: float
    steps: int
    moved: np.ndarray     # (k,) see `movement`


def directions(gram):
    """Directions of theta that the pooled ratings determine, and those that they say nothing of.

    Parameters
    ----------
    gram : array (u, k, k)
        Users' sums of x x', features of like size.

    Returns
    -------
    seen : array (k, r)
        theta = seen z, such that the users' sums of x x' add up to the identity in z.
    unseen : array (k, k - r)
        Orthonormal; no rated item has a component along them.
    """
    values, vectors = np.linalg.eigh(gram.sum(axis=0))
    kept = values > CUT * values[-1]
    return vectors[:, kept] / np.sqrt(values[kept]), vectors[:, ~kept]


def groups(unseen, names):
    """Tuples of the names of features that directions (k, m) tie together, such as two equal columns."""
    ties = np.abs(unseen @ unseen.T) > 1e-4
    label = connected_components(ties, directed=False)[1]
    return tuple(tuple(name for name, at in zip(names, label) if at == n) for n in np.unique(label[ties.diagonal()]))


def profile(factor, sums):
    """Minus the log likelihood at the best mean and noise, and what goes with it.

    With Sigma = noise_var factor factor', user u's ratings have the covariance noise_var (1 + Z Z'), Z' Z =
    factor' gram factor, so that every sum over ratings is one over users' matrices (k, k).

    Returns
    -------
    minus_log, slope, mean, noise_var : float, (k, k), (k,), float
        `slope` is the derivative by `factor`; additive constants are left out.
    """
    gram, moment, k = sums.gram, sums.moment, len(factor)
    right = (gram.reshape(-1, k) @ factor).reshape(gram.shape)
    inner = np.eye(k) + factor.T @ right
    inverse = np.linalg.inv(inner)
    gain = right @ inverse
    info = (gram - gain @ right.transpose(0, 2, 1)).sum(axis=0)
    mean = np.linalg.solve(info, (moment - np.einsum("uij,uj->ui", gain, moment @ factor)).sum(axis=0))
    gap = moment - gram @ mean
    turned = gap @ factor
    fitted = np.einsum("uij,uj->ui", inverse, turned)
    square = sums.square.sum() - ((moment + gap) @ mean).sum() - (turned * fitted).sum()
    score = gap - np.einsum("uij,uj->ui", right, fitted)
    noise_var = square / sums.count.sum()
    diagonal = np.diagonal(np.linalg.cholesky(inner), axis1=1, axis2=2)
    minus_log = np.log(diagonal).sum() + sums.count.sum() * np.log(noise_var) / 2
    return minus_log, gain.sum(axis=0) - score.T @ (score @ factor) / noise_var, mean, noise_var


def movement(factor, slope, users):
    """(k,) how far one more step of expectation-maximisation would move any covariance of each feature.

    In shares of the product of the two spreads.  `factor` (k, r) maps to features, `slope` (r, r) is the
    factor' times derivative there: the step is Sigma - factor slope factor' noise_var / users.
    """
    length = np.linalg.norm(factor, axis=1, keepdims=True)
    unit = np.divide(factor, length, out=np.zeros_like(factor), where=length > 0)
    return np.abs(unit @ slope @ unit.T).max(axis=1) / users


def empirical_bayes(sums, iterations=2000):
    """Maximum likelihood of the random-coefficient model, by a quasi-Newton method on a factor of Sigma.

    A direction that no rating determines (see `directions`) keeps the mean 0 and gets the mean variance of the
    others, independent of them: the ratings say nothing about it, and a prior that takes it as known would.

    Parameters
    ----------
    sums : Sums
        Weighted sums of u users, features of like size; none needs full rank.
    iterations : int
        Most steps; `movement` says what is left.

    Returns
    -------
    Fit

    Raises
    ------
    ValueError
        When the ratings leave no noise.
    """
    if residual_variance(sums) <= 1e-12 * sums.square.sum() / sums.count.sum():
        raise ValueError("empirical Bayes needs noise: every rating is an exact linear function of its item")
    seen, unseen = directions(sums.gram)
    seen, users, r = seen * np.sqrt(sums.count.sum()), len(sums.count), seen.shape[1]
    spread = np.sqrt(sums.square.sum() / sums.count.sum())
    turned = sums._replace(gram=seen.T @ sums.gram @ seen, moment=sums.moment @ seen / spread, square=sums.square / spread**2)

    def climb(flat):
        minus_log, slope = profile(flat.reshape(r, r), turned)[:2]
        return minus_log, slope.ravel()

    start = np.eye(r) / np.sqrt(r)              # preferences and noise move a typical rating equally
    with threadpool_limits(1):                  # many small matrices: a second thread costs more than it gives
        found = minimize(climb, start.ravel(), jac=True, method="L-BFGS-B", options={
            "maxiter": iterations, "maxfun": 20 * iterations, "maxcor": 20, "ftol": 0, "gtol": STALLED * users / 100})
    factor = found.x.reshape(r, r)
    _, slope, mean, noise_var = profile(factor, turned)
    left = seen @ factor
    Sigma = noise_var * (left @ left.T)
    Sigma = (Sigma + np.trace(Sigma) / r * (unseen @ unseen.T)) * spread**2
    return Fit(seen @ mean * spread, (Sigma + Sigma.T) / 2, float(noise_var * spread**2), int(found.nit),
               movement(left, factor.T @ slope, users))


def eligible(dataset, min_ratings, keep_deficient):
    """Positions of the users that the regression rule keeps, and counts of the others by reason."""
    count = records.counts(dataset)
    enough, k = np.flatnonzero(count >= max(min_ratings, 1)), dataset.items.shape[1]
    full = count[enough] >= k                   # fewer ratings than features cannot have full rank
    full[full] = np.concatenate([ranks(user_sums(dataset, part).gram) == k for part in records.chunks(enough[full], k)]) if full.any() else True
    kept = enough if keep_deficient else enough[full]
    notes = {"users": len(count), "too_few_ratings": len(count) - len(enough),
             "rank_deficient": int((~full).sum()), "rank_deficient_kept": bool(keep_deficient),
             "most_ratings": int(count.max(initial=0)), "users_kept": len(kept), "ratings_kept": int(count[kept].sum())}
    return kept, notes


def fewer(users, k, seed):
    """At most EFFORT / k^3 of `users`, a random sample: each step of the fit costs k^3 a user."""
    most = max(EFFORT // k**3, 2)
    return users if len(users) <= most else np.sort(np.random.default_rng((seed, k)).choice(users, most, replace=False))


def posterior_means(dataset, users, noise, mu, Sigma, noise_var):
    """(u, k) the means of `posteriors`, part by part."""
    return np.concatenate([posteriors(user_sums(dataset, part, noise), mu, Sigma, noise_var)[0]
                           for part in records.chunks(users, len(mu))])


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
    ridge : float, array (k,) or None
        Added to the diagonal of each user's sum of x x', so in the features' unit squared; None takes
        dataset.ridge.  Without a ridge, users whose items span fewer than k dimensions are dropped and counted;
        with one, or by empirical Bayes, they are kept and counted.
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
    dataset = records.as_dataset(dataset)
    as_choice("method", method, ("least_squares", "empirical_bayes"))
    as_choice("noise", noise, ("features", "constant"))
    as_count("seed", seed, 0)
    as_scalar("holdout", holdout)
    as_count("min_ratings", min_ratings, 0)
    ridge = as_numbers("ridge", dataset.ridge if ridge is None else ridge)
    if not (np.isfinite(ridge).all() and (ridge >= 0).all() and ridge.shape in ((), (dataset.items.shape[1],))):
        raise ValueError(f"ridge is {ridge}: it must be finite and nonnegative, one number or one a feature")
    size = sizes(dataset)
    scaled = rescaled(dataset, size)
    kept, counts = eligible(scaled, min_ratings, ridge.all() or method == "empirical_bayes")
    train, held_out = split(kept, holdout, seed)
    if len(train) < 2:
        tied = groups(directions(user_sums(scaled, np.arange(counts["users"])).gram)[1], dataset.features)
        raise ValueError(f"{len(train)} users are left to make a prior from, two are needed: min_ratings is {min_ratings}, {counts}"
                         + "".join(f"; no rating tells {' from '.join(names)}" for names in tied if len(names) > 1)
                         + "".join(f"; no rated item has {names[0]}" for names in tied if len(names) == 1))
    counts = counts | {"train": len(train), "held_out": len(held_out)}
    fitted = fewer(train, len(size), seed) if method == "empirical_bayes" else train
    if len(fitted) < len(train):
        counts["users_spared_the_fit"], train = len(train) - len(fitted), fitted
    about = common(user_sums(scaled, train))
    centred = less(scaled, about)
    sums, stalled = user_sums(centred, train, noise), ()
    if method == "empirical_bayes":
        mu, Sigma, noise_var, counts["fit_steps"], moved = empirical_bayes(sums)
        thetas = [posterior_means(centred, part, noise, mu, Sigma, noise_var) for part in (train, held_out)]
        stalled = tuple(name for name, move in zip(dataset.features, moved) if not move <= STALLED)
    else:
        thetas = [coefficients(user_sums(centred, part), ridge / size**2, about) for part in (train, held_out)]
        mu, Sigma, noise_var = thetas[0].mean(axis=0), np.cov(thetas[0].T), residual_variance(sums)
    return Prior((about + mu) / size, Sigma / np.outer(size, size), noise_var**.5, noise,
                 *((about + part) / size for part in thetas), train, held_out, counts, stalled,
                 groups(directions(sums.gram)[1], dataset.features))
