"""What a person ticks when a graph is interrupted, and what it resumes with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import ValidationError
from support.langchain_agents import calling, started
from support.running import made_manager

from skillkit import GUARDED

GO = {"messages": [("user", "go")]}
THREAD: Any = {"configurable": {"thread_id": "a-thread"}}
SCRIPT = """
import os
print("key", os.environ.get("WEATHER_API_KEY"), "team", os.environ.get("TEAM_NAME"))
"""


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEATHER_API_KEY", "k-12345678-abc")
    monkeypatch.setenv("TEAM_NAME", "blue")


def resumed(folder: Path, *answers: Any) -> tuple[dict[str, Any], str]:
    """The first question, and what the tool said in the end."""
    with made_manager(folder, {"scripts/run.py": SCRIPT}, policy=GUARDED) as manager:
        agent = started(manager, calling(("demo.run", {"argv": []})), checkpointer=InMemorySaver())
        (question,) = agent.invoke(GO, THREAD)["__interrupt__"]
        state: Any = {}
        for answer in answers:
            state = agent.invoke(Command(resume=answer), THREAD)
    (said,) = [each.text for each in state["messages"] if isinstance(each, ToolMessage)]
    return question.value, said


def test_the_payload_offers_and_the_resume_value_ticks(tmp_path: Path) -> None:
    asked, said = resumed(tmp_path, {"option_id": "yes_once", "grants": ["variable:TEAM_NAME"]})
    assert [(tick["id"], tick["label"]) for tick in asked["grants"]] == [
        ("secret:WEATHER_API_KEY", "the key WEATHER_API_KEY"),
        ("variable:TEAM_NAME", "the variable TEAM_NAME"),
    ]
    assert said == "key None team blue\n"


def test_a_word_alone_ticks_nothing(tmp_path: Path) -> None:
    assert resumed(tmp_path, "yes_once")[1] == "key None team None\n"


def test_what_is_not_offered_runs_nothing(tmp_path: Path) -> None:
    assert resumed(tmp_path, {"option_id": "yes_once", "grants": ["secret:OTHER"]})[1].startswith("refused: ")


def test_a_reason_goes_to_the_model(tmp_path: Path) -> None:
    said = resumed(tmp_path, {"option_id": "no", "reason": "Ask me tomorrow."})[1]
    assert said.startswith("declined: ")
    assert said.endswith("They said: Ask me tomorrow.")


def test_anything_else_is_no_answer(tmp_path: Path) -> None:
    with pytest.raises(ValidationError):
        resumed(tmp_path, {"option_id": "maybe"})
