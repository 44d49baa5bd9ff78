"""Loopback stand-ins for the HTTP APIs of models: some enforce the rule for tool names, one streams awkwardly."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["ChatServer", "Failed", "ModelServer", "Said", "chat_server", "model_server"]

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


@dataclass(frozen=True)
class Said:
    """An answer: text in small pieces, then tool calls in small pieces, and how the stream ends."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    ending: str = "done"
    """done, cut (the connection breaks), garbage (a chunk that is no JSON), hang or empty (both until the client goes).

    Of these, hang sends nothing any more, and empty chunks that say nothing.
    """


@dataclass(frozen=True)
class Failed:
    """An answer that is none."""

    status: int
    message: str


Reply = Said | Failed
Answering = Reply | Callable[[dict[str, Any]], Reply]


class ChatServer(ThreadingHTTPServer):
    """Gives these answers in turn, the last one for ever, cut into pieces that respect nothing."""

    daemon_threads = True
    piece_bytes = 7

    def __init__(self, *answers: Answering) -> None:
        super().__init__(("127.0.0.1", 0), ChatHandler)
        self.answers = list(answers)
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.stopping = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def next_answer(self, body: dict[str, Any]) -> Reply:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer(body) if callable(answer) else answer

    def handle_error(self, *_: Any) -> None:
        """A client may go at any time."""


class ChatHandler(Handler):
    protocol_version = "HTTP/1.1"
    server: ChatServer  # type: ignore[assignment]  # the same protocol, another server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.bodies.append(body)
        self.server.keys.append(self.headers.get("authorization", ""))
        answer = self.server.next_answer(body)
        if isinstance(answer, Failed):
            self.answer(answer.status, {"error": {"message": answer.message, "type": "error", "code": None}})
        else:
            self.stream(answer)

    def stream(self, answer: Said) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        self.send(b"".join(framed(delta) for delta in deltas(answer)))
        if answer.ending == "garbage":
            self.send(b"data: {no json\n\n")
        elif answer.ending == "hang":
            self.wait_for_client()
        while answer.ending == "empty" and not self.server.stopping.wait(0.01):
            self.send(framed({"content": ""}))
        if answer.ending in ("cut", "hang", "empty"):
            return
        self.send(framed({}, "tool_calls" if answer.calls else "stop") + b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def send(self, data: bytes) -> None:
        size = self.server.piece_bytes
        for start in range(0, len(data), size):
            piece = data[start : start + size]
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.wfile.flush()

    def wait_for_client(self) -> None:
        self.connection.settimeout(0.05)
        while not self.server.stopping.is_set():
            with suppress(TimeoutError):
                if not self.connection.recv(1):
                    return


def deltas(answer: Said) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for start in range(0, len(answer.text), 3):
        yield {"content": answer.text[start : start + 3]}
    for index, (name, arguments) in enumerate(answer.calls):
        written = json.dumps(arguments)
        yield {"tool_calls": [call_piece(index, id=f"call_{index}", name=name)]}
        for start in range(0, len(written), 5):
            yield {"tool_calls": [call_piece(index, arguments=written[start : start + 5])]}


def call_piece(index: int, *, id: str | None = None, name: str | None = None, arguments: str = "") -> dict[str, Any]:  # noqa: A002
    head = {} if id is None else {"id": id, "type": "function"}
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return {"index": index, **head, "function": function}


def framed(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"


@contextmanager
def model_server(wanted: str = "run", arguments: dict[str, Any] | None = None) -> Iterator[ModelServer]:
    """On a port of its own; gone when the block ends."""
    with ModelServer(wanted, {"argv": ["wire"]} if arguments is None else arguments) as server, serving(server):
        yield server


@contextmanager
def chat_server(*answers: Answering) -> Iterator[ChatServer]:
    """On a port of its own; gone when the block ends."""
    with ChatServer(*answers) as server, serving(server):
        try:
            yield server
        finally:
            server.stopping.set()


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
