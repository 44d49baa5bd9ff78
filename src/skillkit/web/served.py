"""What the views of one application share, and how a view gets at it."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request

from skillkit.core.decide.requests import World
from skillkit.core.manager import SkillManager
from skillkit.web.access import Access
from skillkit.web.events import Events

__all__ = ["Served", "served"]


@dataclass(frozen=True, slots=True)
class Served:
    """Which world is shown, to whom."""

    world: World
    manager: SkillManager | None
    access: Access
    events: Events


def served(request: Request) -> Served:
    found: Served = request.app.state.served
    return found
