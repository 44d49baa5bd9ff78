"""Loopback stand-ins for OpenAI's and Anthropic's HTTP APIs that enforce their rule for tool names."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["ModelServer", "model_server"]

ALLOWED = {
    "/v1/chat/completions": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    "/v1/messages": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
}


class ModelServer(ThreadingHTTPServer):
    """Calls the tool whose name ends with `wanted`, then says that it is done."""

    daemon_threads = True

    def __init__(self, wanted: str, arguments: dict[str, Any]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.wanted = wanted
        self.arguments = arguments
        self.names: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: ModelServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        names = names_in(body)
        self.server.names += names
        bad = [name for name in names if not ALLOWED[self.path].fullmatch(name)]
        if bad:
            self.answer(400, {"type": "error", "error": {"type": "invalid_request_error", "message": f"name: {bad}"}})
            return
        wanted = next(name for name in names if name.endswith(self.server.wanted))
        reply = openai_reply if "completions" in self.path else anthropic_reply
        self.answer(200, reply(wanted, self.server.arguments, is_done=is_answered(body)))

    def answer(self, status: int, body: dict[str, Any]) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(text)
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Quiet."""


def names_in(value: Any) -> list[str]:
    """Every `name` of a tool, of a call in the history and of a choice, wherever the request has them."""
    if isinstance(value, list):
        return [name for each in value for name in names_in(each)]
    if not isinstance(value, dict):
        return []
    inside = {
        key: each for key, each in value.items() if key not in ("parameters", "input_schema", "input", "arguments")
    }
    own = [value["name"]] if isinstance(value.get("name"), str) else []
    return own + [name for each in inside.values() for name in names_in(each)]


def is_answered(body: dict[str, Any]) -> bool:
    last = body["messages"][-1]
    return last["role"] == "tool" or "tool_result" in json.dumps(last["content"])


def openai_reply(tool: str, arguments: dict[str, Any], *, is_done: bool) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"id": "call_1", "type": "function", "function": function}
    said = {"content": "done"} if is_done else {"content": None, "tool_calls": [call]}
    choice = {
        "index": 0,
        "message": {"role": "assistant", **said},
        "finish_reason": "stop" if is_done else "tool_calls",
    }
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def anthropic_reply(tool: str, arguments: dict[str, Any], *, is_done: bool) -> dict[str, Any]:
    call = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": arguments}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "done"}] if is_done else [{"type": "text", "text": "I run it."}, call],
        "stop_reason": "end_turn" if is_done else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


@contextmanager
def model_server(wanted: str = "run", arguments: dict[str, Any] | None = None) -> Iterator[ModelServer]:
    """On a port of its own; gone when the block ends."""
    with ModelServer(wanted, {"argv": ["wire"]} if arguments is None else arguments) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
