"""The page with sliders and the game as a reader uses it: every slider by keyboard, a whole game, on a phone, without a script.

Needs the pages and a browser as `test_browser.py` does; the page is opened from that server and as a file.
"""
import json

import numpy as np
import pytest
from test_browser import PROBLEMS, SETTLED, SITE, Visit, browser, server, site  # noqa: F401  (fixtures)

from lib import posterior

pytestmark = pytest.mark.slow

PAGE = "chapters/play.html"
KINDS = {"sheets", "rewards", "leads", "game"}
READY = "document.querySelectorAll('div.play[data-ready]').length === 4"
GAME = "document.querySelector('.play[data-kind=game]').play"
STATE = f"({{total: {GAME}.total, mu: {GAME}.belief.mu, Sigma: {GAME}.belief.Sigma, forwarded: {GAME}.forwarded, number: {GAME}.number}})"
COLUMNS = """kind => [...document.querySelector(`.play[data-kind=${kind}]`).document._all_models.values()]
    .filter(model => model.type === "ColumnDataSource" || model.type === "Div")
    .map(model => JSON.stringify(model.text ?? Object.values(model.data).map(column => column[0]?.length ? [...column[0]] : [...column])))
    .join(";")"""


def visit(browser, server, **options):  # noqa: F811
    one = Visit(browser, server, **{"viewport": {"width": 1300, "height": 900}, "color_scheme": "light"} | options)
    one.open(PAGE)
    one.page.wait_for_function(READY)
    one.page.evaluate(SETTLED)
    return one


@pytest.fixture
def desk(browser, server):  # noqa: F811
    one = visit(browser, server)
    yield one
    one.context.close()


def part(one, kind):
    return one.page.locator(f".play[data-kind={kind}]")


def data_of(one):
    return json.loads(part(one, "game").locator("script").text_content())["game"]


def total_of(game, user, forwarded):
    """The reward of a play, in a plain loop."""
    total, weight = 0.0, 1.0
    for item, go in zip(user["items"], forwarded):
        weight *= game["gamma"]
        if go:
            total += weight * (np.dot(game["x"][item], user["theta"]) - game["cost"])
    return total


def test_every_slider_turns_by_keyboard_and_the_page_stays(desk):
    address, turned = desk.page.url, 0
    for kind in ("sheets", "leads"):
        handles = part(desk, kind).get_by_role("slider")
        for n in range(handles.count()):
            for key in ("ArrowRight", "ArrowLeft", "ArrowLeft"):
                before = desk.page.evaluate(COLUMNS, kind)
                handles.nth(n).focus()
                desk.page.keyboard.press(key)
                desk.page.wait_for_function(f"before => ({COLUMNS})('{kind}') !== before", arg=before)
            turned += 1
    names = "discount gamma", "noise of a rating", "share of items with the feature", "correlation of two preferences"
    assert all(desk.page.get_by_role("slider", name=name).count() == 1 for name in names)
    assert desk.faults() == []
    assert turned == len(names) and desk.page.url == address and desk.problems() == []


def test_a_slider_shows_the_sheet_of_its_setting(desk):
    """Down to the least discount and the rarest feature, where the boundary said is the one that was computed for it."""
    handles = part(desk, "sheets").get_by_role("slider")
    for n, key in ((0, "Home"), (2, "Home")):
        handles.nth(n).focus()
        desk.page.keyboard.press(key)
    said, least = desk.page.evaluate("""() => {
        const models = [...document.querySelector(".play[data-kind=sheets]").document._all_models.values()];
        const read = model => model.args instanceof Map ? Object.fromEntries(model.args) : model.args;
        const args = read(models.find(model => model.type === "CustomJS" && "boundary" in read(model)));
        const counts = args.sliders.map(slider => slider.categories.length);
        const sheet = Math.floor(counts[1] / 2) * counts[2];
        return [args.said.text, args.boundary[sheet * args.sd.length + args.middle]];
    }""")
    assert f"{least:.3f}" in said and least < 0


def test_every_experiment_is_shown(desk):
    select = part(desk, "rewards").locator("select")
    names = select.locator("option").all_text_contents()
    shown = []
    for name in names:
        select.select_option(name)
        shown.append(desk.page.evaluate(COLUMNS, "rewards"))
    assert names == ["simulated", "ratings", "documents"] and len(set(shown)) == 3 and desk.problems() == []


