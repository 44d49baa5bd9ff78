"""Which walls a policy gets, and what happens where nothing can enforce it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.running import made_manager, records_of

from skillkit import GUARDED, STANDARD, TRUSTED, Limits, SandboxUnavailableError, ScriptPolicy
from skillkit.core.run import tiers
from skillkit.core.run.sandbox.choose import Choice
from skillkit.core.run.tiers import sandbox_for

REQUIRED = ScriptPolicy(allow_scripts=True, approval="never", sandbox="required")
ASKED = [
    pytest.param({"readable_paths": ["/opt"]}, "readable_paths", id="readable_paths"),
    pytest.param({"writable_paths": ["/opt"]}, "writable_paths", id="writable_paths"),
    pytest.param({"grant_argument_paths": False}, "grant_argument_paths", id="grant_argument_paths"),
    pytest.param({"limits": Limits(processes=8)}, "limits", id="limits"),
]


@pytest.fixture
def no_walls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which no kind of walls exists."""
    monkeypatch.setattr(tiers, "this_machines", Choice({}))


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
