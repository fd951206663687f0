"""Pictures of policies ranked: gains with their errors, and maps of where each wins, curves over a setting.

As in lib.figures, functions take arrays and labels, return a figure, and captions carry the titles.
"""
import matplotlib as mpl
import numpy as np

from lib.figures import BLACK, BLUE, BOUND, MAP, ORANGE, canvas, mark, styled

OPEN = "#EEEEEE"                        # the ground where no winner is resolved
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


def words_on(colour):
    """Black or white, whichever reads better on a colour (relative luminance, WCAG 2)."""
    red, green, blue = (c / 12.92 if c <= .04045 else ((c + .055) / 1.055) ** 2.4 for c in mpl.colors.to_rgb(colour))
    return BLACK if .2126 * red + .7152 * green + .0722 * blue > .18 else "white"


@styled
def winner_map(x, y, winners, numbers, labels, number_label):
    """Two maps over a grid: who wins, in the colour of the policy, and a number with its error in every cell.

    Parameters
    ----------
    x, y : sequence (m,), (n,)
        Tick labels; rows of the maps go up.
    winners : array (n, m) of str
        "" where nobody is clearly ahead.
    numbers : pair of array (n, m)
        Values and their standard errors.
    labels : (str, str)
        Of the two axes.
    number_label : str

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, ((left, right),) = canvas(2, width=9.5, height=1.6 + .47 * len(y), sharey=True)
    values, errors = map(np.asarray, numbers)
    colours = [[mark(name)[0] if name else OPEN for name in row] for row in winners]
    left.imshow([[mpl.colors.to_rgb(colour) for colour in row] for row in colours], aspect="auto", origin="lower")
    image = right.imshow(values, aspect="auto", origin="lower", cmap=MAP)
    for (i, j), value in np.ndenumerate(values):
        name = winners[i][j]
        left.text(j, i, name.replace(" ", "\n") or "not\nresolved", ha="center", va="center", fontsize=7.5 if name else 6.5,
                  color=words_on(colours[i][j]) if name else "#555555")
        right.text(j, i, f"{value:.3g}\n± {errors[i, j]:.2g}", ha="center", va="center", fontsize=7.5,
                   color=words_on(image.to_rgba(value)))
    for axes in (left, right):
        axes.set_xticks(range(len(x)), x)
        axes.set_yticks(range(len(y)), y)
        axes.set_xlabel(labels[0])
        axes.grid(False)
    left.set_ylabel(labels[1])
    figure.colorbar(image, ax=right).set_label(number_label, fontsize=9)
    return figure


def style_of(name, position=0):
    """How to draw a curve: a bound as everywhere, a policy in its colour, its variants ("name, ..." or "name (...)") hollow."""
    if "bound" in name:
        return BOUND
    family = name.split(",")[0].split(" (")[0]
    colour, marker = mark(family, position)
    variant = {"linestyle": ":", "markerfacecolor": "white"} if family != name else {}
    return {"color": colour, "marker": marker, "markersize": 4, **variant}


@styled
def slices(panels, ylabel, level=0.0, sharey=True, columns=4):
    """Curves with 95 % intervals over one setting a panel.

    Parameters
    ----------
    panels : sequence of (xlabel, x (m,), {name: (means (m,), standard errors (m,))})
        The scale is logarithmic where all x are positive and the last is at least eight times the first.  A name that
        holds "bound" is drawn as the upper bound is.
    ylabel : str
    level : float
        Where to draw a thin line across.
    sharey : bool
    columns : int
        Panels beside one another.

    Returns
    -------
    matplotlib.figure.Figure
    """
    across = min(columns, len(panels))
    down = -(-len(panels) // across)
    figure, grid = canvas(across, down, width=9.5 if across > 1 else 6, height=.6 + 2.4 * down, sharey=sharey)
    for axes, (xlabel, x, curves) in zip(grid.flat, panels):
        x = np.asarray(x, dtype=float)
        for position, (name, (means, errors)) in enumerate(curves.items()):
            means, half, style = np.asarray(means), 1.96 * np.asarray(errors), style_of(name, position)
            axes.fill_between(x, means - half, means + half, color=style["color"], alpha=.18, linewidth=0)
            axes.plot(x, means, label=name, **style)
        axes.axhline(level, color=BLACK, linewidth=.8)
        if x.min() > 0 and x[-1] >= 8 * x[0]:
            axes.set_xscale("log")
        axes.set_xticks(x, [f"{value:.3g}" for value in x])
        axes.minorticks_off()
        axes.set_xlabel(xlabel)
    for axes in grid.flat[len(panels):]:
        axes.set_axis_off()
    figure.supylabel(ylabel, fontsize=10)
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=9)
    return figure
