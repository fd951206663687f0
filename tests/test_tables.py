"""Tables of the book: what a cell says, what a reader's machine is told, and that every chapter's tables are made so."""
import ast
import re
from html.parser import HTMLParser
from pathlib import Path

import jupytext
import nbformat
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
import tree

from lib.tables import tabulate

ROOT = Path(__file__).parents[1]
CHAPTERS = sorted((ROOT / "chapters").glob("*.md"))
REFERENCES = sorted((ROOT / "tests" / "reference").glob("*.ipynb"))
WIDEST = 180                            # characters of a row of a table, some 1,100 pixels where a printed line has 624
FRAME = pd.DataFrame({"cost": [.5, 1.0, 1.5], "mean": [.73806, -1234.5, np.nan], "se": [.00204, .5, .1],
                      "users": [40_000, 7, 0], "note": ["a<b & c", None, "x"], "kept": [True, False, True]})


class Read(HTMLParser):
    """The cells of a table as (tag, scope, class, text), row by row, and its caption."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.caption, self.inside, self.into = [], "", [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.inside.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            found = dict(attributes)
            self.rows[-1].append([tag, found.get("scope"), found.get("class"), ""])

    def handle_data(self, data):
        if self.inside and self.inside[-1] in ("th", "td"):
            self.rows[-1][-1][3] += data
        elif self.inside and self.inside[-1] == "caption":
            self.caption += data

    def handle_endtag(self, tag):
        assert self.inside.pop() == tag


def words(text):
    """The cells of a printed table: columns are at least two spaces apart."""
    return [[cell for cell in line.split("  ") if cell.strip()] for line in text.splitlines()]


def test_text_and_html_say_the_same():
    table = tabulate(FRAME, {"mean": 2}, {"mean": "se"}, {"users": "readers"}, index=False, caption="Rewards & costs")
    page, (title, *lines) = Read(table._repr_html_()), repr(table).splitlines()
    assert page.caption == title == "Rewards & costs" and not page.inside
    assert [[cell[3].replace("\N{NO-BREAK SPACE}", " ") for cell in row] for row in page.rows] == [[c.strip() for c in row] for row in words("\n".join(lines))]
    assert table._repr_mimebundle_() == {"text/plain": repr(table), "text/html": table._repr_html_()}


def test_heads_name_columns_and_rows_and_numbers_stand_right():
    head, *rows = Read(tabulate(FRAME, index=False)._repr_html_()).rows
    assert all(cell[:2] == ["th", "col"] for cell in head)
    assert all(row[0][:2] == ["th", "row"] and all(cell[:2] == ["td", None] for cell in row[1:]) for row in rows)
    for row in (head, *rows):
        assert [cell[2] for cell in row] == ["number", "number", "number", "number", None, None]
    two = tabulate(FRAME.set_index(["note", "cost"])[["mean"]])
    assert [cell[:2] for cell in Read(two._repr_html_()).rows[1]] == [["th", "row"], ["th", "row"], ["td", None]]


def test_a_pair_is_a_value_with_half_a_95_per_cent_interval():
    _, *rows = words(repr(tabulate(FRAME[["cost", "mean", "se"]], 3, {"mean": "se"}, index=False)))
    half = norm.ppf(.975) * FRAME.se
    assert [row[1].strip() for row in rows] == [f"0.738 ± {half[0]:.3f}", f"-1,234.500 ± {half[1]:.3f}", "–"]
    assert tabulate(FRAME[["mean", "se"]], 3, {"mean": "se"}).heads == ("", "mean, ± 95 %")
    assert tabulate(FRAME[["mean", "se"]]).heads == ("", "mean", "s.e.")


@pytest.mark.parametrize("mean, se, shown", [
    (.5, 2e-5, "0.50000 ± 0.00004"), (.5, 0.0, "0.500 ± 0.000"), (.5, np.nan, "0.500 ± –"), (-1e-9, 0.0, "0.000 ± 0.000"),
    (.5, .0003, "0.500 ± 0.001"), (.5, 1e-30, "0.500000000000 ± 0.000000000000"), (np.inf, .1, "inf ± 0.196"), (7, 1, "7.000 ± 1.960")])
def test_an_error_that_is_there_never_looks_like_none(mean, se, shown):
    frame = pd.DataFrame({"mean": [mean], "se": [se]}, ["row"])
    assert tabulate(frame, 3, {"mean": "se"}).rows == (("row", shown),)


@pytest.mark.parametrize("value, digits, shown", [
    (1.23456, 3, "1.235"), (-.0001, 3, "0.000"), (12345, 3, "12,345"), (np.int64(7), 3, "7"), (1e6, 0, "1,000,000"), (True, 3, "yes"),
    (np.bool_(False), 3, "no"), (None, 3, "–"), (np.nan, 3, "–"), (pd.NA, 3, "–"), ("text", 3, "text"), (np.float32(.5), 2, "0.50")])
def test_a_cell(value, digits, shown):
    frame = pd.DataFrame({"a": pd.Series([value], dtype=object)})
    assert tabulate(frame, digits).rows == (("0", shown),)


def test_row_labels_are_written_as_costs_are():
    frame = pd.DataFrame({"value": [1.0, 2.0]}, pd.Index([.1, 2.0], name="cost"))
    assert tabulate(frame, 1).rows == (("0.1", "1.0"), ("2", "2.0")) and tabulate(frame, 1).heads == ("cost", "value")
    assert tabulate(frame.reset_index(), {"cost": 2}, index=False).rows == (("0.10", "1.0000"), ("2.00", "2.0000"))
    several = pd.DataFrame([[1.0, 2.0]], ["row"], pd.MultiIndex.from_tuples([("constant", 3.5), ("features", 3.7)]))
    assert tabulate(several, {("constant", 3.5): 1}).rows == (("row", "1.0", "2.0000"),)
    assert tabulate(several).heads == ("", "constant, 3.5", "features, 3.7")
    with pytest.raises(ValueError, match="digits names the column 'constant'"):
        tabulate(several, {"constant": 1})
    assert tabulate(pd.DataFrame({50: [1.0]}).rename_axis(columns="draws")).heads == ("draws", "50")


@pytest.mark.parametrize("cells, right", [
    (["0.52 ± 0.01", "-1,234 ± 5"], True), (["+0.5", ".5"], True), (["3.24", None], True), (["007 films", "3"], False), ([True], False),
    (["UCB 3 ± 1"], False), ([None], False), ([1.0, "2 ± 1"], True), (["±"], False), (["1:4"], False)])
def test_numbers_that_are_written_out_stand_right_too(cells, right):
    assert tabulate(pd.DataFrame({"a": pd.Series(cells, dtype=object)})).numeric[1] == right


def test_a_table_without_rows_has_its_heads():
    table = tabulate(FRAME.iloc[:0], pairs={"mean": "se"}, index=False)
    assert table.rows == () and repr(table).split() == "cost mean, ± 95 % users note kept".split()


@pytest.mark.parametrize("arguments, said", [
    (dict(digits={"gain": 2}), "digits names the column 'gain': there are 'cost', "), (dict(digits=-1), "digits is -1"),
    (dict(pairs={"mean": "error"}), "pairs names the column 'error'"), (dict(pairs={"mean": "note"}), "'note', which holds what is no number"),
    (dict(pairs={"users": "mean"}), "'mean', which holds -1234.5: a standard error"), (dict(pairs={"mean": "mean"}), "stands there twice"),
    (dict(pairs={"mean": "se"}, heads={"se": "error"}), "heads names the column 'se', which pairs"),
    (dict(heads={"gain": "gain"}), "heads names the column 'gain'"), (dict(index="no"), "index is 'no'"), (dict(caption=3), "caption is 3")])
def test_what_is_wrong_is_named(arguments, said):
    with pytest.raises(ValueError, match=said):
        tabulate(FRAME, **arguments)


def test_what_is_no_frame_is_named():
    with pytest.raises(ValueError, match="frame must be a pandas DataFrame, got 3"):
        tabulate(3)
    with pytest.raises(ValueError, match=r"frame has the columns \['a', 'a'\]"):
        tabulate(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(ValueError, match="frame has the columns"):
        tabulate(pd.DataFrame())


def chain(node):
    """The names along `a.b(...).c[...].d()`, outermost first."""
    while isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            yield node.attr
        node = node.func if isinstance(node, ast.Call) else node.value


def printed_frames(code):
    """The calls in a cell that write a frame out as text, and the frames that it prints."""
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    written = [call for call in calls if set(list(chain(call))[:1]) & {"to_string", "to_markdown", "to_html"}]
    prints = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
    frames = [part for call in prints for part in call.args if set(chain(part)) & {"DataFrame", "assign", "unstack", "pivot"}]
    return [ast.unparse(node)[:80] for node in written + frames]


def ends_in_a_frame(code):
    """Whether the last line of a cell shows a frame of pandas as it is, as far as the line itself tells."""
    last = ast.parse(code).body[-1:]
    return bool(last) and isinstance(last[0], ast.Expr) and bool(
        set(chain(last[0].value)) & {"DataFrame", "round", "iloc", "to_frame", "assign", "rename_axis", "fillna"})


def raw_frames(code, text):
    """Whether the text of a cell's result is that of pandas and not of `tabulate`: it ends in another expression."""
    last = ast.parse(code).body[-1:]
    ends = last and isinstance(last[0], ast.Expr) and ast.unparse(last[0])
    return bool(ends) and "tabulate(" not in ends and len(text.splitlines()) > 1 and "\n" in text and "  " in text


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_no_chapter_prints_a_frame_or_shows_one_as_it_is(path):
    for cell in jupytext.read(path).cells:
        if cell.cell_type == "code":
            assert not printed_frames(tree.python(cell.source)), path.name
            assert not ends_in_a_frame(tree.python(cell.source)), cell.source


