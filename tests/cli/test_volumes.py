"""`--volume` of the commands that run scripts: folders that workers have too, by name."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from skillkit.cli.chat import chat_command
from skillkit.cli.elsewhere import runner_here
from skillkit.cli.main import cli
from skillkit.cli.mcp import mcp_command
from skillkit.cli.run import run_command

pytest.importorskip("celery")
COMMANDS = {"run": (run_command, ["demo", "say"]), "mcp": (mcp_command, []), "chat": (chat_command, [])}
BROKER = "memory://"


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_that_runs_scripts_takes_volumes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    command, words = COMMANDS[name]
    named = ["--broker", BROKER, "--volume", f"a={one}", "--volume", f"b={two}"]
    with command.make_context(name, [*words, *named]):
        assert runner_here().volumes == {"a": one, "b": two}
    monkeypatch.setenv("SKILLKIT_VOLUMES", os.pathsep.join((f"a={one}", f"b={two}")))
    with command.make_context(name, [*words, "--broker", BROKER]):
        assert runner_here().volumes == {"a": one, "b": two}
    with command.make_context(name, [*words]):
        assert runner_here() is None, "a variable is for whoever has a broker"
    with (
        command.make_context(name, [*words, "--volume", f"a={one}"]),
        pytest.raises(click.UsageError, match="--broker"),
    ):
        runner_here()
    assert runner_here() is None


@pytest.mark.parametrize(
    "volumes", [["data"], ["=/tmp"], ["a/b=/tmp"], ["data=/not/there"], ["data=/tmp", "data=/"]], ids=" ".join
)
@pytest.mark.parametrize("name", ["run", "worker"])
def test_what_is_no_volume_is_wrong_usage(name: str, volumes: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLKIT_BROKER", BROKER)
    words = ["demo", "say"] if name == "run" else []
    given = [word for volume in volumes for word in ("--volume", volume)]
    done = CliRunner().invoke(cli, [name, *words, *given])
    assert done.exit_code == 2
    assert "volume" in done.output
