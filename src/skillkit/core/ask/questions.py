"""A command that needs a person's word -> the question, always with the same three options."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from skillkit.core.values.bounds import Bounds, walls_digest
from skillkit.core.values.questions import OPTIONS, SINGLE_USE, WALLS, OptionRequest, Prompt, Tick
from skillkit.core.values.runs import PreparedRun, ScriptCommand

__all__ = ["approval_request", "joint_request", "title_of"]


def approval_request(
    command: ScriptCommand,
    prompt: Prompt,
    bounds: Bounds,
    grants: Sequence[Tick] = (),
    *,
    version: str = "",
    contents: Sequence[str] = (),
    is_coverable: bool = False,
) -> OptionRequest:
    """Deterministic: the same call within the same walls gives the same id; an answer is valid for that id only.

    `version` is what the interpreter says of itself, `contents` are digests of folders that are offered as they are.
    """
    return OptionRequest(
        id=_request_id(command, bounds, version, [*(tick.id for tick in grants), *contents, is_coverable]),
        title=title_of(command),
        message=" ".join(prompt.reasons),
        options=OPTIONS,
        context=_context_of(prompt, [bounds], is_coverable=is_coverable),
        session_id=command.session_id,
        grants=tuple(grants),
    )


def joint_request(runs: Sequence[PreparedRun], prompt: Prompt) -> OptionRequest:
    """One question about several runs of a skill; its id is made of theirs, so that its answer is for exactly these."""
    ids = [run.request.id for run in runs if run.request is not None]
    command = runs[0].command
    bounds = [run.bounds for run in runs if run.bounds is not None]
    ticks = dict.fromkeys(tick for run in runs if run.request is not None for tick in run.request.grants)
    return OptionRequest(
        id=sha256(json.dumps(["joint", *ids]).encode("ascii")).hexdigest(),
        title=f"Run {len(runs)} scripts of the skill {command.skill_name}?",
        message=" ".join(prompt.reasons),
        options=OPTIONS,
        context=_context_of(prompt, bounds, is_coverable=all(run.is_coverable for run in runs)),
        session_id=command.session_id,
        grants=tuple(ticks),
    )


def _context_of(prompt: Prompt, bounds: Sequence[Bounds], *, is_coverable: bool) -> dict[str, Any]:
    """What is asked about every time gets a yes for one run only, whichever yes that is."""
    single_use = ["yes_once"] if is_coverable else ["yes_once", "yes_in_session"]
    return {**prompt.to_context(), SINGLE_USE: single_use, WALLS: walls_digest(bounds)}


def title_of(command: ScriptCommand) -> str:
    if command.is_program:
        return f"Run the program {command.script_path}?"
    return f"Run {command.script_name} of the skill {command.skill_name}?"


def _request_id(command: ScriptCommand, bounds: Bounds, version: str, offered: Sequence[object]) -> str:
    """Of all that a person is asked about a run: what runs, with what it is given, within which walls.

    Skill and workspace are roles in it, so that it is the same wherever they lie. As JSON: no two give one text.
    """
    roles = {"skill": str(command.base_directory), "workspace": str(command.workspace or "")}
    parts = [
        *(command.session_id, command.call_id, command.skill_name, command.digest, command.script_name),
        *(command.script_arguments, sha256(command.stdin).hexdigest(), command.interpreter, version),
        *(command.timeout, command.output_limit, command.workspace is not None, _role_of(command)),
        _in_roles(json.loads(bounds.to_text()) | {"program": None}, roles),
        _in_roles(command.argument_paths, roles),
        _in_roles(offered, roles),
        *filter(None, (command.lost_signer,)),
    ]
    return sha256(json.dumps(parts, sort_keys=True).encode("ascii")).hexdigest()


def _role_of(command: ScriptCommand) -> str:
    """The kind of folder that it starts in."""
    return "skill" if command.cwd == str(command.base_directory) else "workspace"


def _in_roles(value: Any, roles: Mapping[str, str]) -> Any:  # noqa: ANN401 - whatever JSON can say
    """Every path that is a role's folder or lies in it, said by the role; behind a kind too, as in `read:/x`."""
    if isinstance(value, Mapping):
        return {name: _in_roles(each, roles) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_in_roles(each, roles) for each in value]
    if not isinstance(value, str):
        return value
    kind, separator, path = value.partition(":") if value.startswith(("read:/", "write:/")) else ("", "", value)
    for role, folder in roles.items():
        if folder and (path == folder or path.startswith(folder + os.sep)):
            return [kind + separator, role, path[len(folder) :]]
    return value
