"""Policies as plain data, and what the simulation's kernels read of them (paper, sections III-B to IV).

rules: what there is, constructors and names; index: policies that add a bonus to the mean, compiled; projection: how
coming items project on the current one; lookahead: policies that look at the whole belief.  Knows dp, not bound.
"""
from lib.policies.index import compile_rules
from lib.policies.projection import mean_projection, projections
from lib.policies.rules import (ALPHAS, LAWS, Policy, bayes_ucb, clusters, dtd_dp, dtd_ucb, exploit, gittins,
                                information_directed, knowledge_gradient, label, phased, rollout, scores, thompson,
                                ucb)

__all__ = ["ALPHAS", "LAWS", "Policy", "bayes_ucb", "clusters", "compile_rules", "dtd_dp", "dtd_ucb", "exploit",
            "gittins", "information_directed", "knowledge_gradient", "label", "mean_projection", "phased",
            "projections", "rollout", "scores", "thompson", "ucb"]
