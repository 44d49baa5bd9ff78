"""Whatever rules, policies and approvals come together: the strictest word wins, and nothing loosens it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.commands import COMMAND

from skillkit import TRUSTED, Limits, ScriptPolicy
from skillkit.core.decide import rules
from skillkit.core.decide.rules import Verdict, decide, under_approval
from skillkit.core.values.runs import Decision, ScriptCommand
from skillkit.core.values.skills import Workspace

PROPERTY = settings(derandomize=True, deadline=None)
APPROVALS = st.sampled_from([None, "session", "trust", "other"])
VERDICTS = st.lists(
    st.builds(
        Verdict, st.sampled_from(Decision), st.tuples(st.text(max_size=5)), st.none(), is_coverable=st.booleans()
    ),
    max_size=6,
)
PATHS = ("/data", "/data/a", "/skills/demo/x", "/work/y", "/etc/passwd")
COMMANDS = st.builds(
    lambda **changes: replace(
        COMMAND, workspace=Workspace(Path("/work"), 1, 2), closed_paths=("/etc/passwd",), **changes
    ),
    allowed_tools=st.lists(st.sampled_from(["Read", "Bash", "Bash(git:*)", "Bash(bash scripts/*)"]), max_size=2).map(
        tuple
    ),
    interpreter=st.sampled_from(["bash", "python3", "deno"]),
    argument_paths=st.lists(st.sampled_from(PATHS), max_size=3, unique=True).map(tuple),
    has_unread_arguments=st.booleans(),
    agent_facing=st.booleans(),
    from_instructions=st.sampled_from(["", "list"]),
)
ENTRIES = ("git", "scripts/*", "demo:scripts/**", "other/*", "other:scripts/run.sh")
POLICIES = st.builds(
    ScriptPolicy,
    allow_scripts=st.booleans(),
    allow_network=st.booleans(),
    allow_filesystem=st.booleans(),
    approval=st.sampled_from(["never", "first_run", "always"]),
    run_on_load=st.sampled_from(["ask", "trusted", "never"]),
    allowed_tools_mode=st.sampled_from(["restrict", "grant", "ignore"]),
    allowed_commands=st.lists(st.sampled_from(ENTRIES), max_size=3),
    allowed_interpreters=st.lists(st.sampled_from(["bash", "python3", "deno"]), max_size=3),
    readable_paths=st.lists(st.sampled_from(["/data", "/etc", "/data/a"]), max_size=2),
    writable_paths=st.lists(st.sampled_from(["/data", "/out"]), max_size=2),
    grant_argument_paths=st.booleans(),
    sandbox=st.sampled_from(["off", "preferred", "required"]),
)


def ruling_of(*groups: list[Verdict]) -> Verdict:
    """What these verdicts come to, each group given by a rule of its own."""

    def rule(verdicts: list[Verdict]) -> rules.Rule:
        def given_verdicts(_command: ScriptCommand, _policy: ScriptPolicy) -> Iterator[Verdict]:
            yield from verdicts

        return given_verdicts

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "RULES", tuple(map(rule, groups)))
        return decide(COMMAND, TRUSTED)


@PROPERTY
@given(groups=st.lists(VERDICTS, max_size=4))
def test_the_outcome_is_the_strictest_verdict_with_its_reasons(groups: list[list[Verdict]]) -> None:
    ruling = ruling_of(*groups)
    verdicts = [verdict for group in groups for verdict in group]
    strictest = max((verdict.decision for verdict in verdicts), default=Decision.DENY)
    assert ruling.decision is strictest
    assert ruling.reasons == tuple(each.reasons[0] for each in verdicts if each.decision is strictest)
    assert (ruling.error is not None) == (strictest is Decision.DENY)
    asked = [each for each in verdicts if each.decision is Decision.ASK]
    assert ruling.is_coverable == (strictest is Decision.ASK and all(each.is_coverable for each in asked))


@PROPERTY
@given(groups=st.lists(VERDICTS, min_size=1, max_size=4), more=VERDICTS, approved_by=APPROVALS)
def test_one_more_rule_never_loosens(groups: list[list[Verdict]], more: list[Verdict], approved_by: str | None) -> None:
    before, after = ruling_of(*groups), ruling_of(*groups, more)
    if any(groups):
        assert after.decision >= before.decision
        assert under_approval(after, approved_by).decision >= under_approval(before, approved_by).decision


def test_without_any_rule_nothing_runs() -> None:
    assert ruling_of().decision is Decision.DENY


@PROPERTY
@given(groups=st.lists(VERDICTS, max_size=4), approved_by=APPROVALS)
def test_an_approval_answers_only_questions_that_it_covers(
    groups: list[list[Verdict]], approved_by: str | None
) -> None:
    ruling = ruling_of(*groups)
    after = under_approval(ruling, approved_by)
    if ruling.is_coverable and approved_by in ("session", "trust"):
        assert (ruling.decision, after.decision, after.error) == (Decision.ASK, Decision.ALLOW, None)
        assert len(after.reasons) == 1
    else:
        assert after is ruling


@PROPERTY
@given(command=COMMANDS, policy=POLICIES)
def test_no_rule_is_overruled(command: ScriptCommand, policy: ScriptPolicy) -> None:
    ruling = decide(command, policy)
    assert ruling.decision is max(each.decision for rule in rules.RULES for each in rule(command, policy))
    if not policy.allow_scripts or command.interpreter not in policy.allowed_interpreters:
        assert ruling.decision is Decision.DENY


@PROPERTY
@given(command=COMMANDS, policy=POLICIES, approved_by=APPROVALS)
def test_a_models_call_is_never_decided_more_loosely_than_a_programs(
    command: ScriptCommand, policy: ScriptPolicy, approved_by: str | None
) -> None:
    own, models = (decide(replace(command, agent_facing=facing), policy) for facing in (False, True))
    assert under_approval(models, approved_by).decision >= under_approval(own, approved_by).decision


@PROPERTY
@given(command=COMMANDS, policy=POLICIES, approved_by=APPROVALS)
def test_always_means_always(command: ScriptCommand, policy: ScriptPolicy, approved_by: str | None) -> None:
    ruling = decide(command, replace(policy, approval="always"))
    assert under_approval(ruling, approved_by).decision >= Decision.ASK


def fewer(values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """One of them left out, in every way."""
    return [values[:index] + values[index + 1 :] for index in range(len(values))]


def fewer_scripts(entries: tuple[str, ...]) -> list[tuple[str, ...]]:
    """A first entry about scripts forbids all others; then each that goes forbids more, but the last."""
    is_restricting = any("/" in entry for entry in entries)
    changed = fewer(entries) if is_restricting else [(*entries, entry) for entry in ENTRIES]
    return [values for values in changed if any("/" in entry for entry in values)]


def stricter(*order: str) -> Any:
    """All that come after a value."""
    return lambda value: order[order.index(value) + 1 :]


def off(_: bool) -> list[bool]:
    return [False]


# For each field, all that is one step tighter than a value; modes of allowed-tools have an order only from `ignore`.
TIGHTER: dict[str, Any] = {
    "allow_scripts": off,
    "allow_network": off,
    "allowed_hosts": fewer,
    "allow_filesystem": off,
    "timeout_seconds": lambda seconds: [seconds / 2],
    "allowed_commands": fewer_scripts,
    "allowed_interpreters": fewer,
    "allowed_tools_mode": lambda mode: ["restrict", "grant"] if mode == "ignore" else [],
    "approval": stricter("never", "first_run", "always"),
    "run_on_load": stricter("ask", "trusted", "never"),
    "working_directory": lambda _: ["skill", "workspace", "auto"],
    "pass_environment": fewer,
    "inherit_environment": off,
    "readable_paths": fewer,
    "writable_paths": fewer,
    "grant_argument_paths": off,
    "home": stricter("kept", "fresh"),
    "grantable": fewer,
    "sandbox": stricter("off", "preferred", "required"),
    "warm": stricter("auto", "off"),
    "limits": lambda _: [Limits(processes=1)],
}


def test_every_field_of_a_policy_has_a_way_to_be_tightened() -> None:
    assert list(TIGHTER) == [each.name for each in fields(ScriptPolicy)]


@PROPERTY
@given(command=COMMANDS, policy=POLICIES, approved_by=APPROVALS)
def test_a_tighter_policy_never_decides_more_loosely(
    command: ScriptCommand, policy: ScriptPolicy, approved_by: str | None
) -> None:
    before = under_approval(decide(command, policy), approved_by).decision
    for name, tighter in TIGHTER.items():
        for value in tighter(getattr(policy, name)):
            changed: ScriptPolicy = replace(policy, **{name: value})
            assert under_approval(decide(command, changed), approved_by).decision >= before, (name, value)
