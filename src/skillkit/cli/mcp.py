"""`skillkit mcp`: skills for any client that speaks the Model Context Protocol."""

from __future__ import annotations

import gc
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Unpack

import click

from skillkit.cli.elsewhere import fleet_options, runner_here
from skillkit.cli.options import (
    Chosen,
    current_workspace,
    end_on_signals,
    manager_for,
    policy_options,
    require_person_to_loosen,
    roots_options,
)
from skillkit.core.exceptions import ConfigurationError, SkillKitError
from skillkit.core.manager import SkillManager
from skillkit.core.store.processes import noted_server
from skillkit.core.values.policy import FIELDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.web.approver import LocalPage

__all__ = ["mcp_command"]

TOKEN_VARIABLE = "SKILLKIT_MCP_TOKEN"  # noqa: S105 - the name of a variable, no secret
HOST, PORT = "127.0.0.1", 8763
SHORTEST_TOKEN = 16
LONGEST_WAIT_SECONDS = 3600


def _parse_address(_: click.Context, __: click.Parameter, given: str | None) -> tuple[str, int] | None:
    """`HOST:PORT`, `:PORT`, `PORT` or `[::1]:PORT`."""
    if given is None:
        return None
    host, _colon, port = given.rpartition(":")
    if not (port.isascii() and port.isdecimal() and int(port) <= 65535):  # noqa: PLR2004 - ports end there
        raise click.BadParameter(f"{given!r} is no HOST:PORT. Write for example {HOST}:{PORT}.")
    return host.removeprefix("[").removesuffix("]") or HOST, int(port)


@click.command("mcp")
@click.option(
    "--http",
    "address",
    is_flag=False,
    flag_value=f"{HOST}:{PORT}",
    callback=_parse_address,
    metavar="[HOST:PORT]",
    help=f"Serve streamable HTTP instead of stdio; {HOST}:{PORT} unless named.",
)
@click.option(
    "--approval-wait",
    type=click.FloatRange(0, LONGEST_WAIT_SECONDS),
    default=45.0,
    show_default=True,
    help="Seconds a call waits for 'skillkit approvals answer'.",
)
@click.option("--ask-locally", is_flag=True, help="Never ask through the client, only by 'skillkit approvals'.")
@click.option("--workspace", type=click.Path(path_type=Path, file_okay=False), help="The folder the agent works in.")
@click.option(
    "--run-on-load",
    type=click.Choice(FIELDS["run_on_load"].choices),
    help="What runs when a skill is loaded: what a person says yes to, what was approved as a list, or nothing.",
)
@fleet_options
@policy_options
@roots_options
def mcp_command(
    address: tuple[str, int] | None,
    approval_wait: float,
    ask_locally: bool,
    workspace: Path | None,
    **chosen: Unpack[Chosen],
) -> None:
    """Serve skills to MCP clients: tools, resources and prompts.

    Before a script first runs, the client shows its user a form; where it cannot, the question waits on the approval
    page ('skillkit web') and for 'skillkit approvals answer'. Over HTTP each request needs a bearer token:
    $SKILLKIT_MCP_TOKEN, or one that is made up and told on stderr.

    \b
    Examples:
      skillkit mcp                                  on stdio, as clients start it
      skillkit mcp --skills ./skills                with these skills only
      skillkit mcp --http                           on http://127.0.0.1:8763/mcp
      skillkit mcp --approval-wait 10 --ask-locally
      skillkit mcp --run-on-load never              instructions come at once, commands are only listed
    """
    from skillkit.integrations.mcp import require_mcp

    require_mcp()
    require_person_to_loosen(chosen, "mcp", is_server=True)
    with _collector_paused():
        from skillkit.integrations.mcp.server import create_server

    with end_on_signals(), ExitStack() as held:
        manager = held.enter_context(
            manager_for(chosen, workspace=workspace or current_workspace(chosen.get("state_dir")), runner=runner_here())
        )
        _note_server(held, manager.state_dir)
        page = held.enter_context(_local_page(manager))
        server = create_server(manager, approval_wait=approval_wait, asks_client=not ask_locally, page=page)
        if address is None:
            from skillkit.integrations.mcp.stdio import serve_stdio

            serve_stdio(server)
        else:
            from skillkit.integrations.mcp.http import serve_http

            serve_http(server, *address, _token_for(*address), _say)


def _note_server(held: ExitStack, state_dir: Path) -> None:
    """Where nothing can be written nothing can be approved either, and whoever only reads skills is served."""
    try:
        held.enter_context(noted_server(state_dir))
    except (OSError, SkillKitError) as error:
        _say(f"who started this server cannot be noted: {error}")


@contextmanager
def _collector_paused() -> Iterator[None]:
    """What the SDK brings stays for good; to look through it again and again takes a tenth of the start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def _local_page(manager: SkillManager) -> Iterator[Callable[[], str] | None]:
    """Gives the address of the world's approval page, started by the first question if there is none."""
    from skillkit.web import require_web

    try:
        require_web()
    except ConfigurationError:  # without the extra there are the other ways to answer
        yield None
        return
    with ExitStack() as held:

        @cache
        def page() -> LocalPage:
            from skillkit.web.approver import LocalPage  # most servers ask nobody by it

            return held.enter_context(LocalPage(manager.state_dir, manager=manager))

        lock = threading.Lock()

        def address() -> str:
            try:
                with lock:
                    return page().address()
            except (OSError, SkillKitError) as error:  # there are other ways to answer
                _say(f"the approval page cannot be served: {error}")
                return ""

        yield address


def _token_for(host: str, port: int) -> str:
    """The user's, else a new one, told where only the user looks."""
    given = os.environ.get(TOKEN_VARIABLE, "")
    if not given:
        given = secrets.token_urlsafe(32)
        _say(f"bearer token: {given}")
    elif len(given) < SHORTEST_TOKEN or not (given.isascii() and given.isprintable()) or " " in given:
        raise click.UsageError(f"${TOKEN_VARIABLE} must have at least {SHORTEST_TOKEN} plain characters.")
    if host not in (HOST, "localhost", "::1"):
        _say(f"{host}:{port} may be reached by others, and the token travels unencrypted; put TLS in front of it.")
    return given


def _say(text: str) -> None:
    click.echo(f"skillkit mcp: {text}", err=True)
