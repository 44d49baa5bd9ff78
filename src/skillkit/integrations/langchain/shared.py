"""All skills of a manager -> four LangChain tools that take a skill's name, however many skills there are."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, ToolException

from skillkit.core.exceptions import SkillKitError, SkillNotFoundError
from skillkit.core.manager import SkillManager
from skillkit.core.models import Skill
from skillkit.core.models.instructions import instructions_for
from skillkit.core.resolve import CallArguments
from skillkit.integrations.catalog import found_text, sayable, skill_for_models, skills_for_models
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
from skillkit.integrations.loading import file_text
from skillkit.integrations.tool_schemas import ToolSchema, argument_problem, tool_schemas

__all__ = ["shared_tools"]

RUNNING = "skills_run_script"


def shared_tools(manager: SkillManager) -> list[BaseTool]:
    """As without a framework, but that loading a skill runs nothing; the list of skills is in the first one's text."""
    return [_tool(manager, schema) for schema in tool_schemas(skills_for_models(manager), ())]


def _tool(manager: SkillManager, schema: ToolSchema) -> BaseTool:
    is_running = schema.name == RUNNING
    calls = _RunningCalls(manager) if is_running else _ReadingCalls(manager, schema.name)
    return CallTool.from_function(
        calls.run,
        calls.arun,
        name=schema.name,
        description=schema.description,
        args_schema=dict(schema.input_schema),
        response_format="content_and_artifact" if is_running else "content",
        handle_tool_error=error_content,
    )


@dataclass(frozen=True, slots=True)
class _RunningCalls:
    """What the tool does that runs any script."""

    manager: SkillManager

    def run(self, config: RunnableConfig, **given: Any) -> Ran:  # noqa: ANN401 - whatever a model sends
        skill, call = self._resolved(config, given)
        return run_script(self.manager, skill, call, config)

    async def arun(self, config: RunnableConfig, **given: Any) -> Ran:  # noqa: ANN401 - whatever a model sends
        skill, call = await asyncio.to_thread(self._resolved, config, given)
        return await arun_script(self.manager, skill, call, config)

    def _resolved(self, config: RunnableConfig, given: dict[str, Any]) -> tuple[Skill, CallArguments]:
        _require_fit(RUNNING, given)
        sent = given.get("input")
        arguments, stdin = (None, sent) if isinstance(sent, str) else (sent, None)
        call = call_in(self.manager, config, given["script"], arguments, given.get("args") or (), stdin)
        try:
            return self._skill(given["skill_name"], call), call
        except SkillKitError as error:
            raise ScriptNotRunError(error) from error

    def _skill(self, name: str, call: CallArguments) -> Skill:
        """One that does not exist is an attempt too, and on record."""
        try:
            return skill_for_models(self.manager, name)
        except SkillNotFoundError as error:
            self.manager.flow.record_unresolved(error, name, call)


@dataclass(frozen=True, slots=True)
class _ReadingCalls:
    """What the other tools do: they run nothing."""

    manager: SkillManager
    tool: str

    def run(self, config: RunnableConfig, **given: Any) -> str:  # noqa: ANN401 - whatever a model sends
        _require_fit(self.tool, given)
        try:
            if self.tool == "find_skills":
                return found_text(sayable(skills_for_models(self.manager)), given["query"])
            skill = skill_for_models(self.manager, given["skill_name"])
            if self.tool == "read_skill_file":
                return file_text(skill, given["path"])
            session = session_in(self.manager, config)
            return instructions_for(skill, session_id=session, workspace=self.manager.workspace)
        except SkillKitError as error:
            raise ScriptNotRunError(error) from error

    async def arun(self, config: RunnableConfig, **given: Any) -> str:  # noqa: ANN401 - whatever a model sends
        return await asyncio.to_thread(self.run, config, **given)


def _require_fit(tool: str, given: dict[str, Any]) -> None:
    if problem := argument_problem(tool, given):
        raise ToolException(f"invalid_arguments: {problem}")
