"""Every public function against a table of bad values: each is refused by an error that names the argument.

CALLS has an entry for every public name: a good value and a kind for each argument.  BAD has the values that are wrong for a
kind.  Whatever is given, the answer must be a ValueError or a TypeError whose message names the argument, or a
field of it; FINE lists what is a good answer all the same.
"""
import importlib
import inspect
import re
import types

import numpy as np
import pandas as pd
import pytest

from lib import policies
from lib.datasets import Dataset, Prior, Ratings
from lib.datasets.prediction import Predictions
from lib.dp.general import solve_general
from lib.dp.program import Table
from lib.experiments import Candidate, Knobs, Spec
from lib.population import Users
from lib.problem import make_problem
from lib.simulate import Episodes, Service, Start, Stream, Truth, make_truth

PACKAGES = "dp", "policies", "bound", "simulate", "datasets", "experiments", "filter"
MODULES = "problem", "posterior", "population", "estimate", "tables"

NAN, INF, HUGE = float("nan"), float("inf"), 1e308
MASKED = np.ma.masked_array([1.0, 2.0], [False, True])
ITEMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
PROBLEM = make_problem(ITEMS, [.4, .4, .2], [3.1, 2.8], [[.5, .2], [.2, .4]], .8, 3.0, .9)
APART = make_problem(np.eye(2), [.5, .5], [3.1, 2.8], [[.5, 0], [0, .4]], .8, 3.0, .9)
RULES = [policies.exploit(), policies.ucb(.5)]
RATED = Ratings(np.array([0, 4, 4, 15, 60]), np.arange(60, dtype=np.int32) % 3, np.linspace(1, 5, 60), np.arange(60))
DATA = Dataset("test", ("a", "b"), ITEMS, PROBLEM.probs, np.array(list("wxyz")), RATED, None, 0., (), {})
PRIOR = Prior(PROBLEM.mu, PROBLEM.Sigma, .8, "constant", np.ones((2, 2)), np.ones((1, 2)), np.array([2, 3]), np.array([0]), {})
FORETOLD = Predictions(np.zeros(4, int), np.arange(4.0), np.ones(4), np.arange(4.0))
TABLE = Table(.9, 1.0, 1.0, 1.0, 0.0, None, None, None, None)           # of a feature that no item has
SOLVED = TABLE._replace(slope=1.0)
GENERAL = solve_general([0.0], [0.0], [1.0], .9, 1.0, 1.0)
SEEN = Episodes(np.ones((2, 2)), np.zeros((2, 3), int), np.ones((2, 3)), np.ones((2, 3)), np.ones((1, 2, 3), bool),
                np.ones((1, 2)))
STREAM = Stream(SEEN.items, SEEN.feedback, SEEN.feedback, SEEN.thompson)
ALONE = make_problem([[1]], [1], [.1], [[1]], 1, 0, .9)
START = Start(np.zeros(2), np.eye(2), np.eye(2), 2.0)
HEARD = Users(np.ones((1, 2, 2)), np.ones((1, 2)))
SPEC = Spec("test", "simulated", (("features", 2),), (0.5,), tuple(RULES), horizon=3)
ENTRY = Candidate("UCB", policies.ucb, (.1, .2))
GAINS = np.array([[1., 2., 3.], [0., 1., 2.]])
FRAME = pd.DataFrame({"policy": ["UCB", "DTD-DP"], "mean": [.7, .8], "se": [.1, .1], "below": [-1.0, 0.0]})
ROWS = "a table"            # of experiments.run: whatever is none is refused

NOT_NUMBERS = [NAN, INF, -INF, "3.5", "text", None, MASKED, [], {}]
NUMBER = NOT_NUMBERS + [[1.0, 2.0]]
NOT_PROBLEMS = [None, "text", 3.0, tuple(PROBLEM), ITEMS] + [PROBLEM._replace(**{name: value}) for name, value in (
    ("mu", NAN), ("mu", np.array([NAN, 1])), ("mu", "ab"), ("mu", np.ones(3)), ("mu", np.ma.masked_array([1., 2.], [0, 1])),
    ("mu", np.array([HUGE, 1])), ("noise_sd", 1e200), ("noise_sd", -1.0), ("noise_sd", 0.0), ("noise_sd", NAN),
    ("items", ITEMS * 1e308), ("noise", "text"), ("noise", np.ones(2)), ("noise", np.array([1, 0, 1.])), ("noise", None), ("items", ITEMS[:, :1]), ("items", np.zeros((0, 2))), ("items", None),
    ("probs", np.array([.5, .5, .5])), ("probs", np.array([.5, .5])), ("probs", np.array([1.5, -.5, 0])),
    ("Sigma", -np.eye(2)), ("Sigma", np.eye(3)), ("Sigma", np.array([[1, 0], [.5, 1]])), ("Sigma", np.full((2, 2), NAN)),
    ("cost", "3"), ("cost", NAN), ("cost", HUGE), ("cost", None), ("gamma", 1.0), ("gamma", -.5), ("gamma", NAN))]
ARRAY = [NAN, INF, "text", None, [], {}, MASKED, [1.0, NAN], [1.0, INF], ["a", "b"], [[1.0], [1.0, 2.0]]]

