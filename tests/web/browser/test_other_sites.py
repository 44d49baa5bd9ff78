"""What a page of another origin can do to ours in a real browser, where cookies know no ports."""

from __future__ import annotations

import html
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Page, Request, expect
from support.browsers import Site

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@contextmanager
def other_site(content: str) -> Iterator[str]:
    """A server on another port of this machine, as any other program may run one."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(content.encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()


def form_on(page: Page, option: str) -> str:
    """The page's own form, with its valid proof: the strongest thing an attacker could have got hold of."""
    token = page.locator("form input[name=token]").input_value()
    action = page.locator("form").last.evaluate("form => form.action")
    fields = {"token": token, "option": option}
    inputs = "".join(f"<input name={name} value='{html.escape(value)}'>" for name, value in fields.items())
    return f"<form method=post action='{action}'>{inputs}<button>Free kittens</button></form>"


def test_a_form_on_another_port_cannot_answer_although_the_cookie_goes_along(site: Site) -> None:
    site.open()
    page = site.tab("/requests/request-1")
    sent: list[Request] = []
    page.on("request", lambda request: sent.append(request) if request.method == "POST" else None)
    time.sleep(0.7)
    with other_site(form_on(page, "yes_once")) as elsewhere:
        page.goto(elsewhere)
        with page.expect_navigation() as navigated:
            page.get_by_role("button").click()
    assert navigated.value is not None
    assert navigated.value.status == 403
    assert site.outcome("request-1") is None
    assert len(site.world.pending()) == 1
    headers = sent[0].all_headers()
    assert site.server.access.cookie_name in headers.get("cookie", ""), "without the cookie this proves nothing"


def test_the_same_form_on_our_own_page_answers(site: Site) -> None:
    site.open()
    page = site.tab("/requests/request-1")
    time.sleep(0.7)
    page.evaluate("text => { document.querySelector('main').innerHTML = text }", form_on(page, "yes_once"))
    page.get_by_role("button").click()
    page.wait_for_url("**/?answered=*")
    assert site.outcome("request-1") == ("yes_once", "web")


def test_no_other_page_can_frame_ours(site: Site) -> None:
    site.open()
    page = site.tab()
    own = "<p>a page that allows it</p>"
    with (
        other_site(own) as framable,
        other_site(
            f"<iframe src='{site.at('/requests/request-1')}'></iframe><iframe src='{framable}'></iframe>"
        ) as evil,
    ):
        page.goto(evil)
        ours, theirs = page.frames[1:]
        assert theirs.get_by_text("a page that allows it").is_visible(), "frames as such work here"
        assert "May this script run?" not in ours.content()
        assert ours.url.startswith("chrome-error:") or not ours.content().count("button")


def test_no_other_page_can_read_ours(site: Site) -> None:
    site.open()
    page = site.tab()
    read = (
        "async url => { try { return await (await fetch(url, {credentials: 'include'})).text() } catch { return '' } }"
    )
    assert "request-1" in page.evaluate(read, site.at("/"))
    with other_site("<p>hello</p>") as elsewhere:
        page.goto(elsewhere)
        assert page.evaluate(read, site.at("/")) == ""
        assert page.evaluate(read, elsewhere) == "<p>hello</p>"


def test_nothing_on_the_page_comes_from_elsewhere(site: Site) -> None:
    site.open()
    page = site.tab()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for path in ("/", "/requests/request-1", "/history", "/audit", "/skills"):
        page.goto(site.at(path))
    expect(page.get_by_role("main")).to_be_visible()
    assert [url for url in asked if not url.startswith(site.server.address)] == []
