"""A skill that an agent loads -> its context: instructions, what its commands came to, the files it brings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skillkit.core.find.references import ScriptReference, references_in
from skillkit.core.models import Skill
from skillkit.core.runs import ScriptExecutionResult
from skillkit.core.together import Outcome
from skillkit.integrations.skill_files import LISTED_FILES, bundled_files
from skillkit.present.skill_context import ScriptOutput, SkillContext
from skillkit.present.tool_result import refusal_status, run_status, run_text

__all__ = ["loaded_skill"]

RUN_COMMANDS = 20
OUTPUT_CHARACTERS = 10_000
WHOLE = "Call skills_run_script for more of it."
NEEDS_ARGUMENTS = "Not run: '{text}' needs arguments. Call skills_run_script with the ones that fit."
MISSING = "Not run: the instructions name '{text}', but the skill has no such script."
TOO_MANY = f"Not run: only the first {RUN_COMMANDS} commands of a skill run when it is loaded. Call skills_run_script."


def loaded_skill(
    skill: Skill,
    instructions: str,
    run: Callable[[Sequence[ScriptReference]], Sequence[Outcome]] | None,
    *,
    starts_elsewhere: bool = False,
) -> SkillContext:
    """`run` gives an outcome for each command it gets; without it nothing runs."""
    outputs: tuple[ScriptOutput, ...] = ()
    if run is not None:
        own_folder = str(skill.base_directory) if starts_elsewhere else "."
        references = references_in(skill, own_folder=own_folder).commands
        ready = [reference for reference in references if reference.status == "command"][:RUN_COMMANDS]
        outcomes = dict(zip(ready, run(ready), strict=True)) if ready else {}
        outputs = tuple(output_of(reference, outcomes.get(reference)) for reference in references)
    return SkillContext(skill.name, "ok", instructions, outputs, listed_files(skill))


def output_of(reference: ScriptReference, outcome: Outcome | None) -> ScriptOutput:
    if outcome is None:
        return not_run(reference)
    if isinstance(outcome, ScriptExecutionResult):
        status, text = run_status(outcome), run_text(outcome, WHOLE, OUTPUT_CHARACTERS)
        return ScriptOutput(reference.script, status, text, outcome.exit_code, reference.argv)
    return ScriptOutput(reference.script, refusal_status(outcome), str(outcome), arguments=reference.argv)


def not_run(reference: ScriptReference) -> ScriptOutput:
    if reference.status == "command":
        return ScriptOutput(reference.script, "refused", TOO_MANY, arguments=reference.argv)
    message = MISSING if reference.status == "not_found" else NEEDS_ARGUMENTS
    return ScriptOutput(reference.script, reference.status, message.format(text=reference.text))


def listed_files(skill: Skill) -> tuple[str, ...]:
    files = bundled_files(skill)
    more = len(files) - LISTED_FILES
    return tuple(files if more <= 0 else [*files[:LISTED_FILES], f"[and {more} more files]"])
