"""A script of a skill, or a program of the machine, and a call -> the ScriptCommand; nothing is started.

A program belongs to no skill. A card, one small file that says which program it is, stands where a skill's folder
would: it is hashed, copied, shown and compared like one, so that an approval is about this program and ends when the
program changes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from skillkit.core.exceptions import (
    ArgumentSerializationError,
    ConfigurationError,
    ContentLoadError,
    ScriptNotFoundError,
    ScriptPermissionError,
    StateUnavailableError,
)
from skillkit.core.models import Skill
from skillkit.core.models.digest import LEFT_OUT, content_of, manifest_of
from skillkit.core.paths import real_path, require_own_folder
from skillkit.core.paths.files import replace_file
from skillkit.core.paths.forbidden import named_workspace, open_paths, require_open, require_same
from skillkit.core.paths.trees import remove_tree
from skillkit.core.resolve.arguments import CallArguments, Surroundings, leads_through, read_input, require_sayable
from skillkit.core.resolve.environment import (
    Interpreter,
    Runner,
    is_within,
    own_programs,
    programs_on,
    script_environment,
    with_prepared,
)
from skillkit.core.resolve.locate import Located, Place, ScriptContent, content_of_script, locate, require_plain_file
from skillkit.core.store.environments import PACKAGES, Environments
from skillkit.core.values.needs import Grant
from skillkit.core.values.policy import PATH_LISTS, ScriptPolicy
from skillkit.core.values.runs import PROGRAM_OWNER, Manifest, Prepared, ScriptCommand
from skillkit.core.values.skills import Workspace

__all__ = ["refuse_batch_metacharacters", "resolve_command", "resolve_program"]

# They take settings, and with them code, from the folder that they start in.
OBEYING_THEIR_FOLDER = frozenset(("bun", "deno", "tsx", "ts-node"))
OF_SKILLS = ("SKILL_NAME", "SKILL_BASE_DIR", "SKILL_DIR", "CLAUDE_SKILL_DIR", "SKILL_VERSION")
PYTHONS = frozenset(("python3", "python"))
NOTHING_READ = ScriptContent(uses_own_files=False, called=frozenset())
BATCH_METACHARACTERS = re.compile(r"[&|<>^%!\"()\r\n]")


def resolve_command(
    skill: Skill,
    call: CallArguments,
    policy: ScriptPolicy,
    own_environment: Mapping[str, str],
    run: Runner,
    *,
    state_folder: Path | None = None,
    grants: tuple[Grant, ...] = (),
) -> ScriptCommand:
    """Everything is looked up and checked here, so that the later stages only act."""
    name, version = skill.metadata.name, skill.metadata.version
    require_sayable(skill=name, version=version, skill_folder=skill.base_directory, workspace=call.workspace)
    real = real_path(folder := str(skill.base_directory))
    # The same value where no link leads elsewhere: a path that was used before knows its own parts.
    base = skill.base_directory if real == folder else Path(real)
    named = _workspace_of(call, state_folder)
    workspace = None if named is None else named.path
    _require_open_policy(policy, [base, *([workspace] if workspace else [])], state_folder)
    manifest = _manifest_at(str(base))
    environment = script_environment(
        policy, own_environment, skill_name=name, skill_version=version, base_directory=base, workspace=workspace
    ) | _of_plugin(skill)
    place = Place(base, manifest.digest, workspace, environment["PATH"])
    located = locate(skill, call.script_name, place, policy.allowed_interpreters, run)
    content = _content(located, manifest, base, policy)
    cwd = _working_directory(base, workspace, policy, located, content)
    prepared = _prepared(name, base, manifest, state_folder)
    called = _called(content, prepared) if policy.sandbox != "off" else ()
    given = read_input(call, Surroundings(base, workspace, cwd, policy.writable_paths, state_folder))
    refuse_batch_metacharacters(located.interpreter.name, given.words)
    return ScriptCommand(
        skill_name=name,
        digest=manifest.digest,
        base_directory=base,
        script_path=located.path,
        script_name=located.name,
        interpreter=located.interpreter.name,
        allowed_tools=tuple(skill.metadata.allowed_tools),
        argv=(*_start_of(located.interpreter, prepared), located.file, *given.words),
        cwd=str(cwd),
        environment=with_prepared(environment, prepared),
        workspace=named,
        manifest=manifest,
        prepared=prepared,
        from_instructions=call.from_instructions,
        own_programs=own_programs(called, environment["PATH"], run, [base, *([workspace] if workspace else [])]),
        grants=grants,
        **given.passed_on,
    )


def resolve_program(
    call: CallArguments, policy: ScriptPolicy, own_environment: Mapping[str, str], *, state_folder: Path
) -> ScriptCommand:
    """The first of this name on PATH, never one inside the workspace; nothing is started."""
    require_sayable(workspace=call.workspace)
    named = _workspace_of(call, state_folder)
    workspace = None if named is None else named.path
    _require_open_policy(policy, [workspace] if workspace else [], state_folder)
    cards = Path(real_path(state_folder)) / "programs"
    built = script_environment(
        policy, own_environment, skill_name=PROGRAM_OWNER, skill_version=None, base_directory=cards, workspace=workspace
    )
    environment = {name: value for name, value in built.items() if name not in OF_SKILLS}
    program = _find_program(call.script_name, environment["PATH"], workspace)
    card = _write_card(cards, call.script_name, program)
    cwd = workspace or card
    given = read_input(call, Surroundings(card, workspace, cwd, policy.writable_paths, state_folder))
    manifest = manifest_of(card)
    return ScriptCommand(
        skill_name=PROGRAM_OWNER,
        digest=manifest.digest,
        base_directory=card,
        script_path=program,
        script_name=call.script_name,
        interpreter=call.script_name,
        allowed_tools=(),
        argv=(str(program), *given.words),
        cwd=str(cwd),
        environment=environment,
        workspace=named,
        manifest=manifest,
        is_program=True,
        **given.passed_on,
    )


def _content(located: Located, manifest: Manifest, base: Path, policy: ScriptPolicy) -> ScriptContent:
    is_asked = policy.sandbox != "off" or policy.working_directory == "auto"
    return content_of_script(located, manifest, base) if is_asked else NOTHING_READ


def _prepared(skill: str, base: Path, manifest: Manifest, state_folder: Path | None) -> tuple[Prepared, ...]:
    """Packages that were installed for this content; most worlds have none for any skill."""
    if state_folder is None or not os.path.exists(os.path.join(state_folder, PACKAGES)):
        return ()
    return Environments(state_folder).of(skill, base, manifest.digest)


def _called(content: ScriptContent, prepared: Sequence[Prepared]) -> frozenset[str]:
    """Interpreters that it may call; where Python was prepared, that is the one."""
    return content.called.difference(PYTHONS if any(each.kind == "python" for each in prepared) else ())


def _start_of(interpreter: Interpreter, prepared: Sequence[Prepared]) -> tuple[str, ...]:
    """Python with the packages that were prepared for the skill, where there are some."""
    own = [str(each.programs / "python") for each in prepared if each.kind == "python"]
    return (own[0] if own and interpreter.name in PYTHONS else interpreter.path, *interpreter.arguments)


def _of_plugin(skill: Skill) -> dict[str, str]:
    root = skill.metadata.plugin_root
    return {} if root is None else {"CLAUDE_PLUGIN_ROOT": real_path(root)}


def _workspace_of(call: CallArguments, state_folder: Path | None) -> Workspace | None:
    """The folder that was named, if it still is that folder, and may be opened to scripts."""
    if call.workspace is None:
        return None
    if not isinstance(call.workspace, Workspace):
        return named_workspace(call.workspace, state_folder)
    require_same(call.workspace)
    require_open(call.workspace, state_folder)
    return call.workspace


def _require_open_policy(policy: ScriptPolicy, within_reach: Sequence[Path], state_folder: Path | None) -> None:
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


def _manifest_at(folder: str) -> Manifest:
    """Empty where there is no folder: what is missing then is the script."""
    try:
        return manifest_of(folder)
    except ContentLoadError:
        if os.path.isdir(folder):
            raise
        return Manifest("", ())


def _working_directory(
    base: Path, workspace: Path | None, policy: ScriptPolicy, located: Located, content: ScriptContent
) -> Path:
    """Under `auto`, by the skill's content alone."""
    if policy.working_directory == "skill":
        return base
    interpreter = located.interpreter.name
    obeys_its_folder = interpreter in OBEYING_THEIR_FOLDER and policy.sandbox != "off"
    if policy.working_directory == "auto":
        if workspace is None or obeys_its_folder or content.uses_own_files:
            return base
        return workspace
    if obeys_its_folder:
        raise ConfigurationError(
            f"{interpreter} takes settings and code from the folder it starts in, and scripts may change the "
            "workspace. Use working_directory = 'skill' for it."
        )
    if workspace is None:
        raise ConfigurationError(
            "working_directory is 'workspace', but the caller named no workspace. Pass one, or use 'skill'."
        )
    return workspace


