"""The comparison with other runtimes: its driver, with the two workers that need no installation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.running import wait_for

from bench.peers import environments
from bench.peers.__main__ import report
from bench.peers.driver import OURS, PLAIN, Candidate, Worker
from bench.peers.environments import MODULES, installed_peers
from bench.peers.measures import MEASURES, first_runs, overhead
from bench.peers.stage import FIRSTS, Stage, staged
from skillkit.core.run.tiers import machine_tiers

GUARDED = OURS[0]
CELLS = {measure.what: measure.cell for measure in MEASURES}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("stage")) as made:
        yield made


@pytest.fixture(scope="module")
def plain(stage: Stage) -> Iterator[Worker]:
    with Worker(PLAIN, stage) as worker:
        yield worker


@pytest.fixture(scope="module")
def guarded(stage: Stage) -> Iterator[Worker]:
    if not any(attempt.sandbox for attempt in machine_tiers()):
        pytest.skip("no walls here")
    with Worker(GUARDED, stage) as worker:
        yield worker


@pytest.mark.parametrize(
    ("what", "of_plain", "of_ours"),
    [
        ("left after a timeout", "3 (child, foreground, own session)", "0"),
        ("left after the script's end", "2 (child, own session)", "0"),
        ("sees a secret", "yes", "no"),
        ("reads the home folder", "yes", "no"),
        ("writes the home folder", "yes", "no"),
        ("opens a connection", "yes", "no"),
        ("two hosts, one of them granted", "both", "only the granted one, names the remedy"),
        ("a script that needs a package", "import error", "names the remedy; prepared, it runs offline"),
        ("asks a person first", "no", "yes"),
    ],
)
def test_the_plain_way_shows_what_ours_prevents(
    stage: Stage, plain: Worker, guarded: Worker, what: str, of_plain: str, of_ours: str
) -> None:
    assert CELLS[what](plain, stage) == of_plain
    assert CELLS[what](guarded, stage) == of_ours


def test_the_measured_memory_is_that_of_the_call(stage: Stage, plain: Worker) -> None:
    """The whole output is kept by the plain way."""
    assert int(CELLS["memory for 50 MB of output"](plain, stage).removesuffix(" MB")) >= 45


@pytest.mark.slow
def test_a_script_that_installs_something_succeeds_only_without_walls(
    stage: Stage, plain: Worker, guarded: Worker
) -> None:
    assert CELLS["installs a package by itself"](plain, stage) == "yes"
    assert CELLS["installs a package by itself"](guarded, stage) == "no"


def test_rounds_ask_every_worker_equally_often(plain: Worker, guarded: Worker) -> None:
    timings = overhead({"plain": plain, "ours": guarded}, "noop.sh", rounds=2)
    assert [{name: len(taken) for name, taken in repeat.items()} for repeat in timings.repeats] == [
        {"plain": 2, "ours": 2}
    ] * 3
    assert timings.p50("plain") > 0


def test_a_first_run_is_the_only_one_of_its_script(stage: Stage, plain: Worker) -> None:
    (taken,) = first_runs({"plain": plain}).repeats
    assert len(taken["plain"]) == FIRSTS == len(list(stage.skills.glob("first-*")))


def test_an_answer_that_is_not_the_scripts_is_no_quick_run(stage: Stage) -> None:
    """Such a worker is left out, and so is its figure."""
    with Worker(PLAIN, stage) as worker:
        assert overhead({"plain": worker}, "secret.py", rounds=1).repeats == [{}] * 3


def test_no_process_outlives_the_stage(tmp_path: Path) -> None:
    with staged(tmp_path) as made, Worker(PLAIN, made) as worker:
        worker.run("daemon.py")
        assert wait_for(lambda: len(made.left_behind()) == 2), "both have begun"
    assert not made.left_behind()


def test_a_runtime_that_cannot_be_installed_is_named_with_the_reason(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer = tmp_path / "uv"
    installer.write_text("#!/bin/sh\nexit 7\n")
    installer.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    peers = installed_peers(tmp_path / "environments")
    assert {peer.missing for peer in peers} == {"the installer failed: exit code 7"}
    text = report(peers, stage, rounds=1)
    assert "| bash, again | not installed | not installed |" in text
    assert "- *agno* is not installed: the installer failed: exit code 7." in text


def test_a_worker_that_dies_is_an_error_that_says_why(stage: Stage) -> None:
    with Worker(Candidate("nobody", "nobody"), stage) as worker, pytest.raises(RuntimeError, match="No module named"):
        worker.answer()


def test_every_runtime_has_its_worker_and_a_range_of_versions() -> None:
    folder = Path(environments.__file__).parent
    assert len(MODULES) == 8
    for package, module in MODULES.items():
        first = (folder / f"requirements-{package}.txt").read_text().splitlines()[0]
        assert re.fullmatch(rf"{package}>=[\d.]+,<[\d.]+", first)
        assert (folder / "workers" / f"{module}.py").exists()
    assert "://" not in "".join(path.read_text() for path in folder.glob("requirements-*.txt")), (
        "no address of an index"
    )
