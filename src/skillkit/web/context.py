"""What the views of one application share, and how a view gets at it."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request

from skillkit.core.manager import SkillManager
from skillkit.core.store.world import World
from skillkit.web.access import Access
from skillkit.web.live import Events

__all__ = ["Context", "context_of"]


@dataclass(frozen=True, slots=True)
class Context:
    """Which world is shown, to whom."""

    world: World
    manager: SkillManager | None
    access: Access
    events: Events


def context_of(request: Request) -> Context:
    found: Context = request.app.state.context
    return found
