"""Who gets through to the page: hosts, origins, links, cookies, tokens. Every attack stands beside what is allowed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient
from support.page_visits import Visit, asked, visiting

from skillkit import World
from skillkit.web import create_app
from skillkit.web.access import FAILURES, Access
from skillkit.web.server import own_names

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    with visiting(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.mark.parametrize("path", ["/", "/login", "/static/page.css", "/api/v1/requests"])
def test_a_name_that_was_pointed_here_is_refused(visit: Visit, path: str) -> None:
    port = visit.server.address.rpartition(":")[2]
    names = ("evil.example", f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1.evil:{port}", "")
    statuses = {name: visit.client.get(path, headers={"host": name, **visit.bearer}).status_code for name in names}
    assert statuses == dict.fromkeys(names, 421)
    own = visit.client.get("/", headers={"host": f"localhost:{port}"})
    assert own.status_code == 200, "the machine's own name for itself is fine"


def test_on_the_usual_port_the_page_goes_by_names_without_it(tmp_path: Path) -> None:
    assert own_names(8765) == ("127.0.0.1:8765", "localhost:8765")
    assert own_names(80) == ("127.0.0.1:80", "localhost:80", "127.0.0.1", "localhost")
    with World(tmp_path) as world:
        app = create_app(world, access=Access.fresh(), hosts=own_names(80))
        client = TestClient(app, base_url="http://127.0.0.1")
        assert client.get("/favicon.svg").status_code == 200
        assert client.get("/favicon.svg", headers={"host": "evil.example"}).status_code == 421


def test_what_a_wrong_name_is_told_looks_right_without_a_stylesheet(visit: Visit) -> None:
    told = visit.client.get("/", headers={"host": "evil.example"}).text
    assert '<svg class="icon icon-shield" viewBox="0 0 24 24" width="18" height="18" fill="none"' in told


def test_a_post_from_another_port_of_this_machine_is_refused(visit: Visit) -> None:
    """Its form carries our cookie: ports do not separate cookies, and such a request counts as same-site."""
    request = asked(visit.world, "cross-port")
    token = visit.token(request.id)
    for headers in (
        {"origin": "http://127.0.0.1:1"},
        {"origin": "null"},
        {"origin": visit.server.address, "sec-fetch-site": "same-site"},
        {"origin": visit.server.address, "sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "none"},
        {},
    ):
        form = {"token": token, "option": "no"}
        refused = visit.client.post(f"/requests/{request.id}/answer", data=form, headers=headers)
        assert (refused.status_code, headers) == (403, headers)
    assert visit.answer(request.id, "no", token).status_code == 303


def test_fetch_metadata_alone_proves_our_own_page(visit: Visit) -> None:
    request = asked(visit.world, "fetch-metadata")
    form = {"token": visit.token(request.id), "option": "no"}
    headers = {"sec-fetch-site": "same-origin"}
    assert visit.client.post(f"/requests/{request.id}/answer", data=form, headers=headers).status_code == 303


def test_another_page_can_link_here_but_not_read_from_here(visit: Visit) -> None:
    foreign = {"sec-fetch-site": "cross-site"}
    assert visit.client.get("/", headers={**foreign, "sec-fetch-mode": "navigate"}).status_code == 200
    for mode in ("no-cors", "cors", "same-origin"):
        assert visit.client.get("/history", headers={**foreign, "sec-fetch-mode": mode}).status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/history",
        "/nope",
        "/static/page.css",
        "/login",
        "/favicon.svg",
        "/events?once=1",
        "/api/v1/requests",
        "/static/nope",
    ],
)
def test_every_answer_forbids_framing_sniffing_keeping_and_foreign_code(visit: Visit, path: str) -> None:
    headers = visit.client.get(path).headers
    assert headers["content-security-policy"] == POLICY
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["referrer-policy"] == "same-origin", "no-referrer would make our own forms send Origin: null"
    assert not [name for name in headers if name.startswith("access-control")]
    assert "server" not in headers


def test_a_link_signs_in_once_and_leaves_the_address(visit: Visit) -> None:
    with visit.stranger() as guest:
        path = visit.server.login_url().removeprefix(visit.server.address)
        assert guest.head(path).status_code == 401, "who only looks uses nothing up"
        entered = guest.get(path)
        assert (entered.status_code, entered.headers["location"]) == (303, "/")
        cookie = entered.headers["set-cookie"]
        assert all(part in cookie.lower() for part in ("httponly", "samesite=strict", "path=/"))
        assert path.partition("=")[2] not in cookie
        assert guest.get("/").status_code == 200
    with visit.stranger() as second:
        again = second.get(path)
        assert again.status_code == 401
        assert "skillkit web" in again.text, "the page says how to get a new link"


@pytest.mark.parametrize("path", ["/", "/requests/x", "/history", "/audit", "/skills", "/skills/x", "/events", "/nope"])
def test_without_a_cookie_nothing_is_told(visit: Visit, path: str) -> None:
    asked(visit.world, "secret-question")
    with visit.stranger() as guest:
        answer = guest.get(path)
        assert answer.status_code == 401
        assert "secret-question" not in answer.text
        assert "/history" not in answer.text
        wrong = guest.get(path, headers={"cookie": f"{visit.server.access.cookie_name}=guessed"})
        assert wrong.status_code == 401
    assert visit.client.get("/").status_code == 200


def test_each_run_of_the_page_has_a_cookie_and_tokens_of_its_own() -> None:
    first, second = Access.fresh(), Access.fresh()
    assert first.cookie_name != second.cookie_name
    assert first.api_token != second.api_token
    assert first.form_age(second.form_token("s", "r"), "s", "r") is None
    assert first.form_age(first.form_token("s", "r"), "s", "r") is not None


def test_guessing_links_is_stopped_and_locks_nobody_out(tmp_path: Path) -> None:
    with visiting(tmp_path) as visit, visit.stranger() as guest:
        tries = [guest.get("/login", params={"token": f"guess-{number}"}) for number in range(FAILURES + 2)]
        assert [each.status_code for each in tries] == [401] * FAILURES + [429, 429]
        assert tries[-1].headers["retry-after"] == "60"
        assert visit.client.get("/").status_code == 200, "who is signed in stays it"
        path = visit.server.login_url().removeprefix(visit.server.address)
        assert guest.get(path).status_code == 303, "any page can send a browser to wrong links"


def test_guessing_the_tokens_of_the_api_is_stopped_and_locks_nobody_out(tmp_path: Path) -> None:
    with visiting(tmp_path) as visit, visit.stranger() as guest:
        guesses = [{"authorization": f"Bearer {number}"} for number in range(FAILURES + 1)]
        tries = [guest.get("/api/v1/requests", headers=headers).status_code for headers in guesses]
        assert tries == [401] * FAILURES + [429]
        assert guest.get("/api/v1/requests", headers=visit.bearer).status_code == 200


def test_who_was_quicker_with_a_link_than_its_owner_is_put_out(visit: Visit) -> None:
    path = visit.server.login_url().removeprefix(visit.server.address)
    with visit.stranger() as thief, visit.stranger() as owner:
        assert thief.get(path).status_code == 303
        assert thief.get("/").status_code == 200
        late = owner.get(path)
        assert late.status_code == 401
        assert "something else did" in late.text
        assert thief.get("/").status_code == 401
    assert visit.client.get("/").status_code == 200, "who came by another link stays"


def test_the_same_browser_may_follow_its_link_again(visit: Visit) -> None:
    path = visit.server.login_url().removeprefix(visit.server.address)
    with visit.stranger() as guest:
        assert [guest.get(path).status_code for _ in range(2)] == [303, 303]
        assert guest.get("/").status_code == 200
        with visit.stranger(headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}) as from_a_mail:
            assert from_a_mail.get(path).status_code == 401, "a browser sends no cookie from there"
        assert guest.get("/").status_code == 200


def test_a_link_that_turns_up_much_later_puts_nobody_out(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skillkit.web.access.RIVAL_SECONDS", 0.0)
    path = visit.server.login_url().removeprefix(visit.server.address)
    with visit.stranger() as owner, visit.stranger() as finder:
        assert owner.get(path).status_code == 303
        assert finder.get(path).status_code == 401
        assert owner.get("/").status_code == 200


def test_only_this_machine_is_listened_to(visit: Visit) -> None:
    assert visit.server.address.startswith("http://127.0.0.1:")


def test_the_servers_log_holds_no_token(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    with visiting(tmp_path) as visit:
        token = visit.server.login_url()
        visit.client.get(token.removeprefix(visit.server.address))
        visit.client.get("/api/v1/requests", headers=visit.bearer)
    said = capfd.readouterr()
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]
    assert "token" not in said.out + said.err + "".join(ours)


def test_a_websocket_gets_no_answer(visit: Visit) -> None:
    upgrade = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-key": "x", "sec-websocket-version": "13"}
    try:
        status = visit.client.get("/", headers=upgrade).status_code
    except httpx.HTTPError:
        return
    assert status != 101
