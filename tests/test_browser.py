"""The built pages as a reader meets them: offline, in a real browser, with a keyboard, on a phone, in the dark.

Needs the pages (`make book`) and Debian's chromium; without them the tests are skipped and say so, unless
BOOK_SITE=required, which the continuous integration sets.  Pages built from other files than those now here
are not tested.
"""
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
import os
from pathlib import Path
import re
import shutil
import threading

import axe_playwright_python
import front
import jupytext
import numpy as np
from PIL import Image
import pytest
from repository import BRANCH, HUB
import tree

ROOT = Path(__file__).parents[1]
SITE = ROOT / "_build" / "html"
CHAPTERS = sorted(path.stem for path in (ROOT / "chapters").glob("*.md"))
PAGES = [f"chapters/{name}.html" for name in CHAPTERS] + ["genindex.html", "search.html"]
WHOLE = "chapters/formulation.html", "chapters/dtd_ucb.html", "chapters/api_policies.html"    # of the long ones
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
LOADS = {"script": ("src",), "link": ("href",), "img": ("src", "srcset"), "iframe": ("src",),
         "source": ("src", "srcset"), "video": ("src", "poster"), "audio": ("src",), "embed": ("src",),
         "object": ("data",), "form": ("action",), "use": ("href", "xlink:href"), "image": ("href", "xlink:href"),
         "input": ("src",), "track": ("src",)}
OUTSIDE = re.compile(r"\s*(https?:)?//", re.IGNORECASE)
IN_CSS = re.compile(r"(?:url\(|@import)\s*[\"']?\s*(?:https?:)?//[^)\"']*", re.IGNORECASE)
IN_JS = re.compile(r"(?:\.(?:src|href)\s*=|\b(?:import|importScripts|fetch|Worker)\()\s*[\"'`](?:https?:)?//[^\"'`]*")

# What is wrong on the page, in words: formulas, pictures, captions, width.
PROBLEMS = r"""() => {
  const found = [], all = q => [...document.querySelectorAll(q)], article = document.querySelector(".bd-article");
  const label = e => e.textContent.trim().slice(0, 60);
  all("mjx-merror").forEach(e => found.push("broken formula: " + label(e)));
  all("mjx-container *").forEach(e => {
    if (getComputedStyle(e).color === "rgb(255, 0, 0)" && e.tagName === "MJX-MTEXT")
      found.push("undefined macro: " + (e.closest("[data-latex]")?.dataset.latex || label(e)));
  });
  all("div.math, span.math").forEach(e => {
    if (!e.querySelector("mjx-container")) found.push("formula not typeset: " + label(e));
  });
  if (article) {
    const copy = article.cloneNode(true);
    copy.querySelectorAll("pre, code, script, style, mjx-container, .highlight").forEach(e => e.remove());
    const raw = copy.textContent.match(/.{0,20}(\$|\\\(|\\\[|\\begin\{).{0,40}/);
    if (raw) found.push("formula left as text: " + raw[0]);
    const dark = document.documentElement.dataset.theme === "dark";
    article.querySelectorAll("img").forEach(e => {
      const alt = e.getAttribute("alt") || "", figure = e.closest("figure");
      if (!alt.trim() || /_images\/|\.(png|svg|jpe?g)$/.test(alt)) found.push("picture without alt text: " + e.src);
      if (!figure || !figure.querySelector("figcaption")?.textContent.trim())
        found.push("picture without caption: " + e.src);
      if (getComputedStyle(e).filter !== (dark ? "invert(1) hue-rotate(180deg)" : "none")) found.push("picture dimmed by the theme: " + e.src);
    });
  }
  all("img").forEach(e => {
    if (!e.complete || e.naturalWidth === 0) found.push("broken picture: " + e.src);
    if (!e.hasAttribute("alt")) found.push("picture without alt attribute: " + e.src);
  });
  all(".bd-article span.math").forEach(e => {
    const drawn = e.querySelector("mjx-container");
    if (drawn && drawn.getBoundingClientRect().width > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "auto")
      found.push("formula cut: " + e.textContent.slice(0, 60));
  });
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth + 1)
    found.push(`page is ${root.scrollWidth} pixels wide on a screen of ${root.clientWidth}`);
  return [...new Set(found)];
}"""
SETTLED = """async () => {
  if (window.MathJax?.startup) await MathJax.startup.promise;
  await Promise.all([...document.images].map(image => image.complete || new Promise(done => {
    image.onload = image.onerror = done; })));
}"""


AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text()
FAULTS = """async () => (await axe.run({ resultTypes: ["violations"], preload: false })).violations
  .filter(fault => ["serious", "critical"].includes(fault.impact))
  .flatMap(fault => fault.nodes.map(node => `${fault.id}: ${node.html.slice(0, 150)} ${(node.any[0] || {}).message || ""}`))"""

