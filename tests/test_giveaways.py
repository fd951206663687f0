"""What Theorem 1 gives away: every posterior by conditioning one large normal vector, and the order that the terms must have."""
import numpy as np
import pytest

from lib import bound, streams
from lib.normal import expected_excess
from lib.problem import effective_horizon, make_problem, noise_var


def mixed(cost=.3):
    return make_problem([[1, 0, .5], [.2, -1, 0], [.5, .5, .5]], [.5, .3, .2], [.2, .1, .3],
                        [[1, .4, .2], [.4, .8, .1], [.2, .1, .6]], .7, cost, .8)


def explained(Sigma, rows, noise, direction):
    """Variance of the mean of direction.theta given rows @ theta + noise: conditioning by the pseudo-inverse."""
    cross = direction @ Sigma @ rows.T
    return cross @ np.linalg.pinv(rows @ Sigma @ rows.T + np.diag(noise), rcond=1e-11, hermitian=True) @ cross


@pytest.mark.parametrize("told, basis", [(1.0, None), (.4, None), (0.0, [[1, .4, 0], [-.5, 1, 0], [0, .2, 1]])])
def test_terms_are_sums_over_conditioned_normal_vectors(told, basis):
    problem, seed, count, tail = mixed(), 5, 3, 1e-5
    B = np.eye(3) if basis is None else np.array(basis)
    A, k = np.linalg.inv(B), 3
    charges = bound.even_charges(problem if basis is None else bound.in_basis(problem, B), told)
    S, Z, m = A @ problem.Sigma @ A.T, problem.items @ B, A @ problem.mu
    horizon = effective_horizon(problem.gamma, tail)
    index = streams.draw_items(problem.probs, streams.generator(seed, streams.Purpose.ARRIVALS).random((count, horizon)))
    noise, sums = noise_var(problem), np.zeros((count, 3))
    for r in range(count):
        for n, i in enumerate(index[r]):
            seen, z = index[r, :n], Z[i]
            rows, var = Z[seen].reshape(-1, k), noise[seen]
            one = expected_excess(z @ m - problem.cost, np.sqrt(explained(S, rows, var, z)) if n else 0.0)
            each = informed = 0.0
            for j in range(k):
                delta = told * np.eye(k)[j] + (1 - told) * S[j] / S[j, j]
                given = np.eye(k) - np.outer(delta, np.eye(k)[j])
                more, quiet = np.vstack([rows, given]), np.append(var, np.zeros(k))
                sds = [np.sqrt(max(explained(S, *pair, np.eye(k)[j]), 0)) if len(pair[0]) else 0.0 for pair in ((rows, var), (more, quiet))]
                each += expected_excess(z[j] * m[j] - charges[i, j], abs(z[j]) * sds[0])
                informed += expected_excess(z[j] * m[j] - charges[i, j], abs(z[j]) * sds[1])
            sums[r] += problem.gamma**(n + 1) * np.array([one, each, informed])
    found = bound.gifts(problem, charges, basis, told, count, seed)
    mine = np.cumsum([found.observed.mean, found.alone.mean, found.told.mean])
    scale = problem.gamma**horizon
    known = problem.probs @ expected_excess(Z * m - charges, np.abs(Z) * np.sqrt(np.diag(S))).sum(axis=1)
    rest = np.array([scale * bound.hindsight(problem)] + 2 * [scale * problem.gamma / (1 - problem.gamma) * known])
    assert mine == pytest.approx(sums.mean(axis=0) + rest, rel=1e-6)
    assert found.total.mean == pytest.approx(mine[2]) and found.total.se == pytest.approx(sums[:, 2].std(ddof=1) / np.sqrt(count), rel=1e-5)


def test_full_observation_is_that_of_the_other_function():
    assert bound.gifts(mixed(), sequences=20, seed=3).observed == pytest.approx(bound.full_observation(mixed(), 20, 3))


@pytest.mark.parametrize("kind, told, basis", [("paper", 1.0, None), ("even", .5, None), ("even", 1.0, "eigen")])
def test_every_gift_is_one_and_the_theorem_lies_below_their_sum(kind, told, basis):
    for cost in (0.0, .4, .8):
        problem = mixed(cost)
        B = np.linalg.eigh(problem.Sigma)[1] if basis else None
        found = bound.gifts(problem, kind, B, told, sequences=200)
        assert found.alone.mean > 0 and found.told.mean >= -1e-9
        limit = bound.decomposition(problem, .05, "model", kind, B, told)
        assert limit.lower <= found.total.mean + 4 * found.total.se


def test_independent_features_that_never_meet_give_nothing_away():
    problem = make_problem(np.eye(3), [.5, .3, .2], [.1, .2, .3], np.eye(3), .5, .2, .9)
    found = bound.gifts(problem, sequences=10)
    assert found.alone.mean == pytest.approx(0, abs=1e-12) and found.told.mean == pytest.approx(0, abs=1e-12)


def test_a_noise_beyond_what_beliefs_can_take_is_refused():
    with pytest.raises(ValueError, match="noise_sd is 1e-09"):
        bound.gifts(mixed()._replace(noise_sd=1e-9))
