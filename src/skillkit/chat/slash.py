"""A line that begins with a slash -> what it does to the chat."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from skillkit.chat.approvals import approvals_text, end_approvals
from skillkit.core.manager import SkillManager
from skillkit.core.models import SkillMetadata
from skillkit.present.terminal import columns

__all__ = ["QUIT", "Controlled", "run_slash_command"]

QUIT = "/quit"
KEYS = (
    "Ctrl-C stops an answer and the script that runs, or clears the line. Ctrl-D ends the chat.\n"
    "A line that ends with \\ goes on. Begin with // to say something that starts with a slash."
)


class Controlled(Protocol):
    """Of a chat, what these commands use."""

    manager: SkillManager
    skills: list[SkillMetadata]
    may_run: bool

    def say(self, text: str) -> None: ...
    def retry(self) -> None: ...
    def save(self, path: Path) -> None: ...
    def width(self) -> int: ...


class SlashCommand(NamedTuple):
    """What it is for, and what it does with the words behind it."""

    usage: str
    purpose: str
    act: Callable[[Controlled, str], None]


def show_help(chat: Controlled, _: str) -> None:
    rows = [(each.usage, each.purpose) for each in COMMANDS.values()] + [(QUIT, "end the chat")]
    chat.say("\n".join([*columns(rows, chat.width()), KEYS]))


def show_skills(chat: Controlled, _: str) -> None:
    if not chat.skills:
        chat.say("There are no skills here. 'skillkit list' says where they are looked for.")
        return
    rows = []
    for skill in chat.skills:
        rows.append((skill.name, " ".join(skill.description.split())))
        scripts = chat.manager.load_skill(skill.qualified_name).scripts
        rows += [(f"- {script.path.as_posix()}", script.description) for script in scripts]
    note = "" if chat.may_run else "\nTheir scripts may not run in this chat: start it with --allow-scripts."
    chat.say("\n".join(columns(rows, chat.width())) + note)


def show_approvals(chat: Controlled, words: str) -> None:
    first, _, skill = words.partition(" ")
    manager = chat.manager
    if first == "end":
        chat.say(end_approvals(manager.state_dir, manager.session_id, skill.strip()))
    elif first:
        chat.say("Write /approve, or /approve end [SKILL].")
    else:
        chat.say(approvals_text(manager.state_dir, manager.session_id))


def save_transcript(chat: Controlled, words: str) -> None:
    if not words:
        chat.say("Write /save FILE: .jsonl is one JSON object a line, everything else Markdown.")
        return
    path = Path(words).expanduser().absolute()
    chat.save(path)
    chat.say(f"Saved to {path}; what follows goes there too.")


def retry(chat: Controlled, _: str) -> None:
    chat.retry()


COMMANDS = {
    "/skills": SlashCommand("/skills", "the skills and scripts that the model can use", show_skills),
    "/approve": SlashCommand(
        "/approve [end [SKILL]]", "what is approved for this session; take it back", show_approvals
    ),
    "/retry": SlashCommand("/retry", "ask the last question again that got no answer", retry),
    "/save": SlashCommand("/save FILE", "save the conversation as Markdown or .jsonl", save_transcript),
    "/help": SlashCommand("/help", "this", show_help),
}


def run_slash_command(chat: Controlled, line: str) -> None:
    """A word that is none of these is answered with the nearest one, and is not sent to the model."""
    import difflib

    word, _, rest = line.partition(" ")
    command = COMMANDS.get(word)
    if command is not None:
        command.act(chat, rest.strip())
        return
    near = difflib.get_close_matches(word, [*COMMANDS, QUIT], n=1)
    chat.say(f"{word} is no command. {f'Did you mean {near[0]}?' if near else 'See /help.'}")
