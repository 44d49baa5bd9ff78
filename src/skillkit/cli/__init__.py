"""The command line: one small module per command. Here is what the number says that a command ends with.

A script's own exit code is passed on; these are ours.
"""

from __future__ import annotations

__all__ = ["INTERRUPTED", "NOT_FOUND", "OWN_FAILURE", "REFUSED", "SIGNAL_BASE", "WRONG_USAGE"]

WRONG_USAGE = 2
OWN_FAILURE = 125
REFUSED = 126
NOT_FOUND = 127
SIGNAL_BASE = 128
INTERRUPTED = 130
