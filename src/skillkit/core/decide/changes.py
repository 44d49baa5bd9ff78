"""What was approved and what is there now -> the files that differ, each with a bounded diff."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillkit.core.decide.risk.files import head_of, is_binary
from skillkit.core.decide.risk.findings import shown_path
from skillkit.core.digest import manifest_of
from skillkit.core.questions import FileChange

__all__ = ["changes_between"]

TAKES_PART = ("sha256 ", "link ")
FILES = 200
FILE_LINES = 400
FILE_CHARACTERS = 64_000
ALL_CHARACTERS = 256_000
LINE_CHARACTERS = 500
COMPARED_BYTES = 1_000_000
# The exact comparison takes a time that grows faster than the product of both; more is shown as one block.
COMPARED_LINES = 250_000
CONTEXT = 3
NO_END = "\\ No newline at end of file"

Opcode = tuple[str, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Side:
    """One version of a file: its lines, or what it is instead."""

    lines: tuple[str, ...] = ()
    size: int = 0
    instead: str = ""


def changes_between(old: Path, new: Path) -> tuple[FileChange, ...]:
    """In the order of paths. What is the same apart from times and modes is no change."""
    before, after = _entries(old), _entries(new)
    differing = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    left = ALL_CHARACTERS
    changes = []
    for path in differing[:FILES]:
        sides = _side(old, path, before.get(path)), _side(new, path, after.get(path))
        diff = "\n".join(_within(_diff(*sides), min(left, FILE_CHARACTERS)))
        left -= min(left, len(diff))
        changes.append(FileChange(_kind(path, before, after), shown_path(path), diff))
    if len(differing) > FILES:
        changes.append(_the_rest(differing[FILES:], before, after))
    return tuple(changes)


def _entries(folder: Path) -> dict[str, str]:
    """What cannot take part in a run is in no snapshot, so it is no change either."""
    return {path: content for path, content in manifest_of(folder).entries if content.startswith(TAKES_PART)}


def _kind(path: str, before: dict[str, str], after: dict[str, str]) -> str:
    return "added" if path not in before else "removed" if path not in after else "changed"


def _the_rest(paths: Sequence[str], before: dict[str, str], after: dict[str, str]) -> FileChange:
    counts = Counter(_kind(path, before, after) for path in paths)
    summary = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items()))
    return FileChange("changed", f"... {len(paths):,} more files", f"... {summary}")


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
    for group in _groups(old_lines, new_lines):
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


def _groups(old: Sequence[str], new: Sequence[str]) -> list[list[Opcode]]:
    """As `difflib` gives them, but lines that are the same at both ends are not compared again."""
    from difflib import SequenceMatcher

    most = min(len(old), len(new))
    start = next((n for n in range(most) if old[n] != new[n]), most)
    most -= start
    end = next((n for n in range(most) if old[-1 - n] != new[-1 - n]), most)
    lead, trail = max(0, start - CONTEXT), max(0, end - CONTEXT)
    inner_old, inner_new = old[lead : len(old) - trail], new[lead : len(new) - trail]
    matcher = SequenceMatcher(None, inner_old, inner_new)
    if len(inner_old) * len(inner_new) > COMPARED_LINES:
        matcher.opcodes = _one_block(inner_old, inner_new, start - lead, end - trail)  # type: ignore[attr-defined]  # no stub has it
    groups = matcher.get_grouped_opcodes(CONTEXT)
    return [[(tag, a + lead, b + lead, c + lead, d + lead) for tag, a, b, c, d in group] for group in groups]


def _one_block(old: Sequence[str], new: Sequence[str], head: int, tail: int) -> list[Opcode]:
    old_end, new_end = len(old) - tail, len(new) - tail
    middle = ("replace", head, old_end, head, new_end)
    block = [("equal", 0, head, 0, head), middle, ("equal", old_end, len(old), new_end, len(new))]
    return [each for each in block if each[1] < each[2] or each[3] < each[4]]


def _within(lines: Iterator[str], characters: int) -> Iterator[str]:
    """As many as fit; the last line says how many do not."""
    shown = 0
    for number, line in enumerate(lines):
        cut = line if len(line) <= LINE_CHARACTERS else f"{line[:LINE_CHARACTERS]}... ({len(line):,} characters)"
        shown += len(cut) + 1
        if number == FILE_LINES or shown > characters:
            more = 1 + sum(1 for _ in lines)
            yield f"... {more:,} more lines"
            return
        yield cut
