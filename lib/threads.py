"""Work in threads: compiled kernels let go of Python's lock (nogil), so that they run side by side.

Results do not depend on the number of threads, which is numba's (NUMBA_NUM_THREADS): every piece of work is done by
itself, and the results come back in order.
"""
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np


def side_by_side(work, pieces):
    """[work(piece) for piece in pieces] of a sized collection, by as many threads as numba would use.

    The first error ends it: pieces not begun are left out.

    Examples
    --------
    >>> side_by_side(abs, [-1, 2])
    [1, 2]
    """
    results, left = [None] * len(pieces), iter(enumerate(pieces))
    threads = max(min(numba.get_num_threads(), len(pieces)), 1)

    def go(_):
        try:
            for n, piece in left:       # shared by the threads, so that one holds one piece at a time
                results[n] = work(piece)
        except BaseException:
            for _ in left:
                pass
            raise

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(go, range(threads)))
    return results


def by_rows(work, count, axis=0):
    """`work(rows)` of slices that share out `count` rows, in threads, put together along an axis.

    Examples
    --------
    >>> by_rows(lambda rows: 10 * np.arange(3)[rows], 3)
    array([ 0, 10, 20])
    """
    return np.concatenate(side_by_side(work, shares(count)), axis=axis)


def shares(count, most=64):
    """Slices that share out `count` rows, at most `most` of them, of nearly equal length; an empty one for no row.

    Examples
    --------
    >>> shares(3, 2), shares(0)
    ([slice(0, 1, None), slice(1, 3, None)], [slice(0, 0, None)])
    """
    parts = max(min(most, count), 1)
    ends = [count * n // parts for n in range(parts + 1)]
    return [slice(first, end) for first, end in zip(ends, ends[1:])]
