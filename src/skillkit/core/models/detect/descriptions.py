"""Head of a script and its language -> what the script says of itself, as one text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

__all__ = ["DESCRIPTION_LIMIT", "description_of"]

DESCRIPTION_LIMIT = 500  # characters

# A description is among the first things in a file; thousands of empty comments are not worth the time.
_PASSAGES_LOOKED_AT = 50


def description_of(head: str, language: str) -> str:
    """The first docstring or comment block that is about the script; empty when there is none."""
    if not head:
        return ""
    text = head.replace("\r\n", "\n").replace("\r", "\n") if "\r" in head else head
    for raw, paragraphs in islice(_passages(text + "\n", language), _PASSAGES_LOOKED_AT):
        described = _joined(paragraphs, _is_maybe_legal(raw))
        if described:
            return described
    return ""


def _passages(text: str, language: str) -> Iterator[tuple[str, Iterator[list[str]]]]:
    """What may hold the description, best first: as it stands in the file, and its paragraphs."""
    syntax = _SYNTAXES[language]
    start = text.find("\n") + 1 if text.startswith("#!") else 0
    comments, code_at = _leading_comments(text, start, syntax)
    while language == "python" and (docstring := _docstring(text, code_at)):
        body, end = docstring
        yield body, _paragraphs(body.split("\n"), may_direct=False)
        further, code_at = _leading_comments(text, end, syntax)
        comments += further
    if language == "perl" and (documentation := _POD_NAME.search(text)):
        comments.append((text[documentation.start() :], True))
    for raw, is_fenced in comments:
        yield raw, _paragraphs(_lines_of(raw, is_fenced, syntax), may_direct=True)


# What a comment holds between its marks, and whether it stands in fences.
_Comment = tuple[str, bool]


def _unchanged(lines: list[str]) -> list[str]:
    return lines


_NOWHERE = re.compile(r"(?!)")


@dataclass(frozen=True, slots=True)
class _Syntax:
    """How a language writes comments: runs of lines with a marker, and fences with an opening and a close."""

    run: re.Pattern[str]
    marker: re.Pattern[str]
    run_lines: Callable[[list[str]], Iterable[str]] = _unchanged
    opening: re.Pattern[str] = _NOWHERE
    close: str = ""
    fenced_lines: Callable[[list[str]], Iterable[str]] = _unchanged
    # Code that may stand before a script's header, such as `set -e`.
    prologue: re.Pattern[str] = _NOWHERE


_BLANK = re.compile(r"\s*")
_LINE_END = re.compile(r"[ \t]*\n?")


def _leading_comments(text: str, start: int, syntax: _Syntax) -> tuple[list[_Comment], int]:
    """The comments before the first line of code, and where that line is."""
    comments: list[_Comment] = []
    at = start
    behind_prologue_end = -1
    is_behind_prologue = False
    while True:
        at = _past(_BLANK, text, at)
        if run := syntax.run.match(text, at):
            comments.append((run.group(), False))
            at = run.end()
        elif opening := syntax.opening.match(text, at):
            close_at = text.find(syntax.close, opening.end())
            close_at = len(text) if close_at < 0 else close_at
            comments.append((text[opening.end() : close_at], True))
            at = _past(_LINE_END, text, close_at + len(syntax.close))
        elif prologue := syntax.prologue.match(text, at):
            at, is_behind_prologue, behind_prologue_end = prologue.end(), True, -1
            continue
        else:
            break
        behind_prologue_end = at if is_behind_prologue else -1
    # Behind a prologue, a comment glued to code is about that code: `set -e`, `# Colours`, `RED=...`.
    if behind_prologue_end >= 0 and at < len(text) and "\n" not in text[behind_prologue_end:at]:
        comments.pop()
    return comments, at


def _past(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _lines_of(raw: str, is_fenced: bool, syntax: _Syntax) -> Iterable[str]:
    if is_fenced:
        return syntax.fenced_lines(raw.split("\n"))
    return syntax.run_lines(syntax.marker.sub("", raw).split("\n"))


def _without_inline_metadata(lines: list[str]) -> Iterator[str]:
    """`# /// script` to `# ///` holds dependencies (PEP 723)."""
    is_inside = False
    for line in lines:
        if is_inside:
            is_inside = line.strip() != "///"
        elif line.lstrip().startswith("/// "):
            is_inside = True
            yield ""
        else:
            yield line


_GUTTER = re.compile(r"[ \t]*[*!]+")
_FILE_TAG = re.compile(r"@(?:file|fileoverview|overview|description|desc|summary)\b")


def _jsdoc_lines(lines: list[str]) -> Iterator[str]:
    """Without the column of stars and without tags, except those that describe the file."""
    is_kept = True
    for line in lines:
        bare = line[_past(_GUTTER, line, 0) :].strip()
        if bare.startswith("@") and not _DIRECTIVE.match(bare):
            tag = _FILE_TAG.match(bare)
            is_kept = tag is not None
            bare = bare[tag.end() :] if tag else ""
            yield ""
        if is_kept:
            yield bare


_HELP_KEYWORD = re.compile(r"\.([A-Z]{4,}|(?i:synopsis|description|parameter|example|notes|link|inputs|outputs))")
_HELP_KEPT = frozenset(("SYNOPSIS", "DESCRIPTION"))


def _help_lines(lines: list[str]) -> Iterator[str]:
    """Of PowerShell's comment-based help, the synopsis and the description."""
    is_kept = True
    for line in lines:
        bare = line.strip()
        if keyword := _HELP_KEYWORD.fullmatch(bare.partition(" ")[0]):
            is_kept = keyword.group(1).upper() in _HELP_KEPT
            yield ""
            bare = bare[keyword.end() :]
        if is_kept:
            yield bare


