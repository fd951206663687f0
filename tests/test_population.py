"""What is learnt of all users: against one dense regression, SciPy's densities and searches, and plain consequences."""
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from lib.population import Users, climb, estimate, log_likelihood, pooled, summary
from lib.posterior import batch


def crowd(seed, users=5, k=2, most=4, singular=False):
    """Designs, feedback, noise variances, and mu, V, Sigma."""
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(k, 1 if singular else k)), rng.normal(size=(k, 1 if singular else k))
    found = []
    for n in rng.integers(0, most + 1, users):
        X, noise = rng.normal(size=(n, k)), rng.uniform(.3, 2, n)
        found.append((X, rng.normal(size=n) * 2, noise))
    return found, rng.normal(size=k), A @ A.T, B @ B.T


def sums(people, k=2):
    parts = [summary(X, y, noise) if len(X) else (np.zeros((k, k)), np.zeros(k)) for X, y, noise in people]
    return Users(*map(np.array, zip(*parts)))


def densities(people, mu, Sigma):
    """Log density of all feedback, user by user."""
    return sum(multivariate_normal(X @ mu, X @ Sigma @ X.T + np.diag(noise)).logpdf(y) for X, y, noise in people if len(X))


@pytest.mark.parametrize("seed, singular", [(0, False), (1, False), (2, True)])
def test_pooling_users_one_by_one_is_one_regression_with_correlated_noise(seed, singular):
    people, mu, V, Sigma = crowd(seed, singular=singular)
    belief, users = (mu, V), sums(people)
    for u in np.random.default_rng(seed).permutation(len(people)):          # whatever the order
        belief = pooled(*belief, Sigma, users.gram[u], users.moment[u])
    X, y = np.vstack([part[0] for part in people]), np.concatenate([part[1] for part in people])
    owner = np.repeat(range(len(people)), [len(part[0]) for part in people])
    R = X @ Sigma @ X.T * (owner[:, None] == owner) + np.diag(np.concatenate([part[2] for part in people]))
    gain = V @ X.T @ np.linalg.inv(X @ V @ X.T + R)
    np.testing.assert_allclose(belief[0], mu + gain @ (y - X @ mu), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(belief[1], V - gain @ X @ V, rtol=1e-9, atol=1e-12)


def test_who_was_sent_nothing_teaches_nothing():
    _, mu, V, Sigma = crowd(3)
    belief = pooled(mu, V, Sigma, np.zeros((2, 2)), np.zeros(2))
    np.testing.assert_array_equal(belief.mu, mu)
    np.testing.assert_allclose(belief.Sigma, V, rtol=1e-15)


def test_what_no_forward_touches_stays_what_it_was():
    """Users see the first of two independent features alone: mean and spread of the second do not move."""
    users = Users(np.tile(np.diag([3.0, 0.0]), (50, 1, 1)), np.column_stack([np.linspace(-1, 9, 50), np.zeros(50)]))
    found = estimate(users, [0, .7], np.diag([4.0, .3]), np.diag([1.0, .5]), 2.0, 50)
    assert found.mu[1] == pytest.approx(.7, abs=1e-12) and found.Sigma[1, 1] == pytest.approx(.5, rel=1e-9)
    assert found.mu[0] == pytest.approx(4 / 3, rel=.05) and abs(found.Sigma[0, 1]) < 1e-12
    belief = pooled([0, .7], np.diag([4.0, .3]), np.diag([1.0, .5]), users.gram[0], users.moment[0])
    assert belief.mu[1] == .7 and belief.Sigma[1, 1] == pytest.approx(.3, rel=1e-15)


def test_the_likelihood_is_that_of_the_feedback():
    people, mu, _, Sigma = crowd(4)
    users, others = sums(people), [crowd(seed)[1:] for seed in (5, 6)]
    for there, _, spread in others:
        apart = log_likelihood(users, mu, Sigma) - log_likelihood(users, there, spread)
        assert apart == pytest.approx(densities(people, mu, Sigma) - densities(people, there, spread), rel=1e-9)


def penalised(users, mu, Sigma, start, V, guess, weight):
    gap = mu - start
    return (log_likelihood(users, mu, Sigma) - gap @ np.linalg.solve(V, gap) / 2
            - weight / 2 * (np.linalg.slogdet(Sigma)[1] + np.trace(np.linalg.solve(Sigma, guess))))


def test_the_climb_never_descends_and_ends_at_the_top():
    people, start, V, guess = crowd(7, users=12)
    users, weight = sums(people), 1.5
    mu, Sigma, last = start.copy(), guess.copy(), -np.inf
    for _ in range(400):
        now = penalised(users, mu, Sigma, start, V, guess, weight)
        assert now > last - 1e-9
        last = now
        climb(users, mu, Sigma, start, V, guess, weight)

    def minus(flat):
        L = np.array([[np.exp(flat[2]), 0], [flat[3], np.exp(flat[4])]])
        return -penalised(users, flat[:2], L @ L.T, start, V, guess, weight)
    top = minimize(minus, np.zeros(5), method="BFGS").fun
    assert last == pytest.approx(-top, abs=1e-4)
    found = estimate(users, start, V, guess, weight, 400)
    np.testing.assert_allclose(found.mu, mu, rtol=1e-12)


def test_information_is_what_pooling_adds():
    people, start, V, guess = crowd(8)
    users, belief = sums(people), (start, V)
    for gram, moment in zip(*users):
        belief = pooled(*belief, guess, gram, moment)
    info = climb(users, start.copy(), guess.copy(), start, V, guess, 1.0)
    np.testing.assert_allclose(np.linalg.inv(belief[1]), np.linalg.inv(V) + info, rtol=1e-8)


def test_what_is_refused():
    users = Users(np.ones((1, 1, 1)), np.ones((1, 1)))
    for wrong, message in ((lambda: pooled([0], [[1]], [[1]], [[1, 0], [0, 1]], [1]), "gram must have shape"),
                           (lambda: pooled([0], [[1]], [[1]], [[1]], [1, 2]), "moment must have one"),
                           (lambda: summary([[1.0]], [1, 2], 1), "X must have shape"), (lambda: summary([[1.0]], [1], 0), "noise_var is 0"),
                           (lambda: estimate(users, [0], [[1]], [[0]]), "guess must be positive"),
                           (lambda: estimate(users, [0, 0], [[1]], [[1]]), "start must have one"),
                           (lambda: log_likelihood(users, [0, 0], [[1]]), "mu must have one"),
                           (lambda: log_likelihood(None, [0], [[1]]), "users is"),
                           (lambda: log_likelihood(Users(np.ones((1, 1, 2)), np.ones((1, 1))), [0], [[1]]), "gram of users must")):
        with pytest.raises(ValueError, match=message):
            wrong()


@pytest.mark.parametrize("X, y, noise_var", [([[1.0]], [1, 2], 1), ([[1.0]], [1], 0), ([[1.0], [2.0]], [1, 2], [1, -1]), ([[1.0]], [1], [1, 1]),
                                             ([[np.nan]], [1], 1), ([[1.0]], [np.inf], 1), ([[1.0]], ["a"], 1), ([1.0], [1], 1)])
def test_a_users_feedback_is_refused_in_the_same_words_everywhere(X, y, noise_var):
    said = []
    for wrong in (lambda: summary(X, y, noise_var), lambda: batch([0.0], [[1.0]], X, y, noise_var)):
        with pytest.raises(ValueError) as error:
            wrong()
        said.append(str(error.value))
    assert said[0] == said[1]