pytestmark = pytest.mark.slow


def refuse(reason):
    """Skip, or fail where the pages are required."""
    (pytest.fail if os.environ.get("BOOK_SITE") == "required" else pytest.skip)(reason)


@pytest.fixture(scope="module")
def site():
    stamp = tree.stamp(ROOT)
    if not stamp.exists():
        refuse("no built pages: run `make book`")
    if stamp.read_text().strip() != tree.site_key(ROOT):
        refuse("the pages in _build/html were built from other files than those now here: run `make book`")
    return SITE


@pytest.fixture(scope="module")
def server(site):
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser(site):
    if CHROMIUM is None:
        pytest.skip("chromium is not installed (on Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """A page that records what goes wrong while it is used; requests that leave the machine are refused."""

    def __init__(self, browser, server, **options):
        self.server, self.wrong = server, []
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.on("console", lambda m: self.wrong.append(f"console: {m.text}") if m.type == "error" else None)
        self.page.on("pageerror", lambda error: self.wrong.append(f"script: {error}"))
        self.page.on("request", self.outside)
        self.page.on("requestfailed", self.failed)
        self.page.on("response", lambda r: self.wrong.append(f"{r.status}: {r.url}") if r.status >= 400 else None)

    def failed(self, request):
        """A request is given up, not failed, where the reader left the page before the answer came."""
        if request.failure != "net::ERR_ABORTED":
            self.wrong.append(f"request failed ({request.failure}): {request.url}")

    def outside(self, request):
        if not request.url.startswith((self.server, "data:", "blob:")):
            self.wrong.append(f"request leaves the machine: {request.url}")

    def load(self, name):
        self.wrong.clear()
        self.page.goto(self.server + name, wait_until="load")

    def open(self, name):
        self.load(name)
        self.settle()

    def settle(self):
        self.page.evaluate(SETTLED)
        self.page.wait_for_load_state("networkidle")

    def problems(self):
        return self.wrong + self.page.evaluate(PROBLEMS)

    def faults(self, whole=True):
        """Serious and critical faults of accessibility, as axe-core finds them: contrast, names, roles, focus.

        Unless `whole`, of a page without its formulas, code and entries of the reference: they are alike on all pages and take most of the time.
        """
        self.page.evaluate(f"{AXE}; 0")
        if not whole:
            self.page.evaluate("document.querySelectorAll('mjx-container, .highlight, dl.py').forEach(e => e.remove())")
        return self.page.evaluate(FAULTS)


@pytest.fixture
def one(browser, server):
    one = Visit(browser, server, viewport={"width": 1300, "height": 900}, color_scheme="light")
    yield one
    one.context.close()


@pytest.fixture(scope="module")
def desk_and_phone(browser, server):
    both = (Visit(browser, server, viewport={"width": 1300, "height": 900}, color_scheme="light"),
            Visit(browser, server, viewport={"width": 375, "height": 800}, color_scheme="dark"))
    yield both
    for one in both:
        one.context.close()


class Loads(HTMLParser):
    """Collects the addresses outside the site that a page would load by itself."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in LOADS.get(tag, ()) and OUTSIDE.match(value or ""):
                self.found.append(f"<{tag} {name}={value}>")
            if name == "style":
                self.found += IN_CSS.findall(value or "")


def outside_addresses(path):
    """What the file at `path` would load from elsewhere, as far as its text shows."""
    text = path.read_text(errors="replace")
    if path.suffix == ".html":
        parser = Loads()
        parser.feed(text)
        inline = re.findall(r"<style[^>]*>(.*?)</style>", text, re.DOTALL)
        scripts = re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL)
        return parser.found + IN_CSS.findall("\n".join(inline)) + IN_JS.findall("\n".join(scripts))
    return (IN_CSS if path.suffix == ".css" else IN_JS).findall(text)


def test_files_name_no_outside_address_to_load(site):
    found = {str(path.relative_to(site)): outside_addresses(path) for path in site.rglob("*")
             if path.suffix in (".html", ".css", ".js")}
    assert len(found) > len(PAGES)
    assert {name: addresses for name, addresses in found.items() if addresses} == {}


def test_the_readme_shows_the_main_figure_as_it_is_now(site):
    """To within the few colours that the README's picture has."""
    now, kept = front.main_figure(), Image.open(front.PICTURE).convert("RGB")
    message = "the README shows another picture than the introduction: run `make figure`"
    assert now.size == kept.size, message
    apart = np.abs(np.asarray(now, dtype=int) - np.asarray(kept, dtype=int))
    assert apart.mean() < 1 and (apart.max(axis=2) > 64).mean() < 1e-3, message


