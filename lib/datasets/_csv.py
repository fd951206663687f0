"""A stream of your own: two CSV files, checked cell by cell."""
from array import array
from math import isfinite
import re

import numpy as np

from lib.datasets import readers
from lib.datasets.records import Dataset, assemble, distinct

ALIASES = {other: name for name, others in {
    "user_id": "user uid customer customerid reviewer reviewerid",
    "item_id": "item movie movieid product productid article articleid book bookid business businessid song songid track trackid",
    "rating": "score stars overall",
    "time": "timestamp datetime date unixtime unixreviewtime createdat ratedat",
}.items() for other in others.split()}


def ratings(items_csv, ratings_csv, scale=None, time_unit=None):
    """Your own stream: a table of items with their features, and a table of users' ratings.

    Columns, separated by commas, semicolons or tabs; names matched whatever their case:

    - items: `item_id`, then one column a feature, numbers of any sign, used as they are;
    - ratings: `user_id`, `item_id`, `rating`, and optionally `time` (seconds since 1970, or an ISO date
      or time, taken as UTC where it names no zone).  Other columns are ignored and named in notes.

    Where a column is absent, a usual other name stands for it (`userId`, `movieId`, `score`, `timestamp`: see
    ALIASES), and notes["columns_taken"] says so.  Ids are text ("007" is not "7").  The latest of several ratings
    of a (user, item) counts.  notes["warnings"] holds a sentence for each column that does not look like a feature.

    Parameters
    ----------
    items_csv, ratings_csv : str or Path
        Plain or gzip, UTF-8.
    scale : (low, high) or None
        Ratings outside it are errors.  None accepts every finite rating; notes holds the range found.
    time_unit : None, "s", "ms", "us" or "ns"
        Unit of times that are numbers.  None takes them for seconds and refuses what may be something else;
        small numbers (below 1e8) are a count of their own, of which the order is used.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        Naming file, line, column and value.
    """
    features, vectors, rows_of, warnings = read_items(items_csv)
    items, probs, rows = distinct(vectors)
    users, columns, told = read_ratings(ratings_csv, rows_of, "rating", scale, time_unit=time_unit)
    names = np.array(list(users), dtype=object)
    kept, notes = in_seconds(columns, rows, names, list(rows_of), ratings_csv, told)
    notes |= {"items_read": len(rows), "items_without_feature": int((rows < 0).sum()),
              "items_not_summing_to_1": int((abs(vectors.sum(axis=1) - 1) > 1e-6).sum()), **told,
              "rating_range": (float(columns[2].min()), float(columns[2].max())), "warnings": warnings}
    return Dataset(f"{items_csv}, {ratings_csv}", features, items, probs, names, kept, None, 0.0, (), notes)


def in_seconds(columns, rows, users, item_names, path, told):
    """`assemble` for columns from `read_ratings`: ordered by the nanosecond, kept in seconds; errors name `path`."""
    try:
        kept, notes = assemble(*columns, rows, users, item_names)
    except ValueError as error:
        unused = ", ".join(told["columns_ignored"])
        hint = f"; if one of the columns {unused} holds the time, call it time" if unused and columns[3] is None else ""
        raise ValueError(f"{path}: {str(error)[:300]}{hint[:300]}") from error
    return kept if kept.time is None else kept._replace(time=readers.seconds(kept.time)), notes


def read_items(path):
    """Feature names, the vectors (m, k), each item id's position in them, and warnings.

    A column that is certainly no feature is an error, one that hardly is a warning: see `resembles`.
    """
    features, rows, _ = readers.read_csv(path, ("item_id",), aliases=ALIASES)
    if not features:
        raise ValueError(f"{path}: no feature column beside item_id")
    vectors, lines = {}, {}
    for line, cells in rows:
        where = f"{path}, line {line}, column "
        name = readers.identifier(cells["item_id"], f"{where}item_id")
        if name in vectors:
            raise ValueError(f"{where}item_id is {readers.shown(name)}: line {lines[name]} has that id already")
        vectors[name] = array("d", numbers(cells, features, where))
        lines[name] = line
    if not any(map(any, vectors.values())):
        raise ValueError(f"{path}: none of its {len(vectors)} items has a non-zero feature")
    table = np.array(list(vectors.values()))
    return tuple(features), table, {name: i for i, name in enumerate(vectors)}, check_features(path, features, table)


def numbers(cells, names, where):
    """The cells `names` of a row as finite numbers; the first that is none is an error, as `readers.number` words it.

    A row that is in order is read as a whole, ten times as fast as cell by cell.

    Examples
    --------
    >>> numbers({"a": "1", "b": "x"}, ["a", "b"], "line 2, column ")
    Traceback (most recent call last):
    ValueError: line 2, column b is 'x': it must be a finite number with a decimal point
    """
    texts = [cells[name] for name in names]
    try:
        found = list(map(float, texts))
        if all(map(isfinite, found)) and not any("_" in text for text in texts):
            return found
    except ValueError:
        pass
    return [readers.number(text, f"{where}{name[:60]}") for text, name in zip(texts, names)]


def check_features(path, features, vectors):
    """A sentence for each column that hardly is a feature; ValueError for one that certainly is none."""
    warnings = []
    for name, column in zip(features, vectors.T):
        what, certain = resembles(name, column)
        said = (f"{path}, line 1, column {name[:60]} looks like {what} and not like a feature (it runs from {column.min():.15g} to "
                f"{column.max():.15g})")
        if certain:
            raise ValueError(f"{said}: remove it from the table of items")
        if what:
            warnings.append(f"{said}: remove it, or scale it to 0 to 1.")
    return warnings


