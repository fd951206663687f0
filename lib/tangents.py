"""A level's lower bound at precisions beside its own (kernels; chapter "The dynamic program", "A chord and a tangent").

A policy made for a level also serves near it.  At b + beta the bound on w - K m^+ is, at the nodes of the level,
    max{0, D + slope beta - curvature beta^2 - kinks |beta|},
the kinks, one above and one below b, deep enough for neighbouring levels to agree.
"""
import numba as nb
import numpy as np

from lib.sweep import nodes, rounding, thinned


@nb.njit(cache=True)
def asked(grid, j, least):
    """(low, high): the precisions for which the lower bound of level j is made; `least` is the smallest information."""
    if j == 0 or grid.extra.size == 0:
        return grid.levels[j], grid.levels[j]
    return max(grid.levels[j - 1], grid.levels[0] + least), grid.levels[j + 1]


@nb.njit(cache=True)
def farthest(levels, u):
    """Up to which precision the lower bound of level u is kept below that of level u + 1, which holds there."""
    return min(1.5 * levels[u + 1] - 0.5 * levels[u], levels[min(u + 2, levels.size - 1)])


@nb.njit(cache=True)
def off(bend, beta):
    """What a lower bound loses beside its tangent at a distance of beta from its precision."""
    return bend[0] * beta * beta + (bend[1] * beta if beta > 0 else -bend[2] * beta)


@nb.njit(cache=True)
def ahead_lower(grid, low, b, high, least, coarse):
    """(D, slope, bend, d): at most w - K m^+ at nodes -n..n of spacing d, for precisions from low to high.

    At b + beta it is D + slope beta - off(bend, beta).  The level nearest to b is used, but none before `least`.
    """
    levels, last, bent = grid.levels, grid.levels.size - 1, grid.extra.size > 0
    l, u = rounding(b, levels)
    if u > last:
        return np.zeros(3), np.zeros(3), np.zeros(3), grid.spacing[last]
    if bent and l >= least and b - levels[l] < levels[u] - b:
        u = l
    if u < last and high > farthest(levels, u) * (1 + 1e-12) or low < levels[max(u - 2, 0)]:
        u, bent = min(np.searchsorted(levels, high), last), False      # beyond what is known of u: w falls in b
    stride = thinned(grid.spacing[u], coarse)
    if u > 0 and low < levels[u - 1]:                  # there it is known at the nodes of the level below alone
        stride = max(stride, int(round(grid.spacing[u - 1] / grid.spacing[u])))
    D, d = nodes(grid, u, grid.D, stride), stride * grid.spacing[u]
    if not bent:
        return D, np.zeros(D.size), np.zeros(3), d
    slope, bend, beta = nodes(grid, u, grid.extra[0], stride), grid.bend[:, u].copy(), b - levels[u]
    cost = off(bend, beta)
    for i in range(D.size):
        moved = D[i] + slope[i] * beta - cost
        D[i], slope[i] = (moved, slope[i] - 2 * bend[0] * beta) if moved > 0 else (0.0, 0.0)
    return D, slope, bend, d


@nb.njit(cache=True)
def excess(grid, u, v, low, high):
    """At most how far the lower bound of level u exceeds that of its neighbour v, from low to high, at common nodes.

    Both are parabolas there: neither level lies between low and high.
    """
    d, wide = max(grid.spacing[u], grid.spacing[v]), 0.25 * (high - low) ** 2
    strides = int(round(d / grid.spacing[u])), int(round(d / grid.spacing[v]))
    D, slope = nodes(grid, u, grid.D, strides[0]), nodes(grid, u, grid.extra[0], strides[0])
    D_v, slope_v = nodes(grid, v, grid.D, strides[1]), nodes(grid, v, grid.extra[0], strides[1])
    bend, bend_v, skip, worst = grid.bend[:, u], grid.bend[:, v], D_v.size // 2 - D.size // 2, 0.0
    for i in range(D.size):
        most, over = -np.inf, -np.inf
        for b in (low, high):
            beta, beta_v, other = b - grid.levels[u], b - grid.levels[v], 0.0
            own = D[i] + slope[i] * beta - off(bend, beta)
            if 0 <= i + skip < D_v.size:
                other = D_v[i + skip] + slope_v[i + skip] * beta_v - off(bend_v, beta_v)
            most, over = max(most, own), max(over, own - other)
        worst = max(worst, min(most + bend[0] * wide, over + max(bend[0] - bend_v[0], 0.0) * wide))
    return worst
