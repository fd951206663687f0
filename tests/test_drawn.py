"""What stands in a picture is what was handed in: lines of reference, limits, ends, shared scales, room for every name."""
import io

from bokeh.models import GlyphRenderer, Image, Line, LinearColorMapper
import matplotlib as mpl
import numpy as np
import pytest

from lib import figures, policies  # noqa: F401  (policies register their marks)
from lib.experiments import Rewards, Sheets
from lib.figures import Panel, interactive, rewards, style
from lib.figures.style import BLACK, OTHERS

X = np.array([0., 1., 3.])


def drawn(figure):
    figure.savefig(io.BytesIO(), format="png")              # places what depends on the size of text
    return figure


def apart(labels):
    """Whether texts one above another leave room between them."""
    boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: box.y0)
    return all(low.y1 < high.y0 for low, high in zip(boxes, boxes[1:]))


def test_calibration_has_the_diagonal_over_all_predictions_and_ratings():
    tables = {"one": np.array([[2., 2.5, .1], [4., 3.5, .2]]), "two": np.array([[1.5, 1.8, .1], [3., 3.1, .1], [3.5, 4.4, .1]])}
    axes, = figures.calibration(tables).axes
    line = axes.lines[-1]
    assert list(line.get_xdata()) == list(line.get_ydata()) == [1.5, 4.4]
    for container, table in zip(axes.containers, tables.values()):
        line, _, (bars,) = container
        assert np.column_stack(line.get_data()).tolist() == table[:, :2].tolist()
        half = [(segment[1, 1] - segment[0, 1]) / 2 for segment in bars.get_segments()]
        assert half == pytest.approx(1.96 * table[:, 2])


def test_residuals_stand_against_the_diagonal_from_the_first_quantile_to_the_last():
    quantiles, groups = np.linspace(-2, 2.5, 1001), np.array([[1, .9, .1], [2, 1.1, .2]])
    left, right = figures.residuals(quantiles, 2 * quantiles, groups).axes
    points, line = left.lines
    assert line.get_xdata().tolist() == line.get_ydata().tolist() == [-2, 2.5]
    assert points.get_ydata() == pytest.approx(2 * points.get_xdata()) and 390 < len(points.get_xdata()) <= 400
    assert (points.get_xdata()[0], points.get_xdata()[-1]) == (-2, 2.5)
    assert right.get_ylim()[0] == 0 and right.get_xticks().tolist() == [1, 2]
    (_, _, (bars,)), = right.containers
    assert [np.ptp(segment[:, 1]) / 2 for segment in bars.get_segments()] == pytest.approx(1.96 * groups[:, 2])


def test_priors_fill_the_axes_from_the_first_name_down():
    two = {name: (np.array([1., 2, 3]), np.diag([1., 4, 9]) * n) for n, name in ((1, "one"), (4, "two"))}
    axes, = figures.priors(["a", "b", "c"], two, "stars").axes
    assert axes.get_ylim() == (0, 3) and axes.get_yticks().tolist() == [2.5, 1.5, .5]
    for (line, _, (bars,)), (mu, Sigma), shift in zip(axes.containers, two.values(), (.125, -.125)):
        assert line.get_xdata().tolist() == mu.tolist() and line.get_ydata() == pytest.approx(axes.get_yticks() + shift)
        assert [np.ptp(segment[:, 0]) / 2 for segment in bars.get_segments()] == pytest.approx(np.sqrt(np.diag(Sigma)))


def test_correlations_are_scaled_and_a_feature_without_variance_is_blank():
    axes, bar = figures.correlations(["a", "b", "c"], np.array([[4., 3, 0], [3, 9, 0], [0, 0, 0]])).axes
    image, = axes.images
    assert image.get_clim() == (-1, 1) and bar.get_ylabel() == "prior correlation"
    assert np.ma.filled(image.get_array(), np.nan)[:2, :2] == pytest.approx(np.array([[1, .5], [.5, 1]]))
    assert np.isnan(np.ma.filled(image.get_array().astype(float), np.nan)[2]).all()


