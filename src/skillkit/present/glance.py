"""A request -> what a person must know within seconds, in words that every channel shares.

Theory of operation. The terminal, the page and the forms of hosts show one question in different shapes. What they say
is here, once: the literal command word by word, the marks of what it could reach, the heaviest risks, and one sentence
about what is new. No two sentences of a question can contradict each other, because each of these has one source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from skillkit.core.values.questions import (
    SAME_AGAIN,
    SINGLE_USE,
    Option,
    OptionRequest,
    Prompt,
    PromptCommand,
    ReachMark,
    RiskFlag,
    Tick,
)
from skillkit.core.values.text import plural, spell_out, visible

__all__ = [
    "NO_RISKS",
    "Glance",
    "as_word",
    "command_text",
    "command_words",
    "decision_words",
    "first_lines",
    "glance_of",
    "is_plain_word",
    "marks_of",
    "news_of",
    "place_of",
    "scopes_of",
    "stopped_shortly",
    "stopped_words",
]

TOP_RISKS = 3
# Beside spaces, what a reader would take for a quote, an end or a shell's own word.
NOT_PLAIN = frozenset(" \"'\\|&;<>()$`")
NO_RISKS = "none found, which proves nothing"
SCOPES = {
    "yes_once": "this time only",
    "yes_in_session": "this skill, until it changes",
    "no": "nothing runs",
}
DECISIONS = {"yes_once": "Approved once", "yes_in_session": "Approved in this session", "no": "Not approved"}
NOT_COMPARED = {
    "": "all of it: never approved before",
    "once": "all of it: the last yes was for one run, and nothing is kept of it",
    "lasting": "unknown: the copy that was approved is gone, so all of it is to be read",
}
BLOCKED = "blocked by the walls"
# Kinds of ticks that would open what the walls stop.
OPENED_BY = {"network": ("host:",), "credentials": ("secret:", "variable:"), "outside_write": ("write:",)}


class Glance(NamedTuple):
    """What stands first; everything else is one key away."""

    commands: tuple[str, ...]
    """Each as it would be typed, every argument visibly one word."""
    marks: tuple[ReachMark, ...]
    risks: tuple[tuple[RiskFlag, str], ...]
    """The heaviest, each with whether the walls stop it, in words."""
    more_risks: int
    news: str
    """What is new since the last approval; ours alone, without a skill's words."""


def glance_of(prompt: Prompt, ticks: Sequence[Tick] = ()) -> Glance:
    """`ticks` are what a yes may open too."""
    top = _top_risks(prompt)
    return Glance(
        commands=tuple(map(command_text, prompt.commands)),
        marks=marks_of(prompt),
        risks=tuple((risk, stopped_words(risk, ticks)) for risk in top),
        more_risks=len(prompt.risks) - len(top),
        news=news_of(prompt),
    )


def command_words(command: PromptCommand) -> tuple[str, ...]:
    """Interpreter, script and arguments, each visibly one word."""
    return tuple(map(as_word, (*([command.interpreter] if command.interpreter else []), command.script, *command.argv)))


def command_text(command: PromptCommand) -> str:
    """On one line; what is in round brackets is ours: as a word of the caller it would stand in quotes."""
    given = f" (input: {plural(len(command.stdin), 'character')})" if command.stdin else ""
    return " ".join(command_words(command)) + given


def marks_of(prompt: Prompt) -> tuple[ReachMark, ...]:
    """With that of its packages, which are known from its needs."""
    marks, home = prompt.marks, [mark for mark in prompt.marks if mark.name == "home"]
    if not marks:
        return ()
    packages = [need for need in prompt.needs if need.kind == "package"]
    missing = sum(not need.is_met for need in packages)
    words = plural(len(packages), "package") if packages else "no packages"
    told = f"{words}, {missing} missing" if missing else words
    mark = ReachMark("packages", told, "open" if packages else "closed")
    return (*(each for each in marks if each not in home), mark, *home)


