"""A file's text -> what is told by patterns alone: secrets it names, what nobody sees or can read, other languages."""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterator
from functools import cache

from skillkit.core.ask.risk import rules
from skillkit.core.ask.risk.rules import Finding, Rule, Seen, Snippet, clip, number_lines

__all__ = [
    "encoded_findings",
    "encoded_text",
    "hidden_findings",
    "host_in",
    "outside_place",
    "pattern_seen",
    "secret_variable",
    "sensitive_findings",
]

HOST = re.compile(r"\b(?:https?|ftp|wss?|tcp)://(?:[^\s/@\"'<>]{0,80}@)?([\w.\[\]:-]{1,100})", re.IGNORECASE)
BARE_HOST = re.compile(r"(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,24}\Z|\d{1,3}(?:\.\d{1,3}){3}\Z")
NAME_LIMIT = 100
PATH_LIMIT = 4096
HOMES = ("~", "$HOME", "${HOME}", "%USERPROFILE%", "$env:USERPROFILE")
HARMLESS = (
    "/dev/tcp /dev/udp /dev/null /dev/stdout /dev/stderr /dev/stdin /dev/tty /dev/fd /dev/shm /tmp /var/tmp".split()
)


def sensitive_findings(text: str, line: int = 1, *, has_startup: bool = True) -> Iterator[Finding]:
    """Secrets and startup files that `text` names; `line` is where it starts."""
    for number, match in number_lines(rules.SECRET_PLACES, text, line):
        yield rules.NAMES_SECRETS.at(number, clip(match[0]))
    for number, match in number_lines(rules.WRITTEN_KEYS, text, line):
        # Only the beginning of a key: a prompt is kept, and a secret should not be.
        yield Finding("credentials", f"Holds what looks like a secret key: {clip(match[0][:12])}...", number)
    for number, match in number_lines(rules.STARTUP, text, line) if has_startup else ():
        yield rules.NAMES_STARTUP.at(number, clip(match[0]))


def secret_variable(name: str, line: int) -> Iterator[Finding]:
    """What reads an environment variable whose name is that of a secret."""
    if len(name) < NAME_LIMIT and rules.SECRET_NAME.search(name.upper()):
        yield rules.READS_VARIABLE.at(line, clip(name))


def host_in(text: str) -> str:
    """Whom a text addresses; empty when that cannot be told."""
    found = HOST.search(text[:PATH_LIMIT])
    if found:
        return clip(found[1].rstrip(".:"))
    return clip(text) if len(text) < NAME_LIMIT and BARE_HOST.match(text) else ""


def outside_place(path: str) -> str:
    """The place, as it is shown, when a path leads out of the folder a script works in; else empty."""
    start = path[:PATH_LIMIT]
    leads_up = start.startswith(("../", "..\\")) or start == ".." or "/../" in start
    is_drive = start[1:3] in (":/", ":\\") and start[:1].isalpha()
    is_absolute = start.startswith("/") and not any(start == each or start.startswith(f"{each}/") for each in HARMLESS)
    return clip(path) if leads_up or start.startswith(HOMES) or is_drive or is_absolute else ""


# What a reader does not see or takes for something else.
NOT_ASCII = re.compile(r"[^\t\n\r\f\x20-\x7e]")
# Joiners and marks belong to many scripts and to emoji; between plain letters they only hide something.
_JOINERS = "(?<=[\x21-\x7e])[\u200c\u200d\u200e\u200f\u00ad\ufeff](?=[\x21-\x7e])"
CHARACTERS = (
    ("Holds {}, which changes the order in which text is shown.", re.compile("[\u202a-\u202e\u2066-\u2069]")),
    (
        "Holds the invisible character {}.",
        re.compile(f"[\u200b\u2060-\u2064\u180e\u3164\u115f\u1160\uffa0\u2800]|{_JOINERS}"),
    ),
    ("Holds the control character {}.", re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f]")),
)
TAGS = re.compile("(?<!\U0001f3f4)(?<![\U000e0020-\U000e007e])[\U000e0000-\U000e007f]{1,2000}")
SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{3,2000}")
FAR_RIGHT = re.compile(r"(?<=[^\s]) {120,}(?=[^\s])")
WORD = re.compile(r"\w+")
LONGEST_WORD = 200
LATIN = re.compile("[A-Za-z]")
# Cyrillic, Armenian, Cherokee; of Greek only what looks Latin, for formulas use the rest.
TWIN = re.compile(
    "[\u0400-\u052f\u0531-\u0587\u13a0-\u13ff\u0391\u0392\u0395-\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf]"
)
FOLDED = re.compile("[\uff21-\uff5a\U0001d400-\U0001d7ff]")
ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget) (?:all|any|previous|prior|the|your)\b"
    r"|\bdo not (?:tell|mention|reveal|show|inform)\b|\bdon't (?:tell|mention|reveal|show)\b"
    r"|\bwithout (?:telling|asking|informing)\b|\bsecretly\b|\bsilently\b"
    r"|\b(?:curl|wget) |\bbase64\b|\bsystem prompt\b",
    re.IGNORECASE,
)


