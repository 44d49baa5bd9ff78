"""A manager's skills -> LangChain tools: one that reads each skill and one for each script, or four for very many."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict, Field

from skillkit.core.exceptions import SkillKitError
from skillkit.core.manager import SkillManager
from skillkit.core.models import Skill
from skillkit.core.models.instructions import cell, instructions_for
from skillkit.core.resolve import CallArguments
from skillkit.core.values.skills import ScriptMetadata
from skillkit.core.values.text import visible
from skillkit.integrations.langchain.calls import (
    CallTool,
    Ran,
    ScriptNotRunError,
    arun_script,
    call_in,
    error_content,
    run_script,
    session_in,
)
from skillkit.integrations.langchain.shared import shared_tools

__all__ = ["SKILL_OF_TOOL", "create_langchain_tools", "create_script_tools"]

# OpenAI takes 128 tools in a request; an agent has some of its own.
MOST_TOOLS = 100

SKILL_OF_TOOL = "skillkit_skill"
"""In a tool's metadata: the skill that this tool reads."""


class _ScriptInput(BaseModel):
    """What a model may give to a script, and nothing else."""

    model_config = ConfigDict(extra="forbid")

    arguments: Any = Field(default=None, description="Any JSON value; the script reads it from stdin.")
    argv: list[str] = Field(default_factory=list, description="Command-line arguments, one text for each word.")


class _SkillInput(BaseModel):
    """What a model may say when it reads a skill."""

    model_config = ConfigDict(extra="forbid")

    arguments: str = Field(default="", description="What the skill is used for, where its instructions ask for it.")


@dataclass(frozen=True, slots=True)
class _ScriptCalls:
    """What one script tool does, for callers that wait and for those that do not."""

    manager: SkillManager
    skill: Skill
    script: ScriptMetadata

    def run(self, config: RunnableConfig, arguments: object = None, argv: Sequence[str] = ()) -> Ran:
        return run_script(self.manager, self.skill, self._call(config, arguments, argv), config)

    async def arun(self, config: RunnableConfig, arguments: object = None, argv: Sequence[str] = ()) -> Ran:
        return await arun_script(self.manager, self.skill, self._call(config, arguments, argv), config)

    def _call(self, config: RunnableConfig, arguments: object, argv: Sequence[str]) -> CallArguments:
        return call_in(self.manager, config, self.script.path.as_posix(), arguments, argv)


@dataclass(frozen=True, slots=True)
class _SkillReading:
    """What the tool that is named after a skill does: it gives the skill's instructions."""

    manager: SkillManager
    skill: Skill
    tool_names: tuple[str, ...]
    """Of its scripts, in their order."""

    def run(self, config: RunnableConfig, arguments: str = "") -> str:
        try:
            return instructions_for(
                self.skill,
                arguments,
                session_id=session_in(self.manager, config),
                workspace=self.manager.workspace,
                table=self._table,
            )
        except SkillKitError as error:
            raise ScriptNotRunError(error) from error

    async def arun(self, config: RunnableConfig, arguments: str = "") -> str:
        return await asyncio.to_thread(self.run, config, arguments)

    def _table(self, _: str, scripts: Sequence[ScriptMetadata]) -> str:
        """Here each script is a tool of its own."""
        names = dict(zip((script.path for script in self.skill.scripts), self.tool_names, strict=True))
        rows = [
            f"| {cell(script.path.as_posix())} | {cell(script.description)} | {cell(names[script.path])} |"
            for script in scripts
        ]
        how = "Each of these scripts is a tool of its own. A provider may show a dot in its name as `__`."
        example = f'Example: call `{cell(self.tool_names[0])}` with `{{"argv": ["--help"]}}`.'
        heading = ["| Script | Description | Tool |", "|--------|-------------|------|"]
        return "\n".join(["### Available Scripts", "", how, "", *heading, *rows, "", example, ""])


def create_langchain_tools(manager: SkillManager, *, one_per_script: bool | None = None) -> list[BaseTool]:
    """For each skill a tool of its name that reads it, and a tool `skill.script` for each of its scripts.

    Where that would be more than 100, four tools for all skills instead; `one_per_script` chooses without counting.
    """
    skills = [manager.load_skill(skill.name) for skill in manager.list_skills()]
    if one_per_script is None:
        one_per_script = not _is_too_many(skills)
    return _tools_of_each(manager, skills) if one_per_script else shared_tools(manager)


def _is_too_many(skills: Sequence[Skill]) -> bool:
    """Said aloud: an agent's tools are then called otherwise."""
    # Counted only where the skills alone are not too many: looking for scripts takes time.
    count = len(skills)
    if count <= MOST_TOOLS:
        count += sum(len(skill.scripts) for skill in skills)
    if count <= MOST_TOOLS:
        return False
    warnings.warn(
        f"{len(skills)} skills would be {count} tools or more, and providers take about 128: the agent gets four tools "
        "for all skills (load_skill, skills_run_script, read_skill_file, find_skills). Say which you want: "
        "create_langchain_tools(manager, one_per_script=False), or True for a tool for each script.",
        stacklevel=3,
    )
    return True


def _tools_of_each(manager: SkillManager, skills: Sequence[Skill]) -> list[BaseTool]:
    taken = {skill.name for skill in skills}
    tools: list[BaseTool] = []
    for skill in skills:
        scripts = _script_tools(skill, manager, taken)
        taken |= {tool.name for tool in scripts}
        tools += [_reading_tool(skill, manager, scripts), *scripts]
    return tools


def create_script_tools(skill: Skill, manager: SkillManager) -> list[BaseTool]:
    """A tool `skill.script` for each script of one skill; scripts with the same stem have their path instead."""
    return _script_tools(skill, manager, {skill.name})


def _reading_tool(skill: Skill, manager: SkillManager, scripts: Iterable[BaseTool]) -> BaseTool:
    calls = _SkillReading(manager, skill, tuple(tool.name for tool in scripts))
    return CallTool.from_function(
        calls.run,
        calls.arun,
        name=skill.name,
        description=skill.metadata.description or f"The instructions of the skill {skill.name}.",
        args_schema=_SkillInput,
        handle_tool_error=error_content,
        metadata={SKILL_OF_TOOL: skill.name},
    )


def _script_tools(skill: Skill, manager: SkillManager, taken: Iterable[str]) -> list[BaseTool]:
    tools: list[BaseTool] = []
    for name, script in zip(_script_names(skill, taken), skill.scripts, strict=True):
        calls = _ScriptCalls(manager, skill, script)
        tool = CallTool.from_function(
            calls.run,
            calls.arun,
            name=name,
            description=script.description or visible(f"Runs {script.path.as_posix()} of the skill {skill.name}."),
            args_schema=_ScriptInput,
            response_format="content_and_artifact",
            handle_tool_error=error_content,
        )
        tools.append(tool)
    return tools


def _script_names(skill: Skill, taken: Iterable[str]) -> list[str]:
    """The stem's name where it is the only one; else the path's; else, beside a skill of that name, with a hash."""
    used = set(taken)
    stems = Counter(script.name for script in skill.scripts)
    names = []
    for script in skill.scripts:
        # A file's name may be no UTF-8; a tool's goes to a provider.
        path = visible(f"{skill.name}.{script.path.as_posix()}")
        short = visible(script.get_fully_qualified_name(skill.name))
        unlike = f"{path}.{sha256(os.fsencode(skill.base_directory)).hexdigest()[:8]}"
        choices = [*([short] if stems[script.name] == 1 else []), path, unlike]
        names.append(next(name for name in choices if name not in used or name == unlike))
        used.add(names[-1])
    return names
