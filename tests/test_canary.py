"""A tiny book in a folder of its own: what must turn the suite red does, and nothing stale is ever shown."""
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
PARTS = ("_ext", "_static", "_config.yml", "conftest.py", "pytest.ini", "requirements.txt", "constraints.txt",
         "references.bib", "tests/sanitize.cfg", "lib/__init__.py", "lib/problem.py")
FRONT = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

"""
KERNEL = """import numba
from lib.scale import scale

@numba.njit(cache=True)
def total(n):
    s = 0.0
    for i in range(n):
        s += scale(i)
    return s
"""
SCALE = """import numba

@numba.njit
def scale(i):
    return 1.25 * i
"""
TOTAL = """# Total

The total is {glue:text}`total:.2f`.

```{code-cell} ipython3
from myst_nb import glue
from lib.kernel import total
print(f"{total(5):.2f}")
glue("total", total(5), display=False)
```

```{code-cell} ipython3
import matplotlib.pyplot as plt
fig, ax = plt.subplots(figsize=(1, 1))
glue("picture", fig, display=False)
plt.close(fig)
```
"""
FRONT_PAGE = """# Front

```{shared-figure} picture
:doc: total.md
:alt: Two axes.
:name: fig-front

The axes are empty, and the total is {glue:text}`total.md::total:.2f`.
```

Of $x$, {glue:text}`total.md::total:.1f` % or 12 % remain; `5 %` is code and $y$ a formula.
"""
OTHER = """# Other

Elsewhere the total is {glue:text}`total.md::total:.2f`.

