"""The exact optimum of a problem with two features and few item types, between two certified bounds.

After n_x forwards of each item type x the posterior covariance depends on the counts alone, so a belief
state is (counts, posterior mean), and forwarding x moves the mean along one line, by d_x Z with
d_x = Sigma x / sqrt(x Sigma x + noise_var(x)) and Z standard normal.  With the value before an arrival,

    V(n, m) = gamma E_x max{ V(n, m), x.m - cost + E V(n + e_x, m + d_x Z) },

which is convex in m (chapter "Bounds beyond the paper").  One backward sweep over the counts, on a grid of
means, therefore gives both ends:

* upper: chords.  Bilinear interpolation of a convex function lies above it, and a normal replaced by a
  discrete law that dominates it in convex order raises the expectation.  Start: perfect information, held back.
* lower: tangents.  Every grid point keeps an affine minorant of V; a normal replaced by its conditional
  means lowers the expectation of a maximum of such planes.  Start: commitment without further learning.

A layer holds every state after the same number of forwards.  Where the start values differ by less than `tolerance`
the sweep stops.  Both errors are of second order in the step, with coefficients 2 : -1, so (upper + 2 lower) / 3 is the
best guess.
"""
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from lib.compiled import checked_jit
from lib.dp.bellman import first_value
from lib.normal import excess, expected_positive, psi
from lib.problem import Bracket, as_floats, checked, noise_var
from lib.threads import side_by_side


class Setting(NamedTuple):
    """What every layer of the sweep shares."""

    items: np.ndarray   # (n, 2)
    probs: np.ndarray   # (n,)
    cost: float
    gamma: float
    low: np.ndarray     # (2,) the smallest grid means
    sizes: np.ndarray   # (2,) grid points a feature
    step: float         # distance of neighbouring grid points
    per: float          # 1 / step
    tolerance: float    # the sweep stops where perfect information and commitment are this close
    nodes: np.ndarray   # (4, rules, longest) chord nodes, chord weights, tangent nodes, tangent weights
    lengths: np.ndarray  # (rules,) nodes of each rule


class Layer(NamedTuple):
    """All count vectors with one total."""

    after: np.ndarray   # (L, n) row of counts + e_x in the next layer
    sds: np.ndarray     # (L, n) standard deviation of x.theta
    moves: np.ndarray   # (L, n, 2) d_x, the move of the mean for one standard deviation of surprise
    rules: np.ndarray   # (L, n) which quadrature follows the move
    tails: np.ndarray   # (L, n) what the chords may miss beyond their reach
    spreads: np.ndarray  # (L, n, blocks) standard deviation of what can be learned of x.theta by the end of a block
    weights: np.ndarray  # (blocks,) discount of each block of arrivals


class Solved(NamedTuple):
    """Bounds at every state of a layer."""

    upper: np.ndarray   # (L, m1, m2)
    lower: np.ndarray   # (L, m1, m2, 3) affine minorants: value at the grid point, two slopes
    sds: np.ndarray     # (L, n) as in Layer


@checked_jit
def _ends(m1, m2, sds, setting):
    """Perfect information at mean (m1, m2), then commitment there: its value and its two slopes."""
    upper, lower, slope1, slope2 = 0.0, 0.0, 0.0, 0.0
    for x in range(len(sds)):
        weight = setting.probs[x] * setting.gamma / (1 - setting.gamma)
        net = setting.items[x, 0] * m1 + setting.items[x, 1] * m2 - setting.cost
        upper += weight * excess(net, sds[x])
        if net > 0:
            lower += weight * net
            slope1 += weight * setting.items[x, 0]
            slope2 += weight * setting.items[x, 1]
    return upper, lower, slope1, slope2


@checked_jit
def _informed(m1, m2, spreads, weights, setting):
    """Perfect information held back: in block b of arrivals only `spreads[x, b]` of x.theta is known."""
    total = 0.0
    for x in range(spreads.shape[0]):
        net = setting.items[x, 0] * m1 + setting.items[x, 1] * m2 - setting.cost
        for b in range(len(weights)):
            total += setting.probs[x] * weights[b] * excess(net, spreads[x, b])
    return total


