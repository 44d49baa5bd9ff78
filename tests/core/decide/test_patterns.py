"""Which scripts `allowed_commands` and a skill's allowed-tools name, in the spellings that authors use."""

from __future__ import annotations

import time
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest
from support.commands import COMMAND

from skillkit.core.decide.patterns import (
    ToolRule,
    _is_covered,
    _match_text,
    is_command_listed,
    is_script_pattern,
    is_script_tool_listed,
    names_script,
    parse_rule,
)

PYTHON = replace(
    COMMAND,
    base_directory=Path("/home/ann/.claude/skills/demo"),
    script_name="scripts/x.py",
    interpreter="python3",
    argv=("/usr/bin/python3.11", "/home/ann/.claude/skills/demo/scripts/x.py", "--fast"),
    script_arguments=("--fast",),
)


@pytest.mark.parametrize(
    ("text", "tool", "scope"),
    [
        ("Bash", "Bash", None),
        (" Read ", "Read", None),
        ("Bash(git:*)", "Bash", "git:*"),
        (" Bash ( git status ) ", "Bash", "git status"),
        ("Bash(echo (a))", "Bash", "echo (a)"),
        ("Bash()", "Bash", ""),
        ("Bash(python scripts/x.py", "Bash", ""),
        ("*", "*", None),
        ("", "", None),
    ],
)
def test_a_rule_is_a_tool_and_a_scope(text: str, tool: str, scope: str | None) -> None:
    assert parse_rule(text) == ToolRule(tool, scope)


@pytest.mark.parametrize(
    "rule",
    ["Bash", "Bash(git:*)", "Bash()", "Bash(", "*", "bash", "exec", "Shell", "TERMINAL", "Node", "Python(x.py:*)"],
)
def test_any_rule_for_bash_lists_the_tool(rule: str) -> None:
    assert is_script_tool_listed(["Read", rule])


@pytest.mark.parametrize("rule", ["BashOutput", "Read(Bash)", "mcp__*", "", "pythonic", "executor", "web-shell"])
def test_other_rules_do_not(rule: str) -> None:
    assert not is_script_tool_listed([rule])


@pytest.mark.parametrize(
    "scope",
    [
        "*",
        "python *",
        "python:*",
        "python3:*",
        "python3.11 *",
        "python scripts/*",
        "python3 scripts/x.py:*",
        "python3 scripts/x.py *",
        "python3 scripts/x.py --fast",
        "python3 scripts/x.py --fast:*",
        "python3 ./scripts/*.py:*",
        "scripts/x.py:*",
        "./scripts/x.py:*",
        "uv run scripts/x.py:*",
        "uv run python scripts/*",
        "uv run python3 scripts/*",
        "python3 {baseDir}/scripts/x.py:*",
        'python3 "{baseDir}/scripts/x.py":*',
        "python3 ${CLAUDE_SKILL_DIR}/scripts/x.py:*",
        "python3 $SKILL_DIR/scripts/x.py:*",
        "python3 ${SKILL_BASE_DIR}/scripts/x.py *",
        "python3 ~/.claude/skills/demo/scripts/x.py:*",
        "python3 $HOME/.claude/skills/demo/scripts/x.py:*",
        "python3 .claude/skills/demo/scripts/x.py:*",
        "python3 ${CLAUDE_PROJECT_DIR}/.claude/skills/demo/scripts/*",
        "python3 ${CLAUDE_PLUGIN_ROOT}/skills/demo/scripts/x.py:*",
        "python3 /home/ann/.claude/skills/demo/scripts/x.py:*",
        "python* *scripts/*.py*",
    ],
)
def test_a_scope_that_fits_the_command_lists_it(scope: str) -> None:
    assert is_command_listed(replace(PYTHON, allowed_tools=("Read", f"Bash({scope})")))