@pytest.mark.parametrize("count", [1, 3, 9])
def test_differences_have_a_line_each_and_names_that_do_not_meet(count):
    rows = [(group, mean + n, .5, f"policy {n}") for group, mean in (("left", -1), ("right", 2)) for n in range(count)]
    figure = drawn(figures.differences(rows, "ahead"))
    for axes, group, mean in zip(figure.axes, ("left", "right"), (-1, 2)):
        ends = [bars.get_segments()[0][:, 0] for _, _, (bars,) in axes.containers][::-1]         # the first row is the uppermost
        assert np.array(ends) == pytest.approx(mean + np.arange(count)[:, None] + 1.96 * .5 * np.array([-1, 1]))
        assert axes.get_ylim() == pytest.approx((-.6, count - .4)) and group in [text.get_text() for text in axes.texts]
        zero = axes.lines[-1]
        assert zero.get_xdata() == [0, 0] and zero.get_color() == BLACK
    assert apart(figure.axes[0].get_yticklabels())
    assert figure.axes[0].get_shared_x_axes().joined(*figure.axes) and figure.axes[0].get_xlim() == figure.axes[1].get_xlim()


def test_a_boundary_is_named_at_the_largest_deviation_whatever_the_order():
    for sd in (X, X[::-1]):
        axes, = figures.forwarding_boundary(sd, {"a": 2 * sd, "b": -sd}).axes
        assert [(text.get_text(), text.xy) for text in axes.texts] == [("a", (3, 6)), ("b", (3, -3))]
        assert axes.lines[2].get_ydata() == [0, 0]


def test_maps_of_values_have_the_boundary_and_their_own_scale():
    values = np.outer([1., 2, 3], [1., 2, 3, 4])
    figure = figures.value_surface(np.arange(4.), np.arange(3.), values, np.array([1., 2, 3]))
    axes, bar = figure.axes
    assert axes.lines[0].get_xdata().tolist() == [1, 2, 3] and axes.lines[0].get_ydata().tolist() == [0, 1, 2]
    assert [text.get_text() for text in axes.texts[-2:]] == ["forward", "discard"] and bar.get_ylabel() == "value"
    filled = axes.collections[0]
    assert filled.get_clim()[0] <= 1 and filled.get_clim()[1] >= 12
    levels = [level for level in axes.collections[1].levels]
    assert all(1.11 < level <= 12 for level in levels) and 3 <= len(levels) <= 8


