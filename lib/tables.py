"""Tables of the book: frames written out once, as text that is compared and as HTML that is read.

One convention for all of them.  A number has a fixed number of decimals; a number with its standard error is shown as
value ± half a 95 % interval, 1.96 standard errors, and its head says so; a column of standard errors is headed "s.e.".
What is missing is a dash.  The first column, or the frame's own index, names the row.
"""
from html import escape
from numbers import Integral, Real
import re
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri

QUANTILE = float(ndtri(.975))       # 1.96: half a 95 % interval is as many standard errors
DIGITS = 4
MISSING = "–"
NUMBER = re.compile(r"[-+−]?[\d,]*\.?\d+( ± [\d,]*\.?\d+)?")      # written out by the caller
BAND = "± 95 %"                     # what the head of a column of values with their half-widths says


class Tabulated(NamedTuple):
    """A table ready to be shown: a cell of a notebook ends in one, or `display` takes it."""

    heads: tuple        # of str, one a column
    rows: tuple         # of tuples of str
    numeric: tuple      # of bool: the columns of numbers, which stand to the right
    labels: int         # how many of the first columns name the row
    caption: str        # "" for none

    def __repr__(self):
        """The text form: a caption, the heads and the rows, in columns two spaces apart."""
        lines = (self.heads, *self.rows)
        widths = [max(map(len, column)) for column in zip(*lines)]
        text = ["  ".join(cell.rjust(width) if right else cell.ljust(width)
                          for cell, width, right in zip(line, widths, self.numeric)).rstrip() for line in lines]
        return "\n".join(([self.caption] if self.caption else []) + text)

    def _repr_html_(self):
        """A plain table whose heads say whether they name a column or a row."""
        kinds = [' class="number"' if right else "" for right in self.numeric]
        heads = [escape(head).replace(BAND, BAND.replace(" ", "\N{NO-BREAK SPACE}")) for head in self.heads]
        head = "".join(f'<th scope="col"{kind}>{cell}</th>' for kind, cell in zip(kinds, heads))
        body = "\n".join(f"<tr>{''.join(map(self._cell, range(len(row)), kinds, row))}</tr>" for row in self.rows)
        title = f"<caption>{escape(self.caption)}</caption>\n" if self.caption else ""
        return (f'<table class="dataframe">\n{title}<thead>\n<tr>{head}</tr>\n</thead>\n'
                f"<tbody>\n{body}\n</tbody>\n</table>")

    def _cell(self, place, kind, cell):
        """One cell of a row: a head where it names the row."""
        return f'<th scope="row"{kind}>{escape(cell)}</th>' if place < self.labels else f"<td{kind}>{escape(cell)}</td>"

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


def _missing(value):
    """Whether a cell holds nothing."""
    return value is None or value is pd.NA or value is pd.NaT or isinstance(value, Real) and np.isnan(value)


def _written(value, digits):
    """One cell as text; `digits` None: six significant digits, as a cost or a weight is written."""
    if _missing(value):
        return MISSING
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{value:,}"
    if isinstance(value, Real):
        return f"{value:zg}" if digits is None else f"{value:z,.{digits}f}"
    return str(value)


def _banded(value, se, digits):
    """Value ± half-width; where the latter would round to nothing and is something, both have more digits."""
    if _missing(value):
        return MISSING
    if _missing(se):
        return f"{value:z,.{digits}f} ± {MISSING}"
    half = QUANTILE * se
    if 0 < half < .5 * 10.0**-digits:
        digits = min(-int(np.floor(np.log10(half))), 12)
    return f"{value:z,.{digits}f} ± {half:,.{digits}f}"


def _head(name):
    """A column's name in words: parts of a name of several levels set off by commas, "se" as s.e."""
    if isinstance(name, tuple):
        return ", ".join(filter(None, map(_head, name)))
    if name is None:
        return ""
    if isinstance(name, Real) and not isinstance(name, Integral):
        return f"{name:zg}"
    return re.sub(r"\bse\b", "s.e.", str(name).replace("_", " "))


def _known(argument, names, frame):
    """Raise ValueError unless `names` are columns of the frame."""
    there = list(frame.columns)             # of an index of several levels the first level alone is no column
    for name in names:
        if name not in there:
            raise ValueError(f"{argument} names the column {name!r}: there are {', '.join(map(repr, there))}")


def _as_digits(digits, frame):
    """{column: decimals} of every column that has its own, and the number for the others."""
    of = digits if isinstance(digits, dict) else {}
    _known("digits", of, frame)
    for value in of.values() if isinstance(digits, dict) else [digits]:
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral) or not 0 <= value <= 12:
            raise ValueError(f"digits is {digits!r}: numbers of decimals are whole, from 0 to 12")
    return of, DIGITS if isinstance(digits, dict) else int(digits)


