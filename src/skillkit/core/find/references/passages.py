"""Markdown -> the pieces of code in it that may be commands, with what is said about each, and the links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from skillkit.core.find.references.negation import (
    is_discouraged,
    is_forbidden_by_heading,
    is_imperative,
    nearest,
    shows_output,
)

if TYPE_CHECKING:
    from markdown_it.token import Token

__all__ = ["Passage", "passages_in"]

SHELLS = frozenset(
    "bash sh shell zsh ksh fish console terminal shell-session shellsession shellscript session powershell pwsh ps1"
    " bat cmd batch".split()
)
CODE = "\0"
AFTER_CHARACTERS = 200  # in which a sentence says that what it just named is not to be run


@dataclass(frozen=True, slots=True)
class Passage:
    """Code in a line of text (`span`), a block that is a shell's (`shell`), one without a label (`block`), a `link`."""

    kind: str
    text: str
    is_discouraged: bool = False
    is_imperative: bool = False


@dataclass(slots=True)
class _Place:
    """Where in a document the reading is."""

    is_heading: bool = False
    is_forbidden_section: bool = False
    depth: int = 0
    before: str = ""
    """The end of the text above a block."""
    is_discouraged_list: bool = False

    def is_discouraged(self) -> bool:
        return self.is_forbidden_section or (bool(self.depth) and self.is_discouraged_list)

    def note(self, kind: str) -> None:
        if kind in ("bullet_list_open", "ordered_list_open"):
            if not self.depth:
                self.is_discouraged_list = is_discouraged(self.before)
            self.depth += 1
        elif kind in ("bullet_list_close", "ordered_list_close"):
            self.depth -= 1
        elif kind in ("heading_open", "heading_close"):
            self.is_heading = kind == "heading_open"


def passages_in(markdown: str) -> Iterator[Passage]:
    """In order of appearance; raw HTML is not looked into."""
    from markdown_it import MarkdownIt  # most runs read no instructions

    place = _Place()
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        place.note(token.type)
        if token.type in ("fence", "code_block"):
            yield from block(token, place)
        elif token.type == "inline":
            text = flat(token.children or ())
            if place.is_heading:
                place.is_forbidden_section = is_forbidden_by_heading(text)
            yield from spans(token.children or (), text, place)
            place.before = nearest(text)


def block(token: Token, place: _Place) -> Iterator[Passage]:
    label = token.info.split()[0].strip("{}.").lower() if token.info.strip() else ""
    if label not in SHELLS and label:
        return
    if not label and shows_output(place.before):
        return
    discouraged = place.is_discouraged() or is_discouraged(place.before)
    yield Passage("shell" if label else "block", token.content, discouraged)


def spans(children: Sequence[Token], text: str, place: _Place) -> Iterator[Passage]:
    at = 0
    for child in children:
        end = at + len(read_as(child))
        is_link = child.type == "link_open"
        if is_link or child.type == "code_inline":
            before, after = nearest(text, at), text[end : end + AFTER_CHARACTERS]
            discouraged = place.is_discouraged() or is_discouraged(before, after)
            written = unquote(str(child.attrs.get("href", ""))) if is_link else child.content
            yield Passage("link" if is_link else "span", written, discouraged, is_imperative(before))
        at = end


def flat(children: Sequence[Token]) -> str:
    """What is read, with one character for each piece of code."""
    return "".join(map(read_as, children))


def read_as(child: Token) -> str:
    if child.type == "code_inline":
        return CODE
    if child.type == "text":
        return child.content.replace(CODE, "")
    return " " if child.type in ("softbreak", "hardbreak") else ""
