"""Pictures with sliders, drawn by the page itself: Bokeh documents and the plain data of the game.

Each function returns what `embedded` puts into a page: a Bokeh model, with every curve that its sliders can ask for.
The callbacks are CustomJS, so no kernel is needed; `_ext/play.js` draws the models and plays the game.  Not imported by
`lib.figures` itself, because Bokeh takes a second to load.
"""
import json

from bokeh.embed import json_item
from bokeh.layouts import column
from bokeh.models import (CategoricalSlider, ColorBar, ColumnDataSource, CustomJS, Div, HoverTool, Label, Legend, LegendItem,
                          LinearColorMapper, Select, Span, Whisker)
from bokeh.plotting import figure
from IPython.display import HTML
import numpy as np

from lib.figures.style import BLACK, BLUE, GREY, ORANGE, PINK, RED, SKY, mark

LIMIT = 2_000_000                                       # characters of one embedded document
KINDS = "sheets", "rewards", "leads", "game"
DASHES = ("6 3", "2 2", "8 3 2 3", "1 3")
MARKERS = {"o": "circle", "s": "square", "^": "triangle", "v": "inverted_triangle", "D": "diamond", "*": "star", "P": "plus",
           "X": "x", "h": "hex", "<": "triangle", ">": "triangle", "p": "hex"}

SAID = "At a standard deviation of {1:.2f}, items are forwarded from mean - cost = {0:.3f} upwards."
SHOW_SHEET = """
const at = sliders.map(slider => slider.categories.indexOf(slider.value));
const sheet = at.reduce((total, index, n) => total * sliders[n].categories.length + index, 0);
const image = surface.data.image[0], size = image.length;
let most = 0;
for (let i = 0; i < size; i++) {
  image[i] = benefit[sheet * size + i];
  most = Math.max(most, image[i]);
}
const x = Array.from(sd, (_, i) => boundary[sheet * sd.length + i]);
line.data = {x, y: Array.from(sd)};
mapper.high = most;
surface.change.emit();
said.text = words.replace("{1:.2f}", sd[middle].toFixed(2)).replace("{0:.3f}", x[middle].toFixed(3));
"""
SHOW_EXPERIMENT = """
const shown = data[select.value];
sources.forEach((source, n) => {
  source.data = shown[names[n]];
  items[n].visible = shown[names[n]].x.length > 0;
});
"""
SHOW_LEADS = """
const at = slider.categories.indexOf(slider.value);
sources.forEach((source, n) => { source.data = data[n][at]; });
"""


def canvas(height, xlabel, ylabel, **options):
    """An empty Bokeh figure as wide as its column, without tools that would catch a finger that scrolls."""
    plot = figure(height=height, sizing_mode="stretch_width", tools="", toolbar_location=None, min_border_right=15,
                  x_axis_label=xlabel, y_axis_label=ylabel, **options)
    plot.title = None
    return plot