def _as_pairs(pairs, frame):
    """The pairs checked: {column of values: column of their standard errors}."""
    if pairs is None:
        return {}
    if not isinstance(pairs, dict):
        raise ValueError(f"pairs is {pairs!r}: it must be a dict from a column of values to that of their standard errors")
    _known("pairs", [*pairs, *pairs.values()], frame)
    if len({*pairs, *pairs.values()}) < 2 * len(pairs):
        raise ValueError(f"pairs is {pairs!r}: a column stands there twice")
    for name in (*pairs, *pairs.values()):
        if not all(_missing(v) or isinstance(v, Real) and not isinstance(v, (bool, np.bool_)) for v in frame[name]):
            raise ValueError(f"pairs names the column {name!r}, which holds what is no number: {frame[name].tolist()!r}")
    for name in pairs.values():
        worst = min((v for v in frame[name] if not _missing(v)), default=0)
        if worst < 0:
            raise ValueError(f"pairs names the column {name!r}, which holds {worst}: a standard error is not negative")
    return pairs


def _as_heads(heads, frame, pairs):
    """The heads checked: {column: its head in words}."""
    if heads is None:
        return {}
    if not isinstance(heads, dict) or not all(isinstance(head, str) for head in heads.values()):
        raise ValueError(f"heads is {heads!r}: it must be a dict from columns to words")
    _known("heads", heads, frame)
    for name in pairs.values():
        if name in heads:
            raise ValueError(f"heads names the column {name!r}, which pairs puts behind the ±")
    return heads


def _as_frame(frame):
    """The frame checked: a table with columns, each of its own name."""
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(f"frame must be a pandas DataFrame, got {frame!r}")
    if not len(frame.columns) or not frame.columns.is_unique:
        raise ValueError(f"frame has the columns {list(frame.columns)!r}: there must be some, no two alike")
    return frame


def _labels(frame):
    """The columns that the frame's index makes: (head, cells as text, whether numbers) for each level."""
    names = list(frame.index.names)
    if names == [None]:                     # the corner names the columns where nothing names the rows
        names = [frame.columns.name if frame.columns.nlevels == 1 else None]
    for level, name in enumerate(names):
        values = frame.index.get_level_values(level).tolist()
        yield _head(name), [str(v) if isinstance(v, Integral) else _written(v, None) for v in values], _numeric(values)


def _numeric(values):
    """Whether a column holds numbers, also written out and with ±, aside from what is missing."""
    there = [v for v in values if not _missing(v)]
    return bool(there) and all(NUMBER.fullmatch(v) if isinstance(v, str) else
                               isinstance(v, Real) and not isinstance(v, (bool, np.bool_)) for v in there)


def tabulate(frame, digits=DIGITS, pairs=None, heads=None, index=True, caption=None):
    """A frame as a table of the book, the same whether it is printed, read on a page or read aloud.

    Parameters
    ----------
    frame : DataFrame (n, m)
        Its columns have names of their own.  Names are shown with spaces for underscores, and "se" as "s.e.".
    digits : int or dict, optional
        Decimals of numbers that are not whole, 0 to 12: one for all, or {column: decimals}, others having 4.
    pairs : dict, optional
        {column of values: column of their standard errors}.  The two become one column, value ± 1.96 standard errors, and
        its head says "± 95 %".
    heads : dict, optional
        {column: its head in words, with the unit}.
    index : bool, optional
        Whether the frame's index names the rows; otherwise the first column does.  Either is written with six
        significant digits, as a cost is, unless `digits` names the column.
    caption : str, optional
        A title, for a table that is not captioned and counted by its cell.

    Returns
    -------
    Tabulated
        Its text form is what the references compare.

    Raises
    ------
    ValueError
        For what is no frame, a column that is not there, decimals that are none, a pair that holds no numbers or a negative
        error, two columns of one name.

    Examples
    --------
    >>> frame = pd.DataFrame({"cost": [.5, 1.0], "mean": [.73806, 0.], "se": [.00204, 0.]})
    >>> tabulate(frame, 3, {"mean": "se"}, {"mean": "reward"}, index=False)
    cost  reward, ± 95 %
     0.5   0.738 ± 0.004
       1   0.000 ± 0.000
    """
    frame = _as_frame(frame)
    of, usual = _as_digits(digits, frame)
    pairs = _as_pairs(pairs, frame)
    heads = _as_heads(heads, frame, pairs)
    if not isinstance(index, (bool, np.bool_)):
        raise ValueError(f"index is {index!r}: it must be True or False")
    if caption is not None and not isinstance(caption, str):
        raise ValueError(f"caption is {caption!r}: it must be a text")
    columns = list(_labels(frame)) if index else []
    labels = max(len(columns), 1)
    for name in (name for name in frame.columns if name not in pairs.values()):
        values, head = frame[name].tolist(), heads.get(name, _head(name))
        places = of.get(name, None if not columns else usual)
        if name in pairs:
            cells = [_banded(*both, of.get(name, usual)) for both in zip(values, frame[pairs[name]].tolist())]
            columns.append((f"{head}, {BAND}", cells, True))
        else:
            columns.append((head, [_written(value, places) for value in values], _numeric(values)))
    titles, cells, numeric = zip(*columns)
    return Tabulated(titles, tuple(zip(*cells)), numeric, labels, caption or "")
