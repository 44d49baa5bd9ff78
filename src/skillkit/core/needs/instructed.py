"""Text of SKILL.md -> what it tells to install and to set: commands in its code, never words of its prose."""

from __future__ import annotations

import re
from collections.abc import Iterator

from skillkit.core.needs.found import Facts
from skillkit.core.needs.installing import note_installation
from skillkit.core.needs.patterns import numbered

__all__ = ["instructed_facts"]

FENCE = re.compile(r"[ \t>]{0,12}(`{3,20}|~{3,20})")
SPAN = re.compile(r"(?<!`)`([^`\n]{3,300})`(?!`)")
WORTH = re.compile(r"\b(?:install|add|export|setx?|i)\b|\$env:")
PARTS = re.compile(r"&&|\|\||[;|]")
EXPORT = re.compile(r"(?:export|set|setx|\$env:)[ \t]{0,4}([A-Za-z_]\w{0,99})[ \t]{0,2}(?:=|[ \t])")
LEADING = frozenset("sudo $ > % env RUN then".split())
LONGEST_LINE = 4_000


def instructed_facts(text: str, line: int = 1) -> Facts:
    """`line` is where the text begins in its file."""
    facts = Facts()
    for number, snippet in _snippets(text, line):
        if WORTH.search(snippet):
            for part in PARTS.split(snippet):
                _note_command(facts, part.strip(), number)
    return facts


def _note_command(facts: Facts, command: str, line: int) -> None:
    words = [word.strip("'\"") for word in command.split()]
    while words and words[0] in LEADING:
        words.pop(0)
    note_installation(facts, words, line)
    if match := EXPORT.match(" ".join(words)):
        facts.add_variable(match[1], line)


def _snippets(text: str, line: int) -> Iterator[tuple[int, str]]:
    """Lines of code blocks, and code inside lines of text."""
    closing = ""
    for number, whole in numbered(text, line):
        written = whole[:LONGEST_LINE]
        fence = FENCE.match(written)
        if fence and (not closing or fence[1].startswith(closing)):
            closing = "" if closing else fence[1]
        elif closing:
            yield number, written
        else:
            yield from ((number, match[1]) for match in SPAN.finditer(written))
