"""The page with sliders and the game: its data against independent routes, its script against the belief update."""
from html.parser import HTMLParser
import json
from pathlib import Path
import shutil
import subprocess
import sys
from types import SimpleNamespace

from bokeh.models import CategoricalSlider, CustomJS, Model
import numpy as np
import pandas as pd
import play
import pytest

from lib import dp, experiments, figures, policies, posterior  # noqa: F401  (policies register their marks)
from lib.experiments import published
from lib.figures import interactive
from lib.filter import Filter
from lib.problem import make_problem

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "_ext" / "play.js"
RULES = [policies.exploit(), policies.ucb(.3), policies.dtd_dp(.8), policies.knowledge_gradient()]
SETTINGS = (.5, .9), (.5, 1.0), (.2, .5), np.linspace(-1.5, .5, 9), np.linspace(.1, 1.0, 7)


def make(features=2):
    items = [[1, 0], [0, 1], [.5, .5]] if features == 2 else np.eye(features)
    return make_problem(items, [.4, .4, .2], [3.4, 3.1, 3][:features], np.eye(features) + .3, 1, 3.3, .9, noise="constant")


@pytest.fixture(scope="module")
def sheets():
    return experiments.sheets(*SETTINGS)


@pytest.fixture(scope="module")
def game():
    return experiments.game(make(), RULES, users=5, seed=3)


def test_sheets_are_the_dynamic_program_of_their_settings(sheets):
    for g, gamma in enumerate(sheets.gammas):
        for f, share in enumerate(sheets.shares):
            table = dp.solve([1, 0], [share, 1 - share], gamma, sheets.noises[1], sheets.sd[-1] ** 2)
            for s, sd in enumerate(sheets.sd):
                line = dp.boundary(table, 1.0, sheets.noises[1] ** 2 / sd**2) * sd
                assert sheets.boundary[g, 1, f, s] == pytest.approx(line, abs=2e-3 * sd)
                value = dp.value(table, sheets.net_mean, sd**2).value       # by its certificate, not by q_values
                discard = dp.q_values(table, sheets.net_mean, sd**2)[0]
                assert discard == pytest.approx(gamma * value, abs=2e-3)


def test_the_benefit_pays_for_the_loss_on_the_boundary():
    """Where forwarding and discarding break even, mean - cost + benefit = 0."""
    fine = experiments.sheets([.5, .9], [1.0], [.5], np.linspace(-1.5, .5, 801), SETTINGS[-1])
    for at in np.ndindex(fine.boundary.shape):
        assert np.interp(fine.boundary[at], fine.net_mean, fine.benefit[at]) == pytest.approx(-fine.boundary[at], abs=2e-3)
    assert (fine.benefit >= 0).all() and (fine.boundary < 0).all()


def test_rewards_scale_with_their_unit(sheets):
    """Twice the noise, standard deviation and mean: twice the boundary and benefit."""
    gammas, noises, shares, net_mean, sd = SETTINGS
    double = experiments.sheets(gammas, [1.0, 2.0], shares, 2 * net_mean, 2 * sd)
    assert double.boundary == pytest.approx(2 * sheets.boundary, abs=2e-3)
    assert double.benefit == pytest.approx(2 * sheets.benefit, abs=2e-3)


def test_patience_and_frequency_move_the_boundary_down_and_noise_up(sheets):
    assert (np.diff(sheets.boundary, axis=0) < 0).all() and (np.diff(sheets.boundary, axis=2) < 0).all()
    assert (np.diff(sheets.boundary, axis=1) > 0).all() and (np.diff(sheets.boundary, axis=3) < 0).all()


