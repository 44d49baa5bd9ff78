"""What a skill's allowed-tools say -> whether they list this very command, however its author may write it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from skillkit.core.runs import ScriptCommand

__all__ = ["SCRIPT_TOOL", "ToolRule", "is_command_listed", "is_script_tool_listed", "parsed_rule"]

SCRIPT_TOOL = "Bash"
EVERY_TOOL = "*"
ARGUMENTS_FOLLOW = (":*", " *")
# How authors start a program that policies know by one name.
WRITTEN_AS = {
    "python3": ("python3", "python", "uv run", "uv run python", "uv run python3"),
    "bash": ("bash", "sh"),
    "tsx": ("tsx", "npx tsx"),
    "ts-node": ("ts-node", "npx ts-node"),
    "bun": ("bun", "bun run"),
    "deno": ("deno run",),
    "pwsh": ("pwsh", "pwsh -File", "powershell -File"),
}
SKILL_FOLDER = re.compile(r"\$\{?(?:CLAUDE_SKILL_DIR|SKILL_BASE_DIR|SKILL_DIR)\b\}?|\{baseDir\}")
FOLDER_ABOVE = re.compile(r"(?:\$\{?(?:CLAUDE_PROJECT_DIR|CLAUDE_PLUGIN_ROOT|HOME)\b\}?|~)/")
# Each rule is held against each spelling of the command: what is more is not listed.
SCOPES = 500
ARGUMENT_CHARACTERS = 10_000
QUOTES = re.compile(r"[\"']")


@dataclass(frozen=True, slots=True)
class ToolRule:
    """`Bash(git:*)` in two; without parentheses there is no scope, and the whole tool is meant."""

    tool: str
    scope: str | None = None


def parsed_rule(text: str) -> ToolRule:
    """A scope that is never closed stays a scope, and one that fits nothing."""
    tool, bracket, rest = text.strip().partition("(")
    if not bracket:
        return ToolRule(tool.strip())
    return ToolRule(tool.strip(), rest.removesuffix(")").strip() if rest.endswith(")") else "")


def is_script_tool_listed(rules: Iterable[str]) -> bool:
    """Scoped or not."""
    return any(parsed_rule(rule).tool in (SCRIPT_TOOL, EVERY_TOOL) for rule in rules)


def is_command_listed(command: ScriptCommand) -> bool:
    """By a rule without a scope, or by one whose scope fits the command as an author would write it."""
    rules = [parsed_rule(rule) for rule in command.allowed_tools]
    scopes = [rule.scope for rule in rules if rule.tool in (SCRIPT_TOOL, EVERY_TOOL)]
    if None in scopes:
        return True
    if sum(map(len, command.script_arguments)) > ARGUMENT_CHARACTERS:
        return False
    plain = [plain_scope(scope, str(command.base_directory)) for scope in scopes[:SCOPES] if scope]
    return any(is_covered(line, scope) for line in command_lines(command) for scope in plain)


def plain_scope(scope: str, base: str) -> str:
    """Without quotes, and with folders where it has names for them."""
    return FOLDER_ABOVE.sub("", SKILL_FOLDER.sub(lambda _: base, QUOTES.sub("", scope)))


def is_covered(line: str, scope: str) -> bool:
    """`*` stands for any text; `:*` or ` *` at the end for arguments or none."""
    if scope.endswith(ARGUMENTS_FOLLOW):
        scope = scope[:-2]
        return fits(line, scope) or fits(line, f"{scope} *")
    return fits(line, scope)


def fits(text: str, pattern: str) -> bool:
    """One look at each character: the pattern is a stranger's, and a regular expression could take for ever."""
    first, *pieces = pattern.split("*")
    if not pieces:
        return text == first
    last = pieces.pop()
    end = len(text) - len(last)
    position = len(first)
    if end < position or not text.startswith(first) or not text.endswith(last):
        return False
    for piece in pieces:
        found = text.find(piece, position, end)
        if found < 0:
            return False
        position = found + len(piece)
    return True


def command_lines(command: ScriptCommand) -> Iterator[str]:
    """The ways to write this command: each start of the program before each way to name the script."""
    words = "".join(f" {QUOTES.sub('', word)}" for word in command.script_arguments)
    known = WRITTEN_AS.get(command.interpreter, (command.interpreter,))
    starts = dict.fromkeys(("", *known, os.path.basename(command.argv[0])))
    for path in script_spellings(command):
        for start in starts:
            yield f"{start} {path}{words}".lstrip()


def script_spellings(command: ScriptCommand) -> Iterator[str]:
    """From inside the skill, from any folder above it, and in full."""
    yield command.script_name
    yield f"./{command.script_name}"
    folders = command.base_directory.as_posix().split("/")
    for start in range(len(folders)):
        yield "/".join((*folders[start:], command.script_name))
