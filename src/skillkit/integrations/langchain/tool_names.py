"""An agent's request to its model -> the same with tool names that the provider takes; and back in the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command

from skillkit.integrations.langchain.wire_names import (
    WireNames,
    names_in,
    renamed_message,
    renamed_structure,
)

__all__ = ["SkillToolNames"]


class SkillToolNames(AgentMiddleware[Any, Any, Any]):
    """Providers refuse a dot in a tool's name: they see `skill__script`, the agent and its history `skill.script`."""

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        names = WireNames(names_in(request.tools))
        return read_back(handler(written(request, names)), names)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        names = WireNames(names_in(request.tools))
        return read_back(await handler(written(request, names)), names)

    # An agent takes tools that it was not made with, here the renamed ones, only beside a wrapper of tool calls.
    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        return handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        return await handler(request)


def written(request: ModelRequest[Any], names: WireNames) -> ModelRequest[Any]:
    choice = request.tool_choice
    if isinstance(choice, str):
        choice = choice if choice in ("auto", "none", "any", "required") else names.to_wire(choice)
    elif isinstance(choice, dict):
        choice = renamed_structure(choice, names.to_wire)
    messages: list[Any] = [renamed_message(message, names.to_wire) for message in request.messages]
    tools = [renamed_tool(tool, names) for tool in request.tools]
    return request.override(messages=messages, tools=tools, tool_choice=choice)


def renamed_tool(tool: BaseTool | dict[str, Any], names: WireNames) -> BaseTool | dict[str, Any]:
    if isinstance(tool, dict):
        return renamed_structure(tool, names.to_wire)
    wire = names.to_wire(tool.name)
    return tool if wire == tool.name else tool.model_copy(update={"name": wire})


def read_back(response: ModelResponse[Any], names: WireNames) -> ModelResponse[Any]:
    return replace(response, result=[renamed_message(message, names.from_wire) for message in response.result])
