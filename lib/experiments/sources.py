"""Which real data the book uses: those that come with it, or a reader's own.

BOOK_YELP and BOOK_ARXIV are read here and nowhere else.  The first holds the folder of Yelp's business and review
files, as `lib.datasets.yelp` reads them.  The second holds two paths, joined as in PATH (by a colon, on Windows by a
semicolon): an arXiv metadata snapshot and a click log, as `lib.datasets.arxiv` reads them.
"""
from functools import lru_cache
import os
from pathlib import Path

from lib import datasets
from lib.datasets import _arxiv

LOADERS = {"movielens": datasets.movielens}         # rated items that come with the book, by name
SETTINGS = {"rated": "BOOK_YELP", "documents": "BOOK_ARXIV"}


def replaced(kind):
    """Whether a reader's own data stand in the place of the book's "rated" items or "documents"."""
    return bool(os.environ.get(SETTINGS.get(kind, "")))


def documents(ratio=1, articles=40, topics=10):
    """Documents as topics and their readers: CiteULike's, or those of BOOK_ARXIV.

    Parameters
    ----------
    ratio : int
        Documents sampled as not read for each one read; 1 or 4 for CiteULike.
    articles : int or None
        Size of the items' finite support, a random sample; None takes all.
    topics : int
        10, as in the paper, or 50.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        When BOOK_ARXIV does not hold two paths, and whatever the loader finds wrong.

    Examples
    --------
    >>> documents().items.shape
    (40, 10)
    """
    setting = os.environ.get(SETTINGS["documents"])
    if not setting:
        return datasets.citeulike(ratio=ratio, articles=articles, topics=topics)
    paths = setting.split(os.pathsep)
    if len(paths) != 2 or not all(paths):
        raise ValueError(f"BOOK_ARXIV is {setting!r}: it must be a snapshot and a click log, joined by {os.pathsep!r}")
    return _arxiv.with_clicks(_catalogue(paths[0], k=topics), paths[1], ratio=ratio, articles=articles)


_catalogue = lru_cache(maxsize=2)(_arxiv.catalogue)  # five gigabytes, and topics to learn: once a process


def rated(dataset="movielens"):
    """Rated items and their users: those of a data set that comes with the book, or of BOOK_YELP.

    Parameters
    ----------
    dataset : str
        A key of LOADERS.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        For a name that LOADERS does not have, when BOOK_YELP is no folder, and whatever the loader finds wrong.

    Examples
    --------
    >>> rated().items.shape
    (61, 6)
    """
    folder = os.environ.get(SETTINGS["rated"])
    if not folder:
        if dataset not in LOADERS:
            raise ValueError(f"dataset is {dataset!r}: it must be one of {', '.join(LOADERS)}")
        return LOADERS[dataset]()
    if not Path(folder).is_dir():
        raise ValueError(f"BOOK_YELP is {folder!r}: it must be the folder of Yelp's business and review files")
    return _yelp(folder)


_yelp = lru_cache(maxsize=1)(datasets.yelp)         # seven million reviews: read once a process