@checked_jit
def _forward(m1, m2, x, layer, s, after, setting):
    """Bounds on x.m - cost + E V(s + e_x, m + d_x Z): the upper, then the lower plane's value and slopes.

    `after` is what the next layer is Solved to.  Off the grid its two ends stand in.
    """
    uppers, planes, sds = after.upper, after.lower, after.sds
    t, rule, step = layer.after[s, x], layer.rules[s, x], setting.step
    move1, move2, slope1, slope2 = layer.moves[s, x, 0], layer.moves[s, x, 1], setting.items[x, 0], setting.items[x, 1]
    low = slope1 * m1 + slope2 * m2 - setting.cost
    high = low + layer.tails[s, x]
    for q in range(setting.lengths[rule]):
        z, weight = setting.nodes[0, rule, q], setting.nodes[1, rule, q]
        f1, f2 = (m1 + z * move1 - setting.low[0]) * setting.per, (m2 + z * move2 - setting.low[1]) * setting.per
        if f1 < 0 or f2 < 0 or f1 >= setting.sizes[0] - 1 or f2 >= setting.sizes[1] - 1:
            high += weight * _ends(m1 + z * move1, m2 + z * move2, sds[t], setting)[0]
        else:
            i, j = int(f1), int(f2)
            a, b = f1 - i, f2 - j
            high += weight * ((1 - a) * ((1 - b) * uppers[t, i, j] + b * uppers[t, i, j + 1])
                              + a * ((1 - b) * uppers[t, i + 1, j] + b * uppers[t, i + 1, j + 1]))
        z, weight = setting.nodes[2, rule, q], setting.nodes[3, rule, q]
        f1, f2 = (m1 + z * move1 - setting.low[0]) * setting.per, (m2 + z * move2 - setting.low[1]) * setting.per
        if f1 < 0 or f2 < 0 or f1 >= setting.sizes[0] - 1 or f2 >= setting.sizes[1] - 1:
            _, value, part1, part2 = _ends(m1 + z * move1, m2 + z * move2, sds[t], setting)
        else:
            i, j = int(f1 + 0.5), int(f2 + 0.5)
            part1, part2 = planes[t, i, j, 1], planes[t, i, j, 2]
            value = planes[t, i, j, 0] + step * (part1 * (f1 - i) + part2 * (f2 - j))
        low += weight * value
        slope1 += weight * part1
        slope2 += weight * part2
    return high, low, slope1, slope2


@checked_jit
def _point(m1, m2, layer, s, after, setting, plane):
    """Bounds on V at one belief state: the upper is returned, `plane` receives the lower."""
    ceiling, plane[0], plane[1], plane[2] = _ends(m1, m2, layer.sds[s], setting)
    if ceiling - plane[0] < setting.tolerance:
        return ceiling
    n = len(setting.probs)
    values = np.empty((4, n))
    for x in range(n):
        values[0, x], values[1, x], values[2, x], values[3, x] = _forward(m1, m2, x, layer, s, after, setting)
    w = first_value(values[1], setting.probs, setting.gamma)
    if w > plane[0]:
        mass = 0.0
        plane[:] = 0.0
        for x in range(n):
            if values[1, x] > w:
                mass += setting.probs[x]
                for i in range(3):
                    plane[i] += setting.probs[x] * values[1 + i, x]
        plane *= setting.gamma / (1 - setting.gamma + setting.gamma * mass)
    return min(ceiling, first_value(values[0], setting.probs, setting.gamma))


def sweep_layer(layer, after, setting, last):
    """One layer, its states in threads: (L, m1, m2) uppers and (L, m1, m2, 3) planes; `last` only starts."""
    (m1, m2), states = setting.sizes, len(layer.sds)
    uppers, planes = np.empty((states, m1, m2)), np.empty((states, m1, m2, 3))
    side_by_side(lambda s: sweep_state(s, layer, after, setting, last, (uppers, planes)), range(states))
    return uppers, planes


