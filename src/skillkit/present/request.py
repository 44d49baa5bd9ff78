"""A request -> the text that a person reads before they answer; pure, and safe to print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from skillkit.core.decide.shortened import Room, shortened
from skillkit.core.questions import SINGLE_USE, FileChange, Option, OptionRequest, Prompt, PromptCommand
from skillkit.present.gutter import BOLD, CYAN, DIM, GREEN, RED, YELLOW, Layout, harmless
from skillkit.present.terminal import cut, escaped, visible, width_of

__all__ = [
    "CHANGE_KINDS",
    "NARROWEST",
    "SOURCE_ROWS",
    "as_word",
    "change_text",
    "decision_text",
    "diff_text",
    "form_text",
    "has_added",
    "prompt_text",
    "scopes_of",
    "source_text",
    "whole_text",
]

NARROWEST = 24
"""Columns; on less, a person could not read what they agree to."""
SOURCE_ROWS = 20
FEWEST_ROWS = 2
DIFF_ROWS = 12
ADDED_ROWS = 3
ALL = 1 << 62
# Beside spaces, what a reader would take for a quote, an end or a shell's own word.
NOT_PLAIN = frozenset(" \"'\\|&;<>()$`")
NAME_ROWS = 4
GIVEN_ROWS = 10
LISTED = 8
KIND_COLUMNS = 14

SCOPES = {
    "yes_once": "this time only",
    "yes_in_session": "this skill, until it changes",
    "no": "nothing runs",
}
DECISIONS = {"yes_once": "Approved once", "yes_in_session": "Approved in this session", "no": "Not approved"}
CHANGE_KINDS = ("changed", "added", "removed")


def prompt_text(
    request: OptionRequest, width: int, *, color: bool = False, source_rows: int = SOURCE_ROWS, in_short: bool = False
) -> str:
    """The whole question, from who asks to how it can be answered; nothing is preselected.

    `in_short` repeats what it is about above the answers, where the beginning is out of sight.
    """
    layout = Layout(width, color)
    prompt = Prompt.from_context(request.context)
    parts = general_parts(request, layout) if prompt is None else script_parts(prompt, layout, source_rows)
    short = short_lines(prompt, layout) if prompt and in_short else []
    return joined([*parts, short, option_lines(request.options, layout, scopes_of(request) if prompt else {})])


def form_text(request: OptionRequest, width: int, *, source_rows: int) -> str:
    """The question without its options, for a form that has fields for the answer and no keys for more.

    It stands in a code block: a client that renders markdown shows a skill's words and follows none of them.
    """
    layout = Layout(width, has_keys=False)
    prompt = Prompt.from_context(request.context)
    parts = general_parts(request, layout) if prompt is None else script_parts(prompt, layout, source_rows)
    heading = next(parts)
    return joined([heading]) + "\n```text\n" + joined(parts) + "```\n"


def whole_text(prompt: Prompt, width: int) -> str:
    """The question with nothing cut and no keys named, for who reads it in one piece."""
    return joined(script_parts(prompt, Layout(width), None))


def source_text(prompt: Prompt, width: int, *, color: bool = False) -> str:
    """Everything that would run, in full: for each script its arguments, its input and its source."""
    layout = Layout(width, color)
    parts = [risk_lines(prompt, layout, limit=None)]
    for number, command in enumerate(prompt.commands, 1):
        suffix = suffix_for(number, prompt)
        parts += [
            layout.quoted(f"Script{suffix}", [command.script]),
            given_lines(command, layout, suffix, limit=None),
            source_lines(command, prompt, layout, suffix, limit=None),
        ]
    return joined(parts)


def diff_text(prompt: Prompt, width: int, *, color: bool = False) -> str:
    """Every file that differs from what was approved last, with its diff."""
    layout = Layout(width, color)
    return joined([change_summary(prompt, layout, hint=""), *whole_changes(prompt, layout)])


def decision_text(request: OptionRequest, option: Option, width: int) -> str:
    """One line that tells later readers what was decided."""
    prompt = Prompt.from_context(request.context)
    if prompt is None:
        return cut(harmless(f"{option.label}: {request.title}"), width)
    scripts = ", ".join(command.script for command in prompt.commands)
    return cut(harmless(f"{DECISIONS.get(option.id, option.label)}: {scripts} of {prompt.skill}"), width)


def scopes_of(request: OptionRequest) -> dict[str, str]:
    """What each answer covers; where every run is asked about, any yes is for this one."""
    for_one_run = request.context.get(SINGLE_USE, ())
    return {name: SCOPES["yes_once"] if name in for_one_run else scope for name, scope in SCOPES.items()}


def joined(parts: Iterable[list[str]]) -> str:
    """A blank line between parts; empty parts leave none."""
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def general_parts(request: OptionRequest, layout: Layout) -> Iterator[list[str]]:
    """A question that is not about a script."""
    yield [layout.painted("A question for you", BOLD)]
    yield layout.quoted("Question", [request.title])
    yield layout.quoted("Message", request.message.split("\n")) if request.message else []


def script_parts(prompt: Prompt, layout: Layout, source_rows: int | None) -> Iterator[list[str]]:
    """In the order in which a person needs them; without a number of rows, all of each."""
    many = len(prompt.commands)
    is_whole = source_rows is None
    given_rows = None if is_whole else share(GIVEN_ROWS, many)
    yield [layout.painted("May this script run?" if many == 1 else f"May these {many} scripts run?", BOLD)]
    yield who_lines(prompt, layout)
    yield risk_lines(prompt, layout, limit=None if is_whole else LISTED) or layout.said(
        "Risks", "none found, which proves nothing"
    )
    yield whole_change_lines(prompt, layout) if is_whole else change_lines(prompt, layout, source_rows)
    yield [
        line
        for number, command in enumerate(prompt.commands, 1)
        for line in given_lines(command, layout, suffix_for(number, prompt), limit=given_rows)
    ]
    yield layout.quoted("Walls", prompt.walls) or layout.said("Walls", "none")
    for number, command in enumerate(prompt.commands, 1):
        limit = None if source_rows is None else share(source_rows, many)
        yield source_lines(command, prompt, layout, suffix_for(number, prompt), limit=limit)
    yield layout.quoted("Digest", [prompt.digest])


def share(rows: int, many: int) -> int:
    """Of the rows there are; a question about many scripts stays one that can be read."""
    return max(rows // many, FEWEST_ROWS)


def who_lines(prompt: Prompt, layout: Layout) -> list[str]:
    lines = layout.quoted("Skill", [prompt.skill], limit=NAME_ROWS)
    for number, command in enumerate(prompt.commands, 1):
        lines += layout.quoted(f"Script{suffix_for(number, prompt)}", [command.script], limit=NAME_ROWS)
    lines += layout.quoted("From", [prompt.origin], limit=NAME_ROWS)
    return [*lines, *layout.quoted("Why asked", prompt.reasons)]


def risk_lines(prompt: Prompt, layout: Layout, *, limit: int | None) -> list[str]:
    """What a reader should look at, each with its place."""
    kinds = [cut(harmless(risk.kind), KIND_COLUMNS) for risk in islice(prompt.risks, limit)]
    column = max(map(width_of, kinds), default=0)
    lines: list[str] = []
    for kind, risk in zip(kinds, prompt.risks, strict=False):
        told = f"{risk.message} ({risk.path}:{risk.line})"
        start = kind + " " * (column - width_of(kind) + 2)
        lines += layout.quoted("" if lines else "Risks", [told], style=YELLOW, start=start, limit=NAME_ROWS)
    hidden = len(prompt.risks) - len(kinds)
    return [*lines, *(layout.said("", f"{hidden:,} more{layout.more('v')}") if hidden else [])]


def change_lines(prompt: Prompt, layout: Layout, rows: int | None) -> list[str]:
    """What differs from the last approval: what is new in all files, then of the rest as much as there is room for."""
    lines = change_summary(prompt, layout, hint=layout.more("d"))
    changes = prompt.changes or ()
    room = Room(
        files=len(changes),
        file_lines=ALL,
        file_characters=ALL,
        all_characters=ALL,
        all_lines=DIFF_ROWS if layout.has_keys else max(DIFF_ROWS, rows or 0),
        added_characters=ADDED_ROWS * layout.room,
        other_characters=layout.room,
    )
    unseen = prompt.unseen
    for number, (change, short) in enumerate(zip(changes, shortened(map(diff_of, changes), room), strict=True)):
        unseen += short.unseen
        if number < LISTED or has_added(short.text):
            lines += [*change_heading(change, layout), *diff_lines(short.text, layout)]
    return [*lines, *unseen_lines(unseen, layout)]


def whole_change_lines(prompt: Prompt, layout: Layout) -> list[str]:
    below = [line for change in whole_changes(prompt, layout) for line in change]
    return [*change_summary(prompt, layout, hint=""), *below]


def whole_changes(prompt: Prompt, layout: Layout) -> Iterator[list[str]]:
    for change in prompt.changes or ():
        diff = diff_lines(change.diff, layout) or layout.said("", "no text to compare")
        yield [*change_heading(change, layout), *diff]
    yield unseen_lines(prompt.unseen, replace(layout, has_keys=False))


def unseen_lines(count: int, layout: Layout) -> list[str]:
    """What is new and out of sight is counted, and it is said where it can be seen."""
    how = layout.more("d") or "; 'skillkit trust diff SKILL --all' shows them"
    return (
        layout.said("", f"{count:,} added line{'' if count == 1 else 's'} not shown to the end{how}") if count else []
    )


def change_text(change: FileChange) -> str:
    """Our own words stand at the left margin, what the skill wrote stands behind a bar."""
    heading = visible(change.path).replace("\n", "\\n").replace("\t", "\\t")
    return "\n".join([f"{change.kind}: {heading}", *(f"  │ {line}" for line in visible(change.diff).splitlines())])


def diff_of(change: FileChange) -> list[str]:
    return change.diff.removesuffix("\n").split("\n") if change.diff else []


def has_added(diff: str) -> bool:
    return any(line.startswith("+") for line in diff.split("\n"))


def change_summary(prompt: Prompt, layout: Layout, *, hint: str) -> list[str]:
    if prompt.changes is None:
        return layout.said("Changed", "never approved before")
    if not prompt.changes:
        return layout.said("Changed", "nothing since the last approval")
    kinds = [change.kind for change in prompt.changes]
    counted = [f"{kinds.count(kind):,} {kind}" for kind in CHANGE_KINDS if kind in kinds]
    counted += [change.path.removeprefix("... ") for change in prompt.changes if change.kind == "more"]
    return layout.said("Changed", f"{', '.join(counted)} since it was approved{hint}")


def change_heading(change: FileChange, layout: Layout) -> list[str]:
    return layout.quoted("", [f"{change.kind:<7}  {change.path}"], style=CYAN, limit=NAME_ROWS)


def diff_lines(diff: str, layout: Layout) -> list[str]:
    """Indented below their file."""
    lines: list[str] = []
    for text in diff.removesuffix("\n").split("\n") if diff else ():
        style = {"+": GREEN, "-": RED, "@": DIM, ".": DIM}.get(text[:1], "")
        lines += layout.quoted("", [text], style=style, at_words=False, start="  ")
    return lines


def given_lines(command: PromptCommand, layout: Layout, suffix: str, *, limit: int | None) -> list[str]:
    """What the caller gives the script."""
    lines = argument_lines(command.argv, layout, f"Arguments{suffix}", limit=limit)
    given = command.stdin.split("\n") if command.stdin else []
    return [*lines, *layout.quoted(f"Input{suffix}", given, at_words=False, limit=limit)]


def argument_lines(argv: Sequence[str], layout: Layout, label: str, *, limit: int | None) -> list[str]:
    """On one row where they fit; else each on rows of its own, numbered, so that a row's end is no word's end."""
    if not argv:
        return layout.said(label, "none")
    words = [as_word(word) for word in argv]
    if width_of(harmless(" ".join(words))) <= layout.room:
        return layout.quoted(label, [" ".join(words)])
    column = len(str(len(words)))
    lines: list[str] = []
    for number, word in enumerate(words, 1):
        if limit is not None and len(lines) >= limit:
            left = len(words) - number + 1
            return [*lines, *layout.said("", f"{left:,} more argument{'' if left == 1 else 's'}{layout.more('v')}")]
        start = f"{number:>{column}}  "
        lines += layout.quoted("" if lines else label, [word], at_words=False, start=start, limit=limit)
    return lines


def source_lines(
    command: PromptCommand, prompt: Prompt, layout: Layout, suffix: str, *, limit: int | None
) -> list[str]:
    """Numbered lines, those that a risk flag names marked; `limit` counts rows on the terminal."""
    lines = command.source.replace("\r\n", "\n").removesuffix("\n").split("\n") if command.source else []
    flagged = {risk.line for risk in prompt.risks if risk.path == command.script}
    column = len(str(len(lines) if limit is None else min(len(lines), limit)))
    rows: list[str] = []
    for number, line in enumerate(islice(lines, limit), 1):
        mark, style = ("!", YELLOW) if number in flagged else (" ", "")
        start = f"{mark}{number:>{column}}  "
        rows += layout.quoted("", [line], style=style, at_words=False, start=start, limit=limit)
    is_cut = limit is not None and (len(rows) > limit or len(lines) > limit)
    counted = f"{len(lines):,} line{'' if len(lines) == 1 else 's'}"
    heading = f"the beginning of {counted}{layout.more('v')}" if is_cut else counted
    return [*layout.said(f"Source{suffix}", heading if lines else "empty"), *islice(rows, limit)]


def short_lines(prompt: Prompt, layout: Layout) -> list[str]:
    """Two rows: what would run, and what a reader should look at."""
    scripts = ", ".join(command.script for command in prompt.commands)
    kinds = ", ".join(dict.fromkeys(risk.kind for risk in prompt.risks))
    about = layout.quoted("In short", [cut(f"{scripts} of {prompt.skill}", layout.room)])
    if not kinds:
        return [*about, *layout.said("", "risks: none found, which proves nothing")]
    return [*about, *layout.quoted("", [cut(f"risks: {kinds}", layout.room)], style=YELLOW)]


def option_lines(options: tuple[Option, ...], layout: Layout, scopes: dict[str, str]) -> list[str]:
    """A digit for each; what a grant covers stands beside it where there is room."""
    labels = [cut(harmless(option.label), layout.width - 6) for option in options]
    column = max(map(width_of, labels), default=0)
    lines = []
    for number, (option, label) in enumerate(zip(options, labels, strict=True), 1):
        scope = scopes.get(option.id, "")
        fits = scope and 5 + column + 2 + len(scope) <= layout.width
        beside = f"{' ' * (column - width_of(label))}  {layout.painted(scope, DIM)}" if fits else ""
        lines.append(f"  {layout.painted(str(number), BOLD)}  {label}{beside}")
    return lines


def suffix_for(number: int, prompt: Prompt) -> str:
    return "" if len(prompt.commands) == 1 else f" {number}"


def as_word(argument: str) -> str:
    """As typed where it is plain; else in quotes, so that it can be seen where it begins, ends and breaks.

    No two words look the same: what hides, breaks a line or only looks like a space is written out.
    """
    if argument.isascii() and argument.isprintable() and argument and not set(argument) & NOT_PLAIN:
        return argument
    inside = argument.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    shown = "".join(escaped(char) if char.isspace() and char != " " else char for char in visible(inside))
    return f'"{shown}"'