_POD_NAME = re.compile(r"^=head1[ \t]+NAME\b", re.MULTILINE)
_POD_KEPT = frozenset(("NAME", "DESCRIPTION"))
_POD_FORMAT = re.compile(r"[A-Z]<([^<>]*)>")


def _pod_lines(lines: list[str]) -> list[str]:
    """Of Perl's documentation, the name and the description, or all text when it has neither."""
    named: list[str] = []
    text: list[str] = []
    is_kept = False
    for line in lines:
        if line.startswith("=cut"):
            break
        plain = "" if line.startswith("=") else _POD_FORMAT.sub(r"\1", line)
        if line.startswith("=head"):
            is_kept = line.partition(" ")[2].strip().upper() in _POD_KEPT
        text.append(plain)
        if is_kept:
            named.append(plain)
    return named or text


_DOCSTRING = re.compile(r"""(?P<prefix>[rRuU]?)(?P<quote>\"{3}|'{3}|"|')""")
_STATEMENT_END = re.compile(r"[ \t]*(?:[#;][^\n]*)?\n")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "\n": "", '"': '"', "'": "'", "\\": "\\"}


def _docstring(text: str, at: int) -> tuple[str, int] | None:
    """The string that is the whole statement here, and its end; in triple quotes it may run past the head."""
    opening = _DOCSTRING.match(text, at)
    if opening is None:
        return None
    quote = opening["quote"]
    is_long = len(quote) > 1
    close_at = _closing_quote(text, quote, opening.end(), len(text) if is_long else text.index("\n", at))
    if close_at < 0 and is_long:
        close_at = end = len(text)
    elif close_at >= 0 and (statement_end := _STATEMENT_END.match(text, close_at + len(quote))):
        end = statement_end.end()
    else:
        return None
    body = text[opening.end() : close_at]
    if opening["prefix"] not in ("r", "R") and "\\" in body:
        body = _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[0]), body)
    return body, end


