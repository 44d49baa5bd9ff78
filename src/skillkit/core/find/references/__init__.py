"""A skill -> the scripts that its instructions write as a command, each with its arguments."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from skillkit.core.find.references.commands import Invocation, invocation_in, simple_commands, typed_text
from skillkit.core.find.references.examples import has_examples, varied
from skillkit.core.find.references.passages import Passage, is_forbidden_by_comment, passages_in
from skillkit.core.find.references.places import PLUGIN, SKILL, SkillPlaces, with_folders_marked
from skillkit.core.models import Skill, open_at_once
from skillkit.core.models.shell import Command

__all__ = ["References", "ScriptReference", "references_in"]

FILE_CHARACTERS = 200_000
ALL_CHARACTERS = 300_000
COMMANDS_IN_ONE_BLOCK = 1_000
PASSAGES = 5_000  # in all files; what stands behind them is not run
LINKED_FILES = 30
LINK_DEPTH = 2
COMMANDS = 100
SHOWN_CHARACTERS = 300
SHOWN_WORDS = 100


@dataclass(frozen=True, slots=True)
class ScriptReference:
    """A script written as a command."""

    script: str
    """Relative to the skill; as written where there is no such script."""
    status: str
    """command, needs_arguments or not_found."""
    argv: tuple[str, ...]
    text: str
    """The command as the instructions write it."""


@dataclass(frozen=True, slots=True)
class References:
    """In order of appearance, each once."""

    commands: tuple[ScriptReference, ...]
    files: tuple[str, ...]
    """The texts that were read: SKILL.md and what it links to."""


def references_in(skill: Skill, *, own_folder: str = ".", workspace: Path | None = None) -> References:
    """Reads SKILL.md and the local markdown it links to, each file once, and starts nothing.

    `own_folder` stands for `{baseDir}` in arguments: scripts start in their skill's folder, or in a copy of it.
    A file that an argument names must be there, in the skill or in `workspace`; else it is an example.
    """
    places = SkillPlaces(skill)
    own = skill.metadata.skill_path.name
    waiting, files = [(own, 0)], [own]
    commands: dict[tuple[str, ...], ScriptReference] = {}
    room, passages_left = ALL_CHARACTERS, PASSAGES
    while waiting and room > 0:
        source, depth = waiting.pop(0)
        text = skill.content if source == own else _read_text(places.base / source)
        text = with_folders_marked(text[: min(room, FILE_CHARACTERS)])
        room -= len(text)
        folder = posixpath.dirname(source)
        reader = _Reader(places, folder, own_folder, () if workspace is None else (workspace,))
        for passage in islice(passages_in(text), passages_left):
            passages_left -= 1
            linked = places.text_file(passage.text.strip(), folder) if passage.kind in ("link", "span") else None
            if linked and linked not in files and depth < LINK_DEPTH and len(files) <= LINKED_FILES:
                files.append(linked)
                waiting.append((linked, depth + 1))
            for reference in reader.references(passage):
                commands.setdefault((reference.script, reference.status, *reference.argv), reference)
    return References(_told(commands.values())[:COMMANDS], tuple(files))


def _told(found: Iterable[ScriptReference]) -> tuple[ScriptReference, ...]:
    """A command is what it runs; what cannot run, or is one of several examples, is told once for each script."""
    every = list(found)
    examples = varied([(each.script, *each.argv) for each in every])
    told: dict[tuple[str, ...], ScriptReference] = {}
    for each in every:
        is_ready = each.status == "command" and (each.script, *each.argv) not in examples
        status = "needs_arguments" if each.status == "command" and not is_ready else each.status
        argv = each.argv if is_ready else ()
        told.setdefault((each.script, status, *argv), replace(each, status=status, argv=argv))
    return tuple(told.values())


def _read_text(path: Path) -> str:
    """Empty for what cannot be read as text; a pipe does not make us wait."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return ""
        with open(path, "rb", opener=open_at_once) as file:
            raw = file.read(FILE_CHARACTERS * 4) or b""
    except OSError:
        return ""
    return raw.decode("utf-8-sig", "replace")


def _as_written(command: Command) -> str:
    text = " ".join(word.raw for word in command.words[:SHOWN_WORDS])
    return text.replace(SKILL, "{baseDir}").replace(PLUGIN, "${CLAUDE_PLUGIN_ROOT}")[:SHOWN_CHARACTERS]


@dataclass(frozen=True, slots=True)
class _Reader:
    """Commands of one file; `cd` counts until the end of the passage it stands in."""

    places: SkillPlaces
    folder: str
    own_folder: str
    more_folders: tuple[Path, ...] = ()
    """Where else a file that an argument names may lie."""

    def references(self, passage: Passage) -> Iterator[ScriptReference]:
        if passage.is_discouraged:
            return
        if passage.kind == "link":  # `Run [the linter](scripts/lint.sh)`
            script = self.places.script(passage.text, self.folder) if passage.is_imperative else None
            if script is not None:
                yield ScriptReference(script, "command", (), passage.text[:SHOWN_CHARACTERS])
            return
        text = typed_text(passage.text)
        is_prompted = text != passage.text
        where: str | None = ""
        for command in islice(simple_commands(text), COMMANDS_IN_ONE_BLOCK):
            if command.words[0].text == "cd":
                where = self.folder_after(command)
                continue
            invocation = invocation_in(command.words)
            if invocation is None or is_forbidden_by_comment(command.comment):
                continue
            if is_prompted or self.has_command_form(passage, invocation):
                yield from self.reference(command, invocation, where)

    def has_command_form(self, passage: Passage, invocation: Invocation) -> bool:
        """A path alone is a command in a shell's block, or where the sentence says to run it."""
        if passage.kind == "shell" or invocation.has_runner:
            return True
        if passage.kind == "span":
            return bool(invocation.arguments) or passage.is_imperative
        return invocation.script.text.startswith(("./", SKILL))

    def reference(self, command: Command, invocation: Invocation, where: str | None) -> Iterator[ScriptReference]:
        written = invocation.script.text if "\\" not in invocation.script.raw else invocation.script.raw.strip("'\"")
        script = self.locate(written, invocation, where)
        if script is None:
            if not invocation.is_module and self.places.is_missing(written, self.folder):
                missing = written.replace(f"{SKILL}/", "").removeprefix("./")
                yield ScriptReference(missing, "not_found", (), _as_written(command))
            return
        texts = tuple(word.text.replace(SKILL, self.own_folder) for word in invocation.arguments)
        is_ready = command.is_plain and where is not None and not (where and texts)
        is_ready = is_ready and not any(PLUGIN in text for text in texts)
        is_ready = is_ready and not has_examples(invocation.arguments, texts, (self.places.base, *self.more_folders))
        yield ScriptReference(script, "command" if is_ready else "needs_arguments", texts, _as_written(command))

    def locate(self, written: str, invocation: Invocation, where: str | None) -> str | None:
        if invocation.is_module:
            return self.places.module(written)
        if where and (found := self.places.script(f"{SKILL}/{where}/{written}")):
            return found
        return self.places.script(written, self.folder)

    def folder_after(self, command: Command) -> str | None:
        """A folder of the skill, empty for the skill itself; None for any other place."""
        target = command.words[1].text.rstrip("/") if len(command.words) > 1 else "~"
        if target in (SKILL, ".", str(self.places.base)):
            return ""
        for path in self.places.candidates(target, ""):
            if os.path.isdir(self.places.base / path):
                return path
        return None
