"""Colours, markers and labels that every picture shares.

One colour and one marker belong to a policy in the whole book, and the upper bound is always the same dashed black
line.  Figures have a white card of their own, so that they read the same in a light and in a dark page, and no
titles: captions carry them.
"""
from functools import cache, partial, wraps
from importlib.resources import files
import textwrap
import unicodedata

from matplotlib import font_manager
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import isotonic_regression

from lib.figures.narrow import NARROW, WIDTH, Picture, readable, tell_notebook
from lib.marks import BLACK, BLUE, GREEN, MARKS, ORANGE, PINK, RED, SKY, YELLOW  # noqa: F401

GREY = "#7A7A7A"
OTHERS = ((GREY, "X"), (SKY, "h"), (GREEN, "<"), (PINK, ">"), (ORANGE, "p"))
BOUND = {"color": BLACK, "linestyle": (0, (5, 2)), "linewidth": 1.8, "zorder": 3}
STYLE = {
    "figure.facecolor": "white", "axes.facecolor": "white", "savefig.facecolor": "white", "figure.dpi": 150,
    "font.size": 10, "axes.labelsize": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.color": "#E5E5E5", "grid.linewidth": .7, "axes.axisbelow": True, "lines.linewidth": 1.6,
    "lines.markersize": 5, "legend.frameon": False, "xtick.labelsize": 9, "ytick.labelsize": 9, "svg.hashsalt": "book"}
SHADE = .28                                                 # opacity of bands around lines, to be seen in the dark too
MAP = "cividis"                                             # the same to every kind of colour vision
FONT = "DejaVu Sans"                                        # matplotlib's own
OTHER_FONTS = "manimgx_fonts", "noto_cjk_sans_jp_regular"   # packages of Noto fonts, for what it lacks


def mark(name, position=0):
    """(colour, marker) of a policy: its own in the whole book, whatever follows its name and a comma, or the next of the others."""
    return MARKS.get(name) or MARKS.get(name.split(",")[0]) or OTHERS[position % len(OTHERS)]


def styled(draw):
    """`draw` under the book's style sheet; its figure can be drawn once more, for a narrow screen."""
    @wraps(draw)
    def drawn(*arguments, **options):
        with mpl.rc_context(STYLE):
            figure = draw(*arguments, **options)
        if NARROW.get():
            return readable(figure)
        figure.redraw = partial(drawn, *arguments, **options)
        tell_notebook()
        return figure
    return drawn


def wide(draw):
    """`styled` for a picture that cannot be drawn narrow: on a phone it scrolls."""
    @wraps(draw)
    def drawn(*arguments, **options):
        figure = styled(draw)(*arguments, **options)
        figure.redraw = None
        return figure
    return drawn


def canvas(columns=1, rows=1, width=7.0, height=4.0, **options):
    """A figure that only its caller knows (pyplot would show an open one twice), and its axes, (rows, columns).

    On a narrow screen the axes stand below one another, whatever their places in the array.
    """
    down, beside, size = rows, columns, (width, height)
    if NARROW.get():
        down, beside = rows * columns, 1
        size = WIDTH, height * columns * max(.8, min(1, WIDTH * columns / width))
    figure, axes = plt.subplots(down, beside, figsize=size, layout="constrained", squeeze=False, FigureClass=Picture, **options)
    plt.close(figure)
    return figure, axes.reshape(rows, columns)


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


def groups(curves, near):
    """Names of {name: (n,) values} by curves that lie within `near` of the first of their group everywhere, in their order.

    Examples
    --------
    >>> groups({"a": [0, 1], "b": [5, 5], "c": [0, 1.1]}, .2)
    [['a', 'c'], ['b']]
    """
    found = []
    for name, values in curves.items():
        first = next((group for group in found if np.shape(curves[group[0]]) == np.shape(values)
                      and np.abs(np.subtract(curves[group[0]], values)).max() <= near), None)
        found.append([name]) if first is None else first.append(name)
    return found


def label_ends(axes, ends, gap=.062, curves=None):
    """Names at the right ends of lines: `ends` holds (x, y, name, colour); thin leaders where they had to move.

    Of {name: (n,) values} in `curves` those that coincide are named as one, "A, B and C" in three lines with one leader.
    """
    low, high = axes.get_ylim()
    axes.set_ylim(low, high)
    axes.get_figure().draw_without_rendering()          # the axes get their place
    gap = max(gap, .165 * axes.get_figure().dpi / axes.get_window_extent().height)      # inches: 9 points and a little air
    scale = axes.transData + axes.transAxes.inverted()
    of, placed = {name: (x, y, colour) for x, y, name, colour in ends}, []
    for group in groups(curves or {}, .015 * (high - low)) + [[name] for name in of if name not in (curves or {})]:
        last = len(group) - 1
        for n, name in reversed(list(enumerate(group))):        # the first stands highest
            words = name.replace("upper", "the") if n else name
            words += "," if n < last - 1 else " and" if n == last - 1 else ""
            placed.append((*of[group[0]][:2], words, of[name][2], n == last // 2))
    y = np.array([scale.transform((x, y))[1] for x, y, *_ in placed])
    for (x, value, name, colour, leads), at in zip(placed, spread(y, gap)):
        leader = {"arrowstyle": "-", "color": colour, "lw": .6, "shrinkB": 2, "relpos": (0, .5)} if leads else None
        axes.annotate(name, (x, value), (1.04, at), xycoords="data", textcoords="axes fraction", color=colour, va="center",
                      fontsize=9, annotation_clip=False, arrowprops=leader)
