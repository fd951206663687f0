"""The Yelp Open Dataset, in every layout in which it has been released, streamed in one pass."""
from itertools import repeat
from pathlib import Path
import re

import msgspec
import numpy as np

from lib.datasets import readers
from lib.datasets.records import by_category, code_table

BUSINESSES = ("Restaurants", "Shopping", "Food", "Beauty & Spas", "Health & Medical", "Nightlife")
DATES = re.compile(r"([1-9]\d{3}-\d\d-\d\d([ T]\d\d:\d\d:\d\d)?\n)*", re.ASCII)    # one a line


class Business(msgspec.Struct, gc=False):
    """What is read of a line of the business file."""

    business_id: str
    categories: str | list[str] | None = None


class Review(msgspec.Struct, gc=False):
    """What is read of a line of the review file."""

    user_id: str
    business_id: str
    stars: float
    date: str


def yelp(folder, categories=BUSINESSES, skip_damaged=False):
    """The Yelp Open Dataset from the folder that holds its business and review files.

    The files are named `business.json` and `review.json`, or anything that ends so
    (yelp_academic_dataset_review.json), plain or gzip (.gz).  Every release's layout is read:
    categories as a list, as text joined by commas, or null; stars 4 or 4.0; dates with and without
    a time.  One pass, in memory that holds 20 bytes a review and each user's id.

    Parameters
    ----------
    folder : str or Path
    categories : sequence of str
        Exact category names; the default is the paper's six in Yelp's spelling.  A category that itself
        holds a comma can be told only in releases that list their categories.
    skip_damaged : bool
        Count lines that cannot be read (cut short, without a field) instead of raising.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError, FileNotFoundError
        A wrong line, with file and line; a category that no business has; no such file.
    """
    notes, code, labels = {"lines_damaged": 0, "items_repeated": 0}, {}, []
    for ids, found in readers.read_json(_find(folder, "business"), Business, _businesses, notes, skip_damaged):
        for name, tokens in zip(ids, found):
            code[name] = len(labels)
            labels.append(tokens)
    if not labels:
        raise ValueError(f"{folder}: the business file holds no business")
    notes["items_repeated"] = len(labels) - len(code)
    labels = [labels[i] for i in code.values()]
    code = dict(zip(code, range(len(code))))
    notes["items_uncategorised"] = sum(not tokens for tokens in labels)
    users, parts = code_table(), []
    for ids, items, stars, times in readers.read_json(_find(folder, "review"), Review, _reviews, notes, skip_damaged):
        user = np.fromiter(map(users.__getitem__, ids), np.int32, len(ids))
        item = np.fromiter(map(code.get, items, repeat(-1)), np.int32, len(items))
        parts.append((user, item, stars, times))
    if not users:
        raise ValueError(f"{folder}: the review file holds no review")
    columns = tuple(map(np.concatenate, zip(*parts)))
    del parts
    try:
        return by_category("Yelp Open Dataset", labels, categories, notes, columns,
                           np.array(list(users), dtype=object), list(code))
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from error


def _find(folder, kind):
    """The one file of `folder` named *business.json or *review.json, plain or .gz."""
    names = sorted(path.name for path in Path(folder).iterdir())
    found = [name for name in names if name.lower().removesuffix(".gz").endswith(f"{kind}.json")]
    if len(found) != 1:
        raise FileNotFoundError(f"{folder} must hold one file *{kind}.json or *{kind}.json.gz; it holds "
                                f"{len(found)} of them: {found or names[:20]}")
    return Path(folder) / found[0]


def _filled(name, values):
    if not all(map(str.strip, values)):
        raise ValueError(f"{name} is blank")
    return values


def _businesses(records):
    return (_filled("business_id", [r.business_id for r in records]),
            [split_categories(r.categories) for r in records])


def split_categories(value):
    """Yelp's categories, a list, text joined by commas, or null, as a list of names.

    Examples
    --------
    >>> split_categories("Golf, Active Life"), split_categories(None)
    (['Golf', 'Active Life'], [])
    """
    parts = value.split(",") if isinstance(value, str) else value or []
    return [name for name in map(str.strip, parts) if name]


def _reviews(records):
    dates = [r.date for r in records]
    if not DATES.fullmatch("\n".join([*dates, ""])):
        wrong = next((date for date in dates if not DATES.fullmatch(date + "\n")), "")
        raise ValueError(f"date is {readers.shown(wrong)}: it must be 2014-01-31 or 2014-01-31 23:59:59")
    stars = np.array([r.stars for r in records], dtype=float)
    if not ((stars >= 1) & (stars <= 5)).all():
        raise ValueError(f"stars is {stars[~((stars >= 1) & (stars <= 5))][0]}: it must lie in 1 to 5")
    times = np.array(dates, dtype="datetime64[s]").astype(np.int64)
    return (_filled("user_id", [r.user_id for r in records]),
            _filled("business_id", [r.business_id for r in records]), stars.astype(np.float32), times)
