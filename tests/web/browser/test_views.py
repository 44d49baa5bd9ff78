"""Every view for everybody: accessibility rules in both colour schemes, narrow screens, and no errors in the console."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect
from support.browsers import PHONE, Site, serving, violations
from support.running import made_manager
from support.terminals import script_prompt

from skillkit import TRUSTED, Option
from skillkit.core.exceptions import SkillKitError

pytestmark = [pytest.mark.browser, pytest.mark.slow]

VIEWS = (
    "/",
    "/requests/first",
    "/requests/general",
    "/requests/done",
    "/requests/late",
    "/history",
    "/audit",
    "/skills",
    "/skills/demo",
    "/nowhere",
)


@pytest.fixture
def full_site(browser: Browser, tmp_path: Path) -> Iterator[Site]:
    """A world with something in every view."""
    scripts = {"scripts/hello.py": '"""Says hello."""\nprint("hello")\n', "scripts/fail.sh": "exit 3\n"}
    with made_manager(tmp_path, scripts, policy=TRUSTED) as manager, serving(browser, tmp_path, manager) as site:
        for script in ("hello", "fail", "missing"):
            try:
                manager.execute_skill_script("demo", script)
            except SkillKitError:
                continue
        site.open("first", script_prompt(walls=("It cannot use the network.", "It can write to a work folder.")))
        site.open("general", options=(Option("a", "One"), Option("b", "Two")), context={"deep": {"list": [1, None]}})
        site.open("done")
        site.world.answer("done", "no", "cli")
        site.open("late", expires_in=0.05)
        yield site


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_breaks_a_rule_of_accessibility(full_site: Site, scheme: Literal["light", "dark"]) -> None:
    page = full_site.tab(color_scheme=scheme)
    found = {}
    for path in VIEWS:
        page.goto(full_site.at(path))
        settle(page)
        found[path] = violations(page)
    anonymous = full_site.browser.new_context(color_scheme=scheme)
    try:
        stranger = anonymous.new_page()
        stranger.goto(full_site.at("/"))
        found["signed out"] = violations(stranger)
    finally:
        anonymous.close()
    assert {path: broken for path, broken in found.items() if broken} == {}


def settle(page: Page) -> None:
    """Buttons that are inert for a moment are exempt from contrast; what counts is how they look afterwards."""
    expect(page.locator("button[disabled]")).to_have_count(0)


def test_no_view_scrolls_sideways_on_a_phone(full_site: Site) -> None:
    wide = script_prompt(skill="s" * 64, origin="/home/" + "long-folder-name/" * 12, digest="d1" * 32)
    full_site.open("wide", wide)
    page = full_site.tab(viewport=PHONE, has_touch=True, is_mobile=True)
    too_wide = {}
    for path in (*VIEWS, "/requests/wide"):
        page.goto(full_site.at(path))
        widths = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        if widths[0] > widths[1] or widths[1] > PHONE["width"]:
            too_wide[path] = widths
    assert too_wide == {}


def test_buttons_are_large_enough_for_a_thumb(full_site: Site) -> None:
    page = full_site.tab("/requests/first", viewport=PHONE, has_touch=True, is_mobile=True)
    for button in page.get_by_role("button").all():
        box = button.bounding_box()
        assert box is not None
        assert box["height"] >= 44
        assert box["y"] + box["height"] <= PHONE["height"], "the answers stay in sight"


def test_no_view_complains_in_the_console(full_site: Site) -> None:
    page = full_site.tab()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    for path in VIEWS:
        if path not in ("/nowhere", "/requests/late"):  # whose status the browser itself calls an error
            page.goto(full_site.at(path))
    assert said == []


COLUMNS_CUT = "[...document.querySelectorAll('.scroll')].some(each => each.scrollWidth > each.clientWidth)"
MARKS_ON_MANY_LINES = "[...document.querySelectorAll('td .chip')].filter(each => each.offsetHeight > 32).length"


@pytest.mark.parametrize("width", [1200, 980, 800])
def test_tables_show_all_their_columns_and_no_mark_breaks(browser: Browser, tmp_path: Path, width: int) -> None:
    session = "terminal-12345-678901234567"
    made = made_manager(tmp_path, {"scripts/hello.py": "print(1)\n"}, policy=TRUSTED, session_id=session)
    with made as manager, serving(browser, tmp_path, manager) as site:
        manager.execute_skill_script("demo", "hello")
        manager.grant("demo", hosts=["api.a-long-name-of-a-host.example.org"], channel="terminal")
        page = site.tab(viewport={"width": width, "height": 800})
        for path in ("/standing", "/audit"):
            page.goto(site.at(path))
            expect(page.locator("td .chip")).not_to_have_count(0)
            assert page.evaluate(COLUMNS_CUT) is False, path
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            assert page.evaluate(MARKS_ON_MANY_LINES) == 0, path