@pytest.mark.parametrize("name", ["simulated", "ratings", "documents"])
def test_rewards_are_the_published_ones_and_lie_below_their_bounds(name):
    found, rows = experiments.rewards(name), pd.read_csv(published.FOLDER / f"{name}.csv")
    for policy, (values, errors) in found.policies.items():
        for cost, value, error in zip(found.costs, values, errors, strict=True):
            row, = rows[(rows.cost == cost) & (rows.policy == policy) & rows.chosen].itertuples()
            assert (row.mean, row.se) == (value, error)
    for label, (costs, limits) in found.bounds.items():
        for cost, limit in zip(costs, limits, strict=True):
            best = max(values[found.costs == cost][0] - 3 * errors[found.costs == cost][0] for values, errors in found.policies.values())
            assert best <= limit, (label, cost)
    full = rows.drop_duplicates("cost").sort_values("cost")
    assert found.bounds["full observation"][1] == pytest.approx(full.full_observation + 1.6449 * full.full_observation_se, rel=1e-5)
    assert found.bounds["Theorem 1"][1] == pytest.approx(full.decomposition_upper, rel=1e-9)
    assert ("first forward exact, then dual" in found.bounds) == (name != "simulated")


def test_leads_are_the_published_ones():
    found, rows = experiments.leads(), pd.read_csv(published.FOLDER / "alignment.csv")
    assert len(rows) == sum(lead.size for lead, _ in found.policies.values())
    for row in rows.itertuples():
        at = list(found.correlations).index(row.correlation), list(found.mixes).index(row.mix)
        assert [part[at] for part in found.policies[row.policy]] == [row.lead, row.lead_se]


def test_a_game_is_what_each_filter_does_with_the_same_ratings(game):
    for p, rule in enumerate(RULES):
        for r, theta in enumerate(game.theta):
            user, total, known = Filter(make(), rule), 0.0, 0.0
            for n, (item, rating) in enumerate(zip(game.items[r], game.feedback[r]), 1):
                x = make().items[item]
                worth = .9**n * (x @ theta - 3.3)
                known += max(worth, 0)
                assert user.decide(x) == game.decisions[p, r, n - 1]
                if game.decisions[p, r, n - 1]:
                    user.learn(x, rating)
                    total += worth
            assert game.rewards[p, r] == pytest.approx(total, abs=1e-12)
            assert game.hindsight[r] == pytest.approx(known, abs=1e-12) and total <= known + 1e-12


def test_a_game_needs_two_features():
    with pytest.raises(ValueError, match="problem has 3 features"):
        experiments.game(make(3), RULES)


def callbacks(model):
    return {found.code: found for found in model.references() if isinstance(found, CustomJS)}


def test_every_sheet_is_in_the_page_in_the_order_of_the_sliders(sheets):
    model = interactive.sheets(sheets)
    arguments = callbacks(model)[interactive.SHOW_SHEET].args
    sliders = arguments["sliders"]
    assert [one.categories for one in sliders] == [["0.5", "0.9"], ["0.5", "1"], ["0.2", "0.5"]]
    assert all(one.value == one.categories[1] for one in sliders)
    for at in np.ndindex(2, 2, 2):
        sheet = (at[0] * 2 + at[1]) * 2 + at[2]
        size = sheets.benefit[at].size
        assert arguments["benefit"][sheet * size:(sheet + 1) * size] == pytest.approx(sheets.benefit[at].ravel(), rel=1e-6)
        assert arguments["boundary"][sheet * 7:(sheet + 1) * 7] == pytest.approx(sheets.boundary[at], rel=1e-6)
    assert arguments["line"].data["x"] == sheets.boundary[1, 1, 1].tolist()
    assert (arguments["surface"].data["image"][0] == sheets.benefit[1, 1, 1].astype(np.float32)).all()


def test_every_curve_is_in_the_page_and_an_absent_one_is_empty():
    found = {name: experiments.rewards(name) for name in ("simulated", "documents")}
    model = interactive.rewards(found)
    arguments = callbacks(model)[interactive.SHOW_EXPERIMENT].args
    assert set(arguments["names"]) == {name for one in found.values() for name in (*one.policies, *one.bounds)}
    for name, one in found.items():
        for label, (values, _) in one.policies.items():
            assert arguments["data"][name][label]["y"] == values.tolist()
        for label, (costs, values) in one.bounds.items():
            assert arguments["data"][name][label]["x"] == costs.tolist() and arguments["data"][name][label]["y"] == values.tolist()
    assert arguments["data"]["simulated"]["first forward exact, then dual"]["x"] == []
    assert [item.visible for item, name in zip(arguments["items"], arguments["names"]) if name.startswith("first forward")] == [False]
    data = callbacks(interactive.leads(experiments.leads()))[interactive.SHOW_LEADS].args["data"]
    assert [[curve["y"] for curve in one] for one in data] == [lead.tolist() for lead, _ in experiments.leads().policies.values()]


