"""What a sweep does at one level, against plain loops; the general sweeps against the special ones, node by node."""
import math

import numpy as np
import pytest
from scipy.stats import norm

from lib import dp
from lib.dp import (atoms as kernels, certified, general, general_lower, general_upper, grid as grids, lower,
                    quadrature, upper)
from lib.dp.grid import Nodes, make_program
from lib.dp.lower import Answers, LowerGrid
from lib.dp.quadrature import Step
from lib.dp.upper import UpperGrid

pytestmark = pytest.mark.kernels
GAMMA, HALF, D, LO = .5, 8, .25, -6
PROGRAM = make_program(np.array([.4, .7, 1.0]), np.array([.3, .3, 1.0]), np.array([.2, .3, .3]), GAMMA, 1.0)
GROUP, M = np.array([0, 0, 1]), np.arange(LO, HALF + 1) * D


def lower_grid(values):
    """Two levels, the first of which holds `values` above a gap of two nodes."""
    size = 2 * HALF + 1
    return LowerGrid(np.array([1.0, 1.5]), np.full(2, D), np.array([[-HALF] * 2, [size] * 2]), np.array([2, 2 + size]),
                     np.concatenate([[0, 0], values, np.zeros(size)]), np.full(2 + 2 * size, 9.0), np.full((3, 2), .01),
                      PROGRAM, .05, 4.5)


def answers(rng):
    value = np.array([PROGRAM.slope * (M * norm.cdf(M / sd) + sd * norm.pdf(M / sd)) for sd in (.2, .4)])
    return Answers(value, rng.normal(-.5, .2, value.shape), rng.uniform(0, 1, (2, 3)))


def settled(turn):
    """Where w = turn(w), a contraction, ends."""
    w = 0.0
    for _ in range(120):
        w = turn(w)
    return w


def test_atoms_alike_in_information_are_one_group():
    program = make_program(np.ones(6), np.array([.1, .1, .4, .4, .4, 1]), np.full(6, .1), .9, 1.0)
    q, group = certified.informations(program)
    assert q.tolist() == [.1, .4, 1] and group.tolist() == [0, 0, 1, 1, 1, 2]


def test_where_forwarding_paid_is_counted_from_the_node_that_was_tried_first():
    grid = lower_grid(np.zeros(17))
    assert certified.lowest_found(grid, 1, -7, 3) == pytest.approx(-4 * D * math.sqrt(1.5))
    assert certified.lowest_found(grid, 1, -7, -1) == pytest.approx(-7 * D * math.sqrt(1.5))
    assert certified.lowest_found(grid, 1, -3, 9) == -.05


def test_a_precision_is_discounted_by_the_items_that_lead_there():
    each = sum(p * q for p, q in zip(PROGRAM.probs, PROGRAM.info)) / sum(PROGRAM.probs)
    assert grids.discounted(PROGRAM, 1.5 + 3 * each, 1.5) == pytest.approx(-math.log(GAMMA**3))
    assert grids.discounted(PROGRAM, 1.2, 1.5) == 0


def test_spacings_that_widen_with_the_discount_cost_what_was_asked_for():
    """What has moved bends w by 1 over its sd, a lattice costs d^2/8 of that, each arrival counts by its discount."""
    levels, eta = np.array([1.0, 1.3, 2.0, 4.0, 9.0]), .05
    share, a = grids.spread(PROGRAM, levels, eta)
    mass = sum(PROGRAM.probs)
    each = sum(p * q for p, q in zip(PROGRAM.probs, PROGRAM.info)) / mass
    assert a == pytest.approx(sum(GAMMA**n * mass * (1 - mass)**(n - 1) for n in range(1, 80)))
    cost = worth = 0.0
    for before, b in zip(levels, levels[1:]):
        items, moved = (b - 1) / each, math.sqrt(1 - 1 / b)
        d = share * a**(-items / 4) / math.sqrt(b)
        cost += (b - before) / each * a**items * d * d / 8 / moved
        worth += (b - before) / each * a**items * moved
    assert share < 1 and cost == pytest.approx(eta**2 * (1 - a) * worth)


