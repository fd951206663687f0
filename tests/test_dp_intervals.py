"""Brackets recomputed in interval arithmetic: what rounding did to them is less than what they were widened by."""
import math

from flint import arb
import intervals
import numpy as np
import pytest

from lib import dp
from lib.dp import program, quadrature


def narrowed(grid, b):
    """The lower law's standard deviation for a step from each of the precisions b."""
    return [quadrature.shrunk(math.sqrt(1 / (at * (at + 1))), d, grid.reach) for at, d in zip(b, grid.spacing[1:])]


def start(grid, last):
    """The stored values of the last level, l: w - K m^+ (lower: 0)."""
    n = -int(grid.first[0, last])
    return {l: arb(float(grid.D[grid.ptr[last] + n + l])) for l in range(-n, n + 1)}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_a_hundred_random_brackets_hold_their_exact_values(seed):
    """Twenty problems at five means each, from the last level down; the slack that is used is far below what is there."""
    rng = np.random.default_rng(seed)
    gamma, p, b0 = rng.uniform(.3, .85), rng.uniform(.3, 1), 10 ** rng.uniform(-1, 1.5)
    table = dp.solve([0, 1], [1 - p, p], gamma, math.sqrt(b0), 1.0, tol=.1, between=False)
    net, sd = rng.uniform(-1.2, 1.5, 5), table.noise_sd
    bracket, p = dp.value(table, net, 1.0), float(table.program.probs[0])
    ends = {}
    for kind in ("upper", "lower"):
        grid = getattr(table, kind)
        law, last = intervals.Law(p, table.program.gamma, grid.reach), grid.levels.size - 1
        assert (grid.program.info == 1).all() and last >= 1
        shrink = narrowed(grid, grid.levels) if kind == "lower" else None
        values, d = intervals.sweep(law, grid, shrink, start(grid, last))
        b, d0 = arb(float(grid.levels[0])), float(grid.spacing[1])
        ends[kind] = [intervals.upper_point(law, values, d, arb(float(m / sd)), b) if kind == "upper" else
                      intervals.lower_value(law, values, d, arb(float(m / sd)), arb(shrink[0])) for m in net]
        assert d0 * 2 > grid.read * math.sqrt(1 / (b0 * (b0 + 1)))         # the look-up read every node
    pad = program.slack(table) * table.slope * (np.abs(net) / sd + 1 / math.sqrt(b0))
    for i in range(net.size):
        low, high = ends["lower"][i], ends["upper"][i]
        assert bracket.lower[i] / sd <= float(low) and float(high) <= bracket.upper[i] / sd
        if bracket.lower[i] > max(table.slope * net[i], 0):
            assert abs(float(low) - bracket.lower[i] / sd - pad[i]) < .01 * pad[i]
        assert abs(bracket.upper[i] / sd - float(high) - pad[i]) < .01 * pad[i]