def _closing_quote(text: str, quote: str, start: int, limit: int) -> int:
    """The first quote with an even number of backslashes before it, or -1."""
    at = text.find(quote, start, limit)
    while at >= 0:
        before = text[start:at]
        if (len(before) - len(before.rstrip("\\"))) % 2 == 0:
            return at
        start = at + 1
        at = text.find(quote, start, limit)
    return -1


_DIRECTIVE = re.compile(
    r"(?:pylint|type|ruff|flake8|mypy|pyright|isort|fmt|yapf|pragma|tslint|rubocop|frozen_string_literal):|"
    r"(?:en)?coding[:=]|-\*-|vim?:|!|noqa\b|shellcheck |eslint\b|js[hl]int |prettier-ignore|biome-ignore|"
    r"deno-lint-|istanbul |[cv]8 ignore|@ts-|@flow\b|<reference |[Rr]equires -|PSScriptInfo|sourceMappingURL|"
    r"[Aa]uthors?:|[Mm]aintainer:"
)
_WORD = re.compile(r"[^\W_]")
_RULE_CHARACTERS = "=-*#~_+/─━═"
_RULES = frozenset(character * 3 for character in _RULE_CHARACTERS)
_BOX_EDGES = (" #", " *")


def _paragraphs(lines: Iterable[str], *, may_direct: bool) -> Iterator[list[str]]:
    """Runs of lines that hold words, without directives; blank lines and rules part them."""
    run: list[str] = []
    for line in lines:
        bare = line.strip()
        if bare[:1].isalnum() or _WORD.search(bare):
            if may_direct and _DIRECTIVE.match(bare):
                continue
            is_framed = bare[0] in _RULE_CHARACTERS or bare[-1] in _RULE_CHARACTERS
            run.append(_undecorated(bare) if is_framed else bare)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _undecorated(bare: str) -> str:
    """`==== Title ====` and the frame of a box lose what is drawn around the words."""
    if bare[:3] in _RULES:
        bare = bare.lstrip(bare[0]).lstrip()
    if bare[-3:] in _RULES:
        return bare.rstrip(bare[-1]).rstrip()
    return bare[:-2].rstrip() if bare.endswith(_BOX_EDGES) else bare


_LEGAL_HINTS = ("licen", "copyright", "©", "(c)", "spdx", "rights reserved", "redistribut", "warrant")

# Single lines, in lower case.
_NOTICES = ("©", "(c) ", "spdx-", "all rights reserved", "license:", "copyright:", ":license", ":copyright", "@license")
_COPYRIGHT = re.compile(
    r"copyright[ ,]{0,2}(?:©|\(c\)|by\b|.{0,80}\b(?:(?:19|20)\d\d|authors|contributors|inc|llc|ltd)\b)"
)

# Paragraphs, in lower case: how they begin, what they say of "this file" at once, what they say anywhere.
_LICENCE_OPENINGS = (
    *("mit license", "the mit license", "isc license", "bsd license", "apache license", "gnu general", "gnu lesser"),
    *("mozilla public", "licensed to", "licensed under", "released under", "distributed under", "see license"),
    *("see the license", "for license information", "this file is part of"),
)
_LICENCE_SUBJECTS = ("this ", "the ")
_LICENCE_VERBS = (" licensed under", " released under", " distributed under", " free software", " is subject to")
_LICENCE_PHRASES = (
    *(
        "begin license",
        "end license",
        "/licenses/",
        "license-2.0",
        "the initial developer",
        "as contained in this notice",
    ),
    *("permission is hereby granted", "you may not use this file", "you may obtain a copy", "unless required by"),
    *("can redistribute it", "redistributions of", "redistributions in", "redistribution and use"),
    *("neither the name of", "the above copyright notice", "software is provided", "received a copy of the"),
    *("without warrant", "without any warrant", "implied warrant", "governed by a"),
)


def _is_maybe_legal(raw: str) -> bool:
    """A cheap look that spares most scripts the search for licence text."""
    lowered = raw.lower()
    return any(map(lowered.__contains__, _LEGAL_HINTS))


