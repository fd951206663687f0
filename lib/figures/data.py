"""Pictures of data: priors side by side, predictions against ratings, residuals, and policies on real ratings.

As in lib.figures, functions take arrays and labels, and captions carry the titles.
"""
import numpy as np

from lib.figures.narrow import NARROW
from lib.figures.style import BLACK, BLUE, BOUND, GREEN, GREY, MAP, ORANGE, RED, as_text, canvas, mark, styled

SERIES = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "^"), (RED, "D"))
TALLEST = 200.0                         # inches


@styled
def priors(names, priors, unit):
    """Mean (marker) and one standard deviation (line) of each preference under several priors.

    Parameters
    ----------
    names : sequence of str (k,)
        Features.
    priors : dict
        Label: (mu (k,), Sigma (k, k)).
    unit : str
        What a preference is measured in, for the axis.

    Returns
    -------
    matplotlib.figure.Figure
    """
    names, text = as_text(names)
    heights = np.array([1 + .5 * name.count("\n") for name in names])
    rows, step = heights.sum() - heights.cumsum() + heights / 2, .5 / len(priors)
    figure, ((axes,),) = canvas(height=min(.9 + .34 * heights.sum(), TALLEST))
    for n, (label, (mu, Sigma)) in enumerate(priors.items()):
        colour, marker = SERIES[n]
        axes.errorbar(mu, rows + .25 - (n + .5) * step, xerr=np.sqrt(np.diag(Sigma)), color=colour, marker=marker,
                      linestyle="", elinewidth=1.3, label=label)
    axes.set_yticks(rows, names, **text)
    axes.set(xlabel=unit, ylim=(0, heights.sum()))
    axes.grid(axis="y", visible=False)
    if len(priors) > 1:
        figure.legend(loc="outside lower center", ncols=1 if NARROW.get() else len(priors), fontsize=9)
    return figure


@styled
def correlations(names, Sigma):
    """Prior correlations of the preferences (k, k); a feature that does not vary has a blank row."""
    sd = np.sqrt(np.diag(Sigma))
    scale = np.where(sd > 0, sd, np.nan)
    names, text = as_text(names)
    figure, ((axes,),) = canvas(width=5.6, height=4.4)
    image = axes.imshow(Sigma / np.outer(scale, scale), cmap=MAP, vmin=-1, vmax=1)
    axes.grid(visible=False)
    axes.set_xticks(range(len(names)), names, rotation=40, ha="right", **text)
    axes.set_yticks(range(len(names)), names, **text)
    figure.colorbar(image, ax=axes, label="prior correlation")
    return figure


@styled
def calibration(tables):
    """Mean rating against mean prediction in bins, bars are 95 % intervals; the line is where both agree.

    Parameters
    ----------
    tables : dict
        Label: ndarray (bins, 3 or more) of mean prediction, mean rating, standard error.
    """
    figure, ((axes,),) = canvas(width=5.4, height=4.4)
    for n, (label, table) in enumerate(tables.items()):
        colour, marker = SERIES[n]
        axes.errorbar(table[:, 0], table[:, 1], 1.96 * table[:, 2], color=colour, marker=marker, label=label, linewidth=1)
    ends = [min(t[:, :2].min() for t in tables.values()), max(t[:, :2].max() for t in tables.values())]
    axes.plot(ends, ends, **BOUND)
    axes.set(xlabel="mean prediction in the bin", ylabel="mean rating in the bin")
    axes.legend(fontsize=9)
    return figure


@styled
def residuals(quantiles, values, groups):
    """Left: standardised residuals against normal quantiles.  Right: residual variance by group, 95 % intervals.

    Parameters
    ----------
    quantiles, values : ndarray (r,)
        As `lib.datasets.normal_quantiles` gives them.
    groups : ndarray (g, 3)
        Number of features, residual variance, standard error.
    """
    figure, ((left, right),) = canvas(2, width=8.6, height=3.8)
    some = np.unique(np.linspace(0, len(values) - 1, 400).astype(int))
    left.plot(quantiles[some], values[some], color=BLUE, marker=".", linestyle="", markersize=4)
    left.plot(quantiles[[0, -1]], quantiles[[0, -1]], **BOUND)
    left.set(xlabel="standard normal quantile", ylabel="standardised residual")
    right.errorbar(groups[:, 0], groups[:, 1], 1.96 * groups[:, 2], color=BLUE, marker="o", linestyle="")
    right.set(xlabel="number of features of the item", ylabel="residual variance", xticks=groups[:, 0], ylim=(0, None))
    return figure


@styled
def differences(rows, xlabel):
    """Differences with 95 % intervals, one line a row, against zero.

    Parameters
    ----------
    rows : sequence of (str, float, float, str)
        Group, difference, standard error, policy; groups are set apart.
    """
    groups = list(dict.fromkeys(group for group, *_ in rows))
    figure, grid = canvas(len(groups), width=4.6 * len(groups), height=1.4 + .3 * len(rows) / len(groups), sharex=True,
                          sharey=True)
    for axes, group in zip(grid[0], groups):
        chosen = [row for row in rows if row[0] == group][::-1]
        for height, (_, mean, se, name) in enumerate(chosen):
            colour, marker = mark(name)
            axes.errorbar(mean, height, xerr=1.96 * se, color=colour, marker=marker)
        axes.axvline(0, color=BLACK, linewidth=.8)
        axes.set_ylim(-.6, len(chosen) - .4)
        axes.set_yticks(range(len(chosen)), [name for *_, name in chosen])
        axes.set_xlabel(xlabel)
        axes.annotate(group, (0, 1.03), xycoords="axes fraction", fontsize=9, color=GREY)
    return figure
