"""Lines that a person types -> a chat: questions to the model, slash commands, interruptions, a transcript."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from skillkit.chat.events import REFUSALS, Event, Note, with_own_remedy
from skillkit.chat.screen import Lines, Screen
from skillkit.chat.slash import QUIT, answer_approvals, help_text, skills_text, unknown_command
from skillkit.chat.talk import Talk
from skillkit.chat.transcript import Transcript
from skillkit.core.exceptions import SkillKitError
from skillkit.core.manager import SkillManager
from skillkit.core.models import SkillMetadata
from skillkit.integrations.inline.loop import Stop

__all__ = ["Chat"]

STOPPED = {
    "rounds": "Stopped: the model has used all its rounds for this question. Say 'go on' to give it more.",
    "time": "Stopped: the time for this question is over. Say 'go on' to give it more.",
    "output": "Stopped: the answer and what came back to the model grew too long. Ask for less.",
    "declined": "Stopped, because you said no. What you type next goes to the model.",
}
INTERRUPTED = "Stopped. What was said so far is kept."
NOTHING_SAID = "The model said nothing. /retry asks again."
# After a single question there is no line to type anything into.
STOPPED_ONCE = {
    "rounds": "Stopped: the model has used all its rounds. Ask for less, or chat without --once and say 'go on'.",
    "time": "Stopped: the time is over. Ask for less, or chat without --once and say 'go on'.",
    "output": STOPPED["output"],
    "declined": "Stopped, because you said no.",
}
NOTHING_SAID_ONCE = "The model said nothing. Run the command again."


class Chat:
    """One person, one model, one terminal."""

    def __init__(
        self,
        manager: SkillManager,
        skills: list[SkillMetadata],
        screen: Screen,
        transcript: Transcript,
        *,
        may_run: bool,
        lacks_flag: bool = False,
    ) -> None:
        self.manager = manager
        self.skills = skills
        self.may_run = may_run
        self._lacks_flag = lacks_flag
        self.transcript = transcript
        self._screen = screen
        self._talk: Talk | None = None

    def begin(self, talk: Talk) -> None:
        self._talk = talk

    def show(self, event: Event) -> None:
        """Everything that happens while the model answers comes through here."""
        event = with_own_remedy(event) if self._lacks_flag else event
        self._screen.show(event)
        self.transcript.add_event(event)

    @property
    def was_refused(self) -> bool:
        return any(entry.status in REFUSALS for entry in self.transcript.entries)

    @property
    def has_color(self) -> bool:
        return self._screen.has_color

    def structure(self) -> dict[str, Any]:
        """What was said and done, ready for JSON."""
        entries = self.transcript.entries
        said = [entry for entry in entries if entry.kind == "assistant"]
        done = [
            {**entry.data, "command": entry.text, "status": entry.status, "round": entry.round}
            for entry in entries
            if entry.kind == "command"
        ]
        last = max((entry.round for entry in said), default=0)
        answer = "".join(entry.text for entry in said if entry.round == last).strip()
        rounds = [{"round": entry.round, "text": entry.text} for entry in said]
        return {"answer": answer, "rounds": rounds, "commands": done}

    def wait(self) -> None:
        """It is the model's turn: what it says now is apart from what it said before."""
        self.transcript.begin_round()
        self._screen.wait()

    def converse(self, lines: Lines, first: str = "") -> None:
        """Until the person ends it. Whatever fails, the next line is read."""
        if first:
            self._screen.say(first)
            self._attempt(partial(self.ask, first))
        while True:
            self._screen.leave_gap()
            try:
                line = lines.read().strip()
            except KeyboardInterrupt:  # the line is gone, the chat is not
                continue
            except EOFError:
                if lines.is_terminal:
                    self._screen.say("")
                return
            if line == QUIT:
                return
            self._attempt(partial(self._obey, line))

    def _obey(self, line: str) -> None:
        if line.startswith("//"):
            self.ask(line[1:])
        elif line.startswith("/"):
            word, _, rest = line.partition(" ")
            self._obey_command(word, rest.strip())
        elif line:
            self.ask(line)

    def _obey_command(self, word: str, rest: str) -> None:
        width = shutil.get_terminal_size((100, 24)).columns
        if word == "/retry":
            self._watch(Talk.retry)
        elif word == "/save":
            self._save(rest)
        elif word == "/skills":
            self._screen.say(skills_text(self.manager, self.skills, width, may_run=self.may_run))
        elif word == "/approve":
            self._screen.say(answer_approvals(self.manager, rest))
        else:
            self._screen.say(help_text(width) if word == "/help" else unknown_command(word))

    def _save(self, file: str) -> None:
        if not file:
            self._screen.say("Write /save FILE: .jsonl is one JSON object a line, everything else Markdown.")
            return
        path = Path(file).expanduser().absolute()
        self.transcript.save_to(path)
        self._screen.say(f"Saved to {path}; what follows goes there too.")

    def _attempt(self, act: Callable[[], None]) -> None:
        try:
            act()
        except SkillKitError as error:
            self._screen.complain(str(error))
        except KeyboardInterrupt:
            self._screen.say(INTERRUPTED)

    def ask(self, question: str) -> None:
        """On a terminal failures are told and the chat goes on."""
        self.transcript.add_question(question)
        self._watch(lambda talk: talk.ask(question))

    def answer_once(self, question: str) -> Stop | None:
        """Failures come out as errors."""
        self.transcript.add_question(question)
        try:
            stopped = self._run(lambda talk: talk.ask(question), NOTHING_SAID_ONCE)
            if stopped in STOPPED_ONCE:
                self._remark(STOPPED_ONCE[stopped], self._screen.say)
        finally:
            self.transcript.write()
        return stopped

    def _watch(self, act: Callable[[Talk], Stop | None]) -> None:
        try:
            stopped = self._run(act)
        except SkillKitError as error:
            self._remark(str(error), self._screen.complain)
        except KeyboardInterrupt:
            self._remark(INTERRUPTED, self._screen.say)
        else:
            if stopped is None:
                self._screen.say("There is nothing to ask again.")
            elif stopped in STOPPED:
                self._remark(STOPPED[stopped], self._screen.say)
        self.transcript.write()

    def _run(self, act: Callable[[Talk], Stop | None], nothing_said: str = NOTHING_SAID) -> Stop | None:
        assert self._talk is not None  # noqa: S101 - begin() comes first
        try:
            stopped = act(self._talk)
        finally:
            self._screen.finish()
        if stopped == "answered" and self._talk.is_unanswered:
            self._screen.say(nothing_said)
        return stopped

    def _remark(self, text: str, tell: Callable[[str], None]) -> None:
        tell(text)
        self.transcript.add_event(Note(text))
