"""Agents for tests: a chat model that follows a script, and what it was asked and told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool
from pydantic import PrivateAttr

from skillkit import SkillManager
from skillkit.integrations.langchain import create_langchain_tools

__all__ = ["ScriptedModel", "answers", "calling", "message_of", "started", "tool_named"]


class ScriptedModel(BaseChatModel):
    """Says these messages in this order; keeps what it was told and which tools it was offered."""

    script: list[AIMessage]
    _told: list[list[BaseMessage]] = PrivateAttr(default_factory=list)
    _offered: list[str] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def told(self) -> list[list[BaseMessage]]:
        return self._told

    @property
    def offered(self) -> list[str]:
        return self._offered

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        self._offered[:] = [tool.name for tool in tools]
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self._told.append(messages)
        return ChatResult(generations=[ChatGeneration(message=self.script[len(self._told) - 1])])


def calling(*calls: tuple[str, dict[str, Any]], first_id: int = 1) -> AIMessage:
    """A turn of the model that calls these tools with these arguments."""
    return AIMessage(
        "",
        tool_calls=[
            {"name": name, "args": given, "id": f"call-{number}", "type": "tool_call"}
            for number, (name, given) in enumerate(calls, first_id)
        ],
    )


def started(manager: SkillManager, *turns: AIMessage, **settings: Any) -> Any:
    """An agent with all tools of the manager whose model says these turns, then that it is done."""
    model = ScriptedModel(script=[*turns, AIMessage("done")])
    return create_agent(model, create_langchain_tools(manager), **settings)


def answers(state: dict[str, Any]) -> list[ToolMessage]:
    """What the tools said, in order."""
    return [message for message in state["messages"] if isinstance(message, ToolMessage)]


def message_of(tool: BaseTool, given: dict[str, Any], call_id: str = "call-1") -> ToolMessage:
    """What a model is told when it calls this tool."""
    said = tool.invoke({"name": tool.name, "args": given, "id": call_id, "type": "tool_call"})
    assert isinstance(said, ToolMessage)
    return said


def tool_named(manager: SkillManager, name: str) -> BaseTool:
    (tool,) = [tool for tool in create_langchain_tools(manager) if tool.name == name]
    return tool
