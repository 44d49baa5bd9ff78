from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.commands import COMMAND

from skillkit import (
    GUARDED,
    LOCKED,
    STANDARD,
    TRUSTED,
    InterpreterNotAllowedError,
    ScriptPolicy,
    ScriptRefusedError,
    ToolRestrictionError,
)
from skillkit.core.decide import rules
from skillkit.core.decide.rules import Verdict, after_change, after_widening, decide, under_approval
from skillkit.core.values.runs import Decision
from skillkit.core.values.skills import Workspace


def decision(policy: ScriptPolicy, **changes: object) -> Decision:
    return decide(replace(COMMAND, **changes), policy).decision  # type: ignore[arg-type]  # any field


def test_what_policy_allows_may_run() -> None:
    assert decide(COMMAND, STANDARD) == Verdict(Decision.ALLOW, ("Policy allows scripts.",), None)


def test_without_allow_scripts_nothing_runs_whatever_else_is_said() -> None:
    ruling = decide(COMMAND, ScriptPolicy())
    assert (ruling.decision, ruling.reasons) == (
        Decision.DENY,
        ("Policy does not allow scripts; set 'allow_scripts'.",),
    )
    assert isinstance(ruling.error, ScriptRefusedError)
    assert ruling.error.reasons == ruling.reasons


@pytest.mark.parametrize("folder", ["skill", "auto"])
def test_the_profile_that_runs_nothing_is_named(folder: str) -> None:
    """A policy made in Python without a word looks the same, so both remedies are told."""
    (reason,) = decide(COMMAND, replace(LOCKED, working_directory=folder)).reasons
    assert "as in the profile 'locked'; set 'allow_scripts', or choose another profile" in reason


@pytest.mark.parametrize(
    ("approval", "expected", "reason"),
    [
        ("never", Decision.ALLOW, "Policy allows scripts."),
        ("first_run", Decision.ASK, "Policy asks a person before a skill's first run."),
        ("always", Decision.ASK, "Policy asks a person before every run."),
    ],
)
def test_approval_adds_a_question(approval: str, expected: Decision, reason: str) -> None:
    ruling = decide(COMMAND, replace(STANDARD, approval=approval))
    assert (ruling.decision, ruling.reasons) == (expected, (reason,))


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (STANDARD, Decision.ASK),
        (replace(STANDARD, sandbox="off"), Decision.ASK),
        (TRUSTED, Decision.ALLOW),
        (replace(TRUSTED, timeout_seconds=60), Decision.ALLOW),
        (replace(TRUSTED, allow_network=False), Decision.ASK),
        (replace(TRUSTED, allow_filesystem=False), Decision.ASK),
        (replace(TRUSTED, sandbox="preferred"), Decision.ASK),
        (LOCKED, Decision.DENY),
    ],
)
def test_what_only_the_instructions_ask_for_needs_a_person_unless_all_is_trusted(
    policy: ScriptPolicy, expected: Decision
) -> None:
    ruling = decide(replace(COMMAND, from_instructions="list"), policy)
    assert (ruling.decision, ruling.is_coverable) == (expected, expected is Decision.ASK)
    assert ("The skill's own instructions ask for this run." in ruling.reasons) == (expected is Decision.ASK)


@pytest.mark.parametrize("policy", [STANDARD, GUARDED, TRUSTED, replace(GUARDED, approval="always")])
def test_what_runs_on_load_is_asked_about_or_forbidden_as_policy_says(policy: ScriptPolicy) -> None:
    loaded = replace(COMMAND, from_instructions="list")
    assert decide(loaded, replace(policy, run_on_load="never")).decision is Decision.DENY
    trusted = decide(loaded, replace(policy, run_on_load="trusted"))
    assert (trusted.decision, trusted.is_coverable) == (Decision.ASK, policy.approval != "always")
    assert decide(COMMAND, replace(policy, run_on_load="never")) == decide(COMMAND, policy), (
        "other runs are as they were"
    )


