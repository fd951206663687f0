"""Papers of one year from an arXiv metadata snapshot, and a click log: the paper's second experiment.

The snapshot (one JSON object a line, 14 keys) is public domain (CC0); a click log is the reader's own.
"""
import datetime
import email.utils
import re
from typing import NamedTuple

import msgspec
import numpy as np

from lib.datasets import _csv, readers, topics
from lib.datasets.records import Dataset, distinct, thin

RIDGE = 1.0
ALIASES = {"paper": "item_id", "paperid": "item_id", "click": "clicked", "clicks": "clicked"}
TEX = re.compile(r"\$[^$]*\$|\\[a-zA-Z]+")


class Version(msgspec.Struct, gc=False):
    """One version of a paper."""

    created: str | None = None


class Paper(msgspec.Struct, gc=False):
    """What is read of a line of the snapshot."""

    id: str
    categories: str | None
    title: str | None = None
    abstract: str | None = None
    versions: list[Version] | None = None


class Catalogue(NamedTuple):
    """The papers of a snapshot as topics: what does not depend on the clicks, and takes the time."""

    source: str
    names: tuple                 # (d,) ids
    rows: np.ndarray             # (d, k) shares in steps of 1/10000, zeros for a paper without words
    words: tuple                 # (k,) tuples of a topic's first words
    notes: dict


def catalogue(snapshot, year=2014, k=10, seed=0, skip_damaged=False):
    """Read a snapshot and learn its topics; arguments and errors as `arxiv` has them."""
    texts, notes = papers(snapshot, year, skip_damaged)
    return Catalogue(str(snapshot), tuple(texts), *topics_of(list(texts.values()), k, seed), notes)


def arxiv(snapshot, clicks, year=2014, k=10, seed=0, articles=500, ratio=None, skip_damaged=False):
    """cond-mat papers first submitted in `year` as topics, and users' clicks on them (paper, section IV-B).

    Eight arguments: two files, and what the paper leaves open, best given by name.

    Parameters
    ----------
    snapshot : str or Path
        JSON lines, plain or gzip.  A paper belongs to cond-mat when one of its categories is `cond-mat`
        or begins with `cond-mat.`; its year is that of versions[0].created in UTC.
    clicks : str or Path
        CSV with the columns `user_id` (or user), `item_id` (or paper), `clicked` (0 or 1), and optionally
        `time` (see `ratings`; where its numbers need a unit, call `catalogue`, then `with_clicks` with
        time_unit).  Clicks on other papers are dropped and counted.
    year, k, seed : int
        Year of first submission, number of topics, and the seed of topics and samples.
    articles : int or None
        Size of the items' finite support, a random sample (all where there are fewer); each user's ratings
        become sums.  None keeps every paper as an item, and the ratings in time order.
    ratio : int or None
        None: the log tells what was seen and not clicked.  Else only its clicks are used, and `ratio`
        papers that a user has not clicked are sampled for each one clicked; without times then.
    skip_damaged : bool
        Count snapshot lines that cannot be read instead of raising.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        A wrong line, with file and line; no such paper; a log of clicks alone and no ratio.
    """
    return with_clicks(catalogue(snapshot, year, k, seed, skip_damaged), clicks, seed, articles, ratio)


def with_clicks(catalogue, clicks, seed=0, articles=500, ratio=None, time_unit=None):
    """The Dataset of a Catalogue and a click log; arguments and errors as `arxiv` and `ratings` have them."""
    source, names, rows, words, notes = catalogue
    code = {name: i for i, name in enumerate(names)}
    users, columns, told = _csv.read_ratings(clicks, code, "clicked", (0, 1), strict=False, aliases=ALIASES,
                                            time_unit=time_unit)
    if not np.isin(columns[2], (0, 1)).all():
        raise ValueError(f"{clicks}: column clicked holds {columns[2][~np.isin(columns[2], (0, 1))][0]}, not 0 or 1")
    if ratio is None and columns[2].all():
        raise ValueError(f"{clicks}: every line is a click; give `ratio` to sample papers that were not clicked")
    if ratio is not None:
        columns = with_unread(columns, rows.any(axis=1), ratio, seed)
    items, probs, place = distinct(rows / topics.STEPS)
    people = np.array(list(users), dtype=object)
    kept, counts = _csv.in_seconds(columns, place, people, names, clicks, told)
    notes = notes | counts | told | {"papers_without_words": int((place < 0).sum())}
    full = Dataset(f"{source}, {clicks}", topics.labels(words), items, probs, people, kept, None, RIDGE, words, notes)
    return full if articles is None else thin(full, min(articles, len(items)), seed)


