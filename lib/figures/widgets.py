"""Pictures with sliders in JupyterLab: the same as `lib.figures.interactive` draws on a page, by a live kernel.

ipywidgets is an optional extra (`requirements-widgets.txt`); imported by name, as `interactive` is.  While the book is built or tested
`live` shows nothing: its pages have their own sliders.
"""
import importlib.util
import io
import os

import matplotlib.pyplot as plt
import numpy as np

from lib.figures.model import benefit_map
from lib.figures.rewards import bounds_over_cost

HINT = "With `pip install -r requirements-widgets.txt` there are sliders here."


def picture(figure):
    """The bytes of a figure as a PNG."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110, bbox_inches="tight")
    plt.close(figure)
    return out.getvalue()


def explore(draw, settings):
    """A picture under sliders.

    Parameters
    ----------
    draw : callable
        Takes the index chosen for each setting; returns a matplotlib figure.
    settings : dict
        Title: values (n,), of which a slider chooses one; the middle one at first.

    Returns
    -------
    ipywidgets.VBox
        The sliders, then the picture.

    Raises
    ------
    ValueError
        When there is no setting, or one has no value.
    """
    import ipywidgets
    if not settings or not all(len(values) for values in settings.values()):
        raise ValueError(f"settings is {settings!r}: it needs one setting or more, each with a value or more")
    sliders = [ipywidgets.SelectionSlider(
        options=[(value if isinstance(value, str) else f"{value:g}", n) for n, value in enumerate(values)], value=len(values) // 2,
        description=title, continuous_update=False, style={"description_width": "initial"}, layout={"width": "30em"})
        for title, values in settings.items()]
    image = ipywidgets.Image(format="png")

    def show(_=None):
        image.value = picture(draw(*(slider.value for slider in sliders)))

    for slider in sliders:
        slider.observe(show, "value")
    show()
    return ipywidgets.VBox([*sliders, image])


def sheets(found):
    """Exploration benefit and boundary under sliders for discount, noise and frequency, of a lib.experiments.Sheets."""
    return explore(lambda *at: benefit_map(found.net_mean, found.sd, np.maximum(found.benefit[at], 0), found.boundary[at]), {
        "discount gamma": found.gammas, "noise of a rating": found.noises, "share of items with the feature": found.shares})


def rewards(experiments):
    """Policies and bounds over the cost under a slider for the experiment, of {label: lib.experiments.Rewards}.

    A bound that is known at other costs than the policies is drawn between those.
    """
    found = list(experiments.values())

    def draw(at):
        one = found[at]
        bounds = {name: np.interp(one.costs, costs, values, np.nan, np.nan) for name, (costs, values) in one.bounds.items()}
        return bounds_over_cost(one.costs, {name: values for name, values in bounds.items() if np.isfinite(values[-1])},
                                {name: values for name, (values, _) in one.policies.items()})

    return explore(draw, {"experiment": list(experiments)})


def live(make, found):
    """`make(found)` where a reader works with the chapter; nothing in a build, and a hint where ipywidgets is not installed."""
    if os.environ.get("BOOK_BUILD"):
        return None
    if importlib.util.find_spec("ipywidgets") is None:
        print(HINT)
        return None
    return make(found)
