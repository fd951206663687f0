"""Pieces of a long computation: found on disk, computed here, or computed on a cluster; handed back in order."""
from collections import deque
import os
import sys

from tqdm import tqdm

from lib import store


def results(compute, tasks, key, folder=None, client=None):
    """The arrays of each task, in the order of the tasks, as they become known (a generator).

    Parameters
    ----------
    compute : function
        From a task to a dict of arrays; of a module that every machine can import.
    tasks : sequence
        Plain data.
    key : function
        From a task to the key of everything its arrays depend on.
    folder : path, optional
        Where finished arrays are kept; those found there under their key are not computed again.
    client : dask.distributed.Client, optional
        Computes on its cluster.  A worker checks that it arrives at the same key, so that one with other
        code or other data is an error and not a wrong number.

    Yields
    ------
    dict of arrays
    """
    ahead, width = deque(), 1 if client is None else 4 * max(sum(client.nthreads().values()), 1)

    def finish(task, name, arrays, future):
        if arrays is None:
            arrays = compute(task) if future is None else future.result()
            if folder:
                store.save(folder, name, arrays)
        return arrays

    try:
        for task in tasks:
            name = key(task)
            arrays = store.load(folder, name) if folder else None
            future = None
            if arrays is None and client is not None:
                future = client.submit(checked, compute, key, task, name, pure=False)
            ahead.append((task, name, arrays, future))
            if len(ahead) == width:
                yield finish(*ahead.popleft())
        while ahead:
            yield finish(*ahead.popleft())
    finally:
        for *_, future in ahead:                # stopped early: what a cluster has not begun need not begin
            if future is not None:
                future.cancel()


def checked(compute, key, task, name):
    """`compute(task)` on a worker whose code and data are the client's."""
    if key(task) != name:
        raise RuntimeError("this worker's code, packages or data are not the client's: install the same on both")
    return compute(task)


def bar(total, progress=None):
    """A tqdm bar of `total` steps on stderr; silent in continuous integration, in the built book and off a terminal.

    `progress` True or False decides instead.
    """
    if progress is None:
        quiet = os.environ.get("CI") or os.environ.get("BOOK_BUILD")
        progress = not quiet and ("ipykernel" in sys.modules or sys.stderr.isatty())
    return tqdm(total=total, disable=not progress, unit="chunk", smoothing=0)
