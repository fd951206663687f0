"""Compiled code is never stale, wherever it is kept, and threads may ask for it at once."""
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys

import grimp
import numpy as np
import pytest

import lib
from lib.compiled import put

ROOT = Path(__file__).parents[1]
TREE = {"lib/__init__.py": "", "lib/low.py": "", "lib/table.py": "", "lib/page.py": "from lib.dp import solve\n",
        "lib/dp/__init__.py": "from lib.dp.solve import value\n", "lib/dp/solve.py": "from . import sweep\n",
        "lib/dp/sweep.py": "import numba as nb\nfrom lib.dp.deep.law import (  # all of it\n    psi,\n    WIDTH)\n",
        "lib/dp/deep/__init__.py": "", "lib/dp/deep/law.py": "import math; from ... import low\n",
        "requirements.txt": "numba==1\n", "constraints.txt": ""}
DEEP = """
import numba as nb
from lib.normal import psi

@nb.njit(cache=True)
def twice(z):
    return 2 * psi(z)
"""
THREADS = """
from concurrent.futures import ThreadPoolExecutor
from lib.problem import make_problem
from lib.bound import penalty
from lib.posterior import compile_problem
import numpy as np
problem = make_problem([[1.]], [1.], [.5], [[1.]], 1., .2, .9)
instance, ahead = compile_problem(problem), np.zeros((16, 2, 5), np.int64)
work = lambda _: penalty.values_of_information(instance, ahead).tobytes()
with ThreadPoolExecutor(4) as pool:
    print(len(set(pool.map(work, range(200)))))
"""


def run(folder, code, **settings):
    """Output, and what was said on the side, of a script that imports the lib in `folder`."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "XDG"))}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment | {"PYTHONPATH": ""} | settings,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


@pytest.fixture
def small(tmp_path):
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("name, changes", [
    ("lib/__init__.py", True), ("lib/low.py", True), ("lib/table.py", False), ("lib/page.py", False),
    ("lib/dp/__init__.py", True), ("lib/dp/solve.py", True), ("lib/dp/sweep.py", True), ("lib/dp/deep/__init__.py", True),
    ("lib/dp/deep/law.py", True), ("requirements.txt", True), ("constraints.txt", True)])
def test_the_key_follows_what_kernels_import(small, name, changes):
    before = lib.kernels_key(small)
    (small / name).write_text(TREE[name] + "\n# edited\n")
    assert (lib.kernels_key(small) != before) == changes


def test_settings_that_change_the_code_change_the_key(small, monkeypatch):
    """numba's own cache hands out code without checks to a run that asks for them."""
    before = lib.kernels_key(small)
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    assert lib.kernels_key(small) == before
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    assert lib.kernels_key(small) != before


def test_every_kernel_and_its_imports_are_in_the_key():
    """grimp reads the same tree by itself."""
    graph, found = grimp.build_graph("lib", include_external_packages=True, cache_dir=None), {"lib"}
    ahead = set(graph.find_modules_that_directly_import("numba"))
    while ahead:
        name = ahead.pop()
        found.add(name)
        ahead |= {other for other in graph.find_modules_directly_imported_by(name) if other.startswith("lib")} - found
        ahead |= {name.rpartition(".")[0] or "lib"} - found
    keyed = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
             for path in lib.kernel_sources()}
    assert found <= keyed and len(keyed) < len(graph.modules)


def test_how_kernels_are_compiled_is_said_in_one_file():
    said = {path.name for path in (ROOT / "lib").rglob("*.py") if re.search(r"njit|@(nb|numba)\.", path.read_text())}
    assert said == {"compiled.py"}


def test_an_array_is_put_into_one_of_its_shape():
    into = np.zeros((2, 6))
    put(np.arange(6.0).reshape(2, 3).T, into[:, ::2].T)
    assert into.tolist() == [[0, 0, 1, 0, 2, 0], [3, 0, 4, 0, 5, 0]]
    with pytest.raises(AssertionError):
        put(np.zeros((6, 2)), into)


