"""A model on loopback, by the wire formats of OpenAI (chat completions and responses) and Gemini, streamed or not.

It holds no state: what it says next follows from how many tool results the conversation has. So a program that is
stopped and goes on in another process meets the same model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.model_servers import serving

__all__ = ["ProviderStub", "provider_stub"]

TEXT = "The cat sat. The dog ran."
SCRIPT = {"skill_name": "text-stats", "script": "scripts/stats.py", "input": {"text": TEXT}}
# By the tools that a program offers: those of SkillFunctions, or those for LangChain.
TURNS: Mapping[str, Sequence[tuple[str, dict[str, Any]]]] = {
    "load_skill": [("load_skill", {"skill_name": "text-stats"}), ("skills_run_script", SCRIPT)],
    "text-stats": [("text-stats", {}), ("text-stats__stats", {"arguments": {"text": TEXT}})],
}
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


@dataclass(frozen=True)
class Turn:
    """A call, or the last words."""

    number: int
    name: str = ""
    arguments: Mapping[str, Any] | None = None
    text: str = ""

    @property
    def call_id(self) -> str:
        return f"call_{self.number}"


def next_turn(offered: Sequence[str], results: Sequence[str], before: int = 0) -> Turn:
    """`before` is how many results the provider keeps by itself."""
    number = before + len(results)
    turns = next((turns for name, turns in TURNS.items() if name in offered), ())
    if number < len(turns):
        return Turn(number, *turns[number])
    first = results[-1].strip().partition("\n")[0] if results else "nothing"
    return Turn(number, text=f"I was told: {first}")


def text_of(content: Any) -> str:
    """Of a message, whether it is a text or a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [] if isinstance(part, dict))


class Chat:
    """POST /v1/chat/completions"""

    @staticmethod
    def turn(body: dict[str, Any]) -> Turn:
        offered = [tool["function"]["name"] for tool in body.get("tools") or []]
        return next_turn(offered, [text_of(each["content"]) for each in body["messages"] if each["role"] == "tool"])

    @staticmethod
    def message(turn: Turn) -> dict[str, Any]:
        if turn.text:
            return {"role": "assistant", "content": turn.text}
        function = {"name": turn.name, "arguments": json.dumps(turn.arguments)}
        call = {"index": 0, "id": turn.call_id, "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    @classmethod
    def whole(cls, turn: Turn) -> dict[str, Any]:
        choice = {"index": 0, "message": cls.message(turn), "finish_reason": "stop" if turn.text else "tool_calls"}
        return {**cls.head("chat.completion"), "choices": [choice], "usage": USAGE}

    @classmethod
    def chunks(cls, turn: Turn) -> Iterator[tuple[str, dict[str, Any]]]:
        for delta, finish in ((cls.message(turn), None), ({}, "stop" if turn.text else "tool_calls")):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            yield "", {**cls.head("chat.completion.chunk"), "choices": [choice]}
        yield "", {**cls.head("chat.completion.chunk"), "choices": [], "usage": USAGE}

    @staticmethod
    def head(kind: str) -> dict[str, Any]:
        return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "scripted"}


class Responses:
    """POST /v1/responses"""

    @staticmethod
    def turn(body: dict[str, Any]) -> Turn:
        offered = [tool.get("name", "") for tool in body.get("tools") or []]
        given = body["input"] if isinstance(body["input"], list) else []
        outputs = [text_of(each["output"]) for each in given if each.get("type") == "function_call_output"]
        return next_turn(offered, outputs, int((body.get("previous_response_id") or "resp_0").removeprefix("resp_")))

    @staticmethod
    def item(turn: Turn) -> dict[str, Any]:
        if turn.text:
            content = [{"type": "output_text", "text": turn.text, "annotations": [], "logprobs": []}]
            head = {"type": "message", "id": f"msg_{turn.number}", "role": "assistant", "status": "completed"}
            return {**head, "content": content}
        call = {"type": "function_call", "id": f"fc_{turn.number}", "call_id": turn.call_id, "status": "completed"}
        return {**call, "name": turn.name, "arguments": json.dumps(turn.arguments)}

    @classmethod
    def whole(cls, turn: Turn) -> dict[str, Any]:
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        return {
            "id": f"resp_{turn.number}",
            "object": "response",
            "created_at": 1,
            "model": "scripted",
            "status": "completed",
            "output": [cls.item(turn)],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, **details},
        }

    @classmethod
    def chunks(cls, turn: Turn) -> Iterator[tuple[str, dict[str, Any]]]:
        item, whole = cls.item(turn), cls.whole(turn)
        place = {"output_index": 0, "item_id": item["id"]}
        events: list[dict[str, Any]] = [{"type": "response.created", "response": {**whole, "output": []}}]
        events.append(
            {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}}
        )
        if turn.text:
            events.append({"type": "response.output_text.delta", **place, "content_index": 0, "delta": turn.text})
        else:
            written = item["arguments"]
            events.append({"type": "response.function_call_arguments.delta", **place, "delta": written})
        events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
        events.append({"type": "response.completed", "response": whole})
        yield from ((event["type"], {**event, "sequence_number": number}) for number, event in enumerate(events))


class Gemini:
    """POST /v1beta/models/NAME:generateContent"""

    @staticmethod
    def turn(body: dict[str, Any]) -> Turn:
        offered = [each["name"] for tool in body.get("tools") or [] for each in tool["functionDeclarations"]]
        parts = [part for content in body["contents"] for part in content.get("parts") or []]
        answers = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
        return next_turn(offered, [str(next(iter(each.values()), "")) for each in answers])

    @staticmethod
    def whole(turn: Turn) -> dict[str, Any]:
        part = {"text": turn.text} if turn.text else {"functionCall": {"name": turn.name, "args": turn.arguments}}
        content = {"role": "model", "parts": [part]}
        return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "modelVersion": "scripted"}

    @classmethod
    def chunks(cls, turn: Turn) -> Iterator[tuple[str, dict[str, Any]]]:
        yield "", cls.whole(turn)


class StubHandler(BaseHTTPRequestHandler):
    server: ProviderStub

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.bodies.append(body)
        path = self.path.partition("?")[0]
        wire = Chat if path.endswith("/completions") else Responses if path.endswith("/responses") else Gemini
        turn = wire.turn(body)
        is_streamed = bool(body.get("stream")) or ":streamGenerateContent" in path
        if is_streamed:
            events = [
                f"event: {name}\n" * bool(name) + f"data: {json.dumps(each)}\n\n" for name, each in wire.chunks(turn)
            ]
            self.answer("".join(events) + "data: [DONE]\n\n" * (wire is Chat), "text/event-stream")
        else:
            self.answer(json.dumps(wire.whole(turn)), "application/json")

    def answer(self, text: str, kind: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Quiet."""


class ProviderStub(ThreadingHTTPServer):
    """What it was asked, and where it is."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), StubHandler)
        self.bodies: list[dict[str, Any]] = []

    @property
    def environment(self) -> dict[str, str]:
        """By which a program finds it in the place of its provider."""
        root = f"http://127.0.0.1:{self.server_address[1]}"
        openai = dict.fromkeys(("OPENAI_BASE_URL", "OPENAI_API_BASE"), f"{root}/v1")
        keys = dict.fromkeys(("OPENAI_API_KEY", "GOOGLE_API_KEY"), "a-key-for-tests-only")
        return {**openai, **keys, "GOOGLE_GEMINI_BASE_URL": root}


@contextmanager
def provider_stub() -> Iterator[ProviderStub]:
    """On a port of its own; gone when the block ends."""
    with ProviderStub() as server, serving(server):
        yield server
