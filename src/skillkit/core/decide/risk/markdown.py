"""A skill's instructions -> what they would have an agent run that a person should know of.

Instructions show commands all the time, so only those count that fetch and run, decode and run, or name secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from skillkit.core.decide.risk.findings import Finding, Snippet, numbered, shown
from skillkit.core.decide.risk.sensitive import credential_findings
from skillkit.core.decide.risk.shell import shell_seen

__all__ = ["markdown_findings"]

FENCE = re.compile(r"^[ \t>]{0,12}(`{3,20}|~{3,20})[ \t]*([\w+-]{0,30})", re.MULTILINE)
SHELL_NAMES = ("", "sh", "bash", "shell", "zsh", "console", "terminal")
AT_LOADING = re.compile(r"(?:^|(?<=\s))!`([^`\n]{1,300})`", re.MULTILINE)
INLINE = re.compile(r"(?<!`)`([^`\n]{8,300})`(?!`)")
PROMPT = re.compile(r"^[ \t>]{0,12}\$ ", re.MULTILINE)
DEPTH = 3


def markdown_findings(text: str) -> Iterator[Finding]:
    for number, match in numbered(AT_LOADING, text):
        message = f"Asks the agent to run a command when the skill is read: {shown(match[1])}."
        yield Finding("process", message, number)
    yield from credential_findings(text)
    for line, command in _commands(text):
        yield from _foreign_code(command, line)


def _commands(text: str) -> Iterator[tuple[int, str]]:
    """Shell blocks, and code in a line of text that has a pipe or a substitution."""
    opened: tuple[int, re.Match[str]] | None = None
    for number, fence in numbered(FENCE, text):
        if opened is None:
            opened = (number, fence)
        elif fence[1].startswith(opened[1][1]) and not fence[2]:
            if opened[1][2].lower() in SHELL_NAMES:
                start = text.find("\n", opened[1].end())
                yield opened[0] + 1, PROMPT.sub("", text[start + 1 : fence.start()])
            opened = None
    for number, match in numbered(INLINE, text):
        if "|" in match[1] or "$(" in match[1] or "<(" in match[1]:
            yield number, match[1]


def _foreign_code(command: str, line: int, depth: int = 0) -> Iterator[Finding]:
    for seen in shell_seen(command, line):
        if isinstance(seen, Snippet):
            if depth < DEPTH and seen.language == "shell":
                yield from _foreign_code(seen.text, seen.line, depth + 1)
        elif seen.kind == "obfuscation":
            yield seen
