"""A command and a policy -> a decision with its reasons; adding a rule never loosens it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import NamedTuple

from skillkit.core.decide.patterns import (
    SCRIPT_TOOL,
    is_command_listed,
    is_script_pattern,
    is_script_tool_listed,
    names_script,
)
from skillkit.core.exceptions import (
    InterpreterNotAllowedError,
    ScriptRefusedError,
    SkillKitError,
    ToolRestrictionError,
)
from skillkit.core.paths import is_inside, real_path
from skillkit.core.values.policy import LOCKED, ScriptPolicy
from skillkit.core.values.runs import Decision, ScriptCommand
from skillkit.core.values.text import visible

__all__ = [
    "APPROVALS",
    "NO_SCRIPTS",
    "RULES",
    "Verdict",
    "after_change",
    "after_widening",
    "after_yes",
    "decide",
    "under_approval",
]

APPROVALS = {"session": "Approved in this session.", "trust": "Trusted."}
"""Earlier words of a person that may answer for them, and the reason that each gives."""

NO_SCRIPTS = "Policy does not allow scripts; set 'allow_scripts'."
LOCKED_RUNS_NONE = (
    "Policy does not allow scripts, as in the profile 'locked'; set 'allow_scripts', or choose another profile, such "
    "as 'guarded'."
)
FIRST_RUN = "Policy asks a person before a skill's first run."
CHANGED = "Policy asks a person again, because the skill changed since it was approved."
WIDER = "Policy asks a person again, because the run would get more than what was approved."
UNKNOWN = "Policy asks a person once more, because an older skillkit did not keep within which walls it was approved."
AFTER_YES = {
    "lasting": "Policy asks a person again, because no earlier approval covers this run.",
    "once": "Policy asks a person again, because the last yes was for one run.",
}
EVERY_RUN = "Policy asks a person before every run."
ON_LOAD = "The skill's own instructions ask for this run."
OPENED, CLOSED = ABOUT_PATHS = (
    "The arguments name paths outside skill and workspace",
    "The arguments name paths that are never granted",
)
TOO_MANY_ARGUMENTS = "The arguments are too many to look for paths in all of them."
SHOWN_PATHS = 5
SHOWN_CHARACTERS = 200


class Verdict(NamedTuple):
    """A decision and why: one rule's word, or the strictest of all; `error` is what a refusal raises."""

    decision: Decision
    reasons: tuple[str, ...]
    error: SkillKitError | None = None
    is_coverable: bool = False
    """Whether an earlier approval of the same digest answers all that is asked."""


Rule = Callable[[ScriptCommand, ScriptPolicy], Iterator[Verdict]]


def decide(command: ScriptCommand, policy: ScriptPolicy) -> Verdict:
    """The strictest word of all rules, with the reasons of those that said it."""
    verdicts = [verdict for rule in RULES for verdict in rule(command, policy)]
    strictest = max((verdict.decision for verdict in verdicts), default=Decision.DENY)
    deciding = [verdict for verdict in verdicts if verdict.decision is strictest]
    reasons = tuple(reason for verdict in deciding for reason in verdict.reasons)
    error = next((verdict.error for verdict in deciding if verdict.error), None)
    if strictest is Decision.DENY and error is None:
        error = ScriptRefusedError(
            f"{command.skill_name}: {command.script_name} may not run. {' '.join(reasons)}", reasons=reasons
        )
    is_coverable = strictest is Decision.ASK and all(verdict.is_coverable for verdict in deciding)
    return Verdict(strictest, reasons, error, is_coverable)


def under_approval(verdict: Verdict, kind: str | None) -> Verdict:
    """What an earlier approval of the same digest, one of APPROVALS, leaves of it: it answers, and never more."""
    if not verdict.is_coverable or verdict.decision is not Decision.ASK or kind not in APPROVALS:
        return verdict
    return Verdict(Decision.ALLOW, (APPROVALS[kind],))


def after_change(verdict: Verdict) -> Verdict:
    """The same, for a skill that was approved before with other content: it is not its first run."""
    return _instead_of_first_run(verdict, CHANGED)


def after_widening(verdict: Verdict, *, is_known: bool) -> Verdict:
    """The same, for a skill that was approved as it is, within narrower walls or within nobody knows which."""
    return _instead_of_first_run(verdict, WIDER if is_known else UNKNOWN)


def after_yes(verdict: Verdict, last_yes: str) -> Verdict:
    """The same, for a skill that had a yes of this kind, which does not cover this run."""
    return _instead_of_first_run(verdict, AFTER_YES.get(last_yes, FIRST_RUN))


def _instead_of_first_run(verdict: Verdict, told: str) -> Verdict:
    return verdict._replace(reasons=tuple(told if reason == FIRST_RUN else reason for reason in verdict.reasons))


def scripts_are_allowed(_: ScriptCommand, policy: ScriptPolicy) -> Iterator[Verdict]:
    if policy.allow_scripts:
        yield Verdict(Decision.ALLOW, ("Policy allows scripts.",))
    else:
        # Where a script starts is no part of what makes a profile: surfaces choose it.
        is_locked = replace(policy, working_directory=LOCKED.working_directory) == LOCKED
        yield Verdict(Decision.DENY, (LOCKED_RUNS_NONE if is_locked else NO_SCRIPTS,))


