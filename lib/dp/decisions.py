"""What a certified table decides: Q factors between two bounds, the decisions that follow from them, and break-even costs.

`lib.dp.program` reads the best guesses; here every number has its bracket, and where that holds both answers it says so.
"""
import numpy as np

from lib.dp.gittins import standard_indices
from lib.dp.program import as_number, as_table, require_bounds, smoothed_value, table_units, value
from lib.problem import Bracket, as_numbers

DECISIONS = np.array(["discard", "undecided", "forward"])
WIDE = 8.5              # standard deviations below the cost at which nothing is left to hope for: psi(-8.5) < 1e-17
HALVINGS = 24           # of the interval in which a break-even cost is sought


def q_brackets(table, net_mean, var, x=1.0):
    """Brackets (discard, forward) on the Q factors of an item of magnitude x, reward units (paper, section III-B).

    Parameters
    ----------
    table : Table
        From `solve`, with its certificate.
    net_mean, var : array-like
        mean - cost and variance of theta, 0 <= var <= var_max; broadcast.
    x : float
        Magnitude of the item at hand, positive; it need not be in the table's support, and teaches x^2.

    Returns
    -------
    Bracket, Bracket
        Of discarding and of forwarding; compare `q_values`, the best guesses.

    Raises
    ------
    ValueError
        For a variance below 0 or above var_max, what is no finite number, or a table without certificate.

    Examples
    --------
    >>> from lib.dp.program import solve
    >>> table = solve([0, 1], [.5, .5], gamma=.9, noise_sd=.1**.5, var_max=1)
    >>> discard, forward = q_brackets(table, -.3, 1.)
    >>> bool(discard.upper < forward.lower)
    True
    """
    require_bounds(as_table(table))
    x = as_number("x", x, 0)
    m, b = table_units(table, net_mean, var)
    net_mean, var = np.broadcast_arrays(as_numbers("net_mean", net_mean), as_numbers("var", var))
    here, ahead = np.array(value(table, net_mean, var)), np.empty((3,) + m.shape)
    size = x / table.scale
    for at in np.ndindex(m.shape):
        later = b[at] + size**2                             # what is left of the variance is b / later of it
        moved = float(np.sqrt(var[at] / later)) * size if np.isfinite(b[at]) else 0.0
        rest = float(var[at]) * b[at] / later
        ahead[(slice(None),) + at] = (smoothed_value(table, float(net_mean[at]), moved, rest) if moved > 0
                                      else here[(slice(None),) + at])
    discard, pay = table.gamma * here, x * net_mean
    forward = np.stack([pay + table.gamma * end for end in ahead])
    return Bracket(*discard), Bracket(*forward)


def as_arm(table):
    """The discount of the normal reward process that a table with x = 1 alone is, idle items being waited for; else None."""
    program = table.program
    if program is None or program.x.size > 1 or table.scale != 1 or program.x[0] != 1 or program.info[0] != 1:
        return None
    share = float(program.probs[0])
    return table.gamma * share / (1 - table.gamma * (1 - share))


def decide(table, net_mean, var, alpha=1.0, x=1.0):
    """Whether net pay and `alpha` times the exploration benefit are proved positive, as DTD-DP asks (paper, Algorithm 2).

    Parameters
    ----------
    table, net_mean, var, x
        As in `q_brackets`.
    alpha : float
        Factor of the exploration benefit, positive.

    Returns
    -------
    ndarray of str
        "forward", "discard", or "undecided" where the bracket holds numbers of both signs; broadcast.

    Raises
    ------
    ValueError
        As `q_brackets`, and for an alpha that is not positive.

    Examples
    --------
    >>> from lib.dp.program import solve
    >>> table = solve([0, 1], [.5, .5], gamma=.9, noise_sd=.1**.5, var_max=1)
    >>> decide(table, [-.2, -.54, -.8], 1.0).tolist()
    ['forward', 'forward', 'discard']
    """
    alpha, x = as_number("alpha", alpha, 0), as_number("x", x, 0)
    table_units(table, net_mean, var)                           # checks them
    if as_arm(table) is not None and alpha == x == 1:
        cost = indifference_cost(table, 0.0, var)               # forwarded as long as the cost is below it
        net_mean, _ = np.broadcast_arrays(as_numbers("net_mean", net_mean), cost.value)
        return DECISIONS[(net_mean > -cost.lower).astype(int) + (net_mean >= -cost.upper)]
    discard, forward = q_brackets(table, net_mean, var, x)
    pay = x * as_numbers("net_mean", net_mean)
    low = pay + alpha * np.maximum(forward.lower - discard.upper - pay, 0)
    high = pay + alpha * np.maximum(forward.upper - discard.lower - pay, 0)
    return DECISIONS[(low > 0).astype(int) + (high > 0)]


def indifference_cost(table, mean, var):
    """Bracket on the cost at which forwarding x = 1 breaks even with discarding it, reward units.

    For x = 1 always it is the Gittins index of a normal reward process, and for x in {0, 1} that of another discount:
    then `lib.dp.gittins` gives it to the table's tol relative to its distance from the mean, without the table.  Otherwise
    costs are halved between until the table's own bracket no longer decides: forwarding is proved better at the lower end,
    discarding at the upper one.

    Parameters
    ----------
    table : Table
        With its certificate, if it has magnitudes other than 0 and 1.
    mean, var : array-like
        Of theta, reward units; 0 <= var <= var_max.

    Returns
    -------
    Bracket

    Raises
    ------
    ValueError
        For a variance below 0 or above var_max, what is no finite number, or a table without certificate that needs one.

    Examples
    --------
    >>> from lib.dp.program import solve
    >>> found = indifference_cost(solve([1], [1], .9, 1, 1, tol=1e-5, certify=False, between=False), 0.0, 1.0)
    >>> print("%.4f %.4f" % (found.lower, found.upper))
    0.7466 0.7466
    """
    m, b = table_units(table, mean, var, "mean")
    mean, var = np.broadcast_arrays(as_numbers("mean", mean), as_numbers("var", var))
    if not table.slope:
        return Bracket(mean * 1.0, mean * 1.0, mean * 1.0)
    gamma = as_arm(table)
    if gamma is not None:
        found = standard_indices(b.ravel(), gamma, table.tol)
        return Bracket(*(mean + table.noise_sd * c.reshape(m.shape) for c in found))
    require_bounds(table)
    ends = np.array([break_even(table, float(v)) for v in var.ravel()]).reshape(m.shape + (2,))
    low, high = mean + ends[..., 0], mean + ends[..., 1]
    return Bracket(low, (low + high) / 2, high)


def break_even(table, var):
    """(low, high): excess of a cost over the mean at which forwarding x = 1 is proved better, and discarding."""
    if var == 0:
        return 0.0, 0.0

    def sign(excess):
        discard, forward = q_brackets(table, -excess, var)
        return int(forward.lower > discard.upper) - int(forward.upper < discard.lower)

    most, ends = WIDE * np.sqrt(var), []
    for side in (1, 0):                 # the last cost that is forwarded, the first that is discarded
        low, high = 0.0, most           # at cost = mean the benefit is nonnegative, hence forwarding no worse
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            if sign(middle) >= side:
                low = middle
            else:
                high = middle
        ends.append(low if side else high)
    return tuple(ends)
