"""The approval page: what waits for a person, answered in a browser; needs the extra `[web]`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from skillkit.core.exceptions import ConfigurationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.applications import Starlette

    from skillkit.core.manager import SkillManager
    from skillkit.core.store.world import World
    from skillkit.web.access import Access

__all__ = ["create_app", "require_web"]

PACKAGES = ("starlette", "uvicorn", "jinja2", "pygments")


def require_web() -> None:
    """One clear sentence where the extra is missing."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"The approval page needs {', '.join(missing)}. Install it: pip install 'skillkit-runtime[web]'."
        )


def create_app(
    world: World, *, manager: SkillManager | None = None, access: Access | None = None, hosts: Sequence[str] = ()
) -> Starlette:
    """The page as an ASGI application, to be served or mounted; `hosts` are the names it answers to, with port."""
    require_web()
    from skillkit.web.app import application

    return application(world, manager=manager, access=access, hosts=hosts)
