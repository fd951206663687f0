"""What a result was computed from, as a hash, and where results are kept.

Chapter outputs live in `_build` under such a hash: after an edit they are not found, and are made again.  The
test suite (`conftest.py`) and the book (`results.py`) share this file.  Compiled code has a hash of its own, which
`lib/__init__.py` sets wherever lib is imported.
"""
import ast
from datetime import datetime, timezone
from functools import cache
import hashlib
import os
from pathlib import Path
import re
import sys

import grimp
from grimp.application.config import settings
from grimp.application.ports.packagefinder import AbstractPackageFinder

PINS = ("requirements.txt", "constraints.txt")
MACHINERY = ("_ext", "_static", "_config.yml", "_toc.yml", "references.bib", *PINS)
OWN_DATA = ("BOOK_YELP", "BOOK_ARXIV")          # where lib.sources finds a reader's own data
SITE = ("chapters", "lib", "data", "bench", *MACHINERY)


def files(root, names):
    """The files under `names` (files or folders of `root`), sorted; caches and hidden files left out."""
    found = []
    for name in names:
        path = root / name
        found += path.rglob("*") if path.is_dir() else [path]
    return sorted(path for path in found if path.is_file()
                  and not any(part.startswith(".") or part == "__pycache__" for part in path.relative_to(root).parts))


def leading(names):
    """A sort key that puts `names` before all others, in their order."""
    place = {name: n for n, name in enumerate(names)}
    return lambda name: place.get(name, len(place))


def digest(root, paths, *words):
    """16 hexadecimal digits for the names and contents of `paths`, and for `words`."""
    total = hashlib.sha256(repr(words).encode())
    for path in paths:
        content = path.read_bytes()
        total.update(f"{path.relative_to(root).as_posix()} {len(content)} ".encode() + content)
    return total.hexdigest()[:16]


@cache
def imports(source):
    """The dotted names that Python `source` imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "lib" if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            names.update([module], (f"{module}.{alias.name}" for alias in node.names))
    return frozenset(names)


class Folder(AbstractPackageFinder):
    """Tells grimp to read the packages of one tree, whatever this process could import under their names."""

    def __init__(self, root):
        self.root = root

    def determine_package_directories(self, package_name, file_system):
        return {str(self.root / package_name)}


def import_graph(root):
    """The modules of lib under `root` and what each imports, anywhere in it, as grimp reads them."""
    usual = settings.PACKAGE_FINDER
    settings.configure(PACKAGE_FINDER=Folder(root))
    try:
        return grimp.build_graph("lib", cache_dir=None)
    finally:
        settings.configure(PACKAGE_FINDER=usual)


def closure(graph, names):
    """The modules that importing the dotted `names` runs, each with the number of imports on the way to it.

    A package runs before what is in it.
    """
    found, ahead, steps = {}, {"lib", *names}, 0
    while ahead:
        parts = [name.split(".") for name in ahead]
        new = {".".join(name[:end + 1]) for name in parts for end in range(len(name))} & graph.modules - found.keys()
        found |= dict.fromkeys(new, steps)
        ahead, steps = set().union(*map(graph.find_modules_directly_imported_by, new)), steps + 1
    return found


def source(root, module):
    """The file of a module of lib, a package's being its `__init__`; None for a folder without one."""
    path = root.joinpath(*module.split("."))
    return next(filter(Path.is_file, (path / "__init__.py", path.with_name(path.name + ".py"))), None)


def modules(root, names):
    """The files of lib that importing `names` runs, directly or through one another, sorted.

    Raises
    ------
    ValueError
        If a name is of the project but not of lib: its edits would go unseen.
    """
    for first in sorted({name.split(".")[0] for name in names} - {"lib"}):
        if any((root / first).glob("*.py")) or (root / f"{first}.py").is_file():
            raise ValueError(f"a chapter imports {first}: of this project it may import lib alone")
    found = closure(import_graph(root), names)
    return sorted(filter(None, (source(root, module) for module in found)))


def python(cell):
    """The source of a code cell without magics and shell lines."""
    return "\n".join(line for line in cell.splitlines() if not line.lstrip().startswith(("%", "!")))


def chapter_code(text):
    """The Python of a MyST chapter: its code cells, without their options."""
    cells = re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    cells = [re.sub(r"\A(---\n.*?^---\n|(:[^\n]*\n)+)", "", cell, flags=re.DOTALL | re.MULTILINE) for cell in cells]
    return "\n".join(map(python, cells))


def results_key(root, chapter):
    """Everything but its own cells that `chapter` depends on: the modules it runs, the data, pins, Python, settings."""
    names = imports(chapter_code(chapter.read_text()))
    tables = [path for path in files(root, ["data", "bench"]) if path.suffix != ".py"]
    return digest(root, modules(root, names) + tables + files(root, PINS),
                  sys.version, os.environ.get("BOOK_SIZE", "default"), *map(own_data, OWN_DATA))


def own_paths(name):
    """The paths that the setting `name` holds: a folder, or files joined as in PATH."""
    value = os.environ.get(name)
    return [] if not value else [value] if name == "BOOK_YELP" else value.split(os.pathsep)


def own_data(name):
    """The paths of a reader's own data, with size and time of each file there."""
    found = []
    for path in map(Path, own_paths(name)):
        there = sorted(path.iterdir()) if path.is_dir() else [path]
        found += [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in there if file.is_file()] or [str(path)]
    return found or None


def results_folder(root, chapter):
    """The jupyter-cache that holds the outputs of `chapter` as things stand."""
    return root / "_build" / "results" / f"{chapter.stem}-{results_key(root, chapter)}"


def set_environment(root):
    """What every kernel of this process needs: lib on its path, a reader's data found.

    Kernels run in the folder of their chapter, so paths given from elsewhere are made absolute.
    """
    path = [str(root), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(path))
    for name in filter(os.environ.get, OWN_DATA):
        os.environ[name] = os.pathsep.join(os.path.abspath(path) if path else "" for path in own_paths(name))
    os.environ["BOOK_BUILD"] = "1"          # no progress bars in outputs that are compared


def log_execution(root, chapter, by):
    """One line in `_build/executions.log`; the continuous integration counts them."""
    log = root / "_build" / "executions.log"
    log.parent.mkdir(exist_ok=True)
    with log.open("a") as out:
        out.write(f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%S} {by} {chapter.relative_to(root).as_posix()}\n")


def site_key(root):
    """Everything that the pages are made from."""
    return digest(root, files(root, SITE))


def stamp(root):
    """The file in the built site that holds the `site_key` it was built from."""
    return root / "_build" / "html" / "built-from.txt"


if __name__ == "__main__":                       # the Makefile calls this when a build has ended without a warning
    here = Path(__file__).resolve().parents[1]
    stamp(here).write_text(site_key(here) + "\n")
