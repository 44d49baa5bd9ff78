"""A skill's Python modules, compiled once -> runs that need not compile them; nothing about a run looks different.

Theory of operation. Inside walls Python may not write compiled files, so each run compiles every module of its skill
anew. After a run of a script that imports some, they are compiled in the background (`compiler`), by the interpreter
that will use them, inside walls with nothing but the skill in them, and kept beside the skill's copy, bound to its
digest. The next run is given them in memory (`hook`). A script never writes them, and they serve no other content: what
came out of the walls is believed only for files whose hash is the manifest's.

Nothing of the skill runs for that: to compile is to parse. What makes a compiler crash, hang or grow is left out.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from skillkit.core.exceptions import SkillKitError
from skillkit.core.run.compiled.making import LONGEST_SECONDS, Job, Preface, has_modules, loaded, made
from skillkit.core.run.process import can_preface
from skillkit.core.store.compiled import CompiledFiles, interpreter_key
from skillkit.core.values.runs import Manifest, ScriptCommand

__all__ = ["Compiled", "Job", "Preface"]

KEPT = 8


class Compiled:
    """What is kept of one world."""

    def __init__(self, snapshots: Path) -> None:
        self._files = CompiledFiles(snapshots)
        self._known: dict[tuple[str, str], Preface] = {}
        self._failed: set[tuple[str, str]] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def preface(self, job: Job, environment: Mapping[str, str], left: ExitStack) -> Preface | None:
        """What this run is given; None where it gains nothing. What nobody made yet is made after it: `left` ends."""
        if not self._is_for(job.command, job.manifest, environment) or not job.sandbox.has_walls:
            return None
        key = job.command.digest, interpreter_key(job.command.argv[0])
        found = self._known.get(key) or self._read(key)
        if found is None:
            left.callback(self._make_soon, job, key)
            return None
        return found if job.command.script_name in found.users else None

    def _is_for(self, command: ScriptCommand, manifest: Manifest, environment: Mapping[str, str]) -> bool:
        """Whether it is a Python script, started as usual, of a skill that has modules beside it."""
        if command.interpreter != "python3" or command.is_program or not has_modules(manifest):
            return False
        from skillkit.core.run.warm.python import HARMLESS

        steering = {name for name in environment if name.startswith("PYTHON")} - HARMLESS - {"PYTHONUSERBASE"}
        # The interpreter and its script: options may keep it from reading what it is given.
        is_plain = len(command.argv) - len(command.script_arguments) == len(("python3", "script"))
        return is_plain and not steering and can_preface()

    def _read(self, key: tuple[str, str]) -> Preface | None:
        content = self._files.read(*key)
        if content is None:
            return None
        try:
            found = loaded(content)
        except (ValueError, KeyError, TypeError):  # damaged; it is made anew
            return None
        for oldest in list(self._known)[: max(0, len(self._known) + 1 - KEPT)]:
            self._known.pop(oldest, None)
        self._known[key] = found
        return found

    def _make_soon(self, job: Job, key: tuple[str, str]) -> None:
        """In the background, one at a time; whoever comes meanwhile tries again after the next run."""
        if key in self._failed or not self._lock.acquire(blocking=False):
            return
        try:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._make, args=(job, key), name="skillkit compiled", daemon=True
                )
                self._thread.start()
        finally:
            self._lock.release()

    def close(self) -> None:
        """What is being made is worth the moment that it takes; it has an end."""
        if (thread := self._thread) is not None and thread is not threading.current_thread():
            thread.join(LONGEST_SECONDS)

    def _make(self, job: Job, key: tuple[str, str]) -> None:
        try:
            content = made(job)
        except (SkillKitError, OSError, ValueError):
            self._failed.add(key)  # the walls, not the skill: another process may have better luck
            return
        with suppress(SkillKitError, OSError):
            self._files.write(*key, content)
