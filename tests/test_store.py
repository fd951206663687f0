"""Arrays on disk: all or nothing, and nothing foreign."""
import numpy as np

from lib import cache


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
    for content in (b"", whole[:50], whole[:-30], whole[:4000] + b"\xff\xff\xff\xff" + whole[4004:], b"PK nonsense"):
        (tmp_path / "k.npz").write_bytes(content)
        assert cache.load(tmp_path, "k") is None
    (tmp_path / "other.npz").write_bytes(whole)
    assert cache.load(tmp_path, "other") is None
    np.savez(tmp_path / "pickled.npz", key=np.array("pickled"), a=np.array([{}], dtype=object))
    assert cache.load(tmp_path, "pickled") is None


def test_a_failed_save_leaves_nothing(tmp_path):
    class Wrong:
        def __array__(self, *args, **kwargs):
            raise RuntimeError("no array")
    try:
        cache.save(tmp_path, "k", {"a": Wrong()})
    except RuntimeError:
        pass
    assert list(tmp_path.iterdir()) == []


def test_the_code_version_follows_the_code(tmp_path, monkeypatch):
    assert cache.code_version() == cache.code_version() and len(cache.code_version()) == 64
    monkeypatch.setattr(cache, "ROOT", tmp_path)
    (tmp_path / "lib" / "deep").mkdir(parents=True)
    seen = {cache.code_version()}
    for name, text in (("lib/a.py", ""), ("lib/deep/a.py", ""), ("lib/deep/a.py", "x = 1\n"), ("lib/deep/b.py", "")):
        (tmp_path / name).write_text(text)
        seen.add(cache.code_version())
    assert len(seen) == 5
