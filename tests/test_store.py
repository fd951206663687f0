"""Files on disk: all or nothing, nothing lost, nothing left, and no foreign or damaged arrays."""
import hashlib
import io
import os
from pathlib import Path
import subprocess
import sys

import numpy as np
import pytest

from lib import cache
from lib.experiments import runner


def test_round_trip_and_keys(tmp_path):
    arrays = {"a": np.arange(5.0), "b": np.zeros((2, 0), np.int64)}
    key = cache.digest("table", arrays["a"], 3)
    assert cache.load(tmp_path, key) is None
    cache.save(tmp_path / "deep", key, arrays)
    back = cache.load(tmp_path / "deep", key)
    assert set(back) == {"a", "b"} and all((back[n] == arrays[n]).all() and back[n].dtype == arrays[n].dtype for n in back)
    assert key != cache.digest("table", arrays["a"], 4) and key != cache.digest("table", arrays["a"].astype("f4"), 3)


def test_damaged_and_foreign_files_are_ignored(tmp_path):
    cache.save(tmp_path, "k", {"a": np.arange(1000.0)})
    whole = (tmp_path / "k.npz").read_bytes()
    for content in (b"", whole[:50], whole[:-30], whole + b"\0", whole[:4000] + b"\xff\xff\xff\xff" + whole[4004:], b"PK nonsense"):
        (tmp_path / "k.npz").write_bytes(content)
        assert cache.load(tmp_path, "k") is None
    (tmp_path / "other.npz").write_bytes(whole)
    assert cache.load(tmp_path, "other") is None
    np.savez(tmp_path / "plain.npz", key=np.array("plain"), a=np.arange(3))         # no checksum
    assert cache.load(tmp_path, "plain") is None


def test_objects_are_not_read_even_under_a_right_checksum(tmp_path):
    stream = io.BytesIO()
    np.savez(stream, key=np.array("k"), a=np.array([{}], dtype=object))
    content = stream.getvalue()
    with pytest.raises(ValueError, match="allow_pickle"):
        cache.arrays_of(content + hashlib.sha256(content).digest(), "k")


@pytest.mark.skipif(os.name != "posix", reason="this system has no permissions for owners alone")
def test_what_is_kept_is_the_owners(tmp_path):
    cache.save(tmp_path, "k", {"a": np.arange(3)})
    assert (tmp_path / "k.npz").stat().st_mode & 0o777 == 0o600


def test_objects_are_not_saved(tmp_path):
    with pytest.raises(ValueError, match="allow_pickle"):
        cache.save(tmp_path, "k", {"a": np.array([{}], dtype=object)})


