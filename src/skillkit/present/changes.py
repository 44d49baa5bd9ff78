"""What differs from what was approved -> rows on a terminal: every added line before anything else is cut."""

from __future__ import annotations

from collections.abc import Iterator

from skillkit.core.ask.diffs import Room, shorten
from skillkit.core.values.questions import FileChange, Prompt
from skillkit.core.values.text import on_one_line, plural
from skillkit.present.glance import news_of
from skillkit.present.terminal import CYAN, DIM, GREEN, RED, Layout, behind_bar

__all__ = ["change_lines", "change_text", "has_added", "lines_of", "whole_changes"]

ADDED_ROWS = 3
ALL = 1 << 62
LISTED = 8
NAME_ROWS = 4
DIFF_INDENT = 2


def change_lines(
    prompt: Prompt, layout: Layout, rows: int, *, only_added: bool = False, on_one_row: bool = False
) -> list[str]:
    """What differs from the last approval: what is new in all files, then of the rest as much as there is room for."""
    lines = layout.said("New", f"{news_of(prompt)}{layout.more('d') if prompt.changes else ''}")
    changes = prompt.changes or ()
    room = Room(
        files=len(changes),
        file_lines=ALL,
        file_characters=ALL,
        all_characters=ALL,
        all_lines=rows,
        added_characters=layout.room - DIFF_INDENT if on_one_row else ADDED_ROWS * layout.room,
        other_characters=layout.room,
    )
    unseen = prompt.unseen
    listed = min(rows, LISTED)
    for number, (change, short) in enumerate(
        zip(changes, shorten((lines_of(change.diff) for change in changes), room), strict=True)
    ):
        unseen += short.unseen
        if has_added(short.text) or (number < listed and not only_added):
            text = "\n".join(filter(has_added, lines_of(short.text))) if only_added else short.text
            heading = f"{change.kind:<7}  {change.path}"
            lines += layout.row("", heading, style=CYAN) if on_one_row else _change_heading(change, layout)
            lines += _diff_lines(text, layout)
    return [*lines, *_unseen_lines(unseen, layout)]


def whole_changes(prompt: Prompt, layout: Layout) -> Iterator[list[str]]:
    yield layout.said("New", news_of(prompt))
    for change in prompt.changes or ():
        diff = _diff_lines(change.diff, layout) or layout.said("", "no text to compare")
        yield [*_change_heading(change, layout), *diff]
    yield _unseen_lines(prompt.unseen, layout._replace(has_keys=False))


def _unseen_lines(count: int, layout: Layout) -> list[str]:
    """What is new and out of sight is counted, and it is said where it can be seen."""
    how = layout.more("d") or "; 'skillkit trust diff SKILL --all' shows them"
    return layout.said("", f"{plural(count, 'added line')} not shown to the end{how}") if count else []


def change_text(change: FileChange) -> str:
    """Our own words stand at the left margin, what the skill wrote stands behind a bar."""
    return "\n".join([f"{change.kind}: {on_one_line(change.path)}", *behind_bar(change.diff)])


def lines_of(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def has_added(diff: str) -> bool:
    return any(line.startswith("+") for line in diff.split("\n"))


def _change_heading(change: FileChange, layout: Layout) -> list[str]:
    return layout.quoted("", [f"{change.kind:<7}  {change.path}"], style=CYAN, limit=NAME_ROWS)


def _diff_lines(diff: str, layout: Layout) -> list[str]:
    """Indented below their file."""
    lines: list[str] = []
    for text in lines_of(diff):
        style = {"+": GREEN, "-": RED, "@": DIM, ".": DIM}.get(text[:1], "")
        lines += layout.quoted("", [text], style=style, at_words=False, start="  ")
    return lines
