"""Which walls are chosen, and what never makes them weaker."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.confined_runs import bubblewrap_refusal, probe

from skillkit.core.exceptions import SandboxUnavailableError
from skillkit.core.run.sandbox.base import Confined, Sandbox, UnconfinedSandbox
from skillkit.core.run.sandbox.bubblewrap import BubblewrapSandbox
from skillkit.core.run.sandbox.choose import Attempt, Choice, this_machines, trusted_program
from skillkit.core.run.sandbox.landlock import LandlockSandbox
from skillkit.core.run.sandbox.other_systems import SeatbeltSandbox, WindowsSandbox

STRONG, WEAK = UnconfinedSandbox(("strong",)), UnconfinedSandbox(("weak",))


def both() -> Choice:
    makers: dict[str, Callable[[], Sandbox]] = {"strong": lambda: STRONG, "weak": lambda: WEAK}
    return Choice(makers)


class Answers:
    """Gives one answer after the other, and counts the questions."""

    def __init__(self, *answers: tuple[int, str] | OSError) -> None:
        self.left = list(answers)
        self.asked = 0

    def __call__(self, confined: Confined) -> tuple[int, str]:
        assert confined.argv == ("/bin/true",)
        self.asked += 1
        answer = self.left.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer


def test_what_each_kind_of_walls_can_do() -> None:
    """Callers ask for these, never for a name."""
    kinds: list[type[Sandbox]] = [
        BubblewrapSandbox,
        LandlockSandbox,
        SeatbeltSandbox,
        WindowsSandbox,
        UnconfinedSandbox,
    ]
    assert {
        each.tier: (each.has_walls, each.limits_reach, each.shows_snapshot, each.guards_single_files) for each in kinds
    } == {
        "bubblewrap": (True, True, True, True),
        "landlock": (True, True, False, False),
        "seatbelt": (True, True, False, True),
        "job": (True, False, False, True),
        "none": (False, False, False, True),
    }


def test_the_strongest_that_works_is_chosen_once() -> None:
    choice, run = both(), Answers((0, ""))
    assert (choice.strongest(run), choice.strongest(run), run.asked) == (STRONG, STRONG, 1)


LASTING = [
    OSError(errno.EPERM, "Operation not permitted"),
    OSError(errno.EACCES, "Permission denied"),
    OSError(errno.ENOSPC, "No space left on device"),
    FileNotFoundError(errno.ENOENT, "No such file or directory"),
    (1, "bwrap: No permissions to create a new namespace, likely because the kernel does not allow it"),
    (1, "bwrap: Creating new namespace failed: No space left on device"),
    (1, "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted"),
    (1, "bwrap: Unknown option --size"),
    (125, "launcher: landlock: Operation not permitted"),
]


@pytest.mark.parametrize("answer", LASTING, ids=str)
def test_a_lasting_refusal_moves_down_and_is_remembered(answer: tuple[int, str] | OSError) -> None:
    choice, run = both(), Answers(answer, (0, ""))
    assert (choice.strongest(run), choice.strongest(run), run.asked) == (WEAK, WEAK, 2)


PASSING = [
    OSError(errno.EAGAIN, "Resource temporarily unavailable"),
    OSError(errno.ENOMEM, "Cannot allocate memory"),
    OSError(errno.EMFILE, "Too many open files"),
    OSError(errno.ENFILE, "Too many open files in system"),
    OSError(errno.EIO, "Input/output error"),
    (1, "bwrap: Creating new namespace failed: Resource temporarily unavailable"),
    (1, "bwrap: Can't create file at /x: Cannot allocate memory"),
    (1, "bwrap: Can't open /proc: Too many open files"),
    (-9, ""),
    (137, ""),
    (1, ""),
]


@pytest.mark.parametrize("answer", PASSING, ids=str)
def test_a_passing_failure_raises_and_the_next_try_is_fresh(answer: tuple[int, str] | OSError) -> None:
    choice, run = both(), Answers(answer, (0, ""))
    with pytest.raises((OSError, SandboxUnavailableError), match=r".+"):
        choice.strongest(run)
    assert (choice.strongest(run), run.asked) == (STRONG, 2)


def test_where_nothing_works_nothing_is_chosen_and_the_reasons_are_known() -> None:
    def missing() -> Sandbox:
        raise SandboxUnavailableError("bwrap is not installed.")

    choice = Choice({"strong": missing, "weak": lambda: WEAK})
    run = Answers((1, "weak: Operation not permitted\n"))
    assert choice.strongest(run) is None
    assert choice.attempts(run) == (
        Attempt("strong", None, "bwrap is not installed."),
        Attempt("weak", None, "weak: Operation not permitted"),
    )


@pytest.mark.skipif(bool(bubblewrap_refusal()), reason=f"no bubblewrap here: {bubblewrap_refusal()}")
def test_here_bubblewrap_is_chosen_by_a_real_run() -> None:
    sandbox = this_machines.strongest(probe)
    assert sandbox is not None
    assert sandbox.tier == "bubblewrap"


def executable(folder: Path, mode: int = 0o755) -> Path:
    path = folder / "skillkit-program"
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def test_a_program_is_found_only_where_root_alone_can_put_it(tmp_path: Path) -> None:
    path = executable(tmp_path)
    tmp_path.chmod(0o755)
    found = str(path) if os.getuid() == 0 else None
    assert trusted_program("skillkit-program", str(tmp_path)) == found
    tmp_path.chmod(0o777)
    assert trusted_program("skillkit-program", str(tmp_path)) is None
    tmp_path.chmod(0o755)
    path.chmod(0o777)
    assert trusted_program("skillkit-program", str(tmp_path)) is None


def test_the_current_folder_is_never_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert trusted_program("skillkit-program", f".:{os.curdir}::") is None


def test_a_system_program_is_found_whatever_the_path_says() -> None:
    assert trusted_program("env", "/nowhere") in ("/usr/bin/env", "/bin/env")
