"""Collect chapters/*.md with nbval: run every code cell and compare its text with tests/reference.

pytest                            the whole suite; a chapter that passes is left where the book finds it
pytest chapters/bound.md          one chapter
pytest chapters --update-reference    rewrite tests/reference from this run, and print what changed

A chapter's first item, `reference`, fails when the reference is missing, stale or was never executed; its
cells are then not run.  `--whole-book` fails when anything keeps a chapter of the book from being compared.
"""
from collections import defaultdict
import difflib
import os
from pathlib import Path
import time

import digits
import hypothesis
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
import jupytext
import nbformat
from nbval.plugin import IPyNbCell, IPyNbFile, find_comment_markers, find_metadata_tags
import pytest
import tree

ROOT = Path(__file__).resolve().parent
CHAPTERS = ROOT / "chapters"
REFERENCE = ROOT / "tests" / "reference"
PICTURES = ("text/html", "image/png", "image/jpeg", "image/svg+xml")
OVER = "the time of --within was over"
# Two workers that share a fresh cache begin with these: one compiles what most chapters call, the other runs what calls little of it.
FIRST = ("chapters/beyond_policies.md", "tests/test_canary.py", "tests/test_book.py", "tests/test_documents.py", "chapters/beyond_bounds.md",
         "chapters/simulated.md", "chapters/ratings.md")
NOT_COMPARED = PICTURES + tuple(f"application/papermill.record/{kind}" for kind in PICTURES)

tree.set_environment(ROOT)              # before any kernel starts
hypothesis.settings.register_profile("book", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("book")


def pytest_addoption(parser):
    parser.addoption("--update-reference", action="store_true",
                     help="rewrite tests/reference from this run instead of comparing")
    parser.addoption("--within", type=float, metavar="SECONDS",
                     help="start no test after this time, counted from the first, and say how many were left")
    parser.addoption("--whole-book", action="store_true", help="fail when a cell of a chapter is not selected")


def pytest_configure(config):
    if os.environ.get("BOOK_SIZE", "default") != "default":
        raise pytest.UsageError("the references hold the default sizes: unset BOOK_SIZE")


def pytest_ignore_collect(collection_path):
    """A notebook beside the chapters is none of them; the summary says so."""
    return True if collection_path.suffix == ".ipynb" and CHAPTERS in collection_path.parents else None


def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".md" and file_path.parent == CHAPTERS and tree.chapter_code(file_path.read_text(encoding="utf-8")):
        return Chapter.from_parent(parent, path=file_path)


def pytest_collection_modifyitems(items):
    """Files of FIRST before the others."""
    place = tree.leading(FIRST)
    items.sort(key=lambda item: place(item.nodeid.partition("::")[0]))


def pytest_collection_finish(session):
    if session.items:                   # the controller of several workers collects nothing
        check_whole_book(session.config, [item.nodeid for item in session.items])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node, ids):
    check_whole_book(node.config, ids)


def check_whole_book(config, ids):
    """Every cell of every chapter is among the `ids` to be run, where `--whole-book` asks for it."""
    if not config.option.whole_book or hasattr(config, "workerinput"):
        return
    collected = defaultdict(int)
    for path, _, name in (test.partition("::") for test in ids):
        collected[path] += name.startswith("Cell ")
    for path in (path for path in tree.files(ROOT, ["chapters"]) if path.suffix == ".md"):
        name = path.relative_to(ROOT).as_posix()
        if collected[name] < len(code_cells(path)):
            problem = reference_problem(path) if name in collected else None
            if problem is None:         # otherwise its item `reference` says what is wrong
                raise pytest.UsageError(f"{name}: {collected[name]} of {len(code_cells(path))} cells selected")


def pytest_runtest_setup(item):
    started = item.config.stash.setdefault(STARTED, time.monotonic())       # once everything is collected
    if item.config.option.within is not None and time.monotonic() - started > item.config.option.within:
        pytest.skip(OVER)


def pytest_terminal_summary(terminalreporter, config):
    left = sum(OVER in str(report.longrepr) for report in terminalreporter.getreports("skipped"))
    if left:
        terminalreporter.write_line(f"{left} tests were not run: {OVER}")
    for line in config.stash.get(CHANGES, []):
        terminalreporter.write_line(line)
    for path in (path for path in tree.files(ROOT, ["chapters"]) if path.suffix == ".ipynb"):
        terminalreporter.write_line(f"chapters/{path.name} was passed over: the chapters are the .md files, delete it")


CHANGES, STARTED = pytest.StashKey(), pytest.StashKey()


def code_cells(path):
    return [cell for cell in jupytext.read(path).cells if cell.cell_type == "code"]


def reference_path(chapter):
    return REFERENCE / f"{chapter.stem}.ipynb"


def reference_problem(chapter):
    """Why the reference of `chapter` cannot be compared with, or None."""
    path = reference_path(chapter)
    if not path.exists():
        return f"{path.name} is missing from tests/reference"
    reference, cells = code_cells(path), code_cells(chapter)
    if [cell.source for cell in reference] != [cell.source for cell in cells]:
        return f"tests/reference/{path.name} is stale: its code is not the chapter's"
    for n, cell in enumerate(reference):
        if cell.execution_count != n + 1:
            return f"tests/reference/{path.name}: cell {n} was not executed"
    return None


def options_of(cell):
    """nbval's options of a cell, from its tags and comments."""
    options = defaultdict(bool, {**dict(find_metadata_tags(cell.metadata)), **dict(find_comment_markers(cell.source))})
    options.setdefault("check", True)
    return options


