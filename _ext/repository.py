"""Sphinx extension: where the project lives is one setting, BOOK_REPOSITORY; without it no page names a place.

With BOOK_REPOSITORY=https://github.com/OWNER/NAME every page has buttons for the repository, for its issues and for Binder.
Its notebook is offered for download either way; the theme does so only beside Binder.
"""
import os
from pathlib import Path
import re
import shutil

from sphinx.errors import ConfigError

ADDRESS = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+")
HUB, BRANCH = "https://mybinder.org", "main"


def options(address):
    """The theme's options for the repository at `address`; ConfigError where it is no address of one."""
    if not address:
        return {"repository_url": "", "launch_buttons": {}}
    if not ADDRESS.fullmatch(address):
        raise ConfigError(f"BOOK_REPOSITORY is {address!r}: it must look like https://github.com/OWNER/NAME")
    return {"repository_url": address, "repository_branch": BRANCH, "use_repository_button": True, "use_issues_button": True,
            "launch_buttons": {"binderhub_url": HUB, "notebook_interface": "jupyterlab"}}


def set_buttons(app, config):
    config.html_theme_options = {**config.html_theme_options, **options(os.environ.get("BOOK_REPOSITORY"))}


def offer_notebook(app, pagename, templatename, context, doctree):
    """Put a page's notebook, as it was executed, beside its source, and tell the theme's download button."""
    executed = Path(app.outdir).parent / "jupyter_execute" / f"{pagename}.ipynb"
    if app.builder.format == "html" and executed.exists():
        target = Path(app.outdir) / "_sources" / f"{pagename}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(executed, target)
        context["ipynb_source"] = f"{pagename}.ipynb"


def setup(app):
    app.connect("config-inited", set_buttons)
    app.connect("html-page-context", offer_notebook)        # before the theme's header buttons, priority 501
    return {"parallel_read_safe": True, "parallel_write_safe": True}
