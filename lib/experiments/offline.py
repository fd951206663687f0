"""Policies replayed on what users really rated, in the order in which they rated it.

Feedback is not simulated.  A policy meets a user's rated items one by one; where it forwards, it earns the real
rating less the cost and learns from it, where it does not, it sees nothing.  Every policy starts from the same prior.
What this cannot show: users chose the items that they rated, so the stream is theirs and not a random one, and what
a policy would have found among unrated items is unknown.
"""
import numpy as np

from lib import simulate, streams
from lib.datasets import histories
from lib.datasets.records import as_dataset
from lib.estimate import sample_mean
from lib.problem import as_count, as_floats, as_positions, checked


def replay(problem, dataset, users, policies, horizon=100, shuffle=None, seed=0):
    """Discounted reward of each policy on the real ratings of each user.

    Parameters
    ----------
    problem : Problem
        Its items are the data set's; mu, Sigma and noise_sd are what the policies believe.
    dataset : Dataset
        With ratings.
    users : int array (v,)
        Positions in dataset.users: people from whom the prior was not made.
    policies : sequence of Policy
    horizon : int
        A user's first so many ratings are used, all where there are fewer.
    shuffle : int or None
        None keeps the order in time; a number draws each user's first `horizon` ratings in an order at random,
        the same for every policy, another one for another number.
    seed : int or sequence of int
        For the order and for Thompson sampling.

    Returns
    -------
    rewards : ndarray (P, v)
        sum over n of gamma^n U_n (rating_n - cost).
    decisions : ndarray (P, v, horizon) of bool
        What was forwarded; False after a user's last rating.

    Raises
    ------
    ValueError
        The data set keeps sums only, its items are not the problem's, or naming the argument and the value that is wrong.

    Examples
    --------
    >>> from lib import datasets
    >>> from lib.policies import exploit
    >>> from lib.problem import make_problem
    >>> data = datasets.movielens()
    >>> fit = datasets.prior(data)
    >>> problem = make_problem(data.items, data.probs, fit.mu, fit.Sigma, fit.noise_sd, 3.5, .9)
    >>> replay(problem, data, fit.held_out, [exploit()])[0].shape
    (1, 104)
    """
    problem, dataset = checked(problem), as_dataset(dataset)
    if not np.array_equal(problem.items, dataset.items):
        raise ValueError(f"problem.items must be the items of {dataset.source}: ratings name items by their row")
    users, horizon = as_positions("users", users, len(dataset.users), 1), as_count("horizon", horizon)
    shuffle = None if shuffle is None else as_count("shuffle", shuffle, 0)
    past = histories(dataset, users)
    items, feedback, pay = (np.zeros((len(past), horizon), kind) for kind in (np.int64, float, float))
    discount = problem.gamma ** np.arange(1, horizon + 1)
    for u, (item, value, _) in enumerate(past):
        kept = _order(len(item), shuffle, seed, users[u])[:horizon]
        items[u, :len(kept)], feedback[u, :len(kept)] = item[kept], value[kept]
        pay[u, :len(kept)] = discount[:len(kept)] * (value[kept] - problem.cost)
    normals = streams.generator(seed, streams.Purpose.REPLAY_THOMPSON).standard_normal(items.shape)
    rewards, decisions = simulate.play(problem, policies, simulate.Stream(items, feedback, pay, normals))
    lengths = np.array([len(item) for item, *_ in past])
    return rewards, decisions & (np.arange(horizon) < lengths[:, None])


def _order(count, shuffle, seed, user):
    """Positions of a user's ratings in the order in which they are met."""
    if shuffle is None:
        return np.arange(count)
    return streams.generator(seed, streams.Purpose.REPLAY_ORDER, int(user), int(shuffle)).permutation(count)


def over_users(rewards, reference):
    """Mean over users of each policy's reward minus that of policy number `reference`, paired.

    Parameters
    ----------
    rewards : ndarray (P, v)
    reference : int

    Returns
    -------
    Estimate of two (P,) arrays
        The errors are those that other users would bring.

    Examples
    --------
    >>> over_users(np.array([[1., 3.], [0., 0.]]), 1).mean
    array([2., 0.])
    """
    rewards = as_floats("rewards", rewards, 2)
    reference = as_count("reference", reference, 0, len(rewards) - 1)
    return sample_mean(rewards - rewards[reference])