@pytest.mark.parametrize(
    "scope",
    [
        "",
        "git:*",
        "pyth:*",
        "python",
        "python3 scripts/x.py",
        "python3 scripts/x.py --slow:*",
        "python3 scripts/x.py --fas:*",
        "python3 scripts/x:*",
        "python3 scripts/y.py:*",
        "python3 x.py:*",
        "bash scripts/x.py:*",
        "node scripts/*",
        "python3 other/scripts/x.py:*",
        "python3 /home/bob/.claude/skills/demo/scripts/x.py:*",
        "python3 scripts/x.py --fast && rm -rf /",
        "PYTHON3 scripts/x.py:*",
        "python3 scripts/[x].py:*",
        "python3 scripts/?.py:*",
    ],
)
def test_a_scope_that_does_not_fit_lists_nothing(scope: str) -> None:
    assert not is_command_listed(replace(PYTHON, allowed_tools=("Read", f"Bash({scope})")))
    assert is_command_listed(replace(PYTHON, allowed_tools=(f"Bash({scope})", "Bash")))


def test_a_scope_counts_only_for_the_tool_that_runs_scripts() -> None:
    assert not is_command_listed(replace(PYTHON, allowed_tools=("Read(python3 scripts/x.py:*)", "Read", "Write")))
    assert is_command_listed(replace(PYTHON, allowed_tools=("*",)))
    assert is_command_listed(replace(PYTHON, allowed_tools=("*(python3:*)",)))
    assert not is_command_listed(PYTHON)


@pytest.mark.parametrize(
    ("interpreter", "starts"),
    [
        ("bash", ["bash", "sh", "./"]),
        ("node", ["node"]),
        ("ruby", ["ruby"]),
        ("perl", ["perl"]),
        ("tsx", ["tsx", "npx tsx"]),
        ("ts-node", ["ts-node", "npx ts-node"]),
        ("bun", ["bun", "bun run"]),
        ("deno", ["deno run"]),
        ("pwsh", ["pwsh", "pwsh -File", "powershell -File"]),
    ],
)
def test_each_interpreter_is_known_by_the_names_authors_give_it(interpreter: str, starts: list[str]) -> None:
    command = replace(COMMAND, script_name="scripts/x", interpreter=interpreter, argv=("/opt/program",))
    for start in starts:
        scope = f"{start}scripts/x" if start == "./" else f"{start} scripts/x"
        assert is_command_listed(replace(command, allowed_tools=(f"Bash({scope})",))), scope
    assert not is_command_listed(replace(command, allowed_tools=("Bash(zsh scripts/x)",)))


def test_quotes_do_not_matter_in_arguments_either() -> None:
    command = replace(COMMAND, script_arguments=("it's",), allowed_tools=("Bash(bash scripts/run.sh its)",))
    assert is_command_listed(command)


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("ls", "ls", True),
        ("ls", "l", False),
        ("lsof", "ls*", True),
        ("abc", "a*c", True),
        ("ac", "a*c", True),
        ("a", "a*a", False),
        ("aa", "a*a", True),
        ("abcbd", "*b*b*", True),
        ("abd", "*b*b*", False),
        ("a", "*a*", True),
        ("abcab", "*c*ab", True),
        ("xay", "x*y*", True),
        ("xy", "x*a*y", False),
        ("xay", "x*a*y", True),
        ("xaay", "x*a*a*y", True),
        ("xay", "x*a*a*y", False),
        ("axb", "a*b*b", False),
        ("", "*", True),
        ("", "", True),
    ],
)
def test_a_star_stands_for_any_text_and_nothing_else_is_special(text: str, pattern: str, expected: bool) -> None:
    assert _match_text(text, pattern) is expected


@pytest.mark.parametrize(
    ("line", "scope", "expected"),
    [
        ("ls", "ls *", True),
        ("ls", "ls:*", True),
        ("ls -la", "ls *", True),
        ("ls -la", "ls:*", True),
        ("lsof", "ls *", False),
        ("lsof", "ls:*", False),
        ("lsof", "ls*", True),
        ("a:b", "a:b", True),
    ],
)
def test_arguments_begin_at_the_end_of_a_word(line: str, scope: str, expected: bool) -> None:
    assert _is_covered(line, scope) is expected


