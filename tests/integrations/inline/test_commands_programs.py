"""Programs of the machine in a model's text: the same policy, approval, walls and record as scripts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.inline_answers import outcomes_in, tutor
from support.running import kinds, only_record

from skillkit import GUARDED, TRUSTED, ContentChangedError, ScriptPolicy, SkillManager
from skillkit.core.resolve import CallArguments
from skillkit.core.values.questions import Prompt
from skillkit.integrations.inline import CommandOutcome, InlineProcessor
from skillkit.testing import ScriptedApprover

ALLOWED = replace(TRUSTED, allowed_commands=("greet*",))


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    made(folder / "greet", "#!/bin/sh\nprintf 'hello %s' \"$1\"\n")
    return folder


def made(path: Path, text: str, mode: int = 0o755) -> None:
    path.write_text(text)
    path.chmod(mode)


def outcome_of(manager: SkillManager, text: str) -> CommandOutcome:
    (outcome,) = outcomes_in(InlineProcessor(manager, session_id="talk").feed(text))
    return outcome


@pytest.mark.usefixtures("programs")
def test_a_program_that_policy_names_runs_and_is_on_record(tmp_path: Path) -> None:
    with tutor(tmp_path, policy=ALLOWED) as manager:
        outcome = outcome_of(manager, "!{greet 'you $HOME'}")
    assert (outcome.status, outcome.output) == ("ok", "hello you $HOME")
    assert kinds(tmp_path) == ["started", "finished"]
    started = only_record(tmp_path, "started")
    assert (started["skill"], started["script"]) == ("(program)", "greet")
    assert started["path"] == str(tmp_path / "bin" / "greet")


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("allowed", [(), ("other",), ("scripts/*",), ("*/greet",), ("Greet",)])
def test_a_program_that_no_entry_names_does_not_run(tmp_path: Path, allowed: tuple[str, ...]) -> None:
    with tutor(tmp_path, policy=replace(TRUSTED, allowed_commands=allowed)) as manager:
        outcome = outcome_of(manager, "!{greet you}")
    assert (outcome.status, outcome.result) == ("refused", None)
    assert "'allowed_commands' does not name the program 'greet'" in outcome.line
    assert kinds(tmp_path) == ["refused"]


@pytest.mark.usefixtures("programs")
def test_an_entry_for_a_program_neither_allows_nor_forbids_scripts(tmp_path: Path) -> None:
    with tutor(tmp_path, policy=ALLOWED) as manager:
        assert outcome_of(manager, "!{scripts/lookup.sh x}").status == "ok"


@pytest.mark.usefixtures("programs")
def test_allowing_programs_does_not_allow_what_policy_forbids_altogether(tmp_path: Path) -> None:
    with tutor(tmp_path, policy=ScriptPolicy(allowed_commands=("greet",))) as manager:
        assert outcome_of(manager, "!{greet you}").status == "refused"


@pytest.mark.usefixtures("programs")
def test_a_program_is_asked_about_and_the_question_names_it(tmp_path: Path) -> None:
    approver = ScriptedApprover("no", "yes_in_session")
    policy = replace(ALLOWED, approval="first_run")
    with tutor(tmp_path, policy=policy, approver=approver) as manager:
        statuses = [outcome_of(manager, "!{greet you}").status for _ in range(3)]
    assert statuses == ["declined", "ok", "ok"]
    request = approver.requests[0]
    assert request.title == f"Run the program {tmp_path / 'bin' / 'greet'}?"
    prompt = Prompt.from_context(request.context)
    assert prompt is not None
    assert prompt.commands[0].argv == ("you",)
    assert f"Path: {tmp_path / 'bin' / 'greet'}\n" in prompt.commands[0].source
    assert prompt.risks == ()


def test_an_approval_ends_when_the_program_changes(tmp_path: Path, programs: Path) -> None:
    approver = ScriptedApprover("yes_in_session")
    policy = replace(ALLOWED, approval="first_run")
    with tutor(tmp_path, policy=policy, approver=approver) as manager:
        assert outcome_of(manager, "!{greet you}").status == "ok"
        made(programs / "greet", "#!/bin/sh\necho other\n")
        assert outcome_of(manager, "!{greet you}").status == "approval_unavailable"
    changes = Prompt.from_context(approver.requests[1].context)
    assert changes is not None
    assert [change.path for change in changes.changes or ()] == ["greet"]


def test_a_program_that_changes_after_the_decision_does_not_run(tmp_path: Path, programs: Path) -> None:
    with tutor(tmp_path, policy=ALLOWED) as manager:
        prepared = manager.flow.prepare(None, CallArguments("greet", argv=("you",)))
        assert manager.flow.complete(prepared).stdout == "hello you"
        made(programs / "greet", "#!/bin/sh\necho other\n")
        with pytest.raises(ContentChangedError, match="'greet' changed"):
            manager.flow.complete(prepared)


def test_a_program_inside_the_workspace_is_never_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "workspace" / "bin"
    with tutor(tmp_path, policy=ALLOWED) as manager:
        folder.mkdir()
        made(folder / "greet", "#!/bin/sh\necho planted\n")
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        assert outcome_of(manager, "!{greet you}").status == "not_found"


def test_a_program_with_the_setuid_bit_is_never_run(tmp_path: Path, programs: Path) -> None:
    made(programs / "greet", "#!/bin/sh\necho up\n", 0o4755)
    with tutor(tmp_path, policy=ALLOWED) as manager:
        outcome = outcome_of(manager, "!{greet you}")
    assert (outcome.status, outcome.result) == ("refused", None)
    assert "setuid" in outcome.line


def test_a_program_stands_inside_the_walls(tmp_path: Path, tier: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("open sesame")
    walled = replace(GUARDED, approval="never", allowed_commands=("cat", "pwd"), grant_argument_paths=False)
    with tutor(tmp_path, policy=walled) as manager:
        (tmp_path / "workspace" / "shown").write_text("seen")
        inside = outcome_of(manager, "!{cat shown}")
        place = outcome_of(manager, "!{pwd}")
    assert (inside.status, inside.output) == ("ok", "seen"), inside
    assert place.output.strip() == str(tmp_path / "workspace")
    assert inside.result is not None
    assert inside.result.isolation.tier == tier
    approver = ScriptedApprover("yes_once", "yes_once")
    reading = f"!{{cat {secret}}}"
    with tutor(tmp_path, policy=walled, approver=approver) as manager:
        outside = outcome_of(manager, reading)
    assert outside.status == "failed"
    assert "open sesame" not in outside.output
    with tutor(tmp_path, policy=replace(TRUSTED, allowed_commands=("cat",)), approver=approver) as manager:
        assert outcome_of(manager, reading).output == "open sesame"


@pytest.mark.usefixtures("programs")
def test_a_program_runs_approved_inside_walls(tmp_path: Path, tier: str) -> None:
    policy = replace(GUARDED, allowed_commands=("echo",))
    with tutor(tmp_path, policy=policy, approver=ScriptedApprover("yes_once")) as manager:
        outcome = outcome_of(manager, "!{echo -n hi}")
    assert (outcome.status, outcome.output) == ("ok", "hi"), (tier, outcome)
