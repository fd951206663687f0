"""Policies on simulated users, on common random numbers (paper, equation 2).

replications: rewards and episodes; instances: a problem and its streams as arrays; kernels: the inner loops; vectorized: the
same for many users at once; square_root: the same for tiny noise; exact: values without sampling where features decouple;
truths: users who are not as the model says; informed: policies that allow for it; silence: threshold rules on one feature, bracketed;
services: users one after another, the prior learnt on the way.
"""
from lib.simulate.exact import decoupled
from lib.simulate.informed import play_informed
from lib.simulate.instances import Stream
from lib.simulate.replications import Episodes, episodes, play, replicate, replicate_controlled, truncation
from lib.simulate.services import Served, Service, Start, serve
from lib.simulate.silence import Threshold, threshold_rule
from lib.simulate.truths import Met, Truth, full_first_of, full_observation_of, hindsight_of, make_truth, meet

__all__ = ["Episodes", "Met", "Served", "Service", "Start", "Stream", "Threshold", "Truth", "decoupled", "episodes", "full_first_of",
           "full_observation_of", "hindsight_of", "make_truth", "meet", "play", "play_informed", "replicate",
           "replicate_controlled", "serve", "threshold_rule", "truncation"]
