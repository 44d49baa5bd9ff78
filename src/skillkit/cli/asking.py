"""Who is asked from the command line, and which session it belongs to."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from skillkit.cli.exit_codes import REFUSED
from skillkit.core.questions import Approver, Cancel, OptionAnswer, OptionRequest
from skillkit.core.run.kernel import started_at

__all__ = ["approver_for", "require_yes", "session_id"]

SESSION_VARIABLE = "SKILLKIT_SESSION"


def approver_for(state_dir: Path | None, *, yes: bool, wait: bool) -> Approver:
    """The flag, else the terminal, and with `wait` whoever answers in the world's store."""
    from skillkit.approvers.chain import ChainApprover
    from skillkit.approvers.flag import FlagApprover
    from skillkit.approvers.terminal import TerminalApprover

    if yes:
        return FlagApprover()
    terminal = TerminalApprover(state_dir=state_dir)
    return ChainApprover(terminal, AnnouncedStore(state_dir)) if wait else terminal


class AnnouncedStore:
    """The store's channel, saying on stderr that somebody has to answer."""

    channel = "store"

    def __init__(self, state_dir: Path | None) -> None:
        self.state_dir = state_dir

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:
        from skillkit.approvers.store import StoreApprover
        from skillkit.core.decide.requests import World
        from skillkit.web.presence import running_page

        with World(self.state_dir) as world:
            page = running_page(world.folder)
            elsewhere = f", or {page.address}" if page is not None else ""
            click.echo(
                f"skillkit: waiting for an answer: skillkit approvals show {request.id[:12]}{elsewhere}", err=True
            )
            return StoreApprover(world).ask(request, cancel)


def require_yes() -> None:
    """A no and the lack of an answer are refusals; Ctrl-C at a terminal is an interruption."""
    try:
        if click.confirm("Trust it as it is now?", err=True):
            return
        click.echo("It is not trusted.", err=True)
    except click.Abort:
        click.echo("\nIt is not trusted: nobody answered. Look at it, then add --yes.", err=True)
        if sys.stdin.isatty():
            raise
    raise click.exceptions.Exit(REFUSED)


def session_id() -> str | None:
    """`$SKILLKIT_SESSION`, else the terminal's session: its leader, told from later ones by when it started."""
    given = os.environ.get(SESSION_VARIABLE)
    if given or not hasattr(os, "getsid"):
        return given or None
    leader = os.getsid(0)
    started = started_at(leader)
    return f"terminal-{leader}-{started}" if started else None
