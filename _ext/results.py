"""Sphinx extension: take a chapter's outputs from where the test suite left them, or execute it and say so.

Chapters that must be executed begin before the first page is read, AT_ONCE of them side by side; the reader of a page waits
for its own.
"""
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from jupyter_cache import get_cache
from jupyter_cache.executors.utils import single_nb_execution
import jupytext
import myst_nb.core.execute as execute
import tree

ROOT = Path(__file__).resolve().parents[1]
AT_ONCE = 2
# With a fresh cache of compiled code the first of these compiles most of what all chapters call; the others call little of it.
FIRST = "beyond_policies", "corrections", "data", "ledger", "notation"
BEGUN = {}              # code of a chapter: the Future of its ExecutionResult


class Client(execute.NotebookClientCache):
    """myst-nb's client, with a cache for each state of what a chapter depends on."""

    def start_client(self):
        if not any(cell.cell_type == "code" for cell in self.notebook.cells):
            return
        chapter = Path(self.path)
        folder = tree.results_folder(ROOT, chapter)
        self._nb_config = self._nb_config.copy(execution_cache_path=str(folder))
        if not kept(chapter, self.notebook):
            tree.log_execution(ROOT, chapter, "book")
        super().start_client()


def kept(chapter, notebook):
    """Whether there are results of a chapter as things stand."""
    with suppress(KeyError):
        return bool(get_cache(tree.results_folder(ROOT, chapter)).match_cache_notebook(notebook))


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def code(notebook):
    return tuple(cell.source for cell in code_cells(notebook))


def begin(chapters, timeout):
    """Begin to execute those of `chapters` that have code and no results, FIRST before the others."""
    pool, place = ThreadPoolExecutor(AT_ONCE), tree.leading(FIRST)
    for chapter in sorted(chapters, key=lambda chapter: place(chapter.stem)):
        notebook = jupytext.read(chapter)
        if code_cells(notebook) and not kept(chapter, notebook):
            BEGUN[code(notebook)] = pool.submit(single_nb_execution, notebook, str(chapter.parent), timeout, False)
    pool.shutdown(wait=False)


def begun(notebook, **options):
    """jupyter-cache's execution of a notebook in place, awaited where it has begun."""
    found = BEGUN.pop(code(notebook), None)
    if found is None:
        return single_nb_execution(notebook, **options)
    result = found.result()
    for cell, done in zip(code_cells(notebook), code_cells(result.nb)):
        cell.outputs, cell.execution_count = done.outputs, done.execution_count
    return result


def end(app, exception):
    """Where a build ends early, what has not begun never does."""
    for future in BEGUN.values():
        future.cancel()


def outdated(app, env, added, changed, removed):
    """Pages to read again: those whose results, or the book's machinery, are not what they were."""
    old = getattr(env, "book_results", {})
    machinery = tree.digest(ROOT, tree.files(ROOT, tree.MACHINERY))
    env.book_results = {name: (machinery, tree.results_key(ROOT, Path(env.doc2path(name)))) for name in env.found_docs}
    stale = [name for name, key in env.book_results.items() if old.get(name) != key]
    app.book_changed = bool(stale or added or changed or removed)
    begin([Path(env.doc2path(name)) for name in sorted({*stale, *added, *changed})], app.config.nb_execution_timeout)
    return stale


def rewrite(app, env):
    """Every page is written again when one has changed: pages quote one another's numbers."""
    return sorted(env.found_docs) if app.book_changed else []


def setup(app):
    execute.NotebookClientCache, execute.cache.single_nb_execution = Client, begun
    tree.set_environment(ROOT)
    app.connect("env-get-outdated", outdated)
    app.connect("env-updated", rewrite)
    app.connect("build-finished", end)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
