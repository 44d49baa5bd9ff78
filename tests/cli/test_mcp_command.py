"""`skillkit mcp`: its options, and what it says where it cannot serve."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner
from support.mcp_clients import environment

from skillkit.cli.mcp import HOST, PORT, mcp_command
from skillkit.core.exceptions import ConfigurationError
from skillkit.integrations.mcp.http import PATH, listen_on


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1", "127.0.0.1:99999", "127.0.0.1:x"])
def test_an_address_that_is_none_is_wrong_usage(address: str) -> None:
    ended = CliRunner().invoke(mcp_command, ["--http", address])
    assert ended.exit_code == 2
    assert "is no HOST:PORT" in ended.output


def test_a_token_that_can_be_guessed_is_refused(tmp_path: Path) -> None:
    ended = CliRunner().invoke(
        mcp_command, ["--http", "127.0.0.1:0", "--skills", str(tmp_path)], env={"SKILLKIT_MCP_TOKEN": "short"}
    )
    assert ended.exit_code == 2
    assert "at least 16" in ended.output


def test_a_token_is_made_up_where_none_is_given(tmp_path: Path) -> None:
    code = "from skillkit.cli.mcp import mcp_command; mcp_command()"
    given = {key: value for key, value in environment(tmp_path).items() if key != "SKILLKIT_MCP_TOKEN"}
    with subprocess.Popen(
        [sys.executable, "-c", code, "--http", "127.0.0.1:0", "--skills", str(tmp_path)],
        stderr=subprocess.PIPE,
        text=True,
        env=given,
    ) as process:
        try:
            assert process.stderr is not None
            token = process.stderr.readline().partition("bearer token: ")[2].strip()
            url = process.stderr.readline().partition("mcp: ")[2].strip()
            assert len(token) > 40
            assert httpx2.get(url).status_code == 401
            assert httpx2.get(url, headers={"Authorization": f"Bearer {token}"}).status_code != 401
        finally:
            process.terminate()
            process.communicate(timeout=30)


def test_every_configuration_in_the_how_to_can_be_used() -> None:
    page = Path(__file__).parents[2] / "docs/how-to/mcp.md"
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", page.read_text(), re.DOTALL)]
    servers = [server for block in blocks for server in (block.get("mcpServers") or block["servers"]).values()]
    started = [server["args"] for server in servers if "command" in server]
    assert len(started) == 3
    for name, *arguments in started:
        assert name == "mcp"
        mcp_command.make_context("mcp", arguments)
    addressed = [server for server in servers if "command" not in server]
    assert len(addressed) == 3
    for server in addressed:
        assert server["url"] == f"http://{HOST}:{PORT}{PATH}"
        assert server["headers"]["Authorization"].startswith("Bearer ${")


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"Nothing can listen on 127.0.0.1:{port}"):
            listen_on("127.0.0.1", port)


def test_without_the_extra_there_is_one_clear_sentence(tmp_path: Path) -> None:
    code = """
import sys
sys.modules["mcp"] = None
from skillkit.cli.mcp import HOST, PORT, mcp_command
from skillkit.core.exceptions import SkillKitError
try:
    mcp_command(["--skills", sys.argv[1]], standalone_mode=False)
except SkillKitError as error:
    print(error)
"""
    ended = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=environment(tmp_path),
    )
    assert ended.stdout == (
        "The MCP server needs the package 'mcp', version 2. Install it: pip install 'skillkit-runtime[mcp]'.\n"
    )


def test_neither_the_package_nor_the_command_s_help_needs_the_protocol(tmp_path: Path) -> None:
    code = "import sys, skillkit, skillkit.cli.mcp, skillkit.integrations.mcp; print('mcp_types' in sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60, env=environment(tmp_path)
    )
    assert ended.stdout == "False\n"
