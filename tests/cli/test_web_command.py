"""`skillkit web` and `skillkit approvals --window` as a person starts them."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pexpect
import pytest
from click.testing import CliRunner
from support.asking import only_pending, request_named
from support.desktops import Desktop
from support.running import anybody_runs, wait_for
from support.skill_folders import skill_folder

from skillkit import World
from skillkit.cli.main import cli

PROGRAM = [sys.executable, "-c", "from skillkit.cli.main import main; main()"]
LINK = re.compile(r"http://127\.0\.0\.1:\d+/login\?token=[\w-]+")


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **more}


@contextmanager
def started(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """The command, once it has said where the page is."""
    with subprocess.Popen(
        [*PROGRAM, "web", "--json", "--state-dir", str(folder), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            yield process, json.loads(line)
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=30)


def ended(process: subprocess.Popen[str], number: int) -> int:
    process.send_signal(number)
    return process.wait(30)


def test_on_a_terminal_it_prints_a_link_that_logs_in_once_and_ends_by_ctrl_c(tmp_path: Path) -> None:
    mark = f"{tmp_path}/state"
    child = pexpect.spawn(
        PROGRAM[0],
        [*PROGRAM[1:], "web", "--no-open", "--state-dir", mark],
        env=environment(NO_COLOR="1"),
        encoding="utf-8",
        timeout=30,
        dimensions=(40, 200),
    )
    with child:
        child.expect(LINK)
        link = str(child.after)
        child.expect("Ctrl-C ends it.")
        with httpx.Client(follow_redirects=True) as person, httpx.Client(follow_redirects=True) as late:
            page = person.get(link)
            assert page.status_code == 200
            assert "token" not in str(page.url)
            assert person.get(page.url).status_code == 200
            assert late.get(link).status_code == 401
        child.sendintr()
        child.expect(pexpect.EOF)
    assert child.wait() == 0
    assert not anybody_runs(mark)
    assert not (tmp_path / "state" / "page.json").exists()
    port = int(link.split(":")[2].split("/", maxsplit=1)[0])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_the_json_is_one_line_and_a_signal_ends_the_page(tmp_path: Path) -> None:
    with started(tmp_path, "--no-open") as (process, told):
        assert told["schema_version"] == 1
        assert told["served_here"] is True
        assert told["pid"] == process.pid
        assert told["link"].startswith(f"{told['address']}/login?token=")
        assert ended(process, signal.SIGTERM) == 128 + signal.SIGTERM
    assert not (tmp_path / "page.json").exists()


def test_the_same_command_gives_another_link_to_the_page_that_is_there(tmp_path: Path) -> None:
    with started(tmp_path, "--no-open") as (_, first):
        second = subprocess.run(
            [*PROGRAM, "web", "--no-open", "--json", "--state-dir", str(tmp_path)],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            env=environment(),
        )
        told = json.loads(second.stdout)
        assert told["served_here"] is False
        assert told["address"] == first["address"]
        assert told["link"] != first["link"]
        for link in (first["link"], told["link"]):
            assert httpx.get(link).status_code == 303


def test_a_second_command_with_the_same_port_gives_a_link_and_ends(tmp_path: Path) -> None:
    with started(tmp_path) as (_, first):
        port = first["address"].rpartition(":")[2]
        with started(tmp_path, "--port", port) as (second, told):
            assert second.wait(30) == 0
        assert (told["address"], told["served_here"]) == (first["address"], False)
        assert told["link"] != first["link"]
        assert httpx.get(told["link"]).status_code == 303


def test_a_page_that_was_killed_is_no_hindrance(tmp_path: Path) -> None:
    with started(tmp_path, "--no-open") as (process, first):
        assert ended(process, signal.SIGKILL) == -signal.SIGKILL
    assert (tmp_path / "page.json").exists()
    with started(tmp_path, "--no-open") as (_, second):
        assert second["served_here"] is True
        assert second["address"] == first["address"], "and who was told where it is still finds it"


def test_a_port_is_taken_as_named_and_one_in_use_is_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = CliRunner().invoke(cli, ["web", "--no-open", "--port", str(port), "--state-dir", str(tmp_path)])
    assert refused.exit_code != 0
    assert str(port) in str(refused.exception)
    with started(tmp_path, "--no-open", "--port", str(port)) as (_, told):
        assert told["address"] == f"http://127.0.0.1:{port}"


def test_the_browser_gets_a_link_and_the_desktop_hears_of_new_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desktop = Desktop(tmp_path, monkeypatch)
    for name in ("xdg-open", "notify-send"):
        desktop.install(name)
    with started(tmp_path / "state") as (process, told), World(tmp_path / "state") as world:
        assert desktop.wait_for("xdg-open") == [told["link"]]
        world.open(request_named("asked-later"))
        assert "asked-later" not in " ".join(desktop.wait_for("notify-send"))
        assert ended(process, signal.SIGINT) == 0


def test_without_the_extra_there_is_one_clear_sentence(tmp_path: Path) -> None:
    code = "import sys; sys.modules['starlette'] = None; from skillkit.cli.main import main; main()"
    for words in (["web"], ["approvals", "--window"]):
        refused = subprocess.run(
            [sys.executable, "-c", code, *words, "--state-dir", str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env=environment(),
        )
        assert refused.returncode == 125
        assert refused.stderr.endswith("pip install 'skillkit-runtime[web]'.\n")
        assert refused.stderr.count("\n") == 1


WINDOW = """
profile = next(word for word in sys.argv if word.startswith("--user-data-dir=")).partition("=")[2]
open(os.path.join(profile, "kept"), "w").close()
"""


def test_the_window_is_a_browser_without_bars_and_leaves_no_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desktop = Desktop(tmp_path, monkeypatch)
    desktop.install("chromium", WINDOW)
    shown = CliRunner().invoke(cli, ["approvals", "--window", "--state-dir", str(tmp_path / "state")])
    assert shown.exit_code == 0, shown.output
    (words,) = desktop.started("chromium")
    assert LINK.fullmatch(words[0].removeprefix("--app="))
    profile = next(word for word in words if word.startswith("--user-data-dir=")).partition("=")[2]
    assert not Path(profile).exists()


def test_without_such_a_browser_the_usual_one_is_opened_until_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desktop = Desktop(tmp_path, monkeypatch)
    desktop.install("chromium", "sys.exit(1)")
    desktop.install("xdg-open")
    with subprocess.Popen(
        [*PROGRAM, "approvals", "--window", "--state-dir", str(tmp_path / "state")],
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        (link,) = desktop.wait_for("xdg-open")
        assert httpx.get(link).status_code == 303
        assert wait_for(lambda: process.poll() is None, 0.1)
        assert ended(process, signal.SIGINT) == 0


def test_a_window_of_the_toolkit_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desktop = Desktop(tmp_path, monkeypatch)
    desktop.install("chromium")
    library = tmp_path / "library" / "webview"
    library.mkdir(parents=True)
    (library / "errors.py").write_text("class WebViewException(Exception): pass\n")
    (library / "__init__.py").write_text(
        "def create_window(title, url, **settings): print(title, url)\ndef start(private_mode): print(private_mode)\n"
    )
    shown = subprocess.run(
        [*PROGRAM, "approvals", "--window", "--state-dir", str(tmp_path / "state")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**environment(), "PYTHONPATH": os.pathsep.join([str(library.parent), *sys.path])},
    )
    window, is_private = shown.stdout.splitlines()
    assert LINK.search(window)
    assert is_private == "True"
    assert desktop.started("chromium") == []


def test_approvals_alone_shows_its_help(tmp_path: Path) -> None:
    shown = CliRunner().invoke(cli, ["approvals"])
    assert shown.exit_code == 2
    assert "answer" in shown.output
    for words in (["--window", "list"], ["--state-dir", str(tmp_path), "list"]):
        refused = CliRunner().invoke(cli, ["approvals", *words])
        assert refused.exit_code == 2
        assert "stands" in refused.output


def test_whoever_waits_on_the_command_line_names_the_page_that_is_there(tmp_path: Path) -> None:
    skill_folder(tmp_path / "skills", "demo", files={"scripts/hello.sh": "echo hello\n"})
    state = tmp_path / "state"
    words = ["run", "demo", "hello", "--wait", "--skills", str(tmp_path / "skills"), "--state-dir", str(state)]
    with (
        started(state, "--no-open") as (_, told),
        World(state) as world,
        subprocess.Popen(
            [*PROGRAM, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            start_new_session=True,  # without a terminal that could be asked
        ) as running,
    ):
        world.answer(only_pending(world).id, "yes_once", "test")
        output, said = running.communicate(timeout=60)
    assert output == "hello\n"
    assert f", or {told['address']}\n" in said
