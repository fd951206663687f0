"""The Yelp Open Dataset, in every layout in which it has been released, streamed in one pass."""
from pathlib import Path

import numpy as np

from lib import readers
from lib.records import by_category, codes

BUSINESSES = ("Restaurants", "Shopping", "Food", "Beauty & Spas", "Health & Medical", "Nightlife")


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
    notes, codes_of, labels = {"lines_damaged": 0, "items_repeated": 0}, {}, []
    for ids, found in readers.read_json(_find(folder, "business"), _businesses, notes, skip_damaged):
        notes["items_repeated"] += len(ids) - len(set(ids) - codes_of.keys())
        codes(codes_of, ids)
        labels += [[]] * (len(codes_of) - len(labels))
        for name, tokens in zip(ids, found):
            labels[codes_of[name]] = tokens
    notes["items_uncategorised"] = sum(not tokens for tokens in labels)
    users, parts = {}, []
    for ids, items, stars, times in readers.read_json(_find(folder, "review"), _reviews, notes, skip_damaged):
        item = np.array([codes_of.get(name, -1) for name in items], dtype=np.int32)
        parts.append((codes(users, ids), item, stars, times))
    columns = tuple(np.concatenate(column) for column in zip(*parts))
    parts.clear()
    return by_category("Yelp Open Dataset", labels, categories, notes, columns,
                            np.array(list(users), dtype=object), list(codes_of))


def _find(folder, kind):
    """The one file of `folder` named *business.json or *review.json, plain or .gz."""
    names = sorted(path.name for path in Path(folder).iterdir())
    found = [name for name in names if name.lower().removesuffix(".gz").endswith(f"{kind}.json")]
    if len(found) != 1:
        raise FileNotFoundError(f"{folder} must hold one file *{kind}.json or *{kind}.json.gz; it holds "
                                f"{len(found)} of them: {found or names[:20]}")
    return Path(folder) / found[0]


def _texts(records, field):
    values = [record[field] for record in records]
    if set(map(type, values)) - {str}:
        wrong = next(value for value in values if type(value) is not str)
        raise TypeError(f"{field} is {wrong!r}: it must be text")
    if not all(map(str.strip, values)):
        raise ValueError(f"{field} is blank")
    return values


def _businesses(records):
    return _texts(records, "business_id"), [split_categories(record.get("categories")) for record in records]


def split_categories(value):
    """Yelp's categories, a list, text joined by commas, or null, as a list of names.

    Examples
    --------
    >>> split_categories("Golf, Active Life"), split_categories(None)
    (['Golf', 'Active Life'], [])
    """
    if value is not None and not isinstance(value, (str, list)):
        raise TypeError(f"categories is {value!r}: it must be a list, text or null")
    parts = value.split(",") if isinstance(value, str) else value or []
    return [name for name in map(str.strip, parts) if name]


def _reviews(records):
    dates = _texts(records, "date")
    if set(map(len, dates)) - {10, 19}:
        wrong = next(date for date in dates if len(date) not in (10, 19))
        raise ValueError(f"date is {wrong!r}: it must be 2014-01-31 or 2014-01-31 23:59:59")
    stars = np.array([record["stars"] for record in records], dtype=np.float32)
    if not ((stars >= 1) & (stars <= 5)).all():
        raise ValueError(f"stars is {stars[~((stars >= 1) & (stars <= 5))][0]}: it must lie in 1 to 5")
    times = np.array(dates, dtype="datetime64[s]").astype(np.int64)
    return _texts(records, "user_id"), _texts(records, "business_id"), stars, times
