"""A threshold rule on one feature: what it is worth and how often it falls silent for ever, each between two bounds.

All items are x = 1, and forwarding pays Y - cost with Y ~ N(theta, noise_var).  After n forwards theta ~ N(cost + m, v_n),
v_n = 1 / (1/v_0 + n/noise_var), whatever was observed, and the rule forwards as long as m >= -bonus_n sqrt(v_n).  The first time
that it does not, it learns nothing more: it is silent for ever.  With t_n^2 = v_n - v_{n+1},

    f_n(m) = 1{m >= -bonus_n sqrt(v_n)} (pay m + gamma E f_{n+1}(m + t_n Z))

is its value from then on for pay = 1, and the probability that it is never silent for pay = 0 and gamma = 1.

Two functions bracket each f_n, linear between the nodes of a lattice that begins at the threshold.  The expectation of such
a function is a closed form; between nodes it differs from its own chord by at most d^2 / 8 times the largest second derivative
on the cell, which is bounded term by term.  After the last level the value lies between commitment, m / (1 - gamma), as a
stopped martingale stops below 0, and hindsight; the probability between those that a Brownian motion with the variance that is
left never falls below 0, 2 Phi(m / s) - 1, and that it ends above, Phi(m / s).  Units: noise standard deviation 1.
"""
import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from lib.normal import PHI0, expected_excess, expected_positive
from lib.problem import Bracket, as_count, as_numbers, as_scalar, checked, noise_var

REACH = 9.0         # standard deviations of a step, or of the belief, beyond which a tail is left out
ROUNDED = 1e-12     # a level's rounding error relative to the largest value, with room: its terms are near 1 and their sum 1


class Threshold(NamedTuple):
    """What a threshold rule does."""

    value: Bracket      # discounted reward; the first item carries one gamma
    silent: Bracket     # probability that it falls silent for ever


class Sweep(NamedTuple):
    """What is swept, and the lattices of its levels 0 .. N: nodes start_n, start_n + d_n, ..."""

    pay: float          # 1 for the value, 0 for the probability
    gamma: float
    side: int           # 1: from above, -1: from below
    sd: np.ndarray      # (N + 1,) of the belief
    step: np.ndarray    # (N,) standard deviation of the next move of its mean
    start: np.ndarray   # (N + 1,) thresholds
    d: np.ndarray       # (N + 1,) spacings, each 1, 2, 4, ... times the next
    count: np.ndarray   # (N + 1,) nodes


def density(z):
    """Standard normal density."""
    return PHI0 * np.exp(-0.5 * z * z)


def lattices(prec, bonus, fineness):
    """(sd, step, start, d, count) of the levels of precision prec, prec + 1, ..."""
    b = prec + np.arange(len(bonus))
    sd, step = 1 / np.sqrt(b), 1 / np.sqrt(b[:-1] * b[1:])
    d = np.append(np.zeros(len(step)), fineness * step[-1])
    for n in range(len(step) - 1, -1, -1):
        d[n] = d[n + 1] * 2.0 ** max(math.floor(math.log2(fineness * step[n] / d[n + 1])), 0)
    start = -bonus * sd
    return sd, step, start, d, np.ceil((REACH * sd - start) / d).astype(int) + 3


def end(sweep, n, m):
    """What is known of f_n at means m from one side, whatever comes after level n; m above the threshold."""
    s, patience = sweep.sd[n], sweep.pay / (1 - sweep.gamma) if sweep.pay else 0.0
    if sweep.pay:
        return patience * (expected_excess(m, s) if sweep.side > 0 else m)
    return ndtr(m / s) if sweep.side > 0 else np.maximum(2 * ndtr(m / s) - 1, 0)


