"""Sphinx extension: pages that load nothing from elsewhere, lines that break between words, and a page at the site's address."""
import importlib.util
from pathlib import Path
import re
import shutil

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

MATHJAX = ("tex-chtml.js", "output/chtml/fonts", "input/tex/extensions")


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


def address(app):
    """index.html leads to the first chapter.  It names an icon, or browsers would ask for /favicon.ico, which is not there."""
    yield "index", {}, "front.html"


class KeepTogether(SphinxPostTransform):
    """No line breaks between a formula and the stop or comma after it, nor between a number and its per cent."""

    default_priority = 7                # once the numbers of the run are in (5)

    def run(self, **kwargs):
        for text in [t for t in self.document.findall(nodes.Text) if " %" in t and prose(t)]:
            joined = re.sub(r"(?<=\d) %" + ("|^ %" if follows_number(text) else ""), "\N{NO-BREAK SPACE}%", text)
            text.parent.replace(text, nodes.Text(joined))
        for math in list(self.document.findall(nodes.math)):
            place, parent = math.parent.index(math), math.parent
            after = parent[place + 1] if place + 1 < len(parent) else None
            stop = re.match(r"[.,;:!?)\]]+", after) if isinstance(after, nodes.Text) else None
            if stop:
                parent[place + 1] = nodes.Text(after[stop.end():])
                parent[place] = nodes.inline("", "", math, nodes.Text(stop[0]), classes=["together"])


def prose(text):
    """Whether `text` is neither code nor part of a formula."""
    return not isinstance(text.parent, (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw,
                                        nodes.comment, nodes.FixedTextElement))


def follows_number(text):
    place = text.parent.index(text)
    return place > 0 and isinstance(text.parent[place - 1], nodes.inline) and "pasted-text" in text.parent[place - 1]["classes"]


def setup(app):
    app.config.mathjax_path = "mathjax/tex-chtml.js"
    app.add_post_transform(KeepTogether)
    app.config.templates_path.append(str(Path(__file__).with_name("templates")))
    app.connect("build-finished", copy_mathjax)
    app.connect("html-collect-pages", address)
    app.connect("html-page-context", tidy_scripts, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
