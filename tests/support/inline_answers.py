"""Makers for tests of commands in a model's text: a tutor's skill, models that say what they are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from skillkit import SkillManager
from skillkit.integrations.inline import CommandOutcome, InlineParser, InlineProcessor, Shown, Text
from skillkit.integrations.inline.loop import Message, Model
from skillkit.integrations.inline.syntax import Event
from support.running import made_manager

__all__ = ["SCRIPTS", "events_of", "outcomes_in", "said", "saying", "shown_by", "text_in", "tutor"]

SCRIPTS = {
    "scripts/speak.sh": 'echo "$1" >> "$SKILL_WORKSPACE/spoken"\necho spoke\n',
    "scripts/lookup.sh": 'echo "$1 means a small domesticated cat"\n',
    "scripts/words.py": "import sys, json\nprint(json.dumps(sys.argv[1:]))\n",
    "scripts/fail.sh": "echo half; echo broken >&2; exit 3\n",
    "scripts/hang.sh": "sleep 60\n",
    "scripts/read.sh": 'cat "$SKILL_WORKSPACE/notes"\n',
}


def events_of(*chunks: str) -> list[Event]:
    """Of a text in these chunks; pieces of text that follow each other are one."""
    parser = InlineParser()
    events = [*(event for chunk in chunks for event in parser.feed(chunk)), *parser.finish()]
    joined: list[Event] = []
    for is_text, group in groupby(events, lambda event: isinstance(event, Text)):
        neighbours = list(group)
        text = "".join(each.text for each in neighbours if isinstance(each, Text))
        joined += [Text(text)] if is_text else neighbours
    return joined


def tutor(folder: Path, **settings: Any) -> SkillManager:
    """A manager of the skill `demo` with the scripts above and a workspace that they can write to."""
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    return made_manager(folder, SCRIPTS, workspace=workspace, **settings)


def said(folder: Path) -> list[str]:
    """What `speak.sh` was told, in order."""
    spoken = folder / "workspace" / "spoken"
    return spoken.read_text().splitlines() if spoken.exists() else []


def shown_by(processor: InlineProcessor, answer: str) -> list[Shown]:
    """One character at a time, the most awkward way for an answer to come."""
    return list(processor.stream(iter(answer)))


def text_in(shown: Sequence[Shown]) -> str:
    return "".join(each.text for each in shown if isinstance(each, Text))


def outcomes_in(shown: Sequence[Shown]) -> list[CommandOutcome]:
    return [each for each in shown if isinstance(each, CommandOutcome)]


def saying(*answers: str | Callable[[Sequence[Message]], str]) -> Model:
    """A model that gives these answers in turn, the last one for ever, in small chunks."""
    left = list(answers)

    def model(messages: Sequence[Message]) -> Iterator[str]:
        answer = left.pop(0) if len(left) > 1 else left[0]
        text = answer if isinstance(answer, str) else answer(messages)
        yield from (text[start : start + 3] for start in range(0, len(text), 3))

    return model
