"""What the views of one application share, and how a view gets at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect, Request

if TYPE_CHECKING:
    from skillkit.core.manager import SkillManager
    from skillkit.core.store.world import World
    from skillkit.web.access import Access
    from skillkit.web.live import Events
    from skillkit.web.preparations import Preparations

__all__ = ["Context", "body_of", "context_of", "form_of"]

LARGEST_BODY = 64_000
MOST_FIELDS = 120


@dataclass(frozen=True, slots=True)
class Context:
    """Which world is shown, to whom."""

    world: World
    manager: SkillManager | None
    access: Access
    events: Events
    preparations: Preparations

    def close(self) -> None:
        """Ends what would not end with the server."""
        self.preparations.close()
        self.events.close()


def context_of(request: Request) -> Context:
    found: Context = request.app.state.context
    return found


async def body_of(request: Request) -> bytes | None:
    """All of a small body; None for a large one, which is not read to its end."""
    content = b""
    try:
        async for chunk in request.stream():
            content += chunk
            if len(content) > LARGEST_BODY:
                return None
    except ClientDisconnect:
        return None
    return content


async def form_of(request: Request) -> dict[str, list[str]] | None:
    """The fields of a posted form; None where it is larger than any form of ours."""
    body = await body_of(request)
    if body is None:
        return None
    try:
        return parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:  # more fields than any form of ours has
        return {}
