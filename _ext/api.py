"""Sphinx extension: the reference of lib, links to it from prose, and where each chapter's functions live.

`{lib-api} dp` documents the public names of lib.dp (or the whole of a module such as lib.problem) from their docstrings.
A literal of the prose that names one of them, `dp.solve` or `lib.dp.solve`, becomes a link.  `{chapter-map}` lists for every
chapter the functions of lib that it calls.
"""
import inspect
from pathlib import Path
import re

import captions
from docutils import nodes
from docutils.statemachine import StringList
from runtime import link, row
from sphinx.addnodes import pending_xref
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

AUTODOC = "```{{eval-rst}}\n.. automodule:: lib.{name}\n   :members:\n   :undoc-members:\n   :imported-members:\n   :member-order: bysource\n```"
MODULE = AUTODOC.replace("   :imported-members:\n", "")
FIELD = re.compile(r"^\s+(\w+)\s*:[^#\n]*#\s*(.+)$", re.MULTILINE)


class LibApi(SphinxDirective):
    """`{lib-api} name`."""

    required_arguments = 1

    def run(self):
        name = self.arguments[0]
        package = (Path(self.env.srcdir) / "lib" / name / "__init__.py").exists()
        text = (AUTODOC if package else MODULE).format(name=name)
        found = nodes.Element()
        self.state.nested_parse(StringList(text.splitlines(), self.env.docname), self.content_offset, found)
        return found.children


class ChapterMap(SphinxDirective):
    def run(self):
        return [Map()]


class Map(nodes.General, nodes.Element):
    """Where the map goes once every chapter has been read."""


class ShowMap(SphinxPostTransform):
    default_priority = 4                # before links are made (9) and resolved (10)

    def run(self, **kwargs):
        for node in list(self.document.findall(Map)):
            rows = []
            for name in self.env.collect_relations():
                path = Path(self.env.doc2path(name))
                found = sorted({function for _, functions in captions.called(path) for function in functions
                                if not function.startswith(("lib.figures.", "lib.tables."))})
                if found:
                    rows.append(row(link(self.env, name), nodes.inline("", "", *captions.separated(found))))
            head = nodes.thead("", row(nodes.Text("chapter"), nodes.Text("functions of lib that it calls")))
            columns = [nodes.colspec(colwidth=width) for width in (25, 75)]
            node.replace_self(nodes.table("", nodes.tgroup("", *columns, head, nodes.tbody("", *rows), cols=2)))


class LinkNames(SphinxPostTransform):
    """A literal that names something public of lib leads to its entry."""

    default_priority = 9

    def run(self, **kwargs):
        known = self.env.get_domain("py").objects
        for literal in list(self.document.findall(nodes.literal)):
            name = literal.astext().removesuffix("()")
            target = name if name.startswith("lib.") else f"lib.{name}"
            if target in known and not isinstance(literal.parent, (nodes.reference, pending_xref)):
                to = pending_xref("", literal.deepcopy(), refdomain="py", reftype="obj", reftarget=target,
                                  refdoc=self.env.docname, refexplicit=True, refwarn=True)
                literal.parent.replace(literal, to)


def fields(cls):
    """What the comment behind each field of a NamedTuple says."""
    return dict(FIELD.findall(inspect.getsource(cls)))


def escape(text):
    """A docstring's line with what RST would take for markup as plain text; literals and examples stay."""
    if text.lstrip().startswith((">>>", "...")):
        return text
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if n % 2 else re.sub(r"([*|\\])|(_)(?!\w)", r"\\\g<0>", part) for n, part in enumerate(parts))


def docstring(app, what, name, found, options, lines):
    """Docstrings as RST: plain text but for literals, indented formulas kept line by line, fields from their comments."""
    owner, _, last = name.rpartition(".")
    if lines and lines[0].startswith("Alias for field number"):
        module, _, cls = owner.rpartition(".")
        comment = fields(getattr(inspect.importlib.import_module(module), cls)).get(last)
        lines[:] = [escape(comment)] if comment else []
        return
    if what == "data" or not isinstance(getattr(found, "__doc__", None), str) or inspect.cleandoc(found.__doc__ or "") == "":
        lines[:] = []
        return
    out, example, formula = [], False, False
    for n, line in enumerate(lines):
        if line.startswith(">>>"):
            example = True
        example = example and bool(line.strip())
        if n and not lines[n - 1].strip() and line.startswith("    ") and not formula:
            formula = True
            out += ["::", ""]
        formula = formula and (line.startswith("    ") or not line.strip())
        out.append(line if example or formula else escape(line))
    lines[:] = out


def setup(app):
    for name in ("sphinx.ext.autodoc", "sphinx.ext.napoleon"):
        app.setup_extension(name)
    app.add_node(Map)
    app.add_directive("lib-api", LibApi)
    app.add_directive("chapter-map", ChapterMap)
    app.add_post_transform(ShowMap)
    app.add_post_transform(LinkNames)
    app.connect("autodoc-process-docstring", docstring, priority=100)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
