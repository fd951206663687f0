"""Pictures of ranked policies show the numbers that they are given."""
import matplotlib as mpl
import numpy as np
import pytest

from lib import figures, policies  # noqa: F401  (policies register their marks)
from lib.figures import rewards
from lib.figures.style import BLACK, MARKS


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_gains_beyond_the_edge_are_written_there():
    panels = {"films": {"tuned": (np.array([90., -300.]), np.array([5., 9.])), "untuned": (np.array([np.nan, 20.]), np.array([np.nan, 1.]))}}
    axes, = figures.gain_dots(["UCB", "Thompson"], panels).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["UCB", "Thompson"]
    assert texts(axes) == ["◂ -300", "films"]
    tuned = axes.containers[0]
    assert tuned[0].get_xdata().tolist() == [90] and tuned[2][0].get_segments()[0][:, 0] == pytest.approx([80.2, 99.8])


def test_a_map_names_winners_in_their_colour_and_says_where_none_is_resolved():
    winners = np.array([["UCB", ""], ["DTD-DP", "Knowledge gradient"]])
    numbers = np.array([[1.25, -3.], [0., 40.]]), np.array([[.5, .1], [0., 2.]])
    figure = figures.winner_map([0, .5], [1, 10], winners, numbers, ("correlation", "favour"), "lead")
    left, right, bar = figure.axes
    assert texts(left) == ["UCB", "not\nresolved", "DTD-DP", "Knowledge\ngradient"]
    assert texts(right) == ["1.25\n± 0.98", "-3\n± 0.2", "0\n± 0", "40\n± 3.9"]
    shown = left.images[0].get_array()
    for (i, j), name in np.ndenumerate(winners):
        colour = figures.mark(name)[0] if name else rewards.OPEN
        assert np.allclose(shown[i, j], mpl.colors.to_rgb(colour))
    assert left.images[0].origin == "lower" and np.array_equal(right.images[0].get_array(), numbers[0])
    assert [t.get_text() for t in left.get_xticklabels()] == ["0", "0.5"] and left.get_ylabel() == "favour"
    assert bar.get_ylabel() == "lead"


@pytest.mark.parametrize("colour", [figures.mark(name)[0] for name in MARKS] + [rewards.OPEN])
def test_words_contrast_with_every_policys_colour(colour):
    """WCAG 2 asks for 4.5 to 1; the better of black and white always has it."""
    def light(c):
        return np.array([.2126, .7152, .0722]) @ [v / 12.92 if v <= .04045 else ((v + .055) / 1.055) ** 2.4
                                                  for v in mpl.colors.to_rgb(c)]
    high, low = sorted([light(colour), light(rewards.words_on(colour))], reverse=True)
    assert (high + .05) / (low + .05) > 4.5


def test_slices_have_bands_of_two_standard_errors_and_one_scale_each():
    curves = {"UCB": ([1., 2., 3.], [.1, .2, .3]), "upper bound": ([4., 4., 4.], [0., 0., 0.])}
    panels = [("noise", [.3, 1, 3], curves), ("mean", [-1, 0, 1], {"UCB": ([1., 1., 1.], [0., 0., 0.])})]
    figure = figures.slices(panels, "reward", level=2)
    noise, mean = figure.axes
    assert noise.get_xscale() == "log" and mean.get_xscale() == "linear"
    assert [t.get_text() for t in noise.get_xticklabels()] == ["0.3", "1", "3"]
    band = noise.collections[0].get_paths()[0].vertices
    assert band[np.isclose(band[:, 0], .3), 1].min() == pytest.approx(1 - .196)
    bound, = [line for line in noise.lines if line.get_label() == "upper bound"]
    assert bound.get_color() == BLACK and bound.get_linestyle() == "--"
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["UCB", "upper bound"]
    assert list(noise.lines[-1].get_ydata()) == [2, 2]


def test_slices_wrap_and_hide_what_is_left_over():
    panels = [("a", [0, 1], {"UCB": ([0, 1], [0, 0])})] * 3
    assert [axes.axison for axes in figures.slices(panels, "y", columns=2).axes] == [True, True, True, False]


def test_a_variant_has_its_familys_colour_and_is_hollow():
    for name in ("DTD-UCB, prior", "DTD-UCB (1)"):
        style = rewards.style_of(name)
        assert style["color"] == rewards.style_of("DTD-UCB")["color"] == figures.mark("DTD-UCB")[0]
        assert style["markerfacecolor"] == "white" and "markerfacecolor" not in rewards.style_of("DTD-UCB")
