"""Using a person's yes for more than they were shown: other walls, another interpreter, another place."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.approving import Gate, trust_demo
from support.running import made_manager

from skillkit import (
    GUARDED,
    TRUSTED,
    ApprovalUnavailableError,
    OptionAnswer,
    ScriptPolicy,
    ScriptRefusedError,
    SkillManager,
)
from skillkit.cli.people.trust import trust
from skillkit.core.flow.granting import Granting
from skillkit.core.run.place import Here
from skillkit.core.values.policy import Limits
from skillkit.core.values.runs import Decision
from skillkit.testing import ScriptedApprover

FILES = {"scripts/run.sh": "echo ran\n"}
OFF = replace(TRUSTED, approval="first_run", allow_network=False, allow_filesystem=False)

WIDER: dict[str, Callable[[Path], ScriptPolicy]] = {
    "network": lambda _: replace(GUARDED, allow_network=True),
    "files": lambda _: replace(GUARDED, allow_filesystem=True),
    "reading": lambda folder: replace(GUARDED, readable_paths=(folder,)),
    "writing": lambda folder: replace(GUARDED, writable_paths=(folder,)),
    "a variable": lambda _: replace(GUARDED, pass_environment=("TOKEN",)),
    "all variables": lambda _: replace(GUARDED, inherit_environment=True),
    "memory": lambda _: replace(GUARDED, limits=Limits(data_megabytes=2048)),
    "processes": lambda _: replace(GUARDED, limits=Limits(processes=65)),
    "place": lambda _: replace(GUARDED, working_directory="workspace"),
    "no walls": lambda _: OFF,
    "everything": lambda _: replace(TRUSTED, approval="first_run"),
}


@pytest.fixture(params=WIDER)
def wider(request: pytest.FixtureRequest, tmp_path: Path) -> ScriptPolicy:
    (tmp_path / "data").mkdir()
    return WIDER[request.param](tmp_path / "data")


def manager_under(policy: ScriptPolicy, folder: Path, approver: object = None, **settings: Any) -> Any:
    (folder / "work").mkdir(exist_ok=True)
    given = {"session_id": "s", "workspace": folder / "work", **settings}
    return made_manager(folder, FILES, policy=policy, approver=approver, **given)


def said(option_id: str, request: Any) -> OptionAnswer:
    return OptionAnswer(option_id, "test", 1.0, request.id)


@pytest.mark.parametrize("word", ["yes_once", "yes_in_session"])
def test_a_yes_to_narrow_walls_is_none_to_wide_ones(tmp_path: Path, tier: str, wider: ScriptPolicy, word: str) -> None:
    with manager_under(GUARDED, tmp_path) as narrow, manager_under(wider, tmp_path) as wide:
        asked = narrow.prepare_skill_script("demo", "run")
        answer = said(word, asked.request)
        with pytest.raises(ScriptRefusedError, match="belongs to another question"):
            wide.complete_skill_script(wide.prepare_skill_script("demo", "run"), answer)
        assert narrow.complete_skill_script(asked, answer).isolation.tier == tier, "to its own question it is one"


def test_what_was_prepared_within_narrow_walls_does_not_run_within_wide_ones(
    tmp_path: Path, tier: str, wider: ScriptPolicy
) -> None:
    with manager_under(GUARDED, tmp_path) as narrow, manager_under(wider, tmp_path) as wide:
        asked = narrow.prepare_skill_script("demo", "run")
        for word in ("yes_once", "yes_in_session"):
            with pytest.raises(ScriptRefusedError, match="wider than those that were shown"):
                wide.complete_skill_script(asked, said(word, asked.request))
        assert narrow.complete_skill_script(asked, said("yes_in_session", asked.request)).success
        covered = narrow.prepare_skill_script("demo", "run")
        assert covered.decision is Decision.ALLOW, tier
        with pytest.raises(ScriptRefusedError, match="wider than those that were shown"):
            wide.complete_skill_script(covered)


def take_up(manager: SkillManager, policy: ScriptPolicy) -> None:
    """Another policy in the very flow that heard the yes."""
    flow = manager.flow
    flow.policy = policy
    flow.granting = Granting(policy, flow.store, flow.state_dir)
    flow.here = Here(policy, flow.state_dir)


@pytest.mark.parametrize("by", ["session", "session without a name", "trust"])
def test_a_lasting_yes_covers_no_wider_walls(tmp_path: Path, tier: str, wider: ScriptPolicy, by: str) -> None:
    name = None if by == "session without a name" else "s"
    person = ScriptedApprover(*([] if by == "trust" else ["yes_in_session"]))
    with manager_under(GUARDED, tmp_path, person, session_id=name) as narrow:
        if by == "trust":
            trust_demo(tmp_path, GUARDED)
        narrow.execute_skill_script("demo", "run")
        assert narrow.execute_skill_script("demo", "run").isolation.tier == tier, "the same walls are covered"
        take_up(narrow, wider)  # what is said without a session's name is known to this manager alone
        with pytest.raises(ApprovalUnavailableError):
            narrow.execute_skill_script("demo", "run")
        asked = narrow.prepare_skill_script("demo", "run")
        assert asked.reasons == ("Policy asks a person again, because the run would get more than what was approved.",)
        with manager_under(wider, tmp_path, session_id=name) as wide, pytest.raises(ApprovalUnavailableError):
            wide.execute_skill_script("demo", "run")


def test_a_yes_to_wide_walls_covers_narrower_ones(tmp_path: Path, tier: str) -> None:
    wide = replace(GUARDED, allow_network=True, readable_paths=(tmp_path,), pass_environment=("TOKEN",))
    with manager_under(wide, tmp_path, ScriptedApprover("yes_in_session")) as manager:
        manager.execute_skill_script("demo", "run")
    with manager_under(GUARDED, tmp_path) as manager:
        assert manager.execute_skill_script("demo", "run").isolation.tier == tier


def test_a_yes_in_one_workspace_covers_no_other(tmp_path: Path, tier: str) -> None:
    (tmp_path / "other").mkdir()
    gate = Gate()
    with manager_under(GUARDED, tmp_path, gate) as manager:
        gate.say("yes_in_session")
        manager.execute_skill_script("demo", "run")
        manager.execute_skill_script("demo", "run")
        assert len(gate.requests) == 1, tier
        gate.say("yes_in_session")
        manager.execute_skill_script("demo", "run", workspace=tmp_path / "other")
        assert len(gate.requests) == 2


def test_a_yes_covers_no_other_program_behind_the_same_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interpreter of the same name that came to stand first on PATH is not the one that was shown."""
    gate = Gate()
    policy = replace(TRUSTED, approval="first_run")
    with manager_under(policy, tmp_path, gate) as manager:
        gate.say("yes_in_session")
        manager.execute_skill_script("demo", "run")
        assert manager.execute_skill_script("demo", "run").stdout == "ran\n"
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin/bash").symlink_to("/bin/sh")
        monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
        gate.say("no")
        with pytest.raises(ScriptRefusedError):
            manager.execute_skill_script("demo", "run")
        assert len(gate.requests) == 2


