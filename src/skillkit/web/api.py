"""The same requests and answers as JSON, for programs that hold the token: an Electron window, an editor."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from skillkit.core.decide.requests import PastRequest
from skillkit.core.exceptions import RequestClosedError
from skillkit.core.questions import OptionRequest
from skillkit.web.answers import CHANNEL, body_of
from skillkit.web.frame import links_of
from skillkit.web.openapi import openapi_description
from skillkit.web.prompts import options_of, shown_request
from skillkit.web.refusals import api_error
from skillkit.web.served import served

__all__ = ["answer_request", "description", "list_requests", "one_request"]

NO_SUCH = "There is no request of this id in this world."


def list_requests(request: Request) -> Response:
    """Without what each carries: that is one call away and may be large."""
    waiting = [summary(each) for each in served(request).world.pending()]
    return JSONResponse({"schema_version": 1, "requests": waiting})


def one_request(request: Request) -> Response:
    found = served(request).world.find(request.path_params["request_id"])
    if found is None:
        return api_error(404, "not_found", NO_SUCH)
    return JSONResponse({"schema_version": 1, "request": structure(found)})


async def answer_request(request: Request) -> Response:
    body = await body_of(request)
    if body is None:
        return api_error(413, "too_large", "An answer is a small JSON object.")
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        given = None
    option_id = given.get("option_id") if isinstance(given, dict) else None
    created_at = given.get("created_at") if isinstance(given, dict) else None
    if not isinstance(option_id, str) or not (created_at is None or isinstance(created_at, int | float)):
        return api_error(400, "bad_answer", 'An answer is a JSON object: {"option_id": "...", "created_at": 0.0}.')
    return await run_in_threadpool(answered, request, option_id, created_at)


def answered(request: Request, option_id: str, created_at: float | None) -> Response:
    world, request_id = served(request).world, request.path_params["request_id"]
    found = world.find(request_id)
    if found is None:
        return api_error(404, "not_found", NO_SUCH)
    if isinstance(found, PastRequest):
        return closed(found)
    offered = [option.id for option in options_of(found, shown_request(found))]
    if option_id not in offered:
        return api_error(400, "no_such_option", f"Answer with one of: {', '.join(offered)}.")
    try:
        answer = world.answer(request_id, option_id, CHANNEL, created_at=created_at)
    except RequestClosedError as error:
        now = world.find(request_id)
        return closed(now) if isinstance(now, PastRequest) else api_error(409, "asked_anew", str(error))
    return JSONResponse({"schema_version": 1, "answer": asdict(answer)})


def closed(past: PastRequest) -> Response:
    """What it was answered with, or why it cannot be."""
    if past.answer is None:
        return api_error(410, past.outcome, f"The request was {past.outcome}; nothing was approved.")
    content = {
        "schema_version": 1,
        "error": {
            "code": "already_answered",
            "message": f"Answered before: {past.answer.option_id} through {past.answer.channel}.",
        },
        "answer": asdict(past.answer),
    }
    return JSONResponse(content, 409)


def description(request: Request) -> Response:
    return JSONResponse(openapi_description(links_of(request).to("/api/v1")))


def summary(request: OptionRequest) -> dict[str, Any]:
    return {name: value for name, value in structure(request).items() if name != "context"}


def structure(found: OptionRequest | PastRequest) -> dict[str, Any]:
    """`state` is pending, answered, expired, withdrawn or abandoned."""
    request = found.request if isinstance(found, PastRequest) else found
    past = found if isinstance(found, PastRequest) else None
    return {
        "id": request.id,
        "state": past.outcome if past else "pending",
        "title": request.title,
        "message": request.message,
        "options": [asdict(option) for option in request.options],
        "session_id": request.session_id,
        "created_at": request.created_at,
        "expires_at": request.expires_at,
        "answer": asdict(past.answer) if past and past.answer else None,
        "context": dict(request.context),
    }
