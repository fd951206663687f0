"""Policies and bounds over the cost or another setting, ranked and mapped.

One colour and one marker belong to a policy in the whole book, and the upper bound is always the same dashed black line.
"""
from typing import NamedTuple

import matplotlib as mpl
import numpy as np

from lib.figures.narrow import NARROW, across
from lib.figures.style import (BLACK, BLUE, BOUND, GREEN, GREY, MAP, ORANGE, PINK, RED, SHADE, SKY, as_text, canvas,
                               label_ends, mark, styled)
from lib.marks import MARKS


class Panel(NamedTuple):
    """One set of axes of a picture over the forwarding cost."""

    costs: np.ndarray           # (n,)
    curves: dict                # policy: (values, lower ends, upper ends), (n,) each
    bound: object = None        # (n,) upper bound, or a pair of a label and (n,)
    label: str = ""             # what tells this panel from the others


def over_cost(panels, ylabel, replications, sharey=True):
    """Policies over the cost, one set of axes a panel; bands are 95 % intervals."""
    panels = [panels] if isinstance(panels, Panel) else list(panels)
    figure, grid = canvas(len(panels), width=7 if len(panels) == 1 else 9.5, sharey=sharey)
    for n, (axes, panel) in enumerate(zip(grid[0], panels)):
        ends, curves, limits = [], {name: value for name, (value, *_) in panel.curves.items()}, {}
        if panel.bound is not None:
            name, values = panel.bound if isinstance(panel.bound, tuple) else ("upper bound", panel.bound)
            axes.plot(panel.costs, values, **BOUND)
            ends.append((panel.costs[-1], values[-1], name, BLACK))
            limits = {name: values}
        for position, (name, (value, low, high)) in enumerate(panel.curves.items()):
            colour, marker = mark(name, position)
            axes.fill_between(panel.costs, low, high, color=colour, alpha=SHADE, linewidth=0)
            axes.plot(panel.costs, value, color=colour, marker=marker, markersize=4)
            ends.append((panel.costs[-1], value[-1], name, colour))
        axes.set_xlabel("forwarding cost")
        note = f"95 % intervals, {replications:,} replications"
        beside = (panel.label, 0, "left"), (note, 1, "right")
        for words, at, side in ((f"{panel.label}\n{note}".strip(), 0, "left"),) if NARROW.get() else beside:
            axes.annotate(words, (at, 1.02), xycoords="axes fraction", ha=side, fontsize=8, color="#444444")
        if n == len(panels) - 1:
            label_ends(axes, ends, curves=curves | limits)
    grid[0, 0].set_ylabel(ylabel)
    return figure


@styled
def reward_over_cost(panels, replications, sharey=True):
    """Total discounted reward over the forwarding cost.

    Parameters
    ----------
    panels : Panel or sequence of Panel
    replications : int
        Users behind each point.
    sharey : bool
        False where one panel enlarges a part of another.

    Returns
    -------
    matplotlib.figure.Figure
    """
    return over_cost(panels, "total discounted reward", replications, sharey=sharey)


@styled
def gap_over_cost(panels, replications):
    """Upper bound minus reward over the forwarding cost; arguments as `reward_over_cost`."""
    figure = over_cost(panels, "optimality gap (bound $-$ reward)", replications)
    for axes in figure.axes:
        axes.axhline(0, color=BLACK, linewidth=.8)
    return figure


@styled
def bounds_over_cost(costs, bounds, values=None):
    """Upper bounds over the cost, each (n,) or a pair (lower, upper) of its bracket, and the policies below them."""
    figure, ((axes,),) = canvas()
    ends = []
    for position, (name, bound) in enumerate(bounds.items()):
        low, high = bound if isinstance(bound, tuple) else (bound, bound)
        colour = (BLACK, GREY, SKY, PINK, ORANGE)[position % 5]
        style = BOUND if position == 0 else {"color": colour, "linestyle": ((0, (1, 1)), "-.", (0, (3, 1, 1, 1)), ":")[position % 4]}
        axes.fill_between(costs, low, high, color=colour, alpha=SHADE, linewidth=0)
        axes.plot(costs, high, **style)
        ends.append((costs[-1], high[-1], name, colour))
    for position, (name, value) in enumerate((values or {}).items()):
        colour, marker = mark(name, position)
        axes.plot(costs, value, color=colour, marker=marker, markersize=4)
        ends.append((costs[-1], value[-1], name, colour))
    axes.set(xlabel="forwarding cost", ylabel="total discounted reward")
    label_ends(axes, ends)
    return figure


