"""A skill and the arguments for it -> the text an agent reads. Nothing in the text is ever executed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from skillkit.core.exceptions import ArgumentProcessingError
from skillkit.core.models import Skill
from skillkit.core.models.shell import split_words
from skillkit.core.values.skills import ScriptMetadata
from skillkit.core.values.text import grouped, storable

__all__ = ["cell", "instructions_for", "scripts_table", "substitute"]

ARGUMENTS_LIMIT_CHARACTERS = 1_000_000

PLACEHOLDER = (
    r"\\(?P<escaped>\$(?:ARGUMENTS\b|\d|(?:{names})(?!\w)))"
    r"|\$ARGUMENTS\[(?P<index>\d{{1,3}})\]"
    r"|(?P<all>\$ARGUMENTS\b)"
    r"|\$(?P<number>\d{{1,2}})(?!\w)"
    r"|\$\{{(?P<braced>[A-Z_]+)\}}"
    r"|\$(?P<bare>SKILL_DIR|SKILL_BASE_DIR|CLAUDE_SKILL_DIR)\b"
    r"|(?P<base>\{{baseDir\}})"
    r"|\$(?P<name>{names})(?!\w)"
)
NAME = re.compile(r"[^\W\d][\w-]*")
NO_NAME = "(?!)"  # matches nowhere


def instructions_for(
    skill: Skill,
    arguments: str = "",
    *,
    session_id: str | None = None,
    workspace: Path | None = None,
    table: Callable[[str, Sequence[ScriptMetadata]], str] | None = None,
) -> str:
    """Where the skill is, its text with arguments and folders filled in, and the scripts it offers."""
    if len(arguments) > ARGUMENTS_LIMIT_CHARACTERS:
        raise ArgumentProcessingError(
            f"The arguments for {skill.name!r} have {grouped(len(arguments))} characters; the limit is "
            f"{grouped(ARGUMENTS_LIMIT_CHARACTERS)}. Put long input into a file and name it."
        )
    names = _argument_names(skill.metadata.extra.get("arguments"))
    body = substitute(skill.content, arguments, _folders_of(skill, session_id, workspace), names)
    text = f"Base directory for this skill: {skill.base_directory}\n\n{body.strip()}\n"
    whole = f"{text}\n{(table or scripts_table)(skill.name, skill.scripts)}" if skill.scripts else text
    # Names of files and arguments may hold what is no UTF-8; who reads this gets UTF-8.
    return storable(whole)


def _folders_of(skill: Skill, session_id: str | None, workspace: Path | None) -> dict[str, str]:
    """What `${NAME}` stands for; a name without a value stays as it is written."""
    base = str(skill.base_directory)
    known = dict.fromkeys(("CLAUDE_SKILL_DIR", "SKILL_DIR", "SKILL_BASE_DIR"), base)
    known |= {
        name: str(value)
        for name, value in (
            ("CLAUDE_PLUGIN_ROOT", skill.metadata.plugin_root),
            ("CLAUDE_PROJECT_DIR", workspace),
            ("CLAUDE_SESSION_ID", session_id),
        )
        if value is not None
    }
    return known


def _argument_names(declared: object) -> tuple[str, ...]:
    """The frontmatter's `arguments`, a text with spaces or a list: what `$name` may be, in order."""
    names = declared.split() if isinstance(declared, str) else declared if isinstance(declared, list) else ()
    return tuple(name if isinstance(name, str) and NAME.fullmatch(name) else "" for name in names)


def _placeholder_of(names: Sequence[str]) -> re.Pattern[str]:
    longest_first = sorted(filter(None, names), key=len, reverse=True)
    return re.compile(PLACEHOLDER.format(names="|".join(map(re.escape, longest_first)) or NO_NAME))


def substitute(content: str, arguments: str, folders: Mapping[str, str], names: Sequence[str] = ()) -> str:
    """One pass, so that nothing inside an argument is expanded again."""
    words = argument_words(arguments)
    # `$1` is the first argument, unless the text counts from `$0`.
    first = 0 if re.search(r"(?<![\\\w$])\$0(?!\w)", content) else 1
    used = False

    def value(match: re.Match[str]) -> str:
        nonlocal used
        if match["escaped"]:
            return match["escaped"]
        if match["base"]:
            return folders["SKILL_BASE_DIR"]
        if name := match["braced"] or match["bare"]:
            return folders.get(name, match[0])
        if match["name"]:
            position = names.index(match["name"])
            used = used or position < len(words)
            return words[position] if position < len(words) else ""
        position = int(match["index"] or match["number"] or 0) - (first if match["number"] else 0)
        if not match["all"] and not 0 <= position < len(words):
            return match[0]  # `$5` may be a price
        used = True
        return arguments if match["all"] else words[position]

    text = _placeholder_of(names).sub(value, content)
    return text if used or not arguments.strip() else f"{text.rstrip()}\n\nARGUMENTS: {arguments}\n"


def argument_words(arguments: str) -> list[str]:
    """Split as a shell would quote them; text with an open quote is split at spaces."""
    words = split_words(arguments)
    return arguments.split() if words is None else words


def scripts_table(skill_name: str, scripts: Sequence[ScriptMetadata]) -> str:
    """What can be run, and how a call looks."""
    rows = [f"| {cell(script.path.as_posix())} | {cell(script.description)} |" for script in scripts]
    example = cell(scripts[0].path.as_posix())
    return "\n".join(
        [
            "### Available Scripts",
            "",
            "Run these with the `skills_run_script` tool:",
            "",
            "| Script | Description |",
            "|--------|-------------|",
            *rows,
            "",
            f'Example: `skills_run_script(skill_name="{skill_name}", script="{example}", args=["--help"])`',
            "",
        ]
    )


def cell(text: str) -> str:
    """Text that cannot break out of its table cell."""
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").split())
