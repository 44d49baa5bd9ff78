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
├── ModelUnavailableError(is_about_tools)
├── StateUnavailableError
├── SourceUnavailableError
├── RequestClosedError(request_id, option_id, channel)
├── SkillSecurityError
│   ├── PathSecurityError(requested_path, base_directory)
│   ├── SizeLimitExceededError(size, limit)
│   ├── SourceRefusedError
│   └── ToolRestrictionError(skill_name, allowed_tools)
└── ScriptError
    ├── ScriptNotFoundError(skill_name, script_name, available)
    ├── ScriptPermissionError
    ├── InterpreterNotFoundError(interpreter)
    ├── InterpreterNotAllowedError(interpreter, allowed)
    ├── ArgumentSerializationError
    ├── ArgumentSizeError(size, limit)
    ├── ScriptRefusedError(reasons)
    │   ├── ApprovalDeclinedError
    │   ├── ApprovalUnavailableError
    │   │   └── ApprovalWaitingError
    │   └── ContentChangedError
    ├── SandboxUnavailableError(missing, remedy)
    ├── RunLostError(run_id)
    └── AuditUnavailableError(result)
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Self

__all__ = [
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
    "InterpreterNotAllowedError",
    "InterpreterNotFoundError",
    "InvalidFrontmatterError",
    "InvalidYAMLError",
    "ManifestNotFoundError",
    "ManifestParseError",
    "ManifestValidationError",
    "MissingRequiredFieldError",
    "ModelUnavailableError",
    "PathSecurityError",
    "PluginError",
    "RequestClosedError",
    "RunLostError",
    "SandboxUnavailableError",
    "ScriptError",
    "ScriptNotFoundError",
    "ScriptPermissionError",
    "ScriptRefusedError",
    "SizeLimitExceededError",
    "SkillInvocationError",
    "SkillKitError",
    "SkillNotFoundError",
    "SkillParsingError",
    "SkillSecurityError",
    "SkillsUseError",
    "SourceRefusedError",
    "SourceUnavailableError",
    "StateUnavailableError",
    "ToolRestrictionError",
]


MESSAGE_CHARACTERS = 4_000
REMEDY_CHARACTERS = 1_000  # of these, at the end: there a message says what to do


class SkillKitError(Exception):
    """Base of every error skillkit raises on purpose; never raised itself."""

    def __init__(self, message: str = "") -> None:
        super().__init__(_sayable(message))


def _sayable(message: str) -> str:
    """A message may name what a caller sent: however long that was, and even if it was no text that can be written."""
    if len(message) > MESSAGE_CHARACTERS:
        message = f"{message[: MESSAGE_CHARACTERS - REMEDY_CHARACTERS]} … {message[-REMEDY_CHARACTERS:]}"
    return message if message.isascii() else message.encode("utf-8", "backslashreplace").decode("utf-8")


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
        self, message: str, *, field_name: str = "", path: Path | None = None, line: int | None = None, remedy: str = ""
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


class ModelUnavailableError(SkillKitError):
    """A model's endpoint gave no answer, or only a part of one."""

    def __init__(self, message: str, *, is_about_tools: bool = False) -> None:
        super().__init__(message)
        self.is_about_tools = is_about_tools


class SourceUnavailableError(SkillKitError):
    """Where a skill comes from cannot be reached, or does not have what was asked for."""


class StateUnavailableError(SkillKitError):
    """The world's state file cannot be opened, read or written."""


class RequestClosedError(SkillKitError):
    """Nobody waits for this answer: it was given before, the request expired, or there is none of this id."""

    def __init__(self, message: str, *, request_id: str = "", option_id: str = "", channel: str = "") -> None:
        super().__init__(message)
        self.request_id = request_id
        self.option_id = option_id
        self.channel = channel


class SourceRefusedError(SkillSecurityError):
    """What a source offers is not taken: by a file in it, by its signer, or because a change here would be lost."""


