"""Pictures that explain the model, the bound, the policies' decisions, and what became of claims.

As in lib.figures, functions take arrays and labels, return a figure, and captions carry the titles.
"""
import numpy as np

from lib.figures import BLACK, BLUE, BOUND, GREEN, GREY, MAP, ORANGE, RED, canvas, label_ends, mark, styled


@styled
def survival(n, shares, law):
    """Simulated shares of users who see at least n items, (m,) points, and the law's, a line; logarithmic scale."""
    figure, ((axes,),) = canvas(height=3.4)
    axes.semilogy(n, law, color=BLACK, linewidth=1.2)
    axes.semilogy(n, np.where(shares > 0, shares, np.nan), "o", color=BLUE)
    axes.annotate(r"$\gamma^n$", (n[-1], law[-1]), (6, 0), textcoords="offset points", va="center")
    axes.set(xlabel="number of items n", ylabel="share who see at least n")
    return figure


@styled
def convergence(draws, means, halves, lower, upper):
    """Estimates with 95 % half-widths, (m,) each, over the number of draws, and the bracket they converge to."""
    figure, ((axes,),) = canvas(height=3.4)
    axes.axhspan(lower, upper, color=GREY, alpha=.5, linewidth=0)
    axes.axhline(upper, **BOUND)
    axes.errorbar(draws, means, halves, fmt="o", color=BLUE, capsize=3)
    axes.annotate("bracket", (1.01, upper), xycoords=("axes fraction", "data"), va="center", fontsize=9)
    axes.set(xscale="log", xlabel="draws", ylabel="upper bound")
    return figure


@styled
def projection_laws(laws, names):
    """For each item, the probabilities of the magnitudes that coming items project onto it; a tick marks the mean.

    Parameters
    ----------
    laws : sequence of (magnitudes (m,), probs (m,))
    names : sequence of str

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, grid = canvas(len(laws), width=1.9 * len(laws), height=2.8, sharex=True, sharey=True)
    for axes, (x, p), name in zip(grid[0], laws, names):
        axes.vlines(x, 0, p, color=BLUE, linewidth=4)
        axes.plot(x @ p, 0, "^", color=RED, markersize=9, clip_on=False, zorder=5)
        axes.annotate(f"M = {x @ p:.2f}", (.97, .97), xycoords="axes fraction", ha="right", va="top", color=RED, fontsize=9)
        axes.set(xlabel=name, ylim=(0, 1.02), xlim=(-.08, max(x.max() for x, _ in laws) + .08))
    grid[0, 0].set_ylabel("probability")
    return figure


@styled
def decision_strip(items, names, decisions):
    """What each policy forwards of one stream: a marker where it does, a dot where it does not.

    Parameters
    ----------
    items : array of int (m,)
        Kind of each item in the order of arrival.
    names : sequence of str
        Names of the kinds.
    decisions : dict
        Policy: bool (m,).

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, ((axes,),) = canvas(height=1.1 + .36 * len(decisions))
    place = np.arange(1, len(items) + 1)
    for at, kind in zip(place, items):
        axes.annotate(names[kind], (at, -1), ha="center", va="center", fontsize=8, annotation_clip=False)
    for row, (policy, forwarded) in enumerate(decisions.items()):
        colour, marker = mark(policy, row)
        axes.plot(place, np.full(len(place), row), ".", color="#C8C8C8", markersize=3)
        axes.plot(place[forwarded], np.full(forwarded.sum(), row), marker, color=colour, markersize=7)
    axes.set_yticks(range(-1, len(decisions)), ["item", *decisions])
    axes.set(xlabel="item number", ylim=(len(decisions) - .5, -1.5), xlim=(0, len(items) + 1))
    axes.grid(False)
    return figure


@styled
def tuning(alphas, curves, bound=None, label="upper bound"):
    """Reward over alpha on a logarithmic scale, {policy: (means (a,), 95 % half-widths (a,))}, and an upper bound."""
    figure, ((axes,),) = canvas()
    ends = []
    for position, (policy, (means, halves)) in enumerate(curves.items()):
        colour, marker = mark(policy, position)
        axes.fill_between(alphas, means - halves, means + halves, color=colour, alpha=.18, linewidth=0)
        axes.semilogx(alphas, means, color=colour, marker=marker)
        ends.append((alphas[-1], means[-1], policy, colour))
    if bound is not None:
        axes.axhline(bound, **BOUND)
        ends.append((alphas[-1], bound, label, BLACK))
    axes.set(xlabel=r"$\alpha$", ylabel="total discounted reward")
    label_ends(axes, ends)
    return figure


@styled
def forwarding_map(rates, types):
    """Share of items forwarded, by type and time: {policy: (types, times)}, one set of axes a policy."""
    figure, grid = canvas(len(rates), width=9.5, height=1.5 + .4 * len(types), sharey=True)
    for axes, (name, rate) in zip(grid[0], rates.items()):
        image = axes.imshow(rate, aspect="auto", cmap=MAP, vmin=0, vmax=1, interpolation="nearest",
                            extent=(.5, rate.shape[1] + .5, len(types) - .5, -.5))
        axes.annotate(name, (0, 1.03), xycoords="axes fraction", color=mark(name)[0], fontsize=8.5,
                      weight="bold")
        axes.set_xlabel("item number")
        axes.grid(False)
    grid[0, 0].set_yticks(range(len(types)), types)
    figure.colorbar(image, ax=grid, label="share forwarded", aspect=12)
    return figure


@styled
def ledger_bars(claims, values, low, high, verdicts, xlabel="ours"):
    """One bar a claim, (n,) values with 95 % intervals, coloured and worded by verdict."""
    names = sorted(set(verdicts))
    colours = dict(zip(names, (BLUE, ORANGE, RED, GREY, GREEN)))
    figure, ((axes,),) = canvas(width=8, height=.8 + .42 * len(claims))
    place = np.arange(len(claims))
    axes.barh(place, values, color=[colours[v] for v in verdicts], alpha=.85)
    axes.errorbar(values, place, xerr=(values - low, high - values), fmt="none", color=BLACK, capsize=2, linewidth=1)
    for at, end, verdict in zip(place, np.maximum(high, 0), verdicts):
        axes.annotate(verdict, (end, at), (5, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(place, claims)
    axes.set(xlabel=xlabel, ylim=(len(claims) - .5, -.5))
    axes.axvline(0, color=BLACK, linewidth=.8)
    return figure
