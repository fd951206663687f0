"""The first page quotes the sharpest numbers that the book has, none beside a bound that it exceeds, and ± means one thing.

Glued numbers are read from the references, published ones from data/results with the csv module alone.
"""
import ast
import csv
from functools import lru_cache
from math import hypot, sqrt
from pathlib import Path
import re

import jupytext
import nbformat
import pytest
import runtime
import tree

from lib.experiments import ledger

ROOT = Path(__file__).parents[1]
CHAPTERS = sorted((ROOT / "chapters").glob("*.md"))
GLUE = re.compile(r"\{glue:text\}`(?:(\w+)\.md::)?(\w+)(?::([^`]*))?`")
HALF = re.compile(r"1\.96|196|half|HALF", re.IGNORECASE)


@lru_cache
def glued(chapter):
    """{key: value} of what a chapter glued, from its reference."""
    found = {}
    for cell in nbformat.read(ROOT / "tests" / "reference" / f"{chapter}.ipynb", 4).cells:
        for output in cell.get("outputs", []) if cell.cell_type == "code" else []:
            book = output.get("metadata", {}).get("scrapbook")
            if book:
                text = next(iter(output.data.values()))
                found[book["name"]] = ast.literal_eval(text) if re.fullmatch(r"-?[\d.]+(e-?\d+)?|'.*'", text) else text
    return found


def published(name):
    """The rows of a published table as dicts, numbers as floats."""
    with (ROOT / "data" / "results" / f"{name}.csv").open() as file:
        for row in csv.DictReader(file):
            yield {key: float(value) if re.fullmatch(r"-?[\d.]+(e[-+]?\d+)?", value) else value for key, value in row.items()}


def at(name, cost, policy):
    """The published row of a policy at a cost; of a table with every alpha the chosen one."""
    rows = [row for row in published(name) if row["cost"] == cost and row["policy"] == policy and row.get("chosen", "True") == "True"]
    assert len(rows) == 1
    return rows[0]


def quoted(page):
    """{(chapter, key): (value, as printed)} of the numbers that a page quotes from other chapters."""
    text = (ROOT / "chapters" / f"{page}.md").read_text()
    values = {}
    for chapter, key, spec in GLUE.findall(text):
        if chapter and not key.endswith("_figure"):
            value = glued(chapter)[key]
            values[chapter, key] = value, format(value, spec)
    return values


@pytest.fixture(scope="module")
def front():
    return quoted("introduction")


def test_the_first_page_quotes_exact_and_published_numbers_alone(front):
    assert {chapter for chapter, _ in front} == {"simulated", "ledger"} and len(front) > 15
    source = (ROOT / "chapters" / "simulated.md").read_text()
    assert 'glue(key, float(exact[name].value)' in source and "simulate.decoupled(here, rule)" in source


def test_on_the_first_page_no_policy_earns_more_than_the_bound(front):
    cost, policy, limit, ucb = (front["simulated", key] for key in ("cost", "dtd", "limit", "ucb"))
    kept = at("simulated", cost[0], "DTD-DP")
    assert kept["decomposition_lower"] <= kept["decomposition_upper"] <= float(limit[1]) < kept["decomposition_upper"] + 2e-4
    assert float(policy[1]) <= float(limit[1]) and policy[0] <= limit[0]
    assert abs(policy[0] - kept["mean"]) < 4 * kept["se"]                   # exact, beside forty thousand users
    assert policy[0] > kept["decomposition_lower"] - 2e-5 and ucb[0] == at("simulated", cost[0], "UCB")["mean"] == 0


def test_a_lead_on_the_first_page_is_published_and_ten_times_its_error(front):
    row = at("ratings_sharp", front["ledger", "rated_cost"][0], "DTD-UCB")
    lead, half = front["ledger", "rated_dtd_ucb"][0], front["ledger", "rated_dtd_ucb_half"][0]
    assert lead == pytest.approx(row["over_ucb"]) and half == pytest.approx(1.96 * row["over_ucb_se"])
    assert row["over_ucb_se"] < abs(lead) / 10
    assert row["value"] + 2 * row["se"] < row["bound"]
    between = at("ratings_sharp", front["ledger", "rated_cost"][0], "DTD-DP")           # the page says so in words
    assert lead + 3 * row["over_ucb_se"] < between["over_ucb"] < -3 * between["over_ucb_se"]


def test_the_share_of_the_optimum_on_the_first_page_is_below_all_of_it(front):
    cost, old, share, half = (front["ledger", f"low_{key}"][0] for key in ("cost", "old", "share", "half"))
    rows = [row for row in published("ratings_sharp") if row["cost"] == cost]
    best = max(rows, key=lambda row: row["value"])
    whole = best["value"] + best["short"]
    assert share == pytest.approx(100 * best["value"] / whole, rel=1e-5) and share + half < 100
    error = 100 * sqrt((best["short"] * best["se"] / whole)**2 + (share / 100 * best["short_se"])**2) / whole
    assert 1.96 * error < half < (share - old) / 10                         # it covers whichever policy is picked


