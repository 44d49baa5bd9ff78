"""An agent's shell that types what only a person may: refused, and the same words of a person are not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.asking import request_named
from support.mcp_clients import command_for, environment
from support.running import records_of, wait_for
from support.skill_folders import skill_folder
from support.terminals import Terminal

from skillkit import World
from skillkit.core.store.processes import ancestors, is_running, live_starters, own_mark

SKILLKIT = [sys.executable, "-m", "skillkit"]

# An agent's host: starts a server as told, and then, for each line, a command as its shell tool does.
HOST = """
import json, os, subprocess, sys
if sys.argv[2]:
    os.open(sys.argv[2], os.O_RDWR)  # the first terminal that the leader of a session opens is its own
server = subprocess.Popen(json.loads(sys.argv[1]), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, shell=False)
print(server.pid, flush=True)
for line in sys.stdin:
    done = subprocess.run(json.loads(line), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    print(json.dumps([done.returncode, done.stdout + done.stderr]), flush=True)
server.stdin.close()
server.wait()
"""


class Host:
    """A program that has a server and a shell."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def types(self, *command: str) -> tuple[int, str]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        code, said = self.read()
        return code, said


@contextmanager
def host(folder: Path, *launcher: str, terminal: str = "") -> Iterator[Host]:
    command = [*launcher, *command_for(folder)]
    with subprocess.Popen(
        [sys.executable, "-c", HOST, json.dumps(command), terminal],
        start_new_session=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(folder),
        cwd=folder,
    ) as process:
        running = Host(process)
        running.read()
        assert wait_for(lambda: live_starters(folder / "state"))
        yield running
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    skill_folder(tmp_path / "skills", "demo", files={"scripts/hello.sh": "echo hello\n"})
    with World(tmp_path / "state") as world:
        yield world


def deciding(folder: Path, request_id: str) -> dict[str, list[str]]:
    """Every command by which a person decides."""
    skills = ["--skills", str(folder / "skills")]
    return {
        "approvals answer": [*SKILLKIT, "approvals", "answer", request_id, "yes_once"],
        "trust add": [*SKILLKIT, "trust", "add", "demo", "--yes", *skills],
        "grant": [*SKILLKIT, "grant", "demo", "--variable", "TEAM", "--yes", *skills],
        "--yes": [*SKILLKIT, "run", "demo", "hello", "--yes", "--policy", "trusted", *skills],
    }


FOREGROUND = "import os; print(os.tcgetpgrp(os.open('/dev/tty', os.O_RDWR)) == os.getpgrp())"
# A launcher that stays between host and server, and hands on its stdin.
WRAPPED = ("bash", "-c", '"$@"; exit $?', "bash")


@pytest.mark.parametrize("launcher", [(), WRAPPED], ids=["started directly", "through a shell"])
def test_the_shell_of_the_host_that_started_the_server_cannot_approve(
    tmp_path: Path, world: World, launcher: tuple[str, ...]
) -> None:
    world.open(request_named("q"))
    with host(tmp_path, *launcher) as agent:
        for name, command in deciding(tmp_path, "q").items():
            code, said = agent.types("bash", "-c", '"$@"; exit $?', "bash", *command)
            assert code == 126, said
            assert f"'skillkit {name}' is a person's to give" in said
            assert "skillkit web" in said
        assert [each.id for each in world.pending()] == ["q"]
    assert {record.fields["command"] for record in records_of(tmp_path)} == set(deciding(tmp_path, "q"))


def loosening(folder: Path) -> dict[str, list[str]]:
    """Every option that opens what the settings do not, where the question would not come or would say less."""
    skills = ["--skills", str(folder / "skills")]
    run, other = [*SKILLKIT, "run", "demo", "hello", *skills], [*skills, "--policy", "trusted"]
    return {
        "run --policy": [*run, "--policy", "standard"],
        "run --network --policy": [*run, "--policy", "trusted", "--network"],
        "run --network": [*run, "--network"],
        "run --host": [*run, "--host", "example.org"],
        "run --read": [*run, "--read", str(folder / "skills")],
        "run --write": [*run, "--write", str(folder / "skills")],
        "chat --policy": [*SKILLKIT, "chat", "--model", "m", "--allow-scripts", "--once", "Hello.", *other],
        "mcp --policy": [*SKILLKIT, "mcp", *other],
        "worker --policy": [*SKILLKIT, "worker", "--policy", "trusted", "--broker", "memory://"],
    }


@pytest.mark.usefixtures("world")
def test_the_shell_of_the_host_cannot_loosen_what_the_settings_say(tmp_path: Path) -> None:
    with host(tmp_path) as agent:
        for name, command in loosening(tmp_path).items():
            code, said = agent.types("bash", "-c", '"$@"; exit $?', "bash", *command)
            assert code == 126, said
            assert f"'skillkit {name}' is a person's to give" in said
        code, said = agent.types(*SKILLKIT, "run", "demo", "hello", "--skills", str(tmp_path / "skills"))
        assert "approv" in said, "control: what the settings say is asked about"
        tighter = [*SKILLKIT, "run", "demo", "hello", "--skills", str(tmp_path / "skills"), "--policy", "locked"]
        assert "a person's to give" not in agent.types(*tighter)[1]


@pytest.mark.usefixtures("world")
def test_the_shell_of_the_host_gains_nothing_by_naming_another_world(tmp_path: Path) -> None:
    run = [*SKILLKIT, "run", "demo", "hello", "--skills", str(tmp_path / "skills"), "--yes"]
    run += ["--state-dir", str(tmp_path / "other")]
    with host(tmp_path) as agent:
        code, said = agent.types(*run)
        assert (code, "is a person's to give" in said) == (126, True), said
    assert [record.fields["command"] for record in records_of(tmp_path)] == ["--yes"]
    done = subprocess.run(run, env=environment(tmp_path), cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, "control: a person may"


@pytest.mark.usefixtures("world")
def test_control_a_person_loosens_what_runs_with_or_without_a_server(tmp_path: Path) -> None:
    command = loosening(tmp_path)["run --policy"]
    in_terminal = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
    with host(tmp_path) as agent:
        code, said = agent.types(sys.executable, "-c", in_terminal, *command)
        assert (code, "hello" in said) == (0, True), said
        done = subprocess.run(command, env=environment(tmp_path), cwd=tmp_path, capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (0, b"hello\n"), done.stderr


@pytest.mark.usefixtures("world")
def test_a_host_starts_a_second_server_as_it_was_told_to(tmp_path: Path) -> None:
    """Its settings name each server's options; only what its shell starts is the agent's."""
    with host(tmp_path) as agent:
        code, said = agent.types(*loosening(tmp_path)["mcp --policy"])
        assert code == 0, said


def test_control_without_a_server_of_its_own_the_same_commands_work(tmp_path: Path, world: World) -> None:
    world.open(request_named("q"))
    with host(tmp_path):
        for command in deciding(tmp_path, "q").values():
            done = subprocess.run(command, env=environment(tmp_path), cwd=tmp_path, capture_output=True, check=False)
            assert done.returncode == 0, done.stderr
    assert not world.pending()


def test_control_after_the_server_ended_its_host_is_nobody_special(tmp_path: Path, world: World) -> None:
    world.open(request_named("q"))
    with host(tmp_path) as agent:
        (server,) = (tmp_path / "state/servers").iterdir()
        os.kill(int(server.name.partition("-")[0]), 9)
        assert wait_for(lambda: not live_starters(tmp_path / "state"))
        code, said = agent.types(*deciding(tmp_path, "q")["approvals answer"])
        assert code == 0, said


def test_a_person_at_a_terminal_inside_the_host_decides(tmp_path: Path, world: World) -> None:
    """An editor has the server and a terminal, and the person types in the terminal."""
    world.open(request_named("q"))
    in_terminal = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
    with host(tmp_path) as agent:
        code, said = agent.types(sys.executable, "-c", in_terminal, *deciding(tmp_path, "q")["approvals answer"])
        assert code == 0, said
    assert not world.pending()


def test_a_shell_that_only_shares_the_host_s_terminal_is_no_person(tmp_path: Path, world: World) -> None:
    """A host on a terminal starts its shell with pipes, in the same foreground."""
    world.open(request_named("q"))
    with Terminal() as terminal, host(tmp_path, terminal=terminal.path) as agent:
        assert agent.types(sys.executable, "-c", FOREGROUND)[1] == "True\n", "it is in the foreground"
        code, said = agent.types(*deciding(tmp_path, "q")["approvals answer"])
        assert code == 126, said
    assert [each.id for each in world.pending()] == ["q"]


def test_what_starts_all_services_of_a_user_is_no_host() -> None:
    """Else a timer of theirs could not say `--yes` while a server is one of their services."""
    code = (
        "import subprocess, sys\n"
        "open('/proc/self/comm', 'w').write(sys.argv[1])\n"
        "from skillkit.core.store import processes\n"
        "sys.exit(subprocess.call([sys.executable, '-c', 'from skillkit.core.store.processes import starter_mark; "
        "print(bool(starter_mark()))'], stdin=subprocess.DEVNULL))"
    )
    said = {}
    for name in ("systemd", "editor"):
        done = subprocess.run(
            [sys.executable, "-c", code, name], capture_output=True, text=True, env=os.environ, check=True
        )
        said[name] = done.stdout.strip()
    assert said == {"systemd": "False", "editor": "True"}


def test_a_note_of_a_dead_server_counts_for_nothing(tmp_path: Path) -> None:
    notes = tmp_path / "servers"
    notes.mkdir(mode=0o700)
    (notes / f"999999-1-{own_mark().rpartition('-')[2]}").write_text(own_mark())
    (notes / "nonsense").write_text(own_mark())
    assert not live_starters(tmp_path)
    (notes / own_mark()).write_text("123-4")
    assert live_starters(tmp_path) == {"123-4"}, "control: a living one does"


def test_a_process_is_told_from_another_with_its_number() -> None:
    pid, started, numbers = own_mark().split("-")
    assert is_running(own_mark())
    assert not is_running(f"{pid}-{int(started) + 1}-{numbers}")
    assert is_running(f"{pid}-{started}-{numbers}1"), "who counts in another way cannot be looked up here"
    assert not is_running("")
    assert f"{os.getppid()}-" in next(iter(ancestors()))
