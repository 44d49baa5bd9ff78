"""Roots -> every skill below them in order of precedence, which one a name means, and what was wrong on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from skillkit.core.exceptions import SkillKitError, SkillNotFoundError
from skillkit.core.find.reading import Reading, ReadingCache, file_key, read_skill_file
from skillkit.core.find.roots import Root
from skillkit.core.find.walk import Walk
from skillkit.core.models import SkillMetadata
from skillkit.core.values.skills import Diagnostic
from skillkit.core.values.text import near_names

__all__ = ["Discovery", "FoundSkill", "SkillIndex", "discover"]

SHOWN_NAMES = 20


class FoundSkill:
    """A skill known by name; its metadata is made when somebody asks for it."""

    __slots__ = ("_metadata", "name", "path", "reading", "root")

    def __init__(self, path: str, reading: Reading, root: Root) -> None:
        self.name = reading.name
        self.path = path
        self.reading = reading
        self.root = root
        self._metadata: SkillMetadata | None = None

    @property
    def metadata(self) -> SkillMetadata:
        if self._metadata is None:
            self._metadata = self.reading.metadata(self.path, self.root)
        return self._metadata

    @property
    def qualified_name(self) -> str:
        """`source:name`, by which a skill stays reachable when another one has its name."""
        return f"{self.root.source}:{self.name}"

    @property
    def host_name(self) -> str:
        """`source/host:name`, where several hosts have a skill of this name in one source; else as qualified."""
        return f"{self.root.source}/{self.root.host}:{self.name}" if self.root.host else self.qualified_name

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    def content_digest(self) -> str:
        """Of everything in its folder; empty for one that cannot be read as a whole, which is like no other."""
        from skillkit.core.models.digest import manifest_of

        try:
            return manifest_of(Path(self.folder)).digest
        except SkillKitError:
            return ""


@dataclass(slots=True)
class Discovery:
    """All skills in order of precedence, losers of a name included."""

    skills: list[FoundSkill] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)


def discover(
    roots: Iterable[Root], *, cache_folder: Path, on_progress: Callable[[int], None] | None = None
) -> Discovery:
    """The walk always happens; only parsing is cached. A folder reached twice counts once."""
    found = Discovery()
    seen: set[str] = set()
    for root in roots:
        walk = Walk(str(root.path), on_progress)
        cache = ReadingCache(cache_folder, walk.root)
        cache.load()
        for path, real_folder, status in walk.files():
            reading = cache.get(path, file_key(status))
            if reading is None:
                reading = read_skill_file(path, status)
                cache.put(path, status, reading)
            if real_folder in seen:
                continue
            seen.add(real_folder)
            found.diagnostics.extend(reading.diagnostics(path))
            if reading.name:
                found.skills.append(FoundSkill(path, reading, root))
        found.diagnostics.extend(walk.problems)
        cache.save()
    return found


class SkillIndex:
    """The first skill of a name has it; the others answer to `source:name`, `source/host:name`, or their folder's path.

    A copy, which has the same name and the same content as one before it, is another place of that one.
    """

    def __init__(self, skills: Iterable[FoundSkill], diagnostics: Iterable[Diagnostic] = ()) -> None:
        self.everything = list(skills)
        self._found = list(diagnostics)
        self.winners: dict[str, FoundSkill] = {}
        self.qualified: dict[str, FoundSkill] = {}
        for skill in self.everything:
            self.qualified.setdefault(skill.qualified_name, skill)
            self.qualified.setdefault(skill.host_name, skill)
            self.winners.setdefault(skill.name, skill)

    @cached_property
    def diagnostics(self) -> list[Diagnostic]:
        """What was found wrong, and every skill that another one shadows; made at first use: that reads copies."""
        shadowed = (places[0] for places in self.distinct if self.winners[places[0].name] is not places[0])
        return [*self._found, *map(self._shadowed, shadowed)]

    @cached_property
    def distinct(self) -> list[list[FoundSkill]]:
        """Each skill once, with its copies behind it, in order of precedence."""
        alike = Counter((skill.name, skill.reading.fields) for skill in self.everything)
        places: dict[object, list[FoundSkill]] = {}
        for skill in self.everything:
            may_be_copy = alike[skill.name, skill.reading.fields] > 1
            digest = skill.content_digest() if may_be_copy else ""
            places.setdefault((skill.name, digest) if digest else skill, []).append(skill)
        return list(places.values())

    def _shadowed(self, skill: FoundSkill) -> Diagnostic:
        winner = self.winners[skill.name]
        return Diagnostic(
            "warning",
            "shadowed",
            f"Another skill has the name {skill.name!r} and comes first: {winner.path}.",
            skill.metadata.skill_path,
            remedy=f"It stays reachable as {self.reachable_name(skill)!r}.",
        )

    def reachable_name(self, skill: FoundSkill) -> str:
        """The shortest name that means this skill and no other."""
        names = (skill.name, skill.qualified_name, skill.host_name)
        return next((name for name in names if self.named(name) is skill), skill.folder)

    def named(self, name: str) -> FoundSkill | None:
        """A qualified name counts first: no skill takes another's by calling itself `project:deploy`."""
        return self.qualified.get(name) or self.winners.get(name)

    def get(self, name: str) -> FoundSkill:
        """By name, qualified name, the name of its folder, or its folder's path."""
        # No skill takes another's folder by calling itself so.
        skill = self._by_folder(name) if name.startswith("/") else None
        skill = skill or self.named(name) or self._by_folder(name)
        if skill is None:
            raise self._missing(name)
        return skill

    def _by_folder(self, name: str) -> FoundSkill | None:
        named = [skill for skill in self.everything if name in (skill.folder, skill.folder.rpartition("/")[2])]
        return named[0] if len(named) == 1 else None

    def _missing(self, name: str) -> SkillNotFoundError:
        available = sorted(self.winners)
        message = f"No skill is named {name!r}."
        near = near_names(name, available)
        skipped = [d for d in self._found if d.severity == "error" and d.path.parent.name == name]
        if skipped:
            message += f" One in a folder of that name was skipped: {skipped[0]}"
        elif near:
            message += f" Did you mean {near[0]!r}?"
        elif available:
            more = ", ..." if len(available) > SHOWN_NAMES else ""
            message += f" There are: {', '.join(available[:SHOWN_NAMES])}{more}."
        else:
            message += " No skills were found at all; 'skillkit list' shows where it looked."
        return SkillNotFoundError(message, skill_name=name, available=available)
