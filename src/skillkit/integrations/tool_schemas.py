"""The skills there are -> what a model is told of the tools, and whether its arguments fit."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillkit.core.models import SkillMetadata
from skillkit.integrations.catalog import NO_INSTRUCTION, catalog, enumerated, sayable

__all__ = ["TOOLS", "ToolSchema", "argument_problem", "parse_arguments", "server_instructions", "tool_schemas"]

SCRIPTS_TOKENS = 1_500
TEXT, TEXTS, ANYTHING = "a text", "a list of texts", "any JSON value"
TOOLS: Mapping[str, Mapping[str, str]] = {
    "load_skill": {"skill_name": TEXT},
    "skills_run_script": {"skill_name": TEXT, "script": TEXT, "args": TEXTS, "input": ANYTHING},
    "read_skill_file": {"skill_name": TEXT, "path": TEXT},
    "find_skills": {"query": TEXT},
}
_DESCRIPTIONS = {
    # Some clients show only the first line of each.
    "load_skill": "Load a skill before you work on a task that it fits: its instructions, what its scripts found, and "
    "the files it brings.",
    "skills_run_script": "Run a script that belongs to a skill, in the skill's folder, and get what it prints. Load "
    "the skill first to learn its scripts. A person may be asked before it runs; if they decline, do not try again.",
    "read_skill_file": "Read a text file that belongs to a skill, such as a reference its instructions name.",
    "find_skills": "Search all skills by words and learn what the best ones are for. Use it when no skill that you "
    "know of fits the task.",
}
_INSTRUCTIONS = (
    "Agent Skills of this machine: instructions and scripts for special tasks. When a task fits a skill, call "
    "load_skill with its name first and follow what it says; run its scripts only by skills_run_script."
)
_SEARCH = "There are {count:,} skills; find_skills searches all of them."
_PROPERTIES: Mapping[str, Mapping[str, Any]] = {
    "skill_name": {"type": "string", "description": "The skill's name."},
    "query": {"type": "string", "description": "Words of the task: fill pdf form"},
    "script": {"type": "string", "description": "The script's path as the skill lists it."},
    "args": {
        "type": "array",
        "items": {"type": "string"},
        "description": "Command-line arguments, one word each; no shell reads them.",
    },
    "input": {
        "anyOf": [{"type": "object"}, {"type": "array", "items": {}}, {"type": "string"}, {"type": "null"}],
        "description": "For the script's standard input: a text as it is, anything else as JSON.",
    },
    "path": {"type": "string", "description": "Relative to the skill's folder: references/guide.md"},
}


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """One tool as every framework wants it told: a name, a text, a closed JSON schema."""

    name: str
    description: str
    input_schema: Mapping[str, Any]

    def to_openai(self) -> dict[str, Any]:
        function = {"name": self.name, "description": self.description, "parameters": dict(self.input_schema)}
        return {"type": "function", "function": function}

    def to_anthropic(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "input_schema": dict(self.input_schema)}


def tool_schemas(
    skills: Sequence[SkillMetadata], script_paths: Sequence[str], told: Collection[str] = ()
) -> list[ToolSchema]:
    """None where there are no skills; names are enumerated once, where they fit, and described unless `told` before."""
    if not skills:
        return []
    offered = sayable(skills)
    descriptions = {**_DESCRIPTIONS, "load_skill": _loading_text(offered, told)}
    enums = {
        ("load_skill", "skill_name"): enumerated([skill.name for skill in offered]),
        ("skills_run_script", "script"): enumerated(script_paths, SCRIPTS_TOKENS),
    }
    return [
        ToolSchema(
            tool,
            descriptions[tool],
            {
                "type": "object",
                "properties": {name: _property(name, enums.get((tool, name))) for name in expected},
                "required": _required(tool),
                "additionalProperties": False,
            },
        )
        for tool, expected in TOOLS.items()
    ]


def server_instructions(skills: Sequence[SkillMetadata]) -> str:
    """What a model should know from the start: how skills are used, and what each is for.

    The way to use them and to search comes first: some clients cut the text after 2,048 characters.
    """
    offered = sayable(skills)
    if not offered:
        return _INSTRUCTIONS
    said = " ".join([_INSTRUCTIONS, _SEARCH.format(count=len(offered)), NO_INSTRUCTION])
    return "\n".join([said, "", "Skills:", *catalog(offered)])


def _loading_text(offered: Sequence[SkillMetadata], told: Collection[str]) -> str:
    new = [skill for skill in offered if skill.name not in told]
    if not new:
        return _DESCRIPTIONS["load_skill"]
    heading = f"{'New skills' if told else 'Skills'}. {NO_INSTRUCTION}"
    return "\n".join([_DESCRIPTIONS["load_skill"], heading, *catalog(new)])


def _property(name: str, enum: list[str] | None) -> dict[str, Any]:
    return {**_PROPERTIES[name], "enum": enum} if enum else dict(_PROPERTIES[name])


def _required(tool: str) -> list[str]:
    return [name for name, kind in TOOLS[tool].items() if kind == TEXT]


def parse_arguments(given: object) -> dict[str, Any] | None:
    """A mapping, or the JSON text of one as some providers send it; None for anything else."""
    if isinstance(given, str):
        try:
            given = json.loads(given or "{}")
        except (ValueError, RecursionError):
            return None
    if given is None:
        return {}
    return dict(given) if isinstance(given, Mapping) and all(isinstance(key, str) for key in given) else None


def argument_problem(tool: str, arguments: Mapping[str, Any] | None) -> str:
    """What does not fit, and what would; empty when all fits. Whether a name exists is looked up later."""
    expected, required = TOOLS[tool], _required(tool)
    problems = ["the arguments are no JSON object"]
    if arguments is not None:
        given = {name: value for name, value in arguments.items() if value is not None}
        problems = [f"{name!r} is missing" for name in required if name not in given]
        problems += [f"{name!r} is unknown" for name in arguments if name not in expected]
        problems += [
            f"{name!r} is not {expected[name]}"
            for name, value in given.items()
            if name in expected and not _fits(value, expected[name])
        ]
    if not problems:
        return ""
    told = ", ".join(f"{name} ({kind}{'' if name in required else ', optional'})" for name, kind in expected.items())
    return f"{tool}: {'; '.join(problems)}. It takes: {told}."


def _fits(value: object, kind: str) -> bool:
    if kind == TEXTS:
        return isinstance(value, list | tuple) and all(isinstance(word, str) for word in value)
    return kind == ANYTHING or isinstance(value, str)
