"""A skill's files -> the flags a person is shown before a script runs. They inform; no rule may read them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from skillkit.core.ask.risk.files import SkillFile, files_to_read, is_of_tests, link_targets, near_files
from skillkit.core.ask.risk.python import UNREADABLE, python_seen
from skillkit.core.ask.risk.rules import KINDS, RUNS_AT_INSTALL, WEIGHTS, Finding, Seen, Snippet, clip, number_lines
from skillkit.core.ask.risk.shell import markdown_seen, shell_seen, shown_shell_seen
from skillkit.core.ask.risk.texts import encoded_findings, hidden_findings, pattern_seen
from skillkit.core.values.questions import RiskFlag
from skillkit.core.values.runs import Manifest
from skillkit.core.values.text import shown_path

__all__ = ["risk_flags"]

PER_FILE = 3
"""Flags of one kind in one file: who is shown forty reads none."""
PER_SKILL = 12
TESTS_WEIGHT = 40
"""How much less, of a hundred, counts what stands in a skill's tests."""
PARSED_BYTES = 128_000  # of one file, where reading takes more than a look; some microseconds for each
PARSED_IN_ALL = 384_000
SNIPPETS = 200  # in one file
DEPTH = 3
AT_INSTALL = re.compile(r"\"(?:(?:pre|post)?install|prepare)\"\s{0,9}:\s{0,9}\"([^\"\n]{1,200})")


def risk_flags(
    folder: Path, manifest: Manifest, scripts: Sequence[str], is_blocked: Callable[[str], bool] = lambda _: False
) -> tuple[RiskFlag, ...]:
    """In the order of reading: the scripts that would run, what they bring in, the rest by path and line, tests last.

    Never raises for what it reads.

    `is_blocked` says of a wall that a rule names whether it stands.
    """
    by_path: dict[str, list[_Counted]] = {}
    left = PARSED_IN_ALL
    reading = files_to_read(folder, manifest, scripts)
    for file in reading.files:
        by_path[file.path] = flags_of_file(file.path, findings_in(file, min(left, PARSED_BYTES)), is_blocked)
        left -= min(left, len(file.text)) if file.language in ("python", "shell") else 0
    for path, target in link_targets(manifest):
        by_path[path] = flags_of_file(
            path, [Finding("outside_write", f"Leads out of the skill, to {clip(target)}.", 0)]
        )
    first = [by_path.pop(script) for script in scripts if script in by_path]
    unread = [Finding("unread", f"{reading.left_out:,} more files were not read: there are too many.", 0)]
    last = flags_of_file("", unread if reading.left_out else [])
    # What says that something was not read must not be crowded out by what was; nor what runs by what does not.
    near = near_files(reading.files, scripts)
    rest = sorted(by_path, key=lambda path: (path not in near, is_of_tests(path), path))
    flags = flags_of_skill([last, *first, *(by_path[path] for path in rest)])
    shown = frozenset(map(shown_path, near))
    return tuple(_weighed(flag, is_near=flag.path in shown) for flag in flags)


def _weighed(flag: RiskFlag, *, is_near: bool) -> RiskFlag:
    """Near what runs it counts as it is; in tests that nothing names it counts little."""
    is_apart = not is_near and is_of_tests(flag.path)
    return replace(flag, is_near=is_near, weight=max(1, flag.weight - TESTS_WEIGHT) if is_apart else flag.weight)


def findings_in(file: SkillFile, limit: int) -> Iterator[Finding]:
    """Of one file; of what has to be parsed no more than `limit` characters are."""
    if file.binary:
        yield Finding("unread", f"Is {file.binary}, which cannot be read here.", 0)
        return
    if file.size and not file.text:
        yield Finding("unread", "Is no text, so it cannot be read here.", 0)
        return
    text, language = file.text, file.language
    is_code = language not in ("markdown", "package", "")
    if file.is_cut and language:
        yield _cut(file, len(text))
    yield from hidden_findings(text, is_code=is_code)
    if is_code:
        yield from encoded_findings(text)
    if language == "python" and len(text) > limit:
        language = "unparsed python"
        yield Finding("unread", "Is too large to be read as Python, so what it does was only guessed.", 0)
    elif language == "shell" and len(text) > limit:
        text = text[:limit]
        yield _cut(file, len(text))
    for seen in markdown_seen(text) if language == "markdown" else [Snippet(language, text, 1)]:
        yield from _of_code(seen) if isinstance(seen, Snippet) else [seen]


