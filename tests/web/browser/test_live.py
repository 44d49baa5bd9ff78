"""The page while the world changes: questions come, end and are answered elsewhere, and the server goes and comes."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import expect
from support.asking import started_program
from support.browsers import Site, choice, violations
from support.commands import COMMAND

from skillkit.core.store.running import RunningRuns
from skillkit.core.store.state import StateStore
from skillkit.core.values.hosts import HostUse
from skillkit.core.values.masking import NOTHING_MASKED
from skillkit.web.server import PageServer

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LATER = """
import sys
from support.terminals import question
from skillkit import World
with World(sys.argv[1]) as world:
    world.open(question(id="from-a-process"))
"""


def test_a_question_of_another_process_appears_by_itself(site: Site) -> None:
    page = site.tab()
    expect(page.get_by_role("heading", level=1)).to_have_text("Nothing waits for you")
    with started_program(LATER, site.world.folder) as program:
        assert program.wait(30) == 0
        program.communicate()
    expect(page.get_by_role("heading", level=1)).to_have_text("1 request waiting for you")
    page.get_by_role("link", name="Run").first.click()
    page.wait_for_url("**/requests/from-a-process")


def test_one_that_is_answered_elsewhere_goes_by_itself(site: Site) -> None:
    site.open()
    page = site.tab()
    expect(page.get_by_role("heading", level=1)).to_have_text("1 request waiting for you")
    site.world.answer("request-1", "no", "cli")
    expect(page.get_by_role("heading", level=1)).to_have_text("Nothing waits for you")


def test_who_looks_at_one_learns_that_it_was_answered_elsewhere(site: Site) -> None:
    site.open()
    page = site.tab("/requests/request-1")
    site.world.answer("request-1", "no", "cli")
    expect(choice(page, "Yes once")).not_to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("cli")


def test_one_that_expires_while_it_is_looked_at_cannot_be_answered(site: Site) -> None:
    site.open()
    page = site.tab("/requests/request-1")
    still = site.tab("/requests/request-1", java_script_enabled=False)
    expect(choice(page, "No")).to_be_visible()
    with site.world._store.connection() as connection:  # its time runs out now, however slow this machine is
        connection.execute("update requests set deadline = 0")
    expect(choice(page, "Yes once")).not_to_be_visible(timeout=10_000)
    expect(page.get_by_role("main")).to_contain_text("expired")
    with still.expect_navigation() as navigated:
        choice(still, "Yes once").click()
    assert navigated.value is not None
    assert navigated.value.status == 410
    assert site.outcome("request-1") is None


def test_the_hosts_of_a_run_come_and_change_by_themselves_and_disturb_nobody(site: Site) -> None:
    site.open()
    page = site.tab()
    page.get_by_role("link", name="Run").focus()
    page.evaluate("document.querySelector('h1').dataset.mine = 'yes'")
    runs = page.get_by_role("region", name="Runs that go on")
    expect(runs).not_to_be_visible()
    with RunningRuns(StateStore(site.world.folder)).telling(7, COMMAND, NOTHING_MASKED) as tell:
        tell.hosts([HostUse("api.example.com:443", "", 1, 10, 1234)])
        expect(runs).to_contain_text("1,234")
        tell.hosts([HostUse("api.example.com:443", "", 1, 10, 5678), HostUse("evil.test:443", "is not among them", 1)])
        expect(runs).to_contain_text("5,678")
        expect(runs).to_contain_text("evil.test:443")
        assert page.evaluate("document.querySelector('h1').dataset.mine") == "yes", "the rest of the page stays"
        expect(page.get_by_role("link", name="Run").first).to_be_focused()
    expect(runs).not_to_be_visible()


def test_what_a_run_writes_comes_by_itself_and_who_scrolled_back_stays(site: Site) -> None:
    page = site.tab(viewport={"width": 390, "height": 844})
    runs = page.get_by_role("region", name="Runs that go on")
    with RunningRuns(StateStore(site.world.folder)).telling(7, COMMAND, NOTHING_MASKED) as tell:
        tell.output("stdout", b"the first line\n")
        expect(runs).to_contain_text("the first line")
        tell.output("stdout", b"".join(b"line %d <b>\n" % number for number in range(200)))
        tell.output("stderr", b"a warning\n")
        expect(runs).to_contain_text("a warning")
        output = page.get_by_role("region", name="Output of")
        assert output.evaluate("e => e.scrollHeight - e.clientHeight - e.scrollTop < 9"), "the end is in sight"
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.goto(site.at("/running"))
        page.set_viewport_size({"width": 390, "height": 300})
        output.focus()
        output.evaluate("e => { e.style.maxHeight = '4rem'; e.scrollTop = 5; }")
        tell.output("stdout", b"one more\n")
        expect(runs).to_contain_text("one more")
        expect(output).to_be_focused()
    expect(runs).to_contain_text("Ended")
    still = site.tab("/running", java_script_enabled=False)
    expect(still.get_by_role("region", name="Runs that go on")).to_contain_text("one more")
    expect(still.get_by_role("link", name="Look again")).to_be_visible()


def test_two_hundred_questions_are_shown_at_once(site: Site) -> None:
    for number in range(200):
        site.open(f"request-{number:03}")
    started = time.monotonic()
    page = site.tab()
    expect(page.get_by_role("heading", level=1)).to_have_text("200 requests waiting for you")
    assert page.get_by_role("main").get_by_role("listitem").count() >= 50, "all are about one script: the first of them"
    assert time.monotonic() - started < 10
    site.world.answer("request-100", "no", "cli")
    expect(page.get_by_role("heading", level=1)).to_have_text("199 requests waiting for you")


def test_a_server_that_comes_back_is_followed_again(site: Site) -> None:
    page = site.tab()
    expect(page.get_by_role("heading", level=1)).to_have_text("Nothing waits for you")
    port = int(site.server.address.rpartition(":")[2])
    site.server.stop()
    site.open()  # nobody tells the page of it
    again = PageServer(site.world, port=port)
    again.access = site.server.access
    with again:
        expect(page.get_by_role("heading", level=1)).to_have_text("1 request waiting for you", timeout=20_000)
