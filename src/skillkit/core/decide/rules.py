"""A command and a policy -> a decision with its reasons; pure, and adding a rule never loosens it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from skillkit.core.exceptions import ScriptRefusedError, SkillKitError, ToolRestrictionError
from skillkit.core.policy import ScriptPolicy
from skillkit.core.runs import Decision, ScriptCommand

__all__ = ["RULES", "Verdict", "decide", "tool_of"]

SCRIPT_TOOL = "Bash"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One rule's word; `error` is what a refusal by this rule raises."""

    decision: Decision
    reason: str
    error: SkillKitError | None = None


@dataclass(frozen=True, slots=True)
class Ruling:
    """The strictest of all verdicts, and why."""

    decision: Decision
    reasons: tuple[str, ...]
    error: SkillKitError | None = None


Rule = Callable[[ScriptCommand, ScriptPolicy], Iterator[Verdict]]


def decide(command: ScriptCommand, policy: ScriptPolicy) -> Ruling:
    verdicts = [verdict for rule in RULES for verdict in rule(command, policy)]
    strictest = max((verdict.decision for verdict in verdicts), default=Decision.DENY)
    reasons = tuple(verdict.reason for verdict in verdicts if verdict.decision == strictest)
    error = next((verdict.error for verdict in verdicts if verdict.error and verdict.decision == strictest), None)
    if strictest is Decision.DENY and error is None:
        error = ScriptRefusedError(
            f"{command.skill_name}: {command.script_name} may not run. {' '.join(reasons)}", reasons=reasons
        )
    return Ruling(strictest, reasons, error)


def scripts_are_allowed(_: ScriptCommand, policy: ScriptPolicy) -> Iterator[Verdict]:
    if policy.allow_scripts:
        yield Verdict(Decision.ALLOW, "Policy allows scripts.")
    else:
        yield Verdict(Decision.DENY, "Policy does not allow scripts; set 'allow_scripts'.")


def tool_is_allowed(command: ScriptCommand, policy: ScriptPolicy) -> Iterator[Verdict]:
    """`restrict`: a list without Bash forbids. `grant`: it asks. A listed tool never lowers a decision."""
    if policy.allowed_tools_mode == "ignore" or any(is_script_tool(rule) for rule in command.allowed_tools):
        return
    listed = ", ".join(command.allowed_tools)
    if policy.allowed_tools_mode == "grant":
        yield Verdict(Decision.ASK, f"The skill's allowed-tools do not list {SCRIPT_TOOL!r}.")
    elif command.allowed_tools:
        message = f"Tool {SCRIPT_TOOL!r} not allowed for skill {command.skill_name!r}. Allowed tools: {listed}"
        error = ToolRestrictionError(message, skill_name=command.skill_name, allowed_tools=command.allowed_tools)
        yield Verdict(Decision.DENY, f"{message}.", error)


def is_script_tool(rule: str) -> bool:
    return tool_of(rule) in (SCRIPT_TOOL, "*")


def tool_of(rule: str) -> str:
    """`Bash` of `Bash(git:*)`."""
    return rule.partition("(")[0].strip()


def script_is_listed(command: ScriptCommand, policy: ScriptPolicy) -> Iterator[Verdict]:
    """Entries of `allowed_commands` with a `/` restrict scripts to those that match."""
    patterns = [pattern for pattern in policy.allowed_commands if "/" in pattern]
    names = (command.script_name, f"{command.skill_name}:{command.script_name}")
    if patterns and not any(fnmatchcase(name, pattern) for name in names for pattern in patterns):
        yield Verdict(Decision.DENY, f"{command.script_name!r} matches none of 'allowed_commands': {patterns}.")


def approval_is_needed(_: ScriptCommand, policy: ScriptPolicy) -> Iterator[Verdict]:
    if policy.approval == "first_run":
        yield Verdict(Decision.ASK, "Policy asks a person before a skill's first run.")
    elif policy.approval == "always":
        yield Verdict(Decision.ASK, "Policy asks a person before every run.")


RULES: tuple[Rule, ...] = (scripts_are_allowed, tool_is_allowed, script_is_listed, approval_is_needed)
