"""Gittins indices of a normal reward process with known variance, each between two proved bounds.

An arm of unknown mean theta ~ N(m, 1/b) pays y ~ N(theta, 1) at each pull.  Its Gittins index is m + c_b, and c_b the root of

    F_b(-c) = 0,   F_b(m) = m + gamma E u_{b+1}(m + t Z),   u_b(m) = max{-m, gamma E u_{b+1}(m + t Z)},   t^2 = 1/b - 1/(b+1):

u is what the option to stop adds to pulling for ever, in units of 1/(1 - gamma), an American put on a random walk.  Left of
-c_b it is -m, right of it analytic.  One backward sweep keeps it at the nodes of Gauss-Legendre rules whose first piece begins
where u bends; each expectation is taken by these rules, and what that costs is bounded level by level (chapter "Certified
Gittins indices", whose names these are).
"""
from decimal import Decimal, localcontext
from functools import lru_cache
import math
from typing import NamedTuple

import numpy as np

from lib.compiled import jit
from lib.dp.program import LEAST, MOST, precision, require_discount
from lib.normal import PHI0, psi, tail
from lib.problem import Bracket, as_numbers, as_scalar

UNIT = 2.0**-53
POINTS = 16             # nodes of a piece
SHARE = 0.1             # of tol: what levels may lose, relative to the index and sqrt(1 - gamma)
CAP = 0.02              # of (1 - gamma) t: the most that a level may lose, as slopes must stay above -1
RELAX = 0.8             # levels beyond the last that is asked for may lose more, like gamma^-RELAX
SHRINK = 0.85           # pieces are cut anew where they are this much narrower than they may be
NARROW = 9.0            # standard deviations beyond which a normal is nothing beside rounding (1e-19)
FINEST = 1e-9           # the least tolerance that is worked for
SAME = 4e-15            # precisions so near, relatively, are the same number, and every bracket is widened by it


class Level(NamedTuple):
    """What the sweep keeps of u at a level: pieces of half-length h from -c on, and their Gauss-Legendre rule on (-1, 1)."""

    c: float                # left of -c one stops
    h: float
    U: np.ndarray           # (pieces, p) at the nodes -c + h (2 k + 1 + point)
    point: np.ndarray       # (p,)
    weight: np.ndarray      # (p,)


@jit
def step(b):
    """The standard deviation t of the step from precision b to b + 1."""
    return 1 / math.sqrt(b) / math.sqrt(b + 1)


@jit
def far_bound(m, b, gamma):
    """u_b(m) is at most this: full observation, or the perpetual put whose steps do not shrink."""
    s, rate = 1 / math.sqrt(b), math.sqrt(-2 * math.log(gamma)) / step(b)
    return (1 + 1e-9) * min(s * psi(-m / s), math.exp(-rate * m - 1) / rate)


@jit
def reach(b, gamma, loss):
    """An m beyond which u_b is at most `loss`."""
    low, high = 0.0, 40 / math.sqrt(b)
    for _ in range(40):
        middle = (low + high) / 2
        if far_bound(middle, b, gamma) > loss:
            low = middle
        else:
            high = middle
    return high


@jit
def rule_errors(h, t, t_next, top, p):
    """(error, error of the derivative in m) of the p-point rules of all pieces for E u(m + t Z), u analytic as t_next says.

    On the ellipse of Bernstein with half-axes a, c around a piece |u| <= exp(c^2/(2 t_next^2)) (top + a - h), and the
    normal density grows by exp(c^2 / (2 t^2)).
    """
    grow = 1 / t**2 + 1 / t_next**2
    rho = max(1.2, math.sqrt(8 * p / grow) / h)
    a, c = h * (rho + 1 / rho) / 2, h * (rho - 1 / rho) / 2
    log = 0.5 * c * c * grow - 2 * p * math.log(rho)
    each = 4.3 * h / t / (1 - rho**-2) * (top + a - h) * math.exp(min(log, 700.0))
    count = PHI0 * (a / h + 3)
    near = count + t / (2 * h)
    return each * near, each / t * (0.86 * (count + 0.71 * t / h) + c / t * near)


@jit
def widest(t, t_next, top, p, loss):
    """The half-length of pieces whose rules lose at most `loss`."""
    low, high = 0.2 * t_next, 6 * t_next
    for _ in range(25):
        h = (low + high) / 2
        if rule_errors(h, t, t_next, top, p)[0] > loss:
            high = h
        else:
            low = h
    return low


