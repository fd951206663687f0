"""When two printed outputs are the same: the words alike, every number alike to DIGITS significant digits.

The last digits of a sum depend on the order in which a processor adds; a reference that held them to the sixteenth
would fail on another machine for no reason.  Numbers of fewer digits must agree as printed.
"""
import re

DIGITS = 6
ZERO = 1e-12            # what is smaller on both sides is rounding noise around 0
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w])")


def close(a, b):
    """Whether two numbers differ by at most half a unit in the sixth significant digit of the larger.

    Examples
    --------
    >>> close(1.234567, 1.2345674), close(1.23456, 1.23457), close(2e-17, -1e-15)
    (True, False, True)
    """
    size = max(abs(a), abs(b))
    return a == b or size < ZERO or abs(a - b) <= 0.5 * 10.0 ** (int(f"{size:e}".split("e")[1]) - DIGITS + 1)


def split(text):
    """The words of a text, spaces between them aside, and its numbers."""
    return NUMBER.sub("#", text).split(), [float(number.replace(",", "")) for number in NUMBER.findall(text)]


def same(a, b):
    """Whether two texts hold the same words and, to six significant digits, the same numbers.

    Examples
    --------
    >>> same("gap 0.123456789 at 3", "gap 0.12345679 at  3"), same("gap 0.12345 at 3", "gap 0.12346 at 3"), same("1 item", "1 row")
    (True, False, False)
    """
    (words, numbers), (others, rivals) = split(a), split(b)
    return a == b or words == others and len(numbers) == len(rivals) and all(map(close, numbers, rivals))


class Printed(str):
    """A text that equals another where `same` says so."""

    __hash__ = str.__hash__

    def __eq__(self, other):
        return isinstance(other, str) and same(str(self), str(other))

    def __ne__(self, other):
        return not self == other
