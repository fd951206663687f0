"""The whole book as one PDF, printed by chromium from the site's own pages: `make pdf`.

The articles of all pages become one document, whose formulas MathJax sets and which the browser prints with `_static/print.css`;
before it come a title page and a list of contents with page numbers.  The file lies in the site, and the pages offer it.
"""
from functools import partial
from html import escape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
import io
import logging
from pathlib import Path
import re
import shutil
import subprocess
import sys
import threading
from typing import NamedTuple
from urllib.parse import unquote, urldefrag

from bs4 import BeautifulSoup
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, Fit, FloatObject, NameObject, NullObject, TextStringObject
import tree
import yaml

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "_build" / "html"
NAME = "bayesian-linear-information-filtering.pdf"
PLACE = "<!-- the whole book as a PDF -->"              # where a page offers it, and what goes there
OFFER = '<a class="whole-book" href="{address}">The whole book as a PDF</a>'
TITLE, AUTHOR = (yaml.safe_load((ROOT / "_config.yml").read_text())[key] for key in ("title", "author"))
BROWSERS = "chromium", "chromium-browser", "google-chrome"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]
WIDTH = 624                                             # of a printed line, CSS pixels: 96 an inch, as in print.css
LEAST, READABLE = .5, .75                               # no table or formula is shrunk below the first, printed lines wrap below the second
SCHEME = "book:"                                        # of a link from the contents into the book
NAMES = "id", "for", "aria-labelledby", "aria-describedby", "aria-controls"      # attributes that hold ids
DROPPED = ("a.whole-book", "script", "style", "template", "button", "a.headerlink", "div.play", "div.tag_hide-input details.hide", "details > summary",
           "div.toctree-wrapper", "iframe")

TYPESET = """async () => {
  await MathJax.startup.promise;
  document.querySelectorAll("mjx-assistive-mml").forEach(element => element.remove());      // it would be text behind the formula
  await document.fonts.ready;
  await Promise.all([...document.images].map(image => image.complete || new Promise(done => { image.onload = image.onerror = done; })));
}"""
# Whatever is wider than its line is made smaller until it fits; what is then still wider is returned, in words.
FIT = """([width, least, readable]) => {
  const box = element => element.getBoundingClientRect(), all = query => [...document.querySelectorAll(query)];
  all("div.math").forEach(element => {
    const number = element.querySelector(".eqno"), formula = element.querySelector("mjx-math");
    if (formula) {
      element.style.width = "max-content";
      const wide = box(formula).width + (number ? 2.2 * box(number).width : 0), room = box(element.parentElement).width;
      element.style.width = "";
      if (wide > room) element.style.zoom = Math.max(least, Math.floor(980 * room / wide) / 1000);
    }
  });
  all("table").forEach(element => {
    const wide = box(element).width, room = Math.min(width, box(element.parentElement).width);
    if (wide > room + .5) element.style.zoom = Math.max(least, Math.floor(995 * room / wide) / 1000);
  });
  all(".cell_output pre, .highlight-text pre").forEach(element => {
    const room = element.clientWidth / element.scrollWidth;
    if (room < readable) element.style.whiteSpace = "break-spaces";
    else if (room < 1) element.style.zoom = Math.floor(990 * room) / 1000;
  });
  const left = box(document.body).left, found = [], range = document.createRange();
  const tell = (element, right) => found.push(`${element.closest("article").id}: ${element.tagName} ${element.className}: `
    + `${element.textContent.trim().slice(0, 50)}, ${Math.round(right - left)} wide`);
  all("article").forEach(article => {
    const texts = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      range.selectNodeContents(texts.currentNode);
      const { right, left: start, width: own } = range.getBoundingClientRect();
      if (own && (right > left + width + 1 || start < left - 1) && texts.currentNode.data.trim()) tell(texts.currentNode.parentElement, right);
    }
    article.querySelectorAll("img, mjx-math, table").forEach(element => {
      if (box(element).right > left + width + 1) tell(element, box(element).right);
    });
  });
  return found;
}"""