def hidden_findings(text: str, *, is_code: bool) -> Iterator[Finding]:
    """Bidirectional and zero-width characters, tags, controls, look-alike letters, code far to the right."""
    for number, found in number_lines(FAR_RIGHT, text):
        yield Finding("hidden_text", f"Text stands far to the right, behind {len(found[0]):,} spaces.", number)
    if not is_code:
        yield from _hidden_orders(text)
    first = NOT_ASCII.search(text)
    if first is None:
        return
    start = text.rfind("\n", 0, first.start()) + 1
    for number, line in enumerate(text[start:].split("\n"), text.count("\n", 0, start) + 1):
        if NOT_ASCII.search(line):
            yield from (Finding("hidden_text", message, number) for message in _hidden_in(line, is_code=is_code))


def _hidden_orders(text: str) -> Iterator[Finding]:
    """In comments of a page, which who reads it does not see."""
    end = 0
    while (start := text.find("<!--", end)) >= 0 and (end := text.find("-->", start)) >= 0:
        order = ORDERS.search(text, start, end)
        if order:
            message = f"A comment that a reader of the page does not see holds {clip(order[0])!r}."
            yield Finding("hidden_text", message, text.count("\n", 0, start) + 1)


def _hidden_in(line: str, *, is_code: bool) -> Iterator[str]:
    for sentence, pattern in CHARACTERS:
        if found := pattern.search(line):
            yield sentence.format(f"U+{ord(found[0]):04X}")
    if tags := TAGS.search(line):
        words = "".join(chr(ord(each) - 0xE0000) for each in tags[0])
        yield f"Holds invisible tag characters that say {clip(words)!r}."
    if SELECTORS.search(line):
        yield "Holds a run of invisible selectors, which can carry a hidden text."
    for word in WORD.findall(line) if is_code else ():
        if word.isascii() or len(word) > LONGEST_WORD:
            continue
        if LATIN.search(word) and TWIN.search(word):
            yield f"The word {clip(word)!r} mixes Latin letters with others that look the same."
        elif FOLDED.search(word) and unicodedata.normalize("NFKC", word).isidentifier():
            yield f"The word {clip(word)!r} stands for {unicodedata.normalize('NFKC', word)!r}."


# What no person can read. The look behind makes each run start once, so that one letter takes one look at each.
BLOB = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{400,}={0,2}")
ESCAPES = re.compile(r"(?<!\\)(?:\\x[0-9a-fA-F]{2}|\\u00[0-9a-fA-F]{2}){24,}")
PICTURE = re.compile(r"(?:data:(?:image|font|audio|video)/[\w.+-]{1,40}|application/(?:x-)?font[\w-]{0,20});base64,\Z")
BEFORE_BLOB = 100  # characters
LONG_LINE = 5_000
FEW_CHARACTERS = 12
PREVIEW_BYTES = 300


def encoded_findings(text: str) -> Iterator[Finding]:
    """Encoded blobs, escaped runs, endless lines."""
    for number, blob in number_lines(BLOB, text):
        before = text[max(0, blob.start() - BEFORE_BLOB) : blob.start()]
        if not PICTURE.search(before) and not _is_plain_run(blob[0]):
            yield encoded_text(blob[0], number)
    for number, escapes in number_lines(ESCAPES, text):
        count = escapes[0].count("\\")
        yield Finding("obfuscation", f"Writes {count:,} characters as escapes that cannot be read.", number)
    longest = max(text.split("\n"), key=len)
    if len(longest) > LONG_LINE:
        message = f"Has a line of {len(longest):,} characters, which no person can read."
        yield Finding("obfuscation", message, text.count("\n", 0, text.index(longest)) + 1)


