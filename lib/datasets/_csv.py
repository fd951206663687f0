"""A stream of your own: two CSV files, checked cell by cell."""
import numpy as np

from lib.datasets import readers
from lib.datasets.records import Dataset, assemble, distinct


def ratings(items_csv, ratings_csv, scale=None):
    """Your own stream: a table of items with their features, and a table of users' ratings.

    Columns, separated by commas, semicolons or tabs; names matched whatever their case:

    - items: `item_id`, then one column a feature, nonnegative numbers, used as they are;
    - ratings: `user_id`, `item_id`, `rating`, and optionally `time` (seconds since 1970, or an ISO date
      or time, taken as UTC where it names no zone).  Other columns are ignored and named in notes.

    Ids are text ("007" is not "7").  The latest of several ratings of a (user, item) counts.

    Parameters
    ----------
    items_csv, ratings_csv : str or Path
        Plain or gzip, UTF-8.
    scale : (low, high) or None
        Ratings outside it are errors.  None accepts every finite rating; notes holds the range found.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        Naming file, line, column and value.
    """
    features, vectors, rows_of = read_items(items_csv)
    items, probs, rows = distinct(vectors)
    users, columns, ignored = read_ratings(ratings_csv, rows_of, "rating", scale)
    names = np.array(list(users), dtype=object)
    kept, notes = assemble(*columns, rows, names, list(rows_of))
    notes |= {"items_read": len(rows), "items_without_feature": int((rows < 0).sum()),
              "items_not_summing_to_1": int((abs(vectors.sum(axis=1) - 1) > 1e-6).sum()),
              "columns_ignored": ignored, "rating_range": (float(columns[2].min()), float(columns[2].max()))}
    return Dataset(f"{items_csv}, {ratings_csv}", features, items, probs, names, kept, None, 0.0, (), notes)


def read_items(path):
    """Feature names, the vectors (m, k), and each item id's position in them."""
    features, rows = readers.read_csv(path, ("item_id",))
    if not features:
        raise ValueError(f"{path}: no feature column beside item_id")
    vectors, lines = {}, {}
    for line, cells in rows:
        where = f"{path}, line {line}, column "
        name = readers.identifier(cells["item_id"], f"{where}item_id")
        if name in vectors:
            raise ValueError(f"{where}item_id is {name!r}: line {lines[name]} has that id already")
        vectors[name] = [readers.number(cells[f], f"{where}{f}") for f in features]
        if min(vectors[name]) < 0:
            wrong = int(np.argmin(vectors[name]))
            raise ValueError(f"{where}{features[wrong]} is {min(vectors[name])}: features are nonnegative")
        lines[name] = line
    if not any(map(any, vectors.values())):
        raise ValueError(f"{path}: none of its {len(vectors)} items has a non-zero feature")
    return tuple(features), np.array(list(vectors.values())), {name: i for i, name in enumerate(vectors)}


def read_ratings(path, rows_of, column, scale=None, strict=True, aliases=None):
    """Users' codes, the columns (user, item, value, time or None), and the names of the columns ignored.

    `rows_of` maps item ids to codes; another id is an error when `strict`, else its code is -1.  `aliases`
    are other names of columns (see `read_csv`).
    """
    low, high = (-np.inf, np.inf) if scale is None else scale
    ignored, rows = readers.read_csv(path, ("user_id", "item_id", column), ("time",), aliases)
    users, found = {}, []
    for line, cells in rows:
        where = f"{path}, line {line}, column "
        user = readers.identifier(cells["user_id"], f"{where}user_id")
        item = readers.identifier(cells["item_id"], f"{where}item_id")
        if strict and item not in rows_of:
            raise ValueError(f"{where}item_id is {item!r}: the table of items has no such id")
        value = readers.number(cells[column], f"{where}{column}")
        if not low <= value <= high:
            raise ValueError(f"{where}{column} is {value:g}: the scale is {low} to {high}")
        time = readers.seconds(cells["time"], f"{where}time") if "time" in cells else 0
        found.append((users.setdefault(user, len(users)), rows_of.get(item, -1), value, time))
    if not found:
        raise ValueError(f"{path}: it holds no rating")
    user, item, value, time = (np.array(part) for part in zip(*found))
    return users, (user, item, value, time if "time" in cells else None), ignored
