"""The colour and the marker of each policy in every picture, as plain data.

`lib.policies` fills MARKS from its registry and `lib.figures` draws with it; neither needs the other.
"""
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PINK = (      # Okabe and Ito (2008)
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")
MARKS = {}          # name: (colour, matplotlib's marker)


def register(name, colour, marker):
    """Give a policy its colour and marker in the whole book.

    Raises
    ------
    ValueError
        When another name has both.
    """
    for other, pair in MARKS.items():
        if pair == (colour, marker) and other != name:
            raise ValueError(f"{name}: {colour} with {marker!r} is the mark of {other}")
    MARKS[name] = colour, marker
