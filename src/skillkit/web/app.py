"""A world -> the ASGI application that shows it: which address gives which view."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from skillkit.core.decide.requests import World
from skillkit.core.exceptions import AuditUnavailableError, StateUnavailableError
from skillkit.core.manager import SkillManager
from skillkit.web import api
from skillkit.web.access import Access
from skillkit.web.answers import answer_page
from skillkit.web.audit_view import audit_page
from skillkit.web.events import Events
from skillkit.web.files import favicon, static_file, web_manifest
from skillkit.web.gate import SECURITY_HEADERS, Gate
from skillkit.web.history_view import history_page
from skillkit.web.login import login_page, new_login_link
from skillkit.web.markup import tag
from skillkit.web.pending_view import pending_page
from skillkit.web.refusals import Refusal, api_error, is_api, problem_page, refused
from skillkit.web.request_view import changes_page, request_page, source_page
from skillkit.web.served import Served
from skillkit.web.skills_view import skill_page, skills_page
from skillkit.web.streams import event_stream

__all__ = ["application"]


def application(
    world: World, *, manager: SkillManager | None = None, access: Access | None = None, hosts: Sequence[str] = ()
) -> Starlette:
    """As `skillkit.web.create_app`."""
    access = access or Access.fresh()
    app = Starlette(
        routes=routes(),
        middleware=[Middleware(Gate, access=access, hosts=hosts)],
        exception_handlers={
            HTTPException: on_http_error,
            StateUnavailableError: on_state_error,
            AuditUnavailableError: on_state_error,
            Exception: on_failure,
        },
    )
    app.router.redirect_slashes = False
    app.state.served = Served(world, manager, access, Events(world))
    return app


def routes() -> list[BaseRoute]:
    """A request's id may hold a slash, so what stands behind it is matched first."""
    one = "/requests/{request_id:path}"
    return [
        Route("/", pending_page),
        Route("/login", login_page),
        Route(f"{one}/answer", answer_page, methods=["POST"]),
        Route(f"{one}/source/{{number:int}}", source_page),
        Route(f"{one}/changes", changes_page),
        Route(one, request_page),
        Route("/history", history_page),
        Route("/audit", audit_page),
        Route("/skills", skills_page),
        Route("/skills/{name:path}", skill_page),
        Route("/events", event_stream),
        Route("/static/{name}", static_file),
        Route("/favicon.svg", favicon),
        Route("/manifest.webmanifest", web_manifest),
        Route("/api/v1/requests", api.list_requests),
        Route(f"/api/v1{one}/answer", api.answer_request, methods=["POST"]),
        Route(f"/api/v1{one}", api.one_request),
        Route("/api/v1/events", event_stream),
        Route("/api/v1/login-links", new_login_link, methods=["POST"]),
        Route("/api/v1/openapi.json", api.description),
    ]


def on_http_error(request: Request, error: Exception) -> Response:
    is_method = isinstance(error, HTTPException) and error.status_code == Refusal.METHOD.status
    return refused(request, Refusal.METHOD if is_method else Refusal.NOT_FOUND)


def on_state_error(request: Request, error: Exception) -> Response:
    """The sentence names the file and the remedy."""
    if is_api(request):
        return api_error(503, "state_unavailable", str(error))
    return problem_page(request, 503, "The world's state cannot be read", tag("p", str(error)))


def on_failure(request: Request, error: Exception) -> Response:  # noqa: ARG001 - the server logs it
    """Made outside of the gate, so it brings its own headers."""
    response = refused(request, Refusal.FAILED)
    response.headers.update(SECURITY_HEADERS)
    return response
