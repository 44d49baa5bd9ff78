"""A model on loopback that follows a plan: the person's words name it, each tool's result moves it on by one step.

It keeps no state: where it is in a plan follows from the conversation that the host sends. Requests without tools (titles,
summaries, quotas) get a short text. A tool that is hidden behind a search for tools is searched for first.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.hosts.conversation import FORMS, Conversation, Tool, form_of
from support.hosts.replies import REPLIES, Reply, Said
from support.hosts.transcripts import Transcript

__all__ = ["MISSING", "OUR_TOOLS", "Call", "ScriptedModel", "scripted_model"]

OUR_TOOLS = ("load_skill", "skills_run_script", "read_skill_file")
PLAN = re.compile(r"plan-(\w+)")
SEARCHES = ("ToolSearch", "tool_search")
SEARCHES_AT_MOST = 20
THINKING_SECONDS = 1
MISSING = "There is no tool"
THROUGH = "tool_call"
"""Calls a tool that a search found and that is not offered by itself."""


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

    def tools(self) -> dict[str, str]:
        """Ours, by the name that we gave them -> the one that the model knows them by."""
        with self.lock:
            seen = list(self.conversations)
        shown = {own: tool.name for each in seen for own, tool in _own_tools(each).items()}
        hidden = {own: name for each in seen for own in OUR_TOOLS if (name := _hidden_name(each, own))}
        return hidden | shown

    def results(self, plan: str) -> list[str]:
        """What our tools answered in this plan, as the model was last told."""
        with self.lock:
            seen = [
                done
                for each in self.conversations
                if (found := _plan_of(each)) and found[0] == plan
                for done in [found[1]]
            ]
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
        return _call(conversation, step) or Said(f"{MISSING} {step.tool}.")


def _call(conversation: Conversation, step: Call) -> Said | None:
    wanted = _own_tools(conversation).get(step.tool)
    if wanted is not None:
        return Said(tool=wanted, arguments=dict(step.arguments))
    offered = {tool.name: tool for tool in conversation.tools}
    search = next((offered[name] for name in SEARCHES if name in offered), None)
    if search is None or not any("skillkit" in turn.text for turn in conversation.turns):
        return None
    # A server that is still connecting has no names of tools yet; then the search is by words, and waits for it.
    name = _hidden_name(conversation, step.tool)
    searched = [turn for turn in conversation.turns if turn.kind == "call" and turn.tool in SEARCHES]
    is_told_to_wait = "still connecting" in conversation.turns[-1].text and len(searched) < SEARCHES_AT_MOST
    if searched and is_told_to_wait:
        time.sleep(THINKING_SECONDS)
    if is_told_to_wait or not any(step.tool in turn.text for turn in searched):
        return Said(
            tool=search, arguments={"query": f"select:{name}" if name else f"skillkit {step.tool}", "max_results": 5}
        )
    if name and THROUGH in offered:
        return Said(tool=offered[THROUGH], arguments={"name": name, "arguments": step.arguments})
    return None


def _hidden_name(conversation: Conversation, tool: str) -> str:
    """As the host mentions it where it does not offer the tool itself."""
    told = "\n".join(turn.text for turn in conversation.turns if turn.kind in ("system", "user"))
    found = re.search(rf"\b\w*skillkit\w*{tool}\b", told)
    return found[0] if found else ""


def _own_tools(conversation: Conversation) -> dict[str, Tool]:
    """By the name that we gave them; some hosts have a tool of their own that is called alike."""
    ending = [(own, tool) for tool in conversation.tools for own in OUR_TOOLS if tool.name.endswith(own)]
    ending.sort(key=lambda each: "skillkit" in each[1].name + each[1].namespace)
    return dict(ending)


def _plan_of(conversation: Conversation) -> tuple[str, list[str]] | None:
    """The plan that the person named last, and what our tools answered since."""
    own = {tool.name for tool in _own_tools(conversation).values()}
    own |= {_hidden_name(conversation, tool) for tool in OUR_TOOLS}
    turns = conversation.turns
    for at in range(len(turns) - 1, -1, -1):
        named = PLAN.findall(turns[at].text) if turns[at].kind == "user" else []
        if named:
            return named[-1], [turn.text for turn in turns[at:] if turn.kind == "result" and turn.tool in own - {""}]
    return None


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
