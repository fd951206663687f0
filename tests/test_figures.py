"""Pictures show the numbers that they are given, in one style; the same call gives the same picture."""
import io

import hypothesis.extra.numpy as arrays
from hypothesis import given, strategies as st
import matplotlib as mpl
import numpy as np
import pytest

from lib import figures, policies  # noqa: F401  (policies register their marks)
from lib.figures import Panel, style
from lib.figures.style import BLACK, BOUND, MARKS

COSTS = np.array([0., .5, 1.])
LINE = np.array([3., 2., 1.])
CURVES = {name: (LINE - n, LINE - n - .1, LINE - n + .2) for n, name in enumerate(["DTD-DP", "UCB", "Bayes-UCB"])}
GRID = np.outer([1., 2, 3], [1., 2, 3, 4])
CALLS = {
    "reward": lambda: figures.reward_over_cost(Panel(COSTS, CURVES, LINE + 1), 12345),
    "two": lambda: figures.reward_over_cost([Panel(COSTS, CURVES, LINE + 1, "left"), Panel(COSTS, CURVES)], 9, sharey=False),
    "gap": lambda: figures.gap_over_cost(Panel(COSTS, CURVES), 12345),
    "bounds": lambda: figures.bounds_over_cost(COSTS, {"Theorem 1": (LINE, LINE + .1), "hindsight": LINE + 2}, {"UCB": LINE - 1}),
    "surface": lambda: figures.value_surface(np.arange(4), np.arange(3), GRID, np.array([1., 2, 3])),
    "benefit": lambda: figures.benefit_map(np.arange(4), np.arange(3), GRID),
    "boundary": lambda: figures.forwarding_boundary(COSTS, {"a": LINE, "b": -LINE}),
    "ellipses": lambda: figures.belief_ellipses([("0", np.zeros(2), np.eye(2)), ("1", np.ones(2), np.diag([4., 1]))],
                                                np.ones(2), [[1, 0]]),
    "work": lambda: figures.width_against_work({"ours": (np.array([1., 10, 100]), np.array([1., .1, .01]))}),
    "envelopes": lambda: figures.envelopes(COSTS, {"a": (-LINE, LINE)}),
    "laws": lambda: figures.laws(COSTS, (LINE, -LINE), COSTS, LINE + 1, {"upper law": LINE, "lower law": LINE / 2}),
    "map": lambda: figures.forwarding_map({"UCB": GRID / 12, "DTD-DP, tuned": GRID / 12}, ["x", "y", "z"]),
    "ledger": lambda: figures.ledger_bars(["one", "two"], np.array([1., -1]), np.array([.5, -2]), np.array([2., -.5]),
                                           ["holds", "does not hold"]),
    "gifts": lambda: figures.gift_bars({"a": (COSTS, {"seen": LINE, "own": LINE / 2, "told": LINE / 4}, {"theorem": LINE / 2, "dual": LINE / 3}),
                                        "b": (COSTS, {"seen": LINE}, {"theorem": LINE})}, "full observation"),
}


def png(figure):
    out = io.BytesIO()
    figure.savefig(out, format="png")
    return out.getvalue()


def texts(figure):
    return [t.get_text() for axes in figure.axes for t in axes.texts]


@pytest.mark.parametrize("name", CALLS)
def test_pictures_are_reproducible_cards_without_titles(name):
    before = dict(mpl.rcParams)
    first, again = CALLS[name](), CALLS[name]()
    assert dict(mpl.rcParams) == before
    assert mpl.pyplot.get_fignums() == []                    # an open figure would be shown twice
    assert png(first) == png(again)
    assert mpl.colors.to_hex(first.get_facecolor()) == "#ffffff"
    assert first.get_suptitle() == "" and not any(axes.get_title() for axes in first.axes)


def test_curves_bands_and_bound_are_what_was_given():
    figure = CALLS["reward"]()
    axes, = figure.axes
    drawn = {line.get_color(): line for line in axes.lines}
    for name in ("DTD-DP", "UCB"):
        colour, marker = MARKS[name]
        value, low, high = CURVES[name]
        assert drawn[colour].get_ydata().tolist() == value.tolist() and drawn[colour].get_marker() == marker
        band, = [b for b in axes.collections if mpl.colors.to_hex(b.get_facecolor()[0]) == colour.lower()]
        assert (band.get_paths()[0].vertices[:, 1].min(), band.get_paths()[0].vertices[:, 1].max()) == (low.min(), high.max())
    assert drawn[BLACK].get_ydata().tolist() == (LINE + 1).tolist()
    assert {"DTD-DP", "UCB", "Bayes-UCB", "upper bound", "95 % intervals, 12,345 replications"} <= set(texts(figure))


def test_the_upper_bound_looks_the_same_everywhere():
    for name, level in (("reward", LINE + 1), ("two", LINE + 1), ("bounds", LINE + .1)):
        line, = [each for each in CALLS[name]().axes[0].lines if each.get_ydata().tolist() == level.tolist()]
        assert (line.get_color(), line.get_linewidth()) == (BLACK, BOUND["linewidth"]) and line.is_dashed()


def test_every_policy_has_a_colour_and_marker_of_its_own():
    assert len(set(MARKS.values())) == len(MARKS)
    others = [figures.mark("Somebody", n) for n in range(5)]
    assert len(set(others)) == 5 and not set(others) & set(MARKS.values())


def test_panels_say_what_they_are():
    figure = CALLS["two"]()
    assert len(figure.axes) == 2 and "left" in texts(figure)
    assert figure.axes[0].get_ylabel() == "total discounted reward" and not figure.axes[1].get_ylabel()
    assert [t.get_text() for t in figure.axes[0].texts].count("UCB") == 0       # names stand once, at the right


