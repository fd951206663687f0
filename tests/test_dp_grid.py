"""What full observation earns at the last level, and how wide a bracket comes out."""
import numpy as np
import pytest
from scipy.stats import binom, norm

from lib import dp
from lib.dp import upper
from lib.dp.grid import make_program


@pytest.mark.parametrize("gamma, b, mass", ((.5, 1.0, 1.0), (.9, 20.0, .3), (.999, 300.0, 1.0), (.97, 5.0, .02)))
def test_the_edge_is_what_full_observation_earns_and_errs_upward(gamma, b, mass):
    program = make_program(np.array([.7 / mass]), np.ones(1), np.array([mass]), gamma, b)
    edge = upper.full_observation_edge(program, 5, .3 / b**.5, b)
    n = np.arange(1, int(40 / (1 - gamma)))             # items of any size; k of them tell something
    k = n if mass == 1 else np.arange(1, 250)
    weight = gamma**n if mass == 1 else gamma**n @ binom.pmf(k, n[:, None], mass)
    t = np.sqrt(1 / b - 1 / (b + k))
    for l in range(-5, 6):
        a = abs(l) * .3 / b**.5
        total = .7 * weight @ (t * norm.pdf(a / t) - a * norm.sf(a / t))
        assert total <= edge[5 + l] <= 1.12 * total


@pytest.mark.parametrize("p, gamma, b", (
    (1.0, .5, 1.0), (.5, .9, .1), (.5, .9, .01), (1.0, .9, 100.0), (.2, .99, 1.0), (1.0, .99, 30.0), (1.0, .5, 1e6), (.01, .1, 1.0)))
@pytest.mark.parametrize("tol", (1e-2, 1e-3))
def test_a_table_for_one_variance_is_as_wide_as_asked_for(p, gamma, b, tol):
    """Neither wider than tol nor, which would cost time, less than a thirtieth of it."""
    table = dp.solve([0, 1], [1 - p, p], gamma, b**.5, 1, tol=tol, between=False)
    bracket = dp.value(table, 0.0, 1.0)
    assert tol / 30 < (bracket.upper - bracket.lower) / bracket.value < tol
