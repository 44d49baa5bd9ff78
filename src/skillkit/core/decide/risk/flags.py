"""A skill's files -> the flags a person is shown before a script runs. They inform; nothing decides by them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from skillkit.core.decide.risk.encoded import encoded_findings
from skillkit.core.decide.risk.files import SkillFile, files_to_read, link_targets
from skillkit.core.decide.risk.findings import (
    Counted,
    Finding,
    Seen,
    Snippet,
    flags_of_file,
    flags_of_skill,
    numbered,
    shown,
)
from skillkit.core.decide.risk.hidden import hidden_findings
from skillkit.core.decide.risk.markdown import markdown_findings
from skillkit.core.decide.risk.patterns import LANGUAGES, pattern_seen
from skillkit.core.decide.risk.python import UNREADABLE, python_seen
from skillkit.core.decide.risk.shell import shell_seen
from skillkit.core.questions import RiskFlag
from skillkit.core.runs import Manifest

__all__ = ["risk_flags"]

PARSED_BYTES = 128_000  # of one file, where reading takes more than a look; some microseconds for each
PARSED_IN_ALL = 384_000
SNIPPETS = 200  # in one file
DEPTH = 3
AT_INSTALL = re.compile(r"\"((?:pre|post)?install|prepare)\"\s{0,9}:\s{0,9}\"([^\"\n]{1,200})")


def risk_flags(folder: Path, manifest: Manifest, scripts: Sequence[str]) -> tuple[RiskFlag, ...]:
    """In the order of reading: the scripts that would run, then by path and line; never raises for what it reads."""
    by_path: dict[str, list[Counted]] = {}
    left = PARSED_IN_ALL
    reading = files_to_read(folder, manifest, scripts)
    for file in reading.files:
        by_path[file.path] = flags_of_file(file.path, _findings(file, min(left, PARSED_BYTES)))
        left -= min(left, len(file.text)) if file.language in ("python", "shell") else 0
    for path, target in link_targets(manifest):
        by_path[path] = flags_of_file(
            path, [Finding("outside_write", f"Leads out of the skill, to {shown(target)}.", 0)]
        )
    first = [by_path.pop(script) for script in scripts if script in by_path]
    unread = [Finding("obfuscation", f"{reading.left_out:,} more files were not read: there are too many.", 0)]
    last = flags_of_file("", unread if reading.left_out else [])
    # What says that something was not read must not be crowded out by what was.
    return flags_of_skill([last, *first, *(by_path[path] for path in sorted(by_path))])


def _findings(file: SkillFile, limit: int) -> Iterator[Finding]:
    if file.binary:
        yield Finding("obfuscation", f"Is {file.binary}, which cannot be read here.", 0)
        return
    if file.size and not file.text:
        yield Finding("obfuscation", "Is no text, so it cannot be read here.", 0)
        return
    is_code = file.language not in ("markdown", "package", "")
    if file.is_cut and file.language:
        yield _cut(file, len(file.text))
    yield from hidden_findings(file.text, is_code=is_code)
    if file.language == "markdown":
        yield from markdown_findings(file.text)
    elif file.language == "package":
        for number, match in numbered(AT_INSTALL, file.text):
            yield Finding("process", f"Runs a command when npm installs it: {shown(match[2])}.", number)
    elif is_code:
        yield from encoded_findings(file.text)
        yield from _of_program(file, limit)


def _of_program(file: SkillFile, limit: int) -> Iterator[Finding]:
    text, language = file.text, file.language
    if language == "python" and len(text) > limit:
        language = "unparsed python"
        yield Finding("obfuscation", "Is too large to be read as Python, so what it does was only guessed.", 0)
    elif language == "shell" and len(text) > limit:
        text = text[:limit]
        yield _cut(file, len(text))
    yield from _of_code(Snippet(language, text, 1))


def _cut(file: SkillFile, read: int) -> Finding:
    return Finding("obfuscation", f"Has {file.size:,} bytes; only the first {read:,} characters were read.", 0)


def _of_code(whole: Snippet) -> Iterator[Finding]:
    """Also of the code inside the code, so far as it is written out."""
    pending = [(whole, 0)]
    for _ in range(SNIPPETS):
        if not pending:
            return
        snippet, depth = pending.pop(0)
        for seen in reader_for(snippet.language)(snippet.text, snippet.line):
            if isinstance(seen, Finding):
                # A command fills in the gaps of a program inside it: that it cannot be parsed says nothing.
                if depth == 0 or seen.message != UNREADABLE:
                    yield seen
            elif depth < DEPTH:
                pending.append((seen, depth + 1))


def reader_for(language: str) -> Callable[[str, int], Iterator[Seen]]:
    if language == "python":
        return python_seen
    if language == "shell":
        return shell_seen
    if language in LANGUAGES:
        return lambda text, line: pattern_seen(text, language, line)
    return lambda _text, _line: iter(())
