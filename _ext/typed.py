"""Numbers in the prose of chapters that were typed, not glued: python _ext/typed.py [chapter ...] lists those that nothing defends.

Prose is what a reader sees as text: no code, mathematics, links, citations, nor what a role makes of a run.  A number there needs no defence where
it counts (up to ten), names (Theorem 1, exercise 2, section 3), is a year, is the 95 % that every interval has, or stands in a cell of the same
chapter, since what goes into a run may be said, or in a record of bench/ that the chapter shows.  All others are results, which may go stale, or
facts, which DEFENDED lists with a reason.
"""
from pathlib import Path
import re
import sys
from typing import NamedTuple

import jupytext
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.myst_blocks import myst_block_plugin
from mdit_py_plugins.myst_role import myst_role_plugin
import numpy as np

CHAPTERS = Path(__file__).parents[1] / "chapters"
RECORDS = CHAPTERS.parent / "bench" / "results"
NUMBER = re.compile(r"(?<![\w.,])[−-]?(\d[\d,]*\.?\d*|\.\d+)(?![\w])")
TEXT = ("admonition", "note", "warning", "tip", "important", "dropdown", "prf:proof", "prf:theorem")     # directives that hold prose
DEFENDED = {     # by chapter: number and why it may be typed; tests/test_typed.py holds those that lib decides
    "beyond_bounds": {"99": "a confidence that the proof chooses", "1,024": "lib.bound.duality.EVERY", "60": "bench/catalogue.py --limits"},
    "bound": {"33": "counted by the cell that follows"},
    "certified": {"53": "bits of a double", "41": "what it once took; no run makes it now",
                  "420": "measured once: a first compilation is not run again"},
    "certified_bounds": {"1,024": "lib.bound.unsampled.MANY", "0.005": "default of lib.experiments.unsampled.closing"},
    "data": {"256": "SHA-256", "10000.": "the unit in which the derived numbers are kept", "25": "default of datasets._citeulike.derive",
             "2261": "the last year of NumPy in nanoseconds"},
    "documents": {"25": "default of datasets._citeulike.derive"},
    "dtd_ucb": {"21": "names items of a stream"},
    "dynamic_program": {"10.2": "a table's name", "338": "a page", "38": "entries of that table, all compared by the suite"},
    "formulation": {"2.5": "ends of a 95 % interval", "97.5": "ends of a 95 % interval"},
    "gittins": {"0.9995": "the largest discount of the kept table", "38": "entries of that table, all compared by the chapter",
                "40": "digits in which the rule is computed"},
    "ledger": {"60": "a rule of lib.experiments.ledger", "80": "a rule of lib.experiments.ledger", "90": "a rule of lib.experiments.ledger",
               "3.4": "first prior mean of problems.combinations"},
    "many_users": {"0.7": "root of COMMON^2 + OWN^2 of lib.experiments.many_users"},
    "notation": {"1.96": "the normal quantile"},
    "own_stream": {"1970,": "an epoch", "2100": "lib.datasets.readers", "66": "effective_horizon(.9)", "6,905": "effective_horizon(.999)",
                   "0.999": "an example", "130.": "the exit code of an interrupt", "16": "fewest users of a report",
                   "10,000,": "lib.report.checks.CONDITION"},
    "ratings": {"50": "default of datasets.prior", "2.6": "first cost of specs.STARS", "4.8": "last cost of specs.STARS"},
    "scale": {"4,711": "names a replication", "5,000": "lib.bound.theorem.LARGE"}, "theorem": {"32": "lib.experiments.theorem.ARTICLES"}}


class Typed(NamedTuple):
    """A number in prose, and the text around it."""

    chapter: str
    number: str
    text: str


def parser():
    """A reader of MyST that tells text from code, mathematics and roles."""
    return MarkdownIt("commonmark").enable("table").use(dollarmath_plugin).use(myst_role_plugin).use(myst_block_plugin)


def prose(source, read):
    """The pieces of text of a Markdown cell, those inside admonitions too."""
    for token in read.parse(source):
        if token.type == "inline":
            for child in token.children:
                if child.type == "text":
                    yield child.content
        elif token.type == "fence" and token.info.strip("{").startswith(TEXT):
            yield from prose(token.content, read)


def value(number):
    """A number as it compares with others: 1,000 is 1000 and .5 is 0.5."""
    return float(number.replace(",", "").replace("−", "-"))


def inputs(notebook):
    """The numbers in the code cells of a chapter."""
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    return {abs(float(found.replace("_", ""))) for found in re.findall(r"(?<![\w.])(?:\d[\d_]*\.?\d*|\.\d+)(?:e-?\d+)?(?!\w)", code)}


def shown(source):
    """The numbers in the records of bench/ that a chapter names, and what they are in per cent."""
    names = set(re.findall(r"\b\w+\.txt\b", source))
    found = [float(number) for path in RECORDS.glob("*.txt") if path.name in names
             for number in re.findall(r"(?<![\w.-])(?:\d+\.?\d*|\.\d+)(?:e-?\d+)?(?!\w)", path.read_text())]
    return np.array([*found, *(100 * number for number in found)])


def defended(number, text, known, records):
    """Whether a number in `text` is one that no run of the chapter makes: see above."""
    found, digits = abs(value(number)), len(number.rstrip(".").partition(".")[2])
    return (found == int(found) <= 10 or re.fullmatch(r"(1[6-9]|20)\d\d", number) is not None or found in known or bool((np.round(records, digits) == found).any())
            or re.search(rf"(?<!\d){re.escape(number)} %", text) is not None and found in (95, 100))


def typed(path, read=None):
    """Every typed number of a chapter that nothing defends."""
    notebook, read = jupytext.read(path), read or parser()
    known, records = inputs(notebook), shown(path.read_text())
    return [Typed(path.stem, match[0], text.strip()) for cell in notebook.cells if cell.cell_type == "markdown"
            for text in prose(cell.source, read) for match in NUMBER.finditer(text)
            if not defended(match[0], text, known, records) and match[0] not in DEFENDED.get(path.stem, {})]


if __name__ == "__main__":
    names = sys.argv[1:] or sorted(path.stem for path in CHAPTERS.glob("*.md"))
    for name in names:
        for found in typed(CHAPTERS / f"{name}.md"):
            print(f"{found.chapter}: {found.number:8} {found.text[:140]}")
