"""A model on loopback that follows a plan: the person's words name it, each tool's result moves it on by one step.

It keeps no state: where it is in a plan follows from the conversation that the host sends. Requests without tools (titles,
summaries, quotas) get a short text. A tool that is hidden behind a search for tools is searched for first.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.hosts.conversation import FORMS, Conversation, Tool, Turn, form_of
from support.hosts.replies import REPLIES, Reply, Said
from support.hosts.transcripts import Transcript

__all__ = ["OUR_TOOLS", "Call", "ScriptedModel", "scripted_model"]

OUR_TOOLS = ("load_skill", "skills_run_script", "read_skill_file")
PLAN = re.compile(r"plan-(\w+)")
SEARCHES = {
    "ToolSearch": lambda wanted: {"query": f"select:mcp__skillkit__{wanted}", "max_results": 5},
    "tool_search": lambda wanted: {"query": f"skillkit {wanted}", "limit": 8},
}


@dataclass(frozen=True)
class Call:
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


class ScriptedModel(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, plans: Mapping[str, Sequence[Call]], transcript: Transcript) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.plans = plans
        self.transcript = transcript
        self.conversations: list[Conversation] = []
        self.refused: list[str] = []
        self.lock = threading.Lock()

    def handle_error(self, *_: object) -> None:
        """A host that goes in the middle of a sentence is no fault of ours."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def tools(self) -> dict[str, Tool]:
        """Ours, as the host offered them to the model: by the name that we gave them."""
        with self.lock:
            seen = [tool for each in self.conversations for tool in each.tools]
        return {own: tool for tool in seen for own in OUR_TOOLS if tool.name.endswith(own)}

    def results(self, plan: str) -> list[str]:
        """What our tools answered in this plan, as the model was last told."""
        with self.lock:
            seen = [done for each in self.conversations if (found := _plan_of(each)) and found[0] == plan for done in [found[1]]]
        return max(seen, key=len, default=[])

    def is_over(self, plan: str) -> bool:
        return len(self.results(plan)) >= len(self.plans[plan])

    def said_everywhere(self) -> str:
        """All that hosts told the model, whoever said it."""
        with self.lock:
            return "\n".join(turn.text for each in self.conversations for turn in each.turns)

    def answer(self, conversation: Conversation) -> Said:
        with self.lock:
            self.conversations.append(conversation)
        found = _plan_of(conversation)
        if found is None or not conversation.tools:
            return Said("Fine.")
        plan, done = found
        steps = self.plans[plan]
        if len(done) >= len(steps):
            return Said(f"Plan {plan} is over.")
        step = steps[len(done)]
        return _call(conversation, step) or Said(f"There is no tool {step.tool}.")


def _call(conversation: Conversation, step: Call) -> Said | None:
    offered = {tool.name: tool for tool in conversation.tools}
    wanted = next((tool for tool in conversation.tools if tool.name.endswith(step.tool)), None)
    if wanted is not None:
        return Said(tool=wanted, arguments=dict(step.arguments))
    searched = sum(turn.kind == "call" and turn.tool in SEARCHES for turn in conversation.turns)
    search = next((name for name in SEARCHES if name in offered), None)
    if search is None or searched > 5:
        return None
    return Said(tool=offered[search], arguments=SEARCHES[search](step.tool))


def _plan_of(conversation: Conversation) -> tuple[str, list[str]] | None:
    """The plan that the person named last, and what our tools answered since."""
    turns = conversation.turns
    for at in range(len(turns) - 1, -1, -1):
        named = PLAN.findall(turns[at].text) if turns[at].kind == "user" else []
        if named:
            return named[-1], [turn.text for turn in turns[at:] if _is_ours(turn)]
    return None


def _is_ours(turn: Turn) -> bool:
    return turn.kind == "result" and turn.tool.endswith(OUR_TOOLS)


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedModel
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.transcript.write(f"GET {self.path}")
        models = [{"id": name, "object": "model", "owned_by": "us", "created": 1} for name in ("scripted",)]
        self.send(200, Reply("application/json", json.dumps({"object": "list", "data": models}).encode()))

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        raw = self.rfile.read(length) if length else self.read_chunks()
        form = form_of(self.path)
        if not form:
            self.server.transcript.write(f"POST {self.path} ({len(raw)} bytes)")
            counted = {"input_tokens": 10, "totalTokens": 10}
            self.send(200, Reply("application/json", json.dumps(counted).encode()))
            return
        body = json.loads(raw)
        conversation = FORMS[form](body)
        said = self.server.answer(conversation)
        self.server.transcript.conversed(self.path, conversation, said)
        streamed = bool(body.get("stream")) or form == "streamGenerateContent"
        self.send(200, REPLIES[form](said, streamed=streamed, model=body.get("model", "scripted")))

    def do_CONNECT(self) -> None:
        """Hosts take this server for their proxy: whoever wants out of loopback is noted and turned away."""
        self.server.refused.append(self.path)
        self.server.transcript.write(f"REFUSED: a connection to {self.path}")
        self.send(403, Reply("text/plain", b"Loopback only."))

    def read_chunks(self) -> bytes:
        read = b""
        while self.headers.get("transfer-encoding") == "chunked" and (size := int(self.rfile.readline() or b"0", 16)):
            read += self.rfile.read(size)
            self.rfile.readline()
        return read

    def send(self, status: int, reply: Reply) -> None:
        with suppress(OSError):
            self.send_response(status)
            self.send_header("content-type", reply.content_type)
            self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

    def log_message(self, *_: Any) -> None:
        """Quiet; the transcript has it."""


@contextmanager
def scripted_model(plans: Mapping[str, Sequence[Call]], transcript: Transcript) -> Iterator[ScriptedModel]:
    with ScriptedModel(plans, transcript) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            yield server
        finally:
            server.shutdown()
            serving.join()