def papers(snapshot, year=2014, skip_damaged=False):
    """{id: title and abstract} of the cond-mat papers first submitted in `year`, and counts of the others.

    A later line with the same id replaces the earlier.
    """
    notes = dict.fromkeys(("lines_damaged", "papers_read", "papers_elsewhere", "papers_without_date",
                           "papers_of_other_years", "papers_repeated"), 0)
    texts = {}
    for size, found in readers.read_json(snapshot, Paper, _condmat, notes, skip_damaged):
        notes["papers_read"] += size
        notes["papers_elsewhere"] += size - len(found)
        for name, created, text in found:
            if created != year:
                notes["papers_without_date" if created is None else "papers_of_other_years"] += 1
            else:
                notes["papers_repeated"] += name in texts
                texts[name] = text
    if not texts:
        raise ValueError(f"{snapshot}: no cond-mat paper first submitted in {year}: {notes}")
    return texts, notes


def _condmat(records):
    """Number of records, and (id, year of first submission or None, text) of those in cond-mat."""
    if not all(r.id.strip() for r in records):
        raise ValueError("id is blank")
    return len(records), [(r.id.strip(), first_year(r.versions), f"{r.title or ''}\n{r.abstract or ''}")
                          for r in records if is_condmat(r.categories)]


def is_condmat(categories):
    """Whether one of the categories, separated by spaces, is cond-mat or a part of it.

    Examples
    --------
    >>> is_condmat("hep-th cond-mat.stat-mech"), is_condmat("physics.cond"), is_condmat(None)
    (True, False, False)
    """
    return any(token.partition(".")[0] == "cond-mat" for token in (categories or "").split())


def first_year(versions):
    """Year of versions[0].created in UTC; None where there is no version or no date.

    Examples
    --------
    >>> first_year([Version("Wed, 31 Dec 2014 23:30:00 -0200")]), first_year([])
    (2015, None)
    """
    created = versions[0].created if versions else None
    if not created:
        return None
    try:
        moment = email.utils.parsedate_to_datetime(created)
        return (moment.astimezone(datetime.timezone.utc) if moment.tzinfo else moment).year
    except OverflowError as error:
        raise ValueError(f"created is {readers.shown(created)}: {error}") from error


def topics_of(texts, k, seed):
    """Topics of raw texts: words of three letters or more, in at least 5 texts and at most half, without TeX."""
    from sklearn.feature_extraction.text import CountVectorizer
    counter = CountVectorizer(preprocessor=lambda text: TEX.sub(" ", text).lower(), stop_words="english",
                              token_pattern=r"[^\W\d_]{3,}", min_df=min(5, len(texts)), max_df=0.5,
                              max_features=20_000)
    try:
        counts = counter.fit_transform(texts)
    except ValueError as error:
        raise ValueError(f"{len(texts)} papers are too few or too alike to learn topics from: {error}") from error
    rows, order = topics.learn_topics(counts, k, seed)
    return rows, tuple(map(tuple, counter.get_feature_names_out()[order[:, :20]].tolist()))


def with_unread(columns, readable, ratio, seed):
    """Rating columns with each user's clicks as ones and a sample of the other papers as zeros."""
    user, item, clicked, _ = columns
    hits = np.unique(np.stack([user, item])[:, (clicked == 1) & (item >= 0)], axis=1)     # sorted by user
    fans, first = np.unique(hits[0], return_index=True)
    users, items, values = [], [], []
    for u, library in zip(fans, np.split(hits[1], first[1:])):
        zeros = topics.unread(library, readable, ratio, seed, int(u))
        items += [library, zeros]
        values += [np.ones(len(library)), np.zeros(len(zeros))]
        users.append(np.full(len(library) + len(zeros), u))
    if not users:
        raise ValueError("no user clicked on one of these papers")
    return np.concatenate(users), np.concatenate(items), np.concatenate(values), None
