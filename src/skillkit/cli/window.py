"""`skillkit approvals --window`: the approval page as a window on the desktop."""

from __future__ import annotations

import threading
from pathlib import Path

import click

from skillkit.cli.options import Places, manager_for
from skillkit.cli.run import ended_by_signals

__all__ = ["run_window"]


def run_window(state_dir: Path | None) -> None:
    """Until the window is closed, or Ctrl-C; where there is only the browser, until Ctrl-C."""
    from skillkit.web import require_web

    require_web()
    from skillkit.web.approver import LocalPage
    from skillkit.web.desktop import Herald, notify
    from skillkit.web.window import show_window

    with (
        ended_by_signals(),
        manager_for(Places(state_dir=state_dir)) as manager,
        LocalPage(manager.state_dir, manager=manager) as page,
        Herald(page.world, lambda: notify(page.link)),
    ):
        try:
            shown = show_window(page.link())
            if not shown:
                click.echo(f"There is no desktop here. Log in once in a browser: {page.link()}", err=True)
            if page.is_ours and shown not in ("webview", "app"):
                click.echo("Ctrl-C ends the page.", err=True)
                threading.Event().wait()
        except KeyboardInterrupt:
            click.echo("", err=True)