def comparable(outputs):
    """The part of a cell's outputs that is compared and worth committing."""
    kept = []
    for output in outputs:
        output = nbformat.from_dict(dict(output))
        if "data" in output:
            output.data = {kind: value for kind, value in output.data.items() if kind not in NOT_COMPARED}
            output.metadata = {key: value for key, value in output.metadata.items() if key == "scrapbook"}
        kept.append(output)
    return kept


def unchanged(old, new):
    """The outputs to keep as a reference: the old ones where nothing differs but digits that are not compared."""
    texts = [[(output.output_type, str(output.get("metadata")), list(output.get("data", {"text": output.get("text", "")}).items()))
              for output in outputs] for outputs in (old, new)]
    flat = [digits.Printed(str(part)) for part in texts]
    return old if flat[0] == flat[1] else new


def lines(cell):
    """The compared outputs of a cell as lines of text."""
    found = []
    for output in comparable(cell.outputs):
        name = output.get("metadata", {}).get("scrapbook", {}).get("name")
        texts = [output.text] if "text" in output else map(str, output.get("data", {}).values())
        found += [f"{name} = {line}" if name else line for text in texts for line in text.splitlines()]
    return found


def changes(chapter, old, new):
    """What differs between two references, one line each: chapter, cell, what was and what is."""
    before = defaultdict(list)
    for cell in old:
        before[cell.source].append(cell)
    for n, cell in enumerate(new):
        same = before[cell.source].pop(0) if before[cell.source] else None
        if same is None:
            yield f"{chapter} cell {n}: new or edited code"
        for line in difflib.ndiff(lines(same) if same else [], lines(cell)):
            if line[0] in "+-":
                yield f"{chapter} cell {n}: {'old' if line[0] == '-' else 'new'} {line[2:]}"
    for cell in (cell for cells in before.values() for cell in cells):
        yield f"{chapter}: a cell is gone or edited: {cell.source.partition(chr(10))[0]}"
        yield from (f"{chapter}: old {line}" for line in lines(cell))


class Chapter(IPyNbFile):
    """A chapter: one kernel, one item for each of its code cells, and one for its reference."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.skip_compare += NOT_COMPARED
        self.update = self.config.option.update_reference
        self.problem = None if self.update else reference_problem(self.path)
        self.results, self.failed, self.key = {}, False, None

    def collect(self):
        self.nb = jupytext.read(self.path)
        self.cells = [cell for cell in self.nb.cells if cell.cell_type == "code"]
        if not self.update:
            yield ReferenceItem.from_parent(self, name="reference")
        if self.problem:
            return
        reference = [] if self.update else code_cells(reference_path(self.path))
        for n, cell in enumerate(self.cells):
            if reference:
                cell.outputs, cell.execution_count = reference[n].outputs, n + 1
            yield ChapterCell.from_parent(self, name=f"Cell {n}", cell_num=n, cell=cell, options=options_of(cell))

    def setup(self):
        if not self.problem:
            self.key, self.started = tree.results_key(ROOT, self.path), time.perf_counter()
            tree.log_execution(ROOT, self.path, "test")
            super().setup()

    def teardown(self):
        if self.problem:
            return
        super().teardown()
        if self.failed or len(self.results) != len(self.cells):
            return                      # a failing or partial run leaves nothing behind
        for n, cell in enumerate(self.cells):
            cell.outputs, cell.execution_count = self.results[n], n + 1
        if self.update:
            self.write_reference()
        if self.key == tree.results_key(ROOT, self.path):       # nothing was edited meanwhile
            seconds = time.perf_counter() - self.started
            get_cache(tree.results_folder(ROOT, self.path)).cache_notebook_bundle(
                CacheBundleIn(self.nb, str(self.path), data={"execution_seconds": seconds}),
                check_validity=False, overwrite=True)

    def write_reference(self):
        path = reference_path(self.path)
        old = code_cells(path) if path.exists() else []
        before = {cell.source: cell.outputs for cell in old}
        notebook = nbformat.v4.new_notebook(metadata={"kernelspec": self.nb.metadata["kernelspec"]})
        for n, cell in enumerate(self.cells):
            outputs = comparable(cell.outputs) if options_of(cell)["check"] else []
            outputs = unchanged(before.get(cell.source, []), outputs)
            notebook.cells.append(nbformat.v4.new_code_cell(
                cell.source, id=f"cell-{n}", execution_count=n + 1, metadata=cell.metadata, outputs=outputs))
        REFERENCE.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)
        self.config.stash.setdefault(CHANGES, []).extend(changes(self.path.stem, old, notebook.cells))


class ReferenceItem(pytest.Item):
    """Fails when a chapter has nothing sound to be compared with."""

    def runtest(self):
        skipped = [n for n, cell in enumerate(self.parent.cells) if options_of(cell)["skip"]]
        if skipped:
            raise AssertionError(f"cell {skipped[0]} is tagged nbval-skip: the book would run it, the suite would not")
        if self.parent.problem:
            raise AssertionError(f"{self.parent.problem}: run `make reference`")

    def repr_failure(self, excinfo):
        return str(excinfo.value)

    def reportinfo(self):
        return self.path, 0, f"{self.path.name}::reference"


class ChapterCell(IPyNbCell):
    """A code cell; remembers its outputs for the book, and whether it failed."""

    def sanitize(self, text):
        """What is compared: numbers to six significant digits."""
        text = super().sanitize(text)
        return digits.Printed(text) if isinstance(text, str) else text

    def runtest(self):
        try:
            super().runtest()
        except BaseException:
            self.parent.failed = True
            raise
        self.parent.results[self.cell_num] = self.test_outputs
