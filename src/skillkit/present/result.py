"""A result -> a plain structure, ready for JSON."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from skillkit.core.runs import ScriptExecutionResult

__all__ = ["result_structure", "written"]


def written(path: Path) -> str:
    """A name that is not UTF-8 is shown with replacement characters; JSON could not carry it."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def result_structure(result: ScriptExecutionResult) -> dict[str, Any]:
    structure = {name: value for name, value in asdict(result).items() if name not in ("artifacts", "script_path")}
    return {
        "success": result.success,
        **structure,
        "script_path": written(result.script_path),
        "artifacts": [{"path": written(item.path), "size": item.size} for item in result.artifacts],
    }
