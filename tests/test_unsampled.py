"""Bounds without sampling: the majorant by brute force, full observation by enumeration, the optimum and policies below, planted errors."""
from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from lib import bound, dp, policies, simulate
from lib.bound import envelope, optimum, unsampled
from lib.experiments import SPECS, build, published, unsampled as kept
from lib.problem import make_problem, noise_var

TABLE = unsampled.table()


def F(a, v):
    """E (sqrt(v) Z - a)^+, plainly."""
    s = np.sqrt(np.maximum(v, 1e-300))
    return s * norm.pdf(a / s) - a * norm.sf(a / s)


def brute(a, v, low, high, points=801):
    """The least concave majorant of F on [low, high] at v, by the best chord over v between points of a grid."""
    grid = np.linspace(low, high, points)
    left, right = grid[grid <= v], grid[grid >= v]
    span = np.maximum(right[None] - left[:, None], 1e-300)
    chords = np.where(right[None] > left[:, None], (F(a, left)[:, None] * (right[None] - v) + F(a, right)[None] * (v - left[:, None])) / span,
                      F(a, v))
    return chords.max()


@pytest.mark.parametrize("a", [0.0, .02, .3, 1.0, 2.5])
@pytest.mark.parametrize("low, high", [(0.0, .4), (0.0, 9.0), (.05, .9), (.5, 1.2), (1.0, 1.01)])
def test_the_majorant_is_the_best_chord(a, low, high):
    for share in (0.0, .1, .45, .8, 1.0):
        v = low + share * (high - low)
        value, slope = envelope.majorant(a, v, low, high, TABLE)
        best = brute(a, v, low, high)
        assert best - 1e-13 <= value <= best + 2e-4 * (best + 1e-3), (v, value, best)
        for other in np.linspace(low, high, 30):                     # a tangent of a concave function lies above it
            if np.isfinite(slope) and v > 0:
                assert envelope.majorant(a, other, low, high, TABLE)[0] <= value + slope * (other - v) + 1e-12


def test_the_majorant_touches_where_the_tangent_from_nothing_does():
    assert 1 / np.sqrt(TABLE[0, 0]) == pytest.approx(.612003, abs=1e-6)
    assert (np.diff(TABLE[0]) <= 0).all() and TABLE[0, -1] >= 1
    v = .1 * TABLE[0, 0]
    assert envelope.majorant(1.0, v, 0.0, 99.0, TABLE)[0] > 1.5 * envelope.rise(1.0, v)[0]


def test_the_majorant_is_nowhere_below_the_function_at_the_ends_of_cells():
    """There the touching point is read as it stands, a hair above the true one: below it a tangent would cut the function."""
    for i in range(1, envelope.CELLS, 7):
        low = i / envelope.CELLS
        assert envelope.majorant(1.0, low, low, 9.0, TABLE)[0] >= F(1.0, low)
        assert TABLE[0, i] > envelope.touching(low)


def signed(seed, k=2, n=3, noise="features", cost=None, gamma=.8):
    """A random problem with items of any sign and norm, sometimes with a prior that is nearly singular."""
    rng = np.random.default_rng(seed)
    items, A = rng.normal(size=(n, k)), rng.normal(size=(k, k))
    items[0, 0] = 0.0
    A[:, -1] *= 1e-6 if seed % 3 == 0 else 1
    noise = rng.uniform(.3, 3, n) if noise == "each" else noise
    return make_problem(items, rng.dirichlet(np.ones(n)), rng.normal(size=k) / 2, A @ A.T, rng.uniform(.4, 1.5),
                        rng.uniform(0, 1) if cost is None else cost, gamma, noise)


def explained(problem, counts):
    """(n,) variance of x.theta that feedback on counts[y] of each item explains."""
    rows, noise = problem.items, noise_var(problem)
    seen = np.repeat(np.arange(len(rows)), counts)
    if not len(seen):
        return np.zeros(len(rows))
    Y = rows[seen]
    cross = rows @ problem.Sigma @ Y.T
    return np.einsum("xi,xi->x", cross, np.linalg.solve(Y @ problem.Sigma @ Y.T + np.diag(noise[seen]), cross.T).T)


def observed(problem, arrivals, seen=()):
    """gamma, gamma^2, ... terms of full observation, exactly, by enumeration of all sequences; `seen` is known from the start."""
    n, net = len(problem.items), problem.items @ problem.mu - problem.cost
    terms = np.zeros(arrivals)
    for before in range(arrivals):
        for path in product(range(n), repeat=before):
            v = explained(problem, np.bincount([*path, *seen], minlength=n))
            terms[before] += problem.probs[list(path)].prod() * problem.probs @ (np.maximum(net, 0) + F(np.abs(net), v))
    return terms * problem.gamma**np.arange(1, arrivals + 1)


