"""Unit tests for work between commits: `make check` runs those that what has changed can break, nearest first.

A test file is taken when a changed file is among what Python runs for its imports, and stands the earlier the fewer
imports lie between.  Slow tests are left out, and after a minute no further test is started.
"""
from pathlib import Path
import subprocess
import sys

import tree

ROOT = Path(__file__).resolve().parents[1]
EVERYTHING = ("conftest.py", "pytest.ini", *tree.PINS)      # of which every test depends
BOOK = "tests/test_book.py"                                 # reads the files that no test imports
SECONDS = 50                                                # and then the tests that have begun


def changed(root):
    """The files that differ from the last commit, new ones too, relative to `root`.

    Raises
    ------
    ValueError
        If git does not know the folder.
    """
    found = set()
    for command in (["diff", "--name-only", "--relative", "HEAD"], ["ls-files", "--others", "--exclude-standard"]):
        done = subprocess.run(["git", "-C", str(root), *command], capture_output=True, text=True)
        if done.returncode:
            raise ValueError(f"git says of {root}: {done.stderr.strip()}; `make check PACKAGE=name` needs no git")
        found.update(done.stdout.splitlines())
    return found


def package(root, name):
    """The files of lib/`name`, a package or a module.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    found = {path.relative_to(root).as_posix() for path in tree.files(root, ["lib"]) if path.suffix == ".py"
             and path.relative_to(root / "lib").with_suffix("").parts[0] == name}
    if not found:
        raise ValueError(f"PACKAGE is {name}: there is no lib/{name}")
    return found


def distance(root, graph, test, files):
    """How many imports lie between the file `test` and the nearest of `files`; None where no way leads there."""
    if test.relative_to(root).as_posix() in files:
        return 0
    names = tree.imports(test.read_text(encoding="utf-8"))
    beside = {f"{folder}/{name}.py" for name in names for folder in ("_ext", "tests", "bench")}
    steps = [0] if beside & set(files) else []
    for module, step in tree.closure(graph, names).items():
        path = tree.source(root, module)
        if path and path.relative_to(root).as_posix() in files:
            steps.append(step)
    return min(steps, default=None)


def selection(root, files):
    """What to run when `files` have changed: test files, nearest first, then the examples in changed modules."""
    graph, tests = tree.import_graph(root), sorted((root / "tests").glob("test_*.py"))
    steps = {test.relative_to(root).as_posix(): distance(root, graph, test, files) for test in tests}
    if any(name in files for name in EVERYTHING):
        steps = {name: step or 0 for name, step in steps.items()}
    elif any(not name.startswith(("lib/", "tests/")) for name in files):
        steps[BOOK] = 0
    near = sorted((name for name, step in steps.items() if step is not None), key=lambda name: (steps[name], name))
    return near + sorted(name for name in files if name.startswith("lib/") and name.endswith(".py")
                         and (root / name).is_file())


def main(arguments):
    """Run what is selected; the exit code is pytest's."""
    try:
        files = package(ROOT, arguments[0]) if arguments else changed(ROOT)
    except ValueError as error:
        print(error)
        return 2
    chosen = selection(ROOT, files)
    if not chosen:
        print("nothing has changed since the last commit that a unit test could see")
        return 0
    print(*chosen, sep="\n")
    return subprocess.run([sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder",
                           "-m", "not slow", f"--within={SECONDS}", *chosen], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
