"""What CONTRIBUTING.md says can be followed: its files, targets and names are there."""
import importlib
from pathlib import Path
import re

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PROSE = re.sub(r"^ {6}.*$", "", TEXT, flags=re.MULTILINE)                   # without the examples of chapters
QUOTED = sorted(set(re.findall(r"(?<!`)`([^`\n]+)`(?!`)", PROSE)))
TO_COME = {"chapters/name.md", "tests/reference/name.ipynb"}                 # what a contributor makes


@pytest.mark.parametrize("name", [name for name in QUOTED if re.fullmatch(r"[\w./]+/[\w.]*|[\w.]+\.(py|md|yml|txt)", name)])
def test_a_file_that_is_named_is_there(name):
    assert name in TO_COME or (ROOT / name).exists()


@pytest.mark.parametrize("words", [name for name in QUOTED if re.match(r"(BOOK_SIZE=\w+ )?make \w+", name)])
def test_a_target_that_is_named_is_there(words):
    target = re.search(r"make (\w+)", words)[1]
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    for variable in re.findall(r"\b([A-Z]+)=", words.split("make")[1]):
        assert f"$({variable})" in makefile or f"$(if $({variable})" in makefile


@pytest.mark.parametrize("name", [name for name in QUOTED if re.fullmatch(r"lib(\.\w+)+", name)])
def test_a_name_of_lib_is_there(name):
    module, _, last = name.rpartition(".")
    assert hasattr(importlib.import_module(module), last) or importlib.import_module(name)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([A-Z][A-Za-z]+|[A-Z]{4,})`", PROSE))))
def test_a_type_or_table_that_is_named_is_in_a_file_that_is_named(name):
    files = [ROOT / path for path in QUOTED if path.endswith(".py") and (ROOT / path).exists()]
    assert any(re.search(rf"\b(class {name}\b|{name}\b.* = |def {name}\()", path.read_text()) for path in files), name