@pytest.mark.parametrize("noise", ["features", "constant", "each"])
@pytest.mark.parametrize("seed", range(3))
def test_full_observation_stays_below(seed, noise):
    """Here the exact terms of few arrivals, and hindsight is not needed: all later ones are at least those."""
    problem = signed(seed, noise=noise)
    terms = observed(problem, 6)
    exact = terms.sum() + terms[-1] * problem.gamma / (1 - problem.gamma)     # from below: a later arrival is worth more
    found = bound.certified(problem, 0).upper
    assert exact <= found <= 1.35 * bound.hindsight(problem)
    sampled = bound.full_observation(problem, 4000, seed)
    assert sampled.mean - 3 * sampled.se <= found <= 1.2 * sampled.mean + .02


@pytest.mark.parametrize("seed", range(4))
def test_what_a_first_forward_is_worth_stays_below(seed):
    problem = signed(seed)
    frame = unsampled.frame_of(problem, 9)
    state = unsampled.state_of(frame, unsampled.prior_root(problem.Sigma))
    found = unsampled.first(frame, state, problem.mu[None])
    nets = problem.items @ problem.mu - problem.cost
    many = forwards_by_tangents(frame, state, problem.mu)
    for x in range(3):
        terms = observed(problem, 5, (x,))
        exact = nets[x] + terms.sum() + terms[-1] * problem.gamma / (1 - problem.gamma)
        assert exact <= found.forwards[0, x] <= many[x] + 1e-9
    sampled = bound.full_first(problem, 4000, seed)
    assert sampled.mean - 4 * sampled.se <= found.one[0] <= found.none[0]


def forwards_by_tangents(frame, state, mean):
    """Bounds on first forwards as above MANY items."""
    empty = state._replace(taught=np.empty((0, 0, 0)))
    return unsampled.first(frame, empty, mean[None]).forwards[0]


def test_what_is_explained_is_what_plain_matrices_say():
    problem = signed(1, k=3, n=5)
    frame = unsampled.frame_of(problem, 5)
    state = unsampled.state_of(frame, unsampled.prior_root(problem.Sigma))
    prec, g = np.linalg.inv(problem.Sigma), problem.items[:, :, None] * problem.items[:, None] / noise_var(problem)[:, None, None]
    mean = np.einsum("x,xij->ij", problem.probs, g)
    own = np.einsum("xi,ij,xj->x", problem.items, problem.Sigma, problem.items)
    for b in (0, 1, 5, len(frame.arrivals) - 1):
        left = [np.einsum("xi,ij,xj->x", problem.items, np.linalg.inv(prec + frame.arrivals[b] * mean + extra), problem.items)
                for extra in [0 * mean, *g]]
        assert state.known[b] == pytest.approx(own - left[0])
        for x in range(5):
            assert state.taught[b, x] == pytest.approx(left[0] - left[1 + x])
        assert state.likely[b] == pytest.approx(problem.probs @ state.taught[b])
    later, move = unsampled.after(frame, state, 2)
    cov = np.linalg.inv(prec + g[2])
    assert later.root @ later.root.T == pytest.approx(cov) and np.outer(move, move) == pytest.approx(problem.Sigma - cov)


@pytest.mark.parametrize("gamma", [.3, .9, .999])
def test_blocks_hold_every_arrival_once(gamma):
    arrivals, weights = unsampled.blocks(gamma)
    assert weights.sum() == pytest.approx(gamma / (1 - gamma))
    assert weights @ arrivals == pytest.approx(gamma**2 / (1 - gamma)**2)         # sum of n gamma^(n + 1)
    assert (arrivals[:3] == [0, 1, 2]).all() or gamma == .3


@pytest.mark.parametrize("size", [3, 9, 17])
def test_chords_lie_above_convex_functions(size):
    z, masses = unsampled.lattice(size)
    beyond = norm.pdf(z[-1]) - z[-1] * norm.sf(z[-1])
    assert masses.sum() == pytest.approx(1) and z == pytest.approx(-z[::-1])
    for kink in np.linspace(-3, 3, 25):
        assert np.maximum(z - kink, 0) @ masses + beyond >= norm.pdf(kink) - kink * norm.sf(kink) - 1e-12
    finer = unsampled.lattice(2 * size - 1)
    assert set(z.round(9)) <= set(finer[0].round(9)) and finer[1] @ finer[0]**2 < masses @ z**2 + 1e-12


