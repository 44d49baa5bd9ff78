"""`skillkit audit`: read the record of what ran, check it, and take copies of it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

import click

from skillkit.cli.options import MissingError, counted, echo_json, json_option, on_one_line, state_option
from skillkit.cli.record_lines import record_entries
from skillkit.core.files import write_new_file
from skillkit.core.record import AuditLog, Checkpoint, Record, checkpoint_from
from skillkit.core.state import StateStore, state_folder
from skillkit.present.terminal import visible

__all__ = ["audit"]

BROKEN = 1
FOLLOW_PAUSE_SECONDS = 0.5
NEWEST = 20


@click.group("audit")
def audit() -> None:
    """Read and check the record of every run and every refusal.

    \b
    Examples:
      skillkit audit tail               the newest records
      skillkit audit show 12            everything about one
      skillkit audit verify             was anything altered or removed?
      skillkit audit checkpoint -o FILE keep FILE elsewhere, verify against it later
    """


@audit.command("tail")
@click.option("-n", "count", type=click.IntRange(min=0), default=NEWEST, show_default=True, help="How many.")
@click.option("--follow", "-f", "follows", is_flag=True, help="Go on with new records as they come.")
@click.option("--skill", help="Only this skill.")
@click.option("--session", help="Only this session.")
@click.option("--kind", type=click.Choice(["started", "finished", "refused"]), help="Only this kind.")
@state_option
@json_option
def tail_command(
    count: int,
    follows: bool,
    skill: str | None,
    session: str | None,
    kind: str | None,
    state_dir: Path | None,
    as_json: bool,
) -> None:
    """Show the newest records, oldest first.

    With --follow, --json prints one object per line, one for each record.

    \b
    Examples:
      skillkit audit tail -n 50 --skill csv-report
      skillkit audit tail --kind refused
      skillkit audit tail --follow
    """
    store = StateStore(state_folder(state_dir))
    is_there = store.path.exists()
    log = existing_log(state_dir) if follows else AuditLog(store)
    newest = log.records(limit=count, skill=skill, session=session, kind=kind, newest_first=True)
    records = list(newest)[::-1] if is_there else []
    if follows:
        follow(log, records, {"skill": skill, "session": session, "kind": kind}, as_json=as_json)
    elif as_json:
        echo_json(records=[record._asdict() for record in records])
    elif records:
        click.echo("\n".join(record_entries(records)))
    else:
        click.echo(f"No records in {store.path}.", err=True)


@audit.command("show")
@click.argument("seq", type=click.IntRange(min=1))
@state_option
@json_option
def show_command(seq: int, state_dir: Path | None, as_json: bool) -> None:
    """Show one record with all its fields.

    \b
    Examples:
      skillkit audit show 12
      skillkit audit show 12 --json
    """
    log = existing_log(state_dir)
    record = next(log.records(after=seq - 1, limit=1), None)
    if record is None or record.seq != seq:
        raise MissingError(f"There is no record {seq}. 'skillkit audit tail' shows which there are.")
    if as_json:
        echo_json(record=record._asdict())
        return
    facts = {"seq": record.seq, "timestamp": record.timestamp, "kind": record.kind}
    chain = {"previous": record.previous, "hash": record.hash}
    named = {**facts, **{name: record.fields[name] for name in sorted(record.fields)}, **chain}
    size = max(len(visible(name)) for name in named)
    for name, value in named.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        click.echo(f"{visible(name):<{size}}  {on_one_line(text)}")


@audit.command("verify")
@click.option(
    "--checkpoint",
    "checkpoint_file",
    type=click.File("rb"),
    help="Also compare with this checkpoint (- is stdin): it shows a removed end.",
)
@state_option
@json_option
@click.pass_context
def verify_command(
    context: click.Context,
    checkpoint_file: BinaryIO | None,
    state_dir: Path | None,
    as_json: bool,
) -> None:
    """Check that no record was altered, removed, inserted or moved.

    Exit code 0: intact. 1: broken, and the first wrong record is named.

    \b
    Examples:
      skillkit audit verify
      skillkit audit verify --checkpoint /mnt/safe/audit.checkpoint
    """
    checkpoint = read_checkpoint(checkpoint_file.read()) if checkpoint_file is not None else None
    verification = existing_log(state_dir).verify(checkpoint=checkpoint)
    if as_json:
        echo_json(**asdict(verification))
    elif verification.ok:
        click.echo(f"Intact: {counted(verification.count, 'record')}, the last with hash {verification.head}.")
    else:
        click.echo(f"Broken: {verification.problem}")
        click.echo(f"hint: what comes before it is intact: {counted(verification.count, 'record')}.", err=True)
    if not verification.ok:
        context.exit(BROKEN)


@audit.command("export")
@click.option("--since", type=click.IntRange(min=1), default=1, help="Begin with this record.")
@state_option
@json_option
def export_command(since: int, state_dir: Path | None, as_json: bool) -> None:
    """Write the records to stdout, one JSON object per line.

    With --json they come as one object instead.

    \b
    Examples:
      skillkit audit export > audit.jsonl
      skillkit audit export --since 1000
    """
    lines = existing_log(state_dir).export(after=since - 1)
    if not as_json:
        for line in lines:
            click.echo(line)
        return
    click.echo('{"schema_version": 1, "records": [', nl=False)
    for index, line in enumerate(lines):
        click.echo(f"{',' if index else ''}\n{line}", nl=False)
    click.echo("\n]}")


@audit.command("checkpoint")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write it to this new file.")
@state_option
@json_option
def checkpoint_command(output: Path | None, state_dir: Path | None, as_json: bool) -> None:
    """Note where the log ends now, to keep where whoever writes the log cannot edit.

    \b
    Examples:
      skillkit audit checkpoint -o /mnt/safe/audit.checkpoint
      skillkit audit checkpoint --json | logger -t skillkit-audit
    """
    checkpoint = existing_log(state_dir).checkpoint()
    if output is not None:
        write_checkpoint(checkpoint, output)
    if as_json:
        echo_json(**asdict(checkpoint))
    elif output is None:
        click.echo(f"Record {checkpoint.seq}, hash {checkpoint.hash}, world {checkpoint.world}.")
    else:
        click.echo(f"Wrote the checkpoint of record {checkpoint.seq} to {output}. Keep it on another machine.")


def existing_log(state_dir: Path | None) -> AuditLog:
    """The log of a world that is there: asking about one must not make it."""
    store = StateStore(state_folder(state_dir))
    if not store.path.exists():
        raise MissingError(f"There is no audit in {store.folder}. Name the folder with --state-dir.")
    return AuditLog(store)


def follow(log: AuditLog, shown: list[Record], wanted: dict[str, str | None], *, as_json: bool) -> None:
    # Taken before anything is shown: what comes meanwhile is new.
    last_seq = shown[-1].seq if shown else sum(record.seq for record in log.records(limit=1, newest_first=True))
    for line in [json_line(record) for record in shown] if as_json else record_entries(shown):
        click.echo(line)
    for record in arriving(log, last_seq, wanted):
        # Measured together with those above it, so that the columns stay where they are.
        click.echo(json_line(record) if as_json else record_entries([*shown, record])[-1])


def arriving(log: AuditLog, last: int, wanted: dict[str, str | None]) -> Iterator[Record]:
    while True:
        for record in log.records(after=last):
            last = record.seq
            has = {**record.fields, "kind": record.kind}
            if all(value is None or has.get(name) == value for name, value in wanted.items()):
                yield record
        time.sleep(FOLLOW_PAUSE_SECONDS)


def read_checkpoint(text: bytes) -> Checkpoint:
    try:
        return checkpoint_from(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--checkpoint'") from error


def write_checkpoint(checkpoint: Checkpoint, output: Path) -> None:
    """As a new file: an older checkpoint is evidence too."""
    text = json.dumps({"schema_version": 1, **asdict(checkpoint)}, indent=2)
    try:
        write_new_file(output, f"{text}\n".encode())
    except OSError as error:
        raise click.BadParameter(
            f"{output} cannot be written: {error.strerror}. Name another file.", param_hint="'--output'"
        ) from error


def json_line(record: Record) -> str:
    return json.dumps({"schema_version": 1, **record._asdict()}, ensure_ascii=False)