class ToolRestrictionError(SkillSecurityError):
    """The skill's `allowed-tools` do not include the tool that runs scripts."""

    def __init__(self, message: str, *, skill_name: str = "", allowed_tools: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.skill_name = skill_name
        self.allowed_tools = tuple(allowed_tools)


class ScriptError(SkillKitError):
    """A script cannot or may not be run."""


class ScriptNotFoundError(ScriptError):
    """No script fits the name, or several do; the message lists them."""

    def __init__(
        self, message: str, *, skill_name: str = "", script_name: str = "", available: Iterable[str] = ()
    ) -> None:
        super().__init__(message)
        self.skill_name = skill_name
        self.script_name = script_name
        self.available = tuple(available)


class ScriptPermissionError(ScriptError):
    """The script's file is of a kind that is never run: setuid, setgid, not a regular file."""


class InterpreterNotFoundError(ScriptError):
    """The program that runs the script is not on PATH."""

    def __init__(self, message: str, *, interpreter: str = "") -> None:
        super().__init__(message)
        self.interpreter = interpreter


class InterpreterNotAllowedError(ScriptError):
    """Policy does not list the program that runs the script."""

    def __init__(self, message: str, *, interpreter: str = "", allowed: Iterable[str] = (), remedy: str = "") -> None:
        """`remedy` is the command by which a person gives it to this skill, where policy lets them."""
        super().__init__(f"{message} {remedy}" if remedy else message)
        self.interpreter = interpreter
        self.allowed = tuple(allowed)
        self.remedy = remedy


class ArgumentSerializationError(ScriptError):
    """The arguments cannot be written as JSON or passed as words."""


class ArgumentSizeError(ScriptError):
    """The arguments are larger than a run takes."""

    def __init__(self, message: str, *, size: int = 0, limit: int = 0) -> None:
        super().__init__(message)
        self.size = size
        self.limit = limit


class ScriptRefusedError(ScriptError):
    """Policy says no."""

    _opening = ""

    def __init__(self, message: str, *, reasons: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.reasons = tuple(reasons)

    @classmethod
    def because(cls, reason: str, remedy: str = "", *, about: str = "") -> Self:
        """One reason, without its full stop, and what to do; `about` is a sentence that goes ahead."""
        sentences = (about, f"{cls._opening}{reason}.", remedy)
        return cls(" ".join(each for each in sentences if each), reasons=[reason])


class ApprovalDeclinedError(ScriptRefusedError):
    """A person was asked and said no; `said` is the reason that they gave, if any."""

    def __init__(self, message: str, *, reasons: Iterable[str] = (), said: str = "") -> None:
        super().__init__(message, reasons=reasons)
        self.said = said


class ApprovalUnavailableError(ScriptRefusedError):
    """A person had to be asked and could not be."""

    _opening = "Not approved: "


class ApprovalWaitingError(ApprovalUnavailableError):
    """A person is asked and has not answered yet; the same call, made again, takes their answer."""

    _opening = "Not approved yet: "


class ContentChangedError(ScriptRefusedError):
    """The skill is not what it was when the run was prepared."""


class SandboxUnavailableError(ScriptError):
    """A limit was asked for that this machine cannot enforce."""

    def __init__(self, message: str, *, missing: Iterable[str] = (), remedy: str = "") -> None:
        super().__init__(message)
        self.missing = tuple(missing)
        self.remedy = remedy

    @classmethod
    def because(cls, reason: str, remedy: str, *, missing: Iterable[str]) -> Self:
        """One reason, without its full stop, and what to do."""
        return cls(f"{reason}. {remedy}", missing=missing, remedy=remedy)


class RunLostError(ScriptError):
    """A run started on a worker, and nobody knows how it ended; it is never run again by itself."""

    def __init__(self, message: str, *, run_id: str = "") -> None:
        super().__init__(message)
        self.run_id = run_id


class AuditUnavailableError(ScriptError):
    """A run cannot be recorded; without its `started` record it does not start."""

    def __init__(self, message: str, *, result: object | None = None) -> None:
        super().__init__(message)
        self.result = result