BAD = {
    "problem": NOT_PROBLEMS,
    "problem?": NOT_PROBLEMS[1:],
    "number": NUMBER, "positive": NUMBER + [0.0, -1.0], "nonnegative": NUMBER + [-1.0], "share": NUMBER + [0.0, 1.0, -1.0, 2.0],
    "part": NUMBER + [1.0, -1.0, 2.0], "discount": NUMBER + [1.0, -1.0, 2.0], "reward": NUMBER + [HUGE],
    "count": [NAN, INF, "3", None, MASKED, [], [2], -1, 0, 1.5, True, HUGE, {}],
    "place": [NAN, INF, "3", None, MASKED, [], [2], -1, 1.5, True, HUGE, {}],
    "told": NUMBER + [-1.0, 2.0], "charges": [NAN, "nonsense", None, 3, [], True, np.full((3, 2), 9.0), np.ones((2, 2))],
    "basis": ARRAY[:2] + ["text", [], {}, MASKED, 3.0, [1.0, 2.0], np.eye(3), np.ones((2, 2)), np.full((2, 2), NAN)],
    "index": [NAN, INF, "0", None, MASKED, [], 1.5, True, HUGE, 99, -99],
    "seed": [NAN, INF, "3", None, MASKED, [], -1, 1.5, True, HUGE, {}, [1, -1]],
    "flag": [NAN, "yes", None, 2, [], MASKED], "text": [NAN, "nonsense", None, 3, [], True],
    "numbers": [NAN, INF, "text", None, {}, MASKED, [1.0, NAN], ["a", "b"], [[1.0], [1.0, 2.0]]],
    "variances": [NAN, INF, -1.0, "text", None, {}, MASKED, [1.0, NAN], [1.0, -1.0], ["a"]],
    "vector": ARRAY + [3.0, [[1.0, 2.0]]], "matrix": ARRAY + [3.0, [1.0, 2.0], np.ones((2, 2, 2))],
    "covariance": ARRAY + [np.ones((2, 3)), -np.eye(2), [[1, 0], [.5, 1]], np.eye(3)],
    "sizes": ARRAY + [3.0, [[1.0, 2.0]], [-1.0, 1.0]], "probabilities": ARRAY + [[1.0, 2.0], [1.5, -.5], [1.0], [[.5, .5]]],
    "discounts": ARRAY + [3.0, [.5, .5], [0.0, .5], [.5, 1.0], [.9, .5]], "positives": ARRAY + [3.0, [0.0, 1.0], [-1.0], [2.0, 1.0]],
    "policies": [None, "text", 3, [], [None], ["ucb"], [policies.Policy("nonsense")], MASKED,
                 [policies.Policy("ucb", NAN)], [policies.Policy("ucb", -1.0)], [policies.Policy("ucb", "a")]],
    "policy": [None, "text", 3, [], MASKED, policies.Policy("nonsense"), policies.Policy("ucb", NAN),
               policies.Policy("ucb", -1.0), policies.Policy("dtd_ucb", law="nonsense"), policies.Policy("rollout", 1.0)],
    "kinds": [None, 3, ["nonsense"], [None], "text", MASKED], "kind": [None, 3, "text", (), ENTRY],
    "thetas": ARRAY[1:] + [[1.0, 2.0], np.ones((2, 3))],
    "table": [None, "text", 3.0, (), PROBLEM], "belief": [None],
    "episodes": [None, "text", 3.0, ()] + [SEEN._replace(**{name: value}) for name, value in (
        ("items", None), ("items", SEEN.items + 99), ("items", SEEN.items - 1), ("items", SEEN.items + .5), ("items", SEEN.items[:1]),
        ("feedback", SEEN.feedback * NAN), ("feedback", "text"), ("feedback", SEEN.feedback[:1]),
        ("decisions", SEEN.decisions[0]), ("decisions", SEEN.decisions * NAN), ("decisions", "text"), ("decisions", None))],
    "stream": [None, "text", 3.0, ()] + [STREAM._replace(**{name: value}) for name, value in (
        ("items", None), ("items", STREAM.items + 99), ("items", STREAM.items - 1), ("items", STREAM.items + .5),
        ("feedback", STREAM.feedback * NAN), ("feedback", "text"), ("pay", STREAM.pay[:1]), ("pay", STREAM.pay * INF),
        ("thompson", STREAM.thompson * NAN), ("thompson", None))],
    "dataset": [None, "movielens", 3.0, ()] + [DATA._replace(**{name: value}) for name, value in (
        ("items", ITEMS * NAN), ("items", None), ("items", ITEMS * HUGE), ("ratings", None), ("ratings", "text"),
        ("ratings", RATED._replace(value=RATED.value * NAN)), ("ratings", RATED._replace(item=RATED.item + 99)),
        ("ratings", RATED._replace(start=RATED.start - 1)))],
    "users": [None, "text", 3, NAN, [-1], [99], [1.5], [NAN], [True, False], ["w"], MASKED, [[0, 1]], [HUGE]],
    "prior": [None, "text", 3.0, ()] + [PRIOR._replace(**{name: value}) for name, value in (
        ("mu", PRIOR.mu * NAN), ("mu", np.ones(3)), ("Sigma", -np.eye(2)), ("Sigma", None), ("noise_sd", -1.0), ("noise_sd", NAN),
        ("noise", "nonsense"))],
    "predictions": [None, "text", 3.0, ()] + [FORETOLD._replace(**{name: value}) for name, value in (
        ("mean", FORETOLD.mean * NAN), ("sd", FORETOLD.sd * 0), ("sd", -FORETOLD.sd), ("rating", None), ("rating", FORETOLD.rating[:2]),
        ("mean", "text"))],
    "path": [None, 3.5, [], NAN, MASKED, "/nowhere/at/all"], "folder": [3.5, [], "", NAN, MASKED],
    "names": [None, 3, [], ["nonsense"], NAN, ["Drama", "Drama"]],
    "spec": [None, "simulated", 3.0, ()] + [SPEC._replace(**{name: value}) for name, value in (
        ("costs", (NAN,)), ("costs", ()), ("costs", None), ("costs", ("a",)), ("policies", ()), ("policies", None), ("policies", ("ucb",)),
        ("horizon", 0), ("horizon", 1.5), ("horizon", "3"), ("tuning", None), ("tuning", (0, 0)), ("sequences", (1, 1)),
        ("tol", -1.0), ("tol", NAN), ("tol", "a"), ("seed", -1), ("seed", "a"), ("reference", "nonsense"), ("problem", "nonsense"),
        ("thetas", "nonsense"))],
    "rows": [None, "text", 3.0, (), MASKED],
    "knobs": [None, "text", 3.0, ()] + [Knobs(**{name: value}) for name in Knobs._fields for value in (NAN, "text", None, -9.0, HUGE)
                                        if (name, value) not in (("cost", -9.0), ("favour", HUGE))],
    "entries": [None, 3, [], [None], [ENTRY._replace(alphas=())], [ENTRY._replace(alphas=(NAN, 1.0))], [ENTRY._replace(rule=None)]],
    "families": [None, 3, ["nonsense"], [None], "text"], "labels": [None, 3, NAN], "flags": ARRAY + [3.0, [1.0, 2.0]],
    "types": [None, "text", [0, 1], [0, 1, -1], [0, 1, NAN], [0, 1, .5], [], 3, MASKED],
    "columns": ARRAY + [3.0], "draws": ARRAY + [3.0, [1.0]],
    "first": [None, "text", NAN, [-2], [99], [.5], [NAN], [True], MASKED, 3],
    "people": [None, "text", 3, NAN, [], [-1], [99], [1.5], [NAN], [True, False], ["w"], MASKED, [[0, 1]], [HUGE]],
    "weight": ["text", None, [], MASKED, {}], "ridge": ["text", NAN, INF, -1.0, MASKED, [1.0] * 3, [], {}],
    "rated": [None, 3, ()], "ids": [None, 3], "scale": [3, "ab", (NAN, 5), (5, 0), (0,), ("a", "b")],
    "levels": [None, 3, "text", (NAN,), (-.1,), (1.5,), ()], "pair": [None, 3, ("a",)], "range": [None, 3, "text", (NAN, 1.0), (1.0, 0.0), (1.0,), [[0.0, 1.0]], MASKED, {}],
    "a spec": [None, "simulated", 3.0, ()],
    "plan": [None, "simulated", 3.0, (), SPEC._replace(problem="nonsense"), SPEC._replace(thetas="nonsense"),
             SPEC._replace(options=(("nonsense", 1),)), SPEC._replace(thetas="held_out")],
    "reference": ARRAY + [3.0, [1.0, 2.0]], "items": ARRAY + [3.0, [1.0], ITEMS * HUGE, ITEMS[:, :1]],
    "law": [None, "text", 3.0, NAN, [1.0], [1.0, 2.0], [1.0, 0.0, 1.0], [1.0, NAN, 1.0], [1.0, -1.0, 1.0], MASKED, {}],
    "noise": NUMBER + [0.0, -1.0, 1e200, 1e-200], "noise_var": [NAN, INF, 0.0, -1.0, "text", None, MASKED, [1.0, NAN], [1.0] * 3],
    "error": [-1.0, "text", None, MASKED, {}], "mean": ["text", None, MASKED, {}], "freedom": [NAN, -1.0, 0, "text", None, MASKED, {}], "size": [NAN, -1.0, 0, 0.5, 1, "text", None, MASKED, {}],
    "freedoms": [NAN, -1.0, 0, "text", None, MASKED, {}],
    "frame": [None, "text", 3.0, (), ITEMS, FRAME.mean, pd.DataFrame(), pd.concat([FRAME, FRAME], axis=1)],
    "digits": [NAN, INF, "3", None, MASKED, [], [2], -1, 1.5, True, HUGE, 13, {"nonsense": 3}, {"mean": -1}, {"mean": True}],
    "columns by name": ["mean", 3, ["mean"], {"nonsense": "se"}, {"mean": "nonsense"}, {"mean": "mean"}, {"mean": "policy"},
                        {"se": "below"}, NAN, MASKED],
    "words by name": ["reward", 3, ["mean"], {"nonsense": "reward"}, {"mean": 3}, {"se": "behind the ±"}, NAN, MASKED],
    "title": [3, True, ["A title"], NAN, MASKED],
    "drift": NUMBER + [-.1, 1.1], "split": NUMBER + [-.1, 1.0], "tail": [value for value in NUMBER if value is not INF] + [2.0, -1.0],
    "spread": ARRAY + [1.0, [1.0], [1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, -1.0]],
    "truth": [None, "text", 3.0, (), PROBLEM] + [Truth(PROBLEM)._replace(**{name: value}) for name, value in (
        ("problem", None), ("problem", PROBLEM._replace(mu=NAN)), ("drift", 2.0), ("drift", NAN), ("drift", "a"), ("tail", 2.0), ("tail", NAN),
        ("noise_tail", -1.0), ("noise_tail", None), ("split", 1.0), ("split", [.5, .5]))],
    "alone": NOT_PROBLEMS + [PROBLEM, ALONE._replace(Sigma=np.zeros((1, 1))), ALONE._replace(items=np.full((1, 1), 2.0))],
    "bonus": [NAN, INF, -1.0, "text", None, {}, MASKED, [1.0, NAN], [1.0, -1.0], [1.0, 2.0]], "fineness": NUMBER + [0.0, -1.0, 2.0],
    "services": [None, "text", 3, [], [None], [RULES[0]], MASKED, [Service(policies.thompson())], [Service(RULES[0], "nonsense")],
                 [Service(RULES[0], doubt="nonsense")], [Service(RULES[0], optimism=-1.0)], [Service(RULES[0], welcome=-1)],
                 [Service(None)]],
    "start": [None, "text", 3.0, ()] + [START._replace(**{name: value}) for name, value in (
        ("mu", NAN), ("mu", np.ones(3)), ("V", -np.eye(2)), ("V", None), ("guess", np.zeros((2, 2))), ("guess", np.eye(3)),
        ("weight", 0.0), ("weight", NAN))],
    "heard": [None, "text", 3.0, ()] + [HEARD._replace(**{name: value}) for name, value in (
        ("gram", None), ("gram", HEARD.gram * NAN), ("gram", np.ones((1, 2, 3))), ("moment", None), ("moment", np.ones(2)))],
    "object": [None, "text", 3.0, (), ITEMS], "anything": [],
}
FINE = {("experiments.typical_costs", "steps", "[]")}         # no steps, no costs


