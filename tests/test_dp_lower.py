"""The lower sweep of several informations, against what its proof needs (chapter "The certified sweep")."""
import math

import numpy as np
import pytest

from lib import normal
from lib.dp import lower, program, quadrature
from lib.dp.grid import make_program, no_better
from lib.dp.lower import LowerGrid, Span

CASES = {"sharp prior": ([.4, .7, 1], [.3, .3, .4], .9, 10.0, 1e-2),
         "patient": ([.3, .6, 1], [.3, .3, .4], .99, 1.0, 3e-2),
         "tiny item": ([.05, .5, 1], [.4, .3, .3], .9, 1.0, 1e-2),
         "idle": ([.5, 1], [.1, .2], .95, .2, 1e-2),
         "impatient": ([.3, .6, 1], [.3, .3, .4], .5, 1.0, 1e-2),
         "short items": ([.27, .49, .89, .95], [.217, .148, .104, .0315], .95, .55, .023, [.003, .0818, .2158, 1.0])}


ONE = make_program(np.ones(1), np.ones(1), np.ones(1), .9, 1.0)


def swept(case, monkeypatch):
    """(grid, own, p, gamma): a lower sweep, and (D, slope, bend) of each level as they were when it was solved."""
    x, p, gamma, b0, tol, *info = CASES[case]
    x, p, own = np.array(x), np.array(p), {}
    q = np.array(info[0]) if info else x * x
    solve = lower.solve_level

    def solve_and_keep(grid, j, *rest):
        found = solve(grid, j, *rest)
        level = slice(grid.ptr[j], grid.ptr[j] + grid.first[1, j])
        own[j] = grid.D[level].copy(), grid.tangent[level].copy(), grid.bend[:, j].copy()
        return found
    monkeypatch.setattr(lower, "solve_level", solve_and_keep)
    fineness = program.fineness("lower", q, gamma, tol, False)
    grid = lower.sweep.py_func(no_better(make_program(x, q, p, gamma, b0), fineness.atoms), fineness)
    last = grid.levels.size - 1
    size = grid.first[1, last]
    own[last] = np.zeros(size), np.zeros(size), np.zeros(3)
    return grid, own, p, gamma


def at(level, beta):
    """A level's lower bound of w - K m^+ at a distance of beta from its precision."""
    D, slope, bend = level
    return np.maximum(D + slope * beta - lower.off(bend, beta), 0) * (D > 0)


def made_for(grid, j):
    """(low, high) of the proposition "Levels that agree"."""
    if j == 0:
        return grid.levels[0], grid.levels[0]
    return max(grid.levels[j - 1], grid.levels[0] + grid.program.info[0]), grid.levels[j + 1]


def ahead(grid, own, j, b, info, stay, K):
    """At most E w(m + t Z, b + info) at the nodes of level j: the best of what the levels that hold there give."""
    above = made_for(grid, j)[1]
    t2, least, n, best = info / (b * (b + info)), info / (above * (above + info)), -grid.first[0, j], stay
    for u in range(1, grid.levels.size):
        low, high = made_for(grid, u) if u + 1 < grid.levels.size else (grid.levels[u], np.inf)
        if low <= b + info <= high:
            values = at(own[u], b + info - grid.levels[u])
        elif u == min(np.searchsorted(grid.levels, above + info), grid.levels.size - 1):
            values = own[u][0]                          # w falls in b
        else:
            continue
        for stride in (1, 2, 4):
            d = stride * grid.spacing[u]
            shorter = quadrature.shrunk(math.sqrt(least), d, grid.reach)
            if d <= grid.spacing[j] and shorter > 0:
                t = math.sqrt(t2 - least + shorter**2)
                weights = quadrature.hat_law(t, d)[0]
                n_u, R, ratio = -grid.first[0, u] // stride, weights.size // 2, round(grid.spacing[j] / d)
                middle, wide = -grid.first[0, u], n * ratio + R
                kept = np.zeros(2 * wide + 1)
                half = min(n_u, wide)
                kept[wide - half:wide + half + 1] = values[middle - half * stride:middle + half * stride + 1:stride]
                kept += K * np.maximum(np.arange(-wide, wide + 1) * d, 0)
                best = np.maximum(best, np.convolve(kept, weights, "valid")[::ratio] - K * t * normal.psi(-grid.reach))
    return best


