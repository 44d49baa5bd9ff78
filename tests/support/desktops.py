"""A desktop for tests: a screen's name, and programs on PATH that note what they were started with."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from support.running import wait_for

__all__ = ["Desktop"]

# Notes its words, and does what the test wants of it.
PROGRAM = """#!{python}
import json, os, sys, time
with open({notes!r}, "a") as notes:
    notes.write(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]) + "\\n")
{body}
"""


class Desktop:
    """What a person's desktop would have been asked to show."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.programs = folder / "programs"
        self.programs.mkdir()
        self._notes = folder / "notes"
        monkeypatch.setenv("PATH", f"{self.programs}{os.pathsep}/usr/bin{os.pathsep}/bin")
        monkeypatch.setenv("DISPLAY", ":99")

    def install(self, name: str, body: str = "") -> Path:
        path = self.programs / name
        path.write_text(PROGRAM.format(python=sys.executable, notes=str(self._notes), body=body))
        path.chmod(0o755)
        return path

    def started(self, name: str) -> list[list[str]]:
        """The words of every start of a program, in order."""
        lines = self._notes.read_text().splitlines() if self._notes.exists() else []
        return [said[1:] for said in map(json.loads, lines) if said[0] == name]

    def wait_for(self, name: str, *, times: int = 1) -> Any:
        assert wait_for(lambda: len(self.started(name)) >= times, 20), f"{name} was not started {times} times"
        return self.started(name)[-1]
