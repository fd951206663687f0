"""One certified step, against the formulas that it stands for (chapter "The dynamic program", section "A chord and a tangent")."""
import math

import numpy as np
import pytest
from scipy.stats import norm

from lib.dp import certified, program, quadrature
from lib.dp.grid import Grid, UPPER

pytestmark = pytest.mark.kernels


def psi(z):
    return z * norm.cdf(z) + norm.pdf(z)


@pytest.mark.parametrize("ratio, within", ((1.01, 1e-8), (1.1, 1e-4), (2.0, .3), (6.0, 1.0)))
def test_the_chord_is_the_logarithm_s_erring_upward(ratio, within):
    """Series for the power and for what full observation is worth, against exp, log and the normal law."""
    K, b, d, n = 3.0, 2.0, .07, 60
    m = np.arange(-n, n + 1) * d

    def known(b):
        return K / math.sqrt(b) * psi(np.abs(m) * math.sqrt(b))

    def D(b):
        return .4 * K / math.sqrt(b) * psi(-np.abs(m - .1) * math.sqrt(b))

    def log(b):
        return np.log((D(b) + known(b)) / math.sqrt(b))
    top = ratio * b
    for share in (.03, .4, .9):
        at, ours = b + share * (top - b), D(b)
        falls = K * norm.pdf(m * math.sqrt(b)) / (2 * b**1.5)
        certified.chord(ours, known(b), falls, D(top), known(top), b, at, top, d)
        exact = math.sqrt(at) * np.exp((1 - share) * log(b) + share * log(top)) - known(at)
        assert (ours >= np.minimum(exact, D(b)) - 1e-13).all()
        assert (ours - np.maximum(np.minimum(exact, D(b)), 0)).max() <= within * D(b).max()
        assert (D(at) <= ours).all()


def grid_of(levels, d, n, D, extra, curvature, reach=4.5):
    """A Grid all of whose levels carry D and extra at the nodes -n d .. n d."""
    J, size = len(levels), 2 * n + 1
    first, one = np.array([[-n] * J, [size] * J]), np.ones(1)
    return Grid(np.array(levels), np.full(J, d), first, np.arange(J) * size, np.tile(D, J), one, one, one,
                      np.array([.05, reach]), np.tile(extra, J), np.array([[curvature], [0], [0]]) * np.ones(J))


def mean(D, K, d, weights, node):
    """E of D + K m^+ under a law, D given at the nodes -n d .. n d and 0 outside, the mean at each of `node`."""
    n, at = D.size // 2, node[:, None] + np.arange(weights.size) - weights.size // 2
    return (np.where(np.abs(at) <= n, D[np.clip(at + n, 0, 2 * n)], 0) + K * np.maximum(at * d, 0)) @ weights


@pytest.mark.parametrize("reach", (2.0, 3.0, 4.5))
def test_an_upper_step_pays_for_the_tails_that_it_cuts(reach):
    b, info, K, d, n = 1.0, .5, 4.0, .1, 60
    D = .5 + .2 * np.cos(np.arange(-n, n + 1) * d)
    grid = grid_of([b, b + info], d, n, D, np.zeros((2, D.size)), 0.0, reach)
    out, node = np.empty(41), np.arange(-20, 21)
    certified.step_upper(out, grid, K, .9, -20, 0, info, np.full(41, np.inf))
    exact = mean(D, K, d, quadrature.hat_law(math.sqrt(1 / b - 1 / (b + info)), d)[0], node)
    over = out - exact - certified.outside(n * d, b + info, .9, K)
    assert (over >= 0).all() and over.max() < 2 * norm.sf(reach) + K * psi(-reach)


@pytest.mark.parametrize("info", (.1, .3, 1.0))
@pytest.mark.parametrize("half", (.02, .15))
@pytest.mark.parametrize("case", ("all", "bump", "no slope", "slope alone"))
def test_a_lower_step_serves_at_every_precision_that_it_is_asked_for(info, half, case):
    """Value + slope beta - curvature beta^2 against the same step, computed anew at each precision."""
    b, K, d, n, curvature = 1.0, 4.0, .08, 300, .3
    m, node = np.arange(-n, n + 1) * d, np.arange(-40, 41)
    D = K * psi(-np.abs(m)) * .5
    D = np.maximum(D, 0)
    slope = np.where(D > 1e-3, -.6 * D + .3 * m * np.exp(-m * m), 0.0)
    if case in ("bump", "no slope"):
        slope, curvature = 0 * D, 0.0
        D, K = (np.exp(-m * m), 1e-9) if case == "bump" else (D, K)
    elif case == "slope alone":
        D, slope, curvature, K = np.clip((24 - np.abs(m)) / 18, 0, 1), np.exp(-2 * m * m), 0.0, 1e-9
    grid = grid_of([b - 2 * half, b, b + 2 * half, b + 1.0, b + 2.0], d, n, D, slope[None], curvature)
    below, above = b - half, b + half
    out, change = np.empty(81), np.empty(81)
    bent = certified.step_lower(out, change, grid, K, .9, -40, 1, info, below, above)
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


@pytest.mark.parametrize("wrong", (-.05, .05))
def test_a_wrong_prediction_still_gives_an_upper_bound(wrong, monkeypatch):
    """A level that needs itself, solved once from a prediction that is too low or too high, and until nothing moves."""
    x, p, gamma = np.array([.1, .4, 1.0]), np.array([.4, .3, .3]), .9
    q = x * x
    fineness = program.fineness(UPPER, q, gamma, .1, False)
    grid = program.solve_bound(UPPER, x, q, p, gamma, 1.0, fineness)
    j, K, group = 3, np.sum(x * p) / (1 - gamma), np.arange(3)
    level = slice(grid.ptr[j], grid.ptr[j] + grid.first[1, j])

    def solved(offset, turns, close):
        monkeypatch.setattr(certified, "predict", lambda D, *rest: np.maximum(D + offset, 0, out=D))
        monkeypatch.setattr(certified, "AGAIN", turns)
        monkeypatch.setattr(certified, "CLOSE", close)
        getattr(certified.solve_upper, "py_func", certified.solve_upper)(grid, j, int(grid.first[0, j]), q, group, gamma, K)
        return grid.D[level].copy()
    settled = solved(0.0, 200, 1e-13)
    once = solved(wrong, 1, 1.0)
    assert (once >= settled - 1e-12).all()
    assert (once - settled).max() < (.2 if wrong > 0 else 1.2)
    if wrong < 0:                                       # and without the correction it would not have been one
        short = gamma * p[:2].sum() / (1 - gamma)
        excess = (once - settled).min() / short
        assert excess > 0
