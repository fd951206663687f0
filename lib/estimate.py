"""What a sample says of a mean: the estimate with its error, intervals, and how they are written.

A sample mean of n values with standard deviation s has the standard error s / sqrt(n).  Few values know s badly: the
interval that covers 95 % then uses Student's quantile with n - 1 degrees of freedom in the place of 1.96.

A control variate is a variable of known mean zero that goes along with the values.  Values less a multiple of it have
the same mean and a smaller variance; the multiple is the slope of a regression (Glasserman 2003, section 4.1).
"""
from decimal import ROUND_CEILING, Context, Decimal

import numpy as np
from scipy.special import stdtrit

from lib.problem import Estimate, as_choice, as_count, as_floats, as_numbers, as_scalar

STAKE = 0.75            # of the capital, at most, for each unit by which a value may err: no bet can lose all


def sample_mean(values):
    """Mean over the last axis with its standard error.

    Parameters
    ----------
    values : array-like (..., n)
        Independent draws; differences of paired values give the error of a difference.

    Returns
    -------
    Estimate of two (...) arrays

    Raises
    ------
    ValueError
        When there are fewer than two values, as one shows no spread, or one is no finite number.

    Examples
    --------
    >>> sample_mean([1., 3.])
    Estimate(mean=np.float64(2.0), se=np.float64(1.0))
    """
    values = as_numbers("values", values)
    if values.ndim == 0 or values.shape[-1] < 2:
        raise ValueError(f"values has shape {values.shape}: an error needs at least 2 along the last axis")
    return Estimate(values.mean(axis=-1), values.std(axis=-1, ddof=1) / np.sqrt(values.shape[-1]))


def _numeric(name, value, low=-np.inf):
    """`value` as floats, none of them below `low`, or ValueError; nan passes through, as in all arithmetic."""
    array = np.asarray(value)
    if np.ma.is_masked(value) or array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be numeric, got {value!r}")
    if (array < low).any():
        raise ValueError(f"{name} is {array.min()}: it must be at least {low}")
    return array.astype(float)[()]


def _size(name, value, low):
    """`value` as floats of at least `low`, none of them nan, or ValueError: sizes of samples, which may be infinite."""
    sizes = _numeric(name, value, low)
    if np.isnan(sizes).any():
        raise ValueError(f"{name} is {value!r}: it must be at least {low}")
    return sizes


def half_width(se, count=np.inf):
    """Half a 95 % interval: the standard error times Student's quantile for a sample of `count` values.

    Without a count the error is taken as known, and the quantile is the normal one, 1.96.  An error of nan gives nan.

    Raises
    ------
    ValueError
        For a negative error, a count below 2, or what is no number.

    Examples
    --------
    >>> half_width(1.0).round(3), half_width(1.0, 5).round(3)
    (np.float64(1.96), np.float64(2.776))
    """
    return stdtrit(_size("count", count, 2) - 1, .975) * _numeric("se", se, 0)


def upper_limit(mean, se, df=np.inf):
    """One-sided 95 % upper limit of a mean whose standard error rests on `df` degrees of freedom (Student).

    A mean or an error of nan gives nan.

    Raises
    ------
    ValueError
        For a negative error, no positive number of degrees of freedom, or what is no number.

    Examples
    --------
    >>> upper_limit(0.0, 1.0).round(3), upper_limit(0.0, 1.0, 3).round(3)
    (np.float64(1.645), np.float64(2.353))
    """
    df = _size("df", df, 0)
    if not df > 0:
        raise ValueError(f"df is {df}: it must be positive")
    return _numeric("mean", mean) + stdtrit(df, .95) * _numeric("se", se, 0)


def rounded_up(value, digits):
    """The least number of `digits` decimals that is not below `value`: how an upper bound is printed.

    What is rounded is the shortest decimal number that stands for the float, so that .07 stays .07; nan and infinities stay too.

    Parameters
    ----------
    value : array-like (...)
    digits : int
        From 0 to 15.

    Returns
    -------
    float or ndarray (...)

    Raises
    ------
    ValueError
        For what is no number, or another number of decimals.

    Examples
    --------
    >>> rounded_up(.12301, 3), rounded_up(.07, 2), rounded_up(-.129, 2)
    (np.float64(0.124), np.float64(0.07), np.float64(-0.12))
    """
    last, exact = Decimal(1).scaleb(-as_count("digits", digits, 0, 15)), Context(prec=400, rounding=ROUND_CEILING)

    def one(number):
        return float(Decimal(repr(float(number))).quantize(last, context=exact)) + 0.0 if np.isfinite(number) else number

    return np.vectorize(one, otypes=[float])(_numeric("value", value))[()]


def rounded_down(value, digits):
    """The greatest number of `digits` decimals that is not above `value`: how a lower bound is printed (see `rounded_up`).

    Raises
    ------
    ValueError
        As `rounded_up`.

    Examples
    --------
    >>> rounded_down(.12399, 3)
    np.float64(0.123)
    """
    return -rounded_up(-_numeric("value", value), digits) + 0.0


