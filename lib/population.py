"""What is learnt of all users from the feedback of those served so far.

Users are theta_u ~ N(mu, Sigma), independent.  Given mu and Sigma, a user's feedback on what was forwarded, rows X with noise variances
R, is N(X mu, X Sigma X' + R): the decisions depended on nothing but earlier feedback, which stands in the data, so they cancel from
every ratio of likelihoods (chapter "Beyond one user"; Rubin 1976).  All that matters of a user is

    gram = X' R^-1 X,    moment = X' R^-1 y.

Sigma known, mu ~ N(m, V): with A = (1 + gram Sigma)^-1 gram the belief about mu after one more user has the covariance
(V^-1 + A)^-1 = V (1 + A V)^-1 and moves by that times (1 + gram Sigma)^-1 (moment - gram m), which inverts neither V nor Sigma.
Both unknown: expectation-maximisation (Laird and Ware 1982) with m, V and a guess of Sigma that counts as some users.
"""
from typing import NamedTuple

import numpy as np

from lib.compiled import jit, put
from lib.posterior import Belief, as_feedback
from lib.problem import as_count, as_covariance, as_floats, as_scalar


class Users(NamedTuple):
    """What u users' feedback says, as `summary` has it for one."""

    gram: np.ndarray        # (u, k, k)
    moment: np.ndarray      # (u, k)


@jit
def pool(mu, V, Sigma, gram, moment):
    """The belief about the mean of all users after one more, in place: see `pooled`."""
    one = np.eye(len(mu))
    heard = np.linalg.inv(one + gram @ Sigma)
    after = V @ np.linalg.inv(one + heard @ gram @ V)
    put((after + after.T) / 2, V)
    mu += V @ (heard @ (moment - gram @ mu))


@jit
def climb(users, mu, Sigma, start, V, guess, weight):
    """One step of expectation-maximisation from (mu, Sigma), in place; returns the information of mu that users gave."""
    (count, k), inverse = users.moment.shape, np.linalg.inv(Sigma)
    mean, spread, seen = np.zeros(k), np.zeros((k, k)), 0
    thetas = np.empty((count, k))                   # of those who were heard
    for u in range(count):
        if np.trace(users.gram[u]) > 0.0:
            cov = np.linalg.inv(inverse + users.gram[u])
            put(mu + cov @ (users.moment[u] - users.gram[u] @ mu), thetas[seen])
            mean += thetas[seen]
            seen += 1
            spread += cov
    info = seen * inverse - inverse @ spread @ inverse
    if seen == 0:
        return info
    put(start + V @ (np.linalg.inv(V + Sigma / seen) @ (mean / seen - start)), mu)
    away = thetas[:seen] - mu
    put((spread + away.T @ away + weight * guess) / (seen + weight), Sigma)
    return info


def _checked_user(gram, moment, k):
    gram, moment = as_covariance("gram", gram, k), as_floats("moment", moment, 1)
    if moment.shape != (k,):
        raise ValueError(f"moment must have one element per feature, got {len(moment)} for {k}")
    return gram, moment


def summary(X, y, noise_var):
    """(gram, moment) of one user's feedback: X' R^-1 X and X' R^-1 y.

    Parameters
    ----------
    X, y : array-like (n, k), (n,)
        Forwarded items and their feedback.
    noise_var : array-like (n,) or float
        Noise variance of each row, positive.

    Returns
    -------
    gram, moment : ndarray (k, k), (k,)

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> summary([[1, 0], [1, 1]], [2, 3], 1)
    (array([[2., 1.],
           [1., 1.]]), array([5., 3.]))
    """
    X, y, noise_var = as_feedback(X, y, noise_var)
    weighted = X / noise_var[:, None]
    return weighted.T @ X, weighted.T @ y


def pooled(mu, V, Sigma, gram, moment):
    """The belief about the mean of all users after the feedback of one more, Sigma known.

    Parameters
    ----------
    mu, V : array-like (k,), (k, k)
        The belief before.
    Sigma : array-like (k, k)
        Covariance of users around their mean.
    gram, moment : array-like (k, k), (k,)
        The user's `summary`; zeros where nothing was forwarded, and then nothing is learnt.

    Returns
    -------
    Belief

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> pooled([0], [[1]], [[1]], [[1]], [3])         # one feedback of variance 1 + 1
    Belief(mu=array([1.]), Sigma=array([[0.66666667]]))
    """
    mu = as_floats("mu", mu, 1)
    V, Sigma = as_covariance("V", V, len(mu)), as_covariance("Sigma", Sigma, len(mu))
    gram, moment = _checked_user(gram, moment, len(mu))
    found = Belief(mu.copy(), V.copy())
    pool(found.mu, found.Sigma, Sigma, gram, moment)
    return found