@styled
def tuning(alphas, curves, bound=None, label="upper bound"):
    """Reward over alpha on a logarithmic scale, {policy: (means (a,), 95 % half-widths (a,))}, and an upper bound."""
    figure, ((axes,),) = canvas()
    ends = []
    for position, (policy, (means, halves)) in enumerate(curves.items()):
        colour, marker = mark(policy, position)
        axes.fill_between(alphas, means - halves, means + halves, color=colour, alpha=SHADE, linewidth=0)
        axes.semilogx(alphas, means, color=colour, marker=marker)
        ends.append((alphas[-1], means[-1], policy, colour))
    if bound is not None:
        axes.axhline(bound, **BOUND)
        ends.append((alphas[-1], bound, label, BLACK))
    axes.set(xlabel=r"$\alpha$", ylabel="total discounted reward")
    label_ends(axes, ends)
    return figure


@styled
def forwarding_map(rates, types):
    """Share of items forwarded, by type and time: {policy: (types, times)}, one set of axes a policy."""
    figure, grid = canvas(len(rates), width=9.5, height=1.5 + .4 * len(types), sharey=True)
    for axes, (name, rate) in zip(grid[0], rates.items()):
        image = axes.imshow(rate, aspect="auto", cmap=MAP, vmin=0, vmax=1, interpolation="nearest",
                            extent=(.5, rate.shape[1] + .5, len(types) - .5, -.5))
        axes.annotate(name, (0, 1.03), xycoords="axes fraction", color=mark(name)[0], fontsize=8.5,
                      weight="bold")
        axes.set_xlabel("item number")
        axes.grid(False)
    names, text = as_text(types)
    grid[0, 0].set_yticks(range(len(names)), names, **text)
    figure.colorbar(image, ax=grid, label="share forwarded", aspect=12)
    return figure


