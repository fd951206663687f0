"""Every upper bound on what any policy can earn, under one name.

Certified or in closed form, from `lib.relaxations`: `decomposition` (Theorem 1), `hindsight`; sampled:
`decomposition_sampled` (Algorithm 1), `full_observation`.  Sharper and sampled, from `lib.dual`: `best`, which picks among all.
"""
from lib.dual import best
from lib.relaxations import (call, conditional, decomposition, decomposition_sampled, full_observation, hindsight,
                             normalised, revealed_sd)

__all__ = ["best", "call", "conditional", "decomposition", "decomposition_sampled", "full_observation", "hindsight",
           "normalised", "revealed_sd"]
