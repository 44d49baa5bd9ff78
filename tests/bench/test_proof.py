"""The programs of `make proof` notice what they look for."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.databases import Database

from bench.proof import figures, fuzz, powercut, storm
from bench.proof.inputs import mutated, real_files
from bench.proof.targets import SHARES, TARGETS, Call
from skillkit import ConfigurationError
from skillkit.core.record import AuditLog
from skillkit.core.store.opening import open_store
from skillkit.core.store.state import StateStore


def test_every_door_has_its_share() -> None:
    assert set(SHARES) == set(TARGETS)
    assert sum(SHARES.values()) == 100


def test_the_same_number_gives_the_same_input() -> None:
    seeds = real_files("SKILL.md")
    assert mutated(random.Random("a 1"), seeds) == mutated(random.Random("a 1"), seeds)
    assert len({mutated(random.Random(f"a {number}"), seeds) for number in range(50)}) > 40


def test_what_is_not_our_own_word_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(chance: random.Random) -> None:
        raise chance.choice((ConfigurationError("Write it otherwise."), ValueError("not ours")))

    @contextmanager
    def door(_: Path) -> Iterator[Call]:
        yield call

    monkeypatch.setitem(TARGETS, "door", door)
    found = fuzz._fuzz("door", 0, 20)
    assert found.inputs == 20
    assert 0 < len(found.faults) < 20
    assert found.refused == 20 - len(found.faults)


def test_a_lost_record_is_told(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    kept = AuditLog(store).append("started", {"writer": "0-0", "turn": 0})
    store.close()
    assert powercut.missing(tmp_path, [f"record {kept.seq} 0-0 0\n"]) == []
    (lost,) = powercut.missing(tmp_path, [f"record {kept.seq + 1} 0-0 1\n"])
    assert lost.startswith(f"record {kept.seq + 1}")
    assert powercut.missing(tmp_path, ["answer 0-0-0\n"]) == ["the answer to 0-0-0 is gone"]


@pytest.mark.slow
def test_a_lost_record_of_a_shared_world_is_told(tmp_path: Path, database: Database) -> None:
    world = database.new_world()
    state = database.address(world)
    store = open_store(tmp_path, state)
    kept = AuditLog(store).append("started", {"writer": "0-0", "turn": 0})
    store.close()
    assert powercut.missing(tmp_path, [f"record {kept.seq} 0-0 0\n"], state) == []
    (lost,) = powercut.missing(tmp_path, [f"record {kept.seq + 1} 0-0 1\n"], state)
    assert lost.startswith(f"record {kept.seq + 1}")
    database.drop_world(world)


def test_a_process_that_is_left_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storm, "SETTLE_SECONDS", 0)
    (tmp_path / "tmp").mkdir()
    StateStore(tmp_path / "state").close()
    words = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()", str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as left:
        assert left.stdout is not None
        left.stdout.readline()
        assert any(text.startswith("processes: ") and str(left.pid) in text for text in storm.what_is_left(tmp_path))
        left.communicate()


def test_each_program_has_one_line_and_a_broken_promise_an_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "PAGE", tmp_path / "proof.md")
    monkeypatch.delenv("PROOF_PAGE", raising=False)
    assert figures.write_line("storm", "1 run", is_kept=False) == 1
    assert figures.write_line("fuzz", "2 inputs", is_kept=True) == 0
    assert figures.write_line("storm", "3 runs", is_kept=True) == 0
    rows = [line for line in (tmp_path / "proof.md").read_text().splitlines() if line.startswith("| ")][2:]
    assert [row.split(" | ")[:3] for row in rows] == [["| fuzz", "kept", "2 inputs"], ["| storm", "kept", "3 runs"]]