def _without_legal_text(lines: list[str]) -> str:
    text = " ".join(line for line in lines if not _is_notice(line.lower().replace("licence", "license")))
    return "" if _is_licence(text.lower().replace("licence", "license")) else text


def _is_notice(lowered: str) -> bool:
    return lowered.startswith(_NOTICES) or _COPYRIGHT.match(lowered) is not None


def _is_licence(lowered: str) -> bool:
    if lowered.startswith(_LICENCE_OPENINGS) or any(map(lowered.__contains__, _LICENCE_PHRASES)):
        return True
    sentence = lowered[:80]
    return lowered.startswith(_LICENCE_SUBJECTS) and any(map(sentence.__contains__, _LICENCE_VERBS))


def _joined(paragraphs: Iterable[list[str]], is_maybe_legal: bool) -> str:
    """Whole paragraphs while they fit; words of the next one only if less than half of the room is used."""
    text = ""
    for lines in paragraphs:
        paragraph = _without_legal_text(lines) if is_maybe_legal else " ".join(lines)
        if not paragraph:
            continue
        if "  " in paragraph or not paragraph.isprintable():
            paragraph = " ".join(paragraph.split())
        longer = f"{text} {paragraph}" if text else paragraph
        if len(longer) > DESCRIPTION_LIMIT:
            return text if len(text) >= DESCRIPTION_LIMIT // 2 else _cut(longer)
        text = longer
    return text


def _cut(text: str) -> str:
    """At the end of a word, unless the text is written without spaces."""
    space = text.rfind(" ", DESCRIPTION_LIMIT // 2, DESCRIPTION_LIMIT + 1)
    return text[: space if space >= 0 else DESCRIPTION_LIMIT]


_with_hashes = partial(_Syntax, re.compile(r"(?:[ \t]*#[^\n]*\n)+"), re.compile(r"^[ \t]*#+", re.MULTILINE))
_JAVASCRIPT = _Syntax(
    re.compile(r"(?:[ \t]*//[^\n]*\n)+"),
    re.compile(r"^[ \t]*//[/!]*", re.MULTILINE),
    opening=re.compile(r"/\*"),
    close="*/",
    fenced_lines=_jsdoc_lines,
    prologue=re.compile(r"""(["'])use [a-z]+\1[ \t]*;?[ \t]*\n"""),
)
_SYNTAXES = {
    "python": _with_hashes(run_lines=_without_inline_metadata),
    "shell": _with_hashes(prologue=re.compile(r"(?:set[ \t]+[-+]|shopt[ \t]|IFS=)[^\n]*\n")),
    "javascript": _JAVASCRIPT,
    "typescript": _JAVASCRIPT,
    "ruby": _with_hashes(opening=re.compile(r"=begin\b[^\n]*"), close="\n=end"),
    "perl": _with_hashes(
        opening=re.compile(r"(?==[a-zA-Z])"),
        close="\n=cut",
        fenced_lines=_pod_lines,
        prologue=re.compile(r"(?:use|no|package)[ \t][^\n]*\n"),
    ),
    "powershell": _with_hashes(
        opening=re.compile(r"<#"),
        close="#>",
        run_lines=_help_lines,
        fenced_lines=_help_lines,
        prologue=re.compile(r"(?:Set-StrictMode|\$ErrorActionPreference)\b[^\n]*\n", re.IGNORECASE),
    ),
    "batch": _Syntax(
        re.compile(r"(?:[ \t]*@?(?:rem(?=\s)|::)[^\n]*\n)+", re.IGNORECASE),
        re.compile(r"^[ \t]*@?(?:rem|:+)", re.IGNORECASE | re.MULTILINE),
        prologue=re.compile(r"@?(?:echo[ \t]+off|setlocal|chcp|cls)\b[^\n]*\n", re.IGNORECASE),
    ),
}
