"""Beliefs: rank-one steps against the batch regression, loops, and their own invariants."""
import decimal

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import posterior
from lib.problem import make_problem


def history(k, n, seed, rank=None, density=1.0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((k, k if rank is None else rank))
    X = rng.random((n, k)) * (rng.random((n, k)) < density)
    noise_var = 0.3 * np.maximum(np.count_nonzero(X, axis=1), 1)
    return rng.standard_normal(k), A @ A.T, X, rng.standard_normal(n) * 3, noise_var


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 7), st.integers(1, 30), st.integers(0, 7), st.integers(0, 2**32 - 1))
def test_steps_equal_the_batch_regression_and_the_loops(k, n, rank, seed):
    mu, Sigma, X, y, noise_var = history(k, n, seed, min(rank, k), 0.7)
    belief, slow = posterior.Belief(mu, Sigma), (list(mu), Sigma.tolist())
    for x, feedback, variance in zip(X, y, noise_var):
        belief = posterior.update(*belief, x, feedback, variance)
        slow = naive.update(*slow, list(x), feedback, variance)
    whole = posterior.batch(mu, Sigma, X, y, noise_var)
    for got in (whole, posterior.Belief(*map(np.array, slow))):
        assert got.mu == pytest.approx(belief.mu, abs=1e-10)
        assert got.Sigma == pytest.approx(belief.Sigma, abs=1e-10)


def test_the_batch_agrees_with_the_precision_form():
    mu, Sigma, X, y, noise_var = history(4, 9, 1)
    W = X / noise_var[:, None]
    prec = np.linalg.inv(Sigma) + W.T @ X
    got = posterior.batch(mu, Sigma, X, y, noise_var)
    assert got.Sigma == pytest.approx(np.linalg.inv(prec), abs=1e-10)
    assert got.mu == pytest.approx(np.linalg.solve(prec, np.linalg.inv(Sigma) @ mu + W.T @ y), abs=1e-10)


def test_order_does_not_matter():
    mu, Sigma, X, y, noise_var = history(5, 20, 2)
    forth, back = posterior.Belief(mu, Sigma), posterior.Belief(mu, Sigma)
    for n in range(20):
        forth = posterior.update(*forth, X[n], y[n], noise_var[n])
        back = posterior.update(*back, X[-1 - n], y[-1 - n], noise_var[-1 - n])
    assert forth.mu == pytest.approx(back.mu, abs=1e-11)
    assert forth.Sigma == pytest.approx(back.Sigma, abs=1e-11)


@pytest.mark.parametrize("rank, noise_var", [(12, 0.5), (5, 0.5), (12, 1e-6)])
def test_symmetric_and_semi_definite_after_ten_thousand_updates(rank, noise_var):
    mu, Sigma, X, y, _ = history(12, 10_000, 3, rank)
    scale = np.linalg.eigvalsh(Sigma)[-1]
    belief = posterior.Belief(mu, Sigma)
    for n in range(10_000):
        belief = posterior.step(belief, X[n], y[n], noise_var)
    assert np.array_equal(belief.Sigma, belief.Sigma.T)
    assert np.linalg.eigvalsh(belief.Sigma)[0] > -1e-14 * scale
    whole = posterior.batch(mu, Sigma, X, y, noise_var)
    assert belief.mu == pytest.approx(whole.mu, abs=1e-10)
    assert belief.Sigma == pytest.approx(whole.Sigma, abs=1e-10)


@pytest.mark.parametrize("noise_sd", [1e-3, 1e-6, 1e-8, 1e-10, 1e-14])
def test_an_update_accepts_its_own_output_whatever_the_noise(noise_sd):
    """Eighty digits are the judge.  Before, updates at noise 1e-10 refused their own output after four to nine steps."""
    rng, k = np.random.default_rng(0), 3
    theta, belief, slow = rng.standard_normal(k), posterior.Belief(np.full(k, 0.3), 0.5 * np.eye(k) + 0.5), None
    with decimal.localcontext(prec=80):
        D = decimal.Decimal
        slow = [D(m) for m in belief.mu], [[D(s) for s in row] for row in belief.Sigma]
        for _ in range(40):
            x, z = rng.random(k), rng.standard_normal()
            y = float(x @ theta + noise_sd * z)
            belief = posterior.update(*belief, x, y, noise_sd**2)
            slow = naive.update(*slow, [D(a) for a in x], D(y), D(noise_sd) ** 2)
            assert belief.mu == pytest.approx(np.array(slow[0], float), abs=3 * noise_sd if noise_sd < 1e-4 else 1e-12)
            assert belief.Sigma == pytest.approx(np.array(slow[1], float), abs=1e-13)
            assert np.linalg.eigvalsh(belief.Sigma)[0] >= -1e-14 * abs(belief.Sigma).max()


