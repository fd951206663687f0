"""Pictures that explain the model, the dynamic program and the policies' decisions.
"""
import textwrap

import matplotlib as mpl
from matplotlib.patches import Ellipse
import numpy as np

from lib.figures.style import (BLACK, BLUE, BOUND, GREEN, GREY, MAP, ORANGE, PINK, RED, SHADE, SKY, as_text, canvas, mark,
                               styled, wide)


def surface(net_mean, sd, values, label):
    """Filled contours over net mean (n,) and standard deviation (m,) of the belief, values (m, n)."""
    figure, ((axes,),) = canvas()
    colours = axes.contourf(net_mean, sd, values, 24, cmap=MAP)
    lines = mpl.ticker.MaxNLocator(8).tick_values(values.min(), values.max())
    lines = lines[lines > values.min() + .01 * np.ptp(values)]     # none around a plain, where it would be ragged
    axes.clabel(axes.contour(net_mean, sd, values, lines, colors="white", linewidths=.6), fontsize=7, fmt="%.3g")
    figure.colorbar(colours, label=label)
    axes.set(xlabel="mean $-$ cost", ylabel="standard deviation of the belief")
    axes.grid(False)
    return figure


def with_boundary(figure, sd, boundary):
    """`figure` of a surface with the net means (m,) where forwarding begins."""
    axes = figure.axes[0]
    axes.plot(boundary, sd, color=RED, linewidth=2)
    for name, at, side in (("forward", .97, "right"), ("discard", .03, "left")):
        axes.annotate(name, (at, .5), xycoords="axes fraction", ha=side, color="white", weight="bold")
    return figure


@styled
def value_surface(net_mean, sd, value, boundary=None):
    """Value of the single-feature problem, (m, n), and where forwarding begins, boundary (m,) net means."""
    figure = surface(net_mean, sd, value, "value")
    return figure if boundary is None else with_boundary(figure, sd, boundary)


@styled
def benefit_map(net_mean, sd, benefit, boundary=None):
    """Exploration benefit over net mean (n,) and standard deviation (m,) of the belief, (m, n); boundary (m,) as above."""
    figure = surface(net_mean, sd, benefit, "exploration benefit")
    return figure if boundary is None else with_boundary(figure, sd, boundary)


@styled
def forwarding_boundary(sd, boundaries, ylabel="break-even mean − cost"):
    """Lowest net mean at which an item is forwarded, over the standard deviation of the belief; {name: (n,)}."""
    figure, ((axes,),) = canvas()
    right = np.argmax(sd)
    for position, (name, line) in enumerate(boundaries.items()):
        colour = (BLUE, RED, ORANGE, GREEN, PINK, SKY)[position % 6]
        axes.plot(sd, line, color=colour)
        axes.annotate(name, (sd[right], line[right]), (6, 0), textcoords="offset points", color=colour, va="center", fontsize=9)
    axes.axhline(0, color=BLACK, linewidth=.8)
    axes.set(xlabel="standard deviation of the belief", ylabel=ylabel)
    return figure


@styled
def belief_ellipses(beliefs, theta=None, items=()):
    """Beliefs on two features: a list of (label, mu (2,), Sigma (2, 2)), 95 % ellipses darkening with time.

    `theta` (2,) is the truth, `items` (m, 2) are drawn as arrows of the directions in which feedback informs.
    """
    figure, ((axes,),) = canvas(width=5.5, height=5)
    for step, (label, mu, Sigma) in enumerate(beliefs):
        colour = mpl.colormaps["viridis_r"](.25 + .75 * step / max(len(beliefs) - 1, 1))
        lengths, directions = np.linalg.eigh(Sigma)
        width, height = 2 * np.sqrt(5.991 * np.maximum(lengths, 0))          # 95 % of chi-squared, 2 degrees of freedom
        angle = np.degrees(np.arctan2(directions[1, 0], directions[0, 0]))
        axes.add_patch(Ellipse(mu, width, height, angle=angle, fill=False, edgecolor=colour, linewidth=2))
        axes.plot(*mu, "o", color=colour, label=label)
    for x in items:
        axes.annotate("", beliefs[0][1] + np.asarray(x), beliefs[0][1], arrowprops={"arrowstyle": "->", "color": GREY})
    if theta is not None:
        axes.plot(*theta, "*", color=RED, markersize=13)
        axes.annotate(r"$\theta$", theta, (7, -10), textcoords="offset points", color=RED)
    axes.set(xlabel=r"$\theta_1$", ylabel=r"$\theta_2$", aspect="equal")
    axes.autoscale_view()
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return figure


