"""Policy and command -> what a run may reach, and what happens where nothing can enforce it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from running import made_manager, records_of

from skillkit import GUARDED, STANDARD, TRUSTED, Limits, SandboxUnavailableError, ScriptPolicy
from skillkit.core.run import Guard, sandbox_for, walls, walls_around, writable_roots
from skillkit.core.run.sandbox.choose import Choice
from skillkit.core.runs import ScriptCommand
from skillkit.core.workspaces import named_workspace

REQUIRED = ScriptPolicy(allow_scripts=True, approval="never", sandbox="required")
ASKED = [
    pytest.param({"readable_paths": ["/opt"]}, "readable_paths", id="readable_paths"),
    pytest.param({"writable_paths": ["/opt"]}, "writable_paths", id="writable_paths"),
    pytest.param({"grant_argument_paths": False}, "grant_argument_paths", id="grant_argument_paths"),
    pytest.param({"limits": Limits(processes=8)}, "limits", id="limits"),
]


def a_command(folder: Path, **fields: object) -> ScriptCommand:
    (folder / "skill").mkdir(exist_ok=True)
    values: dict[str, object] = {
        "skill_name": "demo",
        "digest": "0" * 64,
        "base_directory": folder / "skill",
        "script_path": folder / "skill/run.sh",
        "script_name": "run.sh",
        "interpreter": "bash",
        "allowed_tools": (),
        "argv": ("/bin/bash", str(folder / "skill/run.sh")),
        "cwd": str(folder),
        "environment": {},
        "stdin": b"",
        "timeout": 30,
        "output_limit": 1000,
        "arguments": None,
        "script_arguments": (),
        "session_id": None,
        "workspace": None,
        **fields,
    }
    return ScriptCommand(**values)  # type: ignore[arg-type]  # a table of fields


@pytest.fixture
def no_walls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which no kind of walls exists."""
    monkeypatch.setattr(walls, "this_machines", Choice({}))


@pytest.mark.usefixtures("no_walls")
def test_required_walls_that_no_machine_has_start_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with (
        made_manager(tmp_path, {"scripts/run.sh": f"touch {mark}\n"}, policy=REQUIRED) as manager,
        pytest.raises(SandboxUnavailableError, match="nothing here can enforce it") as caught,
    ):
        manager.execute_skill_script("demo", "run")
    assert caught.value.missing == ("limits", "files", "network")
    assert "bubblewrap" in caught.value.remedy
    assert not mark.exists()
    assert [record.kind for record in records_of(tmp_path)] == ["refused"]


@pytest.mark.usefixtures("no_walls")
def test_preferred_walls_that_no_machine_has_are_missed_aloud(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"}, policy=STANDARD) as manager:
        result = manager.execute_skill_script("demo", "run")
    assert (result.stdout, result.isolation.tier) == ("ran\n", "none")
    assert result.isolation.degraded == ("limits", "files", "network")
    assert "running without walls: limits, files, network" in caplog.text


@pytest.mark.usefixtures("no_walls")
@pytest.mark.parametrize(("fields", "name"), ASKED)
@pytest.mark.parametrize("profile", [STANDARD, TRUSTED], ids=["preferred", "off"])
def test_a_limit_that_was_written_down_is_kept_or_nothing_starts(
    profile: ScriptPolicy, fields: dict[str, object], name: str
) -> None:
    with pytest.raises(SandboxUnavailableError, match=name):
        sandbox_for(replace(profile, **fields))  # type: ignore[arg-type]  # a table of fields


def test_no_walls_must_be_asked_for_by_name() -> None:
    assert sandbox_for(TRUSTED).tier == "none"
    assert sandbox_for(GUARDED).tier != "none"


def test_the_workspace_keeps_its_tools_and_skills_from_a_script(tmp_path: Path) -> None:
    work, workspace, state = (tmp_path / name for name in ("work", "workspace", "state"))
    for folder in (work, workspace / "skills", workspace / "sub" / ".git", state):
        folder.mkdir(parents=True)
    command = a_command(tmp_path, workspace=named_workspace(workspace, state))
    guard = Guard(state, [workspace / "skills"])
    guarded = guard.begin(writable_roots(command, REQUIRED, state), 1)
    around = walls_around(command, REQUIRED, work=work, snapshot=None, state_folder=state, guarded=guarded)
    guard.end(guarded)
    guard.close()
    names = ("skills", "sub/.git")
    assert around.protected == (*(str(workspace / name) for name in names), str(state))
    assert (around.workspace, around.network, around.filesystem) == (str(workspace), False, False)
    shown = (tmp_path / "skill", work, workspace, workspace / "sub", *(workspace / name for name in names))
    assert around.identities == {str(path): (path.stat().st_dev, path.stat().st_ino) for path in shown}


def test_a_policys_paths_are_resolved_and_missing_ones_left_out(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data")
    policy = replace(REQUIRED, readable_paths=(tmp_path / "link", tmp_path / "gone"), allow_network=True)
    around = walls_around(a_command(tmp_path), policy, work=tmp_path, snapshot=None, state_folder=tmp_path / "s")
    assert (around.readable, around.network) == ((os.path.realpath(tmp_path / "data"),), True)
