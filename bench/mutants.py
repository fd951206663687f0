"""Planted errors: does a unit test fail when one operator or constant of lib is wrong?  python bench/mutants.py

A seeded sample of mutants, so many of each module, is tried on a copy of the tree by processes forked from this one,
which has read NumPy, numba and pandas.  Each test is run once without an error, to know its seconds and the functions of
lib that it calls; a mutant is tried on the tests that call the function that was changed, the quickest of the nearest
first, until one fails.  A module without kernels is tried with the kernels as compiled; one with kernels without
compilation first, and compiled anew, with what imports it, if it survives.  What is judged is kept in `--folder`, where
the next run goes on.  Slow tests are left out at first, and the references of chapters always.
bench/results/mutants.txt has the result, bench/results/equivalent.txt the survivors that no test can catch, and why.
"""
import argparse
from collections import Counter, defaultdict
import hashlib
import json
import multiprocessing
import os
from pathlib import Path
import re
import resource
import shutil
import signal
import sys
import tempfile
import time

from planting import mutants, mutated

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "_ext")]
RESULTS = ROOT / "bench" / "results"
PARTS = ("lib", "tests", "_ext", "bench", "data", "chapters", "_static", "conftest.py", "pytest.ini", "requirements.txt",
         "constraints.txt", "Makefile", "README.md", "CONTRIBUTING.md", ".importlinter", "_config.yml", "_toc.yml")
NO_UNITS = {f"tests/test_{name}.py" for name in ("book", "browser", "canary", "check", "ci", "contributing", "layers", "mutants")}      # of the book and its tools, not of lib
ALWAYS = ["tests/test_defaults.py"]             # imports what it tests by name, which the graph of imports does not show
SECONDS, PATIENCE = 3, 12       # of a test without an error, compiled or not, by the processor's clock
LISTENING, INTERPRETING, RUNNING = 60, 30, 15     # after which no further test of a file is begun without an error (compiled or not), or chosen for a mutant
OPEN = "survived", "no test"
LIMIT, COMPILING = 60, 300      # of a mutant, and of one whose kernels are compiled, by the processor's clock


class Listener:
    """A plugin of pytest: runs the tests `wanted` alone, in that order, and notes seconds, outcome and functions of lib called."""

    def __init__(self, root, wanted=None, listen=0, slow=False):
        self.lib, self.answer = str(root / "lib"), root / "_answer.json"
        self.wanted, self.listen, self.slow = wanted, listen, slow
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
            signal.setitimer(signal.ITIMER_PROF, SECONDS if self.listen == LISTENING else PATIENCE)
            sys.setprofile(self.note)

    def pytest_runtest_setup(self, item):
        self.begun = time.process_time() if self.begun is None else self.begun
        if self.listen and time.process_time() > self.begun + self.listen:
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