def test_a_level_begins_at_the_last_node_that_is_worth_nothing():
    guess = dp.solve([.6, 1.0], [.5, .5], GAMMA, 1.0, 1.0, tol=.2, certify=False).guess
    below = guess.levels.size - 1                           # the levels below the last one
    assert below > 3 and (guess.first[0, :below] < -1).any()
    for j in np.flatnonzero(guess.first[0, :below] < -1):
        assert guess.D[guess.ptr[j]] == 0 < guess.D[guess.ptr[j] + 1]


def test_a_bound_is_made_for_the_precisions_between_its_neighbours():
    grid = lower_grid(np.zeros(17))._replace(levels=np.array([1.0, 1.3, 1.5, 1.6]))
    assert [lower.asked(grid, j, .2) for j in (0, 1, 2)] == [(1, 1), (1.2, 1.5), (1.3, 1.6)]
    assert lower.asked(grid._replace(tangent=np.zeros(0)), 2, .2) == (1.5, 1.5)


@pytest.mark.parametrize("ignore", (False, True))
def test_a_level_is_solved_as_value_iteration_solves_it_and_is_zero_below_the_lowest_node_that_pays(ignore):
    grid, after = lower_grid(np.full(17, 7.0)), answers(np.random.default_rng(1)).value
    found, seen = certified.solve_nodes(grid, 0, LO, GROUP, (looked := after.copy()), ignore), np.zeros(17)
    for i, m in enumerate(M):
        def turn(w):
            return GAMMA * .2 * w + sum(p * max(GAMMA * w, x * m + GAMMA * max(after[g, i], w if ignore else -9))
                                        for x, p, g in zip(PROGRAM.x, PROGRAM.probs, GROUP))
        w = settled(turn)
        seen[LO + HALF + i] = w - PROGRAM.slope * max(m, 0)
        assert i < found or not ignore or (np.isinf(looked[:, i]) == (after[:, i] < w)).all()
    assert grid.D[2:19] == pytest.approx(np.maximum(seen, 0), abs=1e-12)
    assert found == np.flatnonzero(seen > 0)[0] - LO - HALF > 1 and (seen[LO + HALF:] > 0).sum() > 5


def plain_tangents(after, short, values, x, charge, forced, group, line):
    """(slopes, bend, mass) of fixed policies at the nodes M, by iterating s = gamma (p_out s + p_in change)."""
    slopes, bend, most, p = np.zeros(M.size), np.zeros(3), 0.0, PROGRAM.probs
    for i, m in enumerate(M):
        if values[i] == 0:
            continue
        w = values[i] + PROGRAM.slope * max(m, 0) + line[0] + line[1] * m
        goes = [g >= 0 and (f or x[a] * m - charge[a] + GAMMA * (after.value[g, i] + line[0] + line[1] * m) > GAMMA * w)
                for a, (g, f) in enumerate(zip(group, forced))]

        def follows(own, of):
            return GAMMA * .2 * own + sum(p[a] * GAMMA * (of[g] if goes[a] else own) for a, g in enumerate(group))
        slopes[i] = settled(lambda s: follows(s, after.change[:, i]))
        bend = np.maximum(bend, [settled(lambda s: follows(s, after.bend[:, c])) for c in range(3)])
        most = max(most, sum(p[a] for a in range(3) if goes[a] and short[group[a]]))
    return slopes, bend, most


def test_slopes_and_bend_are_those_of_the_policy_that_was_found():
    rng, short = np.random.default_rng(2), np.array([True, False])
    values = np.concatenate([np.zeros(4), rng.uniform(.05, .4, 13)])
    after, grid = answers(rng), lower_grid(values)
    most = lower.fill_tangents(grid, 0, LO, GROUP, after, short)
    slopes, bend, mass = plain_tangents(after, short, values[2:], PROGRAM.x, np.zeros(3), [False] * 3, GROUP, (0, 0))
    assert grid.tangent[4:19] == pytest.approx(slopes, abs=1e-12) and (grid.tangent[2:4] == 0).all()
    assert grid.bend[:, 0] == pytest.approx(bend) and most == pytest.approx(mass) and 0 < mass
    assert len(set(np.round(slopes, 9))) > 8                    # some nodes forward all, some not


def side(forced=(False, True, False), x=(.8, -1.2, .5), charge=(.3, .2, -.4)):
    made = general.make_side(np.array(x), np.array(charge), PROGRAM.probs, GAMMA, np.array(forced))
    return made.atoms._replace(group=np.array([0, 1, -1]))


