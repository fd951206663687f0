"""The fixed point of Bellman's equation at one state: nothing changes until the first forward.

While items are discarded the state stays as it is, so its value w solves an equation in one number,

    w = gamma idle w + sum_i p_i max(gamma w, A_i + B_i w),

with A_i + B_i w what follows from forwarding item i (B_i > 0 where that leads back to the state) and `idle` the
probability of an item that cannot matter.  The right-hand side is convex and piecewise linear in w, with slopes of at
most gamma; chapter "The dynamic program", equation of Bellman.
"""
import numpy as np

from lib.compiled import checked_jit
from lib.problem import as_floats, as_probs, as_scalar


@checked_jit
def solve_point(w, gamma, idle, p, A, B):
    """The fixed point w, by Newton's method from any start; nan where a number is nan.

    Newton's iterates decrease after the first step and stop at the exact piece after finitely many; a count ends them.
    """
    for _ in range(p.size + 60):
        const, slope, gap = 0.0, gamma * idle, np.inf
        for i in range(p.size):
            ahead = A[i] + B[i] * w - gamma * w
            if ahead > 0:
                const += p[i] * A[i]
                slope += p[i] * B[i]
            elif ahead <= 0:
                slope += p[i] * gamma
                gap = min(gap, -ahead)
            else:
                return np.nan
        new = const / (1 - slope)
        if abs(new - w) <= 1e-15 * abs(new) or new <= w and gamma * (w - new) < gap:
            return new
        w = new
    return w


@checked_jit
def first_value(values, probs, gamma):
    """The solution w >= 0 of w = gamma sum_x probs_x max(w, values_x); nan where a value is."""
    return gamma * solve_point(0.0, gamma, 1 - probs.sum(), probs, values, np.zeros(values.size))      # w / gamma


def first_forward(values, probs, gamma):
    """The solution w of w = gamma sum_x probs_x max(w, values_x), and dw / dvalues.

    With F = {x: A_x > w}, w = gamma sum_F p A / (1 - gamma + gamma p_F), and the derivative is
    gamma p_x / (1 - gamma + gamma p_F) on F.

    Parameters
    ----------
    values : ndarray (n,)
        What forwarding each item is worth, reward units.
    probs : ndarray (n,)
        Probabilities of the items.
    gamma : float
        Discount factor in [0, 1).

    Returns
    -------
    w : float
    slope : ndarray (n,)

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> first_forward(np.array([1., -1.]), np.array([.5, .5]), .5)[0].round(4)
    np.float64(0.3333)
    """
    values = as_floats("values", values, 1)
    probs, gamma = as_probs(probs, len(values)), as_scalar("gamma", gamma, high=1)
    if gamma < 0:
        raise ValueError(f"gamma is {gamma}: it must lie in [0, 1)")
    w = first_value(values, probs, gamma)
    if not np.isfinite(w):
        raise ValueError(f"values holds nan, or a number too large to add: {values}")
    forwarded = values > w
    slope = np.where(forwarded, gamma * probs / (1 - gamma + gamma * probs[forwarded].sum()), 0.0)
    return np.float64(max(slope @ values, 0.0)), slope
