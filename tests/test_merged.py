"""Laws on few atoms that bound one on very many: against the bracket of all magnitudes, and plain loops over every state."""
import numpy as np
import pytest

from lib import bound, dp
from lib.bound import merged
from lib.problem import make_problem


def crowd(n, k=2, seed=0, **changes):
    """n items that sum to 1, of unequal probability."""
    rng = np.random.default_rng(seed)
    return make_problem(rng.dirichlet(np.full(k, .7), n), rng.dirichlet(np.ones(n)), np.full(k, .3), .5 * np.eye(k) + .3, .5, .5,
                        .8)._replace(**changes)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("classes", [1, 7, 40])
def test_merged_laws_keep_mass_and_mean_and_spread_or_shrink_it(seed, classes):
    rng = np.random.default_rng(seed)
    x, probs = np.maximum(rng.normal(1, 1, 300), 0) ** (1 + seed), rng.dirichlet(np.ones(300))
    (a, q, p), (c, r, s) = merged.outward(x, probs, classes), merged.inward(x, probs, classes)
    assert p.sum() == pytest.approx(1) == s.sum() and (p >= 0).all() and (s >= 0).all()
    assert a @ p == pytest.approx(x @ probs, rel=1e-12) and c @ s <= x @ probs * (1 + 1e-12)
    for knot in np.linspace(0, x.max(), 40):                    # every convex function is a mixture of these
        exact = np.maximum(x - knot, 0) @ probs
        assert np.maximum(c - knot, 0) @ s <= exact * (1 + 1e-9) + 1e-12
        assert np.maximum(a - knot, 0) @ p >= exact * (1 - 1e-9) - 1e-12
    assert (q >= a**2 * (1 - 1e-12)).all() and (r <= c**2 * (1 + 1e-12)).all() and (q[a > 0] > 0).all()
    for least in np.quantile(x[x > 0], [0, .3, .9]) ** 2:         # information: at least as much at every rate, or at most
        assert p[q >= least].sum() >= probs[x**2 >= least].sum() - 1e-12
        assert s[r >= least].sum() <= probs[x**2 >= least].sum() + 1e-12


def test_one_magnitude_and_none_are_what_they_were():
    for law in (merged.outward, merged.inward):
        x, info, probs = law(np.array([0., 2., 2.]), np.array([.5, .25, .25]), 1)
        assert x @ probs == 1 and (info[x > 0] == 4).all() and probs[x == 0].sum() == .5
        assert [part.tolist() for part in law(np.zeros(2), np.full(2, .5), 1)] == [[0], [0], [1]]


def test_few_magnitudes_are_kept_as_they_are():
    x, probs = np.array([.5, 0, 1, .5]), np.full(4, .25)
    for law in (merged.outward, merged.inward):
        assert [part.tolist() for part in law(x, probs, 2)] == [[0, .5, 1], [0, .25, 1], [.25, .5, .25]]
        assert len(law(x, probs, 1)[0]) <= 4 and (law(x, probs, 1)[1] != law(x, probs, 1)[0] ** 2).any()


def test_suits_only_items_that_sum_to_one_under_noise_alike():
    assert merged.suits(crowd(5)) and merged.suits(crowd(5, noise="constant")) and not merged.suits(crowd(5, noise=np.ones(5)))
    assert not merged.suits(crowd(5, items=2 * crowd(5).items))
    assert not merged.suits(make_problem([[1.5, -.5]], [1], [0, 0], np.eye(2), 1, .2, .9))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_merged_problem_is_worth_more_or_less_than_the_whole(seed):
    """At many means and precisions, from brackets of each: the outward law's upper end and the inward law's lower one."""
    rng = np.random.default_rng(seed)
    x, probs = rng.beta(.7, 1.5, 200), rng.dirichlet(np.ones(200))
    means, var = np.linspace(-.8, .6, 8), .7
    whole = dp.value(dp.solve(x, probs, .8, .5, var, tol=.01), means, var)
    for classes in (4, 40):
        a, q, p = merged.outward(x, probs, classes)
        high = dp.value(dp.solve(a, p, .8, .5, var, tol=.01, info=q), means, var)
        c, r, s = merged.inward(x, probs, classes)
        low = dp.value(dp.solve(c, s, .8, .5, var, tol=.01, info=r), means, var)
        assert (high.upper >= whole.lower).all() and (low.lower <= whole.upper).all()
        if classes == 4:                                        # coarse enough to see the direction beyond the brackets
            assert (high.lower >= whole.lower).all() and (low.upper <= whole.upper + 1e-9).all()


@pytest.mark.slow
def test_theorem_1_of_many_items_encloses_that_of_all(monkeypatch):
    problem = crowd(200)
    whole = bound.decomposition(problem, tol=.02)
    monkeypatch.setattr(merged, "MANY", 100)
    monkeypatch.setattr(merged, "CLASSES", 60)
    many = bound.decomposition(problem, tol=.02)
    assert many.lower <= whole.upper and whole.lower <= many.upper and many.lower <= many.value <= many.upper
    assert many.upper - many.lower < .1 * many.value
    with pytest.raises(ValueError, match="told is 2"):
        bound.decomposition(problem, told=2)