SMALL = make_problem([[1, 0], [0, 1], [.5, .5]], [.4, .4, .2], [0, 0], [[1, .3], [.3, 1]], 1, .2, .9)


@pytest.fixture(scope="module")
def exact():
    return optimum.solve(SMALL, (.2, .8), step=.2, depth=12)


@pytest.mark.parametrize("cost", [.2, .8])
def test_the_optimum_stays_below_and_every_forward_helps(exact, cost):
    problem = SMALL._replace(cost=cost)
    found = [bound.certified(problem, depth, 9).upper for depth in range(4)]
    assert optimum.value(exact, problem.mu, cost).lower <= found[3] < found[0] and all(np.diff(found) <= 0)
    finer = bound.certified(problem, 2, 17).upper
    assert finer <= found[2] + 1e-12 and bound.certified(problem, 2, 33).upper <= finer + 1e-12


def test_what_costs_too_much_is_proved_to_be_worth_nothing():
    films = build(SPECS["ratings"])[0]
    two = bound.certified(films._replace(cost=4.1), 2, 9)
    assert two.upper == 0.0 and not len(two.active) and bound.certified(films._replace(cost=4.1), 1).upper > 0
    one = bound.certified(films._replace(cost=4.2), 1)
    assert one.upper == 0.0 and bound.certified(films._replace(cost=4.2), 0).upper > 0


def test_a_scale_changes_nothing():
    problem, big = signed(1), 2.0**30
    scaled = problem._replace(items=problem.items * big, noise_sd=problem.noise_sd * big, cost=problem.cost * big)
    for depth in range(3):
        found = bound.certified(problem, depth, 5).upper
        assert bound.certified(scaled, depth, 5).upper / big == pytest.approx(found, rel=1e-9)


def test_items_that_teach_nothing_and_preferences_that_are_known():
    known = make_problem([[1.0, 0], [0, 0]], [.5, .5], [.5, 0], np.zeros((2, 2)), 1, .2, .9)
    for depth in range(3):
        assert bound.certified(known, depth, 3).upper == pytest.approx(9 * .5 * .3, rel=1e-9)


def test_many_items_take_tangents_and_two_forwards(monkeypatch):
    problem = signed(4, k=3, n=6)
    dense, twice = (bound.certified(problem, depth).upper for depth in (1, 2))
    monkeypatch.setattr(unsampled, "MANY", 6)               # as many are not too many
    assert bound.certified(problem, 2, 3).upper <= dense * (1 + 1e-9)
    monkeypatch.setattr(unsampled, "MANY", 5)
    assert dense <= bound.certified(problem, 1).upper <= 1.1 * dense + .02
    assert twice <= bound.certified(problem, 2).upper <= min(1.1 * twice + .02, bound.certified(problem, 1).upper)
    with pytest.raises(ValueError, match="depth is 3: with 6 items, more than 5, it must be at most 2"):
        bound.certified(problem, 3)
    rng = np.random.default_rng(0)
    large = make_problem(rng.normal(size=(100_000, 4)), np.full(100_000, 1e-5), np.zeros(4), np.eye(4), 1, 1.0, .9)
    assert 0 < bound.certified(large, 1).upper <= bound.certified(large, 0).upper


def plain(a, v, low, high, table):
    """The mistake of taking F for its majorant."""
    return envelope.rise.py_func(a, min(max(v, 1e-300), high))


def test_planted_errors_are_found():
    """Each step of the proof, done wrongly, falls below an exact number that the step must not pass."""
    touch = np.linspace(.02, 2, 30)
    assert any(plain(1.0, v, 0.0, 9.0, TABLE)[0] < brute(1.0, v, 0.0, 9.0) - 1e-3 for v in touch)
    assert any(F(1.0, v**2) < brute(1.0, v, 0.0, 9.0) - 1e-3 for v in touch)               # a standard deviation for a variance
    z, masses = unsampled.lattice(9)
    cells = [norm.expect(lambda x: x, lb=a, ub=b, conditional=True) for a, b in zip(z, z[1:])]
    middle = np.maximum(np.array(cells), 0) @ np.diff(norm.cdf(z))                      # middles of cells for chords
    kinked = [np.maximum(z - k, 0) @ masses >= norm.pdf(k) - k * norm.sf(k) - 1e-6 for k in (-.7, .3, .9)]
    assert all(kinked) and middle <= norm.pdf(0)
    problem = signed(1)
    exact = observed(problem, 5)
    arrivals, weights = unsampled.blocks(problem.gamma)
    late = problem.gamma * weights.sum() - weights.sum()                                # a gamma too many
    assert late < 0 and weights[:3] == pytest.approx(problem.gamma**np.arange(1, 4))
    frame = unsampled.frame_of(problem, 9)
    early = frame._replace(arrivals=np.maximum(frame.arrivals - 1, 0))                  # the last arrival forgotten
    worth = [unsampled.first(f, unsampled.state_of(f, unsampled.prior_root(problem.Sigma)), problem.mu[None]).none[0]
             for f in (frame, early)]
    assert worth[1] < exact.sum() + exact[-1] * problem.gamma / (1 - problem.gamma) <= worth[0]


