"""Words around a command -> whether they say to run it, or not to. English only; in doubt, not."""

from __future__ import annotations

import re

__all__ = [
    "is_discouraged",
    "is_forbidden_by_comment",
    "is_forbidden_by_heading",
    "is_imperative",
    "nearest",
    "shows_output",
]

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


def nearest(text: str, end: int | None = None) -> str:
    """As much before `end` as a sentence can be long: looking at all of it each time would take the square of it."""
    end = len(text) if end is None else end
    return text[max(0, end - SENTENCE_CHARACTERS) : end]


def last_sentence(text: str) -> str:
    return SENTENCE_END.split(text.rstrip() if text.endswith((".", "!", "?")) else text)[-1]


def is_imperative(before: str) -> bool:
    """`Run`, `then execute the script`: right before what is run, and nothing else is said to be done with it."""
    found = IMPERATIVE.search(last_sentence(before))
    return found is not None and not READING.search(found[1])


def is_discouraged(before: str, after: str = "") -> bool:
    """By the sentence it stands in: the verb it belongs to is denied, or something else is to be run instead."""
    sentence = last_sentence(before)
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


def is_forbidden_by_heading(text: str) -> bool:
    return FORBIDDING.search(text) is not None


def is_forbidden_by_comment(text: str) -> bool:
    return FORBIDDING.search(text) is not None and not DO_FORGET.search(text)


def shows_output(lead: str) -> bool:
    """Whether the block below this sentence is something that a program printed, or a list of files."""
    return OUTPUT.search(last_sentence(lead)) is not None
