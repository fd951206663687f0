"""The upper sweep and its steps, against the formulas that they stand for (chapter "The certified sweep")."""
import math

import numpy as np
import pytest
from scipy.stats import norm

from lib.dp import certified, general_upper, program, quadrature, upper
from lib.dp.grid import make_program, no_worse
from lib.dp.upper import Level, UpperGrid


pytestmark = pytest.mark.kernels


def psi(z):
    return z * norm.cdf(z) + norm.pdf(z)


@pytest.mark.parametrize("general", (False, True))
@pytest.mark.parametrize("ratio, within", ((1.01, 1e-8), (1.1, 1e-4), (2.0, .3), (6.0, 1.0)))
def test_the_chord_is_the_logarithm_s_erring_upward(ratio, within, general):
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
        if general:                                     # with the derivatives of `known` in b, without sign
            a = 1.5 / b + m * m / 2
            rows = np.array([known(b), falls, falls * a, falls * (a * a + 1.5 / b**2)])
            general_upper.chord(ours, rows, D(top) + known(top), share, at - b, (b, top))
        else:
            upper.chord(Level(b, d, ours, known(b)), Level(top, d, D(top), known(top)), falls, at)
        exact = math.sqrt(at) * np.exp((1 - share) * log(b) + share * log(top)) - known(at)
        assert (ours >= np.minimum(exact, D(b)) - 1e-13).all()
        assert (ours - np.maximum(np.minimum(exact, D(b)), 0)).max() <= within * D(b).max()
        assert (D(at) <= ours).all()


def one_item(K, gamma, b0):
    """The program of one atom of information 1 whose slope is K."""
    return make_program(np.array([K * (1 - gamma)]), np.ones(1), np.ones(1), gamma, b0)


def mean(D, K, d, weights, node):
    """E of D + K m^+ under a law, D given at the nodes -n d .. n d and 0 outside, the mean at each of `node`."""
    n, at = D.size // 2, node[:, None] + np.arange(weights.size) - weights.size // 2
    return (np.where(np.abs(at) <= n, D[np.clip(at + n, 0, 2 * n)], 0) + K * np.maximum(at * d, 0)) @ weights


@pytest.mark.parametrize("reach", (2.0, 3.0, 4.5))
def test_an_upper_step_pays_for_the_tails_that_it_cuts(reach):
    b, info, K, d, n = 1.0, .5, 4.0, .1, 60
    D = .5 + .2 * np.cos(np.arange(-n, n + 1) * d)
    first, none = np.array([[-n] * 2, [D.size] * 2]), np.zeros(2 * D.size)
    grid = UpperGrid(np.array([b, b + info]), np.full(2, d), first, np.arange(2) * D.size, np.tile(D, 2), none, none,
                     one_item(K, .9, b), .05, reach)
    out, node = np.empty(41), np.arange(-20, 21)
    upper.step(out, grid, -20, 0, info, np.full(41, np.inf))
    exact = mean(D, K, d, quadrature.hat_law(math.sqrt(1 / b - 1 / (b + info)), d)[0], node)
    over = out - exact - certified.outside(grid.program, n * d, b + info)
    assert (over >= 0).all() and over.max() < 2 * norm.sf(reach) + K * psi(-reach)


@pytest.mark.parametrize("wrong", (-.05, .05))
def test_a_wrong_prediction_still_gives_an_upper_bound(wrong, monkeypatch):
    """A level that needs itself, solved once from a prediction that is too low or too high, and until nothing moves."""
    x, p, gamma = np.array([.1, .4, 1.0]), np.array([.4, .3, .3]), .9
    q = x * x
    fineness = program.fineness("upper", q, gamma, .1, False)
    grid = upper.sweep(no_worse(make_program(x, q, p, gamma, 1.0), fineness.atoms), fineness)
    j, group = 3, np.arange(3)
    level = slice(grid.ptr[j], grid.ptr[j] + grid.first[1, j])

    def solved(offset, turns, close):
        monkeypatch.setattr(upper, "predict", lambda D, *rest: np.maximum(D + offset, 0, out=D))
        monkeypatch.setattr(upper, "AGAIN", turns)
        monkeypatch.setattr(upper, "CLOSE", close)
        getattr(upper.solve_level, "py_func", upper.solve_level)(grid, j, int(grid.first[0, j]), q, group)
        return grid.D[level].copy()
    settled = solved(0.0, 200, 1e-13)
    once = solved(wrong, 1, 1.0)
    assert (once >= settled - 1e-12).all()
    assert (once - settled).max() < (.2 if wrong > 0 else 1.2)
    if wrong < 0:                                       # and without the correction it would not have been one
        short = gamma * p[:2].sum() / (1 - gamma)
        excess = (once - settled).min() / short
        assert excess > 0
