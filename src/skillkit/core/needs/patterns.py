"""Text of a language that is not parsed here -> what patterns alone tell of its needs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from skillkit.core.needs.found import Facts
from skillkit.core.needs.texts import note_hosts, note_place

__all__ = ["note_patterns", "numbered"]

COMMENT = {"powershell": "#", "python": "#", "ruby": "#", "perl": "#", "batch": "REM"}
VARIABLES = {
    "ruby": re.compile(r"\bENV(?:\.fetch\(|\[)[ ]{0,4}['\"]([A-Za-z_]\w{0,99})"),
    "perl": re.compile(r"\$ENV\{['\"]?([A-Za-z_]\w{0,99})"),
    "powershell": re.compile(r"\$env:([A-Za-z_]\w{0,99})", re.IGNORECASE),
    "batch": re.compile(r"%([A-Za-z_]\w{0,99})%"),
    "python": re.compile(r"\b(?:environ(?:\.get)?|getenv)[ ]{0,4}[\[(][ ]{0,4}['\"]([A-Za-z_]\w{0,99})"),
}
IMPORT = re.compile(r"[ \t]*(?:import|from)[ \t]{1,9}([A-Za-z_][\w.]{0,200})")
TALK = re.compile(
    r"\b(?:Net::HTTP|Faraday|HTTParty|open-uri|LWP::|HTTP::Tiny|Invoke-(?:WebRequest|RestMethod)|\bcurl\b|\bwget\b"
    r"|urllib\.request|requests\.(?:get|post|put)|httpx\.)"
)
HOME = re.compile(r"(?:~|\$HOME|\$env:USERPROFILE|#\{Dir\.home\}|\$ENV\{HOME\})[/\\][\w./\\@+-]{1,200}")
LONGEST_LINE = 10_000


def note_patterns(text: str, language: str, line: int = 1) -> Facts:
    """Line by line; what stands in a comment does not count."""
    facts = Facts()
    variable, comment = VARIABLES.get(language), COMMENT.get(language, "#")
    for number, whole in numbered(text, line):
        written = whole[:LONGEST_LINE]
        if written.lstrip().startswith(comment):
            continue
        for match in variable.finditer(written) if variable else ():
            facts.add_variable(match[1], number)
        note_hosts(facts, written, number)
        for match in HOME.finditer(written):
            note_place(facts, re.sub(r"^[^/\\]+", "~", match[0]), number)
        if TALK.search(written):
            facts.note_talk(number)
        if language == "python" and (found := IMPORT.match(written)):
            facts.imports.setdefault(found[1], number)
    return facts


def numbered(text: str, line: int = 1) -> Iterator[tuple[int, str]]:
    """Each line with its number."""
    return enumerate(text.split("\n"), line)