@pytest.mark.parametrize(
    ("tools", "mode", "expected"),
    [
        ((), "restrict", Decision.ALLOW),
        (("Bash",), "restrict", Decision.ALLOW),
        (("Read", "Bash(git:*)"), "restrict", Decision.ALLOW),
        (("*",), "restrict", Decision.ALLOW),
        (("Read",), "restrict", Decision.DENY),
        (("exec", "Read"), "restrict", Decision.ALLOW),
        (("shell",), "grant", Decision.ALLOW),
        (("BashOutput",), "restrict", Decision.DENY),
        (("Read(Bash)",), "restrict", Decision.DENY),
        ((), "grant", Decision.ASK),
        (("Read",), "grant", Decision.ASK),
        (("Bash",), "grant", Decision.ALLOW),
        (("Bash(git:*)", "Bash"), "grant", Decision.ALLOW),
        (("Bash(bash scripts/run.sh:*)",), "grant", Decision.ALLOW),
        (("Bash(git:*)",), "grant", Decision.ASK),
        (("Read",), "ignore", Decision.ALLOW),
        ((), "ignore", Decision.ALLOW),
    ],
)
def test_allowed_tools_by_mode(tools: tuple[str, ...], mode: str, expected: Decision) -> None:
    assert decision(replace(STANDARD, allowed_tools_mode=mode), allowed_tools=tools) is expected


def test_a_question_about_a_tool_says_which_and_for_which_script() -> None:
    ruling = decide(COMMAND, replace(STANDARD, allowed_tools_mode="grant"))
    assert ruling.reasons == ("The skill's allowed-tools do not list 'Bash' for 'scripts/run.sh'.",)


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
        (("scripts/other.sh", "./scripts/run.sh"), Decision.ALLOW),
    ],
)
def test_entries_with_a_slash_restrict_scripts(patterns: tuple[str, ...], expected: Decision) -> None:
    assert decision(replace(STANDARD, allowed_commands=patterns)) is expected


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        pytest.param((), Decision.DENY, id="none"),
        pytest.param(("say",), Decision.ALLOW, id="name"),
        pytest.param(("s*",), Decision.ALLOW, id="glob"),
        pytest.param(("scripts/*", "*/say"), Decision.DENY, id="only-scripts"),
        pytest.param(("SAY",), Decision.DENY, id="case"),
    ],
)
def test_a_program_needs_an_entry_without_a_slash(patterns: tuple[str, ...], expected: Decision) -> None:
    policy = replace(STANDARD, allowed_commands=patterns, allowed_interpreters=())
    assert decision(policy, is_program=True, script_name="say", interpreter="say") is expected


def test_the_refusal_of_a_script_names_it_and_what_may_run() -> None:
    ruling = decide(COMMAND, replace(STANDARD, allowed_commands=("git", "other/*")))
    assert ruling.reasons == ("'scripts/run.sh' matches none of 'allowed_commands': ['other/*'].",)


def test_the_refusal_of_a_program_names_it_and_the_setting() -> None:
    ruling = decide(replace(COMMAND, is_program=True, script_name="say", interpreter="say"), STANDARD)
    assert ruling.reasons == ("'allowed_commands' does not name the program 'say'; add it if that is wanted.",)


def test_a_command_whose_interpreter_is_not_listed_is_refused_whoever_made_it() -> None:
    ruling = decide(replace(COMMAND, interpreter="deno"), replace(STANDARD, allowed_interpreters=("bash", "perl")))
    assert isinstance(ruling.error, InterpreterNotAllowedError)
    assert (ruling.decision, ruling.error.interpreter, ruling.error.allowed) == (
        Decision.DENY,
        "deno",
        ("bash", "perl"),
    )
    assert ruling.reasons == (str(ruling.error),)
    assert "'deno' may not run scripts here. Allowed: bash, perl." in str(ruling.error)
    nothing = decide(COMMAND, replace(STANDARD, allowed_interpreters=()))
    assert "Allowed: none." in nothing.reasons[0]


def test_every_reason_of_the_strictest_kind_is_kept_in_order() -> None:
    policy = ScriptPolicy(allow_scripts=False, allowed_interpreters=(), allowed_commands=("x/y",), approval="always")
    reasons = decide(replace(COMMAND, allowed_tools=("Read",)), policy).reasons
    assert [reason.split()[0] for reason in reasons] == ["Policy", "'bash'", "Tool", "'scripts/run.sh'"]
    assert not any("before every run" in reason for reason in reasons)


