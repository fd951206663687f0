"""Random streams: reproducible, prefix-stable, independent of one another."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lib import streams


@pytest.mark.parametrize("draw", [streams.normals, streams.uniforms])
def test_a_longer_horizon_extends_the_stream(draw):
    short, long = draw(3, streams.NOISE, 5, 7), draw(3, streams.NOISE, 5, 50)
    assert short.shape == (streams.BLOCK, 7)
    assert np.array_equal(short, long[:, :7])


def test_seed_purpose_and_block_each_change_the_stream():
    base = streams.normals(1, streams.NOISE, 0, 4)
    others = [streams.normals(2, streams.NOISE, 0, 4), streams.normals((1, 0, 1), streams.NOISE, 0, 4),
              streams.normals(1, streams.THOMPSON, 0, 4), streams.normals(1, streams.NOISE, 1, 4)]
    assert all(not np.array_equal(base, other) for other in others)


def test_rows_are_uncorrelated_and_have_the_right_law():
    z = np.concatenate([streams.normals(0, streams.THETA, block, 40) for block in range(8)])
    u = np.concatenate([streams.uniforms(0, streams.ITEMS, block, 40) for block in range(8)])
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-3
    assert stats.kstest(u.ravel(), "uniform").pvalue > 1e-3
    off = np.corrcoef(z.T)[~np.eye(40, dtype=bool)]
    assert abs(off).max() < 5 / np.sqrt(len(z))


@pytest.mark.parametrize("seed", [-1, 1.5, "1", True, (), (1, -2), [0.5], None])
def test_a_bad_seed_is_named(seed):
    with pytest.raises(ValueError, match="seed"):
        streams.generator(seed)


def test_numpy_integers_are_seeds():
    assert streams.generator(np.int64(3), 1).random() == streams.generator(3, 1).random()


def test_items_of_probability_zero_are_never_drawn():
    probs = np.array([0.0, 0.1, 0.2, 0.0, 0.7, 0.0, 0.0])
    total = streams.cumulative(probs)
    u = np.append(np.linspace(0, 1, 1001)[:-1], np.nextafter(1, 0))
    drawn = streams.draw_items(probs, u)
    assert np.array_equal(drawn, [min(i for i in range(7) if v < total[i]) for v in u])
    assert set(drawn) == {1, 2, 4}
    assert np.bincount(drawn, minlength=7)[[1, 2, 4]] == pytest.approx([100, 200, 701], abs=1.5)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 8), st.integers(0, 8), st.integers(0, 2**32 - 1))
def test_the_factor_of_any_covariance_gives_it_back(k, rank, seed):
    A = np.random.default_rng(seed).standard_normal((k, rank)) * 10.0 ** np.arange(-1, k - 1)[:, None]
    Sigma = A @ A.T
    L = streams.factor(Sigma)
    assert abs(L @ L.T - Sigma).max() <= 1e-13 * k * max(abs(Sigma).max(), 1e-300)
    assert np.count_nonzero(L.any(axis=0)) <= max(rank, 0)


def test_the_factor_of_a_diagonal_is_diagonal():
    assert np.array_equal(streams.factor(np.diag([4.0, 0.0, 9.0])), np.diag([2.0, 0.0, 3.0]))


def test_purposes_keep_their_numbers():
    """Draws depend on them: a purpose that is renumbered changes every result that rests on it."""
    assert {purpose.name: int(purpose) for purpose in streams.Purpose} == {
        "THETA": 0, "ITEMS": 1, "NOISE": 2, "THOMPSON": 3, "DRIFT": 8, "TAIL": 9, "NOISE_TAIL": 10,
        "KIND": 11, "THEOREM": 16, "ARRIVALS": 17, "BOOTSTRAP": 20, "PATHS": 32, "AHEAD": 33, "SEQUENCES": 34, "COMING": 35,
        "FUTURES": 40, "REPLAY_THOMPSON": 41, "SERVICE": 42, "SERVICES": 43}
    assert streams.generator(1, streams.Purpose.PATHS).random() == streams.generator(1, 32).random()


def test_cumulative_probabilities_end_at_one_with_the_last_item_that_comes():
    assert streams.cumulative(np.array([.25, 0, .75, 0])).tolist() == [.25, .25, 1, 1]
    tenths = streams.cumulative(np.full(10, .1))
    assert tenths[-1] == 1 and tenths == pytest.approx(np.arange(1, 11) / 10) and (np.diff(tenths) > 0).all()
