"""The body of a request to a model, in any of four forms -> the same conversation: tools offered, turns so far."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

__all__ = ["FORMS", "Conversation", "Tool", "Turn", "form_of"]


@dataclass(frozen=True)
class Tool:
    name: str
    description: str
    namespace: str = ""


@dataclass(frozen=True)
class Turn:
    """One thing said: by `system`, `user` or `assistant`, a `call` of a tool, or its `result`."""

    kind: str
    text: str
    tool: str = ""


@dataclass(frozen=True)
class Conversation:
    tools: tuple[Tool, ...]
    turns: tuple[Turn, ...]


def chat_completions(body: dict[str, Any]) -> Conversation:
    names: dict[str, str] = {}
    turns = [turn for message in body["messages"] for turn in _chat_turns(message, names)]
    functions = [tool["function"] for tool in body.get("tools") or () if "function" in tool]
    return Conversation(tuple(_tool(each) for each in functions), tuple(turns))


def _chat_turns(message: dict[str, Any], names: dict[str, str]) -> Iterator[Turn]:
    role, text = message["role"], _text(message.get("content"))
    if role == "tool":
        yield Turn("result", text, names.get(message.get("tool_call_id", ""), ""))
        return
    if text:
        yield Turn("system" if role == "developer" else role, text)
    for call in message.get("tool_calls") or ():
        names[call["id"]] = _called(call["function"])
        yield Turn("call", call["function"]["arguments"], names[call["id"]])


def _called(function: dict[str, Any]) -> str:
    """The tool that is meant, also where a hidden one is called through another."""
    with suppress(ValueError, KeyError, TypeError):
        if function["name"] == "tool_call":
            return str(json.loads(function["arguments"])["name"])
    return str(function["name"])


def anthropic_messages(body: dict[str, Any]) -> Conversation:
    names: dict[str, str] = {}
    turns = [Turn("system", _text(body["system"]))] if body.get("system") else []
    for message in body["messages"]:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        turns += [turn for part in parts for turn in _anthropic_turn(message["role"], part, names)]
    return Conversation(tuple(_tool(each) for each in body.get("tools") or ()), tuple(turns))


def _anthropic_turn(role: str, part: dict[str, Any], names: dict[str, str]) -> Iterator[Turn]:
    match part["type"]:
        case "text":
            yield Turn(role, part["text"])
        case "tool_use":
            names[part["id"]] = part["name"]
            yield Turn("call", json.dumps(part["input"]), part["name"])
        case "tool_result":
            yield Turn("result", _text(part.get("content")), names.get(part["tool_use_id"], ""))
        case _:
            return


def openai_responses(body: dict[str, Any]) -> Conversation:
    names: dict[str, str] = {}
    turns = [Turn("system", body["instructions"])] if body.get("instructions") else []
    given = body["input"]
    items: list[dict[str, Any]] = (
        [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else given
    )
    tools = [tool for each in body.get("tools") or () for tool in _responses_tools(each)]
    for item in items:
        turns += _responses_turns(item, names)
        # What a search for tools found is offered from then on.
        tools += [tool for each in item.get("tools") or () for tool in _responses_tools(each)]
    return Conversation(tuple(tools), tuple(turns))


def _responses_tools(tool: dict[str, Any], namespace: str = "") -> Iterator[Tool]:
    if tool.get("type") == "namespace":
        yield from (each for inner in tool["tools"] for each in _responses_tools(inner, tool["name"]))
    else:
        yield Tool(tool.get("name") or tool["type"], tool.get("description") or "", namespace)


def _responses_turns(item: dict[str, Any], names: dict[str, str]) -> Iterator[Turn]:
    match item.get("type", "message"):
        case "message":
            role = "system" if item["role"] == "developer" else item["role"]
            yield Turn(role, _text(item["content"]))
        case "function_call" | "custom_tool_call" | "tool_search_call":
            names[item["call_id"]] = item.get("name", item["type"])
            said = item.get("arguments", item.get("input", ""))
            yield Turn("call", said if isinstance(said, str) else json.dumps(said), item.get("name", item["type"]))
        case "function_call_output" | "custom_tool_call_output" | "tool_search_output":
            said = item.get("output", item.get("tools"))
            yield Turn("result", _text(said), names.get(item.get("call_id", ""), item["type"]))
        case _:
            return


def gemini_content(body: dict[str, Any]) -> Conversation:
    turns = [Turn("system", _text(body["systemInstruction"]["parts"]))] if body.get("systemInstruction") else []
    for content in body["contents"]:
        role = {"model": "assistant"}.get(content.get("role", "user"), "user")
        turns += [turn for part in content["parts"] for turn in _gemini_turn(role, part)]
    declared = [each for tool in body.get("tools") or () for each in tool.get("functionDeclarations") or ()]
    return Conversation(tuple(_tool(each) for each in declared), tuple(turns))


def _gemini_turn(role: str, part: dict[str, Any]) -> Iterator[Turn]:
    if "functionCall" in part:
        call = part["functionCall"]
        yield Turn("call", json.dumps(call.get("args")), call["name"])
    elif "functionResponse" in part:
        said = part["functionResponse"]
        yield Turn("result", _text(said.get("response")), said["name"])
    elif "text" in part:
        yield Turn(role, part["text"])


def _tool(given: dict[str, Any]) -> Tool:
    return Tool(given.get("name") or given.get("type") or "", given.get("description") or "")


def _text(content: Any) -> str:
    """All text in it, wherever it stands."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(_text, content)))
    if isinstance(content, dict):
        return _text(content["text"]) if "text" in content else json.dumps(content, ensure_ascii=False)
    return "" if content is None else str(content)


FORMS: dict[str, Callable[[dict[str, Any]], Conversation]] = {
    "/chat/completions": chat_completions,
    "/messages": anthropic_messages,
    "/responses": openai_responses,
    "generateContent": gemini_content,
    "streamGenerateContent": gemini_content,
}


def form_of(path: str) -> str:
    """The ending of an address that says how to read what was sent there; "" for none of these."""
    return next((ending for ending in FORMS if path.partition("?")[0].endswith(ending)), "")
