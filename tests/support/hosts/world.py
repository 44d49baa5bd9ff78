"""A throw-away home and project with one skill, and the programs that a person would have on the PATH."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pexpect

import skillkit
from skillkit.core.record import AuditLog
from skillkit.core.store.state import StateStore
from skillkit.core.store.world import World
from support.hosts.model import Call, ScriptedModel
from support.hosts.transcripts import Transcript

__all__ = ["PLANS", "SCRIPT_WORD", "SKILL", "TIMEOUT_SECONDS", "HostWorld", "wait_until"]

SKILL = "host-probe"
WORD = "marigold"
SCRIPT_WORD = "said-to-the-script"
"""Stands in the arguments of every process of a script, and of no other."""
TIMEOUT_SECONDS = 15
FILES = {
    f"skills/{SKILL}/SKILL.md": f"""---
name: {SKILL}
description: Greets, and waits. For trying out a host.
---
# Host probe

The word of this skill is {WORD} & nothing else. One script greets, the other counts.
""",
    f"skills/{SKILL}/scripts/greet.py": """'''Greets whoever is named.'''
import sys
print("hello", *sys.argv[1:])
""",
    f"skills/{SKILL}/scripts/slow.py": """'''Counts for ten minutes.'''
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", *sys.argv[1:]], start_new_session=True)
for number in range(6000):
    print("count", number, flush=True)
    time.sleep(0.1)
""",
    "skillkit.toml": f"[policy]\ntimeout_seconds = {TIMEOUT_SECONDS}\n",
}


def plans(token: str) -> dict[str, list[Call]]:
    greet = {"skill_name": SKILL, "script": "scripts/greet.py", "args": [f"{SCRIPT_WORD}-{token}"]}
    slow = {"skill_name": SKILL, "script": "scripts/slow.py", "args": [f"{SCRIPT_WORD}-{token}"]}
    return {
        "load": [Call("load_skill", {"skill_name": SKILL})],
        "greet": [Call("load_skill", {"skill_name": SKILL}), Call("skills_run_script", greet)],
        "cancel": [Call("skills_run_script", slow)],
        "timeout": [Call("skills_run_script", slow)],
    }


PLANS = plans


@dataclass
class HostWorld:
    """Everything of one host's session; its folder's name is in the environment of whatever is started here."""

    folder: Path
    transcript: Transcript
    programs: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        for path, text in FILES.items():
            file = self.project / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        self.home.mkdir()
        own = self.folder / "programs"
        own.mkdir()
        command = own / "skillkit"
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m skillkit "$@"\n', encoding="utf-8")
        command.chmod(0o755)
        self.programs = (own, *self.programs)

    @property
    def token(self) -> str:
        return self.folder.name

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def state(self) -> Path:
        return self.home / ".local/state/skillkit"

    def environment(self, model: ScriptedModel, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Built, not inherited: no key, no proxy and no setting of this machine; the way out of loopback is shut."""
        return {
            "HOME": str(self.home),
            "PATH": os.pathsep.join([*map(str, self.programs), os.environ["PATH"]]),
            "PYTHONPATH": str(Path(skillkit.__file__).parents[1]),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "SHELL": "/bin/bash",
            "TMPDIR": str(self.folder),
            "HTTPS_PROXY": model.address,
            "HTTP_PROXY": model.address,
            "NO_PROXY": "127.0.0.1,localhost",
            "https_proxy": model.address,
            "http_proxy": model.address,
            "no_proxy": "127.0.0.1,localhost",
            "DO_NOT_TRACK": "1",
            **(more or {}),
        }

    def skillkit(self, environment: Mapping[str, str], *words: str) -> str:
        """What the command says to a person at a terminal of their own, outside the host."""
        child = pexpect.spawn(
            sys.executable,
            ["-m", "skillkit", *words],
            cwd=str(self.project),
            env=dict(environment) | {"NO_COLOR": "1"},
            encoding="utf-8",
            timeout=60,
            dimensions=(60, 200),
        )
        said = str(child.read())
        child.close()
        self.transcript.write(f"$ skillkit {' '.join(words)} (exit {child.exitstatus})", said.splitlines())
        assert child.exitstatus == 0, said
        return said

    def answer_what_waits(self, environment: Mapping[str, str], option: str) -> bool:
        """Whether a question waited; it got this answer from a terminal."""
        if not self.state.exists():
            return False
        with World(self.state) as world:
            waiting = world.pending()
        if waiting:
            self.skillkit(environment, "approvals", "answer", waiting[0].id, option)
        return bool(waiting)

    def records(self, script: str = "") -> list[dict[str, Any]]:
        if not self.state.exists():
            return []
        store = StateStore(self.state)
        try:
            found = [{"kind": each.kind, **each.fields} for each in AuditLog(store).records()]
        finally:
            store.close()
        return [each for each in found if script in str(each.get("script"))]

    def processes(self, word: str = "") -> dict[int, str]:
        """Those that came from here, by what they were started with; `word` stands in their arguments."""
        found: dict[int, str] = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                words = (entry / "cmdline").read_bytes()
                told = words + (entry / "environ").read_bytes()
            except OSError:
                continue
            if self.token.encode() in told and word.encode() in words and words:
                found[int(entry.name)] = words.replace(b"\0", b" ").decode("utf-8", "replace")[:200]
        return found

    def own_processes(self) -> dict[int, str]:
        """Ours alone: the server, and what it runs."""
        return {each: words for each, words in self.processes().items() if "skillkit" in words or SCRIPT_WORD in words}

    def host_processes(self) -> dict[int, str]:
        """The host's own, such as a daemon that it leaves behind."""
        own = self.own_processes()
        return {each: words for each, words in self.processes().items() if each not in own}

    def end(self, processes: Mapping[int, str]) -> None:
        for each, words in processes.items():
            self.transcript.write(f"ENDED what was left: {words}")
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)


def wait_until(is_so: Callable[[], bool], what: str, seconds: float = 40, *, every: float = 0.1) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, f"never: {what}"
        time.sleep(every)
