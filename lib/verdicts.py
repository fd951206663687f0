"""Verdicts: claims, comparisons over costs, and the rules that turn numbers into words.

A comparison counts where it is resolved: more than Z standard errors from zero.
"""
from typing import NamedTuple

import numpy as np

VERDICTS = ("holds", "holds in part", "does not hold", "cannot be tested")
Z = 3.0                     # six to eighteen costs are looked at together


class Claim(NamedTuple):
    """One line of the ledger."""

    section: str            # of the paper, as it prints it
    says: str               # in our words
    verdict: str            # one of VERDICTS
    measured: str           # the number, with its 95 % interval where it is sampled; MyST
    where: str              # the page or label of the demonstration


class Duel(NamedTuple):
    """A policy against another over costs: how often it is ahead or behind beyond Z standard errors, and the extremes."""

    ahead: int
    behind: int
    costs: int
    best: tuple             # (difference, standard error, cost) of the largest lead
    worst: tuple            # of the largest deficit


def duel(costs, differences, errors):
    """Count where a difference is resolved.

    Parameters
    ----------
    costs, differences, errors : array-like (n,)
        The paired difference at each cost and its standard error; an error of 0 means that both decide alike.

    Returns
    -------
    Duel

    Examples
    --------
    >>> duel([.1, .2], [1., -.1], [.1, .1])[:3]
    (1, 0, 2)
    """
    costs, d, se = (np.asarray(part, dtype=float) for part in (costs, differences, errors))
    resolved = np.abs(d) > Z * se
    pick = lambda at: (float(d[at]), float(se[at]), float(costs[at]))
    return Duel(int((resolved & (d > 0)).sum()), int((resolved & (d < 0)).sum()), len(d), pick(d.argmax()), pick(d.argmin()))


def outperforms(duels):
    """The verdict on "outperforms": ahead somewhere and behind nowhere, for every rival; in part if for some only.

    Where no difference at all is resolved the claim cannot be tested.

    Examples
    --------
    >>> outperforms([duel([.1, .2], [1., -.1], [.1, .1])])
    'holds'
    """
    if all(d.ahead > 0 and d.behind == 0 for d in duels):
        return "holds"
    if all(d.ahead == d.behind == 0 for d in duels):
        return "cannot be tested"
    return "holds in part" if any(d.ahead > d.behind for d in duels) else "does not hold"


def interval(mean, se, sign=""):
    """A number and half its 95 % interval, to two digits of the latter; with `sign` "+" a sign always.

    Examples
    --------
    >>> interval(0.52361, 0.0055), interval(523.61, 55, "+"), interval(0.0, 0.0)
    ('0.524 ± 0.011', '+520 ± 110', '0')
    """
    half = 1.96 * se
    if not half > 0:
        return f"{mean:{sign}.4g}"
    digits = 1 - int(np.floor(np.log10(half)))
    return f"{round(mean, digits):{sign}.{max(digits, 0)}f} ± {round(half, digits):.{max(digits, 0)}f}"


def told(policy, rival, d):
    """A Duel in words."""
    top = d.best if d.ahead >= d.behind else d.worst
    return (f"{policy} minus {rival}: ahead at {d.ahead}, behind at {d.behind} of {d.costs} costs, "
            f"{interval(*top[:2], '+')} at cost {top[2]:g}")


def markdown(found):
    """The ledger as a MyST table; `where` becomes a link."""
    link = lambda where: f"{{numref}}`{where}`" if where.startswith("fig-") else \
        f"{{ref}}`{where}`" if "-" in where else f"{{doc}}`{where}`"
    head = "| section | the paper says | verdict | measured here | where |\n|---|---|---|---|---|\n"
    return head + "\n".join(f"| {c.section} | {c.says} | **{c.verdict}** | {c.measured} | {link(c.where)} |" for c in found)
