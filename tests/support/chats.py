"""Chats for tests: a tutor's skill, a model's server on this machine, and whoever talks to it in between."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import skillkit
from skillkit import SkillManager
from skillkit.chat.endpoint import Endpoint
from skillkit.chat.events import Event, ToolOutcome
from skillkit.chat.talk import Talk
from skillkit.integrations.functions import SkillFunctions
from skillkit.integrations.inline import Budget, CommandOutcome, InlineProcessor, Text
from support.inline_answers import SCRIPTS, text_in, tutor
from support.model_servers import Answering, ChatServer, chat_server
from support.skill_folders import skill_folder
from support.terminals import Terminal

__all__ = ["KEY", "ChatTerminal", "Story", "chat_words", "talk_with", "without_terminal"]

KEY = "a-key-that-looks-like-nothing-known"

# Takes the terminal for its three streams, as a shell's command has it, and runs the command line.
ON_TERMINAL = """
import os, sys
terminal = os.open(sys.argv[1], os.O_RDWR)
for stream in range(3):
    os.dup2(terminal, stream)
os.chdir({folder!r})
from skillkit.cli.main import main
main({words!r})
"""


@dataclass
class Story:
    """One conversation in this process, and all that happened in it."""

    talk: Talk
    server: ChatServer
    manager: SkillManager
    events: list[Event] = field(default_factory=list)

    @property
    def text(self) -> str:
        return text_in([event for event in self.events if isinstance(event, Text | CommandOutcome)])

    @property
    def statuses(self) -> list[str]:
        return [event.status for event in self.events if isinstance(event, CommandOutcome | ToolOutcome)]

    @property
    def roles(self) -> list[str]:
        return [message["role"] for message in self.talk.messages]


@contextmanager
def talk_with(
    folder: Path, *answers: Answering, tools: bool | str = False, budget: Budget | None = None, **settings: Any
) -> Iterator[Story]:
    """Of the skill `demo`, without walls and questions unless another policy is given."""
    events: list[Event] = []
    with chat_server(*answers) as server, tutor(folder, **settings) as manager:
        endpoint = Endpoint("a-model", server.address, KEY, "OPENAI_API_KEY")
        talk = Talk(
            endpoint,
            InlineProcessor(manager),
            SkillFunctions(manager, run_scripts=manager.policy.allow_scripts),
            system=lambda has_tools: f"You teach. Tools: {has_tools}.",
            show=events.append,
            tools=tools,
            budget=budget,
        )
        try:
            yield Story(talk, server, manager, events)
        finally:
            endpoint.close()


def chat_words(folder: Path, server: ChatServer, *words: str) -> list[str]:
    """A command line for a chat with the tutor's skill."""
    skill_folder(folder / "skills", "demo", files=SCRIPTS)
    (folder / "workspace").mkdir(exist_ok=True)
    places = ["--skills", str(folder / "skills"), "--state-dir", str(folder / "state")]
    return ["chat", "--model", "a-model", "--base-url", server.address, *places, *words]


def without_terminal(folder: Path, words: list[str], text: str = "") -> subprocess.CompletedProcess[str]:
    """How it ends in a pipe, with nobody who could be asked."""
    return subprocess.run(
        [sys.executable, "-m", "skillkit", *words],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        start_new_session=True,
        cwd=folder / "workspace",
        env={**os.environ, "PYTHONPATH": str(Path(skillkit.__file__).parents[1]), "OPENAI_API_KEY": KEY},
    )


class ChatTerminal(Terminal):
    """A terminal with a chat on it."""

    def __init__(self, folder: Path, words: list[str], *, before: str = "", answer: str = "", **size: int) -> None:
        """`before` is what it asks before it begins, `answer` what is pressed then."""
        super().__init__(**{"columns": 100, "rows": 70, **size})
        self.environment |= {"OPENAI_API_KEY": KEY}
        self.program = self.start(ON_TERMINAL.format(folder=str(folder / "workspace"), words=words))
        if before:
            self.wait_for(before, seconds=60)
            self.send(answer)
        self.wait_for("Ctrl-D ends the chat.", seconds=60)

    def type(self, line: str) -> None:
        """Once the last answer is over and a line can be typed."""
        self.wait_for_prompt()
        self.send(f"{line}\r")

    def wait_for_prompt(self) -> None:
        self.wait_for_bytes("> \x1b[0m" if "\x1b[0m" in self.text else "> ", seconds=60)

    def end(self) -> int:
        self.wait_for_prompt()
        self.send("\x04")
        return self.program.wait(30)
