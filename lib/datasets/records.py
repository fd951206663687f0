"""One shape for every data set: items and their distribution, users and what they rated.

Raw records arrive as three codes a rating (user, item, value) with a time; `assemble` keeps the
latest rating of each (user, item), drops what has no feature, and puts the rest in time order
within each user, in compressed rows: user u owns ratings start[u] to start[u + 1].
What is dropped on the way is counted in `notes`, nothing is dropped in silence.
"""
import collections
import itertools
from typing import NamedTuple

import numpy as np

from lib.problem import as_floats, as_made, as_numbers, as_positions

WIDE = 16               # features beyond which sums over ratings are matrix products
ROOM = 8_000_000        # numbers in the sums over ratings that are held at once


class Ratings(NamedTuple):
    """Ratings of u users in compressed rows, each user's in time order (file order where times tie)."""

    start: np.ndarray            # (u + 1,) user i owns the half-open range start[i] to start[i + 1]
    item: np.ndarray             # (r,) row of `items`
    value: np.ndarray            # (r,) the rating
    time: np.ndarray | None      # (r,) seconds since 1970 in UTC, None where the source has none


class Sums(NamedTuple):
    """What a linear regression needs of each of u users: sums over their ratings, weights w."""

    count: np.ndarray            # (u,) number of ratings
    gram: np.ndarray             # (u, k, k) sum of w x x'
    moment: np.ndarray           # (u, k) sum of w x y
    square: np.ndarray           # (u,) sum of w y^2


class Dataset(NamedTuple):
    """Items, their distribution, and the users' ratings or, where these may not be kept, their sums."""

    source: str                  # where it comes from
    features: tuple              # (k,) names
    items: np.ndarray            # (n, k) distinct feature vectors, none of them zero
    probs: np.ndarray            # (n,) the share of the catalogue that each stands for
    users: np.ndarray            # (u,) their ids, text
    ratings: Ratings | None      # the ratings in time order
    sums: Sums | None            # unweighted sums, only where ratings is None
    ridge: float                 # the ridge that `prior` adds unless told otherwise
    words: tuple                 # (k,) tuples of a topic's first words, empty where features are categories
    notes: dict                  # counts of what was read, dropped or flagged


def distinct(vectors):
    """Distinct non-zero rows of `vectors` (m, k), their shares, and each vector's row (-1: all zero).

    Every vector with a non-zero entry counts once: items are drawn uniformly over the catalogue,
    not by how often they were rated.

    Examples
    --------
    >>> distinct(np.array([[1., 0.], [0., 0.], [1., 0.], [0., 1.]]))[1:]
    (array([0.33333333, 0.66666667]), array([ 1, -1,  1,  0]))
    """
    some = vectors.any(axis=1)
    rows = np.full(len(vectors), -1)
    items, rows[some], counts = np.unique(vectors[some], axis=0, return_inverse=True, return_counts=True)
    return items, counts / counts.sum(), rows


def code_table():
    """A dict that gives each new id the next code, from 0.

    Examples
    --------
    >>> table = code_table()
    >>> [table[name] for name in ("a", "b", "a")]
    [0, 1, 0]
    """
    return collections.defaultdict(itertools.count().__next__)


def shares(flags):
    """`flags` (m, k) of zeros and ones with each non-zero row divided by its sum (paper, section IV-A)."""
    flags = as_floats("flags", flags, 2)
    total = flags.sum(axis=1, keepdims=True)
    return flags / np.where(total > 0, total, 1)


def time_order(user, time):
    """Positions sorted by user, then time, then place in the file; by user and place where time is None."""
    if time is None:
        return np.argsort(user, kind="stable")
    first, last = int(time.min(initial=0)), int(time.max(initial=0))
    span = last - first + 1                                  # of Python's integers, which do not overflow
    if (int(user.max(initial=0)) + 1) * span < 2**62:        # one key sorts three times as fast as two
        return np.argsort(user * np.int64(span) + (time - first), kind="stable")
    return np.lexsort((time, user))


def latest(user, item):
    """Mask of the last of the ratings of each (user, item), in the order given."""
    pair = user.astype(np.int64) * (int(item.max(initial=0)) + 1) + item
    order = np.argsort(pair, kind="stable")
    last = np.ones(len(pair), dtype=bool)
    last[order[:-1]] = np.diff(pair[order]) != 0
    return last


