"""One Chromium for all tests of a worker; each test has a world, a page and a profile of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from support.browsers import Site, chromium, running_loop, serving
from support.running import needs


@pytest.fixture(scope="session")
def started_browser() -> Iterator[tuple[Browser, asyncio.AbstractEventLoop]]:
    with running_loop(None), chromium() as browser:
        loop = asyncio._get_running_loop()
        assert loop is not None
        with running_loop(None):
            yield browser, loop


@pytest.fixture
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    needs("chromium")
    browser, loop = request.getfixturevalue("started_browser")
    with running_loop(loop):
        yield browser


@pytest.fixture
def site(browser: Browser, tmp_path: Path) -> Iterator[Site]:
    with serving(browser, tmp_path) as made:
        yield made
