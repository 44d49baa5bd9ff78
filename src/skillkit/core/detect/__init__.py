"""Skill folder -> its scripts: what language each is written in and what it says of itself."""

from __future__ import annotations

from skillkit.core.detect.descriptions import DESCRIPTION_LIMIT, description_of
from skillkit.core.detect.detector import ScriptDetector, language_at
from skillkit.core.detect.languages import (
    INTERPRETER_MAP,
    LANGUAGE_INTERPRETERS,
    interpreters_for,
    language_of,
)

__all__ = [
    "DESCRIPTION_LIMIT",
    "INTERPRETER_MAP",
    "LANGUAGE_INTERPRETERS",
    "ScriptDetector",
    "description_of",
    "interpreters_for",
    "language_at",
    "language_of",
]
