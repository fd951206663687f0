"""Laws on few general atoms that bound one on very many: against random functions of the kind that a value is, the bracket of all
atoms at many states, and Theorem 1 of random problems with none merged."""
import numpy as np
import pytest

from lib import bound, dp
from lib.bound import cells, theorem
from lib.problem import make_problem

WAYS = [dict(charges="paper"), dict(charges="even"), dict(charges="even", told=.4), dict(charges="even", told=0.0, learning=.1)]


def crowd(seed, n=60, k=2, noise="features"):
    """n items of any sign and norm, some elements zero, of unequal probability, one of them 0."""
    rng = np.random.default_rng(seed)
    items, A = rng.normal(size=(n, k)) * rng.choice([0, 1, 1, 3], size=(n, k)), rng.normal(size=(k, k))
    probs = rng.dirichlet(np.ones(n - 1))
    return make_problem(items, np.append(probs, 0.0), rng.normal(size=k) / 2, A @ A.T + .1 * np.eye(k), rng.uniform(.4, 1.5),
                        rng.normal() / 2, .8, noise)


def piece_of(problem, way, j=0):
    return theorem.one_piece(theorem.decompose(problem, "model", way["charges"], None, way.get("told", 1.0), way.get("learning", 0.0)), j)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", [1, 6, 30])
def test_laws_keep_means_and_lie_on_either_side_of_every_value(seed, way, count):
    """A value is max{c, a x + b r + rising(info)}: affine in (x, r), rising in the information."""
    problem, rng = crowd(seed, 200), np.random.default_rng(seed)
    piece, probs = piece_of(problem, way), problem.probs
    where = cells.cut(piece, probs, problem.noise_sd, problem.gamma, count)
    assert where.max() + 1 == count and ((where < 0) == ((piece.x == 0) & (piece.info == 0))).all()
    (x, r, q, p), (y, s, u, m) = (law(piece, probs, where) for law in (cells.outward, cells.inward))
    assert (p >= 0).all() and p.sum() == pytest.approx(1) == m.sum() and len(x) <= 4 * count + 2 and len(y) <= count + 2
    busy = where >= 0
    for part, above, below in ((piece.x, x, y), (piece.charge, r, s)):
        assert p[1:] @ above[1:] == pytest.approx(probs[busy] @ part[busy], abs=1e-12) == m[1:] @ below[1:]
    level = np.quantile(piece.info, [.2, .5, .9])
    for _ in range(60):
        a, b, c, rise = rng.normal(), rng.exponential(), rng.normal(), rng.exponential(size=3)

        def value(x, r, q):
            return np.maximum(c, a * x - b * r + (q[:, None] >= level) @ rise)
        exact = probs[busy] @ value(piece.x, piece.charge, piece.info)[busy]
        assert p[1:] @ value(x, r, q)[1:] >= exact - 1e-11 and m[1:] @ value(y, s, u)[1:] <= exact + 1e-11


def test_what_neither_pays_nor_teaches_is_taken_where_it_is_paid_for():
    piece = theorem.Pieces(*map(np.array, ([0., 0, 1, 0], [-1., 2, .5, 1], [0., 0, 1, .5])), .1, 1.0, .2, 0.0)
    probs = np.array([.1, .2, .3, .4])
    where = cells.cut(piece, probs, 1.0, .9, 5)
    assert where.tolist()[:2] == [-1, -1] and sorted(where[2:].tolist()) == [0, 1]
    for law in (cells.outward, cells.inward):
        x, charge, info, mass = law(piece, probs, where)
        idle = (x == 0) & (info == 0)
        assert mass[idle].sum() == pytest.approx(.3) and mass[idle] @ np.maximum(-charge[idle], 0) == pytest.approx(.1)
        kept = mass > 0
        assert sorted(zip(x[kept & ~idle], charge[kept & ~idle], info[kept & ~idle])) == [(0, 1, .5), (1, .5, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("seed, way", list(enumerate(WAYS[1:])))
def test_the_merged_problem_is_worth_more_or_less_at_every_state(seed, way):
    problem = crowd(seed)
    piece, gamma, sd = piece_of(problem, way), problem.gamma, problem.noise_sd

    def value(law, var):
        """At means around the prior's, from a table that is sharp at `var`."""
        x, charge, info, probs = law
        table = dp.solve_general(x, charge, probs, gamma, sd, var, .03, info=info)
        return dp.general_value(table, piece.mean + np.linspace(-2, 2, 7) * np.sqrt(piece.var), var)

    for var in (piece.var, .3 * piece.var):
        exact = value((piece.x, piece.charge, piece.info, problem.probs), var)
        for count in (3, 12):
            where = cells.cut(piece, problem.probs, sd, gamma, count)
            high, low = (value(law(piece, problem.probs, where), var) for law in (cells.outward, cells.inward))
            assert (high.upper >= exact.lower).all() and (low.lower <= exact.upper).all()
            if count == 3:                                          # coarse enough to see the direction beyond the brackets
                assert (high.lower >= exact.lower - 1e-9).all() and (low.upper <= exact.upper + 1e-9).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed, noise", [(0, "features"), (1, "constant"), (2, "features")])
def test_theorem_1_of_merged_atoms_encloses_that_of_all(seed, noise, monkeypatch):
    problem = crowd(seed, 90, 1 + seed % 3, noise)
    for way in WAYS:
        way = {**way, "noise": "model"}
        whole = bound.decomposition(problem, .04, **way)
        with monkeypatch.context() as patched:
            patched.setattr(cells, "MANY", 10)
            patched.setattr(cells, "MOST", 60)
            few = bound.decomposition(problem, .04, **way)
        assert few.lower <= whole.upper and whole.lower <= few.upper, way
        assert few.upper <= 1.2 * whole.upper, way


@pytest.mark.slow
def test_a_large_catalogue_of_general_items_has_theorem_1(monkeypatch):
    """It is that of a sample of the items, within what the sample may differ."""
    monkeypatch.setattr(cells, "MOST", 100)
    rng = np.random.default_rng(0)
    problem = make_problem(rng.normal(size=(6_000, 2)), np.full(6_000, 1 / 6_000), [.6, .4], np.eye(2) + .2, 1.0, .3, .8)
    found = bound.decomposition_for(problem, .05)
    alike = bound.decomposition(problem._replace(items=problem.items[:300], probs=np.full(300, 1 / 300)), .05, "model", "even")
    assert found.lower < found.upper < 1.2 * found.lower and found.value == pytest.approx(alike.value, rel=.2)


def test_magnitudes_that_are_nearly_alike_keep_the_mean_charge():
    """A line through such atoms is steep: it is read from their mean, not from zero."""
    rng, n = np.random.default_rng(0), 50
    piece = theorem.Pieces(1 + 1e-9 * rng.random(n), rng.random(n), rng.random(n), .1, 1.0, .2, 0.0)
    x, charge, _, mass = cells.outward(piece, np.full(n, 1 / n), np.zeros(n, int))
    assert mass @ charge == pytest.approx(piece.charge.mean(), abs=1e-13) and mass @ x == pytest.approx(piece.x.mean(), abs=1e-15)