```{code-cell} ipython3
from lib.problem import make_problem
make_problem([[1]], [1], [0.5], [[1]], 1, 0.2, 0.9).mu
```
"""
MEETING = """
```{code-cell} ipython3
from pathlib import Path
import time
Path("%s").touch()
begin = time.monotonic()
while not Path("%s").exists():
    assert time.monotonic() - begin < 60, "the other chapter never began"
    time.sleep(.05)
```
"""
pytestmark = pytest.mark.slow


class Book:
    """A small book in `folder`, and the commands of the big one on it."""

    def __init__(self, folder):
        self.folder = folder
        for name in PARTS:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, folder / name)
        self.write("lib/kernel.py", KERNEL)
        self.write("lib/scale.py", SCALE)
        self.write("chapters/total.md", FRONT + TOTAL)
        self.write("chapters/other.md", FRONT + OTHER)
        self.write("chapters/front.md", FRONT + FRONT_PAGE)
        self.write("_toc.yml", "format: jb-book\nroot: chapters/other\nchapters:\n"
                               "  - file: chapters/total\n  - file: chapters/front\n")

    def write(self, name, text):
        (self.folder / name).parent.mkdir(exist_ok=True)
        (self.folder / name).write_text(text)

    def run(self, *command):
        """Exit code and output of a command in the book's folder."""
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("PYTHONPATH", "NUMBA_CACHE_DIR", "BOOK_SIZE")}
        done = subprocess.run(command, cwd=self.folder, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def suite(self, *options):
        return self.run(sys.executable, "-m", "pytest", "-q", "--color=no", "chapters", *options)

    def build(self):
        code, output = self.run(str(Path(sys.executable).with_name("jupyter-book")), "build", ".", "-W", "--keep-going")
        assert code == 0, output
        return {name: re.search(r"total is.*?([\d.]+)\D*</p>", (self.folder / f"_build/html/chapters/{name}.html")
                                .read_text()).group(1).rstrip(".") for name in ("total", "other")}

    def executions(self):
        """The chapters executed since the last call, in order, with who asked."""
        log = self.folder / "_build" / "executions.log"
        lines = [line.split()[1:] for line in log.read_text().splitlines()] if log.exists() else []
        log.unlink(missing_ok=True)
        return sorted(f"{by} {chapter}" for by, chapter in lines)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    book = Book(tmp_path_factory.mktemp("book"))
    code, output = book.suite("--update-reference")
    assert code == 0, output
    assert "total cell 0: new total = 12.5" in output
    book.executions()
    return book


def test_an_untouched_book_is_green_and_its_pages_execute_nothing_more(book):
    code, output = book.suite("--whole-book")
    assert code == 0 and "5 passed" in output, output
    assert book.executions() == ["test chapters/other.md", "test chapters/total.md"]
    assert book.build() == {"total": "12.50", "other": "12.50"}
    assert book.executions() == []


def test_chapters_without_results_are_executed_once_each_and_side_by_side(book):
    try:
        book.write("chapters/total.md", FRONT + TOTAL + MEETING % ("here", "there"))
        book.write("chapters/other.md", FRONT + OTHER + MEETING % ("there", "here"))
        assert book.build() == {"total": "12.50", "other": "12.50"}
        assert book.executions() == ["book chapters/other.md", "book chapters/total.md"]
        book.write("chapters/total.md", FRONT + TOTAL.replace("total(5):.2f", "1 / 0"))
        with pytest.raises(AssertionError, match="Executing notebook failed: CellExecutionError"):
            book.build()
        assert book.executions() == ["book chapters/total.md"]
    finally:
        book.write("chapters/total.md", FRONT + TOTAL)
        book.write("chapters/other.md", FRONT + OTHER)


def test_a_notebook_left_beside_its_chapter_is_passed_over_with_a_message(book):
    stray = book.folder / "chapters" / "total.ipynb"
    try:
        nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0")]), stray)
        code, output = book.suite("--collect-only", "--whole-book")
        assert code == 0 and "5 tests collected" in output, output
        assert "chapters/total.ipynb was passed over: the chapters are the .md files" in output
        code, output = book.suite("--collect-only", "chapters/total.ipynb")
        assert "total.ipynb::" not in output and "was passed over" in output, output
        assert book.build() == {"total": "12.50", "other": "12.50"}
    finally:
        stray.unlink()


def test_a_page_without_code_shows_the_picture_of_another_that_does_not_show_it_itself(book):
    book.build()
    html = (book.folder / "_build/html/chapters/front.html").read_text()
    figure = re.search(r'<figure[^>]*id="fig-front".*?</figure>', html, re.DOTALL)[0]
    source, alt = re.search(r'<img[^>]*src="([^"]*)"', figure)[1], re.search(r'alt="([^"]*)"', figure)[1]
    picture = (book.folder / "_build/html/chapters" / source).read_bytes()
    assert picture.startswith(b"\x89PNG") and alt == "Two axes." and "12.50" in figure
    text = html[html.index("</figure>"):]
    assert re.search(r'<span class="together"><span class="math[^>]*>[^<]*</span>,</span>', text) and text.count("together") == 1
    assert "12.5</span>\N{NO-BREAK SPACE}% or 12\N{NO-BREAK SPACE}% remain" in text and "5</span> <span" in text
    assert source.split("/")[-1] not in (book.folder / "_build/html/chapters/total.html").read_text()


def test_a_shared_figure_that_no_chapter_glued_is_red(book):
    try:
        book.write("chapters/front.md", FRONT + FRONT_PAGE.replace("} picture", "} portrait"))
        with pytest.raises(AssertionError, match="'portrait' not found"):
            book.build()
    finally:
        book.write("chapters/front.md", FRONT + FRONT_PAGE)


def test_a_changed_kernel_is_red_and_reaches_every_page_that_shows_its_number(book):
    """The changed function is called by a compiled kernel of another file, which numba's own cache overlooks."""
    book.build()
    book.executions()
    try:
        book.write("lib/scale.py", SCALE.replace("1.25", "1.5"))
        code, output = book.suite()
        assert code == 1 and "Cell outputs differ" in output and "1 failed, 4 passed" in output, output
        assert book.executions() == ["test chapters/other.md", "test chapters/total.md"]
        assert book.build() == {"total": "15.00", "other": "15.00"}
        assert book.executions() == ["book chapters/total.md"]       # the other passed, and does not run lib.scale
    finally:
        book.write("lib/scale.py", SCALE)
    assert book.build() == {"total": "12.50", "other": "12.50"}
    assert book.executions() == []                                  # the earlier results are still there


def test_a_new_reference_says_what_changed(book):
    path = book.folder / "tests" / "reference" / "total.ipynb"
    good = path.read_text()
    try:
        book.write("lib/scale.py", SCALE.replace("1.25", "1.5"))
        code, output = book.suite("--update-reference", "-k", "total")
        assert code == 0
        assert {line for line in output.splitlines() if line.startswith("total")} == {
            "total cell 0: old 12.50", "total cell 0: old total = 12.5",
            "total cell 0: new 15.00", "total cell 0: new total = 15.0"}
    finally:
        book.write("lib/scale.py", SCALE)
        path.write_text(good)
        book.executions()


def test_a_chapter_is_its_file_a_line_of_the_contents_and_its_reference(book):
    """What CONTRIBUTING says of a chapter, followed; then undone."""
    toc = (book.folder / "_toc.yml").read_text()
    try:
        book.write("chapters/new.md", FRONT + "# New\n\nIt is {glue:text}`half:.1f`.\n\n```{code-cell} ipython3\nfrom myst_nb import glue\n"
                   "glue(\"half\", 0.5, display=False)\nprint(0.5)\n```\n")
        code, output = book.suite("--whole-book")
        assert code == 1 and "new.ipynb is missing" in output, output
        book.write("_toc.yml", toc + "  - file: chapters/new\n")
        code, output = book.suite("--update-reference", "-k", "new")
        assert code == 0 and "new cell 0: new half = 0.5" in output, output
        code, output = book.suite("--whole-book")
        assert code == 0, output
        book.build()
        assert ">0.5<" in (book.folder / "_build/html/chapters/new.html").read_text()
    finally:
        book.write("_toc.yml", toc)
        (book.folder / "chapters" / "new.md").unlink()
        (book.folder / "tests" / "reference" / "new.ipynb").unlink(missing_ok=True)
        book.executions()


def test_an_unfit_reference_is_red_and_its_chapter_is_not_executed(book):
    good = (book.folder / "tests" / "reference" / "total.ipynb").read_text()
    messages = {"missing": "missing.ipynb is missing", "stale": "stale.ipynb is stale: its code is not the chapter's",
                "unrun": "unrun.ipynb: cell 0 was not executed", "empty": "empty.ipynb: cell 0 was not executed"}
    try:
        for name in messages:
            book.write(f"chapters/{name}.md", FRONT + TOTAL)
            notebook = nbformat.reads(good, 4)
            cell = notebook.cells[0]
            cell.source += "\n# edited" if name == "stale" else ""
            cell.execution_count = None if name in ("unrun", "empty") else 1
            cell.outputs = [] if name == "empty" else cell.outputs
            if name != "missing":
                nbformat.write(notebook, book.folder / "tests" / "reference" / f"{name}.ipynb")
        code, output = book.suite("-k", "not total and not other")
        assert code == 1 and "4 failed" in output, output
        assert all(message in output for message in messages.values()), output
        assert book.executions() == []
    finally:
        for name in messages:
            (book.folder / "chapters" / f"{name}.md").unlink()
            (book.folder / "tests" / "reference" / f"{name}.ipynb").unlink(missing_ok=True)


@pytest.mark.parametrize("options, tag, message", [
    (("-k", "not total"), None, "chapters/total.md: 0 of 2 cells selected"),
    (("-k", "not total", "-n", "2"), None, "chapters/total.md: 0 of 2 cells selected"),
    (("--ignore=chapters/total.md",), None, "chapters/total.md: 0 of 2 cells selected"),
    (("-k", "reference"), None, "cells selected"),
    (("-k", "total and reference"), "nbval-skip", "tagged nbval-skip")])
def test_a_chapter_that_is_not_compared_is_red(book, options, tag, message):
    path = book.folder / "chapters" / "total.md"
    good = path.read_text()
    try:
        if tag:
            path.write_text(good.replace("ipython3\n", f"ipython3\n:tags: [{tag}]\n"))
        code, output = book.suite(*options, *([] if tag else ["--whole-book"]))
        assert code in (1, 4) and message in output, output
    finally:
        path.write_text(good)
        book.executions()


def test_a_failing_chapter_leaves_no_result_behind(book):
    path = book.folder / "chapters" / "total.md"
    good = path.read_text()
    before = sorted((book.folder / "_build" / "results").rglob("*.ipynb"))
    try:
        path.write_text(good.replace("glue(", "assert total(5) < 0\nglue("))
        code, output = book.suite("--update-reference", "-k", "total")
        assert code == 1 and "AssertionError" in output, output
        assert sorted((book.folder / "_build" / "results").rglob("*.ipynb")) == before
    finally:
        path.write_text(good)
        book.executions()
