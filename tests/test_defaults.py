"""What a caller gets who leaves an argument out: chapters, published tables and docstrings rest on these values."""
from importlib import import_module
import inspect

import numpy as np
import pytest

INFINITE = {"low": -np.inf, "high": np.inf}
KNOWN = {
    "bound.betting": {"finite_sample_first": {"paths": 1000, "inner": 4, "effort": 2000, "seed": 0}, "least_capital": {"splits": 6}},
    "bound.charges": {"tightest_charges": {"basis": None, "told": 1, "start": "best", "tol": 1e-2, "evaluations": 300}},
    "bound.duality": {
        "forward_values": {"sequences": 400, "seed": 0}, "full_first": {"sequences": 400, "seed": 0, "items": None},
        "dual": {"paths": 400, "inner": 4, "effort": 2000, "seed": 0}, "finite_sample": {"paths": 400, "inner": 4, "effort": 2000, "seed": 0},
        "dual_first": {"paths": 1000, "inner": 4, "effort": 2000, "seed": 0, "sequences": 400, "items": None},
        "dual_second": {"outer": 16, "paths": 300, "inner": 4, "effort": 2000, "seed": 0, "sequences": 400},
        "ladder": {"paths": 1000, "seed": 0}, "best": {"budget_seconds": 10, "seed": 0}},
    "bound.giveaways": {"gifts": {"charges": "paper", "basis": None, "told": 1, "sequences": 400, "seed": 0}},
    "bound.told": {"full_observation_told": {"drift": 0, "spread": None, "noise_spread": None, "first": None}},
    "bound.optimum": {"solve": {"step": 1 / 8, "depth": 20, "tolerance": 1e-3}},
    "bound.penalty": {"control": {"inner": 2, "seed": 0}, "gap": {"inner": 4, "effort": 2000, "seed": 0},
                      "least_charges": {"inner": 4, "effort": 2000, "seed": 0}},
    "bound.theorem": {"decomposition": {"tol": 1e-3, "noise": "basis", "charges": "paper", "basis": None, "told": 1.0, "learning": 0.0},
                      "decomposition_for": {"tol": 1e-3}, "even_charges": {"told": 1.0, "learning": 0.0}, "decompose": {"learning": 0.0}},
    "bound.unsampled": {"certified": {"depth": 1, "nodes": 17}, "blocks": {"growth": .3}, "frame_of": {"growth": .3}},
    "datasets._arxiv": {
        "arxiv": {"year": 2014, "k": 10, "seed": 0, "articles": 500, "ratio": None, "skip_damaged": False},
        "catalogue": {"year": 2014, "k": 10, "seed": 0, "skip_damaged": False},
        "with_clicks": {"seed": 0, "articles": 500, "ratio": None, "time_unit": None}, "papers": {"year": 2014, "skip_damaged": False},
        "Paper": {"title": None, "abstract": None, "versions": None}},
    "datasets._citeulike": {"citeulike": {"folder": None, "ratio": 1, "articles": 500, "topics": 10}, "first_words": {"count": 20},
                            "derive": {"k": 10, "seed": 0, "smallest": 25, "passes": 10}},
    "datasets._csv": {"ratings": {"scale": None, "time_unit": None}, "read_ratings": {"scale": None, "strict": True}},
    "datasets._movielens": {"write_movielens": {"users": 671}},
    "datasets._yelp": {"yelp": {"skip_damaged": False}},
    "datasets.prediction": {"choose_noise": {"holdout": .25, "seed": 0, "method": "least_squares", "min_ratings": 50, "ridge": None},
                            "predict": {"seen": .5}, "scores": {"levels": (.5, .8, .95)}, "calibration": {"bins": 10}},
    "datasets.priors": {
        "user_sums": {"noise": "constant"}, "coefficients": {"ridge": 0, "about": 0}, "theta_draws": {"seed": 0},
        "empirical_bayes": {"iterations": 2000},
        "prior": {"holdout": .25, "seed": 0, "method": "least_squares", "min_ratings": 50, "noise": "features"}},
    "datasets.readers": {"read_json": {"skip_damaged": False}, "shown": {"most": 60}},
    "datasets.topics": {"learn_topics": {"k": 10, "seed": 0, "passes": 10}},
    "dp.decisions": {"q_brackets": {"x": 1}, "decide": {"alpha": 1, "x": 1}},
    "dp.gittins": {"gittins_index": {"noise_sd": 1, "tol": 1e-6}},
    "dp.program": {"solve": {"tol": 1e-3, "certify": True, "between": True}, "as_number": INFINITE,
                   "q_values": {"x": 1}, "boundary": {"x": 1}},
    "dp.quadrature": {"hat_law": {"reach": 8.25}},
    "experiments.shortfall": {"Effort": {"paths": 1000, "inner": 4, "effort": 2000, "outer": 0, "items": 1024}, "shortfall": {"seed": 0}},
    "estimate": {"betting_limit": {"level": .95}, "half_width": {"count": np.inf}, "upper_limit": {"df": np.inf}, "interval": {"sign": "", "count": np.inf}},
    "experiments.comparison": {
        "control": {"seed": 0}, "evaluate": {"horizon": None, "seed": 0, "reference": 0}, "leader": {"seed": 0},
        **{name: {"horizon": None, "seed": 0} for name in ("charges", "gains", "tune", "tune_and_measure")}},
    "experiments.indices": {"gittins": {"gammas": (.5, .6, .7, .8, .9, .95, .99, .995, .999, .9995), "tol": 1e-8}},
    "experiments.unsampled": {"closing": {"step": .005}, "unsampled": {"costs": None, "ends": None, "deeper": None}},
    "experiments.ledger": {"against": {"rival": "UCB"}, "lifetime": {"seed": 0, "users": 100_000, "gamma": .9},
                           "informed_optimum": {"gamma": .9}, "printed_sum": {"gamma": .9}},
    "experiments.moments": {"moments": {"first": 0, "users": 0}},
    "experiments.many_users": {"many_users": {"sizes": None, "seed": 2016, "starts": None, "instances": ("ratings", "simulated")}},
    "experiments.offline": {"replay": {"horizon": 100, "seed": 0}},
    "experiments.playground": {"sheets": {"tol": 1e-3}, "game": {"users": 12, "horizon": 20, "seed": 0}},
    "experiments.problems": {
        "simulated": {"features": 100, "mean": .3, "sd": 1, "noise_sd": .1, "gamma": .9, "favour": 100},
        "rated": {"dataset": "movielens", "gamma": .9}, "documents": {"ratio": 1, "articles": 40, "gamma": .9, "topics": 10},
        "combinations": {"correlated": False, "features": 6, "items": 40, "cost": 4, "gamma": .9},
        "Knobs": {"features": 4, "mix": 0, "correlation": 0, "favour": 10, "noise": 1, "cost": .3, "gamma": .9},
        "wrong": {"noise": 1, "prior": 1, "mean": 0}},
    "experiments.robustness": {"field": {"seed": 0}, "informed": {"seed": 0}, "forgetful": {"seed": 0}, "bounds": {"seed": 0},
                               "table": {"sizes": None, "seed": 2016, "instances": (("ratings", 3.8), ("simulated", .6), ("ratings", 3.5), ("documents", .34))}},
    "experiments.runner": {"run": {"chunk": 32}, "curves": {"column": "mean"}},
    "experiments.sources": {"documents": {"ratio": 1, "articles": 40, "topics": 10}, "rated": {"dataset": "movielens"}},
    "experiments.specs": {"Spec": {"thetas": "prior", "horizon": None, "replications": (512, 40_000), "tuning": (512, 20_000),
                                   "sequences": (500, 20_000), "tol": 1e-3, "seed": 0, "reference": "UCB"}},
    "experiments.theorem": {"version": {"sizes": None, "seed": 2016}, "theorem": {"sizes": None, "seed": 2016, "costs": None}},
    "figures.interactive": {"embedded": {"game": None}},
    "figures.rewards": {"slices": {"level": 0, "sharey": True, "columns": 4}, "over_cost": {"sharey": True},
                        "reward_over_cost": {"sharey": True}, "style_of": {"position": 0}},
    "figures.style": {"mark": {"position": 0}, "canvas": {"columns": 1, "rows": 1, "width": 7, "height": 4},
                      "as_text": {"width": 32}, "label_ends": {"gap": .062, "curves": None}},
    "policies.projection": {"projections": {"law": "euclid", "of": None}, "mean_projection": {"law": "euclid"}},
    "policies.rules": {"Family": {"ties": False, "marks": (), "named": None}},
    "population": {"estimate": {"weight": 1, "steps": 100}},
    "problem": {"as_scalar": INFINITE, "make_problem": {"noise": "features"}, "Problem": {"noise": "features"}, "effective_horizon": {"share": 1e-3}},
    "tables": {"tabulate": {"digits": 4, "pairs": None, "heads": None, "index": True, "caption": None}},
    "report.analysis": {"analyse": {"gamma": .9, "users": 1024, "seed": 0}},
    "simulate.exact": {"decoupled": {"nodes": 240}},
    "simulate.truths": {"make_truth": {"drift": 0, "tail": np.inf, "noise_tail": np.inf, "split": 0}, "meet": {"horizon": 100, "seed": 0},
                        "full_first_of": {"seed": 0}, "full_observation_of": {"seed": 0}},
    "simulate.silence": {"threshold_rule": {"bonus": 0, "levels": 100, "fineness": .05}},
    "simulate.services": {"serve": {"users": 200, "runs": 16, "horizon": 60, "seed": 0}, "Start": {"weight": 5},
                          "Service": {"learns": "mean", "doubt": "counted", "optimism": 0, "welcome": 0}},
    "simulate.replications": {name: {"horizon": 100, "seed": 0, "reward": "expected", "first": 0} for name in ("replicate", "episodes")} |
                             {"truncation": {"horizon": 100}},
}


