"""How a number with its error is said."""
import numpy as np


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
