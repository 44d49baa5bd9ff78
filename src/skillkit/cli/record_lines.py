"""Records -> the lines that `skillkit audit tail` shows, as wide as the screen."""

from __future__ import annotations

from collections.abc import Sequence

from skillkit.cli.options import table_width
from skillkit.core.record import Record
from skillkit.present.terminal import columns, cut, visible

__all__ = ["record_entries"]

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


def record_entries(records: Sequence[Record]) -> list[str]:
    """The heading and one entry for each record: a line, or two on a narrow screen."""
    rows = [HEADINGS, *map(cells, records)]
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


def cells(record: Record) -> tuple[str, ...]:
    skill, script = (str(record.fields.get(name) or "-") for name in ("skill", "script"))
    moment = record.timestamp[5:19].replace("T", " ")  # the year is in `audit show`
    return str(record.seq), moment, record.kind, skill, script, outcome(record)


def outcome(record: Record) -> str:
    """What happened, in a few words."""
    fields = record.fields
    if record.kind == "finished":
        ended = f"exit {fields.get('exit_code', '?')}"
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