@pytest.mark.parametrize("module", KNOWN)
def test_an_argument_left_out_has_its_usual_value(module):
    for name, known in KNOWN[module].items():
        parameters = inspect.signature(getattr(import_module(f"lib.{module}"), name)).parameters
        assert {key: parameters[key].default for key in known} == known, name


# The book's own runs: users, users for tuning, item sequences, goal of the bound, seed.  References of chapters rest on them.
OWN = {"simulated": (512, 512, 500, 1e-3, 0), "ratings": (512, 512, 500, 1e-3, 0), "ratings_held_out": (512, 512, 500, 1e-3, 0),
       "documents": (128, 128, 500, None, 6), "documents_held_out": (564, 128, 500, None, 6), "documents_50": (32, 32, 500, None, 6)}
CONSTANTS = {
    "bound.catalogue": {"OWN": 8, "FIRST_SHARE": .04, "FULL_SHARE": .01}, "bound.charges": {"MOST": 20_000},
    "bound.duality": {"EVERY": 1024, "FIRST": 1024, "LEAVES": 256, "TOL": 1e-2, "LEAF": 8},
    "bound.giveaways": {"LONGEST": 2000}, "bound.merged": {"MANY": 20_000, "CLASSES": 20_000, "NARROWEST": 1e-4},
    "bound.theorem": {"LARGE": 5000, "FAR": 5, "ROUNDED": 1e-11, "HARDLY": .8},
    "bound.cells": {"MANY": 500, "ATOMS": 4000, "FEWEST": 40, "MOST": 800, "TOL": .03, "GOAL": .05, "WORTH": .1, "LEAST": .01},
    "bound.slopes": {"FADED": 2e-3, "LEVELS": 40},
    "datasets._csv": {"FEW": 5, "SURE": 10, "MANY": 20}, "datasets.priors": {"CUT": 1e-9, "EFFORT": 10**8, "STALLED": 1e-6},
    "datasets.topics": {"STEPS": 10_000}, "datasets._arxiv": {"RIDGE": 1},
    "datasets._citeulike": {"RATIOS": {10: (1, 4), 50: (1,)}, "RIDGE": {10: 1, 50: .3}, "UNIT": {10: 0, 50: 1 / 256}},
    "datasets.readers": {"LONGEST": 2**26, "HEADER": 100, "UNITS": {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}, "SINCE": 10**8},
    "experiments.ledger": {"LIFETIMES": 7, "RESOLVED": 3}, "experiments.moments": {"DRAWS": 2000, "ENOUGH": 10}, "experiments.runner": {"CHUNK": 32},
    "filter.files": {"VERSION": 1}, "filter.shared": {"FOREIGN": 10_000, "KEPT": 8}, "problem": {"SHARE": 1e-3, "LARGEST": 1e150},
    "policies.directions": {"FEW": 64, "LEAST": 32, "MOST": 64, "SERVED": 14, "ATOMS": 12, "EACH": 16, "ROUGH": .2, "BEYOND": .5},
    "policies.patience": {"FEW": 64, "LATE": .05},
    "policies.lookahead": {"SAMPLE": 256, "PARTS": 4, "CLEAR": 1e-6, "LONG": 10_000, "GUARD": 2, "REST": .02},
    "posterior": {"EXACT": 4096, "COMING": 1024, "COARSE": 1e-9, "FINEST": 1e-23},
    "report.analysis": {"TRIED": 8, "FEWER": (-.2, .2, .6), "USERS": (16, 10**6), "LARGEST": 1e100, "FEW": 16, "LONGEST": 20_000,
                        "TABLES": 2000, "RECORDED": 400, "SEVERAL": 64, "WORK": 1.5e11, "REPLAYED": 2e10},
    "report.checks": {"USERS": 10, "CONDITION": 1e4, "SKEW": 1, "KURTOSIS": 2, "DRIFT": .1, "STOPPED": .2, "LEVEL": .5},
    "report.page": {"ENOUGH": 8, "BINS": 8}, "report.interrupt": {"INTERRUPTED": 130},        # 128 and the number of SIGINT
    "experiments.published": {"SEED": 2016, "EVALUATION": 2, "BOUND": 3, "TOL": 1e-2, "TWICE": ("Knowledge gradient", "Patient lookahead"),
                              "LEADING": 3, "FEWER": 8},
    "experiments.shortfall": {"REST": 1e-4, "LEAF": 8},
    "experiments.comparison": {"TUNING": 1, "EVALUATION": 2},
    "experiments.theorem": {
        "SIZES": {"told": (.4, .2, 0), "sequences": 2000, "paths": 1000, "inner": 4, "effort": 2000, "evaluations": 300}, "TOL": 1e-2,
        "SMALLER": {"simulated": {"sequences": 400, "paths": 100, "inner": 2, "effort": 300},
                    "documents": {"sequences": 1000, "evaluations": 150}}},
}


