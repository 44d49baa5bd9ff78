"""A command's source -> numbered lines, a part at a time, those that a risk flag names marked."""

from __future__ import annotations

from dataclasses import dataclass

from skillkit.core.questions import Prompt, PromptCommand
from skillkit.web.highlight import colored_lines, marked
from skillkit.web.markup import Child, Markup, tag

__all__ = ["LINES_BEFORE", "PART_LINES", "Part", "diff_block", "line_id", "lines_of", "part_of", "source_block"]

PART_LINES = 400
FEWEST_LINES = 20
LINES_BEFORE = 20


@dataclass(frozen=True, slots=True)
class Part:
    """Some lines of a source; `start` counts from 1."""

    start: int
    lines: list[str]
    total: int

    @property
    def end(self) -> int:
        return self.start + len(self.lines) - 1


def lines_of(command: PromptCommand) -> list[str]:
    return command.source.replace("\r\n", "\n").removesuffix("\n").split("\n") if command.source else []


def part_of(command: PromptCommand, start: int, commands: int = 1) -> Part:
    """What fits on one page, shared by all sources that stand there."""
    lines = lines_of(command)
    start = max(1, min(start, len(lines)))
    return Part(start, lines[start - 1 : start - 1 + max(PART_LINES // commands, FEWEST_LINES)], len(lines))


def line_id(number: int, line: int) -> str:
    return f"source-{number}-{line}"


def source_block(prompt: Prompt, number: int, part: Part) -> Markup:
    """`number` of the command, from 1."""
    command = prompt.commands[number - 1]
    flagged = {risk.line for risk in prompt.risks if risk.path == command.script}
    first_line = lines_of(command)[0] if part.total else ""
    rows = [
        tag(
            "span",
            tag("span", "risk: ", class_="unsaid") if at in flagged else None,
            line,
            "\n",
            class_="line flagged" if at in flagged else "line",
            id=line_id(number, at),
            data_line=at,
        )
        for at, line in enumerate(colored_lines(part.lines, command.script, first_line), part.start)
    ]
    return tag("pre", tag("code", rows), class_="code source", tabindex=0, role="region",
               aria_label=f"Source of {command.script}")  # fmt: skip


def diff_block(diff: str, path: str) -> Child:
    """Plus and minus stay where they are: colour only repeats them."""
    if not diff:
        return tag("p", "No text to compare.", class_="quiet")
    lines = diff.removesuffix("\n").split("\n")
    kinds = {"+": "line added", "-": "line removed", "@": "line place"}
    rows = [tag("span", marked(line), "\n", class_=kinds.get(line[:1], "line")) for line in lines]
    return tag("pre", tag("code", rows), class_="code diff", tabindex=0, role="region",
               aria_label=f"Changes in {path}")  # fmt: skip
