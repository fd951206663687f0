"""Sphinx extension: the directive `{build-facts}`, a table of what this build ran on and how long each chapter took."""
from importlib.metadata import version
import os
import platform

from docutils import nodes
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.addnodes import pending_xref
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

PACKAGES = ("numpy", "scipy", "numba", "pandas", "scikit-learn")


class Facts(nodes.General, nodes.Element):
    """Where the table goes once every chapter has been read."""


class BuildFacts(SphinxDirective):
    def run(self):
        return [Facts()]


def machine():
    """The software and the machine, in one sentence."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (f"Python {platform.python_version()}, {packages}; {platform.system()} on {platform.machine()}, "
            f"{os.cpu_count()} cores; sizes: {os.environ.get('BOOK_SIZE', 'default')}.")


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
            data = NbMetadataCollector.get_doc_data(self.env)
            pages = [name for name in self.env.collect_relations() if data[name].get("exec_data")]
            seconds = [data[name]["exec_data"]["runtime"] or 0 for name in pages]
            rows = [row(link(self.env, name), nodes.Text(f"{time:.0f}")) for name, time in zip(pages, seconds)]
            rows.append(row(nodes.Text("all chapters"), nodes.Text(f"{sum(seconds):.0f}")))
            head = nodes.thead("", row(nodes.Text("chapter"), nodes.Text("seconds")))
            group = nodes.tgroup("", nodes.colspec(colwidth=80), nodes.colspec(colwidth=20), head,
                                 nodes.tbody("", *rows), cols=2)
            node.replace_self([nodes.paragraph(text=machine()), nodes.table("", group, classes=["colwidths-auto"])])


def setup(app):
    app.add_node(Facts)
    app.add_directive("build-facts", BuildFacts)
    app.add_post_transform(ShowFacts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
