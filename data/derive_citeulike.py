"""Derive data/citeulike from the raw citeulike-t files: python data/derive_citeulike.py FOLDER --topics 50"""
import argparse
import hashlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.datasets import _citeulike  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="folder that holds users.dat, mult.dat and vocabulary.dat")
    parser.add_argument("--topics", type=int, choices=list(_citeulike.STORED), default=10)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    out = arguments.out or _citeulike.STORED[arguments.topics]
    out.parent.mkdir(parents=True, exist_ok=True)
    _citeulike.save(_citeulike.derive(arguments.folder, arguments.topics), out)
    content = out.read_bytes()
    print(f"{out}: {len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
