"""One certified step of the mean: bounds on E w(m + t Z, b + information) from the levels of a Grid (kernels).

Scale and state as in lib.dp.best: noise_sd = 1, net mean m, precision b, K = E[x]/(1 - gamma), and every level stores
D = w - K m^+ on a lattice -n d .. n d of the mean.  What an item leads to, w(., b + x^2), is bounded at the nodes from
the levels around b + x^2 and then averaged over the move of the mean (chapter "The dynamic program"):
  UPPER  log((w + K E theta^-) / sqrt(b)) is convex in b at fixed m: a chord between two levels; chords in m;
  LOWER  the tangent of lib.dp.certified in b; a law in m that the normal law dominates.

A level's lower bound at precisions beside its own (kernels; chapter "The dynamic program", "A chord and a tangent").

A policy made for a level also serves near it.  At b + beta the bound on w - K m^+ is, at the nodes of the level,
    max{0, D + slope beta - curvature beta^2 - kinks |beta|},
the kinks, one above and one below b, deep enough for neighbouring levels to agree.

The certified backward sweeps: an upper and a lower bound on the single-feature value (chapter "The dynamic program").

Scale and state as in lib.dp.best; the steps from one level to those above it are those of lib.dp.certified.
"""
import math

import numba as nb
import numpy as np

from lib.dp.bellman import solve_point
from lib.dp.grid import Grid, UPPER, arrival, ladder, lattices, learnable_sd, nodes, rounding, thinned
from lib.dp.quadrature import hat_law, shrunk
from lib.normal import PHI0, ROOT, psi, tail


@nb.njit(cache=True)
def ahead_upper(grid, b, coarse):
    """(D, d): at least w(., b) - K m^+ at nodes -n..n of spacing d, from the levels around b."""
    levels, last = grid.levels, grid.levels.size - 1
    l, u = rounding(b, levels)
    if l == u or u > last:
        u = min(u, last)
        stride = thinned(grid.spacing[u], coarse)
        return nodes(grid, u, grid.D, stride), stride * grid.spacing[u]
    ratio, stride = int(round(grid.spacing[l] / grid.spacing[u])), thinned(grid.spacing[l], coarse)
    D, known, fall = (nodes(grid, l, grid.D, stride), nodes(grid, l, grid.extra[0], stride),
                      nodes(grid, l, grid.extra[1], stride))
    D_u, known_u = nodes(grid, u, grid.D, ratio * stride), nodes(grid, u, grid.extra[0], ratio * stride)
    if D_u.size < D.size:
        cut = (D.size - D_u.size) // 2
        D, known, fall = D[cut:-cut], known[cut:-cut], fall[cut:-cut]
    cut = (D_u.size - D.size) // 2
    chord(D, known, fall, D_u[cut:], known_u[cut:], levels[l], b, levels[u], stride * grid.spacing[l])
    return D, stride * grid.spacing[l]


@nb.njit(cache=True, error_model="numpy")              # no check of the division, so that the loop is vectorized
def chord(D, known, fall, D_u, known_u, below, b, above, d):
    """Turn D = w - K m^+ at the precision `below` into a bound at b, with the level `above` (D_u).

    With Q = D + known: Q sqrt(b/below) (1 - e)^share, 1 - e the ratio of Q / sqrt(b) at the two levels; the series
    of the power has no positive terms after the first, and Taylor's of `known` none that is negative after the last.
    """
    share, beta, up, ratio = (b - below) / (above - below), b - below, math.sqrt(b / below), math.sqrt(below / above)
    c1, c2, c3, c4 = share, (1 - share) / 2, (2 - share) / 3, (3 - share) / 4
    a0, a2, b2, middle = 1.5 / below, 0.5 * d * d, 1.5 / below**2, D.size // 2
    for i in range(D.size):
        Q, l = D[i] + known[i], i - middle
        e = max(1 - ratio * (D_u[i] + known_u[i]) / Q, 0.0)
        top = Q * up * (1 - c1 * e * (1 + c2 * e * (1 + c3 * e * (1 + c4 * e))))
        a = a0 + a2 * l * l
        D[i] = max(min(top - known[i] + fall[i] * beta * (1 - 0.5 * a * beta + (a * a + b2) * beta * beta / 6), D[i]), 0.0)


