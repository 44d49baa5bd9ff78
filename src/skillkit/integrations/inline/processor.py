"""A model's answer as a stream of text -> what to show: text, and the outcome of each command in its place."""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from skillkit.core.manager import SkillManager
from skillkit.core.run.aio import run_in_thread
from skillkit.core.values.policy import ScriptPolicy
from skillkit.core.values.runs import NO_CONTROL, RunControl
from skillkit.integrations.inline.commands import CommandOutcome, CommandRunner
from skillkit.integrations.inline.syntax import Command, InlineParser, Text

__all__ = ["ForeignText", "InlineProcessor", "Shown", "defuse", "shown_text"]

Shown = Text | CommandOutcome

MOST_COMMANDS = 100
FOREIGN = "It stands in text that was given as data, and such commands are never executed"
OPENER = re.compile(r"\\?([%!]\{)")
IGNORED = re.compile(r"[\s\"'\\]+")
REMEMBERED_CHARACTERS = 4_000_000


def defuse(text: str) -> str:
    """Every opening brace of a command gets a backslash, so that a model that repeats it runs nothing."""
    return OPENER.sub(r"\\\1", text)


class ForeignText:
    """What a model has read from outside; a command that stands there was not its own idea."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._size = 0

    def add(self, text: str) -> None:
        if "{" not in text:
            return
        self._texts.append(IGNORED.sub("", text))
        self._size += len(self._texts[-1])
        while self._size > REMEMBERED_CHARACTERS and len(self._texts) > 1:
            self._size -= len(self._texts.pop(0))

    def holds(self, body: str) -> bool:
        """Whether a command with this body stands there, however it is quoted or spaced."""
        wanted = IGNORED.sub("", body)
        return any(f"{opener}{wanted}}}" in text for text in self._texts for opener in ("%{", "!{", "!{!"))


class InlineProcessor:
    """Shows text, runs commands in their order, once each. Without a policy: the manager's own, or GUARDED."""

    def __init__(
        self,
        manager: SkillManager,
        policy: ScriptPolicy | None = None,
        session_id: str | None = None,
        *,
        skills: Sequence[str] | None = None,
        workspace: str | Path | None = None,
        beside: InlineProcessor | None = None,
    ) -> None:
        """`beside` another one of the same conversation: what is data for either is data for both."""
        self._runner = CommandRunner(manager, policy, session_id, skills=skills, workspace=workspace)
        self._parser = InlineParser()
        self.foreign: ForeignText = ForeignText() if beside is None else beside.foreign
        self._commands = 0  # of this answer
        # What a command may take at most, where that is less than policy says.
        self.longest_seconds: float | None = None

    @property
    def has_acted(self) -> bool:
        """Whether a command of this answer was begun, even one that was then refused or broken off."""
        return self._commands > 0

    def feed(self, chunk: str) -> list[Shown]:
        """Runs what is complete by now; returns when that has ended."""
        return list(self.shown(chunk))

    def finish(self) -> list[Shown]:
        """The rest, as text; the processor is then ready for the next answer."""
        self._commands = 0
        return [event for event in self._parser.finish() if isinstance(event, Text)]

    def shown(self, chunk: str) -> Iterator[Shown]:
        """As `feed`, one by one: text is there before the command behind it runs."""
        for event in self._parser.feed(chunk):
            yield event if isinstance(event, Text) else self._run(event)

    def stream(self, chunks: Iterable[str]) -> Iterator[Shown]:
        """A whole answer."""
        for chunk in chunks:
            yield from self.shown(chunk)
        yield from self.finish()

    async def astream(self, chunks: AsyncIterable[str]) -> AsyncIterator[Shown]:
        """A whole answer, without blocking the loop; cancelling kills the command that runs."""
        async for chunk in chunks:
            for event in self._parser.feed(chunk):
                yield event if isinstance(event, Text) else await run_in_thread(partial(self._run, event))
        for shown in self.finish():
            yield shown

    def as_data(self, text: str) -> str:
        """For what a model is to read from elsewhere, a file or a tool's result: commands in it will not run."""
        self.foreign.add(text)
        return defuse(text)

    def _run(self, command: Command, control: RunControl = NO_CONTROL) -> CommandOutcome:
        self._commands += 1
        if self._commands > MOST_COMMANDS:
            refused = f"There are more than {MOST_COMMANDS} commands in one answer"
        else:
            refused = FOREIGN if self.foreign.holds(command.body) else ""
        return self._runner.run(command, refused=refused, longest=self.longest_seconds, control=control)


def shown_text(shown: Shown) -> str:
    """As plain text; an outcome stands on a line of its own."""
    return shown.text if isinstance(shown, Text) else f"\n{shown.line}\n"