def test_a_bound_is_never_rounded_down():
    assert interactive.curve([.1231, .123], [1, 2], "a")["text"] == ["at most 0.124", "at most 0.123"]
    assert interactive.curve([.1231], [1], "a", [.01])["text"] == ["0.123 ± 0.02"]


class Part(HTMLParser):
    """Collects the attributes and the JSON of an embedded document."""

    def __init__(self, text):
        super().__init__()
        self.found, self.text = {}, ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.update(attributes)

    def handle_data(self, data):
        self.text += data


def numbers(game):
    return interactive.game_data(game, ("drama", "</script>"), dict(zip("abcd", [(1, .1)] * 4)), 2.0)


def test_a_document_survives_the_page(game):
    page = interactive.embedded("game", "fig-x", interactive.plane(game), numbers(game))
    part = Part(page.data)
    found = json.loads(part.text)
    assert part.found["data-still"] == "fig-x" and part.found["data-kind"] == "game" and page.data.startswith(play.PART)
    assert found["game"] == json.loads(json.dumps(numbers(game))) and found["item"]["doc"]["roots"]
    assert np.array_equal([user["feedback"] for user in found["game"]["users"]], game.feedback)


def test_a_document_may_hold_so_much(monkeypatch, game):
    assert len(interactive.embedded("game", "a", interactive.plane(game)).data) < interactive.LIMIT == 2_000_000
    monkeypatch.setattr(interactive, "LIMIT", 100)
    with pytest.raises(ValueError, match="a page may hold 100"):
        interactive.embedded("game", "a", interactive.plane(game))


def test_the_page_holds_less_than_two_megabytes():
    most = experiments.Sheets(*(np.linspace(.1, .9, n) for n in (5, 3, 4)), np.linspace(-2, .5, 51), np.linspace(.05, 1.5, 30),
                              np.full((5, 3, 4, 30), -.123456789), np.full((5, 3, 4, 30, 51), .123456789))
    parts = [interactive.embedded("sheets", "a", interactive.sheets(most)),
             interactive.embedded("rewards", "b", interactive.rewards({n: experiments.rewards(n) for n in ("simulated", "ratings", "documents")})),
             interactive.embedded("leads", "c", interactive.leads(experiments.leads()))]
    assert sum(len(part.data) for part in parts) < 1_500_000


@pytest.mark.parametrize("call, message", [
    (lambda s, g: interactive.sheets(s._replace(gammas=s.gammas[:1])), "discount gamma has the values"),
    (lambda s, g: interactive.sheets(s._replace(benefit=s.benefit * np.nan)), "benefit must be finite"),
    (lambda s, g: interactive.sheets(s._replace(sd=s.sd**2)), "sd has the steps"),
    (lambda s, g: interactive.rewards({}), "experiments is {}"),
    (lambda s, g: interactive.game_data(g, ("a",), dict.fromkeys("abcd", (1, 1)), 1), "features has 1 names: the game has 2"),
    (lambda s, g: interactive.game_data(g, "ab", {"a": (1, 1)}, 1), "policies has 1 names: the game has 4"),
    (lambda s, g: interactive.game_data(g, "ab", dict.fromkeys("abcd", (1, np.nan)), 1), "policies has the means"),
    (lambda s, g: interactive.game_data(g, "ab", dict.fromkeys("abcd", (1, 1)), np.nan), "limit is nan"),
    (lambda s, g: interactive.embedded("nonsense", "a", interactive.plane(g)), "kind is 'nonsense'")])
def test_bad_input_is_refused_by_name(sheets, game, call, message):
    with pytest.raises(ValueError, match=message):
        call(sheets, game)


