"""Chapters say how long they take to read and what they build on; long proofs fold."""
from pathlib import Path
import re
from types import SimpleNamespace

from docutils import nodes
import pytest

import reading

ROOT = Path(__file__).parents[1]
TOLD = re.compile(r"\n# [^\n]+\n\n\{reading\}`([\w, ]+)`\n")


def in_order():
    """Names of the chapters as the contents list them."""
    return re.findall(r"file: chapters/(\w+)", (ROOT / "_toc.yml").read_text())


@pytest.mark.parametrize("path", [p for p in sorted((ROOT / "chapters").glob("*.md")) if "\n*Question.*" in p.read_text()],
                         ids=lambda path: path.stem)
def test_a_chapter_says_what_it_builds_on_and_that_stands_before_it(path):
    if path.stem == "introduction":
        return                          # the front page builds on nothing
    found = TOLD.search(path.read_text())
    assert found, "below its title stands {reading}`the chapters that it builds on`"
    order = in_order()
    for name in [] if found[1] == "nothing" else found[1].split(", "):
        assert order.index(name) < order.index(path.stem)


def test_words_are_counted_without_code_and_formulas_as_ten():
    text = nodes.container("", nodes.paragraph("", "three short words"), nodes.literal_block("", "x = 1"),
                           nodes.math_block("", "a = b + c"), nodes.paragraph("", "", nodes.emphasis("", "two more")))
    assert reading.words(text) == 3 + 10 + 2


def test_the_sentence():
    env = SimpleNamespace(docname="chapters/a", titles={f"chapters/{n}": nodes.title("", n.upper()) for n in "xyz"})
    told = [reading.sentence(env, minutes, [f"chapters/{n}" for n in needs])[0].astext()
            for minutes, needs in ((1, ""), (7, "x"), (7, "xyz"))]
    assert told == ["About 1 minute to read.", "About 7 minutes to read; builds on X.", "About 7 minutes to read; builds on X, Y and Z."]


@pytest.mark.parametrize("count, folds", [(reading.LONG - 1, False), (reading.LONG, True)])
def test_long_proofs_fold(count, folds):
    proof = nodes.admonition("", nodes.paragraph("", "word " * count), classes=["proof", "proof"])
    theorem = nodes.admonition("", nodes.paragraph("", "word " * 500), classes=["proof", "theorem"])
    page = nodes.container("", theorem, nodes.container("", proof))
    step = reading.FoldProofs.__new__(reading.FoldProofs)
    step.document = page
    step.run()
    kinds = [type(child).__name__ for child in page[1].children]
    assert kinds == (["raw", "admonition", "raw"] if folds else ["admonition"]) and len(page) == 2
