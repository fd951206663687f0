"""One self-contained page about a stream of your own: `python -m lib.report items.csv ratings.csv --cost 3.5`.

The page holds its pictures and loads nothing from elsewhere.  It is written whole or not at all.  What is wrong with
the files or the arguments is said in one line that names file, line, column and value; the exit code is then 2.
Ctrl-C ends it with one line and exit code 130.
"""
import argparse
import base64
import io
import os
from pathlib import Path
import re
import sys
import warnings

from jinja2 import Environment, FileSystemLoader, StrictUndefined
import numpy as np
import pandas as pd

from lib import cache, datasets, experiments, figures, filter, policies
from lib.estimate import interval
from lib.problem import NOISES, as_scalar
from lib.report import analysis, checks, progress
from lib.report.interrupt import INTERRUPTED
from lib.report.progress import step

DOING = 22                                      # steps that the bar counts: two a cost, at eight costs, and six
ENOUGH = 8                                      # users from whom on a law of the noise is chosen
BINS = 8                                        # of predictions, two in each at least


LINES = """from lib.filter import Filter, read
problem, policy = read({file!r})
user = Filter(problem, policy)
if user.decide(problem.items[0]):
    user.learn(problem.items[0], {rating:g})
"""


def picture(figure, alt, caption):
    """A figure for the template: its description, its caption and the image in base64."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=120, metadata={"Software": None})
    return {"alt": alt, "caption": caption, "data": base64.b64encode(stream.getvalue()).decode()}


def grid(frame):
    """A data frame for the template: its head and its rows as text, numbers to four digits.

    Examples
    --------
    >>> grid(pd.DataFrame({"a": ["x", "y"], "b": [1.23456, np.nan]}))
    {'head': ['a', 'b'], 'rows': [['x', '1.235'], ['y', '']]}
    """
    def text(value):
        if isinstance(value, (float, np.floating)):
            return "" if np.isnan(value) else f"{value:.4g}"
        return str(value)
    return {"head": [str(name) for name in frame], "rows": [[text(value) for value in row] for row in frame.itertuples(index=False)]}


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
                     "Reward of tuned policies and the upper bound over the forwarding cost",
                     f"{at} {top.policy} earns {interval(top.over_exploitation, top.over_se, count=top.replications)} more than exploitation. Total "
                     "discounted reward of each policy, alpha tuned, and the upper bound (dashed)."),
             picture(figures.gap_over_cost(figures.Panel(costs, experiments.curves(table, "gap")), count),
                     "Optimality gap of tuned policies over the forwarding cost",
                     f"{at} {top.policy} stays {interval(top.gap, top.gap_se)} below the bound. Bound minus reward.")]
    seen = datasets.predict(data, prior, prior.held_out) if len(prior.held_out) else None
    if seen is not None and len(seen.user) >= 2 * BINS:
        bias = datasets.scores(seen)["bias"]
        parts.append(picture(figures.calibration({"held-out users": datasets.calibration(seen, BINS)}),
                             f"Mean rating against mean prediction in {BINS} bins",
                             f"Later ratings lie {abs(bias):.2g} {'below' if bias < 0 else 'above'} their predictions on average. "
                             "Later half of the held-out users' ratings, predicted from the earlier half; on the dashed line both agree."))
    return parts


def noise_found(found):
    """The noise of the prior, and how its law was chosen, in words."""
    prior, choice = found.prior, found.noise
    of, law = {"features": ("one feature", "grows with the number of features"), "constant": ("a rating", "is the same for all items")}[prior.noise]
    said = f"Noise standard deviation of {of} {prior.noise_sd:.4g}, from the residuals; its variance {law}."
    if choice is None or choice.lead.se == 0:
        return said
    other = "features" if prior.noise == "constant" else "constant"
    lead = abs(choice.lead.mean)
    return (f"{said} Of the two laws this one predicts the later ratings of held-out users better, by a log density of "
            f"{interval(lead, choice.lead.se)} a rating ({choice.log_density[prior.noise]:.4g} against {choice.log_density[other]:.4g}).")


def render(found, shown, file):
    """The page around its pictures, `shown`; `file` is the name of the file that the filter reads."""
    data, prior, top, real = found.dataset, found.prior, found.best.iloc[0], found.replayed
    low, high = data.notes["rating_range"]
    counts = pd.DataFrame([(name.replace("_", " "), words(value)) for name, value in {**data.notes, **prior.counts}.items()],
                          columns=["count", "value"])
    environment = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined)
    return environment.get_template("page.html").render(
        title=data.source, answer=answer(found), file=file, lines=LINES.format(file=file, rating=float(np.median(data.ratings.value))),
        cautions=found.cautions, train=len(prior.train), held_out=len(prior.held_out), method=method(prior), noise=noise_found(found),
        low=f"{low:g}", high=f"{high:g}", pictures=shown, preferences=grid(preferences(data.features, prior)), cost=f"{found.problem.cost:g}",
        users=found.users, measured=int(top.replications), followed=followed(found), compared=grid(compared(found.best)),
        guide=grid(guide(data, prior, sorted(set(found.table.cost)))), counts=grid(counts),
        replayed=None if real is None else {"users": int(real.users.iloc[0]), "table": grid(real_rewards(real))})


def companion(output):
    """The file beside a page that the filter reads: its name with the ending .json.

    Raises
    ------
    ValueError
        When the page itself has that name.

    Examples
    --------
    >>> str(companion("report.html"))
    'report.json'
    """
    path = Path(output).with_suffix(".json")
    if path == Path(output):
        raise ValueError(f"output is {str(output)!r}: the page needs another ending, {path.name} is for the filter")
    return path


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
    parser.add_argument("--noise", choices=NOISES, help="law of the noise: its variance grows with the features of an item or is "
                        "constant (what predicts held-out ratings better)")
    parser.add_argument("--min-ratings", type=int, help="leave out users with fewer (10, or three a feature, 30 at most for empirical Bayes)")
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
    for path in (chosen.output, companion(cache.destination(chosen.output, (chosen.items, chosen.ratings)))):
        cache.destination(path, (chosen.items, chosen.ratings))


def analysed(chosen):
    """What the command line asks for: an Analysis."""
    unit = {} if chosen.time_unit is None else {"time_unit": chosen.time_unit}
    step("reading the files")
    data = datasets.ratings(chosen.items, chosen.ratings, chosen.scale, **unit)
    low, high = data.notes["rating_range"]
    if low == high:
        raise ValueError(f"{chosen.ratings}: every rating is {low:g}, there is nothing to learn")
    analysis.check_sizes(data, chosen.cost)
    prior, choice = fitted(data, chosen)
    found = analysis.analyse(data, prior, chosen.cost, chosen.gamma, users=chosen.users, seed=chosen.seed)
    return found._replace(noise=choice)


def least_ratings(features, method):
    """Ratings of a user, at least, unless told otherwise: 10, or three a feature; 30 are enough for empirical Bayes."""
    return max(10, 3 * features if method == "least_squares" else min(3 * features, 30))


def fitted(data, chosen):
    """The Prior that the command line asks for, and the NoiseChoice where the law of the noise was left to the ratings."""
    least = least_ratings(len(data.features), chosen.prior) if chosen.min_ratings is None else chosen.min_ratings
    options = {"seed": chosen.seed, "method": chosen.prior, "min_ratings": least}
    if chosen.noise is None and np.ptp(np.count_nonzero(data.items, axis=1)):
        step("prior, by either law of the noise")
        enough = (datasets.records.counts(data) >= least).sum()
        if enough >= ENOUGH:
            choice = datasets.choose_noise(data, **options)
            return choice.priors[choice.law], choice
    step("prior")
    return datasets.prior(data, noise=chosen.noise or "features", **options), None


def out_of_range(raised):
    """A Caution for warnings of the calculation, in place of lines about code; a list, empty where there were none."""
    said = sorted({str(each.message) for each in raised if issubclass(each.category, RuntimeWarning)})
    return [checks.Caution("numbers out of range", f"The calculation met: {'; '.join(said)}. Some numbers of this page may be "
                             "missing or wrong.")] if said else []


def run(chosen):
    """Analyse and write the page: an Analysis."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("default")
        with progress.shown(DOING):
            found = analysed(chosen)
            step("pictures")
            shown = pictures(found)
        found = found._replace(cautions=found.cautions + out_of_range(raised))
        path = companion(cache.destination(chosen.output))
        page = render(found, shown, path.name)
    filter.write(path, found.problem, found.recommended)
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
