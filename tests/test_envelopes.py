"""The lower sweep of several informations, against what its proof needs (chapter "The dynamic program")."""
import math

import numpy as np
import pytest

from lib import normal
from lib.dp import certified, program, quadrature
from lib.dp.grid import Grid, LOWER

CASES = {"sharp prior": ([.4, .7, 1], [.3, .3, .4], .9, 10.0, 1e-2),
         "patient": ([.3, .6, 1], [.3, .3, .4], .99, 1.0, 3e-2),
         "tiny item": ([.05, .5, 1], [.4, .3, .3], .9, 1.0, 1e-2),
         "idle": ([.5, 1], [.1, .2], .95, .2, 1e-2),
         "impatient": ([.3, .6, 1], [.3, .3, .4], .5, 1.0, 1e-2),
         "short items": ([.27, .49, .89, .95], [.217, .148, .104, .0315], .95, .55, .023, [.003, .0818, .2158, 1.0])}


def swept(case, monkeypatch):
    """(grid, own, p, gamma): a lower sweep, and (D, slope, bend) of each level as they were when it was solved."""
    x, p, gamma, b0, tol, *info = CASES[case]
    x, p, own = np.array(x), np.array(p), {}
    q = np.array(info[0]) if info else x * x
    solve = certified.solve_lower

    def solve_and_keep(grid, j, *rest):
        found = solve(grid, j, *rest)
        level = slice(grid.ptr[j], grid.ptr[j] + grid.first[1, j])
        own[j] = grid.D[level].copy(), grid.extra[0, level].copy(), grid.bend[:, j].copy()
        return found
    monkeypatch.setattr(certified, "solve_lower", solve_and_keep)
    monkeypatch.setattr(certified, "sweep", certified.sweep.py_func)
    grid = program.solve_bound(LOWER, x, q, p, gamma, b0, program.fineness(LOWER, q, gamma, tol, False))
    last = grid.levels.size - 1
    size = grid.first[1, last]
    own[last] = np.zeros(size), np.zeros(size), np.zeros(3)
    return grid, own, p, gamma


def at(level, beta):
    """A level's lower bound of w - K m^+ at a distance of beta from its precision."""
    D, slope, bend = level
    return np.maximum(D + slope * beta - certified.off(bend, beta), 0) * (D > 0)


def made_for(grid, j):
    """(low, high) of the proposition "Levels that agree"."""
    if j == 0:
        return grid.levels[0], grid.levels[0]
    return max(grid.levels[j - 1], grid.levels[0] + grid.info[0]), grid.levels[j + 1]


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
            shorter = quadrature.shrunk(math.sqrt(least), d, grid.read[1])
            if d <= grid.spacing[j] and shorter > 0:
                t = math.sqrt(t2 - least + shorter**2)
                weights = quadrature.hat_law(t, d)[0]
                n_u, R, ratio = -grid.first[0, u] // stride, weights.size // 2, round(grid.spacing[j] / d)
                middle, wide = -grid.first[0, u], n * ratio + R
                kept = np.zeros(2 * wide + 1)
                half = min(n_u, wide)
                kept[wide - half:wide + half + 1] = values[middle - half * stride:middle + half * stride + 1:stride]
                kept += K * np.maximum(np.arange(-wide, wide + 1) * d, 0)
                best = np.maximum(best, np.convolve(kept, weights, "valid")[::ratio] - K * t * normal.psi(-grid.read[1]))
    return best


def violation(grid, own, p, gamma, j, b):
    """How far level j's lower bound at precision b exceeds one step of Bellman's equation to bounds that hold there."""
    K, m = np.sum(grid.x * p) / (1 - gamma), np.arange(grid.first[0, j], -grid.first[0, j] + 1) * grid.spacing[j]
    w = at(own[j], b - grid.levels[j]) + K * np.maximum(m, 0)
    after = [ahead(grid, own, j, b, info, w, K) for info in grid.info]
    step = sum(p[i] * np.maximum(gamma * w, grid.x[i] * m + gamma * after[i]) for i in range(p.size))
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
    monkeypatch.setattr(certified, "AGAIN", turns)
    solve = certified.solve_lower.py_func
    monkeypatch.setattr(certified, "solve_lower", solve)
    grid, own, p, gamma = swept("short items", monkeypatch)
    assert worst(grid, own, p, gamma, range(grid.levels.size - 1)) <= 1e-9


def test_a_level_is_not_used_where_it_was_not_compared():
    """Asked over a range too far from the nearest level, the next level above the range serves, without a slope."""
    levels, n = np.array([1, 2, 3, 4, 5, 6.0]), 3
    D = np.repeat(np.arange(6.0, 0, -1), 2 * n + 1)
    grid = Grid(levels, np.full(6, .1), np.array([[-n] * 6, [2 * n + 1] * 6]), np.arange(6) * (2 * n + 1), D,
                      np.ones(1), np.ones(1), np.ones(1), np.array([.05, 4.5]), -np.ones((1, D.size)), np.array([0, .2, .3])[:, None] * np.ones((3, 6)))
    bend = certified.ahead_lower(grid, 2.6, 3.1, 3.9, 1, 0.0)[2]
    assert bend.tolist() == [0, .2, .3]                 # a kink stays, wherever it is seen from
    grid.bend[:] = 0

    def used(low, b, high):
        D, slope, bend, d = certified.ahead_lower(grid, low, b, high, 1, 0.0)
        return pytest.approx((D[0], slope[0]))
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
        grid = Grid(levels, np.array(spacings), np.array([-half, size]), ptr, D, np.ones(1), np.ones(1), np.ones(1),
                          np.array([.05, 4.5]), slope[None], rng.uniform(0, 2, (3, 2)))

        def parabola(k, b):
            nodes = slice(ptr[k], ptr[k] + size[k], round(d / spacings[k]))
            return D[nodes] + slope[nodes] * (b - levels[k]) - certified.off(grid.bend[:, k], b - levels[k])
        for u, v, low, high in ((0, 1, 1.2, 1.35), (1, 0, .8, 1.0)):
            gap = max(0, *((parabola(u, b) - np.maximum(parabola(v, b), 0)).max() for b in np.linspace(low, high, 100)))
            assert gap - 1e-12 <= certified.excess(grid, u, v, low, high) <= gap + .2
