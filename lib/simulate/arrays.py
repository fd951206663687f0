"""A problem, its streams and beliefs as the plain arrays that the simulation's kernels read."""
from typing import NamedTuple

import numpy as np


class Scene(NamedTuple):
    """What a kernel reads about a problem.  Features are ordered by group; rows have width >= k."""

    start: np.ndarray       # (n + 1,) item i has the non-zero elements start[i]:start[i + 1] of the next two
    feature: np.ndarray     # (nnz,) their features
    size: np.ndarray        # (nnz,) their values
    low: np.ndarray         # (n,) where the group of item i begins
    high: np.ndarray        # (n,) and ends; both are 0 for an item without features
    groups: np.ndarray      # (m, 2) all groups
    mu: np.ndarray          # (width,) prior mean, padded with zeros
    Sigma: np.ndarray       # (k, width) prior covariance, padded with zeros
    prior_gain: np.ndarray  # (n, width) Sigma x of each item under the prior; empty in the matrix form
    prior_var: np.ndarray   # (n,) x Sigma x under the prior
    noise_sd: np.ndarray    # (n,) of each item's feedback
    cumulative: np.ndarray  # (n,) of the item probabilities
    guide: np.ndarray       # (m,) the item at which the search for u in [j/m, (j + 1)/m) begins
    discount: np.ndarray    # (horizon,) gamma^n
    cost: float
    vectors: bool           # keep the vectors h instead of the matrix


class Stream(NamedTuple):
    """What R replications meet."""

    items: np.ndarray       # (R, horizon) indices
    feedback: np.ndarray    # (R, horizon) y, shown to a policy only if it forwards
    pay: np.ndarray         # (R, horizon) discounted reward of forwarding
    thompson: np.ndarray    # (R, horizon) standard normals


class State(NamedTuple):
    """One policy's belief, overwritten as it learns, and what has been computed from it."""

    mu: np.ndarray          # (width,)
    Sigma: np.ndarray       # (k, width), or empty
    h: np.ndarray           # (horizon, width) vectors of the other form, or empty
    ht: np.ndarray          # (k, horizon) their transpose
    count: np.ndarray       # (2,) number of the current belief, and of vectors in it
    gain: np.ndarray        # (width,) Sigma x of the current item
    hx: np.ndarray          # (horizon,) h.x of the current item
    mean: np.ndarray        # (n,) x.mu of each item
    var: np.ndarray         # (n,) x Sigma x
    seen: np.ndarray        # (n,) the belief for which these were computed
