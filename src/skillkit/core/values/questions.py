"""What a person is asked before a script runs, and what they answered: values that every channel shares."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.values.needs import Grant, Need

__all__ = [
    "ANSWER_SECONDS",
    "CHANGE_KINDS",
    "IN_SESSION",
    "KEEPS",
    "KEEP_HOME",
    "NO",
    "OPTIONS",
    "ORDERED",
    "REASON_CHARACTERS",
    "SAME_AGAIN",
    "SINGLE_USE",
    "WALLS",
    "Approver",
    "Cancel",
    "FileChange",
    "Option",
    "OptionAnswer",
    "OptionRequest",
    "Prompt",
    "PromptCommand",
    "ReachMark",
    "RiskFlag",
    "Tick",
    "grant_ids",
]


@dataclass(frozen=True, slots=True)
class Option:
    """One way to answer a request."""

    id: str
    label: str


IN_SESSION, NO = "yes_in_session", "no"
OPTIONS = (
    Option("yes_once", "Yes once"),
    Option(IN_SESSION, "Yes in this session"),
    Option(NO, "No"),
)
"""What a script approval offers, exactly."""


ORDERED = "run-"
"""How the id of a question about a run elsewhere begins, and no other's."""

ANSWER_SECONDS = 3600.0
"""How long a question about a script can be answered where its channel sets no time of its own."""

SINGLE_USE = "single_use"
"""Where a script's request says in its context which answers are for one of its askers alone."""


REASON_CHARACTERS = 2_000
"""Of what a person says with a no: it goes to a model."""

SAME_AGAIN = "again"
KEEP_HOME = "home:keep"
"""The id of the tick that stands for everything a skill had before it changed."""


CHANGE_KINDS = ("changed", "added", "removed")
# Of a hundred: how much less what the walls stop counts, and how much more what the script itself does. A file of the
# skill that deletes everything still comes before a script that starts a program: a yes for the session is for both.
BLOCKED_WEIGHT, NEAR_WEIGHT = 50, 45

WALLS = "walls_digest"
"""Where a script's request says in its context which folders its roles stand for; its id does not."""

KEEPS = "keeps"
"""Where a script's request says in its context what a yes for the session is kept as: whoever answers keeps it."""


@dataclass(frozen=True, slots=True)
class Tick:
    """One thing that a yes may open too, where a person ticks it; none is ticked beforehand."""

    id: str
    """A grant's, SAME_AGAIN or KEEP_HOME."""
    label: str
    warning: str = ""
    """What to think of before it is ticked; most have none."""


def grant_ids(grants: Iterable[str | Grant]) -> tuple[str, ...]:
    """As answers name them: by id, each once."""
    if isinstance(grants, str):
        raise ConfigurationError(f"Grants are a list; {grants!r} is one text. Write [{grants!r}].")
    return tuple(dict.fromkeys(each.id if isinstance(each, Grant) else str(each) for each in grants))


@dataclass(frozen=True, slots=True)
class OptionRequest:
    """A question to a person, answered by the id of one option, and with a yes the ids of what is ticked."""

    id: str
    title: str
    message: str
    options: tuple[Option, ...]
    context: Mapping[str, Any] = field(default_factory=dict, hash=False)
    session_id: str | None = None
    created_at: float = dataclasses.field(default=0.0, compare=False)
    expires_at: float = dataclasses.field(default=0.0, compare=False)
    grants: tuple[Tick, ...] = ()
    """What a yes may open beyond the walls that are shown."""

    @property
    def single_use(self) -> tuple[str, ...]:
        """Which answers are for one asker alone; where the request does not say, a yes for one run."""
        return tuple(self.context.get(SINGLE_USE, ("yes_once",)))

    @property
    def is_about_scripts(self) -> bool:
        """Whether it shows scripts to be run, or keeps a yes for them."""
        return "prompt" in self.context or KEEPS in self.context

    def asked(self, now: float, seconds: float = ANSWER_SECONDS) -> OptionRequest:
        """The same, asked at this moment and open for so long."""
        return dataclasses.replace(self, created_at=now, expires_at=now + seconds)


@dataclass(frozen=True, slots=True)
class OptionAnswer:
    """Which option was chosen, through which channel; `request_id` names the one question it answers."""

    option_id: str
    channel: str
    answered_at: float
    request_id: str = ""
    grants: tuple[str, ...] = ()
    """The ids of what was ticked, among what the request offered."""
    reason: str = ""
    """What the person says with it; with a no it goes to the model."""
    note: str = ""
    """What else happened while it was asked, for the record."""


class Cancel(Protocol):
    """What tells that an answer is not wanted any more: a `threading.Event`, or several reasons as one."""

    def is_set(self) -> bool: ...


class Approver(Protocol):
    """A way to reach a person. `ask` gives their answer or raises ApprovalUnavailableError; silence is no yes."""

    @property
    def channel(self) -> str: ...

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer: ...


