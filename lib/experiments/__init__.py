"""What the book runs, as plain data, and the tables that come out.

specs: an experiment as data; problems: the problems it is about, made or real; sources: which data stand for them; runner,
moments: run it; comparison: policies tuned and set side by side; offline: on real ratings in order; published, ledger: kept results, verdicts.
"""
from lib.experiments.comparison import Entry, charges, field, gains, play, share, tune, winner
from lib.experiments.offline import over_users, replay
from lib.experiments.problems import Knobs, even_noise, from_knobs, typical_costs, wrong
from lib.experiments.runner import best, curves, forwarded, run
from lib.experiments.specs import GRID, SPECS, Spec, build, size

__all__ = ["Entry", "GRID", "Knobs", "SPECS", "Spec", "best", "build", "charges", "curves", "even_noise", "field",
            "forwarded", "from_knobs", "gains", "over_users", "play", "replay", "run", "share", "size", "tune",
            "typical_costs", "winner", "wrong"]
