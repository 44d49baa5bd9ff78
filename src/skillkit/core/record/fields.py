"""A prepared run and its result -> the fields of their records, masked and cut before they reach any sink."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields as dataclass_fields
from hashlib import sha256
from itertools import islice
from typing import Any

from skillkit.core.exceptions import SkillKitError
from skillkit.core.record.redaction import CUT, cut_text, plain_text, redacted_arguments, redacted_text
from skillkit.core.values.hosts import HostUse
from skillkit.core.values.masking import NOTHING_MASKED, Masker
from skillkit.core.values.questions import OptionAnswer
from skillkit.core.values.runs import (
    Decision,
    Isolation,
    PreparedRun,
    ProcessExit,
    Ran,
    ScriptCommand,
    ScriptExecutionResult,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.core.values.records import JSON

__all__ = [
    "TEXT_CHARACTERS",
    "end_fields",
    "error_text",
    "finish_fields",
    "host_fields",
    "identity",
    "refusal_fields",
    "shown_fields",
    "shown_text",
    "start_fields",
    "unresolved_fields",
]

WALLS = (
    *("tier", "network", "filesystem", "workspace", "readable", "writable", "variables", "secrets", "hosts"),
    "working_directory",
)
ISOLATION = tuple(field.name for field in dataclass_fields(Isolation))
DECISIONS = {decision: decision.name.lower() for decision in Decision}

TEXT_CHARACTERS = 1_000
NAME_CHARACTERS = 100
ITEMS = 100
LEVELS = 4
RECORD_CHARACTERS = 20_000

# A secret that the window's end cuts short may not be known as one: what is shown ends a margin earlier.
_WINDOW_CHARACTERS = 4_096
_MARGIN_CHARACTERS = 1_024
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
# What identifies content is not a secret, whatever it looks like.
_DIGEST = re.compile(r"[0-9a-f]{64}")
_DIGEST_NAMES = frozenset(("digest", "arguments_digest", "stdin_digest"))
# Short texts that are shown as they are: most records hold the same ones again and again, and to look for secrets in
# them takes three times as long as all else. What holds a secret is never kept.
_SHORT_CHARACTERS = 200
_REMEMBERED = 1_024
_unchanged: set[str] = set()
_NO_ARGUMENTS = redacted_arguments(None, ())


def identity(command: ScriptCommand) -> dict[str, Any]:
    """What ran or was to run; and who signed it, or had signed what was there before."""
    fields: dict[str, Any] = {
        "session": command.session_id,
        "skill": command.skill_name,
        "digest": command.digest,
        "script": command.script_name,
    }
    if command.signer:
        fields["signer"] = command.signer
    if command.lost_signer:
        fields["lost_signer"] = command.lost_signer
    return fields


def start_fields(
    prepared: PreparedRun, answer: OptionAnswer | None = None, masker: Masker = NOTHING_MASKED
) -> dict[str, Any]:
    """`masker` knows the keys that the run was given."""
    command = prepared.command
    has_any = command.arguments is not None or command.script_arguments
    arguments = redacted_arguments(command.arguments, command.script_arguments) if has_any else _NO_ARGUMENTS
    shown = arguments.shown
    if has_any and masker:
        # Before it is cut: half a key is one too.
        shown = redacted_arguments(masker.mask_all(command.arguments), masker.mask_all(command.script_arguments)).shown
    return {
        **identity(command),
        "path": str(command.script_path),
        "interpreter": command.argv[0],
        "working_directory": command.working_directory,
        "arguments": shown,
        "arguments_digest": arguments.digest,
        "stdin_digest": sha256(command.stdin).hexdigest() if command.stdin else None,
        "decision": DECISIONS[prepared.decision],
        "reasons": list(prepared.reasons),
        "answer": answer.option_id if answer else None,
        "channel": answer.channel if answer else prepared.channel,
        **({"request": answer.request_id} if answer and answer.request_id else {}),
        **({"note": answer.note} if answer and answer.note else {}),
        **_walls_fields(prepared),
        **({"said": answer.reason} if answer and answer.reason else {}),
    }


def _walls_fields(prepared: PreparedRun) -> dict[str, Any]:
    """The walls that a person's word is about, what was granted for good, and what was ticked; each by its kind."""
    fields: dict[str, Any] = {}
    if prepared.bounds is not None:
        fields["walls"] = {name: getattr(prepared.bounds, name) for name in WALLS}
    lasting = [grant for grant in prepared.command.grants if grant not in prepared.ticks]
    for name, grants in (("grants", lasting), ("ticks", prepared.ticks)):
        if grants:
            kinds = dict.fromkeys(grant.kind for grant in grants)
            # Not by their ids: `secret:NAME` reads like a key and its value.
            told = {grant: f"{grant.name} sha256:{grant.content}" if grant.content else grant.name for grant in grants}
            fields[name] = {kind: [text for grant, text in told.items() if grant.kind == kind] for kind in kinds}
    return fields


