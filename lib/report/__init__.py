"""A stream of your own, analysed from end to end: `python -m lib.report items.csv ratings.csv --cost 3.5`.

analysis: what is computed; checks: what to be warned of; page: how it is shown, and the command line.
"""
from lib.report.analysis import Analysis, analyse
from lib.report.page import main

__all__ = ["Analysis", "analyse", "main"]
