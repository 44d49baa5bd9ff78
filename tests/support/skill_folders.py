"""Makers of skill folders for tests: real files, nothing more."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from skillkit import testing
from skillkit.core.find.index import Discovery, discover
from skillkit.core.find.reading import Reading, read_skill_file
from skillkit.core.find.roots import PATH, Root
from skillkit.core.models import Skill, SkillMetadata
from skillkit.core.values.skills import Diagnostic

__all__ = ["codes", "discovered", "metadata_of", "reading_of_text", "settled", "skill_folder", "skill_in"]


def skill_folder(
    parent: Path,
    name: str,
    *,
    frontmatter: str | None = None,
    body: str = "Do it.\n",
    files: Mapping[str, str] | None = None,
) -> Path:
    """`parent/name` with a SKILL.md, and whatever other files are given; the frontmatter names it by default."""
    more = dict(files or {})
    if frontmatter is not None:
        more["SKILL.md"] = f"---\n{frontmatter.rstrip()}\n---\n{body}"
    folder = parent / name
    return testing.skill_folder(folder.parent, folder.name, more, description=f"Skill {folder.name}.", body=body)


def discovered(root: Path, cache: Path | None = None) -> Discovery:
    """What one folder holds; each call has a cache of its own unless one is given."""
    return discover([Root(root, PATH)], cache_folder=cache or root.parent / f".cache-{root.name}")


def metadata_of(found: Discovery) -> dict[str, SkillMetadata]:
    return {skill.name: skill.metadata for skill in found.skills}


def codes(diagnostics: list[Diagnostic]) -> list[str]:
    return [diagnostic.code for diagnostic in diagnostics]


def reading_of_text(folder: Path, content: bytes) -> tuple[Reading, list[Diagnostic]]:
    """What discovery makes of these bytes as `folder/SKILL.md`."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "SKILL.md"
    file.write_bytes(content)
    reading = read_skill_file(str(file), file.stat())
    return reading, reading.diagnostics(str(file))


def settled(status: os.stat_result, *, seconds: int = 60) -> os.stat_result:
    """The same status as if the file had been left alone for a while."""
    values = list(status)
    for index in (stat.ST_MTIME, stat.ST_CTIME):
        values[index] -= seconds
    extra = {
        "st_mtime_ns": status.st_mtime_ns - seconds * 10**9,
        "st_ctime_ns": status.st_ctime_ns - seconds * 10**9,
    }
    return os.stat_result(values, extra)


def skill_in(folder: Path, files: Mapping[str, str], *, head: str = "", body: str = "") -> Skill:
    """The skill in a folder that is made for it; `head` are lines of the frontmatter below name and description."""
    frontmatter = f"name: {folder.name.lower()}\ndescription: A skill.\n{head}"
    made = skill_folder(folder.parent, folder.name, frontmatter=frontmatter, body=body, files=files)
    [found] = [each for each in discovered(made).skills if each.metadata.base_directory == made.resolve()]
    return Skill(found.metadata)