@pytest.mark.parametrize("name, text, count", [
    ("a.html", '<script src="https://cdn.org/x.js"></script><link href="//cdn.org/x.css">', 2),
    ("b.html", '<div style="background: url(https://cdn.org/x.png)"></div><style>@import "//cdn.org";</style>', 2),
    ("c.html", '<a href="https://arxiv.org">a link is not a load</a><img src="x.png" alt="x">', 0),
    ("d.html", '<script>x.src = "https://cdn.org/x.js"</script>', 1),
    ("e.css", "@font-face {src: url('https://fonts.org/x.woff')} a {background: url(x.png)}", 1),
    ("f.js", 'import("https://cdn.org/x.js"); fetch("//cdn.org"); let page = "https://x.org"', 2)])
def test_an_outside_address_in_a_file_is_found(tmp_path, name, text, count):
    (tmp_path / name).write_text(text)
    assert len(outside_addresses(tmp_path / name)) == count


@pytest.mark.parametrize("name", PAGES)
def test_page_on_a_desk_and_on_a_phone_in_the_dark(desk_and_phone, name):
    for one in desk_and_phone:
        one.load(name)
    for one, theme in zip(desk_and_phone, ("light", "dark")):
        one.settle()
        assert one.problems() == []
        assert one.page.evaluate("document.documentElement.dataset.theme") == theme
        assert one.faults(whole=name in WHOLE) == []


def test_faults_of_accessibility_are_found(one):
    one.open("chapters/notation.html")
    one.page.evaluate("""() => { document.querySelector(".bd-article").innerHTML += '<img src="../_static/favicon.svg"><button></button>'
        + '<p style="color: #aaa; background: #fff">pale</p>'; }""")
    assert {fault.split(":")[0] for fault in one.faults()} >= {"image-alt", "button-name", "color-contrast"}


def test_what_scrolls_sideways_can_be_scrolled_from_the_keyboard(desk_and_phone):
    phone = desk_and_phone[1]
    phone.open("chapters/ledger.html")
    box = phone.page.locator(".bd-article [data-scrolls]").first
    assert box.get_attribute("aria-label")
    box.focus()
    for _ in range(3):
        phone.page.keyboard.press("ArrowRight")
    phone.page.wait_for_function("document.activeElement.scrollLeft > 0")
    assert phone.problems() == []


def test_the_claims_of_the_ledger_fit_on_a_phone(desk_and_phone):
    phone = desk_and_phone[1]
    phone.open("chapters/ledger.html")
    table = phone.page.locator("#the-claims .pst-scrollable-table-container")
    assert table.evaluate("box => box.scrollWidth - box.clientWidth") <= 1


def luminance(rgb):
    """Relative luminance of colours (..., 3) of 0 to 255 (WCAG 2)."""
    part = np.asarray(rgb) / 255
    return np.where(part <= .04045, part / 12.92, ((part + .055) / 1.055) ** 2.4) @ [.2126, .7152, .0722]


@pytest.mark.parametrize("name", ["simulated", "bound"])
def test_ink_stands_out_from_the_ground_in_both_themes(desk_and_phone, tmp_path, name):
    for one, dark in zip(desk_and_phone, (False, True)):
        one.open(f"chapters/{name}.html")
        pictures = one.page.locator(".bd-article figure img")
        for n in range(pictures.count()):
            pictures.nth(n).screenshot(path=tmp_path / "picture.png")
            pixels = np.asarray(Image.open(tmp_path / "picture.png").convert("RGB")).reshape(-1, 3)
            colours, counts = np.unique(pixels, axis=0, return_counts=True)
            ground, ink = luminance(colours[counts.argmax()]), luminance(colours)
            assert ground < .03 if dark else ground > .9
            high, low = (ink.max(), ground) if dark else (ground, ink.min())
            assert (high + .05) / (low + .05) > 7


def test_a_picture_can_be_enlarged_by_click_and_by_key(one):
    one.open("chapters/simulated.html")
    picture = one.page.locator(".bd-article figure img").first
    state = "[document.querySelector('dialog.enlarged').open, document.querySelector('dialog.enlarged img')?.clientWidth]"
    for act in (picture.click, lambda: (picture.focus(), one.page.keyboard.press("Enter"))):
        act()
        one.page.wait_for_function("document.querySelector('dialog.enlarged img')?.complete")
        assert one.page.evaluate(state) == [True, picture.evaluate("image => image.naturalWidth")]
        one.page.keyboard.press("Escape")
        assert one.page.evaluate(state)[0] is False
    assert one.problems() == []


