"""Policies as plain data, and what the simulation's kernels read of them (paper, sections III-B to IV).

rules: constructors, names and the registry of families; index: policies that add a bonus to the mean, compiled; directions:
which tables DTD-DP reads; projection: how coming items project on the current one; lookahead: policies that look at the whole
belief; patience: the one of them that waits for better items.  Knows dp, not bound.
"""
from lib.policies.index import compile_rules
from lib.policies.projection import mean_projection, projections
from lib.policies.rules import (ALPHAS, LAWS, REGISTRY, Family, Policy, bayes_ucb, clusters, dtd_dp, dtd_ucb, exploit,
                                family_name, find, gittins, grid, information_directed, is_tuned, knowledge_gradient,
                                label, patient, phased, register, rollout, scores, thompson, ucb)

__all__ = ["ALPHAS", "Family", "LAWS", "Policy", "REGISTRY", "bayes_ucb", "clusters", "compile_rules", "dtd_dp", "dtd_ucb",
           "exploit", "family_name", "find", "gittins", "grid", "information_directed", "is_tuned", "knowledge_gradient",
           "label", "mean_projection", "patient", "phased", "projections", "register", "rollout", "scores", "thompson", "ucb"]