def assemble(user, item, value, time, rows, users, item_names):
    """Raw ratings in file order as Ratings, with counts of what was dropped.

    Parameters
    ----------
    user, item : int arrays (r,)
        Codes: positions in `users` and in `rows`; an item of -1 is not in the catalogue: dropped and counted.
    value : array (r,)
        The rating.
    time : int array (r,) or None
        Seconds since 1970 in UTC, or any other unit: it is used for the order and kept.
    rows : int array (m,)
        Row of the feature table of each item code, -1 where the item has no feature.
    users, item_names : sequences of str
        Ids, to word errors.

    Returns
    -------
    ratings, notes : Ratings, dict

    Raises
    ------
    ValueError
        A (user, item) rated twice without times.
    """
    order = time_order(user, time)
    order = order[item[order] >= 0]
    notes = {"ratings_read": len(user), "ratings_of_unknown_items": len(user) - len(order)}
    last = latest(user[order], item[order])
    if time is None and not last.all():
        i = order[np.argmin(last)]
        raise ValueError(f"user {users[user[i]]!r}, item {item_names[item[i]]!r} is rated more than once and there "
                         "are no times to tell which rating is the latest")
    place = rows[item[order[last]]]
    order = order[last][place >= 0]
    notes |= {"ratings_repeated": int((~last).sum()), "ratings_without_feature": int((place < 0).sum())}
    start = np.zeros(len(users) + 1, dtype=np.int64)
    np.cumsum(np.bincount(user[order], minlength=len(users)), out=start[1:])
    return Ratings(start, place[place >= 0].astype(np.int32), value[order].astype(float),
                   None if time is None else time[order]), notes


def flag(labels, categories):
    """(m, k) ones where a list of labels holds a category as a whole; ValueError where none ever does."""
    if isinstance(categories, str) or not hasattr(categories, "__len__"):
        raise ValueError(f"categories is {categories!r}: it must be a list of names")
    if not hasattr(labels, "__len__"):
        raise ValueError(f"labels is {labels!r}: it must be a list of lists of names")
    column = {name: j for j, name in enumerate(categories)}
    if len(column) < len(categories) or not column:
        raise ValueError(f"categories is {categories!r}: it must name one or more, each once")
    flags = np.zeros((len(labels), len(column)))
    for i, row in enumerate(labels):
        for name in row:
            if name in column:
                flags[i, column[name]] = 1
    for name, j in column.items():
        if not flags[:, j].any():
            raise ValueError(f"categories holds {name!r}: no item has that category")
    return flags


def by_category(source, labels, categories, notes, columns, users, item_names):
    """Items as shares of `categories` from their `labels`, and ratings from `columns` (see `assemble`)."""
    for name, part, least in (("columns", columns, 4), ("users", users, 1), ("item_names", item_names, 1)):
        if not hasattr(part, "__len__") or len(part) < least:
            raise ValueError(f"{name} is {part!r}: it must hold {least} or more")
    items, probs, rows = distinct(shares(flag(labels, categories)))
    kept, counts = assemble(*columns, rows, users, item_names)
    counts |= {"items_read": len(rows), "items_without_feature": int((rows < 0).sum())}
    return Dataset(source, tuple(categories), items, probs, users, kept, None, 0.0, (), notes | counts)


def as_dataset(dataset):
    """`dataset` where its items, ratings or sums are whole numbers and finite, or ValueError naming what is wrong.

    Examples
    --------
    >>> as_dataset("movielens")
    Traceback (most recent call last):
    ValueError: dataset is 'movielens', no Dataset: use lib.datasets
    """
    items = as_floats("items", as_made("dataset", dataset, Dataset, "lib.datasets").items, 2)
    if not -1e150 <= items.min() <= items.max() <= 1e150:
        raise ValueError(f"items runs from {items.min()} to {items.max()}: features must lie within 1e150 of 0")
    if dataset.ratings is None:
        for name, part in as_made("sums", dataset.sums, Sums, "lib.datasets")._asdict().items():
            as_numbers(f"{name} of sums", part)
        return dataset
    start, item, value, _ = as_made("ratings", dataset.ratings, Ratings, "lib.datasets")
    as_positions("start of ratings", start, len(value) + 1, 1)
    as_positions("item of ratings", item, len(items))
    as_numbers("value of ratings", value)
    return dataset


