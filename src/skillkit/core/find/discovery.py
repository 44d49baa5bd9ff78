"""Roots -> every skill below them with its place in the order, and what was wrong on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from skillkit.core.find.cache import ReadingCache, file_key
from skillkit.core.find.reading import Reading, read_skill_file
from skillkit.core.find.roots import Root
from skillkit.core.find.walk import FoundFile, Walk
from skillkit.core.models import SkillMetadata
from skillkit.core.values import Diagnostic

__all__ = ["Discovery", "FoundSkill", "discover"]


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
    def folder(self) -> str:
        return self.path.rpartition("/")[0]


class Discovery:
    """All skills in order of precedence, losers of a name included."""

    def __init__(self) -> None:
        self.skills: list[FoundSkill] = []
        self.diagnostics: list[Diagnostic] = []


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
        for file in walk.files():
            path, real_folder, _ = file
            reading = reading_of(file, cache)
            if real_folder in seen:
                continue
            seen.add(real_folder)
            found.diagnostics.extend(reading.diagnostics(path))
            if reading.name:
                found.skills.append(FoundSkill(path, reading, root))
        found.diagnostics.extend(walk.problems)
        cache.save()
    return found


def reading_of(file: FoundFile, cache: ReadingCache) -> Reading:
    path, _, status = file
    reading = cache.get(path, file_key(status))
    if reading is None:
        reading = read_skill_file(path, status)
        cache.put(path, status, reading)
    return reading