def _cut(file: SkillFile, read: int) -> Finding:
    return Finding("unread", f"Has {file.size:,} bytes; only the first {read:,} characters were read.", 0)


def _of_code(whole: Snippet) -> Iterator[Finding]:
    """Also of the code inside the code, so far as it is written out."""
    pending = [(whole, 0)]
    for _ in range(SNIPPETS):
        if not pending:
            return
        snippet, depth = pending.pop(0)
        for seen in _reader_for(snippet.language)(snippet.text, snippet.line):
            if isinstance(seen, Finding):
                # A command fills in the gaps of a program inside it: that it cannot be parsed says nothing.
                if depth == 0 or seen.message != UNREADABLE:
                    yield seen
            elif depth < DEPTH:
                pending.append((seen, depth + 1))


def _reader_for(language: str) -> Callable[[str, int], Iterator[Seen]]:
    return READERS.get(language) or (lambda text, line: pattern_seen(text, language, line))


def _package_seen(text: str, line: int) -> Iterator[Seen]:
    for number, match in number_lines(AT_INSTALL, text, line):
        yield RUNS_AT_INSTALL.at(number, what=clip(match[1]))


READERS: dict[str, Callable[[str, int], Iterator[Seen]]] = {
    "python": python_seen,
    "shell": shell_seen,
    "shown shell": shown_shell_seen,
    "package": _package_seen,
}


@dataclass(frozen=True, slots=True)
class _Counted:
    """A flag that is shown, and how many of its kind stand behind it."""

    flag: RiskFlag
    more: int = 0


def flags_of_file(
    path: str, findings: Iterable[Finding], is_blocked: Callable[[str], bool] = lambda _: False
) -> list[_Counted]:
    """By line; of one kind the heaviest different ones, the last of which counts the rest."""
    by_kind: dict[str, list[Finding]] = {}
    for finding in sorted(set(findings), key=lambda each: (each.line, KINDS.index(each.kind), each.message)):
        by_kind.setdefault(finding.kind, []).append(finding)
    counted = []
    for found in by_kind.values():
        distinct = list({each.message: each for each in reversed(found)}.values())[::-1]
        heaviest = sorted(distinct, key=lambda each: -_weight(each))[:PER_FILE]
        flags = [_flag(path, each, is_blocked) for each in distinct if each in heaviest]
        counted += [_Counted(flag) for flag in flags[:-1]]
        counted.append(_Counted(flags[-1], len(found) - len(flags)))
    return sorted(counted, key=lambda each: (each.flag.line, KINDS.index(each.flag.kind), each.flag.message))


def _weight(finding: Finding) -> int:
    return finding.weight or WEIGHTS[finding.kind]


def _flag(path: str, finding: Finding, is_blocked: Callable[[str], bool]) -> RiskFlag:
    message = finding.message.replace("....", "...")  # what was cut ends the sentence itself
    blocked = bool(finding.wall) and is_blocked(finding.wall)
    return RiskFlag(finding.kind, message, shown_path(path), finding.line, _weight(finding), blocked)


def flags_of_skill(files: Iterable[list[_Counted]]) -> tuple[RiskFlag, ...]:
    """In the given order; no kind is crowded out by another, and none is shown more often than a person reads."""
    kept: dict[str, list[_Counted]] = {}
    behind = dict.fromkeys(KINDS, 0)
    order: list[_Counted] = []
    for each in (each for found in files for each in found):
        of_kind = kept.setdefault(each.flag.kind, [])
        if len(of_kind) < PER_SKILL:
            of_kind.append(each)
            order.append(each)
        else:
            behind[each.flag.kind] += 1 + each.more
    return tuple(_told(each, behind[each.flag.kind] if each is kept[each.flag.kind][-1] else 0) for each in order)


def _told(counted: _Counted, elsewhere: int) -> RiskFlag:
    more = [f"{counted.more:,} more here"] if counted.more else []
    more += [f"{elsewhere:,} more in other files"] if elsewhere else []
    flag = counted.flag
    return replace(flag, message=f"{flag.message} (and {', '.join(more)})") if more else flag
