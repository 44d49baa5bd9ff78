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
from skillkit.core.decide.risk.python import python_seen
from skillkit.core.decide.risk.shell import shell_seen
from skillkit.core.questions import RiskFlag
from skillkit.core.runs import Manifest

__all__ = ["risk_flags"]

PARSED_BYTES = 128_000  # of Python in one file; parsing takes a microsecond for each
PARSED_IN_ALL = 512_000
SNIPPETS = 200  # in one file
DEPTH = 3
AT_INSTALL = re.compile(r"\"((?:pre|post)?install|prepare)\"\s{0,9}:\s{0,9}\"([^\"\n]{1,200})")


def risk_flags(folder: Path, manifest: Manifest, scripts: Sequence[str]) -> tuple[RiskFlag, ...]:
    """In the order of reading: the scripts that would run, then by path and line; never raises for what it reads."""
    files: list[list[Counted]] = []
    parsed = 0
    for file in files_to_read(folder, manifest, scripts):
        if isinstance(file, int):
            message = f"{file:,} more files of the skill were not read: there are too many."
            files.append([Counted(RiskFlag("obfuscation", message, "", 0))])
            continue
        may_parse = len(file.text) <= PARSED_BYTES and parsed < PARSED_IN_ALL
        parsed += len(file.text) if file.language == "python" else 0
        files.append(flags_of_file(file.path, _findings(file, may_parse=may_parse)))
    for path, target in link_targets(manifest):
        message = f"Is a link that leads out of the skill, to {shown(target)}."
        files.append([Counted(RiskFlag("outside_write", message, path, 0))])
    return flags_of_skill(files)


def _findings(file: SkillFile, *, may_parse: bool) -> Iterator[Finding]:
    if file.binary:
        yield Finding("obfuscation", f"Is {file.binary}, which cannot be read here.", 0)
        return
    if file.size and not file.text:
        yield Finding("obfuscation", "Is no text, so it cannot be read here.", 0)
        return
    is_code = file.language not in ("markdown", "package", "")
    yield from hidden_findings(file.text, is_code=is_code)
    if file.language == "markdown":
        yield from markdown_findings(file.text)
    elif file.language == "package":
        for number, match in numbered(AT_INSTALL, file.text):
            yield Finding("process", f"Runs a command when npm installs it: {shown(match[2])}.", number)
    elif is_code:
        if file.is_cut:
            message = f"Has {file.size:,} bytes; only the first {len(file.text):,} characters were read."
            yield Finding("obfuscation", message, 0)
        yield from encoded_findings(file.text)
        language = file.language if may_parse or file.language != "python" else "unparsed python"
        yield from _of_code(Snippet(language, file.text, 1))


def _of_code(whole: Snippet) -> Iterator[Finding]:
    """Also of the code inside the code, so far as it is written out."""
    pending = [(whole, 0)]
    for _ in range(SNIPPETS):
        if not pending:
            return
        snippet, depth = pending.pop(0)
        for seen in reader_for(snippet.language)(snippet.text, snippet.line):
            if isinstance(seen, Finding):
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
