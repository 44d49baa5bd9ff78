"""A page that serves a world -> a file in the world's folder by which its owner's other programs find it."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from skillkit.core.paths import is_own_state, require_own_folder
from skillkit.core.paths.files import replace_file
from skillkit.core.run.process.kernel import started_at

__all__ = ["RunningPage", "announce", "keep_port", "kept_port", "running_page"]

FILE_NAME = "page.json"
EARLIER = "earlier"
PORT_FILE_NAME = "page-port"
LAST_PORT = 65535
PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class RunningPage:
    """Where a page is served, and by whom; the token stays with the owner of the folder."""

    address: str
    pid: int
    started: str
    """Tells the process from a later one with its number; empty where the system does not say."""
    token: str = field(repr=False)

    @property
    def is_alive(self) -> bool:
        with suppress(PermissionError):
            try:
                os.kill(self.pid, 0)
            except (ProcessLookupError, OverflowError):
                return False
        return started_at(self.pid) == self.started

    def new_link(self) -> str:
        """One that logs in once; "" when the page does not answer any more."""
        parts = urlsplit(self.address)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE_SECONDS)
        try:
            connection.request("POST", "/api/v1/login-links", headers={"Authorization": f"Bearer {self.token}"})
            response = connection.getresponse()
            return f"{self.address}{json.loads(response.read())['path']}" if response.status == http.client.OK else ""
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
            return ""
        finally:
            connection.close()


def running_page(folder: Path, port: int = 0) -> RunningPage | None:
    """The page that serves this world now, on that port if one is named; what another user put there is none."""
    pages = _running_pages(folder)
    return next((page for page in pages if not port or page.address.endswith(f":{port}")), None)


def _running_pages(folder: Path) -> list[RunningPage]:
    """The one that came last is first."""
    if not is_own_state(folder, folder / FILE_NAME):
        return []
    try:
        first = json.loads((folder / FILE_NAME).read_text(encoding="utf-8"))
        pages = [RunningPage(**each) for each in (first, *first.pop(EARLIER, ()))]
        return [page for page in pages if page.is_alive]
    except (OSError, ValueError, TypeError, AttributeError):  # nobody's, or damaged
        return []


def _tell(folder: Path, pages: Sequence[RunningPage]) -> None:
    if pages:
        first, *earlier = map(asdict, pages)
        replace_file(folder / FILE_NAME, json.dumps({**first, EARLIER: earlier}).encode())
    else:
        (folder / FILE_NAME).unlink(missing_ok=True)


def kept_port(folder: Path) -> int:
    """Where the world's page was served last, so that an address that somebody was told stays good; 0 for nowhere."""
    if not is_own_state(folder, folder / PORT_FILE_NAME):
        return 0
    try:
        port = int((folder / PORT_FILE_NAME).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0
    return port if 0 < port <= LAST_PORT else 0


def keep_port(folder: Path, port: int) -> None:
    if kept_port(folder) != port:
        replace_file(folder / PORT_FILE_NAME, str(port).encode())


@contextmanager
def announce(folder: Path, address: str, token: str) -> Iterator[None]:
    """For as long as the page serves, before those that serve already; only the owner can read the file."""
    page = RunningPage(address, os.getpid(), started_at(os.getpid()), token)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    require_own_folder(folder, may_be_link=True)
    _tell(folder, [page, *_running_pages(folder)])
    try:
        yield
    finally:
        told = _running_pages(folder)
        if page in told:
            _tell(folder, [each for each in told if each != page])
