"""What one manager keeps of a person's words, piece by piece and without a run."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.asking import in_threads
from support.commands import BOUNDS, COMMAND
from support.running import wait_for

from skillkit import (
    ApprovalDeclinedError,
    ApprovalUnavailableError,
    OptionAnswer,
    OptionRequest,
    ScriptRefusedError,
    StateUnavailableError,
)
from skillkit.core.ask import approvals as approving_module
from skillkit.core.ask.approvals import Approvals, Cancellation, _Coverage, require_approved
from skillkit.core.store.state import StateStore
from skillkit.core.store.trust import Approval
from skillkit.core.values.questions import OPTIONS
from skillkit.core.values.runs import Decision, PreparedRun, RunControl, ScriptCommand

REQUEST = OptionRequest("question", "Run?", "Policy asks.", OPTIONS)
ASKED = PreparedRun(COMMAND, Decision.ASK, ("Policy asks.",), REQUEST, is_coverable=True, bounds=BOUNDS)
EVERY_TIME = replace(ASKED, is_coverable=False)
NAMED = replace(ASKED, resolved=replace(COMMAND, session_id="s"))
SOON = 8


class Person:
    """Answers with what they are told to say; without a word they wait until the question is withdrawn."""

    channel = "person"

    def __init__(self, *words: str) -> None:
        self.words = [*words]
        self.asked = 0

    def ask(self, request: OptionRequest, cancel: Any = None) -> OptionAnswer:
        self.asked += 1
        while not self.words:
            if cancel.is_set():
                raise ApprovalUnavailableError("withdrawn", reasons=["withdrawn"])
            time.sleep(0.01)
        return OptionAnswer(self.words.pop(0), self.channel, time.time(), request.id)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StateStore]:
    store = StateStore(tmp_path / "state")
    yield store
    store.close()


@pytest.fixture
def approving(store: StateStore) -> Approvals:
    return Approvals(store)


def said(option_id: str, answered_at: float = 1.0, request_id: str = "question") -> OptionAnswer:
    return OptionAnswer(option_id, "person", answered_at, request_id)


def kind_and_channel(found: Approval | None) -> tuple[str, str] | None:
    return (found.kind, found.channel) if found else None


def command_of(run: PreparedRun, **changes: Any) -> ScriptCommand:
    return replace(run.command, **changes)


def test_any_of_several_reasons_stops_and_none_of_none() -> None:
    first, second = threading.Event(), threading.Event()
    stop = Cancellation(None, first, second)
    assert not Cancellation(None).is_set()
    assert not stop.is_set()
    second.set()
    assert stop.is_set()


def test_a_byte_in_the_pipe_stops() -> None:
    reading, writing = os.pipe()
    stop = Cancellation(RunControl(threading.Event(), reading))
    before = stop.is_set()
    os.write(writing, b"x")
    after = stop.is_set()
    os.close(reading)
    os.close(writing)
    assert (before, after) == (False, True)


def test_whether_a_word_came_is_looked_up_now_and_then_and_not_once_it_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[float] = []
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def look() -> bool:
        looks.append(clock[0])
        return clock[0] > 101

    coverage = _Coverage(look)
    seen = []
    for clock[0] in (100.0, 100.1, 100.4, 100.5, 100.9, 101.5, 101.6, 102.5, 103.5):
        seen.append(coverage.is_set())
    assert looks == [100.0, 100.5, 101.5]
    assert seen == [False] * 5 + [True] * 4
    told = _Coverage(lambda: clock[0] > 200)
    assert not told.is_set()
    clock[0] = 200.1
    told._next_look = 1000.0
    assert not told.is_set()
    told.look_again()
    assert told.is_set(), "who is told of a word looks at once"


def test_a_word_without_a_session_covers_its_content_in_its_place_without_a_session(approving: Approvals) -> None:
    approving.keep(ASKED, said("yes_in_session"))
    assert kind_and_channel(approving.covering(COMMAND, BOUNDS)) == ("session", "person")
    for changes in ({"session_id": "s"}, {"digest": "1" * 64}, {"skill_name": "x"}, {"base_directory": Path("/x")}):
        assert approving.covering(command_of(ASKED, **changes), BOUNDS) is None
    assert approving.last_approved_digest(command_of(ASKED, digest="1" * 64)) == COMMAND.digest
    assert approving.last_approved_digest(NAMED.command) is None, "it is kept nowhere"
    approving.end_unnamed_session("another")
    assert approving.covering(COMMAND, BOUNDS) is not None
    approving.end_unnamed_session("demo")
    assert approving.covering(COMMAND, BOUNDS) is None


def test_a_word_for_a_session_is_kept_in_the_world(approving: Approvals, store: StateStore) -> None:
    approving.keep(NAMED, said("yes_in_session"))
    for each in (approving, Approvals(store)):
        assert kind_and_channel(each.covering(NAMED.command, BOUNDS)) == ("session", "person")
        assert each.last_approved_digest(command_of(NAMED, digest="1" * 64)) == COMMAND.digest
        assert each.last_approved_digest(COMMAND) == COMMAND.digest
        assert each.covering(COMMAND, BOUNDS) is None
    approving.end_unnamed_session(None)
    assert approving.covering(NAMED.command, BOUNDS) is not None


@pytest.mark.parametrize("word", ["yes_once", "no"])
def test_another_word_leaves_nothing_behind(approving: Approvals, store: StateStore, word: str) -> None:
    for run in (ASKED, NAMED):
        approving.keep(run, replace(said(word), answered_at=2.0 if run is NAMED else 1.0))
        assert approving.covering(run.command, BOUNDS) is None
    assert not store.path.exists()


@pytest.mark.parametrize(
    ("run", "word", "is_spent"),
    [
        (ASKED, "yes_once", True),
        (ASKED, "yes_in_session", False),
        (ASKED, "no", False),
        (EVERY_TIME, "yes_once", True),
        (EVERY_TIME, "yes_in_session", True),
        (EVERY_TIME, "no", False),
    ],
)
def test_a_word_for_one_run_is_used_up(approving: Approvals, run: PreparedRun, word: str, is_spent: bool) -> None:
    approving.keep(run, said(word))
    approving.keep(run, said(word, answered_at=2.0))
    approving.keep(run, said(word, request_id="another"))
    if is_spent:
        with pytest.raises(ScriptRefusedError, match="for one run and has been used") as caught:
            approving.keep(run, said(word))
        assert caught.value.reasons == ("The answer was for one run and has been used",)
    else:
        approving.keep(run, said(word))


def test_of_words_that_were_used_up_the_newest_are_remembered(
    approving: Approvals, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert approving_module.REMEMBERED_ANSWERS == 10_000
    monkeypatch.setattr(approving_module, "REMEMBERED_ANSWERS", 2)
    for moment in (1.0, 2.0, 3.0):
        approving.keep(ASKED, said("yes_once", moment))
    assert len(approving._questions._spent) == 2
    for moment in (2.0, 3.0):
        with pytest.raises(ScriptRefusedError):
            approving.keep(ASKED, said("yes_once", moment))


def test_without_a_way_to_ask_or_a_question_it_is_unavailable(approving: Approvals) -> None:
    for run, person in ((ASKED, None), (replace(ASKED, request=None), Person("yes_once"))):
        with pytest.raises(ApprovalUnavailableError) as caught:
            approving.answer_for(run, person)
        assert str(caught.value) == (
            "demo: scripts/run.sh needs a person's approval. Nobody can be asked here. Policy asks."
        )
        assert list(caught.value.reasons) == ["Policy asks."]


def test_a_withdrawn_question_is_unavailable_with_the_reason(approving: Approvals) -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(ApprovalUnavailableError, match=r"person's approval\. withdrawn Policy asks\."):
        approving.answer_for(ASKED, Person(), cancel)
    assert approving._coverable == set()
    assert approving._questions._asked == {}


@pytest.mark.parametrize("run", [ASKED, NAMED], ids=["without a session", "in a session"])
def test_a_word_for_the_session_answers_open_questions_that_it_covers_at_once(
    approving: Approvals, run: PreparedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approving_module, "STORE_LOOK_SECONDS", 100)
    person, cancel = Person(), threading.Event()
    open_question = replace(run, request=replace(REQUEST, id="other arguments"))
    with in_threads(1, lambda: approving.answer_for(open_question, person, cancel)) as (waiting,):
        assert wait_for(lambda: any(each._next_look for each in [*approving._coverable]), SOON), "it looked once"
        approving.keep(run, said("yes_in_session"))
        assert waiting.result(SOON) is None


@pytest.mark.parametrize(
    ("given", "changes"),
    [
        (NAMED, {"session_id": "t"}),
        (NAMED, {"session_id": None}),
        (NAMED, {"digest": "1" * 64}),
        (NAMED, {"skill_name": "x"}),
        (ASKED, {"base_directory": Path("/x")}),
        (ASKED, {}),
    ],
    ids=["session", "no session", "content", "skill", "place", "walls"],
)
def test_a_word_for_the_session_leaves_other_questions_open(
    approving: Approvals, given: PreparedRun, changes: dict[str, Any]
) -> None:
    cancel = threading.Event()
    other = replace(given, resolved=command_of(given, **changes), request=replace(REQUEST, id="x"))
    if not changes:
        other = replace(other, bounds=replace(BOUNDS, network=True))
    with in_threads(1, lambda: approving.answer_for(other, Person(), cancel)) as (waiting,):
        assert wait_for(lambda: len(approving._coverable) == 1, SOON)
        approving.keep(given, said("yes_in_session"))
        time.sleep(0.1)
        assert not waiting.done()
        cancel.set()
        assert isinstance(waiting.exception(SOON), ApprovalUnavailableError)


def test_what_is_asked_about_every_time_is_covered_by_no_word(approving: Approvals) -> None:
    cancel = threading.Event()
    approving.keep(NAMED, said("yes_in_session"))
    every_time = replace(NAMED, is_coverable=False)
    with in_threads(1, lambda: approving.answer_for(every_time, Person(), cancel)) as (waiting,):
        assert wait_for(lambda: ("question", None) in approving._questions._asked, SOON)
        approving.keep(NAMED, said("yes_in_session"))
        assert approving._coverable == set()
        time.sleep(0.1)
        assert not waiting.done()
        cancel.set()
        assert isinstance(waiting.exception(SOON), ApprovalUnavailableError)


def test_a_store_that_cannot_be_read_meanwhile_covers_nothing_and_ends_no_question(approving: Approvals) -> None:
    class Unreadable:
        def of_content(self, *_: object) -> None:
            raise StateUnavailableError("gone")

    approving.standing = Unreadable()  # type: ignore[assignment]
    person = Person()
    with in_threads(1, lambda: approving.answer_for(NAMED, person)) as (waiting,):
        assert wait_for(lambda: person.asked == 1, SOON)
        time.sleep(0.05)
        person.words.append("no")
        answer = waiting.result(SOON)
    assert answer is not None
    assert answer.option_id == "no"


@pytest.mark.parametrize(
    ("run", "words", "heard"),
    [
        (ASKED, ["no"], ["no", "no"]),
        (ASKED, ["yes_in_session"], ["yes_in_session", "yes_in_session"]),
        (ASKED, ["yes_once", "no"], ["no", "yes_once"]),
        (EVERY_TIME, ["yes_in_session", "no"], ["no", "yes_in_session"]),
    ],
)
def test_equal_questions_are_put_once_and_a_word_for_one_run_is_for_one(
    approving: Approvals, run: PreparedRun, words: list[str], heard: list[str]
) -> None:
    person = Person()
    with in_threads(2, lambda: approving.answer_for(run, person)) as waiting:
        assert wait_for(lambda: person.asked == 1, SOON)
        time.sleep(0.2)  # for the other one to join
        assert person.asked == 1
        person.words += words
        answers = [each.result(SOON) for each in waiting]
    assert sorted(answer.option_id for answer in answers if answer) == heard
    assert person.asked == len(words)
    assert approving._questions._asked == {}


def test_a_system_that_cannot_look_at_a_pipe_reads_no_wish_to_stop_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, b"x")
        assert RunControl(wakeup_fd=reading).is_set()
        monkeypatch.delattr(select, "poll")
        assert not RunControl(wakeup_fd=reading).is_set()
    finally:
        os.close(reading)
        os.close(writing)


def test_who_waits_for_anothers_question_can_be_cancelled_alone(approving: Approvals) -> None:
    person, cancel = Person(), threading.Event()
    with in_threads(1, lambda: approving.answer_for(ASKED, person)) as (first,):
        assert wait_for(lambda: person.asked == 1, SOON)
        with in_threads(1, lambda: approving.answer_for(ASKED, person, cancel)) as (second,):
            cancel.set()
            assert isinstance(second.exception(SOON), ApprovalUnavailableError)
        person.words.append("no")
        answer = first.result(SOON)
    assert answer is not None
    assert answer.option_id == "no"


@pytest.mark.parametrize("is_cancelled", [True, False], ids=["cancelled", "nobody there"])
def test_a_question_nobody_answers_is_over_for_all_unless_its_asker_left(
    approving: Approvals, is_cancelled: bool
) -> None:
    gate, cancel = threading.Event(), threading.Event()

    class Away(Person):
        def ask(self, request: OptionRequest, cancel: Any = None) -> OptionAnswer:
            if self.asked:
                return super().ask(request, cancel)
            self.asked += 1
            gate.wait(SOON)
            raise ApprovalUnavailableError("nobody there", reasons=["nobody there"])

    person = Away("no")
    with in_threads(1, lambda: approving.answer_for(ASKED, person, cancel)) as (first,):
        assert wait_for(lambda: person.asked == 1, SOON)
        with in_threads(1, lambda: approving.answer_for(ASKED, person)) as (second,):
            time.sleep(0.2)  # for it to join
            if is_cancelled:
                cancel.set()
            gate.set()
            assert "nobody there" in str(first.exception(SOON))
            if is_cancelled:
                answer = second.result(SOON)
                assert answer is not None
                assert answer.option_id == "no"
            else:
                assert "nobody there" in str(second.exception(SOON))
                assert person.words == ["no"], "who was never asked"


def test_an_answer_that_names_neither_question_nor_time_gets_both(approving: Approvals) -> None:
    class Brief:
        channel = "person"

        def __init__(self, *rest: Any) -> None:
            self.rest = rest

        def ask(self, request: OptionRequest, cancel: Any = None) -> OptionAnswer:
            assert (request.id, cancel.is_set()) == ("question", False)
            return OptionAnswer("no", self.channel, *self.rest)

    before = time.time()
    filled = approving.answer_for(ASKED, Brief(0.0))
    kept = approving.answer_for(ASKED, Brief(7.0, "another"))
    assert filled is not None
    assert (filled.request_id, filled.answered_at >= before) == ("question", True)
    assert kept == OptionAnswer("no", "person", 7.0, "another")


DENIED = replace(ASKED, decision=Decision.DENY, request=None)


@pytest.mark.parametrize(
    ("run", "answer"),
    [
        (replace(ASKED, decision=Decision.ALLOW, request=None), None),
        (replace(ASKED, decision=Decision.ALLOW, request=None), said("no")),
        (ASKED, said("yes_once")),
        (ASKED, said("yes_in_session")),
    ],
)
def test_what_is_allowed_and_what_a_person_approved_may_run(run: PreparedRun, answer: OptionAnswer | None) -> None:
    require_approved(run, answer)


@pytest.mark.parametrize(
    ("run", "answer", "error", "says"),
    [
        (DENIED, said("yes_once"), ScriptRefusedError, "Refused"),
        (replace(DENIED, error=StateUnavailableError("the rule")), said("yes_once"), StateUnavailableError, "the rule"),
        (ASKED, None, ApprovalUnavailableError, "Nobody can be asked here"),
        (ASKED, said("yes_once", request_id="another"), ScriptRefusedError, "belongs to another question"),
        (ASKED, said("yes_once", request_id=""), ScriptRefusedError, "belongs to another question"),
        (replace(ASKED, request=None), said("yes_once"), ScriptRefusedError, "belongs to another question"),
        (ASKED, said("no"), ApprovalDeclinedError, r"scripts/run\.sh may not run\. Declined by a person \(person\)\."),
        (ASKED, said("maybe"), ScriptRefusedError, "'maybe' is no answer .* one of: yes_once, yes_in_session, no"),
    ],
)
def test_nothing_else_may_run(run: PreparedRun, answer: OptionAnswer | None, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        require_approved(run, answer)
    assert type(caught.value) is error
    if error is not StateUnavailableError:
        assert len(caught.value.reasons) == 1  # type: ignore[attr-defined]
