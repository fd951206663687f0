"""Sphinx extension: where the project lives is one setting, BOOK_REPOSITORY; without it no page names a place.

With BOOK_REPOSITORY=https://github.com/OWNER/NAME every page has buttons for the repository, for its issues and for Binder.
"""
import os
import re

from sphinx.errors import ConfigError

ADDRESS = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+")
HUB, BRANCH = "https://mybinder.org", "main"


def options(address):
    """The theme's options for the repository at `address`; ConfigError where it is no address of one."""
    launch = {"binderhub_url": HUB, "notebook_interface": "jupyterlab"}     # without an address: only a notebook to download
    if not address:
        return {"repository_url": "", "launch_buttons": launch}
    if not ADDRESS.fullmatch(address):
        raise ConfigError(f"BOOK_REPOSITORY is {address!r}: it must look like https://github.com/OWNER/NAME")
    return {"repository_url": address, "repository_branch": BRANCH, "use_repository_button": True, "use_issues_button": True,
            "launch_buttons": launch}


def set_buttons(app, config):
    config.html_theme_options = {**config.html_theme_options, **options(os.environ.get("BOOK_REPOSITORY"))}


def setup(app):
    app.connect("config-inited", set_buttons)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
