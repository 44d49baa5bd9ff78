"""Programs that skillkit starts for itself, outside all walls: none that a script can have written."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.asking import request_named
from support.running import made_manager, wait_for

from skillkit import GUARDED, ApprovalUnavailableError, World
from skillkit.core.paths import forbidden
from skillkit.core.run import own_programs
from skillkit.core.run.unwalled import read_output
from skillkit.web.approver import LocalPage, WebApprover
from skillkit.web.desktop import notify, open_browser, show_window

LINK = "http://127.0.0.1:1/login?token=secret"
PLANTED = '#!/bin/sh\necho "$0 $@" >> {notes}\n'
STARTERS: dict[str, Callable[[], object]] = {
    "browser": lambda: open_browser(LINK),
    "notification": lambda: notify(lambda: LINK),
    "window": lambda: show_window(LINK),
}


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With an activated environment in it, and on PATH nothing of the machine's that could be meant instead."""
    folder = tmp_path / "workspace"
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    (folder / ".venv" / "pyvenv.cfg").touch()
    for name in ("xdg-open", "notify-send", "chromium", "x-www-browser", "sensible-browser"):
        (programs / name).write_text(PLANTED.format(notes=tmp_path / "notes"))
        (programs / name).chmod(0o755)
    others = tmp_path / "others"
    others.mkdir()
    (others / "bash").symlink_to("/bin/bash")
    monkeypatch.setenv("PATH", os.pathsep.join((str(programs), str(others))))
    monkeypatch.setenv("DISPLAY", ":99")
    monkeypatch.setattr(forbidden, "_writable", set())
    return folder


def was_started(folder: Path) -> bool:
    return wait_for((folder / "notes").exists, 0.5)


@pytest.mark.parametrize("start", STARTERS.values(), ids=STARTERS)
def test_no_program_of_an_activated_environment_gets_the_link(
    tmp_path: Path, workspace: Path, start: Callable[[], object]
) -> None:
    assert shutil.which("xdg-open") == f"{workspace}/.venv/bin/xdg-open", "the control: by PATH alone it is found"
    start()
    assert not was_started(tmp_path)


def test_a_program_where_nothing_forbids_it_gets_the_link(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the whole: the same program outside a project is started."""
    shutil.move(workspace / ".venv", tmp_path / "own")
    (tmp_path / "own" / "pyvenv.cfg").unlink()
    monkeypatch.setenv("PATH", str(tmp_path / "own" / "bin"))
    assert open_browser(LINK)
    assert was_started(tmp_path)


def test_nothing_in_the_workspace_of_this_process_is_started_whatever_it_looks_like(
    tmp_path: Path, workspace: Path
) -> None:
    (workspace / ".venv" / "pyvenv.cfg").unlink()
    assert own_programs.find_own_program("xdg-open"), "the control: nothing tells that it is a project"
    files = {"scripts/run.sh": "true\n"}
    with (
        WebApprover(tmp_path / "state", open_browser=True, expires_in=0.3) as approver,
        made_manager(tmp_path, files, policy=GUARDED, workspace=workspace, approver=approver) as manager,
        pytest.raises(ApprovalUnavailableError),
    ):
        manager.execute_skill_script("demo", "run")
    assert not was_started(tmp_path)


def test_a_page_that_serves_a_world_starts_nothing_of_the_folder_it_was_started_in(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / ".venv" / "pyvenv.cfg").unlink()
    monkeypatch.chdir(workspace)
    with World(tmp_path / "state") as world, LocalPage(tmp_path / "state") as page:
        world.open(request_named("new"))
        assert not open_browser(page.link())
    assert not was_started(tmp_path)


def test_a_version_manager_is_asked_without_what_the_workspace_would_add(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "sitecustomize.py").write_text(f"open({str(tmp_path / 'notes')!r}, 'w').close()\n")
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("PYTHONPATH", str(workspace))
    asked = ("/usr/bin/python3", "-c", "print(1)")
    subprocess.run(asked, check=True, capture_output=True)
    (tmp_path / "notes").unlink()  # the control: with the environment as it is, the workspace's code runs
    assert read_output(asked, "/usr/bin:/bin") == "1\n"
    assert not (tmp_path / "notes").exists()