@styled
def width_against_work(series, xlabel="seconds", ylabel="relative width of the bracket"):
    """Lines on logarithmic axes, {name: (x (n,), y (n,))}, each with its least-squares slope beside it."""
    figure, ((axes,),) = canvas()
    for position, (name, (x, y)) in enumerate(series.items()):
        colour = (BLUE, RED, GREEN, ORANGE, PINK, SKY, BLACK)[position % 7]
        slope = np.polyfit(np.log(x), np.log(y), 1)[0]
        axes.loglog(x, y, color=colour, marker="osD^vPX"[position % 7])
        axes.annotate(f"{name}, slope {slope:.2f}", (x[-1], y[-1]), (6, 0), textcoords="offset points", color=colour,
                      va="center", fontsize=9, annotation_clip=False)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    return figure


@styled
def envelopes(x, bands, xlabel="net mean m", ylabel="bound minus value"):
    """Distances of bounds from the value over x (n,), {name: (lower (n,) below zero, upper (n,) above)}."""
    figure, ((axes,),) = canvas()
    for position, (name, (low, high)) in enumerate(bands.items()):
        colour = (SKY, BLUE, ORANGE, RED, GREEN, PINK)[position % 6]
        axes.plot(x, high, color=colour, label=name)
        axes.plot(x, low, color=colour)
        axes.fill_between(x, low, high, color=colour, alpha=SHADE, linewidth=0)
    axes.axhline(0, color=BLACK, linewidth=.8)
    axes.legend(title="upper above, lower below")
    axes.set(xlabel=xlabel, ylabel=ylabel)
    return figure


@styled
def laws(x, curves, nodes, chords, calls):
    """What a sweep puts in the place of a convex value and of a normal step.

    Over x (n,): curves, the value and the step's call prices; at nodes (m,): chords of the value, and {name: call prices} of laws
    on the lattice.
    """
    figure, ((left, right),) = canvas(columns=2, width=9.5)
    left.plot(x, curves[0], color=BLACK, label="value")
    left.plot(nodes, chords, "o-", color=ORANGE, markersize=4, label="chords between nodes")
    right.plot(x, curves[1], color=BLACK, label="normal step")
    for (name, prices), colour in zip(calls.items(), (ORANGE, BLUE)):
        right.plot(nodes, prices, "o-", color=colour, markersize=4, label=name)
    left.set(xlabel="mean", ylabel="value")
    right.set(xlabel="a", ylabel="E (X - a)^+")
    for axes in (left, right):
        axes.legend()
    return figure


@styled
def survival(n, shares, law):
    """Simulated shares of users who see at least n items, (m,) points, and the law's, a line; logarithmic scale."""
    figure, ((axes,),) = canvas(height=3.4)
    axes.semilogy(n, law, color=BLACK, linewidth=1.2)
    axes.semilogy(n, np.where(shares > 0, shares, np.nan), "o", color=BLUE)
    axes.annotate(r"$\gamma^n$", (n[-1], law[-1]), (6, 0), textcoords="offset points", va="center")
    axes.set(xlabel="number of items n", ylabel="share who see at least n")
    return figure


@styled
def convergence(draws, means, halves, lower, upper):
    """Estimates with 95 % half-widths, (m,) each, over the number of draws, and the bracket they converge to."""
    figure, ((axes,),) = canvas(height=3.4)
    axes.axhspan(lower, upper, color=GREY, alpha=.5, linewidth=0)
    axes.axhline(upper, **BOUND)
    axes.errorbar(draws, means, halves, fmt="o", color=BLUE, capsize=3)
    axes.annotate("bracket", (1.01, upper), xycoords=("axes fraction", "data"), va="center", fontsize=9)
    axes.set(xscale="log", xlabel="draws", ylabel="upper bound")
    return figure


