"""What passes on the way from needs to a prepared environment: what is wanted, what is locked, what is asked."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from skillkit.core.exceptions import SkillKitError

__all__ = ["Locked", "PackagesError", "Plan", "Wanted", "known_of"]


class PackagesError(SkillKitError):
    """Packages cannot be prepared: what is wrong, with which of them, and what to do."""


@dataclass(frozen=True, slots=True, order=True)
class Wanted:
    """A package that a skill needs, and what it says about versions."""

    kind: str
    """`python` or `node`."""
    name: str
    requirement: str
    """As the tool reads it: `pypdf>=4` or a range of npm's."""
    source: str
    where: str


@dataclass(frozen=True, slots=True, order=True)
class Locked:
    """One package of a lock; sizes and times as far as the index tells them."""

    name: str
    version: str
    hashes: tuple[str, ...]
    source: str = ""
    """declared, instructed or inferred; empty for what another package needs."""
    where: str = ""
    size: int | None = None
    uploaded_at: float | None = None
    resembles: str = ""
    """A much more common name that is one letter away."""

    def age_days(self, now: float) -> int | None:
        return None if self.uploaded_at is None else max(0, int((now - self.uploaded_at) / 86_400))


def known_of(wanted: tuple[Wanted, ...], known: Collection[str], index: str) -> tuple[Wanted, ...]:
    """What the index has; a guess that it does not know is left out, what a file names is an error."""
    for each in wanted:
        if each.name not in known and each.source != "inferred":
            raise PackagesError(
                f"{index} has no package {each.name!r} ({each.source}, {each.where}). "
                "Correct the name where it is written."
            )
    found = tuple(each for each in wanted if each.name in known)
    if not found:
        names = ", ".join(each.name for each in wanted)
        raise PackagesError(f"{index} has none of these packages, whose names were guessed from imports: {names}.")
    return found


@dataclass(frozen=True, slots=True)
class Plan:
    """All that would be installed of one language, before anybody was asked."""

    kind: str
    key: str
    lock: str
    interpreter: str
    wanted: tuple[Wanted, ...]
    packages: tuple[Locked, ...]
    indexes: tuple[str, ...]
    """Names of the hosts that they come from."""
    untimed: tuple[str, ...] = ()
    """Indexes that tell no upload times."""
    unknown: tuple[str, ...] = ()
    """Guessed from imports, and the index has no such package: they are left out."""
    extra: dict[str, str] = field(default_factory=dict, hash=False)
    """Files beside the lock that the tool needs, by name."""
    is_approved: bool = False
    """Whether a person said yes to this very lock before."""

    @property
    def inferred(self) -> tuple[Locked, ...]:
        return tuple(each for each in self.packages if each.source == "inferred")

    def young(self, now: float, days: int) -> tuple[Locked, ...]:
        return tuple(each for each in self.packages if (age := each.age_days(now)) is not None and age < days)

    @property
    def size(self) -> int:
        return sum(each.size or 0 for each in self.packages)