def refuse_batch_metacharacters(interpreter: str, arguments: tuple[str, ...]) -> None:
    """The program cmd reads its arguments as a command line of its own; there is no safe quoting for these."""
    if interpreter != "cmd":
        return
    for word in arguments:
        if BATCH_METACHARACTERS.search(word):
            raise ArgumentSerializationError(
                f"{word!r} holds characters that cmd would interpret. Batch files take plain words only."
            )


def _find_program(name: str, path: str, workspace: Path | None) -> Path:
    """A plain name only: a path would be whatever a model says it is."""
    is_name = name == os.path.basename(name) and name not in ("", ".", "..", LEFT_OUT) and name.isprintable()
    closed = () if workspace is None else (workspace,)
    for candidate in programs_on(name, path) if is_name else ():
        if not is_within(candidate, closed):
            require_plain_file(candidate, PROGRAM_OWNER)
            return Path(candidate)
    raise ScriptNotFoundError(
        f"There is no program {name!r} on PATH. Install it, or name a script as 'scripts/...'.",
        skill_name=PROGRAM_OWNER,
        script_name=name,
    )


def _write_card(cards: Path, name: str, program: Path) -> Path:
    """The folder of this program's card, which holds the card and nothing else."""
    folder = cards / sha256(os.fsencode(program)).hexdigest()[:16]
    text = _card_text(program)
    card = folder / name
    try:
        for place in (cards.parent, cards, folder):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            require_own_folder(place)
        for stray in folder.iterdir():
            if os.path.isdir(stray) and not os.path.islink(stray):
                remove_tree(stray)
            elif stray.name != name:
                stray.unlink()
        is_plain = os.path.isfile(card) and not os.path.islink(card)
        if not is_plain or card.read_text(encoding="utf-8", errors="replace") != text:
            # Made beside it: whoever looks at the folder meanwhile sees the old card or the new one.
            replace_file(card, text.encode(errors="backslashreplace"), drafts=cards)
    except OSError as error:
        raise StateUnavailableError(
            f"No card of the program {name!r} can be kept in {cards}: {error.strerror or error}. "
            "Make the state folder writable, or name another with SKILLKIT_STATE_DIR."
        ) from error
    return folder


def _card_text(program: Path) -> str:
    """Where it is, what file that means, and what is in it."""
    real = real_path(program)
    content = content_of(real)
    if not content.startswith("sha256 "):
        raise ScriptPermissionError(
            f"{program} cannot be read, so nobody could say what runs. Make it readable, or use another program."
        )
    return f"A program of this machine, named by 'allowed_commands'.\nPath: {program}\nFile: {real}\n{content}\n"
