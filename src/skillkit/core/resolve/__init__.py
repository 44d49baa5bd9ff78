"""Skill, script and arguments -> a ScriptCommand: one script, ready to start."""

from __future__ import annotations

from skillkit.core.resolve.command import CallArguments, resolve_command
from skillkit.core.resolve.environment import search_path
from skillkit.core.resolve.interpreters import found_program
from skillkit.core.resolve.programs import resolve_program

__all__ = ["CallArguments", "found_program", "resolve_command", "resolve_program", "search_path"]
