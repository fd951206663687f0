"""Every picture of the book, from arrays and labels; this module imports nothing of lib.

One colour and one marker belong to a policy in the whole book, and the upper bound is always the same dashed black
line.  Figures have a white card of their own, so that they read the same in a light and in a dark page, and no
titles: captions carry them.
"""
from functools import wraps
from typing import NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.patches import Ellipse
import numpy as np

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PINK = (      # Okabe and Ito (2008)
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")
GREY = "#7A7A7A"
MARKS = {"DTD-DP": (BLUE, "o"), "DTD-UCB": (RED, "s"), "UCB": (ORANGE, "^"), "Thompson sampling": (GREEN, "D"),
         "Exploitation": (PINK, "v"), "Knowledge gradient": (SKY, "P"), "DTD-DP, noise of the model": (BLUE, "*")}
OTHERS = ((GREY, "X"), (SKY, "h"), (GREEN, "<"), (PINK, ">"), (ORANGE, "p"))
BOUND = {"color": BLACK, "linestyle": (0, (5, 2)), "linewidth": 1.8, "zorder": 3}
STYLE = {
    "figure.facecolor": "white", "axes.facecolor": "white", "savefig.facecolor": "white", "figure.dpi": 150,
    "font.size": 10, "axes.labelsize": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.color": "#E5E5E5", "grid.linewidth": .7, "axes.axisbelow": True, "lines.linewidth": 1.6,
    "lines.markersize": 5, "legend.frameon": False, "xtick.labelsize": 9, "ytick.labelsize": 9, "svg.hashsalt": "book"}
MAP = "cividis"                                             # the same to every kind of colour vision


class Panel(NamedTuple):
    """One set of axes of a picture over the forwarding cost."""

    costs: np.ndarray           # (n,)
    curves: dict                # policy: (values, lower ends, upper ends), (n,) each
    bound: object = None        # (n,) upper bound, or a pair of a label and (n,)
    label: str = ""             # what tells this panel from the others


def mark(name, position=0):
    """(colour, marker) of a policy: its own in the whole book, whatever follows its name and a comma, or the next of the others."""
    return MARKS.get(name) or MARKS.get(name.split(",")[0]) or OTHERS[position % len(OTHERS)]


def styled(draw):
    """`draw` under the book's style sheet."""
    @wraps(draw)
    def drawn(*arguments, **options):
        with mpl.rc_context(STYLE):
            return draw(*arguments, **options)
    return drawn


def canvas(columns=1, rows=1, width=7.0, height=4.0, **options):
    """A figure that only its caller knows (pyplot would show an open one twice), and its axes, (rows, columns)."""
    figure, axes = plt.subplots(rows, columns, figsize=(width, height), layout="constrained", squeeze=False, **options)
    plt.close(figure)
    return figure, axes


def spread(heights, gap):
    """`heights` moved apart as little as needed for neighbours to be `gap` apart, their order kept."""
    order = np.argsort(heights, kind="stable")
    target = np.asarray(heights, float)[order] - gap * np.arange(len(order))
    blocks = []                                             # pool adjacent violators
    for value in target:
        blocks.append([value, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            value, count = blocks.pop()
            blocks[-1] = [(blocks[-1][0] * blocks[-1][1] + value * count) / (blocks[-1][1] + count), blocks[-1][1] + count]
    placed = np.empty(len(order))
    placed[order] = np.repeat([b[0] for b in blocks], [b[1] for b in blocks]) + gap * np.arange(len(order))
    return placed


def label_ends(axes, ends, gap=.062):
    """Names at the right ends of lines: `ends` holds (x, y, name, colour); thin leaders where they had to move."""
    low, high = axes.get_ylim()
    scale = axes.transData + axes.transAxes.inverted()
    y = np.array([scale.transform((x, y))[1] for x, y, *_ in ends])
    axes.set_ylim(low, high)
    for (x, value, name, colour), at in zip(ends, spread(y, gap)):
        axes.annotate(name, (x, value), (1.04, at), xycoords="data", textcoords="axes fraction", color=colour, va="center",
                      fontsize=9, annotation_clip=False, arrowprops={"arrowstyle": "-", "color": colour, "lw": .6, "shrinkB": 2,
                                                                             "relpos": (0, .5)})


def over_cost(panels, ylabel, replications, sharey=True):
    """Policies over the cost, one set of axes a panel; bands are 95 % intervals."""
    panels = [panels] if isinstance(panels, Panel) else list(panels)
    figure, grid = canvas(len(panels), width=7 if len(panels) == 1 else 9.5, sharey=sharey)
    for n, (axes, panel) in enumerate(zip(grid[0], panels)):
        ends = []
        if panel.bound is not None:
            name, values = panel.bound if isinstance(panel.bound, tuple) else ("upper bound", panel.bound)
            axes.plot(panel.costs, values, **BOUND)
            ends.append((panel.costs[-1], values[-1], name, BLACK))
        for position, (name, (value, low, high)) in enumerate(panel.curves.items()):
            colour, marker = mark(name, position)
            axes.fill_between(panel.costs, low, high, color=colour, alpha=.18, linewidth=0)
            axes.plot(panel.costs, value, color=colour, marker=marker, markersize=4)
            ends.append((panel.costs[-1], value[-1], name, colour))
        axes.set_xlabel("forwarding cost")
        for words, at, side in ((panel.label, 0, "left"), (f"95 % intervals, {replications:,} replications", 1, "right")):
            axes.annotate(words, (at, 1.02), xycoords="axes fraction", ha=side, fontsize=8, color="#444444")
        if n == len(panels) - 1:
            label_ends(axes, ends)
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
        axes.fill_between(costs, low, high, color=colour, alpha=.25, linewidth=0)
        axes.plot(costs, high, **style)
        ends.append((costs[-1], high[-1], name, colour))
    for position, (name, value) in enumerate((values or {}).items()):
        colour, marker = mark(name, position)
        axes.plot(costs, value, color=colour, marker=marker, markersize=4)
        ends.append((costs[-1], value[-1], name, colour))
    axes.set(xlabel="forwarding cost", ylabel="total discounted reward")
    label_ends(axes, ends)
    return figure


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
def forwarding_boundary(sd, boundaries, ylabel="break-even mean $-$ cost"):
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
        axes.fill_between(x, low, high, color=colour, alpha=.12, linewidth=0)
    axes.axhline(0, color=BLACK, linewidth=.8)
    axes.legend(title="upper above, lower below")
    axes.set(xlabel=xlabel, ylabel=ylabel)
    return figure
