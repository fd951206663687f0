"""What the book runs, as plain data, and the tables that come out.

specs: an experiment as data; problems: the problems it is about, made or real; sources: which data stand for them; runner,
moments: run it; comparison: policies tuned and set side by side; shortfall: policies and the dual on the same lives; offline: on real
ratings in order; published, ledger, own: kept results, verdicts, also on own data; theorem, unsampled, indices: tables of Theorem 1, of
bounds without sampling and of Gittins indices; robustness: where the model is wrong; many_users: services that learn the prior;
playground: what the page with sliders and the game shows.
"""
from lib.experiments.comparison import (Candidate, charges, evaluate, families, gains, leader, share, tune,
                                        tune_and_measure, winner)
from lib.experiments.offline import over_users, replay
from lib.experiments.playground import Game, Leads, Rewards, Sheets, game, leads, rewards, sheets
from lib.experiments.problems import Knobs, believed, even_noise, from_knobs, self_selected, typical_costs, with_level, wrong
from lib.experiments.runner import best, chosen, curves, forwarded, run
from lib.experiments.specs import GRID, SPECS, Spec, build, size

__all__ = ["Candidate", "GRID", "Game", "Knobs", "Leads", "Rewards", "SPECS", "Sheets", "Spec", "believed", "best", "build",
           "charges", "chosen", "curves", "evaluate", "even_noise", "families", "forwarded", "from_knobs", "gains", "game",
           "leader", "leads", "over_users", "replay", "rewards", "run", "self_selected", "share", "sheets", "size", "tune",
           "tune_and_measure", "typical_costs", "winner", "with_level", "wrong"]
