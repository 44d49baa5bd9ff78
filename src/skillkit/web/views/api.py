"""The same requests and answers as JSON, for programs that hold the token: an Electron window, an editor."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from skillkit._version import __version__
from skillkit.core.exceptions import ConfigurationError, RequestClosedError
from skillkit.core.store.requests import PastRequest
from skillkit.core.values.questions import OptionRequest
from skillkit.web.context import body_of, context_of
from skillkit.web.html import api_error, links_of
from skillkit.web.views.prompt import question_of
from skillkit.web.views.requests import CHANNEL

__all__ = ["answer_request", "description", "event_stream", "list_requests", "one_request"]

EVENTS = "text/event-stream"
NO_SUCH = "There is no request of this id in this world."


def list_requests(request: Request) -> Response:
    """Without what each carries: that is one call away and may be large."""
    waiting = [_structure(each) for each in context_of(request).world.pending()]
    for each in waiting:
        del each["context"]
    return JSONResponse({"schema_version": 1, "requests": waiting})


def one_request(request: Request) -> Response:
    found = context_of(request).world.find(request.path_params["request_id"])
    if found is None:
        return api_error(404, "not_found", NO_SUCH)
    return JSONResponse({"schema_version": 1, "request": _structure(found)})


async def answer_request(request: Request) -> Response:
    body = await body_of(request)
    if body is None:
        return api_error(413, "too_large", "An answer is a small JSON object.")
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        given = None
    option_id, created_at, grants, reason = _answer_fields(given if isinstance(given, dict) else {})
    is_bad = not isinstance(option_id, str) or not (created_at is None or isinstance(created_at, int | float))
    if is_bad or not all(isinstance(each, str) for each in (*grants, reason)):
        told = (
            'An answer is a JSON object: {"option_id": "...", "created_at": 0.0, "grants": ["..."], "reason": "..."}.'
        )
        return api_error(400, "bad_answer", told)
    return await run_in_threadpool(_answer, request, option_id, created_at, tuple(grants), reason)


def _answer_fields(given: dict[str, Any]) -> tuple[Any, Any, list[Any], Any]:
    grants = given.get("grants", [])
    return (
        given.get("option_id"),
        given.get("created_at"),
        grants if isinstance(grants, list) else [None],
        given.get("reason", ""),
    )


def _answer(
    request: Request, option_id: str, created_at: float | None, grants: tuple[str, ...], reason: str
) -> Response:
    world, request_id = context_of(request).world, request.path_params["request_id"]
    found = world.find(request_id)
    if found is None:
        return api_error(404, "not_found", NO_SUCH)
    if isinstance(found, PastRequest):
        return _closed(found)
    offered = [option.id for option in question_of(found).options]
    if option_id not in offered:
        return api_error(400, "no_such_option", f"Answer with one of: {', '.join(offered)}.")
    try:
        answer = world.answer(request_id, option_id, CHANNEL, grants=grants, reason=reason, created_at=created_at)
    except ConfigurationError as error:
        return api_error(400, "no_such_grant", str(error))
    except RequestClosedError as error:
        now = world.find(request_id)
        return _closed(now) if isinstance(now, PastRequest) else api_error(409, "asked_anew", str(error))
    return JSONResponse({"schema_version": 1, "answer": asdict(answer)})


def _closed(past: PastRequest) -> Response:
    """What it was answered with, or why it cannot be."""
    if past.answer is None:
        return api_error(410, past.outcome, f"The request was {past.outcome}; nothing was approved.")
    told = f"Answered before: {past.answer.option_id} through {past.answer.channel}."
    return api_error(409, "already_answered", told, answer=asdict(past.answer))


def description(request: Request) -> Response:
    """The file as it is, with the version and the address of this one."""
    content = json.loads((files("skillkit.web") / "static" / "openapi.json").read_bytes())
    content["info"]["version"] = __version__
    content["servers"] = [{"url": links_of(request).to("/api/v1")}]
    return JSONResponse(content)


async def event_stream(request: Request) -> Response:
    """News of what waits, for pages and programs; with `once`, what is true now and no more.

    That is for a page in the background, which may not hold a connection.
    """
    events = context_of(request).events
    if request.method == "HEAD":
        return Response(media_type=EVENTS)
    if "once" in request.query_params:
        pending = await run_in_threadpool(events.now)
        return Response(pending.event(), media_type=EVENTS)
    if events.is_full:
        return PlainTextResponse("Too many pages are open.\n", 503, {"retry-after": "10"})
    return StreamingResponse(events.stream(), media_type=EVENTS)


def _structure(found: OptionRequest | PastRequest) -> dict[str, Any]:
    """`state` is pending, answered, expired, withdrawn or abandoned."""
    request = found.request if isinstance(found, PastRequest) else found
    past = found if isinstance(found, PastRequest) else None
    return {
        "id": request.id,
        "state": past.outcome if past else "pending",
        "title": request.title,
        "message": request.message,
        "options": [asdict(option) for option in request.options],
        "grants": [asdict(tick) for tick in request.grants],
        "session_id": request.session_id,
        "created_at": request.created_at,
        "expires_at": request.expires_at,
        "answer": asdict(past.answer) if past and past.answer else None,
        "context": dict(request.context),
    }
