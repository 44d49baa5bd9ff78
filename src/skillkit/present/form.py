"""A request -> the text of a form, for hosts that show three lines of it cut at their width, its start, or its end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from skillkit.core.values.questions import OptionRequest, Prompt, PromptCommand
from skillkit.core.values.runs import PROGRAM_OWNER
from skillkit.core.values.text import on_one_line, plural, spell_out
from skillkit.present.glance import NO_RISKS, as_word, marks_of
from skillkit.present.request import question_text
from skillkit.present.terminal import harmless, width_of

__all__ = ["form_text", "headline", "summary_lines"]

# A host that renders markdown shows lines that begin so as they are, and follows nothing that a skill wrote in them.
INDENT = "    "
SUMMARY_COLUMNS = 80 - len(INDENT)
NAME_COLUMNS = 20
SCRIPT_COLUMNS = 30
# Where a host takes the first indent away, what would still hide words of the three lines: links, tags and code.
HIDING = re.compile(r"(?<=\])[(\[:]|<(?=[A-Za-z!/?])|`")


def form_text(request: OptionRequest, width: int, *, source_rows: int) -> str:
    """The question without its options: what counts in the first three lines, then all, then what counts again."""
    first, *others = summary_lines(request)
    whole = question_text(request, width, source_rows=source_rows)
    lines = [first, *others, "", *whole.splitlines(), "", *others, first]
    return "".join(f"{INDENT}{line}".rstrip() + "\n" for line in lines)


def summary_lines(request: OptionRequest, columns: int = SUMMARY_COLUMNS) -> list[str]:
    """Three lines for a script, none empty and none wider: what would run, its risks, what it could reach."""
    prompt = Prompt.from_context(request.context)
    if prompt is None:
        return [headline(request, columns)]
    return [headline(request, columns), _risk_line(prompt, columns), _reach_line(prompt, columns)]


def headline(request: OptionRequest, columns: int = SUMMARY_COLUMNS) -> str:
    """Skill, script and arguments on one line, each word visibly one; what has no room is counted."""
    prompt = Prompt.from_context(request.context)
    if prompt is None:
        return _beginning(_inert(harmless(request.title)), columns)
    is_program = prompt.skill == PROGRAM_OWNER
    owner = "a program" if is_program else _shortened(_word(prompt.skill), NAME_COLUMNS)
    if len(prompt.commands) == 1:
        return _fitted(f"Run {owner}:", _command_words(prompt.commands[0]), columns, "word")
    *commands, last = (" ".join(_command_words(command)) for command in prompt.commands)
    start = f"Run {len(prompt.commands)} commands of {owner}:"
    return _fitted(start, [*(f"{each};" for each in commands), last], columns, "command")


def _command_words(command: PromptCommand) -> list[str]:
    """What is in round brackets is ours: as a word of the caller it would stand in quotes."""
    words = [_shortened(_word(command.script), SCRIPT_COLUMNS), *map(_word, command.argv)]
    if command.stdin:
        words.append(f"(input: {plural(len(command.stdin), 'character')})")
    return words if len(words) > 1 else [*words, "(no arguments)"]


def _fitted(line: str, words: Sequence[str], columns: int, counted: str) -> str:
    """As many words as there is room for, the last of them cut; then how many are not there in full."""
    for number, word in enumerate(words):
        left = len(words) - number
        later = f" (+{plural(left - 1, f'more {counted}')})" if left > 1 else ""
        if width_of(f"{line} {word}{later}") > columns:
            rest = f" (+{plural(left, f'more {counted}')})"
            return f"{line} {_beginning(word, columns - width_of(f'{line} {rest}'))}".rstrip() + rest
        line = f"{line} {word}"
    return line


def _word(text: str) -> str:
    return _inert(as_word(text))


def _beginning(text: str, columns: int) -> str:
    """At most so wide; what is missing is marked."""
    if width_of(text) <= columns:
        return text
    kept = ""
    for char in text:
        if width_of(kept + char) >= columns:
            break
        kept += char
    return f"{kept}…" if kept else ""


def _risk_line(prompt: Prompt, columns: int) -> str:
    """Kinds with how often each was found, the heaviest first."""
    counts = Counter(harmless(risk.kind) for risk in prompt.risks_by_weight)
    told = ", ".join(kind if count == 1 else f"{kind} ({count:,})" for kind, count in counts.items())
    return _beginning(_inert(f"Risks: {told or NO_RISKS}"), columns)


def _reach_line(prompt: Prompt, columns: int) -> str:
    """Network and files always; of the rest what is open: hosts indent and wrap a longer line."""
    told_of = [mark for mark in marks_of(prompt) if mark.state != "closed" or mark.name in ("network", "files")]
    marks = "; ".join(mark.words for mark in told_of)
    told = marks or " ".join(prompt.walls) or "no walls: all that you can"
    return _beginning(_inert(f"Reach: {on_one_line(told)}"), columns)


def _shortened(word: str, columns: int) -> str:
    """Its beginning and its end."""
    half = columns // 2
    return word if width_of(word) <= columns else f"{_beginning(word, half)}{word[-half:]}"


def _inert(line: str) -> str:
    return HIDING.sub(lambda found: spell_out(found[0]), line)