def violation(grid, own, p, gamma, j, b):
    """How far level j's lower bound at precision b exceeds one step of Bellman's equation to bounds that hold there."""
    K, m = np.sum(grid.program.x * p) / (1 - gamma), np.arange(grid.first[0, j], -grid.first[0, j] + 1) * grid.spacing[j]
    w = at(own[j], b - grid.levels[j]) + K * np.maximum(m, 0)
    after = [ahead(grid, own, j, b, info, w, K) for info in grid.program.info]
    step = sum(p[i] * np.maximum(gamma * w, grid.program.x[i] * m + gamma * after[i]) for i in range(p.size))
    return ((w - step - gamma * (1 - p.sum()) * w) / K).max()


def worst(grid, own, p, gamma, levels):
    return max(violation(grid, own, p, gamma, j, b) for j in levels for b in np.linspace(*made_for(grid, j), 1 if j == 0 else 7))


@pytest.mark.parametrize("case", [*CASES][:5])
def test_a_level_follows_from_levels_that_hold_where_it_leads(case, monkeypatch):
    """The step of the induction: from every precision that a level is made for, to the levels made for where it leads."""
    grid, own, p, gamma = swept(case, monkeypatch)
    assert worst(grid, own, p, gamma, np.unique(np.linspace(0, grid.levels.size - 2, 25).astype(int))) <= 1e-9


@pytest.mark.parametrize("turns", (1, 8))
def test_a_level_that_needs_itself_follows_too(turns, monkeypatch):
    """Short items that go by a level which exceeds their own: looked at again, or paid for after the first time."""
    monkeypatch.setattr(lower, "AGAIN", turns)
    monkeypatch.setattr(lower, "solve_level", lower.solve_level.py_func)
    grid, own, p, gamma = swept("short items", monkeypatch)
    assert worst(grid, own, p, gamma, range(grid.levels.size - 1)) <= 1e-9


def test_a_level_is_not_used_where_it_was_not_compared():
    """Asked over a range too far from the nearest level, the next level above the range serves, without a slope."""
    levels, n = np.array([1, 2, 3, 4, 5, 6.0]), 3
    D = np.repeat(np.arange(6.0, 0, -1), 2 * n + 1)
    grid = LowerGrid(levels, np.full(6, .1), np.array([[-n] * 6, [2 * n + 1] * 6]), np.arange(6) * (2 * n + 1), D,
                     -np.ones(D.size), np.array([0, .2, .3])[:, None] * np.ones((3, 6)), ONE, .05, 4.5)
    assert lower.ahead(grid, Span(2.6, 3.9), 3.1, 1, 0.0).bend.tolist() == [0, .2, .3]                 # a kink stays, wherever it is seen from
    grid.bend[:] = 0

    def used(low, b, high):
        near = lower.ahead(grid, Span(low, high), b, 1, 0.0)
        return pytest.approx((near.D[0], near.slope[0]))
    assert used(2.6, 3.1, 3.9) == (4 - .1, -1)          # level 3, its tangent
    assert used(2.6, 3.1, 4.5) == (4 - .1, -1)
    assert used(2.6, 3.1, 4.6) == (2, 0)                # it was compared with the next up to 4.5
    assert used(.9, 3.1, 3.2) == (3, 0)                 # and with the one before down to 1
    assert used(3.5, 4.9, 6.0) == (2 + .1, -1)
    assert used(3.5, 4.9, 6.1) == (1, 0)                # nothing but commitment is known beyond the last level
    assert used(6.1, 6.2, 6.3) == (0, 0)


