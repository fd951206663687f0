"""The main figure of the built pages, as a small picture for README.md: `make figure`."""
from pathlib import Path
import re
import sys

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "_build" / "html" / "chapters" / "introduction.html"
PICTURE = ROOT / ".github" / "main_figure.png"
COLOURS = 256


def main_figure(page=PAGE):
    """The picture of the figure `fig-main` on the introduction, as it was drawn in the build.

    Raises
    ------
    ValueError
        No such page, or no such figure on it.
    """
    if not page.exists():
        raise ValueError(f"{page} is missing: run `make book`")
    found = re.search(r'<figure[^>]*\bid="fig-main".*?<img[^>]*\bsrc="([^"]+)"', page.read_text(), re.DOTALL)
    if not found:
        raise ValueError(f"{page} has no figure fig-main")
    return Image.open(page.parent / found[1]).convert("RGB")


def write(picture, path=PICTURE):
    """Write `picture` as a PNG of few colours."""
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    try:
        write(main_figure())
    except ValueError as error:
        sys.exit(str(error))
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size} bytes")