@pytest.mark.parametrize("short, name", [("rated", "ratings"), ("docs", "documents")])
@pytest.mark.parametrize("key, policy", [("kg", "Knowledge gradient"), ("kg1", "Knowledge gradient, untuned")])
def test_what_the_knowledge_gradient_gains_is_the_published_sum(short, name, key, policy):
    sums = {}
    for row in published(f"{name}_sharp"):
        for part in ("over_ucb", "over_ucb_se"):
            sums[row["policy"], part] = sums.get((row["policy"], part), 0.0) + row[part]
    ucb, lead, error = -sums["Exploitation", "over_ucb"], sums[policy, "over_ucb"], sums[policy, "over_ucb_se"]
    ratio = (ucb + lead) / ucb
    found = ledger.gained(name, policy)
    assert found.mean == pytest.approx(ratio, rel=1e-6)
    assert found.se == pytest.approx(error / ucb + abs(lead) / ucb**2 * sums["Exploitation", "over_ucb_se"], rel=1e-6)
    numbers = glued("ledger")
    assert numbers[f"{short}_{key}"] == pytest.approx(100 * ratio) and numbers[f"{short}_{key}_half"] == pytest.approx(196 * found.se)
    assert found.se < ratio / 10


def test_a_policy_that_no_table_has_is_named():
    with pytest.raises(ValueError, match="policy is 'Luck': the table has Exploitation, "):
        ledger.gained("ratings", "Luck")


@pytest.mark.parametrize("chapter, value, half, limit", [
    ("dtd_dp", "dp_value", "dp_half", "dp_bound"), ("own_stream", "earned", "earned_half", "limit"), ("documents", "earned", "earned_half", "limit"),
    ("simulated", "dtd", None, "limit")])
def test_an_answer_that_names_a_bound_stays_below_it_with_its_interval(chapter, value, half, limit):
    numbers = glued(chapter)
    assert numbers[value] + (numbers[half] if half else 0) <= numbers[limit], numbers


def test_shares_of_bounds_in_answers_are_shares():
    assert 50 < glued("ratings")["share"] < glued("ratings")["share_tight"] < 100
    bounds = glued("beyond_bounds")
    assert bounds["ml_old"] < bounds["ml_new"] < bounds["ml_new"] + bounds["ml_new_half"] < 100


@pytest.mark.parametrize("chapter, key", [headline[:2] for headline in runtime.HEADLINES])
def test_headline_numbers_agree_with_those_at_publication_size(chapter, key):
    """Less than four standard errors apart, that is twice the joint half of a 95 % interval; the larger run knows better."""
    found, (kept, error) = glued(chapter), runtime.record()["numbers"][f"{chapter}/{key}"]
    assert abs(found[key] - kept) < 2 * hypot(found[f"{key}_half"], error) and error <= found[f"{key}_half"]


def bands(code):
    """What follows each ± of a cell's texts: an expression's source, or the whole call where the text is formatted later."""
    parents = {child: node for node in ast.walk(ast.parse(code)) for child in ast.iter_child_nodes(node)}
    for node in parents:
        if isinstance(node, ast.JoinedStr):
            for part, after in zip(node.values, node.values[1:]):
                if isinstance(part, ast.Constant) and part.value.rstrip().endswith("±"):
                    yield ast.unparse(after)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"± ?\{", node.value):
            call = parents[parents[node]]
            yield ast.unparse(call)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_what_follows_a_band_is_half_a_95_per_cent_interval(path):
    """In code 1.96 standard errors, 196 in per cent, or what is called half of one; in prose a key that is glued so."""
    for cell in jupytext.read(path).cells:
        if cell.cell_type == "code":
            code = tree.python(cell.source)
            assert all(HALF.search(band) for band in bands(code)), list(bands(code))
            assert "+-" not in cell.source, cell.source
            for key, value in re.findall(r"""glue\((?:f?"(\w*_half)"|\w+ \+ "_half"), (.*), display""", cell.source):
                assert HALF.search(value) or '["all"]' in value, (key, value)
        else:
            after = re.findall(r"±\s+\{glue:text\}`(?:\w+\.md::)?(\w+)", cell.source)
            assert all(key.endswith("_half") for key in after), after


def test_the_check_of_bands_sees_them():
    seen = list(bands("print(f'{a:.2f} ± {s:.2f}')")) + list(bands("print('{} ± {}'.format(a, s))"))
    assert len(seen) == 2 and not any(HALF.search(band) for band in seen)
    assert all(HALF.search(band) for band in bands("print(f'{a} ± {1.96 * s}', '{} ± {}'.format(a, 1.96 * s))"))


def test_the_convention_is_written_down():
    text = (ROOT / "chapters" / "notation.md").read_text()
    assert re.search(r"\*\*±\*\* is followed by half a 95 % interval, 1\.96 standard errors", text)
