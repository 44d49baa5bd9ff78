"""A request -> the text that a person reads before they answer; pure, and safe to print."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice

from skillkit.core.ask.diffs import Room, shorten
from skillkit.core.values.questions import SINGLE_USE, FileChange, Option, OptionRequest, Prompt, PromptCommand
from skillkit.core.values.text import on_one_line, plural, spell_out, visible
from skillkit.present.terminal import BOLD, CYAN, DIM, GREEN, RED, YELLOW, Layout, behind_bar, cut, harmless, width_of

__all__ = [
    "CHANGE_KINDS",
    "NARROWEST",
    "SOURCE_ROWS",
    "TICK_KEYS",
    "answer_lines",
    "as_word",
    "change_text",
    "decision_text",
    "diff_text",
    "has_added",
    "prompt_text",
    "question_text",
    "scopes_of",
    "source_text",
    "tick_keys",
    "whole_text",
]

NARROWEST = 24
"""Columns; on less, a person could not read what they agree to."""
SOURCE_ROWS = 20
TICK_KEYS = "abcefghijklmnopstuwxyz"
"""Letters that tick; d, q, r and v mean something else on a terminal."""
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
    request: OptionRequest,
    width: int,
    *,
    color: bool = False,
    source_rows: int = SOURCE_ROWS,
    in_short: bool = False,
    ticked: Collection[str] = (),
) -> str:
    """The whole question, from who asks to how it can be answered; nothing is preselected.

    `in_short` repeats what it is about above the answers, where the beginning is out of sight.
    """
    layout = Layout(width, color)
    prompt = Prompt.from_context(request.context)
    short = _short_lines(prompt, layout) if prompt and in_short else []
    ticks, answers = answer_lines(request, width, ticked, color=color)
    return _joined([*_question_parts(request, prompt, layout, source_rows), short, ticks, answers])


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
        ticks += layout.quoted("" if ticks else "Also open", [label], style=style, start=f"{mark} {key}  ")
    return ticks, _option_lines(request.options, layout, scopes_of(request) if request.context.get("prompt") else {})


def tick_keys(request: OptionRequest) -> str:
    """One letter for each of its ticks, as far as there are letters that mean nothing else."""
    return TICK_KEYS[: len(request.grants)]


def question_text(request: OptionRequest, width: int, *, source_rows: int) -> str:
    """The question without its options and without keys for more, for who answers elsewhere."""
    layout = Layout(width, has_keys=False)
    return _joined(_question_parts(request, Prompt.from_context(request.context), layout, source_rows))


def whole_text(prompt: Prompt, width: int) -> str:
    """The question with nothing cut and no keys named, for who reads it in one piece."""
    return _joined(_script_parts(prompt, Layout(width), None))


def source_text(prompt: Prompt, width: int, *, color: bool = False) -> str:
    """Everything that would run, in full: for each script its arguments, its input and its source."""
    layout = Layout(width, color)
    parts = [_risk_lines(prompt, layout, limit=None)]
    for number, command in enumerate(prompt.commands, 1):
        suffix = _suffix_for(number, prompt)
        parts += [
            layout.quoted(f"Script{suffix}", [command.script]),
            _given_lines(command, layout, suffix, limit=None),
            _source_lines(command, prompt, layout, suffix, limit=None),
        ]
    return _joined(parts)


def diff_text(prompt: Prompt, width: int, *, color: bool = False) -> str:
    """Every file that differs from what was approved last, with its diff."""
    layout = Layout(width, color)
    return _joined(_whole_changes(prompt, layout))


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


def _joined(parts: Iterable[list[str]]) -> str:
    """A blank line between parts; empty parts leave none."""
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _question_parts(
    request: OptionRequest, prompt: Prompt | None, layout: Layout, source_rows: int
) -> Iterator[list[str]]:
    if prompt is not None:
        yield from _script_parts(prompt, layout, source_rows)
        return
    yield [layout.painted("A question for you", BOLD)]
    yield layout.quoted("Question", [request.title])
    yield layout.quoted("Message", request.message.split("\n")) if request.message else []


def _script_parts(prompt: Prompt, layout: Layout, source_rows: int | None) -> Iterator[list[str]]:
    """In the order in which a person needs them; without a number of rows, all of each."""
    many = len(prompt.commands)
    is_whole = source_rows is None
    given_rows = None if is_whole else _share(GIVEN_ROWS, many)
    yield [layout.painted("May this script run?" if many == 1 else f"May these {many} scripts run?", BOLD)]
    yield _who_lines(prompt, layout)
    yield _risk_lines(prompt, layout, limit=None if is_whole else LISTED) or layout.said(
        "Risks", "none found, which proves nothing"
    )
    yield list(chain(*_whole_changes(prompt, layout))) if is_whole else _change_lines(prompt, layout, source_rows)
    yield [
        line
        for number, command in enumerate(prompt.commands, 1)
        for line in _given_lines(command, layout, _suffix_for(number, prompt), limit=given_rows)
    ]
    yield layout.quoted("Walls", prompt.walls) or layout.said("Walls", "none")
    yield need_lines(prompt, layout)
    for number, command in enumerate(prompt.commands, 1):
        limit = None if source_rows is None else _share(source_rows, many)
        yield _source_lines(command, prompt, layout, _suffix_for(number, prompt), limit=limit)
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
    return max(rows // many, FEWEST_ROWS)


def _who_lines(prompt: Prompt, layout: Layout) -> list[str]:
    lines = layout.quoted("Skill", [prompt.skill], limit=NAME_ROWS)
    for number, command in enumerate(prompt.commands, 1):
        lines += layout.quoted(f"Script{_suffix_for(number, prompt)}", [command.script], limit=NAME_ROWS)
    lines += layout.quoted("From", [prompt.origin], limit=NAME_ROWS)
    if prompt.signer:
        lines += layout.quoted("Signed by", [prompt.signer], limit=NAME_ROWS)
    return [*lines, *layout.quoted("Why asked", prompt.reasons)]


def _risk_lines(prompt: Prompt, layout: Layout, *, limit: int | None) -> list[str]:
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


def _change_lines(prompt: Prompt, layout: Layout, rows: int | None) -> list[str]:
    """What differs from the last approval: what is new in all files, then of the rest as much as there is room for."""
    lines = _change_summary(prompt, layout, hint=layout.more("d"))
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
    for number, (change, short) in enumerate(
        zip(changes, shorten((_lines_of(change.diff) for change in changes), room), strict=True)
    ):
        unseen += short.unseen
        if number < LISTED or has_added(short.text):
            lines += [*_change_heading(change, layout), *_diff_lines(short.text, layout)]
    return [*lines, *_unseen_lines(unseen, layout)]


def _whole_changes(prompt: Prompt, layout: Layout) -> Iterator[list[str]]:
    yield _change_summary(prompt, layout, hint="")
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


def _lines_of(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def has_added(diff: str) -> bool:
    return any(line.startswith("+") for line in diff.split("\n"))


def _change_summary(prompt: Prompt, layout: Layout, *, hint: str) -> list[str]:
    if prompt.changes is None:
        return layout.said("Changed", "never approved before")
    if not prompt.changes:
        return layout.said("Changed", "nothing since the last approval")
    kinds = [change.kind for change in prompt.changes]
    counted = [f"{kinds.count(kind):,} {kind}" for kind in CHANGE_KINDS if kind in kinds]
    counted += [change.path.removeprefix("... ") for change in prompt.changes if change.kind == "more"]
    return layout.said("Changed", f"{', '.join(counted)} since it was approved{hint}")


def _change_heading(change: FileChange, layout: Layout) -> list[str]:
    return layout.quoted("", [f"{change.kind:<7}  {change.path}"], style=CYAN, limit=NAME_ROWS)


def _diff_lines(diff: str, layout: Layout) -> list[str]:
    """Indented below their file."""
    lines: list[str] = []
    for text in _lines_of(diff):
        style = {"+": GREEN, "-": RED, "@": DIM, ".": DIM}.get(text[:1], "")
        lines += layout.quoted("", [text], style=style, at_words=False, start="  ")
    return lines


def _given_lines(command: PromptCommand, layout: Layout, suffix: str, *, limit: int | None) -> list[str]:
    """What the caller gives the script."""
    lines = _argument_lines(command.argv, layout, f"Arguments{suffix}", limit=limit)
    given = command.stdin.split("\n") if command.stdin else []
    return [*lines, *layout.quoted(f"Input{suffix}", given, at_words=False, limit=limit)]


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
    lines = _lines_of(command.source.replace("\r\n", "\n"))
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


def _short_lines(prompt: Prompt, layout: Layout) -> list[str]:
    """Two rows: what would run, and what a reader should look at."""
    scripts = ", ".join(command.script for command in prompt.commands)
    kinds = ", ".join(dict.fromkeys(risk.kind for risk in prompt.risks))
    about = layout.quoted("In short", [cut(f"{scripts} of {prompt.skill}", layout.room)])
    if not kinds:
        return [*about, *layout.said("", "risks: none found, which proves nothing")]
    return [*about, *layout.quoted("", [cut(f"risks: {kinds}", layout.room)], style=YELLOW)]


def _option_lines(options: tuple[Option, ...], layout: Layout, scopes: dict[str, str]) -> list[str]:
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


def _suffix_for(number: int, prompt: Prompt) -> str:
    return "" if len(prompt.commands) == 1 else f" {number}"


def as_word(argument: str) -> str:
    """As typed where it is plain; else in quotes, so that it can be seen where it begins, ends and breaks.

    No two words look the same: what hides, breaks a line or only looks like a space is written out.
    """
    if argument.isascii() and argument.isprintable() and argument and not set(argument) & NOT_PLAIN:
        return argument
    inside = argument.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    shown = "".join(spell_out(char) if char.isspace() and char != " " else char for char in visible(inside))
    return f'"{shown}"'
