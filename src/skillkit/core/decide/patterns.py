"""What policy's `allowed_commands` and a skill's `allowed-tools` say -> whether they name this script."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from skillkit.core.values.runs import ScriptCommand

__all__ = [
    "SCRIPT_TOOL",
    "ToolRule",
    "is_command_listed",
    "is_script_pattern",
    "is_script_tool_listed",
    "names_script",
    "parse_rule",
]

SCRIPT_TOOL = "Bash"
# What hosts and authors call the tool that starts programs.
SCRIPT_TOOLS = frozenset(("bash", "exec", "shell", "terminal", "node", "python"))
EVERY_TOOL = "*"
ANY_FOLDERS = "**"
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


def is_script_pattern(entry: str) -> bool:
    """Entries of `allowed_commands` with a `/` are about scripts, all others about programs."""
    return "/" in entry


def names_script(entry: str, skill_name: str, script_name: str) -> bool:
    """`scripts/*.py`, `scripts/**`, `skill:scripts/x.sh`: `*` stays in one folder, `**` is any number of folders."""
    head, _, tail = entry.partition("/")
    # What stands before a colon is a skill and never part of a path, which a hostile skill could spell likewise.
    skill, colon, first = head.rpartition(":")
    if (colon and not fnmatchcase(skill_name, skill)) or not first:
        return False
    patterns = [part for part in f"{first}/{tail}".split("/") if part not in ("", ".")]
    return _match_parts(script_name.split("/"), patterns)


def _match_parts(parts: Sequence[str], patterns: Sequence[str]) -> bool:
    if not patterns:
        return not parts
    first, *others = patterns
    if first == ANY_FOLDERS:
        return any(_match_parts(parts[start:], others) for start in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], first) and _match_parts(parts[1:], others)


@dataclass(frozen=True, slots=True)
class ToolRule:
    """`Bash(git:*)` in two; without parentheses there is no scope, and the whole tool is meant."""

    tool: str
    scope: str | None = None


def parse_rule(text: str) -> ToolRule:
    """A scope that is never closed stays a scope, and one that fits nothing."""
    tool, bracket, rest = text.strip().partition("(")
    if not bracket:
        return ToolRule(tool.strip())
    return ToolRule(tool.strip(), rest.removesuffix(")").strip() if rest.endswith(")") else "")


def is_script_tool_listed(rules: Iterable[str]) -> bool:
    """Scoped or not, by any of its names."""
    return any(_is_script_tool(parse_rule(rule).tool) for rule in rules)


def _is_script_tool(name: str) -> bool:
    return name == EVERY_TOOL or name.lower() in SCRIPT_TOOLS


def is_command_listed(command: ScriptCommand) -> bool:
    """By a rule without a scope, or by one whose scope fits the command as an author would write it."""
    rules = [parse_rule(rule) for rule in command.allowed_tools]
    scopes = [rule.scope for rule in rules if _is_script_tool(rule.tool)]
    if None in scopes:
        return True
    if sum(map(len, command.script_arguments)) > ARGUMENT_CHARACTERS:
        return False
    plain = [_plain_scope(scope, str(command.base_directory)) for scope in scopes[:SCOPES] if scope]
    return any(_is_covered(line, scope) for line in _command_lines(command) for scope in plain)


def _plain_scope(scope: str, base: str) -> str:
    """Without quotes, and with folders where it has names for them."""
    return FOLDER_ABOVE.sub("", SKILL_FOLDER.sub(lambda _: base, QUOTES.sub("", scope)))


def _is_covered(line: str, scope: str) -> bool:
    """`*` stands for any text; `:*` or ` *` at the end for arguments or none."""
    if scope.endswith(ARGUMENTS_FOLLOW):
        scope = scope[:-2]
        return _match_text(line, scope) or _match_text(line, f"{scope} *")
    return _match_text(line, scope)


def _match_text(text: str, pattern: str) -> bool:
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


def _command_lines(command: ScriptCommand) -> Iterator[str]:
    """The ways to write this command: each start of the program before each way to name the script."""
    words = "".join(f" {QUOTES.sub('', word)}" for word in command.script_arguments)
    known = WRITTEN_AS.get(command.interpreter, (command.interpreter,))
    starts = dict.fromkeys(("", *known, os.path.basename(command.argv[0])))
    # The script from inside the skill, from any folder above it, and in full.
    folders = command.base_directory.as_posix().split("/")
    above = ("/".join((*folders[start:], command.script_name)) for start in range(len(folders)))
    for path in (command.script_name, f"./{command.script_name}", *above):
        for start in starts:
            yield f"{start} {path}{words}".lstrip()
