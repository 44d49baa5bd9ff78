"""A run that may reach hosts is started ahead too: without a way out, which comes when its start is on record."""

from __future__ import annotations

import re
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest
from support.network import NAME, HostWorld, host_world
from support.warm_runs import WARM, needs_spares, wait_for_spare

from skillkit import ScriptPolicy, SkillManager
from skillkit.core.run.hosts import way_out
from skillkit.core.run.warm.spares import spares
from skillkit.testing import skill_folder

pytestmark = [needs_spares, pytest.mark.skipif(sys.platform != "linux", reason="these walls are of Linux")]
POLICY = ScriptPolicy(**{**WARM, "allowed_hosts": (NAME,), "grantable": ("host",)})
URL = f"https://{NAME}/hello.txt"
PORT = ":0C38"  # 3128, as the kernel writes it
SHOW = "import urllib.request\nprint(urllib.request.urlopen({url!r}).read().decode())\n"
CLIENTS = {
    "client.py": f"import json, urllib.request, requests\nprint(urllib.request.urlopen({URL!r}).read().decode())\n",
    "client.sh": f"curl -sS --fail {URL}\n",
    "client.rb": f"require 'net/http'\nputs Net::HTTP.get(URI({URL!r}))\n",
}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostWorld]:
    with host_world(tmp_path, monkeypatch) as made:
        yield made


@contextmanager
def manager_of(world: HostWorld, files: dict[str, str], policy: ScriptPolicy = POLICY) -> Iterator[SkillManager]:
    skill_folder(world.folder / "skills", "net", files={f"scripts/{name}": text for name, text in files.items()})
    with SkillManager(world.folder / "skills", "", [], [], policy=policy, state_dir=world.folder / "state") as manager:
        yield manager


def listeners_inside() -> list[str]:
    """What listens in the network of the spare that waits, told by the kernel from outside."""
    [(_, spare)] = spares._kept
    return listening_lines(Path(f"/proc/{spare._inside['child-pid']}/net/tcp").read_text())


def listening_lines(text: str) -> list[str]:
    return re.findall(r"0100007F(:[0-9A-F]{4}) 00000000:0000 0A", text)


@pytest.mark.parametrize("name", CLIENTS)
def test_what_a_script_reaches_is_the_same_warm_and_cold(world: HostWorld, name: str) -> None:
    with manager_of(world, {name: CLIENTS[name]}) as manager:
        cold = manager.execute_skill_script("net", name)
        assert wait_for_spare()
        warm = manager.execute_skill_script("net", name)
    assert (cold.isolation.start, warm.isolation.start) == ("cold", "warm"), warm.stderr
    assert warm.stdout.strip() == cold.stdout.strip() == "hello", cold.stderr
    assert [use._replace(sent=0, received=0) for use in warm.hosts] == [
        use._replace(sent=0, received=0) for use in cold.hosts
    ]
    assert (warm.hosts[0].host, warm.hosts[0].refused) == (f"{NAME}:443", "")
    assert warm.isolation.degraded == cold.isolation.degraded


def test_one_that_waits_has_no_way_out_and_only_the_standard_library(world: HostWorld) -> None:
    text = "import json, packaging\nprint(open('/proc/net/tcp').read())\n"
    with manager_of(world, {"look.py": text}) as manager:
        manager.execute_skill_script("net", "look.py")
        assert wait_for_spare()
        assert listeners_inside() == []
        assert spares._kept[0][1].done == 1  # json; what comes from elsewhere is imported in the run
        warm = manager.execute_skill_script("net", "look.py")
    assert warm.isolation.start == "warm"
    assert PORT in listening_lines(warm.stdout)  # so that it would have been seen


def test_no_other_host_is_reached(world: HostWorld) -> None:
    with manager_of(world, {"other.py": SHOW.format(url=URL.replace(NAME, "evil.example.com"))}) as manager:
        manager.execute_skill_script("net", "other.py")
        assert wait_for_spare()
        warm = manager.execute_skill_script("net", "other.py")
    assert (warm.isolation.start, warm.success) == ("warm", False)
    assert world.outside.asked == []
    assert "skillkit grant net --host evil.example.com" in warm.hint


def test_a_host_that_is_taken_back_is_closed_to_the_next_run(world: HostWorld) -> None:
    with manager_of(world, {"run.py": SHOW.format(url=URL)}, replace(POLICY, allowed_hosts=())) as manager:
        manager.grant("net", hosts=[NAME])
        assert manager.execute_skill_script("net", "run.py").success
        assert wait_for_spare()
        assert manager.execute_skill_script("net", "run.py").isolation.start == "warm"
        assert wait_for_spare()
        process = spares._kept[0][1]._process
        assert process
        manager.revoke("net")
        asked = [*world.outside.asked]
        prepared = manager.prepare_skill_script("net", "run.py")
        assert not Path(f"/proc/{process.pid}").exists()
        assert not manager.complete_skill_script(prepared).success
        assert world.outside.asked == asked


def test_where_no_socket_can_be_opened_in_one_that_waited_other_walls_have_it(
    world: HostWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, failed = way_out._ask, list[int]()

    def fail_once(*given: object) -> object:
        if not failed:
            failed.append(1)
            raise OSError("no way in")
        return ask(*given)  # type: ignore[arg-type]

    with manager_of(world, {"run.py": SHOW.format(url=URL)}) as manager:
        manager.execute_skill_script("net", "run.py")
        assert wait_for_spare()
        monkeypatch.setattr(way_out, "_ask", fail_once)
        result = manager.execute_skill_script("net", "run.py")
    assert failed
    assert (result.isolation.start, result.stdout.strip()) == ("cold", "hello")
    assert not [each for each in result.isolation.degraded if "host" in each]


def test_an_interrupt_while_a_socket_is_opened_gives_no_run_the_socket_of_another(
    world: HostWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The socket that was asked for comes all the same, and whoever asks next must not take it for theirs."""

    def interrupted(*_: object) -> NoReturn:
        monkeypatch.setattr(way_out, "select", select)
        raise KeyboardInterrupt

    with manager_of(world, {"run.py": SHOW.format(url=URL)}) as manager:
        manager.execute_skill_script("net", "run.py")
        assert wait_for_spare()
        monkeypatch.setattr(way_out, "select", SimpleNamespace(select=interrupted))
        with pytest.raises(KeyboardInterrupt):
            manager.execute_skill_script("net", "run.py")
        later = [manager.execute_skill_script("net", "run.py") for _ in range(2)]
    assert [each.stdout.strip() for each in later] == ["hello", "hello"], later[0].stderr
