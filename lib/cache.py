"""Files written whole or not at all, and arrays kept on disk between runs: damaged or foreign ones are ignored.

A file is written beside its place as a part, `.NAME.....unfinished`, which then takes the place.  A part that a killed writer
left is removed at the next write: a writer holds a lock on its part, and a lock ends with its process.
"""
from contextlib import contextmanager, suppress
from functools import cache
import glob
import hashlib
import io
import os
from pathlib import Path
import stat
import tempfile

import numpy as np

from lib import ROOT

try:
    import fcntl
except ImportError:                     # Windows: parts are left, since nothing tells whether their writer lives
    fcntl = None

CHECKSUM = hashlib.sha256().digest_size             # bytes at the end of a file of arrays
KINDS = {stat.S_ISLNK: "a link in a circle", stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket",
         stat.S_ISCHR: "a device", stat.S_ISBLK: "a device"}


def digest(*parts):
    """A hexadecimal key of arrays, numbers and strings: the same parts give the same key on every machine.

    Examples
    --------
    >>> digest("a", 1.5, np.arange(3)) == digest("a", 1.5, np.arange(3))
    True
    """
    h = hashlib.sha256()
    for part in parts:
        array = np.asarray(part)
        h.update(f"{array.dtype.str}{array.shape}|".encode())
        h.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8))             # read where it lies: it may be large
    return h.hexdigest()


def code_version():
    """A key of the source text of lib, sub-folders too: what it computed before an edit is not what it computes after."""
    files = sorted((ROOT / "lib").rglob("*.py"))
    return digest(*[f.relative_to(ROOT).as_posix() for f in files], *[f.read_text(encoding="utf-8") for f in files])


def destination(path, inputs=()):
    """Where a file written to `path` would go, links followed; nothing is written.

    Parameters
    ----------
    path : str or Path
    inputs : sequence of str or Path
        Files that are read: the output must not replace them.

    Returns
    -------
    Path

    Raises
    ------
    ValueError
        Naming `path`: it is one of the inputs, no plain file, read-only, or in a folder that is missing or cannot be
        written to.
    """
    place, wrong = Path(os.path.realpath(path)), f"output is {str(path)!r}: "
    for name in inputs:
        if os.path.exists(name) and os.path.exists(place) and os.path.samefile(place, name):
            raise ValueError(f"{wrong}that is the input {str(name)!r}, which it would replace")
    try:
        mode = os.lstat(place).st_mode
    except FileNotFoundError:
        mode = None
    except OSError as error:
        raise ValueError(f"{wrong}{error.strerror}") from error
    if mode is not None and not stat.S_ISREG(mode):
        raise ValueError(f"{wrong}it is {next(name for test, name in KINDS.items() if test(mode))}, not a plain file")
    if mode is not None and not (mode & 0o222 and os.access(place, os.W_OK)):
        raise ValueError(f"{wrong}it is read-only")
    if not place.parent.is_dir():
        raise ValueError(f"{wrong}its folder is missing")
    try:
        tempfile.TemporaryFile(dir=place.parent).close()
    except OSError as error:
        raise ValueError(f"{wrong}its folder cannot be written to ({error.strerror})") from error
    return place


def clean(folder, name):
    """Remove what killed writers left in `folder` of files whose names match the pattern `name`."""
    for part in glob.glob(f".{name}.*.unfinished", root_dir=folder) if fcntl else ():
        with suppress(OSError), open(Path(folder, part), "rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)            # an OSError while its writer lives
            os.unlink(file.name)


def new_part(place):
    """An open part of the file `place`, locked: (handle, path)."""
    name = place.name[:40]
    clean(place.parent, glob.escape(name))
    while True:
        handle, part = tempfile.mkstemp(dir=place.parent, prefix=f".{name}.", suffix=".unfinished")
        if fcntl:
            with suppress(OSError):     # a file system without locks: there nothing is removed
                fcntl.flock(handle, fcntl.LOCK_EX)
        if os.path.exists(part):        # else another writer took it for abandoned before it was locked
            return handle, part
        os.close(handle)


@contextmanager
def whole(path, kind="w", permissions=0o644):
    """A file to write that takes the place of `path` when the block ends, and leaves nothing when it fails.

    A link is followed and stays, and a file that was there keeps its permissions.

    Parameters
    ----------
    path : str or Path
    kind : str
        "w" for text in UTF-8, "wb" for bytes.
    permissions : int
        Of a file that was not there.

    Raises
    ------
    ValueError
        See `destination`.
    OSError
        Naming `path`, where writing fails.
    """
    place = destination(path)
    mode = stat.S_IMODE(place.stat().st_mode) if place.exists() else permissions
    handle, part = new_part(place)
    try:
        with os.fdopen(handle, kind, encoding="utf-8" if kind == "w" else None) as file:
            yield file
        os.chmod(part, mode)
        os.replace(part, place)
    except BaseException as error:
        Path(part).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(f"{path} cannot be written: {error.strerror or error}") from error
        raise


@cache
def clean_once(folder):
    """Remove what killed writers of arrays left in `folder`: at a process's first call."""
    clean(folder, "*")


def save(folder, key, arrays):
    """Write a dict of arrays as folder/key.npz with a checksum at its end, all or nothing."""
    stream, folder = io.BytesIO(), Path(folder).absolute()
    np.savez(stream, allow_pickle=False, key=np.array(key), **arrays)
    content = stream.getvalue()
    folder.mkdir(parents=True, exist_ok=True)
    clean_once(folder)
    with whole(folder / f"{key}.npz", "wb", 0o600) as file:
        file.write(content + hashlib.sha256(content).digest())


def load(folder, key):
    """The dict saved under `key`, or None where it is absent, damaged, or belongs to another key."""
    try:
        return arrays_of((Path(folder) / f"{key}.npz").read_bytes(), key)
    except OSError:
        return None


def arrays_of(content, key):
    """The dict that `save` wrote as these bytes, or None; the checksum of the whole file decides, before anything is read."""
    content, checksum = content[:-CHECKSUM], content[-CHECKSUM:]
    if hashlib.sha256(content).digest() != checksum:
        return None
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    return arrays if str(arrays.pop("key", "")) == key else None
