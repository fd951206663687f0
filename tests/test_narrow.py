"""Pictures for a narrow screen: inside the PNG, panels below one another, letters that can be read; and names that do not overlap."""
from base64 import b64decode
import io
import re

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
import narrow as extension
import numpy as np
from PIL import Image
import pytest
from test_browser import Visit, browser, luminance, server, site  # noqa: F401  (fixtures)
from test_figures import CALLS

from lib import figures, policies  # noqa: F401  (policies register their marks)
from lib.figures import Panel, narrow, style

COSTS = np.linspace(.3, 1.1, 9)
BEST = 2 * np.maximum(1 - COSTS, 0)
FALLS = {"DTD-DP": 1, "DTD-UCB": 1, "UCB": .7, "Exploitation": .5, "Thompson sampling": .2}
PHONE, SHOWN = 390, 358                 # pixels: a screen, and the width that a picture has on it
PAD = .2                                # inches that a notebook leaves around a picture


def main_figure():
    """As the introduction shows it: three curves coincide, and every curve ends near zero."""
    curves = {name: (BEST * share, BEST * share - .1, BEST * share + .1) for name, share in FALLS.items()}
    return figures.reward_over_cost([Panel(COSTS, curves, BEST), Panel(COSTS, curves, BEST)], 2048, sharey=False)


def drawn_narrow(figure):
    with narrow.narrowed():
        return figure.redraw()


def boxes(texts, figure):
    """The boxes of `texts` without their leaders, pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return [mpl.text.Text.get_window_extent(text, canvas.get_renderer()) for text in texts]


@pytest.mark.parametrize("small", [False, True])
def test_names_at_line_ends_never_overlap_and_stand_once(small):
    figure = drawn_narrow(main_figure()) if small else main_figure()
    texts = [text for text in figure.axes[1].texts if text.get_anncoords() == "axes fraction" and text.get_position()[0] > 1]
    assert sorted(text.get_text() for text in texts) == sorted(["DTD-DP,", "DTD-UCB and", "the bound", "UCB", "Exploitation", "Thompson sampling"])
    found = sorted(boxes(texts, figure), key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 for low, high in zip(found, found[1:]))
    heights = {text.get_text(): text.get_position()[1] for text in texts}
    assert heights["DTD-DP,"] > heights["DTD-UCB and"] > heights["the bound"]


@pytest.mark.parametrize("small", [False, True])
def test_what_stands_above_a_panel_does_not_overlap(small):
    """Its label and its note: side by side, or on a phone under each other."""
    curves = {name: (BEST * share, BEST * share - .1, BEST * share + .1) for name, share in FALLS.items()}
    figure = figures.reward_over_cost([Panel(COSTS, curves, BEST, "282 real readers")] * 2, 40_000)
    figure = drawn_narrow(figure) if small else figure
    for axes in figure.axes:
        texts = [text for text in axes.texts if text.get_anncoords() == "axes fraction" and text.xy[1] > 1]
        assert "282 real readers" in " ".join(text.get_text() for text in texts) and "40,000 replications" in texts[-1].get_text()
        found = sorted(boxes(texts, figure), key=lambda box: box.x0)
        assert all(left.x1 <= right.x0 for left, right in zip(found, found[1:]))
        assert found[-1].x1 <= figure.bbox.x1


@pytest.mark.parametrize("name", CALLS)
def test_a_narrow_picture_has_its_panels_below_one_another_and_letters_of_nine_pixels(name):
    wide, small = CALLS[name](), drawn_narrow(CALLS[name]())
    sheets = [axes for axes in wide.axes if axes.get_label() != "<colorbar>"]
    starts = [axes.get_subplotspec().colspan.start for axes in small.axes if axes.get_label() != "<colorbar>" and axes.get_subplotspec()]
    assert set(starts) <= {0} and len(small.axes) == len(wide.axes) and sheets
    assert min(size for size, _ in narrow.letters(small)) >= narrow.LEAST
    small.draw_without_rendering()
    assert min(size for size, _ in narrow.letters(small)) * SHOWN / ((small.get_tightbbox().width + PAD) * 72) >= 9


def test_room_is_made_for_what_stands_beyond_either_side():
    figure = mpl.figure.Figure((narrow.WIDTH, 2), layout="constrained")
    figure.subplots()
    texts = [figure.text(-.12, .5, "left", fontsize=12), figure.text(.95, .5, "a long name", fontsize=12)]
    left, right = (mpl.text.Text.get_window_extent(text, FigureCanvasAgg(figure).get_renderer()) for text in texts)
    beyond = -left.x0 / figure.bbox.width, right.x1 / figure.bbox.width - 1
    assert min(beyond) > .05
    rect = narrow.readable(figure).get_layout_engine().get()["rect"]
    assert rect == pytest.approx((beyond[0], 0, 1 - sum(beyond), 1), abs=.01)


def test_the_narrow_picture_lies_inside_the_other():
    png = b64decode(narrow.shown(main_figure()))
    inner = extension.inside(png)
    outer, small = Image.open(io.BytesIO(png)), Image.open(io.BytesIO(inner))
    assert outer.width > 1.5 * small.width and small.height > 1.2 * outer.height
    assert float(outer.info["Letter"]) == pytest.approx(8 * 150 / 72, abs=.01) and float(small.info["Letter"]) >= narrow.LEAST * 150 / 72
    alone = io.BytesIO()
    main_figure().savefig(alone, format="png", bbox_inches="tight")
    assert np.array_equal(np.asarray(outer), np.asarray(Image.open(alone))) and extension.inside(alone.getvalue()) is None


def test_a_notebook_shows_it_and_a_page_takes_it_out(tmp_path):
    from IPython.core.interactiveshell import InteractiveShell
    shell = InteractiveShell.instance()
    try:
        figure = main_figure()
        data, _ = shell.display_formatter.format(figure)
    finally:
        InteractiveShell.clear_instance()
    (tmp_path / "a.png").write_bytes(b64decode(data["image/png"]))
    tag = '<img alt="x" src="../_images/a.png" />'
    html = extension.picture(extension.PICTURE.fullmatch(tag), tmp_path / "a.png", tmp_path / "images")
    assert re.search(r'<picture><source media="screen and \(max-width: 600px\)" srcset="../_images/a.narrow.png"><img [^>]*src="../_images/a.png" /></picture>', html)
    assert (tmp_path / "images" / "a.narrow.png").read_bytes() == extension.inside((tmp_path / "a.png").read_bytes())
    Image.new("RGB", (9, 9)).save(tmp_path / "plain.png")
    assert extension.picture(extension.PICTURE.fullmatch(tag), tmp_path / "plain.png", tmp_path) == tag


def test_a_picture_that_cannot_be_narrow_scrolls_at_a_readable_width(tmp_path):
    figure = figures.floors({"a": 1, "b": 2}, {"a": [], "b": ["a"]}, {"a": ["x", "y"], "b": []})
    assert figure.redraw is None
    (tmp_path / "a.png").write_bytes(b64decode(narrow.shown(figure)))
    html = extension.picture(extension.PICTURE.fullmatch('<img src="_images/a.png">'), tmp_path / "a.png", tmp_path)
    width, letter = float(re.search(r"--phone: (\d+)px", html)[1]), float(re.search(r'data-letter="([\d.]+)"', html)[1])
    assert letter * width / Image.open(io.BytesIO((tmp_path / "a.png").read_bytes())).width >= 9


def in_the_dark(colour):
    """What the page makes of a colour in the dark theme: inverted, then its hue turned back (Filter Effects, 6.1)."""
    red, green, blue = 1 - np.array(mpl.colors.to_rgb(colour))
    turn = np.array([[-.574, 1.43, .144], [.426, .43, .144], [.426, 1.43, -.856]])
    return 255 * np.clip(turn @ [red, green, blue], 0, 1)


def test_every_policy_stands_out_in_the_dark():
    """WCAG 2 asks 3:1 of what a picture shows; the ground is the theme's."""
    ground = luminance([20, 24, 32])
    for colour in {colour for colour, _ in [*style.MARKS.values(), *style.OTHERS]} | {style.BLACK}:
        assert (luminance(in_the_dark(colour)) + .05) / (ground + .05) >= 3, colour