def test_defects_on_a_page_are_found(one):
    """Each check above can fail."""
    one.open("chapters/bound.html")                 # it has formulas
    assert one.problems() == []
    defects = [r'<span class="math">\(\frac{1}\)</span>', r'<span class="math">\(\nosuchmacro\)</span>',
               '<span class="math">x</span>', "<p>where $x$ is</p>", '<img src="no.png" alt="a">',
               '<img src="no.png" alt="../_images/no.png">', '<img src="no.png">',
               '<img src="https://elsewhere.example/x.png" alt="a">',
               '<figure><img src="no.png" alt="a" style="filter: blur(1px)"><figcaption>.</figcaption></figure>',
               '<div style="width: 40px"><span class="math">\\(abcdefghijkl\\)</span></div>',
               '<div style="width: 4000px">wide</div>']
    one.page.evaluate("""async html => {
        const e = document.createElement("div");
        e.innerHTML = html;
        document.querySelector(".bd-article").append(e);
        await MathJax.typesetPromise([e]);
        console.error("oh");
        setTimeout(() => { throw new Error("ah") });
    }""", "".join(defects))
    one.settle()
    found = one.problems()
    for message in ("broken formula", "undefined macro", "formula not typeset", "formula left as text",
                    "formula cut", "broken picture", "picture without alt text", "picture without alt attribute",
                    "picture without caption", "404: ", "dimmed by the theme", "request leaves the machine",
                    "request failed", "pixels wide", "console: oh", "script: ah"):
        assert any(message in problem for problem in found), (message, found)


@pytest.mark.parametrize("name", CHAPTERS)
def test_page_offers_its_source_its_notebook_and_where_it_is_known_a_binder(desk_and_phone, server, name):
    one, address = desk_and_phone[0], os.environ.get("BOOK_REPOSITORY")
    one.page.goto(f"{server}chapters/{name}.html", wait_until="domcontentloaded")      # links need no formula
    links = one.page.evaluate("[...document.querySelectorAll('.bd-header-article a')].map(a => a.href)")
    if address:
        place = address.removeprefix("https://github.com/")
        assert f"{HUB}/v2/gh/{place}/{BRANCH}?urlpath=lab/tree/chapters/{name}.md" in links
    else:
        assert not any("github.com" in link or HUB in link for link in links)
    for suffix in ("md", "ipynb"):
        address = f"{server}_sources/chapters/{name}.{suffix}"
        assert address in links
        response = one.page.request.get(address)
        assert response.ok
        cells = jupytext.reads(response.text(), fmt=suffix if suffix == "ipynb" else "md:myst").cells
        assert [cell.source for cell in cells if cell.cell_type == "code"] == [
            cell.source for cell in jupytext.read(ROOT / "chapters" / f"{name}.md").cells if cell.cell_type == "code"]


def test_front_page_leads_to_the_first_chapter(one, server):
    one.page.goto(server)
    one.page.wait_for_url("**/chapters/*.html")
    one.settle()
    assert one.problems() == []


def test_every_page_names_an_icon_that_is_there(site):
    """For a page that names none, a browser asks for /favicon.ico, and reports that it is missing."""
    pages = [*site.glob("*.html"), *site.glob("chapters/*.html")]
    assert len(pages) > len(PAGES) and site / "index.html" in pages
    for page in pages:
        icons = re.findall('<link rel="icon" href="([^"]*)"', page.read_text())
        assert icons and all((page.parent / icon).is_file() for icon in icons), page


def test_search_finds_the_exploration_benefit(one):
    """From the keyboard: Ctrl+K, the words, Enter; every chapter that has the phrase is found."""
    expected = {name for name in CHAPTERS
                if "exploration benefit" in " ".join((ROOT / "chapters" / f"{name}.md").read_text().lower().split())}
    assert expected
    one.open(PAGES[0])
    one.page.keyboard.press("Control+k")
    one.page.wait_for_selector("#pst-search-dialog[open]")
    one.page.keyboard.type("exploration benefit")
    one.page.keyboard.press("Enter")
    one.page.wait_for_url("**/search.html?q=exploration+benefit*")
    one.page.wait_for_function("document.querySelector('.search-summary')?.textContent.includes('Search finished')")
    found = one.page.evaluate("[...document.querySelectorAll('#search-results li a')].map(a => a.getAttribute('href'))")
    assert expected <= {Path(address.split("?")[0].split("#")[0]).stem for address in found}
    assert one.wrong == []


def test_pages_turn_with_the_keyboard(one):
    one.page.goto(one.server)
    one.page.wait_for_url("**/chapters/*.html")
    one.settle()
    first = one.page.url
    one.page.keyboard.press("ArrowRight")
    one.page.wait_for_url(lambda url: url != first)
    second = one.page.url
    one.settle()
    one.page.keyboard.press("ArrowLeft")
    one.page.wait_for_url(first)
    one.settle()
    for _ in range(400):
        one.page.keyboard.press("Tab")
        if one.page.evaluate("document.activeElement.matches('a.right-next')"):
            break
    one.page.keyboard.press("Enter")
    one.page.wait_for_url(second)
    assert one.wrong == []
