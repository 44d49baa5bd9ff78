"""A skill, a script's name and a call's arguments -> the ScriptCommand; nothing is started or changed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from skillkit.core.detect import language_at
from skillkit.core.digest import manifest_of
from skillkit.core.exceptions import (
    ArgumentSerializationError,
    ConfigurationError,
    ContentChangedError,
    ContentLoadError,
)
from skillkit.core.models import Skill
from skillkit.core.paths import FilePathResolver, real_path
from skillkit.core.policy import PATH_LISTS, ScriptPolicy
from skillkit.core.resolve.argument_paths import ArgumentPaths, Surroundings, argument_paths, leads_through
from skillkit.core.resolve.arguments import received, require_sayable, stdin_bytes, words
from skillkit.core.resolve.environment import script_environment
from skillkit.core.resolve.interpreters import Interpreter, Runner, interpreter_for
from skillkit.core.resolve.lookup import script_named
from skillkit.core.resolve.permissions import require_part_of_skill, require_plain_file
from skillkit.core.runs import Manifest, ScriptCommand
from skillkit.core.values import Workspace
from skillkit.core.workspaces import named_workspace, open_paths, require_open, require_same

__all__ = ["CallArguments", "resolve_command"]

# They take settings, and with them code, from the folder that they start in.
OBEYING_THEIR_FOLDER = frozenset(("bun", "deno", "tsx", "ts-node"))
BATCH_METACHARACTERS = re.compile(r"[&|<>^%!\"()\r\n]")


class CallArguments(NamedTuple):
    """What one call asks for, as the caller gave it."""

    script_name: str
    arguments: object = None
    argv: Sequence[str] = ()
    stdin: str | bytes | None = None
    timeout: float = 30
    output_limit: int = 10_000_000
    session_id: str | None = None
    workspace: Workspace | str | Path | None = None
    """As it was named before; a path is named by this call."""
    agent_facing: bool = False
    """Whether a model chose the arguments."""
    call_id: str = ""
    from_instructions: bool = False
    """Whether the skill's text asks for this run, and nobody else."""


def resolve_command(
    skill: Skill,
    call: CallArguments,
    policy: ScriptPolicy,
    own_environment: Mapping[str, str],
    run: Runner,
    *,
    state_folder: Path | None = None,
) -> ScriptCommand:
    """Everything is looked up and checked here, so that the later stages only act."""
    require_sayable_names(skill, call)
    base = resolved(skill.base_directory)
    named = workspace_of(call, state_folder)
    workspace = None if named is None else named.path
    require_open_policy(policy, [base, *([workspace] if workspace else [])], state_folder)
    manifest = manifest_at(str(base))
    environment = environment_of(skill, policy, own_environment, base, workspace)
    place = Place(base, manifest.digest, workspace, environment["PATH"])
    located = located_script(skill, call.script_name, place, policy, run)
    interpreter = located.interpreter
    cwd = working_directory(base, workspace, policy)
    given = given_by(call, Surroundings(base, workspace, cwd, policy.writable_paths, state_folder))
    refuse_batch_metacharacters(interpreter, given.words)
    refuse_settings_of_workspace(interpreter, policy)
    return ScriptCommand(
        skill_name=skill.name,
        digest=manifest.digest,
        base_directory=base,
        script_path=located.path,
        script_name=located.name,
        interpreter=interpreter.name,
        allowed_tools=tuple(skill.metadata.allowed_tools),
        argv=(interpreter.path, *interpreter.arguments, located.file, *given.words),
        cwd=str(cwd),
        environment=environment,
        stdin=given.stdin,
        timeout=call.timeout,
        output_limit=call.output_limit,
        arguments=given.arguments,
        script_arguments=given.words,
        session_id=call.session_id,
        workspace=named,
        manifest=manifest,
        argument_paths=given.paths.paths,
        closed_paths=given.paths.closed,
        has_unread_arguments=given.paths.is_cut,
        agent_facing=call.agent_facing,
        call_id=call.call_id,
        from_instructions=call.from_instructions,
    )


def require_sayable_names(skill: Skill, call: CallArguments) -> None:
    require_sayable(skill=skill.name, version=skill.metadata.version, skill_folder=skill.base_directory)
    require_sayable(workspace=call.workspace)


def workspace_of(call: CallArguments, state_folder: Path | None) -> Workspace | None:
    """The folder that was named, if it still is that folder, and may be opened to scripts."""
    if call.workspace is None:
        return None
    if not isinstance(call.workspace, Workspace):
        return named_workspace(call.workspace, state_folder)
    require_same(call.workspace)
    require_open(call.workspace, state_folder)
    return call.workspace


