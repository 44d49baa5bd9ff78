"""A link, or the news that something waits -> the person's browser, or a notification of their desktop."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from skillkit.core.decide.requests import World
from skillkit.core.exceptions import StateUnavailableError
from skillkit.core.run import ProcessRequest, run_process
from skillkit.core.run.apart import start_apart
from skillkit.core.run.own_programs import own_environment, own_program

__all__ = ["Herald", "has_desktop", "notify", "open_browser"]

LOOK_SECONDS = 1.0
SHOWN_SECONDS = 60.0
OPEN = "open"
SUMMARY = "skillkit waits for you"
BODY = "A skill's script waits for your answer on the approval page."
LAUNCHERS = {"darwin": ("open",), "linux": ("xdg-open", "wslview", "x-www-browser", "sensible-browser")}


def has_desktop() -> bool:
    """Without one a launcher would start a browser for terminals, on a terminal that is somebody else's."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_browser(link: str) -> bool:
    """Whether something was started that should show it."""
    if not has_desktop():
        return False
    if os.name == "nt":
        os.startfile(link)  # type: ignore[attr-defined]  # noqa: S606 - Windows only; the link is our own
        return True
    program = own_program(*LAUNCHERS.get(sys.platform, ("xdg-open",)))
    return bool(program) and start_apart((program, link))


def notify(link: Callable[[], str]) -> bool:
    """Says that something waits, never what it is; a click opens the page. No answer is given here."""
    if not has_desktop():
        return False
    program = own_program("notify-send")
    if program:
        threading.Thread(target=_notified, args=(program, link), name="skillkit-notify", daemon=True).start()
        return True
    return _notified_by_library()


def _notified(program: str, link: Callable[[], str]) -> None:
    """An old notify-send knows no buttons; then it only tells."""
    plain = (program, "--app-name=skillkit", SUMMARY, BODY)
    with_button = (program, f"--action={OPEN}=Open", *plain[1:])
    ended = _ended(with_button)
    if ended == OPEN:
        open_browser(link())
    elif ended is None:
        _ended(plain)


def _ended(argv: tuple[str, ...]) -> str | None:
    """What it printed, None when it failed."""
    try:
        ended = run_process(ProcessRequest(argv, "/", own_environment(), b"", SHOWN_SECONDS, 1000))
    except OSError:
        return None
    if ended.status and not ended.timed_out:
        return None
    return ended.stdout.decode("utf-8", "replace").strip()


def _notified_by_library() -> bool:
    try:
        from desktop_notifier.sync import DesktopNotifierSync
    except ImportError:
        return False
    with suppress(Exception):  # a desktop that takes no notifications is no reason to stop
        DesktopNotifierSync(app_name="skillkit").send(title=SUMMARY, message=BODY)
        return True
    return False


class Herald:
    """Tells the desktop of every question that is new in a world, until it is closed."""

    def __init__(self, world: World, tell: Callable[[], object]) -> None:
        self._world = world
        self._tell = tell
        self._known: set[str] = set()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="skillkit-herald", daemon=True)

    def __enter__(self) -> Self:
        """What waits already is shown by the page that opens now."""
        self._known = self._now()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(LOOK_SECONDS):
            before, self._known = self._known, self._now()
            if self._known - before:
                self._tell()

    def _now(self) -> set[str]:
        try:
            return {name for _, name in self._world.pending_ids()}
        except StateUnavailableError:  # as long as it lasts nothing can be asked either
            return self._known
