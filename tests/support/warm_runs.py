"""`pytest --warm`: every run that can be started ahead is. Each gets a spare of its own, made and ready before it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import pytest

from skillkit import ScriptPolicy
from skillkit.core.exceptions import SkillKitError
from skillkit.core.run import warm
from skillkit.core.run.place import Here, Place
from skillkit.core.run.reach import runs_in_place
from skillkit.core.run.warm.python import LEFT_OPEN
from skillkit.core.run.warm.spare import Spare, Unready
from skillkit.core.run.warm.spares import spares
from skillkit.core.run.work import open_home
from skillkit.core.values.runs import ScriptCommand

READY_SECONDS = 20.0
started: Counter[str] = Counter()
is_forced = False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--warm", action="store_true", help="start every run ahead that can be")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A line of each process that ran tests, wherever its output goes."""
    told = os.environ.get("SKILLKIT_TEST_STARTS")
    if session.config.getoption("--warm") and told and started:
        with open(told, "a", encoding="ascii") as file:
            file.write(f"{started['warm']} {started['cold']}\n")


@pytest.fixture(autouse=True)
def warm_runs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.config.getoption("--warm"):
        _force(monkeypatch)


@pytest.fixture(autouse=True)
def own_spares() -> Iterator[None]:
    """Spares are the process's: one that a test left, with its manager open, would be counted and seen by the next."""
    yield
    spares.close_all(os.getpid())


class _MadeWhenAsked(warm.Readiness):
    """Instead of one that expects the next run."""

    policy: ScriptPolicy
    in_place = False

    def __init__(self, here: Here) -> None:
        super().__init__()
        self._here = here

    def take(self, command: ScriptCommand) -> Spare | None:
        here, kind, fed = self._here, warm.kind_of(command), bool(command.stdin)
        if self._begins_a_home(command):
            return None
        try:
            keeps = self.policy.home == "kept" and not self.policy.allow_filesystem and not command.is_program
            found = here.homes.find(command.skill_name, command.base_directory) if keeps else None
            home = found or open_home(here.homes, kind, self.policy)  # one that is there is opened by the run
            ahead = partial(here._ahead, home=home, in_place=self.in_place)
            tidy = here.work_folders.tidy
            spare = warm.make_spare(kind, self.policy, ahead, tidy, 1 << 30, has_input=fed)
        except (Unready, SkillKitError, OSError, ValueError):
            return None
        until = time.monotonic() + READY_SECONDS
        while not (spare.is_ready or spare.is_spoiled) and time.monotonic() < until:
            spare.look(0.05)
        if spare.is_ready and not spare.is_spoiled:
            return spare
        spare.discard()
        return None

    def _begins_a_home(self, command: ScriptCommand) -> bool:
        """Nothing is made ahead for the first run of changed content, and to make it here would open its home."""
        if self.policy.home != "kept" or self.policy.approval == "never":
            return False
        found = self._here.homes.find(command.skill_name, command.base_directory)
        return found is None or found.digest != command.digest

    def expect(self, *_: object, **__: object) -> None:
        """Each is made when it is asked for."""


def _force(monkeypatch: pytest.MonkeyPatch) -> None:
    begin, prepare, run = Here.__init__, Here.prepare, Place.run

    def with_readiness(self: Here, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        self.warm = _MadeWhenAsked(self)

    def with_policy(self: Here, prepared: Any, policy: ScriptPolicy, **options: Any) -> Place:
        if isinstance(self.warm, _MadeWhenAsked):
            self.warm.policy = policy
            self.warm.in_place = runs_in_place(prepared, policy, mounts=self._sandbox().shows_snapshot)
        return prepare(self, prepared, policy, **options)

    def counted(self: Place, control: Any) -> Any:
        ran = run(self, control)
        if ran.result is not None:
            started[ran.result.isolation.start] += 1
        return ran

    monkeypatch.setattr(Here, "__init__", with_readiness)
    monkeypatch.setattr(Here, "prepare", with_policy)
    monkeypatch.setattr(Place, "run", counted)
    monkeypatch.setitem(globals(), "is_forced", True)


# What tests of spares themselves use.

WARM: dict[str, Any] = {
    "allow_scripts": True,
    "approval": "never",
    "sandbox": "required",
    "home": "kept",
    "warm": "auto",
}


def can_have_spares() -> bool:
    from skillkit.core.run.tiers import machine_tiers, mounter_works

    return any(each.tier == "bubblewrap" and each.sandbox for each in machine_tiers()) and mounter_works()


needs_spares = pytest.mark.skipif(
    "not __import__('support.warm_runs').warm_runs.can_have_spares()", reason="no bubblewrap"
)


@cache
def can_wait_under_landlock() -> bool:
    """Not with a libffi that keeps its own file open: there a script would see that it was called."""
    words = (shutil.which("python3") or sys.executable, "-I", "-S", "-c", LEFT_OPEN)
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout == "0\n"


def leave_where_none_wait() -> None:
    from skillkit.core.run import tiers

    found = vars(tiers)["this_machines"].strongest(vars(tiers)["_probe"])
    if found is not None and found.tier == "landlock" and not can_wait_under_landlock():
        pytest.skip("in these walls no python3 waits whose libffi keeps its own file open")


def wait_for_spare(seconds: float = READY_SECONDS, count: int = 1) -> bool:
    """Whether so many are ready by then."""
    leave_where_forced()
    leave_where_none_wait()
    until = time.monotonic() + seconds
    while spares.count() < count and time.monotonic() < until:
        time.sleep(0.005)
    return spares.count() >= count


def leave_where_forced() -> None:
    """For tests of the spares themselves: there each run has one that is made for it."""
    if is_forced:
        pytest.skip("about spares that wait, and each run has one of its own here")


@contextmanager
def only(tier: str) -> Iterator[None]:
    """As if this machine had no other kind of walls."""
    from skillkit.core.run import tiers
    from skillkit.core.run.sandbox.choose import Choice

    usual = vars(tiers)["this_machines"]
    sandbox = next((each.sandbox for each in tiers.machine_tiers() if each.tier == tier and each.sandbox), None)
    if sandbox is None:
        pytest.skip(f"no {tier}")
    vars(tiers)["this_machines"] = Choice({tier: lambda: sandbox})
    try:
        yield
    finally:
        vars(tiers)["this_machines"] = usual


def cold_and_warm(folder: Any, text: str, files: dict[str, str], *, policy: Any = None, **call: Any) -> Any:
    """The same call twice: the second finds a spare ready."""
    from textwrap import dedent

    from skillkit import ScriptPolicy
    from support.running import made_manager

    leave_where_forced()
    call.setdefault("workspace", None)
    workspace = call.pop("workspace")
    scripts = {"scripts/run.py": dedent(text), **files}
    with made_manager(folder, scripts, policy=ScriptPolicy(**(policy or WARM)), workspace=workspace) as manager:
        cold = manager.execute_skill_script("demo", "run", **call)
        assert cold.isolation.start == "cold"
        assert wait_for_spare(), "no spare came to be"
        return cold, manager.execute_skill_script("demo", "run", **call)