def test_the_closing_cost_is_where_the_bound_is_zero():
    problem = make_problem([[1.0]], [1], [0.0], [[1.0]], 1.0, 0.0, .5)
    assert kept.row("here", problem, .1, 0)["upper"] == bound.certified(problem._replace(cost=.1), 0).upper
    tried = dict(kept.closing(problem, 2, 0.0, 2.0, .05))
    assert all((upper == 0) == (cost >= min(c for c, u in tried.items() if u == 0)) for cost, upper in tried.items())
    with pytest.raises(ValueError, match="low is 1.0: there the bound is 0.0"):
        kept.closing(problem, 1, 1.0, 2.0)
    with pytest.raises(ValueError, match="high is 0.1: there the bound is 0"):
        kept.closing(problem, 1, 0.0, .1)


def test_the_kept_table_is_what_the_code_gives():
    table = published.load("unsampled")
    for name, depths in kept.FROM.items():                  # every cost of the experiment from the least of each depth on
        rows = table[(table.experiment == name) & table.cost.isin(SPECS[name].costs)]
        wanted = {(depth, cost) for depth, least in depths.items() for cost in SPECS[name].costs if cost >= least}
        assert set(zip(rows.depth, rows.cost)) == wanted
    films = build(SPECS["ratings"])[0]
    for cost, depth in ((3.8, 1), (4.0, 1), (4.0, 2), (4.5, 3)):
        row = table[(table.experiment == "ratings") & (table.cost == cost) & (table.depth == depth)].iloc[0]
        fresh = kept.row("ratings", films, cost, depth)
        assert row.upper == pytest.approx(fresh["upper"], rel=1e-6) and row.active == fresh["active"]
    for name in ("ratings", "documents", "simulated"):
        rows, results = table[table.experiment == name], published.load(name).groupby("cost")
        assert set(SPECS[name].costs) <= set(rows.cost)
        earned = results.apply(lambda part: (part["mean"] - 3 * part.se).max())
        full = results.full_observation.first() - 4 * results.full_observation_se.first()
        for depth, part in rows[rows.cost.isin(SPECS[name].costs)].groupby("depth"):
            upper = part.set_index("cost").upper
            assert (upper >= earned[upper.index]).all()
            assert depth or (upper >= full[upper.index]).all()
            if depth:
                assert (upper <= rows[rows.depth == depth - 1].set_index("cost").upper[upper.index] * (1 + 1e-9) + 1e-9).all()
    assert kept.unsampled({"ratings": (4.5,)}, {}, {}).upper.tolist()[1:] == [0, 0, 0]


def test_one_item_of_one_feature_has_the_value_of_its_program():
    problem = make_problem([[1.0]], [1], [-.2], [[1]], 1, .1, .9)
    value = .9 * dp.value(dp.solve([1.0], [1.0], .9, 1.0, 1.0, tol=1e-3), -.3, 1.0).lower
    found = [bound.certified(problem, depth, 9).upper for depth in range(4)]
    assert value <= found[-1] and all(np.diff(found) < 0)


@pytest.mark.parametrize("noise", ["features", "constant", "each"])
@pytest.mark.parametrize("seed", range(3))
def test_no_policy_earns_more(seed, noise):
    problem = signed(seed, k=3, n=6, noise=noise, gamma=.85)
    found = bound.certified(problem, 2, 9).upper
    rules = [policies.exploit(), *(policies.ucb(alpha) for alpha in (.2, .5, 1.0)), policies.knowledge_gradient(1.0)]
    earned = simulate.replicate(problem, rules, 1000, 60, seed)
    mean, se = earned.mean(axis=1), earned.std(axis=1) / np.sqrt(1000)
    assert (mean - 3.5 * se <= found).all()
    assert found <= bound.certified(problem, 1).upper <= bound.certified(problem, 0).upper * (1 + 1e-9)


@pytest.mark.slow
def test_two_forwards_of_very_many_items_close_what_one_leaves_open():
    documents = build(SPECS["documents"])[0]
    assert kept.row("documents", documents, .53, 1)["upper"] > 0 == kept.row("documents", documents, .53, 2, 9)["upper"]