def test_every_flipped_bit_of_a_chunk_is_noticed(tmp_path):
    cache.save(tmp_path, "k", {"total": np.array([1., 2.]), "visits": np.zeros(0, np.int64)})
    content = bytearray((tmp_path / "k.npz").read_bytes())
    for place in range(8 * len(content)):
        content[place // 8] ^= 1 << place % 8
        assert cache.arrays_of(bytes(content), "k") is None, f"bit {place}"
        content[place // 8] ^= 1 << place % 8
    assert cache.arrays_of(bytes(content), "k")["total"].tolist() == [1, 2]


def test_a_damaged_chunk_is_computed_again(tmp_path):
    asked = []

    def compute(task):
        asked.append(task)
        return {"square": np.array(task**2)}

    def run():
        return [int(arrays["square"]) for arrays in runner.collected(compute, [2, 3], str, tmp_path)]

    assert run() == [4, 9] and run() == [4, 9] and asked == [2, 3]
    content = bytearray((tmp_path / "3.npz").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "3.npz").write_bytes(content)
    assert run() == [4, 9] and asked == [2, 3, 3]
    assert run() == [4, 9] and asked == [2, 3, 3]


def test_a_failed_save_leaves_nothing(tmp_path):
    class Wrong:
        def __array__(self, *args, **kwargs):
            raise RuntimeError("no array")
    with pytest.raises(RuntimeError, match="no array"):
        cache.save(tmp_path, "k", {"a": Wrong()})
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
from lib import cache
with cache.whole(sys.argv[1]) as file:
    file.write("half")
    file.flush()
    print(file.name, flush=True)
    {end}
"""


def writer(path, end):
    return subprocess.Popen([sys.executable, "-c", KILLED.format(end=end), str(path)], stdout=subprocess.PIPE, stdin=subprocess.PIPE,
                            text=True, cwd=Path(cache.__file__).parents[1])


def test_a_killed_writer_leaves_nothing_for_ever(tmp_path):
    page = tmp_path / "page.html"
    page.write_text("old")
    with writer(page, "os.kill(os.getpid(), signal.SIGKILL)") as dead:
        dead.wait()
    assert page.read_text() == "old" and len(list(tmp_path.iterdir())) == 2
    with cache.whole(page) as file:
        file.write("new")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"] and page.read_text() == "new"


def test_another_keys_remains_are_removed_from_a_folder_of_chunks(tmp_path):
    with writer(tmp_path / f"{'a' * 64}.npz", "os.kill(os.getpid(), signal.SIGKILL)") as dead:
        dead.wait()
    (tmp_path / ".a.part").write_text("somebody else's")
    assert len(list(tmp_path.iterdir())) == 2
    cache.save(tmp_path, "k", {"a": np.arange(3)})
    assert sorted(path.name for path in tmp_path.iterdir()) == [".a.part", "k.npz"]


def test_a_living_writer_is_left_alone(tmp_path):
    page = tmp_path / "page.html"
    with writer(page, "sys.stdin.readline()") as alive:
        alive.stdout.readline()
        with cache.whole(page) as file:
            file.write("mine")
        alive.stdin.write("go on\n")
        alive.stdin.close()
        assert alive.wait() == 0
    assert page.read_text() == "half" and [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_links_and_permissions_stay(tmp_path):
    page, link, dangling = tmp_path / "page.html", tmp_path / "link.html", tmp_path / "new.html"
    page.write_text("old")
    page.chmod(0o600)
    link.symlink_to("page.html")
    with cache.whole(link) as file:
        file.write("new")
    assert link.is_symlink() and page.read_text() == "new" and page.stat().st_mode & 0o777 == 0o600
    dangling.symlink_to("made.html")
    with cache.whole(dangling) as file:
        file.write("made")
    assert dangling.is_symlink() and (tmp_path / "made.html").stat().st_mode & 0o777 == 0o644


def outputs(folder):
    """A path of each kind that cannot be written to, and a word of why."""
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "circle").symlink_to("circle")
    (folder / "fixed").write_text("kept")
    (folder / "fixed").chmod(0o444)
    (folder / "to_fixed").symlink_to("fixed")
    return {"folder": "a folder", "pipe": "a pipe", "circle": "a link in a circle", "fixed": "read-only", "to_fixed": "read-only",
            "nowhere/page": "its folder is missing", "fixed/page": "Not a directory", "x" * 300: "name too long", os.devnull: "a device"}


def test_what_is_no_plain_writable_file_is_refused_by_name(tmp_path):
    for name, words in outputs(tmp_path).items():
        path = tmp_path / name
        for use in (cache.destination, lambda path: cache.whole(path).__enter__()):
            with pytest.raises(ValueError, match=words) as error:
                use(path)
            assert f"output is {str(path)!r}" in str(error.value)
    assert (tmp_path / "fixed").read_text() == "kept" and (tmp_path / "pipe").is_fifo()


def test_a_folder_that_takes_no_file_is_found_before_the_work(tmp_path, monkeypatch):
    def refuse(**options):
        raise PermissionError(13, "Permission denied")
    monkeypatch.setattr(cache.tempfile, "TemporaryFile", refuse)            # root may write anywhere
    with pytest.raises(ValueError, match=r"page.html': its folder cannot be written to \(Permission denied\)"):
        cache.destination(tmp_path / "page.html")


def test_an_output_that_is_an_input_is_refused(tmp_path):
    items = tmp_path / "items.csv"
    items.write_text("item_id")
    (tmp_path / "link").symlink_to(items)
    os.link(items, tmp_path / "twin")
    for name in ("items.csv", "link", "twin", "../" + tmp_path.name + "/items.csv"):
        with pytest.raises(ValueError, match="which it would replace"):
            cache.destination(tmp_path / name, [tmp_path / "missing.csv", items])
    assert cache.destination(tmp_path / "new", [items]) == tmp_path / "new"


def test_the_code_version_follows_the_code(tmp_path, monkeypatch):
    assert cache.code_version() == cache.code_version() and len(cache.code_version()) == 64
    monkeypatch.setattr(cache, "ROOT", tmp_path)
    (tmp_path / "lib" / "deep").mkdir(parents=True)
    seen = {cache.code_version()}
    for name, text in (("lib/a.py", ""), ("lib/deep/a.py", ""), ("lib/deep/a.py", "x = 1\n"), ("lib/deep/b.py", "")):
        (tmp_path / name).write_text(text)
        seen.add(cache.code_version())
    assert len(seen) == 5
