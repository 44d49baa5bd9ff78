"""A program's name and a call's words -> the ScriptCommand; a program belongs to no skill, but to the machine.

A card, one small file that says which program it is, stands where a skill's folder would: it is hashed, copied,
shown and compared like one, so that an approval is about this program and ends when the program changes.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from skillkit.core.digest import LEFT_OUT, content_of, manifest_of
from skillkit.core.exceptions import ScriptNotFoundError, ScriptPermissionError, StateUnavailableError
from skillkit.core.owned import require_own_folder
from skillkit.core.paths import real_path
from skillkit.core.policy import ScriptPolicy
from skillkit.core.resolve.argument_paths import Surroundings
from skillkit.core.resolve.arguments import require_sayable
from skillkit.core.resolve.command import CallArguments, given_by, require_open_policy, workspace_of
from skillkit.core.resolve.environment import script_environment
from skillkit.core.resolve.interpreters import candidates, is_within
from skillkit.core.resolve.permissions import require_plain_file
from skillkit.core.runs import PROGRAM_OWNER, ScriptCommand
from skillkit.core.trees import remove_tree

__all__ = ["resolve_program"]

OF_SKILLS = ("SKILL_NAME", "SKILL_BASE_DIR", "SKILL_DIR", "CLAUDE_SKILL_DIR", "SKILL_VERSION")


def resolve_program(
    call: CallArguments, policy: ScriptPolicy, own_environment: Mapping[str, str], *, state_folder: Path
) -> ScriptCommand:
    """The first of this name on PATH, never one inside the workspace; nothing is started."""
    require_sayable(workspace=call.workspace)
    named = workspace_of(call, state_folder)
    workspace = None if named is None else named.path
    require_open_policy(policy, [workspace] if workspace else [], state_folder)
    cards = Path(real_path(state_folder)) / "programs"
    environment = program_environment(policy, own_environment, cards, workspace)
    program = found(call.script_name, environment["PATH"], workspace)
    card = written_card(cards, call.script_name, program)
    cwd = workspace or card
    given = given_by(call, Surroundings(card, workspace, cwd, policy.writable_paths, state_folder))
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
        is_program=True,
    )


def program_environment(
    policy: ScriptPolicy, own: Mapping[str, str], cards: Path, workspace: Path | None
) -> dict[str, str]:
    """As for a script, without what is said of a skill."""
    built = script_environment(
        policy, own, skill_name=PROGRAM_OWNER, skill_version=None, base_directory=cards, workspace=workspace
    )
    return {name: value for name, value in built.items() if name not in OF_SKILLS}


def found(name: str, path: str, workspace: Path | None) -> Path:
    """A plain name only: a path would be whatever a model says it is."""
    is_name = name == os.path.basename(name) and name not in ("", ".", "..", LEFT_OUT) and name.isprintable()
    closed = () if workspace is None else (workspace,)
    for candidate in candidates(name, path) if is_name else ():
        if not is_within(candidate, closed):
            require_plain_file(candidate, PROGRAM_OWNER)
            return Path(candidate)
    raise ScriptNotFoundError(
        f"There is no program {name!r} on PATH. Install it, or name a script as 'scripts/...'.",
        skill_name=PROGRAM_OWNER,
        script_name=name,
    )


def written_card(cards: Path, name: str, program: Path) -> Path:
    """The folder of this program's card, which holds the card and nothing else."""
    folder = cards / sha256(os.fsencode(program)).hexdigest()[:16]
    text = card_text(program)
    card = folder / name
    try:
        for place in (cards.parent, cards, folder):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            require_own_folder(place)
        for stray in folder.iterdir():
            if stray.is_dir() and not stray.is_symlink():
                remove_tree(stray)
            elif stray.name != name:
                stray.unlink()
        if not card.is_file() or card.is_symlink() or card.read_text(encoding="utf-8", errors="replace") != text:
            # Made beside it: whoever looks at the folder meanwhile sees the old card or the new one.
            descriptor, new = tempfile.mkstemp(dir=cards, prefix=".new-")
            with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
            os.replace(new, card)
    except OSError as error:
        raise StateUnavailableError(
            f"No card of the program {name!r} can be kept in {cards}: {error.strerror or error}. "
            "Make the state folder writable, or name another with SKILLKIT_STATE_DIR."
        ) from error
    return folder


def card_text(program: Path) -> str:
    """Where it is, what file that means, and what is in it."""
    real = real_path(program)
    content = content_of(real)
    if not content.startswith("sha256 "):
        raise ScriptPermissionError(
            f"{program} cannot be read, so nobody could say what runs. Make it readable, or use another program."
        )
    return f"A program of this machine, named by 'allowed_commands'.\nPath: {program}\nFile: {real}\n{content}\n"