def test_runs_have_the_sizes_that_chapters_rest_on():
    specs = import_module("lib.experiments.specs").SPECS
    assert {name: (*(pair[0] for pair in (spec.replications, spec.tuning, spec.sequences)), spec.tol, spec.seed)
            for name, spec in specs.items()} == OWN
    assert {spec.sequences[1] for spec in specs.values()} == {20_000}


def test_the_alphas_of_the_sharp_tables():
    tried = {entry.name: entry.alphas for entry in import_module("lib.experiments.published").BEYOND}
    assert tried["UCB, fine grid"] == pytest.approx(.05 + .75 / 7 * np.arange(8))
    assert tried["DTD-DP, model's noise"] == pytest.approx(.2 + 3 / 7 * np.arange(8))
    assert tried["Knowledge gradient"] == (.3, .45, .6, .8, 1, 1.3) and tried["Knowledge gradient, untuned"] == (1,)
    assert tried["Phased exploration"] == (.5, 1, 2, 5, 10, 20) and tried["Patient lookahead"] == (.5,) and len(tried) == 6


@pytest.mark.parametrize("module", CONSTANTS)
def test_a_constant_is_the_one_that_results_were_made_with(module):
    for name, known in CONSTANTS[module].items():
        assert getattr(import_module(f"lib.{module}"), name) == known, name