@jit
def ahead(x, t, level):
    """(Q(-x), -dQ/dm): the expectation of a level's function after a step t from m = -x, by its rules."""
    c, h, U, point, weight = level
    a = (x - c) / t
    below, density = tail(-a), PHI0 * math.exp(-0.5 * a * a)
    value, slope = c * below + t * psi(a), below + c / t * density
    for k in range(U.shape[0]):
        if a + 2 * h / t * k > NARROW:
            break
        part, lean = 0.0, 0.0
        for j in range(point.size):
            z = (x - c + h * (2 * k + 1 + point[j])) / t
            term = weight[j] * U[k, j] * math.exp(-0.5 * z * z)
            part += term
            lean -= z * term
        value += PHI0 * h / t * part
        slope += PHI0 * h / t / t * lean
    return value, slope


@jit
def root(gamma, t, start, level):
    """(x, G, slope): where G(x) = gamma Q(-x) - x, convex and decreasing, is all but 0, by Newton's method."""
    x, slope = start, 1.0
    for _ in range(60):
        Q, lean = ahead(x, t, level)
        slope = 1 - gamma * lean
        new = max(x + (gamma * Q - x) / slope, 0.0)
        if abs(new - x) <= 4 * UNIT * x:
            break
        x = new
    x = max(x, level.c)
    return x, gamma * ahead(x, t, level)[0] - x, slope


@jit
def bracket(gamma, t, found, low, high, level):
    """(lower, upper) around the root of F, which lies between G - low and G + high at every point; found as `root` gives it.

    A Newton step is tried and kept if it proves the sign of F, else the least slope of F, 1 - gamma, is used.
    """
    x, G, slope = found
    flat = (1 - 1e-9) * (1 - gamma)
    least, most = x - (low + abs(G)) / flat, x + (high + abs(G)) / flat
    for factor in (1.01, 1.5, 4.0, 16.0):
        trial = x - factor * (low + abs(G)) / slope
        if trial > least and trial > 0 and gamma * ahead(trial, t, level)[0] - trial >= low:
            least = trial
            break
    for factor in (1.01, 1.5, 4.0, 16.0):
        trial = x + factor * (high + abs(G)) / slope
        if trial < most and gamma * ahead(trial, t, level)[0] - trial <= -high:
            most = trial
            break
    return max(least, 0.0), most


@jit
def convolved(t, R, x, pieces, level):
    """Sums of the rules, (pieces, p), at nodes of the level's own half-length that begin at -x: a product of matrices.

    For the density depends on the difference of two nodes alone.
    """
    c, h, U, point, weight = level
    p, move = point.size, x - c
    out, matrix = np.zeros((pieces, p)), np.empty((p, p))
    for away in range(math.ceil(-(R * t + move) / (2 * h) - 1), math.floor((R * t - move) / (2 * h) + 1) + 1):
        begin, end = max(0, -away), min(pieces, U.shape[0] - away)
        if end > begin:
            for j in range(p):
                for i in range(p):
                    z = (move + 2 * h * away + h * (point[j] - point[i])) / t
                    matrix[j, i] = PHI0 * h / t * weight[j] * math.exp(-0.5 * z * z)
            part = out[begin:end]
            part += np.dot(U[begin + away:end + away], matrix)
    return out


@jit
def summed(t, R, x, pieces, h_new, level):
    """The same at nodes of another half-length h_new, one by one."""
    c, h, U, point, weight = level
    p = point.size
    out = np.zeros((pieces, p))
    for k in range(pieces):
        for i in range(p):
            start = x - c - h_new * (2 * k + 1 + point[i])
            begin = max(0, math.ceil((-R * t - start) / (2 * h) - 1))
            for l in range(begin, min(U.shape[0], math.floor((R * t - start) / (2 * h)) + 1)):
                part = 0.0
                for j in range(p):
                    z = (start + h * (2 * l + 1 + point[j])) / t
                    part += weight[j] * U[l, j] * math.exp(-0.5 * z * z)
                out[k, i] += PHI0 * h / t * part
    return out


@jit
def expectations(gamma, t, R, x, pieces, h_new, level):
    """gamma Q at the nodes of pieces of half-length h_new that begin at -x, (pieces, p)."""
    out = convolved(t, R, x, pieces, level) if h_new == level.h else summed(t, R, x, pieces, h_new, level)
    for k in range(pieces):
        for i in range(level.point.size):
            a = (x - level.c - h_new * (2 * k + 1 + level.point[i])) / t
            if a < -NARROW:
                break
            out[k, i] += level.c * tail(-a) + t * psi(a)
    return gamma * out


