"""Records <-> a SHA-256 chain in which each hash covers its record and the hash before it; pure."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple, TypeAlias

__all__ = [
    "JSON",
    "Checkpoint",
    "Head",
    "NextRecord",
    "Record",
    "Row",
    "Verification",
    "canonical_json",
    "chained_row",
    "checkpoint_from",
    "exact_fields",
    "export_line",
    "first_link",
    "moment_text",
    "record_from",
    "verification_of",
]

# Without floats: two programs may print one float in two ways, and a hash must not depend on that.
JSON: TypeAlias = "Mapping[str, JSON] | Sequence[JSON] | str | int | None"
Row: TypeAlias = tuple[int, str, str, str, str, str]
"""seq, timestamp, kind, fields as canonical JSON, previous, hash: a record as it is stored."""


def _refuse_float(text: str) -> float:
    raise ValueError(f"{text} is a float; records hold none.")


_SCALARS = frozenset((str, int, bool, type(None)))
_TEXTS = frozenset((str,))
_quote = json.encoder.encode_basestring_ascii
# Without the look for circles: exact fields have none.
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False, check_circular=False).encode
_decode = json.JSONDecoder(parse_float=_refuse_float, parse_constant=_refuse_float).decode


class Record(NamedTuple):
    """One thing that happened, bound to everything recorded before it."""

    seq: int
    timestamp: str
    kind: str
    fields: Mapping[str, JSON]
    previous: str
    hash: str


class Head(NamedTuple):
    """Where the log of a world ends: the number and hash of its last record; 0 and None before the first."""

    world: str
    seq: int
    hash: str | None
    login: str = ""
    """Who writes, where the store knows one writer from another."""

    @property
    def link(self) -> str:
        """What the next record has as `previous`."""
        return first_link(self.world) if self.hash is None else self.hash


class NextRecord(NamedTuple):
    """A record that has no place in the log yet; its fields are exact."""

    kind: str
    fields: dict[str, JSON]

    def after(self, head: Head) -> Row:
        """As it is stored behind whatever is last, with whose it is."""
        self.fields["world"] = head.world
        if head.login:
            self.fields["login"] = head.login
        text = canonical_json(self.fields)
        return chained_row(seq=head.seq + 1, timestamp=moment_text(), kind=self.kind, fields=text, previous=head.link)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How long the log was and what it ended in: kept elsewhere, it shows a tail that was removed."""

    world: str
    seq: int
    hash: str
    timestamp: str


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether the log is as it was written; if not, `broken_at` is the first record that is not."""

    ok: bool
    count: int
    head: str
    broken_at: int | None = None
    problem: str = ""


def exact_fields(fields: Mapping[str, JSON], place: str = "fields") -> dict[str, JSON]:
    """A copy in plain dicts and lists; what has no exact JSON form is refused by name."""
    plain = dict(fields)  # what was given may say something else when it is read again
    if not _TEXTS.issuperset(map(type, plain)):
        for key in plain:
            if not isinstance(key, str):
                raise TypeError(f"{place} has the key {key!r}; keys of a record are text.")
    for key in [key for key, value in plain.items() if type(value) not in _SCALARS]:
        plain[key] = _exact(plain[key], key)
    return plain


def _exact(value: JSON, place: str) -> JSON:
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, (list, tuple)):
        return [_exact(item, place) for item in value]
    if isinstance(value, Mapping):
        return exact_fields(value, place)
    rule = "a record holds text, whole numbers, booleans, null, lists and mappings (durations in microseconds)"
    raise TypeError(f"{place} is {type(value).__name__} {value!r}; {rule}.")


def canonical_json(value: dict[str, JSON]) -> str:
    """The one text for exact fields: keys sorted, no spaces, ASCII only."""
    return _encode(value)


def first_link(world: str) -> str:
    """What the first record has as `previous`; it differs by world, so no log fits into another world."""
    return sha256(f"skillkit audit {world}".encode()).hexdigest()


def moment_text() -> str:
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{nanoseconds // 1000:06d}Z"


def chained_row(*, seq: int, timestamp: str, kind: str, fields: str, previous: str) -> Row:
    """A record as it is stored; `fields` is canonical JSON already."""
    return seq, timestamp, kind, fields, previous, _hash_of(seq, timestamp, kind, fields, previous)


def record_from(row: Row) -> Record:
    """The record in a row; fields that someone made unreadable are shown as they are."""
    seq, timestamp, kind, text, previous, digest = row
    fields = _mapping_in(text)
    if fields is None:
        fields = {"unreadable": str(text)}
    return Record(seq, str(timestamp), str(kind), fields, str(previous), str(digest))


def checkpoint_from(text: str | bytes) -> Checkpoint:
    """The checkpoint in a JSON text; anything else is a `ValueError`."""
    content = _mapping_in(text.decode("utf-8", "replace") if isinstance(text, bytes) else text) or {}
    world, seq, digest, timestamp = (content.get(name) for name in ("world", "seq", "hash", "timestamp"))
    if isinstance(world, str) and isinstance(seq, int) and isinstance(digest, str) and isinstance(timestamp, str):
        return Checkpoint(world=world, seq=seq, hash=digest, timestamp=timestamp)
    raise ValueError(
        "This is no checkpoint: it needs world, seq, hash and timestamp. Make one with `audit checkpoint`."
    )


def export_line(record: Record) -> str:
    """A record as one line of JSON; without `hash` it is exactly what was hashed."""
    return canonical_json(
        {
            "fields": dict(record.fields),
            "hash": record.hash,
            "kind": record.kind,
            "prev": record.previous,
            "seq": record.seq,
            "timestamp": record.timestamp,
        }
    )


def verification_of(rows: Iterable[Row], *, world: str, checkpoints: Iterable[Checkpoint] = ()) -> Verification:
    """Rows in order of seq, against the chain and against what was kept elsewhere."""
    kept: dict[int, list[str]] = {}
    for checkpoint in checkpoints:
        if checkpoint.world != world:
            problem = f"The checkpoint is of world {checkpoint.world}, this log of world {world}: one was replaced."
            return Verification(ok=False, count=0, head=first_link(world), problem=problem)
        kept.setdefault(checkpoint.seq, []).append(checkpoint.hash)
    before: Row | None = None
    count, head = 0, first_link(world)
    for row in rows:
        found = _break_in(row, before, expected_seq=count + 1, expected_link=head)
        if found is None and any(digest != row[5] for digest in kept.get(row[0], ())):
            found = row[0], f"Record {row[0]} is not the one of the checkpoint: the log was written anew."
        if found is not None:
            return Verification(ok=False, count=count, head=head, broken_at=found[0], problem=found[1])
        before, count, head = row, row[0], row[5]
    longest = max(kept, default=0)
    if longest > count:
        problem = f"Record {count + 1} is missing: the log ended at record {longest} when its checkpoint was made."
        return Verification(ok=False, count=count, head=head, broken_at=count + 1, problem=problem)
    return Verification(ok=True, count=count, head=head)


def _break_in(row: Row, before: Row | None, *, expected_seq: int, expected_link: str) -> tuple[int, str] | None:
    """Which record is wrong and why, when this row does not continue the one before."""
    seq = row[0]
    if seq < expected_seq:
        return seq, f"Record {seq} was inserted: records are numbered from 1."
    if seq > expected_seq:
        return expected_seq, f"Record {expected_seq} is missing: the next one there is record {seq}."
    is_own, is_linked = _gives_its_hash(row), row[4] == expected_link
    if is_own and is_linked:
        return None
    if is_linked:
        return seq, f"Record {seq} was altered: its content does not give its hash."
    return _wrong_link(row, before, is_own=is_own)


def _wrong_link(row: Row, before: Row | None, *, is_own: bool) -> tuple[int, str]:
    seq = row[0]
    if before is None:
        return seq, f"Record {seq} is not the first record of this world: it was altered, replaced or moved."
    if is_own:
        return (
            seq - 1,
            f"Record {seq - 1} was altered or replaced: record {seq} was written after another one.",
        )
    if row[4] == before[4]:
        return seq - 1, f"Record {seq - 1} was inserted: record {seq} was written in its place."
    return seq, f"Record {seq} was altered, replaced or moved: it does not follow record {seq - 1}."


def _gives_its_hash(row: Row) -> bool:
    seq, timestamp, kind, text, previous, digest = row
    # A column that is not text, or fields in any but their one spelling, were not written by us.
    is_text = all(isinstance(column, str) for column in row[1:])
    fields = _mapping_in(text)
    is_canonical = is_text and fields is not None and _encode(fields) == text
    return is_canonical and digest == _hash_of(seq, timestamp, kind, text, previous)


def _hash_of(seq: int, timestamp: str, kind: str, fields: str, previous: str) -> str:
    # Put together by hand in sorted order, so that the fields are turned into text only once.
    text = (
        f'{{"fields":{fields},"kind":{_quote(kind)},"prev":{_quote(previous)},'
        f'"seq":{seq},"timestamp":{_quote(timestamp)}}}'
    )
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _mapping_in(text: str) -> dict[str, JSON] | None:
    try:
        content = _decode(text)
    except (TypeError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
