"""What is run, as plain data: an experiment names its problem, costs, policies, users and sizes.

A spec is immutable, hashable and printable, and any machine that has lib and the data builds the same problem from it.
"""
from functools import lru_cache
import os
from typing import NamedTuple

from lib.experiments.problems import PROBLEMS
from lib.policies import grid
from lib.problem import as_made

PAPER = 100         # items a user meets in the paper's experiments; at gamma = .9 the rest is worth 2.7e-5 of hindsight
GRID = grid(("exploit", "thompson", "ucb", "dtd_ucb", "dtd_dp"))      # the families of the paper


class Spec(NamedTuple):
    """An experiment, as plain data.  Pairs are (default, publication) sizes."""

    name: str
    problem: str                            # a key of PROBLEMS, and
    options: tuple = ()                     # ((argument, value), ...) of that function
    costs: tuple = ()
    policies: tuple = GRID
    thetas: str = "prior"                   # users: "prior", drawn from it, or "held_out", real ones in turn
    horizon: int | None = None              # items a user meets; None: as `problem.effective_horizon` has it
    replications: tuple = (512, 40_000)     # users on whom everything is evaluated
    tuning: tuple = (512, 20_000)           # other users, on whom alpha is chosen
    sequences: tuple = (500, 20_000)        # item sequences for the bound by full observation
    tol: float | None = 1e-3                # aim for the relative width of the decomposition bound; None leaves it out but in `published`
    seed: int = 0
    reference: str = "UCB"                  # differences are to this policy, tuned


def size(default, publication):
    """`publication` where the environment variable BOOK_SIZE says so, else `default`.

    Raises
    ------
    ValueError
        When BOOK_SIZE is neither "default" nor "publication".
    """
    sizes = {"default": default, "publication": publication}
    name = os.environ.get("BOOK_SIZE", "default")
    if name not in sizes:
        raise ValueError(f"BOOK_SIZE is {name!r}: it must be one of {', '.join(sizes)}")
    return sizes[name]


STARS = (2.6, 2.8, 3.0, 3.2, 3.4, 3.5, 3.6, 3.7, 3.8, 3.9, 4.0, 4.2, 4.5, 4.8)
SHARES = (.2, .24, .29, .34, .39, .44, .49)
FIFTY = (.2, .25, .3, .35)
LIBRARY = (("articles", None), ("ratio", 1))            # every usable article
SPECS = {spec.name: spec for spec in (
    Spec("simulated", "simulated", horizon=PAPER,
         costs=(-1.0, -.5, 0.0, .2, .3, .4, .45, .5, .55, .6, .65, .7, .75, .8, .85, .9, 1.0, 1.1)),
    Spec("ratings", "rated", horizon=PAPER, costs=STARS),
    Spec("ratings_held_out", "rated", horizon=PAPER, costs=STARS, thetas="held_out"),
    Spec("documents", "documents", LIBRARY, SHARES, horizon=PAPER, replications=(128, 40_000), tuning=(128, 20_000),
         tol=None, seed=6),
    Spec("documents_held_out", "documents", LIBRARY, SHARES, horizon=PAPER, replications=(564, 10_000), tuning=(128, 10_000),
         tol=None, thetas="held_out", seed=6),
    Spec("documents_50", "documents", (*LIBRARY, ("topics", 50)), FIFTY, horizon=PAPER, replications=(32, 10_000),
         tuning=(32, 5_000), tol=None, seed=6))}


@lru_cache(maxsize=8)
def build(spec):
    """The (Problem, thetas) of a spec; thetas is None where users are drawn from the prior."""
    as_made("spec", spec, Spec, "lib.experiments.Spec")
    if spec.problem not in PROBLEMS:
        raise ValueError(f"{spec.name}: the problem is {spec.problem!r}, it must be one of {', '.join(PROBLEMS)}")
    if spec.thetas not in ("prior", "held_out"):
        raise ValueError(f'{spec.name}: thetas is {spec.thetas!r}, it must be "prior" or "held_out"')
    try:
        problem, thetas = PROBLEMS[spec.problem](**dict(spec.options))
    except TypeError as error:
        raise ValueError(f"{spec.name}: options is {spec.options!r}: {error}") from error
    if spec.thetas == "held_out" and (thetas is None or not len(thetas)):
        raise ValueError(f'{spec.name}: thetas is "held_out", {spec.problem} has no held-out users')
    return problem, thetas if spec.thetas == "held_out" else None
