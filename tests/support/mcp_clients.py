"""Real MCP clients for tests, used without await: one loop in a thread serves a whole module."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from pydantic import ConfigDict

from support.skill_folders import skill_folder

__all__ = [
    "ERAS",
    "TOKEN",
    "Conversation",
    "Person",
    "answering",
    "command_for",
    "conversing",
    "environment",
    "http_server",
    "over_http",
    "over_stdio",
    "text_of",
]

ERAS = ("legacy", "2026-07-28")
TOKEN = "a-token-for-tests-only"
# Here programs answer forms, at once.
QUICK = "from skillkit.testing import quick_forms; quick_forms().__enter__(); "
COMMAND = [sys.executable, "-c", f"{QUICK}from skillkit.cli.mcp import mcp_command; mcp_command()"]


class Person:
    """Whoever sits before the client: what they were asked, and what they will say."""

    def __init__(self) -> None:
        self.forms: list[types.ElicitRequestFormParams] = []
        self.says: types.ElicitResult | types.ErrorData | None = answering("no")
        self.seconds = 0.0

    async def asked(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> Any:
        assert context.session is not None
        assert isinstance(params, types.ElicitRequestFormParams)
        self.forms.append(params)
        if self.says is None:
            await anyio.sleep_forever()
        await anyio.sleep(self.seconds)
        return self.says

    def will(self, option_id: str) -> None:
        self.forms.clear()
        self.says = answering(option_id)


def answering(option_id: str) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"answer": option_id})


class Conversation:
    """One connected client, its person, and the folder of skills that its server serves."""

    def __init__(self, portal: BlockingPortal, client: Client, person: Person, folder: Path) -> None:
        self.portal = portal
        self.client = client
        self.person = person
        self.folder = folder
        self.heard: list[str] = []

    async def hear(self, message: Any) -> None:
        """Whatever the server says unasked."""
        self.heard.append(type(message).__name__)

    def add_skill(self, name: str, files: Mapping[str, str], **text: Any) -> Path:
        """Installed while the server runs; listing makes it known."""
        made = skill_folder(self.folder / "skills", name, files=files, **text)
        self.tools()
        return made

    def tools(self) -> list[types.Tool]:
        return self.portal.call(self.client.list_tools).tools

    def start(self, name: str, on_progress: Callable[[float, str], None] | None = None, **given: Any) -> Future[Any]:
        """A call under way; cancelling the future cancels the call."""

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            if on_progress is not None:
                assert total is None, "nobody knows how much a script will print"
                on_progress(progress, message or "")

        async def called() -> types.CallToolResult:
            return await self.client.call_tool(name, given, progress_callback=progressed if on_progress else None)

        return self.portal.start_task_soon(called)

    def call(self, name: str, **given: Any) -> types.CallToolResult:
        result = self.start(name, **given).result(60)
        assert isinstance(result, types.CallToolResult)
        return result

    def run(self, skill: str, script: str, *args: str) -> types.CallToolResult:
        return self.call("skills_run_script", skill_name=skill, script=script, args=list(args))

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Any request by its name."""
        request = types.Request[dict[str, Any], str](method=method, params=params)

        async def sent() -> types.Result:
            return await self.client.session.send_request(request, AnyResult)

        return self.portal.start_task_soon(sent).result(60).model_dump(by_alias=True, exclude_none=True)


class AnyResult(types.Result):
    """Whatever a method of an extension gives."""

    model_config = ConfigDict(extra="allow")


def text_of(result: types.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


@contextmanager
def conversing(server: Any, folder: Path, *, era: str, has_form: bool = True) -> Iterator[Conversation]:
    """`server` is a Server of this process, or a transport."""
    person = Person()
    with start_blocking_portal() as portal:
        asked = person.asked if has_form else None
        talk = Conversation(portal, Client(server, mode=era, elicitation_callback=asked), person, folder)
        talk.client.message_handler = talk.hear
        with portal.wrap_async_context_manager(talk.client):
            yield talk


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "HOME": str(folder),
        "SKILLKIT_STATE_DIR": str(folder / "state"),
        "SKILLKIT_MCP_TOKEN": TOKEN,
    }


def command_for(folder: Path, *options: str) -> list[str]:
    (folder / "skills").mkdir(exist_ok=True)
    return [*COMMAND, "--skills", str(folder / "skills"), *options]


def over_stdio(folder: Path, *options: str) -> Any:
    program, *arguments = command_for(folder, *options)
    return stdio_client(
        StdioServerParameters(command=program, args=arguments, env=environment(folder), cwd=str(folder))
    )


@asynccontextmanager
async def over_http(url: str) -> AsyncIterator[Any]:
    async with (
        create_mcp_http_client(headers={"Authorization": f"Bearer {TOKEN}"}) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams


@contextmanager
def http_server(folder: Path, *options: str) -> Iterator[str]:
    """The address of a server process that ends with the block."""
    command = command_for(folder, "--http", "127.0.0.1:0", *options)
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=environment(folder), cwd=folder
    ) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            assert "http://" in line, line + process.stderr.read()
            yield line[line.index("http://") :].strip()
        finally:
            process.terminate()
            process.communicate(timeout=30)
