"""`skillkit mcp`: its options, and what it says where it cannot serve."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from mcp_clients import environment

from skillkit.cli.mcp import mcp_command
from skillkit.core.exceptions import ConfigurationError
from skillkit.integrations.mcp.http import bound


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


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"Nothing can listen on 127.0.0.1:{port}"):
            bound("127.0.0.1", port)


def test_without_the_extra_there_is_one_clear_sentence(tmp_path: Path) -> None:
    code = """
import sys
sys.modules["mcp"] = None
from skillkit.cli.mcp import mcp_command
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
