"""Answers whose captured output goes back to the model, with real processes behind them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from support.inline_answers import outcomes_in, said, saying, text_in, tutor

from skillkit import ConfigurationError
from skillkit.integrations.inline import Budget, InlineProcessor, LoopResult, Shown, run_rounds
from skillkit.integrations.inline.commands import CommandOutcome
from skillkit.integrations.inline.loop import Message, Model, data_block
from skillkit.integrations.inline.syntax import Command

QUESTION: list[Message] = [{"role": "user", "content": "What is a chat?"}]


def rounds(folder: Path, model: Model, budget: Budget | None = None) -> tuple[LoopResult, list[Shown]]:
    shown: list[Shown] = []
    with tutor(folder) as manager:
        return run_rounds(model, QUESTION, InlineProcessor(manager), budget=budget, show=shown.append), shown


def test_the_model_goes_on_with_what_a_command_wrote(tmp_path: Path) -> None:
    def last(messages: Sequence[Message]) -> str:
        return "It is a cat." if "chat means a small domesticated cat" in messages[-1]["content"] else "No idea."

    result, shown = rounds(tmp_path, saying("Let me see. !{scripts/lookup.sh chat}%{scripts/speak.sh chat}", last))
    assert (result.stopped, result.rounds) == ("answered", 2)
    assert text_in(shown) == "Let me see. It is a cat."
    assert [outcome.status for outcome in result.outcomes] == ["ok", "ok"]
    assert said(tmp_path) == ["chat"]
    assert [message["role"] for message in result.messages] == ["user", "assistant", "user", "assistant"]
    assert result.messages[1]["content"] == "Let me see. !{scripts/lookup.sh chat}"
    assert "command 1: ok, exit code 0" in result.messages[2]["content"]
    assert QUESTION == [{"role": "user", "content": "What is a chat?"}]


def test_without_captured_output_there_is_one_round(tmp_path: Path) -> None:
    result, _ = rounds(tmp_path, saying("Listen. %{scripts/speak.sh a}"))
    assert (result.stopped, result.rounds, len(result.messages)) == ("answered", 1, 2)


def test_the_model_is_told_why_a_command_did_not_run(tmp_path: Path) -> None:
    result, _ = rounds(tmp_path, saying("!{scripts/none.sh}!{scripts/fail.sh}", "I see."))
    told = result.messages[2]["content"]
    assert "command 1: not_found" in told
    assert "command 2: failed, exit code 3\nhalf\nbroken\n" in told


def test_a_model_that_asks_for_ever_is_stopped_after_eight_rounds(tmp_path: Path) -> None:
    result, shown = rounds(tmp_path, saying("!{scripts/lookup.sh again}"))
    assert (result.stopped, result.rounds) == ("rounds", 8)
    assert len(outcomes_in(shown)) == 8


def test_a_model_that_writes_for_ever_is_stopped(tmp_path: Path) -> None:
    stopped = []

    def endless(_: Sequence[Message]) -> Iterator[str]:
        try:
            while True:
                yield "more and more "
        finally:
            stopped.append(True)

    result, _ = rounds(tmp_path, endless, Budget(answer_characters=10_000))
    assert (result.stopped, stopped) == ("output", [True])
    assert len(result.messages[-1]["content"]) < 10_100


def test_a_slow_model_is_stopped_when_its_time_is_over_and_nothing_more_runs(tmp_path: Path) -> None:
    def slow(_: Sequence[Message]) -> Iterator[str]:
        yield "%{scripts/speak.sh early}"
        time.sleep(0.6)
        yield "%{scripts/speak.sh late}"

    result, _ = rounds(tmp_path, slow, Budget(seconds=0.5))
    assert result.stopped == "time"
    assert said(tmp_path) in (["early"], [])  # the first may be too late already on a busy machine


def test_a_command_gets_no_more_time_than_is_left(tmp_path: Path) -> None:
    result, _ = rounds(tmp_path, saying("!{scripts/hang.sh}%{scripts/speak.sh late}"), Budget(seconds=2))
    assert result.stopped == "time"
    assert [outcome.status for outcome in result.outcomes] == ["timeout"]
    assert said(tmp_path) == []


def test_output_beyond_the_budget_is_left_out_and_ends_the_rounds(tmp_path: Path) -> None:
    result, _ = rounds(tmp_path, saying("!{scripts/lookup.sh aaaa}"), Budget(output_characters=50))
    assert (result.stopped, result.rounds) == ("output", 2)
    assert "more characters left out" in result.messages[-1]["content"]


def test_a_model_that_fails_leaves_the_processor_ready_for_the_next_answer(tmp_path: Path) -> None:
    def failing(_: Sequence[Message]) -> Iterator[str]:
        yield "```\n%{scripts/speak.sh"
        raise ConnectionError("gone")

    with tutor(tmp_path) as manager:
        processor = InlineProcessor(manager)
        with pytest.raises(ConnectionError, match="gone"):
            run_rounds(failing, QUESTION, processor)
        assert processor.longest_seconds is None
        processor.feed("%{scripts/speak.sh next}")
    assert said(tmp_path) == ["next"]


@pytest.mark.parametrize("name", ["rounds", "seconds", "output_characters", "answer_characters"])
def test_a_budget_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} is 0"):
        Budget(**{name: 0})


def test_the_marks_of_a_block_are_new_each_time_and_stand_in_no_output() -> None:
    outcome = CommandOutcome(Command("capture", "!{x}", "x"), "ok")
    first, second = data_block([(outcome, "a")]), data_block([(outcome, "a")])
    mark = first.split("the mark ")[1].split(".")[0]
    assert mark not in second
    # The heading names it once; then it stands before and behind the output.
    assert first.count(mark) == 3
