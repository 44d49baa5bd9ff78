"""What passes on the way from needs to a prepared environment: what is wanted, what is locked, what is asked."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from skillkit.core.exceptions import SkillKitError

__all__ = [
    "INNER",
    "Locked",
    "PackagesError",
    "Plan",
    "Wanted",
    "common_name_near",
    "index_name",
    "known_of",
    "locked_in",
    "names_in",
    "npm_name",
    "size_text",
]

ENTRY = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?==(\S+?)(?:[ ;].*)?$")
HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")
INNER = "node_modules/"
NPM = "npm:"
MEGABYTE = 1_000_000


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
    aliases: tuple[str, ...] = ()
    """Other names by which packages of the lock load it."""

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


def index_name(name: str) -> str:
    """As indexes of Python packages compare names (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked_in(lock: str, kind: str) -> tuple[Locked, ...]:
    """What a lock names, in the order of names; each name and version once, wherever it stands."""
    return _locked_node(lock) if kind == "node" else _locked_python(lock)


def names_in(lock: str, kind: str) -> tuple[str, ...]:
    """Of the packages that a lock names, as needs name them."""
    prefix = NPM if kind == "node" else ""
    return tuple(f"{prefix}{each.name}" for each in locked_in(lock, kind))


def _locked_python(lock: str) -> tuple[Locked, ...]:
    found: list[tuple[str, str, list[str]]] = []
    for line in lock.splitlines():
        words = line.strip().rstrip("\\").strip()
        if entry := ENTRY.fullmatch(words):
            found.append((index_name(entry[1]), entry[2], []))
        elif (hashed := HASH.fullmatch(words)) and found:
            found[-1][2].append(hashed[1])
        elif words and not words.startswith("#"):
            raise PackagesError(f"uv wrote a lock that cannot be read: {words[:100]!r}.")
    return tuple(sorted(Locked(name, version, tuple(hashes)) for name, version, hashes in found))


def npm_name(place: str, entry: Mapping[str, Any]) -> str:
    """The package's own, where an entry of npm's lock lies under another."""
    return str(entry.get("name") or place.rpartition(INNER)[2])


def _locked_node(lock: str) -> tuple[Locked, ...]:
    seen = dict[tuple[str, str], Locked]()
    for place, entry in json.loads(lock)["packages"].items():
        if not place:
            continue
        name, version, integrity = npm_name(place, entry), entry.get("version"), entry.get("integrity")
        if entry.get("link") or not version or not integrity:
            raise PackagesError(f"{name}: the registry gives no version with a hash for it; it is not installed.")
        found = seen.get((name, str(version)), Locked(name, str(version), (str(integrity),)))
        aliases = {*found.aliases, place.rpartition(INNER)[2]} - {name}
        seen[name, str(version)] = replace(found, aliases=tuple(sorted(aliases)))
    return tuple(sorted(seen.values()))


def size_text(size: int) -> str:
    return f"{size / MEGABYTE:,.1f} MB" if size >= MEGABYTE / 10 else f"{max(1, size // 1000):,} kB"


SHORTEST = 4  # of three letters, everything is near to something


def common_name_near(name: str, kind: str) -> str:
    """Empty where the name is common itself, or near to none."""
    common = _common()[kind]
    if name in common or len(name) < SHORTEST:
        return ""
    return next((each for each in sorted(common) if len(each) >= SHORTEST and _is_one_edit(name, each)), "")


@cache
def _common() -> dict[str, frozenset[str]]:
    text = files("skillkit.packages").joinpath("common_names.json").read_text(encoding="utf-8")
    return {kind: frozenset(names.split()) for kind, names in json.loads(text).items()}


def _is_one_edit(one: str, other: str) -> bool:
    """One letter more, less or another, or two neighbours swapped."""
    if abs(len(one) - len(other)) > 1 or one == other:
        return False
    start = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    rest, more = one[start:], other[start:]
    is_swapped = len(rest) > 1 and rest[:2] == more[:2][::-1] and rest[2:] == more[2:]
    return is_swapped or rest[1:] == more[1:] or rest[1:] == more or rest == more[1:]
