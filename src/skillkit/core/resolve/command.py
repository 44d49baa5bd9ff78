"""A skill, a script's name and a call's arguments -> the ScriptCommand; nothing is started or changed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillkit.core.detect import language_at
from skillkit.core.digest import manifest_of
from skillkit.core.exceptions import ArgumentSerializationError, ConfigurationError
from skillkit.core.models import Skill
from skillkit.core.paths import FilePathResolver, real_path
from skillkit.core.policy import ScriptPolicy
from skillkit.core.resolve.arguments import stdin_bytes, words
from skillkit.core.resolve.environment import script_environment
from skillkit.core.resolve.interpreters import Interpreter, Runner, interpreter_for
from skillkit.core.resolve.lookup import script_named
from skillkit.core.resolve.permissions import require_part_of_skill, require_plain_file
from skillkit.core.runs import ScriptCommand

__all__ = ["CallArguments", "resolve_command"]

BATCH_METACHARACTERS = re.compile(r"[&|<>^%!\"()\r\n]")


@dataclass(frozen=True, slots=True)
class CallArguments:
    """What one call asks for, as the caller gave it."""

    script_name: str
    arguments: object = None
    argv: Sequence[str] = ()
    stdin: str | bytes | None = None
    timeout: float = 30
    output_limit: int = 10_000_000
    session_id: str | None = None
    workspace: Path | None = None


def resolve_command(
    skill: Skill, call: CallArguments, policy: ScriptPolicy, own_environment: Mapping[str, str], run: Runner
) -> ScriptCommand:
    """Everything is looked up and checked here, so that the later stages only act."""
    base = Path(real_path(skill.base_directory))
    script = script_named(call.script_name, skill.name, base, skill.scripts)
    path = FilePathResolver.resolve_path(base, script.path)
    require_part_of_skill(path, skill.name, base)
    require_plain_file(path, skill.name)
    environment = script_environment(
        policy,
        own_environment,
        skill_name=skill.name,
        skill_version=skill.metadata.version,
        base_directory=base,
        workspace=call.workspace,
    )
    language = language_at(path) or script.script_type
    closed = (base,) if call.workspace is None else (base, call.workspace)
    interpreter = interpreter_for(language, environment["PATH"], policy.allowed_interpreters, run, closed=closed)
    script_arguments = words(call.argv)
    refuse_batch_metacharacters(interpreter, script_arguments)
    return ScriptCommand(
        skill_name=skill.name,
        digest=manifest_of(base).digest,
        base_directory=base,
        script_path=path,
        script_name=path.relative_to(base).as_posix(),
        interpreter=interpreter.name,
        allowed_tools=tuple(skill.metadata.allowed_tools),
        argv=(interpreter.path, *interpreter.arguments, str(path), *script_arguments),
        cwd=str(working_directory(base, call.workspace, policy)),
        environment=environment,
        stdin=stdin_bytes(call.arguments, call.stdin),
        timeout=call.timeout,
        output_limit=call.output_limit,
        arguments=call.arguments,
        script_arguments=script_arguments,
        session_id=call.session_id,
        workspace=call.workspace,
    )


def working_directory(base: Path, workspace: Path | None, policy: ScriptPolicy) -> Path:
    if policy.working_directory == "skill":
        return base
    if workspace is None:
        raise ConfigurationError(
            "working_directory is 'workspace', but the caller named no workspace. Pass one, or use 'skill'."
        )
    return workspace


def refuse_batch_metacharacters(interpreter: Interpreter, arguments: tuple[str, ...]) -> None:
    """The program cmd reads its arguments as a command line of its own; there is no safe quoting for these."""
    if interpreter.name != "cmd":
        return
    for word in arguments:
        if BATCH_METACHARACTERS.search(word):
            raise ArgumentSerializationError(
                f"{word!r} holds characters that cmd would interpret. Batch files take plain words only."
            )
