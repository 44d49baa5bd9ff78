"""What was approved and what is there now -> the files that differ, each with a bounded diff."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillkit.core.ask.diffs import BRIEF, WHOLE, Room, groups_of, shorten
from skillkit.core.ask.risk.files import head_of, is_binary, is_code_name
from skillkit.core.models.digest import manifest_of
from skillkit.core.values.questions import FileChange, Prompt
from skillkit.core.values.text import shown_path

__all__ = ["BRIEF", "WHOLE", "changes_between", "file_text", "skill_files", "whole_changes"]

TAKES_PART = ("sha256 ", "link ")
DIGEST = re.compile("[0-9a-f]{64}")
FILE_BYTES = 200_000
NO_END = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True)
class Side:
    """One version of a file: its lines, or what it is instead."""

    lines: tuple[str, ...] = ()
    size: int = 0
    instead: str = ""
    unread: int = 0
    """One where there are lines that nobody counted."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """A file as it was and as it is; None where there is none."""

    path: str
    old: Side | None
    new: Side | None

    @property
    def kind(self) -> str:
        return "added" if self.old is None else "removed" if self.new is None else "changed"

    @property
    def unread(self) -> int:
        return self.new.unread if self.new else 0

    def count_in(self, diff: Sequence[str]) -> int:
        """Added lines of its diff; our own words about what is no text are none."""
        is_text = self.new is not None and not self.new.instead
        return sum(line.startswith("+") for line in diff) if is_text else self.unread

    def count_added(self) -> int:
        """Lines, without their order, which takes no time."""
        old, new = (Counter(side.lines if side else ()) for side in (self.old, self.new))
        return (new - old).total() + self.unread


@dataclass(slots=True)
class Reading:
    """How much of files may still be read to be compared."""

    of_one: int
    left: int

    def head_of(self, path: Path) -> tuple[bytes, int]:
        held, size = head_of(path, min(self.of_one, self.left))
        self.left -= len(held)
        return held, size


def changes_between(old: Path, new: Path, room: Room = BRIEF, *, first: Collection[str] = ()) -> tuple[FileChange, ...]:
    """In the order in which a person reads them: those in `first`, then other code, then the rest, last what is gone.

    What is the same apart from times and modes is not a change.
    """
    before, after = _entries(old), _entries(new)
    differing = [path for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
    # Where there are too many files, what is gone takes no place from what is new, nor other files from code.
    differing.sort(key=lambda path: (path not in after, path not in first, not is_code_name(path), path))
    reading = Reading(room.compared_bytes, room.all_compared_bytes)
    pairs = [
        _Pair(path, _side(old, path, before.get(path), reading), _side(new, path, after.get(path), reading))
        for path in differing
    ]
    shown, rest = pairs[: room.files], pairs[room.files :]
    diffs = [tuple(_diff(pair.old, pair.new)) for pair in shown]
    changes = [
        FileChange(
            pair.kind,
            shown_path(pair.path),
            shown_path(short.text),
            short.unseen + pair.unread,
            pair.count_in(diff),
        )
        for pair, diff, short in zip(shown, diffs, shorten(diffs, room), strict=True)
    ]
    return (*changes, _more(rest)) if rest else tuple(changes)


def _more(rest: list[_Pair]) -> FileChange:
    """All files that are too many to show, counted."""
    counts = sorted(Counter(pair.kind for pair in rest).items())
    summary = ", ".join(f"{count:,} {kind}" for kind, count in counts)
    added = sum(pair.count_added() for pair in rest)
    return FileChange("more", f"... {len(rest):,} more files", f"... {summary}", added, added, tuple(counts))


def whole_changes(state_dir: Path, prompt: Prompt) -> tuple[FileChange, ...] | None:
    """All that a prompt is about, from the copies it was made of; None where one of them is gone."""
    if not (DIGEST.fullmatch(prompt.approved) and DIGEST.fullmatch(prompt.digest)):
        return None
    old, new = (state_dir / "snapshots" / name for name in (prompt.approved, prompt.digest))
    scripts = [command.script for command in prompt.commands]
    return changes_between(old, new, WHOLE, first=scripts) if os.path.isdir(old) and os.path.isdir(new) else None


def skill_files(state_dir: Path, prompt: Prompt) -> list[tuple[str, Path]]:
    """Every file of the copy that a prompt is about, by the name to show, in reading order; none where it is gone."""
    folder = state_dir / "snapshots" / prompt.digest
    if not (DIGEST.fullmatch(prompt.digest) and os.path.isdir(folder)):
        return []
    scripts = [command.script for command in prompt.commands]
    files = [path for path, content in _entries(folder).items() if content.startswith("sha256 ")]
    files.sort(key=lambda path: (shown_path(path) not in scripts, not is_code_name(path), path))
    return [(shown_path(path), folder / path) for path in files]


def file_text(path: Path, limit: int = FILE_BYTES) -> str:
    """What a reader sees of one file; what is left out is said."""
    try:
        held, size = head_of(path, limit)
    except (OSError, ValueError):
        return "[it cannot be read any more]"
    if is_binary(held):
        return f"[a binary file of {size:,} bytes, which cannot be shown]"
    text = held.decode("utf-8", "replace")
    return f"{text}\n[... {size - len(held):,} more bytes ...]" if size > len(held) else text


def _entries(folder: Path) -> dict[str, str]:
    """What cannot take part in a run is in no snapshot, so it is not a change either."""
    return {path: content for path, content in manifest_of(folder).entries if content.startswith(TAKES_PART)}


def _side(folder: Path, path: str, content: str | None, reading: Reading) -> Side | None:
    if content is None:
        return None
    if content.startswith("link "):
        return Side(instead=f"a link to {content.removeprefix('link ')!r}")
    try:
        held, size = reading.head_of(folder / path)
    except (OSError, ValueError):
        return Side(instead="a file that cannot be read now")
    if is_binary(held):
        return Side(size=size, instead=f"a binary file of {size:,} bytes")
    if size > len(held):
        return Side(size=size, instead=f"a text of {size:,} bytes, too large to compare", unread=1)
    # With replacement characters two different texts could look the same.
    return Side(_lines_of(held.decode("utf-8", "surrogateescape")), size)


def _lines_of(text: str) -> tuple[str, ...]:
    """As patch programs count them; a last line that does not end is none that does, with their word for it below."""
    *lines, rest = text.split("\n")
    return (*lines, f"{rest}\n{NO_END}") if rest else tuple(lines)


def _diff(old: Side | None, new: Side | None) -> Iterator[str]:
    """What stands in the place of something that is not text is new from its first line."""
    if (old and old.instead) or (new and new.instead):
        if old:
            yield f"- ({old.instead or f'a text of {len(old.lines):,} lines'})"
        if new and new.instead:
            yield f"+ ({new.instead})"
            return
        old = None
    old_lines, new_lines = (side.lines if side else () for side in (old, new))
    for group in groups_of(old_lines, new_lines):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from (f" {line}" for line in old_lines[old_start:old_end])
            else:
                yield from (f"-{line}" for line in old_lines[old_start:old_end])
                yield from (f"+{line}" for line in new_lines[new_start:new_end])


def _range(start: int, end: int) -> str:
    """Lines count from one; nothing stands after the line before it."""
    return f"{start + (end > start)},{end - start}"
