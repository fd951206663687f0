"""Pictures for a narrow screen: the same call draws its panels below one another, in letters that a phone can show.

A notebook shows a figure as a PNG.  The narrow version lies inside that PNG, in a chunk of its own, which programs that do not know
it pass over; `_ext/narrow.py` takes it out and the pages show it on a phone.
"""
from binascii import b2a_base64
from contextlib import contextmanager
from contextvars import ContextVar
import struct
import sys
import zlib

import matplotlib as mpl
from matplotlib.figure import Figure

WIDTH = 3.9                             # inches, shown in 358 of the 390 pixels of a phone
LEAST = 7.6                             # points, at least 9 pixels there
CHUNK, END = b"naRw", 12                # ancillary, private, safe to copy (PNG specification, 5.4); bytes of the last chunk
NARROW = ContextVar("narrow", default=False)


class Picture(Figure):
    """A figure that can be drawn once more for a narrow screen: `redraw` is the call that drew it, or None."""

    redraw = None

    def __repr__(self):
        """As any figure: what a notebook prints of it."""
        return super().__repr__().replace("Picture", "Figure", 1)


@contextmanager
def narrowed():
    """What is drawn within is drawn for a narrow screen."""
    token = NARROW.set(True)
    try:
        yield
    finally:
        NARROW.reset(token)


def across(count):
    """How many of `count` entries of a legend stand beside one another: all, or two on a narrow screen.

    Examples
    --------
    >>> across(5)
    5
    >>> with narrowed():
    ...     across(5)
    2
    """
    return min(count, 2) if NARROW.get() else count


def letters(figure):
    """Sizes in points of the letters that `figure` shows, and their texts."""
    return [(text.get_fontsize(), text) for text in figure.findobj(mpl.text.Text) if text.get_text().strip() and text.get_visible()]


def readable(figure):
    """`figure` with every letter at LEAST points or more, and room for names that stand beside its axes."""
    for size, text in letters(figure):
        if size < LEAST:
            text.set_fontsize(LEAST)
    figure.draw_without_rendering()
    box = figure.get_tightbbox()                        # inches
    left, right = max(-box.x0, 0) / WIDTH, max(box.x1 - WIDTH, 0) / WIDTH
    if .01 < left + right < .6:
        figure.get_layout_engine().set(rect=(left, 0, 1 - left - right, 1))
    return figure


def joined(wide, small):
    """The PNG `wide` with the PNG `small` inside it, before the end, which every PNG's last twelve bytes say.

    Examples
    --------
    >>> empty = b"\\x89PNG\\r\\n\\x1a\\n" + bytes(4) + b"IEND" + bytes.fromhex("ae426082")
    >>> joined(empty, b"small")[8:-16]
    b'\\x00\\x00\\x00\\x05naRwsmall'
    """
    chunk = struct.pack(">I", len(small)) + CHUNK + small + struct.pack(">I", zlib.crc32(CHUNK + small))
    return wide[:-END] + chunk + wide[-END:]


def shown(figure):
    """The PNG of `figure` as notebooks draw it, the narrow version inside; both say the size of their smallest letter in pixels."""
    from IPython.core.pylabtools import print_figure

    def printed(figure):
        least = min((size for size, _ in letters(figure)), default=LEAST) * figure.dpi / 72
        return print_figure(figure, "png", bbox_inches="tight", metadata={"Letter": f"{least:.2f}"})

    png = printed(figure)
    if figure.redraw is not None and png:
        with narrowed():
            png = joined(png, printed(figure.redraw()))
    return png and b2a_base64(png, newline=False).decode()


def tell_notebook():
    """Where a notebook runs, it shows every Picture by `shown`."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None and hasattr(shell, "display_formatter"):
        shell.display_formatter.formatters["image/png"].for_type(Picture, shown)