def log_likelihood(users, mu, Sigma):
    """Log density of the users' feedback, up to what depends on neither mu nor Sigma.

    With G = gram, h = moment - gram mu:  sum over users of h' Sigma (1 + G Sigma)^-1 h / 2 - log det(1 + G Sigma) / 2
    + mu'moment - mu'G mu / 2.

    Parameters
    ----------
    users : Users
    mu, Sigma : array-like (k,), (k, k)

    Returns
    -------
    float

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> users = Users(np.ones((1, 1, 1)), np.full((1, 1), 3.0))
    >>> round(log_likelihood(users, [3], [[1]]) - log_likelihood(users, [0], [[1]]), 6)      # 9 / (2 (1 + 1))
    2.25
    """
    users, mu = _as_users(users), as_floats("mu", mu, 1)
    Sigma = as_covariance("Sigma", Sigma, users.moment.shape[1])
    if len(mu) != len(Sigma):
        raise ValueError(f"mu must have one element per feature, got {len(mu)} for {len(Sigma)}")
    inner = np.eye(len(mu)) + users.gram @ Sigma
    gap = users.moment - users.gram @ mu
    fitted = np.einsum("ui,ij,uj->u", gap, Sigma, np.linalg.solve(inner, gap[..., None])[..., 0])
    plain = 2 * users.moment @ mu - np.einsum("uij,i,j->u", users.gram, mu, mu)
    return float((fitted + plain - np.linalg.slogdet(inner)[1]).sum() / 2)


def _as_users(users):
    """`users` as arrays of one number of users and features, or ValueError."""
    if not isinstance(users, Users):
        raise ValueError(f"users is {str(users)[:60]!r}, no Users: use lib.population.Users")
    gram, moment = as_floats("gram of users", users.gram, 3), as_floats("moment of users", users.moment, 2)
    if gram.shape != moment.shape + moment.shape[1:]:
        raise ValueError(f"gram of users must have shape {moment.shape + moment.shape[1:]}, got {gram.shape}")
    return Users(gram, moment)


def estimate(users, start, V, guess, weight=1.0, steps=100):
    """Mean and covariance of all users from censored feedback, by expectation-maximisation.

    Climbs the likelihood times N(start, V) for the mean, and a factor that counts the guess of Sigma as `weight` users:
    det(Sigma)^(-weight/2) exp(-weight tr(Sigma^-1 guess) / 2).  Users without feedback say nothing.

    Parameters
    ----------
    users : Users
    start, V : array-like (k,), (k, k)
        What is believed of the mean beforehand.
    guess : array-like (k, k)
        Of Sigma, positive definite.
    weight : float
        How many users the guess counts for, positive.
    steps : int
        Of expectation-maximisation, from (start, guess).

    Returns
    -------
    Belief
        mu and Sigma of users, where the climb stopped.

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> users = Users(np.full((2, 1, 1), 1e6), np.array([[1e6], [3e6]]))         # two users, known well: 1 and 3
    >>> found = estimate(users, [0], [[1e6]], [[1]], 1e-6)
    >>> found.mu.round(3), found.Sigma.round(3)
    (array([2.]), array([[1.]]))
    """
    users, start = _as_users(users), as_floats("start", start, 1)
    k = users.moment.shape[1]
    if start.shape != (k,):
        raise ValueError(f"start must have one element per feature, got {len(start)} for {k}")
    V, guess = as_covariance("V", V, k), as_covariance("guess", guess, k)
    if np.linalg.eigvalsh(guess)[0] <= 0:
        raise ValueError(f"guess must be positive definite, its smallest eigenvalue is {np.linalg.eigvalsh(guess)[0]}")
    found = Belief(start.copy(), guess.copy())
    for _ in range(as_count("steps", steps)):
        climb(users, *found, start, V, guess, as_scalar("weight", weight, 0))
    return found
