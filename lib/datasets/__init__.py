"""Real users and items in one shape, and the prior that their ratings give (paper, sections IV-A and IV-B).

records: the shape; readers: files, line by line; _movielens, _yelp, _citeulike, _arxiv, _csv: one source each; topics:
documents as topics; priors: from ratings to mu, Sigma and noise; prediction: how well a prior foretells ratings.
"""
from lib.datasets._arxiv import arxiv
from lib.datasets._citeulike import citeulike
from lib.datasets._csv import ratings
from lib.datasets._movielens import GENRES, movielens, write_movielens
from lib.datasets._yelp import yelp
from lib.datasets.prediction import calibration, choose_noise, normal_quantiles, predict, residuals, scores
from lib.datasets.priors import Prior, prior, theta_draws
from lib.datasets.records import Dataset, Ratings, Sums, by_category, flag, histories, shares

__all__ = ["Dataset", "GENRES", "Prior", "Ratings", "Sums", "arxiv", "by_category", "calibration", "choose_noise",
            "citeulike", "flag", "histories", "movielens", "normal_quantiles", "predict", "prior", "ratings", "residuals",
            "scores", "shares", "theta_draws", "write_movielens", "yelp"]
