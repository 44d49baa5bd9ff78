"""The Windows job object, as far as it can be shown elsewhere: structures, the order of calls, and its policy."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path

import pytest
from support.running import made_manager

from skillkit import STANDARD, Limits, SandboxUnavailableError, ScriptPolicy
from skillkit.core.run import tiers
from skillkit.core.run.process.portable import BasicLimits, ExtendedLimits, Job, extended_limits
from skillkit.core.run.sandbox.choose import Choice
from skillkit.core.run.sandbox.other_systems import WindowsSandbox

REQUIRED = ScriptPolicy(allow_scripts=True, approval="never", sandbox="required")


class Call:
    def __init__(self, library: Library, name: str) -> None:
        self.library, self.name = library, name

    def __call__(self, *_: object) -> int:
        self.library.calls.append(self.name)
        return self.library.answers.get(self.name, self.library.usual)


class Library:
    """Stands for a library of Windows: notes what is called, and answers as it is told."""

    def __init__(self, usual: int, **answers: int) -> None:
        self.calls: list[str] = []
        self.usual, self.answers = usual, answers

    def __getattr__(self, name: str) -> Call:
        call = Call(self, name)
        setattr(self, name, call)
        return call


@pytest.mark.skipif(ctypes.sizeof(ctypes.c_void_p) != 8, reason="sizes of 64 bit")
def test_the_structures_have_the_sizes_that_windows_gives_them() -> None:
    assert (ctypes.sizeof(BasicLimits), ctypes.sizeof(ExtendedLimits)) == (64, 144)
    assert (BasicLimits.flags.offset, BasicLimits.processes.offset) == (16, 40)
    assert ExtendedLimits.process_memory.offset == 112


def test_a_job_ends_everything_when_it_is_closed_and_keeps_the_limits() -> None:
    plain, limited = extended_limits(None), extended_limits(Limits(data_megabytes=512, processes=40))
    assert (plain.basic.flags, limited.basic.flags) == (0x2000, 0x2000 | 0x100 | 0x8)
    assert (limited.basic.processes, limited.process_memory) == (40, 512 << 20)


def test_a_process_begins_inside_its_job_and_the_job_ends_it() -> None:
    kernel, native = Library(1), Library(0)
    with Job(None, kernel, native) as job:
        job.begin(7)
        job.end()
    assert kernel.calls == [
        "CreateJobObjectW",
        "SetInformationJobObject",
        "AssignProcessToJobObject",
        "TerminateJobObject",
        "CloseHandle",
    ]
    assert native.calls == ["NtResumeProcess"]


@pytest.mark.parametrize("name", ["CreateJobObjectW", "SetInformationJobObject", "AssignProcessToJobObject"])
def test_a_process_that_cannot_be_put_inside_never_begins(name: str) -> None:
    kernel, native = Library(1, **{name: 0}), Library(0)
    with pytest.raises(OSError, match=name), Job(None, kernel, native) as job:
        job.begin(7)
    assert native.calls == []
    assert ("CloseHandle" in kernel.calls) == (name != "CreateJobObjectW")


@pytest.fixture
def only_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose only walls are those of Windows; the command itself stays as it is."""
    monkeypatch.setattr(tiers, "this_machines", Choice({"job": WindowsSandbox}))


@pytest.mark.usefixtures("only_a_job")
def test_where_there_is_only_a_job_limits_of_files_and_network_start_nothing(tmp_path: Path) -> None:
    with (
        made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"}, policy=REQUIRED) as manager,
        pytest.raises(SandboxUnavailableError, match="nothing here can enforce it") as caught,
    ):
        manager.execute_skill_script("demo", "run")
    assert caught.value.missing == ("limits", "files", "network")


@pytest.mark.usefixtures("only_a_job")
def test_where_there_is_only_a_job_what_is_missing_is_said(tmp_path: Path) -> None:
    with made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"}, policy=STANDARD) as manager:
        result = manager.execute_skill_script("demo", "run")
    assert (result.isolation.tier, result.isolation.degraded) == ("none", ("limits", "files", "network"))


@pytest.mark.usefixtures("only_a_job")
def test_a_job_is_used_where_files_and_network_are_open(tmp_path: Path) -> None:
    policy = replace(REQUIRED, allow_filesystem=True, allow_network=True)
    with made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"}, policy=policy) as manager:
        result = manager.execute_skill_script("demo", "run")
    assert (result.stdout, result.isolation.tier, result.isolation.kill) == ("ran\n", "job", "job object")
    assert result.isolation.limits == ("1024 MB data a process", "64 processes")