def test_a_whole_game_by_keyboard(desk):
    """Belief after every item, total, table and bounds; then the next user."""
    game, go = data_of(desk), part(desk, "game").get_by_role("button", name="Forward (F)")
    user, mu, Sigma = game["users"][0], np.array(game["mu"]), np.array(game["Sigma"])
    for _ in range(600):
        desk.page.keyboard.press("Tab")
        if go.evaluate("button => document.activeElement === button"):
            break
    keys = "fdffd" * 4
    for n, key in enumerate(keys):
        desk.page.keyboard.press(key)
        item, state = user["items"][n], desk.page.evaluate(STATE)
        if key == "f":
            mu, Sigma = posterior.update(mu, Sigma, np.array(game["x"][item]), user["feedback"][n], game["noise"][item])
        assert np.allclose(state["mu"], mu, atol=1e-9) and np.allclose(state["Sigma"], Sigma, atol=1e-9)
        told = part(desk, "game").locator(".play-told").text_content()
        assert (f"{user['feedback'][n]:.2f}" in told) == (key == "f")       # an item discarded shows nothing
    total = total_of(game, user, [key == "f" for key in keys])
    assert desk.page.evaluate(STATE)["total"] == pytest.approx(total, abs=1e-12)
    rows = [row.split("\t") for row in part(desk, "game").locator("tbody tr").all_inner_texts()]
    assert rows[0][0].strip() == "You" and rows[0][1].strip() == str(keys.count("f")) and float(rows[0][2]) == pytest.approx(total, abs=6e-4)
    assert [row[0].strip() for row in rows[1:-1]] == game["policies"]
    for p, row in enumerate(rows[1:-1]):
        assert float(row[2]) == pytest.approx(total_of(game, user, user["decisions"][p]), abs=6e-4)
    for column, limit in ((2, user["hindsight"]), (3, game["limit"])):
        assert limit <= float(rows[-1][column]) < limit + .0011
    assert total <= user["hindsight"] + 1e-12
    desk.page.keyboard.press("Enter")                                       # the focus is on "Next user"
    assert desk.page.evaluate(STATE)["number"] == 1 and desk.page.evaluate(STATE)["forwarded"] == []
    desk.page.keyboard.press("f")
    assert desk.page.evaluate(STATE)["forwarded"] == [True] and desk.problems() == []


def test_a_policy_can_be_imitated_for_every_user(desk):
    """Its decisions, clicked through the page, give its reward, and no play gives more than hindsight."""
    game, select = data_of(desk), part(desk, "game").locator("select")
    for number, user in enumerate(game["users"]):
        select.select_option(str(number))
        p = number % len(game["policies"])
        for go in user["decisions"][p]:
            desk.page.evaluate(f"go => {GAME}.act(go)", bool(go))
        total = desk.page.evaluate(STATE)["total"]
        assert total == pytest.approx(user["rewards"][p], abs=1e-12) and total <= user["hindsight"] + 1e-12
    assert desk.problems() == []


def test_on_a_phone_by_touch(browser, server):  # noqa: F811
    one = visit(browser, server, viewport={"width": 390, "height": 800}, color_scheme="dark", has_touch=True, is_mobile=True)
    for n in range(20):
        part(one, "game").get_by_role("button", name=("Forward (F)", "Discard (D)")[n % 2]).tap()
    assert len(one.page.evaluate(STATE)["forwarded"]) == 20 and one.page.evaluate(STATE)["total"] is not None
    assert part(one, "game").locator(".play-card").evaluate("card => card.scrollWidth <= card.clientWidth")    # nor does the card scroll
    rail = part(one, "sheets").locator(".noUi-base").first
    rail.scroll_into_view_if_needed()
    box = rail.bounding_box()
    before = one.page.evaluate(COLUMNS, "sheets")
    one.page.touchscreen.tap(box["x"] + 2, box["y"] + box["height"] / 2)
    one.page.wait_for_function(f"before => ({COLUMNS})('sheets') !== before", arg=before)
    assert one.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert one.problems() == [] and one.faults() == []
    one.context.close()


def test_from_a_file_without_a_server(browser, site):  # noqa: F811
    one = Visit(browser, "file://", viewport={"width": 1300, "height": 900})
    one.page.goto((site / PAGE).as_uri())
    one.page.wait_for_function(READY)
    assert [problem for problem in one.wrong if "play" in problem.lower() or "bokeh" in problem.lower()] == []
    assert part(one, "sheets").locator("canvas").count() > 0
    one.context.close()


def test_without_a_script_there_are_pictures(browser, server):  # noqa: F811
    one = Visit(browser, server, viewport={"width": 1300, "height": 900}, java_script_enabled=False)
    one.page.goto(one.server + PAGE)
    for kind in KINDS:
        picture = one.page.locator(f"#fig-play-{kind} img")
        assert picture.is_visible() and picture.get_attribute("alt") and not part(one, kind).is_visible()
    one.context.close()


def test_where_the_drawing_fails_the_picture_stays(browser, server):  # noqa: F811
    one = Visit(browser, server, viewport={"width": 1300, "height": 900})
    one.context.route("**/bokeh.min.js*", lambda route: route.fulfill(body="", content_type="text/javascript"))
    one.page.goto(one.server + PAGE, wait_until="load")
    one.page.wait_for_function("document.querySelectorAll('.play-card').length === 0")
    assert all(one.page.locator(f"#fig-play-{kind} img").is_visible() for kind in KINDS)
    one.context.close()


def test_no_other_page_loads_the_scripts(site):  # noqa: F811
    loading = {path.stem for path in (site / "chapters").glob("*.html") if "bokeh" in path.read_text().split("</head>")[0]}
    assert loading == {"play"}
    assert sum(path.stat().st_size for path in [site / PAGE]) < 2_000_000
    assert PROBLEMS and SITE