@checked_jit
def sweep_state(s, layer, after, setting, last, out):
    """State s of a layer: fills its part of the two arrays of `sweep_layer`."""
    uppers, planes = out
    for i in range(setting.sizes[0]):
        for j in range(setting.sizes[1]):
            mean1, mean2 = setting.low[0] + i * setting.step, setting.low[1] + j * setting.step
            if last:
                uppers[s, i, j] = _informed(mean1, mean2, layer.spreads[s], layer.weights, setting)
                plane = planes[s, i, j]
                _, plane[0], plane[1], plane[2] = _ends(mean1, mean2, layer.sds[s], setting)
            else:
                uppers[s, i, j] = _point(mean1, mean2, layer, s, after, setting, planes[s, i, j])


REACH = 4.5          # standard deviations that the chords cover; beyond it, slope times tail
NODES = 7, 9, 11, 13, 17, 21, 27, 35, 45, 61, 81, 121, 181
BLOCKS = 1, 2, 3, 5, 8, 12, 17, 24, 34, 50       # last arrival of each block before perfect information


class Table(NamedTuple):
    """The optimum before any forward, with the leading gamma, at every prior mean of a grid."""

    grid1: np.ndarray   # (m1,) prior means of feature 1
    grid2: np.ndarray   # (m2,) prior means of feature 2
    upper: np.ndarray   # (m1, m2) upper bounds
    lower: np.ndarray   # (m1, m2, 3) affine minorants: value at the grid point, two slopes
    cost: float         # the cost solved for
    shift: np.ndarray   # (2,) one more unit of cost is this much less prior mean; nan if there is none


def _quadratures():
    """For each rule: chord nodes and weights on [-REACH, REACH], conditional means and masses of as many cells."""
    table = np.zeros((4, len(NODES), max(NODES)))
    for rule, n in enumerate(NODES):
        z = np.linspace(-REACH, REACH, n)
        rise = np.concatenate([[1.0], -np.diff(expected_positive(-z)) / (z[1] - z[0]), [0.0]])  # of a ramp between neighbours
        edges = np.concatenate([[-np.inf], (z[1:] + z[:-1]) / 2, [np.inf]])
        density, mass = np.exp(-edges**2 / 2) / np.sqrt(2 * np.pi), np.diff(ndtr(edges))
        table[:, rule, :n] = z, -np.diff(rise), -np.diff(density) / mass, mass
    return table, np.array(NODES)


def _lattice(total, n):
    """All count vectors of n parts and sum `total`, and the rows of their successors in the next layer."""
    def walls(whole):
        return list(combinations(range(whole + n - 1), n - 1))
    row = {bars: i for i, bars in enumerate(walls(total + 1))}
    bars = walls(total)
    after = [[row[b[:x] + tuple(i + 1 for i in b[x:])] for x in range(n)] for b in bars]
    padded = np.array([(-1,) + b + (total + n - 1,) for b in bars])
    return np.diff(padded, axis=1) - 1, np.array(after)


class Posterior(NamedTuple):
    """Posterior covariance Sigma' after each of L count vectors."""

    along: np.ndarray   # (L, n, 2) Sigma' x
    var: np.ndarray     # (L, n) x Sigma' x
    det: np.ndarray     # (L,)
    trace: np.ndarray   # (L,)