def test_the_error_of_a_refusal_is_the_first_that_a_rule_gave() -> None:
    policy = replace(LOCKED, allowed_interpreters=())
    assert isinstance(decide(replace(COMMAND, allowed_tools=("Read",)), policy).error, InterpreterNotAllowedError)
    assert isinstance(decide(replace(COMMAND, allowed_tools=("Read",)), LOCKED).error, ToolRestrictionError)


def test_what_is_allowed_or_asked_raises_nothing() -> None:
    assert (decide(COMMAND, STANDARD).error, decide(COMMAND, GUARDED).error) == (None, None)


AGENTS = replace(COMMAND, agent_facing=True, argument_paths=("/data/a.csv",), workspace=Workspace(Path("/work"), 1, 2))


def test_an_agents_argument_outside_skill_and_workspace_asks_and_names_the_path() -> None:
    ruling = decide(AGENTS, STANDARD)
    assert (ruling.decision, ruling.is_coverable) == (Decision.ASK, False)
    assert ruling.reasons == ("The arguments name paths outside skill and workspace: '/data/a.csv'.",)
    assert decide(replace(AGENTS, agent_facing=False), STANDARD).decision is Decision.ALLOW


@pytest.mark.parametrize("path", ["/skills/demo", "/skills/demo/data", "/work/x", "/read/x/y", "/write/z"])
def test_what_skill_workspace_and_policy_hold_is_not_asked_about(path: str) -> None:
    policy = replace(STANDARD, readable_paths=(Path("/read"),), writable_paths=(Path("/write"),))
    assert decide(replace(AGENTS, argument_paths=(path,)), policy).decision is Decision.ALLOW
    assert decide(replace(AGENTS, argument_paths=(path, "/reader")), policy).decision is Decision.ASK


def test_a_policys_path_counts_as_what_its_links_lead_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    command = replace(AGENTS, argument_paths=(str((tmp_path / "real").resolve() / "a"),))
    assert decide(command, replace(STANDARD, readable_paths=(tmp_path / "link",))).decision is Decision.ALLOW
    assert decide(command, STANDARD).decision is Decision.ASK


def test_an_agents_argument_that_is_never_granted_asks_and_says_so() -> None:
    command = replace(AGENTS, argument_paths=("/data/a", "/etc/passwd"), closed_paths=("/etc/passwd",))
    ruling = decide(command, STANDARD)
    assert ruling.reasons == (
        "The arguments name paths outside skill and workspace: '/data/a'.",
        "The arguments name paths that are never granted: '/etc/passwd'.",
    )
    assert not ruling.is_coverable
    assert decide(replace(command, agent_facing=False), STANDARD).decision is Decision.ALLOW


def test_more_of_an_agents_arguments_than_were_looked_at_ask() -> None:
    command = replace(COMMAND, agent_facing=True, has_unread_arguments=True)
    ruling = decide(command, STANDARD)
    assert (ruling.decision, ruling.is_coverable) == (Decision.ASK, False)
    assert ruling.reasons == ("The arguments are too many to look for paths in all of them.",)
    assert decide(replace(command, has_unread_arguments=False), STANDARD).decision is Decision.ALLOW


def test_few_paths_are_shown_and_none_at_any_length() -> None:
    def reason(*paths: str) -> str:
        return decide(replace(AGENTS, argument_paths=paths), STANDARD).reasons[0].partition(": ")[2]

    many = tuple(f"/data/{number}" for number in range(7))
    assert reason(*many[:5]) == "'/data/0', '/data/1', '/data/2', '/data/3', '/data/4'."
    assert reason(*many[:6]).endswith("'/data/4' and 1 more.")
    assert reason(*many).endswith("'/data/4' and 2 more.")
    assert reason("/" + "x" * 199) == f"'/{'x' * 199}'."
    assert reason("/" + "x" * 200) == f"'/{'x' * 199}...'."
    assert reason("/a\u202eb\n") == r"'/a\u202eb\n'."