def slider(title, values):
    """A slider over the given values, (n,) at least two, at its middle one."""
    names = [f"{value:g}" for value in values]
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise ValueError(f"{title} has the values {names}: a slider needs two or more, all different")
    return CategoricalSlider(title=title, categories=names, value=names[len(names) // 2], sizing_mode="stretch_width")


def sheets(found):
    """Exploration benefit as a map, with the forwarding boundary, under sliders for discount, noise and frequency.

    Parameters
    ----------
    found : lib.experiments.Sheets
        At least two values of every setting.

    Returns
    -------
    bokeh.models.LayoutDOM
        Its sliders stand at the middle of each setting.

    Raises
    ------
    ValueError
        When a setting has fewer than two values, when net_mean or sd is not evenly spaced, or when a boundary or a benefit is not
        finite.
    """
    for name in ("boundary", "benefit"):
        if not np.isfinite(getattr(found, name)).all():
            raise ValueError(f"{name} must be finite everywhere")
    for name in ("net_mean", "sd"):
        steps = np.diff(getattr(found, name))
        if not len(steps) or not np.allclose(steps, steps[0]):
            raise ValueError(f"{name} has the steps {steps}: the map needs two values or more, evenly spaced")
    sliders = [slider(*words) for words in (("discount gamma", found.gammas), ("noise of a rating", found.noises),
                                            ("share of items with the feature", found.shares))]
    at = tuple(len(values) // 2 for values in found[:3])
    mean, sd, middle = found.net_mean, found.sd, len(found.sd) // 2
    surface = ColumnDataSource({"image": [found.benefit[at].astype(np.float32)]})
    line = ColumnDataSource({"x": found.boundary[at].tolist(), "y": sd.tolist()})
    mapper = LinearColorMapper("Cividis256", low=0, high=float(found.benefit[at].max()))
    plot = canvas(400, "mean - cost", "standard deviation of the belief", x_range=(mean[0], mean[-1]), y_range=(sd[0], sd[-1]))
    step_x, step_y = mean[1] - mean[0], sd[1] - sd[0]   # a value belongs to the middle of its cell
    plot.image("image", source=surface, x=mean[0] - step_x / 2, y=sd[0] - step_y / 2, dw=step_x * len(mean), dh=step_y * len(sd),
               color_mapper=mapper)
    plot.line("x", "y", source=line, color=RED, line_width=3)
    plot.add_layout(ColorBar(color_mapper=mapper, title="exploration benefit", height=10), "below")
    for text, x, inwards, align in (("discard", mean[0], 8, "left"), ("forward", mean[-1], -8, "right")):
        plot.add_layout(Label(x=x, y=sd[0], x_offset=inwards, y_offset=8, text=text, text_align=align, text_color="white"))
    said = Div(text=SAID.format(found.boundary[at][middle], sd[middle]), name="said")
    show = CustomJS(code=SHOW_SHEET, args={
        "sliders": sliders, "surface": surface, "line": line, "mapper": mapper, "said": said, "words": SAID, "middle": middle,
        "sd": sd.tolist(),
        "boundary": found.boundary.astype(np.float32).ravel(), "benefit": found.benefit.astype(np.float32).ravel()})
    for one in sliders:
        one.js_on_change("value", show)
    return column(*sliders, said, plot, sizing_mode="stretch_width")


def curve(values, costs, name, errors=None):
    """The columns of one curve with 95 % intervals, of a bound where there are no errors; those of an absent one empty."""
    x, y = (np.asarray(part, float) for part in (costs, values))
    half = np.zeros(len(y)) if errors is None else 1.96 * np.asarray(errors)
    above = np.ceil(y * 1000) / 1000                    # a bound is never rounded down
    texts = [f"at most {limit:.3f}" if errors is None else f"{value:.3f} ± {h:.2g}" for value, limit, h in zip(y, above, half)]
    return {"x": x.tolist(), "y": y.tolist(), "low": (y - half).tolist(), "high": (y + half).tolist(), "name": [name] * len(y),
            "text": texts}


def curves_of(found):
    """{name: columns} of the policies and bounds of one lib.experiments.Rewards."""
    policies = {name: curve(values, found.costs, name, errors) for name, (values, errors) in found.policies.items()}
    return policies | {name: curve(values, costs, name) for name, (costs, values) in found.bounds.items()}


def rewards(experiments):
    """Reward of each policy and every upper bound over the forwarding cost, one experiment at a time.

    Parameters
    ----------
    experiments : dict
        Label: lib.experiments.Rewards; the first is shown.

    Returns
    -------
    bokeh.models.LayoutDOM

    Raises
    ------
    ValueError
        When there is no experiment.
    """
    if not experiments:
        raise ValueError(f"experiments is {experiments!r}: there must be one at least")
    data = {label: curves_of(found) for label, found in experiments.items()}
    bounds = list(dict.fromkeys(name for found in experiments.values() for name in found.bounds))
    names = list(dict.fromkeys(name for found in experiments.values() for name in found.policies)) + bounds
    data = {label: {name: shown.get(name, curve([], [], name)) for name in names} for label, shown in data.items()}
    first = next(iter(data))
    plot = canvas(430, "forwarding cost", "total discounted reward")
    sources, lines, drawn = [ColumnDataSource(data[first][name]) for name in names], [], []
    for n, (name, source) in enumerate(zip(names, sources)):
        if name in bounds:
            at = bounds.index(name)
            glyphs = [plot.line("x", "y", source=source, line_width=2.2, line_dash=DASHES[at % 4], color=(BLACK, GREY, SKY, PINK)[at % 4])]
        else:
            colour, marker = mark(name, n)
            glyphs = [plot.line("x", "y", source=source, line_width=2, color=colour),
                      plot.scatter("x", "y", source=source, size=7, color=colour, marker=MARKERS.get(marker, "circle"))]
        drawn += glyphs
        lines.append(LegendItem(label=name, renderers=glyphs, visible=bool(data[first][name]["x"])))
    plot.add_layout(Legend(items=lines, ncols=2, border_line_color=None, label_text_font_size="9pt"), "below")
    plot.add_tools(HoverTool(renderers=drawn, tooltips=[("", "@name"), ("cost", "@x{0.00}"), ("reward", "@text")]))
    select = Select(title="experiment", options=list(data), value=first)
    select.js_on_change("value", CustomJS(code=SHOW_EXPERIMENT, args={
        "select": select, "data": data, "sources": sources, "names": names, "items": lines}))
    return column(select, plot, sizing_mode="stretch_width")


def leads(found):
    """How far policies lie ahead of UCB over the mix of features in an item, under a slider for the correlation.

    Parameters
    ----------
    found : lib.experiments.Leads
        With at least two correlations.

    Returns
    -------
    bokeh.models.LayoutDOM
        Whiskers are 95 % intervals.
    """
    chosen = slider("correlation of two preferences", found.correlations)
    at, low, high = len(found.correlations) // 2, np.inf, -np.inf
    data = [[curve(leads, found.mixes, name, errors) for leads, errors in zip(*both)] for name, both in found.policies.items()]
    for columns in (columns for curves in data for columns in curves):
        low, high = min(low, *columns["low"]), max(high, *columns["high"])
    plot = canvas(330, "mix (1: an item has two features in equal parts)", "ahead of UCB, % of what exploration gains",
                  y_range=(low - 1, high + 1))
    plot.add_layout(Span(location=0, dimension="width", line_color=BLACK, line_width=1))
    sources = [ColumnDataSource(curves[at]) for curves in data]
    for n, (name, source) in enumerate(zip(found.policies, sources)):
        colour, marker = mark(name, n)
        plot.line("x", "y", source=source, line_width=2, color=colour, legend_label=name)
        plot.scatter("x", "y", source=source, size=8, color=colour, marker=MARKERS.get(marker, "circle"), legend_label=name)
        plot.add_layout(Whisker(source=source, base="x", upper="high", lower="low", line_color=colour))
    plot.add_layout(plot.legend[0], "below")
    plot.legend.orientation, plot.legend.border_line_color = "horizontal", None
    chosen.js_on_change("value", CustomJS(code=SHOW_LEADS, args={"slider": chosen, "data": data, "sources": sources}))
    return column(chosen, plot, sizing_mode="stretch_width")


def plane(found):
    """The plane of two preferences on which the page draws beliefs: empty sources with the names that play.js fills."""
    reach = 3.2 * np.sqrt(np.diag(found.problem.Sigma))
    low, high = found.problem.mu - reach, found.problem.mu + reach
    plot = canvas(340, "worth of the first feature", "worth of the second feature", x_range=(low[0], high[0]), y_range=(low[1], high[1]))
    empty = {name: ColumnDataSource({"x": [], "y": []}, name=name) for name in ("first", "now", "mean", "even", "theta")}
    plot.line("x", "y", source=empty["first"], color=GREY, line_width=1, line_dash="2 2", legend_label="belief at first")
    plot.line("x", "y", source=empty["now"], color=BLUE, line_width=3, legend_label="belief now, 95 %")
    plot.scatter("x", "y", source=empty["mean"], color=BLUE, size=8)
    plot.line("x", "y", source=empty["even"], color=ORANGE, line_width=2, legend_label="this item breaks even")
    plot.scatter("x", "y", source=empty["theta"], color=RED, size=16, marker="star", legend_label="the truth, at the end")
    plot.add_layout(plot.legend[0], "below")
    plot.legend.ncols, plot.legend.border_line_color = 2, None
    return plot


def game_data(found, features, policies, limit):
    """The numbers of the game as JSON can hold them.

    Parameters
    ----------
    found : lib.experiments.Game
    features : sequence of str (2,)
    policies : dict
        Name: mean reward over many users and its standard error, in the order of the game's policies.
    limit : float
        Upper bound on the mean reward of any policy over all users.

    Returns
    -------
    dict

    Raises
    ------
    ValueError
        Naming the argument that does not fit.
    """
    if len(features) != len(found.problem.mu):
        raise ValueError(f"features has {len(features)} names: the game has {len(found.problem.mu)}")
    if len(policies) != len(found.decisions):
        raise ValueError(f"policies has {len(policies)} names: the game has {len(found.decisions)}")
    pairs = np.asarray(list(policies.values()), float)
    if pairs.shape != (len(policies), 2) or not (np.isfinite(pairs).all() and np.isfinite(limit)):
        raise ValueError(f"policies has the means {pairs.tolist()} and limit is {limit}: pairs of finite numbers and one more are needed")
    problem = found.problem
    users = [{"theta": found.theta[r].tolist(), "items": found.items[r].tolist(), "feedback": found.feedback[r].tolist(),
              "decisions": found.decisions[:, r].astype(int).tolist(), "rewards": found.rewards[:, r].tolist(),
              "hindsight": float(found.hindsight[r])} for r in range(len(found.theta))]
    return {"features": list(features), "x": problem.items.tolist(), "noise": found.noise_var.tolist(), "mu": problem.mu.tolist(),
            "Sigma": problem.Sigma.tolist(), "cost": problem.cost, "gamma": problem.gamma, "users": users,
            "policies": list(policies), "means": pairs.tolist(), "limit": float(limit)}


def embedded(kind, still, model, game=None):
    """A Bokeh model as a part of a page, in place of the picture `still` once the page's script has drawn it.

    Parameters
    ----------
    kind : {"sheets", "rewards", "leads", "game"}
        Names the part.
    still : str
        Label of the figure that is shown without a script, such as "fig-play-sheets".
    model : bokeh.models.LayoutDOM
    game : dict, optional
        From `game_data`.

    Returns
    -------
    IPython.display.HTML

    Raises
    ------
    ValueError
        For an unknown kind, or a document of more than LIMIT characters.
    """
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}: it must be one of {', '.join(KINDS)}")
    text = json.dumps({"item": json_item(model), "game": game}, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
    if len(text) > LIMIT:
        raise ValueError(f"model takes {len(text):,} characters: a page may hold {LIMIT:,}")
    return HTML(f'<div class="play" data-kind="{kind}" data-still="{still}"><script type="application/json">{text}</script></div>')
