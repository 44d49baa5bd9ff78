"""The approval page in a real Chromium: a world, the page that serves it, and tabs that look at it."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from skillkit import OptionRequest, SkillManager, World
from skillkit.core.values.questions import OPTIONS, Prompt
from skillkit.web.server import PageServer
from support.terminals import script_prompt

__all__ = ["PHONE", "Site", "choice", "chromium", "running_loop", "serving", "violations"]

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PHONE = {"width": 360, "height": 740}


@contextmanager
def chromium() -> Iterator[Browser]:
    """Without the windows around it where that is installed: a tab then takes a third of the processor's time."""
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=QUIET)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def running_loop(loop: asyncio.AbstractEventLoop | None) -> Iterator[None]:
    """Playwright's loop counts as running in this thread from its start to its end; other tests run loops too."""
    before = asyncio._get_running_loop()
    asyncio._set_running_loop(loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(before)


class Site:
    """A world and the page that serves it, seen from a browser."""

    def __init__(self, browser: Browser, world: World, server: PageServer) -> None:
        self.browser = browser
        self.world = world
        self.server = server
        self._contexts: list[BrowserContext] = []

    def tab(self, path: str = "/", **settings: Any) -> Page:
        """A tab of a browser that was never here before, logged in by a link, looking at `path`."""
        context = self.browser.new_context(**settings)
        context.set_default_timeout(15_000)
        self._contexts.append(context)
        page = context.new_page()
        page.goto(self.server.login_url())
        if path != "/":
            page.goto(self.at(path))
        return page

    def at(self, path: str) -> str:
        return f"{self.server.address}{path}"

    def open(self, name: str = "request-1", prompt: Prompt | None = None, **fields: Any) -> OptionRequest:
        """A script's question that stays pending whether somebody waits or not."""
        expires_in = fields.pop("expires_in", 300.0)
        shown = prompt or script_prompt()
        request = OptionRequest(name, f"Run a script of {shown.skill}?", "", OPTIONS, shown.to_context(), "session-1")
        return self.world.open(replace(request, **fields), expires_in=expires_in)

    def outcome(self, name: str) -> tuple[str, str] | None:
        """Which option was chosen through which channel; None while it is open or when nobody chose."""
        past = next((each for each in self.world.history() if each.request.id == name), None)
        return (past.answer.option_id, past.answer.channel) if past is not None and past.answer is not None else None

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@contextmanager
def serving(browser: Browser, folder: Path, manager: SkillManager | None = None) -> Iterator[Site]:
    with World(folder / "state") as world, PageServer(world, manager=manager) as server:
        site = Site(browser, world, server)
        try:
            yield site
        finally:
            site.close()


def choice(page: Page, label: str) -> Any:
    """The button of one answer."""
    return page.get_by_role("button", name=re.compile(rf"^{re.escape(label)}\b"))


def violations(page: Page) -> list[str]:
    """What axe-core finds against the accessibility rules, one line each."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found]