def test_a_slider_of_equal_names_is_refused():
    with pytest.raises(ValueError, match="all different"):
        interactive.slider("x", [1.0, 1.0 + 1e-12])
    assert isinstance(interactive.slider("x", [1, 2]), CategoricalSlider) and issubclass(CategoricalSlider, Model)


def test_other_chapters_do_not_load_bokeh():
    code = "import sys, lib.figures, lib.experiments; sys.exit('bokeh' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_the_script_is_short():
    assert len(SCRIPT.read_text().splitlines()) < 200


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node: tests/test_play.py runs the script in a browser")
def test_the_script_learns_and_counts_as_lib_does(game):
    code = f"""const play = require({str(SCRIPT)!r}), game = JSON.parse(require("fs").readFileSync(0));
    console.log(JSON.stringify(game.users.map(user => user.decisions.map(decisions => {{
      let belief = {{mu: game.mu, Sigma: game.Sigma}};
      const beliefs = decisions.map((go, n) => {{
        const item = user.items[n];
        if (go) belief = play.learn(belief, game.x[item], user.feedback[n], game.noise[item]);
        return [belief, play.project(belief, game.x[item]), play.ellipse(belief), play.evenLine(game.x[item], game.cost)];
      }});
      return {{beliefs, reward: play.reward(game, user, decisions)}};
    }}))));"""
    done = subprocess.run(["node", "-e", code], input=json.dumps(numbers(game)), capture_output=True, text=True, check=True)
    for r, of_user in enumerate(json.loads(done.stdout)):
        for p, played in enumerate(of_user):
            assert played["reward"] == pytest.approx(game.rewards[p, r], abs=1e-12)
            rows = []
            for n, (belief, seen, ellipse, even) in enumerate(played["beliefs"]):
                x = make().items[game.items[r, n]]
                if game.decisions[p, r, n]:
                    rows.append((x, game.feedback[r, n]))
                mu, Sigma = (posterior.batch(make().mu, make().Sigma, *map(np.array, zip(*rows)), np.ones(len(rows)))
                             if rows else (make().mu, make().Sigma))        # all at once, not one by one
                assert belief["mu"] == pytest.approx(mu, abs=1e-9) and np.allclose(belief["Sigma"], Sigma, atol=1e-9)
                assert (seen["mean"], seen["var"]) == pytest.approx((x @ mu, x @ Sigma @ x), abs=1e-9)
                away = np.transpose([ellipse["x"], ellipse["y"]]) - mu
                assert np.einsum("ij,jk,ik->i", away, np.linalg.inv(Sigma), away) == pytest.approx(5.991, rel=1e-6)
                assert np.transpose([even["x"], even["y"]]) @ x == pytest.approx(3.3, abs=1e-9)


def application(folder, format="html"):
    names = []
    found = SimpleNamespace(builder=SimpleNamespace(format=format), outdir=str(folder), add_js_file=lambda name, **_: names.append(name),
                            add_css_file=names.append)
    return found, names


def test_the_scripts_come_from_the_package_and_name_no_server(tmp_path):
    play.copy_scripts(application(tmp_path)[0])
    kept = {path.name: path.read_text() for path in (tmp_path / "_static" / "play").iterdir()}
    assert set(kept) == {*play.SCRIPTS, *play.OWN} and kept["play.js"] == SCRIPT.read_text()
    assert not any(".src=\"https" in text or ".src=`https" in text for text in kept.values())
    original = (Path(play.bokeh.__file__).parent / "server" / "static" / "js" / "bokeh.min.js").read_text()
    assert len(play.OUTSIDE.findall(original)) == 2 and 0 < len(original) - len(kept["bokeh.min.js"]) < 300
    play.copy_scripts(application(tmp_path / "latex", "latex")[0])
    assert not (tmp_path / "latex").exists()


def test_pages_without_a_part_load_no_script(tmp_path):
    for body, count in (("<p>text</p>", 0), (None, 0), (f"<p>{play.PART} data-kind=></div>", 4)):
        app, names = application(tmp_path)
        play.add_scripts(app, "chapters/x", "page.html", {"body": body}, None)
        assert len(names) == count
