"""Theorem 1 for any items: what each piece is told and sees by brute force, exact cases, policies and the optimum below."""
import numpy as np
import pytest
from scipy.stats import norm

from lib import bound, dp, policies, simulate
from lib.bound import optimum, theorem
from lib.problem import make_problem, noise_var

WAYS = [dict(charges="paper"), dict(charges="even"), dict(charges="even", told=.5), dict(charges="even", told=0.0),
        dict(charges="even", told=.3, basis=[[1, .4], [-.5, 1]])]


def signed(seed, k=2, n=3, noise="features"):
    """A random problem with items of any sign and norm."""
    rng = np.random.default_rng(seed)
    items, A = rng.normal(size=(n, k)), rng.normal(size=(k, k))
    items[0, 0] = 0.0
    return make_problem(items, rng.dirichlet(np.ones(n)), rng.normal(size=k) / 2, A @ A.T, rng.uniform(.4, 1.5),
                        rng.normal() / 2, .8, noise)


def pieces(problem, charges="even", basis=None, told=1.0, noise="model"):
    return theorem.decompose(problem, noise, charges, basis, told)


@pytest.mark.parametrize("told", [0.0, .3, .8, 1.0])
def test_what_a_piece_is_told_and_sees(told):
    problem, B = signed(3, k=3, n=5), np.array([[1., 2, 0], [0, 1, 1], [1, 0, -1]])
    found, A = pieces(problem, basis=B, told=told), np.linalg.inv(B)
    S, Z = A @ problem.Sigma @ A.T, problem.items @ B
    for j in range(3):
        delta = told * np.eye(3)[j] + (1 - told) * S[j] / S[j, j]
        T = np.eye(3) - np.outer(delta, np.eye(3)[j])               # what is told: T eta
        cross = S[j] @ T.T
        var = S[j, j] - cross @ np.linalg.pinv(T @ S @ T.T, rcond=1e-10) @ cross
        assert found.var[j] == pytest.approx(var, rel=1e-7) and found.doubt[j] >= 0
        assert found.sd[j]**2 + found.var[j] == pytest.approx(S[j, j], rel=1e-12)
        for i, z in enumerate(Z):                                   # Y less what is told is coefficient times eta_j
            eta = np.random.default_rng(i).normal(size=3)
            coefficient = (z @ eta - z @ (T @ eta)) / eta[j]
            assert found.info[i, j] == pytest.approx(coefficient**2 * problem.noise_sd**2 / noise_var(problem)[i], rel=1e-10)
    np.testing.assert_allclose(found.charge.sum(axis=1), problem.cost, rtol=1e-12)
    np.testing.assert_allclose(found.x @ (A @ problem.mu), problem.items @ problem.mu, rtol=1e-10)


def test_even_charges_make_what_pieces_earn_in_hindsight_least():
    problem = signed(1, k=3)
    sd = np.abs(problem.items) * np.sqrt(np.diag(problem.Sigma))

    def known(charges):
        net = problem.items * problem.mu - charges
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(sd > 0, net / sd, 0)
        return np.where(sd > 0, net * norm.cdf(z) + sd * norm.pdf(z), np.maximum(net, 0)).sum()
    least, rng = bound.even_charges(problem), np.random.default_rng(0)
    for _ in range(20):
        move = rng.normal(size=least.shape) * .1
        assert known(least) < known(least + move - move.mean(axis=1, keepdims=True))


def test_one_kind_of_item_counted_along_itself_is_the_optimum():
    x, Sigma = np.array([1.0, -.5]), np.array([[1, .4], [.4, .5]])
    problem = make_problem([x], [.7 + .3], [.2, .1], Sigma, .8, .3, .9)
    other = np.array([(Sigma @ x)[1], -(Sigma @ x)[0]])             # independent of x.theta
    B = np.linalg.inv([x, other])
    table = dp.solve([1.0], [1.0], .9, np.sqrt(noise_var(problem)[0]), x @ Sigma @ x)
    exact = dp.value(table, x @ problem.mu - problem.cost, x @ Sigma @ x)
    for told in (0.0, .6, 1.0):
        found = bound.decomposition(problem, 1e-2, "model", "even", B, told)
        assert found.upper >= .9 * exact.lower and found.lower <= .9 * exact.upper * (1 + 1e-9)
        assert found.upper - found.lower <= 1.1e-2 * found.value


