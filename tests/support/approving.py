"""Managers that ask a person, and persons who answer when told to."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillkit import (
    TRUSTED,
    ApprovalUnavailableError,
    OptionAnswer,
    OptionRequest,
    ScriptExecutionResult,
    ScriptPolicy,
    SkillManager,
)
from skillkit.core.models.digest import manifest_of
from skillkit.core.run.tiers import sandbox_for
from skillkit.core.store.state import StateStore
from skillkit.core.store.trust import StandingApprovals
from support.commands import bounds_under
from support.running import made_manager

__all__ = ["ASKING", "FILES", "Gate", "asking_manager", "change", "run", "skill", "trust_demo"]

FILES = {"scripts/run.sh": 'echo ran "$@"\n', "scripts/other.sh": "echo other\n", "lib/data.txt": "data\n"}
ASKING = replace(TRUSTED, approval="first_run")
"""A person is asked, and no walls cost time: these are facts about the asking."""


def asking_manager(folder: Path, approver: object = None, **settings: Any) -> SkillManager:
    return made_manager(folder, FILES, **{"policy": ASKING, "session_id": "s", "approver": approver, **settings})


def run(manager: SkillManager, *argv: str, script: str = "run", **call: Any) -> ScriptExecutionResult:
    return manager.execute_skill_script("demo", script, argv=argv, **call)


def skill(folder: Path) -> Path:
    return folder / "skills/demo"


def trust_demo(folder: Path, policy: ScriptPolicy = TRUSTED) -> None:
    walls = bounds_under(policy, tier=sandbox_for(policy).tier)
    store = StateStore(folder / "state")
    digest = manifest_of(skill(folder)).digest
    StandingApprovals(store).trust(skill="demo", folder=skill(folder), digest=digest, channel="cli", walls=walls)
    store.close()


def change(folder: Path) -> None:
    (folder / "scripts/run.sh").write_text("echo other\n")


class Gate:
    """A person who answers when told to, and counts how often they were asked."""

    channel = "gate"

    def __init__(self) -> None:
        self.requests: list[OptionRequest] = []
        self.answers: list[str] = []
        self._changed = threading.Condition()

    def ask(self, request: OptionRequest, cancel: Any = None) -> OptionAnswer:
        with self._changed:
            self.requests.append(request)
            while not self.answers:
                self._changed.wait(0.02)
                if cancel is not None and cancel.is_set():
                    raise ApprovalUnavailableError("withdrawn", reasons=["withdrawn"])
            return OptionAnswer(self.answers.pop(0), self.channel, time.time(), request.id)

    def say(self, *options: str) -> None:
        with self._changed:
            self.answers += options
            self._changed.notify_all()
