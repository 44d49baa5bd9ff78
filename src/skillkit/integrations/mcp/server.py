"""A manager -> an MCP server: its tools, what it publishes, and how its questions reach a person."""

from __future__ import annotations

import asyncio
import secrets
import threading
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

from skillkit._version import __version__
from skillkit.core.manager import SkillManager
from skillkit.core.questions import Approver
from skillkit.integrations.functions import ScriptToolResult, SkillFunctions
from skillkit.integrations.mcp.approval import (
    STATE_SECONDS,
    AskingApprover,
    CallAnswers,
    LocalApprover,
    McpApprover,
    PageAddress,
    QuestionReturned,
    ReturningApprover,
    can_elicit,
    is_modern,
    question_result,
)
from skillkit.integrations.mcp.calls import LiveProgress, stoppable
from skillkit.integrations.mcp.catalog import SkillCatalog
from skillkit.integrations.mcp.changes import Changes, ChangingServer
from skillkit.integrations.mcp.publishing import EXTENSION, Publishing, SkillUriParams
from skillkit.integrations.mcp.wording import in_unicode

__all__ = ["APPROVAL_WAIT_SECONDS", "SkillServer", "create_server"]

NAME = "skillkit"
# Many clients give a call up after a minute; the answer to a question must still be sent before that.
APPROVAL_WAIT_SECONDS = 45.0
SESSION_HEADER = "mcp-session-id"
INSTRUCTIONS = (
    "Agent Skills of this machine. Load a skill before you use it; run its scripts only through skills_run_script. "
    "A person may be asked before a script runs; what they decline stays declined."
)
TITLES = {"load_skill": "Load a skill", "skills_run_script": "Run a script", "read_skill_file": "Read a skill's file"}

Context = ServerRequestContext[Any, Any]


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
    return SkillServer(manager, approval_wait=approval_wait, asks_client=asks_client, page=page).server


class SkillServer:
    """One server; its session is its life, or one conversation of it where the transport knows such."""

    def __init__(
        self, manager: SkillManager, *, approval_wait: float, asks_client: bool, page: PageAddress | None
    ) -> None:
        self.manager = manager
        self.session_id = f"mcp-{secrets.token_hex(8)}"
        self.local = LocalApprover(manager.state_dir, approval_wait, page)
        self.asks_client = asks_client
        self.answers = CallAnswers()
        self.server = self._served(Publishing(SkillCatalog(manager)))

    def _served(self, publishing: Publishing) -> Server[Any]:
        changes = Changes(SkillFunctions(self.manager), lambda ctx: session_of(ctx, self.session_id))
        server = ChangingServer(
            NAME,
            version=__version__,
            title="skillkit",
            instructions=INSTRUCTIONS,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
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
        # What a client sends back with an answer is what we gave it, for this very call, or it is refused.
        sealed = RequestStateSecurity.ephemeral(ttl=STATE_SECONDS)
        server.middleware.append(RequestStateBoundary(sealed, default_audience=NAME))
        server.middleware.append(changes.middleware)
        return server

    async def list_tools(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=await asyncio.to_thread(self._tools))

    def _tools(self) -> list[types.Tool]:
        self.manager.discover()
        return [
            types.Tool(
                name=tool.name,
                title=TITLES.get(tool.name),
                description=in_unicode(tool.description),
                input_schema=in_unicode(dict(tool.input_schema)),
                annotations=types.ToolAnnotations(read_only_hint=tool.name == "read_skill_file"),
            )
            for tool in SkillFunctions(self.manager).tools()
        ]

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        functions = SkillFunctions(
            self.manager, approver=self._approver(ctx, params), session_id=session_of(ctx, self.session_id)
        )
        cancel, progress = threading.Event(), LiveProgress(ctx)

        def run() -> ScriptToolResult:
            return functions.call(params.name, params.arguments, cancel=cancel, on_output=progress.on_output)

        reporting = asyncio.create_task(progress.report())
        try:
            result = await stoppable(run, cancel)
            await progress.send()
        except QuestionReturned as asked:
            return question_result(asked.request, ctx.protocol_version)
        finally:
            reporting.cancel()
        text = types.TextContent(text=in_unicode(result.content))
        return types.CallToolResult(content=[text], is_error=result.is_error)

    def _approver(self, ctx: Context, params: types.CallToolRequestParams) -> Approver:
        client: Approver | None = None
        if self.asks_client and can_elicit(ctx):
            if is_modern(ctx):
                client = ReturningApprover(self.answers.of(params))
            else:
                client = AskingApprover(ctx, asyncio.get_running_loop())
        return McpApprover(client, self.local)


def session_of(ctx: Context, server_session: str) -> str:
    """The conversation that the transport knows and checked, else the server's own; nothing a model can write."""
    if ctx.request is None or is_modern(ctx):
        return server_session
    conversation = ctx.request.headers.get(SESSION_HEADER)
    return f"{server_session}-{conversation}" if conversation else server_session
