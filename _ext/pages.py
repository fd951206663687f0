"""Sphinx extension: pages that load nothing from elsewhere, and figures shared between chapters."""
import importlib.util
from pathlib import Path
import shutil

from docutils import nodes
from docutils.parsers.rst import directives
from myst_nb.ext.glue.utils import create_pending_glue_ref
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

MATHJAX = ("tex-chtml.js", "output/chtml/fonts", "input/tex/extensions")


class SharedFigure(SphinxDirective):
    """`{shared-figure} key` with `:doc:`, `:alt:`, `:name:` and a caption: a figure that another chapter glued."""

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
        return [figure]


class SharedAlt(SphinxPostTransform):
    """Give the picture of a shared figure its alt text, once myst-nb (priority 5) has put it in."""

    default_priority = 6

    def run(self, **kwargs):
        for figure in self.document.findall(nodes.figure):
            for image in figure.findall(nodes.image):
                image.setdefault("alt", figure.get("alt", ""))


def copy_mathjax(app, error):
    """Put MathJax into the site.  In `_static` each of its scripts would be loaded by every page."""
    if error or app.builder.format != "html":
        return
    package = importlib.util.find_spec("sphinx-mathjax-offline")
    source = Path(package.origin).parent / "static" / "mathjax"
    target = Path(app.outdir) / "_static" / "mathjax"
    target.mkdir(parents=True, exist_ok=True)
    for name in MATHJAX:
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name, dirs_exist_ok=True)
        else:
            shutil.copy2(source / name, target / name)


def tidy_scripts(app, pagename, templatename, context, doctree):
    """Leave out the scripts of Thebe, which name a server, and scripts that are there twice."""
    kept = {}
    for script in context["script_files"]:
        body = getattr(script, "attributes", {}).get("body") or ""
        name = str(getattr(script, "filename", script))
        if "THEBE_JS_URL" not in body and "sphinx-thebe" not in name:
            kept.setdefault((name, body), script)
    context["script_files"] = list(kept.values())


def setup(app):
    app.config.mathjax_path = "mathjax/tex-chtml.js"
    app.add_directive("shared-figure", SharedFigure)
    app.add_post_transform(SharedAlt)
    app.connect("build-finished", copy_mathjax)
    app.connect("html-page-context", tidy_scripts, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