def encoded_text(text: str, line: int) -> Finding:
    """With what it says, where base64 or hexadecimal digits give a text."""
    start = text[: PREVIEW_BYTES // 3 * 4].strip()
    preview = ""
    for decode in (binascii.unhexlify, _from_base64):
        try:
            decoded = decode(start[: len(start) // 4 * 4]).decode("utf-8")
        except (ValueError, binascii.Error):
            continue
        if decoded and all(each.isprintable() or each in "\t\r\n" for each in decoded):
            preview = f", which says {clip(decoded)!r}"
            break
    return rules.HOLDS_ENCODED.at(line, f"{len(text):,} characters{preview}")


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)


def _is_plain_run(blob: str) -> bool:
    """A ruler, a path or a row of one letter: nothing is encoded in few different characters."""
    slashes = blob.count("/")
    return len(set(blob[:400])) < FEW_CHARACTERS or slashes > max(len(blob) // 20, blob.count("+") + 40)


# Languages that are read by pattern only, without their comments.
LINE_LIMIT = 2_000  # characters after a match in which its host or its command is looked for
# Only what is a comment for certain goes: code taken for a comment would be hidden. A sign after a quote may be part
# of a text, and one in a word part of an address or a pattern.
_LINE_COMMENT = r"^[^\S\n]*{0}[^\n]*|^([^\"'`\n]*?) {0} [^\n]*"
HASH_COMMENT, SLASH_COMMENT = (re.compile(_LINE_COMMENT.format(sign), re.MULTILINE) for sign in ("#", "//"))
# `/* ... */` whose every line starts with a star; others might be part of a text that holds a star.
STARRED = re.compile(
    r"^[^\S\n]*/\*(?:(?!\*/)[^\n])*(?:\n[^\S\n]*\*(?!/)(?:(?!\*/)[^\n])*)*(?:\n?[^\S\n]*\*/)?", re.MULTILINE
)
# How a block that stands on lines of its own begins and ends.
BLOCKS = {
    "ruby": (r"^=begin\b", r"^=end\b"),
    "perl": (r"^=(?:pod|head\d|over|item|begin|encoding)\b", r"^=cut\b"),
    "powershell": (r"^[^\S\n]{0,40}<#", r"#>"),
}
# A whole argument, not the end of one that is put together, and nothing that only looks like a path.
PATH = re.compile(r"""[(,\s][\"'`](?!/[/*])([^\s\"'`*<>|\n]{2,300})[\"'`]""")
LITERAL = re.compile(r"""["'`]([^"'`\n]{1,600})["'`]""")


def pattern_seen(text: str, language: str, line: int = 1) -> Iterator[Seen]:
    """Nothing for a language without patterns."""
    code = _without_comments(text, language) if language in rules.PATTERNS else ""
    yield from sensitive_findings(code, line)
    for rule, pattern in _compiled(language):
        for number, match in number_lines(pattern, code, line):
            yield from _of_match(rule, match, code, number)


@cache
def _compiled(language: str) -> list[tuple[Rule, re.Pattern[str]]]:
    flags = re.MULTILINE | (re.IGNORECASE if language == "powershell" else 0)
    return [(rule, re.compile(pattern, flags)) for rule, pattern in rules.PATTERNS.get(language, ())]


def _of_match(rule: Rule, match: re.Match[str], code: str, line: int) -> Iterator[Seen]:
    end = code.find("\n", match.end(), match.end() + LINE_LIMIT)
    rest = code[match.start() : end if end >= 0 else match.end() + LINE_LIMIT]
    name = clip(match[match.lastindex or 0].rstrip("( \t"))
    if rule == rules.READS_VARIABLE:
        yield from secret_variable(name, line)
    elif rule == rules.WRITES_OUTSIDE:
        places = filter(None, map(outside_place, PATH.findall(rest)))
        yield from (rule.at(line, what=place) for place in list(places)[:1])
    else:
        yield rule.at(line, name, host_in(rest) if rule.kind == "network" else "")
        if rule.kind == "process":
            yield from (Snippet("shell", command, line) for command in LITERAL.findall(rest)[:3] if " " in command)


def _without_comments(text: str, language: str) -> str:
    """The same lines, comments empty."""
    if language in ("javascript", "typescript"):
        return SLASH_COMMENT.sub(r"\1", STARRED.sub(_only_lines, text))
    begin, end = BLOCKS.get(language, ("", ""))
    # A block without its end is none: it would hide the rest of the file.
    last = max((found.end() for found in re.finditer(end, text, re.MULTILINE)), default=0) if end else 0
    block = re.compile(f"{begin}.*?{end}", re.MULTILINE | re.DOTALL)
    return HASH_COMMENT.sub(r"\1", (block.sub(_only_lines, text[:last]) if last else "") + text[last:])


def _only_lines(comment: re.Match[str]) -> str:
    return "\n" * comment[0].count("\n")
