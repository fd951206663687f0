"""Numbers in prose come from the run, from a record that is shown, or are defended one by one."""
import inspect
import sys

import numpy as np
import pytest

from conftest import ROOT
from lib import datasets
from lib.bound import duality, unsampled
from lib.bound.theorem import LARGE
from lib.datasets import _citeulike
from lib.experiments import indices, problems, specs, theorem, unsampled as kept
from lib.problem import effective_horizon
from lib.report import checks, interrupt

sys.path.insert(0, str(ROOT / "_ext"))
import typed  # noqa: E402


def default(function, name):
    """The default of an argument."""
    return inspect.signature(function).parameters[name].default


HELD = {("beyond_bounds", "1,024"): duality.EVERY, ("data", "25"): default(_citeulike.derive, "smallest"),
        ("documents", "25"): default(_citeulike.derive, "smallest"), ("ledger", "3.4"): problems.combinations()[0].mu[0],
        ("certified_bounds", "1,024"): unsampled.MANY, ("certified_bounds", "0.005"): default(kept.closing, "step"),
        ("gittins", "0.9995"): max(default(indices.gittins, "gammas")), ("notation", "1.96"): 1.96, ("own_stream", "66"): effective_horizon(.9), ("own_stream", "6,905"): effective_horizon(.999),
        ("own_stream", "130."): interrupt.INTERRUPTED, ("own_stream", "10,000,"): checks.CONDITION,
        ("ratings", "50"): default(datasets.prior, "min_ratings"), ("ratings", "2.6"): specs.STARS[0], ("ratings", "4.8"): specs.STARS[-1],
        ("scale", "5,000"): LARGE, ("theorem", "32"): theorem.ARTICLES}


@pytest.mark.parametrize("path", sorted(typed.CHAPTERS.glob("*.md")), ids=lambda path: path.stem)
def test_every_number_in_prose_is_glued_or_defended(path):
    assert typed.typed(path) == []


def test_a_number_that_is_defended_still_stands_there(monkeypatch):
    wanted = {(chapter, number) for chapter, numbers in typed.DEFENDED.items() for number in numbers}
    monkeypatch.setattr(typed, "DEFENDED", {})
    found = {(one.chapter, one.number) for chapter, _ in wanted for one in typed.typed(typed.CHAPTERS / f"{chapter}.md")}
    assert wanted - found == set()


def test_numbers_that_lib_decides_are_those_of_lib():
    assert set(HELD) <= {(chapter, number) for chapter, numbers in typed.DEFENDED.items() for number in numbers}
    for (_, number), held in HELD.items():
        assert typed.value(number.rstrip(".,")) == held


CHAPTER = """---
kernelspec:
  name: python3
  display_name: Python 3
---

# Title 12

Reward is 3.71 ± {glue:text}`gap:.2f`, by section 3 of 2016 {cite:p}`chen2016bayesian`, $4.2$ and `5.6`, with 95 % confidence.
At cost 3.8 it is .25, see {doc}`bound` and [there](https://example.org/7.77).

```{admonition} Proof
:class: dropdown
It is 17.5 at most.
```

```{code-cell} ipython3
cost = 3.8
print(8.88)
```
"""


def test_what_is_typed_is_found_and_what_is_no_text_is_not(tmp_path):
    path = tmp_path / "made.md"
    path.write_text(CHAPTER)
    assert [found.number for found in typed.typed(path)] == ["12", "3.71", ".25", "17.5"]


def test_numbers_of_a_record_may_be_said_rounded(tmp_path, monkeypatch):
    (tmp_path / "made.txt").write_text("lib faster 127.9 x, holds in 0.931\n")
    monkeypatch.setattr(typed, "RECORDS", tmp_path)
    records = typed.shown("```{literalinclude} ../bench/results/made.txt\n```")
    assert all(typed.defended(number, "", set(), records) for number in ("128", "93", "127.9"))
    assert not any(typed.defended(number, "", set(), records) for number in ("129", "127", "94"))
    assert np.size(typed.shown("no record")) == 0
