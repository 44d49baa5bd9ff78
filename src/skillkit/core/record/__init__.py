"""What happened -> a record that shows tampering: the audit chain, its mirror in logging, and redaction."""

from __future__ import annotations

from skillkit.core.record.audit import AuditLog
from skillkit.core.record.fields import (
    end_fields,
    error_text,
    host_fields,
    identity,
    refusal_fields,
    start_fields,
    unresolved_fields,
)
from skillkit.core.values.records import JSON, Checkpoint, Record, Verification, checkpoint_from

__all__ = [
    "JSON",
    "AuditLog",
    "Checkpoint",
    "Record",
    "Verification",
    "checkpoint_from",
    "end_fields",
    "error_text",
    "host_fields",
    "identity",
    "refusal_fields",
    "start_fields",
    "unresolved_fields",
]
