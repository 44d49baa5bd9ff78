"""What a skill uses beyond its own folder, and what a person gave it: needs and grants."""

from __future__ import annotations

import re
from dataclasses import dataclass

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.values.hosts import is_private_host

__all__ = ["ANY_HOST", "GRANT_KINDS", "NEED_KINDS", "SOURCES", "Grant", "Need"]

GRANT_KINDS = ("host", "secret", "variable", "read", "write", "working_directory", "interpreter")
"""What a person can give a skill, one thing at a time; `read` and `write` name a file or folder."""

NEED_KINDS = (*GRANT_KINDS, "package", "home", "loopback", "program")
"""What a skill may need; the last four cannot be granted: they are prepared, on by default, or installed."""

SOURCES = ("declared", "instructed", "inferred")
"""How a need is known, the surest first: a field says so, the instructions say so, or code was read."""

ANY_HOST = "*"
"""The name of a need of hosts that nobody can name, or of too many to look at. As a grant it would open them all."""

_PRIVATE = " private"
_CONTENT = re.compile(r"(?s)(.+) sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """One thing that a skill may use. Its id is how answers, the store and records name it."""

    kind: str
    name: str
    is_private: bool = False
    """For a host alone: its name may lead to private addresses."""
    content: str = ""
    """For a folder with code that comes with skills: the digest of what it held; once that changes nothing is given."""

    def __post_init__(self) -> None:
        if self.kind not in GRANT_KINDS:
            raise ConfigurationError(f"{self.kind!r} cannot be granted; one of these can: {', '.join(GRANT_KINDS)}.")
        if not self.name:
            raise ConfigurationError(f"A grant of kind {self.kind} names nothing; say what is granted.")
        if self.is_private and self.kind != "host":
            raise ConfigurationError(f"Only a host can be private; {self.kind} {self.name!r} cannot.")
        if self.kind == "read" and _CONTENT.fullmatch(self.name):
            raise ConfigurationError(f"{self.name!r} ends like the digest of a folder; rename it, and grant it then.")

    @property
    def id(self) -> str:
        content = f" sha256:{self.content}" if self.content else ""
        return f"{self.kind}:{self.name}{_PRIVATE if self.is_private else ''}{content}"

    @classmethod
    def from_id(cls, text: str) -> Grant:
        """The grant with this id; a host's name has no spaces, so that `private` at its end is not part of it."""
        kind, separator, name = text.partition(":")
        if not separator:
            raise ConfigurationError(f"{text!r} names no grant; write KIND:NAME, as in host:api.example.com.")
        if kind == "read" and (bound := _CONTENT.fullmatch(name)):
            return cls(kind, bound[1], content=bound[2])
        is_private = kind == "host" and name.endswith(_PRIVATE)
        return cls(kind, name.removesuffix(_PRIVATE) if is_private else name, is_private)


@dataclass(frozen=True, slots=True)
class Need:
    """Something a skill uses beyond its folder, where that was found, and whether it is there for it here."""

    kind: str
    name: str
    source: str
    where: str
    """File and line, as `SKILL.md:12`."""
    is_met: bool = False
    remedy: str = ""
    """The one command or act that meets it; empty where it is met."""

    def __post_init__(self) -> None:
        if self.kind not in NEED_KINDS or self.source not in SOURCES:
            raise ValueError(f"{self.kind} {self.source}: a need is one of {NEED_KINDS}, known as one of {SOURCES}.")

    @property
    def grant(self) -> Grant | None:
        """What would meet it, where a person can give it in one tick; who needs an unknown host is not given all."""
        is_unknown = self.kind == "host" and self.name.startswith(ANY_HOST) and not self.name.startswith(f"{ANY_HOST}.")
        if self.kind not in GRANT_KINDS or is_unknown:
            return None
        return Grant(self.kind, self.name, self.kind == "host" and is_private_host(self.name))