def _posteriors(counts, problem):
    """The Posterior after each of the count vectors (L, n).

    With G = sum_y n_y / noise_y y y' and adj the adjugate, Sigma' = (Sigma + det Sigma adj G) / det(I + G Sigma), and
    x adj(y y') x = (x1 y2 - x2 y1)^2.  Apart from Sigma and its determinant every term is a sum of positive ones: there
    is no cancellation, however small the noise.
    """
    items, Sigma, noise = problem.items, problem.Sigma, noise_var(problem)
    info = np.divide(counts, noise, out=np.zeros(counts.shape), where=noise > 0)     # the zero item teaches nothing
    det = max(float(Fraction(Sigma[0, 0]) * Fraction(Sigma[1, 1]) - Fraction(Sigma[0, 1])**2), 0.0)
    cross = np.outer(items[:, 0], items[:, 1]) - np.outer(items[:, 1], items[:, 0])     # x1 y2 - x2 y1
    prior, normals = items @ Sigma, np.column_stack([items[:, 1], -items[:, 0]])
    variance = np.maximum((prior * items).sum(axis=1), 0)
    total = 1 + info @ variance + det * np.einsum("sx,xy,sy->s", info, cross**2, info) / 2
    along = prior + det * np.einsum("sy,xy,yi->sxi", info, cross, normals)
    trace = np.trace(Sigma) + det * info @ (items**2).sum(axis=1)
    return Posterior(along / total[:, None, None], (variance + det * info @ cross**2) / total[:, None], det / total,
                     trace / total)


def _held_back(posterior, problem):
    """Spreads (L, n, blocks) and weights of a relaxation that reveals at least what every arrival would show.

    An arrival shows at most the information K I, K = max |x|^2 / noise_var(x); what is known of x.theta at
    the end of a block is granted for the whole block, and after the last block everything is.  What information t I
    explains of Sigma' is Sigma' - (Sigma'^-1 + t I)^-1 = (Sigma'^2 + t det Sigma' Sigma') / (1 / t + tr Sigma' + t det Sigma').
    """
    items, noise, gamma = problem.items, noise_var(problem), problem.gamma
    ends, var, det = np.array(BLOCKS), posterior.var, posterior.det[:, None]
    most = max((items[noise > 0]**2).sum(axis=1) / noise[noise > 0], default=0.0)
    spreads = np.zeros((*var.shape, len(ends) + 1))
    spreads[..., -1] = np.sqrt(var)
    for b, t in enumerate(most * (ends - 1)):
        if t > 0:
            explained = (posterior.along**2).sum(axis=2) + t * det * var
            spreads[..., b] = np.sqrt(np.minimum(explained / (1 / t + posterior.trace[:, None] + t * det), var))
    discount = gamma * (1 - gamma**np.concatenate([[0], ends])) / (1 - gamma)
    return spreads, np.append(np.diff(discount), gamma / (1 - gamma) - discount[-1])


def _layer(total, problem, step):
    """The layer of all states after `total` forwards."""
    items, noise = problem.items, noise_var(problem)
    counts, after = _lattice(total, len(items))
    posterior = _posteriors(counts, problem)
    moves = posterior.along / np.sqrt(np.where(posterior.var > 0, posterior.var + noise, 1))[..., None]
    gaps = 2 * REACH / (np.array(NODES) - 1)
    rules = (np.linalg.norm(moves, axis=2)[..., None] * gaps > step).sum(axis=2)
    slopes = np.abs(moves @ items.T) @ problem.probs * problem.gamma / (1 - problem.gamma)
    spreads, weights = _held_back(posterior, problem)
    return Layer(after, np.sqrt(posterior.var), moves, np.minimum(rules, len(NODES) - 1), 2 * slopes * psi(-REACH),
                 spreads, weights)


def _shift(items):
    """The vector h with items @ h = 1, along which a cost is a change of the mean; nan if there is none."""
    h = np.linalg.lstsq(items, np.ones(len(items)))[0]
    return h if np.abs(items @ h - 1).max() < 1e-9 else np.full(2, np.nan)


