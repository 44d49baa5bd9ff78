"""What came of a run -> the text that its row keeps, and back: a result, or the error that a caller is to see."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from skillkit.core import exceptions
from skillkit.core.exceptions import ScriptError, ScriptRefusedError, SkillKitError
from skillkit.core.values.hosts import HostUse
from skillkit.core.values.needs import Need
from skillkit.core.values.runs import Artifact, Isolation, ScriptExecutionResult

__all__ = ["error_from", "error_text", "result_from", "result_text"]

PLAIN = tuple(
    field.name
    for field in fields(ScriptExecutionResult)
    if field.name not in ("script_path", "isolation", "artifacts", "hosts", "needs")
)
# What an error of these kinds knows beside its message.
ATTRIBUTES = (
    *("reasons", "said", "skill_name", "script_name", "available", "interpreter", "allowed", "missing", "remedy"),
    *("size", "limit", "allowed_tools"),
)

Fetch = Callable[[str, str], Path]
"""A relative path and a digest -> the file on this machine."""


def result_text(result: ScriptExecutionResult, artifacts: list[tuple[str, int, str]]) -> str:
    """`artifacts` are relative paths, sizes and digests."""
    told: dict[str, Any] = {name: getattr(result, name) for name in PLAIN}
    told |= {"isolation": asdict(result.isolation), "needs": [asdict(each) for each in result.needs]}
    told |= {"hosts": [each._asdict() for each in result.hosts], "artifacts": artifacts}
    return json.dumps({"result": told})


def result_from(text: str, script_path: Path, fetch: Fetch) -> ScriptExecutionResult:
    """As it ended elsewhere; the script's path is the one of this machine."""
    told = json.loads(text)["result"]
    isolation: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in told["isolation"].items()}
    artifacts = []
    for relative, size, digest in told["artifacts"]:
        artifacts.append(Artifact(fetch(relative, digest), size, Path(relative)))
    return ScriptExecutionResult(
        **{name: told[name] for name in PLAIN},
        script_path=script_path,
        isolation=Isolation(**isolation),
        artifacts=tuple(artifacts),
        hosts=tuple(HostUse(**each) for each in told["hosts"]),
        needs=tuple(Need(**each) for each in told["needs"]),
    )


def error_text(error: BaseException) -> str:
    told = {name: getattr(error, name) for name in ATTRIBUTES if hasattr(error, name)}
    kind = type(error).__name__ if isinstance(error, SkillKitError) else "ScriptError"
    return json.dumps({"error": {"type": kind, "message": str(error), "data": told}}, default=str)


def error_from(text: str | None) -> SkillKitError | None:
    """The same kind of error with what it knew; None where there was none."""
    told = json.loads(text or "{}").get("error")
    if told is None:
        return None
    kind = getattr(exceptions, str(told["type"]), ScriptError)
    if not (isinstance(kind, type) and issubclass(kind, SkillKitError)):
        kind = ScriptRefusedError
    error: SkillKitError = kind.__new__(kind)
    SkillKitError.__init__(error, str(told["message"]))
    for name, value in told["data"].items():
        if name in ATTRIBUTES:
            setattr(error, name, tuple(value) if isinstance(value, list) else value)
    return error
