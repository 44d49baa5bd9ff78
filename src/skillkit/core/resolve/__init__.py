"""Skill, script and arguments -> a ScriptCommand: one script, ready to start."""

from __future__ import annotations

from skillkit.core.resolve.command import CallArguments, resolve_command
from skillkit.core.resolve.interpreters import Runner

__all__ = ["CallArguments", "Runner", "resolve_command"]
