"""What an agent reads of a skill: its context when it is loaded, and the text of one of its files."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from skillkit.core.exceptions import ContentLoadError
from skillkit.core.find.references import ScriptReference, references_in
from skillkit.core.models import Skill, open_at_once
from skillkit.core.paths import FilePathResolver
from skillkit.core.values.needs import Need
from skillkit.core.values.policy import ScriptPolicy
from skillkit.core.values.runs import ScriptExecutionResult, digest_of_commands
from skillkit.present.skill_context import ScriptOutput, SkillContext, representable
from skillkit.present.tool_result import (
    ASK_A_PERSON,
    SHOWN_CHARACTERS,
    refusal_status,
    refused_needs,
    run_status,
    run_text,
    shorten,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.integrations.batch import Outcome

__all__ = [
    "bundled_files",
    "commands_digest",
    "commands_on_load",
    "file_text",
    "skill_context",
]

RUN_COMMANDS = 20
OUTPUT_CHARACTERS = 10_000
WHOLE = "Call skills_run_script for more of it."
NEEDS_ARGUMENTS = "Not run: '{text}' needs arguments. Call skills_run_script with the ones that fit."
MISSING = "Not run: the instructions name '{text}', but the skill has no such script."
LISTED = "Not run: policy runs {which} when a skill is loaded (run_on_load). To run it: {call}"
WHICH = {"never": "nothing", "trusted": "only what was approved as a list"}
TOO_MANY = f"Not run: only the first {RUN_COMMANDS} commands of a skill run when it is loaded. Call skills_run_script."

LEFT_OUT_FOLDERS = frozenset(("node_modules", "__pycache__", "venv"))
READ_BYTES = 10_000_000
SNIFFED_BYTES = 8_192
LISTED_FILES = 200


def skill_context(
    skill: Skill,
    instructions: str,
    run: Callable[[Sequence[ScriptReference]], Sequence[Outcome | None]] | None,
    policy: ScriptPolicy,
    workspace: Path | None = None,
) -> SkillContext:
    """`run` gives an outcome for each command of the instructions that may run, or None; without it none is listed."""
    outputs: tuple[ScriptOutput, ...] = ()
    if run is not None:
        references = _references(skill, policy, workspace)
        ready = _ready(references)
        outcomes = dict(zip(ready, run(ready), strict=True)) if ready and policy.run_on_load != "never" else {}
        is_listed = dict.fromkeys(reference for reference in ready if outcomes.get(reference) is None)
        outputs = tuple(
            _listed_output(skill, reference, policy)
            if reference in is_listed
            else _output_of(reference, outcomes.get(reference))
            for reference in references
        )
    files = bundled_files(skill)
    more = len(files) - LISTED_FILES
    listed = files if more <= 0 else [*files[:LISTED_FILES], f"[and {more} more files]"]
    return SkillContext(skill.name, "ok", instructions, outputs, tuple(listed))


def commands_on_load(skill: Skill, policy: ScriptPolicy, workspace: Path | None = None) -> list[ScriptReference]:
    """What would run when the skill is loaded, in order: what one question lists."""
    return _ready(_references(skill, policy, workspace))


def commands_digest(commands: Sequence[ScriptReference]) -> str:
    """Of a list of commands, by which an approval of it is known; empty for none."""
    return digest_of_commands([each.script, *each.argv] for each in commands)


def _references(skill: Skill, policy: ScriptPolicy, workspace: Path | None) -> tuple[ScriptReference, ...]:
    """What the instructions write as a command, in order; a file that the workspace has is no example."""
    own_folder = "." if policy.working_directory == "skill" else str(skill.base_directory)
    return references_in(skill, own_folder=own_folder, workspace=workspace).commands


def _ready(references: Sequence[ScriptReference]) -> list[ScriptReference]:
    return [reference for reference in references if reference.status == "command"][:RUN_COMMANDS]


def _listed_output(skill: Skill, reference: ScriptReference, policy: ScriptPolicy) -> ScriptOutput:
    """With the call that runs it."""
    given = {"skill_name": skill.name, "script": reference.script, "args": list(reference.argv)}
    call = f"skills_run_script({', '.join(f'{name}={json.dumps(value)}' for name, value in given.items())})"
    told = LISTED.format(which=WHICH[policy.run_on_load], call=call)
    return ScriptOutput(reference.script, "refused", told, arguments=reference.argv)


def _output_of(reference: ScriptReference, outcome: Outcome | None) -> ScriptOutput:
    if isinstance(outcome, ScriptExecutionResult):
        status, text = run_status(outcome), run_text(outcome, WHOLE, OUTPUT_CHARACTERS)
        return ScriptOutput(reference.script, status, text, outcome.exit_code, reference.argv, _named(outcome.needs))
    if outcome is not None:
        needs = _named(refused_needs(outcome))
        text = f"{outcome} {ASK_A_PERSON}" if needs else str(outcome)
        return ScriptOutput(reference.script, refusal_status(outcome), text, arguments=reference.argv, needs=needs)
    if reference.status == "command":
        return ScriptOutput(reference.script, "refused", TOO_MANY, arguments=reference.argv)
    message = MISSING if reference.status == "not_found" else NEEDS_ARGUMENTS
    return ScriptOutput(reference.script, reference.status, message.format(text=reference.text))


def _named(needs: Sequence[Need]) -> tuple[str, ...]:
    return tuple(f"{need.kind}:{need.name}" for need in needs)


def file_text(skill: Skill, path: str) -> str:
    """Text only, as it is but for what no XML could carry, and no more of it than a model should read at once."""
    real = FilePathResolver.resolve_path(skill.base_directory, path)
    raw, size = _read_regular_file(skill, path, real)
    if b"\0" in raw[:SNIFFED_BYTES]:
        return f"[{path} is a binary file of {size:,} bytes. It cannot be shown as text; a script can read it.]"
    text = representable(raw.decode("utf-8-sig", "replace"))
    if len(text) > SHOWN_CHARACTERS or size > len(raw):
        return shorten(text, f"The file has {size:,} bytes and is at {real}.")
    return text


def _read_regular_file(skill: Skill, path: str, real: Path) -> tuple[bytes, int]:
    """Its first bytes and its size; a miss says what exists."""
    try:
        status = os.stat(real)
        if not stat.S_ISREG(status.st_mode):
            raise _missing(skill, path, "is no file")
        with open(real, "rb", opener=open_at_once) as file:
            return file.read(READ_BYTES) or b"", status.st_size
    except OSError as error:
        reason = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
        raise _missing(skill, path, reason) from error


def _missing(skill: Skill, path: str, reason: str) -> ContentLoadError:
    files = ["SKILL.md", *(script.path.as_posix() for script in skill.scripts), *bundled_files(skill)]
    more = len(files) - LISTED_FILES
    there = ", ".join(files[:LISTED_FILES]) + (f" and {more} more" if more > 0 else "")
    return ContentLoadError(f"{path!r} of {skill.name!r} {reason}. There are: {there}.")


def bundled_files(skill: Skill) -> list[str]:
    """What comes with the skill beside its instructions and scripts, by path; hidden files and links are left out."""
    own = {skill.metadata.skill_path.name, *(script.path.as_posix() for script in skill.scripts)}
    return sorted(path for path in _plain_files(str(skill.base_directory)) if path not in own)


def _plain_files(base: str) -> Iterator[str]:
    """Paths inside a skill, however deep; folders of packages are left out."""
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        with suppress(OSError), os.scandir(os.path.join(base, inside)) as listing:
            for entry in listing:
                path = f"{inside}{entry.name}"
                if entry.name.startswith("."):
                    continue
                if entry.is_file(follow_symlinks=False):
                    yield path
                elif entry.is_dir(follow_symlinks=False) and entry.name not in LEFT_OUT_FOLDERS:
                    waiting.append(f"{path}/")
