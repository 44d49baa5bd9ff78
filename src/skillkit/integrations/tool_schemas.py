"""The skills there are -> what a model is told of the three tools, and whether its arguments fit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillkit.core.models import SkillMetadata
from skillkit.core.values.text import visible

__all__ = [
    "TOOLS",
    "ToolSchema",
    "argument_problem",
    "catalog_line",
    "is_for_models",
    "parse_arguments",
    "tool_schemas",
]

CATALOG_CHARACTERS = 8_000
DESCRIPTION_CHARACTERS = 500
NO = frozenset(("", "false", "no", "off", "0", "none"))
TEXT, TEXTS, ANYTHING = "a text", "a list of texts", "any JSON value"
TOOLS: Mapping[str, Mapping[str, str]] = {
    "load_skill": {"skill_name": TEXT},
    "skills_run_script": {"skill_name": TEXT, "script": TEXT, "args": TEXTS, "input": ANYTHING},
    "read_skill_file": {"skill_name": TEXT, "path": TEXT},
}
_DESCRIPTIONS = {
    "load_skill": "Load a skill: its instructions, what its scripts found, and the files it brings. Skills:",
    "skills_run_script": "Run a script that belongs to a skill, in the skill's folder, and get what it prints. Load "
    "the skill first to learn its scripts. A person may be asked before it runs; if they decline, do not try again.",
    "read_skill_file": "Read a text file that belongs to a skill, such as a reference its instructions name.",
}
_PROPERTIES: Mapping[str, Mapping[str, Any]] = {
    "skill_name": {"type": "string", "description": "The skill's name."},
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


def is_for_models(skill: SkillMetadata) -> bool:
    """A skill may say that only a person calls for it."""
    return str(skill.extra.get("disable-model-invocation") or "").strip().lower() in NO


def tool_schemas(skills: Sequence[SkillMetadata], script_paths: Sequence[str]) -> list[ToolSchema]:
    """None where there are no skills; scripts are enumerated where their names are given."""
    if not skills:
        return []
    enumerated = {"skill_name": [each.name for each in skills], "script": list(script_paths)}
    properties = {
        name: {**schema, "enum": enumerated[name]} if enumerated.get(name) else dict(schema)
        for name, schema in _PROPERTIES.items()
    }
    descriptions = {**_DESCRIPTIONS, "load_skill": _with_catalog(_DESCRIPTIONS["load_skill"], skills)}
    return [
        ToolSchema(
            tool,
            descriptions[tool],
            {
                "type": "object",
                "properties": {name: properties[name] for name in expected},
                "required": _required(tool),
                "additionalProperties": False,
            },
        )
        for tool, expected in TOOLS.items()
    ]


def catalog_line(name: str, description: str) -> str:
    """For a system prompt: on one line, so that a description cannot pretend to be another skill."""
    return f"- {visible(name)}: {visible(' '.join(description.split()))[:DESCRIPTION_CHARACTERS]}"


def _required(tool: str) -> list[str]:
    return [name for name, kind in TOOLS[tool].items() if kind == TEXT]


def _with_catalog(heading: str, skills: Sequence[SkillMetadata]) -> str:
    """With what each skill is for, as far as there is room."""
    lines = [heading]
    room = CATALOG_CHARACTERS
    for number, skill in enumerate(skills):
        line = f"- {skill.name}: {' '.join(skill.description.split())[:DESCRIPTION_CHARACTERS]}"
        room -= len(line)
        if room < 0:
            lines.append(f"and {len(skills) - number} more, by their names.")
            break
        lines.append(line)
    return "\n".join(lines)


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