def require_open_policy(policy: ScriptPolicy, within_reach: Sequence[Path], state_folder: Path | None) -> None:
    """What policy opens may be no closed place, nor lie behind a link that a script could have made."""
    for setting in PATH_LISTS:
        open_paths(getattr(policy, setting), state_folder, setting=setting)
    made_by_scripts = [str(folder) for folder in within_reach] + [real_path(path) for path in policy.writable_paths]
    for setting in PATH_LISTS:
        for path in getattr(policy, setting):
            if leads_through(str(path), made_by_scripts):
                raise ConfigurationError(
                    f"{setting}: a link on the way to {path} lies where scripts can put one. "
                    f"If you want what it leads to, name that: {real_path(path)}"
                )


class Given(NamedTuple):
    """What a call hands to its script."""

    words: tuple[str, ...]
    stdin: bytes
    arguments: object
    """As the script receives them."""
    paths: ArgumentPaths


def given_by(call: CallArguments, surroundings: Surroundings) -> Given:
    argv = words(call.argv)
    stdin = stdin_bytes(call.arguments, call.stdin)
    arguments = received(call.arguments, stdin)
    paths = argument_paths(arguments, argv, call.stdin, surroundings) if argv or stdin else NO_PATHS
    return Given(argv, stdin, arguments, paths)


def resolved(folder: Path) -> Path:
    """The same value where nothing leads elsewhere: to take a path apart costs more than to compare it.

    The system is asked each time: of a folder above that moved, the folder itself knows nothing.
    """
    real = real_path(text := str(folder))
    return folder if real == text else Path(real)


def manifest_at(folder: str) -> Manifest:
    """Empty where there is no folder: what is missing then is the script."""
    try:
        return manifest_of(folder)
    except ContentLoadError:
        if os.path.isdir(folder):
            raise
        return NOTHING


def require_content(digest: str, skill_name: str) -> None:
    """A folder that came back after it was looked at has a script, but nobody knows which."""
    if digest == NOTHING.digest:
        reason = f"{skill_name!r} changed while it was looked at"
        raise ContentChangedError(f"{reason}. Run it again.", reasons=[reason])


class Place(NamedTuple):
    """Where a script is looked for, and where its interpreter is."""

    base: Path
    digest: str
    workspace: Path | None
    """Without links: one that is re-pointed means another place."""
    search_path: str


@dataclass(frozen=True, slots=True)
class Located:
    """Which file a name means, and what runs it."""

    path: Path
    file: str
    """The same as a text."""
    name: str
    interpreter: Interpreter


_located: dict[object, Located] = {}
REMEMBERED = 4096
NOTHING = Manifest("", ())
NO_PATHS = ArgumentPaths()


def located_script(skill: Skill, name: str, place: Place, policy: ScriptPolicy, run: Runner) -> Located:
    """Looked up once for a digest: while no file and no link of the skill changes, a name means the same.

    What the digest does not tell, the mode of the file and whether the interpreter is there, is asked each time.
    """
    base, digest, workspace, search_path = place
    key = (str(base), digest, workspace, search_path, name, policy.allowed_interpreters)
    known = _located.get(key)
    if known is None or not os.access(known.interpreter.path, os.X_OK):
        known = looked_up(skill, name, place, policy, run)
        if len(_located) >= REMEMBERED:
            _located.clear()
        _located[key] = known
    require_plain_file(known.file, skill.name)
    require_content(digest, skill.name)
    return known


def looked_up(skill: Skill, name: str, place: Place, policy: ScriptPolicy, run: Runner) -> Located:
    base, _, workspace, search_path = place
    script = script_named(name, skill.name, base, skill.scripts)
    path = FilePathResolver.resolve_path(base, script.path)
    require_part_of_skill(path, skill.name, base)
    require_plain_file(str(path), skill.name)
    language = language_at(path) or script.script_type
    closed = (base,) if workspace is None else (base, workspace)
    interpreter = interpreter_for(language, search_path, policy.allowed_interpreters, run, closed=closed)
    return Located(path, str(path), path.relative_to(base).as_posix(), interpreter)


def environment_of(
    skill: Skill, policy: ScriptPolicy, own: Mapping[str, str], base: Path, workspace: Path | None
) -> dict[str, str]:
    return script_environment(
        policy,
        own,
        skill_name=skill.name,
        skill_version=skill.metadata.version,
        base_directory=base,
        workspace=workspace,
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


def refuse_settings_of_workspace(interpreter: Interpreter, policy: ScriptPolicy) -> None:
    if interpreter.name in OBEYING_THEIR_FOLDER and policy.working_directory == "workspace" and policy.sandbox != "off":
        raise ConfigurationError(
            f"{interpreter.name} takes settings and code from the folder it starts in, and scripts may change the "
            "workspace. Use working_directory = 'skill' for it."
        )
