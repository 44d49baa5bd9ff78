"""Skill, script and arguments -> a ScriptCommand: one script, ready to start."""

from __future__ import annotations

from skillkit.core.resolve.arguments import CallArguments
from skillkit.core.resolve.command import resolve_command, resolve_program
from skillkit.core.resolve.environment import find_program, search_path, version_of
from skillkit.core.resolve.grants import require_grantable

__all__ = [
    "CallArguments",
    "find_program",
    "require_grantable",
    "resolve_command",
    "resolve_program",
    "search_path",
    "version_of",
]