@styled
def ledger_bars(claims, values, low, high, verdicts, xlabel="ours"):
    """One bar a claim, (n,) values with 95 % intervals, coloured and worded by verdict."""
    names = sorted(set(verdicts))
    colours = dict(zip(names, (BLUE, ORANGE, RED, GREY, GREEN)))
    figure, ((axes,),) = canvas(width=8, height=.8 + .42 * len(claims))
    place = np.arange(len(claims))
    axes.barh(place, values, color=[colours[v] for v in verdicts], alpha=.85)
    axes.errorbar(values, place, xerr=(values - low, high - values), fmt="none", color=BLACK, capsize=2, linewidth=1)
    for at, end, verdict in zip(place, np.maximum(high, 0), verdicts):
        axes.annotate(verdict, (end, at), (5, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(place, claims)
    axes.set(xlabel=xlabel, ylim=(len(claims) - .5, -.5))
    axes.axvline(0, color=BLACK, linewidth=.8)
    return figure


@styled
def gift_bars(panels, unit, xlabel="cost"):
    """Bounds stacked from what they give away, as shares of the first part, with marks for other numbers.

    Parameters
    ----------
    panels : dict
        Label: (names (n,), parts {name: (n,) heights}, marks {name: (n,)}).  Parts are stacked in their order, the first one
        is 100; marks are drawn across the bars.  All panels have the same parts and marks.
    unit : str
        What 100 is, for the vertical axis.
    xlabel : str

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, grid = canvas(len(panels), width=1.6 + 1.8 * len(panels), height=3.8, sharey=True)
    for axes, (label, (names, parts, marks)) in zip(grid[0], panels.items()):
        place, base = np.arange(len(names)), np.zeros(len(names))
        whole = np.asarray(next(iter(parts.values())), float)
        for colour, (name, heights) in zip(("#C8C8C8", ORANGE, SKY, GREEN), parts.items()):
            height = 100 * np.asarray(heights, float) / whole
            axes.bar(place, height, bottom=base, color=colour, width=.72, label=name)
            base = base + height
        for colour, style, (name, heights) in zip((BLACK, RED, BLUE), ("solid", (0, (4, 1)), (0, (1, 1))), marks.items()):
            height = 100 * np.asarray(heights, float) / whole
            axes.hlines(height, place - .42, place + .42, color=colour, linestyle=style, linewidth=2.2, label=name)
        axes.set_xticks(place, [f"{name:g}" for name in names])
        axes.set_xlabel(xlabel)
        axes.annotate(label, (.5, 1.02), xycoords="axes fraction", ha="center", va="bottom")
    grid[0, 0].set_ylabel(f"% of {unit}")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center" if NARROW.get() else "outside right center")
    return figure


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


@styled
def share_dots(names, series, goal):
    """Shares of an upper bound in per cent with their 95 % intervals, one line a case, beside a goal and the whole.

    Parameters
    ----------
    names : sequence of str (n,)
    series : dict
        Label: (shares (n,), standard errors (n,)), NaN where a series lacks a case; at most three.
    goal : float
        In per cent.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, ((axes,),) = canvas(width=7, height=1.1 + .45 * len(names))
    place = np.arange(len(names))
    for shift, (label, (shares, errors)), colour, marker in zip((-.22, 0, .22), series.items(), (SKY, ORANGE, BLACK), "Pos"):
        axes.errorbar(shares, place + shift, xerr=1.96 * errors, fmt=marker, color=colour, label=label, capsize=2, linewidth=1)
    axes.axvline(100, **BOUND)
    axes.axvline(goal, color=GREY, linewidth=1)
    axes.set(xlabel="% of the bound", ylim=(len(names) - .5, -.5))
    axes.set_yticks(place, names)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=across(3), fontsize=9)
    return figure


def tick_labels(places, values):
    """Each of the increasing `values` as text, but "" where its place on the axis is too near to the last that has one.

    Examples
    --------
    >>> tick_labels([0, .01, .02, .2], [0, .01, .02, .2])
    ['0', '', '0.02', '0.2']
    """
    least = (.15 if NARROW.get() else .07) * (places[-1] - places[0])
    texts, last = [], -np.inf
    for place, value in zip(places, values):
        shown = place - last >= least
        texts.append(f"{value:.3g}" if shown else "")
        last = place if shown else last
    return texts


def words_on(colour):
    """Black or white, whichever reads better on a colour (relative luminance, WCAG 2)."""
    red, green, blue = (c / 12.92 if c <= .04045 else ((c + .055) / 1.055) ** 2.4 for c in mpl.colors.to_rgb(colour))
    return BLACK if .2126 * red + .7152 * green + .0722 * blue > .18 else "white"


@styled
def winner_map(x, y, winners, numbers, labels, number_label):
    """Two maps over a grid: who wins, in the colour of the policy, and a number with half its 95 % interval in every cell.

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
        right.text(j, i, f"{value:.3g}\n± {1.96 * errors[i, j]:.2g}", ha="center", va="center", fontsize=7.5,
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
def over_users(users, panels, ylabel, top):
    """Services over the number of the user whom they serve, one set of axes a panel; bands are 95 % intervals.

    Parameters
    ----------
    users : array (n,)
        Numbers of users, the middle of each block.
    panels : dict
        Label: {service: (means (n,), standard errors (n,))}, the same services in all.
    ylabel : str
    top : float
        Where the axis ends.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, grid = canvas(len(panels), width=9.5, height=3.9, sharey=True)
    own = iter(((GREY, "X"), (BLUE, "o"), (GREEN, "D"), (RED, "s"), (BLACK, "p")))
    marks = {name: MARKS.get(name) or next(own) for name in next(iter(panels.values()))}
    for axes, (label, curves) in zip(grid[0], panels.items()):
        for name, (means, errors) in curves.items():
            (colour, marker), half = marks[name], 1.96 * np.asarray(errors)
            axes.fill_between(users, means - half, means + half, color=colour, alpha=SHADE, linewidth=0)
            axes.plot(users, means, color=colour, marker=marker, markersize=4, label=name)
        axes.axhline(0, color=BLACK, linewidth=.8)
        axes.set(xlabel="number of the user", ylim=(-.25, top))
        axes.annotate(label, (0, 1.02), xycoords="axes fraction", fontsize=9, va="bottom")
    grid[0, 0].set_ylabel(ylabel)
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=across(4), fontsize=9)
    return figure


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
    beside = 1 if NARROW.get() else min(columns, len(panels))
    down = -(-len(panels) // beside)
    names = -(-len(panels[0][2]) // across(5))              # lines of the legend, for two of which there is room
    figure, grid = canvas(beside, down, width=9.5 if beside > 1 else 6, height=.6 + 2.4 * down + .45 * max(names - 2, 0), sharey=sharey)
    for axes, (xlabel, x, curves) in zip(grid.flat, panels):
        x = np.asarray(x, dtype=float)
        for position, (name, (means, errors)) in enumerate(curves.items()):
            means, half, style = np.asarray(means), 1.96 * np.asarray(errors), style_of(name, position)
            axes.fill_between(x, means - half, means + half, color=style["color"], alpha=SHADE, linewidth=0)
            axes.plot(x, means, label=name, **style)
        axes.axhline(level, color=BLACK, linewidth=.8)
        if x.min() > 0 and x[-1] >= 8 * x[0]:
            axes.set_xscale("log")
        axes.set_xticks(x, tick_labels(axes.xaxis.get_transform().transform(x), x))
        axes.minorticks_off()
        axes.set_xlabel(xlabel)
    for axes in grid.flat[len(panels):]:
        axes.set_axis_off()
    if len(panels) == 1:
        grid[0, 0].set_ylabel(ylabel)
    else:
        figure.supylabel(ylabel, fontsize=10)
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=across(5), fontsize=9)
    return figure
