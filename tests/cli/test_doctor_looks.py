"""What this machine has, seen from inside one process; `skillkit doctor` shows the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.running import needs

from skillkit.cli import doctor
from skillkit.cli.doctor import LAYERS, file_system_of, interpreters, state_problem, tiers


def test_walls_that_work_name_every_layer_and_others_say_why() -> None:
    for tier in tiers():
        assert [name for name, _ in tier.layers] == [*LAYERS, "hosts", "warm", "limits", "group"] * tier.works
        assert tier.works or tier.remarks


def test_an_interpreter_has_a_version_and_a_real_path_or_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("perl")
    here = {each.name: each for each in interpreters()}
    assert os.path.isabs(here["perl"].path)
    assert here["perl"].version.startswith("5.")
    assert here["perl"].remedy == ""
    monkeypatch.setenv("PATH", str(tmp_path))
    nowhere = {each.name: each for each in interpreters()}
    assert (nowhere["node"].path, nowhere["node"].version) == ("", "")
    assert nowhere["node"].remedy == "missing; install it: sudo apt-get install nodejs"


def test_a_folder_that_can_hold_the_state_has_no_problem_and_nothing_is_left(tmp_path: Path) -> None:
    assert state_problem(tmp_path / "not" / "yet") == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_a_folder_that_cannot_be_written_is_told_with_the_remedy() -> None:
    """Not even root can make a file there."""
    assert file_system_of(Path("/proc")) == "proc"
    problem = state_problem(Path("/proc/self/state"))
    assert problem.startswith("It cannot be written (")
    assert problem.endswith("; choose another folder with SKILLKIT_STATE_DIR.")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_a_network_file_system_is_told_by_its_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = file_system_of(tmp_path)
    assert kind not in doctor.NETWORK_FILE_SYSTEMS
    monkeypatch.setattr(doctor, "NETWORK_FILE_SYSTEMS", frozenset({kind}))
    assert state_problem(tmp_path).startswith(f"It lies on a network file system ({kind});")
