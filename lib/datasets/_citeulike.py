"""CiteULike's articles and readers: ten or fifty topics, and each reader's regression of read / not read.

The raw collection (citeulike-t) carries no licence, so the project keeps derived numbers only, in
data/citeulike: topics of all articles in random order, the topics' words, and for each reader the
sums that a regression needs, at one unread article for each one read, and with ten topics at four
too.  `derive` makes them; `citeulike` reads them, or derives them afresh from the raw files.
"""
from pathlib import Path
import re

import numpy as np

from lib import cache
from lib.datasets import readers
from lib.datasets.records import Dataset, Sums
from lib.datasets.topics import STEPS, checked, labels, learn_topics, reader_sums, unread
from lib.problem import as_count, as_path

RATIOS = {10: (1, 4), 50: (1,)}                # unread articles for each one read, by number of topics
RIDGE = {10: 1.0, 50: 0.3}                     # the best of RIDGES at these ratios: see ridge_errors
RIDGES = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0)
UNIT = {10: 0.0, 50: 1 / 256}                  # sums of x x' are kept in multiples of it, and as they are where it is 0
FOLDER = Path(__file__).parents[2] / "data" / "citeulike"
STORED = {10: FOLDER / "citeulike.npz", 50: FOLDER / "citeulike-50.npz"}


def citeulike(folder=None, ratio=1, articles=500, topics=10):
    """Articles as topics and readers' regressions, from the stored numbers or from the raw files.

    Parameters
    ----------
    folder : str, Path or None
        None reads data/citeulike; a folder with users.dat, mult.dat and vocabulary.dat derives the same
        numbers afresh (about a minute).
    ratio : int
        Unread articles sampled for each one read, 1 or, with ten topics, 4.
    articles : int or None
        Size of the items' finite support, a random sample of the 25,944 articles with words; None takes all.
    topics : int
        10, as in the paper, or 50.

    Returns
    -------
    Dataset
        With sums in place of ratings.

    Raises
    ------
    ValueError
        An argument out of range, or raw files that do not fit together.
    """
    if as_count("topics", topics) not in RATIOS:
        raise ValueError(f"topics is {topics!r}: it must be one of {tuple(RATIOS)}")
    if as_count("ratio", ratio) not in RATIOS[topics]:
        raise ValueError(f"ratio is {ratio!r}: with {topics} topics it must be one of {RATIOS[topics]}")
    arrays = load(STORED[topics]) if folder is None else derive(as_path("folder", folder), topics)
    rows, wrong = checked(arrays["topics"] / STEPS)
    articles = len(rows) if articles is None else as_count("articles", articles)
    if not articles <= len(rows):
        raise ValueError(f"articles is {articles}: it must lie in 1 to {len(rows)}")
    items, count = np.unique(rows[:articles], axis=0, return_counts=True)
    notes = dict(zip(arrays["note_names"].tolist(), arrays["note_counts"].tolist()))
    notes |= {"articles_flagged": int(wrong.sum()), "articles_kept": articles}
    words = tuple(map(tuple, arrays["words"].tolist()))
    return Dataset(f"CiteULike (citeulike-t), {ratio} unread for each read", labels(words), items,
                   count / articles, arrays["readers"].astype(str), None, _sums(arrays, RATIOS[topics].index(ratio)),
                   RIDGE[topics], words, notes)


def _sums(arrays, position):
    """The stored sums at one ratio; the gram matrices are stored as their upper triangles."""
    k = arrays["topics"].shape[1]
    flat = arrays["gram"][position].astype(float) * (UNIT[k] or 1.0)
    gram, upper = np.zeros((len(flat), k, k)), np.triu_indices(k)
    gram[:, *upper] = gram[:, upper[1], upper[0]] = flat
    moment = arrays["moment"][position].astype(float)
    return Sums(arrays["count"][position].astype(np.int64), gram, moment, moment.sum(axis=1))


def ridge_errors(libraries, shares, readable, ratio, seed):
    """(len(RIDGES),) mean squared error on one half of each reader's sample, fitted on the other half."""
    errors = np.zeros(len(RIDGES))
    for reader, library in libraries.items():
        chosen = np.concatenate([library, unread(library, readable, ratio, seed, reader)])
        read = np.arange(len(chosen)) < len(library)
        order = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(reader, 1))).permutation(len(chosen))
        x, y = shares[chosen[order]], read[order].astype(float)
        half = len(y) // 2
        for r, ridge in enumerate(RIDGES):
            theta = np.linalg.solve(x[:half].T @ x[:half] + ridge * np.eye(x.shape[1]), x[:half].T @ y[:half])
            errors[r] += np.mean((y[half:] - x[half:] @ theta)**2) / len(libraries)
    return errors


def _numbers(path):
    """Yield (line number, the words after the first) of a file whose lines begin with the number of the others."""
    for first, lines in readers.blocks(path):
        for line, text in enumerate(lines, first):
            size, *words = text.split() or [b""]
            if _whole(size, len(words) + 1) != len(words):
                raise ValueError(f"{path}, line {line}: begins with {_text(size)} and holds {len(words)} entries")
            yield line, words


