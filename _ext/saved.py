"""Chapters as JupyterLab saves them, so that opening one and saving it changes nothing: `make chapters`.

jupytext writes a cell's options as YAML of its own: a text over several lines as one line after each, quoted.  A
caption is one paragraph, and then a text of one line, which is wrapped and stays readable.
"""
from pathlib import Path

import jupytext

HEADER = {"formats": "md:myst", "notebook_metadata_filter": "-jupytext.text_representation.jupytext_version",
          "text_representation": {"extension": ".md", "format_name": "myst", "format_version": 0.13}}
KERNEL = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}     # the order of JupyterLab


def one_line(caption):
    """A caption of one paragraph on one line; one of several as it is."""
    return caption if "\n\n" in caption.strip() else " ".join(caption.split())


def saved(text):
    """The text of a chapter as JupyterLab saves it, with the header that all chapters have."""
    notebook = jupytext.reads(text, fmt="md:myst")
    kept = {key: notebook.metadata["jupytext"][key] for key in ("default_lexer",) if key in notebook.metadata["jupytext"]}
    notebook.metadata.update(jupytext=HEADER | kept, kernelspec=KERNEL)
    for cell in notebook.cells:
        figure = cell.metadata.get("mystnb", {}).get("figure", {})
        if "caption" in figure:
            figure["caption"] = one_line(figure["caption"])
    return jupytext.writes(notebook, fmt="md:myst")


if __name__ == "__main__":
    for chapter in sorted(Path(__file__).resolve().parents[1].glob("chapters/*.md")):
        text = saved(chapter.read_text(encoding="utf-8"))
        if text != chapter.read_text(encoding="utf-8"):
            chapter.write_text(text, encoding="utf-8", newline="\n")
            print(f"{chapter.name}: rewritten")