@jit
def rounding(t, R, x, pieces, h_new, top, level):
    """At most what floating point and normals cut at R standard deviations change in a value of `expectations`, over gamma.

    An exponent is off by z dz + z^2 UNIT with dz the rounding of differences of nodes, which are small where pieces have
    equal lengths; a sum of n terms of one sign is off by n UNIT.
    """
    c, h = level.c, level.h
    far = R + 4 * h / t + 2 * abs(x - c) / t
    if h_new != h:
        far += (x + c + 2 * h_new * pieces) / t
    terms = 2 * level.point.size + 2 * R * t / h + 40 + 5 * far
    cut = 2 * (2 * h / t * PHI0 * math.exp(-0.5 * R * R) + tail(R))
    return top * (terms * UNIT + cut) + (60 + 8 * abs(x - c) / t) * UNIT * (c + t)


@jit
def cut(gamma, b, x, top, loss, level):
    """(R, half-length, pieces) of the nodes of level b, which begin at -x and may lose about `loss`."""
    t, p = step(b), level.point.size
    R = min(NARROW, math.sqrt(max(1.0, -2 * math.log(0.1 * loss * (1 - gamma) / (x + t)))))
    width = widest(step(b - 1), t, top, p, loss * (1 - gamma))
    h = level.h if SHRINK * width <= level.h <= width and level.U.size else 0.97 * width
    return R, h, max(1, math.ceil((reach(b, gamma, loss) + x) / (2 * h)))


@jit
def sweep(gamma, b0, wanted, levels, share, point, weight):
    """(3, wanted) lower, guess and upper of c at b0, b0 + 1, ..., from a list of `levels`; nan where a proof fails.

    Longer than forty lines: `low` and `high` bound how far the function kept at the level ahead lies above u and below it,
    `node_error` is the rounding of its numbers and `jump` the sum of the steps at its two ends.
    """
    found = np.full((3, wanted), np.nan)
    last = b0 + levels
    before, level = 0.0, Level(0.0, step(last), np.zeros((0, point.size)), point, weight)
    low, high, node_error, jump = 0.0, far_bound(0.0, last, gamma), 0.0, 0.0
    for n in range(levels - 1, -1, -1):
        b = b0 + n
        t, top = step(b), level.c + low + high
        rule, lean = 0.0, 0.0
        if level.U.size:
            rule, lean = rule_errors(level.h, t, step(b + 1), top, point.size)
        if gamma * (1 + jump * PHI0 / t + lean + 2 * node_error / t) > 1:
            return found                                            # slopes may lie below -1: no proof
        x, G, slope = root(gamma, t, max(2 * level.c - before, level.c), level)
        noise = gamma * rounding(t, NARROW, x, 0, level.h, top, level) + 2 * UNIT * x
        q = gamma * (rule + 1.01 * node_error) + noise
        low, high = gamma * low + q, gamma * high + q
        if n < wanted:
            found[0, n], found[2, n] = bracket(gamma, t, (x, G, slope), low, high, level)
            found[1, n] = x
        if n == 0:
            break
        relax = math.exp(-RELAX * math.log(gamma) * max(0, n - wanted + 1))
        loss = min(share * x * relax, CAP * (1 - gamma) * t)
        R, h, pieces = cut(gamma, b, x, x + low + high, loss, level)
        U = expectations(gamma, t, R, x, pieces, h, level)
        node_error = gamma * rounding(t, R, x, pieces, h, top, level)
        end = far_bound(2 * h * pieces - x, b, gamma)
        jump, high = abs(G) + noise + end + low, max(high + abs(G), end)
        before, level = level.c, Level(x, h, U, point, weight)
    return found


@lru_cache(maxsize=8)
def rule(p):
    """Points and weights of the Gauss-Legendre rule on (-1, 1), the floats nearest to them: by Newton's method in decimals.

    NumPy's weights are off by up to 64 units of rounding.
    """
    point, weight = np.polynomial.legendre.leggauss(p)
    with localcontext() as context:
        context.prec = 40
        for i, start in enumerate(point):
            z = Decimal(float(start))
            for _ in range(4):
                before, here = Decimal(1), z
                for n in range(2, p + 1):
                    before, here = here, ((2 * n - 1) * z * here - (n - 1) * before) / n
                slope = p * (z * here - before) / (z * z - 1)
                z -= here / slope
            point[i], weight[i] = z, 2 / ((1 - z * z) * slope * slope)
    return point, weight


def least_index(b, gamma):
    """A lower bound of c_b: of pulling once and then always or never, by bisection."""
    t, low, high = step(b), 0.0, 40 / math.sqrt(b)
    for _ in range(60):
        middle = (low + high) / 2
        if gamma / (1 - gamma) * t * psi(-middle / t) > middle:
            low = middle
        else:
            high = middle
    return max(low, 1e-300)


