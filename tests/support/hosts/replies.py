"""What a model says, a text or a call of a tool -> bytes in the form that the host asked for, streamed or whole."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from support.hosts.conversation import Tool

__all__ = ["REPLIES", "Reply", "Said"]

numbers = itertools.count(1)
Event = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Said:
    """A text, or a call of a tool with these arguments."""

    text: str = ""
    tool: Tool | None = None
    arguments: dict[str, Any] | None = None

    @property
    def call(self) -> tuple[str, str]:
        """The name and the arguments as JSON."""
        assert self.tool is not None
        return self.tool.name, json.dumps(self.arguments or {})


@dataclass(frozen=True)
class Reply:
    content_type: str
    body: bytes


def chat_completions(said: Said, *, streamed: bool, model: str) -> Reply:
    number = next(numbers)
    delta: dict[str, Any] = {"role": "assistant", "content": said.text or None}
    if said.tool is not None:
        name, arguments = said.call
        function = {"name": name, "arguments": arguments}
        delta["tool_calls"] = [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]
    reason = "stop" if said.tool is None else "tool_calls"
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    base = {"id": f"chatcmpl-{number}", "created": 1_700_000_000, "model": model}
    if not streamed:
        choice = {"index": 0, "message": delta, "finish_reason": reason}
        return _json({**base, "object": "chat.completion", "choices": [choice], "usage": usage})
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {"choices": [], "usage": usage},
    ]
    return _events([("", {**base, "object": "chat.completion.chunk", **chunk}) for chunk in chunks], end="[DONE]")


def anthropic_messages(said: Said, *, streamed: bool, model: str) -> Reply:
    number = next(numbers)
    block: dict[str, Any] = {"type": "text", "text": said.text}
    delta: dict[str, Any] = {"type": "text_delta", "text": said.text}
    empty: dict[str, Any] = {"type": "text", "text": ""}
    if said.tool is not None:
        name, arguments = said.call
        empty = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
        block, delta = {**empty, "input": said.arguments}, {"type": "input_json_delta", "partial_json": arguments}
    reason = "end_turn" if said.tool is None else "tool_use"
    usage = {"input_tokens": 10, "output_tokens": 5}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model, "usage": usage}
    if not streamed:
        return _json({**message, "content": [block], "stop_reason": reason, "stop_sequence": None})
    start = {**message, "content": [], "stop_reason": None, "stop_sequence": None}
    ending = {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    events: list[Event] = [
        ("message_start", {"message": start}),
        ("content_block_start", {"index": 0, "content_block": empty}),
        ("content_block_delta", {"index": 0, "delta": delta}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", ending),
        ("message_stop", {}),
    ]
    return _events([(name, {"type": name, **fields}) for name, fields in events])


def openai_responses(said: Said, *, streamed: bool, model: str) -> Reply:
    number = next(numbers)
    item = _responses_item(said, number)
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    base = {"id": f"resp_{number}", "object": "response", "created_at": 1_700_000_000, "model": model}
    done = {**base, "status": "completed", "output": [item], "usage": usage}
    if not streamed:
        return _json(done)
    events: list[Event] = [
        ("response.created", {"response": {**base, "status": "in_progress", "output": []}}),
        ("response.output_item.added", {"output_index": 0, "item": item}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": done}),
    ]
    numbered = enumerate(events)
    return _events([(name, {"type": name, "sequence_number": at, **fields}) for at, (name, fields) in numbered])


def _responses_item(said: Said, number: int) -> dict[str, Any]:
    if said.tool is None:
        content = [{"type": "output_text", "text": said.text, "annotations": []}]
        return {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    name, arguments = said.call
    if name == "tool_search":
        given = {"arguments": said.arguments, "execution": "client"}
        return {"type": "tool_search_call", "call_id": f"call_{number}", "status": "completed", **given}
    item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "status": "completed"}
    namespace = {"namespace": said.tool.namespace} if said.tool.namespace else {}
    return {**item, "name": name, "arguments": arguments, **namespace}


def gemini_content(said: Said, *, streamed: bool, model: str) -> Reply:
    part: dict[str, Any] = {"text": said.text}
    if said.tool is not None:
        part = {"functionCall": {"name": said.tool.name, "args": said.arguments}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model}
    return _events([("", whole)]) if streamed else _json(whole)


def _json(value: dict[str, Any]) -> Reply:
    return Reply("application/json", json.dumps(value).encode())


def _events(events: Iterable[Event], end: str = "") -> Reply:
    lines = [
        f"event: {name}\ndata: {json.dumps(data)}\n\n" if name else f"data: {json.dumps(data)}\n\n"
        for name, data in events
    ]
    return Reply("text/event-stream", "".join([*lines, f"data: {end}\n\n" if end else ""]).encode())


REPLIES: dict[str, Callable[..., Reply]] = {
    "/chat/completions": chat_completions,
    "/messages": anthropic_messages,
    "/responses": openai_responses,
    "generateContent": gemini_content,
    "streamGenerateContent": gemini_content,
}
