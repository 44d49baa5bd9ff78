"""Policy and command -> what a run may reach, and which of the paths that its arguments name."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from support.commands import COMMAND

from skillkit import ScriptPolicy
from skillkit.core.paths.forbidden import named_workspace
from skillkit.core.run.guard import Guard
from skillkit.core.run.reach import granted_paths, reach_of, writable_roots
from skillkit.core.values.runs import ScriptCommand

REQUIRED = ScriptPolicy(allow_scripts=True, approval="never", sandbox="required")


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


def test_what_the_arguments_name_is_granted_unless_it_is_closed(tmp_path: Path) -> None:
    folder = Path(os.path.realpath(tmp_path))
    for name in ("a", "b"):
        (folder / name).write_text("x")
    command = replace(COMMAND, argument_paths=(f"{folder}/a", f"{folder}/b"), closed_paths=(f"{folder}/b",))
    assert granted_paths(command, folder / "state") == (f"{folder}/a",)
    assert granted_paths(COMMAND, folder / "state") == ()


def test_closed_places_stay_closed_whatever_the_command_says(tmp_path: Path) -> None:
    state = Path(os.path.realpath(tmp_path)) / "state"
    state.mkdir()
    command = replace(COMMAND, argument_paths=("/", "/etc", str(state), os.path.expanduser("~")))
    assert granted_paths(command, state) == ()


def test_a_path_where_a_link_stands_by_now_is_not_granted(tmp_path: Path) -> None:
    folder = Path(os.path.realpath(tmp_path))
    (folder / "seen").mkdir()
    (folder / "secret").mkdir()
    command = replace(COMMAND, argument_paths=(f"{folder}/seen",))
    assert granted_paths(command, folder / "state") == (f"{folder}/seen",)
    (folder / "seen").rmdir()
    (folder / "seen").symlink_to("secret")
    assert granted_paths(command, folder / "state") == ()


def test_the_workspace_keeps_its_tools_and_skills_from_a_script(tmp_path: Path) -> None:
    work, workspace, state = (tmp_path / name for name in ("work", "workspace", "state"))
    for folder in (work, workspace / "skills", workspace / "sub" / ".git", state):
        folder.mkdir(parents=True)
    command = a_command(tmp_path, workspace=named_workspace(workspace, state))
    guard = Guard(state, [workspace / "skills"])
    guarded = guard.begin(writable_roots(command, REQUIRED, state), 1)
    around = reach_of(command, REQUIRED, work=work, snapshot=None, state_folder=state, guarded=guarded)
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
    around = reach_of(a_command(tmp_path), policy, work=tmp_path, snapshot=None, state_folder=tmp_path / "s")
    assert (around.readable, around.network) == ((os.path.realpath(tmp_path / "data"),), True)
