"""Runs that go on: every process of the world sees their hosts and output, and nothing stays of one that is over."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.commands import COMMAND
from support.running import wait_for

from skillkit import World
from skillkit.core.store.opening import open_store
from skillkit.core.store.running import KEPT_SECONDS, RunningRuns
from skillkit.core.values.hosts import HostUse
from skillkit.core.values.masking import NOTHING_MASKED, Masker

USES = [HostUse("api.example.com:443", "", 2, 10, 20), HostUse("evil.test:443", "is not among them", 1)]
STREAMS = ("stdout", "stderr")
KILLED = """
import os, signal, sys
from pathlib import Path
from test_running import USES, telling
with telling(Path(sys.argv[1]), 7) as tell:
    tell.hosts(USES)
    os.kill(os.getpid(), signal.SIGKILL)
"""

pytestmark = pytest.mark.usefixtures("each_database")


def telling(folder: Path, run: int, masker: Masker = NOTHING_MASKED) -> Any:
    return RunningRuns(open_store(folder)).telling(run, COMMAND, masker)


def rows(folder: Path) -> list[int]:
    with open_store(folder).connection() as connection:
        return [run for (run,) in connection.execute("select run from running order by run").fetchall()]


@pytest.mark.own_file
def test_looking_makes_no_file(tmp_path: Path) -> None:
    assert World(tmp_path / "none").running() == []
    assert not (tmp_path / "none").exists()


def test_what_a_run_tells_is_seen_by_others_until_it_ends(tmp_path: Path) -> None:
    world = World(tmp_path)
    with telling(tmp_path, 7) as tell:
        assert world.running() == []
        tell.hosts(USES[:1])
        tell.hosts(USES)
        (found,) = world.running()
        assert (found.run, found.skill, found.script) == (7, COMMAND.skill_name, COMMAND.script_name)
        assert found.hosts == tuple(USES)
    assert world.running() == []
    assert rows(tmp_path) == []
    tell.hosts(USES)
    assert rows(tmp_path) == [], "whoever tells late writes nothing"


def test_a_run_that_tells_nothing_writes_nothing(tmp_path: Path) -> None:
    mark = World(tmp_path).change_mark()
    with telling(tmp_path, 7):
        pass
    assert World(tmp_path).change_mark() == mark


def test_what_a_killed_process_left_is_shown_to_nobody_and_goes_with_the_next_run(tmp_path: Path) -> None:
    code = [sys.executable, "-c", KILLED, str(tmp_path)]
    paths = f"{Path(__file__).parent}:{Path(__file__).parents[2]}"
    environment = {"PYTHONPATH": paths, "PATH": "/usr/bin:/bin", "SKILLKIT_STATE": os.environ.get("SKILLKIT_STATE", "")}
    assert subprocess.run(code, env=environment, check=False).returncode == -9
    assert rows(tmp_path) == [7]
    assert World(tmp_path).running() == []
    with telling(tmp_path, 8) as tell:
        tell.hosts(USES)
        assert rows(tmp_path) == [8]


def test_a_key_in_the_name_of_a_host_is_masked(tmp_path: Path) -> None:
    with telling(tmp_path, 7, Masker(["hunter22hunter22"])) as tell:
        tell.hosts([HostUse("hunter22hunter22.evil.test:443", "hunter22hunter22.evil.test is closed", 1)])
        assert "hunter22" not in repr(World(tmp_path).running())


def test_a_store_that_is_away_ends_no_run(tmp_path: Path, each_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if each_database == "postgresql":
        monkeypatch.setenv("SKILLKIT_STATE", "postgresql:///db?host=/nonexistent&world=acme")
    (tmp_path / "state.sqlite3").mkdir()
    with RunningRuns(open_store(tmp_path)).telling(7, COMMAND, NOTHING_MASKED) as tell:
        tell.hosts(USES)


def test_what_a_run_wrote_can_be_read_after_it_until_who_started_it_closes(tmp_path: Path) -> None:
    runs, world = RunningRuns(open_store(tmp_path)), World(tmp_path)
    with runs.telling(7, COMMAND, Masker(["hunter22hunter22"])) as tell:
        for stream, data in (("stdout", b"one hunter22"), ("stderr", b"caf\xc3"), ("stdout", b"hunter22\n")):
            tell.output(stream, data)
        assert wait_for(lambda: world.output_of(7).pieces != (), seconds=30)
        assert "hunter22" not in repr(world.output_of(7)), "what may be the beginning of a key waits"
        tell.output("stderr", b"\xa9\n")
    assert world.running() == []
    (ended,) = world.running(with_ended=True)
    assert ended.ended_at > ended.began_at
    texts = {stream: "".join(text for each, text in world.output_of(7).pieces if each == stream) for stream in STREAMS}
    assert texts == {"stdout": "one [masked]\n", "stderr": "caf\u00e9\n"}
    runs.close()
    assert rows(tmp_path) == []


def test_what_ended_long_ago_is_not_shown_and_goes_with_the_next_run(tmp_path: Path) -> None:
    with telling(tmp_path, 7) as tell:
        tell.output("stdout", b"over\n")
    with open_store(tmp_path).transaction() as connection:
        connection.execute("update running set ended_at = ended_at - ?", (KEPT_SECONDS + 1,))
    world = World(tmp_path)
    assert (world.running(with_ended=True), world.output_of(7).pieces) == ([], ())
    with telling(tmp_path, 8) as tell:
        tell.hosts(USES)
        assert rows(tmp_path) == [8]
