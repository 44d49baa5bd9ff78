"""A person answers in a real browser: with and without JavaScript, by mouse, by keys, in two tabs, in time."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from support.asking import started_program
from support.browsers import Site, choice
from support.running import wait_for

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ANSWERS = {"Yes once": "yes_once", "Yes in this session": "yes_in_session", "No": "no"}
INERT_SECONDS = 0.6
# Asks like an agent does and says when it goes on, by the clock that all processes share.
AGENT = """
import json, sys, time
from support.terminals import question
from skillkit import World
with World(sys.argv[1]) as world:
    for name in sys.argv[2:]:
        answer = world.ask_request(question(id=name))
        print(json.dumps([answer.option_id, answer.channel, time.time()]), flush=True)
"""


@pytest.mark.parametrize("script", [True, False], ids=["javascript", "no-javascript"])
@pytest.mark.parametrize("label", ANSWERS)
def test_each_answer_is_one_click(site: Site, label: str, script: bool) -> None:
    site.open()
    page = site.tab("/requests/request-1", java_script_enabled=script)
    assert [button.inner_text().partition("\n")[0] for button in page.locator(".option").all()] == list(ANSWERS)
    if not script:
        time.sleep(INERT_SECONDS + 0.1)
    expect(choice(page, label)).to_be_enabled()
    choice(page, label).click()
    expect(page.get_by_role("status").first).to_contain_text(label)
    assert page.url.startswith(site.server.address)
    assert site.outcome("request-1") == (ANSWERS[label], "web")


def test_nothing_is_preselected(site: Site) -> None:
    site.open()
    page = site.tab("/requests/request-1")
    focused = page.evaluate("document.activeElement.tagName")
    assert focused in ("BODY", "MAIN", "HTML")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    time.sleep(0.2)
    assert site.outcome("request-1") is None
    assert len(site.world.pending()) == 1


def test_of_two_tabs_the_first_wins_and_the_second_is_told(site: Site) -> None:
    site.open()
    first, second = (site.tab("/requests/request-1", java_script_enabled=False) for _ in range(2))
    time.sleep(INERT_SECONDS + 0.1)
    choice(first, "No").click()
    with second.expect_navigation() as navigated:
        choice(second, "Yes once").click()
    assert navigated.value is not None
    assert navigated.value.status == 409
    told = second.get_by_role("main").inner_text()
    assert "No" in told
    assert "web" in told
    assert site.outcome("request-1") == ("no", "web")


def test_keys_alone_are_enough(site: Site) -> None:
    site.open()
    page = site.tab()
    pressed_until(page, "a", "Run")
    page.keyboard.press("Enter")
    page.wait_for_url("**/requests/request-1")
    expect(choice(page, "Yes once")).to_be_enabled()
    pressed_until(page, "button", "Yes in this session")
    page.keyboard.press("Space")
    expect(page.get_by_role("status").first).to_contain_text("Yes in this session")
    assert site.outcome("request-1") == ("yes_in_session", "web")


def pressed_until(page: Page, tag: str, words: str) -> None:
    """Tab until that has the focus, and shows it."""
    for _ in range(60):
        page.keyboard.press("Tab")
        focused: Any = page.evaluate(
            """() => { const e = document.activeElement, s = getComputedStyle(e);
            return [e.tagName.toLowerCase(), e.textContent.trim(), s.outlineStyle, s.boxShadow]; }"""
        )
        if focused[0] == tag and focused[1].startswith(words):
            assert focused[2] != "none" or focused[3] != "none", "the focus cannot be seen"
            return
    pytest.fail(f"{words!r} is not reached by Tab")


def test_a_yes_is_inert_at_first_and_a_no_never(site: Site) -> None:
    site.open()
    page = site.tab()
    # The page's clock stands still until it is moved: no machine is too slow for this.
    page.clock.install(time=0)
    page.clock.pause_at(1000)
    page.goto(site.at("/requests/request-1"))

    def inert() -> dict[str, bool]:
        return {label: choice(page, label).is_disabled() for label in ANSWERS}

    assert inert() == {"Yes once": True, "Yes in this session": True, "No": False}
    page.clock.run_for(590)
    assert inert() == {"Yes once": True, "Yes in this session": True, "No": False}
    page.clock.run_for(20)
    assert inert() == {"Yes once": False, "Yes in this session": False, "No": False}


def test_a_yes_is_inert_again_when_the_window_comes_to_the_front(site: Site) -> None:
    """A page of another port can lay a window over ours and close it between the two clicks of a double click."""
    site.open()
    page = site.tab("/requests/request-1")
    expect(choice(page, "Yes once")).to_be_enabled()
    inert = page.evaluate(
        """() => { window.dispatchEvent(new Event('focus'));
        return [...document.querySelectorAll('.option')].map(b => b.ariaDisabled === 'true'); }"""
    )
    assert inert == [True, True, False]
    expect(choice(page, "Yes once")).to_be_enabled()


QUICK = """async () => {
    const shown = new DOMParser().parseFromString(await (await fetch(location.href)).text(), 'text/html');
    const button = [...shown.querySelectorAll('button')].find(b => b.textContent.trim().startsWith('Yes once'));
    const data = new URLSearchParams(new FormData(button.form));
    if (button.name) data.set(button.name, button.value);
    const post = async () => (await fetch(button.form.getAttribute('action'), {method: 'POST', body: data})).status;
    const first = await post();
    await new Promise(done => setTimeout(done, 700));
    return [first, await post()];
}"""


def test_the_server_too_refuses_a_yes_that_nobody_can_have_thought_about(site: Site) -> None:
    site.open()
    page = site.tab("/requests/request-1")
    first, second = page.evaluate(QUICK)
    assert first >= 400
    assert second < 400, "the same form counts once there was time to read it"
    assert site.outcome("request-1") == ("yes_once", "web")


def test_a_waiting_agent_goes_on_within_a_second_of_the_click(
    site: Site, record_property: Callable[[str, object], None]
) -> None:
    names, waits = ("first", "second", "third"), []
    page = site.tab()
    with started_program(AGENT, site.world.folder, *names) as agent:
        assert agent.stdout is not None
        for name in names:
            assert wait_for(lambda name=name: name in [each.id for each in site.world.pending()], 30)  # type: ignore[misc]
            page.goto(site.at(f"/requests/{name}"))
            expect(choice(page, "Yes once")).to_be_enabled()
            clicked = time.time()
            choice(page, "Yes once").click(no_wait_after=True)
            option_id, channel, went_on = json.loads(agent.stdout.readline())
            assert (option_id, channel) == ("yes_once", "web")
            waits.append(went_on - clicked)
            page.wait_for_url("**?answered=*")
        assert agent.wait(30) == 0
        agent.communicate()
    record_property("p50_ms", round(statistics.median(waits) * 1000))
    assert statistics.median(waits) < 1
