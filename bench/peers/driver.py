"""A worker program per runtime, and a driver that asks each in turn."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.peers.stage import Stage

__all__ = ["OURS", "PLAIN", "Candidate", "Reply", "Worker", "as_a_person"]

PROJECT = Path(__file__).parents[2]
ANSWER_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Candidate:
    """One runtime: the worker module that speaks for it, and the interpreter whose environment has it."""

    name: str
    module: str
    python: Path = Path(sys.executable)
    profile: str = ""
    missing: str = ""
    """Why it cannot be measured here; empty if it can."""


PLAIN = Candidate("plain subprocess", "plain")
OURS = tuple(Candidate(f"ours, {name.upper()}", "ours", profile=name) for name in ("guarded", "standard", "trusted"))


@dataclass(frozen=True, slots=True)
class Reply:
    """What one call took and what came back."""

    milliseconds: float
    megabytes: float
    said: str
    raised: str


class Worker:
    """A running worker program; ask it to run scripts."""

    def __init__(self, candidate: Candidate, stage: Stage) -> None:
        environment = stage.environment()
        arguments: Sequence[str | Path] = [stage.skills]
        if candidate.profile:
            arguments = [stage.skills, candidate.profile, state_of(candidate, stage)]
            environment |= own_path()
        self.candidate = candidate
        self._log = stage.folder / f"{candidate.module}{candidate.profile}.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [candidate.python, "-m", f"bench.peers.workers.{candidate.module}", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=PROJECT,
                env=environment,
            )

    def run(self, script: str, *, skill: str = "work", timeout: int | None = None) -> Reply:
        """Asks and waits; a worker that is silent for long has failed."""
        self.ask(script, skill=skill, timeout=timeout)
        return self.answer()

    def ask(self, script: str, *, skill: str = "work", timeout: int | None = None) -> None:
        """Every question must be followed by its `answer`."""
        assert self._process.stdin is not None
        request = {"skill": skill, "script": script, "timeout": timeout}
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()

    def answers_within(self, seconds: float) -> bool:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        return bool(ready)

    def answer(self) -> Reply:
        assert self._process.stdout is not None
        line = self._process.stdout.readline() if self.answers_within(ANSWER_SECONDS) else b""
        if not line:
            raise RuntimeError(f"{self.candidate.name} gave no answer: {self._log.read_text()[-2000:]}")
        return Reply(**json.loads(line))

    def close(self) -> None:
        """Ends it; it has nothing to save."""
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def as_a_person(candidate: Candidate, stage: Stage, *words: str) -> None:
    """A command of skillkit that decides something, in the state folder that this candidate's worker has."""
    environment = stage.environment() | own_path() | {"UV_DEFAULT_INDEX": stage.index.address}
    places = ["--yes", "--skills", str(stage.skills), "--state-dir", str(state_of(candidate, stage))]
    command = [sys.executable, "-m", "skillkit", *words, *places]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise RuntimeError(f"skillkit {' '.join(words)}: {ended.stdout}{ended.stderr}")


def state_of(candidate: Candidate, stage: Stage) -> Path:
    return stage.folder / f"state-{candidate.profile}"


def own_path() -> dict[str, str]:
    """Only ours may be found this way: another package has its import name."""
    return {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
