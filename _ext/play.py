"""Sphinx extension: the scripts that draw sliders and play the game, on the pages that have them and on no other.

Bokeh's scripts come from its package, so that the site works offline; `play.js` and `play.css` lie beside this file.
"""
from pathlib import Path
import re
import shutil

import bokeh

HERE = Path(__file__).parent
SCRIPTS = "bokeh.min.js", "bokeh-widgets.min.js"
OWN = "play.js", "play.css"
PART = '<div class="play"'
OUTSIDE = re.compile(r"(\.src=[\"'`])https://[^\"'`]*")      # MathJax and Google's maps, which no picture here asks for


def copy_scripts(app):
    """Put the scripts into the site, before pages that name them are written; no address outside stays in them."""
    if app.builder.format != "html":
        return
    target, source = Path(app.outdir) / "_static" / "play", Path(bokeh.__file__).parent / "server" / "static" / "js"
    target.mkdir(parents=True, exist_ok=True)
    for name in SCRIPTS:
        (target / name).write_text(OUTSIDE.sub(r"\1", (source / name).read_text(encoding="utf-8")), encoding="utf-8")
    for name in OWN:
        shutil.copy2(HERE / name, target / name)


def add_scripts(app, pagename, templatename, context, doctree):
    """Name the scripts on a page that has something to play with."""
    if PART in (context.get("body") or ""):
        for name in (*SCRIPTS, OWN[0]):
            app.add_js_file(f"play/{name}", loading_method="defer")
        app.add_css_file(f"play/{OWN[1]}")


def setup(app):
    app.connect("builder-inited", copy_scripts)
    app.connect("html-page-context", add_scripts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