def child(root, files, cache, listener, limit):
    """Run pytest in the copy `root`, compiled with the kernels in the folder `cache`, or not; the body of a forked process."""
    os.setsid()
    os.chdir(root)
    out = os.open("_out.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1), os.dup2(out, 2)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    sys.path[:0], sys.dont_write_bytecode = [str(root), str(root / "_ext")], True
    os.environ.update(NUMBA_DISABLE_JIT=str(int(cache is None)), NUMBA_CACHE_DIR=str(root / "numba"),
                      PYTHONDONTWRITEBYTECODE="1", TMPDIR=str(root / "tmp"))
    tempfile.tempdir = None
    signal.signal(signal.SIGPROF, too_long)
    import numba
    import pytest
    numba.config.DISABLE_JIT = int(cache is None)
    import lib  # noqa: F401  which sets a folder for compiled code
    if cache:
        os.environ["NUMBA_CACHE_DIR"] = numba.config.CACHE_DIR = str(cache)
    stop = [] if listener.listen else ["-x"]
    marks = [] if listener.slow else ["-m", "not slow"]
    code = pytest.main(["-q", *marks, "--tb=line", "-W", "ignore::pytest.PytestAssertRewriteWarning", "-p", "no:nbval",
                        "-o", "addopts=--strict-markers --doctest-modules", *stop, *files], plugins=[listener])
    listener.write(int(code))
    os._exit(0)


def run(root, files, cache, listener, limit):
    """pytest's exit code, None after `limit` seconds of the processor, and what the listener noted."""
    listener.answer.unlink(missing_ok=True)
    process = multiprocessing.get_context("fork").Process(target=child, args=(root, files, cache, listener, limit))
    process.start()
    process.join(4 * limit)
    over = process.is_alive() or process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
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


def cache_name(folder):
    """What numba calls the folder of the compiled code of the files in `folder`."""
    return f"{folder.name}_{hashlib.sha1(str(folder).encode()).hexdigest()}"


class Bench:
    """Copies of the tree, one a worker, what each test does there when nothing is planted, and what has been judged."""

    def __init__(self, folder, workers, slow=False):
        self.folder, self.slow = folder, slow
        self.copies = [folder / f"copy{n}" for n in range(workers)]
        for copy in self.copies:
            shutil.rmtree(copy / "tests", ignore_errors=True)
            copy_tree(copy)
        self.tests = [name for test in sorted((ROOT / "tests").glob("test_*.py"))
                      if (name := test.relative_to(ROOT).as_posix()) not in NO_UNITS]
        self.quiet = {False: {}, True: {}}
        self.log, ways = folder / "judged.jsonl", folder / "imports.json"
        process = multiprocessing.get_context("fork").Process(target=write_imports, args=(ways, self.tests))
        process.start()
        process.join()                  # it has threads, in whose company nothing can be forked
        self.steps, self.importers = json.loads(ways.read_text())

    def near(self, path):
        """Test files and the module itself, with its examples, each with its number of imports from the module."""
        imported = path.replace("__main__", "__init__")          # a script is run where its package is tested
        return self.steps[imported] | {path: 0} | dict.fromkeys(ALWAYS, 0)

    def content(self, file):
        """The text of a test file as it was when this run began, or that of the modules of a folder."""
        return "".join(((self.copies[0] if name.startswith("tests/") else ROOT) / name).read_text() for name in members(file))

    def note(self, file, compiled):
        return self.folder / f"{file.replace('/', '-')}-{'compiled' if compiled else 'interpreted'}.json"

    def listen(self, file, compiled, copy):
        """Note the tests of `file`, with outcome, seconds and functions called, without an error planted."""
        cache = copy / "numba" / "unchanged" if compiled else None
        before = sorted(cache.rglob("*.nbc")) if compiled else []
        _, notes = run(copy, members(file), cache, self.ear(copy, compiled), 2 * LISTENING)
        if compiled and before != sorted(cache.rglob("*.nbc")):                             # it took time to compile
            run(copy, members(file), cache, Listener(copy, slow=self.slow), 2 * COMPILING)
            _, notes = run(copy, members(file), cache, self.ear(copy, compiled), 2 * LISTENING)
        self.note(file, compiled).write_text(json.dumps([self.content(file), notes]))
        print(f"{file} {'compiled' if compiled else 'interpreted'}: {len(notes)} tests, "
              f"{sum(outcome == 'passed' for outcome, *_ in notes.values())} in time", flush=True)

    def hear(self, files, compiled):
        """Know what the tests of `files` do: from an earlier run, where the file is what it was, or by running them."""
        def known(file):
            note = self.note(file, compiled)
            text, notes = json.loads(note.read_text()) if note.exists() else (None, None)
            return notes if text == self.content(file) else None
        in_turn(self.copies, lambda file, copy: self.listen(file, compiled, copy), [file for file in files if known(file) is None])
        self.quiet[compiled] |= {file: known(file) or {} for file in files}

    def ear(self, copy, compiled):
        return Listener(copy, listen=LISTENING if compiled else INTERPRETING, slow=self.slow)

    def share_kernels(self):
        """Every copy gets the compiled code of every other: its folders are named after the place of the source."""
        for copy in self.copies:
            for folder in {path.parent for path in (copy / "lib").rglob("*.py")}:
                for other in set(self.copies) - {copy}:
                    here = copy / "numba" / "unchanged" / cache_name(folder)
                    there = other / "numba" / "unchanged" / cache_name(other / folder.relative_to(copy))
                    if here.exists():
                        shutil.copytree(here, there, dirs_exist_ok=True)

    def planted_kernels(self, copy, path):
        """A folder of compiled code without that of `path` and of all that imports it."""
        base, kept = copy / "numba" / "unchanged", copy / "numba" / "planted"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(base, kept, copy_function=os.link)
        for name in [path, *self.importers[path]]:
            for old in (kept / cache_name((copy / name).parent)).glob(f"{Path(name).stem}.*"):
                old.unlink()
        return kept

    def choice(self, mutant, compiled):
        """The names of the tests to run on a mutant: of those that call its function, else its module, nearest and quickest first."""
        chosen, here = [], [mutant.path, mutant.function]
        near = self.near(mutant.path)
        least = min((step for file, step in near.items() if file.startswith("tests/") and file not in ALWAYS), default=0)
        for group, notes in self.quiet[compiled].items():
            other = self.quiet[not compiled].get(group, {})
            for name, (outcome, seconds, called) in notes.items():
                file = name.split("::")[0]
                if outcome == "passed" and (file in near or file.startswith("tests/")):
                    called = called + other[name][2] if name in other else called
                    rank = 0 if here in called else 1 if mutant.path in [path for path, _ in called] else 2
                    if rank < 2 or near.get(file, 99) <= least + 1:
                        chosen.append((0 if file in ALWAYS and not mutant.function else 1, rank, near.get(file, 9), seconds, name))
        if mutant.function and any(rank == 0 for _, rank, *_ in chosen):
            chosen = [test for test in chosen if test[1] == 0]
        taken, spent, limit = [], 0, RUNNING * (1 + self.slow) * (1 if mutant.function else 4)
        for *_, seconds, name in sorted(chosen):
            spent += seconds
            taken += [name] if spent < limit or not taken else []
        return taken

    def attempt(self, mutant, compiled, copy):
        """How a mutant ends, "caught", "over" or "survived", and by which test."""
        wanted = self.choice(mutant, compiled)
        if not wanted:
            return "no test", ""
        target = copy / mutant.path
        before, kept = target.read_bytes(), target.stat()
        kernels = is_compiled(mutant.path)
        cache = None if not compiled else self.planted_kernels(copy, mutant.path) if kernels else copy / "numba" / "unchanged"
        target.write_bytes(mutated((ROOT / mutant.path).read_bytes(), mutant))
        try:
            code, notes = run(copy, list(dict.fromkeys(name.split("::")[0] for name in wanted)), cache,
                              Listener(copy, wanted, slow=self.slow), COMPILING if compiled and kernels else LIMIT)
        finally:
            target.write_bytes(before)
            os.utime(target, ns=(kept.st_atime_ns, kept.st_mtime_ns))
        failed = [name for name, (outcome, *_) in notes.items() if outcome == "failed"]
        return "over" if code is None else "survived" if code == 0 else "caught", (failed or [f"{len(wanted)} tests"])[0]

    def judge(self, mutant, compiled, copy):
        """Try a mutant and keep in the log how it ends."""
        row = [*key(mutant), *self.attempt(mutant, compiled, copy), compiled]
        with self.log.open("a") as log:
            log.write(json.dumps(row) + "\n")
        print(*row[2:4], "compiled" if compiled else "interpreted", *mutant, sep=" | ", flush=True)

    def judged(self):
        """What the log has of each mutant last: {key: [end, test, compiled]}."""
        rows = map(json.loads, self.log.read_text().splitlines() if self.log.exists() else [])
        return {tuple(row[:2]): row[2:] for row in rows}


def write_imports(target, tests):
    """For each module of lib, by file: {test file: imports between the two}, and the modules that import it, at whatever depth."""
    import check
    import tree
    graph, steps, importers = tree.import_graph(ROOT), {}, {}
    for module in graph.modules:
        path = tree.source(ROOT, module)
        if path:
            path = path.relative_to(ROOT).as_posix()
            found = {test: check.distance(ROOT, graph, ROOT / test, {path}) for test in tests}
            steps[path] = {test: step for test, step in found.items() if step is not None}
            above = [tree.source(ROOT, name) for name in graph.find_downstream_modules(module)]
            importers[path] = sorted(file.relative_to(ROOT).as_posix() for file in above if file)
    target.write_text(json.dumps([steps, importers]))


def in_turn(copies, work, tasks):
    """work(task, copy) for all tasks, by one forked process a copy; no process has threads, which a fork could find locked."""
    context, parent = multiprocessing.get_context("fork"), os.getpid()
    place = context.Value("i", 0)

    def worker(copy):
        while os.getppid() == parent:
            with place.get_lock():
                at, place.value = place.value, place.value + 1
            if at >= len(tasks):
                return
            work(tasks[at], copy)
    workers = [context.Process(target=worker, args=(copy,)) for copy in copies]
    for process in workers:
        process.start()
    for process in workers:
        process.join()


def members(file):
    """A test file itself, or the modules in a folder of lib that have examples."""
    there = sorted((ROOT / file).glob("*.py")) if (ROOT / file).is_dir() else [ROOT / file]
    return [path.relative_to(ROOT).as_posix() for path in there if path.parent != ROOT / file or b">>>" in path.read_bytes()]


def is_compiled(path):
    return re.search(rb"jit|intrinsic|import .*\bkernel\b", (ROOT / path).read_bytes()) is not None


def key(mutant):
    """Names a mutant in the log: its file and what the file becomes."""
    return mutant.path, hashlib.sha1(mutated((ROOT / mutant.path).read_bytes(), mutant)).hexdigest()


def sample(paths, each):
    """The first mutants of each module, one of every module in turn, so that a run that is ended has tried them all."""
    found = [mutants(ROOT, path)[:each] for path in paths]
    return [some[n] for n in range(each) for some in found if n < len(some)]


def lines(results, each, known):
    """The table, module by module, and the survivors."""
    count = defaultdict(Counter)
    for mutant, end, _ in results:
        count[mutant.path]["equivalent" if place(mutant) in known and end not in ("caught", "over") else end] += 1
    total = sum(count.values(), Counter())
    caught = total["caught"] + total["over"]
    judged = total.total() - total["not judged"] - total["equivalent"]
    yield (f"{total.total()} mutants, {each} a module where it has so many; {total['equivalent']} are equivalent, {total['not judged']} were not judged")
    yield f"{caught} of the other {judged} caught ({caught / max(judged, 1):.1%}), {total['over']} of them by the time limit"
    yield f"{'module':34}{'mutants':>9}{'caught':>8}{'survived':>10}{'equivalent':>12}{'not judged':>12}"
    for path, ends in sorted(count.items()):
        survived = ends["survived"] + ends["no test"]
        yield f"{path:34}{ends.total():9}{ends['caught'] + ends['over']:8}{survived:10}{ends['equivalent']:12}{ends['not judged']:12}"
    for title, wanted in (("survivors", False), ("equivalent, and why", True)):
        yield from ("", f"{title}: file, line, column, before -> after")
        for mutant, end, _ in sorted(results):
            if end not in ("caught", "over", "not judged") and (place(mutant) in known) == wanted:
                path, text, column, before, after = place(mutant)
                yield (f"{path}:{mutant.line}:{column}: {before} -> {after} in `{text}`{' (no test calls it)' * (end == 'no test')}"
                       + (f": {known[place(mutant)]}" if wanted else ""))


def place(mutant):
    """Names a mutant to a reader, and when lines above have moved: file, line's text, column, before, after."""
    source = (ROOT / mutant.path).read_bytes()
    start = source.rfind(b"\n", 0, mutant.start) + 1
    text = source.splitlines()[mutant.line - 1].decode()
    return (mutant.path, text.strip(), str(mutant.start - start - len(text) + len(text.lstrip()) + 1),
            *(" ".join(part.split()) for part in (mutant.before, mutant.after)))


def equivalent():
    """Survivors that are known to change nothing, from equivalent.txt: file, line's text, column, before, after -> reason."""
    path = RESULTS / "equivalent.txt"
    rows = [row.split("\t") for row in path.read_text().splitlines() if row and not row.startswith("#")] if path.exists() else []
    return {tuple(row[:5]): row[5] for row in rows}


def preload():
    """What every child needs, read once; nothing of lib."""
    os.environ.update(OPENBLAS_NUM_THREADS="1", MPLBACKEND="Agg")
    for name in ("numpy numba scipy.stats scipy.optimize scipy.integrate matplotlib.pyplot pandas pytest grimp nbformat jupytext "
                 "jupyter_client jupyter_cache.base _pytest.doctest hypothesis nbval.plugin mpmath bokeh.plotting sklearn.decomposition").split():
        try:
            __import__(name)
        except ImportError:
            pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", help="modules, lib/normal.py; all if none is given")
    parser.add_argument("--each", type=int, default=5, help="mutants of each module")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where copies and what is judged are kept for a next run (a temporary folder)")
    parser.add_argument("--again", action="store_true", help="judge anew what has survived")
    parser.add_argument("--slow", action="store_true", help="with the tests marked slow (with --again)")
    parser.add_argument("--interpreted", action="store_true", help="kernels without compilation alone: survivors count as not judged")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    os.nice(10)
    preload()
    with tempfile.TemporaryDirectory() as room:
        results = measure(given, (given.folder or Path(room)).absolute())
    text = "\n".join(lines(results, given.each, equivalent())) + "\n"
    given.out.write_text(text) if given.out else print(text)


def measure(given, folder):
    """The rows (mutant, end, test) of the sample."""
    paths = given.paths or sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "lib").rglob("*.py"))
    bench, planted, same = Bench(folder, given.workers, given.slow), sample(paths, given.each), equivalent()
    kernels = [path for path in paths if is_compiled(path)]
    anew = {name for name, row in bench.judged().items() if given.again and row[0] in OPEN}

    def judge(compiled, wanted):
        known = bench.judged()
        in_turn(bench.copies, lambda mutant, copy: bench.judge(mutant, compiled, copy),
                [mutant for mutant in planted if place(mutant) not in same and wanted(mutant, key(mutant), known.get(key(mutant)))])
    files = bench.tests + sorted({path.rpartition("/")[0] for path in paths})
    if not given.interpreted or len(kernels) < len(paths):
        bench.hear(files, True)
        bench.share_kernels()
    judge(True, lambda mutant, name, row: mutant.path not in kernels and (row is None or name in anew))
    if kernels:
        bench.hear([file for file in files if "mark.kernels" in bench.content(file)], False)
    judge(False, lambda mutant, name, row: mutant.path in kernels and (row is None or name in anew))
    if not given.interpreted:
        judge(True, lambda mutant, name, row: mutant.path in kernels and row and row[0] in OPEN and (not row[2] or name in anew))
    known, rows = bench.judged(), []
    for mutant in planted:
        end, by, compiled = known.get(key(mutant), ["not judged", "", True])
        rows.append((mutant, end if compiled or end not in OPEN else "not judged", by))
    return rows


if __name__ == "__main__":
    main()
