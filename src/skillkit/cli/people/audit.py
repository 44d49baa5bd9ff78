"""`skillkit audit`: read the record of what ran, check it, and take copies of it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

import click

from skillkit.cli.options import MissingError, json_option, state_option
from skillkit.cli.output import echo_json, table_width
from skillkit.core.paths.files import write_new_file
from skillkit.core.record import AuditLog, Checkpoint, Record, checkpoint_from
from skillkit.core.store.opening import open_store
from skillkit.core.store.state import state_folder
from skillkit.core.values.text import on_one_line, plural, visible
from skillkit.present.terminal import columns, cut

__all__ = ["audit"]

BROKEN = 1
FOLLOW_PAUSE_SECONDS = 0.5
NEWEST = 20

HEADINGS = ("SEQ", "TIME (UTC)", "KIND", "SKILL", "SCRIPT", "WHAT HAPPENED")
SEQ, TIME, KIND, SKILL, SCRIPT, HAPPENED = range(len(HEADINGS))
# Whatever the records are, so that the columns stay when more of them come.
LEAST_COLUMNS = {TIME: 14, KIND: 8, SKILL: 12, SCRIPT: 12, HAPPENED: 20}
NEVER_CUT = (SEQ, TIME, KIND)
# `audit show` has what there is no room for here.
LAYOUTS = (
    (SEQ, TIME, KIND, SKILL, SCRIPT, HAPPENED),
    (SEQ, KIND, SKILL, SCRIPT, HAPPENED),
    (SEQ, KIND, SKILL, HAPPENED),
)


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
    store = open_store(state_folder(state_dir))
    is_there = store.exists()
    log = _existing_log(state_dir) if follows else AuditLog(store)
    newest = log.records(limit=count, skill=skill, session=session, kind=kind, newest_first=True)
    records = list(newest)[::-1] if is_there else []
    if follows:
        _follow(log, records, {"skill": skill, "session": session, "kind": kind}, as_json=as_json)
    elif as_json:
        echo_json(records=[record._asdict() for record in records])
    elif records:
        click.echo("\n".join(_record_entries(records)))
    else:
        wanted = {"skill": skill, "session": session, "kind": kind}
        named = ", ".join(f"{name} {visible(value)}" for name, value in wanted.items() if value)
        click.echo(f"No records{f' of {named}' if named else ''} in {store.place}.", err=True)


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
    log = _existing_log(state_dir)
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
    checkpoint = _read_checkpoint(checkpoint_file.read()) if checkpoint_file is not None else None
    verification = _existing_log(state_dir).verify(checkpoint=checkpoint)
    if as_json:
        echo_json(**asdict(verification))
    elif verification.ok:
        click.echo(f"Intact: {plural(verification.count, 'record')}, the last with hash {verification.head}.")
    else:
        click.echo(f"Broken: {verification.problem}")
        click.echo(f"hint: what comes before it is intact: {plural(verification.count, 'record')}.", err=True)
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
    lines = _existing_log(state_dir).export(after=since - 1)
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
    checkpoint = _existing_log(state_dir).checkpoint()
    if output is not None:
        _write_checkpoint(checkpoint, output)
    if as_json:
        echo_json(**asdict(checkpoint))
    elif output is None:
        click.echo(f"Record {checkpoint.seq}, hash {checkpoint.hash}, world {checkpoint.world}.")
    else:
        click.echo(f"Wrote the checkpoint of record {checkpoint.seq} to {output}. Keep it on another machine.")


def _existing_log(state_dir: Path | None) -> AuditLog:
    """The log of a world that is there: asking about one must not make it."""
    store = open_store(state_folder(state_dir))
    if not store.exists():
        raise MissingError(f"There is no audit in {store.folder}. Name the folder with --state-dir.")
    return AuditLog(store)


def _follow(log: AuditLog, shown: list[Record], wanted: dict[str, str | None], *, as_json: bool) -> None:
    # Taken before anything is shown: what comes meanwhile is new.
    last_seq = shown[-1].seq if shown else sum(record.seq for record in log.records(limit=1, newest_first=True))
    for line in [_json_line(record) for record in shown] if as_json else _record_entries(shown):
        click.echo(line)
    for record in _arriving(log, last_seq, wanted):
        # Measured together with those above it, so that the columns stay where they are.
        click.echo(_json_line(record) if as_json else _record_entries([*shown, record])[-1])


def _arriving(log: AuditLog, last: int, wanted: dict[str, str | None]) -> Iterator[Record]:
    while True:
        for record in log.records(after=last):
            last = record.seq
            has = {**record.fields, "kind": record.kind}
            if all(value is None or has.get(name) == value for name, value in wanted.items()):
                yield record
        time.sleep(FOLLOW_PAUSE_SECONDS)


def _read_checkpoint(text: bytes) -> Checkpoint:
    try:
        return checkpoint_from(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--checkpoint'") from error


def _write_checkpoint(checkpoint: Checkpoint, output: Path) -> None:
    """As a new file: an older checkpoint is evidence too."""
    text = json.dumps({"schema_version": 1, **asdict(checkpoint)}, indent=2)
    try:
        write_new_file(output, f"{text}\n".encode())
    except OSError as error:
        raise click.BadParameter(
            f"{output} cannot be written: {error.strerror}. Name another file.", param_hint="'--output'"
        ) from error


def _json_line(record: Record) -> str:
    return json.dumps({"schema_version": 1, **record._asdict()}, ensure_ascii=False)


def _record_entries(records: Sequence[Record]) -> list[str]:
    """The heading and one entry for each record: a line, or two on a narrow screen."""
    rows = [HEADINGS, *map(_record_cells, records)]
    width, seq_columns = table_width(), max(len(row[SEQ]) for row in rows)
    for layout in LAYOUTS:
        least = seq_columns + sum(2 + LEAST_COLUMNS[column] for column in layout[1:])
        if least <= width:
            whole = [place for place, column in enumerate(layout) if column in NEVER_CUT]
            return columns([[row[column] for column in layout] for row in rows], width, indent="", whole=whole)
    heads = columns([(row[SEQ], row[KIND], row[SKILL]) for row in rows], width, indent="")
    indent = " " * (seq_columns + 2)
    tails = (cut(visible(row[HAPPENED]), width - len(indent)) for row in rows)
    return [f"{head}\n{indent}{tail}" for head, tail in zip(heads, tails, strict=True)]


def _record_cells(record: Record) -> tuple[str, ...]:
    skill, script = (str(record.fields.get(name) or "-") for name in ("skill", "script"))
    if record.fields.get("purpose") == "prepare":
        script = "(packages)"
    moment = record.timestamp[5:19].replace("T", " ")  # the year is in `audit show`
    return str(record.seq), moment, record.kind, skill, script, _outcome_text(record)


def _outcome_text(record: Record) -> str:
    """What happened, in a few words."""
    fields = record.fields
    if record.kind == "finished":
        # A run whose worker died has no exit code.
        ended = f"exit {fields['exit_code']}" if "exit_code" in fields else str(fields.get("error") or "exit ?")
        if fields.get("purpose") == "prepare":
            return str(fields.get("error") or "prepared")
        if fields.get("signal"):
            ended = str(fields["signal"])
        if fields.get("timed_out"):
            ended = "timed out"
        duration = fields.get("duration_us")
        return f"{ended} after {duration / 1e6:.3f} s" if isinstance(duration, int) else ended
    reasons = fields.get("reasons")
    because = "; ".join(map(str, reasons)) if isinstance(reasons, list) else ""
    decided = str(fields.get("answer") or fields.get("decision") or "").replace("_", " ")
    words = [decided, f"by {fields['channel']}" if fields.get("channel") else ""]
    said = " ".join(filter(None, words))
    return f"{said}: {because}" if said and because else said or because or "-"
