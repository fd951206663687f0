"""Time and memory of streaming a Yelp-size file: python bench/load.py [--mb 100 200 400] [--out FILE]

Written files in the layout of the Yelp reviews (one in four users new, 15,000 businesses) are read
by `datasets.yelp`, and for comparison parsed line by line by orjson and by msgspec, and nothing else
done.  The same for an arXiv metadata snapshot.  Each measurement runs in a process of its own: CPU
seconds, and the peak of its resident memory, interpreter and libraries included.
"""
import argparse
import datetime
import json
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

CATEGORIES = ("Food, Shopping", "Restaurants, Nightlife", "Beauty & Spas", "Health & Medical", "Golf", None)


def write_yelp(folder, megabytes, text):
    """Business and review files of about `megabytes`; returns the number of reviews."""
    rng = random.Random(0)
    letters = "the food was très bon, we waited an hour \u2028 and then \\\"some\\\" more "
    texts = [(letters * (text // len(letters) + 2))[i:i + text] for i in range(60)]
    with open(folder / "business.json", "w", encoding="utf-8") as file:
        for b in range(15_000):
            row = {"business_id": f"b{b:021d}", "categories": rng.choice(CATEGORIES), "hours": None}
            file.write(json.dumps(row) + "\n")
    count = 0
    with open(folder / "review.json", "w", encoding="utf-8") as file:
        while file.tell() < megabytes * 1e6:
            for _ in range(1000):
                count += 1
                user = rng.randrange(1 + count // 4)
                row = {"review_id": f"r{count:021d}", "user_id": f"u{user:021d}",
                       "business_id": f"b{rng.randrange(15_000):021d}", "stars": float(rng.randint(1, 5)),
                       "useful": 0, "funny": 0, "cool": 0, "text": rng.choice(texts),
                       "date": f"20{rng.randint(10, 19)}-03-{rng.randint(1, 28):02d} 12:34:56"}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return count


def write_arxiv(folder, megabytes):
    """A snapshot of about `megabytes`, one paper in ten of cond-mat in 2014; returns the number of papers."""
    rng = random.Random(0)
    words = [f"word{i:c>3}".replace("0", "o") for i in range(500)]
    count = 0
    with open(folder / "review.json", "w", encoding="utf-8") as file:
        while file.tell() < megabytes * 1e6:
            for _ in range(1000):
                count += 1
                year, field = rng.choice([(2014, "cond-mat.soft"), *[(2015, "hep-th math.MP")] * 9])
                dates = [{"version": "v1", "created": f"Mon, 8 Sep {year} 17:01:44 GMT"}]
                row = {"id": f"{count:09d}", "submitter": None, "authors": "A. Author, B. Author",
                       "title": "Some title", "comments": None, "categories": field,
                       "abstract": " ".join(rng.choices(words, k=150)), "versions": dates,
                       "update_date": "2016-01-01", "authors_parsed": [["Author", "A.", ""]] * 2}
                file.write(json.dumps(row) + "\n")
    return count


def measure(job, folder):
    """CPU seconds of one job, and the peak of this process's memory in MB."""
    import msgspec
    import orjson

    from lib.datasets import _arxiv, yelp
    path = folder / "review.json"
    start = time.process_time()
    if job == "yelp":
        yelp(folder)
    elif job == "arxiv":
        _arxiv.papers(path)
    else:
        loads = orjson.loads if job == "orjson" else msgspec.json.Decoder().decode
        with open(path, "rb") as file:
            for line in file:
                loads(line)
    seconds = time.process_time() - start
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def child(job, folder):
    """The best of two runs of `measure` in fresh processes."""
    command = [sys.executable, __file__, "--measure", job, str(folder)]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() for _ in range(2)]
    return [min(map(float, column)) for column in zip(*runs)]


def row(kind, size, text):
    """One line of the table: a file of `size` megabytes, written, read three ways and removed."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        lines = write_yelp(folder, size, text) if kind == "yelp" else write_arxiv(folder, size)
        megabytes = (folder / "review.json").stat().st_size / 1e6
        orjson, msgspec, load = (child(job, folder) for job in ("orjson", "msgspec", kind))
    return (f"{kind:5} {megabytes:7.0f} {lines:9,} {orjson[0]:9.2f} {msgspec[0]:10.2f} {load[0]:7.2f} "
            f"{load[0] / orjson[0]:12.2f} {load[0] / megabytes * 1000:10.2f} {load[1]:8.0f}")


def write(line, path=None, mode="a"):
    """Print a line, and put it into a file where one is given."""
    print(line, flush=True)
    if path:
        with open(path, mode, encoding="utf-8") as file:
            print(line, file=file)


def machine():
    """Processor, system, versions, date and how busy the machine was, in two lines."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    model = next((line.split(": ")[1] for line in lines if line.startswith("model name")), platform.processor())
    packages = ", ".join(f"{name} {version(name)}" for name in ("msgspec", "orjson", "numpy"))
    return (f"{datetime.date.today()}, {model}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}\n"
            f"Python {platform.python_version()}, {packages}; CPU seconds, best of two processes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, nargs="+", default=[100, 200, 400], help="sizes of the files")
    parser.add_argument("--text", type=int, default=620, help="letters in a review; 620 gives Yelp's mean line")
    parser.add_argument("--out", help="a file that gets the table too")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(*measure(arguments.measure[0], Path(arguments.measure[1])))
        return
    write(machine(), arguments.out, "w")
    write("file       MB     lines  orjson s  msgspec s  load s  load/orjson  load s/GB  peak MB", arguments.out)
    for kind, sizes in (("yelp", arguments.mb), ("arxiv", arguments.mb[-1:])):
        for size in sizes:
            write(row(kind, size, arguments.text), arguments.out)


if __name__ == "__main__":
    main()
