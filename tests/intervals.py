"""Certified sweeps of one information in interval arithmetic (Arb, through python-flint): every number is an enclosure.

Plain loops from the formulas of the chapter "The certified sweep"; nothing of lib is imported.  Given are a sweep's
choices, which may be any: levels of precision, lattices, where tails are cut, and how much a lower law is narrowed.
"""
import math
from typing import NamedTuple

from flint import arb, ctx

ctx.prec = 160
ROOT2, ROOT2PI = arb(2).sqrt(), (2 * arb.pi()).sqrt()


class Law(NamedTuple):
    """The problem in table units: x = 1 with probability p, else an item that cannot matter."""

    p: float
    gamma: float
    reach: float


def slope(law):
    return arb(law.p) / (1 - arb(law.gamma))


def tail(z):
    return (z / ROOT2).erfc() / 2


def psi(z):
    """E (z + Z)^+."""
    return z * tail(-z) + (-z * z / 2).exp() / ROOT2PI


def positive(z):
    return z.max(arb(0))


def excess(m, t):
    return positive(m) + t * psi(-abs(m) / t)


def moved(b):
    return (1 / (b * (b + 1))).sqrt()


def hat(z, h):
    return (psi(-abs(z) - h) - 2 * psi(-abs(z)) + (psi(h - abs(z)))) / h


def outside(law, edge, b):
    n = 37 / -arb(law.gamma).log()
    s = (n / (b * (b + n))).sqrt()
    return slope(law) * (s * psi(-edge / s) + arb("1e-16") / b.sqrt())


def calls(m, t, d, reach, at_node):
    """E (m + t Z)^+; a sweep takes m^+ beyond the nodes of the law, and pays for it."""
    far = at_node and abs(float(m / d)) > int(reach / float(d / t)) + 2.5
    return positive(m) if far else excess(m, t)


def expectation(values, d, m, t, reach, at_node):
    """Sum of the hats of N(m, t^2) over the nodes l d of `values`, a dict, as many as a sweep or a look-up takes."""
    h, total, middle = d / t, arb(0), float(m / d)
    half = reach / float(h)
    if at_node:
        low, high = round(middle) - int(half) - 1, round(middle) + int(half) + 1
    else:
        low, high = math.floor(middle - half) - 1, math.ceil(middle + half) + 1
    for l in range(max(low, min(values)), min(high, max(values)) + 1):
        if float(values[l]) != 0:
            total += hat((l * d - m) / t, h) * values[l]
    return total


def bellman(law, m, ahead):
    """The value before an item, given what follows one that is forwarded."""
    p, gamma = arb(law.p), arb(law.gamma)
    return positive(p * (m + gamma * ahead) / (1 - gamma + gamma * p))


def upper_node(law, values, d, m, b):
    """One step to w at a node m of precision b, from w - K m^+ at the nodes of precision b + 1."""
    t, K, reach = moved(b), slope(law), arb(law.reach)
    edge = max(values) * d
    cut = outside(law, edge, b + 1) + 2 * tail(reach) * max(values.values(), key=float) + K * t * psi(-reach)
    ahead = cut + K * calls(m, t, d, law.reach, True) + expectation(values, d, m, t, law.reach, True)
    return bellman(law, m, ahead.min(K * excess(m, 1 / b.sqrt())))


def upper_point(law, values, d, m, b):
    """As `upper_node`, at any mean m."""
    t, K, reach = moved(b), slope(law), arb(law.reach)
    cut = outside(law, max(values) * d, b + 1) + 2 * tail(reach) * outside(law, arb(0), b + 1)
    w = bellman(law, m, cut + K * excess(m, t) + expectation(values, d, m, t, law.reach, False))
    return w.max(K * positive(m)).min(K * excess(m, 1 / b.sqrt()))


def lower_value(law, values, d, m, t, at_node=False):
    """As `upper_node`, from below, with a law of standard deviation t: less than the move."""
    K = slope(law)
    ahead = K * (calls(m, t, d, law.reach, at_node) - t * psi(-arb(law.reach))) + expectation(values, d, m, t, law.reach, at_node)
    return bellman(law, m, ahead).max(K * positive(m))


def sweep(law, grid, narrowed, last):
    """w - K m^+ at the nodes of level 1, a dict: from `last` at the last level; narrowed[j]: of the lower law, or None."""
    values, fine = last, arb(grid.spacing[-1])
    for j in range(len(grid.levels) - 2, 0, -1):
        d, b, n = arb(grid.spacing[j]), arb(grid.levels[j]), -int(grid.first[0, j])
        at, K = {}, slope(law)
        for l in range(-n, n + 1):
            m = l * d
            w = (upper_node(law, values, fine, m, b) if narrowed is None
                 else lower_value(law, values, fine, m, arb(narrowed[j]), True))
            at[l] = positive(w - K * positive(m))
        values, fine = at, d
    return values, fine
