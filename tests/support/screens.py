"""What a command shows on a terminal of some width."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pexpect

__all__ = ["on_screen"]


def on_screen(*words: str | Path, width: int, typed: str = "") -> list[str]:
    """Its lines, without colours; `typed` is what a person answers."""
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    child = pexpect.spawn(
        sys.executable,
        ["-m", "skillkit", *map(str, words)],
        env={**environment, "NO_COLOR": "1"},
        dimensions=(200, width),
        encoding="utf-8",
        timeout=60,
    )
    child.send(typed)
    seen = child.read()
    child.close()
    return str(seen).splitlines()