def interpreter_is_allowed(command: ScriptCommand, policy: ScriptPolicy) -> Iterator[Verdict]:
    if not command.is_program and command.interpreter not in policy.allowed_interpreters:
        message = (
            f"{command.interpreter!r} may not run scripts here. "
            f"Allowed: {', '.join(policy.allowed_interpreters) or 'none'}. "
            "Add it to 'allowed_interpreters' if that is wanted."
        )
        error = InterpreterNotAllowedError(
            message, interpreter=command.interpreter, allowed=policy.allowed_interpreters
        )
        yield Verdict(Decision.DENY, (message,), error)


def tool_is_allowed(command: ScriptCommand, policy: ScriptPolicy) -> Iterator[Verdict]:
    """`restrict`: a list without Bash forbids. `grant`: what is not listed asks. What is listed lowers nothing."""
    mode, tools = policy.allowed_tools_mode, command.allowed_tools
    if command.is_program:
        return
    if mode == "grant" and not is_command_listed(command):
        yield Verdict(Decision.ASK, (not_listed(command.script_name),), is_coverable=True)
    if mode == "restrict" and tools and not is_script_tool_listed(tools):
        message = (
            f"Tool {SCRIPT_TOOL!r} not allowed for skill {command.skill_name!r}. Allowed tools: {', '.join(tools)}"
        )
        error = ToolRestrictionError(message, skill_name=command.skill_name, allowed_tools=tools)
        yield Verdict(Decision.DENY, (f"{message}.",), error)


def script_is_listed(command: ScriptCommand, policy: ScriptPolicy) -> Iterator[Verdict]:
    """Entries of `allowed_commands` with a `/` restrict scripts to those that match; a program needs one without."""
    patterns = [entry for entry in policy.allowed_commands if is_script_pattern(entry) is not command.is_program]
    if command.is_program:
        if not any(fnmatchcase(command.script_name, entry) for entry in patterns):
            reason = f"'allowed_commands' does not name the program {command.script_name!r}; add it if that is wanted."
            yield Verdict(Decision.DENY, (reason,))
    elif patterns and not any(names_script(entry, command.skill_name, command.script_name) for entry in patterns):
        yield Verdict(Decision.DENY, (f"{command.script_name!r} matches none of 'allowed_commands': {patterns}.",))


def argument_paths_are_known(command: ScriptCommand, policy: ScriptPolicy) -> Iterator[Verdict]:
    """What a model's arguments reach for beyond skill, workspace and policy's paths is asked about every time."""
    if not command.agent_facing:
        return
    folders = (command.base_directory, command.workspace, *policy.readable_paths, *policy.writable_paths)
    known = [real_path(folder) for folder in folders if folder is not None]
    unknown = [path for path in command.argument_paths if not any(is_inside(path, folder) for folder in known)]
    opened = [path for path in unknown if path not in command.closed_paths]
    closed = [path for path in unknown if path in command.closed_paths]
    if opened:
        yield Verdict(Decision.ASK, (f"{OPENED}: {_listed(opened)}.",))
    if closed:
        yield Verdict(Decision.ASK, (f"{CLOSED}: {_listed(closed)}.",))
    if command.has_unread_arguments:
        yield Verdict(Decision.ASK, (TOO_MANY_ARGUMENTS,))


def _listed(paths: Sequence[str]) -> str:
    """A few of them; a model chose these texts, so that what cannot be seen is spelled out."""
    texts = [repr(path if len(path) <= SHOWN_CHARACTERS else f"{path[:SHOWN_CHARACTERS]}...") for path in paths]
    more = len(texts) - SHOWN_PATHS
    return ", ".join(texts[:SHOWN_PATHS]) + (f" and {more} more" if more > 0 else "")


def loading_may_run(command: ScriptCommand, policy: ScriptPolicy) -> Iterator[Verdict]:
    """What only a skill's own text asks for needs a person's word even where policy asks for nobody's."""
    if command.from_instructions and policy.run_on_load == "never":
        yield Verdict(Decision.DENY, ("Policy runs nothing when a skill is loaded ('run_on_load').",))
    elif _asks_on_load(command, policy):
        yield Verdict(Decision.ASK, (ON_LOAD,), is_coverable=True)


def _asks_on_load(command: ScriptCommand, policy: ScriptPolicy) -> bool:
    has_all_rights = policy.allow_network and policy.allow_filesystem and policy.sandbox == "off"  # as in TRUSTED
    return bool(command.from_instructions) and (policy.run_on_load == "trusted" or not has_all_rights)


def approval_is_needed(command: ScriptCommand, policy: ScriptPolicy) -> Iterator[Verdict]:
    """What is asked about because the skill is loaded need not be its first run."""
    if policy.approval == "first_run" and not _asks_on_load(command, policy):
        yield Verdict(Decision.ASK, (FIRST_RUN,), is_coverable=True)
    elif policy.approval == "always":
        yield Verdict(Decision.ASK, (EVERY_RUN,))


def signer_is_the_same(command: ScriptCommand, policy: ScriptPolicy) -> Iterator[Verdict]:
    """Who vouched for a skill does not vouch for what somebody put in its place; a person who is asked hears that."""
    if command.lost_signer and policy.approval != "never":
        yield Verdict(Decision.ASK, (lost_signer(command.lost_signer),), is_coverable=True)


def not_listed(script: str) -> str:
    return f"The skill's allowed-tools do not list {SCRIPT_TOOL!r} for {script!r}."


def lost_signer(signer: str) -> str:
    return f"Until now {visible(signer)} had signed this skill; they did not sign what is in it now."


RULES: tuple[Rule, ...] = (
    scripts_are_allowed,
    interpreter_is_allowed,
    tool_is_allowed,
    script_is_listed,
    argument_paths_are_known,
    loading_may_run,
    approval_is_needed,
    signer_is_the_same,
)