def solve(problem, costs=None, step=0.125, depth=20, tolerance=1e-3):
    """Certified bounds on the optimum of a two-feature problem for every prior mean of a grid.

    Parameters
    ----------
    problem : Problem
        Two features; work grows as depth^(item types).
    costs : array-like, optional
        The costs that `value` will be asked for (default: the problem's own).
    step : float
        Distance of neighbouring grid means, in reward units; the error is of second order in it.
    depth : int
        Forwards after which the bounds are perfect information and commitment.
    tolerance : float
        The sweep also stops where these two are closer than this.

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        If the problem has not two features, step, depth or tolerance is not positive, or the noise is beyond 1e-60 or 1e60.
    """
    problem = checked(problem)
    for name, number in ("step", step), ("depth", depth), ("tolerance", tolerance):
        if not number > 0:
            raise ValueError(f"{name} is {number}: it must be positive")
    if not 1e-60 < problem.noise_sd < 1e60:
        raise ValueError(f"noise_sd is {problem.noise_sd}: it must lie between 1e-60 and 1e60")
    if problem.items.shape[1] != 2:
        raise ValueError(f"problem.items has {problem.items.shape[1]} features: the sweep is for 2")
    shift = _shift(problem.items)
    costs = as_floats("costs", [problem.cost] if costs is None else costs, 1)
    means = problem.mu - (costs[:, None] - problem.cost) * np.nan_to_num(shift)
    margin = 3.5 * np.sqrt(np.diag(problem.Sigma)) + step   # off the grid the two ends are nearly equal
    low, high = means.min(axis=0) - margin, means.max(axis=0) + margin
    sizes = np.ceil((high - low) / step).astype(np.int64) + 1
    setting = Setting(problem.items, problem.probs, problem.cost, problem.gamma, low, sizes, float(step), 1 / step,
                      float(tolerance), *_quadratures())
    after = Solved(np.empty((0, 0, 0)), np.empty((0, 0, 0, 0)), _layer(depth, problem, step).sds)
    for total in range(depth, -1, -1):
        layer = _layer(total, problem, step)
        after = Solved(*sweep_layer(layer, after, setting, total == depth), layer.sds)
    grids = [low[i] + step * np.arange(sizes[i]) for i in range(2)]
    return Table(*grids, after.upper[0], after.lower[0], problem.cost, shift)


def value(table, mu, cost=None):
    """The optimum from prior mean `mu` at `cost`: certified ends and a best guess.

    Parameters
    ----------
    table : Table
        From `solve`.
    mu : array-like (2,)
        Prior mean; with the shift of the cost it must lie on the table's grid.
    cost : float, optional
        Another cost than the table's, where the items allow it (some h has items @ h = 1).

    Returns
    -------
    Bracket of floats, in reward units, with the leading gamma

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> problem = make_problem([[1, 0], [0, 1]], [.5, .5], [0, 0], [[1, 0], [0, 1]], 1, 0, .7)
    >>> bracket = value(solve(problem, step=.25, depth=8), [0, 0])
    >>> bool(bracket.lower < .7 * 2 * .2696 < bracket.upper)
    True
    """
    mu = as_floats("mu", mu, 1)
    cost = table.cost if cost is None else float(cost)
    if cost != table.cost:
        if np.isnan(table.shift).any():
            raise ValueError(f"cost is {cost}, the table's {table.cost}, and these items allow no shift: solve again")
        mu = mu - (cost - table.cost) * table.shift
    cell = []
    for axis, (grid, mean) in enumerate(zip((table.grid1, table.grid2), mu, strict=True)):
        if not grid[0] <= mean <= grid[-1]:
            raise ValueError(f"mu[{axis}] is {mean} net of the shift: the grid spans [{grid[0]}, {grid[-1]}]")
        i = min(int(np.searchsorted(grid, mean, side="right")) - 1, len(grid) - 2)
        cell.append((i, (mean - grid[i]) / (grid[1] - grid[0])))
    (i, a), (j, b) = cell
    corners = slice(i, i + 2), slice(j, j + 2)
    upper = np.array([1 - a, a]) @ table.upper[corners] @ np.array([1 - b, b])
    gaps = np.stack(np.meshgrid(mu[0] - table.grid1[corners[0]], mu[1] - table.grid2[corners[1]], indexing="ij"), -1)
    planes = table.lower[corners]
    lower = (planes[..., 0] + (planes[..., 1:] * gaps).sum(axis=-1)).max()
    return Bracket(float(lower), float((upper + 2 * lower) / 3), float(upper))