def test_no_kernel_writes_the_shape_of_an_array_into_a_message():
    """Of those compiled so far: numba's own assignment of an array does, which takes seconds to compile in every process."""
    put(np.ones(1), np.zeros(1))
    kept = list(Path(os.environ["NUMBA_CACHE_DIR"]).rglob("*.nbc"))
    assert kept and not [path.name for path in kept if b"cannot assign slice of shape" in path.read_bytes()]


def test_importing_lib_imports_no_library(tmp_path):
    said = run(ROOT, "import lib, sys; print(sorted(set(sys.modules) & {'numba', 'numpy', 'scipy'}))",
               NUMBA_CACHE_DIR=str(tmp_path))[0]
    assert said == "[]"


@pytest.mark.slow
def test_a_plain_script_sees_an_edit_of_a_deep_kernel(tmp_path):
    """A cached kernel whose callee, in another file, is edited; numba looks at the caller's file only."""
    shutil.copytree(ROOT / "lib", tmp_path / "lib", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "lib" / "twice.py").write_text(DEEP)
    script = "from lib.twice import twice; print(f'{twice(0.0):.6f}')"
    assert run(tmp_path, script)[0] == "0.797885"               # 2 / sqrt(2 pi)
    deep = tmp_path / "lib" / "normal.py"
    before, number = deep.read_text(), "PHI0, ROOT = 0.3989422804014327"
    assert number in before
    deep.write_text(before.replace(number, "PHI0, ROOT = 0.5"))
    assert run(tmp_path, script)[0] == "1.000000"
    deep.write_text(before.replace(number, "PHI0, ROOT = 0.6"))
    assert run(tmp_path, "import numba; " + script)[0] == "1.200000"
    assert len(list((tmp_path / "_build" / "numba").glob("lib-*"))) == 3
    assert not list((tmp_path / "lib").rglob("*.nbi"))


PLACE = "import lib, os; print(os.environ['NUMBA_CACHE_DIR'])"


def test_a_folder_that_is_named_is_the_parent_also_for_processes_started_from_there(small, tmp_path_factory):
    shutil.copy(ROOT / "lib" / "__init__.py", small / "lib" / "__init__.py")
    own = tmp_path_factory.mktemp("own")
    child = PLACE + "; import subprocess, sys; subprocess.run([sys.executable, '-c', " + repr(PLACE) + "])"
    said, aside = run(small, child.replace("print(", "print(end='', flush=True); print(", 1), NUMBA_CACHE_DIR=str(own))
    places = set(said.split())
    assert aside == "" and len(places) == 1 and Path(places.pop()).parent == own


def test_where_nothing_can_be_written_code_is_kept_for_one_process(small):
    """Files stand where folders should be: as good as read-only, for every user."""
    shutil.copy(ROOT / "lib" / "__init__.py", small / "lib" / "__init__.py")
    home = small / "home"
    home.mkdir()
    assert run(small, PLACE, HOME=str(home))[0].startswith(str(small / "_build" / "numba" / "lib-"))
    shutil.rmtree(small / "_build")
    (small / "_build").write_text("")
    assert run(small, PLACE, HOME=str(home))[0].startswith(str(home / ".cache"))
    said, aside = run(small, PLACE, HOME=str(small / "_build"), TMPDIR=str(home))
    assert said.startswith(str(home / "numba-")) and not Path(said).parent.exists()
    assert aside.count("RuntimeWarning") == 1 and "cannot be written" in aside
    gone = PLACE + "; import shutil; shutil.rmtree(os.path.dirname(os.environ['NUMBA_CACHE_DIR']))"       # before the process ends
    assert "Error" not in run(small, gone, HOME=str(small / "_build"), TMPDIR=str(home))[1]


@pytest.mark.slow
def test_threads_may_start_parallel_kernels_at_once():
    """Under numba's plainest layer that aborts the process, where nothing holds the threads back."""
    assert run(ROOT, THREADS, NUMBA_THREADING_LAYER="workqueue", NUMBA_NUM_THREADS="2")[0] == "1"