@dataclass(frozen=True, slots=True)
class RiskFlag:
    """Something a reader should look at; it informs and never decides."""

    kind: str
    """network, process, delete, obfuscation, unread, hidden_text, outside_write or credentials."""
    message: str
    path: str
    line: int
    weight: int = 0
    """How much a reader should care, up to 100; nobody decides by it."""
    is_blocked: bool = False
    """Whether the walls that are shown stop it anyway."""
    is_near: bool = False
    """Whether it stands in what would run, or in what that brings in or names."""


@dataclass(frozen=True, slots=True)
class ReachMark:
    """One thing that a run could reach, in a few words; all marks together stand on one line."""

    name: str
    """network, files, keys, packages or home."""
    words: str
    state: str
    """closed, open, or wide where there is no limit."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file that differs from what was approved last."""

    kind: str
    """changed, added or removed; `more` for all files that are too many to show."""
    path: str
    diff: str
    """Unified, cut to a bounded length; empty where there is no text to compare."""
    unseen: int = 0
    """Added lines that the diff does not show, or not to their end."""
    added: int = 0
    """All of its added lines, those that are not shown too."""
    counts: tuple[tuple[str, int], ...] = ()
    """Of `more`: how many files of each kind."""


@dataclass(frozen=True, slots=True)
class PromptCommand:
    """One script that would run, with what it is given."""

    script: str
    argv: tuple[str, ...]
    stdin: str
    """As text; empty when nothing is fed to the script."""
    source: str
    """The script itself, cut to a bounded length."""
    interpreter: str = ""
    """What runs it, by name; empty for a program."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is shown, in this order; all text from the skill is untrusted and made harmless by who shows it."""

    skill: str
    origin: str
    """The folder the skill comes from."""
    reasons: tuple[str, ...]
    risks: tuple[RiskFlag, ...]
    changes: tuple[FileChange, ...] | None
    """Since the last approval; None when the skill was never approved."""
    commands: tuple[PromptCommand, ...]
    walls: tuple[str, ...]
    """What the walls will and will not allow, one sentence each."""
    digest: str
    approved: str = ""
    """The digest of what was approved last, where its copy is there to compare with."""
    marks: tuple[ReachMark, ...] = ()
    """What the walls leave open, in a few words each."""
    needs: tuple[Need, ...] = ()
    """What the skill uses beyond its folder, those that are met too."""
    had: tuple[str, ...] = ()
    """What a person had given it before it changed, in words."""
    signer: str = ""
    """Who signed exactly this content, where that was checked; or that nobody did, and who had until now."""
    last_yes: str = ""
    """What kind of yes the skill had last: `lasting`, `once`, or none."""

    @property
    def unseen(self) -> int:
        """How many lines that are new since the last approval are not shown."""
        return sum(change.unseen for change in self.changes or ())

    @property
    def change_counts(self) -> dict[str, int]:
        """How many files of each kind differ, those that are too many to show too."""
        counts = dict.fromkeys(CHANGE_KINDS, 0)
        for change in self.changes or ():
            for kind, count in change.counts or ((change.kind, 1),):
                counts[kind] = counts.get(kind, 0) + count
        return {kind: count for kind, count in counts.items() if count and kind in CHANGE_KINDS}

    @property
    def risks_by_weight(self) -> tuple[RiskFlag, ...]:
        """The heaviest first; what the walls stop counts less, and what is in what would run more."""
        scripts = {command.script for command in self.commands}

        def lightness(risk: RiskFlag) -> int:
            is_near = bool(risk.is_near) or risk.path in scripts
            return bool(risk.is_blocked) * BLOCKED_WEIGHT - risk.weight - is_near * NEAR_WEIGHT

        return tuple(sorted(self.risks, key=lightness))

    def to_context(self) -> dict[str, Any]:
        """As JSON, for the request that carries it."""
        return {"prompt": dataclasses.asdict(self)}

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> Prompt | None:
        """The prompt a request carries; None for a request about something else."""
        kept = context.get("prompt")
        if kept is None:
            return None
        try:
            changes = kept["changes"]
            return cls(
                skill=kept["skill"],
                origin=kept["origin"],
                reasons=tuple(kept["reasons"]),
                risks=tuple(RiskFlag(**each) for each in kept["risks"]),
                changes=None if changes is None else tuple(map(_change_from, changes)),
                commands=tuple(PromptCommand(**{**each, "argv": tuple(each["argv"])}) for each in kept["commands"]),
                walls=tuple(kept["walls"]),
                digest=kept["digest"],
                approved=kept.get("approved", ""),
                marks=tuple(ReachMark(**each) for each in kept.get("marks", ())),
                needs=tuple(Need(**each) for each in kept.get("needs", ())),
                had=tuple(kept.get("had", ())),
                signer=kept.get("signer", ""),
                last_yes=kept.get("last_yes", ""),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(
                f"A request's prompt is not as skillkit writes it ({error}). Ask again with this version."
            ) from error


def _change_from(kept: Mapping[str, Any]) -> FileChange:
    counts = tuple((str(kind), int(count)) for kind, count in kept.get("counts", ()))
    return FileChange(**{**kept, "counts": counts})
