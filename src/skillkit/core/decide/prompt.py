"""Commands and the skill they belong to -> everything a person is shown before answering."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

from skillkit.core.decide.changes import changes_between
from skillkit.core.decide.risk import risk_flags
from skillkit.core.decide.risk.files import is_binary, opened
from skillkit.core.decide.risk.findings import shown_path
from skillkit.core.exceptions import ContentChangedError
from skillkit.core.questions import FileChange, Prompt, PromptCommand, RiskFlag
from skillkit.core.runs import Manifest, ScriptCommand

__all__ = ["prompt_for"]

STDIN_CHARACTERS = 20_000
SOURCE_BYTES = 200_000
PRETTY_BYTES = 200_000
CHUNK_BYTES = 1 << 20
UNSEEN_FILES = 2


def prompt_for(
    commands: Sequence[ScriptCommand],
    *,
    origin: str,
    reasons: Iterable[str],
    manifest: Manifest,
    source_folder: Path,
    approved_folder: Path | None,
    walls: Sequence[str],
) -> Prompt:
    """Commands of one skill; what is shown is read from `source_folder`, which is what runs, and checked by hash."""
    if len({(command.skill_name, command.digest) for command in commands}) != 1:
        raise ValueError("A prompt is about one or more commands of one skill, all of the same digest.")
    if commands[0].digest != manifest.digest:
        raise changed(commands[0].skill_name)
    shown = tuple(_shown(command, manifest, source_folder) for command in commands)
    changes = None if approved_folder is None else changes_between(approved_folder, source_folder)
    return Prompt(
        skill=commands[0].skill_name,
        origin=shown_path(origin),
        reasons=tuple(reasons),
        risks=(
            *_new_and_not_shown(changes or (), commands[0].skill_name),
            *(flag for command in commands for flag in _not_shown(command, source_folder)),
            *risk_flags(source_folder, manifest, [command.script_name for command in commands]),
        ),
        changes=changes,
        commands=shown,
        walls=tuple(walls),
        digest=manifest.digest,
        approved=approved_folder.name if approved_folder is not None else "",
    )


def _shown(command: ScriptCommand, manifest: Manifest, folder: Path) -> PromptCommand:
    return PromptCommand(
        script=shown_path(command.script_name),
        argv=tuple(shown_path(word) for word in command.script_arguments),
        stdin=stdin_text(command.stdin),
        source=source_text(folder, command.script_name, manifest),
    )


def _new_and_not_shown(changes: Sequence[FileChange], skill: str) -> Iterator[RiskFlag]:
    """What is new is what a person has to judge; in many files it is told once, so that other risks stay in sight."""
    unseen = [change for change in changes if change.unseen]
    for change in unseen[:UNSEEN_FILES]:
        yield RiskFlag("hidden_text", _unseen_lines(change.unseen, skill), change.path, 0)
    if rest := unseen[UNSEEN_FILES:]:
        count = sum(change.unseen for change in rest)
        yield RiskFlag("hidden_text", _unseen_lines(count, skill), f"{len(rest):,} more changed files", 0)


def _unseen_lines(count: int, skill: str) -> str:
    lines = "added line is" if count == 1 else "added lines are"
    return f"{count:,} {lines} not shown, or not to the end. skillkit trust diff --all {shown_path(skill)} shows more."


def _not_shown(command: ScriptCommand, folder: Path) -> Iterator[RiskFlag]:
    """Said before everything else: at the end of what is shown, few would come to read it."""
    script = shown_path(command.script_name)
    try:
        size = os.lstat(folder / command.script_name).st_size
    except OSError as error:
        raise changed(script) from error
    if size > SOURCE_BYTES:
        told = f"Of its {size:,} bytes only the first {SOURCE_BYTES:,} are shown."
        yield RiskFlag("hidden_text", told, script, 0)
    if len(stdin_text(command.stdin)) > STDIN_CHARACTERS:
        told = f"Of its input only the first {STDIN_CHARACTERS:,} characters are shown."
        yield RiskFlag("hidden_text", told, script, 0)


def stdin_text(stdin: bytes) -> str:
    """JSON with a line for each value, where that changes nothing of its meaning; anything else as it is."""
    text = stdin.decode("utf-8", "backslashreplace")
    if 0 < len(stdin) <= PRETTY_BYTES:
        text = pretty_json(text) or text
    more = len(text) - STDIN_CHARACTERS
    return f"{text[:STDIN_CHARACTERS]}\n[... {more:,} more characters ...]" if more > 0 else text


def pretty_json(text: str) -> str:
    """Empty for what is no JSON, or JSON that would read differently: names given twice, numbers rounded."""
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_float=_exact_float,
            parse_int=_exact_integer,
            parse_constant=_no_constant,
        )
        pretty = json.dumps(value, indent=2, ensure_ascii=False)
        pretty.encode("utf-8")  # half of a surrogate pair is no text
    except (ValueError, RecursionError):
        return ""
    return pretty


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a name is given twice")
    return made


def _exact_float(text: str) -> float:
    if repr(float(text)) != text:
        raise ValueError("a number would be rounded")
    return float(text)


def _exact_integer(text: str) -> int:
    if text == "-0":
        raise ValueError("a sign would be lost")
    return int(text)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def source_text(folder: Path, script: str, manifest: Manifest) -> str:
    """The script's first bytes as text; ContentChangedError unless all of it is what the manifest says."""
    head, size, digest = _read(folder / script)
    if dict(manifest.entries).get(script) != f"sha256 {digest}":
        raise changed(script)
    if is_binary(head):
        return f"[a binary file of {size:,} bytes, which cannot be shown]"
    text = head.decode("utf-8", "replace")
    return f"{text}\n[... {size - len(head):,} more bytes ...]" if size > len(head) else text


def _read(path: Path) -> tuple[bytes, int, str]:
    """The first bytes, the size and the hash of the whole."""
    summary = sha256()
    head, size = b"", 0
    try:
        with os.fdopen(opened(path), "rb", buffering=0) as file:
            while chunk := file.read(CHUNK_BYTES):
                summary.update(chunk)
                head += chunk[: SOURCE_BYTES - len(head)]
                size += len(chunk)
    except (OSError, ValueError) as error:
        raise changed(shown_path(path.name)) from error
    return head, size, summary.hexdigest()


def changed(what: str) -> ContentChangedError:
    reason = f"{what} changed after it was looked at"
    return ContentChangedError(f"{reason}, so nobody was asked. Run it again.", reasons=[reason])
