"""Sphinx extension: figures and tables with captions, shared between chapters, and an index of them all.

`{shared-figure} key` shows the picture that another chapter glued, from the same execution.  A cell whose `mystnb.figure` has the class
`tabular` makes a table: it is counted as one.  `{figure-index}` lists every captioned figure and table, with
the functions of lib that its cell calls.
"""
import ast
from base64 import b64decode
from contextlib import suppress
from functools import lru_cache
import hashlib
from pathlib import Path
from pkgutil import resolve_name

from docutils import nodes
from docutils.parsers.rst import directives
import jupytext
from myst_nb.ext.glue.crossref import read_glue_cache
from myst_nb.ext.glue.utils import PendingGlueReference, create_pending_glue_ref
from runtime import row
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective
import tree


class Tabular(nodes.figure):
    """A figure that holds a table."""


class Index(nodes.General, nodes.Element):
    """Where the index goes once every chapter has been read."""


class SharedFigure(SphinxDirective):
    """`{shared-figure} key` with `:doc:`, `:alt:`, `:name:` and a caption."""

    required_arguments = 1
    has_content = True
    option_spec = {"doc": directives.unchanged_required, "alt": directives.unchanged_required,
                   "name": directives.unchanged}

    def run(self):
        for option in ("doc", "alt"):
            if option not in self.options:
                raise self.error(f"shared-figure needs the option :{option}:")
        source, line = self.get_source_info()
        picture = create_pending_glue_ref(self.state.document, source, line, self.options["doc"], self.arguments[0])
        figure = nodes.figure("", picture, alt=self.options["alt"])
        self.set_source_info(figure)
        self.add_name(figure)
        text = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, text)
        if not text.children or not isinstance(text[0], nodes.paragraph):
            raise self.error("shared-figure needs a caption")
        figure += nodes.caption(text[0].rawsource, "", *text[0].children)
        if len(text) > 1:
            figure += nodes.legend("", *text[1:])
        return [nodes.container("", figure, classes=["cell_output"])]       # it scrolls on a phone


class FigureIndex(SphinxDirective):
    def run(self):
        return [Index()]


def shared(figure):
    """The reference to another chapter's picture that `figure` holds, or None."""
    return next((child for child in figure.findall(PendingGlueReference) if child.parent is figure), None)


class SharedPicture(SphinxPostTransform):
    """Give a shared figure its picture, as a file of its own page.

    myst-nb (priority 5) would point at a file that exists only where the other chapter also displays the same
    bytes in the same build.  A key that the other chapter does not have is left to myst-nb, which warns.
    """

    default_priority = 4

    def run(self, **kwargs):
        folder = Path(self.env.mystnb_config.output_folder)
        for figure in list(self.document.findall(nodes.figure)):
            pending = shared(figure)
            found = pending and read_glue_cache(str(folder), pending.refdoc).get(pending.key, {}).get("data", {})
            if found and "image/png" in found:
                picture = b64decode(found["image/png"])
                path = folder / f"{hashlib.sha256(picture).hexdigest()}.png"
                path.write_bytes(picture)
                uri = path.relative_to(self.env.srcdir).as_posix()
                self.env.images.add_file(self.env.docname, uri)
                pending.replace_self(nodes.image(uri=uri, candidates={"*": uri}, alt=figure["alt"]))


class CountTables(SphinxTransform):
    default_priority = 10

    def apply(self, **kwargs):
        for figure in list(self.document.findall(nodes.figure)):
            if "tabular" in figure["classes"]:
                table = Tabular("", *figure.children, **figure.attributes)
                figure.replace_self(table)
                self.document.ids.update({key: table for key in table["ids"]})


def called(chapter):
    """For each code cell of `chapter`: the functions of lib that it calls, and its metadata and source."""
    cells = [cell for cell in jupytext.read(chapter).cells if cell.cell_type == "code"]
    names = {}
    for node in ast.walk(ast.parse(tree.chapter_code(chapter.read_text()))):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            base = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            names.update({alias.asname or alias.name: base + alias.name for alias in node.names
                          if (base + alias.name).startswith("lib.")})
    for cell in cells:
        code = tree.python(cell.source)
        heads = [ast.unparse(node.func) for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
        parts = [(names.get(head.split(".")[0]), head.partition(".")[2]) for head in heads]
        yield cell, sorted(filter(of_lib, {".".join(filter(None, part)) for part in parts if part[0]}))


def of_lib(name):
    """Whether a dotted name is that of a function or class of lib, and not of a method of what lib returns or holds."""
    with suppress(ImportError, AttributeError, ValueError):
        found = resolve_name(name)
        return callable(found) and str(found.__module__).startswith("lib.")
    return False


@lru_cache
def makers(chapter):
    """The functions of lib behind each named figure, and behind each glued one, of `chapter`."""
    found = {}
    for cell, functions in called(chapter):
        label = cell.metadata.get("mystnb", {}).get("figure", {}).get("name")
        glued = [node.args[0].value for node in ast.walk(ast.parse(tree.python(cell.source)))
                 if isinstance(node, ast.Call) and ast.unparse(node.func) == "glue"
                 and isinstance(node.args[0], ast.Constant)]
        found.update({key: functions for key in [label, *glued] if key})
    return found


class ShowIndex(SphinxPostTransform):
    default_priority = 4                # before the numbers in captions are filled in (5) and links resolved (10)

    def run(self, **kwargs):
        for node in list(self.document.findall(Index)):
            body = nodes.tbody("", *(entry for name in self.env.collect_relations() for entry in self.rows(name)))
            head = nodes.thead("", row(*(nodes.Text(word) for word in ("", "caption", "functions of lib"))))
            columns = [nodes.colspec(colwidth=width) for width in (15, 55, 30)]
            node.replace_self(nodes.table("", nodes.tgroup("", *columns, head, body, cols=3), classes=["figure-index"]))
            self.env.get_domain("math").data["has_equations"][self.env.docname] = True      # captions hold formulas

    def rows(self, name):
        """One row for each figure and table with a name on page `name`."""
        for figure in self.env.get_doctree(name).findall(nodes.figure):
            if not figure["names"] or not list(figure.findall(nodes.caption)):
                continue
            label = figure["names"][0]
            pending = shared(figure)
            source, key = (pending.refdoc, pending.key) if pending else (name, label)
            functions = makers(Path(self.env.doc2path(source))).get(key, [])
            link = pending_xref("", nodes.literal("", "", classes=["xref"]), refdomain="std", reftype="numref",
                                reftarget=label, refdoc=self.env.docname, refexplicit=False, refwarn=True)
            made = separated(functions) if functions else [nodes.Text("the cell alone")]
            caption = nodes.inline("", "", *next(figure.findall(nodes.caption)).deepcopy().children)
            yield row(link, caption, nodes.inline("", "", *made))


def separated(names):
    for n, name in enumerate(names):
        yield from ([nodes.Text(", ")] if n else []) + [nodes.literal("", name)]


def title(node):
    return next((caption.astext() for caption in node.findall(nodes.caption)), "")


def setup(app):
    app.add_node(Index)
    app.add_enumerable_node(Tabular, "table", title, html=(lambda self, node: self.visit_figure(node),
                                                           lambda self, node: self.depart_figure(node)))
    app.add_directive("shared-figure", SharedFigure)
    app.add_directive("figure-index", FigureIndex)
    app.add_transform(CountTables)
    app.add_post_transform(SharedPicture)
    app.add_post_transform(ShowIndex)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
