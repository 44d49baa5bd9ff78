"""Doorway: the names about scripts that users import from here, and ScriptExecutor for callers without a manager."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.flow import Flow
from skillkit.core.models import Skill, SkillMetadata
from skillkit.core.models.detect import INTERPRETER_MAP, ScriptDetector
from skillkit.core.resolve import CallArguments
from skillkit.core.store.state import state_folder
from skillkit.core.values.policy import STANDARD, ScriptPolicy
from skillkit.core.values.questions import Approver
from skillkit.core.values.runs import ScriptExecutionResult
from skillkit.core.values.skills import ScriptMetadata

__all__ = [
    "INTERPRETER_MAP",
    "ScriptArguments",
    "ScriptDetector",
    "ScriptEnvironment",
    "ScriptExecutionResult",
    "ScriptExecutor",
    "ScriptList",
    "ScriptMetadata",
]

ScriptArguments: TypeAlias = dict[str, Any]
ScriptEnvironment: TypeAlias = dict[str, str]
ScriptList: TypeAlias = list[ScriptMetadata]

LONGEST_SECONDS = 86_400


class ScriptExecutor:
    """Runs one script of a skill through the same sequence, for callers without a manager."""

    def __init__(
        self,
        timeout: float = 30,
        max_output_size: int = 10_000_000,
        *,
        policy: ScriptPolicy = STANDARD,
        approver: Approver | None = None,
        state_dir: str | Path | None = None,
    ) -> None:
        _require_seconds(timeout)
        self.timeout = timeout
        self.max_output_size = max_output_size
        self._flow = Flow(policy, state_folder(state_dir), approver=approver)

    def execute(
        self,
        script_path: str | Path,
        arguments: object,
        skill_base_dir: str | Path,
        skill_metadata: Any,  # noqa: ANN401 - anything with name, version, allowed_tools
        timeout: float | None = None,
        *,
        argv: Sequence[str] = (),
    ) -> ScriptExecutionResult:
        """`script_path` is relative to the skill, or absolute inside it; fractions of a second are fine."""
        version = getattr(skill_metadata, "version", None)
        metadata = SkillMetadata(
            name=skill_metadata.name,
            description=getattr(skill_metadata, "description", ""),
            skill_path=Path(skill_base_dir).absolute() / "SKILL.md",
            allowed_tools=tuple(getattr(skill_metadata, "allowed_tools", None) or ()),
            version=None if version is None else str(version),
        )
        _require_seconds(self.timeout if timeout is None else timeout)
        call = CallArguments(
            script_name=str(script_path),
            arguments=arguments,
            argv=argv,
            timeout=self.timeout if timeout is None else timeout,
            output_limit=self.max_output_size,
        )
        return self._flow.execute(Skill(metadata), call)

    def close(self) -> None:
        """Removes what scripts left in their work folders and lets go of the state."""
        self._flow.close()


def _require_seconds(timeout: object) -> None:
    """Fractions too; zero, infinity and what is not a number would time out always or never."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= LONGEST_SECONDS:
        raise ConfigurationError(
            f"A timeout is a number of seconds above 0 and at most {LONGEST_SECONDS}; {timeout!r} is not. "
            "Choose one in that range."
        )