class Page(NamedTuple):
    """One page of the site as a chapter of the book."""

    name: str               # of its file, without folder and suffix
    part: str               # caption of its part, "" before the first
    depth: int              # 0, or 1 for a section of another chapter


class Heading(NamedTuple):
    """A title in the contents and in the outline."""

    title: str
    anchor: str
    depth: int              # 0 part, 1 chapter, 2 section of a chapter


def pages(toc):
    """The pages of a jb-book table of contents, in its order.

    Examples
    --------
    >>> [page.name for page in pages({"root": "chapters/a", "parts": [
    ...     {"caption": "One", "chapters": [{"file": "chapters/b", "sections": [{"file": "chapters/c"}]}]}]})]
    ['a', 'b', 'c']
    """
    found = [Page(Path(toc["root"]).name, "", 0)]
    for part in toc["parts"]:
        for chapter in part["chapters"]:
            found.append(Page(Path(chapter["file"]).name, part["caption"], 0))
            found += [Page(Path(section["file"]).name, part["caption"], 1) for section in chapter.get("sections", ())]
    return found


def anchor(page, name=""):
    """The id, in the whole document, of the place `name` on a page."""
    return f"{page}--{name}" if name else page


def target(address, page, names):
    """Where a link on `page` leads in the book: "#anchor", an address outside, or None where the book has no such place."""
    if address.split(":")[0] in ("http", "https", "mailto"):
        return address
    path, name = urldefrag(address)
    other = Path(unquote(path)).stem if path else page
    return "#" + anchor(other, unquote(name)) if other in names and Path(path).suffix in ("", ".html") else None


def article(page, names, site=SITE):
    """The article of a page, its ids made unique and its links turned into those of the book; and its title and sections.

    Raises
    ------
    ValueError
        The site has no such page.
    """
    path = site / "chapters" / f"{page.name}.html"
    if not path.exists():
        raise ValueError(f"{path} is missing: run `make book`")
    found = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser").select_one("article.bd-article")
    for element in found.select(", ".join(DROPPED)):
        element.decompose()
    for element in found.find_all("details"):
        element.name = "div"
    for element in found.find_all(True):
        for name in NAMES:
            if name in element.attrs:
                element[name] = " ".join(anchor(page.name, each) for each in element[name].split())
    for link in found.find_all("a", href=True):
        link["href"] = target(link["href"], page.name, names)
        if link["href"] is None:
            link.unwrap()
    found["id"] = page.name
    heads = [Heading(found.h1.get_text(), page.name, 1)]
    heads += [Heading(head.get_text(), head.find_parent("section")["id"], 2) for head in found.find_all("h2")] if not page.depth else []
    return found, heads


def document(toc, site=SITE):
    """The whole book as one page of HTML, and its headings."""
    listed, headings, articles, styles, part = pages(toc), [], [], [], ""
    for page in listed:
        found, heads = article(page, {page.name for page in listed}, site)
        if page.part != part:
            part = page.part
            headings.append(Heading(part, page.name, 0))
            found.insert(0, BeautifulSoup(f'<p class="part">{escape(part)}</p>', "html.parser"))
        headings += [Heading(head.title, head.anchor, head.depth + page.depth) for head in heads]
        title = heads[0].title.replace("\\", "\\\\").replace('"', '\\"')
        styles.append(f'@page {page.name} {{ @top-left {{ content: "{title}"; }} }} #{page.name} {{ page: {page.name}; }}')
        articles.append(str(found))
    links = "".join(f'<a href="#{head.anchor}"></a>' for head in headings)      # a place that is linked to has a name in the PDF
    body = "\n".join([*articles, f"<nav>{links}</nav>"])
    return PAGE.format(head=head_of(site, listed[0]), style="\n".join(styles), body=body), headings


def head_of(site, page):
    """The style sheets and MathJax, as a page of the site has them."""
    head = BeautifulSoup((site / "chapters" / f"{page.name}.html").read_text(encoding="utf-8"), "html.parser").head
    return "\n".join(str(tag) for tag in head.find_all(["link", "script"]) if "stylesheet" in tag.get("rel", ())
                     or "MathJax" in tag.text or "mathjax" in tag.get("src", ""))