def _whole(word, below):
    """The number that `word` is, of at most nine digits; None where it is none or not below `below`."""
    return int(word) if word.isdigit() and len(word) <= 9 and int(word) < below else None


def _text(word):
    return readers.shown(word.decode(errors="replace"))


def read_counts(path, words):
    """mult.dat as a sparse matrix (documents, words): a line holds a count and so many word:count pairs."""
    from scipy.sparse import csr_matrix
    word, count, start = [], [], [0]
    for line, pairs in _numbers(path):
        for pair in pairs:
            left, colon, right = pair.partition(b":")
            if None in (_whole(left, words), _whole(right, 10**9)):
                raise ValueError(f"{path}, line {line}: {_text(pair)} is not word:count with a word below {words}")
            word.append(int(left))
            count.append(int(right))
        start.append(len(word))
    return csr_matrix((count, word, start), shape=(len(start) - 1, words))


def read_libraries(path, articles):
    """users.dat as a list of sorted int arrays: a line holds a count and so many article numbers, from 0."""
    libraries = []
    for line, numbers in _numbers(path):
        for number in numbers:
            if _whole(number, articles) is None:
                raise ValueError(f"{path}, line {line}: {_text(number)} is not an article number below {articles}")
        libraries.append(np.unique(np.array([int(number) for number in numbers], dtype=np.int64)))
    return libraries


def read_vocabulary(path):
    """The words of vocabulary.dat, one a line; ValueError naming a line that is not UTF-8."""
    words = []
    for first, lines in readers.blocks(path):
        for line, word in enumerate(lines, first):
            try:
                words.append(word.decode().strip())
            except UnicodeDecodeError as error:
                raise ValueError(f"{path}, line {line}: {_text(word)} is not UTF-8") from error
    return words


def first_words(words, count=20):
    """The first `count` of `words` that are made of three or more letters, for display; "" where there are fewer."""
    found = [word for word in words if re.fullmatch("[a-z][a-z-]{2,}", word)][:count]
    return found + [""] * (count - len(found))


def derive(folder, k=10, seed=0, smallest=25, passes=10):
    """The arrays of STORED[k] from the raw citeulike-t files in `folder`.

    Readers of at least `smallest` non-empty articles are kept; articles' topics are kept in random order.
    """
    folder = Path(folder)
    vocabulary = np.array(read_vocabulary(folder / "vocabulary.dat"))
    rows, order = learn_topics(read_counts(folder / "mult.dat", len(vocabulary)), k, seed, passes)
    shares, readable = rows / STEPS, rows.any(axis=1)
    raw = read_libraries(folder / "users.dat", len(rows))
    full = {u: library[readable[library]] for u, library in enumerate(raw)}
    libraries = {u: library for u, library in full.items() if len(library) >= smallest}
    if not libraries:
        raise ValueError(f"{folder}: none of {len(raw)} readers has {smallest} articles")
    ratios, unit, upper = RATIOS.get(k, (1, 4)), UNIT.get(k, 0.0), np.triu_indices(k)
    sums = [reader_sums(libraries, shares, readable, ratio, seed) for ratio in ratios]
    gram = np.array([s.gram[:, *upper] for s in sums])
    notes = {"articles_read": len(rows), "articles_empty": int((~readable).sum()), "readers_read": len(raw),
             "readers_too_small": len(raw) - len(libraries), "pairs_read": sum(map(len, raw)),
             "pairs_of_empty_articles": sum(map(len, raw)) - sum(map(len, full.values()))}
    return {"topics": rows[in_random_order(readable, seed)],
            "words": np.array([first_words(vocabulary[row]) for row in order]),
            "readers": np.array(list(libraries), dtype=np.int32),
            "count": np.array([s.count for s in sums], dtype=np.int32),
            "gram": np.round(gram / unit).astype(np.uint32) if unit else gram.astype(np.float32),
            "moment": np.array([s.moment for s in sums], dtype=np.float32),
            "ridges": np.array(RIDGES),
            "ridge_errors": np.array([ridge_errors(libraries, shares, readable, r, seed) for r in ratios]),
            "note_names": np.array(list(notes)), "note_counts": np.array(list(notes.values()))}


def in_random_order(readable, seed):
    """The articles of the mask `readable` in the order in which their topics are kept."""
    return np.random.default_rng(seed).permutation(np.flatnonzero(readable))


def save(arrays, path):
    """Write `arrays` as a compressed .npz without pickle: whole or not at all, the same bytes every time."""
    with cache.whole(path, "wb") as file:
        np.savez_compressed(file, **arrays)


def load(path=STORED[10]):
    """The arrays that `save` wrote; ValueError naming the file where it is damaged."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:     # NumPy leaves a damaged one open
            return dict(stored)
    except FileNotFoundError:
        raise
    except Exception as error:                          # of zip, zlib, NumPy or Python, as the damage has it
        raise ValueError(f"{path}: damaged, fetch or derive it again: {error}") from error
