"""A manager -> an MCP server: its tools, what it publishes, and how its questions reach a person."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

from skillkit._version import __version__
from skillkit.core.exceptions import SkillKitError
from skillkit.core.manager import SkillManager
from skillkit.core.values.policy import ScriptPolicy
from skillkit.core.values.text import visible
from skillkit.integrations.catalog import script_paths, skills_for_models
from skillkit.integrations.mcp import in_unicode
from skillkit.integrations.mcp.approval import (
    CallAnswers,
    Context,
    McpApprover,
    QuestionReturned,
    ask_anew,
    client_approver,
    is_modern,
    question_result,
)
from skillkit.integrations.mcp.changes import Changes, ChangingServer
from skillkit.integrations.mcp.local import LocalApprover, PageAddress
from skillkit.integrations.mcp.publishing import EXTENSION, Publishing, SkillUriParams
from skillkit.integrations.tool_schemas import server_instructions, tool_schemas
from skillkit.present.terminal import cut
from skillkit.present.tool_result import ScriptToolResult

__all__ = ["APPROVAL_WAIT_SECONDS", "create_server"]

NAME = "skillkit"
# Many clients give a call up after a minute; the answer to a question must still be sent before that.
APPROVAL_WAIT_SECONDS = 45.0
# How old an answer may be is judged by its own clock; only who seals cannot do without a limit.
SEALED_SECONDS = 30 * 86_400.0
SESSION_HEADER = "mcp-session-id"
CONNECTING = ("initialize", "server/discover")
TITLES = {
    "load_skill": "Load a skill",
    "skills_run_script": "Run a script",
    "read_skill_file": "Read a skill's file",
    "find_skills": "Find skills",
}
# Claude Code searches for tools; with this it shows them from the start, and with them the names of the skills.
SHOWN_FROM_THE_START = {"anthropic/alwaysLoad": True}
NEEDS_KEY, STATUS_KEY = "skillkit/needs", "skillkit/status"
READING_TOOLS = frozenset(("read_skill_file", "find_skills"))
PROGRESS_SECONDS = 0.1
WAITING_SECONDS = 5.0
TAIL_BYTES = 2_000
LINE_COLUMNS = 200

Result = TypeVar("Result")


def create_server(
    manager: SkillManager,
    *,
    approval_wait: float = APPROVAL_WAIT_SECONDS,
    asks_client: bool = True,
    page: PageAddress | None = None,
) -> Server[Any]:
    """`asks_client=False` leaves every question to those who share the world, whatever the client can do.

    `page` gives the address of the world's approval page, for whoever is told that a question stays open.
    """
    approver = LocalApprover(manager.state_dir, approval_wait, page, state=manager.state)
    tools = _Tools(manager, approver, asks_client=asks_client)
    publishing = Publishing(manager)
    changes = Changes(manager, tools.session_of)
    server = ChangingServer(
        NAME,
        version=__version__,
        title="skillkit",
        on_list_tools=tools.list_tools,
        on_call_tool=tools.call_tool,
        on_list_resources=publishing.list_resources,
        on_list_resource_templates=publishing.list_templates,
        on_read_resource=publishing.read_resource,
        on_list_prompts=publishing.list_prompts,
        on_get_prompt=publishing.get_prompt,
        on_subscriptions_listen=changes.listen,
    )
    server.extensions[EXTENSION] = {"directoryRead": True}
    server.add_request_handler("skills/list", types.PaginatedRequestParams, publishing.list_skills)
    server.add_request_handler("skills/get", SkillUriParams, publishing.get_skill)
    server.add_request_handler("resources/directory/read", SkillUriParams, publishing.read_directory)
    # What a client sends back with an answer is what we gave it, for this very call, or it counts for nothing.
    server.middleware.append(ask_anew)
    sealed = RequestStateSecurity.ephemeral(ttl=SEALED_SECONDS)
    server.middleware.append(RequestStateBoundary(sealed, default_audience=NAME))
    server.middleware.append(changes.middleware)
    server.middleware.append(tools.instruct)
    return server


class _Tools:
    """The tools of one server; its session is its life, or one conversation of it where the transport knows such."""

    def __init__(self, manager: SkillManager, local: LocalApprover, *, asks_client: bool) -> None:
        self.manager = manager
        self.local = local
        self.asks_client = asks_client
        self.answers = CallAnswers()
        self._session_id = f"mcp-{secrets.token_hex(8)}"
        self._told: frozenset[str] = frozenset()

    def session_of(self, ctx: Context) -> str:
        """The conversation that the transport knows and checked, else the server's own; nothing a model can write."""
        if ctx.request is None or is_modern(ctx):
            return self._session_id
        conversation = ctx.request.headers.get(SESSION_HEADER)
        return f"{self._session_id}-{conversation}" if conversation else self._session_id

    async def list_tools(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=await asyncio.to_thread(self._tools))

    async def instruct(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Whoever connects is told which skills there are now; in either era of the protocol."""
        result = await call_next(ctx)
        if ctx.method not in CONNECTING or not isinstance(result, dict):
            return result
        return {**result, "instructions": await asyncio.to_thread(self._instructions)}

    def _instructions(self) -> str:
        self._look()
        skills = skills_for_models(self.manager)
        # Instructions are given once. What comes later is described by the tools.
        self._told = self._told or frozenset(skill.name for skill in skills)
        return server_instructions(skills)

    def _look(self) -> None:
        """Where looking fails, what was found before still counts."""
        with suppress(OSError, SkillKitError):
            self.manager.discover()

    def _tools(self) -> list[types.Tool]:
        self.manager.discover()
        skills = skills_for_models(self.manager)
        return [
            types.Tool(
                name=tool.name,
                title=TITLES.get(tool.name),
                description=in_unicode(tool.description),
                input_schema=in_unicode(dict(tool.input_schema)),
                annotations=_hints(tool.name, self.manager.agent_policy),
                _meta=SHOWN_FROM_THE_START,
            )
            for tool in tool_schemas(skills, script_paths(self.manager, skills), self._told)
        ]

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        from skillkit.integrations.functions import SkillFunctions  # a client waits for the first answer, not for this

        if params.name == "find_skills":
            await asyncio.to_thread(self._look)
        progress = _LiveProgress(ctx)
        client = client_approver(ctx, params, self.answers, progress.wait_for) if self.asks_client else None
        approver = McpApprover(client, self.local.telling(progress.wait_for))
        functions = SkillFunctions(self.manager, approver=approver, session_id=self.session_of(ctx))
        reporting = asyncio.create_task(progress.report())
        try:
            result = await _run_to_end(functions.acall(params.name, params.arguments, on_output=progress.on_output))
            await progress.send()
        except QuestionReturned as asked:
            return question_result(asked.request, ctx.protocol_version)
        finally:
            reporting.cancel()
        text = types.TextContent(text=in_unicode(result.content))
        return types.CallToolResult(content=[text], is_error=result.is_error, _meta=_meta_of(result))


def _meta_of(result: ScriptToolResult) -> dict[str, Any] | None:
    """For programs: why a script did not succeed, in one word, and what it lacked.

    Structured content would take the text's place before some models.
    """
    lacked = [{"kind": need.kind, "name": need.name, "remedy": need.remedy} for need in result.needs]
    status = {STATUS_KEY: result.status} if result.is_error else {}
    return {**status, **({NEEDS_KEY: in_unicode(lacked)} if lacked else {})} or None


def _hints(tool: str, policy: ScriptPolicy) -> types.ToolAnnotations:
    """A script may do whatever its approval allows; what runs none only reads the files of skills."""
    loads_only = tool == "load_skill" and policy.run_on_load == "never"
    is_reading = tool in READING_TOOLS or loads_only
    return types.ToolAnnotations(
        read_only_hint=is_reading, destructive_hint=not is_reading, open_world_hint=not is_reading
    )


async def _run_to_end(run: Coroutine[Any, Any, Result]) -> Result:
    """When the call is cancelled, so is the run, and the call ends only then.

    In a task of its own: a cancelled scope cancels whatever the call's own task awaits, again and again.
    """
    running = asyncio.create_task(run)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        running.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # nobody is left to look at it
        raise


class _LiveProgress:
    """What a call waits for, then what a script prints -> progress: how many bytes so far, and the last line."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.loop = asyncio.get_running_loop()
        self.changed = asyncio.Event()
        self.seen = 0
        self.sent = 0
        self.tail = b""
        self.awaited = ""
        self.waits = 0

    def wait_for(self, awaited: str) -> None:
        """Called from the thread that waits; "" says that it goes on."""
        self.awaited = awaited
        self._wake()

    def on_output(self, _: str, data: bytes) -> None:
        """Called from the thread that reads the script's output."""
        self.seen += len(data)
        self.tail = (self.tail + data)[-TAIL_BYTES:]
        self._wake()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop is closed, and nobody listens
            self.loop.call_soon_threadsafe(self.changed.set)

    async def report(self) -> None:
        """Until cancelled; what comes in between two reports is told by the second."""
        while True:
            with suppress(TimeoutError):  # then it is time to say that it still waits
                async with asyncio.timeout(WAITING_SECONDS if self.awaited else None):
                    await self.changed.wait()
            self.changed.clear()
            await self.send()
            await asyncio.sleep(PROGRESS_SECONDS)

    async def send(self) -> None:
        if self.awaited:  # below the first byte, and more each time
            self.waits += 1
            told = cut(visible(self.awaited), LINE_COLUMNS)
            await self.ctx.session.report_progress(1 - 1 / (1 + self.waits), None, told)
        elif self.seen > self.sent:
            self.sent = self.seen
            await self.ctx.session.report_progress(float(self.sent), None, _last_line(self.tail))


def _last_line(output: bytes) -> str:
    """Made harmless: a script's words are not the client's."""
    lines = output.decode("utf-8", errors="replace").split("\n")
    line = next((each.strip() for each in reversed(lines) if each.strip()), "")
    return cut(visible(line), LINE_COLUMNS)
