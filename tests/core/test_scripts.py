"""ScriptExecutor for callers without a manager, and the two halves of the flow."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from support.running import kinds, made_manager, only_record, runnable
from support.skill_folders import skill_folder

from skillkit import (
    GUARDED,
    LOCKED,
    STANDARD,
    TRUSTED,
    ApprovalDeclinedError,
    ApprovalUnavailableError,
    ConfigurationError,
    PathSecurityError,
    ScriptExecutionResult,
    ScriptExecutor,
    ScriptNotFoundError,
    ScriptPolicy,
    ScriptRefusedError,
    SkillManager,
    ToolRestrictionError,
)
from skillkit.core.resolve import CallArguments
from skillkit.core.values.questions import Option
from skillkit.core.values.runs import Decision
from skillkit.testing import ScriptedApprover


@dataclass
class Described:
    """Any object with these three attributes will do."""

    name: str = "demo"
    version: Any = "1.0"
    allowed_tools: Any = None


def executed(
    tmp_path: Path, text: str, arguments: object = None, described: object = None, **settings: Any
) -> ScriptExecutionResult:
    base = skill_folder(tmp_path / "skills", "demo", files={"scripts/run.sh": text})
    executor = ScriptExecutor(policy=TRUSTED, state_dir=tmp_path / "state", **settings)
    try:
        return executor.execute("scripts/run.sh", arguments, base, described or Described())
    finally:
        executor.close()


def test_one_script_runs_as_by_a_manager(tmp_path: Path) -> None:
    result = executed(tmp_path, 'cat; pwd -P; echo "$SKILL_NAME $SKILL_VERSION"\n', {"a": 1})
    base = (tmp_path / "skills/demo").resolve()
    assert (result.stdout, result.stderr, result.exit_code) == (f'{{"a": 1}}{base}\ndemo 1.0\n', "", 0)
    assert result.script_path == base / "scripts/run.sh"
    assert kinds(tmp_path) == ["started", "finished"]


def test_the_defaults_are_these(tmp_path: Path) -> None:
    executor = ScriptExecutor(state_dir=tmp_path / "state")
    assert (executor.timeout, executor.max_output_size) == (30, 10_000_000)


def test_a_script_may_be_named_by_its_absolute_path_inside_the_skill(tmp_path: Path) -> None:
    base = skill_folder(tmp_path, "demo", files={"scripts/run.sh": "echo ran\n"})
    executor = ScriptExecutor(policy=TRUSTED, state_dir=tmp_path / "state")
    assert executor.execute(base / "scripts/run.sh", None, base, Described()).stdout == "ran\n"
    assert executor.execute("run.sh", None, str(base), Described()).stdout == "ran\n"
    with pytest.raises(PathSecurityError, match="it is absolute"):
        executor.execute(Path("/bin/sh"), None, base, Described())
    executor.close()


def test_fractions_of_a_second_are_fine_here(tmp_path: Path) -> None:
    result = executed(tmp_path, "sleep 20\n", timeout=0.2)
    assert (result.timed_out, result.exit_code) == (True, 124)
    assert 200 <= result.execution_time_ms < 2000


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "5", True, 10**9])
def test_a_time_that_is_none_is_refused(tmp_path: Path, seconds: Any) -> None:
    with pytest.raises(ConfigurationError, match="number of seconds above 0"):
        ScriptExecutor(timeout=seconds)
    base = skill_folder(tmp_path, "demo", files={"scripts/run.sh": "echo ran\n"})
    executor = ScriptExecutor(policy=TRUSTED, state_dir=tmp_path / "state")
    with pytest.raises(ConfigurationError, match="number of seconds above 0"):
        executor.execute("run.sh", None, base, Described(), seconds)


def test_output_is_cut_at_the_given_size(tmp_path: Path) -> None:
    result = executed(tmp_path, "printf 12345; printf 123 >&2\n", max_output_size=4)
    assert (result.stdout, result.stdout_truncated) == ("1234\n[... output truncated ...]", True)
    assert (result.stderr, result.stderr_truncated) == ("123", False)


def test_a_character_cut_in_two_becomes_a_replacement(tmp_path: Path) -> None:
    assert executed(tmp_path, "printf 'aä'\n", max_output_size=2).stdout == "a\ufffd\n[... output truncated ...]"


@pytest.mark.parametrize(("version", "seen"), [(None, "0.0.0"), ("", "0.0.0"), (1.5, "1.5"), ("2", "2")])
def test_a_version_of_any_kind_is_a_text_for_the_script(tmp_path: Path, version: Any, seen: str) -> None:
    assert executed(tmp_path, "echo $SKILL_VERSION\n", None, Described(version=version)).stdout == f"{seen}\n"


def test_an_object_without_a_version_or_tools_will_do(tmp_path: Path) -> None:
    class Named:
        name = "demo"

    assert executed(tmp_path, "echo $SKILL_VERSION\n", None, Named()).stdout == "0.0.0\n"


def test_allowed_tools_hold_here_too(tmp_path: Path) -> None:
    with pytest.raises(ToolRestrictionError, match="Allowed tools: Read"):
        executed(tmp_path, "echo ran\n", None, Described(allowed_tools=["Read"]))
    assert executed(tmp_path, "echo ran\n", None, Described(allowed_tools=["Bash"])).stdout == "ran\n"


def test_policy_holds_here_too(tmp_path: Path) -> None:
    base = skill_folder(tmp_path, "demo", files={"scripts/run.sh": "echo ran\n"})
    for policy, error in ((LOCKED, ScriptRefusedError), (GUARDED, ApprovalUnavailableError)):
        executor = ScriptExecutor(policy=policy, state_dir=tmp_path / "state")
        with pytest.raises(error, match=r"allow scripts|approval"):
            executor.execute("run.sh", None, base, Described())
    assert kinds(tmp_path) == ["refused", "refused"]


def test_a_person_is_asked_here_too(tmp_path: Path) -> None:
    base = skill_folder(tmp_path, "demo", files={"scripts/run.sh": "echo ran\n"})
    approver = ScriptedApprover("yes_in_session", "no")
    executor = ScriptExecutor(
        policy=replace(TRUSTED, approval="first_run"), approver=approver, state_dir=tmp_path / "s"
    )
    for _ in range(2):
        assert executor.execute("run.sh", None, base, Described()).stdout == "ran\n"
    (base / "new").touch()
    with pytest.raises(ApprovalDeclinedError):
        executor.execute("run.sh", None, base, Described())
    assert len(approver.requests) == 2
    executor.close()


def test_a_folder_that_is_no_skill_has_no_scripts(tmp_path: Path) -> None:
    executor = ScriptExecutor(policy=TRUSTED, state_dir=tmp_path / "state")
    with pytest.raises(ScriptNotFoundError, match="It has no scripts"):
        executor.execute("run.sh", None, tmp_path / "gone", Described())


def test_artifacts_are_kept_until_the_executor_closes(tmp_path: Path) -> None:
    base = skill_folder(tmp_path, "demo", files={"scripts/run.sh": 'echo x > "$SKILL_WORK_DIR/x"\n'})
    executor = ScriptExecutor(policy=TRUSTED, state_dir=tmp_path / "state")
    (artifact,) = executor.execute("run.sh", None, base, Described()).artifacts
    assert artifact.path.read_text() == "x\n"
    executor.close()
    assert not artifact.path.exists()


def outside_of_copies(tmp_path: Path) -> list[Path]:
    copies = tmp_path / "state" / "snapshots"
    return sorted(path for path in tmp_path.rglob("*") if path != copies.parent and not path.is_relative_to(copies))


def ask(tmp_path: Path, **call: Any) -> tuple[SkillManager, CallArguments]:
    manager = made_manager(tmp_path, {"scripts/run.sh": 'echo ran > "$1"\n'}, policy=GUARDED)
    return manager, CallArguments("run", **{"argv": (str(tmp_path / "mark"),), **call})


def test_preparing_asks_with_exactly_three_options_and_only_copies_the_skill(tmp_path: Path) -> None:
    manager, call = ask(tmp_path, session_id="s")
    skill = manager.load_skill("demo")
    before = outside_of_copies(tmp_path)
    first, second = (manager.flow.prepare(skill, call) for _ in range(2))
    assert first.request is not None
    assert second.request is not None
    assert first == replace(second, request=second.request.asked(first.request.created_at)), "but for the moment"
    assert outside_of_copies(tmp_path) == before
    assert (first.decision, first.reasons) == (Decision.ASK, ("Policy asks a person before a skill's first run.",))
    assert first.request is not None
    assert first.request.options == (
        Option("yes_once", "Yes once"),
        Option("yes_in_session", "Yes in this session"),
        Option("no", "No"),
    )
    assert (first.request.title, first.request.session_id) == ("Run scripts/run.sh of the skill demo?", "s")


def request_id(tmp_path: Path, **call: Any) -> str:
    manager, arguments = ask(tmp_path, **call)
    request = manager.flow.prepare(manager.load_skill("demo"), arguments).request
    assert request is not None
    return request.id


def test_an_id_belongs_to_one_call_only(tmp_path: Path) -> None:
    base = (tmp_path / "skills" / "demo").resolve()
    calls: list[dict[str, Any]] = [
        {},
        {"session_id": "s"},
        {"argv": ()},
        {"argv": ("a", "b")},
        {"argv": ("a b",)},
        {"arguments": {"a": 1}},
        {"stdin": "x"},
        # Joined by NUL these two would be the same text.
        {"argv": (str(base),), "stdin": "S"},
        {"argv": (), "stdin": f"{base}\0S"},
        {"argv": ("\udcff",)},
    ]
    ids = [request_id(tmp_path, **call) for call in calls]
    assert len(set(ids)) == len(calls)
    assert request_id(tmp_path) == ids[0]
    (tmp_path / "skills/demo/scripts/run.sh").write_text("changed\n")
    manager, call = ask(tmp_path)
    (tmp_path / "skills/demo/other").write_text("")
    request = manager.flow.prepare(manager.load_skill("demo"), call).request
    assert request is not None
    assert request.id not in ids


def test_completing_what_still_needs_an_answer_runs_nothing(tmp_path: Path) -> None:
    manager, call = ask(tmp_path)
    prepared = manager.flow.prepare(manager.load_skill("demo"), call)
    with pytest.raises(ApprovalUnavailableError, match="Nobody can be asked here") as caught:
        manager.flow.complete(prepared)
    assert caught.value.reasons == prepared.reasons
    assert not (tmp_path / "mark").exists()
    assert only_record(tmp_path, "refused")["decision"] == "ask"


def test_a_denied_run_is_refused_with_the_reasons(tmp_path: Path) -> None:
    with runnable(tmp_path, "echo ran\n", policy=LOCKED) as manager:
        prepared = manager.flow.prepare(manager.load_skill("demo"), CallArguments("run"))
        assert prepared.decision is Decision.DENY
        assert prepared.request is None
        with pytest.raises(ScriptRefusedError, match="set 'allow_scripts'"):
            manager.flow.complete(prepared)
        # Even a prepared run that lost its error is refused.
        with pytest.raises(ScriptRefusedError, match="Refused") as caught:
            manager.flow.complete(replace(prepared, error=None))
        assert caught.value.reasons == prepared.reasons


def test_preparing_records_nothing_and_completing_does(tmp_path: Path) -> None:
    with runnable(tmp_path, "echo ran\n") as manager:
        prepared = manager.flow.prepare(manager.load_skill("demo"), CallArguments("run"))
        assert not (tmp_path / "state" / "state.sqlite3").exists()
        assert manager.flow.complete(prepared).stdout == "ran\n"
    assert kinds(tmp_path) == ["started", "finished"]


def test_walls_that_are_wished_for_but_missing_are_named_in_the_result(tmp_path: Path) -> None:
    with runnable(tmp_path, "echo ran\n", policy=STANDARD) as manager:
        isolation = manager.execute_skill_script("demo", "run").isolation
    assert isolation.tier != "none" or isolation.degraded


def test_an_unfit_working_directory_is_an_error_on_record(tmp_path: Path) -> None:
    policy = ScriptPolicy(allow_scripts=True, approval="never", sandbox="off", working_directory="workspace")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    with runnable(tmp_path, "echo ran\n", policy=policy) as manager:
        prepared = manager.flow.prepare(manager.load_skill("demo"), CallArguments("run", workspace=workspace))
        os.rmdir(workspace)
        with pytest.raises(ConfigurationError, match="workspace is not there any more"):
            manager.flow.complete(prepared)
    assert kinds(tmp_path) == ["refused"]
