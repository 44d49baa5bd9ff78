"""Markdown -> the pieces of code in it that may be commands, with what is said about each, and the links.

Whether a sentence says to run a command, or not to, is told by its words: English only; in doubt, not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from markdown_it.token import Token

__all__ = ["Passage", "is_forbidden_by_comment", "passages_in"]

SHELLS = frozenset(
    "bash sh shell zsh ksh fish console terminal shell-session shellsession shellscript session powershell pwsh ps1"
    " bat cmd batch".split()
)
CODE = "\0"
AFTER_CHARACTERS = 200  # in which a sentence says that what it just named is not to be run
SENTENCE_CHARACTERS = 1_000

RUN = re.compile(
    r"\b(?:re-?)?(?:run(?:s|ning)?|execut(?:e|es|ing)|invok(?:e|es|ing)|call(?:s|ing)?|launch(?:es|ing)?"
    r"|start(?:s|ing)?|us(?:e|es|ing)|do(?:ing)? th(?:is|ese|at))\b",
    re.IGNORECASE,
)
IMPERATIVE = re.compile(
    r"\b(?:re-?)?(?:run|execute|invoke|launch)(?:ning|ing)?\b([^\0]{0,40})(?:\0(?:[,\s]|and|or|then){1,30})*$",
    re.IGNORECASE,
)
READING = re.compile(
    r"\b(?:see|read|look|view|open|edit|check|review|inspect|refer|consult|change|modify)\b", re.IGNORECASE
)
NOT = re.compile(
    r"\b(?:never|ever|not|cannot|without|avoid|stop|skip|refrain|nobody|no one|no need to|no longer|no reason"
    r"|no circumstances?|no account|forbid|forbidden|prohibited|disallowed|dangerous|unsafe|instead of|rather than)\b"
    r"|n['\u2019]t\b",
    re.IGNORECASE,
)
NOT_ASIDE = re.compile(r"(?:\b(?:not|never)|n['\u2019]t),[^,;]*,\s*$", re.IGNORECASE)
DO_FORGET = re.compile(r"(?:not|n['\u2019]t|never)\s+(?:\w+\s+)?(?:forget|fail|hesitate|skip)\b", re.IGNORECASE)
INSTEAD = re.compile(r"\b(?:instead of|rather than|never|not|avoid|don['\u2019]t|do not)\b|❌|🚫", re.IGNORECASE)
FORBIDDING = re.compile(
    r"\b(?:never|avoid|do not|don['\u2019]t|must not|mustn['\u2019]t|should not|shouldn['\u2019]t|instead of"
    r"|rather than|wrong|bad|incorrect|deprecated|obsolete|anti-?patterns?|not to|forbidden|prohibited|disallowed"
    r"|dangerous|off-limits|skip|refrain|no longer)\b|❌|🚫",
    re.IGNORECASE,
)
AFTERWARDS = re.compile(
    r"^[^.!?;]{0,60}?(?:\b(?:must|should|may|can|is|are)\s*(?:not|never)|n['\u2019]t|\bcannot)\s+(?:\w+\s+){0,2}"
    r"(?:run|executed|called|used|invoked)\b"
    r"|^[^.!?]{0,60}?\b(?:do not|don['\u2019]t|never)\s+(?:run|execute|call|use|invoke)\s+(?:it|this|that)\b"
    r"|^\s+(?:is|was|has been)\s+(?:\w+\s+)?(?:deprecated|broken|dangerous|unsafe|obsolete|forbidden|prohibited"
    r"|disallowed|off-limits|removed|disabled)\b"
    r"|^\s+(?:is|was)(?: not|n['\u2019]t)\s+(?:allowed|permitted|supported|needed|available|safe)\b"
    r"|^\s+(?:(?:will|does|did) not|(?:wo|does|did)n['\u2019]t|no longer)\s+(?:works?|exists?|runs?)\b",
    re.IGNORECASE,
)
OUTPUT = re.compile(
    r"\b(?:outputs?|prints?|returns?|results?|shows?|looks? like|structure|layout|contents?|tree|contains?|files?)\b"
    r"[^.!?]{0,60}:\s*$",
    re.IGNORECASE,
)
SENTENCE_END = re.compile(r"[.!?](?=\s)")
CLAUSE_END = re.compile(r"[,;:(\u2014\u2013]")


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
            text = "".join(map(_read_as, token.children or ()))
            if place.is_heading:
                place.is_forbidden_section = FORBIDDING.search(text) is not None
            yield from _spans(token.children or (), text, place)
            place.before = _nearest(text)


def block(token: Token, place: _Place) -> Iterator[Passage]:
    label = token.info.split()[0].strip("{}.").lower() if token.info.strip() else ""
    # Below such a sentence stands what a program printed, or a list of files.
    if label not in SHELLS if label else OUTPUT.search(_last_sentence(place.before)):
        return
    discouraged = place.is_discouraged() or is_discouraged(place.before)
    yield Passage("shell" if label else "block", token.content, discouraged)


def _spans(children: Sequence[Token], text: str, place: _Place) -> Iterator[Passage]:
    at = 0
    for child in children:
        end = at + len(_read_as(child))
        is_link = child.type == "link_open"
        if is_link or child.type == "code_inline":
            before, after = _nearest(text, at), text[end : end + AFTER_CHARACTERS]
            discouraged = place.is_discouraged() or is_discouraged(before, after)
            written = unquote(str(child.attrs.get("href", ""))) if is_link else child.content
            yield Passage("link" if is_link else "span", written, discouraged, is_imperative(before))
        at = end


def _read_as(child: Token) -> str:
    """The text that a person reads, with one character for each piece of code."""
    if child.type == "code_inline":
        return CODE
    if child.type == "text":
        return child.content.replace(CODE, "")
    return " " if child.type in ("softbreak", "hardbreak") else ""


def _nearest(text: str, end: int | None = None) -> str:
    """As much before `end` as a sentence can be long: looking at all of it each time would take the square of it."""
    end = len(text) if end is None else end
    return text[max(0, end - SENTENCE_CHARACTERS) : end]


def _last_sentence(text: str) -> str:
    return SENTENCE_END.split(text.rstrip() if text.endswith((".", "!", "?")) else text)[-1]


def is_imperative(before: str) -> bool:
    """`Run`, `then execute the script`: right before what is run, and nothing else is said to be done with it."""
    found = IMPERATIVE.search(_last_sentence(before))
    return found is not None and not READING.search(found[1])


def is_discouraged(before: str, after: str = "") -> bool:
    """By the sentence it stands in: the verb it belongs to is denied, or something else is to be run instead."""
    sentence = _last_sentence(before)
    if len(sentence) == SENTENCE_CHARACTERS:
        return True  # nobody knows how it begins
    verbs = list(RUN.finditer(sentence))
    if not verbs:
        return FORBIDDING.search(sentence) is not None or AFTERWARDS.search(after) is not None
    verb = verbs[-1]
    lead = sentence[: verb.start()]
    clause = CLAUSE_END.split(lead)[-1]
    is_denied = NOT.search(clause) and not DO_FORGET.search(clause)
    return bool(is_denied or NOT_ASIDE.search(lead) or INSTEAD.search(sentence, verb.end()) or AFTERWARDS.search(after))


def is_forbidden_by_comment(text: str) -> bool:
    return FORBIDDING.search(text) is not None and not DO_FORGET.search(text)
