"""Commands in an answer, run as real processes."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.inline_answers import outcomes_in, said, shown_by, text_in, tutor
from support.running import anybody_runs, kinds, only_record, records_of, wait_for

from skillkit import GUARDED, STANDARD, TRUSTED, ScriptPolicy, SkillManager, SkillNotFoundError
from skillkit.integrations.inline import InlineProcessor, Shown, Text, shown_text
from skillkit.testing import ScriptedApprover, skill_folder


def test_a_side_effect_happens_once_and_disappears_from_the_text(tmp_path: Path) -> None:
    with tutor(tmp_path) as manager:
        shown = shown_by(InlineProcessor(manager), 'Say %{scripts/speak.sh "le chat"} after me.')
    assert text_in(shown) == "Say  after me."
    assert said(tmp_path) == ["le chat"]
    assert kinds(tmp_path) == ["started", "finished"]
    (outcome,) = outcomes_in(shown)
    assert (outcome.status, outcome.command.kind) == ("ok", "effect")
    assert outcome.line.startswith('[scripts/speak.sh "le chat": done, ')


def test_output_is_captured_in_place(tmp_path: Path) -> None:
    with tutor(tmp_path) as manager:
        shown = shown_by(InlineProcessor(manager), "A !{demo:scripts/lookup.sh chat} B")
    assert [type(each).__name__ for each in shown if not isinstance(each, Text) or each.text.strip()] == [
        "Text",
        "CommandOutcome",
        "Text",
    ]
    assert outcomes_in(shown)[0].output == "chat means a small domesticated cat\n"


def test_text_is_shown_before_the_command_behind_it_runs(tmp_path: Path) -> None:
    with tutor(tmp_path) as manager:
        shown = InlineProcessor(manager).shown("Listen: %{scripts/speak.sh now} Good.")
        assert next(shown) == Text("Listen: ")
        assert said(tmp_path) == []
        assert outcomes_in(list(shown))
        assert said(tmp_path) == ["now"]


def test_two_commands_in_one_answer_run_in_their_order(tmp_path: Path) -> None:
    with tutor(tmp_path) as manager:
        InlineProcessor(manager).feed("%{scripts/speak.sh one}%{scripts/speak.sh two}%{scripts/speak.sh one}")
    assert said(tmp_path) == ["one", "two", "one"]


def test_words_reach_the_script_as_they_are_written(tmp_path: Path) -> None:
    with tutor(tmp_path) as manager:
        (outcome,) = InlineProcessor(manager).feed('!{scripts/words.py {"a": "}"} "$HOME" `id` ; rm \'*\'}')
    assert json.loads(shown_output(outcome)) == ['{"a": "}"}', "$HOME", "`id`", ";", "rm", "*"]


def shown_output(shown: Shown) -> str:
    assert not isinstance(shown, Text)
    return shown.output


def test_declined_runs_nothing_and_says_so(tmp_path: Path) -> None:
    approver = ScriptedApprover("no", "yes_once")
    with tutor(tmp_path, policy=replace(TRUSTED, approval="always"), approver=approver) as manager:
        first, second = InlineProcessor(manager).feed("%{scripts/speak.sh a}%{scripts/speak.sh b}")
    assert not isinstance(first, Text)
    assert not isinstance(second, Text)
    assert (first.status, second.status) == ("declined", "ok")
    assert "not approved" in first.line
    assert said(tmp_path) == ["b"]
    assert [record.kind for record in records_of(tmp_path)] == ["refused", "started", "finished"]


def test_without_anybody_to_ask_nothing_runs(tmp_path: Path) -> None:
    with tutor(tmp_path, policy=replace(TRUSTED, approval="first_run")) as manager:
        (outcome,) = outcomes_in(InlineProcessor(manager).feed("%{scripts/speak.sh a}"))
    assert outcome.status == "approval_unavailable"
    assert said(tmp_path) == []


def test_a_yes_in_this_session_covers_the_next_command(tmp_path: Path) -> None:
    approver = ScriptedApprover("yes_in_session")
    policy = replace(TRUSTED, approval="first_run")
    with tutor(tmp_path, policy=policy, approver=approver) as manager:
        processor = InlineProcessor(manager, session_id="talk")
        shown = processor.feed("%{scripts/speak.sh a}%{scripts/speak.sh b}")
        other = InlineProcessor(manager, session_id="other").feed("%{scripts/speak.sh c}")
    assert [outcome.status for outcome in outcomes_in(shown)] == ["ok", "ok"]
    assert outcomes_in(other)[0].status == "approval_unavailable"


def test_a_manager_without_a_policy_is_guarded_here(tmp_path: Path) -> None:
    with tutor(tmp_path, policy=None) as manager:
        (outcome,) = outcomes_in(InlineProcessor(manager).feed("%{scripts/speak.sh a}"))
        assert outcome.status == "approval_unavailable"
        assert manager.agent_policy == GUARDED
        assert InlineProcessor(manager, STANDARD).feed("%{scripts/speak.sh a}")
    assert said(tmp_path) == ["a"]


def test_where_scripts_are_not_allowed_they_are_stripped_and_the_person_is_told(tmp_path: Path) -> None:
    with tutor(tmp_path, policy=ScriptPolicy()) as manager:
        shown = shown_by(InlineProcessor(manager), "a %{scripts/speak.sh x} b")
    assert text_in(shown) == "a  b"
    assert "allow_scripts" in outcomes_in(shown)[0].line
    assert said(tmp_path) == []
    assert kinds(tmp_path) == ["refused"]


def test_a_failing_script_is_said_to_fail_and_the_answer_goes_on(tmp_path: Path) -> None:
    with tutor(tmp_path) as manager:
        shown = shown_by(InlineProcessor(manager), "a %{scripts/fail.sh} b !{scripts/lookup.sh c}")
    failed, looked_up = outcomes_in(shown)
    assert failed.line == "[scripts/fail.sh: failed, exit code 3: broken]"
    assert failed.output == "half\nbroken\n"
    assert looked_up.status == "ok"
    assert text_in(shown) == "a  b "


def test_a_script_that_hangs_is_stopped_and_said_to_be(tmp_path: Path) -> None:
    with tutor(tmp_path, default_script_timeout=1) as manager:
        (outcome,) = outcomes_in(InlineProcessor(manager).feed("!{scripts/hang.sh}"))
    assert outcome.status == "timeout"
    assert "its time was over" in outcome.line


@pytest.mark.parametrize(
    ("command", "status", "why"),
    [
        pytest.param("scripts/none.sh", "not_found", "scripts/speak.sh", id="no-such-script"),
        pytest.param("demo:scripts/none.sh", "not_found", "has no script", id="no-such-script-of-a-skill"),
        pytest.param("none:scripts/x.sh", "not_found", "none", id="no-such-skill"),
        pytest.param("demo:scripts/../../x.sh", "refused", "..", id="escape"),
        pytest.param("../demo/scripts/speak.sh", "not_found", "No loaded skill", id="relative-path"),
        pytest.param("/bin/echo hi", "not_found", "No loaded skill", id="absolute-path"),
        pytest.param("env", "refused", "allowed_commands", id="program-not-allowed"),
        pytest.param("''", "refused", "names no script", id="empty-word"),
        pytest.param("scripts/speak.sh \x00", "refused", "NUL", id="nul"),
    ],
)
def test_what_cannot_run_has_a_status_a_reason_and_a_record(
    tmp_path: Path, command: str, status: str, why: str
) -> None:
    with tutor(tmp_path) as manager:
        (outcome,) = outcomes_in(InlineProcessor(manager).feed(f"%{{{command}}}"))
    assert (outcome.status, outcome.result) == (status, None)
    assert why in outcome.line
    assert outcome.line.isprintable()
    assert kinds(tmp_path) == ["refused"]


def test_a_script_that_two_skills_have_must_be_named_with_its_skill(tmp_path: Path) -> None:
    skill_folder(tmp_path / "skills", "other", {"scripts/lookup.sh": "echo other\n"})
    with tutor(tmp_path) as manager:
        unclear, clear = outcomes_in(
            InlineProcessor(manager).feed("!{scripts/lookup.sh x}!{other:scripts/lookup.sh x}")
        )
        (loaded,) = outcomes_in(InlineProcessor(manager, skills=["other"]).feed("!{scripts/lookup.sh x}"))
    assert unclear.status == "not_found"
    assert "demo:scripts/lookup.sh, other:scripts/lookup.sh" in unclear.detail
    assert (clear.output, loaded.output) == ("other\n", "other\n")


def test_a_skill_that_is_not_loaded_does_not_run(tmp_path: Path) -> None:
    skill_folder(tmp_path / "skills", "other", {"scripts/x.sh": "echo other\n"})
    with tutor(tmp_path) as manager:
        (outcome,) = outcomes_in(InlineProcessor(manager, skills=["demo"]).feed("!{other:scripts/x.sh}"))
        with pytest.raises(SkillNotFoundError, match="nobody"):
            InlineProcessor(manager, skills=["nobody"])
    assert (outcome.status, outcome.result) == ("refused", None)


def test_policy_can_name_the_scripts_that_may_run(tmp_path: Path) -> None:
    policy = replace(TRUSTED, allowed_commands=("scripts/look*",))
    with tutor(tmp_path, policy=policy) as manager:
        statuses = [
            outcome.status
            for outcome in outcomes_in(InlineProcessor(manager).feed("!{scripts/lookup.sh x}%{scripts/speak.sh x}"))
        ]
    assert statuses == ["ok", "refused"]


def test_paths_that_a_model_names_are_asked_about(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    with tutor(tmp_path) as manager:
        inside, outside = outcomes_in(
            InlineProcessor(manager).feed(f"!{{scripts/words.py x}}!{{scripts/words.py {tmp_path / 'secret'}}}")
        )
    assert (inside.status, outside.status) == ("ok", "approval_unavailable")


def test_a_line_for_the_person_holds_nothing_that_a_terminal_obeys(tmp_path: Path) -> None:
    with tutor(tmp_path) as manager:
        (outcome,) = outcomes_in(InlineProcessor(manager).feed("%{\x1b[2Jno\u202esuch " + "x" * 5_000 + "}"))
    assert outcome.line.isprintable()
    assert len(outcome.line) <= 300
    assert shown_text(outcome) == f"\n{outcome.line}\n"


def test_an_answer_with_a_flood_of_commands_runs_a_hundred_of_them(tmp_path: Path) -> None:
    with tutor(tmp_path, policy=ScriptPolicy()) as manager:
        processor = InlineProcessor(manager)
        outcomes = outcomes_in(processor.feed("%{scripts/speak.sh x}" * 101))
        processor.finish()
        (after,) = outcomes_in(processor.feed("%{scripts/speak.sh x}"))
    reasons = ["more than 100 commands" in outcome.detail for outcome in outcomes]
    assert reasons == [False] * 100 + [True]
    assert "more than" not in after.detail


def test_a_known_cause_of_a_failure_is_named_in_the_line(tmp_path: Path) -> None:
    with tutor(tmp_path) as manager:
        skill_folder(tmp_path / "skills", "broken", {"scripts/x.py": "import no_such_module\n"})
        (outcome,) = outcomes_in(InlineProcessor(manager).feed("%{scripts/x.py}"))
    assert "'no_such_module' is missing" in outcome.line


async def chunked(text: str) -> AsyncIterator[str]:
    for char in text:
        await asyncio.sleep(0)
        yield char


def test_a_stream_of_a_loop_is_wrapped_without_blocking_it(tmp_path: Path) -> None:
    async def shown(manager: SkillManager) -> list[Shown]:
        processor = InlineProcessor(manager)
        return [each async for each in processor.astream(chunked("a %{scripts/speak.sh b} !{scripts/lookup.sh c} d"))]

    with tutor(tmp_path) as manager:
        seen = asyncio.run(shown(manager))
    assert text_in(seen) == "a   d"
    assert [outcome.status for outcome in outcomes_in(seen)] == ["ok", "ok"]
    assert said(tmp_path) == ["b"]


def test_cancelling_the_stream_kills_the_command_that_runs(tmp_path: Path) -> None:
    async def cancelled(manager: SkillManager) -> None:
        async def read() -> None:
            async for _ in InlineProcessor(manager).astream(chunked("!{scripts/hang.sh}")):
                pass

        reading = asyncio.create_task(read())
        while not anybody_runs(mark):  # noqa: ASYNC110 - processes tell nobody
            await asyncio.sleep(0.02)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    mark = f"SKILL_BASE_DIR={tmp_path}"
    with tutor(tmp_path) as manager:
        asyncio.run(asyncio.wait_for(cancelled(manager), 60))
    assert wait_for(lambda: not anybody_runs(mark))
    assert only_record(tmp_path, "finished")["cancelled"] is True


def test_answers_of_two_threads_do_not_mix(tmp_path: Path) -> None:
    with tutor(tmp_path) as manager:
        seen: dict[int, str] = {}

        def answer(number: int) -> None:
            shown = shown_by(InlineProcessor(manager), f"!{{scripts/lookup.sh word{number}}}")
            seen[number] = outcomes_in(shown)[0].output

        threads = [threading.Thread(target=answer, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {number: text.split()[0] for number, text in seen.items()} == {n: f"word{n}" for n in range(4)}
    assert os.listdir(tmp_path / "workspace") == []
