"""Locked skills -> what their sources give: as they are now, or exactly as locked."""

from __future__ import annotations

from collections.abc import Mapping

from skillkit.sources.choosing import SkillContent, skill_at
from skillkit.sources.given import Source
from skillkit.sources.home import SkillHome
from skillkit.sources.lock import Locked

__all__ = ["fetch_locked"]


def fetch_locked(home: SkillHome, wanted: Mapping[str, Locked], *, exactly: bool) -> list[tuple[str, SkillContent]]:
    """By name; each source is fetched once, however many skills came from it."""
    by_source: dict[tuple[Source, str], list[str]] = {}
    for name, entry in wanted.items():
        version = entry.commit if exactly else ""
        by_source.setdefault((entry.as_source()._replace(path=""), version), []).append(name)
    found = []
    for (source, version), names in by_source.items():
        with home.opened(source, version=version, wanted=[wanted[name].path for name in names]) as tree:
            found += [(name, skill_at(tree, wanted[name].path, name)) for name in names]
    return sorted(found, key=lambda each: each[0])
