"""Sphinx extension: what a build ran on, and how long its chapters took.

`{build-facts}` is a table of all chapters; `` {seconds}`here` `` is the time of the chapter it stands in, and
`` {seconds}`publication` `` half a sentence with that at publication size, or nothing where it was not measured.  A build at publication size records its times in `publication.json` beside this file.
"""
from importlib.metadata import version
import json
import os
from pathlib import Path
import platform

from docutils import nodes
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.addnodes import pending_xref
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective, SphinxRole

PACKAGES = ("numpy", "scipy", "numba", "pandas", "scikit-learn")
RECORD = Path(__file__).with_name("publication.json")
SIZES = ("here", "publication")


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
    """Seconds of each chapter at publication size, as last measured."""
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


def keep_record(app, error):
    """After a build at publication size: its times, for the chapters to state."""
    if not error and os.environ.get("BOOK_SIZE") == "publication":
        seconds = {name: round(time) for name, time in times(app.env).items()}
        RECORD.write_text(json.dumps({**record(), **seconds}, indent=2, sort_keys=True) + "\n")


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


class ShowFacts(SphinxPostTransform):
    default_priority = 8                # before references are resolved

    def run(self, **kwargs):
        for node in list(self.document.findall(Facts)):
            node.replace_self([nodes.paragraph(text=machine()), self.table(times(self.env))])
        for node in list(self.document.findall(Seconds)):
            known = times(self.env) if node["size"] == "here" else record()
            node.replace_self(nodes.Text(said(node["size"], known.get(self.env.docname))))

    def table(self, seconds):
        rows = [row(link(self.env, name), nodes.Text(f"{time:.0f}")) for name, time in seconds.items()]
        rows.append(row(nodes.Text("all chapters"), nodes.Text(f"{sum(seconds.values()):.0f}")))
        head = nodes.thead("", row(nodes.Text("chapter"), nodes.Text("seconds")))
        group = nodes.tgroup("", nodes.colspec(colwidth=80), nodes.colspec(colwidth=20), head,
                             nodes.tbody("", *rows), cols=2)
        return nodes.table("", group, classes=["colwidths-auto"])


def setup(app):
    for node in (Facts, Seconds):
        app.add_node(node)
    app.add_directive("build-facts", BuildFacts)
    app.add_role("seconds", SecondsRole())
    app.add_post_transform(ShowFacts)
    app.connect("build-finished", keep_record)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
