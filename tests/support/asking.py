"""Askers for tests of the world's requests: threads of this process, and programs of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from skillkit import Option, OptionAnswer, OptionRequest, World
from skillkit.core.values.questions import OPTIONS
from support.running import wait_for

__all__ = ["answered_by_thread", "askers_of", "in_threads", "only_pending", "request_named", "started_program"]

Result = TypeVar("Result")


def request_named(name: str, options: tuple[Option, ...] = OPTIONS) -> OptionRequest:
    return OptionRequest(name, f"Run {name}?", "Policy asks.", options, {"digest": "d"}, "session")


def only_pending(world: World) -> OptionRequest:
    """The one request that waits, as soon as it does."""
    assert wait_for(lambda: len(world.pending()) == 1)
    (request,) = world.pending()
    return request


def askers_of(world: World) -> int:
    """Those who wait for a question that is open; one on the way to its next question does not count."""
    counting = "select count(*) from askers join requests on request = requests.seq where state = 'pending'"
    with world._store.connection() as connection:
        return int(connection.execute(counting).fetchone()[0])


@contextmanager
def in_threads(count: int, ask: Callable[[], Result]) -> Iterator[list[Future[Result]]]:
    """`count` askers at once; all have ended when the block ends."""
    with ThreadPoolExecutor(count) as pool:
        yield [pool.submit(ask) for _ in range(count)]


def answered_by_thread(world: World, ask: Callable[[], OptionAnswer], option_id: str) -> OptionAnswer:
    """What an asker gets when its one question is answered like this."""
    with in_threads(1, ask) as (asking,):
        world.answer(only_pending(world).id, option_id, "test")
        return asking.result(30)


def started_program(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
