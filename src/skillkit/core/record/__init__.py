"""What happened -> a record that shows tampering: the audit chain, its mirror in logging, and redaction."""

from __future__ import annotations

from skillkit.core.record.audit import KINDS, AuditLog
from skillkit.core.record.chain import JSON, Checkpoint, Record, Verification, checkpoint_from
from skillkit.core.record.fields import (
    end_fields,
    error_text,
    identity,
    refusal_fields,
    start_fields,
    unresolved_fields,
)
from skillkit.core.record.log import mirror
from skillkit.core.record.redaction import RedactedArguments, redacted_arguments, redacted_text

__all__ = [
    "JSON",
    "KINDS",
    "AuditLog",
    "Checkpoint",
    "Record",
    "RedactedArguments",
    "Verification",
    "checkpoint_from",
    "end_fields",
    "error_text",
    "identity",
    "mirror",
    "redacted_arguments",
    "redacted_text",
    "refusal_fields",
    "start_fields",
    "unresolved_fields",
]
