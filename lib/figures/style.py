"""Colours, markers and labels that every picture shares.

One colour and one marker belong to a policy in the whole book, and the upper bound is always the same dashed black
line.  Figures have a white card of their own, so that they read the same in a light and in a dark page, and no
titles: captions carry them.
"""
from functools import cache, wraps
from importlib.resources import files
import textwrap
import unicodedata

from matplotlib import font_manager
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import isotonic_regression

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
FONT = "DejaVu Sans"                                        # matplotlib's own
OTHER_FONTS = "manimgx_fonts", "noto_cjk_sans_jp_regular"   # packages of Noto fonts, for what it lacks


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


@cache
def other_fonts():
    """Families for the scripts that FONT lacks, made known to matplotlib, and all code points that they and FONT have."""
    paths = sorted((path for package in OTHER_FONTS for path in files(package).iterdir() if path.suffix in (".otf", ".ttf")), key=str)
    for path in paths:
        font_manager.fontManager.addfont(path)
    names = [font_manager.get_font(path).family_name for path in paths]
    found = [*paths, font_manager.findfont(FONT)]
    return tuple(dict.fromkeys(names)), frozenset().union(*(font_manager.get_font(path).get_charmap() for path in found))


def wrapped(name, width):
    """`name` in lines of at most `width` narrow or half as many wide characters; its own line ends stay."""
    lines = []
    for part in name.splitlines():
        wide = sum(unicodedata.east_asian_width(c) in "WF" for c in part)
        lines += textwrap.wrap(part, max(width * len(part) // (len(part) + wide), 1)) if part else []
    return "\n".join(lines)


def as_text(names, width=32):
    """Names as they are to be drawn, and the properties of the text: no mathematics, no boxes, long ones in lines.

    A character that no font has is written as its code point, U+13000.

    Examples
    --------
    >>> as_text(["$10-$20", "a_b"])
    (['$10-$20', 'a_b'], {'parse_math': False})
    """
    properties, usual = {"parse_math": False}, font_manager.get_font(font_manager.findfont(FONT))
    names = ["\n".join(" ".join(line.split()) for line in str(name).splitlines()) for name in names]
    if not all(c == "\n" or usual.get_char_index(ord(c)) for c in "".join(names)):
        families, known = other_fonts()
        properties["fontfamily"] = [FONT, *families]
        names = ["".join(c if ord(c) in known or c == "\n" else f"U+{ord(c):04X}" for c in name) for name in names]
    return [wrapped(name, width) for name in names], properties


def spread(heights, gap):
    """`heights` moved apart as little as needed for neighbours to be `gap` apart, their order kept."""
    order = np.argsort(heights, kind="stable")
    target = np.asarray(heights, float)[order] - gap * np.arange(len(order))
    placed = np.empty(len(order))
    placed[order] = isotonic_regression(target).x + gap * np.arange(len(order))
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
