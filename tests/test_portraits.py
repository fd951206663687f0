"""Pictures of data show the numbers that they are given."""
import numpy as np
import pytest

from lib import figures


def test_priors_show_means_and_spreads():
    figure = figures.priors(["a", "b"], {"one": ([1, 2], np.diag([4., 9.])), "two": ([0, 0], np.eye(2))}, "stars")
    axes, = figure.axes
    assert [t.get_text() for t in axes.get_yticklabels()] == ["a", "b"] and axes.get_xlabel() == "stars"
    first = axes.containers[0]
    assert first[0].get_xdata().tolist() == [1, 2]
    ends = [line[:, 0].tolist() for line in first[2][0].get_segments()]
    assert ends == [[-1, 3], [-1, 5]] and len(figure.legends) == 1


def test_correlations_are_of_the_covariance():
    axes = figures.correlations(["a", "b", "c"], np.array([[4., 3, 0], [3, 9, 0], [0, 0, 0]])).axes[0]
    shown = axes.images[0].get_array()
    assert shown[0, 1] == pytest.approx(.5) and shown[0, 0] == pytest.approx(1) and np.isnan(shown.filled(np.nan)[2]).all()


def test_calibration_has_its_diagonal():
    axes, = figures.calibration({"x": np.array([[1, 2, .1], [3, 2.5, .1]])}).axes
    diagonal = [line for line in axes.lines if line.get_linestyle() == "--"][-1]
    assert diagonal.get_xdata().tolist() == diagonal.get_ydata().tolist() == [1, 3]
    assert axes.containers[0][2][0].get_segments()[0][:, 1] == pytest.approx([2 - .196, 2 + .196])


def test_residuals_thin_out_but_keep_the_ends():
    z = np.linspace(-3, 3, 5000)
    left, right = figures.residuals(z, z, np.array([[1, .8, .1], [2, .9, .1]])).axes
    assert len(left.lines[0].get_xdata()) == 400 and left.lines[0].get_xdata()[[0, -1]].tolist() == [-3, 3]
    assert right.get_xticks().tolist() == [1, 2] and right.get_ylim()[0] == 0


def test_differences_have_a_panel_for_each_group():
    rows = [("first", .1, .05, "UCB"), ("first", -.2, .1, "DTD-DP"), ("second", 0, .1, "UCB"), ("second", .3, .1, "DTD-DP")]
    figure = figures.differences(rows, "stars")
    assert [axes.texts[0].get_text() for axes in figure.axes] == ["first", "second"]
    assert [float(c[0].get_xdata()[0]) for c in figure.axes[0].containers] == [-.2, .1]
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["DTD-DP", "UCB"]
