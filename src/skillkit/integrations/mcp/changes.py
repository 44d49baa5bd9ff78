"""Skills that come, go or change their scripts -> word to the client that its lists are old."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ToolsListChanged,
)

from skillkit.core.exceptions import SkillKitError
from skillkit.core.manager import SkillManager
from skillkit.integrations.catalog import script_paths, skills_for_models
from skillkit.integrations.mcp.approval import Context, is_modern

__all__ = ["Changes", "ChangingServer"]

LOOK_SECONDS = 2.0
REMEMBERED_CONVERSATIONS = 256
EVENTS = (ToolsListChanged(), ResourcesListChanged(), PromptsListChanged())

Mark = tuple[object, ...]


class ChangingServer(Server[Any]):
    """Says that its lists change, and that it watches no single resource."""

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,  # noqa: ARG002 - ours are always the same
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> types.ServerCapabilities:
        changing = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        found = super().get_capabilities(
            changing, experimental_capabilities, extensions, protocol_version=protocol_version
        )
        if found.resources is not None:
            found.resources.subscribe = False
        return found


class Changes:
    """What each client knows. Older ones are told with their next call, those from 2026-07-28 on while they listen."""

    def __init__(self, manager: SkillManager, conversation_of: Callable[[Context], str]) -> None:
        self.manager = manager
        self.conversation_of = conversation_of
        self.mark: Mark = ()
        self.looked_at = float("-inf")
        self.known: dict[str, dict[str, Mark]] = {}

    async def middleware(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Around every request of an older client: which list it takes, and whether another that it took is old."""
        tellers: dict[str, Callable[[], Awaitable[None]]] = {
            "tools/list": ctx.session.send_tool_list_changed,
            "resources/list": ctx.session.send_resource_list_changed,
            "prompts/list": ctx.session.send_prompt_list_changed,
        }
        if is_modern(ctx) or ctx.method not in (*tellers, "tools/call"):
            return await call_next(ctx)
        # From before the list is made: what changes meanwhile is told once too often rather than never.
        known = self._known_by(ctx)
        if ctx.method in tellers:
            known[ctx.method] = await self.look(0)
        result = await call_next(ctx)
        mark = await self.look(LOOK_SECONDS)
        for listing, tell in tellers.items():
            if listing != ctx.method and known.get(listing, mark) != mark:
                known[listing] = mark
                await tell()
        return result

    async def listen(self, ctx: Context, params: types.SubscriptionsListenRequestParams) -> Any:  # noqa: ANN401 - theirs
        """One stream, and somebody who looks while it is open."""
        wanted = params.notifications.model_copy(update={"resource_subscriptions": None})
        bus = InMemorySubscriptionBus()
        watching = asyncio.create_task(self._watch(bus, await self.look(0)))
        try:
            return await ListenHandler(bus)(ctx, params.model_copy(update={"notifications": wanted}))
        finally:
            watching.cancel()

    async def _watch(self, bus: InMemorySubscriptionBus, known: Mark) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            mark = await self.look(LOOK_SECONDS / 2)
            if mark != known:
                known = mark
                for event in EVENTS:
                    await bus.publish(event)

    async def look(self, seconds: float) -> Mark:
        """What the lists are made of, not older than this."""
        if time.monotonic() - self.looked_at >= seconds:
            self.mark = await asyncio.to_thread(self._look_at_skills)
            self.looked_at = time.monotonic()
        return self.mark

    def _look_at_skills(self) -> Mark:
        """As before where looking fails: a folder that cannot be read now is not news."""
        try:
            self.manager.discover()
            skills = self.manager.list_skills()
            told = [(skill.name, skill.description, str(skill.skill_path)) for skill in skills]
            return (*told, *script_paths(self.manager, skills_for_models(self.manager)))
        except (OSError, SkillKitError):
            return self.mark

    def _known_by(self, ctx: Context) -> dict[str, Mark]:
        known = self.known.pop(conversation := self.conversation_of(ctx), {})
        self.known[conversation] = known
        while len(self.known) > REMEMBERED_CONVERSATIONS:
            del self.known[next(iter(self.known))]
        return known
