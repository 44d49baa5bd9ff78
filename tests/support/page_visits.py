"""A served page and whoever visits it, for tests over real HTTP: the signed-in person, and strangers."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import httpx

from skillkit import OptionRequest, World
from skillkit.core.store.base import steady_seconds
from skillkit.core.values.questions import OPTIONS, FileChange, Prompt, PromptCommand, RiskFlag
from skillkit.web.access import Access
from skillkit.web.server import PageServer
from skillkit.web.views.answers import CAREFUL_SECONDS
from skillkit.web.views.prompt import fingerprint

__all__ = ["Visit", "answer_over_http", "asked", "expire", "form_shown_ago", "prompt_of", "text_of", "visiting"]


@dataclass(frozen=True)
class Visit:
    """A page that is served, its world, and a browser that is signed in."""

    world: World
    server: PageServer
    client: httpx.Client

    @property
    def origin(self) -> dict[str, str]:
        return {"origin": self.server.address}

    @property
    def bearer(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.server.access.api_token}"}

    def token(self, request_id: str, *, is_old_enough: bool = True) -> str:
        """From the form on the request's page, as a browser has it; old enough for a yes without any waiting."""
        page = self.client.get(f"/requests/{request_id}")
        found = re.search(r'name="token" value="([^"]+)"', page.text)
        assert found, page.text
        if is_old_enough:
            return aged(self, request_id)
        return found[1]

    def answer(self, request_id: str, option: str, token: str | None = None, **headers: str) -> httpx.Response:
        form = {"token": self.token(request_id) if token is None else token, "option": option}
        return self.client.post(f"/requests/{request_id}/answer", data=form, headers={**self.origin, **headers})

    def stranger(self, **settings: Any) -> httpx.Client:
        """Somebody without the cookie."""
        return httpx.Client(base_url=self.server.address, timeout=30, **settings)


def aged(visit: Visit, request_id: str) -> str:
    """A form as it was a second ago: signed by the same secret, so that no test needs to sleep."""
    found = visit.world.find(request_id)
    assert isinstance(found, OptionRequest)
    access = visit.server.access
    return form_shown_ago(access, visit.client.cookies[access.cookie_name], fingerprint(found), CAREFUL_SECONDS + 0.1)


def form_shown_ago(access: Access, session: str, shown: str, seconds: float) -> str:
    """As `form_token` would have made it then."""
    moment = f"{time.monotonic() - seconds:.6f}"
    return f"{moment}_{access._signature(session, shown, moment)}"


@contextmanager
def visiting(folder: Path, **served: Any) -> Iterator[Visit]:
    with (
        World(folder) as world,
        PageServer(world, **served) as server,
        httpx.Client(base_url=server.address, follow_redirects=False, timeout=30) as client,
    ):
        assert client.get(server.login_url().removeprefix(server.address)).status_code == 303
        yield Visit(world, server, client)


def prompt_of(source: str = "echo hi\n", **given: Any) -> Prompt:
    """About one script of a skill that nobody wrote; every field can be given."""
    command = PromptCommand("scripts/run.sh", given.pop("argv", ("--all",)), given.pop("stdin", ""), source)
    fields: dict[str, Any] = {
        "skill": "demo",
        "origin": "/skills/demo",
        "reasons": ("Policy asks a person before a skill's first run.",),
        "risks": (RiskFlag("network", "Talks to somebody.", "scripts/run.sh", 1),),
        "changes": (FileChange("changed", "scripts/run.sh", "@@ -1 +1 @@\n-echo ho\n+echo hi\n"),),
        "commands": (command,),
        "walls": ("It cannot use the network.",),
        "digest": "d" * 64,
        **given,
    }
    return Prompt(**fields)


def asked(world: World, name: str = "one", prompt: Prompt | None = None, *, expires_in: float = 300) -> OptionRequest:
    """A pending request about a script, that nobody needs to wait for."""
    context = (prompt or prompt_of()).to_context()
    request = OptionRequest(name, f"Run {name}?", "Policy asks.", OPTIONS, context, "session-1")
    return world.open(request, expires_in=expires_in)


def expire(world: World, request_id: str, *, after: float = 0.0) -> None:
    """Its time is over then, however long this machine took to get here."""
    with world._store.connection() as connection:
        ends = (steady_seconds() + after, time.time() + after, request_id)
        connection.execute("update requests set deadline = ?, expires_at = ? where id = ?", ends)


def text_of(page: str) -> str:
    """What a reader reads: no tags, no spaces between lines."""
    return " ".join(unescape(re.sub(r"<[^>]+>", "", page)).split())


def answer_over_http(link: str, option: str, *, request_id: str = "", seconds: float = 30) -> str:
    """As a person does, on a page of another process: log in, open the question, wait a moment, answer; what it said."""
    address = link.partition("/login")[0]
    with httpx.Client(base_url=address, follow_redirects=True, timeout=30) as person:
        assert person.get(link).status_code == 200
        until, found = time.monotonic() + seconds, None
        wanted = re.compile(r'href="/requests/(%s)"' % (request_id or '[^"/]+'))
        while found is None:
            found = wanted.search(person.get("/").text)
            assert found or time.monotonic() < until, "nobody asked"
            time.sleep(0.1)
        page = person.get(f"/requests/{found[1]}").text
        token = re.search(r'name="token" value="([^"]+)"', page)
        assert token, page
        time.sleep(CAREFUL_SECONDS + 0.1)
        form = {"token": token[1], "option": option}
        answered = person.post(f"/requests/{found[1]}/answer", data=form, headers={"origin": address})
        assert answered.status_code == 200, answered.text
        return text_of(page)
