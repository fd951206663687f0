"""What a result was computed from, as a hash, and where results are kept.

Chapter outputs and compiled kernels live in `_build` under such a hash: after an edit they are not
found, and are made again.  The test suite (`conftest.py`) and the book (`results.py`) share this file.
"""
import ast
from datetime import datetime, timezone
import hashlib
import os
from pathlib import Path
import re
import sys

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


def digest(root, paths, *words):
    """16 hexadecimal digits for the names and contents of `paths`, and for `words`."""
    total = hashlib.sha256(repr(words).encode())
    for path in paths:
        content = path.read_bytes()
        total.update(f"{path.relative_to(root).as_posix()} {len(content)} ".encode() + content)
    return total.hexdigest()[:16]


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
    return names


def modules(root, names):
    """The project's own files that importing `names` runs, directly or through one another."""
    found, ahead = set(), set(names)
    while ahead:
        name = ahead.pop()
        place = root.joinpath(*name.split("."))
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path.is_file() and path not in found:
                found.add(path)
                ahead |= imports(path.read_text()) | {name.rpartition(".")[0] or name}
    return sorted(found | {root / "lib" / "__init__.py"})


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


def kernels_key(root):
    """The modules that compile kernels and all that they import: numba itself looks at one file only."""
    lib = files(root, ["lib"])
    compiled = [".".join(path.relative_to(root).with_suffix("").parts) for path in lib
                if path.suffix == ".py" and "numba" in imports(path.read_text())]
    return digest(root, modules(root, compiled) + files(root, PINS), sys.version)


def set_environment(root):
    """What every kernel of this process needs: lib on its path, compiled code that is not stale, a reader's data found.

    Kernels run in the folder of their chapter, so paths given from elsewhere are made absolute.
    """
    path = [str(root), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(path))
    os.environ["NUMBA_CACHE_DIR"] = str(root / "_build" / "numba" / kernels_key(root))
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
