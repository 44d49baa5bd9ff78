"""A link to the page -> a window of its own: pywebview's, else a browser's without its bars, else the browser."""

from __future__ import annotations

import tempfile
from importlib.util import find_spec

from skillkit.core.run import ProcessRequest, run_process
from skillkit.core.run.own_programs import own_environment, own_program
from skillkit.web.desktop import has_desktop, open_browser

__all__ = ["show_window"]

TITLE = "skillkit"
WIDTH, HEIGHT = 960, 1000
BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
    "microsoft-edge-stable",
    "brave-browser",
)
QUIET = (
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
)
LONGEST_SECONDS = 7 * 24 * 3600.0
KEPT_OUTPUT = 10_000


def show_window(link: str) -> str:
    """Until it is closed. Says which kind it was: "webview" or "app"; "browser" returns at once; "" is none."""
    if not has_desktop():
        return ""
    if find_spec("webview") is not None and _shown_by_webview(link):
        return "webview"
    if _shown_as_app(link):
        return "app"
    return "browser" if open_browser(link) else ""


def _shown_by_webview(link: str) -> bool:
    import webview
    from webview.errors import WebViewException

    try:
        webview.create_window(TITLE, link, width=WIDTH, height=HEIGHT, text_select=True, zoomable=True)
        webview.start(private_mode=True)
    except WebViewException:  # installed, but without a toolkit that can show something
        return False
    return True


def _shown_as_app(link: str) -> bool:
    """With a profile of its own, so that the window is no tab of a browser that runs, and leaves nothing behind."""
    program = own_program(*BROWSERS)
    if not program:
        return False
    with tempfile.TemporaryDirectory(prefix="skillkit-window-", ignore_cleanup_errors=True) as profile:
        argv = (program, f"--app={link}", f"--user-data-dir={profile}", f"--window-size={WIDTH},{HEIGHT}", *QUIET)
        environment = {
            **own_environment(),
            "TMPDIR": profile,
        }  # where it puts a socket that it forgets when it is killed
        request = ProcessRequest(argv, "/", environment, b"", LONGEST_SECONDS, KEPT_OUTPUT)
        try:
            ended = run_process(request)
        except OSError:
            return False
    return ended.timed_out or ended.status == 0
