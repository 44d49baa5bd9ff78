"""A request -> the world's store and a page that shows it, where a person answers in a browser."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from skillkit.approvers.store import StoreApprover
from skillkit.core.exceptions import ApprovalUnavailableError, ConfigurationError, StateUnavailableError
from skillkit.core.manager import SkillManager
from skillkit.core.store.world import LIFETIME_SECONDS, World
from skillkit.core.values.questions import OptionRequest
from skillkit.web import require_web
from skillkit.web.desktop import notify, open_browser
from skillkit.web.presence import announce, keep_port, kept_port, running_page

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.web.server import PageServer

__all__ = ["LocalPage", "WebApprover"]


class LocalPage:
    """The page of a world: one that serves it already, else one that this process serves from first use until closed.

    Its `address` may be told to anybody, and stays the same where nobody took the port meanwhile; a link that logs in
    is for a person only.
    """

    def __init__(
        self, state_dir: str | Path | None = None, *, manager: SkillManager | None = None, port: int = 0
    ) -> None:
        require_web()
        self.world = World(state_dir, state=None if manager is None else manager.state)
        self.manager = manager
        self.port = port
        self._lock = threading.RLock()
        self._open = ExitStack()
        self._server: PageServer | None = None

    @property
    def is_ours(self) -> bool:
        """Whether this process serves it."""
        return self._server is not None

    def address(self) -> str:
        """Where it is; a page is started if there is none."""
        with self._lock:
            running = None if self._server else running_page(self.world.folder, self.port)
            return (running or self.serve()).address

    def link(self) -> str:
        """One that logs a person in, once; a page of another process that gives none is replaced by our own."""
        with self._lock:
            running = None if self._server else running_page(self.world.folder, self.port)
            return (running.new_link() if running is not None else "") or self.serve().login_url()

    def serve(self) -> PageServer:
        """From this process, even if another one does already."""
        with self._lock:
            if self._server is None:
                with ExitStack() as opening:
                    server = self._started()
                    opening.callback(server.stop)
                    opening.enter_context(announce(self.world.folder, server.address, server.access.api_token))
                    keep_port(self.world.folder, server.port)
                    self._open = opening.pop_all()
                self._server = server
            return self._server

    def _started(self) -> PageServer:
        """On the port that was named, else where the world's page was before, else on a free one."""
        from skillkit.web.server import PageServer

        port = self.port or kept_port(self.world.folder)
        try:
            return PageServer(self.world, manager=self.manager, port=port).start()
        except ConfigurationError:
            if self.port or not port:
                raise
            return PageServer(self.world, manager=self.manager).start()

    def close(self) -> None:
        with self._lock:
            self._server = None
            self._open.close()
        self.world.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class WebApprover(StoreApprover):
    """Waits for whoever answers first; the answer names their channel, `web` for the page.

    With `open_browser` the first question opens the page; every later one only notifies.
    """

    channel = "web"

    def __init__(
        self,
        state_dir: str | Path | None = None,
        *,
        manager: SkillManager | None = None,
        open_browser: bool = False,
        expires_in: float = LIFETIME_SECONDS,
    ) -> None:
        self.page = LocalPage(state_dir, manager=manager)
        super().__init__(self.page.world, expires_in, announce=self._show)
        self._opens = open_browser
        self._lock = threading.Lock()
        self._was_opened = False

    def _show(self, _: OptionRequest) -> None:
        try:
            self.page.address()
        except (OSError, ConfigurationError, StateUnavailableError) as error:
            raise ApprovalUnavailableError.because("the approval page cannot be served", str(error)) from error
        with self._lock:
            is_first, self._was_opened = not self._was_opened, True
        if self._opens and is_first:
            open_browser(self.page.link())
        elif self._opens:
            notify(self.page.link)

    def address(self) -> str:
        return self.page.address()

    def close(self) -> None:
        self.page.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
