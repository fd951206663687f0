"""Sphinx extension: on a phone a picture is the narrow version that lies inside its PNG (`lib/figures/narrow.py`).

A picture without one keeps a width at which its smallest letter can be read, and scrolls.
"""
import io
import math
from pathlib import Path
import re
import struct

from PIL import Image

PHONE = 600                             # pixels: screens up to this width
LETTER = 9                              # pixels of the smallest letter
CHUNK = b"naRw"                         # as lib/figures/narrow.py writes it
PICTURE = re.compile(r'<img\b[^>]*\bsrc="((?:\.\./)*_images/)([^"/]+\.png)"[^>]*>')


def inside(png):
    """The narrow version inside a PNG, or None."""
    at = 8
    while at < len(png):
        length, = struct.unpack(">I", png[at:at + 4])
        if png[at + 4:at + 8] == CHUNK:
            return png[at + 8:at + 8 + length]
        at += 12 + length
    return None


def picture(match, source, target):
    """The tag `match` of the picture at `source`, with its narrow version, which goes into the folder `target`; the tag itself if none."""
    png = source.read_bytes()
    opened = Image.open(io.BytesIO(png))
    letter = opened.info.get("Letter")
    if letter is None:
        return match[0]
    small, name = inside(png), match[2].removesuffix(".png") + ".narrow.png"
    if small is None:
        wide = math.ceil(opened.width * LETTER / float(letter))
        return match[0].replace("<img", f'<img data-letter="{letter}" style="--phone: {wide}px"', 1)
    target.mkdir(parents=True, exist_ok=True)
    (target / name).write_bytes(small)
    least = Image.open(io.BytesIO(small)).info["Letter"]
    return (f'<picture><source media="screen and (max-width: {PHONE}px)" srcset="{match[1]}{name}">'
            + match[0].replace("<img", f'<img data-letter="{letter}" data-narrow-letter="{least}"', 1) + "</picture>")


def add_narrow(app, pagename, templatename, context, doctree):
    """Name the narrow versions in the body of a page."""
    if app.builder.format != "html" or "_images/" not in (context.get("body") or ""):
        return
    sources = {name: Path(app.srcdir) / path for path, name in app.builder.images.items()}
    target = Path(app.outdir) / "_images"
    context["body"] = PICTURE.sub(lambda match: picture(match, sources[match[2]], target) if match[2] in sources else match[0],
                                  context["body"])


def setup(app):
    app.connect("html-page-context", add_narrow)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
