"""Pictures of policies ranked: gains with their errors, and maps of where each wins.

As in lib.figures, functions take arrays and labels, return a figure, and captions carry the titles.
"""
import matplotlib as mpl
import numpy as np

from lib.figures import BLACK, BLUE, GREEN, GREY, MAP, ORANGE, PINK, RED, SKY, YELLOW, canvas, styled

FLOOR = -40.0                           # per cent: anything below is drawn at the edge, with its number


@styled
def gain_dots(names, panels, xlabel="gain of exploration, % of tuned UCB's"):
    """Dots with 95 % intervals, one line a policy, one set of axes a problem.

    Parameters
    ----------
    names : sequence of str (n,)
    panels : dict
        Label: {series: (means (n,), standard errors (n,))}, NaN where a series lacks a policy; at most two series.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, grid = canvas(len(panels), width=9, height=1.1 + .3 * len(names), sharey=True)
    place = np.arange(len(names))
    for axes, (label, series) in zip(grid[0], panels.items()):
        for shift, (name, (means, errors)), face in zip((-.18, .18), series.items(), (BLUE, "white")):
            inside = means >= FLOOR
            axes.errorbar(means[inside], place[inside] + shift, xerr=1.96 * errors[inside], fmt="o", color=BLUE,
                          markerfacecolor=face, label=name, capsize=2, linewidth=1)
            for at in np.flatnonzero(means < FLOOR):
                axes.annotate(f"◂ {means[at]:.0f}", (FLOOR, at + shift), fontsize=7, color=BLUE, va="center")
        axes.axvline(100, color=ORANGE, linewidth=1)
        axes.axvline(0, color=BLACK, linewidth=.8)
        axes.set(xlabel=xlabel, xlim=(FLOOR - 5, 125), ylim=(len(names) - .5, -.5))
        axes.annotate(label, (0, 1.01), xycoords="axes fraction", fontsize=9, weight="bold", va="bottom")
    grid[0, 0].set_yticks(place, names)
    grid[0, -1].legend(loc="lower right", fontsize=8)
    return figure


@styled
def winner_map(x, y, winners, numbers, labels, number_label):
    """Two maps over a grid: who wins, a colour each, and a number in every cell.

    Parameters
    ----------
    x, y : sequence of str (m,), (n,)
        Tick labels.
    winners : array (n, m) of str
        "" where nobody is clearly ahead.
    numbers : array (n, m)
    labels : (str, str)
        Of the two axes.
    number_label : str
    """
    figure, ((left, right),) = canvas(2, width=9.5, height=1.6 + .42 * len(y), sharey=True)
    names = sorted({name for name in winners.flat if name})
    colours = dict(zip(names, (BLUE, ORANGE, GREEN, RED, PINK, SKY, YELLOW, GREY)))
    board = np.array([[mpl.colors.to_rgb(colours.get(name, "#EEEEEE")) for name in row] for row in winners])
    left.imshow(board, aspect="auto", origin="lower")
    image = right.imshow(numbers, aspect="auto", origin="lower", cmap=MAP)
    middle = (np.nanmax(numbers) + np.nanmin(numbers)) / 2
    for (i, j), number in np.ndenumerate(numbers):
        left.text(j, i, winners[i, j], ha="center", va="center", fontsize=7)
        right.text(j, i, f"{number:.3g}", ha="center", va="center", fontsize=8,
                   color=BLACK if number > middle else "white")
    for axes in (left, right):
        axes.set_xticks(range(len(x)), x)
        axes.set_yticks(range(len(y)), y)
        axes.set_xlabel(labels[0])
        axes.grid(False)
    left.set_ylabel(labels[1])
    figure.colorbar(image, ax=right, label=number_label)
    return figure
