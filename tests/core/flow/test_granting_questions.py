"""What a question offers, and what a yes opens: exactly what was ticked, as long as the yes lasts."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.running import made_manager, records_of

from skillkit import (
    GUARDED,
    ApprovalDeclinedError,
    Grant,
    InterpreterNotAllowedError,
    OptionAnswer,
    OptionRequest,
    ScriptPolicy,
    ScriptRefusedError,
    SkillManager,
)
from skillkit.core.values.questions import KEEP_HOME, SAME_AGAIN, Prompt
from skillkit.core.values.runs import Decision

SCRIPT = """#!/usr/bin/env python3
import os
print("key", os.environ.get("WEATHER_API_KEY"), "team", os.environ.get("TEAM_NAME"))
"""
KEY, TEAM = "secret:WEATHER_API_KEY", "variable:TEAM_NAME"


class Person:
    """Answers in turn with an option and ticks, and remembers what they were asked."""

    channel = "person"

    def __init__(self, *answers: tuple[str, Iterable[str]]) -> None:
        self.answers = list(answers)
        self.asked: list[OptionRequest] = []

    def ask(self, request: OptionRequest, cancel: Any = None) -> OptionAnswer:
        assert cancel is not None
        self.asked.append(request)
        option, ticks = self.answers.pop(0)
        return OptionAnswer(option, self.channel, time.time(), request.id, tuple(ticks))

    @property
    def offered(self) -> list[str]:
        return [tick.id for tick in self.asked[-1].grants]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEATHER_API_KEY", "k-123")
    monkeypatch.setenv("TEAM_NAME", "blue")


def manager_of(
    folder: Path, person: Person, *, policy: ScriptPolicy = GUARDED, script: str = SCRIPT, **settings: Any
) -> SkillManager:
    given = {"session_id": "s", **settings}
    return made_manager(folder, {"scripts/run.py": script}, policy=policy, approver=person, **given)


def said(manager: SkillManager) -> str:
    return manager.execute_skill_script("demo", "run").stdout.strip()


def test_unmet_needs_are_offered_and_none_is_ticked(tmp_path: Path) -> None:
    person = Person(("yes_once", ()))
    with manager_of(tmp_path, person) as manager:
        assert said(manager) == "key None team None"
    assert person.offered == [KEY, TEAM]
    prompt = Prompt.from_context(person.asked[0].context)
    assert prompt is not None
    assert {(need.kind, need.name, need.is_met) for need in prompt.needs} >= {
        ("secret", "WEATHER_API_KEY", False),
        ("variable", "TEAM_NAME", False),
    }
    assert "no secrets" in " ".join(prompt.walls)


def test_a_yes_once_opens_what_was_ticked_for_one_run(tmp_path: Path) -> None:
    person = Person(("yes_once", [KEY]), ("yes_once", [TEAM]), ("yes_once", ()))
    with manager_of(tmp_path, person) as manager:
        assert said(manager) == "key k-123 team None"
        assert said(manager) == "key None team blue"
        assert said(manager) == "key None team None"
    started: list[Any] = [record.fields for record in records_of(tmp_path) if record.kind == "started"]
    assert [each.get("ticks") for each in started] == [
        {"secret": ["WEATHER_API_KEY"]},
        {"variable": ["TEAM_NAME"]},
        None,
    ]
    assert [each["walls"]["variables"] for each in started] == [[], [], []], "the walls before any tick"


def test_a_yes_for_the_session_opens_what_was_ticked_as_long_as_it_lasts(tmp_path: Path) -> None:
    person = Person(("yes_in_session", [KEY]), ("yes_once", ()))
    with manager_of(tmp_path, person) as manager:
        assert said(manager) == "key k-123 team None"
        assert said(manager) == "key k-123 team None"
    with manager_of(tmp_path, person) as manager:
        assert said(manager) == "key k-123 team None", "another process of the session has it too"
        assert len(person.asked) == 1
        manager.end_session_approvals()
        assert said(manager) == "key None team None"
    assert person.answers == []


def test_a_session_without_a_name_keeps_its_ticks_too(tmp_path: Path) -> None:
    person = Person(("yes_in_session", [TEAM]))
    with manager_of(tmp_path, person, session_id=None) as manager:
        assert said(manager) == "key None team blue"
        assert said(manager) == "key None team blue"


def test_what_was_not_offered_cannot_be_ticked(tmp_path: Path) -> None:
    for ticks in (["secret:AWS_SECRET"], ["read:/home"], ["again"], [KEY, "host:*"], ["nonsense"]):
        person = Person(("yes_once", ticks))
        with manager_of(tmp_path, person) as manager, pytest.raises(ScriptRefusedError, match="did not offer"):
            said(manager)
    assert {record.kind for record in records_of(tmp_path)} == {"refused"}


def test_a_need_that_is_not_ticked_asks_nothing_by_itself(tmp_path: Path) -> None:
    person = Person(("yes_in_session", ()))
    with manager_of(tmp_path, person) as manager:
        for _ in range(3):
            assert said(manager) == "key None team None"
    assert len(person.asked) == 1
    with manager_of(tmp_path, person, policy=replace(GUARDED, approval="never")) as manager:
        assert said(manager) == "key None team None"


def test_what_was_left_with_a_word_for_the_session_is_not_asked_about_again_in_it(tmp_path: Path) -> None:
    person = Person(("yes_in_session", [KEY]), ("yes_once", [KEY]), ("yes_once", ()))
    policy = replace(GUARDED, approval="always")
    with manager_of(tmp_path, person, policy=policy) as manager:
        said(manager)
        assert person.offered == [KEY, TEAM]
        assert said(manager) == "key k-123 team None"
        assert person.offered == [KEY]
    with manager_of(tmp_path, person, policy=policy, session_id="other") as manager:
        said(manager)
        assert person.offered == [KEY, TEAM]


def test_a_later_grant_asks_once_more_where_a_session_was_approved(tmp_path: Path) -> None:
    person = Person(("yes_in_session", [KEY]), ("yes_in_session", [KEY]))
    with manager_of(tmp_path, person) as manager:
        said(manager)
        said(manager)
        manager.grant("demo", variables=["TEAM_NAME"])
        assert said(manager) == "key k-123 team blue"
        assert said(manager) == "key k-123 team blue"
        assert len(person.asked) == 2
        assert "more than what was approved" in person.asked[1].message
        assert person.offered == [KEY], "what it has is not offered"
        manager.revoke("demo")
        assert said(manager) == "key k-123 team None", "less is covered"


def test_policy_says_what_is_offered(tmp_path: Path) -> None:
    person = Person(("yes_once", ()), ("yes_once", ()), ("yes_once", ()))
    for grantable, expected in ((("variable",), [TEAM]), ((), []), (("read", "host"), [])):
        with manager_of(tmp_path, person, policy=replace(GUARDED, grantable=grantable)) as manager:
            said(manager)
        assert person.offered == expected


def test_a_key_without_a_value_is_shown_and_not_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEATHER_API_KEY")
    person = Person(("yes_once", ()))
    with manager_of(tmp_path, person) as manager:
        said(manager)
    assert person.offered == [TEAM]
    prompt = Prompt.from_context(person.asked[0].context)
    remedies = {need.name: need.remedy for need in prompt.needs} if prompt else {}
    assert remedies["WEATHER_API_KEY"] == "skillkit secret set demo WEATHER_API_KEY"


UNKNOWN_HOST = """#!/usr/bin/env python3
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1]))
"""
MANY_HOSTS = "import urllib.request\n" + "\n".join(f"urllib.request.urlopen('https://h{n}.dev')" for n in range(30))


@pytest.mark.parametrize("script", [UNKNOWN_HOST, MANY_HOSTS])
def test_a_host_that_nobody_can_name_is_told_as_unmet_and_never_offered(tmp_path: Path, script: str) -> None:
    person = Person(("yes_once", ("host:*",)))
    with manager_of(tmp_path, person, script=script) as manager:
        with pytest.raises(ScriptRefusedError, match="did not offer"):
            said(manager)
        assert not any(tick.startswith("host:") for tick in person.offered)
        [host] = [need for need in manager.needs_of("demo", "run") if need.kind == "host"]
        assert (host.name, host.is_met) == ("*", False)
        assert host.remedy == "skillkit grant demo --host NAME for each host, or run it with --network"
        # A person can give it all the same, by its name.
        manager.grant("demo", hosts=["*"])
        assert all(need.is_met for need in manager.needs_of("demo", "run") if need.kind == "host")


def test_a_reason_given_with_a_no_is_told(tmp_path: Path) -> None:
    with manager_of(tmp_path, Person()) as manager:
        prepared = manager.prepare_skill_script("demo", "run")
        assert prepared.request is not None
        answer = OptionAnswer("no", "page", time.time(), prepared.request.id, reason="Use the other\x1b key")
        with pytest.raises(ApprovalDeclinedError, match=r"They said: Use the other\\x1b key") as caught:
            manager.complete_skill_script(prepared, answer)
    assert caught.value.said == r"Use the other\x1b key"
    assert [record.fields["said"] for record in records_of(tmp_path)] == ["Use the other\x1b key"]


def test_after_a_change_the_question_shows_what_it_had_and_the_same_again_is_one_tick(tmp_path: Path) -> None:
    person = Person(("yes_in_session", [TEAM]), ("yes_once", [SAME_AGAIN]), ("yes_once", ()))
    with manager_of(tmp_path, person) as manager:
        manager.grant("demo", secrets=["WEATHER_API_KEY"])
        assert said(manager) == "key k-123 team blue"
        (tmp_path / "skills/demo/scripts/run.py").write_text(SCRIPT + "print('new')\n")
        assert said(manager) == "key k-123 team blue\nnew"
        prompt = Prompt.from_context(person.asked[-1].context)
        assert prompt is not None
        assert prompt.had == ("the key WEATHER_API_KEY", "the variable TEAM_NAME")
        assert prompt.changes
        assert person.asked[-1].grants[0].label == "the same again: the key WEATHER_API_KEY, the variable TEAM_NAME"
        assert said(manager) == "key None team None\nnew", "once was for one run"
        assert manager.grants("demo") == ()


def test_an_interpreter_is_ticked_or_nothing_runs(tmp_path: Path) -> None:
    narrow = replace(GUARDED, allowed_interpreters=("bash",))
    person = Person(
        ("yes_once", ["interpreter:python3"]), ("yes_once", ()), ("yes_in_session", ["interpreter:python3"])
    )
    with manager_of(tmp_path, person, policy=narrow) as manager:
        assert said(manager) == "key None team None"
        assert person.offered == ["interpreter:python3", KEY, TEAM]
        with pytest.raises(InterpreterNotAllowedError):
            said(manager)
        assert said(manager) == "key None team None"
        assert said(manager) == "key None team None"
    for policy in (replace(narrow, approval="never"), replace(narrow, grantable=())):
        with (
            manager_of(tmp_path, Person(), policy=policy, session_id="z") as manager,
            pytest.raises(InterpreterNotAllowedError),
        ):
            said(manager)


def test_the_id_of_a_question_is_the_same_for_the_same_call_and_another_where_less_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with manager_of(tmp_path, Person()) as manager:
        first, second = (manager.prepare_skill_script("demo", "run").request for _ in range(2))
        monkeypatch.delenv("TEAM_NAME")
        third = manager.prepare_skill_script("demo", "run").request
    assert first is not None
    assert second is not None
    assert third is not None
    assert first.id == second.id != third.id


def test_an_answer_with_ticks_opens_nothing_where_nobody_was_asked(tmp_path: Path) -> None:
    with manager_of(tmp_path, Person(), policy=replace(GUARDED, approval="never")) as manager:
        prepared = manager.prepare_skill_script("demo", "run")
        assert prepared.decision is Decision.ALLOW
        answer = OptionAnswer("yes_once", "page", time.time(), "x", (KEY,))
        assert manager.complete_skill_script(prepared, answer).stdout == "key None team None\n"


def test_a_skill_that_changes_between_question_and_answer_does_not_run_with_its_ticks(tmp_path: Path) -> None:
    with manager_of(tmp_path, Person()) as manager:
        prepared = manager.prepare_skill_script("demo", "run")
        assert prepared.request is not None
        (tmp_path / "skills/demo/scripts/run.py").write_text(SCRIPT + "print('new')\n")
        answer = OptionAnswer("yes_once", "page", time.time(), prepared.request.id, (KEY,))
        with pytest.raises(ScriptRefusedError, match="changed"):
            manager.complete_skill_script(prepared, answer)
    assert Grant.from_id(KEY).kind == "secret"


LIST = """#!/usr/bin/env python3
import pathlib
kept = pathlib.Path.home() / "list.txt"
kept.write_text((kept.read_text() if kept.exists() else "") + "Milk\\n")
print(len(kept.read_text().split()))
"""


@pytest.mark.parametrize(
    ("ticks", "expected"), [((), ["1", "2", "1"]), ((KEEP_HOME,), ["1", "2", "3"])], ids=["unticked", "ticked"]
)
def test_a_changed_skill_has_an_empty_home_until_a_person_ticks_it(
    tmp_path: Path, ticks: tuple[str, ...], expected: list[str]
) -> None:
    person = Person(("yes_in_session", ()), ("yes_in_session", ticks))
    with manager_of(tmp_path, person, script=LIST) as manager:
        seen = [said(manager), said(manager)]
        assert person.offered == []
        (tmp_path / "skills/demo/scripts/run.py").write_text(LIST + "# changed\n")
        seen.append(said(manager))
    assert seen == expected
    (tick,) = [each for each in person.asked[-1].grants if each.id == KEEP_HOME]
    assert tick.label.startswith("keep its home (1 file, ")
