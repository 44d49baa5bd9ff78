"""`skillkit approvals`: see what waits for a person's word, and give it."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import click

from skillkit.cli import REFUSED, WRONG_USAGE
from skillkit.cli.deciding import require_person
from skillkit.cli.options import MissingError, json_option, state_option
from skillkit.cli.output import echo_json, moment_text, screen_width, table
from skillkit.core.store.requests import PastRequest, require_offered
from skillkit.core.store.trust import Approval
from skillkit.core.store.world import World
from skillkit.core.values.questions import OptionRequest, Prompt
from skillkit.core.values.text import on_one_line, visible
from skillkit.present.request import whole_text
from skillkit.present.terminal import behind_bar

__all__ = ["approvals"]

CHANNEL = "cli"
NO = "no"
SHORT_ID = 12
NEWEST = 20

_HEADINGS = ("ID", "EXPIRES IN", "SESSION", "OPTIONS", "QUESTION")
_SESSION_HEADINGS = ("SKILL", "SESSION", "DIGEST", "SINCE (UTC)", "BY", "FOLDER")
_PAST_HEADINGS = ("ID", "ASKED (UTC)", "OUTCOME", "QUESTION")


@click.group("approvals", invoke_without_command=True)
@click.option("--window", is_flag=True, help="Show the approval page in a window of its own.")
@state_option
@click.pass_context
def approvals(ctx: click.Context, window: bool, state_dir: Path | None) -> None:
    """See what waits for your word, and give it.

    \b
    Examples:
      skillkit approvals list                            what is waiting
      skillkit approvals show 3f2a81c09d4e               all about one question
      skillkit approvals answer 3f2a81c09d4e yes_once    see it and answer it
      skillkit approvals sessions                        what you approved for a session
      skillkit approvals end csv-report                  ask again from now on
      skillkit approvals --window                        the same on a page, in a window
    """
    if window and ctx.invoked_subcommand is None:
        from skillkit.cli.web import run_window

        run_window(state_dir)
    elif ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
        ctx.exit(WRONG_USAGE)
    elif window or state_dir is not None:
        raise click.UsageError("--window stands alone; --state-dir stands behind the command it is for.")


@approvals.command("list")
@click.option("--history", "is_past", is_flag=True, help="Show what is over instead, the newest first.")
@click.option("-n", "count", type=click.IntRange(min=0), default=NEWEST, show_default=True, help="How much history.")
@state_option
@json_option
def list_command(is_past: bool, count: int, state_dir: Path | None, as_json: bool) -> None:
    """List the questions that wait for an answer, the oldest first.

    \b
    Examples:
      skillkit approvals list
      skillkit approvals list --history
      skillkit approvals list --json
    """
    with World(state_dir) as world:
        if is_past:
            _list_past(world.history(count), world.folder, as_json=as_json)
        else:
            _list_pending(world.pending(is_patient=True), world.folder, as_json=as_json)


def _list_pending(requests: list[OptionRequest], folder: Path, *, as_json: bool) -> None:
    if as_json:
        echo_json(requests=requests)
    elif requests:
        ids = _short_ids(requests)
        rows = [(name, *_cells(request)) for name, request in zip(ids, requests, strict=True)]
        click.echo(table(_HEADINGS, rows, whole="OPTIONS", spare="SESSION"))
        click.echo(f"hint: skillkit approvals answer {ids[0]} OPTION", err=True)
    else:
        click.echo(f"Nothing waits for an answer in {visible(str(folder))}.", err=True)
        click.echo("hint: questions of another world are found with --state-dir.", err=True)


def _list_past(past: list[PastRequest], folder: Path, *, as_json: bool) -> None:
    if as_json:
        echo_json(history=past)
    elif past:
        ids = _short_ids([each.request for each in past])
        click.echo(table(_PAST_HEADINGS, [(name, *_past_cells(each)) for name, each in zip(ids, past, strict=True)]))
    else:
        click.echo(f"Nothing was asked yet in {visible(str(folder))}.", err=True)


@approvals.command("show")
@click.argument("request_id", metavar="ID")
@click.option("--all", "is_whole", is_flag=True, help="Show every line that differs from what was approved.")
@state_option
@json_option
def show_command(request_id: str, is_whole: bool, state_dir: Path | None, as_json: bool) -> None:
    """Show one question; the first 12 characters of its id are enough.

    \b
    Examples:
      skillkit approvals show 3f2a81c09d4e
      skillkit approvals show 3f2a81c09d4e --json
    """
    with World(state_dir) as world:
        request = _waiting(world, request_id)
    if request is None:
        raise MissingError(f"No question {request_id!r} is waiting. 'skillkit approvals list' shows which are.")
    if is_whole:
        request = _with_every_change(request, world.folder)
    if as_json:
        echo_json(request=request)
    else:
        click.echo(_request_text(request))


@approvals.command("answer", short_help="Answer one question; the first answer wins.")
@click.argument("request_id", metavar="ID")
@click.argument("option_id", metavar="OPTION")
@click.option("--grant", "grants", metavar="GRANT", multiple=True, help="With a yes, open this too (repeatable).")
@click.option("--reason", default="", help="With a no, what the model is told.")
@state_option
@json_option
def answer_command(
    request_id: str, option_id: str, grants: tuple[str, ...], reason: str, state_dir: Path | None, as_json: bool
) -> None:
    """Answer one question with the id of one of its options; the first answer wins.

    The whole id, as 'skillkit approvals show' gives it, stands for all that the question says. With the first 12
    characters of it the question is shown and the answer confirmed on the terminal: another question may have come
    to begin alike.

    \b
    Examples:
      skillkit approvals answer 3f2a81c09d4e yes_once
      skillkit approvals answer 3f2a81c09d4e yes_in_session
      skillkit approvals answer 3f2a81c09d4e yes_once --grant secret:WEATHER_API_KEY
      skillkit approvals answer 3f2a81c09d4e no --reason "use last year's file"
    """
    require_person(state_dir, "approvals answer")
    with World(state_dir) as world:
        request = _waiting(world, request_id)
        if request is None:
            request = _named_request([past.request for past in world.history()], request_id)
        if request is None:
            raise MissingError(f"There is no question {request_id!r}. 'skillkit approvals list' shows what waits.")
        _require_fitting(request, option_id, grants, reason)
        require_offered(request, option_id, grants)
        if request.id != request_id and not _is_refusal(request, option_id):
            _require_seen(request, option_id)
        answer = world.answer(
            request.id, option_id, CHANNEL, grants=grants, reason=reason, created_at=request.created_at
        )
    if as_json:
        echo_json(answer=answer)
    else:
        click.echo(f"Answered {answer.option_id!r}: {on_one_line(request.title)}")


@approvals.command("sessions")
@state_option
@json_option
def sessions_command(state_dir: Path | None, as_json: bool) -> None:
    """List what is approved for a session and still holds.

    \b
    Examples:
      skillkit approvals sessions
      skillkit approvals sessions --json
    """
    with World(state_dir) as world:
        found = world.session_approvals()
    if as_json:
        echo_json(approvals=found)
    elif found:
        click.echo(table(_SESSION_HEADINGS, map(_session_cells, found), whole="SINCE (UTC)", spare="DIGEST"))
    else:
        click.echo(f"Nothing is approved for a session in {visible(str(world.folder))}.", err=True)


@approvals.command("end")
@click.argument("skill_name", metavar="[SKILL]", required=False)
@click.option("--session", "session", help="Only in this session.")
@click.option("--all", "is_all", is_flag=True, help="Of every skill.")
@state_option
@json_option
def end_command(
    skill_name: str | None, session: str | None, is_all: bool, state_dir: Path | None, as_json: bool
) -> None:
    """End what is approved for sessions: the next run asks again. Trust is ended by 'skillkit trust remove'.

    \b
    Examples:
      skillkit approvals end csv-report
      skillkit approvals end --all
      skillkit approvals end --all --session chat-17
    """
    if (skill_name is None) is not is_all:
        raise click.UsageError("Name a skill, or end them all with --all.")
    with World(state_dir) as world:
        gone = world.end_session_approvals(skill=skill_name, session_id=session)
    if not gone:
        what = "Nothing is" if skill_name is None else f"{skill_name!r} is not"
        raise MissingError(f"{what} approved for a session here. See 'skillkit approvals sessions'.")
    if as_json:
        echo_json(ended=gone)
    else:
        for each in gone:
            click.echo(f"Ended: {on_one_line(each.skill)} in session {on_one_line(each.session_id or '')}.")


def _with_every_change(request: OptionRequest, state_dir: Path) -> OptionRequest:
    """From the copies of what was approved and of what would run, where both are still there."""
    from skillkit.core.ask.changes import whole_changes  # reads code; the other commands do not

    prompt = Prompt.from_context(request.context)
    changes = whole_changes(state_dir, prompt) if prompt is not None else None
    if prompt is None or changes is None:
        return request
    return replace(request, context={**request.context, **replace(prompt, changes=changes).to_context()})


def _require_fitting(request: OptionRequest, option_id: str, grants: tuple[str, ...], reason: str) -> None:
    """Who gives a reason against it, or opens something with a no, said one thing and chose another."""
    if grants and option_id == NO:
        raise click.UsageError("--grant goes with a yes: a no opens nothing. Leave it out, or answer with a yes.")
    if reason and option_id != NO and NO in [option.id for option in request.options]:
        raise click.UsageError(f"--reason goes with a no, and {option_id!r} is none. Leave it out, or answer 'no'.")


def _is_refusal(request: OptionRequest, option_id: str) -> bool:
    """A no to a script runs nothing, whichever script it is; nor does one to a question that takes nothing else."""
    takes_only_no = [option.id for option in request.options] == [NO]
    return option_id == NO and (takes_only_no or Prompt.from_context(request.context) is not None)


def _require_seen(request: OptionRequest, option_id: str) -> None:
    """Who can ask can make two questions whose ids begin alike; only what a person sees here is what they answer."""
    if not sys.stdin.isatty():
        raise click.UsageError(
            f"Nobody saw which question begins with that, and others may begin alike. Look at it with "
            f"'skillkit approvals show {request.id[:SHORT_ID]}' and answer with the whole id that it gives, "
            "or answer at a terminal."
        )
    click.echo(_request_text(request), err=True)
    if not click.confirm(f"\nAnswer {option_id!r} to exactly this?", err=True):
        click.echo("It is not answered.", err=True)
        raise click.exceptions.Exit(REFUSED)


def _waiting(world: World, given: str) -> OptionRequest | None:
    """The one that waits and is named so, as it may be shown."""
    named = _named_request(world.pending(), given)
    found = world.find(named.id) if named is not None else None
    return found if isinstance(found, OptionRequest) else named


def _named_request(requests: list[OptionRequest], given: str) -> OptionRequest | None:
    """By its id or a long beginning of it; the same question asked again counts once."""
    found = {request.id: request for request in requests if request.id.startswith(given)}
    if given in found:
        return found[given]
    if len(given) < SHORT_ID and found:
        raise click.BadParameter(
            f"{given!r} is too short to tell one question from another that somebody made to begin alike. "
            f"Write the id, or at least its first {SHORT_ID} characters.",
            param_hint="'ID'",
        )
    if len(found) > 1:
        raise click.BadParameter(
            f"{given!r} fits {len(found)} questions: {', '.join(sorted(found))}. Write more of it.", param_hint="'ID'"
        )
    return next(iter(found.values()), None)


def _request_text(request: OptionRequest) -> str:
    """What comes from a skill stands behind a bar, so that it cannot pass for our own words."""
    prompt = Prompt.from_context(request.context)
    if prompt is not None:
        told = whole_text(prompt, screen_width()).splitlines()
    else:
        told = [on_one_line(request.title), *behind_bar(request.message)]
    size = max(len(option.id) for option in request.options)
    options = [f"  {option.id:<{size}}  {on_one_line(option.label)}" for option in request.options]
    ticks = [f"  {on_one_line(tick.id)}  {on_one_line(f'{tick.label}. {tick.warning}')}" for tick in request.grants]
    offered = ["A yes may open too, with --grant:", *ticks] if ticks else []
    return "\n".join([*told, "", f"Id: {on_one_line(request.id)}", *offered, "Options:", *options])


def _short_ids(requests: list[OptionRequest]) -> list[str]:
    """Long enough to tell them apart."""
    ids = {request.id for request in requests}
    length = SHORT_ID
    while len({each[:length] for each in ids}) < len(ids):
        length += 4
    return [request.id[:length] for request in requests]


def _cells(request: OptionRequest) -> tuple[str, ...]:
    left = max(0, round(request.expires_at - time.time()))
    options = " ".join(option.id for option in request.options)
    return f"{left} s", request.session_id or "-", options, request.title


def _past_cells(past: PastRequest) -> tuple[str, ...]:
    outcome = f"{past.answer.option_id} by {past.answer.channel}" if past.answer else past.outcome
    return moment_text(past.request.created_at), outcome, past.request.title


def _session_cells(approval: Approval) -> tuple[str, ...]:
    session, since = approval.session_id or "-", moment_text(approval.approved_at)
    return approval.skill, session, approval.digest[:SHORT_ID], since, approval.channel, approval.folder