KEY = re.compile(r"(?i:(.*[^a-z])?(id|index|idx|isbn|asin|ean|unnamed.*))|.*[a-z](Id|ID)")
FEW, SURE, MANY = 5, 10, 20            # items from which numbers say something, say it for certain, and are rarely all different


def resembles(name, column):
    """What a column of items (m,) looks like that is no feature, or "", and whether that is certain.

    Row numbers, each one more than the one before, are certain from ten items on or in a column with an
    identifier's name, and so are other whole numbers in such a column of which most differ.  Years and times are
    told by their size; other whole numbers that are all different may be identifiers, from twenty items on.

    Examples
    --------
    >>> resembles("Unnamed: 0", np.arange(6.)), resembles("jazz", np.array([0, 1, 1, 0, 1.]))
    (('a running number', True), ('', False))
    """
    named = bool(KEY.fullmatch(name))
    if (column % 1).any() or len(column) < (3 if named else FEW):
        return "", False
    different = len(np.unique(column))
    if (np.diff(column) == 1).all():
        return "a running number", named or len(column) >= SURE
    if named and different > max(2, len(column) / 2):
        return "an identifier", True
    known = column[column > 0]                          # zeros stand for what is missing
    if different > 2 and known.min() >= 1900 and known.max() <= 2100:
        return "a year", False
    if column.min() >= readers.SINCE:
        return "an identifier or a time", False
    if different == len(column) >= MANY:
        return "an identifier or a rank", False
    return "", False


def read_ratings(path, rows_of, column, scale=None, strict=True, aliases=None, time_unit=None):
    """Users' codes, the columns (user, item, value, time or None), and notes on the columns.

    `rows_of` maps item ids to codes; another id is an error when `strict`, else its code is -1.  `aliases`
    are other names of columns beside ALIASES (see `read_csv`).  Time is in nanoseconds (see `readers.moment`).
    """
    if time_unit not in (None, *readers.UNITS):
        raise ValueError(f"time_unit is {time_unit!r}: it must be None or one of {', '.join(readers.UNITS)}")
    low, high = (-np.inf, np.inf) if scale is None else scale
    ignored, rows, renamed = readers.read_csv(path, ("user_id", "item_id", column), ("time",), ALIASES | (aliases or {}))
    users, kinds = {}, {}
    found = array("q"), array("q"), array("d"), array("q")
    for line, cells in rows:
        quick = _plain_row(cells, rows_of, column, low, high, "s" in kinds and time_unit in (None, "s"))
        if quick:
            for part, entry in zip(found, (users.setdefault(quick[0], len(users)), *quick[1:])):
                part.append(entry)
            continue
        where = f"{path}, line {line}, column "
        user = readers.identifier(cells["user_id"], f"{where}user_id")
        item = readers.identifier(cells["item_id"], f"{where}item_id")
        if strict and item not in rows_of:
            raise ValueError(f"{where}item_id is {readers.shown(item)}: the table of items has no such id")
        value = readers.number(cells[column], f"{where}{column}")
        if not low <= value <= high:
            raise ValueError(f"{where}{column} is {value:.15g}: the scale is {low} to {high}")
        time = _time(cells["time"], f"{where}time", time_unit, kinds) if "time" in cells else 0
        for part, entry in zip(found, (users.setdefault(user, len(users)), rows_of.get(item, -1), value, time)):
            part.append(entry)
    if not found[0]:
        raise ValueError(f"{path}: it holds no rating")
    user, item, value, time = map(np.array, found)
    told = {"columns_ignored": ignored, "columns_taken": [f"{old} as {name}" for name, old in renamed.items()],
            "times": _span(time, kinds, time_unit)}
    return users, (user, item, value, time if kinds else None), told


def _plain_row(cells, rows_of, column, low, high, timed):
    """(user, item's code, rating, time) of a row with nothing to object to, or None where it must be looked at closely.

    `timed`: a number of seconds is as good as those before it; without that a row that has a time is looked at.
    """
    user, item, text, time = cells["user_id"].strip(), cells["item_id"].strip(), cells[column], cells.get("time", "")
    if not user or "\n" in user or "\r" in user or item not in rows_of or "_" in text:
        return None
    if time and not (timed and time.isascii() and time.isdigit() and len(time) <= 10 and time[:2] not in ("19", "20")
                     and readers.SINCE <= int(time) < readers.UNTIL) or "time" in cells and not time:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return (user, rows_of[item], value, int(time or 0) * readers.UNITS["s"]) if low <= value <= high and isfinite(value) else None


def _span(time, kinds, unit):
    """The first and the last of the times in words, in a list; [] where there is none."""
    first, last = int(time.min()), int(time.max())
    if set(kinds) == {"count"} and unit is None:
        return [f"numbers {first / 1e9:.15g} to {last / 1e9:.15g}, of which only the order is used"]
    return [f"{readers.utc(first)} to {readers.utc(last)}"] if kinds else []


def _time(cell, where, unit, kinds):
    """A time in nanoseconds; the first of each kind is entered in `kinds` and compared with the others."""
    time, kind = readers.moment(cell, where, unit)
    if kind not in kinds:
        kinds[kind] = where, cell
        readers.one_unit(kinds, unit)
    return time
