"""A manager's skills -> LangChain tools: one that reads each skill, and one for each of its scripts."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, ConfigDict, Field

from skillkit.core.exceptions import SkillKitError
from skillkit.core.manager import SkillManager
from skillkit.core.models import Skill
from skillkit.core.models.instructions import cell, instructions_for
from skillkit.core.resolve import CallArguments
from skillkit.core.run.aio import run_in_thread
from skillkit.core.values.runs import NO_CONTROL, RunControl, ScriptExecutionResult
from skillkit.core.values.skills import ScriptMetadata
from skillkit.core.values.text import visible
from skillkit.integrations.langchain.interrupts import InterruptApprover, session_of
from skillkit.present.tool_result import refusal_status, run_text, shorten, told_output

__all__ = ["SKILL_OF_TOOL", "ScriptFailedError", "ScriptNotRunError", "create_langchain_tools", "create_script_tools"]

SKILL_OF_TOOL = "skillkit_skill"
"""In a tool's metadata: the skill that this tool reads."""

_call_id: ContextVar[str] = ContextVar("skillkit_langchain_call_id", default="")


class ScriptFailedError(ToolException):
    """A script ran and failed; the message is its stderr, or its stdout when stderr is empty."""

    def __init__(self, result: ScriptExecutionResult) -> None:
        super().__init__(told_output(result))
        self.result = result


class ScriptNotRunError(ToolException):
    """Nothing ran; the message begins with a word for why, and `error` is what skillkit raised."""

    def __init__(self, error: SkillKitError) -> None:
        self.status = refusal_status(error)
        self.error = error
        super().__init__(f"{self.status}: {error}")


def _error_content(error: ToolException) -> str:
    """What the model reads about it, so that the agent can go on; a failure with a known cause names it."""
    return run_text(error.result) if isinstance(error, ScriptFailedError) else shorten(str(error))


class _ScriptInput(BaseModel):
    """What a model may give to a script, and nothing else."""

    model_config = ConfigDict(extra="forbid")

    arguments: Any = Field(default=None, description="Any JSON value; the script reads it from stdin.")
    argv: list[str] = Field(default_factory=list, description="Command-line arguments, one text for each word.")


class _SkillInput(BaseModel):
    """What a model may say when it reads a skill."""

    model_config = ConfigDict(extra="forbid")

    arguments: str = Field(default="", description="What the skill is used for, where its instructions ask for it.")


class _CallTool(StructuredTool):
    """A tool that knows which call it answers; so two equal calls are two questions to a person."""

    def run(self, tool_input: str | dict[str, Any], *args: Any, tool_call_id: str | None = None, **more: Any) -> Any:  # noqa: ANN401
        token = _call_id.set(tool_call_id or "")
        try:
            return super().run(tool_input, *args, tool_call_id=tool_call_id, **more)
        finally:
            _call_id.reset(token)

    async def arun(
        self,
        tool_input: str | dict[str, Any],
        *args: Any,  # noqa: ANN401
        tool_call_id: str | None = None,
        **more: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        token = _call_id.set(tool_call_id or "")
        try:
            return await super().arun(tool_input, *args, tool_call_id=tool_call_id, **more)
        finally:
            _call_id.reset(token)


@dataclass(frozen=True, slots=True)
class _ScriptCalls:
    """What one script tool does, for callers that wait and for those that do not."""

    manager: SkillManager
    skill: Skill
    script: ScriptMetadata

    def run(
        self, config: RunnableConfig, arguments: object = None, argv: Sequence[str] = ()
    ) -> tuple[str, ScriptExecutionResult]:
        return self._outcome(self._call(config, arguments, argv), InterruptApprover(config or {}))

    async def arun(
        self, config: RunnableConfig, arguments: object = None, argv: Sequence[str] = ()
    ) -> tuple[str, ScriptExecutionResult]:
        by_interrupt = InterruptApprover(config or {}, asyncio.get_running_loop())
        return await run_in_thread(partial(self._outcome, self._call(config, arguments, argv), by_interrupt))

    def _outcome(
        self, call: CallArguments, by_interrupt: InterruptApprover, control: RunControl = NO_CONTROL
    ) -> tuple[str, ScriptExecutionResult]:
        """A refusal is told to the model and never ends its run; a framework's own exceptions pass through."""
        asks = self.manager.approver is None and by_interrupt.is_available
        try:
            result = self.manager.flow.execute(self.skill, call, control, approver=by_interrupt if asks else None)
        except SkillKitError as error:
            raise ScriptNotRunError(error) from error
        if not result.success:
            raise ScriptFailedError(result)
        return shorten(result.stdout), result

    def _call(self, config: RunnableConfig, arguments: object, argv: Sequence[str]) -> CallArguments:
        return self.manager.call_for(
            self.script.path.as_posix(),
            arguments,
            argv=tuple(argv),
            session_id=self.manager.session_id or session_of(config or {}),
            agent_facing=True,
            call_id=_call_id.get(),
        )


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
                session_id=self.manager.session_id or session_of(config or {}),
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


def create_langchain_tools(manager: SkillManager) -> list[BaseTool]:
    """For each skill a tool of its name that reads it, and a tool `skill.script` for each of its scripts."""
    skills = [manager.load_skill(skill.name) for skill in manager.list_skills()]
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
    return _CallTool.from_function(
        calls.run,
        calls.arun,
        name=skill.name,
        description=skill.metadata.description or f"The instructions of the skill {skill.name}.",
        args_schema=_SkillInput,
        handle_tool_error=_error_content,
        metadata={SKILL_OF_TOOL: skill.name},
    )


def _script_tools(skill: Skill, manager: SkillManager, taken: Iterable[str]) -> list[BaseTool]:
    tools: list[BaseTool] = []
    for name, script in zip(_script_names(skill, taken), skill.scripts, strict=True):
        calls = _ScriptCalls(manager, skill, script)
        tool = _CallTool.from_function(
            calls.run,
            calls.arun,
            name=name,
            description=script.description or visible(f"Runs {script.path.as_posix()} of the skill {skill.name}."),
            args_schema=_ScriptInput,
            response_format="content_and_artifact",
            handle_tool_error=_error_content,
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
