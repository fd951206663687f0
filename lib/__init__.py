"""The Bayesian linear information filtering problem: model, bounds, policies, simulation.

Importing lib sets NUMBA_CACHE_DIR.  numba compiles a kernel anew when the file that holds it has changed, not when
a function has that it calls in another; so compiled code is kept in a folder named after all that it depends on.
A folder that NUMBA_CACHE_DIR named already is the parent of that one.
"""
import atexit
import hashlib
import os
from pathlib import Path
import re
import shutil
import sys
import tempfile
import warnings

ROOT = Path(__file__).resolve().parents[1]
PINS = ("requirements.txt", "constraints.txt")
NOT_CODE = ("NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER", "NUMBA_THREADING_LAYER_PRIORITY")
STATEMENT = re.compile(r"""^(?:[^\n'"\#]*[;:])?[ \t]*                 # reading, not parsing: a tenth of the time
    (?:from[ \t]+(?P<dots>\.*)(?P<module>[\w.]*)[ \t]+)?
    import\b(?P<names>[ \t]*\([^)]*\)|(?:\\\n|[^\n\#;])*)""", re.MULTILINE | re.VERBOSE)

def _mentioned(text, package):
    """The dotted names that the import statements of a file of `package` mention, perhaps too many."""
    for found in STATEMENT.finditer(text):
        above = package[:len(package) + 1 - len(found["dots"])] if found["dots"] else ()
        base = ".".join([*above, *([found["module"]] if found["module"] else [])])
        yield from (f"{base}.{name}" if base else name for name in re.findall(r"[\w.]+", found["names"]))


def kernel_sources(root=ROOT):
    """The files of lib that import numba, or a decorator of lib.compiled, and all of lib that these import, at whatever depth: sorted paths."""
    paths = {}
    for path in (root / "lib").rglob("*.py"):
        paths[".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")] = path
    texts = {name: path.read_text(encoding="utf-8") for name, path in paths.items()}
    mentions = {name: set(_mentioned(text, paths[name].relative_to(root).parent.parts)) for name, text in texts.items()}
    ahead = {name for name, names in mentions.items() if any(re.search(r"^numba|jit$", other) for other in names)} | {"lib"}
    found = set()
    while ahead:
        parts = ahead.pop().split(".")
        around = {".".join(parts[:end + 1]) for end in range(len(parts))}       # packages run before what is in them
        new = (around & paths.keys()) - found
        found |= new
        ahead |= set().union(*(mentions[name] for name in new))
    return sorted(paths[name] for name in found)


def kernels_key(root=ROOT):
    """16 hexadecimal digits for what compiled code depends on: kernels, pins, Python and numba's settings."""
    settings = sorted(item for item in os.environ.items() if item[0].startswith("NUMBA_") and item[0] not in NOT_CODE)
    total = hashlib.sha256(repr((sys.version, settings)).encode())
    for path in [*kernel_sources(root), *(root / name for name in PINS if (root / name).is_file())]:
        content = path.read_bytes()
        total.update(f"{path.relative_to(root).as_posix()} {len(content)} ".encode() + content)
    return total.hexdigest()[:16]


def _writable(folder):
    """Whether files can be made in `folder`, itself made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _parent():
    """Where folders of compiled code are kept: as NUMBA_CACHE_DIR says, or in the checkout or the user's cache.

    Where none of these can be written it is a temporary folder, gone when the process ends.
    """
    given = Path(os.environ.get("NUMBA_CACHE_DIR", ""))
    given = given.parent if re.fullmatch("lib-[0-9a-f]{16}", given.name) else given      # set by a parent process
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "information-filtering"
    places = [given.absolute()] if given.name else [ROOT / "_build" / "numba", user]
    for place in places:                            # `filter` is a package of lib, once it is imported
        if _writable(place):
            return place
    room = tempfile.mkdtemp(prefix="numba-")
    atexit.register(shutil.rmtree, room, ignore_errors=True)
    warnings.warn(f"{' and '.join(map(str, places))} cannot be written: kernels are compiled anew by every process; "
                  "NUMBA_CACHE_DIR may name a folder for them", RuntimeWarning, stacklevel=3)
    return Path(room)


def _keep_compiled_code():
    os.environ["NUMBA_CACHE_DIR"] = str(_parent() / f"lib-{kernels_key()}")
    if "numba" in sys.modules:                          # it has read the variable already
        sys.modules["numba"].config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]


_keep_compiled_code()
