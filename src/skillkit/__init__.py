"""skillkit: the safe runtime for Agent Skills."""

from __future__ import annotations

from skillkit._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.core.detect import ScriptDetector
    from skillkit.core.exceptions import (
        ArgumentProcessingError,
        ConfigurationError,
        ContentLoadError,
        InvalidFrontmatterError,
        InvalidYAMLError,
        ManifestNotFoundError,
        ManifestParseError,
        ManifestValidationError,
        MissingRequiredFieldError,
        PathSecurityError,
        PluginError,
        SizeLimitExceededError,
        SkillInvocationError,
        SkillKitError,
        SkillNotFoundError,
        SkillParsingError,
        SkillSecurityError,
        SkillsUseError,
    )
    from skillkit.core.manager import SkillManager
    from skillkit.core.models import Skill, SkillMetadata
    from skillkit.core.paths import FilePathResolver
    from skillkit.core.values import Diagnostic, ScriptMetadata

__all__ = [
    "ArgumentProcessingError",
    "ConfigurationError",
    "ContentLoadError",
    "Diagnostic",
    "FilePathResolver",
    "InvalidFrontmatterError",
    "InvalidYAMLError",
    "ManifestNotFoundError",
    "ManifestParseError",
    "ManifestValidationError",
    "MissingRequiredFieldError",
    "PathSecurityError",
    "PluginError",
    "ScriptDetector",
    "ScriptMetadata",
    "SizeLimitExceededError",
    "Skill",
    "SkillInvocationError",
    "SkillKitError",
    "SkillManager",
    "SkillMetadata",
    "SkillNotFoundError",
    "SkillParsingError",
    "SkillSecurityError",
    "SkillsUseError",
    "__version__",
]

_HOMES = {
    "Diagnostic": "values",
    "FilePathResolver": "paths",
    "ScriptDetector": "detect",
    "ScriptMetadata": "values",
    "Skill": "models",
    "SkillManager": "manager",
    "SkillMetadata": "models",
}


def __getattr__(name: str) -> object:
    """Importing skillkit costs nothing until a name is used."""
    if name not in __all__:
        raise AttributeError(f"module 'skillkit' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"skillkit.core.{_HOMES.get(name, 'exceptions')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
