"""What `make mutants` plants: one operator or constant at a time, and nothing where a reader of code would see none."""
import ast
from pathlib import Path
import sys

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "bench"))
import mutants  # noqa: E402

SOURCE = '''"""Docstring: 1 + 2."""
from a import b
__all__ = ["x", 1]
SIZE: "1 + 1" = -7


def f(x: 3, é=True, *, y=0.5) -> 4:
    """Not 5."""
    if not (x < é or y == 0):
        raise ValueError(f"{x} is 6")
    return max(x, (y * (x - 2))), min(x, 1)
'''.encode()


def found(tmp_path, source=SOURCE):
    (tmp_path / "a.py").write_bytes(source)
    return mutants.mutants(tmp_path, "a.py")


def test_each_operator_and_constant_is_changed_once(tmp_path):
    changes = sorted((m.line, m.before, m.after) for m in found(tmp_path))
    assert changes == sorted([
        (4, "-", ""), (4, "7", "8"), (7, "True", "False"), (7, "0.5", "0.55"), (9, "not", ""), (9, "<", "<="), (9, "or", "and"),
        (9, "==", "!="), (9, "0", "1"), (11, "max", "min"), (11, "*", "/"), (11, "-", "+"), (11, "2", "3"), (11, "min", "max"),
        (11, "1", "2"), (11, "max(x, (y * (x - 2))), min(x, 1)", "min(x, 1), max(x, (y * (x - 2)))")])


def test_functions_are_known_and_defaults_belong_to_none(tmp_path):
    assert {m.function for m in found(tmp_path) if m.line >= 9} == {7}
    assert {m.function for m in found(tmp_path) if m.line <= 7} == {0}


@pytest.mark.parametrize("path", ["lib/posterior.py", "lib/policies/rules.py", "lib/datasets/readers.py"])
def test_what_is_planted_is_another_program(path):
    source = (ROOT / path).read_bytes()
    before = ast.dump(ast.parse(source))
    for mutant in mutants.mutants(ROOT, path)[:15]:
        assert ast.dump(ast.parse(mutants.mutated(source, mutant))) != before


def test_the_sample_is_the_same_in_every_run(tmp_path):
    assert found(tmp_path) == found(tmp_path)


def test_a_module_with_kernels_is_known_by_whatever_compiles_them():
    found = [path for path in ("lib/fetch.py", "lib/dp/gittins.py", "lib/posterior.py", "lib/dp/upper.py", "lib/problem.py") if mutants.is_compiled(path)]
    assert found == ["lib/fetch.py", "lib/dp/gittins.py", "lib/posterior.py", "lib/dp/upper.py"]
