"""What to be warned of before believing an analysis: where the data cannot support the answer.

Each check is a rule with its numbers in the text that it returns, or None where there is nothing to say.  The thresholds
are conventions; the text says what was found, so that a reader can disagree.
"""
from typing import NamedTuple

import numpy as np

from lib import datasets
from lib.datasets import priors

USERS, CONDITION, SKEW, KURTOSIS, DRIFT, STOPPED = 10, 1e4, 1.0, 2.0, 0.1, 0.2
LEVEL = 0.5                     # standard deviations of the ratings by which their level may be missed
BLOCK = 4096                    # items looked at at once


class Caution(NamedTuple):
    """A warning: a short name, and what was found and what it means."""

    name: str
    text: str


def few_users(prior):
    """Fewer than ten users a feature behind the prior."""
    users, k = len(prior.train), len(prior.mu)
    if users < USERS * k:
        return Caution("too few users", f"The prior rests on {users} users and has {k + k * (k + 1) // 2} numbers; "
                       f"at least {USERS * k} users, ten a feature, would make its spread trustworthy.")


def dropped_users(prior):
    """Most users left out."""
    kept, users = prior.counts["users_kept"], prior.counts["users"]
    if kept < users / 2:
        return Caution("most users are left out", f"{users - kept} of {users} users have too few ratings; the prior describes "
                       f"the other {kept}, who rate a lot and may differ from a new user.")


def not_converged(prior):
    """A fit that stopped before its end."""
    if prior.unconverged:
        return Caution("the prior has not converged", f"After {prior.counts['fit_steps']} steps the prior still moved in the "
                       f"preferences for {listed(prior.unconverged)}, and so may every number that follows. "
                       "Drop or merge these features, or use the least-squares prior.")


def not_told_apart(prior):
    """Features that the ratings say nothing about, or only together."""
    if prior.undetermined:
        found = "; ".join(listed(names) if len(names) > 1 else f"{names[0]} (in no rated item)" for names in prior.undetermined)
        return Caution("features are not told apart", f"The ratings cannot tell what each of these contributes: {found}. "
                       "Such preferences are set equal on average, as independent parts of a usual spread (empirical Bayes) or "
                       "as known (least squares): merge or drop the features.")


def level_missing(dataset, prior):
    """Ratings whose level no mixture of the features stands for, as where features are centred: by users, each counted once."""
    ratings, users = dataset.ratings, np.asarray(prior.train)
    owner = np.repeat(np.arange(len(ratings.start) - 1), np.diff(ratings.start))
    expected = (dataset.items @ prior.mu)[ratings.item]
    count = np.bincount(owner, minlength=len(ratings.start) - 1)[users]
    given, thought = (np.mean(np.bincount(owner, part, len(ratings.start) - 1)[users] / count) for part in (ratings.value, expected))
    if abs(given - thought) > LEVEL * ratings.value.std():
        return Caution("the level of ratings is missing", f"Users give {given:.3g} on average, the prior expects {thought:.3g} of the same "
                       "items: no mixture of the features stands for the level. Every policy then takes items for worse or better than "
                       "they are. Add a column that is 1 for every item to the table of items; a filter gets it with each vector.")


