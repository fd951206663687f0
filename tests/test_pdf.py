"""The book as a PDF: every chapter, every link, every font, nothing cut; and where the site offers it.

What prints needs the pages (`make book`) and chromium, as `test_browser.py` does.
"""
from pathlib import Path
import re
import unicodedata

import pdf
from pypdf import PdfReader
import pytest
from test_browser import site  # noqa: F401  (a fixture)
import tree
import yaml

ROOT = Path(__file__).parents[1]
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text())
NAMES = [page.name for page in pdf.pages(TOC)]


def test_every_page_of_the_contents_is_printed_once_in_its_order():
    assert sorted(NAMES) == sorted(path.stem for path in (ROOT / "chapters").glob("*.md"))
    assert NAMES[:3] == ["introduction", "notation", "formulation"] and NAMES.index("api_dp") == NAMES.index("code") + 1


@pytest.mark.parametrize("address, found", [
    ("#a", "#bound--a"), ("formulation.html", "#formulation"), ("formulation.html#a-b", "#formulation--a-b"), ("api_dp.html#lib.dp.solve",
     "#api_dp--lib.dp.solve"), ("https://arxiv.org/abs/1605.09088", "https://arxiv.org/abs/1605.09088"), ("../genindex.html", None),
    ("../_sources/chapters/bound.md", None), ("#", "#bound")])
def test_links_lead_to_where_the_book_has_the_place(address, found):
    assert pdf.target(address, "bound", NAMES) == found


def test_pages_offer_the_pdf_of_their_own_build_and_no_other(tmp_path):
    from pypdf import PdfWriter
    (tmp_path / "chapters").mkdir()
    for name in ("search.html", "chapters/bound.html"):
        (tmp_path / name).write_text(f"<p>{pdf.PLACE}</p>")
    writer = PdfWriter()
    writer.add_blank_page(100, 100)
    writer.add_metadata({"/BuiltFrom": "new"})
    writer.write(tmp_path / pdf.NAME)
    for _ in range(2):
        assert pdf.offer(tmp_path, "new")
        assert (tmp_path / "chapters/bound.html").read_text().count(f'href="../{pdf.NAME}"') == 1
        assert (tmp_path / "search.html").read_text().count(f'href="{pdf.NAME}"') == 1
    assert not pdf.offer(tmp_path, "newer") and not (tmp_path / pdf.NAME).exists()
    assert (tmp_path / "chapters/bound.html").read_text() == f"<p>{pdf.PLACE}</p>"


def test_without_a_browser_one_line_says_so(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match="needs chromium"):
        pdf.main([])


@pytest.fixture(scope="module")
def printer(site):  # noqa: F811
    try:
        printer = pdf.Printer(site)
    except RuntimeError as error:
        pytest.skip(str(error))
    with printer:
        yield printer


@pytest.fixture(scope="module")
def book(site, tmp_path_factory):  # noqa: F811
    path = site / pdf.NAME
    if pdf.built_from(path) != tree.site_key(ROOT):
        path = tmp_path_factory.mktemp("pdf") / pdf.NAME
        try:
            pdf.make(path, site)
        except RuntimeError as error:
            if "needs chromium" in str(error):
                pytest.skip(str(error))
            raise
    return PdfReader(path)


def flat(outline, depth=0):
    for each in outline:
        if isinstance(each, list):
            yield from flat(each, depth + 1)
        else:
            yield depth, each


def words(text):
    """Letters and digits alone: spaces in a PDF are guessed, and fi is one letter."""
    return re.sub(r"\W", "", unicodedata.normalize("NFKC", text))


