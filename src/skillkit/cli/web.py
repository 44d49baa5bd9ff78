"""`skillkit web`: the page where a person sees what waits for their word, and gives it."""

from __future__ import annotations

import json
import os
import threading
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Unpack

import click

from skillkit.cli.options import Places, end_on_signals, json_option, manager_for, roots_options

__all__ = ["run_window", "web_command"]

LAST_PORT = 65535


@click.command("web")
@click.option("--port", type=click.IntRange(0, LAST_PORT), help="Serve on this port; a free one unless named.")
@click.option("--no-open", is_flag=True, help="Only print the link: no browser, no notifications.")
@roots_options
@json_option
def web_command(
    port: int | None,
    no_open: bool,
    as_json: bool,
    **places: Unpack[Places],
) -> None:
    """Show the approval page in your browser.

    It is served on this machine only. The link logs in one browser, once; run the command again for another
    link to a page that is already there. Ctrl-C ends the page; whoever waits for an answer goes on waiting.

    \b
    Examples:
      skillkit web
      skillkit web --port 8765 --no-open
      skillkit web --json
    """
    from skillkit.web import require_web

    require_web()
    from skillkit.web.approver import LocalPage
    from skillkit.web.presence import running_page

    with end_on_signals(), ExitStack() as held:
        manager = held.enter_context(manager_for(places))
        page = held.enter_context(LocalPage(manager.state_dir, manager=manager, port=port or 0))
        if port is not None and running_page(page.world.folder, port) is None:
            page.serve()
        link = page.link()
        if page.is_ours and not no_open:
            from skillkit.web.desktop import Notifier, notify

            # Before the browser: a question that came between the two would be told by neither.
            held.enter_context(Notifier(page.world, lambda: notify(page.link)))
        _show(link, is_ours=page.is_ours, opens=not no_open, as_json=as_json)
        if page.is_ours:
            _wait_for_interrupt()


def _show(link: str, *, is_ours: bool, opens: bool, as_json: bool) -> None:
    """The link goes where the person who started us looks, and nowhere else."""
    address = link.partition("/login")[0]
    if as_json:
        told = {"schema_version": 1, "address": address, "link": link, "served_here": is_ours, "pid": os.getpid()}
        click.echo(json.dumps(told))
    else:
        click.echo(f"Approval page: {address}" if is_ours else f"The page is already served: {address}")
        click.echo(f"Log in, once:  {link}")
    if opens:
        from skillkit.web.desktop import open_browser

        is_open = open_browser(link)
        click.echo("Your browser shows it." if is_open else "No browser was found; open the link yourself.", err=True)
    if is_ours:
        click.echo("Ctrl-C ends it.", err=True)


def _wait_for_interrupt() -> None:
    """Ctrl-C is how a page is meant to end."""
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        click.echo("", err=True)


def run_window(state_dir: Path | None) -> None:
    """Until the window is closed, or Ctrl-C; where there is only the browser, until Ctrl-C."""
    from skillkit.web import require_web

    require_web()
    from skillkit.web.approver import LocalPage
    from skillkit.web.desktop import Notifier, notify, show_window

    with (
        end_on_signals(),
        manager_for(Places(state_dir=state_dir)) as manager,
        LocalPage(manager.state_dir, manager=manager) as page,
        Notifier(page.world, lambda: notify(page.link)),
    ):
        try:
            shown = show_window(page.link(), say=partial(click.echo, err=True))
            if not shown:
                click.echo(f"No window could be shown here. Log in once in a browser: {page.link()}", err=True)
            if page.is_ours and shown not in ("webview", "app"):
                click.echo("Ctrl-C ends the page.", err=True)
                threading.Event().wait()
        except KeyboardInterrupt:
            click.echo("", err=True)