def test_a_turned_problem_turned_back():
    problem = make_problem([[1, 0], [0, 1]], [.6, .4], [.3, .1], np.eye(2), .5, .2, .9)
    Q = np.array([[.6, -.8], [.8, .6]])
    turned = problem._replace(items=problem.items @ Q, mu=Q.T @ problem.mu, noise="constant")
    found, plain = bound.decomposition(turned, 1e-2, "model", basis=Q.T), bound.decomposition(problem, 1e-3)
    assert found.lower <= plain.upper and plain.lower <= found.upper and found.upper < 1.02 * plain.upper
    loose = bound.decomposition(turned, 5e-2, "model")
    assert loose.lower > plain.upper                                # in its own basis the turned problem gives more away


def test_the_counterexample_of_the_printed_theorem():
    problem = make_problem([[1, 0], [1, 1]], [.5, .5], [.6, .6], np.zeros((2, 2)), 1, 1, .9)
    found = bound.decomposition(problem)
    assert found.upper == pytest.approx(.9 / .1 * .1, rel=1e-12) and found.lower <= found.upper


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_policies_and_the_optimum_stay_below(seed):
    problem = signed(seed)
    best = optimum.value(optimum.solve(problem, step=.25, depth=8, tolerance=.02), problem.mu)
    rules = [policies.exploit(), policies.ucb(.3), policies.ucb(1.0), policies.knowledge_gradient(1.0), policies.thompson()]
    rewards = simulate.replicate(problem, rules, 400, seed=seed)
    low = (rewards.mean(axis=1) - 3 * rewards.std(axis=1) / 20).max()
    for way in WAYS:
        found = bound.decomposition(problem, .1, "model", **way)
        assert found.upper >= max(best.lower, low, 0), way
        assert found.lower <= found.upper


def test_numbers_of_items_that_sum_to_one_are_those_of_one_table_each():
    problem = make_problem([[1, 0], [.5, .5]], [.6, .4], [.1, .2], [[1, .3], [.3, 1]], 1, .2, .9)
    total = np.zeros(3)
    for j in range(2):
        table = dp.solve(problem.items[:, j], problem.probs, .9, 1.0, .91, tol=1e-4)
        total += .9 * np.array(dp.smoothed_value(table, problem.mu[j] - .2, .3, .91))
    found = bound.decomposition(problem)
    assert found.lower <= total[2] and total[0] <= found.upper


@pytest.mark.slow
def test_the_general_program_gives_the_old_theorem_where_items_sum_to_one(monkeypatch):
    """To four digits: a program of signed atoms and charges of any kind, where all charges are a price of the feature."""
    problem = make_problem([[1, 0], [.5, .5]], [.6, .4], [.1, .2], [[1, .3], [.3, 1]], 1, .2, .9)
    old = bound.decomposition(problem, 4e-5)
    monkeypatch.setattr(theorem, "unit_price", lambda piece: None)
    new = bound.decomposition(problem, 4e-5)
    assert new.lower <= old.upper and old.lower <= new.upper
    assert f"{new.value:.4f}" == f"{old.value:.4f}" and new.upper - new.lower < 1e-4


@pytest.mark.parametrize("wrong, words", [
    (dict(charges=np.full((3, 2), .2)), "charges\\[0\\] add up to 0.4"), (dict(charges=[[.1]]), "charges must have one element"),
    (dict(charges="fair"), "charges is 'fair'"), (dict(told=1.5), "told is 1.5"), (dict(told=.5, noise="basis"), "noise is \"basis\""),
    (dict(basis=np.ones((2, 2))), "basis is singular"), (dict(basis=np.eye(3)), "basis must have shape")])
