"""One question at a time on a terminal, whoever asks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from skillkit.approvers.screen import terminal_lock
from skillkit.core.exceptions import ApprovalUnavailableError

HOLDER = """
import sys, time
from pathlib import Path
from skillkit.approvers.screen import terminal_lock
with terminal_lock(Path(sys.argv[1]), lambda: None):
    print("held", flush=True)
    time.sleep(60)
"""


class HeldByAnotherError(Exception):
    pass


def give_up() -> None:
    raise HeldByAnotherError


def test_a_turn_ends_with_the_process_that_holds_it(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path], stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(HeldByAnotherError), terminal_lock(tmp_path, give_up):
                pass
        finally:
            holder.kill()
    with terminal_lock(tmp_path, give_up):
        pass


def test_turns_come_again(tmp_path: Path) -> None:
    for _ in range(3):
        with terminal_lock(tmp_path / "new" / "state", give_up):
            pass


def test_a_turn_that_cannot_be_kept_is_no_turn(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file in the way")
    with (
        pytest.raises(ApprovalUnavailableError, match="SKILLKIT_STATE_DIR"),
        terminal_lock(tmp_path / "state", give_up),
    ):
        pass


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "terminals.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ApprovalUnavailableError, match="cannot be reserved"), terminal_lock(tmp_path, give_up):
        pass
    assert not (tmp_path / "elsewhere").exists()