def unresolved_fields(
    skill_name: str, script_name: str, session_id: str | None, arguments: object, argv: object
) -> dict[str, Any]:
    """Of a call that could not be made a command: what the caller asked for, of whatever kind that was."""
    words = [plain_text(word) for word in argv] if isinstance(argv, list | tuple) else []
    shown = redacted_arguments(arguments, words)
    return {
        "session": None if session_id is None else plain_text(session_id),
        "skill": plain_text(skill_name),
        "script": plain_text(script_name),
        "arguments": shown.shown,
        "arguments_digest": shown.digest,
    }


def refusal_fields(error: SkillKitError) -> dict[str, Any]:
    return {"error": type(error).__name__, "reasons": [plain_text(error)]}


def error_text(error: BaseException) -> str:
    """What stopped a run."""
    return f"{type(error).__name__}: {plain_text(error)}"


def finish_fields(started: int, ran: Ran, masker: Masker) -> dict[str, Any]:
    """How a run ended, or what stopped it; `masker` knows the keys that it was given."""
    fields: dict[str, Any] = {**identity(ran.command), "started": started}
    if ran.set_aside:
        fields["set_aside"] = list(ran.set_aside)
    if ran.error is not None:
        fields["error"] = error_text(ran.error)
    if ran.ended is not None and ran.result is not None:
        fields |= end_fields(ran.ended, ran.result)
    return fields if masker is NOTHING_MASKED else masker.mask_all(fields)


def end_fields(ended: ProcessExit, result: ScriptExecutionResult) -> dict[str, Any]:
    hosts = {"hosts": [host_fields(each) for each in result.hosts]} if result.hosts else {}
    return {
        **hosts,
        "exit_code": result.exit_code,
        "signal": result.signal,
        "timed_out": result.timed_out,
        "cancelled": result.cancelled,
        "duration_us": round(ended.duration_ms * 1000),
        "stdout_bytes": ended.stdout_bytes,
        "stderr_bytes": ended.stderr_bytes,
        "leftovers_killed": ended.leftovers_killed,
        "isolation": {name: getattr(result.isolation, name) for name in ISOLATION},
    }


def host_fields(use: HostUse) -> dict[str, Any]:
    moved = {"sent_bytes": use.sent, "received_bytes": use.received}
    via = {"resolved_by": use.via} if use.via else {}
    told = {"refused": use.refused} if use.refused else moved
    return {"host": use.host, "connections": use.connections, **told, **via}


def shown_fields(fields: dict[str, JSON]) -> dict[str, JSON]:
    """Exact fields as they may be kept: a text of a thousand characters, a hundred items, four levels at most."""
    return _Room(RECORD_CHARACTERS).mapping(fields, LEVELS)


def shown_text(text: str, limit: int = TEXT_CHARACTERS) -> str:
    """Without its secrets, at most `limit` characters, and only characters that every sink can write."""
    if text in _unchanged and len(text) <= limit:
        return text
    window = text[:_WINDOW_CHARACTERS]
    if not window.isascii():
        window = window.encode("utf-8", "backslashreplace").decode("utf-8")
    shown = redacted_text(window)
    if len(text) > _WINDOW_CHARACTERS:
        return cut_text(shown, max(1, min(limit, len(shown) - _MARGIN_CHARACTERS)))
    if shown == text and len(text) <= _SHORT_CHARACTERS:
        if len(_unchanged) >= _REMEMBERED:
            _unchanged.clear()
        _unchanged.add(text)
    return cut_text(shown, limit)


def _is_digest(name: str, value: JSON) -> bool:
    """What skillkit computed itself and is long and random all the same."""
    return name in _DIGEST_NAMES and isinstance(value, str) and _DIGEST.fullmatch(value) is not None


class _Room:
    """How much of a record is still free."""

    def __init__(self, characters: int) -> None:
        self.characters = characters

    def mapping(self, fields: Mapping[str, JSON], levels: int) -> dict[str, JSON]:
        shown: dict[str, JSON] = {}
        known = _unchanged  # most names and texts are: a call for each would cost more than all else here
        for name, value in islice(fields.items(), ITEMS):
            kept = name if name in known else shown_text(name, NAME_CHARACTERS)
            if type(value) is str and value in known and self.characters >= _SHORT_CHARACTERS:
                shown[kept] = value
                self.characters -= len(value)
            elif value is None or value is True or value is False or _is_digest(name, value):
                shown[kept] = value
            else:
                shown[kept] = self.value(value, levels)
        return shown

    def value(self, value: JSON, levels: int) -> JSON:
        if isinstance(value, str):
            shown = shown_text(value, max(1, min(TEXT_CHARACTERS, self.characters)))
            self.characters -= len(shown)
            return shown
        if value is None or isinstance(value, int):
            return value if value is None or _SMALLEST <= value <= _LARGEST else "<int>"
        if levels == 0:
            return CUT
        if isinstance(value, Mapping):
            return self.mapping(value, levels - 1)
        items = [self.value(item, levels - 1) for item in value[:ITEMS]]
        return items if len(value) <= ITEMS else [*items, CUT]