def test_refused(wrong, words):
    problem = signed(0)._replace(cost=.5)
    with pytest.raises(ValueError, match=words):
        bound.decomposition(problem, **{"noise": "model", **wrong})


@pytest.mark.parametrize("basis, item, mean", [(np.diag([1, 1.1e-12]), [1.0, 0.05], 2.0), (np.eye(2), [1.0, 5e-14], 2e13)])
def test_a_feature_in_a_small_unit_keeps_its_worth(basis, item, mean):
    """Its element is tiny in the new basis, its preference as large: nothing is lost."""
    problem = make_problem([item], [1.0], [0.0, mean], np.eye(2), 1.0, 0.1, 0.5)
    turned = bound.in_basis(problem, basis)
    assert turned.items @ turned.mu == pytest.approx(problem.items @ problem.mu, rel=1e-12) and turned.items[0, 1] > 0


def test_experiments_have_the_papers_own_where_items_are_the_papers():
    problem = make_problem([[1, 0], [.5, .5]], [.6, .4], [.1, .2], [[1, .3], [.3, 1]], 1, .2, .9)
    assert bound.decomposition_for(problem, .01) == bound.decomposition(problem, .01)
    assert theorem.as_in_paper(problem) and not theorem.as_in_paper(problem._replace(items=2 * problem.items))
    assert not theorem.as_in_paper(problem._replace(items=np.array([[2.0, -1.0], [.5, .5]])))


@pytest.mark.parametrize("seed", [0, 3])
def test_experiments_have_the_lesser_of_two_for_other_items(seed):
    problem = signed(seed)
    found = bound.decomposition_for(problem, .05)
    both = [bound.decomposition(problem, .05, "model", kind) for kind in ("paper", "even")]
    assert found in both and found.upper == min(each.upper for each in both)
    best = optimum.value(optimum.solve(problem, step=.25, depth=8, tolerance=.02), problem.mu)
    assert found.upper >= best.lower


def test_items_in_another_unit_are_worth_the_same():
    problem = make_problem([[1, 0], [.5, .5]], [.6, .4], [.1, .2], [[1, .3], [.3, 1]], 1, .2, .9)
    twice = problem._replace(items=2 * problem.items, mu=problem.mu / 2, Sigma=problem.Sigma / 4)
    found, plain = bound.decomposition_for(twice, .01), bound.decomposition(problem, .01, "model")
    assert found.lower <= plain.upper and found.upper <= plain.upper * 1.01


def test_a_large_catalogue_of_general_items_goes_without():
    many = make_problem(np.full((1, 2), .5), [1.0], [0, 0], np.eye(2), 1, .2, .9)
    assert theorem.affordable(many)
    rows = np.random.default_rng(0).random((theorem.LARGE + 1, 2))
    many = many._replace(items=rows, probs=np.full(len(rows), 1 / len(rows)))
    assert not theorem.affordable(many)
    assert theorem.affordable(many._replace(items=rows / rows.sum(axis=1, keepdims=True)))


def test_a_piece_is_worth_at_most_its_slope_a_unit_of_the_mean(monkeypatch):
    """sum_i p_i |x_i| / (1 - gamma), handed to what solves the piece."""
    problem = make_problem([[1, 0], [0, 1], [.5, -.5]], [.4, .4, .2], [0, 0], [[1, .3], [.3, 1]], 1, .2, .8)
    pieces, asked = theorem.decompose(problem, "model", "paper", None, 1.0), []

    def learned(problem, piece, tol, slope):
        asked.append(slope)
        return 1.0, 2.0, 3.0
    monkeypatch.setattr(theorem, "learned", learned)
    for j in (0, 1):
        piece = theorem.Pieces(*(part[:, j].copy() if part.ndim == 2 else float(part[j]) for part in pieces))
        theorem.piece_bracket(problem, piece, .1)
        assert asked[j] == pytest.approx(sum(p * abs(x) for p, x in zip(problem.probs, piece.x)) / .2)