def test_a_hostile_scope_takes_no_time() -> None:
    command = replace(PYTHON, script_arguments=("a" * 10_000,), allowed_tools=(f"Bash(*{'a*' * 2_000}b)",))
    before = time.process_time()
    assert not is_command_listed(command)
    assert time.process_time() - before < 20


def test_what_is_more_than_can_be_looked_at_is_not_listed() -> None:
    fitting, other = "Bash(python scripts/x.py:*)", "Bash(git:*)"
    assert is_command_listed(replace(PYTHON, allowed_tools=(*[other] * 499, fitting)))
    assert not is_command_listed(replace(PYTHON, allowed_tools=(*[other] * 500, fitting)))
    assert is_command_listed(replace(PYTHON, allowed_tools=(fitting,), script_arguments=("a" * 10_000,)))
    assert not is_command_listed(replace(PYTHON, allowed_tools=(fitting,), script_arguments=("a" * 10_000, "b")))


def test_a_rule_never_changes() -> None:
    with pytest.raises(FrozenInstanceError):
        parse_rule("Bash").tool = "Read"  # type: ignore[misc]  # that is the point
    assert not hasattr(parse_rule("Bash"), "__dict__")


@pytest.mark.parametrize(
    "entry",
    [
        "scripts/tools/run.sh",
        "./scripts/tools/run.sh",
        "././scripts//tools/run.sh",
        "scripts/*/run.sh",
        "scripts/tools/*",
        "scripts/tools/r?n.[s]h",
        "scripts/**",
        "**/run.sh",
        "**/*",
        "scripts/**/run.sh",
        "scripts/tools/**/run.sh",
        "demo:scripts/tools/run.sh",
        "demo:./scripts/**",
        "d*:**/run.sh",
        "*:scripts/tools/*",
    ],
)
def test_these_name_the_script(entry: str) -> None:
    assert is_script_pattern(entry)
    assert names_script(entry, "demo", "scripts/tools/run.sh")


@pytest.mark.parametrize(
    "entry",
    [
        "scripts/*",
        "scripts/run.sh",
        "scripts/tools",
        "scripts/tools/",
        "scripts/tools/run.sh/x",
        "tools/run.sh",
        "*/run.sh",
        "Scripts/tools/run.sh",
        "scripts/tools/RUN.SH",
        "/scripts/tools/run.sh",
        "/**",
        "../demo/scripts/tools/run.sh",
        "other:scripts/tools/run.sh",
        "Demo:scripts/tools/run.sh",
        ":scripts/tools/run.sh",
        "demo:/scripts/tools/run.sh",
        "**/other.sh",
    ],
)
def test_these_do_not(entry: str) -> None:
    assert is_script_pattern(entry)
    assert not names_script(entry, "demo", "scripts/tools/run.sh")


def test_a_folder_that_is_called_like_another_skill_and_its_folder_opens_nothing() -> None:
    assert names_script("good:scripts/run.sh", "good", "scripts/run.sh")
    assert not names_script("good:scripts/run.sh", "evil", "good:scripts/run.sh")


def test_a_skill_may_have_a_colon_in_its_name() -> None:
    assert names_script("team:demo:scripts/run.sh", "team:demo", "scripts/run.sh")


def test_a_script_beside_the_instructions_is_named_with_a_dot() -> None:
    assert names_script("./run.sh", "demo", "run.sh")
    assert not names_script("./run.sh", "demo", "scripts/run.sh")


@pytest.mark.parametrize("entry", ["git", "ls*", "", "demo:run"])
def test_entries_without_a_slash_are_about_programs(entry: str) -> None:
    assert not is_script_pattern(entry)
