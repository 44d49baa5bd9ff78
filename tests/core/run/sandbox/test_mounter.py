"""What is guarded inside bubblewrap's walls once they stand: all of it, or the script does not start."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.confined_runs import Room, bubblewrap, bubblewrap_refusal, ended, open_folder, users

from skillkit.core.run.sandbox.bubblewrap import MOUNTER

pytestmark = pytest.mark.skipif(bool(bubblewrap_refusal()), reason=f"no bubblewrap here: {bubblewrap_refusal()}")


@pytest.fixture(params=users(), ids=str)
def room(request: pytest.FixtureRequest) -> Iterator[Room]:
    """A workspace with two files; `link` leads to one of them and is guarded."""
    with open_folder() as folder:
        program = folder / "mounter.py"
        shutil.copyfile(MOUNTER, program)
        program.chmod(0o644)
        made = Room.made(folder, user=request.param)
        workspace = folder / "workspace"
        (workspace / "deep").mkdir(parents=True)
        (workspace / "deep/guarded").write_text("mine\n")
        (workspace / "free").write_text("mine\n")
        (workspace / "link").symlink_to("deep/guarded")
        made.hand_over()
        guarded = (str(workspace / "deep/guarded"), str(workspace / "link"))
        words = ("/usr/bin/python3", "-I", "-S", str(program))
        sandbox = replace(bubblewrap(user=request.param), mounter=words)
        yield replace(made, sandbox=sandbox).with_walls(
            workspace=str(workspace), protected=guarded, links=guarded[1:], identities=_identities(workspace, *guarded)
        )


def _identities(*paths: Path | str) -> dict[str, tuple[int, int]]:
    return {str(path): (seen.st_dev, seen.st_ino) for path in paths for seen in [os.lstat(path)]}


SCRIPT = (
    "cd $0; echo evil > deep/guarded; rm link; mv deep other; echo ours > free; ls -l /proc/self/fd | wc -l; echo ran"
)


def test_guarded_files_and_links_stay_and_others_can_be_written(room: Room) -> None:
    workspace = room.root / "workspace"
    status, stdout, stderr = room.run("/bin/sh", "-c", SCRIPT, str(workspace))
    assert (status, stdout.split()[-1]) == (0, "ran"), stderr
    assert (workspace / "link").read_text() == "mine\n"
    assert (workspace / "free").read_text() == "ours\n"


def test_the_script_gets_none_of_the_descriptors(room: Room) -> None:
    listed = room.run("/bin/sh", "-c", "ls /proc/self/fd")[1].split()
    assert listed == ["0", "1", "2", "3"], "the last is that of the listing itself"


@pytest.mark.parametrize("changed", ["workspace", "workspace/deep/guarded", "workspace/link"])
def test_what_was_replaced_meanwhile_stops_the_run(room: Room, changed: str) -> None:
    path = room.root / changed
    confined = room.confined("/bin/echo", "ran")
    path.rename(room.root / "aside")
    if changed == "workspace":
        shutil.copytree(room.root / "aside", path, symlinks=True)
    else:
        path.symlink_to("/etc/passwd")
    status, stdout, stderr = ended(room.start(confined))
    assert (status, stdout) == (125, "")
    assert stderr.startswith("skillkit-walls: guard: ")


def test_a_helper_that_says_nothing_stops_the_run(room: Room) -> None:
    program = room.root / "mounter.py"
    program.write_text(program.read_text().replace('os.write(go, b"go\\n")', "pass"))
    status, stdout, _ = room.run("/bin/echo", "ran")
    assert (status, stdout) == (125, "")


def test_walls_that_cannot_be_put_up_say_why_themselves(room: Room) -> None:
    shutil.rmtree(room.work)
    status, stdout, stderr = room.run("/bin/echo", "ran")
    assert (status, stdout) == (1, "")
    assert stderr.startswith("bwrap: ")


@pytest.mark.parametrize(("inherited", "expected"), [(False, (0, "ran\n")), (True, (125, ""))])
def test_its_numbers_may_hold_what_ends_with_this_program_and_nothing_else(
    room: Room, *, inherited: bool, expected: tuple[int, str]
) -> None:
    """As with libffi from 3.5 on, which keeps its own file open once it is loaded, at the first number that is free."""
    program = room.root / "mounter.py"
    taken = f"for number in (8, 9):\n    os.dup2(2, number, inheritable={inherited})\n"
    before = "def main() -> "
    program.write_text(program.read_text().replace(before, f"{taken}\n\n{before}", 1))
    status, stdout, stderr = room.run("/bin/echo", "ran")
    assert (status, stdout) == expected, stderr
    assert ("the descriptor is in use: '8'" in stderr) is inherited
