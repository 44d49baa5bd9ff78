"""A listener -> server-sent events for as long as both sides want."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from skillkit.web.served import served

__all__ = ["event_stream"]

MEDIA_TYPE = "text/event-stream"


async def event_stream(request: Request) -> Response:
    """With `once`, what is true now and no more: for a page in the background, which may not hold a connection."""
    events = served(request).events
    if request.method == "HEAD":
        return Response(media_type=MEDIA_TYPE)
    if "once" in request.query_params:
        glance = await run_in_threadpool(events.glance)
        return Response(glance.event(), media_type=MEDIA_TYPE)
    if events.is_full:
        return PlainTextResponse("Too many pages are open.\n", 503, {"retry-after": "10"})
    return StreamingResponse(events.stream(), media_type=MEDIA_TYPE)
