"""One self-contained page about a stream of your own: `python -m lib.report items.csv ratings.csv --cost 3.5`.

The page holds its pictures and loads nothing from elsewhere.  It is written whole or not at all.  What is wrong with
the files or the arguments is said in one line that names file, line, column and value; the exit code is then 2.
Ctrl-C ends it with one line and exit code 130.
"""
import argparse
import base64
from html import escape
import io
import os
import re
import sys
import warnings

import numpy as np
import pandas as pd

from lib import cache, datasets, experiments, figures, policies
from lib.estimate import interval
from lib.problem import as_scalar
from lib.report import analysis, checks
from lib.report.interrupt import INTERRUPTED

BINS = 8                                        # of predictions, two in each at least


PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Information filtering: {title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }}
img {{ max-width: 100%; height: auto; background: white; }}
table {{ border-collapse: collapse; display: block; overflow-x: auto; }}
td, th {{ padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #8886; }}
td:first-child, th:first-child {{ text-align: left; }} td + td {{ white-space: nowrap; }}
.answer, .caution {{ border-left: 4px solid #0072B2; padding: .3rem 1rem; margin: 1rem 0; }}
.caution {{ border-color: #D55E00; }}
figure {{ margin: 1rem 0; overflow-x: auto; }} figcaption {{ font-size: .9rem; position: sticky; left: 0; }}
@media (max-width: 600px) {{ figure img {{ max-width: none; width: 36rem; }} }}
</style></head><body>
<h1>Which items to forward</h1>
<p>{title}</p>
{body}
</body></html>
"""


def picture(figure, alt, caption):
    """A figure as HTML with the image inside."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=120, metadata={"Software": None})
    data = base64.b64encode(stream.getvalue()).decode()
    return (f'<figure><img alt="{escape(alt)}" src="data:image/png;base64,{data}">'
            f"<figcaption>{escape(caption)}</figcaption></figure>")


def grid(frame):
    """A data frame as an HTML table, numbers to four digits."""
    return frame.to_html(index=False, border=0, float_format=lambda x: f"{x:.4g}", na_rep="")


def words(value):
    """A count, a range, a list or a yes or no, as a reader would write it.

    Examples
    --------
    >>> words(100004), words((0.5, 5.0)), words([]), words(True)
    ('100,004', '0.5 to 5', 'none', 'yes')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return " to ".join(f"{x:g}" for x in value)
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}"


def compared(best):
    """The tuned policies in words: a data frame."""
    pairs = {"reward a user": ("mean", "se"), "over exploitation": ("over_exploitation", "over_se"),
             "below the bound": ("gap", "gap_se")}
    return best[["policy", "alpha"]].assign(**{
        name: [interval(*pair, count=count) for *pair, count in zip(best[value], best[se], best.replications)]
        for name, (value, se) in pairs.items()}, optimism=best.optimism)


def real_rewards(replayed):
    """Rewards on real ratings in words: a data frame, exploitation's differences to itself left blank."""
    apart = [interval(*pair) if pair[1] > 0 else "" for pair in zip(replayed.difference, replayed.difference_se)]
    return replayed[["order", "policy", "reward"]].assign(difference=apart)


def preferences(names, prior):
    """The prior of each feature: a data frame."""
    return pd.DataFrame({"feature": names, "mean": prior.mu, "standard deviation": np.sqrt(np.diag(prior.Sigma))})


def answer(found):
    """The recommendation in a sentence or two."""
    top = found.best.iloc[0]
    if not found.forwards:
        return (f"At cost {found.problem.cost:g} the best policy that was tried forwards nothing: the prior expects too little. The upper "
                f"bound on what could be earned is {interval(top.bound, top.bound_se)}.")
    share = f" That is {min(100 * top['mean'] / top.bound, 100):.0f} % of what is possible, or more." if top.bound > 0 else ""
    return (f"At cost {found.problem.cost:g} use {policies.label(found.recommended)}. It earns {interval(top['mean'], top.se, count=top.replications)} a "
            f"user, and no policy can earn more than {interval(top.bound, top.bound_se)} (95 % intervals).{share}")


def followed(found):
    """For how long simulated users were followed, and what is left out, in words."""
    return (f"Every simulated user is followed for {found.horizon:,} items; the bound counts a life without end. What comes "
            f"after them is worth at most {found.rest:.2g} to any policy.")


def guide(dataset, prior, costs):
    """For each cost: how many ratings and items are above it; a data frame."""
    mean, value = dataset.items @ prior.mu, dataset.ratings.value
    return pd.DataFrame({"cost": costs, "ratings at or above it, %": [100 * np.mean(value >= c) for c in costs],
                         "items expected to be worth it, %": [100 * dataset.probs @ (mean >= c) for c in costs]})


def method(prior):
    """How the prior was fitted, in words."""
    return "empirical Bayes" if "fit_steps" in prior.counts else "least squares"


def pictures(found):
    """The report's pictures, as HTML: prior, rewards, gaps, calibration."""
    data, prior, table, top = found.dataset, found.prior, found.table, found.best.iloc[0]
    spread, at = np.sqrt(np.diag(prior.Sigma)), f"At cost {found.problem.cost:g}"
    costs = sorted(set(table.cost))
    limits = table.groupby("cost").bound.first().loc[costs].to_numpy()
    count = int(table.replications.iloc[0])
    parts = [picture(figures.priors(data.features, {method(prior): (prior.mu, prior.Sigma)}, "rating"),
                     "Prior mean and spread of the preference for each feature",
                     f"Users differ by {spread.min():.2g} to {spread.max():.2g} in their preference for a feature (standard "
                     "deviations). Markers are the means of the prior, lines reach one standard deviation to either side."),
             picture(figures.reward_over_cost(figures.Panel(costs, experiments.curves(table), limits), count),
                     "Reward of five policies and the upper bound over the forwarding cost",
                     f"{at} {top.policy} earns {interval(top.over_exploitation, top.over_se, count=top.replications)} more than exploitation. Total "
                     "discounted reward of each policy, alpha tuned, and the upper bound (dashed)."),
             picture(figures.gap_over_cost(figures.Panel(costs, experiments.curves(table, "gap")), count),
                     "Optimality gap of five policies over the forwarding cost",
                     f"{at} {top.policy} stays {interval(top.gap, top.gap_se)} below the bound. Bound minus reward.")]
    seen = datasets.predict(data, prior, prior.held_out) if len(prior.held_out) else None
    if seen is not None and len(seen.user) >= 2 * BINS:
        bias = datasets.scores(seen)["bias"]
        parts.append(picture(figures.calibration({"held-out users": datasets.calibration(seen, BINS)}),
                             f"Mean rating against mean prediction in {BINS} bins",
                             f"Later ratings lie {abs(bias):.2g} {'below' if bias < 0 else 'above'} their predictions on average. "
                             "Later half of the held-out users' ratings, predicted from the earlier half; on the dashed line both agree."))
    return parts


def body(found, shown):
    """The page's content around its pictures, `shown`."""
    data, prior, top = found.dataset, found.prior, found.best.iloc[0]
    low, high = data.notes["rating_range"]
    warned = "".join(f'<div class="caution"><b>{escape(c.name.capitalize())}.</b> {escape(c.text)}</div>' for c in found.cautions)
    counts = "".join(f"<tr><td>{escape(name.replace('_', ' '))}</td><td>{escape(words(value))}</td></tr>"
                     for name, value in {**data.notes, **prior.counts}.items())
    real = "" if found.replayed is None else (
        f"<h2>On the real ratings of {len(prior.held_out)} held-out users</h2><p>Each policy meets the items that a user rated, real "
        "ratings for feedback. Users chose those items: this shows how policies do on such streams, not on items at random."
        f" Differences are to exploitation, ± are 95 % intervals over users.</p>{grid(real_rewards(found.replayed))}")
    return "\n".join((
        f'<div class="answer">{escape(answer(found))}</div>', f"<h2>Warnings</h2>{warned or '<p>None.</p>'}",
        f"<h2>The prior and the noise</h2><p>{len(prior.train)} users ({method(prior)}), {len(prior.held_out)} "
        f"others held out. Noise standard deviation of one feature {prior.noise_sd:.4g}, from the residuals. Ratings run from {low:g} "
        f"to {high:g}.</p>{shown[0]}{grid(preferences(data.features, prior))}",
        f"<h2>Policies at cost {found.problem.cost:g}</h2><p>Alpha was chosen on {found.users} simulated users, the "
        f"numbers come from {int(top.replications)} others (± are 95 % intervals). Policies stand in the order of what they earned on "
        "the first; optimism is what choosing and measuring on the same users would have added. "
        f"{escape(followed(found))}</p>"
        f"{grid(compared(found.best))}", "<h2>Over the cost</h2>", *shown[1:3],
        "<h2>Choosing a cost</h2><p>The cost is in the unit of the ratings: the rating at which you would be indifferent between "
        "showing an item and showing nothing. If an item above it is worth an interruption and one below is not, that is "
        f"your cost.</p>{grid(guide(data, prior, sorted(set(found.table.cost))))}",
        *(["<h2>Does the model describe your users?</h2>", shown[3]] if len(shown) > 3 else []), real,
        f"<h2>What was read</h2><table>{counts}</table>"))


def write(text, path):
    """Write `text` to `path`, whole or not at all; what UTF-8 cannot hold (of a file's name) as its escape."""
    with cache.whole(path, "wb") as file:
        file.write(text.encode("utf-8", "backslashreplace"))


def scale(text):
    """'1:5' as (1.0, 5.0)."""
    low, colon, high = text.partition(":")
    try:
        found = float(low), float(high)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not low:high, such as 1:5") from None
    if not (colon and found[0] < found[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not low:high, such as 1:5")
    return found


def tied(words):
    """Words of a command line, a negative number tied to its option: argparse would take it for an option.

    Examples
    --------
    >>> tied(["--cost", "-1e-3", "--scale", "-10:10", "-x"])
    ['--cost=-1e-3', '--scale=-10:10', '-x']
    """
    found = []
    for word in words:
        if found and re.match(r"--\w[^=]*$", found[-1]) and re.match(r"-(\.?\d|inf|nan)", word, re.IGNORECASE):
            word = f"{found.pop()}={word}"
        found.append(word)
    return found


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message):
        self.exit(2, f"error: {message} (--help explains)\n")


def arguments(words):
    """The parsed command line."""
    parser = Parser(
        prog="python -m lib.report", description="Analyse a stream of items and ratings; writes one HTML file.",
        epilog="The cost is the rating at which showing an item and showing nothing are equally good. The report lists how many "
               "ratings and items lie above it and above other costs.")
    parser.add_argument("items", help="CSV: item_id, then one column a feature, numbers")
    parser.add_argument("ratings", help="CSV: user_id, item_id, rating, and time if known")
    parser.add_argument("--cost", type=float, required=True, help="cost of forwarding one item, in the unit of the ratings")
    parser.add_argument("--gamma", type=float, default=.9, help="discount: a user meets gamma/(1-gamma) items (%(default)s)")
    parser.add_argument("--scale", type=scale, help="lowest and highest rating, such as 1:5: others are errors")
    parser.add_argument("--time-unit", choices=("s", "ms", "us", "ns"), help="unit of times that are numbers")
    parser.add_argument("--prior", choices=("empirical_bayes", "least_squares"), default="empirical_bayes")
    parser.add_argument("--min-ratings", type=int, help="leave out users with fewer (10, or three a feature)")
    parser.add_argument("--users", type=int, default=1024, help="simulated users (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", default="report.html", help="the page (%(default)s)")
    return parser.parse_args(tied(words))


def check(chosen):
    """The parsed command line can be used, or ValueError with the argument and its value."""
    as_scalar("cost", chosen.cost)
    as_scalar("gamma", chosen.gamma, 0, 1)
    for name, (low, high) in {"users": analysis.USERS, "seed": (0, None), "min_ratings": (1, None)}.items():
        number = getattr(chosen, name)
        if number is not None and (number < low or high and number > high):
            raise ValueError(f"{name} is {number}: it must be at least {low}" + (f" and at most {high:,}" if high else ""))
    cache.destination(chosen.output, (chosen.items, chosen.ratings))


def analysed(chosen):
    """What the command line asks for: an Analysis."""
    unit = {} if chosen.time_unit is None else {"time_unit": chosen.time_unit}
    data = datasets.ratings(chosen.items, chosen.ratings, chosen.scale, **unit)
    low, high = data.notes["rating_range"]
    if low == high:
        raise ValueError(f"{chosen.ratings}: every rating is {low:g}, there is nothing to learn")
    analysis.check_sizes(data, chosen.cost)
    least = max(10, 3 * len(data.features)) if chosen.min_ratings is None else chosen.min_ratings
    prior = datasets.prior(data, seed=chosen.seed, method=chosen.prior, min_ratings=least)
    return analysis.analyse(data, prior, chosen.cost, chosen.gamma, users=chosen.users, seed=chosen.seed)


def out_of_range(raised):
    """A Caution for warnings of the calculation, in place of lines about code; a list, empty where there were none."""
    said = sorted({str(each.message) for each in raised if issubclass(each.category, RuntimeWarning)})
    return [checks.Caution("numbers out of range", f"The calculation met: {'; '.join(said)}. Some numbers of this page may be "
                             "missing or wrong.")] if said else []


def run(chosen):
    """Analyse and write the page: an Analysis."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("default")
        found = analysed(chosen)
        shown = pictures(found)
        found = found._replace(cautions=found.cautions + out_of_range(raised))
        page = PAGE.format(title=escape(found.dataset.source), body=body(found, shown))
    write(page, chosen.output)
    return found


def say(lines):
    """Print lines; one who stops reading them is no error."""
    try:
        print("\n".join(lines), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())      # or the end of the process would report it


def main(words=None):
    """Run the command line; 0, or 2 where something is wrong with files or arguments, 130 where it was interrupted."""
    chosen = arguments(sys.argv[1:] if words is None else words)
    try:
        check(chosen)
        found = run(chosen)
    except (ValueError, OSError) as error:
        print("error:", " ".join(str(error).split()), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: no page was written", file=sys.stderr)
        return INTERRUPTED
    say([answer(found), *(f"warning: {caution.name}. {caution.text}" for caution in found.cautions), f"written to {chosen.output}"])
    return 0
