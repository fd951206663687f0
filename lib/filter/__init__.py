"""A policy at work: one user's filter, which is asked about each item that arrives and told each rating that comes back.

filters: a user's filter and its state; shared: what the filters of all users read; vectors: items that are not in the
catalogue; files: a problem and its policy, and a belief, as JSON.  Knows policies and simulate, not experiments.
"""
from lib.filter.files import read, write
from lib.filter.filters import Filter
from lib.filter.shared import share

__all__ = ["Filter", "read", "share", "write"]