def ahead(sweep, n, f, slope):
    """(E f(m + t Z), bound on its second derivative in the cell above) at the nodes m of level n, f the nodes of level n + 1."""
    from scipy.signal import oaconvolve         # here alone: it would add half a second to every import of lib

    d, t, fine = sweep.d[n], sweep.step[n], sweep.d[n + 1]
    m = sweep.start[n] + d * np.arange(sweep.count[n])
    more = math.ceil((m[-1] + REACH * t - sweep.start[n + 1]) / fine) + 2 - len(f)
    f = np.append(f, f[-1] + slope * fine * np.arange(1, max(more, 0) + 1))
    shift = round((sweep.start[n] - sweep.start[n + 1]) / fine)
    rest = sweep.start[n] - sweep.start[n + 1] - shift * fine
    width = math.ceil(REACH * t / fine) + 2
    y = np.arange(-width, width + 1) * fine + rest                 # from a node of f to a mean
    at = np.arange(len(m)) * round(d / fine) + shift + width

    def convolved(values, weights):
        found = np.append(oaconvolve(values, weights), 0.0)
        return found[np.where((at >= 0) & (at < len(found)), at, len(found) - 1)]

    def hat(y, low, high):
        """E of what falls in a straight line from 1 at 0 to 0 at -low, and at high, of those that are not 0."""
        ramps = [(expected_positive((y + side) / t) - expected_positive(y / t)) * (t / fine) for side in (fine, -fine)]
        return low * (ramps[0] - ndtr(y / t)) + high * (ramps[1] + ndtr(y / t))

    beyond = m - sweep.start[n + 1]
    mean = convolved(f, hat(y, 1, 1)) - f[0] * hat(beyond, 1, 0)
    bend = np.abs(np.append(np.diff(f, 2, prepend=f[0]), 0.0)) / fine      # of the slope at each node; at the first from 0
    nearest = np.where(y * (y + d) <= 0, 0, np.minimum(np.abs(y), np.abs(y + d))) / t
    near, far = np.sort(np.abs([beyond, beyond + d]) / t, axis=0)
    steepest = np.clip(1.0, np.where(beyond * (beyond + d) <= 0, 0, near), far)     # where z density(z) is largest
    curved = np.maximum(convolved(bend, density(nearest) / t), 0) + abs(f[0]) * steepest * density(steepest) / t**2
    return mean, curved


def bound(sweep, m):
    """The bound on f_0(m) from one side."""
    slope, last = sweep.pay / (1 - sweep.gamma) if sweep.pay else 0.0, len(sweep.step)
    f = end(sweep, last, sweep.start[last] + sweep.d[last] * np.arange(sweep.count[last]))
    for n in range(last - 1, -1, -1):
        nodes = sweep.start[n] + sweep.d[n] * np.arange(sweep.count[n])
        mean, curved = ahead(sweep, n, f, slope)
        error = sweep.gamma * sweep.d[n]**2 / 8 * curved
        error[1:] = np.maximum(error[1:], error[:-1])
        error = error + ROUNDED * (1 + slope * nodes[-1])
        f = sweep.pay * nodes + sweep.gamma * mean + sweep.side * error
        far = end(sweep, n, nodes[-1]) if sweep.pay or sweep.side < 0 else 1.0
        f[-1] = max(f[-1], far) if sweep.side > 0 else min(f[-1], far)
    if m > nodes[-1]:
        return f[-1] + slope * (m - nodes[-1])
    return float(np.interp(m, nodes, f)) if m >= nodes[0] else 0.0


def as_bonus(bonus, levels):
    """`bonus` as levels + 1 nonnegative numbers, or ValueError."""
    found = as_numbers("bonus", bonus)
    if found.shape not in ((), (levels + 1,)) or (found < 0).any():
        raise ValueError(f"bonus must be nonnegative, one number or {levels + 1}, got {bonus!r}")
    return np.broadcast_to(found, (levels + 1,))


def threshold_rule(problem, bonus=0.0, levels=100, fineness=0.05):
    """What the rule "forward iff mean + bonus sd >= cost" is worth, and how often it falls silent for ever.

    Parameters
    ----------
    problem : Problem
        Of one item, x = 1; its prior variance positive.
    bonus : float or array-like (levels + 1,)
        Nonnegative: one number is UCB, 0 exploitation; else one for each number of forwards, and beyond the last whatever
        keeps the threshold below the cost and lets it tend there.
    levels : int
        Forwards that are followed; what may come after is bounded.
    fineness : float
        Spacing of nodes in standard deviations of a step, at most 1.  The brackets hold for any.

    Returns
    -------
    Threshold

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> found = threshold_rule(make_problem([[1]], [1], [.2], [[1]], 1, 0, .9))
    >>> print("%.2f %.2f" % (found.value.value, found.silent.value))
    3.61 0.61
    """
    problem, levels, fineness = checked(problem), as_count("levels", levels), as_scalar("fineness", fineness, 0, 1.0000001)
    used = problem.items[problem.probs > 0]
    if used.shape != (1, 1) or used[0, 0] != 1 or problem.Sigma[0, 0] <= 0:
        raise ValueError(f"problem must have one item, x = 1, of unknown worth: its items are {used.tolist()}")
    unit = math.sqrt(noise_var(problem)[problem.probs > 0][0])
    prec, m = unit**2 / problem.Sigma[0, 0], (problem.mu[0] - problem.cost) / unit
    levels = lattices(prec, as_bonus(bonus, levels), fineness)
    lower, upper = (bound(Sweep(1.0, problem.gamma, side, *levels), m) * unit * problem.gamma for side in (-1, 1))
    least, most = (bound(Sweep(0.0, 1.0, side, *levels), m) for side in (-1, 1))
    least, most = max(least, 0.0), min(most, 1.0)
    return Threshold(Bracket(lower, (lower + upper) / 2, upper), Bracket(1 - most, 1 - (least + most) / 2, 1 - least))
