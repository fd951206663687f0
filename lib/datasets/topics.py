"""Documents as shares of topics, and readers as regressions of read / not read on topics.

Topics come from latent Dirichlet allocation (paper, section IV-B; ten topics), seeded and on one
thread.  Shares are stored in steps of 1/10000, at least one step each, so that a row sums to 1
exactly and no topic is absent: I(x) = k for every document.  A document without a word has no
topics: it is left out and counted.

A library holds only what was read.  What was not is sampled: for each reader, `ratio` times as
many documents as the library holds, uniformly without replacement from all others.  The draw
depends on (seed, reader) alone, and the draw at a smaller ratio begins the draw at a larger one.
"""
import numpy as np

from lib.datasets.records import Sums

STEPS = 10_000


def learn_topics(counts, k=10, seed=0, passes=10):
    """Shares of k topics in each document, and each topic's words by weight.

    Parameters
    ----------
    counts : sparse (d, v)
        How often document i holds word j.
    k, seed, passes : int
        Number of topics, random seed, passes over the documents.

    Returns
    -------
    rows : uint16 (d, k)
        Steps of 1/10000; zeros for a document without words.
    order : int (k, v)
        Words of each topic, the most frequent first.
    """
    from sklearn.decomposition import LatentDirichletAllocation
    from threadpoolctl import threadpool_limits
    batch = int(np.clip(counts.shape[0] // 50, 64, 512))       # about fifty updates in each pass
    with threadpool_limits(1):
        model = LatentDirichletAllocation(k, learning_method="online", batch_size=batch, max_iter=passes,
                                          random_state=seed)
        shares = model.fit_transform(counts)
    rows = steps(shares)
    rows[np.asarray(counts.sum(axis=1)).ravel() == 0] = 0
    return rows, np.argsort(-model.components_, axis=1, kind="stable")


def steps(shares):
    """`shares` (d, k), rows summing to 1, in whole steps of 1/10000 by largest remainder, at least 1 each.

    Examples
    --------
    >>> steps(np.array([[1/3, 2/3, 0.]]))
    array([[3333, 6666,    1]], dtype=uint16)
    """
    exact = shares * (STEPS - shares.shape[1]) + 1
    rows = np.floor(exact)
    missing = STEPS - rows.sum(axis=1, keepdims=True)
    place = np.argsort(np.argsort(rows - exact, axis=1, kind="stable"), axis=1, kind="stable")
    return (rows + (place < missing)).astype(np.uint16)


def labels(words):
    """(k,) feature names: the first three words of each topic."""
    return tuple(", ".join(row[:3]) for row in words)


def checked(rows):
    """Topic rows that sum to 1 within 1e-6, renormalised, and a mask (d,) of the rows that do not.

    A row of zeros, a negative or missing share, or a sum such as 0.89 is flagged, never repaired.

    Examples
    --------
    >>> checked(np.array([[.5, .5], [0, 0], [.5, .39]]))[1]
    array([False,  True,  True])
    """
    rows = np.asarray(rows, dtype=float)
    total = rows.sum(axis=1)
    wrong = ~((np.abs(total - 1) <= 1e-6) & (rows >= 0).all(axis=1))
    return rows[~wrong] / total[~wrong, None], wrong


def unread(library, readable, ratio, seed, reader):
    """Sampled documents that `reader` has not read: `ratio` times len(library), or all that are left.

    `readable` is a mask (d,) of the documents to sample from.
    """
    free = readable.copy()
    free[library] = False
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(reader,)))
    return rng.permutation(np.flatnonzero(free))[:ratio * len(library)]


def reader_sums(libraries, shares, readable, ratio, seed):
    """Sums of every reader's regression of read (1) / not read (0) on topics."""
    k = shares.shape[1]
    gram, moment = np.empty((len(libraries), k, k)), np.empty((len(libraries), k))
    count = np.empty(len(libraries), dtype=np.int64)
    for u, (reader, library) in enumerate(libraries.items()):
        rows = shares[np.concatenate([library, unread(library, readable, ratio, seed, reader)])]
        gram[u], moment[u], count[u] = rows.T @ rows, shares[library].sum(axis=0), len(rows)
    return Sums(count, gram, moment, moment.sum(axis=1))    # rows sum to 1 and y is 0 or 1
