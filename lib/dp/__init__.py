"""The single-feature dynamic program, solved with a certificate (paper, sections III-A and III-B).

program: solve and read a table; decisions: what its bracket decides, break-even costs.  Three sweeps, each with its grid: upper,
lower (certified: what they share; lookup: both between their nodes) and best.  gittins: sharp indices of one normal arm; patient: what it
costs to learn over a long life.  general: the same two bounds for items of any sign, charges of any kind; atoms, general_upper,
general_lower: its sweeps.  grid: programs, levels, lattices; quadrature: laws of one step; bellman: the fixed point at one state.
Imports problem, normal, estimate and cache alone.
"""
from lib.dp.bellman import first_forward
from lib.dp.decisions import decide, indifference_cost, q_brackets
from lib.dp.general import GeneralTable, general_smoothed_value, general_value, solve_general
from lib.dp.gittins import gittins_index
from lib.dp.patient import patient_regret, regret_slope
from lib.dp.program import Table, boundary, exploration_benefits, q_values, smoothed_value, solve, value

__all__ = ["GeneralTable", "Table", "boundary", "decide", "exploration_benefits", "first_forward", "general_smoothed_value",
           "general_value", "gittins_index", "indifference_cost", "patient_regret", "q_brackets", "q_values", "regret_slope",
           "smoothed_value", "solve", "solve_general", "value"]
