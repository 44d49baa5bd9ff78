"""`skillkit doctor`, run as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from skillkit.cli.doctor import tiers
from skillkit.core.run import tiers as chosen
from skillkit.core.run.sandbox import choose
from skillkit.core.run.sandbox.bubblewrap import BubblewrapSandbox
from skillkit.core.run.sandbox.machine import this_machine
from skillkit.web.presence import announce


def doctor(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "skillkit", "doctor", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_each_kind_of_walls_is_there_or_has_a_reason() -> None:
    structure = json.loads(doctor("--json").stdout)
    assert [tier["name"] for tier in structure["walls"]] == ["bubblewrap", "landlock"]
    for tier in structure["walls"]:
        assert tier["works"] == bool(tier["layers"])
        assert tier["works"] or tier["remarks"][0]


def test_interpreters_are_shown_with_version_and_real_path() -> None:
    programs = {each["name"]: each for each in json.loads(doctor("--json").stdout)["interpreters"]}
    assert list(programs) == ["python3", "bash", "node", "ruby", "perl"]
    assert programs["bash"]["version"][0].isdigit()
    for program in programs.values():
        assert not program["path"] or Path(program["path"]).read_bytes()[:2] != b"#!"


def test_a_missing_interpreter_comes_with_the_command_that_installs_it(tmp_path: Path) -> None:
    shown = doctor(PATH=str(tmp_path)).stdout
    assert "- ruby     missing; install it: sudo apt-get install ruby" in shown


def test_a_missing_bubblewrap_comes_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "TRUSTED_FOLDERS", ())
    monkeypatch.setattr(chosen, "this_machines", choose.Choice(choose.MAKERS["linux"]))
    monkeypatch.setenv("PATH", "/nonexistent")
    bubblewrap, landlock = tiers()
    assert (bubblewrap.works, bubblewrap.remarks) == (
        False,
        ("bwrap is not installed. Install it: sudo apt-get install bubblewrap",),
    )
    assert landlock.name == "landlock"


def test_forbidden_namespaces_come_with_the_setting_that_allows_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    program.chmod(0o755)
    forbidden = BubblewrapSandbox(str(program), "/usr/bin/prlimit", this_machine())
    monkeypatch.setattr(chosen, "this_machines", choose.Choice({"bubblewrap": lambda: forbidden}))
    (bubblewrap,) = tiers()
    assert bubblewrap.remarks[0] == "bwrap: setting up uid map: Permission denied"
    assert "sysctl -w kernel.unprivileged_userns_clone=1" in bubblewrap.remarks[1]


def test_a_state_folder_that_cannot_be_written_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = doctor("--state-dir", str(tmp_path / "file" / "state"))
    assert ended.returncode == 1
    assert "choose another folder with SKILLKIT_STATE_DIR" in ended.stdout


def test_a_state_file_that_cannot_be_used_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "state.sqlite3").write_text("these are no records, whatever they are")
    ended = doctor("--state-dir", str(tmp_path))
    assert ended.returncode == 1
    assert "is not a SQLite file" in ended.stdout


def test_the_report_is_readable(tmp_path: Path) -> None:
    ended = doctor("--state-dir", str(tmp_path))
    for shown in ("Walls around scripts, strongest first", "Interpreters", "State", str(tmp_path)):
        assert shown in ended.stdout
    assert ended.stderr == ""


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_machine_with_walls_and_state_is_well(form: tuple[str, ...], tmp_path: Path) -> None:
    structure = json.loads(doctor("--json").stdout)
    expected = 0 if any(tier["works"] for tier in structure["walls"]) else 1
    assert doctor("--state-dir", str(tmp_path), *form).returncode == expected


def test_ways_to_ask_are_there_or_have_a_reason() -> None:
    pytest.importorskip("uvicorn", reason="the page is an extra")
    ways = {
        each["name"]: each for each in json.loads(doctor("--json", DISPLAY="", WAYLAND_DISPLAY="").stdout)["channels"]
    }
    assert list(ways) == ["terminal", "elsewhere", "page", "window", "notification"]
    assert ways["elsewhere"]["works"]
    assert ways["page"]["works"]
    assert (ways["window"]["works"], "no desktop" in ways["window"]["remark"]) == (False, True)
    assert all(each["remark"] for each in ways.values())


def test_what_gets_skills_packages_and_keys_is_there_or_has_a_remedy(tmp_path: Path) -> None:
    there = {each["name"]: each for each in json.loads(doctor("--json").stdout)["supplies"]}
    assert list(there) == ["git", "ssh-keygen", "packages", "npm", "keyring"]
    assert there["packages"]["works"]
    missing = {each["name"]: each for each in json.loads(doctor("--json", PATH=str(tmp_path)).stdout)["supplies"]}
    assert (missing["npm"]["works"], missing["npm"]["remark"].endswith("install Node with npm")) == (False, True)


def test_a_keyring_that_keeps_nothing_is_none() -> None:
    without = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
    supplies = {each["name"]: each for each in json.loads(doctor("--json", **without).stdout)["supplies"]}
    assert not supplies["keyring"]["works"]
    assert "no keyring" in supplies["keyring"]["remark"]
    assert "SKILLKIT_SECRETS_DIR" in supplies["keyring"]["remark"]


def test_the_page_that_serves_a_world_is_named(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="the page is an extra")
    with announce(tmp_path, "http://127.0.0.1:1", "token"):
        shown = doctor("--state-dir", str(tmp_path)).stdout
    assert "page          served at http://127.0.0.1:1" in shown
    assert "token" not in shown
