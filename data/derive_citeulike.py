"""Derive data/citeulike/citeulike.npz from the raw citeulike-t files: python data/derive_citeulike.py FOLDER"""
import argparse
import hashlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.datasets import _citeulike  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="folder that holds users.dat, mult.dat and vocabulary.dat")
    parser.add_argument("--out", type=Path, default=_citeulike.STORED)
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    _citeulike.save(_citeulike.derive(arguments.folder), arguments.out)
    content = arguments.out.read_bytes()
    print(f"{arguments.out}: {len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
