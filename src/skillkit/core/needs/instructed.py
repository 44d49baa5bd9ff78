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
EXPORT = re.compile(r"(?:export|set|setx|\$env:)[ \t]{0,4}([A-Za-z_]\w{0,99})[ \t]{0,2}(?:=|[ \t])(.{0,60})")
BLANK = re.compile(r"[\"']?(?:$|\.\.\.|<|\$|your|xxx|/path/to|\.\.\.|my[-_])|.*(?:your|\.\.\.|<)", re.IGNORECASE)
LEADING = frozenset("sudo $ > % env RUN then".split())
LONGEST_LINE = 4_000


def instructed_facts(text: str, line: int = 1) -> Facts:
    """`line` is where the text begins in its file."""
    facts = Facts()
    started = set[str]()
    for number, snippet in _snippets(text, line):
        for words in map(_words_of, PARTS.split(snippet)):
            started.update(words[:1])
            if WORTH.search(snippet):
                _note_command(facts, words, number)
    for (kind, name), found in list(facts.found.items()):
        # What is installed for all is a program if it is started somewhere, else a library.
        if kind == "program" and (f"npm:{name}" in facts.uses) and name not in started:
            del facts.found[kind, name]
            facts.add_npm_package(name, found.line)
    return facts


def _words_of(command: str) -> list[str]:
    words = [word.strip("'\"") for word in command.split()]
    at = next((at for at, word in enumerate(words) if word not in LEADING), len(words))
    return words[at:]


def _note_command(facts: Facts, words: list[str], line: int) -> None:
    note_installation(facts, words, line)
    if match := EXPORT.match(" ".join(words[:3])):
        # A value that is written out is given by the instructions themselves.
        facts.add_variable(match[1], line, has_default=not BLANK.match(match[2]))


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
