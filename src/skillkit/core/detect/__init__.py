"""Skill folder -> its scripts: what language each is written in and what it says of itself."""

from __future__ import annotations

from skillkit.core.detect.detector import ScriptDetector, language_at
from skillkit.core.detect.languages import INTERPRETER_MAP, LANGUAGE_INTERPRETERS

__all__ = ["INTERPRETER_MAP", "LANGUAGE_INTERPRETERS", "ScriptDetector", "language_at"]
