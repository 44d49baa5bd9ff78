"""Doorway: the names about scripts that users import from here."""

from __future__ import annotations

from typing import Any, TypeAlias

from skillkit.core.detect import INTERPRETER_MAP, ScriptDetector
from skillkit.core.executor import ScriptExecutor
from skillkit.core.runs import ScriptExecutionResult
from skillkit.core.values import ScriptMetadata

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