@nb.njit(cache=True)
def slide(out, first, ratio, weights, D):
    """out[i] += sum_l weights[|l|] D[(first + i) ratio + l], where D has its middle node at 0 and is 0 outside."""
    R, n, half = weights.size - 1, out.size, D.size // 2
    near = np.empty(n + 2 * R // ratio + 4)
    for residue in range(min(ratio, 2 * R + 1)):
        l = residue - R                                # the first of l, l + ratio, ... up to R
        near[:] = 0.0
        at = first * ratio + l + half                  # near[k] = D[at + k ratio]
        for k in range(max(0, -(at // ratio)), min(near.size, (D.size - 1 - at) // ratio + 1)):
            near[k] = D[at + k * ratio]
        shift = 0
        while l + 3 * ratio <= R:                      # four at a time: out is read once for them
            a, b, c, e = (weights[abs(l)], weights[abs(l + ratio)], weights[abs(l + 2 * ratio)],
                          weights[abs(l + 3 * ratio)])
            for i in range(n):
                k = i + shift
                out[i] += a * near[k] + b * near[k + 1] + c * near[k + 2] + e * near[k + 3]
            l, shift = l + 4 * ratio, shift + 4
        while l <= R:
            a = weights[abs(l)]
            for i in range(n):
                out[i] += a * near[i + shift]
            l, shift = l + ratio, shift + 1


@nb.njit(cache=True)
def prices(out, first, ratio, d, K, calls, add):
    """out[i] = add + K E ((first + i) ratio d + X)^+ from the call prices of X at 0, d, 2 d, ..."""
    for i in range(out.size):
        out[i] = add + K * max((first + i) * ratio * d, 0.0)
    most = (calls.size - 1) // ratio
    for l in range(max(first, -most), min(first + out.size - 1, most) + 1):
        out[l - first] += K * calls[abs(l) * ratio]


@nb.njit(cache=True)
def outside(edge, b, gamma, K):
    """At most w - K m^+ at precision b where |m| > edge: all answers are seen for free until the discount is 1e-16."""
    s = learnable_sd(b, gamma)
    return K * (s * psi(-edge / s) + 1e-16 / math.sqrt(b))


@nb.njit(cache=True)
def step_upper(out, grid, K, gamma, first, j, info, hindsight):
    """out[i] >= E w((first + i) d + t Z, b + info) of level j, t^2 = 1/b - 1/(b + info), and at most hindsight[i]."""
    b, b_next, reach = grid.levels[j], grid.levels[j] + info, grid.read[1]
    D, d = ahead_upper(grid, b_next, 0.0)
    t = math.sqrt(info / (b * b_next))
    weights, calls = hat_law(t, d, reach)
    ratio = int(round(grid.spacing[j] / d))
    cut = outside(D.size // 2 * d, b_next, gamma, K) + 2 * tail(reach) * magnitude(D) + K * t * psi(-reach)
    prices(out, first, ratio, d, K, calls, cut)
    slide(out, first, ratio, weights[weights.size // 2:], D)
    for i in range(out.size):
        out[i] = min(out[i], hindsight[i])


@nb.njit(cache=True)
def step_lower(out, change, grid, K, gamma, first, j, info, below, above):
    """out[i] <= E w((first + i) d + t Z, b + info) of level j with its derivative in b, `change`; returns the bend.

    The three describe a lower bound for all precisions from `below` to `above`: -inf where the lattice is too wide.
    """
    b, reach = grid.levels[j], grid.read[1]
    D, slope, bend, d = ahead_lower(grid, below + info, b + info, above + info, j + 1, 0.0)
    short = math.sqrt(info / (above * (above + info)))
    shorter = shrunk(short, d, reach)
    if not shorter > 0:
        out[:] = -np.inf
        return bend
    lost = short * short - shorter * shorter           # of t^2, at every precision
    t = math.sqrt(info / (b * (b + info)) - lost)
    weights, calls = hat_law(t, d, reach)
    weights, ratio = weights[weights.size // 2:], int(round(grid.spacing[j] / d))
    fast = 1 / below**2 - 1 / (below + info) ** 2      # at most, of t^2 in b
    longest = math.sqrt(info / (below * (below + info)) - lost)
    cut = K * longest * psi(-reach)                    # where call prices of the law may exceed the normal ones
    edge, steep = PHI0 * math.exp(-0.5 * reach**2) / shorter, max(np.abs(np.diff(D)).max(), D[0], D[-1]) / d
    cut += (above - below) * fast * edge * (2 * reach / shorter * magnitude(D) + steep + 0.5 * K)   # left out of `change`
    cut += (above - below) * 2 * tail(reach) * magnitude(slope)
    prices(out, first, ratio, d, K, calls, -cut)
    slide(out, first, ratio, weights, D)
    if grid.extra.size == 0:
        return bend
    bell = np.empty(weights.size)                      # d/d(t^2) of call prices is half the density
    for l in range(bell.size):
        bell[l] = 0.5 * PHI0 / t * math.exp(-0.5 * (l * d / t) ** 2)
    kinks, moved, rate = slope_changes(D, d), np.zeros(out.size), 1 / (b + info) ** 2 - 1 / b**2    # of t^2 in b
    kinks[kinks.size // 2] += K
    slide(moved, first, ratio, bell, kinks)
    for i in range(out.size):
        change[i] = rate * moved[i]
    slide(change, first, ratio, weights, slope)
    drift = min(0.242 * np.ptp(slope) / shorter**2, 0.5 * magnitude(slope_changes(slope, d)) * (1 / d + PHI0 / shorter))
    fastest = 0.5 * fast**2 / shorter**2
    excess = max(fastest - 2 / above**3 + 2 / (above + info) ** 3, 0.0)     # of convex kinks; 0 unless t is short
    concave = negative(kinks) * (fastest + 2 / below**3 - 2 / (below + info) ** 3)
    bend[0] += fast * drift + 0.25 * PHI0 / shorter * (excess * negative(-kinks) + concave)
    return bend


@nb.njit(cache=True)
def slope_changes(D, d):
    """Of the lattice function D, 0 outside, from the node before its first to the one after its last."""
    out, rate = np.zeros(D.size + 2), 1 / d
    for i in range(D.size):
        out[i] = rate * D[i]
    for i in range(D.size):
        out[i + 1] -= 2 * rate * D[i]
    for i in range(D.size):
        out[i + 2] += rate * D[i]
    return out


@nb.njit(cache=True)
def negative(a):
    """Sum of the negative parts."""
    total = 0.0
    for v in a:
        total -= min(v, 0.0)
    return total


@nb.njit(cache=True)
def magnitude(a):
    """Largest absolute value, 0 of none."""
    top = 0.0
    for v in a:
        top = max(top, abs(v))
    return top


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


AGAIN = 8               # times, at most, that a level is bounded with what came out before
MORE = 1.5              # how much deeper than it seems to need a kink is made, for what it does to the level below
CLOSE = 0.0015          # what a level may be wrong by for having stopped, largest curvatures of w times d^2


@nb.njit(cache=True)
def full_observation_edge(count, d, b, mean_x, mass, gamma):
    """What full observation earns above commitment at m = -count d .. count d: a sum over items that are not of size 0.

    E[x] / mass a/gamma sum_n a^n E (m_n^+ - m^+), a the discount from one to the next.  Each tells at most 1, and n is
    rounded up to some 25 values, so the sum errs upward.
    """
    a = arrival(gamma, mass)
    out, most, n = np.zeros(2 * count + 1), 45 / -math.log(a) + 1, 0
    while n <= most:
        first, n = n + 1, max(n + 1, math.ceil(n * most ** (1 / 40)))
        last = n > most
        weight, sd = (a**first - (0.0 if last else a ** (n + 1))) / (1 - a), math.sqrt(1 / b if last else n / (b * (b + n)))
        for l in range(count + 1):
            if l * d > 9 * sd:                         # psi is 0 to the last digit from there on
                break
            out[count + l] += weight * sd * psi(-l * d / sd)
    for l in range(count + 1):
        out[count + l] *= mean_x / mass * a / gamma
        out[count - l] = out[count + l]
    return out


@nb.njit(cache=True)
def blank(kind, x, info, p, gamma, b0, fineness):
    """A Grid without values: level j has the nodes -half[j]..half[j]."""
    levels = ladder(b0, info, p, gamma, fineness)
    spacing = lattices(levels, info, p, gamma, fineness, True)
    first, ptr, size = np.empty((2, levels.size), np.int64), np.empty(levels.size, np.int64), 0
    for j in range(levels.size):
        half = int(math.ceil(fineness.reach * learnable_sd(levels[j], gamma) / spacing[j])) + 1
        first[0, j], first[1, j], ptr[j] = -half, 2 * half + 1, size
        size += first[1, j]
    extra = np.zeros((2 if kind == UPPER else 1, size if kind == UPPER or fineness.unit > 0 else 0))
    return Grid(levels, spacing, first, ptr, np.zeros(size), x, info, p, np.array([fineness.read, fineness.reach]), extra,
                np.zeros((3, levels.size)))


@nb.njit(cache=True, nogil=True)
def sweep(kind, x, info, p, gamma, b0, fineness):
    """One certified sweep from precision b0 on, over atoms with ascending information: a Grid."""
    grid, K = blank(kind, x, info, p, gamma, b0, fineness), np.sum(x * p) / (1 - gamma)
    J, lowest, group = grid.levels.size - 1, -fineness.reach, np.zeros(info.size, np.int64)
    for i in range(1, info.size):
        group[i] = group[i - 1] + (info[i] > info[i - 1])
    q = np.empty(group[-1] + 1)
    q[group] = info
    if kind == UPPER:
        grid.D[grid.ptr[J]:] = full_observation_edge(-grid.first[0, J], grid.spacing[J], grid.levels[J], np.sum(x * p),
                                                     p.sum(), gamma)
        full_observation(grid, K)
    for j in range(J - 1, -1, -1):                     # worth forwarding from `lowest` standard deviations on
        sd_step = grid.spacing[j] * math.sqrt(grid.levels[j])
        lo = max(int(1.2 * lowest / sd_step) - 4, grid.first[0, j])
        while True:
            if kind == UPPER:
                found = solve_upper(grid, j, lo, q, group, gamma, K)
            else:
                found = solve_lower(grid, j, lo, q, group, gamma, K)
            if found >= 0 or lo == grid.first[0, j]:
                break
            lo = max(2 * lo, grid.first[0, j])
        lowest = min((lo + max(found, 0)) * sd_step, -0.05)
    return grid


@nb.njit(cache=True)
def full_observation(grid, K):
    """Fill `extra` of an upper grid: Q - D = K (E theta^- + m^+) and how fast it falls in b."""
    for j in range(grid.levels.size):
        n, root = -grid.first[0, j], math.sqrt(grid.levels[j])
        for i in range(n + 1):
            z = i * grid.spacing[j] * root
            density = PHI0 * math.exp(-0.5 * z * z)
            for k in (grid.ptr[j] + n - i, grid.ptr[j] + n + i):
                grid.extra[0, k] = K / root * (0.5 * z * math.erfc(-z * ROOT) + density)
                grid.extra[1, k] = K * density / (2 * root**3)


@nb.njit(cache=True)
def predict(D, grid, j, lo, near):
    """Replace D at the nodes lo.. of level j by what the next three levels extrapolate to, where all are positive."""
    levels, spacing, last = grid.levels, grid.spacing, min(j + 3, grid.levels.size - 1)
    total, good = np.zeros(D.size), np.zeros(D.size, np.int64)
    for u in range(last, j, -1):
        weight = 1.0
        for v in range(j + 1, last + 1):
            weight *= (levels[j] - levels[v]) / (levels[u] - levels[v]) if v != u else 1.0
        known = nodes(grid, u, grid.D, int(round(spacing[j] / spacing[u])))
        skip = lo + known.size // 2                    # node lo + i is known[skip + i]
        for i in range(max(0, -skip), min(D.size, known.size - skip)):
            total[i] += weight * known[skip + i]
            good[i] += known[skip + i] > 0
            if u == j + 1 and good[i] == last - j:
                D[i] = min(max(total[i], known[skip + i]) + near, D[i])


@nb.njit(cache=True)
def solve_upper(grid, j, lo, q, group, gamma, K):
    """Fill the nodes of level j from those above it; returns how far from lo the lowest is worth forwarding at, or -1.

    Where an information ends below level j + 1, level j itself is needed: a prediction c serves, and is replaced by
    what comes out, T(c).  As T has modulus M < 1, T(c) + M/(1 - M) max(T(c) - c, 0) is an upper bound for every c.
    """
    b, d, n, beyond = grid.levels[j], grid.spacing[j], -grid.first[0, j] - lo + 1, 2 * tail(grid.read[1])
    end = grid.ptr[j] + grid.first[1, j]
    own, hindsight = grid.D[grid.ptr[j]:end], grid.extra[0, end - n:end].copy()
    here, ahead = own[own.size - n:], np.empty((q.size, n))
    for i in range(-lo):
        hindsight[i] = max(hindsight[i] + K * (lo + i) * d, 0.0)
    short, stay, mass = np.zeros(q.size, np.bool_), np.zeros(q.size, np.bool_), 0.0
    for a in range(group.size):
        short[group[a]] = rounding(b + q[group[a]], grid.levels)[0] <= j
        mass += grid.probs[a] if short[group[a]] else 0.0
    near, own[:] = CLOSE * K * d * d * math.sqrt(b), 0.0
    if mass > 0:                                       # at most: all that is left to the next level is told at once
        step_upper(here, grid, K, gamma, lo, j, grid.levels[j + 1] - b, hindsight)
        for i in range(max(0, -lo), n):
            here[i] -= K * (lo + i) * d
        predict(here, grid, j, lo, near)
    for turn in range(AGAIN):
        before = own.copy()
        for g in range(q.size):
            if turn == 0 or short[g]:
                step_upper(ahead[g], grid, K, gamma, lo, j, q[g], hindsight)
        found = solve_nodes(grid, j, lo, group, gamma, K, ahead, False)
        slack = gamma * mass * (1 + beyond) / (1 - gamma - gamma * beyond) * max((own - before).max(), 0.0)
        if mass == 0 or slack <= near and (before - own).max() <= 100 * near:
            break
    for i in range(own.size):
        own[i] += slack
    return found


@nb.njit(cache=True)
def solve_lower(grid, j, lo, q, group, gamma, K):
    """As solve_upper, for the lower bound, with the slopes in b of the policy that it finds, and their bend.

    Where level j + 1 is used for precisions that level j is made for, it must not exceed level j, and the other way
    round: the kink of the one that does is deepened.  Short items of level j itself go by level j + 1 there: after its
    kink was deepened they are looked at again, and what it still exceeds by is paid for.
    """
    n, last, (low, high) = -grid.first[0, j] - lo + 1, grid.levels.size - 1, asked(grid, j, q[0])
    ahead, change, bends = np.empty((q.size, n)), np.empty((q.size, n)), np.zeros((q.size, 3))
    short, over, mass = low + q < grid.levels[j], 0.0, 0.0
    gap = grid.levels[j + 1] - grid.levels[j]
    for turn in range(AGAIN):
        for g in range(q.size):
            if turn == 0 or short[g]:
                bends[g] = step_lower(ahead[g], change[g], grid, K, gamma, lo, j, q[g], low, high)
        found = solve_nodes(grid, j, lo, group, gamma, K, ahead, True)
        if grid.extra.size == 0 or j == 0 or found < 0 and lo > grid.first[0, j]:
            return found
        mass = fill_tangents(grid, j, lo, group, gamma, K, ahead, change, bends, short)
        if j + 1 == last:
            return found
        over = excess(grid, j + 1, j, low, grid.levels[j])
        if over == 0 or mass == 0:
            break
        grid.bend[2, j + 1] += MORE * over / gap
    if over > 0:
        for k in range(grid.ptr[j], grid.ptr[j + 1]):
            grid.D[k] = max(grid.D[k] - gamma * mass / (1 - gamma) * over, 0.0)
            grid.extra[0, k] *= grid.D[k] > 0
        grid.bend[2, j + 1] += excess(grid, j + 1, j, low, grid.levels[j]) / gap
    grid.bend[1, j] += excess(grid, j, j + 1, grid.levels[j + 1], farthest(grid.levels, j)) / gap
    return found


@nb.njit(cache=True)
def fill_tangents(grid, j, lo, group, gamma, K, ahead, change, bends, short):
    """Fill the slopes and the bend of level j: what a node forwards at b, it forwards at precisions near b as well.

    Returns the largest probability that a node learns from a short item.
    """
    x, p, at, most = grid.x, grid.probs, grid.ptr[j] - grid.first[0, j] + lo, 0.0
    grid.extra[0, grid.ptr[j]:grid.ptr[j + 1]], grid.bend[:, j] = 0.0, 0.0
    for i in range(ahead.shape[1]):
        if grid.D[at + i] == 0:
            continue
        m, slope, kept, mass, bend = (lo + i) * grid.spacing[j], 0.0, gamma * (1 - p.sum()), 0.0, np.zeros(3)
        w = grid.D[at + i] + K * max(m, 0.0)
        for a in range(x.size):
            g = group[a]
            if x[a] * m + gamma * ahead[g, i] <= gamma * w:
                kept += p[a] * gamma
            else:
                mass += p[a] if short[g] else 0.0
                slope += p[a] * gamma * change[g, i]
                for c in range(3):
                    bend[c] += p[a] * gamma * bends[g, c]
        grid.extra[0, at + i] = slope / (1 - kept)
        for c in range(3):
            grid.bend[c, j] = max(grid.bend[c, j], bend[c] / (1 - kept))
        most = max(most, mass)
    return most


@nb.njit(cache=True)
def solve_nodes(grid, j, lo, group, gamma, K, ahead, ignore):
    """Solve Bellman's equation at the nodes lo.. of level j; returns how far from lo forwarding pays, or -1.

    ahead[g, i]: what follows an item of group g at node lo + i.  With `ignore` its answer is not looked at where that
    is worth less than to stay, and there ahead becomes -inf.
    """
    x, p, n, d = grid.x, grid.probs, ahead.shape[1], grid.spacing[j]
    A, B, w, at = np.empty(x.size), np.zeros(x.size), 0.0, grid.ptr[j] - grid.first[0, j] + lo
    for i in range(n - 1, -1, -1):
        m, again = (lo + i) * d, True
        for a in range(x.size):
            A[a], B[a] = x[a] * m + gamma * ahead[group[a], i], 0.0
        while again:
            w, again = solve_point(w, gamma, 1 - p.sum(), p, A, B), False
            for a in range(x.size if ignore else 0):
                if B[a] == 0 and ahead[group[a], i] < w:
                    A[a], B[a], again = x[a] * m, gamma, True
        for a in range(x.size if ignore else 0):
            if B[a] > 0:
                ahead[group[a], i] = -np.inf
        if w <= 0 and m < 0:
            grid.D[grid.ptr[j]:at + i + 1] = 0.0
            return i + 1
        grid.D[at + i] = max(w - K * max(m, 0.0), 0.0)
    return -1
