"""A record -> one line for Python's logging, at the level its outcome deserves; other logs of a run are masked too."""

from __future__ import annotations

import logging

from skillkit.core.record.chain import export_line
from skillkit.core.record.shown import shown_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.core.record.chain import Record

__all__ = ["LOGGER_NAME", "level_of", "mask_logged", "mirror"]

LOGGER_NAME = "skillkit.audit"
# They name what a caller asked for, and stand below this stage.
NAMING_LOGGERS = ("skillkit.security", "skillkit.run")
NAMING_FIELDS = ("requested_path", "base_directory", "skill", "script")

_logger = logging.getLogger(LOGGER_NAME)
# Without a handler of its own Python would print warnings of a program that set up no logging to its stderr.
_logger.addHandler(logging.NullHandler())


def level_of(record: Record) -> int:
    """INFO for what went well, WARNING for what was stopped or failed, ERROR for crashes and our failures."""
    fields = record.fields
    if record.kind == "refused" or fields.get("timed_out"):
        return logging.WARNING
    if fields.get("signal") or fields.get("error"):
        return logging.ERROR
    return logging.WARNING if fields.get("exit_code") else logging.INFO


def mask_logged(logged: logging.LogRecord) -> bool:
    """A filter that keeps every line, without its secrets and cut."""
    logged.msg, logged.args = shown_text(logged.getMessage()), ()
    for name in NAMING_FIELDS:
        if isinstance(said := getattr(logged, name, None), str):
            setattr(logged, name, shown_text(said))
    return True


for _name in NAMING_LOGGERS:
    logging.getLogger(_name).addFilter(mask_logged)


def mirror(record: Record) -> None:
    """Write the record to the logger `skillkit.audit`; handlers find it as a mapping in `skillkit`."""
    level = level_of(record)
    if not _logger.isEnabledFor(level):
        return
    fields = {
        "seq": record.seq,
        "timestamp": record.timestamp,
        "kind": record.kind,
        **record.fields,
        "hash": record.hash,
    }
    _logger.log(level, "%s", export_line(record), extra={"skillkit": fields})
