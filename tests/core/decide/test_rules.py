from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillkit import LOCKED, STANDARD, TRUSTED, ScriptPolicy, ScriptRefusedError, ToolRestrictionError
from skillkit.core.decide import Ruling, Verdict, decide, rules
from skillkit.core.decide.rules import tool_of
from skillkit.core.runs import Decision, ScriptCommand

COMMAND = ScriptCommand(
    skill_name="demo",
    digest="0" * 64,
    base_directory=Path("/skills/demo"),
    script_path=Path("/skills/demo/scripts/run.sh"),
    script_name="scripts/run.sh",
    interpreter="bash",
    allowed_tools=(),
    argv=("/bin/bash", "/skills/demo/scripts/run.sh"),
    cwd="/skills/demo",
    environment={},
    stdin=b"",
    timeout=30,
    output_limit=100,
    arguments=None,
    script_arguments=(),
    session_id=None,
    workspace=None,
)


def decision(policy: ScriptPolicy, **changes: object) -> Decision:
    return decide(replace(COMMAND, **changes), policy).decision  # type: ignore[arg-type]  # any field


def test_what_policy_allows_may_run() -> None:
    assert decide(COMMAND, STANDARD) == Ruling(Decision.ALLOW, ("Policy allows scripts.",), None)


def test_without_allow_scripts_nothing_runs_whatever_else_is_said() -> None:
    ruling = decide(COMMAND, LOCKED)
    assert (ruling.decision, ruling.reasons) == (
        Decision.DENY,
        ("Policy does not allow scripts; set 'allow_scripts'.",),
    )
    assert isinstance(ruling.error, ScriptRefusedError)
    assert ruling.error.reasons == ruling.reasons


@pytest.mark.parametrize(("approval", "expected"), [("never", 0), ("first_run", 1), ("always", 1)])
def test_approval_adds_a_question(approval: str, expected: int) -> None:
    assert decision(replace(STANDARD, approval=approval)) == expected


@pytest.mark.parametrize(
    ("tools", "mode", "expected"),
    [
        ((), "restrict", Decision.ALLOW),
        (("Bash",), "restrict", Decision.ALLOW),
        (("Read", "Bash(git:*)"), "restrict", Decision.ALLOW),
        (("*",), "restrict", Decision.ALLOW),
        (("Read",), "restrict", Decision.DENY),
        (("bash",), "restrict", Decision.DENY),
        (("BashOutput",), "restrict", Decision.DENY),
        (("Read(Bash)",), "restrict", Decision.DENY),
        ((), "grant", Decision.ASK),
        (("Read",), "grant", Decision.ASK),
        (("Bash",), "grant", Decision.ALLOW),
        (("Read",), "ignore", Decision.ALLOW),
    ],
)
def test_allowed_tools_by_mode(tools: tuple[str, ...], mode: str, expected: Decision) -> None:
    assert decision(replace(STANDARD, allowed_tools_mode=mode), allowed_tools=tools) is expected


def test_a_skill_cannot_approve_itself() -> None:
    policy = replace(STANDARD, allowed_tools_mode="grant", approval="first_run")
    assert decision(policy, allowed_tools=("Bash",)) is Decision.ASK
    assert decision(replace(LOCKED, allowed_tools_mode="grant"), allowed_tools=("Bash",)) is Decision.DENY


def test_the_refusal_of_a_tool_names_skill_and_tools() -> None:
    ruling = decide(replace(COMMAND, allowed_tools=("Read", "Write")), STANDARD)
    assert isinstance(ruling.error, ToolRestrictionError)
    assert str(ruling.error) == "Tool 'Bash' not allowed for skill 'demo'. Allowed tools: Read, Write"


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ((), Decision.ALLOW),
        (("git", "ls*"), Decision.ALLOW),
        (("scripts/run.sh",), Decision.ALLOW),
        (("scripts/*",), Decision.ALLOW),
        (("demo:scripts/*.sh",), Decision.ALLOW),
        (("other:scripts/*.sh",), Decision.DENY),
        (("scripts/RUN.sh",), Decision.DENY),
        (("git", "scripts/other.sh"), Decision.DENY),
    ],
)
def test_entries_with_a_slash_restrict_scripts(patterns: tuple[str, ...], expected: Decision) -> None:
    assert decision(replace(STANDARD, allowed_commands=patterns)) is expected


@pytest.mark.parametrize(("rule", "tool"), [("Bash", "Bash"), ("Bash(git:*)", "Bash"), (" Read (x) ", "Read")])
def test_the_tool_of_a_rule(rule: str, tool: str) -> None:
    assert tool_of(rule) == tool


VERDICTS = st.lists(st.builds(Verdict, st.sampled_from(Decision), st.text(max_size=5)), max_size=6)


def ruling_of(monkeypatch: pytest.MonkeyPatch, *groups: list[Verdict]) -> Ruling:
    def rule(verdicts: list[Verdict]) -> rules.Rule:
        def given_verdicts(_command: ScriptCommand, _policy: ScriptPolicy) -> Iterator[Verdict]:
            yield from verdicts

        return given_verdicts

    with monkeypatch.context() as patch:
        patch.setattr(rules, "RULES", tuple(map(rule, groups)))
        return decide(COMMAND, TRUSTED)


@settings(derandomize=True, deadline=None)
@given(groups=st.lists(VERDICTS, max_size=4))
def test_the_outcome_is_the_strictest_verdict_with_its_reasons(groups: list[list[Verdict]]) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        ruling = ruling_of(monkeypatch, *groups)
    verdicts = [verdict for group in groups for verdict in group]
    strictest = max((verdict.decision for verdict in verdicts), default=Decision.DENY)
    assert ruling.decision is strictest
    assert ruling.reasons == tuple(each.reason for each in verdicts if each.decision is strictest)
    assert (ruling.error is not None) == (strictest is Decision.DENY)


@settings(derandomize=True, deadline=None)
@given(groups=st.lists(VERDICTS, min_size=1, max_size=4), more=VERDICTS)
def test_one_more_rule_never_loosens(groups: list[list[Verdict]], more: list[Verdict]) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        before, after = ruling_of(monkeypatch, *groups), ruling_of(monkeypatch, *groups, more)
    if any(groups):
        assert after.decision >= before.decision


def test_without_any_rule_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ruling_of(monkeypatch).decision is Decision.DENY


POLICIES = st.builds(
    ScriptPolicy,
    allow_scripts=st.booleans(),
    approval=st.sampled_from(["never", "first_run", "always"]),
    allowed_tools_mode=st.sampled_from(["restrict", "grant", "ignore"]),
    allowed_commands=st.lists(st.sampled_from(["git", "scripts/*", "other/*"]), max_size=2),
)


@settings(derandomize=True, deadline=None)
@given(policy=POLICIES, tools=st.lists(st.sampled_from(["Read", "Bash", "Bash(x)"]), max_size=2))
def test_no_policy_lets_a_script_run_that_one_of_its_rules_forbids(policy: ScriptPolicy, tools: list[str]) -> None:
    command = replace(COMMAND, allowed_tools=tuple(tools))
    ruling = decide(command, policy)
    each = [verdict.decision for rule in rules.RULES for verdict in rule(command, policy)]
    assert ruling.decision == max(each)
    if not policy.allow_scripts:
        assert ruling.decision is Decision.DENY
