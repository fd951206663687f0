"""Policies on simulated users, on common random numbers (paper, equation 2).

replications: rewards and episodes; instances: a problem and its streams as arrays; kernels: the inner loops; vectorized: the
same for many users at once; square_root: the same for tiny noise; exact: values without sampling where features decouple.
"""
from lib.simulate.exact import decoupled
from lib.simulate.instances import Stream
from lib.simulate.replications import Episodes, episodes, play, replicate, truncation

__all__ = ["Episodes", "Stream", "decoupled", "episodes", "play", "replicate", "truncation"]
