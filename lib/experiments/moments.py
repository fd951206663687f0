"""What is kept of many replications: sums in a fixed order, and the errors that follow from them.

A block of `streams.BLOCK` replications becomes a `Moments`, and blocks are added in pairs, pairs in pairs, and so
on, counted from block 0.  Chunks of 2^j blocks are nodes of that tree, so the total is the same bit for bit
whatever the chunks, and memory does not grow with the number of replications.
"""
from typing import NamedTuple

import numpy as np

from lib import streams
from lib.problem import Estimate

DRAWS = 2000            # resamples
ENOUGH = 10             # replications, in effect, that must make up a control variate


class Moments(NamedTuple):
    """Sums over replications of the rewards of P policies; m = 0 where every replication is a new user."""

    count: np.ndarray       # () replications
    total: np.ndarray       # (P,) sum of rewards
    cross: np.ndarray       # (P, P) sum of products of two policies' rewards
    visits: np.ndarray      # (m,) replications of each user
    by_user: np.ndarray     # (P, m) sum of rewards of each user


def block_moments(rewards, first, users):
    """Moments of one block: rewards (P, n) of replications `first` on, user r % users if users > 0."""
    columns = np.ascontiguousarray(rewards.T)
    who = (first + np.arange(len(columns))) % users if users else np.zeros(0, int)
    by_user = np.zeros((users, len(rewards)))
    np.add.at(by_user, who, columns[:len(who)])
    products = columns[:, :, None] * columns[:, None, :]           # summed row by row: the same on every machine
    return Moments(np.float64(len(columns)), columns.sum(axis=0), products.sum(axis=0),
                   np.bincount(who, minlength=users).astype(float), np.ascontiguousarray(by_user.T))


def append(stack, part):
    """`stack` (a tuple of (level, Moments)) with one more part: equal levels are added, as in a binary counter."""
    level = 0
    while stack and stack[-1][0] == level:
        part, stack, level = add(stack[-1][1], part), stack[:-1], level + 1
    return (*stack, (level, part))


def total(stack):
    """The sum of all parts appended so far."""
    result = stack[-1][1]
    for _, part in reversed(stack[:-1]):
        result = add(part, result)
    return result


def add(a, b):
    """The Moments of both."""
    return Moments(*(x + y for x, y in zip(a, b)))


def moments(rewards, first=0, users=0):
    """Moments of a chunk.

    Parameters
    ----------
    rewards : ndarray (P, n)
        Rewards of replications first, first + 1, ...; `first` is a multiple of streams.BLOCK.
    first : int
    users : int
        Number of real users whom the replications visit in turn; 0 where theta comes from the prior.

    Returns
    -------
    Moments

    Examples
    --------
    >>> moments(np.array([[1., 2., 3.], [1., 1., 1.]])).total
    array([6., 3.])
    """
    if first % streams.BLOCK:
        raise ValueError(f"first is {first}: chunks begin at a multiple of {streams.BLOCK}")
    stack = ()
    for at in range(0, rewards.shape[1], streams.BLOCK):
        stack = append(stack, block_moments(rewards[:, at:at + streams.BLOCK], first + at, users))
    return total(stack)


def with_control(rewards):
    """Rewards whose last row is a control variate, and below it its squares: what `controlled` needs the Moments of."""
    return np.vstack([rewards, rewards[-1:] ** 2])


