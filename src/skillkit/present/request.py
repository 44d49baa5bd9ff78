"""A request -> the text that a person reads before they answer; pure, and safe to print."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from skillkit.core.values.questions import Option, OptionRequest, Prompt, PromptCommand, Tick
from skillkit.core.values.text import plural
from skillkit.present.changes import change_lines, lines_of, whole_changes
from skillkit.present.glance import (
    as_word,
    command_words,
    decision_words,
    marks_of,
    scopes_of,
)
from skillkit.present.risks import MOST_TERSE, all_risk_lines, risk_lines
from skillkit.present.terminal import BOLD, DIM, GREEN, YELLOW, Layout, cut, harmless, width_of, wrap

__all__ = [
    "NARROWEST",
    "SOURCE_ROWS",
    "TICK_KEYS",
    "answer_lines",
    "decision_text",
    "diff_text",
    "prompt_text",
    "question_text",
    "source_text",
    "tick_keys",
    "walls_text",
    "whole_text",
]

NARROWEST = 24
"""Columns; on less, a person could not read what they agree to."""
SOURCE_ROWS = 20
TICK_KEYS = "abcefghijklmopstuxyz"
"""Letters that tick; d, n, q, r, v and w mean something else on a terminal."""
FEWEST_ROWS = 2
DIFF_ROWS = 12
NAME_ROWS = 4
GIVEN_ROWS = 10
SEPARATOR = " · "
ROW_MARKS = 4  # columns that say that a command goes on


class Detail(NamedTuple):
    """How many rows each part gets where a person first looks; what is left out is one key away."""

    source: int = SOURCE_ROWS
    news: int = DIFF_ROWS
    given: int = GIVEN_ROWS
    has_walls: bool = True
    """The sentences about walls and needs, not only their marks."""
    is_spaced: bool = True
    has_digest: bool = True
    terse: int = 0
    """From 1 on each risk and name has one row; with 2, where it comes from and why it is asked are behind `w`."""


# From the richest: the first that fits a screen is shown. The last has what a person must know and no more.
DETAILS = (
    Detail(),
    *(Detail(source=rows) for rows in (15, 10, 5)),
    *(Detail(source=rows, has_walls=False) for rows in (20, 15, 10, 5)),
    *(Detail(rows, rows, 2, has_walls=False, is_spaced=False) for rows in range(12, 3, -1)),
    *(Detail(rows, rows, 2, has_walls=False, is_spaced=False, has_digest=False) for rows in (4, 3)),
    *(Detail(rows, rows, 2, False, False, False, terse) for terse in (1, 2) for rows in (4, 3, 2, 1)),
)


def prompt_text(
    request: OptionRequest,
    width: int,
    *,
    color: bool = False,
    source_rows: int = SOURCE_ROWS,
    rows: int | None = None,
    ticked: Collection[str] = (),
) -> str:
    """The whole question, from what would run to how it can be answered; nothing is preselected.

    With `rows`, as much of it as fits so many: first what is known from elsewhere goes, never the command, the marks,
    the heaviest risks or the answers.
    """
    layout = Layout(width, color)
    prompt = Prompt.from_context(request.context)
    ticks, options = answer_lines(request, width, ticked, color=color)
    text = ""
    for detail in DETAILS if rows is not None else (Detail(source=source_rows),):
        parts = [*_question_parts(request, prompt, layout, detail)]
        text = _joined([*parts, ticks, options] if detail.is_spaced else [[*chain(*parts), *ticks], options])
        if rows is None or text.count("\n") <= rows:
            break
    return text


def answer_lines(
    request: OptionRequest, width: int, ticked: Collection[str] = (), *, color: bool = False
) -> tuple[list[str], list[str]]:
    """What a yes may open too, each with its key and whether it is ticked; then the options with theirs."""
    layout = Layout(width, color)
    ticks: list[str] = []
    for key, tick in zip(tick_keys(request), request.grants, strict=False):
        label = f"{tick.label} ({tick.warning})" if tick.warning else tick.label
        mark = "[x]" if tick.id in ticked else "[ ]"
        style = YELLOW if tick.warning else GREEN if tick.id in ticked else ""
        heading = "Also open" if request.context.get("prompt") else "Tick each"
        ticks += layout.quoted("" if ticks else heading, [label], style=style, start=f"{mark} {key}  ")
    return ticks, _option_lines(request.options, layout, scopes_of(request) if request.context.get("prompt") else {})


def tick_keys(request: OptionRequest) -> str:
    """One letter for each of its ticks, as far as there are letters that mean nothing else."""
    return TICK_KEYS[: len(request.grants)]


def question_text(request: OptionRequest, width: int, *, source_rows: int) -> str:
    """The question without its options and without keys for more, for who answers elsewhere."""
    layout = Layout(width, has_keys=False)
    detail = Detail(source=source_rows, news=max(DIFF_ROWS, source_rows))
    return _joined(_question_parts(request, Prompt.from_context(request.context), layout, detail))


def whole_text(prompt: Prompt, width: int) -> str:
    """The question with nothing cut and no keys named, for who reads it in one piece."""
    return _joined(_script_parts(prompt, Layout(width, has_keys=False), None))


def source_text(
    prompt: Prompt,
    width: int,
    files: Iterable[tuple[str, str]] = (),
    *,
    ticks: Sequence[Tick] = (),
    color: bool = False,
) -> str:
    """Everything that would run, in full: for each script its arguments, its input and its source.

    `files` are the other files of the skill with their texts: a yes for the session is for them too.
    """
    layout = Layout(width, color)
    parts = [all_risk_lines(prompt, layout, ticks)]
    for number, command in enumerate(prompt.commands, 1):
        suffix = _suffix_for(number, prompt)
        parts += [
            layout.quoted(f"Script{suffix}", [command.script]),
            _given_lines(command, layout, suffix, limit=None),
            _source_lines(command, prompt, layout, suffix, limit=None),
        ]
    scripts = {command.script for command in prompt.commands}
    for path, text in files:
        if path not in scripts:
            file = PromptCommand(path, (), "", text)
            parts += [[*layout.quoted("File", [path]), *_source_lines(file, prompt, layout, "", limit=None)]]
    return _joined(parts)


def walls_text(prompt: Prompt, width: int, *, color: bool = False) -> str:
    """What the marks stand for, in sentences; what it needs, whence it comes, and what an approval is for."""
    layout = Layout(width, color)
    walls = layout.quoted("Walls", prompt.walls) or layout.said("Walls", "none")
    asked = [*layout.quoted("From", [prompt.origin]), *layout.quoted("Why asked", prompt.reasons)]
    return _joined([walls, need_lines(prompt, layout), asked, layout.quoted("Digest", [prompt.digest])])


def diff_text(prompt: Prompt, width: int, *, color: bool = False) -> str:
    """Every file that differs from what was approved last, with its diff."""
    layout = Layout(width, color)
    return _joined(whole_changes(prompt, layout))


def decision_text(request: OptionRequest, option: Option, width: int) -> str:
    """One line that tells later readers what was decided."""
    prompt = Prompt.from_context(request.context)
    if prompt is None:
        return cut(harmless(f"{option.label}: {request.title}"), width)
    scripts = ", ".join(command.script for command in prompt.commands)
    return cut(harmless(f"{decision_words(option)}: {scripts} of {prompt.skill}"), width)


def _joined(parts: Iterable[list[str]]) -> str:
    """A blank line between parts; empty parts leave none."""
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _question_parts(
    request: OptionRequest, prompt: Prompt | None, layout: Layout, detail: Detail
) -> Iterator[list[str]]:
    if prompt is not None:
        yield from _script_parts(prompt, layout, detail, request.grants)
        return
    yield [layout.painted("A question for you", BOLD)]
    yield layout.quoted("Question", [request.title])
    yield layout.quoted("Message", request.message.split("\n")) if request.message else []


def _script_parts(
    prompt: Prompt, layout: Layout, detail: Detail | None, ticks: Sequence[Tick] = ()
) -> Iterator[list[str]]:
    """In the order in which a person needs them; without a detail, all of each."""
    many = len(prompt.commands)
    given_rows = None if detail is None else _share(detail.given, many)
    is_shortest = detail is not None and detail.terse == MOST_TERSE
    yield [layout.painted("May this script run?" if many == 1 else f"May these {many} scripts run?", BOLD)]
    terse = detail.terse if detail else 0
    yield _who_lines(prompt, layout, terse)
    yield risk_lines(prompt, layout, ticks, terse) if detail else all_risk_lines(prompt, layout)
    yield (
        list(chain(*whole_changes(prompt, layout)))
        if detail is None
        else change_lines(prompt, layout, detail.news, only_added=not detail.is_spaced, on_one_row=terse > 0)
    )
    yield [
        line
        for number, command in enumerate(prompt.commands, 1)
        for line in (
            _counted_lines(command, layout, _suffix_for(number, prompt))
            if is_shortest
            else _given_lines(command, layout, _suffix_for(number, prompt), limit=given_rows, is_told=True)
        )
    ]
    if detail is None or detail.has_walls:
        yield layout.quoted("Walls", prompt.walls) or layout.said("Walls", "none")
        yield need_lines(prompt, layout)
    if detail is None or detail.has_walls or not prompt.changes:
        for number, command in enumerate(prompt.commands, 1):
            limit = None if detail is None else _share(detail.source, many)
            yield _source_lines(command, prompt, layout, _suffix_for(number, prompt), limit=limit)
    if detail is None or detail.has_digest:
        yield layout.quoted("Digest", [prompt.digest])


def need_lines(prompt: Prompt, layout: Layout) -> list[str]:
    """What it uses beyond its folder: first what it does not have, each with what would give it; then what it has."""
    lines: list[str] = []
    for need in sorted(prompt.needs, key=lambda need: need.is_met):
        told = f"{need.kind.replace('_', ' ')} {need.name} ({need.source}, {need.where})"
        state = "has   " if need.is_met else "lacks "
        remedy = f": {need.remedy}" if need.remedy and not need.is_met else ""
        lines += layout.quoted("" if lines else "Needs", [f"{told}{remedy}"], start=state, limit=NAME_ROWS)
    if prompt.had:
        had = f"before it changed: {', '.join(prompt.had)}"
        lines += layout.quoted("" if lines else "Needs", [had], start="had   ", limit=NAME_ROWS)
    return lines


def _share(rows: int, many: int) -> int:
    """Of the rows there are; a question about many scripts stays one that can be read."""
    return max(rows // many, min(rows, FEWEST_ROWS))


def _who_lines(prompt: Prompt, layout: Layout, terse: int) -> list[str]:
    """The literal command first; then whose it is, why it is asked, and what it could reach."""
    lines = [
        line
        for number, command in enumerate(prompt.commands, 1)
        for line in _command_lines(
            command, layout, f"Runs{_suffix_for(number, prompt)}", NAME_ROWS - (terse == MOST_TERSE)
        )
    ]
    told = [("Skill", prompt.skill), ("From", prompt.origin), ("Signed by", prompt.signer)]
    if terse:
        lines += [row for label, text in told[::terse] if text for row in layout.row(label, text)]
        lines += layout.row("Why asked", " ".join(prompt.reasons)) if prompt.reasons and terse == 1 else []
    else:
        lines += [row for label, text in told if text for row in layout.quoted(label, [text], limit=NAME_ROWS)]
        lines += layout.quoted("Why asked", prompt.reasons)
    return [*lines, *layout.quoted("Reach", [SEPARATOR.join(mark.words for mark in marks_of(prompt))], limit=NAME_ROWS)]


def _command_lines(command: PromptCommand, layout: Layout, label: str, limit: int = NAME_ROWS) -> list[str]:
    """Broken between words alone, as a shell goes on behind a backslash; what has no room is counted."""
    words = [harmless(word) for word in command_words(command)]
    rows, kept = [""], 0
    for word in words:
        more = f"{rows[-1]} {word}".strip() if rows[-1] or len(rows) == 1 else f"  {word}"
        if width_of(more) > layout.room - ROW_MARKS and rows[-1]:
            if len(rows) == limit:
                break
            rows[-1] += " \\"
            rows.append(f"  {word}")
        else:
            rows[-1] = more
        kept += 1
    lines = layout.quoted(label, rows, at_words=False, limit=limit, style=BOLD)
    left = len(words) - kept
    return [*lines, *(layout.said("", f"{plural(left, 'more word')}{layout.more('v')}") if left else [])]


def _given_lines(
    command: PromptCommand, layout: Layout, suffix: str, *, limit: int | None, is_told: bool = False
) -> list[str]:
    """What the caller gives the script; arguments that are told above, all of them, are not told again."""
    is_plain = all(width_of(harmless(word)) <= layout.room - ROW_MARKS for word in command_words(command))
    told = is_told and is_plain and len(_command_lines(command, layout, "")) < NAME_ROWS
    lines = [] if told else _argument_lines(command.argv, layout, f"Arguments{suffix}", limit=limit)
    given = command.stdin.split("\n") if command.stdin else []
    return [*lines, *layout.quoted(f"Input{suffix}", given, at_words=False, limit=limit)]


def _counted_lines(command: PromptCommand, layout: Layout, suffix: str) -> list[str]:
    """Only how much it is given, where there is no room for more; its words stand in the command as far as they fit."""
    given = plural(len(command.stdin), "character") if command.stdin else ""
    return layout.said(f"Input{suffix}", f"{given}{layout.more('v')}") if given else []


def _argument_lines(argv: Sequence[str], layout: Layout, label: str, *, limit: int | None) -> list[str]:
    """On one row where they fit; else each on rows of its own, numbered, so that a row's end is not a word's end."""
    if not argv:
        return layout.said(label, "none")
    words = [as_word(word) for word in argv]
    if width_of(harmless(" ".join(words))) <= layout.room:
        return layout.quoted(label, [" ".join(words)])
    column = len(str(len(words)))
    lines: list[str] = []
    for number, word in enumerate(words, 1):
        if limit is not None and len(lines) >= limit:
            left = plural(len(words) - number + 1, "more argument")
            return [*lines, *layout.said("", f"{left}{layout.more('v')}")]
        start = f"{number:>{column}}  "
        lines += layout.quoted("" if lines else label, [word], at_words=False, start=start, limit=limit)
    return lines


def _source_lines(
    command: PromptCommand, prompt: Prompt, layout: Layout, suffix: str, *, limit: int | None
) -> list[str]:
    """Numbered lines, those that a risk flag names marked; `limit` counts rows on the terminal."""
    lines = lines_of(command.source.replace("\r\n", "\n"))
    flagged = {risk.line for risk in prompt.risks if risk.path == command.script}
    column = len(str(len(lines) if limit is None else min(len(lines), limit)))
    rows: list[str] = []
    for number, line in enumerate(islice(lines, limit), 1):
        mark, style = ("!", YELLOW) if number in flagged else (" ", "")
        start = f"{mark}{number:>{column}}  "
        rows += layout.quoted("", [line], style=style, at_words=False, start=start, limit=limit)
    is_cut = limit is not None and (len(rows) > limit or len(lines) > limit)
    counted = plural(len(lines), "line")
    heading = f"the beginning of {counted}{layout.more('v')}" if is_cut else counted
    return [*layout.said(f"Source{suffix}", heading if lines else "empty"), *islice(rows, limit)]


def _option_lines(options: tuple[Option, ...], layout: Layout, scopes: dict[str, str]) -> list[str]:
    """A digit for each; what a grant covers stands beside it, or below where there is no room."""
    labels = [cut(harmless(option.label), layout.width - 6) for option in options]
    column = max(map(width_of, labels), default=0)
    lines = []
    for number, (option, label) in enumerate(zip(options, labels, strict=True), 1):
        scope = scopes.get(option.id, "")
        fits = scope and 5 + column + 2 + len(scope) <= layout.width
        beside = f"{' ' * (column - width_of(label))}  {layout.painted(scope, DIM)}" if fits else ""
        lines.append(f"  {layout.painted(str(number), BOLD)}  {label}{beside}")
        below = wrap(scope, layout.width - 6) if scope and not fits else ()
        lines += [f"     {layout.painted(piece, DIM)}" for piece in below]
    return lines


def _suffix_for(number: int, prompt: Prompt) -> str:
    return "" if len(prompt.commands) == 1 else f" {number}"
