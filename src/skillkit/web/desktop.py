"""A link, or the news that something waits -> the person's browser, a window, or a notification of their desktop.

A window is pywebview's, else a browser's without its bars, else the browser.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import Self

from skillkit.core.exceptions import StateUnavailableError
from skillkit.core.run.own_programs import find_own_program, own_environment
from skillkit.core.run.process import ProcessRequest, run_process
from skillkit.core.run.unwalled import spawn_detached
from skillkit.core.store.world import World
from skillkit.core.values.text import visible
from skillkit.web.live import Pending, Subscription

__all__ = ["BROWSERS", "LAUNCHERS", "Notifier", "has_desktop", "notify", "open_browser", "show_window"]

LOOK_SECONDS = 1.0
SHOWN_SECONDS = 60.0
OPEN = "open"
SUMMARY = "skillkit waits for you"
BODY = "A skill's script waits for your answer on the approval page."
LAUNCHERS = {"darwin": ("open",), "linux": ("xdg-open", "wslview", "x-www-browser", "sensible-browser")}
TITLE = "skillkit"
WIDTH, HEIGHT = 960, 1000
BROWSERS = tuple(
    "chromium chromium-browser google-chrome google-chrome-stable microsoft-edge microsoft-edge-stable "
    "brave-browser".split()
)
QUIET = tuple(
    "--no-first-run --no-default-browser-check --disable-sync --disable-background-networking "
    "--disable-component-update --disable-extensions".split()
)
LONGEST_SECONDS = 7 * 24 * 3600.0
KEPT_OUTPUT = 10_000
LONGEST_FAILURE = 200


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
    program = find_own_program(*LAUNCHERS.get(sys.platform, ("xdg-open",)))
    return bool(program) and spawn_detached((program, link))


def notify(link: Callable[[], str]) -> bool:
    """Says that something waits, never what it is; a click opens the page. No answer is given here."""
    if not has_desktop():
        return False
    program = find_own_program("notify-send")
    if program:
        threading.Thread(target=_notify, args=(program, link), name="skillkit-notify", daemon=True).start()
        return True
    return _notify_by_library()


def _notify(program: str, link: Callable[[], str]) -> None:
    """An old notify-send knows no buttons; then it only tells."""
    plain = (program, "--app-name=skillkit", SUMMARY, BODY)
    with_button = (program, f"--action={OPEN}=Open", *plain[1:])
    said = _output_of(with_button)
    if said == OPEN:
        open_browser(link())
    elif said is None:
        _output_of(plain)


def _output_of(argv: tuple[str, ...]) -> str | None:
    """What it printed, None when it failed."""
    try:
        ended = run_process(ProcessRequest(argv, "/", own_environment(), b"", SHOWN_SECONDS, 1000))
    except OSError:
        return None
    if ended.status and not ended.timed_out:
        return None
    return ended.stdout.decode("utf-8", "replace").strip()


def _notify_by_library() -> bool:
    try:
        from desktop_notifier.sync import DesktopNotifierSync
    except ImportError:
        return False
    with suppress(Exception):  # a desktop that takes no notifications is not a reason to stop
        DesktopNotifierSync(app_name="skillkit").send(title=SUMMARY, message=BODY)
        return True
    return False


def show_window(link: str, say: Callable[[str], object] = lambda _: None) -> str:
    """Until it is closed. Says which kind it was: "webview" or "app"; "browser" returns at once; "" is none.

    `say` is told what failed on the way.
    """
    if not has_desktop():
        return ""
    if find_spec("webview") is not None and _show_by_webview(link):
        return "webview"
    problem = _show_as_app(link)
    if problem is None:
        return "app"
    if problem:
        say(problem)
    return "browser" if open_browser(link) else ""


def _show_by_webview(link: str) -> bool:
    import webview
    from webview.errors import WebViewException

    try:
        webview.create_window(TITLE, link, width=WIDTH, height=HEIGHT, text_select=True, zoomable=True)
        webview.start(private_mode=True)
    except WebViewException:  # installed, but without a toolkit that can show something
        return False
    return True


def _show_as_app(link: str) -> str | None:
    """None when it was shown, else why not, or nothing where there is no such browser.

    With a profile of its own, so that the window is not a tab of a browser that runs, and leaves nothing behind.
    """
    program = find_own_program(*BROWSERS)
    if not program:
        return ""
    with tempfile.TemporaryDirectory(prefix="skillkit-window-", ignore_cleanup_errors=True) as profile:
        argv = (program, f"--app={link}", f"--user-data-dir={profile}", f"--window-size={WIDTH},{HEIGHT}", *QUIET)
        # Where it puts a socket that it forgets when it is killed.
        environment = {**own_environment(), "TMPDIR": profile}
        request = ProcessRequest(argv, "/", environment, b"", LONGEST_SECONDS, KEPT_OUTPUT)
        try:
            ended = run_process(request)
        except OSError as error:
            return f"{program} cannot be started: {error.strerror or error}."
    if ended.timed_out or ended.status == 0:
        return None
    return f"{program} failed ({_failure(ended.stderr)})."


def _failure(stderr: bytes) -> str:
    """What it said last, and of root the one thing that helps."""
    lines = [visible(line) for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    if any("--no-sandbox" in line for line in lines):
        return "it does not run as root; use a browser of an ordinary user, or pywebview"
    return lines[-1][:LONGEST_FAILURE] if lines else "it said nothing"


class Notifier:
    """Tells the desktop of every question that is new in a world, until it is closed."""

    def __init__(self, world: World, tell: Callable[[], object]) -> None:
        self._subscription = Subscription(world, LOOK_SECONDS)
        self._tell = tell
        self._known: frozenset[str] = frozenset()

    def __enter__(self) -> Self:
        """What waits already is shown by the page that opens now."""
        with suppress(StateUnavailableError):  # as long as it lasts nothing can be asked either
            self._known = frozenset(self._subscription.now().ids)
        self._subscription.add(self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        self._subscription.close()

    def _hear(self, pending: Pending) -> None:
        before, self._known = self._known, frozenset(pending.ids)
        if self._known - before:
            self._tell()