def betting_limit(values, most, level=.95):
    """An upper limit of the mean of bounded values that holds in at least `level` of samples, of any size and of any law.

    A gambler with capital 1 bets at each value, knowing those before it, that it falls below m: the stake is lost in proportion to
    value - m.  If the mean is m or more the game is fair or worse, and the capital exceeds 1 / (1 - level) at its end with
    probability 1 - level at most (Markov).  The limit is the least m at which it does (Waudby-Smith and Ramdas 2024, section 4).

    Parameters
    ----------
    values : array-like (n,)
        At least one.  Independent draws of one law, each from 0 to `most`, in the order in which they were drawn.
    most : float
        Positive.
    level : float

    Returns
    -------
    float
        At most `most`.

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.

    Examples
    --------
    >>> round(betting_limit(np.tile([0.0, 1.0], 500), 1.0), 2), betting_limit([0.5], 1.0)
    (0.54, 1.0)
    """
    most, level = as_scalar("most", most, 0), as_scalar("level", level, 0, 1)
    values = as_floats("values", as_numbers("values", values), 1) / most
    if values.min() < 0 or values.max() > 1:
        raise ValueError(f"values must lie between 0 and most = {most}, got {values.min() * most} to {values.max() * most}")
    before = np.arange(1, len(values) + 1)                      # of a value: those before it, and one of 1/2
    mean = (.5 + np.append(0, np.cumsum(values)[:-1])) / before
    spread = (.25 + np.append(0, np.cumsum((values - mean)**2)[:-1])) / before
    stake, aim = np.minimum(np.sqrt(-2 * np.log(1 - level) / (spread * len(values))), STAKE), -np.log(1 - level)
    low, high = 0.0, 1.0
    for _ in range(50):
        m = (low + high) / 2
        low, high = (low, m) if np.log1p(stake * (m - values)).sum() >= aim else (m, high)
    return float(high * most) if high < 1 else most


def degrees_of_freedom(variances, dfs):
    """Degrees of freedom of a sum of independent variance estimates (Welch 1947, Satterthwaite 1946).

    Examples
    --------
    >>> degrees_of_freedom([1., 1.], [4, 4]), degrees_of_freedom([1., 0.], [4, 9])
    (np.float64(8.0), np.float64(4.0))
    """
    variances, dfs = as_numbers("variances", variances), _size("dfs", dfs, 1)
    if (variances < 0).any():
        raise ValueError(f"variances holds {variances.min()}: a variance is nonnegative")
    if not variances.any():
        return np.float64(np.inf)
    shares = variances / variances.max()                # whose squares do not vanish in floating point
    return shares.sum()**2 / (shares**2 / dfs).sum()


def interval(mean, se, sign="", count=np.inf):
    """A number and half its 95 % interval, to two digits of the latter; with `sign` "+" a sign always.

    `count` is the size of the sample behind the error, and errors are refused, as for `half_width`.

    Examples
    --------
    >>> interval(0.52361, 0.0055), interval(523.61, 55, "+"), interval(0.0, 0.0), interval(1.0, 0.1, count=3)
    ('0.524 ± 0.011', '+520 ± 110', '0', '1.00 ± 0.43')
    """
    mean, half = _numeric("mean", mean), half_width(se, count)
    as_choice("sign", sign, ("", "+", "-", " "))
    if not half > 0:
        return f"{mean:{sign}.4g}"
    digits = 1 - int(np.floor(np.log10(half)))
    return f"{round(mean, digits):{sign}.{max(digits, 0)}f} ± {round(half, digits):.{max(digits, 0)}f}"


def controlled(values, controls):
    """The mean of values (n,) sharpened by controls (n,) of mean zero: regression estimate and standard error.

    The estimate is the intercept of the regression of values on controls.  That its slope is fitted on the same sample
    costs a bias of order 1/n, far below the error, and adds to the error what the intercept's formula counts.

    Raises
    ------
    ValueError
        When there are fewer than three values, or not as many controls, or one is no finite number.

    Examples
    --------
    >>> controlled(np.array([1., 2., 3.]), np.array([-1., 0., 1.]))
    Estimate(mean=2.0, se=0.0)
    """
    values, controls = as_numbers("values", values), as_numbers("controls", controls)
    if values.shape != controls.shape or values.ndim != 1 or len(values) < 3:
        raise ValueError(f"values and controls have shapes {values.shape} and {controls.shape}: they must be equally many, "
                         "at least 3")
    spread = controls - controls.mean()
    square = spread @ spread
    slope = spread @ values / square if square > 0 else 0.0
    rest = values - slope * controls
    lever = 1 / len(rest) + (controls.mean()**2 / square if square > 0 else 0.0)
    return Estimate(float(rest.mean()), float(rest.std(ddof=2) * np.sqrt(lever)))


def controlled_rows(values, controls, reference=None):
    """`controlled` for each row of values and controls (P, n), or for its difference to row `reference`, paired.

    Returns
    -------
    Estimate of two (P,) arrays

    Raises
    ------
    ValueError
        As `controlled`, or for a reference that is no row.

    Examples
    --------
    >>> values = np.array([[1., 2., 3.], [2., 3., 4.]])
    >>> controlled_rows(values, values - 2, 0).mean
    array([0., 1.])
    """
    values, controls = as_floats("values", values, 2), as_floats("controls", controls, 2)
    if values.shape != controls.shape:
        raise ValueError(f"values and controls have shapes {values.shape} and {controls.shape}: they must be equally many")
    if reference is not None:
        reference = as_count("reference", reference, 0, len(values) - 1)
        values, controls = values - values[reference], controls - controls[reference]
    return Estimate(*np.transpose([controlled(*row) for row in zip(values, controls)]))