def _top_risks(prompt: Prompt) -> tuple[RiskFlag, ...]:
    """The heaviest of each kind, then the heaviest; of each line one: its flags are one thing to look at."""
    heaviest = prompt.risks_by_weight
    first = list({risk.kind: risk for risk in reversed(heaviest)}.values())[::-1]
    top: dict[tuple[str, int, str], RiskFlag] = {}
    for risk in (*sorted(first, key=heaviest.index), *heaviest):
        place = (risk.path, risk.line, "" if risk.line > 0 else risk.message)
        if len(top) < TOP_RISKS:
            top.setdefault(place, risk)
    return tuple(sorted(top.values(), key=heaviest.index))


def stopped_words(risk: RiskFlag, ticks: Sequence[Tick] = ()) -> str:
    """Whether the walls stop it; what a tick would open is not stopped for good."""
    if not risk.is_blocked:
        return ""
    # Keys come by their names; the places where secrets are kept are opened by no tick.
    is_place = risk.kind == "credentials" and "environment" not in risk.message
    kinds = () if is_place else OPENED_BY.get(risk.kind, ())
    is_offered = any(tick.id.startswith(kinds) or tick.id == SAME_AGAIN for tick in ticks) if kinds else False
    return f"{BLOCKED}, unless you tick more" if is_offered else BLOCKED


def stopped_shortly(stopped: str) -> str:
    """The same words where there is room for few."""
    return stopped.replace(f"{BLOCKED}, unless you tick more", "blocked, unless ticked")


def place_of(risk: RiskFlag, prompt: Prompt) -> str:
    """Where it stands: by its line alone where one script would run and it is in that."""
    is_own = len(prompt.commands) == 1 and risk.path == prompt.commands[0].script
    if risk.line <= 0:
        return risk.path
    return f"line {risk.line}" if is_own else f"{risk.path}:{risk.line}"


def news_of(prompt: Prompt) -> str:
    """What is new; the counts are of all that differs, shown or not."""
    if prompt.changes is None:
        return NOT_COMPARED.get(prompt.last_yes, NOT_COMPARED[""])
    if not prompt.changes:
        return "nothing since the last approval"
    counts = prompt.change_counts
    counted = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
    added = sum(change.added for change in prompt.changes)
    return f"{plural(added, 'added line')} in {plural(sum(counts.values()), 'file')} ({counted})"


def first_lines(prompt: Prompt, limit: int) -> tuple[str, tuple[str, ...]]:
    """A file and its first lines that are new: of what changed those that were added, else the script's own."""
    for change in prompt.changes or ():
        if added := [line for line in change.diff.split("\n") if line.startswith("+")]:
            return change.path, tuple(added[:limit])
    lines = prompt.commands[0].source.replace("\r\n", "\n").removesuffix("\n").split("\n")
    return prompt.commands[0].script, tuple(lines[:limit]) if prompt.changes is None else ()


def scopes_of(request: OptionRequest) -> dict[str, str]:
    """What each answer covers; where every run is asked about, any yes is for this one."""
    for_one_run = request.context.get(SINGLE_USE, ())
    return {name: SCOPES["yes_once"] if name in for_one_run else scope for name, scope in SCOPES.items()}


def decision_words(option: Option) -> str:
    return DECISIONS.get(option.id, option.label)


def is_plain_word(argument: str) -> bool:
    return bool(argument) and argument.isascii() and argument.isprintable() and not set(argument) & NOT_PLAIN


def as_word(argument: str) -> str:
    """As typed where it is plain; else in quotes, so that it can be seen where it begins, ends and breaks.

    No two words look the same: what hides, breaks a line or only looks like a space is written out.
    """
    if is_plain_word(argument):
        return argument
    inside = argument.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    shown = "".join(spell_out(char) if char.isspace() and char != " " else char for char in visible(inside))
    return f'"{shown}"'
