"""A world -> its page on a loopback port of this machine, in a thread of this process."""

from __future__ import annotations

import socket
import threading
import time
from typing import Self

import uvicorn

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.manager import SkillManager
from skillkit.core.store.world import World
from skillkit.listening import LimitedServer, server_config
from skillkit.web import create_app
from skillkit.web.access import Access

__all__ = ["PageServer"]

HOST = "127.0.0.1"
USUAL_PORT = 80
START_SECONDS = 30.0
LAST_SECONDS = 1
STOP_SECONDS = 10.0


class PageServer:
    """Reachable from this machine only; whoever has a link from `login_url` may answer."""

    def __init__(self, world: World, manager: SkillManager | None = None, port: int = 0) -> None:
        self._world = world
        self._manager = manager
        self._port = port
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self.access = Access.fresh(only_own_user=True)
        self.address = ""

    def start(self) -> Self:
        """Returns when the page can be opened."""
        listening = listen(self._port)
        port = self._port = listening.getsockname()[1]
        self.address = f"http://{HOST}:{port}"
        app = create_app(self._world, manager=self._manager, access=self.access, hosts=own_names(port))
        config = server_config(app, lifespan="off", timeout_graceful_shutdown=LAST_SECONDS)
        server = self._server = LimitedServer(config, before_shutdown=app.state.context.close)
        thread = threading.Thread(target=server.run, args=([listening],), name="skillkit-web", daemon=True)
        self._thread = thread
        thread.start()
        until = time.monotonic() + START_SECONDS
        while not server.started:
            if not thread.is_alive() or time.monotonic() > until:
                listening.close()
                raise ConfigurationError(f"The page on {self.address} did not start. The log says why.")
            time.sleep(0.005)
        return self

    @property
    def port(self) -> int:
        return self._port

    def login_url(self) -> str:
        """A new link for one use."""
        return f"{self.address}{self.access.new_login_path()}"

    def stop(self) -> None:
        """Ends open streams at once; what is being answered is answered."""
        server, thread = self._server, self._thread
        self._server = self._thread = None
        if server is not None and thread is not None:
            server.should_exit = True
            thread.join(STOP_SECONDS)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def own_names(port: int) -> tuple[str, ...]:
    """What a client calls the page; of the usual port none of them says the number."""
    names = (HOST, "localhost")
    return (*(f"{name}:{port}" for name in names), *(names if port == USUAL_PORT else ()))


def listen(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise ConfigurationError(
            f"Nothing can listen on {HOST}:{port}: {error.strerror or error}. Name another port, or 0."
        ) from error
