"""Policies on simulated users, on common random numbers (paper, equation 2).

replications: rewards and episodes; arrays: a problem and its streams as arrays; kernels: the inner loops, sparse or with
vectors; vectorized: the same for many users at once; exact: values without sampling where features decouple.
"""
from lib.simulate.exact import decoupled
from lib.simulate.replications import Episodes, episodes, replicate, truncation

__all__ = ["Episodes", "decoupled", "episodes", "replicate", "truncation"]
