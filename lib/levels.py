"""Where a sweep tabulates the single-feature problem: its precision levels and the lattice of the mean at each.

None of these choices touches the validity of a bracket, only its width and its cost.  All in table units (lib.dp).
"""
import math

import numba as nb
import numpy as np

CELLS = 64              # more magnitudes than this are merged, level by level


@nb.njit(cache=True)
def arrival(gamma, mass):
    """Expected discount from one item to the next that is not of size 0, their probability being `mass`."""
    return gamma * mass / (1 - gamma * (1 - mass))


@nb.njit(cache=True)
def last_precision(b0, q, p, gamma, end, least):
    """From where at most about `end` of the value is left to learn, and at least `least`; q ascending.

    E gamma^N, N the items until b is reached when all are forwarded, falls like exp(-rate (b - b0)), where a step
    with that rate for interest is fair: gamma (E e^(rate q) + idle) = 1, by Newton's method from above.
    """
    idle = 1 - p.sum()
    need = 1 / gamma - idle
    rate, moved = min(math.log(need / p.sum()) * p.sum() / np.sum(p * q), math.log(need / p[-1]) / q[-1]), 1.0
    while moved > 1e-3 * rate:
        grown = p * np.exp(rate * q)
        moved = (grown.sum() - need) / np.sum(grown * q)
        rate -= moved
    log = -math.log(arrival(gamma, p.sum()))
    scale = math.sqrt(b0) * (1 + log) / log**1.5
    step, last = q[-1], b0 + q[-1]
    while math.exp(-rate * (last - b0)) / last * scale > end or last < least:
        step *= 1.05
        last += step
    return last


def precisions(b0, q, p, gamma, unit, end, least=0.0):
    """Ascending precision levels from b0 to where nothing is left to learn.

    Information alike for all items: the exact lattice b0 + j q; `unit` = 0 asks for it alone.  Otherwise the levels
    are `unit` mean informations apart at b0 and wider where the future is discounted.
    """
    rate, square, most, mass = np.sum(p * q), np.sum(p * q * q), q.max(), p.sum()
    last = last_precision(b0, q, p, gamma, end, least)
    chain = b0 + np.arange(math.ceil((last - b0) / most) + 1) * most if q.min() == most else b0 + np.unique(q)[:CELLS]
    levels = [b0]
    while unit and levels[-1] < max(last, chain[-1]):
        b = levels[-1]
        later = min(-0.5 * math.log(gamma) * (b - b0) * rate / square, 50.0)
        graded = unit * rate / mass * math.sqrt(b / b0) * math.exp(later)
        levels.append(b + min(graded, most / 2, 0.1 * b))
    levels = np.union1d(chain, levels)
    return levels[np.concatenate(([True], np.diff(levels) > 1e-12 * levels[1:]))]


def nested(target):
    """The widest spacings up to `target` that start with its first and halve now and then."""
    return target[0] * 0.5 ** np.maximum.accumulate(np.ceil(np.log2(target[0] / target) - 1e-9))


def spread(levels, q, p, gamma, eta):
    """Spacings in posterior standard deviations that are worth a relative error of about eta^2 at the first level.

    An error at a level is made with the discounted probability of getting there, so the lattice may widen.
    """
    a, items = max(arrival(gamma, p.sum()), 1e-3), (levels - levels[0]) * p.sum() / np.sum(p * q)
    weight, each = np.maximum(a**items, 1e-60), np.diff(items)
    moved = np.sqrt(1 / levels[0] - 1 / levels[1:])
    error = np.sum(each * weight[1:] ** 0.5 / levels[1:] / moved) / 8      # of a lattice of spacing sd weight^-1/4
    return min(eta * math.sqrt((1 - a) * np.sum(each * weight[1:] * moved) / error), 1.0) * weight ** -0.25


def lattices(levels, q, p, gamma, eta, kappa, far):
    """Lattice spacing of each level: at most eta posterior standard deviations and 1/kappa of a step of the mean.

    Where only the first level has to be sharp, as `spread` has it.
    """
    step = np.sqrt(1 / levels - 1 / (levels + np.sum(p * q * q) / np.sum(p * q)))
    share = eta if far else spread(levels, q, p, gamma, eta)
    return nested(np.minimum(share / np.sqrt(levels), step / kappa))


def learnable(b, q, p, gamma):
    """Share of the standard deviation of theta that the horizon lets anyone learn from precision b on, in (0, 1]."""
    ahead = np.sum(p * q) / p.sum() * max(1.0, p.sum() / -math.log(gamma))
    return np.sqrt(ahead / (b + ahead))


def discounted(b, sharp, q, p, gamma):
    """-log of the discount of what is reached at precision b, counted from precision `sharp` on."""
    return -math.log(gamma) * p.sum() / np.sum(p * q) * np.maximum(b - sharp, 0.0)


def ladder(b0, q, p, gamma, fineness):
    """Ascending precision levels of a bound: b0, then from b0 + the least information that counts on.

    unit = 0: the lattice b0 + j q of items of one information.  Otherwise the spacing grows with the precision and,
    from b0 + far on, where the future is discounted.
    """
    if not fineness.unit:
        return precisions(b0, q, p, gamma, 0.0, fineness.end * min(1, (1 / (1 - gamma) / b0) ** 0.5))
    least = b0 + fineness.far + 3 / (1 - gamma) if fineness.far else 0.0
    last = last_precision(b0, q, p, gamma, fineness.end, least)
    levels, sharp = [b0, b0 + max(q.min(), 1e-9 * b0)], b0 + fineness.far
    while levels[-1] < last:
        b = levels[-1]
        later = discounted(b, sharp, q, p, gamma) / 3
        unit = fineness.unit * b * learnable(min(b, sharp), q, p, gamma)
        levels.append(b + min(unit * math.exp(min(later, 3.0)), max(q.max(), unit)))
    return np.array(levels)


def bound_lattices(levels, q, p, gamma, fineness):
    """Lattice spacing of each level of a bound: as `spread` has it, or eta learnable standard deviations up to far."""
    if not fineness.unit:
        return lattices(levels, q, p, gamma, fineness.eta, 2.0, fineness.far)
    if not fineness.far:
        least = 0.15 * fineness.eta * learnable(levels[0], q, p, gamma)        # where levels are many items apart
        return nested(np.clip(spread(levels, q, p, gamma, fineness.eta), least, 0.3) / np.sqrt(levels))
    wider = np.exp(np.minimum(discounted(levels, levels[0] + fineness.far, q, p, gamma) / 4, 2.0))
    share = learnable(np.minimum(levels, levels[0] + fineness.far), q, p, gamma)
    return nested(fineness.eta * wider * share / np.sqrt(levels))
