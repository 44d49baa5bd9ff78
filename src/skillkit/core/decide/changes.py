"""What was approved and what is there now -> the files that differ, each with a bounded diff."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillkit.core.decide.line_diff import groups_of
from skillkit.core.decide.risk.files import head_of, is_binary
from skillkit.core.decide.risk.findings import shown_path
from skillkit.core.decide.shortened import BRIEF, WHOLE, Room, shortened
from skillkit.core.digest import manifest_of
from skillkit.core.questions import FileChange, Prompt

__all__ = ["BRIEF", "WHOLE", "changes_between", "whole_changes"]

TAKES_PART = ("sha256 ", "link ")
DIGEST = re.compile("[0-9a-f]{64}")
COMPARED_BYTES = 1_000_000
NO_END = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True)
class Side:
    """One version of a file: its lines, or what it is instead."""

    lines: tuple[str, ...] = ()
    size: int = 0
    instead: str = ""


def changes_between(old: Path, new: Path, room: Room = BRIEF) -> tuple[FileChange, ...]:
    """In the order of paths. What is the same apart from times and modes is no change."""
    before, after = _entries(old), _entries(new)
    differing = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    shown = differing[: room.files]
    diffs = [[*_diff(_side(old, path, before.get(path)), _side(new, path, after.get(path)))] for path in shown]
    changes = [
        FileChange(_kind(path, before, after), shown_path(path), short.text, short.unseen)
        for path, short in zip(shown, shortened(diffs, room), strict=True)
    ]
    if len(differing) > room.files:
        changes.append(_the_rest(differing[room.files :], before, after))
    return tuple(changes)


def whole_changes(state_dir: Path, prompt: Prompt) -> tuple[FileChange, ...] | None:
    """All that a prompt is about, from the copies it was made of; None where one of them is gone."""
    if not (DIGEST.fullmatch(prompt.approved) and DIGEST.fullmatch(prompt.digest)):
        return None
    old, new = (state_dir / "snapshots" / name for name in (prompt.approved, prompt.digest))
    return changes_between(old, new, WHOLE) if old.is_dir() and new.is_dir() else None


def _entries(folder: Path) -> dict[str, str]:
    """What cannot take part in a run is in no snapshot, so it is no change either."""
    return {path: content for path, content in manifest_of(folder).entries if content.startswith(TAKES_PART)}


def _kind(path: str, before: dict[str, str], after: dict[str, str]) -> str:
    return "added" if path not in before else "removed" if path not in after else "changed"


def _the_rest(paths: Sequence[str], before: dict[str, str], after: dict[str, str]) -> FileChange:
    counts = Counter(_kind(path, before, after) for path in paths)
    summary = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items()))
    return FileChange("more", f"... {len(paths):,} more files", f"... {summary}")


def _side(folder: Path, path: str, content: str | None) -> Side | None:
    if content is None:
        return None
    if content.startswith("link "):
        return Side((f"link to {shown_path(content.removeprefix('link '))}",))
    try:
        held, size = head_of(folder / path, COMPARED_BYTES)
    except (OSError, ValueError):
        return Side(instead="a file that cannot be read now")
    if is_binary(held):
        return Side(size=size, instead=f"a binary file of {size:,} bytes")
    if size > len(held):
        return Side(size=size, instead=f"a text of {size:,} bytes, too large to compare")
    # With replacement characters two different texts could look the same.
    return Side(lines_of(held.decode("utf-8", "backslashreplace")), size)


def lines_of(text: str) -> tuple[str, ...]:
    """As patch programs count them, with their word for a last line that does not end."""
    *lines, rest = text.split("\n")
    return (*lines, rest, NO_END) if rest else tuple(lines)


def _diff(old: Side | None, new: Side | None) -> Iterator[str]:
    sides = (("-", old), ("+", new))
    if any(side and side.instead for _, side in sides):
        for sign, side in sides:
            if side:
                yield f"{sign} ({side.instead or f'a text of {len(side.lines):,} lines'})"
        return
    old_lines, new_lines = (side.lines if side else () for _, side in sides)
    if old and new and old_lines == new_lines:
        yield "(only the end of its last line differs)"
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