ALPHA, P, R = (1.0, "nonnegative"), (PROBLEM, "problem"), (RULES, "policies")
SEED, COUNT, HORIZON = (0, "seed"), (4, "count"), (3, "count")
LAW, EVEN, TRUE = ("euclid", "text"), (4, "count"), (make_truth(PROBLEM, drift=.1), "truth")
SIMULATED = dict(problem=P, policies=R, replications=COUNT, horizon=HORIZON, seed=SEED, thetas=(SEEN.theta, "thetas"),
                 reward=("expected", "text"), first=(0, "place"), truth=(PROBLEM, "problem"))
SEARCH = dict(inner=COUNT, effort=COUNT, seed=SEED)
READ = dict(table=(SOLVED, "table"), var=(.5, "variances"))
WON = dict(problem=P, rules=R, replications=COUNT, horizon=HORIZON, seed=SEED)
MAIN = dict(mu=([0., 0.], "vector"), Sigma=(np.eye(2), "covariance"))
NAME = ("value", "anything")

CALLS = {
    "dp.boundary": dict(table=(SOLVED, "table"), alpha=(1.0, "positive"), prec=(2.0, "variances"), x=(1.0, "positive")),
    "dp.decide": dict(READ, net_mean=(0.0, "numbers"), alpha=(1.0, "positive"), x=(1.0, "positive")),
    "dp.first_forward": dict(values=([1.0, -1.0], "vector"), probs=([.5, .5], "probabilities"), gamma=(.5, "discount")),
    "dp.general_smoothed_value": dict(table=(GENERAL, "table"), mean=(0.0, "number"), sd=(1.0, "positive"), var=(.5, "positive")),
    "dp.general_value": dict(table=(GENERAL, "table"), mean=(0.0, "numbers"), var=(.5, "variances")),
    "dp.gittins_index": dict(mean=(0.0, "numbers"), var=(.5, "variances"), gamma=(.9, "discount"), noise_sd=(1.0, "positive"),
                             tol=(.1, "share")),
    "dp.indifference_cost": dict(READ, mean=(0.0, "numbers")),
    "dp.patient_regret": dict(life=(3.0, "positive")), "dp.regret_slope": dict(life=(1e4, "positive")),
    "dp.q_brackets": dict(READ, table=(TABLE, "table"), net_mean=(0.0, "numbers"), x=(1.0, "positive")),
    "dp.q_values": dict(READ, net_mean=(0.0, "numbers"), x=(1.0, "positive")),
    "dp.smoothed_value": dict(table=(SOLVED, "table"), net_mean=(0.0, "number"), sd=(1.0, "positive"), var=(.5, "positive")),
    "dp.solve": dict(x=([0.0, 1.0], "sizes"), probs=([.5, .5], "probabilities"), gamma=(.9, "discount"), noise_sd=(1.0, "positive"),
                     var_max=(1.0, "positive"), tol=(.1, "share"), certify=(True, "flag"), between=(True, "flag"),
                     info=([0.0, 1.0], "sizes")),
    "dp.solve_general": dict(x=([0.0, 1.0], "vector"), charge=([0.0, 1.0], "vector"), probs=([.5, .5], "probabilities"),
                             gamma=(.9, "discount"), noise_sd=(1.0, "positive"), var_max=(1.0, "positive"), tol=(.1, "share"),
                             between=(True, "flag"), info=([0.0, 0.0], "sizes"), means=((0.0, 1.0), "range")),
    "dp.value": dict(READ, table=(TABLE, "table"), net_mean=(0.0, "numbers")),
    "policies.bayes_ucb": dict(alpha=ALPHA), "policies.clusters": dict(alpha=ALPHA), "policies.gittins": dict(alpha=ALPHA),
    "policies.information_directed": dict(alpha=ALPHA), "policies.knowledge_gradient": dict(alpha=ALPHA),
    "policies.patient": dict(alpha=ALPHA), "policies.phased": dict(alpha=ALPHA), "policies.scores": dict(alpha=ALPHA), "policies.ucb": dict(alpha=ALPHA),
    "policies.exploit": {}, "policies.thompson": {},
    "policies.dtd_dp": dict(alpha=ALPHA, noise=("basis", "text"), law=LAW), "policies.dtd_ucb": dict(alpha=ALPHA, law=LAW),
    "policies.rollout": dict(alpha=ALPHA, futures=(9, "count")),
    "policies.compile_rules": dict(problem=P, policies=R),
    "policies.family_name": dict(policy=(RULES[1], "policy")), "policies.is_tuned": dict(policy=(RULES[1], "policy")),
    "policies.label": dict(policy=(RULES[1], "policy")),
    "policies.find": dict(policies=R, name=("UCB", "text"), alpha=(.5, "weight")),
    "policies.grid": dict(kinds=(("exploit", "ucb"), "kinds")),
    "policies.mean_projection": dict(problem=P, law=LAW),
    "policies.projections": dict(problem=P, law=LAW, of=([0, 1], "first")),
    "policies.register": dict(family=(policies.REGISTRY["ucb"], "kind")),
    "bound.best": dict(problem=P, budget_seconds=(1.0, "positive"), seed=SEED),
    "bound.certified": dict(problem=P, depth=(1, "place"), nodes=(5, "count")),
    "bound.conditional": dict(problem=P), "bound.hindsight": dict(problem=P), "bound.normalised": dict(problem=P),
    "bound.control": dict(problem=P, episodes=(SEEN, "episodes"), inner=COUNT, seed=SEED),
    "bound.decomposition": dict(problem=P, tol=(.1, "share"), noise=("basis", "text"), charges=("paper", "charges"),
                                basis=(None, "basis"), told=(1.0, "told"), learning=(0.0, "nonnegative")),
    "bound.even_charges": dict(problem=P, told=(1.0, "told"), learning=(0.0, "nonnegative")),
    "bound.decomposition_for": dict(problem=P, tol=(.1, "share")),
    "bound.gifts": dict(problem=P, charges=("paper", "charges"), basis=(None, "basis"), told=(1.0, "told"), sequences=COUNT, seed=SEED),
    "bound.tightest_charges": dict(problem=P, basis=(None, "basis"), told=(1.0, "told"), start=("best", "charges"), tol=(.1, "share"),
                                   evaluations=(1, "count")),
    "bound.in_basis": dict(problem=P, basis=(np.eye(2), "matrix")),
    "bound.decomposition_sampled": dict(problem=P, draws=COUNT, seed=SEED),
    "bound.dual": dict(SEARCH, problem=P, paths=COUNT), "bound.finite_sample": dict(SEARCH, problem=P, paths=COUNT),
    "bound.finite_sample_first": dict(SEARCH, problem=P, paths=COUNT),
    "bound.dual_first": dict(SEARCH, problem=P, paths=COUNT, sequences=COUNT, items=EVEN),
    "bound.dual_second": dict(SEARCH, problem=P, outer=COUNT, paths=COUNT, sequences=COUNT),
    "bound.forward_values": dict(problem=P, sequences=COUNT, seed=SEED),
    "bound.full_first": dict(problem=P, sequences=COUNT, seed=SEED, items=EVEN),
    "bound.full_observation": dict(problem=P, sequences=COUNT, seed=SEED, horizon=HORIZON),
    "bound.gap": dict(SEARCH, problem=P, episodes=(SEEN, "episodes")),
    "bound.ladder": dict(problem=P, paths=COUNT, seed=SEED),
    "bound.least_charges": dict(SEARCH, problem=P, first=([-1, 0], "first")),
    "bound.full_observation_told": dict(problem=P, sequences=COUNT, seed=SEED, drift=(.1, "drift"), spread=([1.0] * 4, "spread"),
                                        noise_spread=(None, "spread"), first=(0, "index")),
    "simulate.full_first_of": dict(truth=TRUE, sequences=COUNT, seed=SEED),
    "simulate.full_observation_of": dict(truth=TRUE, sequences=COUNT, seed=SEED),
    "simulate.hindsight_of": dict(truth=TRUE), "simulate.meet": dict(truth=TRUE, users=COUNT, horizon=HORIZON, seed=SEED),
    "simulate.make_truth": dict(problem=P, drift=(.1, "drift"), tail=(5.0, "tail"), noise_tail=(5.0, "tail"), split=(.5, "split")),
    "simulate.play_informed": dict(truth=TRUE, policies=R, stream=(STREAM, "stream")),
    "experiments.self_selected": dict(problem=P, strength=(.5, "number")),
    "experiments.with_level": dict(problem=P, sd=(.5, "positive")),
    "simulate.decoupled": dict(problem=(APART, "problem"), policy=(RULES[0], "policy"), nodes=(24, "count")),
    "simulate.episodes": SIMULATED, "simulate.replicate": SIMULATED,
    "simulate.replicate_controlled": {name: given for name, given in SIMULATED.items() if name not in ("reward", "truth")},
    "simulate.serve": dict(problem=P, services=([Service(RULES[0])], "services"), start=(START, "start"), users=(2, "count"),
                           runs=(2, "count"), horizon=HORIZON, seed=SEED),
    "simulate.threshold_rule": dict(problem=(ALONE, "alone"), bonus=(.5, "bonus"), levels=(4, "count"), fineness=(.5, "fineness")),
    "simulate.play": dict(problem=P, policies=R, stream=(STREAM, "stream")),
    "simulate.truncation": dict(problem=P, horizon=HORIZON),
    "datasets.arxiv": dict(snapshot=("papers.json", "path"), clicks=(__file__, "path"), year=(2014, "count"), k=COUNT, seed=SEED,
                           articles=COUNT, ratio=COUNT, skip_damaged=(False, "flag")),
    "datasets.by_category": dict(
        source=("test", "anything"), labels=([["a"], ["b"]], "labels"), categories=(["a", "b"], "names"), notes=({}, "anything"),
        columns=(tuple(np.array([[0, 1], [0, 1], [1, 2], [0, 0]])), "rated"), users=(["u", "v"], "ids"), item_names=(["i", "j"], "ids")),
    "datasets.calibration": dict(predictions=(FORETOLD, "predictions"), bins=(2, "count")),
    "datasets.choose_noise": dict(dataset=(DATA, "dataset"), holdout=(.5, "part"), seed=SEED, method=("least_squares", "text"),
                                  min_ratings=(1, "place"), ridge=(1.0, "ridge")),
    "datasets.citeulike": dict(folder=(".", "path"), ratio=COUNT, articles=COUNT, topics=(10, "count")),
    "datasets.flag": dict(labels=([["a"], ["b"]], "labels"), categories=(["a", "b"], "names")),
    "datasets.histories": dict(dataset=(DATA, "dataset"), users=([0, 2], "users")),
    "datasets.movielens": dict(categories=(("Drama",), "names")),
    "datasets.normal_quantiles": dict(values=([1.0, 2.0], "vector")),
    "datasets.predict": dict(dataset=(DATA, "dataset"), prior=(PRIOR, "prior"), users=([0, 2], "users"), seen=(.5, "part")),
    "datasets.prior": dict(dataset=(DATA, "dataset"), holdout=(.25, "part"), seed=SEED, method=("least_squares", "text"),
                           min_ratings=(1, "place"), ridge=(1.0, "ridge"), noise=("features", "text")),
    "datasets.ratings": dict(items_csv=(__file__, "path"), ratings_csv=(__file__, "path"), scale=((0, 5), "scale"),
                             time_unit=("s", "text")),
    "datasets.residuals": dict(dataset=(DATA, "dataset"), users=([0, 2], "users")),
    "datasets.scores": dict(predictions=(FORETOLD, "predictions"), levels=((.5, .8), "levels")),
    "datasets.shares": dict(flags=(np.ones((2, 2)), "flags")),
    "datasets.theta_draws": dict(dataset=(DATA, "dataset"), prior=(PRIOR, "prior"), users=([0, 2], "users"), seed=SEED),
    "datasets.write_movielens": dict(folder=(".", "path"), users=COUNT, categories=(("Drama",), "names")),
    "datasets.yelp": dict(folder=(".", "path"), categories=(("Food",), "names"), skip_damaged=(False, "flag")),
    "experiments.best": dict(table=(ROWS, "rows")),
    "experiments.believed": dict(dataset=(DATA, "dataset"), prior=(PRIOR, "prior"), cost=(3.0, "reward"), gamma=(.9, "share")),
    "experiments.build": dict(spec=(SPEC, "plan")),
    "experiments.charges": dict(WON, truth=(PROBLEM, "problem")), "experiments.gains": WON, "experiments.leader": WON,
    "experiments.chosen": dict(spec=(SPEC, "a spec"), rows=(ROWS, "rows")),
    "experiments.curves": dict(table=(ROWS, "rows"), column=("mean", "text")),
    "experiments.evaluate": dict(problem=P, rules=R, users=(4, "count"), horizon=HORIZON, seed=SEED, reference=(0, "index")),
    "experiments.even_noise": dict(problem=P, sd=(1.0, "positive")),
    "experiments.families": dict(problem=P, names=(("UCB",), "families")),
    "experiments.forwarded": dict(problem=P, arms=R, types=([0, 1, 1], "types"), replications=COUNT, horizon=HORIZON, seed=SEED),
    "experiments.from_knobs": dict(knobs=(Knobs(), "knobs")),
    "experiments.game": dict(problem=P, policies=R, users=COUNT, horizon=HORIZON, seed=SEED),
    "experiments.leads": {}, "experiments.rewards": dict(name=("simulated", "text")),
    "experiments.sheets": dict(gammas=([.5, .9], "discounts"), noises=([1.0], "positives"), shares=([.5], "discounts"),
                               net_mean=([-1.0, 0.0], "vector"), sd=([.5, 1.0], "positives"), tol=(.1, "share")),
    "experiments.over_users": dict(rewards=(GAINS, "columns"), reference=(0, "index")),
    "experiments.replay": dict(problem=P, dataset=(DATA, "dataset"), users=([0, 2], "people"), policies=R, horizon=HORIZON,
                               shuffle=(0, "place"), seed=SEED),
    "experiments.run": dict(spec=(SPEC, "spec"), replications=COUNT, target_se=(.1, "positive"), client=(None, "anything"),
                            folder=(None, "folder"), progress=(False, "flag"), chunk=(1, "count")),
    "experiments.share": dict(columns=(GAINS, "columns"), reference=(GAINS[0], "reference")),
    "experiments.size": dict(default=(1, "anything"), publication=(2, "anything")),
    "experiments.tune": dict(problem=P, entries=([ENTRY], "entries"), replications=COUNT, horizon=HORIZON, seed=SEED),
    "experiments.tune_and_measure": dict(problem=P, costs=((1.0, 2.0), "vector"), entries=([ENTRY], "entries"), tuning=COUNT,
                                         users=COUNT, horizon=HORIZON, seed=SEED),
    "experiments.typical_costs": dict(problem=P, steps=((-.5, 0.0), "vector")),
    "experiments.winner": dict(columns=(GAINS, "columns"), names=(("a", "b"), "pair")),
    "experiments.wrong": dict(problem=P, noise=(1.0, "positive"), prior=(1.0, "positive"), mean=(0.0, "number")),
    "problem.as_floats": dict(name=NAME, value=([1.0], "vector"), ndim=(1, "anything")),
    "problem.as_numbers": dict(name=NAME, value=([1.0], "numbers")),
    "problem.as_probs": dict(probs=([.5, .5], "probabilities"), n=(2, "anything")),
    "problem.as_covariance": dict(name=("Sigma", "anything"), Sigma=(np.eye(2), "covariance"), k=(2, "anything")),
    "problem.as_scalar": dict(name=NAME, value=(1.0, "number"), low=(-INF, "anything"), high=(INF, "anything")),
    "problem.as_count": dict(name=NAME, value=(1, "count"), low=(1, "anything"), high=(9, "anything")),
    "problem.as_positions": dict(name=NAME, value=([0, 1], "people"), count=(4, "anything"), least=(1, "anything"),
                                 first=(0, "anything")),
    "problem.as_choice": dict(name=NAME, value=("a", "text"), known=(("a", "b"), "anything")),
    "problem.as_path": dict(name=NAME, value=("a", "folder")),
    "problem.as_flag": dict(name=NAME, value=(True, "flag")),
    "problem.as_made": dict(name=NAME, value=(PROBLEM, "object"), kind=(type(PROBLEM), "anything"), maker=("", "anything")),
    "problem.make_problem": dict(items=(ITEMS, "items"), probs=(PROBLEM.probs, "probabilities"), mu=(PROBLEM.mu, "vector"),
                                 Sigma=(PROBLEM.Sigma, "covariance"), noise_sd=(.8, "noise"), cost=(3.0, "reward"),
                                 gamma=(.9, "share"), noise=("constant", "law")),
    "problem.as_noise": dict(noise=("features", "law"), n=(3, "anything")),
    "problem.noise_factors": dict(problem=P), "problem.basis_var": dict(problem=P),
    "problem.checked": dict(problem=P, name=("problem", "anything")), "problem.noise_var": dict(problem=P),
    "problem.effective_horizon": dict(gamma=(.9, "share"), share=(.1, "share")),
    "posterior.compile_problem": dict(problem=P), "posterior.noise_share": dict(problem=P),
    "posterior.variances": dict(items=(ITEMS, "matrix"), Sigma=(np.eye(2), "covariance")),
    "posterior.few": dict(problem=P),
    "posterior.coming": dict(problem=P, count=COUNT, seed=SEED),
    "posterior.predictive": dict(MAIN, x=([1., 0.], "vector")),
    "posterior.update": dict(MAIN, x=([1., 0.], "vector"), y=(1.0, "number"), noise_var=(1.0, "positive")),
    "posterior.as_feedback": dict(X=(np.eye(2), "matrix"), y=([1., 2.], "vector"), noise_var=(1.0, "noise_var"),
                                  k=(2, "count")),
    "posterior.batch": dict(MAIN, X=(np.eye(2), "matrix"), y=([1., 2.], "vector"), noise_var=(1.0, "noise_var")),
    "population.summary": dict(X=(np.eye(2), "matrix"), y=([1., 2.], "vector"), noise_var=(1.0, "noise_var")),
    "population.pooled": dict(MAIN, V=(np.eye(2), "covariance"), gram=(np.eye(2), "covariance"), moment=([1., 2.], "vector")),
    "population.log_likelihood": dict(MAIN, users=(HEARD, "heard")),
    "population.estimate": dict(users=(HEARD, "heard"), start=([0., 0.], "vector"), V=(np.eye(2), "covariance"),
                                guess=(np.eye(2), "covariance"), weight=(1.0, "positive"), steps=(2, "count")),
    "filter.read": dict(path=("/dev/null/none", "path")),
    "filter.share": dict(problem=P, policy=(policies.ucb(1.0), "policy")),
    "filter.write": dict(path=("/dev/null/none", "path"), problem=P, policy=(policies.ucb(1.0), "policy")),
    "tables.tabulate": dict(frame=(FRAME, "frame"), digits=(3, "digits"), pairs=({"mean": "se"}, "columns by name"),
                            heads=({"mean": "reward"}, "words by name"), index=(True, "flag"), caption=("A title", "title")),
    "estimate.sample_mean": dict(values=([1.0, 3.0], "columns")),
    "estimate.half_width": dict(se=(1.0, "error"), count=(9, "size")),
    "estimate.upper_limit": dict(mean=(1.0, "mean"), se=(1.0, "error"), df=(9, "freedom")),
    "estimate.rounded_up": dict(value=(1.0, "mean"), digits=(2, "place")), "estimate.rounded_down": dict(value=(1.0, "mean"), digits=(2, "place")),
    "estimate.betting_limit": dict(values=([.25, .5], "vector"), most=(1.0, "positive"), level=(.95, "share")),
    "estimate.degrees_of_freedom": dict(variances=([1.0, 2.0], "variances"), dfs=([4, 4], "freedoms")),
    "estimate.interval": dict(mean=(1.0, "mean"), se=(1.0, "error"), sign=("+", "text"), count=(9, "size")),
    "estimate.controlled": dict(values=([1., 2., 3.], "vector"), controls=([-1., 0., 1.], "vector")),
    "estimate.controlled_rows": dict(values=(GAINS, "columns"), controls=(GAINS - 1, "columns"), reference=(0, "index")),
}
INNER = {"dp.exploration_benefits": "takes arrays as bytes, which policies.compile_rules makes of a checked problem",
         "posterior.blocks": "cuts two sizes of arrays that have been checked into slices",
         "posterior.leading": "looks at a problem that has been checked; `coming` is the public edge",
         "posterior.stratified": "takes a generator; `coming` is the public edge",
         "posterior.step": "says in its first line that it checks nothing: `update` is the public edge"}


