"""A stream of your own, analysed from end to end: `python -m lib.report items.csv ratings.csv --cost 3.5`.

analysis: what is computed; checks: what to be warned of; page: how it is shown, by the template page.html, and the command
line; progress: what it is doing; interrupt: how Ctrl-C ends it.
"""
import signal
import sys

from lib.report.interrupt import stop

if sys.argv[:1] == ["-m"] and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, stop)          # `python -m lib.report` is starting: before the slow imports

from lib.report.analysis import Analysis, analyse  # noqa: E402
from lib.report.page import main  # noqa: E402

__all__ = ["Analysis", "analyse", "main"]