def test_slopes_and_ends_of_lines_on_logarithmic_axes():
    x = np.array([1., 10, 100])
    axes, = figures.width_against_work({"one": (x, x**-2), "two": (x, 3 * x**.5)}).axes
    assert [text.get_text() for text in axes.texts] == ["one, slope -2.00", "two, slope 0.50"]
    assert [text.xy for text in axes.texts] == [(100, 1e-4), (100, 30)] and (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_envelopes_and_survival_and_convergence_hold_what_was_given():
    axes, = figures.envelopes(X, {"a": (-X, 2 * X)}).axes
    assert [line.get_ydata().tolist() for line in axes.lines[:2]] == [[0, 2, 6], [0, -1, -3]] and axes.lines[2].get_ydata() == [0, 0]
    axes, = figures.survival(np.arange(1, 4), np.array([.9, .5, 0]), .9 ** np.arange(1, 4)).axes
    assert axes.get_yscale() == "log" and axes.lines[0].get_ydata() == pytest.approx([.9, .81, .729])
    assert axes.lines[1].get_ydata()[:2].tolist() == [.9, .5] and np.isnan(axes.lines[1].get_ydata()[2])
    assert axes.texts[0].xy == pytest.approx((3, .729))
    axes, = figures.convergence(np.array([10, 100]), np.array([2., 3]), np.array([.5, .1]), 2.8, 3.2).axes
    assert axes.get_xscale() == "log" and axes.lines[0].get_ydata() == [3.2, 3.2]
    low, high = axes.patches[0].get_extents().y0, axes.patches[0].get_extents().y1
    assert axes.transData.inverted().transform([[0, low], [0, high]])[:, 1] == pytest.approx([2.8, 3.2])


def test_projections_share_their_scales_and_mark_the_mean():
    laws = [(np.array([0., 1]), np.array([.25, .75])), (np.array([0., 2]), np.array([.5, .5]))]
    figure = figures.projection_laws(laws, ["a", "b"])
    left, right = figure.axes
    assert left.get_shared_x_axes().joined(left, right) and left.get_shared_y_axes().joined(left, right)
    assert left.get_xlim() == pytest.approx((-.08, 2.08)) and left.get_ylim() == (0, 1.02)
    for axes, (x, p), mean in zip(figure.axes, laws, (.75, 1)):
        assert [segment[1].tolist() for segment in axes.collections[0].get_segments()] == np.column_stack([x, p]).tolist()
        assert axes.lines[0].get_xdata() == [mean] and axes.texts[0].get_text() == f"M = {mean:.2f}"


def test_a_strip_has_a_marker_where_an_item_is_forwarded():
    decisions = {"UCB": np.array([True, False, True]), "Exploitation": np.zeros(3, bool)}
    axes, = figures.decision_strip(np.array([0, 1, 0]), ["x", "y"], decisions).axes
    assert [text.get_text() for text in axes.texts] == ["x", "y", "x"] and [text.xy for text in axes.texts] == [(1, -1), (2, -1), (3, -1)]
    dots, forwarded, more, none = axes.lines
    assert dots.get_xdata().tolist() == [1, 2, 3] and forwarded.get_xdata().tolist() == [1, 3] and none.get_xdata().size == 0
    assert (dots.get_ydata()[0], more.get_ydata()[0]) == (0, 1)
    assert axes.get_xlim() == (0, 4) and axes.get_ylim() == (1.5, -1.5)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["item", *decisions]


def test_floors_stand_inside_the_picture_and_above_what_they_import():
    floor = {"base": 1, "left": 2, "right": 2, "top": 3}
    direct = {"top": ["left", "right"], "left": ["base"], "right": ["base"], "base": []}
    figure = drawn(figures.floors(floor, direct, {name: [f"{name}_{n}" for n in range(5)] for name in floor}))
    axes, = figure.axes
    assert axes.get_xlim() == (0, 1) and axes.get_ylim() == (.5, 3.5) and not axes.axison
    titles = {text.get_text(): text for text in axes.texts if text.get_text() in floor}
    assert set(titles) == set(floor)
    heights = {name: text.get_position()[1] for name, text in titles.items()}
    assert heights["base"] < heights["left"] == heights["right"] < heights["top"]
    card = figure.bbox
    cards = [text.get_bbox_patch().get_window_extent() for text in axes.texts if text.get_bbox_patch()]
    assert len(cards) == 4 and all(card.x0 <= box.x0 < box.x1 <= card.x1 and card.y0 <= box.y0 < box.y1 <= card.y1 for box in cards)
    assert not any(one.overlaps(other) for n, one in enumerate(cards) for other in cards[n + 1:])
    arrows = [(text.xy, text.get_position()) for text in axes.texts if getattr(text, "arrow_patch", None)]
    assert len(arrows) == 4 and all(below[1] < above[1] for below, above in arrows)


def test_ends_of_lines_are_named_where_they_end():
    alphas = np.array([.1, 1., 10.])
    axes, = figures.tuning(alphas, {"UCB": (X, X / 10)}, 4., "limit").axes
    assert {text.get_text(): text.xy for text in axes.texts} == {"UCB": (10, 3), "limit": (10, 4)} and axes.get_xscale() == "log"
    band, = axes.collections
    assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(3.3)
    axes, = figures.reward_over_cost(Panel(X, {"UCB": (-X, -X - 1, -X + 1)}, X + 5), 10).axes
    assert {text.get_text(): text.xy for text in axes.texts if text.get_text() in ("UCB", "upper bound")} == {"UCB": (3, -3), "upper bound": (3, 8)}
    axes, = figures.bounds_over_cost(X, {"wide": (X, X + 1)}, {"UCB": -X}).axes
    assert {text.get_text(): text.xy for text in axes.texts} == {"wide": (3, 4), "UCB": (3, -3)}
    axes, = figures.gap_over_cost(Panel(X, {"UCB": (X, X, X)}), 10).axes
    assert axes.lines[-1].get_ydata() == [0, 0]


def test_maps_of_shares_count_items_from_one():
    figure = figures.forwarding_map({"UCB": np.eye(2, 5), "DTD-DP": np.eye(2, 5)}, ["x", "y"])
    for axes in figure.axes[:2]:
        assert axes.get_xlim() == (.5, 5.5) and axes.get_ylim() == (1.5, -.5) and axes.get_xlabel() == "item number"
    assert [axes.texts[0].get_text() for axes in figure.axes[:2]] == ["UCB", "DTD-DP"]


def test_a_ledger_has_room_for_its_claims_and_a_colour_for_each_verdict():
    verdicts = ["holds", "fails", "holds", "open"]
    figure = drawn(figures.ledger_bars(list("abcd"), np.array([1., -1, 2, 0]), np.array([.5, -2, 1, -1]), np.array([2., -.5, 3, 1]), verdicts))
    axes, = figure.axes
    assert axes.get_ylim() == (3.5, -.5) and apart(axes.get_yticklabels()) and axes.lines[-1].get_xdata() == [0, 0]
    colours = [bar.get_facecolor() for bar in axes.patches]
    assert colours[0] == colours[2] and len(set(colours)) == 3
    assert [text.xy for text in axes.texts] == [(2, 0), (0, 1), (3, 2), (1, 3)]
    bars, = (bars for _, _, (bars,) in axes.containers[1:])
    assert np.array([segment[:, 0] for segment in bars.get_segments()]) == pytest.approx(np.array([[.5, 2], [-2, -.5], [1, 3], [-1, 1]]))


def test_dots_below_the_floor_are_written_at_the_edge():
    series = {"ours": (np.array([10., -80, np.nan]), np.array([1., 1, np.nan]))}
    figure = figures.gain_dots(["a", "b", "c"], {"left": series, "right": {**series, "theirs": (np.array([1., 2, 3]), np.ones(3))}})
    left, right = figure.axes
    (line, _, (bars,)), = left.containers
    assert line.get_xdata().tolist() == [10] and bars.get_segments()[0][:, 0] == pytest.approx([10 - 1.96, 10 + 1.96])
    assert [(text.get_text(), text.xy[0]) for text in left.texts] == [("◂ -80", rewards.FLOOR), ("left", 0)]
    assert left.get_xlim() == (-45, 125) and left.get_ylim() == (2.5, -.5)
    assert [line.get_xdata()[0] for line in left.lines[-2:]] == [100, 0]
    assert left.get_legend() is None and [text.get_text() for text in right.get_legend().get_texts()] == ["ours", "theirs"]
    assert right.containers[1][0].get_ydata() == pytest.approx(np.arange(3) + .18)


def test_share_dots_have_intervals_and_leave_out_what_is_not_there():
    shares, errors = np.array([95., np.nan]), np.array([1., np.nan])
    axes, = figures.share_dots(["cost 3.8", "cost 4.0"], {"before": (np.array([90., 80]), np.array([.5, 2])), "after": (shares, errors)}, 98).axes
    spans = [line.get_segments() for line in axes.collections]
    assert np.allclose(spans[0][1][:, 0], [80 - 1.96 * 2, 80 + 1.96 * 2]) and np.allclose(spans[1][0][:, 0], [95 - 1.96, 95 + 1.96])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["cost 3.8", "cost 4.0"]
    assert sorted(line.get_xdata()[0] for line in axes.lines if len(set(line.get_xdata())) == 1 and len(line.get_xdata()) == 2) == [98, 100]


def test_words_are_dark_on_light_ground_and_light_on_dark():
    """The colour with the larger contrast as WCAG 2 defines it, wherever the two differ by much; grounds of one channel included."""
    def luminance(colour):
        linear = [c / 12.92 if c <= .04045 else ((c + .055) / 1.055) ** 2.4 for c in mpl.colors.to_rgb(colour)]
        return float(np.dot([.2126, .7152, .0722], linear))
    for ground in [*np.random.default_rng(0).uniform(0, 1, (2500, 3)), *np.eye(3), (0, 0, 0), (1, 1, 1)]:
        light = luminance(ground)
        white, black = 1.05 / (light + .05), (light + .05) / .05
        if max(white, black) > 1.01 * min(white, black):
            assert rewards.words_on(ground) == (BLACK if black > white else "white"), ground


def test_a_map_of_winners_names_them_and_gives_numbers_with_half_an_interval():
    winners = np.array([["UCB", ""], ["DTD-DP", "UCB"]])
    values, errors = np.array([[1., 2], [3, 4]]), np.full((2, 2), .5)
    left, right, bar = figures.winner_map(["p", "q"], ["u", "v"], winners, (values, errors), ("across", "up"), "lead").axes
    assert [text.get_text() for text in left.texts] == ["UCB", "not\nresolved", "DTD-DP", "UCB"]
    assert [text.get_text() for text in right.texts] == [f"{value:g}\n± 0.98" for value in (1, 2, 3, 4)]
    assert [text.get_position() for text in left.texts] == [text.get_position() for text in right.texts] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert (left.get_xlabel(), left.get_ylabel(), bar.get_ylabel()) == ("across", "up", "lead") and left.get_ylim()[0] < left.get_ylim()[1]
    assert tuple(left.images[0].get_array()[0, 1]) == pytest.approx(mpl.colors.to_rgb(rewards.OPEN))
    assert right.images[0].get_array().tolist() == values.tolist()


def test_slices_have_a_logarithmic_scale_from_a_factor_of_eight_on_and_hide_empty_axes():
    curve = {"UCB": (X, X / 10), "UCB, fine": (X, X / 10), "upper bound": (X + 1, 0 * X)}
    panels = [("a", [1, 2, 8], curve), ("b", [1, 2, 7.9], curve), ("c", [0, 2, 8], curve), ("d", [1, 2, 3], curve), ("e", [1, 3, 9], curve)]
    figure = figures.slices(panels, "reward", level=1.5, columns=3)
    assert [axes.get_xscale() for axes in figure.axes] == ["log", "linear", "linear", "linear", "log", "linear"]
    assert [axes.axison for axes in figure.axes] == [True] * 5 + [False]
    own, variant, bound, level = figure.axes[0].lines
    assert level.get_ydata() == [1.5, 1.5] and bound.is_dashed() and bound.get_ydata().tolist() == (X + 1).tolist()
    assert own.get_color() == variant.get_color() and variant.get_markerfacecolor() == "white" != own.get_markerfacecolor()
    assert figure.axes[0].collections[0].get_paths()[0].vertices[:, 1].max() == pytest.approx(3 + 1.96 * .3)
    assert [label.get_text() for label in figure.axes[1].get_xticklabels()] == ["1", "2", "7.9"]
    assert figures.slices(panels[:1], "reward").axes[0].get_xlabel() == "a"


def test_names_after_a_comma_or_in_brackets_are_variants_of_a_policy():
    plain = rewards.style_of("UCB")
    for name in ("UCB, fine grid", "UCB (tuned)"):
        other = rewards.style_of(name)
        assert (other["color"], other["marker"]) == (plain["color"], plain["marker"]) and other["linestyle"] == ":"
    assert "linestyle" not in plain and rewards.style_of("Somebody", 3)["color"] == OTHERS[3][0]


def test_names_of_wide_characters_take_half_as_many_to_a_line():
    assert [len(line) for line in style.wrapped("体" * 10, 8).split("\n")] == [4, 4, 2]
    assert style.wrapped("体" * 3, 1) == "体\n体\n体"
    assert [len(line) for line in style.wrapped("ab体" * 4, 8).split("\n")] == [6, 6]              # 6 signs, 8 columns
    assert "fontfamily" not in style.as_text(["plain"])[1] and "fontfamily" in style.as_text(["新"])[1]


def test_axes_are_lettered_in_nine_or_ten_points():
    """Nothing that stands at an axis is smaller than 9 points or larger than the text of the page, 10."""
    sizes = [style.STYLE[name] for name in ("font.size", "axes.labelsize", "xtick.labelsize", "ytick.labelsize")]
    assert 9 <= min(sizes) and max(sizes) <= 10


def test_a_sheet_of_the_page_is_mapped_over_its_whole_range_with_cells_around_their_values():
    benefit = np.arange(3 * 3 * 3 * 2 * 4, dtype=float).reshape(3, 3, 3, 2, 4)
    found = Sheets(*(np.array(each) for each in ([.5, .8, .9], [.1, 1, 2], [.2, .5, 1], [-1., 0, 1, 2], [1., 3.])),
                   boundary=np.zeros((3, 3, 3, 2)), benefit=benefit)
    page = interactive.sheets(found)
    mapper, = page.select({"type": LinearColorMapper})
    assert (mapper.low, mapper.high) == (0, benefit[1, 1, 1].max())
    image, = [each.glyph for each in page.select({"type": GlyphRenderer}) if isinstance(each.glyph, Image)]
    assert (image.x, image.y, image.dw, image.dh) == (-1.5, 0, 4, 4)


def test_more_bounds_than_there_are_dashes_begin_again_with_the_first():
    x = np.array([0., 1.])
    found = Rewards(x, {"UCB": (x, x / 10)}, {f"bound {n}": (x, x + n) for n in range(9)})
    page = interactive.rewards({"one": found})
    by_name = {each.data_source.data["name"][0]: each.glyph for each in page.select({"type": GlyphRenderer}) if isinstance(each.glyph, Line)}
    drawn = [(tuple(by_name[f"bound {n}"].line_dash), by_name[f"bound {n}"].line_color) for n in range(9)]
    assert drawn[4:8] == drawn[:4] and drawn[8] == drawn[0]
    assert all(len({line[part] for line in drawn[:4]}) == 4 for part in (0, 1))
