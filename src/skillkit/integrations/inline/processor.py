"""A model's answer as a stream of text -> what to show: text, and the outcome of each command in its place."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from skillkit.core.manager import SkillManager
from skillkit.core.policy import ScriptPolicy
from skillkit.core.waiting import awaited_run
from skillkit.integrations.inline.data import ForeignText, defused
from skillkit.integrations.inline.outcomes import CommandOutcome
from skillkit.integrations.inline.runner import CommandRunner
from skillkit.integrations.inline.syntax import Command, InlineParser, Text

__all__ = ["InlineProcessor", "Shown", "shown_text"]

Shown = Text | CommandOutcome

MOST_COMMANDS = 100
FOREIGN = "It stands in text that was given as data, and such commands are never executed"


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
                yield event if isinstance(event, Text) else await awaited_run(partial(self._run, event))
        for shown in self.finish():
            yield shown

    def as_data(self, text: str) -> str:
        """For what a model is to read from elsewhere, a file or a tool's result: commands in it will not run."""
        self.foreign.add(text)
        return defused(text)

    def _run(self, command: Command, wakeup_fd: int | None = None) -> CommandOutcome:
        refused = self._refusal(command)
        return self._runner.run(command, refused=refused, longest=self.longest_seconds, wakeup_fd=wakeup_fd)

    def _refusal(self, command: Command) -> str:
        self._commands += 1
        if self._commands > MOST_COMMANDS:
            return f"There are more than {MOST_COMMANDS} commands in one answer"
        return FOREIGN if self.foreign.holds(command.body) else ""


def shown_text(shown: Shown) -> str:
    """As plain text; an outcome stands on a line of its own."""
    return shown.text if isinstance(shown, Text) else f"\n{shown.line}\n"