def test_the_kernel_on_an_item_is_the_step():
    mu, Sigma, X, y, noise_var = history(5, 12, 6, density=0.6)
    problem = make_problem(X, np.full(12, 1 / 12), mu, Sigma, 0.7, 0, 0.9)
    instance, belief = posterior.compile_problem(problem), posterior.Belief(mu, Sigma)
    at, room = (mu.copy(), Sigma.copy()), np.empty(5)
    for i in range(12):
        posterior.learn(instance, i, y[i], *at, room)
        belief = posterior.step(belief, X[i], y[i], instance.noise_var[i])
    assert at[0] == pytest.approx(belief.mu, abs=1e-12) and at[1] == pytest.approx(belief.Sigma, abs=1e-12)
    assert np.array_equal(at[1], at[1].T)


def test_a_direction_without_variance_stays_without():
    belief = posterior.update([1, 2], [[1, 1], [1, 1]], [1, 0], 5, 1)
    assert belief.mu.tolist() == [3, 4]
    assert belief.Sigma.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert posterior.update([1, 2], [[1, 0], [0, 0]], [0, 3], 5, 1).mu.tolist() == [1, 2]


@pytest.mark.parametrize("cast", [
    lambda a: np.asarray(a).tolist(), lambda a: np.asarray(a, np.float32), lambda a: np.asarray(a, int),
    lambda a: np.repeat(np.asarray(a, float), 2, -1)[..., ::2], lambda a: np.asfortranarray(np.asarray(a, float)),
], ids=["lists", "float32", "integers", "strided views", "columns first"])
def test_any_array_like_will_do(cast):
    args = [np.array(a) for a in ([1, 2], [[2, 1], [1, 2]], [1, 3])]
    want = posterior.update(*args, 4.0, 2.0)
    got = posterior.update(*map(cast, args), 4, 2)
    assert np.array_equal(got.mu, want.mu) and np.array_equal(got.Sigma, want.Sigma)
    whole = posterior.batch(cast(args[0]), cast(args[1]), cast([[1, 3]]), cast([4]), 2)
    assert whole.Sigma == pytest.approx(want.Sigma, abs=1e-13)


def test_inputs_are_not_changed():
    mu, Sigma, X, y, noise_var = history(3, 1, 4)
    copies = mu.copy(), Sigma.copy()
    posterior.update(mu, Sigma, X[0], y[0], noise_var[0])
    posterior.batch(mu, Sigma, X, y, noise_var)
    assert np.array_equal(mu, copies[0]) and np.array_equal(Sigma, copies[1])


def test_predictive_matches_draws():
    mu, Sigma, X, _, _ = history(3, 1, 5)
    mean, var = posterior.predictive(mu, Sigma, X[0])
    draws = np.random.default_rng(0).multivariate_normal(mu, Sigma, 200_000) @ X[0]
    assert draws.mean() == pytest.approx(mean, abs=5 * np.sqrt(var / 200_000))
    assert draws.var() == pytest.approx(var, rel=0.02)


EYE = np.eye(2)


@pytest.mark.parametrize("call, name", [
    (lambda: posterior.update([0, 0, 0], EYE, [1, 0], 1, 1), "Sigma must have shape"),
    (lambda: posterior.update([0, 0], [[1, 2], [0, 1]], [1, 0], 1, 1), "Sigma is not symmetric"),
    (lambda: posterior.update([0, 0], [[1, 2], [2, 1]], [1, 0], 1, 1), "Sigma is not positive"),
    (lambda: posterior.update([0, 0], EYE, [1, 0, 0], 1, 1), "x must have one element"),
    (lambda: posterior.update([0, 0], EYE, [1, np.nan], 1, 1), r"x\[1\] is nan"),
    (lambda: posterior.update([0, 0], EYE, [1, 0], np.inf, 1), "y is inf"),
    (lambda: posterior.update([0, 0], EYE, [1, 0], 1, 0), "noise_var is 0"),
    (lambda: posterior.update(["a", 0], EYE, [1, 0], 1, 1), "mu must be numeric"),
    (lambda: posterior.predictive([0, 0], EYE, [1]), "x must have one element"),
    (lambda: posterior.batch([0, 0], EYE, [[1, 0, 0]], [1], 1), "X must have shape"),
    (lambda: posterior.batch([0, 0], EYE, [[1, 0]], [1, 2], 1), "X must have shape"),
    (lambda: posterior.batch([0, 0], EYE, [[1, 0]], [1], [-1]), "noise_var is -1"),
    (lambda: posterior.batch([0, 0], EYE, [[1, 0]], [1], [1, 1, 1]), "noise_var"),
])
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=name):
        call()


@pytest.mark.parametrize("unit", (.01, 1.0, 100.0))
def test_the_share_of_noise_is_the_smallest_of_all_items_in_any_unit(unit):
    """In plain loops: noise variance over the square of sum |x_j| sd_j; items that feel nothing are left out."""
    items, Sigma = np.array([[.2, -.1], [.5, .5], [0, 0]]), np.array([[1, .3], [.3, .25]])
    problem = make_problem(items * unit, [.4, .4, .2], [0, 0], Sigma, .6, .3, .9)
    loops = [.36 * sum(x != 0 for x in row) / sum(abs(x) * unit * np.sqrt(Sigma[j, j]) for j, x in enumerate(row))**2 for row in items[:2]]
    assert posterior.noise_share(problem) == pytest.approx(min(loops))
