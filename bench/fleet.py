"""Runs on two workers of this machine, against the same runs without them: PostgreSQL and Redis between."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from bench.runner import Row, measure
from skillkit import STANDARD, SkillManager

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from support.brokers import redis
from support.databases import Database, _program, running_server

COLD = replace(STANDARD, warm="off")  # what is kept ready would be measured here, not the way
COLD_SETTINGS = 'profile = "standard"\n[policy]\nwarm = "off"\n'
AT_ONCE = 8
RUNS = 40
WAIT_SECONDS = 60.0
WHY_ADDED = "seven steps of the run in PostgreSQL, each waits for its commit, and one message through Redis"
WHY_RATE = "both servers and the workers share the two cores with the scripts"


def rows(work: Path) -> list[Row]:
    """Nothing where the servers are not installed."""
    if not _program("postgres") or not shutil.which("redis-server"):
        return []
    folder = work / "skills/runs/scripts"
    folder.mkdir(parents=True)
    (folder.parent / "SKILL.md").write_text("---\nname: runs\ndescription: Scripts to measure.\n---\n")
    (folder / "noop.py").write_text("pass\n")
    with fleet(work, COLD_SETTINGS) as (there, *_), manager(work, "local") as here:
        return [added(here, there), rate(here, there)]


def added(here: SkillManager, there: SkillManager) -> Row:
    timings = measure({"here": run_of(here), "there": run_of(there)}, 20)
    figure = timings.p50("there") - timings.p50("here")
    detail = timings.detail("there", "here")
    return Row("added by the fleet, python3 no-op, p50", figure, 30, 15, "ms", detail, why=WHY_ADDED)


def rate(here: SkillManager, there: SkillManager) -> Row:
    with ThreadPoolExecutor(AT_ONCE) as pool:

        def many(run: Callable[[], object]) -> Callable[[], object]:
            return lambda: [*pool.map(lambda _: run(), range(RUNS))]

        timings = measure({"here": many(run_of(here)), "there": many(run_of(there))}, 3)
    per_second = {name: RUNS / timings.p50(name) * 1000 for name in ("here", "there")}
    what = f"python3 no-op, {AT_ONCE} at once, two workers / local"
    detail = f"{per_second['there']:.1f} a second against {per_second['here']:.1f}"
    return Row(what, 1 / timings.ratio("there", "here"), 0.8, 0.95, "x", detail, at_least=True, why=WHY_RATE)


def run_of(manager: SkillManager) -> Callable[[], object]:
    def run() -> object:
        result = manager.execute_skill_script("runs", "noop.py")
        assert result.success, result.stderr
        return result

    return run


def manager(work: Path, name: str, **options: object) -> SkillManager:
    given = {"policy": COLD, "state_dir": work / name, **options}
    return SkillManager("", "", [], [work / "skills"], **given)  # type: ignore[arg-type]


@contextmanager
def fleet(work: Path, settings: str) -> Iterator[tuple[SkillManager, list[int], str]]:
    """A manager whose runs happen on two workers with these settings; their numbers, and where the world is."""
    from skillkit.fleet import CeleryRunner

    with ExitStack() as stack:
        database = stack.enter_context(running_server())
        broker = stack.enter_context(redis())
        world = database.new_world()
        places = (work / f"worker-{number}" for number in (1, 2))
        workers = [stack.enter_context(worker(each, settings, database, world, broker.url)) for each in places]
        state = database.address(world, login=database.new_login(world, "front"))
        front = stack.enter_context(manager(work, "front", state=state, runner=CeleryRunner(broker.url)))
        yield front, workers, state


@contextmanager
def worker(folder: Path, settings: str, database: Database, world: str, broker: str) -> Iterator[int]:
    folder.mkdir()
    login = database.new_login(world, "worker")
    (folder / "config.toml").write_text(settings)
    words = [sys.executable, "-m", "skillkit", "worker", "--concurrency", str(AT_ONCE // 2)]
    words += ["--state", database.address(world, login=login), "--state-dir", str(folder), "--broker", broker]
    environment = {**os.environ, "SKILLKIT_CONFIG": str(folder / "config.toml")}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
    try:
        until = time.monotonic() + WAIT_SECONDS
        while b"ready." not in (folder / "log").read_bytes():
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < until, (folder / "log").read_text()
            time.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        process.wait(WAIT_SECONDS)
