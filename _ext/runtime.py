"""Sphinx extension: what a build ran on, and how long its chapters took.

`{build-facts}` is a table of all chapters; `` {seconds}`here` `` is the time of the chapter it stands in, and
`` {seconds}`publication` `` half a sentence with that at publication size, or nothing where it was not measured.  A build at publication size
records its times, and the numbers of HEADLINES with their errors, in `publication.json` beside this file: the table then has them beside its own.
"""
from importlib.metadata import version
import json
import os
from pathlib import Path
import platform

from docutils import nodes
from myst_nb.ext.glue.crossref import read_glue_cache
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.addnodes import pending_xref
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective, SphinxRole

PACKAGES = ("numpy", "scipy", "numba", "pandas", "scikit-learn")
RECORD = Path(__file__).with_name("publication.json")
SIZES = ("here", "publication")
HEADLINES = (           # a chapter, the key of a number that it glued (KEY_half its 95 % half-width), its digits, what it is
    ("formulation", "discounted", 3, "value of a simple policy"),
    ("dtd_ucb", "ucb_gain", 3, "DTD-UCB over UCB, where frequencies differ"),
    ("ratings", "ucb", 4, "tuned UCB on the ratings"),
    ("ratings", "dtd_dp_mean", 4, "DTD-DP minus UCB there, mean over the costs"),
    ("documents", "earned", 4, "best policy on the documents"),
    ("documents", "limit", 4, "bound there"),
    ("own_stream", "earned", 3, "recommended policy on a reader's own stream"),
    ("beyond_policies", "rated_kg", 1, "knowledge gradient on the ratings, % of UCB's gain"),
    ("beyond_policies", "docs_kg", 1, "knowledge gradient on the documents, % of UCB's gain"),
    ("beyond_policies", "scores_ahead", 1, "lookahead on scores minus knowledge gradient on the ratings, both tuned, % of UCB's gain"),
    ("where_each_wins", "lead_aligned", 1, "lead of DTD-UCB on aligned items, points"),
    ("sensitivity", "noise_high", 1, "loss by a noise level three times too high, %"),
    ("robustness", "blind", 1, "loss by not knowing of a drift, %"),
    ("play", "top", 3, "knowledge gradient in the game"))


class Facts(nodes.General, nodes.Element):
    """Where the table goes once every chapter has been read."""


class Seconds(nodes.Inline, nodes.Element):
    """Where a chapter's time goes."""


class BuildFacts(SphinxDirective):
    def run(self):
        return [Facts()]


class SecondsRole(SphinxRole):
    def run(self):
        if self.text in SIZES:
            return [Seconds(size=self.text)], []
        message = self.inliner.reporter.error(f"seconds: {self.text!r} is neither of {SIZES}", line=self.lineno)
        return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]


def machine():
    """The software and the machine, in one sentence."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (f"Python {platform.python_version()}, {packages}; {platform.system()} on {platform.machine()}, "
            f"{os.cpu_count()} cores; sizes: {os.environ.get('BOOK_SIZE', 'default')}.")


def times(env):
    """Seconds of each executed chapter, in the order of the book."""
    data = NbMetadataCollector.get_doc_data(env)
    return {name: data[name]["exec_data"]["runtime"] or 0 for name in env.collect_relations()
            if data[name].get("exec_data")}


def record():
    """Seconds of each chapter at publication size, and [number, half-width] by chapter and key, as last measured."""
    return json.loads(RECORD.read_text()) if RECORD.exists() else {"seconds": {}, "numbers": {}}


def numbers(env):
    """{chapter/key: [number, half-width]} of the HEADLINES that this build has."""
    found = {}
    for chapter, key, *_ in HEADLINES:
        glued = read_glue_cache(env.mystnb_config.output_folder, f"chapters/{chapter}")
        texts = [glued.get(name, {}).get("data", {}).get("text/plain") for name in (key, f"{key}_half")]
        if None not in texts:
            found[f"{chapter}/{key}"] = [float(text) for text in texts]
    return found


def keep_record(app, error):
    """After a build at publication size: its times and headline numbers, for the chapters to state."""
    if not error and os.environ.get("BOOK_SIZE") == "publication":
        seconds = {name: round(time) for name, time in times(app.env).items()}
        RECORD.write_text(json.dumps({"seconds": seconds, "numbers": numbers(app.env)}, indent=2, sort_keys=True) + "\n")


def said(size, time):
    """What a chapter says of its time: at publication size half a sentence, and nothing where that was not measured."""
    if size == "publication":
        return "" if time is None else f" and takes {time:.0f} at publication size"
    return "" if time is None else f"{time:.0f}"


def row(*cells):
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells))


def link(env, name):
    """A link to the page `name` under its title."""
    title = env.titles[name].astext()
    return pending_xref("", nodes.inline("", title), refdoc=env.docname, reftarget="/" + name, reftype="doc",
                        refdomain="std", refexplicit=True, refwarn=True)


def table(heads, rows):
    """A table whose first column is text and whose others are numbers."""
    head = nodes.thead("", row(*map(nodes.Text, heads)))
    group = nodes.tgroup("", nodes.colspec(colwidth=60), *(nodes.colspec(colwidth=20) for _ in heads[1:]), head, nodes.tbody("", *rows),
                         cols=len(heads))
    return nodes.table("", group, classes=["colwidths-auto"])


def seconds_table(env):
    """Seconds of each chapter in this build and, where that was measured, at publication size."""
    here, kept = times(env), record()["seconds"]
    columns = [here, kept] if kept else [here]
    rows = [row(link(env, name), *(nodes.Text(f"{column[name]:.0f}" if name in column else "") for column in columns)) for name in here]
    rows.append(row(nodes.Text("all chapters"), *(nodes.Text(f"{sum(column.values()):.0f}") for column in columns)))
    return table(["chapter", "seconds", "at publication size"][:1 + len(columns)], rows)


def numbers_table(env):
    """Headline numbers of this build beside those at publication size: a list of a table, or an empty one where there are none."""
    kept = record()["numbers"]
    here = numbers(env) if kept else {}
    rows = []
    for chapter, key, digits, words in HEADLINES:
        name = f"{chapter}/{key}"
        if name in here and name in kept:
            texts = [f"{number:.{digits}f}\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{half:.{digits}f}" for number, half in (here[name], kept[name])]
            rows.append(row(*map(nodes.Text, (words, *texts))))
    return [table(["number, ± 95 %", "this build", "at publication size"], rows)] if rows else []


class ShowFacts(SphinxPostTransform):
    default_priority = 8                # before references are resolved

    def run(self, **kwargs):
        for node in list(self.document.findall(Facts)):
            node.replace_self([nodes.paragraph(text=machine()), seconds_table(self.env), *numbers_table(self.env)])
        for node in list(self.document.findall(Seconds)):
            known = times(self.env) if node["size"] == "here" else record()["seconds"]
            node.replace_self(nodes.Text(said(node["size"], known.get(self.env.docname))))


def setup(app):
    for node in (Facts, Seconds):
        app.add_node(node)
    app.add_directive("build-facts", BuildFacts)
    app.add_role("seconds", SecondsRole())
    app.add_post_transform(ShowFacts)
    app.connect("build-finished", keep_record)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
