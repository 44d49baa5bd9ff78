"""What a person must know is inside the first screen of a real browser, and a decision takes few keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from support.browsers import Site, choice, violations
from support.running import wait_for
from support.terminals import script_prompt

from skillkit.core.record import AuditLog
from skillkit.core.store.state import StateStore
from skillkit.core.values.questions import FileChange, Prompt, PromptCommand, ReachMark, RiskFlag, Tick
from skillkit.web.server import PageServer

pytestmark = [pytest.mark.browser, pytest.mark.slow]

DESK: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
SCREENS: dict[str, dict[str, Any]] = {
    "desk, light": {**DESK, "color_scheme": "light"},
    "desk, dark": {**DESK, "color_scheme": "dark"},
    "phone, light": {**PHONE, "color_scheme": "light"},
    "phone, dark": {**PHONE, "color_scheme": "dark"},
}
TICKS = (Tick("host:api.example.org", "the host api.example.org"), Tick("secret:API_KEY", "the key API_KEY"))
SOURCE = '"""Makes a report."""\n' + "".join(f"print({number})\n" for number in range(300))
DIFF = "@@ -1,3 +1,4 @@\n same\n-was\n+import urllib.request\n+urllib.request.urlopen('https://a.example')\n"


def first_run(*argv: str, **changes: Any) -> Prompt:
    kinds = {
        "delete": (95, "Deletes everything with shutil.rmtree: the home folder."),
        "network": (60, "Talks to the network with urllib.request.urlopen: api.example.org."),
        "process": (20, "Starts programs with subprocess.run: notify-send {}."),
        "credentials": (60, "Reads the environment variable WEATHER_API_KEY."),
    }
    shown = script_prompt(
        skill="csv-report",
        origin="/home/ana/work/skills/csv-report",
        changes=None,
        commands=(PromptCommand("scripts/report.py", argv or ("data.csv", "--top", "5"), "", SOURCE, "python3"),),
        risks=tuple(
            RiskFlag(kind, told, "scripts/report.py", at, weight, kind in ("network", "credentials"))
            for at, (kind, (weight, told)) in enumerate(kinds.items(), 1)
        ),
        marks=(
            ReachMark("network", "no network", "closed"),
            ReachMark("files", "writes the workspace", "open"),
            ReachMark("keys", "no keys", "closed"),
            ReachMark("home", "own home, kept", "open"),
        ),
        walls=tuple(f"A sentence about walls, number {number}." for number in range(9)),
    )
    return replace(shown, **changes)


def changed() -> Prompt:
    return first_run(changes=(FileChange("changed", "scripts/report.py", DIFF, 0, 2), FileChange("added", "a.png", "")))


MUST_SEE = {
    "the literal command": ".glance .literal .word:last-child",
    "the marks": ".marks .mark:nth-of-type(5)",
    "the heaviest risks": ".top-risks li:nth-child(3)",
    "the first line that is new": ".first .line:nth-child(2)",
    "yes once": ".option >> nth=0",
    "yes in this session": ".option >> nth=1",
    "no": ".option >> nth=2",
    "the ticks": ".tick >> nth=1",
}


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("asked", [first_run(), changed()], ids=["first run", "changed"])
def test_all_that_must_be_known_is_in_the_first_screen(site: Site, screen: str, asked: Prompt) -> None:
    site.open("one", asked, grants=TICKS)
    page = site.tab("/requests/one", **SCREENS[screen])
    top_of_answers = page.locator(".answer").bounding_box()
    assert top_of_answers is not None
    width, height = SCREENS[screen]["viewport"].values()
    for name, selector in MUST_SEE.items():
        box = page.locator(selector).bounding_box()
        assert box is not None, name
        is_answer = selector.startswith((".option", ".tick"))
        bottom = height if is_answer else top_of_answers["y"]
        assert box["y"] >= 0, name
        assert box["y"] + box["height"] <= bottom, (name, box, bottom)
        assert box["x"] >= 0, name
        assert box["x"] + box["width"] <= width, name
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the screen"
    assert "dark" in screen or violations(page) == []


def test_a_decision_takes_one_key_and_the_next_request_comes_by_itself(site: Site) -> None:
    for name in ("one", "two", "three"):
        site.open(name, first_run(f"{name}.csv"))
    page = site.tab("/requests/one", **DESK)
    page.keyboard.press("1")  # too soon: nobody can have read it
    assert site.outcome("one") is None
    expect(page.locator(".option").first).not_to_have_attribute("aria-disabled", "true")
    page.keyboard.press("1")
    page.wait_for_url("**/requests/two*")
    assert site.outcome("one") == ("yes_once", "web")
    expect(page.locator(".notice")).to_contain_text("Answered Yes once")
    page.keyboard.press("j")
    page.wait_for_url("**/requests/three*")
    page.keyboard.press("k")
    page.wait_for_url("**/requests/two*")
    page.keyboard.press("n")
    page.keyboard.type("use 1, 2 or 3 instead")  # letters and digits are text here
    assert site.outcome("two") is None
    page.keyboard.press("Tab")
    page.keyboard.press("3")
    page.wait_for_url("**/requests/three*")
    past = site.world.history()[0]
    assert past.answer is not None
    assert (past.answer.option_id, past.answer.reason) == ("no", "use 1, 2 or 3 instead")
    page.keyboard.press("3")
    page.wait_for_url("**/?answered=three")


def test_with_ticks_a_whole_decision_takes_at_most_three_keys(site: Site) -> None:
    """From the list: to the question, and the answer; beside them no Tab and no mouse."""
    site.open("one", first_run(), grants=TICKS)
    page = site.tab("/", **DESK)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/requests/one")
    expect(page.locator(".option").first).not_to_have_attribute("aria-disabled", "true")
    page.keyboard.press("2")
    page.wait_for_url("**/?answered=one*")
    assert site.outcome("one") == ("yes_in_session", "web")


ORDER = ("May this script run?", "Skill", "Why asked", "Reach", "Risks", "New", "All risks", "Changed", "Arguments")
LATER = ("Walls", "Source", "Digest", "Your answer", "Yes once", "Yes in this session", "No", "Expires in")


@pytest.mark.parametrize("screen", SCREENS)
def test_a_screen_reader_reads_it_in_the_order_in_which_a_person_needs_it(site: Site, screen: str) -> None:
    """By the tree that assistive programs get, whatever the style moves about."""
    site.open("one", changed(), grants=TICKS)
    page = site.tab("/requests/one", **SCREENS[screen])
    read = page.locator("main").aria_snapshot()
    places = [read.find(words) for words in (*ORDER, *LATER)]
    assert -1 not in places, dict(zip((*ORDER, *LATER), places, strict=True))
    ordered = [read.index(words, at) for words, at in zip((*ORDER, *LATER), [0, *places], strict=False)]
    assert ordered == sorted(ordered), read
    for words in ("kept out: no network", "allowed: writes the workspace", "heading", "group"):
        assert words in read, words


def test_keys_lead_to_source_changes_walls_and_help(site: Site) -> None:
    site.open("one", changed())
    page = site.tab("/requests/one", **DESK)
    for key, place in (("v", "source"), ("d", "changes"), ("w", "walls")):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.id") == place
        assert page.evaluate("document.activeElement.getBoundingClientRect().top < innerHeight / 2")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("1")  # not behind the dialog
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert site.outcome("one") is None


def test_twenty_requests_of_one_script_are_told_apart_and_declined_together(site: Site) -> None:
    for number in range(20):
        site.open(f"r{number}", first_run(f"data-{number}.csv"))
    site.open("other", first_run(skill="notes"))
    page = site.tab("/", **DESK)
    expect(page.locator(".alike li")).to_have_count(20)
    expect(page.locator(".alike li >> nth=7")).to_contain_text("python3 scripts/report.py data-7.csv")
    assert violations(page) == []
    page.get_by_label("The agent is told why").fill("one at a time")
    page.get_by_role("button", name="No to all 20").click()
    expect(page.locator(".notice")).to_contain_text("Answered No to 20 requests.")
    assert [each.id for each in site.world.pending()] == ["other"]
    assert {past.answer.reason for past in site.world.history() if past.answer} == {"one at a time"}


def test_a_yes_for_the_session_says_how_many_others_it_covers_and_the_word_stays(site: Site) -> None:
    for number in range(4):
        site.open(f"r{number}", first_run(f"data-{number}.csv"))
    page = site.tab("/requests/r0", **DESK)
    choice(page, "Yes in this session").click()
    expect(page.locator(".notice")).to_contain_text("3 other requests of the same skill and session")
    site.open("later", first_run(skill="another"))
    expect(page.get_by_text("of another")).to_be_visible()
    expect(page.locator(".notice")).to_contain_text("Answered Yes in this session")


def test_a_tab_knows_when_its_server_is_gone_and_when_it_is_a_new_one(site: Site) -> None:
    site.open("one", first_run())
    page = site.tab("/requests/one", **DESK)
    expect(page.locator(".option").first).not_to_have_attribute("aria-disabled", "true")
    port = site.server.port
    site.server.stop()
    expect(page.get_by_role("alert")).to_contain_text("server is gone", timeout=15_000)
    left = page.locator("[data-left]").inner_text()
    assert all(each == "true" for each in page.locator(".option").evaluate_all("all => all.map(e => e.ariaDisabled)"))
    page.keyboard.press("1")
    page.wait_for_timeout(1500)
    assert page.locator("[data-left]").inner_text() == left, "the countdown stands still"
    with PageServer(site.world, port=port):
        expect(page.get_by_role("alert")).to_contain_text("started anew", timeout=15_000)
    assert site.outcome("one") is None


def test_the_focus_stays_where_it_is_when_the_window_gets_it(site: Site) -> None:
    site.open("one", first_run())
    page = site.tab("/requests/one", **DESK)
    expect(page.locator(".option").first).not_to_have_attribute("aria-disabled", "true")
    choice(page, "Yes once").focus()
    page.evaluate("dispatchEvent(new Event('focus'))")
    assert page.evaluate("document.activeElement.value") == "yes_once"
    page.keyboard.press("Enter")  # within the moment of care
    assert site.outcome("one") is None
    expect(page.locator(".option").first).not_to_have_attribute("aria-disabled", "true")
    page.keyboard.press("Enter")
    assert wait_for(lambda: site.outcome("one") == ("yes_once", "web"))


def test_the_navigation_does_not_shift_when_news_come(site: Site) -> None:
    site.open("one", first_run())
    page = site.tab("/history", java_script_enabled=False, **DESK)
    before = _places(page)
    page = site.tab("/history", **DESK)
    expect(page.locator("[data-count]")).to_have_text("1")
    assert _places(page) == before


@pytest.mark.parametrize("path", ["/history", "/audit"])
def test_no_column_is_cut_on_a_desk(site: Site, path: str) -> None:
    """Sessions of agents have long names; their column was out of sight at 1280."""
    session = "conversation-4f0c1d9e-8d5b-4c3e-9a55-0f7b9a0f2c11-turn-000123456789"
    told = {"skill": "quarterly-report-for-the-board", "script": "scripts/collect/everything.py", "session": session}
    why = "quarterly-report-for-the-board: scripts/collect/everything.py may not run. Declined by a person (web)."
    log = AuditLog(StateStore(site.world.folder))
    for number in range(3):
        site.open(f"r{number}", first_run(f"data-{number}.csv"), session_id=session, title="Run a script? " * 6)
        site.world.answer(f"r{number}", "yes_in_session", "web")
        log.append("refused", {**told, "reasons": [why], "channel": "web", "answer": "no"})
    page = site.tab(path, **DESK)
    region = page.locator(".scroll")
    expect(region).to_contain_text(session)
    assert region.evaluate("e => e.scrollWidth <= e.clientWidth")


def _places(page: Page) -> list[int]:
    found: list[int] = page.locator(".top nav a").evaluate_all(
        "all => all.map(e => Math.round(e.getBoundingClientRect().x))"
    )
    return found


def test_a_long_source_can_be_searched_without_a_script(site: Site) -> None:
    source = "".join(f"print({number})\n" for number in range(5000))
    site.open("one", first_run(commands=(PromptCommand("scripts/long.py", (), "", source, "python3"),)))
    page = site.tab("/requests/one/source/1", java_script_enabled=False, **DESK)
    page.get_by_label("Find in this file").fill("4321")
    page.get_by_role("button", name="Find").click()
    page.locator(".found a").click()
    line = page.locator("#source-1-4322")
    expect(line).to_be_in_viewport()
    expect(line).to_contain_text("print(4321)")