@pytest.mark.parametrize("by", ["session", "session without a name", "trust"])
def test_a_lasting_yes_covers_no_run_that_may_last_longer(tmp_path: Path, tier: str, by: str) -> None:
    name = None if by == "session without a name" else "s"
    person = ScriptedApprover(*([] if by == "trust" else ["yes_in_session"]))
    with manager_under(GUARDED, tmp_path, person, session_id=name) as manager:
        if by == "trust":
            trust_demo(tmp_path, GUARDED)
        manager.execute_skill_script("demo", "run")
        assert manager.execute_skill_script("demo", "run", timeout=29).isolation.tier == tier, "less is covered"
        asked = manager.prepare_skill_script("demo", "run", timeout=31)
        assert asked.reasons == ("Policy asks a person again, because the run would get more than what was approved.",)
        with pytest.raises(ApprovalUnavailableError):
            manager.execute_skill_script("demo", "run", timeout=31)


@pytest.mark.parametrize("kind", ["session", "trust"])
def test_what_an_older_version_kept_is_listed_and_asked_about_once_more(tmp_path: Path, kind: str) -> None:
    """It did not keep the walls, so nobody can say whether a run is within them."""
    with manager_under(GUARDED, tmp_path, ScriptedApprover("yes_in_session", "yes_in_session")) as manager:
        trust_demo(tmp_path, GUARDED) if kind == "trust" else manager.execute_skill_script("demo", "run")
        assert manager.prepare_skill_script("demo", "run").decision is Decision.ALLOW, "it covers while walls are kept"
        with manager.flow.store.transaction() as connection:
            connection.execute("update approvals set walls = ''")
        asked = manager.prepare_skill_script("demo", "run")
        assert asked.reasons == (
            "Policy asks a person once more, because an older skillkit did not keep within which walls it was approved.",
        )
        if kind == "trust":
            told = CliRunner().invoke(trust, ["list", "--state-dir", str(tmp_path / "state")]).output
            assert "walls unknown" in told
        manager.execute_skill_script("demo", "run")
        assert manager.prepare_skill_script("demo", "run").decision is Decision.ALLOW