@styled
def projection_laws(laws, names):
    """For each item, the probabilities of the magnitudes that coming items project onto it; a tick marks the mean.

    Parameters
    ----------
    laws : sequence of (magnitudes (m,), probs (m,))
    names : sequence of str

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, grid = canvas(len(laws), width=1.9 * len(laws), height=2.8, sharex=True, sharey=True)
    names, text = as_text(names, 20)
    for axes, (x, p), name in zip(grid[0], laws, names):
        axes.vlines(x, 0, p, color=BLUE, linewidth=4)
        axes.plot(x @ p, 0, "^", color=RED, markersize=9, clip_on=False, zorder=5)
        axes.annotate(f"M = {x @ p:.2f}", (.97, .97), xycoords="axes fraction", ha="right", va="top", color=RED, fontsize=9)
        axes.set_xlabel(name, **text)
        axes.set(ylim=(0, 1.02), xlim=(-.08, max(x.max() for x, _ in laws) + .08))
    grid[0, 0].set_ylabel("probability")
    return figure


@styled
def decision_strip(items, names, decisions):
    """What each policy forwards of one stream: a marker where it does, a dot where it does not.

    Parameters
    ----------
    items : array of int (m,)
        Kind of each item in the order of arrival.
    names : sequence of str
        Names of the kinds.
    decisions : dict
        Policy: bool (m,).

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, ((axes,),) = canvas(height=1.1 + .36 * len(decisions))
    place, (names, text) = np.arange(1, len(items) + 1), as_text(names)
    for at, kind in zip(place, items):
        axes.annotate(names[kind], (at, -1), ha="center", va="center", fontsize=8, annotation_clip=False, **text)
    for row, (policy, forwarded) in enumerate(decisions.items()):
        colour, marker = mark(policy, row)
        axes.plot(place, np.full(len(place), row), ".", color="#C8C8C8", markersize=3)
        axes.plot(place[forwarded], np.full(forwarded.sum(), row), marker, color=colour, markersize=7)
    axes.set_yticks(range(-1, len(decisions)), ["item", *decisions])
    axes.set(xlabel="item number", ylim=(len(decisions) - .5, -1.5), xlim=(0, len(items) + 1))
    axes.grid(False)
    return figure


@wide
def floors(floor, direct, modules):
    """A package's parts on their floors, as boxes with their modules, and arrows to what they import.

    Parameters
    ----------
    floor : dict
        Part: its floor, from 1 up.
    direct : dict
        Part: the parts that it has an arrow to.
    modules : dict
        Part: names of its modules, none for a part that is one itself.

    Returns
    -------
    matplotlib.figure.Figure
    """
    top, place = max(floor.values()), {}
    words = {part: textwrap.fill(", ".join(modules[part]), 26, break_on_hyphens=False) for part in floor}
    figure, ((axes,),) = canvas(width=9.5, height=1.05 * top)
    for level in range(top, 0, -1):                     # a part stands below those that import it, as far as there is room
        above = {part: [place[other][0] for other in place if part in direct[other]] or [.5]
                 for part in floor if floor[part] == level}
        row = sorted(above, key=lambda part: (np.mean(above[part]), part))
        room = np.array([max(map(len, [part * 2, *words[part].splitlines()])) + 4 for part in row])
        middle = (np.cumsum(room) - room / 2) / max(room.sum(), 90)
        place |= {part: (x + .5 - (middle[0] + middle[-1]) / 2, level) for part, x in zip(row, middle)}
    for part, (x, y) in place.items():
        for other in direct[part]:
            axes.annotate("", (place[other][0], place[other][1] + .33), (x, y - .2),
                          arrowprops={"arrowstyle": "-|>", "color": GREY, "lw": .8})
        card = {"boxstyle": "round,pad=.5", "facecolor": "#F4F6F8", "edgecolor": GREY, "linewidth": .8}
        axes.text(x, y, "\n\n" + words[part] if words[part] else " " * 3 * len(part), ha="center", va="center", fontsize=7, bbox=card,
                  zorder=4, linespacing=1.15)
        lines = words[part].count("\n") + 1 if words[part] else 0
        axes.text(x, y + .055 * lines + (.06 if lines else 0), part, ha="center", va="center", weight="bold", fontsize=10, color=BLUE, zorder=5)
    axes.set(xlim=(0, 1), ylim=(.5, top + .5))
    axes.set_axis_off()
    return figure
