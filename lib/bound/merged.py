"""Laws of magnitudes on few atoms that bound one on very many: Theorem 1 for a catalogue of a million items.

A single-feature problem with the law G of magnitudes x has the value (lib.bound.theorem; m is net of the price of x)

    w(m, b) = E f(x, x^2),   f(x, q) = max{gamma w(m, b), x m + gamma E w(m + t Z, b + q)},   t^2 = 1/b - 1/(b + q).

For the true w, f is convex in x, as a maximum of two lines, and does not fall as the information q grows, because w is convex in m
and more information may be ignored.  So for x in a class [low, high]

    f(x, x^2) <= f(x, high^2) <= share f(low, high^2) + (1 - share) f(high, high^2),   x = share low + (1 - share) high,

and over a class with the mean magnitude a, E f(x, x^2) >= E f(x, low^2) >= f(a, low^2) by Jensen.  The first replaces a class by its
two ends, which keep its mean, both with the information of the upper; the second by its mean with that of the lower end.  Either
changes Bellman's operator to one side at w, and the operator is monotone and a contraction: its fixed point lies to
that side of w, at every state.  The ends with their own informations, low^2 and high^2, would not do: what more information
adds is not convex in it, so that spreading it may lower the value.

The dynamic program merges magnitudes by the same argument (`lib.dp.grid`, chapter "The certified sweep", section "Many magnitudes"), but
holds them all at first, several times.  Here a feature's magnitudes are merged before it sees them, one feature after the other.

Magnitudes below NARROWEST of the largest are one class, whose lower end is the smallest; below, an item of that class counts as
never forwarded, which is worth gamma w <= f.
"""
import numpy as np

from lib.problem import checked

MANY = 20_000           # items above which Theorem 1 merges magnitudes
CLASSES = 20_000        # classes of magnitudes, half of them alike in number and half in ratio
NARROWEST = 1e-4        # smallest magnitude, relative to the largest, to which those alike in ratio go


def as_in_paper(problem):
    """Whether items are of the kind that the paper has: no feature below 0, and all add up to 1."""
    return bool(problem.items.min() >= 0 and np.abs(problem.items.sum(axis=1) - 1).max() <= 1e-9)


def suits(problem):
    """Whether items are nonnegative and sum to 1 and noise does not depend on the item: magnitude x then pays x and teaches x^2.

    Examples
    --------
    >>> from lib.problem import make_problem
    >>> suits(make_problem([[.5, .5]], [1], [0, 0], np.eye(2), 1, .2, .9)), suits(make_problem([[2]], [1], [0], [[1]], 1, .2, .9))
    (True, False)
    """
    problem = checked(problem)
    return isinstance(problem.noise, str) and as_in_paper(problem)


def edges(x, classes):
    """Ends of some `classes` classes of the positive magnitudes x, ascending, from the smallest of x to the largest."""
    x = np.sort(x)
    floor = max(x[0], NARROWEST * x[-1])
    alike = x[np.linspace(0, len(x) - 1, classes // 2 + 1).astype(int)]
    ends = np.concatenate([[floor, x[-1]], alike, np.geomspace(floor, x[-1], max(classes // 2, 1))])
    return np.unique(np.append(x[0], np.clip(ends[ends >= floor], floor, x[-1])))


def distinct(x, probs, classes):
    """The law itself, (x, info, probs), where its positive magnitudes are no more than `classes` different ones, else None."""
    sizes, where = np.unique(x, return_inverse=True)
    if (sizes > 0).sum() <= classes:
        return sizes, sizes**2, np.bincount(where, probs)
    return None if ((x > 0) & (probs > 0)).any() else (np.zeros(1), np.zeros(1), np.ones(1))


def classed(x, probs, classes):
    """Positive magnitudes that come, their probabilities, that of all others, and the ends of the classes."""
    there = (x > 0) & (probs > 0)
    return x[there], probs[there], probs[~there].sum(), edges(x[there], classes)


def outward(x, probs, classes):
    """A law that is worth at least that of the magnitudes x: ends of classes, each with the information of the upper one.

    Parameters
    ----------
    x, probs : ndarray (n,)
        Magnitudes of at least 0 and their probabilities.
    classes : int
        If there are no more different magnitudes, the law itself is returned.

    Returns
    -------
    x, info, probs : ndarray (m,)
        m <= 2 classes + 2; magnitudes, their informations, and probabilities that keep mean and sum.

    Examples
    --------
    >>> [part.tolist() for part in outward(np.array([0., 1., 1.5, 2.]), np.full(4, .25), 1)]
    [[0.0, 1.0, 2.0], [0.0, 4.0, 4.0], [0.25, 0.375, 0.375]]
    """
    few = distinct(x, probs, classes)
    if few:
        return few
    size, weight, idle, ends = classed(x, probs, classes)
    if len(ends) == 1:
        return np.append(0.0, ends), np.append(0.0, ends**2), np.append(idle, weight.sum())
    at = np.clip(np.searchsorted(ends, size, side="right") - 1, 0, len(ends) - 2)
    low, high, count = ends[:-1], ends[1:], len(ends) - 1
    mass, mean = np.bincount(at, weight, count), np.bincount(at, weight * size, count)
    upper = np.clip((mean - low * mass) / (high - low), 0, mass)
    return (np.concatenate([[0.0], low, high]), np.concatenate([[0.0], high**2, high**2]),
            np.concatenate([[idle], mass - upper, upper]))


def inward(x, probs, classes):
    """A law that is worth at most that of the magnitudes x: means of classes, each with the information of the lower end.

    Parameters, returns and errors are those of `outward`; m <= classes + 1.

    Examples
    --------
    >>> [part.tolist() for part in inward(np.array([0., 1., 1.5, 2.]), np.full(4, .25), 1)]
    [[0.0, 1.5], [0.0, 1.0], [0.25, 0.75]]
    """
    few = distinct(x, probs, classes)
    if few:
        return few
    size, weight, idle, ends = classed(x, probs, classes)
    at = np.clip(np.searchsorted(ends, size, side="right") - 1, 0, max(len(ends) - 2, 0))
    mass, mean = np.bincount(at, weight), np.bincount(at, weight * size)
    used = (mass > 0) & (ends[:len(mass)] >= NARROWEST * ends[-1])
    return (np.append(0.0, mean[used] / mass[used]), np.append(0.0, ends[:len(mass)][used]**2),
            np.append(idle + mass[~used].sum(), mass[used]))