@pytest.mark.parametrize("spacings", ((.1, .1), (.1, .05), (.05, .1)))
def test_excess_is_the_largest_over_a_range_of_precisions(spacings):
    rng, half, d = np.random.default_rng(1), np.array([round(1 / s) for s in spacings]), max(spacings)
    size, levels = 2 * half + 1, np.array([1.0, 1.2])
    ptr = np.array([0, size[0]])
    for _ in range(200):
        D, slope = rng.random(size.sum()) * (rng.random(size.sum()) < .9), rng.normal(-.5, .5, size.sum())
        grid = LowerGrid(levels, np.array(spacings), np.array([-half, size]), ptr, D, slope, rng.uniform(0, 2, (3, 2)),
                         ONE, .05, 4.5)

        def parabola(k, b):
            nodes = slice(ptr[k], ptr[k] + size[k], round(d / spacings[k]))
            return D[nodes] + slope[nodes] * (b - levels[k]) - lower.off(grid.bend[:, k], b - levels[k])
        for u, v, low, high in ((0, 1, 1.2, 1.35), (1, 0, .8, 1.0)):
            gap = max(0, *((parabola(u, b) - np.maximum(parabola(v, b), 0)).max() for b in np.linspace(low, high, 100)))
            assert gap - 1e-12 <= lower.exceeds(grid, u, v, Span(low, high)) <= gap + .2


def mean(D, K, d, weights, node):
    """E of D + K m^+ under a law, D given at the nodes -n d .. n d and 0 outside, the mean at each of `node`."""
    n, at = D.size // 2, node[:, None] + np.arange(weights.size) - weights.size // 2
    return (np.where(np.abs(at) <= n, D[np.clip(at + n, 0, 2 * n)], 0) + K * np.maximum(at * d, 0)) @ weights


@pytest.mark.parametrize("info", (.1, .3, 1.0))
@pytest.mark.parametrize("half", (.02, .15))
@pytest.mark.parametrize("case", ("all", "bump", "no slope", "slope alone"))
def test_a_lower_step_serves_at_every_precision_that_it_is_asked_for(info, half, case):
    """Value + slope beta - curvature beta^2 against the same step, computed anew at each precision."""
    b, K, d, n, curvature = 1.0, 4.0, .08, 300, .3
    m, node = np.arange(-n, n + 1) * d, np.arange(-40, 41)
    D = K * normal.expected_positive(-np.abs(m)) * .5
    D = np.maximum(D, 0)
    slope = np.where(D > 1e-3, -.6 * D + .3 * m * np.exp(-m * m), 0.0)
    if case in ("bump", "no slope"):
        slope, curvature = 0 * D, 0.0
        D, K = (np.exp(-m * m), 1e-9) if case == "bump" else (D, K)
    elif case == "slope alone":
        D, slope, curvature, K = np.clip((24 - np.abs(m)) / 18, 0, 1), np.exp(-2 * m * m), 0.0, 1e-9
    levels, first = np.array([b - 2 * half, b, b + 2 * half, b + 1.0, b + 2.0]), np.array([[-n] * 5, [D.size] * 5])
    one = make_program(np.array([K * .1]), np.ones(1), np.ones(1), .9, b)
    grid = LowerGrid(levels, np.full(5, d), first, np.arange(5) * D.size, np.tile(D, 5), np.tile(slope, 5),
                     np.array([[curvature], [0], [0]]) * np.ones(5), one, .05, 4.5)
    below, above = b - half, b + half
    out, change = np.empty(81), np.empty(81)
    bent = lower.step(out, change, grid, -40, 1, info, Span(below, above))
    used = min(grid.levels[2:], key=lambda level: abs(level - b - info))
    short = info / (above * (above + info))
    lost = short - quadrature.shrunk(math.sqrt(short), d, 4.5) ** 2

    def anew(at):
        beta, weights = at + info - used, quadrature.hat_law(math.sqrt(info / (at * (at + info)) - lost), d)[0]
        return mean(np.maximum(D + slope * beta - curvature * beta**2, 0) * (D > 0), K, d, weights, node)
    gap = anew(b) - out
    assert (-1e-12 <= gap).all() and gap.max() < 5e-4
    for at in np.linspace(below, above, 9):
        assert (out + change * (at - b) - bent[0] * (at - b) ** 2 <= anew(at) + 1e-12).all()
    assert change == pytest.approx((anew(b + 1e-4) - anew(b - 1e-4)) / 2e-4, abs=2e-3)
    need = max(((out + change * (at - b) - anew(at)) / (at - b) ** 2).max() for at in (below, above))
    assert need <= bent[0] < {"all": 2, "bump": 10 * need, "no slope": .02 if half < .1 else .5, "slope alone": 25 * need}[case]
