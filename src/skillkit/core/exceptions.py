"""Every error skillkit raises on purpose, with the data a caller needs as attributes.

SkillKitError (alias SkillsUseError)
├── ConfigurationError
├── SkillNotFoundError(skill_name, available)
├── SkillParsingError(path, line, remedy)
│   ├── InvalidYAMLError(line, column)
│   ├── MissingRequiredFieldError(field_name)
│   └── InvalidFrontmatterError
├── SkillInvocationError
│   ├── ArgumentProcessingError
│   └── ContentLoadError
├── PluginError
│   ├── ManifestNotFoundError
│   ├── ManifestParseError
│   └── ManifestValidationError
└── SkillSecurityError
    ├── PathSecurityError(requested_path, base_directory)
    └── SizeLimitExceededError(size, limit)
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = [
    "ArgumentProcessingError",
    "ConfigurationError",
    "ContentLoadError",
    "InvalidFrontmatterError",
    "InvalidYAMLError",
    "ManifestNotFoundError",
    "ManifestParseError",
    "ManifestValidationError",
    "MissingRequiredFieldError",
    "PathSecurityError",
    "PluginError",
    "SizeLimitExceededError",
    "SkillInvocationError",
    "SkillKitError",
    "SkillNotFoundError",
    "SkillParsingError",
    "SkillSecurityError",
    "SkillsUseError",
]


class SkillKitError(Exception):
    """Base of every error skillkit raises on purpose; never raised itself."""


SkillsUseError = SkillKitError


class ConfigurationError(SkillKitError):
    """A setting is impossible: a path that does not exist, a timeout out of range."""


class SkillNotFoundError(SkillKitError):
    """No skill has this name; the message lists what exists."""

    def __init__(self, message: str, *, skill_name: str = "", available: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.skill_name = skill_name
        self.available = tuple(available)


class SkillParsingError(SkillKitError):
    """A SKILL.md cannot be read even by the tolerant reader."""

    code = "unreadable"

    def __init__(self, message: str, *, path: Path | None = None, line: int | None = None, remedy: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.line = line
        self.remedy = remedy


class InvalidYAMLError(SkillParsingError):
    """The frontmatter is not YAML, and no repair made it so."""

    code = "invalid-yaml"

    def __init__(
        self,
        message: str,
        *,
        path: Path | None = None,
        line: int | None = None,
        column: int | None = None,
        remedy: str = "",
    ) -> None:
        super().__init__(message, path=path, line=line, remedy=remedy)
        self.column = column


class MissingRequiredFieldError(SkillParsingError):
    """A field that a skill cannot do without is absent or empty."""

    code = "missing-field"

    def __init__(
        self,
        message: str,
        *,
        field_name: str = "",
        path: Path | None = None,
        line: int | None = None,
        remedy: str = "",
    ) -> None:
        super().__init__(message, path=path, line=line, remedy=remedy)
        self.field_name = field_name


class InvalidFrontmatterError(SkillParsingError):
    """There is no frontmatter, or it is never closed, or it is not a mapping."""

    code = "no-frontmatter"


class SkillInvocationError(SkillKitError):
    """A skill was found but its text cannot be given to an agent."""


class ArgumentProcessingError(SkillInvocationError):
    """The arguments for a skill's text cannot be substituted."""


class ContentLoadError(SkillInvocationError):
    """A file of the skill cannot be read any more."""


class PluginError(SkillKitError):
    """A plugin folder cannot be used."""


class ManifestNotFoundError(PluginError):
    """A plugin folder has no `.claude-plugin/plugin.json`."""


class ManifestParseError(PluginError):
    """A plugin manifest is not a JSON object."""


class ManifestValidationError(PluginError):
    """A plugin manifest names something impossible."""


class SkillSecurityError(SkillKitError):
    """A request crossed a line that protects the user."""


class PathSecurityError(SkillSecurityError):
    """A path leads, or may lead, outside the skill."""

    def __init__(self, message: str, *, requested_path: str = "", base_directory: Path | None = None) -> None:
        super().__init__(message)
        self.requested_path = requested_path
        self.base_directory = base_directory


class SizeLimitExceededError(SkillSecurityError):
    """A file is larger than skillkit is willing to read."""

    def __init__(self, message: str, *, size: int = 0, limit: int = 0) -> None:
        super().__init__(message)
        self.size = size
        self.limit = limit