def controlled(m):
    """Moments of the policies alone, less the multiple of a control variate of mean zero that leaves least variance.

    `m` is of rewards as `with_control` makes them.  Every sum is linear in rewards or a product of two, so that errors,
    differences and resampled users follow as from any Moments.  The multiple is fitted on the same sample: the covariance is
    raised by what that costs, as in `lib.estimate.controlled`.  A control of which a few replications make up nearly all, so that
    neither the multiple nor an error is known, is left alone: (sum c^2)^2 / sum c^4 is to be at least ENOUGH.

    Examples
    --------
    >>> rewards = np.array([[1., 2., 3., 6.], [-1., 0., 1., 0.]])
    >>> estimate(controlled(moments(with_control(np.tile(rewards, 64))))).mean
    array([3.])
    >>> estimate(controlled(moments(with_control(rewards[:, :2])))).mean            # too few
    array([1.5])
    """
    policies, fourth = len(m.total) - 2, m.cross[-1, -1]
    alone = np.eye(policies, len(m.total))
    df, C = m.count - max(len(m.visits), 1), covariance(m)
    enough = df >= ENOUGH and m.cross[-2, -2] ** 2 >= ENOUGH * fourth > 0
    if not enough or C[-2, -2] * m.count**2 <= 1e-12 * m.cross[-2, -2]:                 # or it does not vary beyond rounding
        return mixed(m, alone)
    alone[:, -2] = -C[:-2, -2] / C[-2, -2]
    raised = df / (df - 1) * (1 + means(m)[-2] ** 2 / (df * C[-2, -2]))
    found = mixed(m, alone)
    return found._replace(cross=explained(found) + raised * (found.cross - explained(found)))


def mixed(m, rows):
    """The Moments of other rewards, each a mixture of those of m: rows (Q, P)."""
    return Moments(m.count, rows @ m.total, rows @ m.cross @ rows.T, m.visits, rows @ m.by_user)


def estimate(m):
    """Mean of each policy and its Monte Carlo error, the users given: Estimate of two (P,) arrays.

    Every user counts the same, however many replications each had.
    """
    return Estimate(means(m), np.sqrt(covariance(m).diagonal()))


def means(m):
    """(P,) mean reward; over users of each user's mean, where there are users."""
    return user_means(m).sum(axis=1) / len(m.visits) if len(m.visits) else m.total / m.count


def user_means(m):
    """(P, users) mean reward of each user, or ValueError where one was not visited."""
    if not m.visits.all():
        raise ValueError(f"{int((m.visits == 0).sum())} of {len(m.visits)} users have no replication: "
                         f"give at least {len(m.visits) + 1}")
    return m.by_user / m.visits


def explained(m):
    """(P, P) what means make up of the sums of products: those of each user where there are users."""
    if len(m.visits):
        return (m.by_user[:, None, :] * user_means(m)[None, :, :]).sum(axis=2)
    return m.total[:, None] * m.total / m.count


def covariance(m):
    """(P, P) Monte Carlo covariance of the means: between replications, or within users where there are users."""
    users, centred = len(m.visits), m.cross - explained(m)
    if m.count < users + 2:
        raise ValueError(f"{int(m.count)} replications: an error needs at least {users + 2}")
    scale = (1 / m.visits).sum() / users**2 / (m.count - users) if users else 1 / m.count / (m.count - 1)
    result = (centred + centred.T) / 2 * scale
    np.fill_diagonal(result, np.maximum(result.diagonal(), 0))
    return result


def difference(m, a, b):
    """Paired difference of policies a and b, mean of a - mean of b, with its Monte Carlo error."""
    C, mean = covariance(m), means(m)
    return Estimate(mean[a] - mean[b], np.sqrt(np.maximum(C[a, a] + C[b, b] - 2 * C[a, b], 0)))


def bootstrap(m, seed):
    """(DRAWS, P) means over users drawn with replacement: the error that other users would bring."""
    users = len(m.visits)
    weights = streams.generator(seed, streams.Purpose.BOOTSTRAP).multinomial(users, np.full(users, 1 / users), size=DRAWS) / users
    return np.einsum("du,pu->dp", weights, user_means(m))


def needed(m, target, unit):
    """Replications, a multiple of `unit`, for every policy's Monte Carlo error to come below `target`.

    Examples
    --------
    >>> needed(moments(np.array([[0., 2., 0., 2.]])), .1, 128)
    256
    """
    worst = estimate(m).se.max()
    count = m.count * max(1.05 * (worst / target) ** 2, 1 + 1e-9) if worst > target else m.count
    return int(np.ceil(count / unit)) * unit
