"""Skills, scripts and diagnostics -> plain structures, ready for JSON."""

from __future__ import annotations

from typing import Any

from skillkit.core.models import SkillMetadata
from skillkit.core.values import Diagnostic, ScriptMetadata

__all__ = ["diagnostic_structure", "script_structure", "skill_structure"]


def skill_structure(skill: SkillMetadata) -> dict[str, Any]:
    return {
        "name": skill.name,
        "qualified_name": skill.qualified_name,
        "description": skill.description,
        "path": str(skill.skill_path),
        "source": skill.source,
        "version": skill.version,
        "license": skill.license,
        "compatibility": skill.compatibility,
        "allowed_tools": list(skill.allowed_tools),
        "metadata": dict(skill.metadata),
        "extra": dict(skill.extra),
    }


def script_structure(script: ScriptMetadata) -> dict[str, Any]:
    return {
        "name": script.name,
        "path": script.path.as_posix(),
        "type": script.script_type,
        "description": script.description,
    }


def diagnostic_structure(diagnostic: Diagnostic) -> dict[str, Any]:
    return {
        "severity": diagnostic.severity,
        "code": diagnostic.code,
        "message": diagnostic.message,
        "path": str(diagnostic.path),
        "line": diagnostic.line,
        "remedy": diagnostic.remedy,
    }
