"""Commands and the skill they belong to -> everything a person is shown before answering."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path

from skillkit.core.ask.changes import changes_between
from skillkit.core.ask.reach import is_blocked, reach_marks
from skillkit.core.ask.risk import risk_flags
from skillkit.core.ask.risk.files import is_binary, open_regular
from skillkit.core.exceptions import ContentChangedError
from skillkit.core.values.bounds import Bounds
from skillkit.core.values.questions import FileChange, Prompt, PromptCommand, RiskFlag
from skillkit.core.values.runs import Manifest, ScriptCommand
from skillkit.core.values.text import shown_path

__all__ = ["new_and_not_shown", "pretty_json", "prompt_for"]

STDIN_CHARACTERS = 20_000
SOURCE_BYTES = 200_000
PRETTY_BYTES = 200_000
CHUNK_BYTES = 1 << 20
UNSEEN_FILES = 2
UNSEEN_WEIGHT = 100  # who reads only the heaviest risk must know that something is not shown


def prompt_for(
    commands: Sequence[ScriptCommand],
    *,
    origin: str,
    reasons: Iterable[str],
    manifest: Manifest,
    source_folder: Path,
    approved_folder: Path | None,
    walls: Sequence[str],
    bounds: Sequence[Bounds] = (),
    granted: Sequence[str] = (),
    signer: str = "",
    last_yes: str = "",
) -> Prompt:
    """Commands of one skill; what is shown is read from `source_folder`, which is what runs, and checked by hash.

    `bounds` are what each command gets, `granted` the paths that their arguments name.
    """
    if len({(command.skill_name, command.digest) for command in commands}) != 1:
        raise ValueError("A prompt is about one or more commands of one skill, all of the same digest.")
    if commands[0].digest != manifest.digest:
        raise _changed(commands[0].skill_name)
    scripts = [command.script_name for command in commands]
    changes = None if approved_folder is None else changes_between(approved_folder, source_folder, first=scripts)
    return Prompt(
        skill=commands[0].skill_name,
        origin=shown_path(origin),
        reasons=tuple(reasons),
        risks=(
            *new_and_not_shown(changes or (), commands[0].skill_name),
            *(flag for command in commands for flag in _not_shown(command, source_folder)),
            *risk_flags(source_folder, manifest, scripts, _blocked_by(bounds)),
        ),
        changes=changes,
        commands=tuple(_shown(command, source_folder, manifest) for command in commands),
        walls=tuple(walls),
        digest=manifest.digest,
        approved=approved_folder.name if approved_folder is not None else "",
        marks=reach_marks(bounds[0], granted) if bounds else (),
        signer=signer,
        last_yes=last_yes,
    )


def _shown(command: ScriptCommand, folder: Path, manifest: Manifest) -> PromptCommand:
    return PromptCommand(
        script=shown_path(command.script_name),
        argv=tuple(map(shown_path, command.script_arguments)),
        stdin=stdin_text(command.stdin),
        source=source_text(folder, command.script_name, manifest),
        interpreter="" if command.is_program else command.interpreter,
    )


def _blocked_by(bounds: Sequence[Bounds]) -> Callable[[str], bool]:
    """Whether a wall stands for all commands; without any walls none does."""
    return lambda wall: bool(bounds) and all(is_blocked(wall, each) for each in bounds)


def new_and_not_shown(changes: Sequence[FileChange], skill: str) -> Iterator[RiskFlag]:
    """What is new is what a person has to judge; in many files it is told once, so that other risks stay in sight."""
    unseen = [(change.path, change.unseen) for change in changes if change.unseen]
    if rest := unseen[UNSEEN_FILES:]:
        unseen[UNSEEN_FILES:] = [(f"{len(rest):,} more changed files", sum(count for _, count in rest))]
    for path, count in unseen:
        lines = "added line is" if count == 1 else "added lines are"
        more = f"skillkit trust diff --all {shown_path(skill)} shows more."
        yield RiskFlag("hidden_text", f"{count:,} {lines} not shown, or not to the end. {more}", path, 0, UNSEEN_WEIGHT)


def _not_shown(command: ScriptCommand, folder: Path) -> Iterator[RiskFlag]:
    """Said before everything else: at the end of what is shown, few would come to read it."""
    script = shown_path(command.script_name)
    try:
        size = os.lstat(folder / command.script_name).st_size
    except OSError as error:
        raise _changed(script) from error
    if size > SOURCE_BYTES:
        told = f"Of its {size:,} bytes only the first {SOURCE_BYTES:,} are shown."
        yield RiskFlag("hidden_text", told, script, 0, UNSEEN_WEIGHT)
    if len(stdin_text(command.stdin)) > STDIN_CHARACTERS:
        told = f"Of its input only the first {STDIN_CHARACTERS:,} characters are shown."
        yield RiskFlag("hidden_text", told, script, 0, UNSEEN_WEIGHT)


def stdin_text(stdin: bytes) -> str:
    """JSON with a line for each value, where that changes nothing of its meaning; anything else as it is."""
    text = stdin.decode("utf-8", "backslashreplace")
    if 0 < len(stdin) <= PRETTY_BYTES:
        text = pretty_json(text) or text
    more = len(text) - STDIN_CHARACTERS
    return f"{text[:STDIN_CHARACTERS]}\n[... {more:,} more characters ...]" if more > 0 else text


def pretty_json(text: str) -> str:
    """Empty for what is no JSON, or JSON that would read differently: names given twice, numbers rounded."""
    whole, other = partial(_exact_number, int), partial(_exact_number, float)
    try:
        value = json.loads(
            text, object_pairs_hook=_unique_names, parse_int=whole, parse_float=other, parse_constant=other
        )
        pretty = json.dumps(value, indent=2, ensure_ascii=False)
        pretty.encode("utf-8")  # half of a surrogate pair is not text
    except (ValueError, RecursionError):
        return ""
    return pretty


def _unique_names(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a name is given twice")
    return made


def _exact_number(kind: type[float], text: str) -> float:
    """ValueError where digits or a sign would be lost, and for the constants that JSON does not have."""
    number = kind(text)
    if repr(number) != text:
        raise ValueError(f"{text} would read differently")
    return number


def source_text(folder: Path, script: str, manifest: Manifest) -> str:
    """The script's first bytes as text; ContentChangedError unless all of it is what the manifest says."""
    head, size, digest = _read(folder / script)
    if dict(manifest.entries).get(script) != f"sha256 {digest}":
        raise _changed(script)
    if is_binary(head):
        return f"[a binary file of {size:,} bytes, which cannot be shown]"
    text = head.decode("utf-8", "replace")
    return f"{text}\n[... {size - len(head):,} more bytes ...]" if size > len(head) else text


def _read(path: Path) -> tuple[bytes, int, str]:
    """The first bytes, the size and the hash of the whole."""
    summary = sha256()
    head, size = b"", 0
    try:
        with os.fdopen(open_regular(path), "rb", buffering=0) as file:
            while chunk := file.read(CHUNK_BYTES):
                summary.update(chunk)
                head += chunk[: SOURCE_BYTES - len(head)]
                size += len(chunk)
    except (OSError, ValueError) as error:
        raise _changed(shown_path(path.name)) from error
    return head, size, summary.hexdigest()


def _changed(what: str) -> ContentChangedError:
    reason = f"{what} changed after it was looked at"
    return ContentChangedError(f"{reason}, so nobody was asked. Run it again.", reasons=[reason])