PAGE = """<!DOCTYPE html>
<html lang="en" data-theme="light" data-mode="light" class="whole-book"><head><meta charset="utf-8">
<title>Book</title>
{head}
<style>{style}</style></head>
<body><main class="bd-content bd-main">{body}</main></body></html>"""

FRONT = "@page { @bottom-center { content: counter(page, lower-roman); } } @page title { @bottom-center { content: none; } }"


def contents(headings, numbers):
    """Title page and contents as HTML; `numbers` are the headings' page numbers."""
    rows, words = [], ("A report on the problem of Chen and Frazier (2016), executed when it was printed.",
                       "The code that draws the figures is in the chapters' files and on the pages, not here.")
    for head, number in zip(headings, numbers):
        if head.depth == 0:
            rows.append(f'<p class="toc-part">{escape(head.title)}</p>')
        else:
            rows.append(f'<p class="toc-{head.depth}"><a href="{SCHEME}{head.anchor}"><span>{escape(head.title)}</span>'
                        f'<span class="dots"></span><span>{number}</span></a></p>')
    return (f'<article class="bd-article title-page"><h1>{escape(TITLE)}</h1><p>{escape(AUTHOR)}</p>' + "".join(f"<p>{line}</p>" for line in words)
            + '</article><article class="bd-article toc"><h1>Contents</h1>' + "".join(rows) + "</article>")


class Printer:
    """A browser that prints documents as if they lay in the folder `chapters` of the site; a context manager.

    Raises
    ------
    RuntimeError
        There is no chromium.
    """

    def __init__(self, site=SITE):
        self.site, self.program = site, next(filter(None, map(shutil.which, BROWSERS)), None)
        if self.program is None:
            raise RuntimeError("a PDF needs chromium to print it (on Debian: apt-get install chromium)")

    def __enter__(self):
        from playwright.sync_api import sync_playwright
        quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(quiet, directory=str(self.site)))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.playwright = sync_playwright().start()
        self.browser = self.playwright.chromium.launch(executable_path=self.program, args=FLAGS)
        return self

    def __exit__(self, *exception):
        self.browser.close()
        self.playwright.stop()
        self.server.shutdown()
        self.server.server_close()

    def open(self, html):
        """A page of `html`, its formulas typeset and what is wide made to fit; and what does not fit, in words."""
        page = self.browser.new_page(viewport={"width": WIDTH, "height": 900})
        page.set_default_timeout(300_000)
        page.emulate_media(media="print", color_scheme="light")
        address = f"http://127.0.0.1:{self.server.server_port}/chapters/book"
        page.route(address, lambda route: route.fulfill(body=html, content_type="text/html; charset=utf-8"))
        page.goto(address)
        if "MathJax" in html:
            page.evaluate(TYPESET)
        return page, page.evaluate(FIT, [WIDTH, LEAST, READABLE])

    def pdf(self, page, **options):
        return page.pdf(prefer_css_page_size=True, print_background=True, **options)


def places(body, headings):
    """Page (from 0) and height on it of each heading in the printed book.

    Raises
    ------
    ValueError
        A heading is not in the PDF.
    """
    named = body.named_destinations
    missing = [head.anchor for head in headings if "/" + head.anchor not in named and head.anchor not in named]
    if missing:
        raise ValueError(f"the PDF has no place {missing[0]!r}")
    found = [named.get("/" + head.anchor) or named[head.anchor] for head in headings]
    return [(body.get_destination_page_number(place), float(place.top or 0)) for place in found]


