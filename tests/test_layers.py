"""The floors of lib are a contract, and folders say what they hold."""
import ast
import importlib
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(path.parent.name for path in (ROOT / "lib").glob("*/__init__.py"))
NUMBERS = {8: "eight", 9: "nine", 10: "ten"}
UPWARD = {"lib/dp/program.py": "from lib import policies", "lib/problem.py": "def f():\n    import lib.simulate as s",
          "lib/bound/duality.py": "from lib.policies import ucb", "lib/streams.py": "from lib import cache",
          "lib/figures/style.py": "from lib.problem import Bracket", "lib/simulate/exact.py": "from ..experiments import specs"}


def contract(folder):
    """Exit code and output of the import contract, checked in `folder`."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    code = "import sys; from importlinter.cli import lint_imports_command as c; sys.argv[1:] = ['--no-cache', '--no-logo']; c()"
    run = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)
    return run.returncode, run.stdout + run.stderr


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(ROOT / "lib", tmp_path / "lib", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / ".importlinter", tmp_path)
    return tmp_path


def test_imports_point_down():
    code, output = contract(ROOT)
    assert code == 0, output


def test_every_upward_import_is_reported(copy):
    for name, line in UPWARD.items():
        with (copy / name).open("a") as file:
            file.write(f"\n{line}\n")
    code, output = contract(copy)
    assert code == 1
    for name in UPWARD:
        module = ".".join(Path(name).with_suffix("").parts)
        assert f"{module} -> " in output, (module, output)


def test_a_module_without_a_floor_is_reported(copy):
    (copy / "lib" / "attic.py").write_text("")
    code, output = contract(copy)
    assert code == 1 and "attic" in output


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_says_what_is_where(name):
    package = importlib.import_module(f"lib.{name}")
    modules = {path.stem for path in Path(package.__file__).parent.glob("*.py")} - {"__init__", "__main__"}
    summary, _, places = package.__doc__.strip().partition("\n\n")
    assert "\n" not in summary and 0 < len(places.splitlines()) <= 5
    assert {module for module in modules if not re.search(rf"(?<!\w){module}\b", places)} == set()
    assert len(set(package.__all__)) == len(package.__all__) and all(hasattr(package, public) for public in package.__all__)
    assert not modules & set(package.__all__), "a module shares its name with a public function"


def functions(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
            body = node.body[1:] if ast.get_docstring(node) else node.body
            yield node, len(arguments), (node.end_lineno - body[0].lineno + 1 if body else 0)


@pytest.mark.parametrize("path", sorted((ROOT / "lib").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_functions_are_short_and_take_few_arguments(path):
    """More than seven arguments are defended in the docstring, which says how many there are."""
    for node, arguments, lines in functions(path):
        assert lines <= 40, f"{node.name} has {lines} lines"
        text = ast.get_docstring(node) or ""
        assert arguments <= 7 or re.search(rf"\b{NUMBERS.get(arguments)} arguments\b", text, re.IGNORECASE), f"{node.name} takes {arguments} arguments and does not say why"