FILE_LOADERS = {f"datasets.{name}" for name in ("arxiv", "citeulike", "movielens", "ratings", "write_movielens", "yelp")}   # not held to the table yet


def public():
    """{"package.name": function} of every public function, kernels aside: they check nothing."""
    found = {}
    for part in PACKAGES + MODULES:
        module = importlib.import_module(f"lib.{part}")
        names = getattr(module, "__all__", None) or [name for name, value in vars(module).items() if name[0] != "_" and isinstance(
            value, types.FunctionType) and value.__module__ == module.__name__]
        found |= {f"{part}.{name}": getattr(module, name) for name in names}
    return {name: value for name, value in found.items() if callable(value) and not isinstance(value, type)}


def answer(function, name, arguments):
    """What is wrong with the answer to a call whose argument `name` is bad, or None."""
    try:
        found = function(**arguments)
    except (TypeError, ValueError) as error:
        value = arguments[name]
        parts = value if isinstance(value, (list, tuple)) else []
        fields = {field for part in (value, *parts) for field in getattr(part, "_fields", ())}
        named = {name, *fields} & set(re.findall(r"\w+", str(error)))
        return None if named else f"does not name it: {type(error).__name__}: {str(error)[:100]}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:100]}"
    return f"taken: {str(found)[:60]}"


def test_every_public_function_is_in_the_table():
    assert set(public()) == set(CALLS) | set(INNER)


@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if call and name not in FILE_LOADERS])
def test_bad_values_are_refused_by_name(name):
    function, call = public()[name], CALLS[name]
    assert set(call) == set(inspect.signature(function).parameters)
    good = {argument: value for argument, (value, _) in call.items()}
    wrong = []
    for argument, (_, kind) in call.items():
        optional = inspect.signature(function).parameters[argument].default is None
        for value in BAD[kind]:
            if optional and value is None:
                continue
            said = answer(function, argument, good | {argument: value})
            if said and (name, argument, str(value)) not in FINE:
                wrong.append(f"{argument} = {str(value)[:300]!r} {said}")
    assert not wrong, "\n".join(["", *wrong])


@pytest.mark.parametrize("name, value", [("gamma", None), ("mu", [0.0, None]), ("items", [[1.0, 0.0], [None, 1.0]])])
def test_a_null_is_said_to_be_one(name, value):
    given = PROBLEM._asdict() | {name: value}
    with pytest.raises(ValueError, match=f"{name} must be numeric, got .*None"):
        make_problem(**given)
