"""Requests, one JSON line each -> scripts run by one runtime, with the time and memory that the call took.

Standard library only: this runs in every runtime's own environment.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["INTERPRETERS", "Make", "Run", "serve", "shell_line"]

Run = Callable[[str, str], object]
"""Skill and script name -> the runtime's own answer."""
Make = Callable[[Path, int | None], Run]
"""Folder of skills, and a timeout or the runtime's default -> what runs their scripts."""

INTERPRETERS = {".sh": "bash", ".py": "python3"}
SHOWN_CHARACTERS = 4000
RESET_PEAK = "5"


def serve(make: Make, told: Callable[[Any], str] = str) -> None:
    """Answers until the driver closes the pipe; the folder of skills is the first argument."""
    # A script or a library that reads the worker's input or prints to its output must not meet the driver's lines.
    requests, replies = os.fdopen(os.dup(0), "r"), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    skills = Path(sys.argv[1])
    made = cache(lambda timeout: make(skills, timeout))
    for line in requests:
        request = json.loads(line)
        run = made(request["timeout"])
        print(json.dumps(answered(run, request["skill"], request["script"], told)), file=replies, flush=True)


def answered(run: Run, skill: str, script: str, told: Callable[[Any], str]) -> dict[str, object]:
    """What is told of the answer is made after the measuring: it is the driver's wish, not the runtime's work."""
    Path("/proc/self/clear_refs").write_text(RESET_PEAK)
    before, raised = memory("VmRSS"), ""
    answer: object
    started = time.perf_counter()
    try:
        answer = run(skill, script)
    except Exception as error:  # noqa: BLE001 - whatever a runtime raises is its answer
        answer, raised = error, type(error).__name__
    took, grown = time.perf_counter() - started, memory("VmHWM") - before
    said = shown(f"{raised}: {answer}" if raised else told(answer))
    return {"milliseconds": took * 1000, "megabytes": grown, "said": said, "raised": raised}


def shell_line(script: Path) -> str:
    """What a model would write that has only a shell."""
    return shlex.join([INTERPRETERS[script.suffix], str(script)])


def memory(name: str) -> float:
    found = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def shown(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS // 2] + text[-SHOWN_CHARACTERS // 2 :]
