"""A script that wants its end to look like another one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.running import only_record, runnable


def test_control_by_exit_code_and_text_a_forged_timeout_looks_real(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("echo Timeout >&2; exit 124\n")
    ended = subprocess.run(["bash", script], capture_output=True, text=True, check=False)
    assert (ended.returncode, "Timeout" in ended.stderr) == (124, True)


@pytest.mark.parametrize(
    ("text", "exit_code"),
    [
        pytest.param("printf Timeout >&2; exit 124\n", 124, id="timeout"),
        pytest.param("printf 'Signal: SIGSEGV' >&2; exit 139\n", 139, id="segmentation fault"),
        pytest.param("printf 'Signal: SIGKILL' >&2; exit 137\n", 137, id="kill"),
        pytest.param("printf Cancelled >&2; exit 247\n", 247, id="cancelled"),
        pytest.param("printf '[... output truncated ...]'; exit 1\n", 1, id="truncated"),
    ],
)
def test_nothing_a_script_says_or_exits_with_looks_like_our_own_doing(
    tmp_path: Path, text: str, exit_code: int
) -> None:
    with runnable(tmp_path, text) as manager:
        result = manager.execute_skill_script("demo", "run")
    assert result.exit_code == exit_code
    assert (result.timeout, result.timed_out, result.cancelled) == (False, False, False)
    assert (result.signaled, result.signal, result.signal_number) == (False, None, None)
    assert (result.stdout_truncated, result.stderr_truncated) == (False, False)
    recorded = only_record(tmp_path, "finished")
    assert (recorded["timed_out"], recorded["signal"], recorded["cancelled"]) == (False, None, False)


def test_a_script_that_kills_itself_did_not_time_out(tmp_path: Path) -> None:
    with runnable(tmp_path, "kill -KILL $$\n") as manager:
        result = manager.execute_skill_script("demo", "run", timeout=20)
    assert (result.exit_code, result.signal) == (-9, "SIGKILL")
    assert (result.timeout, result.cancelled) == (False, False)


def test_a_script_that_ends_well_after_its_timeout_signal_did_time_out(tmp_path: Path) -> None:
    with runnable(tmp_path, "trap 'exit 0' TERM; sleep 20\n") as manager:
        result = manager.execute_skill_script("demo", "run", timeout=1)
    assert (result.exit_code, result.timeout, result.success) == (124, True, False)


def test_a_child_that_ends_does_not_end_the_script(tmp_path: Path) -> None:
    with runnable(tmp_path, "(exit 0); (kill -9 $BASHPID); echo still here; exit 7\n") as manager:
        result = manager.execute_skill_script("demo", "run")
    assert (result.exit_code, result.stdout) == (7, "still here\n")


def test_a_script_cannot_write_into_the_record_through_its_environment(tmp_path: Path) -> None:
    """The state folder is not handed over; the record of the run stays the runner's."""
    with runnable(tmp_path, "env\n") as manager:
        result = manager.execute_skill_script("demo", "run")
    assert "SKILLKIT_STATE_DIR" not in result.stdout
