"""A problem and its policy, and the state of a filter, as JSON: versioned, and checked when they are read.

Numbers are written so that the same floating-point numbers come back.
"""
import json

import numpy as np

from lib import cache
from lib.policies.rules import Policy, entry
from lib.problem import as_path, checked, make_problem

VERSION = 1
FIELDS = "items", "probs", "mu", "Sigma", "noise_sd", "cost", "gamma", "noise"


def plain(value):
    """Arrays as lists, NumPy's numbers as Python's, the rest as it is."""
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def sealed(kind, content):
    """JSON of a dict, with its kind, a version and a checksum."""
    text = json.dumps({name: plain(value) for name, value in content.items()}, allow_nan=False)
    return f'{{"kind": "{kind}", "version": {VERSION}, "check": "{cache.digest(text)[:16]}", "content": {text}}}\n'


def opened(kind, text, name):
    """The dict that `sealed` wrote, or ValueError saying what is wrong with `name`."""
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{name} is no JSON: {str(error)[:100]}") from error
    if not isinstance(found, dict) or found.get("kind") != kind or not isinstance(found.get("content"), dict):
        raise ValueError(f"{name} does not hold a {kind}: lib.filter did not write it")
    if found.get("version") != VERSION:
        raise ValueError(f"{name} has version {found.get('version')!r}, this is lib.filter's version {VERSION}")
    if found.get("check") != cache.digest(json.dumps(found["content"]))[:16]:
        raise ValueError(f"{name} is damaged: its checksum is not that of its content")
    return found["content"]


def write(path, problem, policy):
    """Write a problem and its policy to a file, whole or not at all.

    Parameters
    ----------
    path : str or Path
    problem : Problem
    policy : Policy

    Raises
    ------
    ValueError
        Naming the argument and the value that is wrong.
    """
    entry(policy, "policy")
    problem = checked(problem)
    try:
        cache.destination(as_path("path", path))
    except ValueError as error:
        raise ValueError(f"path: {error}") from error
    text = sealed("problem and policy", {**problem._asdict(), "policy": policy._asdict()})
    with cache.whole(path) as file:
        file.write(text)


def read(path):
    """The problem and the policy that `write` wrote.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    Problem, Policy

    Raises
    ------
    ValueError
        Naming the file and what is wrong with it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from lib.policies import ucb
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "stream.json"
    >>> write(path, make_problem([[1]], [1], [0], [[1]], 1, .2, .9), ucb(.5))
    >>> read(path)[1].alpha
    0.5
    """
    try:
        with open(as_path("path", path), encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"path {path} cannot be read: {error}") from error
    content = opened("problem and policy", text, f"path {path}")
    missing = {*FIELDS, "policy"} - content.keys()
    if missing:
        raise ValueError(f"path {path} lacks {', '.join(sorted(missing))}")
    try:
        policy = Policy(**content["policy"])
        entry(policy, "policy")
        return make_problem(*(content[name] for name in FIELDS)), policy
    except (TypeError, ValueError) as error:
        raise ValueError(f"path {path}: {error}") from error