def listed(names):
    """Names in words: 'a, b and c'."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def ill_conditioned(prior, size=1.0):
    """A prior covariance that is singular, or nearly so, with features divided by their largest values `size`."""
    values = np.linalg.eigvalsh(prior.Sigma * np.multiply.outer(size, size))
    if values[0] * CONDITION < values[-1]:
        ratio = f"{values[-1] / values[0]:.2g}" if values[0] > 1e-15 * values[-1] else "infinite"
        return Caution("ill-conditioned prior", f"The prior covariance has the condition number {ratio}: some mixtures of "
                       "preferences are taken as known. Merge features that always come together.")


def wide_preferences(dataset, prior, features):
    """Preferences that spread beyond the range of all ratings, at the largest value of their feature: too rare to be learnt."""
    low, high = dataset.notes["rating_range"]
    sd = np.sqrt(np.diag(prior.Sigma))
    wide = np.flatnonzero(sd * priors.sizes(dataset) > high - low)
    if len(wide):
        found = ", ".join(f"{features[j]} ({sd[j]:.2g})" for j in wide)
        return Caution("exploding preferences", f"Ratings span {low:.10g} to {high:.10g}, but the prior spread is larger for {found}. "
                       "Such a feature is too rare: drop it, merge it, or use the empirical-Bayes prior.")


def odd_residuals(residual):
    """Residuals far from normal."""
    from scipy.stats import kurtosis, skew      # here alone: it would add half a second to every import of lib
    a, b = float(skew(residual)), float(kurtosis(residual))
    if abs(a) > SKEW or abs(b) > KURTOSIS:
        return Caution("residuals far from normal", f"Skewness {a:.2f}, excess kurtosis {b:.2f} (a normal has 0 and 0). Beliefs "
                       "are still right on average, but intervals and bonuses in standard deviations are not.")


def constant_noise(dataset, residual, item):
    """Noise that does not grow with the number of features, as the model has it."""
    count = np.count_nonzero(dataset.items, axis=1)[item]
    sizes = [i for i in np.unique(count) if (count == i).sum() >= 100]
    if len(sizes) > 1:
        spread = [residual[count == i].var() for i in (sizes[0], sizes[-1])]
        if spread[1] / spread[0] < (sizes[-1] / sizes[0]) ** .5:
            return Caution("noise does not grow with features", f"Residual variance is {spread[0]:.3g} for items of {sizes[0]} "
                           f"and {spread[1]:.3g} for items of {sizes[-1]} features; the model lets it grow in proportion.")


def moves(lengths, residual, place):
    """How far each user's mean residual moves from the first to the last third of the history, and its variance by chance.

    Users may drift apart, some up and some down, so that the mean move is zero and the moves are not.  By chance alone, with
    residuals in random order, a move has the variance s^2 (1/m + 1/m'), s^2 the residuals' sample variance and m, m' the
    lengths of the thirds; a least-squares fit makes it a little less, so a comparison with it errs towards no drift.

    Parameters
    ----------
    lengths : int array (u,)
        Residuals of each user, at least two.
    residual, place : arrays (r,)
        User after user in time order, see `lib.datasets.residuals`.

    Returns
    -------
    move, variance : arrays (u,)

    Examples
    --------
    >>> moves(np.array([4]), np.array([0., 1., 1., 2.]), np.array([0, 1/3, 2/3, 1]))
    (array([2.]), array([1.33333333]))
    """
    owner = np.repeat(np.arange(len(lengths)), lengths)
    mean = np.bincount(owner, residual) / lengths
    square = np.bincount(owner, (residual - mean[owner])**2) / (lengths - 1)
    parts = [(np.bincount(owner[part], residual[part], len(lengths)), np.bincount(owner[part], minlength=len(lengths)))
             for part in (place < 1 / 3, place > 2 / 3)]
    (first, m), (last, n) = parts
    return last / n - first / m, square * (1 / m + 1 / n)


def drift(dataset, users, residual, place, noise_sd):
    """Ratings that move over a user's history, all one way or each its own: last third against first third, users as units."""
    if dataset.ratings.time is None:
        return Caution("no times", "The ratings carry no times: they are taken in file order, and drift cannot be judged.")
    lengths = np.diff(dataset.ratings.start)[users]
    long = lengths > 1
    if long.sum() < 2:
        return None
    kept = np.repeat(long, lengths)
    move, chance = moves(lengths[long], residual[kept], place[kept])
    excess = move**2 - chance
    size = np.sqrt(max(excess.mean(), 0.))
    errors = [part.std(ddof=1) / np.sqrt(len(move)) for part in (move, excess)]
    together = abs(move.mean()) > max(3 * errors[0], DRIFT * noise_sd)
    if together or excess.mean() > max(3 * errors[1], (DRIFT * noise_sd)**2):
        weighted = np.average(move, weights=lengths[long])
        return Caution("drift over time", "From the first to the last third of the history a user's ratings move up or down, "
                       f"beyond chance by typically {size:.2f} ({size / noise_sd:.1f} noise standard deviations). The mean "
                       f"over users is {move.mean():+.3f} (standard error {errors[0]:.3f}), over ratings {weighted:+.3f}. The "
                       "model takes preferences as fixed: shorten the history, or expect old answers to mislead.")


def silent(problem, policy_name, theta, decisions):
    """A policy that stops for ever: at once, or after bad luck with users who like what comes.

    `theta` (R, k) and `decisions` (R, n) are those of simulated users.
    """
    n = decisions.shape[1]
    if not decisions.any():
        return Caution("nothing is ever forwarded", f"At cost {problem.cost:g} the prior is so low that {policy_name} forwards no "
                       "item. It will never see feedback and never change its mind. If the prior is too pessimistic for "
                       "your users, nothing will tell: forward some items at random, or lower the cost.")
    liked = sum((theta @ problem.items[a:a + BLOCK].T >= problem.cost) @ problem.probs[a:a + BLOCK]
                for a in range(0, len(problem.items), BLOCK))
    liking = liked >= .5
    share = 1 - decisions[liking, n // 2:].any(axis=1).mean() if liking.any() else 0.0
    if share > STOPPED:
        return Caution("streams fall silent", f"Of the simulated users who like at least half of the items, {100 * share:.0f} % are "
                       f"sent none of the last {n - n // 2} of {n}: {policy_name} stopped after bad answers, and a belief that "
                       "forwards nothing never changes again. With a prior that is too pessimistic this will hit more users.")


def data_cautions(dataset, prior, noise_sd):
    """The checks that need the data and the prior alone: a list of Caution.

    Parameters
    ----------
    dataset : Dataset
        With ratings.
    prior : Prior
    noise_sd : float
        Noise of a typical rating.

    Examples
    --------
    >>> from lib import datasets
    >>> data = datasets.ratings("data/sample/items.csv", "data/sample/ratings.csv")
    >>> fit = datasets.prior(data, holdout=0, min_ratings=1, method="empirical_bayes")
    >>> data_cautions(data, fit, 1.0)[0].name
    'too few users'
    """
    residual, item, place = datasets.residuals(dataset, prior.train)
    found = [few_users(prior), dropped_users(prior), not_converged(prior), not_told_apart(prior),
             level_missing(dataset, prior),
             ill_conditioned(prior, priors.sizes(dataset)),
             wide_preferences(dataset, prior, dataset.features), odd_residuals(residual),
             constant_noise(dataset, residual, item) if prior.noise == "features" else None, drift(dataset, prior.train, residual, place, noise_sd)]
    return [caution for caution in found if caution]
