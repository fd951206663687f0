"""Every picture of the book, from arrays and labels; imports nothing of lib.

style: colours, markers, labels; narrow: the version for a phone, inside each PNG; rewards: policies and bounds over the cost, ranked
and mapped; model: the problem, the dynamic program, decisions; data: priors, predictions, ratings; interactive: pictures with
sliders, which the page draws, and widgets: the same in JupyterLab (both imported by name).
"""
from lib.figures.data import calibration, correlations, differences, priors, residuals
from lib.figures.model import (belief_ellipses, benefit_map, convergence, decision_strip, envelopes, floors,
                               forwarding_boundary, laws, projection_laws, survival, value_surface, width_against_work)
from lib.figures.rewards import (Panel, bounds_over_cost, forwarding_map, gain_dots, gap_over_cost, gift_bars,
                                 ledger_bars, over_users, reward_over_cost, share_dots, slices, tuning, winner_map)
from lib.figures.style import mark

__all__ = ["Panel", "belief_ellipses", "benefit_map", "bounds_over_cost", "calibration", "convergence",
            "correlations", "decision_strip", "differences", "envelopes", "floors", "forwarding_boundary", "forwarding_map",
            "gain_dots", "gap_over_cost", "gift_bars", "laws", "ledger_bars", "mark", "over_users", "priors", "projection_laws",
            "residuals", "reward_over_cost", "share_dots", "slices", "survival", "tuning", "value_surface", "width_against_work", "winner_map"]
