"""aexecute_skill_script: the loop goes on, cancelling kills, context follows."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import time
from pathlib import Path
from typing import Any

import pytest
from support.running import STORM, beats_go_on, kinds, only_record, runnable, wait_for

from skillkit import ConfigurationError, ScriptNotFoundError, SkillNotFoundError
from skillkit.core.run.aio import run_in_thread
from skillkit.core.values.runs import RunControl


def test_a_script_is_awaited(tmp_path: Path) -> None:
    with runnable(tmp_path, 'cat; echo "$1"\n') as manager:
        result = asyncio.run(manager.aexecute_skill_script("demo", "run", {"a": 1}, 5, argv=["word"]))
    assert (result.stdout, result.exit_code) == ('{"a": 1}word\n', 0)
    assert kinds(tmp_path) == ["started", "finished"]


def test_two_scripts_run_at_the_same_time_and_the_loop_ticks_on(tmp_path: Path) -> None:
    """Each waits for the mark of the other, so one after the other they would never end."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    async def both() -> list[bool]:
        ticker = asyncio.create_task(tick())
        marks = (str(tmp_path / "one"), str(tmp_path / "other"))
        calls = (manager.aexecute_skill_script("demo", "run", argv=argv) for argv in (marks, marks[::-1]))
        results = await asyncio.gather(*calls)
        ticker.cancel()
        return [result.success for result in results]

    with runnable(tmp_path, 'touch "$1"; until [ -e "$2" ]; do sleep 0.05; done; sleep 0.5\n') as manager:
        assert asyncio.run(both()) == [True, True]
    assert ticks > 5


def test_errors_come_out_where_the_call_is_awaited(tmp_path: Path) -> None:
    async def call(*words: Any, **options: Any) -> None:
        await manager.aexecute_skill_script(*words, **options)

    with runnable(tmp_path, "echo ran\n") as manager:
        with pytest.raises(ScriptNotFoundError, match="no script 'nope'"):
            asyncio.run(call("demo", "nope"))
        with pytest.raises(SkillNotFoundError, match="nope"):
            asyncio.run(call("nope", "run"))
        with pytest.raises(ConfigurationError, match="1 to 600"):
            asyncio.run(call("demo", "run", timeout=0))
    assert kinds(tmp_path) == ["refused", "refused"]


@pytest.mark.parametrize("times", [1, 2])
def test_cancelling_the_call_kills_the_whole_tree(tmp_path: Path, times: int) -> None:
    beats = tmp_path / "beats"
    beats.mkdir()

    async def cancelled() -> float:
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()

        def listen(_stream: str, _data: bytes) -> None:
            loop.call_soon_threadsafe(begun.set)

        task = asyncio.create_task(
            manager.aexecute_skill_script(
                "demo",
                "storm",
                argv=[str(beats), "60"],
                on_output=listen,
            )
        )
        await begun.wait()
        began = time.monotonic()
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - began

    with runnable(tmp_path, STORM, name="scripts/storm.py") as manager:
        assert asyncio.run(cancelled()) < 10
        assert wait_for(lambda: kinds(tmp_path) == ["started", "finished"])
    (beats / "stop").touch() if beats_go_on(beats) else None
    assert not (beats / "stop").exists()
    assert only_record(tmp_path, "finished")["cancelled"] is True


def test_a_call_cancelled_twice_does_not_let_the_run_watch_somebody_elses_descriptor() -> None:
    """The descriptor that stops a run stays the run's until it is over."""

    async def hurried() -> None:
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()

        def run(control: RunControl) -> str:
            loop.call_soon_threadsafe(begun.set)
            time.sleep(0.3)
            return os.readlink(f"/proc/self/fd/{control.wakeup_fd}")

        task = asyncio.create_task(run_in_thread(run))
        await begun.wait()
        held = await asyncio.to_thread(lambda: set(os.listdir("/proc/self/fd")))
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0.01)
        assert task.done()
        still = await asyncio.to_thread(lambda: set(os.listdir("/proc/self/fd")))
        assert len(held & still) >= len(held) - 1
        with pytest.raises(asyncio.CancelledError):
            await task
        before = len(os.listdir("/proc/self/fd"))
        await asyncio.sleep(0.5)
        assert len(os.listdir("/proc/self/fd")) == before - 2

    asyncio.run(hurried())


def test_nothing_stays_open_after_many_calls(tmp_path: Path) -> None:
    async def some(count: int) -> None:
        await asyncio.gather(*(manager.aexecute_skill_script("demo", "run") for _ in range(count)))

    with runnable(tmp_path, "true\n") as manager:
        asyncio.run(some(2))
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))
        asyncio.run(some(20))
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) <= before


def test_a_loop_that_is_closed_before_the_end_does_no_harm(tmp_path: Path) -> None:
    loop = asyncio.new_event_loop()
    with runnable(tmp_path, 'sleep 0.3; echo done > "$1"\n') as manager:
        task = loop.create_task(manager.aexecute_skill_script("demo", "run", argv=[str(tmp_path / "mark")]))
        loop.run_until_complete(asyncio.sleep(0.1))
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # asyncio's own switch for such a task
        loop.close()
        assert wait_for(lambda: kinds(tmp_path) == ["started", "finished"])
    task.get_coro().close()  # nobody awaits it any more


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="none")


def test_the_callers_context_reaches_on_output(tmp_path: Path) -> None:
    seen: list[str] = []

    async def call() -> None:
        VARIABLE.set("caller")
        await manager.aexecute_skill_script("demo", "run", on_output=lambda *_: seen.append(VARIABLE.get()))

    with runnable(tmp_path, "echo x\n") as manager:
        asyncio.run(call())
    assert seen == ["caller"]


@pytest.mark.parametrize("error", [RuntimeError("enough"), StopIteration("enough"), KeyError("enough")])
def test_what_on_output_raises_comes_out_and_never_hangs(tmp_path: Path, error: Exception) -> None:
    def listen(_stream: str, _data: bytes) -> None:
        raise error

    async def call() -> None:
        await asyncio.wait_for(manager.aexecute_skill_script("demo", "run", on_output=listen), 10)

    with runnable(tmp_path, "echo x; sleep 20\n") as manager, pytest.raises((RuntimeError, KeyError), match="enough"):
        asyncio.run(call())
    assert kinds(tmp_path) == ["started", "finished"]


def test_a_hundred_awaited_runs_at_once_lose_nothing(tmp_path: Path) -> None:
    async def many() -> list[str]:
        results = await asyncio.gather(
            *(manager.aexecute_skill_script("demo", "run", argv=[str(number)]) for number in range(100))
        )
        return [result.stdout for result in results]

    with runnable(tmp_path, 'echo "$1"\n') as manager:
        assert asyncio.run(many()) == [f"{number}\n" for number in range(100)]


def test_skills_are_found_and_invoked_without_blocking(tmp_path: Path) -> None:
    async def both() -> str:
        await manager.adiscover()
        return await manager.ainvoke_skill("demo")

    with runnable(tmp_path, "echo x\n") as manager:
        assert "scripts/run.sh" in asyncio.run(both())
