"""skillkit: the safe runtime for Agent Skills."""

from __future__ import annotations

from skillkit._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.core.exceptions import (
        ApprovalDeclinedError,
        ApprovalUnavailableError,
        ApprovalWaitingError,
        ArgumentProcessingError,
        ArgumentSerializationError,
        ArgumentSizeError,
        AuditUnavailableError,
        ConfigurationError,
        ContentChangedError,
        ContentLoadError,
        InterpreterNotAllowedError,
        InterpreterNotFoundError,
        InvalidFrontmatterError,
        InvalidYAMLError,
        ManifestNotFoundError,
        ManifestParseError,
        ManifestValidationError,
        MissingRequiredFieldError,
        ModelUnavailableError,
        PathSecurityError,
        PluginError,
        RequestClosedError,
        RunLostError,
        SandboxUnavailableError,
        ScriptError,
        ScriptNotFoundError,
        ScriptPermissionError,
        ScriptRefusedError,
        SizeLimitExceededError,
        SkillInvocationError,
        SkillKitError,
        SkillNotFoundError,
        SkillParsingError,
        SkillSecurityError,
        SkillsUseError,
        SourceRefusedError,
        SourceUnavailableError,
        StateUnavailableError,
        ToolRestrictionError,
    )
    from skillkit.core.manager import SkillManager
    from skillkit.core.models import Skill, SkillMetadata
    from skillkit.core.models.detect import ScriptDetector
    from skillkit.core.paths import FilePathResolver
    from skillkit.core.scripts import ScriptExecutor
    from skillkit.core.store.world import World
    from skillkit.core.values.needs import Grant, Need
    from skillkit.core.values.policy import (
        GUARDED,
        LOCKED,
        STANDARD,
        TRUSTED,
        Limits,
        ScriptPolicy,
    )
    from skillkit.core.values.questions import Option, OptionAnswer, OptionRequest
    from skillkit.core.values.runs import ScriptExecutionResult
    from skillkit.core.values.skills import Diagnostic, ScriptMetadata

__all__ = [
    "GUARDED",
    "LOCKED",
    "STANDARD",
    "TRUSTED",
    "ApprovalDeclinedError",
    "ApprovalUnavailableError",
    "ApprovalWaitingError",
    "ArgumentProcessingError",
    "ArgumentSerializationError",
    "ArgumentSizeError",
    "AuditUnavailableError",
    "ConfigurationError",
    "ContentChangedError",
    "ContentLoadError",
    "Diagnostic",
    "FilePathResolver",
    "Grant",
    "InterpreterNotAllowedError",
    "InterpreterNotFoundError",
    "InvalidFrontmatterError",
    "InvalidYAMLError",
    "Limits",
    "ManifestNotFoundError",
    "ManifestParseError",
    "ManifestValidationError",
    "MissingRequiredFieldError",
    "ModelUnavailableError",
    "Need",
    "Option",
    "OptionAnswer",
    "OptionRequest",
    "PathSecurityError",
    "PluginError",
    "RequestClosedError",
    "RunLostError",
    "SandboxUnavailableError",
    "ScriptDetector",
    "ScriptError",
    "ScriptExecutionResult",
    "ScriptExecutor",
    "ScriptMetadata",
    "ScriptNotFoundError",
    "ScriptPermissionError",
    "ScriptPolicy",
    "ScriptRefusedError",
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
    "SourceRefusedError",
    "SourceUnavailableError",
    "StateUnavailableError",
    "ToolRestrictionError",
    "World",
    "__version__",
]

_HOMES = {
    "Diagnostic": "values.skills",
    "FilePathResolver": "paths",
    "GUARDED": "values.policy",
    "Grant": "values.needs",
    "LOCKED": "values.policy",
    "Limits": "values.policy",
    "Need": "values.needs",
    "Option": "values.questions",
    "OptionAnswer": "values.questions",
    "OptionRequest": "values.questions",
    "STANDARD": "values.policy",
    "ScriptDetector": "models.detect",
    "ScriptExecutionResult": "values.runs",
    "ScriptExecutor": "scripts",
    "ScriptMetadata": "values.skills",
    "ScriptPolicy": "values.policy",
    "Skill": "models",
    "SkillManager": "manager",
    "SkillMetadata": "models",
    "TRUSTED": "values.policy",
    "World": "store.world",
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
