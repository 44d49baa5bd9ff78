"""A world -> the ASGI application that shows it: which address gives which view."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from skillkit.core.exceptions import AuditUnavailableError, StateUnavailableError
from skillkit.core.manager import SkillManager
from skillkit.core.store.world import World
from skillkit.web.access import SECURITY_HEADERS, Access, Gate, login_page, new_login_link
from skillkit.web.context import Context
from skillkit.web.html import Refusal, api_error, is_api, path_within, problem_page, refuse
from skillkit.web.live import Events
from skillkit.web.preparations import Preparations
from skillkit.web.views import answers, api, packages, requests
from skillkit.web.views.audit import audit_page, run_page, running_page
from skillkit.web.views.skills import skill_page, skills_page
from skillkit.web.views.standing import end_page, standing_page

__all__ = ["application"]

MEDIA_TYPES = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "favicon.svg": "image/svg+xml",
    "manifest.webmanifest": "application/manifest+json",
}


def application(
    world: World, *, manager: SkillManager | None = None, access: Access | None = None, hosts: Sequence[str] = ()
) -> Starlette:
    """As `skillkit.web.create_app`."""
    access = access or Access.fresh()
    app = Starlette(
        routes=_routes(),
        middleware=[Middleware(Gate, access=access, hosts=hosts)],
        exception_handlers={
            HTTPException: _on_http_error,
            StateUnavailableError: _on_state_error,
            AuditUnavailableError: _on_state_error,
            Exception: _on_failure,
        },
    )
    app.router.redirect_slashes = False
    app.state.context = Context(world, manager, access, Events(world), Preparations(world, manager))
    return app


def _routes() -> list[BaseRoute]:
    """A request's id may hold a slash, so what stands behind it is matched first."""
    one = "/requests/{request_id:path}"
    return [
        Route("/", requests.pending_page),
        Route("/login", login_page),
        Route("/groups/answer", answers.decline_page, methods=["POST"]),
        Route(f"{one}/answer", answers.answer_page, methods=["POST"]),
        Route(f"{one}/source/{{number:int}}", requests.source_page),
        Route(f"{one}/files/{{number:int}}", requests.file_page),
        Route(f"{one}/files", requests.files_page),
        Route(f"{one}/changes", requests.changes_page),
        Route(one, requests.request_page),
        Route("/history", requests.history_page),
        Route("/audit", audit_page),
        Route("/audit/{number:int}", run_page),
        Route("/running", running_page),
        Route("/packages/{name:path}", packages.start_page, methods=["POST"]),
        Route("/packages/{name:path}", packages.packages_page),
        Route("/standing", standing_page),
        Route("/standing/end", end_page, methods=["POST"]),
        Route("/skills", skills_page),
        Route("/skills/{name:path}", skill_page),
        Route("/events", api.event_stream),
        Route("/static/{name}", _static_file),
        Route("/favicon.svg", _static_file),
        Route("/manifest.webmanifest", _static_file),
        Route("/api/v1/requests", api.list_requests),
        Route(f"/api/v1{one}/answer", api.answer_request, methods=["POST"]),
        Route(f"/api/v1{one}", api.one_request),
        Route("/api/v1/events", api.event_stream),
        Route("/api/v1/login-links", new_login_link, methods=["POST"]),
        Route("/api/v1/openapi.json", api.description),
    ]


def _static_file(request: Request) -> Response:
    """By name from a short list; a path never reaches the file system."""
    name = path_within(request).removeprefix("/static").removeprefix("/")
    if name not in MEDIA_TYPES:
        return refuse(request, Refusal.NOT_FOUND)
    return Response((files("skillkit.web") / "static" / name).read_bytes(), media_type=MEDIA_TYPES[name])


def _on_http_error(request: Request, error: Exception) -> Response:
    is_method = isinstance(error, HTTPException) and error.status_code == Refusal.METHOD.status
    return refuse(request, Refusal.METHOD if is_method else Refusal.NOT_FOUND)


def _on_state_error(request: Request, error: Exception) -> Response:
    """The sentence names the file and the remedy."""
    if is_api(request):
        return api_error(503, "state_unavailable", str(error))
    return problem_page(request, 503, "The world's state cannot be read", str(error))


def _on_failure(request: Request, error: Exception) -> Response:  # noqa: ARG001 - the server logs it
    """Made outside of the gate, so it brings its own headers."""
    response = refuse(request, Refusal.FAILED)
    response.headers.update(SECURITY_HEADERS)
    return response
