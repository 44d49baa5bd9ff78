"""A command that needs a person's word -> the question, always with the same three options."""

from __future__ import annotations

import json
from hashlib import sha256

from skillkit.core.questions import OPTIONS, OptionRequest, Prompt
from skillkit.core.runs import ScriptCommand

__all__ = ["approval_request"]


def approval_request(command: ScriptCommand, prompt: Prompt) -> OptionRequest:
    """Deterministic: the same call gives the same id, and an answer is valid for that id only."""
    return OptionRequest(
        id=request_id(command),
        title=f"Run {command.script_name} of the skill {command.skill_name}?",
        message=" ".join(prompt.reasons),
        options=OPTIONS,
        context=prompt.to_context(),
        session_id=command.session_id,
    )


def request_id(command: ScriptCommand) -> str:
    """Of session, call, digest, script, arguments and what they reach; as JSON, so that no two give the same text."""
    reach = [command.cwd, None if command.workspace is None else str(command.workspace), command.argument_paths]
    parts = [command.session_id, command.call_id, command.digest, command.script_name, command.argv, *reach]
    summary = sha256(json.dumps([*parts, sha256(command.stdin).hexdigest()]).encode("ascii"))
    return summary.hexdigest()