def bind(front, body, headings, key):
    """Front pages and book as one PdfWriter: outline, page labels, links from the contents."""
    logging.getLogger("pypdf").setLevel(logging.ERROR)      # it wonders at the number of chromium's objects
    writer, at, shift = PdfWriter(clone_from=body), places(body, headings), len(front.pages)
    for page in reversed(front.pages):
        writer.insert_page(page, 0)
    spots = {head.anchor: (writer.pages[number + shift], top) for head, (number, top) in zip(headings, at)}
    for page in writer.pages[:shift]:
        for link in (each.get_object() for each in page.get("/Annots", ())):
            address = link.get("/A", {}).get("/URI", "")
            if address.startswith(SCHEME):
                there, top = spots[address.removeprefix(SCHEME)]
                del link["/A"]
                link[NameObject("/Dest")] = ArrayObject([there.indirect_reference, NameObject("/XYZ"), NullObject(), FloatObject(top), NullObject()])
    parents = {}
    for head, (number, top) in zip(headings, at):
        parent = parents.get(head.depth - 1) if head.depth else None
        parents[head.depth] = writer.add_outline_item(
            title=head.title, page_number=number + shift, parent=parent, fit=Fit.xyz(0, top, 0), is_open=False)
    writer.set_page_label(0, shift - 1, style="/r")
    writer.set_page_label(shift, len(writer.pages) - 1, style="/D", start=1)
    writer.page_mode = "/UseOutlines"
    writer.root_object[NameObject("/Lang")] = TextStringObject("en")
    writer.add_metadata({"/Title": TITLE, "/Author": AUTHOR, "/BuiltFrom": key})
    return writer


def make(path, site=SITE, key=""):
    """Write the PDF to `path`; returns the number of its pages.

    Raises
    ------
    RuntimeError
        No chromium, or a table or formula that does not fit the page.
    ValueError
        The site lacks a page or a heading.
    """
    listed = yaml.safe_load((ROOT / "_toc.yml").read_text())
    html, headings = document(listed, site)
    with Printer(site) as printer:
        page, wide = printer.open(html)
        if wide:
            raise RuntimeError("wider than a printed line:\n" + "\n".join(wide))
        body = PdfReader(io.BytesIO(printer.pdf(page)))
        numbers = [number + 1 for number, _ in places(body, headings)]
        page, _ = printer.open(PAGE.format(head=head_of(site, pages(listed)[0]), style=FRONT, body=contents(headings, numbers)))
        front = PdfReader(io.BytesIO(printer.pdf(page)))
    book = bind(front, body, headings, key)
    book.write(path)
    return len(book.pages)


def built_from(path):
    """The key that a PDF was built from, "" where there is none."""
    return str((PdfReader(path).metadata or {}).get("/BuiltFrom", "")) if path.exists() else ""


def offer(site=SITE, key=""):
    """Every page offers the PDF where it is of this very site; an older one is removed, and no page offers it."""
    fresh = bool(key) and built_from(site / NAME) == key
    if not fresh:
        (site / NAME).unlink(missing_ok=True)
    for path in [*site.glob("*.html"), *site.glob("chapters/*.html")]:
        text = path.read_text(encoding="utf-8")
        link = OFFER.format(address="../" * (path.parent != site) + NAME) if fresh else ""
        new = re.sub(re.escape(PLACE) + '(<a class="whole-book".*?</a>)?', lambda _: PLACE + link, text)
        if new != text:
            path.write_text(new, encoding="utf-8")
    return fresh


def leave_place(app, pagename, templatename, context, doctree):
    """The front page has a place for the link below its title; every page has one in its side bar (templates/whole-book.html)."""
    if pagename == app.config.root_doc:
        context["body"] = context["body"].replace("</h1>", f"</h1>\n<p>{PLACE}</p>", 1)


def setup(app):
    app.connect("html-page-context", leave_place)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def main(arguments):
    """`--offer` after a build: links to a PDF that is there.  Otherwise build the book, where it is not built, and print it."""
    key = tree.site_key(ROOT)
    if arguments == ["--offer"]:
        return offer(key=key)
    try:
        Printer()
        stamp = tree.stamp(ROOT)
        if not stamp.exists() or stamp.read_text().strip() != key:
            subprocess.run(["make", "--no-print-directory", "book"], cwd=ROOT, check=True)
        count = make(SITE / NAME, key=key)
    except (RuntimeError, ValueError) as error:
        sys.exit(str(error))
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
    offer(key=key)
    print(f"{count} pages, {(SITE / NAME).stat().st_size / 1e6:.1f} MB: {(SITE / NAME).relative_to(ROOT)}")


if __name__ == "__main__":
    main(sys.argv[1:])
