"""Real agent hosts, as `make hosts` installs them; one that is not here is skipped, or fails where CI insists on it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.doc_pages import ROOT
from support.hosts.host import INSTALLED, Host, installed
from support.hosts.known import HOSTS
from support.hosts.model import ScriptedModel, scripted_model
from support.hosts.session import Sitting, sit_down
from support.hosts.transcripts import Transcript
from support.hosts.world import PLANS, HostWorld

TRANSCRIPTS = Path(os.environ.get("HOSTS_TRANSCRIPTS") or ROOT / "hosts-transcripts")
REQUIRED = os.environ.get("HOSTS_REQUIRED", "").split()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/hosts/" in item.nodeid:
            item.add_marker(pytest.mark.hosts)


def require(name: str) -> Path:
    """The folder of its programs."""
    programs = installed(name)
    if programs is None:
        noted = INSTALLED / name / "reason"
        reason = (noted.read_text(encoding="utf-8") if noted.is_file() else "") or "not installed: make hosts"
        if name in REQUIRED:
            pytest.fail(f"{name}: {reason}")
        pytest.skip(f"{name}: {reason}")
    return programs


@contextmanager
def made_world(name: str, title: str) -> Iterator[tuple[HostWorld, ScriptedModel]]:
    """Under a name that no other run has: what is left of it is found by that."""
    programs = require(name)
    folder = Path(tempfile.mkdtemp(prefix=f"host-{name}-")).resolve()
    transcript = Transcript(TRANSCRIPTS / f"{name}-{title}.txt", f"{name}: {title}")
    world = HostWorld(folder, transcript, (programs,))
    try:
        with scripted_model(PLANS(world.token), transcript) as model:
            yield world, model
    finally:
        world.end(world.processes())
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="class")
def sitting(request: pytest.FixtureRequest) -> Sitting:
    """With the host that the class names; what it saw is judged by all its tests."""
    host: Host = HOSTS[request.cls.name]
    with made_world(host.name, "sitting") as (world, model):
        return sit_down(host, world, model)


@pytest.fixture
def host_world(request: pytest.FixtureRequest) -> Iterator[tuple[HostWorld, ScriptedModel]]:
    """For the host that the test names as its parameter `name`."""
    name = request.getfixturevalue("name")
    with made_world(name, request.node.originalname.removeprefix("test_")) as made:
        yield made
