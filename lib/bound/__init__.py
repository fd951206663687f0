"""Upper bounds on what any policy can earn, in reward units with the leading gamma (paper, section III-A).

conditionals: one preference given the others; theorem: Theorem 1, for any items; merged, cells: of very many; charges: that make it least;
slopes: a lattice for their search; giveaways: what it gives away; relaxations: hindsight, full observation; told: the latter where tastes
drift; penalty: charges against full observation, along paths; duality: bounds by those charges, the first forward exact; catalogue: the
same from sampled items; betting: with limits for any law; unsampled: full observation and exact forwards without sampling; envelope:
their concave majorants; optimum: the exact optimum of two features.  Knows dp and posterior, not policies.
"""
from lib.bound.betting import finite_sample_first
from lib.bound.charges import Charged, tightest_charges
from lib.bound.conditionals import conditional
from lib.bound.duality import Bound, best, dual, dual_first, dual_second, finite_sample, forward_values, full_first, ladder
from lib.bound.giveaways import Gifts, gifts
from lib.bound.penalty import control, gap, least_charges
from lib.bound.relaxations import full_observation, hindsight
from lib.bound.theorem import decomposition, decomposition_for, decomposition_sampled, even_charges, in_basis, normalised
from lib.bound.told import full_observation_told
from lib.bound.unsampled import Certified, certified

__all__ = ["Bound", "Certified", "Charged", "Gifts", "best", "certified", "conditional", "control", "decomposition", "decomposition_for",
           "decomposition_sampled", "dual", "dual_first", "dual_second", "even_charges", "finite_sample", "finite_sample_first",
           "forward_values", "full_first", "full_observation", "full_observation_told", "gap", "gifts", "hindsight", "in_basis", "ladder",
           "least_charges", "normalised", "tightest_charges"]
