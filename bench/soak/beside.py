"""The part of the soak that runs on workers: a program of its own (`fleet.py`), told when to work, and asked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bench.proof.database import is_installed

__all__ = ["Fleet"]

END_SECONDS = 300


class Fleet:
    """Where the servers are not installed there is none, and that is told."""

    def __init__(self, process: subprocess.Popen[str] | None) -> None:
        self._process = process
        self.pid = process.pid if process else 0
        self._readings: list[dict[str, Any]] = []

    @classmethod
    @contextmanager
    def beside(cls) -> Iterator[Fleet]:
        """Away from the soak's own folder for temporary files: it has workers and servers that stay."""
        if not (is_installed() and shutil.which("redis-server")):
            yield cls(None)
            return
        environment = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
        words = [sys.executable, "-m", "bench.soak.fleet"]
        with subprocess.Popen(
            words, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            fleet = cls(process)
            yield fleet
            assert process.stdin is not None
            process.stdin.close()
            fleet.wait()
            process.wait(END_SECONDS)

    def begin(self, seconds: float) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            print(seconds, file=self._process.stdin, flush=True)

    def wait(self) -> None:
        """Until it has worked, and nothing of it runs."""
        if self._process is not None:
            assert self._process.stdout is not None
            self._readings.append(json.loads(self._process.stdout.readline() or "{}"))

    def told(self) -> str:
        if not self._readings:
            return "no servers for a fleet here"
        return f"{self._readings[-1].get('runs', 0):,} runs on two workers"

    def checks(self, most_growth: Callable[[float], float]) -> Iterator[tuple[str, bool, str]]:
        if self._process is None:
            return
        *readings, last = self._readings
        wrong = last.get("wrong", ["it ended"])
        yield "every run on a worker ended as it must", not wrong, "; ".join(wrong)
        yield "each is on record once, and the record verifies", bool(last.get("verified")), ""
        for name in ("front", "workers"):
            first, after = (readings[number].get(name, 0.0) for number in (0, -1))
            is_flat = first > 0 and after - first < most_growth(first)
            yield f"memory of the fleet's {name} stayed flat", is_flat, f"{after - first:+.1f} MB of {first:.0f}"
