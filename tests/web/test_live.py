"""News as they come: what is true at connecting, then each change; nothing piles up, and stopping ends it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.asking import started_program
from support.page_visits import Visit, asked, expire, visiting
from support.running import wait_for

from skillkit import World
from skillkit.web.live import MOST_LISTENERS, Events

ASK = """
import sys
from skillkit import World
print(World(sys.argv[1]).ask("Go?", "", ["yes", "no"]).option_id)
"""

pytestmark = pytest.mark.usefixtures("each_database")


@pytest.fixture
def visit(tmp_path: Path) -> Iterator[Visit]:
    with visiting(tmp_path) as made:
        yield made


class News:
    """The events of one open stream."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.iter_lines()

    def next(self) -> dict[str, Any]:
        for line in self._lines:
            if line.startswith("data: "):
                found: dict[str, Any] = json.loads(line[6:])
                return found
        raise EOFError


def test_who_connects_hears_what_is_true_now_and_then_each_change(visit: Visit) -> None:
    asked(visit.world, "before")
    rendered = visit.client.get("/").text
    asked(visit.world, "between")
    with visit.client.stream("GET", "/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        news = News(response)
        first = news.next()
        assert first["pending"] == ["before", "between"], "what came between page and stream is not lost"
        assert first["version"] not in rendered
        visit.world.answer("before", "no", "cli")
        assert news.next()["pending"] == ["between"]


def test_a_request_of_another_process_arrives_and_leaves_by_itself(visit: Visit, tmp_path: Path) -> None:
    with visit.client.stream("GET", "/events") as response:
        news = News(response)
        assert news.next()["pending"] == []
        with started_program(ASK, tmp_path) as asker:
            arrived = news.next()["pending"]
            assert len(arrived) == 1
            began = time.monotonic()
            assert visit.answer(arrived[0], "yes").status_code == 303
            said, problem = asker.communicate(timeout=30)
            assert (said, problem) == ("yes\n", "")
            assert time.monotonic() - began < 10
        assert news.next()["pending"] == []


def test_a_request_that_expires_is_news_too(visit: Visit) -> None:
    asked(visit.world, "short")
    with visit.client.stream("GET", "/events") as response:
        news = News(response)
        assert news.next()["pending"] == ["short"]
        expire(visit.world, "short", after=0.5)  # the change itself is no news: it still waits
        assert news.next()["pending"] == []


def test_stopping_the_server_ends_open_streams_at_once(tmp_path: Path) -> None:
    with visiting(tmp_path) as visit, visit.client.stream("GET", "/events") as response:
        news = News(response)
        news.next()
        began = time.monotonic()
        visit.server.stop()
        with pytest.raises((EOFError, httpx.HTTPError)):
            news.next()
        assert time.monotonic() - began < 5
        with visit.stranger() as guest, pytest.raises(httpx.ConnectError):
            guest.get("/")


def test_listeners_who_are_gone_leave_no_thread_behind(visit: Visit) -> None:
    def watching() -> bool:
        return any(thread.name == "skillkit-page" for thread in threading.enumerate())

    for _ in range(3):
        with visit.client.stream("GET", "/events") as response:
            news = News(response)  # held: who drops it hangs up
            news.next()
            assert watching()
    assert wait_for(lambda: not watching())


def test_a_listener_that_does_not_read_holds_no_queue(tmp_path: Path) -> None:
    """Whoever sleeps through a hundred changes hears of the last one."""

    async def slept_through(world: World) -> list[bytes]:
        events = Events(world)
        stream = events.stream()
        heard = [await anext(stream), await anext(stream)]
        for number in range(100):
            asked(world, f"r-{number}")
        while b"r-99" not in heard[-1]:
            await asyncio.sleep(0.3)
            heard.append(await anext(stream))
        events.close()
        await stream.aclose()
        return heard

    with World(tmp_path) as world:
        heard = asyncio.run(slept_through(world))
    assert len(heard) < 10


def test_too_many_streams_are_refused(tmp_path: Path) -> None:
    async def opened(world: World) -> bool:
        events = Events(world)
        streams = [events.stream() for _ in range(MOST_LISTENERS)]
        for stream in streams:
            await anext(stream)
        is_full = events.is_full
        events.close()
        for stream in streams:
            await stream.aclose()
        return is_full and not events.is_full

    with World(tmp_path) as world:
        assert asyncio.run(opened(world))


def test_a_page_in_the_background_can_ask_once(visit: Visit) -> None:
    asked(visit.world, "one")
    answer = visit.client.get("/events?once=1")
    assert answer.status_code == 200
    assert '"pending": ["one"]' in answer.text