@pytest.mark.slow
def test_every_chapter_is_in_the_outline_and_on_its_page(book, site):  # noqa: F811
    titles = [pdf.article(page, set(NAMES), site)[1][0].title for page in pdf.pages(TOC)]
    outline = [(each.title, book.get_destination_page_number(each)) for _, each in flat(book.outline)]
    found = [(title, at) for title, at in outline if title in titles]
    assert [title for title, _ in found] == titles
    for title, at in found:
        assert words(title) in words(book.pages[at].extract_text()), (title, at)
    assert 150 < len(book.pages) < 700 and [at for _, at in outline] == sorted(at for _, at in outline)
    assert {part["caption"] for part in TOC["parts"]} == {each.title for depth, each in flat(book.outline) if depth == 0} - set(titles)


@pytest.mark.slow
def test_the_contents_state_the_pages(book):
    labels = book.page_labels
    front = labels.index("1")
    text = words("".join(page.extract_text() for page in book.pages[:front]))
    for depth, each in flat(book.outline):
        label = labels[book.get_destination_page_number(each)]
        if depth or each.title.startswith("What to show"):
            assert words(each.title) + label in text, each.title
        assert int(label) > 0
    links = [link.get_object() for page in book.pages[1:front] for link in page.get("/Annots", ())]
    assert len(links) >= sum(1 for _ in flat(book.outline)) - len(TOC["parts"])


@pytest.mark.slow
def test_links_resolve(book):
    named, pages = book.named_destinations, {page.indirect_reference.idnum for page in book.pages}
    inside, outside = 0, set()
    for page in book.pages:
        for link in (each.get_object() for each in page.get("/Annots", ())):
            if "/Dest" in link:
                inside += 1
                place = link["/Dest"]
                assert place[0].idnum in pages if isinstance(place, list) else str(place) in named, place
            else:
                outside.add(link["/A"]["/URI"])
    assert inside > 1000 and all(re.match(r"https?://(?!127\.)", address) for address in outside), outside


@pytest.mark.slow
def test_every_font_is_embedded(book):
    """MathJax's are of type 3, which are drawn in the file itself."""
    seen, lacking = set(), []
    for page in book.pages:
        for font in (each.get_object() for each in page["/Resources"].get("/Font", {}).values()):
            font = font["/DescendantFonts"][0].get_object() if "/DescendantFonts" in font else font
            seen.add(font.get("/BaseFont"))
            if font["/Subtype"] == "/Type3":
                assert font["/CharProcs"]
            else:
                lacking += [font["/BaseFont"]] * (not {"/FontFile", "/FontFile2", "/FontFile3"} & set(font["/FontDescriptor"].get_object()))
    assert None in seen and len(seen) > 5 and lacking == []


@pytest.mark.slow
def test_no_text_leaves_its_line(book):
    """Where text begins, on every tenth page: between the margins of the sheet."""
    left, right = 84.85 * .75, (84.85 + pdf.WIDTH) * .75         # points
    for page in book.pages[::10]:
        starts = []
        page.extract_text(visitor_text=lambda text, cm, tm, *_: starts.append(tm[4] * cm[0] + cm[4]) if text.strip() else None)
        assert starts and min(starts) > left - 1.5 and max(starts) < right, page.page_number


WIDE = "x" * 300


@pytest.mark.slow
@pytest.mark.parametrize("html, wide", [
    (f'<div class="cell_output"><pre>{WIDE}</pre></div>', False),                                   # wraps
    (f"<pre>{WIDE}</pre>", False),
    ("<table><tr>" + "<td>1234567</td>" * 14 + "</tr></table>", False),                             # shrinks
    ("<table><tr>" + "<td>1234567</td>" * 60 + "</tr></table>", True),
    (f'<p style="overflow-wrap: normal; word-break: normal">{WIDE}</p>', True),
    ('<img alt="" width="900" height="10" style="max-width: none" src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">', True)])
def test_what_does_not_fit_is_found(printer, site, html, wide):  # noqa: F811
    head = pdf.head_of(site, pdf.pages(TOC)[0])
    page, found = printer.open(pdf.PAGE.format(head=head, style="", body=f'<article class="bd-article" id="a">{html}</article>'))
    page.close()
    assert bool(found) == wide, found