def test_commitment_above_its_lines_is_what_the_items_pay():
    atoms = side(forced=(False,) * 3)
    for m in (-3, -.7, -.2, 0, .1, .6, 3):
        pays = sum(p * max(x * m - c, 0) for x, c, p in zip(atoms.x, atoms.charge, PROGRAM.probs)) / (1 - GAMMA)
        assert kernels.committed(atoms, m) == pytest.approx(
            pays - atoms.line[0] - atoms.line[1] * m - atoms.bend.sum() * max(m, 0), abs=1e-12)


@pytest.mark.parametrize("forced", (False, True))
def test_slopes_and_bend_of_items_of_any_sign(forced):
    rng, short, atoms = np.random.default_rng(3), np.array([False, True]), side((False, forced, False))
    after, full = answers(rng), np.zeros((3, 17))
    after = Answers(np.hstack([np.zeros((2, 2)), after.value]), np.hstack([np.zeros((2, 2)), after.change]), after.bend)
    after.value[0, 7] = -np.inf                                 # an answer that is not known
    above = np.array([kernels.committed(atoms, m) for m in np.arange(-HALF, HALF + 1) * D])
    values = above + np.concatenate([np.zeros(4), rng.uniform(.05, .4, 13)])
    grid = lower_grid(values)
    most = general_lower.fill_tangents(grid, atoms, 0, after, short)
    seen = Answers(after.value[:, 2:], after.change[:, 2:], after.bend)
    full = np.where(values[2:] > above[2:], values[2:], 0)
    slopes, bend, mass = plain_tangents(seen, short, full, atoms.x, atoms.charge, atoms.forced, atoms.group, atoms.line)
    assert grid.tangent[4:19] == pytest.approx(slopes, abs=1e-12) and (grid.tangent[2:4] == 0).all()
    assert grid.bend[:, 0] == pytest.approx(bend) and most == pytest.approx(mass) and 0 < mass


@pytest.mark.parametrize("ignore", (False, True))
@pytest.mark.parametrize("forced", (False, True))
def test_a_state_is_solved_as_value_iteration_solves_it(forced, ignore):
    """Items of any sign, one always forwarded, one that teaches nothing; an ignored answer is worth what staying is."""
    atoms, rng, work = side((False, forced, False)), np.random.default_rng(4), np.empty((3, 3))
    ignored = 0
    for m in (-2, -.7, .3, 1.5):
        line = atoms.line[0] + atoms.line[1] * m
        after = rng.uniform(-.3, 1.2, 2)

        def turn(w):
            total = GAMMA * .2 * w
            for a in range(3):
                g, pays = atoms.group[a], atoms.x[a] * m - atoms.charge[a]
                goes = pays + GAMMA * (w if g < 0 else max(after[g] + line, w) if ignore else after[g] + line)
                total += PROGRAM.probs[a] * (goes if atoms.forced[a] else max(GAMMA * w, goes))
            return total
        w, looked = settled(turn), after.copy()
        found = kernels.solve_state(PROGRAM, atoms, m, looked, ignore, 0.0, work)
        assert found == pytest.approx(w, rel=1e-12, abs=1e-12)
        assert (np.isinf(looked) == (ignore & (after + line < w))).all()
        ignored += np.isinf(looked).sum()
    assert (ignored > 0) == ignore


