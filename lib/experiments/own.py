"""The paper's claims on a reader's own Yelp folder, or arXiv snapshot and click log: one command, one table.

    python -m lib.experiments.own ratings FOLDER
    python -m lib.experiments.own documents SNAPSHOT CLICKS

Everything is as in the chapters on ratings and documents: the prior is learned from users set aside, the paper's five policies are
tuned on draws from it, and valued on others and on real users.  The rules that give a verdict are those of `lib.experiments.ledger`.
"""
import argparse
import os
from pathlib import Path
import sys

import pandas as pd

from lib import cache
from lib.experiments import ledger, runner, sources, specs
from lib.experiments.published import write
from lib.problem import as_choice, as_count, as_floats

SOURCES = {"ratings": ("rated", ("FOLDER",)), "documents": ("documents", ("SNAPSHOT", "CLICKS"))}
USERS = 20_000


def verdicts(name, users=USERS, costs=None):
    """The paper's claims about one of its streams, from two runs of the experiment on whatever data stand in its place.

    Parameters
    ----------
    name : {"ratings", "documents"}
    users : int
        Users on whom policies are valued; half as many on whom they are tuned.
    costs : array-like, optional
        By default those of the experiment.

    Returns
    -------
    DataFrame
        section, says, verdict, measured: a row for each claim.

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong, or the file and line.

    Examples
    --------
    >>> verdicts("films")
    Traceback (most recent call last):
    ValueError: name is 'films': it must be one of 'ratings', 'documents'
    """
    name, users = as_choice("name", name, tuple(SOURCES)), as_count("users", users, 2)
    stream = next(stream for stream in ledger.STREAMS if stream[0] == name)
    changes = {"replications": (users,) * 2, "tuning": (max(users // 2, 2),) * 2}
    if costs is not None:
        changes["costs"] = tuple(as_floats("costs", costs, 1).tolist())
    drawn, real = (runner.run(specs.SPECS[kind]._replace(**changes)) for kind in (name, f"{name}_held_out"))
    found = [*ledger.tightness_claims({name: ledger.shares(drawn)}),
             *ledger.claims_of_stream(stream, ledger.leads(drawn), ledger.leads(real, real=True))]
    return pd.DataFrame([claim[:4] for claim in found], columns=ledger.Claim._fields[:4])


def arguments(given):
    """The command line, parsed."""
    parser = argparse.ArgumentParser(prog="python -m lib.experiments.own", description=__doc__.split("\n")[0])
    kinds = parser.add_subparsers(dest="name", required=True)
    for name, (_, paths) in SOURCES.items():
        kind = kinds.add_parser(name, help=f"from {' and '.join(paths)}")
        for path in paths:
            kind.add_argument(path.lower(), metavar=path)
        kind.add_argument("--users", type=int, default=USERS, help=f"users to value policies on, {USERS} by default")
        kind.add_argument("--costs", type=float, nargs="+", help="costs, those of the chapter by default")
        kind.add_argument("--output", help="a CSV file for the table")
    return parser, parser.parse_args(given)


def main(given=None):
    """Run the command; the exit code."""
    parser, args = arguments(given)
    kind, names = SOURCES[args.name]
    paths = [getattr(args, name.lower()) for name in names]
    try:
        for path in paths:
            os.stat(path)
        if args.output:
            cache.destination(args.output, paths)
        os.environ[sources.SETTINGS[kind]] = os.pathsep.join(paths)
        found = verdicts(args.name, args.users, args.costs)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    for row in found.itertuples():
        print(f"{row.section:5} {row.verdict:17} {row.says}\n{'':24}{row.measured}")
    if args.output:
        write(Path(args.output), found.to_csv(index=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
