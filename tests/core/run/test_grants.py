"""Which of the paths that arguments name are opened."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from commands import COMMAND

from skillkit.core.run.grants import granted_paths


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
