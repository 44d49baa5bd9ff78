"""The approval page in a real browser: from a click to the run that goes on, and a list of a thousand questions."""

from __future__ import annotations

import shutil
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.runner import Row
from skillkit import OptionAnswer, OptionRequest, World
from skillkit.core.values.questions import OPTIONS, FileChange, Prompt, PromptCommand, ReachMark, RiskFlag
from skillkit.web.server import PageServer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from playwright.sync_api import Page

CLICKS, PENDING, LOOKS = 20, 1_000, 5
SOURCE = "".join(f"print({number})\n" for number in range(200))
WHY = "a browser and a server share two cores with whatever else runs"
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"


def rows(work: Path) -> list[Row]:
    """None where there is no browser to measure with."""
    if not shutil.which("chromium"):
        return []
    return [_click_row(work / "clicks"), _list_row(work / "list")]


def asked(name: str, script: str = "scripts/report.py") -> OptionRequest:
    """As large as an ordinary question."""
    prompt = Prompt(
        skill="csv-report",
        origin="/home/ana/skills/csv-report",
        reasons=("Policy asks a person before a skill's first run.",),
        risks=(RiskFlag("network", "Talks to the network.", script, 3, 40),) * 5,
        changes=(FileChange("changed", script, "@@ -1 +1 @@\n-a\n+b\n", 0, 1),),
        commands=(PromptCommand(script, ("--page", name), "", SOURCE, "python3"),),
        walls=("It cannot use the network.",) * 8,
        digest="d" * 64,
        marks=(ReachMark("network", "no network", "closed"),),
    )
    return OptionRequest(name, f"Run {script}?", "", OPTIONS, prompt.to_context(), "session")


def _click_row(folder: Path) -> Row:
    """By the clock of one process: the click is sent, and whoever asked has the answer."""
    waits = []
    with World(folder) as world, _tab(world) as (page, address):
        for number in range(CLICKS):
            name = f"click-{number}"
            went_on: list[float] = []
            asking = threading.Thread(target=_wait_for_answer, args=(world, asked(name), went_on))
            asking.start()
            while name not in [each for _, each in world.pending_ids()]:
                time.sleep(0.005)
            page.goto(f"{address}/requests/{name}")
            page.wait_for_selector(".option[value=yes_once]:not([aria-disabled])")
            began = time.monotonic()
            page.keyboard.press("1")
            asking.join(30)
            waits.append((went_on[0] - began) * 1000)
            page.wait_for_url("**answered=*")  # the page goes on by itself
    middle = statistics.median(waits)
    detail = f"{min(waits):.0f} to {max(waits):.0f} ms, {CLICKS} times"
    return Row("from an answer in the browser to the run that goes on, p50", middle, 100, 50, "ms", detail, why=WHY)


def _wait_for_answer(world: World, request: OptionRequest, went_on: list[float]) -> OptionAnswer:
    answer = world.ask_request(request)
    went_on.append(time.monotonic())
    return answer


def _list_row(folder: Path) -> Row:
    with World(folder) as world:
        for number in range(PENDING):
            world.open(replace(asked(f"r{number}", f"scripts/s{number % 40}.py")), expires_in=3600)
        with _tab(world) as (page, address):
            painted = [_painted(page, address) for _ in range(LOOKS)]
    detail = f"{min(painted):.2f} to {max(painted):.2f} s, {LOOKS} times"
    return Row("first paint of the list with 1,000 questions", statistics.median(painted), 1, 0.5, "s", detail, why=WHY)


def _painted(page: Page, address: str) -> float:
    page.goto(f"{address}/")
    while not (painted := float(page.evaluate(PAINT))):  # the page lets nobody wait inside it by a text
        page.wait_for_timeout(20)
    return painted / 1000


@contextmanager
def _tab(world: World) -> Iterator[tuple[Page, str]]:
    from playwright.sync_api import sync_playwright

    with PageServer(world) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        try:
            page = browser.new_page()
            page.goto(server.login_url())
            yield page, server.address
        finally:
            browser.close()
