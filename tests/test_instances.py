"""Instances with one knob each, and beliefs made wrong."""
import naive
import numpy as np
import pytest

from lib import experiments, policies, simulate
from lib.experiments import Knobs
from lib.problem import make_problem, noise_var


@pytest.mark.parametrize("knobs", [Knobs(), Knobs(mix=0.3), Knobs(mix=1.0, correlation=0.8), Knobs(features=2, mix=0.5),
                                   Knobs(features=7, mix=0.6, correlation=-0.1, favour=3.0, noise=2.0, gamma=0.5)])
def test_every_item_alone_is_the_same_problem(knobs):
    problem = experiments.from_knobs(knobs)
    items, k = problem.items, knobs.features
    assert np.einsum("ij,jk,ik->i", items, problem.Sigma, items) == pytest.approx(1)
    assert noise_var(problem) == pytest.approx(knobs.noise**2) and items.sum(axis=1) == pytest.approx(1)
    assert not problem.mu.any() and (problem.cost, problem.gamma) == (knobs.cost, knobs.gamma)
    sd = np.sqrt(np.diag(problem.Sigma))
    assert (problem.Sigma / np.outer(sd, sd))[~np.eye(k, dtype=bool)] == pytest.approx(knobs.correlation)


def test_mix_turns_items_from_the_basis_and_favour_counts_the_larger_feature():
    assert np.array_equal(experiments.from_knobs(Knobs()).items, np.eye(4))
    assert experiments.from_knobs(Knobs()).probs == pytest.approx(np.array([10, 1, 1, 1]) / 13)
    mixed = experiments.from_knobs(Knobs(features=3, mix=0.4, favour=2.0))
    rows = {tuple(np.round(x, 12)): p for x, p in zip(mixed.items, mixed.probs)}
    assert rows == pytest.approx({(0.8, 0.2, 0): 0.25, (0.8, 0, 0.2): 0.25, (0.2, 0.8, 0): 0.125, (0, 0.8, 0.2): 0.125,
                                  (0.2, 0, 0.8): 0.125, (0, 0.2, 0.8): 0.125})


def test_the_mean_slope_of_aligned_items_is_the_equation_of_the_chapter():
    p = experiments.from_knobs(Knobs()).probs
    for rho in (0, 0.3, 0.9):
        problem = experiments.from_knobs(Knobs(correlation=rho))
        assert policies.mean_projection(problem) == pytest.approx(p)
        assert policies.mean_projection(problem, "prior") == pytest.approx(p + rho * (1 - p))


@pytest.mark.parametrize("change, words", [
    (dict(features=1), "features must be an integer of at least 2, got 1"), (dict(features=2.0), "features must be an integer of at least 2, got 2.0"), (dict(features=True), "features must be an integer of at least 2, got True"),
    (dict(mix=1.1), "mix is 1.1"), (dict(mix=-0.1), "mix is -0.1"), (dict(favour=0), "favour is 0"),
    (dict(correlation=1.0), "correlation is 1.0"), (dict(correlation=-0.34), "correlation is -0.34"),
    (dict(noise=0.0), "noise is 0.0"), (dict(gamma=1.0), "gamma is 1.0")])
def test_a_wrong_knob_is_named(change, words):
    with pytest.raises(ValueError, match=words):
        experiments.from_knobs(Knobs(**change))


def test_wrong_beliefs_scale_and_shift():
    problem = experiments.from_knobs(Knobs())
    other = experiments.wrong(problem, noise=3.0, prior=0.25, mean=-0.5)
    assert other.noise_sd == 3 * problem.noise_sd and np.array_equal(other.Sigma, problem.Sigma / 4)
    assert np.array_equal(other.mu, problem.mu - 0.5) and experiments.wrong(problem).mu is not None
    for name in ("noise", "prior"):
        with pytest.raises(ValueError, match=f"{name} is -1.0"):
            experiments.wrong(problem, **{name: -1.0})


ITEMS = [[1, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5], [0, 0, 1]]


def uneven():
    return make_problem(ITEMS, [0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3], [[1, 0.4, 0], [0.4, 1, 0], [0, 0, 2]], 0.6, 0.3, 0.9)


def test_even_noise_is_the_same_for_all_items_and_changes_nothing_else():
    problem = uneven()
    even = experiments.even_noise(problem)
    assert noise_var(even) == pytest.approx(problem.probs @ noise_var(problem)) and even.items is problem.items
    assert noise_var(experiments.even_noise(problem, 2.0)) == pytest.approx(4)
    assert even.items @ even.mu == pytest.approx(problem.items @ problem.mu)
    assert even.items @ even.Sigma @ even.items.T == pytest.approx(problem.items @ problem.Sigma @ problem.items.T)
    for law in ("euclid", "prior"):
        assert policies.mean_projection(even, law) == pytest.approx(policies.mean_projection(problem, law))
    aligned = experiments.from_knobs(Knobs())
    assert noise_var(experiments.even_noise(aligned)) == pytest.approx(noise_var(aligned))
    with pytest.raises(ValueError, match="sd is 0"):
        experiments.even_noise(problem, 0)


def test_even_noise_decides_as_plain_loops_with_that_noise_do():
    problem, horizon = uneven(), 25
    even = experiments.even_noise(problem, 0.8)
    rules = [policies.exploit(), policies.ucb(0.5), policies.dtd_ucb(0.8)]
    got = simulate.episodes(even, rules, 20, horizon, 4)
    for p, rule in enumerate(rules):
        for r in range(20):
            mu, Sigma, decided = list(problem.mu), [list(row) for row in problem.Sigma], []
            for i, y in zip(got.items[r], got.feedback[r]):
                x = ITEMS[i]
                mean, var = naive.inner(x, mu), naive.variance(Sigma, x)
                factor = naive.mean_projection(ITEMS, list(problem.probs), x)
                decided.append(naive.wanted(rule.kind, rule.alpha, mean, var, problem.cost, factor, 0.0, 0.0))
                if decided[-1]:
                    mu, Sigma = naive.update(mu, Sigma, x, y, 0.64)
            assert got.decisions[p, r].tolist() == decided
