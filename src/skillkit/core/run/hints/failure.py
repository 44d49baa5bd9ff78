"""What is known of a run that failed, for whoever looks for the cause."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from skillkit.core.values.runs import ScriptCommand

__all__ = ["LINES", "Failure", "tail"]

TAIL, LINES = 8_000, 60  # characters and lines: the cause stands at the end
READ_BYTES = 1_000_000


@dataclass(frozen=True)
class Failure:
    """A command as it was decided about, and how it ended."""

    command: ScriptCommand
    stdout: str
    stderr: str
    timed_out: bool = False
    tier: str = "none"
    has_network: bool = True
    caller: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    """The environment that skillkit was started in."""

    @cached_property
    def script(self) -> str:
        """Its text; empty for a program and for what cannot be read any more."""
        if self.command.is_program:
            return ""
        try:
            with open(self.command.script_path, "rb") as file:
                return file.read(READ_BYTES).decode("utf-8", "replace")
        except OSError:
            return ""

    @property
    def own_files(self) -> tuple[str, ...]:
        """The skill's, by relative path."""
        return tuple(name for name, _ in self.command.manifest.entries) if self.command.manifest else ()


def tail(text: str) -> list[str]:
    """The last lines of what was written."""
    return text[-TAIL:].splitlines()[-LINES:]
