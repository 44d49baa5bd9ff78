"""Walls that fail, through the public API: an error or the next kind of walls, and never no walls at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.running import kinds, made_manager, only_record, runnable

from skillkit import STANDARD, ConfigurationError, SandboxUnavailableError, ScriptPolicy
from skillkit.core.run import tiers
from skillkit.core.run.sandbox.base import Sandbox
from skillkit.core.run.sandbox.bubblewrap import BubblewrapSandbox
from skillkit.core.run.sandbox.choose import Choice
from skillkit.core.run.sandbox.landlock import LandlockSandbox
from skillkit.core.run.sandbox.machine import this_machine
from skillkit.core.run.tiers import machine_tiers

REQUIRED = ScriptPolicy(allow_scripts=True, approval="never", sandbox="required")
POLICIES = [pytest.param(REQUIRED, id="required"), pytest.param(STANDARD, id="preferred")]
# What bwrap says, each with whether it will be the same the next time.
LASTING = {
    "EPERM": "bwrap: Creating new namespace failed: Operation not permitted",
    "ENOSYS": "bwrap: Creating new namespace failed: Function not implemented",
    "an old one": "bwrap: Unknown option --disable-userns",
}
PASSING = {
    "EAGAIN": "bwrap: Creating new namespace failed: Resource temporarily unavailable",
    "ENOMEM": "bwrap: Can't mount tmpfs: Cannot allocate memory",
    "killed": "",
}


def working(tier: str) -> Sandbox:
    attempt = next((each for each in machine_tiers() if each.tier == tier), None)
    if attempt is None or attempt.sandbox is None:
        pytest.skip(f"no {tier} here")
    return attempt.sandbox


def failing_bubblewrap(folder: Path, said: str, *, works: int = 0) -> Sandbox:
    """A real program in bwrap's place that fails with these words, after it did its work a few times."""
    program = folder / "bwrap"
    end = f"echo {said!r} >&2; exit 1" if said else "kill -9 $$"
    program.write_text(
        "#!/bin/bash\n"
        f'echo >> "{folder}/calls"\n'
        f'[ $(wc -l < "{folder}/calls") -le {works} ] && exec /usr/bin/bwrap "$@"\n'
        f"{end}\n"
    )
    program.chmod(0o755)
    return BubblewrapSandbox(str(program), "/usr/bin/prlimit", this_machine(), dies_with_thread=True)


def only(monkeypatch: pytest.MonkeyPatch, **sandboxes: Sandbox) -> None:
    makers: dict[str, Callable[[], Sandbox]] = {
        name: (lambda sandbox=sandbox: sandbox)  # type: ignore[misc]  # each its own
        for name, sandbox in sandboxes.items()
    }
    monkeypatch.setattr(tiers, "this_machines", Choice(makers))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", LASTING)
def test_where_bubblewrap_is_forbidden_landlock_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, policy: ScriptPolicy
) -> None:
    only(monkeypatch, bubblewrap=failing_bubblewrap(tmp_path, LASTING[name]), landlock=working("landlock"))
    (tmp_path / "secret").write_text("key")
    with runnable(tmp_path, f"echo ran; cat {tmp_path}/secret\n", policy=policy) as manager:
        result = manager.execute_skill_script("demo", "run")
    assert (result.stdout, result.isolation.tier) == ("ran\n", "landlock")
    assert only_record(tmp_path, "finished")["isolation"]["tier"] == "landlock"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", PASSING)
def test_a_passing_shortage_is_an_error_and_no_reason_for_weaker_walls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, policy: ScriptPolicy
) -> None:
    only(monkeypatch, bubblewrap=failing_bubblewrap(tmp_path, PASSING[name]), landlock=working("landlock"))
    mark = tmp_path / "ran"
    with (
        runnable(tmp_path, f"touch {mark}\n", policy=policy) as manager,
        pytest.raises(SandboxUnavailableError, match="Nothing was run without them"),
    ):
        manager.execute_skill_script("demo", "run")
    assert (kinds(tmp_path), mark.exists()) == (["refused"], False)


@pytest.mark.parametrize("name", LASTING)
def test_where_everything_is_forbidden_preferred_walls_are_missed_aloud_and_required_ones_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    no_landlock = LandlockSandbox("/usr/bin/python3", version=0)
    only(monkeypatch, bubblewrap=failing_bubblewrap(tmp_path, LASTING[name]), landlock=no_landlock)
    with made_manager(tmp_path / "one", {"scripts/run.sh": "echo ran\n"}, policy=STANDARD) as manager:
        result = manager.execute_skill_script("demo", "run")
    assert (result.isolation.tier, result.isolation.degraded) == ("none", ("limits", "files", "network"))
    assert "running without walls: limits, files, network" in caplog.text
    with (
        made_manager(tmp_path / "other", {"scripts/run.sh": "echo ran\n"}, policy=REQUIRED) as manager,
        pytest.raises(SandboxUnavailableError, match="nothing here can enforce it") as caught,
    ):
        manager.execute_skill_script("demo", "run")
    assert LASTING[name] in str(caught.value)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("said", [*LASTING.values(), PASSING["EAGAIN"]])
def test_walls_that_fail_after_they_were_proven_are_an_error_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, policy: ScriptPolicy
) -> None:
    working("bubblewrap")
    only(monkeypatch, bubblewrap=failing_bubblewrap(tmp_path, said, works=2), landlock=working("landlock"))
    with runnable(tmp_path, 'echo ran; touch "$SKILL_WORK_DIR/ran"\n', policy=policy) as manager:
        before = manager.execute_skill_script("demo", "run")
        with pytest.raises(SandboxUnavailableError, match="bubblewrap walls could not be put up: bwrap: ") as caught:
            manager.execute_skill_script("demo", "run")
    assert (before.stdout, before.isolation.tier) == ("ran\n", "bubblewrap")
    assert caught.value.missing == ("bubblewrap",)
    assert kinds(tmp_path) == ["started", "finished", "started", "finished"]


@pytest.mark.parametrize(("said", "status"), [("bwrap: no", 1), ("skillkit-walls: seccomp: EPERM", 125)])
def test_a_script_that_speaks_like_the_walls_is_a_script_that_failed(
    tmp_path: Path, tier: str, said: str, status: int
) -> None:
    with runnable(tmp_path, f"echo '{said}' >&2; exit {status}\n", policy=REQUIRED) as manager:
        result = manager.execute_skill_script("demo", "run")
    assert (result.exit_code, result.stderr, result.isolation.tier) == (status, f"{said}\n", tier)


def test_a_workspace_that_is_gone_is_an_error_on_record(tmp_path: Path, tier: str) -> None:
    del tier
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    with runnable(tmp_path, "echo ran\n", policy=REQUIRED, workspace=workspace) as manager:
        workspace.rmdir()
        with pytest.raises(ConfigurationError, match="workspace is not there any more"):
            manager.execute_skill_script("demo", "run")
    assert kinds(tmp_path) == ["refused"]
