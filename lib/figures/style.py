"""Colours, markers and labels that every picture shares.

One colour and one marker belong to a policy in the whole book, and the upper bound is always the same dashed black
line.  Figures have a white card of their own, so that they read the same in a light and in a dark page, and no
titles: captions carry them.
"""
from functools import wraps

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from lib.marks import BLACK, BLUE, GREEN, MARKS, ORANGE, PINK, RED, SKY, YELLOW  # noqa: F401

GREY = "#7A7A7A"
OTHERS = ((GREY, "X"), (SKY, "h"), (GREEN, "<"), (PINK, ">"), (ORANGE, "p"))
BOUND = {"color": BLACK, "linestyle": (0, (5, 2)), "linewidth": 1.8, "zorder": 3}
STYLE = {
    "figure.facecolor": "white", "axes.facecolor": "white", "savefig.facecolor": "white", "figure.dpi": 150,
    "font.size": 10, "axes.labelsize": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.color": "#E5E5E5", "grid.linewidth": .7, "axes.axisbelow": True, "lines.linewidth": 1.6,
    "lines.markersize": 5, "legend.frameon": False, "xtick.labelsize": 9, "ytick.labelsize": 9, "svg.hashsalt": "book"}
MAP = "cividis"                                             # the same to every kind of colour vision


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
