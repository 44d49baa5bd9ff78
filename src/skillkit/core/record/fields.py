"""A prepared run and its result -> the fields of their records; the log masks and cuts them."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from skillkit.core.exceptions import SkillKitError
from skillkit.core.questions import OptionAnswer
from skillkit.core.record.redaction import plain_text, redacted_arguments
from skillkit.core.runs import Decision, Isolation, PreparedRun, ProcessExit, ScriptCommand, ScriptExecutionResult

__all__ = ["end_fields", "error_text", "identity", "refusal_fields", "start_fields", "unresolved_fields"]

DECISIONS = {decision: decision.name.lower() for decision in Decision}


def identity(command: ScriptCommand) -> dict[str, Any]:
    return {
        "session": command.session_id,
        "skill": command.skill_name,
        "digest": command.digest,
        "script": command.script_name,
    }


def start_fields(prepared: PreparedRun, answer: OptionAnswer | None = None) -> dict[str, Any]:
    command = prepared.command
    arguments = redacted_arguments(command.arguments, command.script_arguments)
    return {
        **identity(command),
        "path": str(command.script_path),
        "interpreter": command.argv[0],
        "arguments": arguments.shown,
        "arguments_digest": arguments.digest,
        "stdin_digest": sha256(command.stdin).hexdigest() if command.stdin else None,
        "decision": DECISIONS[prepared.decision],
        "reasons": list(prepared.reasons),
        "answer": answer.option_id if answer else None,
        "channel": answer.channel if answer else prepared.channel,
    }


def unresolved_fields(
    skill_name: str, script_name: str, session_id: str | None, arguments: object, argv: object
) -> dict[str, Any]:
    """Of a call that could not be made a command: what the caller asked for, of whatever kind that was."""
    words = [plain_text(word) for word in argv] if isinstance(argv, list | tuple) else []
    shown = redacted_arguments(arguments, words)
    return {
        "session": None if session_id is None else plain_text(session_id),
        "skill": plain_text(skill_name),
        "script": plain_text(script_name),
        "arguments": shown.shown,
        "arguments_digest": shown.digest,
    }


def refusal_fields(error: SkillKitError) -> dict[str, Any]:
    return {"error": type(error).__name__, "reasons": [plain_text(error)]}


def error_text(error: BaseException) -> str:
    """What stopped a run."""
    return f"{type(error).__name__}: {plain_text(error)}"


def end_fields(ended: ProcessExit, result: ScriptExecutionResult) -> dict[str, Any]:
    return {
        "exit_code": result.exit_code,
        "signal": result.signal,
        "timed_out": result.timed_out,
        "cancelled": result.cancelled,
        "duration_us": round(ended.duration_ms * 1000),
        "stdout_bytes": ended.stdout_bytes,
        "stderr_bytes": ended.stderr_bytes,
        "leftovers_killed": ended.leftovers_killed,
        "isolation": isolation_fields(result.isolation),
    }


def isolation_fields(isolation: Isolation) -> dict[str, Any]:
    return {
        "tier": isolation.tier,
        "files": isolation.files,
        "network": isolation.network,
        "processes": isolation.processes,
        "kill": isolation.kill,
        "skill": isolation.skill,
        "status": isolation.status,
        "limits": list(isolation.limits),
        "degraded": list(isolation.degraded),
    }
