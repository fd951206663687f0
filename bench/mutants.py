"""Planted errors: does a unit test fail when one operator or constant of lib is wrong?  python bench/mutants.py

A seeded sample of mutants, so many of each module, is tried on a copy of the tree.  Tests are those that the import
closure of `make check` connects with the module, nearest first and none more than an import further than the nearest,
and of these those that call the function that was changed.  Modules that kernels depend on run without compilation, and what survives runs once more compiled.  Tests
that are slow, or take longer than `SECONDS` in the copy, are left out, and so are the references of chapters.
bench/results/mutants.txt has the result, bench/results/equivalent.txt the survivors that cannot be caught, and why.
"""
import argparse
import ast
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
import json
import multiprocessing
import os
from pathlib import Path
import queue
import random
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "_ext")]
RESULTS = ROOT / "bench" / "results"
PARTS = ("lib", "tests", "_ext", "bench", "data", "chapters", "_static", "conftest.py", "pytest.ini", "requirements.txt",
         "constraints.txt", "Makefile", "README.md", "CONTRIBUTING.md", ".importlinter", "_config.yml", "_toc.yml")
NO_UNITS = {f"tests/test_{name}.py" for name in ("book", "browser", "canary", "check", "ci", "contributing", "layers")}      # of the book and its tools, not of lib
ALWAYS = ["tests/test_defaults.py"]             # imports what it tests by name, which the graph of imports does not show
SECONDS = 3                     # of a test without an error, by the processor's clock
LISTENING, RUNNING = 60, 15     # after which no further test of a file is begun without an error, or chosen for a mutant
LIMIT = 120                     # of a mutant
OPERATORS = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
             ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
             ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.And: ("and", "or"), ast.Or: ("or", "and")}
NAMES = {a: b for one, two in (("min", "max"), ("minimum", "maximum"), ("argmin", "argmax")) for a, b in ((one, two), (two, one))}


class Mutant(NamedTuple):
    """One change: `before` -> `after` at the bytes `start` to `end` of `path`, inside the function that begins at `function`."""

    path: str
    line: int
    function: int       # its first line, 0 outside all functions
    start: int
    end: int
    before: str
    after: str


class Finder(ast.NodeVisitor):
    """Collects the mutants of one file."""

    def __init__(self, path, source):
        self.path, self.source, self.function, self.found = path, source, 0, []
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def place(self, node, end=False):
        line, column = (node.end_lineno, node.end_col_offset) if end else (node.lineno, node.col_offset)
        return self.starts[line - 1] + column

    def add(self, start, end, after):
        line = self.source[:start].count(b"\n") + 1
        self.found.append(Mutant(self.path, line, self.function, start, end, self.source[start:end].decode(), after))

    def operator(self, left, op, right):
        """The sign between two operands, whatever brackets and spaces stand around it."""
        if type(op) in OPERATORS:
            old, new = OPERATORS[type(op)]
            start = self.place(left, end=True)
            between = re.sub(rb"#[^\n]*", lambda comment: b" " * len(comment[0]), self.source[start:self.place(right)])
            at = start + between.index(old.encode())
            self.add(at, at + len(old), new)

    def visit_FunctionDef(self, node):
        for default in filter(None, node.args.defaults + node.args.kw_defaults):
            self.visit(default)
        around, self.function = self.function, node.decorator_list[0].lineno if node.decorator_list else node.lineno
        for statement in node.body:
            self.visit(statement)
        self.function = around

    def visit_AnnAssign(self, node):
        if node.value:
            self.visit(node.value)

    def visit_Assign(self, node):
        if getattr(node.targets[0], "id", None) != "__all__":
            self.generic_visit(node)

    def visit_Raise(self, node):
        """Messages are not mutated."""

    visit_JoinedStr = visit_Import = visit_ImportFrom = visit_Raise

    def visit_BinOp(self, node):
        self.operator(node.left, node.op, node.right)
        self.generic_visit(node)

    def visit_Compare(self, node):
        for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators):
            self.operator(left, op, right)
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        for left, right in zip(node.values, node.values[1:]):
            self.operator(left, node.op, right)
        self.generic_visit(node)

    def visit_UnaryOp(self, node):
        if isinstance(node.op, (ast.Not, ast.USub)):
            start = self.place(node)
            self.add(start, start + (3 if isinstance(node.op, ast.Not) else 1), "")
        self.generic_visit(node)

    def visit_Constant(self, node):
        value = node.value
        if isinstance(value, bool):
            after = str(not value)
        elif isinstance(value, (int, float)):
            after = repr(value + 1 if isinstance(value, int) or value == 0 else 1.1 * value)
        else:
            return
        self.add(self.place(node), self.place(node, end=True), after)

    def visit_Name(self, node):
        if node.id in NAMES:
            self.add(self.place(node), self.place(node, end=True), NAMES[node.id])

    def visit_Attribute(self, node):
        self.visit(node.value)
        if node.attr in NAMES:
            end = self.place(node, end=True)
            self.add(end - len(node.attr), end, NAMES[node.attr])

    def visit_Return(self, node):
        if isinstance(node.value, ast.Tuple) and len(node.value.elts) > 1:
            one, two = node.value.elts[:2]
            spots = [self.place(one), self.place(one, end=True), self.place(two), self.place(two, end=True)]
            text = [self.source[a:b].decode() for a, b in zip(spots, spots[1:])]
            if text[0] != text[2]:
                self.add(spots[0], spots[3], text[2] + text[1] + text[0])
        self.generic_visit(node)


