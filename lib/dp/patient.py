"""What learning costs a patient decision maker: hindsight less the optimum of one item, at lives 1 / (1 - gamma) beyond the certified solver.

One item, x = 1, noise variance 1, prior N(m, 1 / b) of theta - cost.  Hindsight h(m, b) = life E (theta - cost)^+ is a martingale, so
that the regret rho = h - w solves

    rho(m, b) = min { h(m, b),  c_k E (theta - cost)^- + gamma^k E rho(m + t Z, b + k) },    c_k = (1 - gamma^k) life,   t^2 = 1/b - 1/(b + k),

with k = 1.  All its terms are of the size of the regret: w itself would need digits beyond those of a floating number.  Here k grows with b,
as whoever decides in blocks of k loses at most.  So levels are few, some 1 / step for each factor e in b, and a life may be anything.  rho is kept on
even lattices, and the average over Z is a sum over nodes, which for a normal density and a smooth function is exact beyond any power of the
spacing.  This is arithmetic, not a proof; the chapter "Certified Gittins indices" compares it with brackets.
"""
import numpy as np

from lib.normal import PHI0, expected_positive
from lib.problem import as_scalar

WIDTH = 9.0         # standard deviations of the prior at a level beyond which rho is nothing
END = 30.0          # lives after which the better of forwarding for ever and of stopping is taken
NODES = 8           # in a standard deviation of a step
STEP = .01          # of b: a block
SHORTEST = 300.0    # life from which there is a slope


def levels(life, step):
    """(L,) precisions b from 1 to END lives, (L - 1,) items in the block after each."""
    b, sizes = [1.0], []
    while b[-1] < END * life:
        sizes.append(max(1.0, np.floor(step * b[-1])))
        b.append(b[-1] + sizes[-1])
    return np.array(b), np.array(sizes)


def regret_in_blocks(life, step):
    """rho(0, 1) if one decides once in a block of `step` times those forwarded so far."""
    b, sizes = levels(life, step)
    moves = np.sqrt(sizes / b[:-1] / b[1:])
    spacing = np.minimum.accumulate(2.0**np.floor(np.log2(np.append(np.sqrt(.5), moves) / NODES)))      # of levels: powers of 2, so nested
    log_gamma, sd = np.log1p(-1 / life), b**-.5
    half = (WIDTH * sd / spacing).astype(int)
    rho = life * sd[-1] * expected_positive(-np.abs(np.arange(-half[-1], half[-1] + 1)) * spacing[-1] / sd[-1])
    for i in range(len(sizes) - 1, -1, -1):
        reach = int(np.ceil(8 * moves[i] / spacing[i + 1]))
        kernel = np.exp(-.5 * (np.arange(-reach, reach + 1) * spacing[i + 1] / moves[i])**2)
        known, n = np.convolve(rho, kernel / kernel.sum()), np.arange(-half[i], half[i] + 1)
        at = n * round(spacing[i] / spacing[i + 1]) + len(known) // 2
        later = np.where((at >= 0) & (at < len(known)), known[np.clip(at, 0, len(known) - 1)], 0.0)
        z, block = n * spacing[i] / sd[i], -life * np.expm1(sizes[i] * log_gamma)
        rho = np.minimum(life * sd[i] * expected_positive(z), block * sd[i] * expected_positive(-z) + np.exp(sizes[i] * log_gamma) * later)
    return rho[half[0]]


def patient_regret(life):
    """Hindsight less the optimum of one item where the prior mean is the cost: numerical, to some thousandth of it.

    x = 1, prior variance 1, noise variance 1.  Blocks lose in proportion to their size: half of STEP is extrapolated from STEP.

    Parameters
    ----------
    life : float
        1 / (1 - gamma), mean number of items; from 2 to 1e16.

    Returns
    -------
    float
        Reward units, without the leading gamma.

    Raises
    ------
    ValueError
        For another life.

    Examples
    --------
    >>> round(patient_regret(10.0), 3)
    0.935
    """
    life = as_scalar("life", life, 2 - 1e-9, 1e16 * (1 + 1e-9))
    return float(2 * regret_in_blocks(life, STEP / 2) - regret_in_blocks(life, STEP))


def regret_slope(life):
    """What `patient_regret` gains for each unit of log life, where lives are long: phi(0) (h + 1/2), from the asymptotic boundary.

    Where stopping is optimal after t items at mean -sqrt(2 h / t), h = log(life / t) - log log(life / t) / 2 - log(16 pi) / 2 (Chang and Lai
    1987; Brezzi and Lai 2002).  h is taken at the t at which a drift of -1 comes there, t = 2 h.

    Parameters
    ----------
    life : float
        From SHORTEST (300) to 1e300.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        For another life.

    Examples
    --------
    >>> round(regret_slope(1e6), 2)
    3.39
    """
    from scipy.optimize import brentq           # here alone: it would add 20 MB to whatever else solves a program

    life = as_scalar("life", life, SHORTEST * (1 - 1e-9), 1e300)
    whole = np.log(2 * life) - np.euler_gamma           # E log(theta^2 life) for theta normal: its density is even there, on average

    def missing(h):
        left = whole - np.log(2 * h)
        return h - left + .5 * np.log(left) + .5 * np.log(16 * np.pi)

    return float(PHI0 * (brentq(missing, .5, whole) + .5))
