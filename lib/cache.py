"""Arrays kept on disk between runs: safe format, atomic writes, damaged or foreign files ignored."""
from contextlib import contextmanager
import hashlib
import os
from pathlib import Path
import tempfile
import zipfile

import numpy as np


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
        h.update(array.tobytes())
    return h.hexdigest()


def code_version():
    """A key of the source text of lib: what it computed before an edit is not what it computes after."""
    folder = Path(__file__).parent
    files = sorted(folder.rglob("*.py"))
    return digest(*[f.relative_to(folder).as_posix() for f in files], *[f.read_text(encoding="utf-8") for f in files])


@contextmanager
def whole(path, kind="w", permissions=0o644):
    """A file to write that takes the place of `path` when the block ends, and leaves nothing when it fails.

    `kind` is "w" for text in UTF-8, "wb" for bytes; the folder must be there.
    """
    path = Path(path)
    handle, part = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, kind, encoding="utf-8" if kind == "w" else None) as file:
            yield file
        os.chmod(part, permissions)
        os.replace(part, path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def save(folder, key, arrays):
    """Write a dict of arrays as folder/key.npz, all or nothing."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with whole(folder / f"{key}.npz", "wb", 0o600) as file:
        np.savez(file, key=np.array(key), **arrays)


def load(folder, key):
    """The dict saved under `key`, or None where it is absent, damaged, or belongs to another key."""
    try:
        with np.load(Path(folder) / f"{key}.npz", allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
        return None
    return arrays if str(arrays.pop("key", "")) == key else None