def mutants(root, path):
    """Every mutant of the file `path` of `root`, in the order of a shuffle that depends on the path alone."""
    source = (root / path).read_bytes()
    finder = Finder(path, source)
    finder.visit(ast.parse(source))
    found = sorted(set(finder.found))
    random.Random(path).shuffle(found)
    return found


def mutated(source, mutant):
    return source[:mutant.start] + mutant.after.encode() + source[mutant.end:]


class Listener:
    """A plugin of pytest: runs the tests `wanted` alone, in that order, and notes seconds, outcome and functions of lib called."""

    def __init__(self, root, wanted=None, listen=False):
        self.lib, self.answer, self.wanted, self.listen = str(root / "lib"), root / "_answer.json", wanted, listen
        self.notes, self.called, self.begun = {}, set(), None

    def pytest_collection_modifyitems(self, config, items):
        if self.wanted is not None:
            place = {name: n for n, name in enumerate(self.wanted)}
            config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in place])
            items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])

    def note(self, frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(self.lib):
            self.called.add((code.co_filename, code.co_firstlineno))

    def pytest_runtest_logstart(self):
        self.called, self.start = set(), time.monotonic()
        if self.listen:
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            sys.setprofile(self.note)

    def pytest_runtest_setup(self, item):
        self.begun = time.process_time() if self.begun is None else self.begun
        if self.listen and time.process_time() > self.begun + LISTENING:
            item.session.shouldstop = "enough"

    def pytest_runtest_logreport(self, report):
        outcome, *_ = self.notes.get(report.nodeid, ("passed",))
        self.notes[report.nodeid] = (report.outcome if outcome == "passed" else outcome, time.monotonic() - self.start,
                                     sorted((Path(name).relative_to(Path(self.lib).parent).as_posix(), line)
                                            for name, line in self.called))

    def pytest_runtest_logfinish(self):
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.setprofile(None)
        if self.listen:
            self.write(0)               # what comes later may be stopped

    def write(self, code):
        self.answer.with_suffix(".new").write_text(json.dumps([code, self.notes]))
        self.answer.with_suffix(".new").rename(self.answer)


def too_long(*_):
    raise TimeoutError("the test takes too long")


def child(root, files, compiled, listener, key):
    """Run pytest in the copy `root`; this is the body of a forked process."""
    os.setsid()
    os.chdir(root)
    out = os.open("_out.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1), os.dup2(out, 2)
    sys.path[:0], sys.dont_write_bytecode = [str(root), str(root / "_ext")], True
    os.environ.update(NUMBA_DISABLE_JIT=str(int(not compiled)), NUMBA_CACHE_DIR=str(root / "numba"),
                      PYTHONDONTWRITEBYTECODE="1", TMPDIR=str(root / "tmp"))
    tempfile.tempdir = None
    signal.signal(signal.SIGPROF, too_long)
    import numba
    import pytest
    numba.config.DISABLE_JIT = int(not compiled)
    if key and compiled:
        os.environ["NUMBA_CACHE_DIR"] = numba.config.CACHE_DIR = str(root / "numba" / key)
    stop = [] if listener.listen else ["-x"]
    code = pytest.main(["-q", "-m", "not slow", "--tb=line", "-W", "ignore::pytest.PytestAssertRewriteWarning", "-p", "no:nbval", "-o", "addopts=--strict-markers --doctest-modules", *stop, *files], plugins=[listener])
    listener.write(int(code))
    os._exit(0)


def run(root, files, compiled, listener, limit, key=None):
    """pytest's exit code, None after `limit` seconds, and what the listener noted."""
    listener.answer.unlink(missing_ok=True)
    process = multiprocessing.get_context("fork").Process(target=child, args=(root, files, compiled, listener, key))
    process.start()
    process.join(limit)
    over = process.is_alive()
    try:
        os.killpg(process.pid, signal.SIGKILL)          # it and whatever it started
    except ProcessLookupError:
        pass
    process.join()
    code, notes = json.loads(listener.answer.read_text()) if listener.answer.exists() else (3, {})
    return None if over else code, notes


def copy_tree(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name in PARTS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        elif (ROOT / name).exists():
            shutil.copy2(ROOT / name, folder / name)
    for name in ("numba", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    return folder


class Bench:
    """Copies of the tree, one a worker, and what each test does there when nothing is planted."""

    def __init__(self, folder, workers):
        self.folder, self.lock, self.free = folder, threading.Lock(), queue.Queue()
        for n in range(workers):
            shutil.rmtree(folder / f"copy{n}" / "tests", ignore_errors=True)
            self.free.put(copy_tree(folder / f"copy{n}"))
        import check
        import tree
        graph, tests = tree.import_graph(ROOT), sorted((ROOT / "tests").glob("test_*.py"))
        tests = [test for test in tests if test.relative_to(ROOT).as_posix() not in NO_UNITS]
        self.quiet = {False: {}, True: {}}

        @lru_cache(None)
        def near(path):
            steps = sorted((step, test.relative_to(ROOT).as_posix()) for test in tests
                           if (step := check.distance(ROOT, graph, test, {path})) is not None)
            near = [(step, test) for step, test in steps if step <= steps[0][0] + 1 and test not in ALWAYS]
            return [(0, path)] + near + [(1, test) for test in ALWAYS]                              # with the module's examples
        self.near = near

    def listen(self, file, compiled):
        """The tests of `file` that pass in time, with their seconds and functions, without an error planted."""
        text = (ROOT / file).read_text()
        note = self.folder / f"{file.replace('/', '-')}-{compiled}.json"
        if note.exists() and json.loads(note.read_text())[0] == text:
            self.quiet[compiled][file] = json.loads(note.read_text())[1]
            return
        copy = self.folder / "copy0" if compiled else self.free.get()
        if compiled:
            run(copy, [file], True, Listener(copy), 600)            # compiles
        _, notes = run(copy, [file], compiled, Listener(copy, listen=True), 5 * LISTENING)
        if not compiled:
            self.free.put(copy)
        self.quiet[compiled][file] = notes
        if notes:
            note.write_text(json.dumps([text, notes]))
        print(f"{file} {'compiled' if compiled else 'interpreted'}: {len(notes)} tests, "
              f"{sum(outcome == 'passed' for outcome, *_ in notes.values())} in time", flush=True)

    def tests(self, mutant, compiled):
        """The names of the tests to run on a mutant, nearest and quickest first."""
        chosen, here = [], [mutant.path, mutant.function]
        for step, file in self.near(mutant.path):
            for name, (outcome, seconds, called) in self.quiet[compiled].get(file, {}).items():
                if outcome == "passed":
                    chosen.append((here not in called, step, seconds, name))
        calling = [test for test in chosen if not test[0]]
        taken, spent = [], 0
        for *_, seconds, name in sorted(calling or chosen):
            spent += seconds
            taken += [name] if spent < RUNNING or not taken else []
        return taken

    def attempt(self, mutant, compiled, copy):
        """How a mutant ends, "caught", "over" or "survived", and by which test."""
        wanted = self.tests(mutant, compiled)
        if not wanted:
            return "no test", ""
        target = copy / mutant.path
        before, kept = target.read_bytes(), target.stat()
        target.write_bytes(mutated((ROOT / mutant.path).read_bytes(), mutant))
        key = None if b"jit" in before else "unchanged"
        try:
            code, notes = run(copy, list(dict.fromkeys(name.split("::")[0] for name in wanted)), compiled,
                              Listener(copy, wanted), 3 * LIMIT if compiled else LIMIT, key)
        finally:
            target.write_bytes(before)
            os.utime(target, ns=(kept.st_atime_ns, kept.st_mtime_ns))
        failed = [name for name, (outcome, *_) in notes.items() if outcome == "failed"]
        return "over" if code is None else "survived" if code == 0 else "caught", (failed or [f"{len(wanted)} tests"])[0]

    def judge(self, mutant):
        copy = self.free.get()
        try:
            result = self.attempt(mutant, False, copy)
        finally:
            self.free.put(copy)
        print(*result, *mutant, sep=" | ", flush=True)
        return mutant, *result


def sample(paths, each):
    return [mutant for path in paths for mutant in mutants(ROOT, path)[:each]]


def lines(results, each, known):
    """The table, module by module, and the survivors."""
    count = defaultdict(Counter)
    for mutant, end, _ in results:
        count[mutant.path][end] += 1
    total = sum(count.values(), Counter())
    caught = total["caught"] + total["over"]
    yield f"{len(results)} mutants, {each} a module where it has so many: {caught} caught ({caught / len(results):.0%}), {total['over']} of them by the time limit"
    yield f"{'module':34}{'mutants':>9}{'caught':>8}{'survived':>10}"
    for path, ends in sorted(count.items()):
        survived = ends["survived"] + ends["no test"]
        yield f"{path:34}{sum(ends.values()):9}{sum(ends.values()) - survived:8}{survived:10}"
    yield ""
    yield "survivors: file, line, before -> after, and how it is equivalent"
    for mutant, end, _ in results:
        if end in ("survived", "no test"):
            text = (ROOT / mutant.path).read_bytes().splitlines()[mutant.line - 1].decode().strip()
            reason = known.get((mutant.path, text, mutant.before, mutant.after), "")
            yield f"{mutant.path}:{mutant.line}: {mutant.before} -> {mutant.after} in `{text}`{' (no test calls it)' * (end == 'no test')}" + f": {reason}" * bool(reason)


def equivalent():
    """Survivors that are known to change nothing: file, line's text, before, after -> reason, from equivalent.txt."""
    path = RESULTS / "equivalent.txt"
    rows = [row.split(" | ") for row in path.read_text().splitlines() if row and not row.startswith("#")] if path.exists() else []
    return {tuple(row[:4]): row[4] for row in rows}


def preload():
    """What every child needs, read once; nothing of lib."""
    os.environ.update(OPENBLAS_NUM_THREADS="1", MPLBACKEND="Agg")
    for name in ("numpy numba scipy.stats scipy.optimize scipy.integrate matplotlib.pyplot pandas pytest grimp nbformat jupytext "
                 "jupyter_client jupyter_cache.base _pytest.doctest").split():
        try:
            __import__(name)
        except ImportError:
            pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", help="modules, lib/normal.py; all if none is given")
    parser.add_argument("--each", type=int, default=8, help="mutants of each module")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where copies are kept for a next run (a temporary folder)")
    parser.add_argument("--compiled", action="store_true", help="survivors once more with compiled kernels (takes long)")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    preload()
    with tempfile.TemporaryDirectory() as room:
        results = measure(given, given.folder or Path(room))
    text = "\n".join(lines(results, given.each, equivalent())) + "\n"
    given.out.write_text(text) if given.out else print(text)


def measure(given, folder):
    paths = given.paths or sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "lib").rglob("*.py"))
    bench = Bench(folder, given.workers)
    files = list(dict.fromkeys(file for path in paths for _, file in bench.near(path)))
    with ThreadPoolExecutor(given.workers) as pool:
        list(pool.map(lambda file: bench.listen(file, False), files))
        results = list(pool.map(bench.judge, sample(paths, given.each)))
    if given.compiled:
        left = [row for row in results if row[1] in ("survived", "no test")]
        for file in files:
            if any(outcome != "passed" for outcome, *_ in bench.quiet[False].get(file, {}).values()):
                bench.listen(file, True)
        again = {}
        for mutant, end, by in left:
            ended, name = bench.attempt(mutant, True, folder / "copy0")
            print("compiled", ended, name, *mutant, sep=" | ", flush=True)
            again[mutant] = (mutant, ended if ended in ("caught",) else end, name)
        results = [again.get(row[0], row) for row in results]
    return results


if __name__ == "__main__":
    main()
