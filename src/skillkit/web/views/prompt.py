"""A stored request -> what a page shows of it; a prompt that is not as we write it is named, never guessed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from skillkit.core.ask.prompt import pretty_json
from skillkit.core.exceptions import ConfigurationError
from skillkit.core.values.questions import Option, OptionRequest, Prompt, RiskFlag
from skillkit.present.changes import has_added
from skillkit.present.glance import command_words, first_lines, glance_of, stopped_words
from skillkit.web.html import Links
from skillkit.web.views.source import part_of

__all__ = [
    "NO",
    "Group",
    "Question",
    "context_values",
    "fingerprint",
    "groups_of",
    "prompt_values",
    "question_of",
]

NO = "no"
"""The option that approves nothing."""
RISKS_LISTED = 100
FIRST_LINES = 4
LINES_BEFORE = 20
TREE_CHARACTERS, TREE_LEVELS = 50_000, 24


@dataclass(frozen=True, slots=True)
class Question:
    """A request, with its prompt if it is about scripts, or the problem with that."""

    request: OptionRequest
    prompt: Prompt | None = None
    problem: str = ""

    @property
    def options(self) -> tuple[Option, ...]:
        """Nobody says yes to what cannot be shown."""
        return tuple(option for option in self.request.options if not self.problem or option.id == NO)

    @property
    def seconds_left(self) -> int:
        return max(0, round(self.request.expires_at - time.time()))


def question_of(request: OptionRequest) -> Question:
    try:
        prompt = Prompt.from_context(request.context)
        if prompt is not None:
            _require_texts(prompt)
    except (ConfigurationError, AttributeError, TypeError, ValueError) as error:
        return Question(request, problem=str(error) or "Its prompt cannot be read.")
    return Question(request, prompt)


@dataclass(frozen=True, slots=True)
class Group:
    """Requests that are about the same scripts of the same content for the same session."""

    questions: list[Question]

    @property
    def name(self) -> str:
        return sha256(json.dumps(_kind_of(self.questions[0])).encode()).hexdigest()[:16]

    @property
    def fingerprint(self) -> str:
        """Of exactly these, so that an answer is for them and for none that came later."""
        shown = [fingerprint(question.request) for question in self.questions]
        return sha256(json.dumps(["group", *shown]).encode()).hexdigest()


def groups_of(requests: Iterable[OptionRequest]) -> list[Group]:
    """In the order of the oldest of each."""
    groups: dict[tuple[object, ...], list[Question]] = {}
    for question in map(question_of, requests):
        groups.setdefault(_kind_of(question), []).append(question)
    return [Group(questions) for questions in groups.values()]


def _kind_of(question: Question) -> tuple[object, ...]:
    request, prompt = question.request, question.prompt
    if prompt is None:
        return (request.id,)
    scripts = [command.script for command in prompt.commands]
    return (request.session_id, prompt.skill, prompt.origin, prompt.digest, *scripts)


def _require_texts(prompt: Prompt) -> None:
    """Whoever writes to the store may write anything; a view shows text."""
    flags = [text for risk in prompt.risks for text in (risk.kind, risk.message, risk.path)]
    changes = [text for change in prompt.changes or () for text in (change.kind, change.path, change.diff)]
    commands = [text for each in prompt.commands for text in (each.script, *each.argv, each.stdin, each.source)]
    known = [
        prompt.skill,
        prompt.origin,
        *prompt.reasons,
        *prompt.walls,
        prompt.digest,
        prompt.approved,
        *prompt.had,
        prompt.signer,
        prompt.last_yes,
        *(text for mark in prompt.marks for text in (mark.name, mark.words, mark.state)),
        *(command.interpreter for command in prompt.commands),
    ]
    known += [text for need in prompt.needs for text in (need.name, need.where, need.remedy)]
    numbers = [number for risk in prompt.risks for number in (risk.line, risk.weight)]
    numbers += [number for change in prompt.changes or () for number in (change.unseen, change.added)]
    if not prompt.commands:
        raise ConfigurationError("A request's prompt names nothing that would run. Ask again with this version.")
    is_text = all(isinstance(text, str) for text in (*flags, *changes, *commands, *known))
    if not is_text or not all(isinstance(number, int) for number in numbers):
        raise ConfigurationError("A request's prompt holds something that is no text. Ask again with this version.")


def fingerprint(request: OptionRequest) -> str:
    """Of one question, so that an answer is for that and for nothing asked later under the same id.

    What a request carries does not change while it waits, so the moment of asking stands for it.
    """
    options = [[option.id, option.label] for option in request.options]
    ticks = [[tick.id, tick.label, tick.warning] for tick in request.grants]
    shown = [request.id, request.title, request.message, options, ticks, request.session_id, request.created_at]
    return sha256(json.dumps(shown).encode()).hexdigest()


def prompt_values(request: OptionRequest, prompt: Prompt, links: Links) -> dict[str, Any]:
    """What the page about scripts shows beside the prompt itself."""
    many, request_id, glance = len(prompt.commands), request.id, glance_of(prompt, request.grants)
    return {
        "prompt": prompt,
        "literal": [(command_words(command), len(command.stdin)) for command in prompt.commands],
        "marks": glance.marks,
        "top": [(risk, stopped, _line_of(request_id, prompt, risk, links)) for risk, stopped in glance.risks],
        "more_risks": glance.more_risks,
        "first": first_lines(prompt, FIRST_LINES),
        "needs": sorted(prompt.needs, key=lambda need: need.is_met),
        "had": ", ".join(prompt.had),
        "risks": [
            (risk, stopped_words(risk, request.grants), _line_of(request_id, prompt, risk, links))
            for risk in prompt.risks_by_weight[:RISKS_LISTED]
        ],
        "news": glance.news,
        "changes": [
            (change, change.diff.removesuffix("\n").split("\n"), at == 0 or has_added(change.diff))
            for at, change in enumerate(prompt.changes or ())
        ],
        "commands": [(command, _tree_of(command.stdin)) for command in prompt.commands],
        "parts": [part_of(prompt, number, shared_by=many) for number in range(1, many + 1)],
    }


def context_values(request: OptionRequest) -> dict[str, Any]:
    """What a question about something else carries, as a tree while a person can find their way in it."""
    value = dict(request.context)
    text = json.dumps(value, ensure_ascii=False)
    return {"carried": value if _is_small(value, text) else None, "carried_text": text}


def _line_of(request_id: str, prompt: Prompt, risk: RiskFlag, links: Links) -> str:
    """The address of the flagged line, here or on the page that holds it; empty for files that are not shown."""
    for number, command in enumerate(prompt.commands, 1):
        if command.script == risk.path and risk.line > 0:
            is_here = risk.line <= part_of(prompt, number, shared_by=len(prompt.commands)).end
            page = "" if is_here else links.source(request_id, number, max(1, risk.line - LINES_BEFORE))
            return f"{page}#source-{number}-{risk.line}"
    return ""


def _tree_of(text: str) -> dict[str, Any] | list[Any] | None:
    """What the text says, where it is JSON that loses nothing by being read."""
    value = json.loads(text) if pretty_json(text) else None
    return value if isinstance(value, dict | list) and _is_small(value, text) else None


def _is_small(value: dict[str, Any] | list[Any], text: str) -> bool:
    """Without recursion: the value comes from elsewhere."""
    depth, level = 0, [value]
    while level and depth <= TREE_LEVELS:
        depth += 1
        inside = [each for one in level for each in (one.values() if isinstance(one, dict) else one)]
        level = [each for each in inside if isinstance(each, dict | list)]
    return len(text) <= TREE_CHARACTERS and depth <= TREE_LEVELS
