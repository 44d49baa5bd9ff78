"""What a person approved, trusted or granted and still holds -> a list, each with a button that ends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from json import dumps

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from skillkit.core.store.base import Store
from skillkit.core.store.opening import open_store
from skillkit.core.store.skills import KeptGrant, StandingGrants
from skillkit.core.store.trust import Approval, StandingApprovals
from skillkit.core.values.grants import grant_label
from skillkit.web.access import session_of
from skillkit.web.context import context_of, form_of
from skillkit.web.html import Refusal, links_of, problem_page, render

__all__ = ["end_page", "standing_page"]

LISTED = 500
OVER = ("Not ended", "It is over already, or this page was open for long. Look at the list again.")


@dataclass(frozen=True, slots=True)
class _Standing:
    """One word of a person that holds."""

    kept: Approval | KeptGrant

    @property
    def kind(self) -> str:
        return self.kept.kind if isinstance(self.kept, Approval) else "grant"

    @property
    def what(self) -> str:
        """What it allows, in words."""
        if isinstance(self.kept, KeptGrant):
            return grant_label(self.kept.grant)
        ticks = ", ".join(map(grant_label, self.kept.ticks))
        where = "in one session" if self.kept.kind == "session" else "for good"
        return f"runs {where}, with {ticks}" if ticks else f"runs {where}"

    @property
    def session(self) -> str:
        return (self.kept.session_id or "") if isinstance(self.kept, Approval) else ""

    @property
    def since(self) -> float:
        return self.kept.approved_at if isinstance(self.kept, Approval) else self.kept.granted_at

    @property
    def name(self) -> str:
        """Of exactly this: another content, or the same word given anew, is another one."""
        told = [self.kind, self.session, self.kept.skill, self.kept.folder, self.kept.digest, self.what, self.since]
        return sha256(dumps(told).encode()).hexdigest()

    def end(self, store: Store) -> None:
        skill, folder = self.kept.skill, self.kept.folder
        if isinstance(self.kept, KeptGrant):
            StandingGrants(store).remove(skill, [self.kept.grant], folder=folder)
        elif self.kept.kind == "trust":
            StandingApprovals(store).remove_trust(skill, folder=folder)
        else:
            StandingApprovals(store).end_in_sessions(skill=skill, session_id=self.kept.session_id)


def standing_page(request: Request) -> Response:
    context = context_of(request)
    session = session_of(request, context.access)
    with closing(open_store(context.world.folder, context.world.state)) as store:
        found = [*_standing(store)]
    listed = [(each, context.access.form_token(session, each.name)) for each in found[:LISTED]]
    values = {"standing": listed, "more": len(found) - LISTED, "ended": "ended" in request.query_params}
    return render(request, "standing", values)


async def end_page(request: Request) -> Response:
    """A pressed button: one word ends."""
    form = await form_of(request) or {}
    token, name = (form[field][0] if len(form.get(field, ())) == 1 else "" for field in ("token", "name"))
    return await run_in_threadpool(_end, request, token, name)


def _end(request: Request, token: str, name: str) -> Response:
    context = context_of(request)
    age = context.access.form_age(token, session_of(request, context.access), name)
    with closing(open_store(context.world.folder, context.world.state)) as store:
        found = next((each for each in _standing(store) if each.name == name), None)
        if found is None or age is None:
            return problem_page(request, Refusal.FORM.status, *OVER)
        found.end(store)
    return RedirectResponse(links_of(request).to("/standing", ended=1), 303)


def _standing(store: Store) -> Iterator[_Standing]:
    """Trust, then what holds for sessions, then grants."""
    approvals = StandingApprovals(store)
    yield from (_Standing(each) for each in (*approvals.trusted(), *approvals.in_sessions()))
    yield from (_Standing(each) for each in StandingGrants(store).all())
