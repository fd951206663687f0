"""Sphinx extension: pages that load nothing from elsewhere."""
import importlib.util
from pathlib import Path
import shutil

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


def setup(app):
    app.config.mathjax_path = "mathjax/tex-chtml.js"
    app.connect("build-finished", copy_mathjax)
    app.connect("html-page-context", tidy_scripts, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
