"""Sliders in JupyterLab: each shows the picture of its setting."""
import io

import numpy as np
from PIL import Image
import pytest

from lib import figures, policies  # noqa: F401  (policies register their marks)
from lib.experiments.playground import Rewards, Sheets
from lib.figures import widgets

MEANS, SDS = np.linspace(-2, .5, 6), np.linspace(.1, 1.5, 4)
SHAPE = 2, 3, 1, len(SDS)
FOUND = Sheets(np.array([.5, .9]), np.array([.5, 1, 2]), np.array([.2]), MEANS, SDS, -np.arange(24.).reshape(SHAPE) / 24,
               np.random.default_rng(0).random((*SHAPE, len(MEANS))))
COSTS = np.array([0., 1, 2])
RUNS = {name: Rewards(COSTS, {"UCB": (shift - COSTS, np.full(3, .1))}, {"Theorem 1": (COSTS, shift + 1 - COSTS), "dual": (COSTS[:2], COSTS[:2])})
        for name, shift in (("simulated", 1.), ("ratings", 5.))}


def pixels(png):
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def test_a_slider_shows_the_sheet_of_its_setting():
    pytest.importorskip("ipywidgets", reason="ipywidgets is optional: requirements-widgets.txt")
    box = widgets.sheets(FOUND)
    *sliders, image = box.children
    assert [slider.description for slider in sliders] == ["discount gamma", "noise of a rating", "share of items with the feature"]
    first = image.value
    sliders[0].value, sliders[1].value = 0, 2
    assert image.value != first
    expected = widgets.picture(figures.benefit_map(MEANS, SDS, FOUND.benefit[0, 2, 0], FOUND.boundary[0, 2, 0]))
    assert np.array_equal(pixels(image.value), pixels(expected))
    sliders[0].value, sliders[1].value = 1, 1
    assert np.array_equal(pixels(image.value), pixels(first))


def test_a_slider_shows_each_experiment():
    pytest.importorskip("ipywidgets", reason="ipywidgets is optional: requirements-widgets.txt")
    slider, image = widgets.rewards(RUNS).children
    shown = []
    for slider.value in range(2):
        shown.append(image.value)
    assert shown[0] != shown[1] and [name for name, _ in slider.options] == list(RUNS)


def test_settings_without_a_value_are_refused():
    pytest.importorskip("ipywidgets", reason="ipywidgets is optional: requirements-widgets.txt")
    for settings in ({}, {"gamma": []}):
        with pytest.raises(ValueError, match="settings"):
            widgets.explore(lambda at: None, settings)


def test_nothing_is_shown_in_a_build_and_a_hint_without_the_package(monkeypatch, capsys):
    monkeypatch.setenv("BOOK_BUILD", "1")
    assert widgets.live(len, [1, 2]) is None
    monkeypatch.delenv("BOOK_BUILD")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert widgets.live(len, [1, 2]) is None and "requirements-widgets.txt" in capsys.readouterr().out
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert widgets.live(len, [1, 2]) == 2