def sums(dataset, begin, end, weights):
    """Sums over the ratings begin[i] to end[i] - 1 of each user i, with a weight for each row of items (n,).

    Examples
    --------
    >>> r = Ratings(np.array([0, 2]), np.array([0, 1]), np.array([3., 5.]), None)
    >>> d = Dataset("", ("a", "b"), np.eye(2), np.array([.5, .5]), np.array(["u"]), r, None, 0., (), {})
    >>> sums(d, r.start[:-1], r.start[1:], np.ones(2)).moment
    array([[3., 5.]])
    """
    count = end - begin
    v, k = len(count), dataset.items.shape[1]
    if k > WIDE:
        return _wide_sums(dataset, begin, end, weights)
    owner = np.repeat(np.arange(v), count)
    chosen = np.arange(count.sum()) + np.repeat(begin - (np.cumsum(count) - count), count)
    item, value = dataset.ratings.item[chosen], dataset.ratings.value[chosen]
    weight = weights[item]
    gram, moment = np.zeros((v, k, k)), np.zeros((v, k))
    for i in range(k):
        moment[:, i] = np.bincount(owner, weight * value * dataset.items[item, i], minlength=v)
        for j in range(i + 1):
            product = weight * dataset.items[item, i] * dataset.items[item, j]
            gram[:, i, j] = gram[:, j, i] = np.bincount(owner, product, minlength=v)
    return Sums(count, gram, moment, np.bincount(owner, weight * value**2, minlength=v))


def _wide_sums(dataset, begin, end, weights):
    """`sums` by one matrix product a user: where features are many, a hundred times as fast, and equal up to rounding."""
    (v, k), root = (len(begin), dataset.items.shape[1]), np.sqrt(weights)
    gram, moment, square = np.empty((v, k, k)), np.empty((v, k)), np.empty(v)
    for u, (first, last) in enumerate(zip(begin, end)):
        item = dataset.ratings.item[first:last]
        x, y = dataset.items[item] * root[item, None], dataset.ratings.value[first:last] * root[item]
        gram[u], moment[u], square[u] = x.T @ x, y @ x, y @ y
    return Sums(end - begin, gram, moment, square)


def chunks(users, k):
    """`users` in parts whose sums over ratings fit into some 64 MB, for work that goes user by user.

    Examples
    --------
    >>> [len(part) for part in chunks(np.arange(10), 2)], [len(part) for part in chunks(np.arange(5), 2000)]
    ([10], [2, 2, 1])
    """
    size = max(ROOM // k**2, 1)
    return [users[first:first + size] for first in range(0, len(users), size)] or [users]


def thin(dataset, articles, seed=0):
    """`dataset` with `articles` of its items, drawn at random without replacement, and sums for ratings.

    The users' regressions still use every item that they rated; only the support of the stream is smaller,
    and each of its items is equally likely.  The order of the ratings is lost.

    Raises
    ------
    ValueError
        `articles` out of range, or items that differ in their number of features, which sums do not hold.
    """
    n = len(dataset.items)
    if np.ptp(np.count_nonzero(dataset.items, axis=1)):
        raise ValueError(f"{dataset.source}: items differ in their number of features, so sums over ratings "
                         "would not tell the noise level")
    if not 1 <= articles <= n:
        raise ValueError(f"articles is {articles}: it must lie in 1 to {n}")
    chosen = np.sort(np.random.default_rng(seed).choice(n, articles, replace=False, p=dataset.probs))
    kept = sums(dataset, dataset.ratings.start[:-1], dataset.ratings.start[1:], np.ones(n))
    return dataset._replace(items=dataset.items[chosen], probs=np.full(articles, 1 / articles), ratings=None,
                            sums=kept, notes=dataset.notes | {"items_sampled": articles})


def counts(dataset):
    """(u,) number of ratings of each user."""
    return dataset.sums.count if dataset.ratings is None else np.diff(dataset.ratings.start)


def histories(dataset, users):
    """The rated items of `users`, in time order: a list of (rows of items, ratings, times or None).

    Raises
    ------
    ValueError
        The data set keeps sums only.
    """
    if as_dataset(dataset).ratings is None:
        raise ValueError(f"the dataset {dataset.source} keeps sums over ratings only: there is no order to replay")
    users = as_positions("users", users, len(dataset.users))
    start, item, value, time = dataset.ratings
    spans = [slice(start[u], start[u + 1]) for u in users]
    return [(item[s], value[s], None if time is None else time[s]) for s in spans]