def outputs(path):
    """The code of a cell, an output's type and its text, for each output that the reference at `path` holds."""
    return [(cell.source, output.output_type, output.get("data", {}).get("text/plain", ""))
            for cell in nbformat.read(path, 4).cells if cell.cell_type == "code" for output in cell.outputs]


@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: path.stem)
def test_no_cell_of_a_chapter_ends_in_a_raw_frame(path):
    """The references hold a result's text: a text of several columns is of a table that `tabulate` made."""
    for code, kind, text in outputs(path):
        assert kind != "execute_result" or not raw_frames(tree.python(code), text), code


@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: path.stem)
def test_no_table_is_wider_than_a_printed_page(path):
    """In smaller letters, which are half as large at most: `_ext/pdf.py` measures the pages, this warns where no browser is."""
    for _, _, text in outputs(path):
        assert max(map(len, text.splitlines()), default=0) <= WIDEST, text


def test_the_two_checks_see_what_they_are_for():
    assert printed_frames("print(frame.round(3).to_string(index=False))") and not printed_frames("print(3)")
    assert printed_frames("print(pd.DataFrame(rows).T)") and printed_frames("for x in y:\n    print(3, a.assign(b=1).round(4))")
    assert ends_in_a_frame("x = 3\ntable.rename_axis(columns='a').round(3)") and ends_in_a_frame("pd.DataFrame(rows)[['a']]")
    assert not ends_in_a_frame("tabulate(pd.DataFrame(rows).round(3))") and not ends_in_a_frame("x = frame.round(3)")
    text = repr(FRAME)
    assert raw_frames("frame.round(4)", text) and not raw_frames("tabulate(frame)", text) and not raw_frames("x = 3", text)
    assert not raw_frames("1 + 1", "2")


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_captioned_cell_shows_one_thing(path):
    """Two outputs would be two figures of one name."""
    for cell in jupytext.read(path).cells:
        if "figure" in cell.metadata.get("mystnb", {}):
            assert not re.search(r"\bdisplay\(", cell.source), cell.metadata["mystnb"]


def test_columns_are_as_wide_as_their_widest_cell():
    text = repr(tabulate(pd.DataFrame({"policy": ["a", "a long name"], "n": [7, 12345], "a long head": ["x", "y"]}), index=False))
    assert text.split("\n") == ["policy            n  a long head", "a                 7  x", "a long name  12,345  y"]