@given(arrays.arrays(float, st.integers(1, 8), elements=st.floats(-2, 2, width=32)), st.floats(.01, .3))
def test_labels_are_moved_apart_in_order_and_no_more_than_needed(heights, gap):
    placed = style.spread(heights, gap)
    order = np.argsort(heights, kind="stable")
    assert (np.diff(placed[order]) >= gap - 1e-9).all()
    if (np.diff(heights[order]) >= gap).all():
        assert placed == pytest.approx(heights, abs=1e-9)
    assert placed.mean() == pytest.approx(heights.mean(), abs=1e-6)


def test_ellipses_hold_95_percent():
    figure = CALLS["ellipses"]()
    first, second = figure.axes[0].patches
    points = np.random.default_rng(0).standard_normal((20_000, 2))
    inside = ((points / [first.width / 2, first.height / 2]) ** 2).sum(axis=1) <= 1
    assert inside.mean() == pytest.approx(.95, abs=.005)
    longest = np.radians(second.angle) if second.width > second.height else np.radians(second.angle + 90)
    assert abs(np.cos(longest)) == pytest.approx(1)          # the variance is larger along the first axis
    assert max(second.width, second.height) == pytest.approx(2 * first.width)


def test_gifts_are_stacked_as_shares_of_the_first():
    axes = CALLS["gifts"]().axes[0]
    bottoms = [[(bar.get_y(), bar.get_height()) for bar in part] for part in axes.containers]
    assert bottoms == [[(0, 100)] * 3, [(100, 50)] * 3, [(150, 25)] * 3]
    levels = [segment[0][1] for lines in axes.collections for segment in lines.get_segments()]
    assert levels == pytest.approx([50] * 3 + [100 / 3] * 3) and "a" in texts(CALLS["gifts"]())


def test_laws_are_drawn_beside_what_they_replace():
    left, right = CALLS["laws"]().axes
    assert [line.get_ydata().tolist() for line in left.lines] == [LINE.tolist(), (LINE + 1).tolist()]
    assert [line.get_ydata().tolist() for line in right.lines] == [(-LINE).tolist(), LINE.tolist(), (LINE / 2).tolist()]
    labels = [line.get_label() for axes in (left, right) for line in axes.lines]
    assert labels == ["value", "chords between nodes", "normal step", "upper law", "lower law"]


def test_slopes_are_those_of_the_logarithms():
    assert "ours, slope -1.00" in texts(CALLS["work"]())


NAMES = ["$", "$$", "$10-$20", "a_b^c", "\\frac{1}", "100 %", "新闻", "한국어", "أخبار", "חדשות", "हिन्दी", "😀 👨‍👩‍👧", "two\nlines"]
DRAWN = {
    "priors": lambda names: figures.priors(names, {"one": (np.zeros(len(names)), np.eye(len(names)))}, "stars"),
    "correlations": lambda names: figures.correlations(names, np.eye(len(names))),
    "map": lambda names: figures.forwarding_map({"UCB": np.eye(len(names))}, names),
    "strip": lambda names: figures.decision_strip(np.arange(len(names)), names, {"UCB": np.ones(len(names), bool)}),
    "laws": lambda names: figures.projection_laws([(np.ones(1), np.ones(1))] * 2, names[:2])}


@pytest.mark.filterwarnings("error")                        # matplotlib warns of a glyph that it draws as a box
@pytest.mark.parametrize("name", DRAWN)
def test_names_are_text_whatever_they_hold(name):
    figure = DRAWN[name](NAMES)
    png(figure)
    labels = [text for text in figure.findobj(mpl.text.Text) if text.get_text() in NAMES]
    assert {text.get_text() for text in labels} == set(NAMES[:2] if name == "laws" else NAMES)
    assert not any(text.get_parse_math() for text in labels)


@pytest.mark.filterwarnings("error")
def test_a_character_that_no_font_has_is_its_code_point():
    drawn, properties = style.as_text(["\U00013000 or \x07", "plain\tspaces  end "])
    assert drawn == ["U+13000 or U+0007", "plain spaces end"] and properties["fontfamily"][0] == style.FONT
    png(figures.priors(drawn, {"one": (np.zeros(2), np.eye(2))}, "stars"))


def test_long_names_come_in_lines_and_lose_nothing():
    words, solid, wide = "a word and " * 18 + "the end", "x" * 200, "新闻体育" * 50
    for name, width in ((words, 32), (solid, 32), (wide, 16)):
        (drawn,), _ = style.as_text([name])
        assert max(map(len, drawn.split("\n"))) <= width and drawn.replace("\n", " " if name == words else "") == name


@pytest.mark.filterwarnings("error")
def test_long_names_do_not_meet():
    figure = figures.priors(["x" * 200, "short", "y " * 100], {"one": (np.zeros(3), np.eye(3))}, "stars")
    png(figure)
    boxes = [label.get_window_extent() for label in figure.axes[0].get_yticklabels()]
    assert all(above.y0 > below.y1 for above, below in zip(boxes, boxes[1:])) and boxes[0].x0 >= 0


def test_maps_have_a_row_for_each_type_and_a_colour_for_each_policy():
    figure = CALLS["map"]()
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["x", "y", "z"]
    assert figure.axes[0].images[0].get_array().tolist() == (GRID / 12).tolist()
    assert figure.axes[0].images[0].get_clim() == (0, 1)
    assert figure.axes[1].texts[0].get_color() == MARKS["DTD-DP"][0]


def test_a_ledger_words_its_verdicts():
    axes, = CALLS["ledger"]().axes
    assert [bar.get_width() for bar in axes.patches] == [1, -1]
    assert [t.get_text() for t in axes.texts] == ["holds", "does not hold"]
    assert axes.patches[0].get_facecolor() != axes.patches[1].get_facecolor()
