"""The fixed point of Bellman's equation at one state: nothing changes until the first forward."""
import numba as nb
import numpy as np


@nb.njit(cache=True)
def solve_point(w, gamma, idle, p, A, B):
    """The fixed point of w = gamma idle w + sum_i p_i max(gamma w, A_i + B_i w), by Newton's method.

    The right-hand side is convex and piecewise linear with slope at most gamma, so Newton's iterates
    decrease after the first step and stop at the exact piece after finitely many.
    """
    for _ in range(p.size + 60):
        const, slope, gap = 0.0, gamma * idle, np.inf
        for i in range(p.size):
            ahead = A[i] + B[i] * w - gamma * w
            if ahead > 0:
                const += p[i] * A[i]
                slope += p[i] * B[i]
            else:
                slope += p[i] * gamma
                gap = min(gap, -ahead)
        new = const / (1 - slope)
        if abs(new - w) <= 1e-15 * abs(new) or new <= w and gamma * (w - new) < gap:
            return new
        w = new
    return w


def first_forward(values, probs, gamma):
    """The solution w of w = gamma sum_x probs_x max(w, values_x), and dw / dvalues.

    Newton's steps from below end after at most one step for each item: w = gamma sum_F p A / (1 - gamma + gamma p_F)
    with F = {x: A_x > w}, and the derivative is gamma p_x / (1 - gamma + gamma p_F) on F.

    Raises
    ------
    ValueError
        Where the steps do not end: a value is not finite.

    Examples
    --------
    >>> first_forward(np.array([1., -1.]), np.array([.5, .5]), .5)[0].round(4)
    np.float64(0.3333)
    """
    w = 0.0
    for _ in range(len(values) + 2):
        slope = np.where(values > w, gamma * probs / (1 - gamma + gamma * probs[values > w].sum()), 0.0)
        better = slope @ values
        if better <= w:
            return w, slope
        w = better
    raise ValueError(f"values are {values}: every one must be finite")


@nb.njit(cache=True)
def first_forward_from_below(values, probs, gamma):
    """The solution of w = gamma sum_x probs_x max(w, values_x), by Newton steps from below."""
    w = 0.0
    while True:
        mass, total = 0.0, 0.0
        for x in range(len(values)):
            if values[x] > w:
                mass += probs[x]
                total += probs[x] * values[x]
        better = gamma * total / (1 - gamma + gamma * mass)
        if better <= w:
            return w
        w = better
