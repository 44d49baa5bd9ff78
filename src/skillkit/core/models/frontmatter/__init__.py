"""SKILL.md bytes -> fields, body, and what had to be repaired on the way. Tolerant by design.

The block is found by whole lines; what is in it is read by `block.py`.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from dataclasses import dataclass, field

from skillkit.core.exceptions import InvalidFrontmatterError
from skillkit.core.models.frontmatter.texts import Note, Value, split_tools, text_of
from skillkit.core.values.text import grouped

__all__ = [
    "BLOCK_LIMIT_CHARACTERS",
    "Frontmatter",
    "Value",
    "decode",
    "is_closed",
    "read_frontmatter",
    "split_tools",
    "text_of",
]

BLOCK_LIMIT_CHARACTERS = 256 * 1024

FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)
FENCE_BYTES = re.compile(rb"^---[ \t]*\r?$", re.MULTILINE)
COMMENT_START = re.compile(r"\s*<!--")
COMMENT_END = "-->"
GLUED_FENCE = re.compile(r"^---+(?=[^-\s])", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """Fields as text, lists and maps of text; `lines` says where each key stands; `body` is the rest."""

    fields: dict[str, Value]
    body: str
    lines: dict[str, int] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


def read_frontmatter(raw: bytes) -> Frontmatter:
    """Repairs what people really write wrong; raises SkillParsingError only when there is nothing to read."""
    from skillkit.core.models.frontmatter.block import BlockReader  # YAML costs; a cached discovery needs none

    text, notes = decode(raw)
    start, end, body_start = _fences(text, notes)
    if end - start > BLOCK_LIMIT_CHARACTERS:
        raise InvalidFrontmatterError(
            f"The frontmatter has {grouped(end - start)} characters; the limit is {grouped(BLOCK_LIMIT_CHARACTERS)}.",
            line=1,
            remedy="Move long text into the body.",
        )
    fields, lines = BlockReader(text.count("\n", 0, start) + 1, notes).read(text[start:end])
    return Frontmatter(fields, text[body_start:], lines, tuple(notes))


def decode(raw: bytes) -> tuple[str, list[Note]]:
    """Text with plain line ends, whatever byte-order mark, line ending or stray byte the file has."""
    is_utf16 = raw.startswith((b"\xff\xfe", b"\xfe\xff"))
    written = raw.decode("utf-16" if is_utf16 else "utf-8-sig", errors="replace")
    text = written.replace("\r\n", "\n").replace("\r", "\n")
    if is_utf16:
        return text, [Note("encoding", "The file is UTF-16.", 1, "Save it as UTF-8.")]
    if "\ufffd" not in text or b"\xef\xbf\xbd" in raw:
        return text, []
    line = text.count("\n", 0, text.index("\ufffd")) + 1
    return text, [Note("encoding", "The file has bytes that are not UTF-8.", line, "Save it as UTF-8.")]


def is_closed(head: bytes) -> bool:
    """Whether this beginning of a file holds a whole frontmatter, so that the rest need not be read."""
    is_plain = not head.removeprefix(BOM_UTF8).lstrip().startswith(b"<!--")  # it may hold fences too
    return is_plain and len(FENCE_BYTES.findall(head)) > 1


def _comments_end(text: str) -> int:
    """Where the HTML comments end that the text begins with; 0 where it begins with none."""
    end = 0
    while opening := COMMENT_START.match(text, end):
        closing = text.find(COMMENT_END, opening.end())
        if closing < 0:
            break
        end = closing + len(COMMENT_END)
    return end


def _fences(text: str, notes: list[Note]) -> tuple[int, int, int]:
    """Where the block starts and ends, and where the body starts."""
    before = _comments_end(text)
    opening = FENCE.search(text, before)
    if opening is None or text[before : opening.start()].strip():
        raise InvalidFrontmatterError(
            "There is no frontmatter.",
            line=1,
            remedy="Start the file with a line '---', then name and description, then '---'.",
        )
    if before:
        line = text.count("\n", 0, text.index("<!--")) + 1
        remedy = "Start the file with '---'; put the comment below the frontmatter."
        notes.append(Note("leading-comment", "A comment stands before the frontmatter.", line, remedy))
    start = min(opening.end() + 1, len(text))
    closing = FENCE.search(text, start)
    if closing is not None:
        return start, closing.start(), min(closing.end() + 1, len(text))
    glued = GLUED_FENCE.search(text, start)
    if glued is None:
        raise InvalidFrontmatterError(
            "The frontmatter is never closed.", line=1, remedy="End it with a line '---' of its own."
        )
    line = text.count("\n", 0, glued.start()) + 1
    notes.append(Note("glued-fence", "Text is glued to the closing '---'.", line, "Put '---' on a line of its own."))
    return start, glued.start(), glued.end()