@pytest.mark.parametrize(
    ("policy", "is_coverable"),
    [
        (GUARDED, True),
        (replace(GUARDED, approval="always"), False),
        (replace(STANDARD, allowed_tools_mode="grant"), True),
        (replace(GUARDED, allowed_tools_mode="grant"), True),
        (replace(GUARDED, approval="always", allowed_tools_mode="grant"), False),
        (STANDARD, False),
        (LOCKED, False),
        (replace(GUARDED, allow_scripts=False), False),
    ],
)
def test_an_earlier_approval_answers_only_what_it_was_given_for(policy: ScriptPolicy, is_coverable: bool) -> None:
    assert decide(COMMAND, policy).is_coverable is is_coverable


def test_one_question_that_no_earlier_approval_answers_keeps_all_of_them_open() -> None:
    ruling = decide(AGENTS, GUARDED)
    assert (len(ruling.reasons), ruling.is_coverable) == (2, False)
    assert under_approval(ruling, "trust") is ruling


@pytest.mark.parametrize(("approved_by", "reason"), [("session", "Approved in this session."), ("trust", "Trusted.")])
def test_an_approval_of_this_digest_answers(approved_by: str, reason: str) -> None:
    assert under_approval(decide(COMMAND, GUARDED), approved_by) == Verdict(
        Decision.ALLOW, (reason,), None, is_coverable=False
    )


@pytest.mark.parametrize("approved_by", [None, "", "flag"])
def test_nothing_else_answers(approved_by: str | None) -> None:
    ruling = decide(COMMAND, GUARDED)
    assert under_approval(ruling, approved_by) is ruling


@pytest.mark.parametrize("decision", [Decision.ALLOW, Decision.DENY])
def test_an_approval_changes_nothing_where_nothing_is_asked(decision: Decision) -> None:
    ruling = Verdict(decision, ("x",), None, is_coverable=True)
    assert under_approval(ruling, "trust") is ruling


def test_verdicts_never_change() -> None:
    value = Verdict(Decision.ALLOW, ("x",))
    with pytest.raises(AttributeError):
        value.decision = Decision.DENY  # type: ignore[misc]  # that is the point
    assert not hasattr(value, "__dict__")
    assert not Verdict(Decision.ASK, ("x",)).is_coverable


def test_these_are_the_rules() -> None:
    assert [rule.__name__ for rule in rules.RULES] == [
        "scripts_are_allowed",
        "interpreter_is_allowed",
        "tool_is_allowed",
        "script_is_listed",
        "argument_paths_are_known",
        "loading_may_run",
        "approval_is_needed",
        "signer_is_the_same",
    ]


@pytest.mark.parametrize(("mode", "tools"), [("grant", ()), ("restrict", ("Read",))])
def test_a_program_of_the_machine_has_no_list_of_tools(mode: str, tools: tuple[str, ...]) -> None:
    policy = replace(STANDARD, allowed_tools_mode=mode, allowed_commands=("git",))
    program: dict[str, object] = {"is_program": True, "script_name": "git", "interpreter": "git"}
    assert decision(policy, allowed_tools=tools, **program) is Decision.ALLOW
    assert decision(replace(policy, allowed_commands=()), allowed_tools=tools) is not Decision.ALLOW


def test_after_a_change_a_skill_is_asked_about_for_that_reason_and_all_else_stays() -> None:
    asked = decide(replace(COMMAND, agent_facing=True, has_unread_arguments=True), GUARDED)
    changed = after_change(asked)
    assert asked.reasons == (
        "The arguments are too many to look for paths in all of them.",
        "Policy asks a person before a skill's first run.",
    )
    assert changed.reasons == (
        asked.reasons[0],
        "Policy asks a person again, because the skill changed since it was approved.",
    )
    assert changed._replace(reasons=asked.reasons) == asked


@pytest.mark.parametrize(
    ("is_known", "reason"),
    [
        (True, "Policy asks a person again, because the run would get more than what was approved."),
        (
            False,
            "Policy asks a person once more, because an older skillkit did not keep within which walls it was approved.",
        ),
    ],
)
def test_within_wider_walls_a_skill_is_asked_about_for_that_reason_and_all_else_stays(
    is_known: bool, reason: str
) -> None:
    asked = decide(COMMAND, GUARDED)
    assert after_widening(asked, is_known=is_known) == asked._replace(reasons=(reason,))
