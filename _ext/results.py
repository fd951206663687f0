"""Sphinx extension: take a chapter's outputs from where the test suite left them, or execute it and say so."""
from contextlib import suppress
from pathlib import Path

from jupyter_cache import get_cache
import myst_nb.core.execute as execute
import tree

ROOT = Path(__file__).resolve().parents[1]


class Client(execute.NotebookClientCache):
    """myst-nb's client, with a cache for each state of what a chapter depends on."""

    def start_client(self):
        if not any(cell.cell_type == "code" for cell in self.notebook.cells):
            return
        chapter = Path(self.path)
        folder = tree.results_folder(ROOT, chapter)
        self._nb_config = self._nb_config.copy(execution_cache_path=str(folder))
        found = False
        with suppress(KeyError):
            found = get_cache(folder).match_cache_notebook(self.notebook)
        if not found:
            tree.log_execution(ROOT, chapter, "book")
        super().start_client()


def outdated(app, env, added, changed, removed):
    """Pages to read again: those whose results, or the book's machinery, are not what they were."""
    old = getattr(env, "book_results", {})
    machinery = tree.digest(ROOT, tree.files(ROOT, tree.MACHINERY))
    env.book_results = {name: (machinery, tree.results_key(ROOT, Path(env.doc2path(name)))) for name in env.found_docs}
    stale = [name for name, key in env.book_results.items() if old.get(name) != key]
    app.book_changed = bool(stale or added or changed or removed)
    return stale


def rewrite(app, env):
    """Every page is written again when one has changed: pages quote one another's numbers."""
    return sorted(env.found_docs) if app.book_changed else []


def setup(app):
    execute.NotebookClientCache = Client
    tree.set_environment(ROOT)
    app.connect("env-get-outdated", outdated)
    app.connect("env-updated", rewrite)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
