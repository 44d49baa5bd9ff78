"""A command that needs a person's word -> the question, always with the same three options."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from skillkit.core.values.bounds import Bounds
from skillkit.core.values.questions import OPTIONS, SINGLE_USE, OptionRequest, Prompt
from skillkit.core.values.runs import PreparedRun, ScriptCommand

__all__ = ["approval_request", "joint_request"]


def approval_request(
    command: ScriptCommand, prompt: Prompt, bounds: Bounds, *, is_coverable: bool = False
) -> OptionRequest:
    """Deterministic: the same call within the same walls gives the same id; an answer is valid for that id only."""
    return OptionRequest(
        id=_request_id(command, bounds, [*prompt.walls, is_coverable]),
        title=_title_of(command),
        message=" ".join(prompt.reasons),
        options=OPTIONS,
        context=_context_of(prompt, is_coverable=is_coverable),
        session_id=command.session_id,
    )


def joint_request(runs: Sequence[PreparedRun], prompt: Prompt) -> OptionRequest:
    """One question about several runs of a skill; its id is made of theirs, so that its answer is for exactly these."""
    ids = [run.request.id for run in runs if run.request is not None]
    command = runs[0].command
    return OptionRequest(
        id=sha256(json.dumps(["joint", *ids]).encode("ascii")).hexdigest(),
        title=f"Run {len(runs)} scripts of the skill {command.skill_name}?",
        message=" ".join(prompt.reasons),
        options=OPTIONS,
        context=_context_of(prompt, is_coverable=all(run.is_coverable for run in runs)),
        session_id=command.session_id,
    )


def _context_of(prompt: Prompt, *, is_coverable: bool) -> dict[str, Any]:
    """What is asked about every time gets a yes for one run only, whichever yes that is."""
    single_use = ["yes_once"] if is_coverable else ["yes_once", "yes_in_session"]
    return {**prompt.to_context(), SINGLE_USE: single_use}


def _title_of(command: ScriptCommand) -> str:
    if command.is_program:
        return f"Run the program {command.script_path}?"
    return f"Run {command.script_name} of the skill {command.skill_name}?"


def _request_id(command: ScriptCommand, bounds: Bounds, told: Sequence[object]) -> str:
    """Of all that a person is told about a run, and of what it really gets; as JSON, so that no two give one text."""
    parts = [
        *(command.session_id, command.call_id, command.skill_name, command.digest, command.script_name),
        *(command.interpreter, command.argv, sha256(command.stdin).hexdigest(), command.timeout, command.output_limit),
        *(command.cwd, str(command.workspace), command.argument_paths),  # a workspace is absolute, never "None"
        bounds.to_text(),
        told,
    ]
    return sha256(json.dumps(parts).encode("ascii")).hexdigest()
