"""Tables kept in memory."""
from concurrent.futures import ThreadPoolExecutor
import sys

import numpy as np
import pytest

from lib import grids, sweep


@pytest.fixture
def tiny(monkeypatch):
    """Tables of 320 bytes that cost nothing, in a memory for fifty of them, under threads that change often."""
    monkeypatch.delenv("BOOK_TABLES", raising=False)
    monkeypatch.setattr(grids, "MEMORY", type(grids.MEMORY)())
    monkeypatch.setattr(grids, "REMEMBER", 50 * 320)
    monkeypatch.setattr(grids, "solve_side", lambda *_: sweep.Grid(*[np.zeros(40)] * len(sweep.Grid._fields)))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_threads_share_the_memory(tiny):
    one = np.ones(1)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: grids.stored_side(0, np.array([float(i % 120)]), one, one, .9, 1., (1,)), range(5000)))
    assert 1 <= len(grids.MEMORY) <= 50
