"""Every command and file on a host's page is done as it stands there; at its end the host ran a script unattended."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support.doc_pages import blocks_of, commands_of
from support.hosts.here import HOSTS_HERE
from support.hosts.host import VERSIONS
from support.hosts.known import HOSTS
from support.hosts.model import ScriptedModel
from support.hosts.pages import HOST_PAGES, RUN_HERE, blocks_of_page, follow, run
from support.hosts.world import SCRIPT_WORD, HostWorld, wait_until

pytestmark = pytest.mark.timeout(400)
UNATTENDED = "## Without a person at the terminal"
MCP_PAGE = HOST_PAGES.parent / "mcp.md"


def test_every_host_has_a_page() -> None:
    assert {page.stem for page in HOST_PAGES.glob("*.md")} - {"index"} == set(VERSIONS)


def test_versions_are_pinned_by_name_and_version_only() -> None:
    assert all(set(each) == {"package", "version", "program"} for each in VERSIONS.values())
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", each["version"]) for each in VERSIONS.values())


def test_the_overview_tells_the_versions_that_are_driven() -> None:
    rows = re.findall(r"\]\(([\w-]+)\.md\) \| ([\d.]+)", (HOST_PAGES / "index.md").read_text(encoding="utf-8"))
    assert dict(rows) == {name: each["version"] for name, each in VERSIONS.items()}


@pytest.mark.parametrize("name", sorted(VERSIONS))
def test_every_block_of_a_host_s_page_is_done_here(name: str) -> None:
    """A command is marked as run here, a file has its place as title: none is left to the reader alone."""
    for block in blocks_of_page(name):
        assert block.title or (block.language == "console" and block.not_run == RUN_HERE), f"{name}.md:{block.line}"


@pytest.mark.parametrize("name", HOSTS_HERE)
def test_a_page_is_followed_to_a_run_without_a_person(name: str, host_world: tuple[HostWorld, ScriptedModel]) -> None:
    world, model = host_world
    host = HOSTS[name]
    environment = world.environment(model, host.environment(world, model))
    host.settle(world, model)
    for block in blocks_of_page(name):
        follow(block, world, environment)
    world.end(world.host_processes())
    wait_until(lambda: not world.own_processes(), "nothing of ours is left", 30)
    if UNATTENDED not in (HOST_PAGES / f"{name}.md").read_text(encoding="utf-8"):
        return
    assert any(SCRIPT_WORD in result and "hello" in result for result in model.results("greet")), model.results("greet")
    started = next(each for each in world.records("greet.py") if each["kind"] == "started")
    assert started["reasons"] == ["Trusted."]


@pytest.mark.parametrize("name", ["inspector"])
def test_the_inspector_lists_verifies_loads_and_runs(name: str, host_world: tuple[HostWorld, ScriptedModel]) -> None:
    world, model = host_world
    told = [said for block in blocks_of_page(name) for said in follow(block, world, world.environment(model))]
    everything = "\n".join(told)
    for word in (
        '"name": "load_skill"',
        '"name": "skills_run_script"',
        "marigold",
        f"hello {SCRIPT_WORD}",
        "no conformance errors",
    ):
        assert word in everything
    wait_until(lambda: not world.own_processes(), "nothing of ours is left", 20)


@pytest.mark.parametrize("name", ["claude-code"])
def test_the_command_for_http_connects(name: str, host_world: tuple[HostWorld, ScriptedModel]) -> None:
    """As the page on MCP gives it: the header comes last."""
    world, model = host_world
    host = HOSTS[name]
    environment = world.environment(model, host.environment(world, model)) | {
        "SKILLKIT_MCP_TOKEN": "0123456789abcdef" * 4
    }
    host.settle(world, model)
    section = MCP_PAGE.read_text(encoding="utf-8").partition("## Over HTTP\n")[2].partition("\n## ")[0]
    block = next(block for block in blocks_of(section) if block.language == "console")
    assert block.not_run == RUN_HERE
    (command,) = [each.text for each in commands_of(block.text) if each.text.startswith("claude mcp add")]
    with serving_http(world, environment) as address:
        run(command.replace("http://127.0.0.1:8763/mcp", address), world, environment)
        assert re.search(r"skillkit: .*Connected", run("claude mcp list", world, environment))


@contextmanager
def serving_http(world: HostWorld, environment: dict[str, str]) -> Iterator[str]:
    server = subprocess.Popen(
        [sys.executable, "-m", "skillkit", "mcp", "--http", "127.0.0.1:0"],
        cwd=world.project,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stderr is not None
        address = next(found[0] for line in server.stderr if (found := re.search(r"http://[\d.:]+/mcp", line)))
        yield address
    finally:
        os.kill(server.pid, signal.SIGTERM)
        server.communicate(timeout=20)