@lru_cache(maxsize=256)
def indices(gamma, b0, wanted, tol):
    """(3, wanted): lower, guess and upper of c at b0, b0 + 1, ...; not to be written to.

    The list of levels is long enough for what is not known at its end to be lost by discounting.
    """
    last, share = b0 + wanted - 1, SHARE * tol * math.sqrt(1 - gamma)
    more = math.log(far_bound(0.0, last, gamma) / (share * least_index(last, gamma))) / -math.log(gamma)
    found = sweep(gamma, b0, wanted, wanted + max(1, math.ceil(more)), share, *rule(POINTS))
    if not np.isfinite(found).all():
        raise ValueError(f"no proof for gamma {gamma} at precision {b0}: rounding is larger than what tol {tol} leaves")
    found *= np.array([[1 - SAME], [1], [1 + SAME]])
    found.flags.writeable = False
    return found


def lattices(b, gap):
    """Sorted distinct precisions b in groups (first, positions, offsets) of whole distances, with gaps of at most `gap`."""
    left = np.arange(b.size)
    while left.size:
        away = b[left] - b[left[0]]
        whole = np.abs(away - np.round(away)) <= SAME * b[left]
        holes = np.flatnonzero(np.diff(away[whole]) > gap)
        group = left[whole][:holes[0] + 1 if holes.size else None]
        yield b[group[0]], group, np.round(b[group] - b[group[0]]).astype(int)
        left = np.setdiff1d(left, group)


def standard_indices(b, gamma, tol):
    """(3, n) lower, guess and upper of c at the precisions b, (n,); 0 where b is infinite or gamma is 0.

    Beyond MOST, where levels are no longer told apart, c_b lies between 0 and where the perpetual put of `far_bound` is
    exercised, and falls like 1/b.
    """
    out = np.zeros((3, b.size))
    if gamma == 0:
        return out
    single, place = np.unique(np.minimum(b, MOST), return_inverse=True)
    found = np.empty((3, single.size))
    for first, group, offsets in lattices(single, 1000 + 5 / (1 - gamma)):
        found[:, group] = indices(gamma, float(first), int(offsets[-1]) + 1, max(tol, FINEST))[:, offsets]
    out = found[:, place.reshape(b.shape)]
    far = b > MOST
    out[:, far] *= np.array([[0.0], [1.0], [1.0]]) * (MOST / b[far])
    out[2, far] = 1 / b[far] / math.sqrt(-2 * math.log(gamma))
    return out


def gittins_index(mean, var, gamma, noise_sd=1.0, tol=1e-6):
    """Bracket on the Gittins index of an arm that pays N(theta, noise_sd^2), theta ~ N(mean, var).

    It is the known reward a pull at which one is indifferent between the arm and it, for ever after (Gittins 1979).  A sweep
    takes milliseconds, at discount 0.999 seconds, and serves all precisions noise_sd^2 / var that lie whole numbers apart.

    Parameters
    ----------
    mean, var : array-like
        Reward units, and squared; broadcast.  0 <= var < 1e14 noise_sd^2.
    gamma : float
        Discount in [0, 0.9995].
    noise_sd : float
        Positive, reward units.
    tol : float
        Aim for the width relative to index - mean, at least 1e-9; the bracket holds for every tol.

    Returns
    -------
    Bracket
        lower <= index <= upper, rounding included; value is a best guess, far more accurate than the bracket is wide.

    Raises
    ------
    ValueError
        For a variance below 0 or out of range, a discount out of range, or what is no finite number.

    Examples
    --------
    >>> found = gittins_index(0.0, 1 / np.arange(1, 4), 0.9)
    >>> found.value.round(6).tolist()
    [0.746584, 0.466206, 0.346541]
    >>> bool((found.upper - found.lower < 1e-6 * found.value).all())
    True
    """
    mean, var = np.broadcast_arrays(as_numbers("mean", mean), as_numbers("var", var))
    gamma, noise_sd, tol = as_scalar("gamma", gamma), as_scalar("noise_sd", noise_sd, 0), as_scalar("tol", tol, 0, 1)
    require_discount(gamma)
    if (var < 0).any():
        raise ValueError(f"var is {var.min()}: a variance is nonnegative")
    b = precision(noise_sd, 1.0, var.ravel())
    if (b <= LEAST).any():
        raise ValueError(f"noise_sd^2 / var is {b.min()}: only numbers above {LEAST} can be solved")
    return Bracket(*(mean + noise_sd * c.reshape(mean.shape) for c in standard_indices(b, gamma, tol)))