def test_a_level_above_that_is_shorter_cuts_the_level_below():
    """Each level has its nodes; between two of them a bound is had where both have some."""
    program = make_program(np.array([.1]), np.ones(1), np.ones(1), .9, 1.0)
    first, levels, sizes = np.array([[-12, -9], [25, 19]]), np.array([1.0, 1.2]), (25, 19)
    m = [np.arange(-(n // 2), n // 2 + 1) * .2 for n in sizes]
    known = [norm.pdf(x * b**.5) / b**.5 - x * norm.sf(x * b**.5) + np.maximum(x, 0) for x, b in zip(m, levels)]
    values = [.4 * (k - np.abs(x)) + 1e-9 for k, x in zip(known, m)]
    falls = [norm.pdf(x * b**.5) / (2 * b**1.5) for x, b in zip(m, levels)]
    parts = map(np.concatenate, (values, known, falls))
    grid = UpperGrid(levels, np.full(2, .2), first, np.array([0, 25]), *parts, program, .05, 4.5)
    found = upper.ahead(grid, 1.1, 0.0)
    assert (found.first, found.D.size) == (-9, 19)
    assert (found.D <= values[0][3:-3] + 1e-12).all() and (found.D >= values[1] - 1e-12).all()
    middle = ((values[0][3:-3] + known[0][3:-3]) * (values[1] + known[1]) / math.sqrt(1.2)) ** .5 * math.sqrt(1.1)
    exact = norm.pdf(m[1] * 1.1**.5) / 1.1**.5 - m[1] * norm.sf(m[1] * 1.1**.5) + np.maximum(m[1], 0)
    assert found.D == pytest.approx(np.minimum(middle - exact, values[0][3:-3]), abs=1e-3)


@pytest.mark.parametrize("reach", (2.0, 3.0))
@pytest.mark.parametrize("some", (False, True))
def test_a_point_pays_for_the_tails_that_it_cuts(some, reach):
    """The mean of the largest D that there can be on the nodes is not above what comes out, nor far below."""
    b, d, t, program = 1.0, .1, .4, make_program(np.array([.1]), np.ones(1), np.ones(1), .9, 1.0)
    atoms, edge = side((False,) * 3)._replace(far=.6, moment=.5), 20 * d
    most = [kernels.outside(program, atoms, e, b) if some else certified.outside(program, e, b) for e in (0.0, edge)]
    values, move = Nodes(-20, d, np.full(41, most[0])), Step(t, reach)
    grid = UpperGrid(*[np.zeros(1)] * 7, program, .05, reach)
    for m in (0.0, .33, 1.2):
        rest = program.slope * (m * norm.cdf(m / t) + t * norm.pdf(m / t))
        inside = norm.cdf((edge - m) / t) - norm.cdf((-edge - m) / t)
        found = (general_upper.mean_value(grid, atoms, values, m, move, b, edge) if some else
                 upper.mean_value(grid, values, edge, m, move, b))
        assert rest + most[0] * inside <= found + 1e-12
        assert found <= rest + most[0] * (1 + 2 * norm.sf(reach)) + most[1] + 1e-12


def test_with_one_cost_the_general_sweeps_are_the_special_ones_node_by_node():
    asked = dict(gamma=GAMMA, noise_sd=1, var_max=1, tol=.3, between=True)
    special = dp.solve([0, .5, .8, 1], [.1, .3, .2, .4], **asked)
    some = dp.solve_general([.5, .8, 1], [0, 0, 0], [.3, .2, .4], **asked)
    one, other = special.lower, some.lower.grid
    assert np.array_equal(one.levels, other.levels) and np.array_equal(one.first, other.first) and one.levels.size > 5
    for name in ("spacing", "D", "tangent", "bend"):
        assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-9, abs=1e-11), name
    one, other, K = special.upper, some.upper.grid, special.upper.program.slope
    assert np.array_equal(one.first, other.first) and other.D == pytest.approx(one.D, abs=2e-3 * K)
    for j, b in enumerate(one.levels):
        nodes = slice(one.ptr[j], one.ptr[j] + one.first[1, j])
        z = (one.first[0, j] + np.arange(one.first[1, j])) * one.spacing[j] * math.sqrt(b)
        known = K / math.sqrt(b) * (norm.pdf(z) - z * norm.sf(z) + np.maximum(z, 0))
        assert other.known[0, nodes] == pytest.approx(known, rel=1e-9)
        assert other.known[1, nodes] == pytest.approx(K * norm.pdf(z) / (2 * b**1.5), rel=1e-9, abs=1e-15)
    last = slice(one.ptr[-1], None)
    assert other.D[last] == pytest.approx(one.D[last], rel=1e-6, abs=1e-12) and one.D[last].max() > 1e-4


def test_the_series_of_a_hat_has_its_six_terms():
    """sum 2 h^(2n - 1) phi^(2n - 2)(z) / (2n)!, the derivatives of the normal density by Hermite's polynomials."""
    h = .2499
    for z in (0.0, .5, 1.0, 2.5):
        He = [np.polynomial.hermite_e.hermeval(z, [0] * (2 * n - 2) + [1]) for n in range(1, 7)]
        terms = [2 * h ** (2 * n - 1) / math.factorial(2 * n) * He[n - 1] for n in range(1, 7)]
        series = math.fsum(terms) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        assert quadrature.hat(z, h) == pytest.approx(series, rel=1.5e-15, abs=0)
