"""Skill and SkillMetadata: what was found, and its text and scripts when somebody asks for them."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillkit.core.exceptions import ContentLoadError, SizeLimitExceededError, SkillParsingError
from skillkit.core.values.skills import ScriptMetadata
from skillkit.core.values.text import grouped

__all__ = ["SKILL_FILE_LIMIT_BYTES", "Skill", "SkillMetadata", "open_at_once", "skill_file_bytes"]

SKILL_FILE_LIMIT_BYTES = 10_000_000


@dataclass(frozen=True, slots=True)
class SkillMetadata:
    """What the frontmatter says; `name` is a label and never becomes a path."""

    name: str
    description: str
    skill_path: Path
    """The SKILL.md file, absolute."""
    allowed_tools: tuple[str, ...] = ()
    """Rules such as `Read` or `Bash(git:*)`, scopes kept; empty means no restriction."""
    version: str | None = None
    license: str | None = None
    compatibility: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Every field that the open standard does not name, as written."""
    source: str = "path"
    """Where it was found: `project`, `agent`, `system`, a plugin's name, or `path`."""
    plugin_root: Path | None = None
    host: str = ""
    """The agent host in whose folder it lies, such as `codex`; empty where that is no single one's."""

    @property
    def base_directory(self) -> Path:
        return self.skill_path.parent

    @property
    def qualified_name(self) -> str:
        """`source:name`, by which a skill stays reachable when another one has its name."""
        return f"{self.source}:{self.name}"


@dataclass(slots=True)
class Skill:
    """A skill in use; text and scripts are read at first use and kept for its life."""

    metadata: SkillMetadata
    base_directory: Path = field(default=None, repr=False, compare=False)  # type: ignore[assignment]  # filled below
    """The folder of its SKILL.md unless given. One value for its life: what a path works out about itself, it keeps."""
    _content: str | None = field(default=None, init=False, repr=False, compare=False)
    _scripts: list[ScriptMetadata] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.base_directory is None:
            self.base_directory = self.metadata.base_directory
        else:
            self.base_directory = Path(self.base_directory).absolute()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def base_dir(self) -> Path:
        """The same as `base_directory`."""
        return self.base_directory

    @property
    def content(self) -> str:
        """The instructions, without the frontmatter."""
        if self._content is None:
            from skillkit.core.models.frontmatter import read_frontmatter

            path = self.metadata.skill_path
            try:
                self._content = read_frontmatter(skill_file_bytes(path)).body
            except SkillParsingError as error:
                raise ContentLoadError(
                    f"{path} is no skill any more: {error} Correct it, or discover the skills again."
                ) from error
        return self._content

    @property
    def scripts(self) -> list[ScriptMetadata]:
        """What its folder holds that can be run."""
        if self._scripts is None:
            from skillkit.core.models.detect import ScriptDetector

            self._scripts = ScriptDetector().detect_scripts(self.base_directory, self._readable_content)
        return self._scripts

    def _readable_content(self) -> str:
        """Empty where it cannot be read: what lies in the folder can be told without it."""
        from skillkit.core.models.detect import SHORTAGES

        try:
            return self.content
        except (ContentLoadError, SizeLimitExceededError) as error:
            if getattr(error.__cause__, "errno", None) in SHORTAGES:
                raise
            return ""

    @property
    def digest(self) -> str:
        """Of everything in its folder as it is now, by which approvals know it; looked at each time."""
        from skillkit.core.models.digest import manifest_of

        return manifest_of(self.base_directory).digest


def open_at_once(path: str, flags: int) -> int:
    """For `open`: something else may stand there since stat, and a pipe must not make us wait."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def skill_file_bytes(path: Path) -> bytes:
    """The whole file, refused when it is larger than instructions can be."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ContentLoadError(f"{path} is not a regular file. Replace it by a text file.")
        with open(path, "rb", opener=open_at_once) as file:
            raw = file.read(SKILL_FILE_LIMIT_BYTES + 1) or b""
    except (OSError, ValueError) as error:  # gone; a name that the system cannot be told
        reason = error.strerror if isinstance(error, OSError) else error
        raise ContentLoadError(f"{path} cannot be read any more: {reason}. Discover the skills again.") from error
    if len(raw) > SKILL_FILE_LIMIT_BYTES:
        raise SizeLimitExceededError(
            f"{path} is larger than {grouped(SKILL_FILE_LIMIT_BYTES)} bytes. Move long texts into references/.",
            size=max(status.st_size, len(raw)),
            limit=SKILL_FILE_LIMIT_BYTES,
        )
    return raw
