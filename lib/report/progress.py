"""What a long analysis is doing, in a bar on a terminal; silent elsewhere."""
from contextlib import contextmanager
from contextvars import ContextVar
import os

from tqdm import tqdm

_BAR = ContextVar("bar", default=None)


@contextmanager
def shown(steps):
    """A bar of so many steps on stderr while the block runs, where that is a terminal and not continuous integration."""
    silent = True if os.environ.get("CI") else None          # None: silent unless a terminal watches
    with tqdm(total=steps, disable=silent, leave=False, bar_format="{desc:<44} {bar} {n_fmt}/{total_fmt} [{elapsed}]") as bar:
        token = _BAR.set(bar)
        try:
            yield bar
        finally:
            _BAR.reset(token)


def step(doing):
    """The step before has ended and `doing` begins; outside of `shown` nothing happens."""
    bar = _BAR.get()
    if bar is not None and not bar.disable:
        if bar.desc:
            bar.update(min(1, bar.total - bar.n))
        bar.set_description_str(doing)
