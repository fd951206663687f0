"""The fixed point at one state, against value iteration in plain loops."""
import numpy as np
import pytest

from lib import dp
from lib.dp.bellman import first_value, solve_point


@pytest.mark.parametrize("seed", range(5))
def test_the_fixed_point_is_where_value_iteration_ends(seed):
    rng = np.random.default_rng(seed)
    p, A, B, gamma = rng.dirichlet(np.ones(4)) * .8, rng.standard_normal(4), rng.uniform(0, .6, 4), .7
    w = 0.0
    for _ in range(200):
        w = gamma * .2 * w + sum(p[i] * max(gamma * w, A[i] + B[i] * w) for i in range(4))
    for start in (-5.0, 0.0, w, 40.0):
        assert solve_point(start, gamma, .2, p, A, B) == pytest.approx(w, rel=1e-13, abs=1e-300)


def test_the_first_forward_is_that_fixed_point_with_its_derivative():
    rng = np.random.default_rng(1)
    for gamma in (0.0, .3, .99):
        values, probs = rng.standard_normal(7), rng.dirichlet(np.ones(7))
        w, slope = dp.first_forward(values, probs, gamma)
        assert w == pytest.approx(gamma * probs @ np.maximum(w, values), rel=1e-12, abs=1e-300)
        assert w == pytest.approx(first_value(values, probs, gamma), rel=1e-14)
        moved = [dp.first_forward(values + h, probs, gamma)[0] for h in 1e-7 * np.eye(7)]
        assert (np.array(moved) - w) / 1e-7 == pytest.approx(slope, abs=1e-6)
    assert dp.first_forward(np.array([-1.0, -2.0]), np.array([.5, .5]), .9)[0] == 0


@pytest.mark.parametrize("values", ([np.nan, 1.0], [1.0, np.nan], [np.inf, 1.0]))
def test_what_is_no_number_ends_in_an_error(values):
    with pytest.raises(ValueError, match="values"), np.errstate(over="ignore"):
        dp.first_forward(np.array(values), np.array([.5, .5]), .9999)