@pytest.mark.slow
@pytest.mark.parametrize("name", ["introduction", "simulated", "ratings", "where_each_wins", "sensitivity", "theorem", "dtd_dp", "code", "own_stream"])
def test_letters_have_nine_pixels_on_a_phone(browser, server, name):  # noqa: F811
    phone = Visit(browser, server, viewport={"width": PHONE, "height": 844})
    phone.open(f"chapters/{name}.html")
    found = phone.page.evaluate("""() => [...document.querySelectorAll(".bd-article img[data-letter]")].map(image => {
        const small = image.currentSrc.includes(".narrow.");
        return [image.currentSrc, Number(small ? image.dataset.narrowLetter : image.dataset.letter) * image.width / image.naturalWidth];
    })""")
    phone.context.close()
    assert found and all(letter >= 9 for _, letter in found), found


def test_no_letters_of_slices_lie_on_others_where_a_legend_is_long():
    names = [f"a policy with number {n}" for n in range(8)]
    curves = {name: (np.ones(6), np.zeros(6)) for name in names}
    with narrow.narrowed():
        figure = figures.slices([("drift", (0, .01, .02, .05, .1, .2), curves)], "total discounted reward", columns=1)
    figure.draw_without_rendering()
    axes, legend = figure.axes[0], figure.legends[0]
    ticks = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
    assert not any(one.overlaps(other) for one, other in zip(ticks, ticks[1:])) and len(ticks) >= 4
    name = axes.yaxis.label.get_window_extent()
    assert not name.overlaps(legend.get_window_extent()) and name.height < axes.get_window_extent().height
