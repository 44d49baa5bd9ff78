"""The page inside somebody else's application."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount
from support.page_visits import asked
from support.running import wait_for

from skillkit import World
from skillkit.web import create_app
from skillkit.web.access import Access
from skillkit.web.server import listen


@contextmanager
def mounted(world: World, access: Access, hosts: Sequence[str] = ()) -> Iterator[str]:
    page = create_app(world, access=access, hosts=hosts)
    listening = listen(0)
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=[Mount("/team/approvals", page)]), log_config=None))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    assert wait_for(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def test_a_mounted_page_keeps_to_its_place(tmp_path: Path) -> None:
    access = Access.fresh()
    with World(tmp_path) as world, mounted(world, access) as address, httpx.Client(base_url=address) as client:
        asked(world, "mounted")
        assert client.get("/team/approvals/").status_code == 401
        entered = client.get(f"/team/approvals{access.new_login_path()}")
        assert (entered.status_code, entered.headers["location"]) == (303, "/team/approvals/")
        assert "Path=/team/approvals/" in entered.headers["set-cookie"]
        page = client.get("/team/approvals/").text
        places = re.findall(r'(?:href|src|action|data-events)="([^"#]+)', page)
        assert len(places) > 5
        assert all(place.startswith("/team/approvals/") for place in places)
        shown = client.get("/team/approvals/requests/mounted").text
        token = re.findall(r'name="token" value="([^"]+)"', shown)[0]
        answered = client.post(
            "/team/approvals/requests/mounted/answer",
            data={"token": token, "option": "no"},
            headers={"origin": address},
        )
        assert (answered.status_code, answered.headers["location"]) == (303, "/team/approvals/?answered=mounted")
        bearer = {"authorization": f"Bearer {access.api_token}"}
        assert client.get("/team/approvals/api/v1/requests", headers=bearer).json()["requests"] == []
        assert client.get("/team/approvals/api/v1/openapi.json").json()["servers"] == [
            {"url": "/team/approvals/api/v1"}
        ]
        assert client.get("/team/approvals/api/v1/requests").status_code == 401


def test_only_the_hosts_that_were_named_are_answered(tmp_path: Path) -> None:
    access = Access.fresh()
    named = ("approvals.example:8443",)
    with World(tmp_path) as world, mounted(world, access, named) as address, httpx.Client(base_url=address) as client:
        path = f"/team/approvals{access.new_login_path()}"
        assert client.get(path).status_code == 421, "loopback was not named"
        assert client.get(path, headers={"host": "approvals.example:8443"}).status_code == 303
