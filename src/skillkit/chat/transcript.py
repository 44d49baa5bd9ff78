"""What was said and done in a chat -> a file, as Markdown or JSON lines, without secrets."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from skillkit.chat.events import Event, Note
from skillkit.core.exceptions import ConfigurationError
from skillkit.core.paths.files import Folder
from skillkit.core.record.redaction import MASK, redacted_text
from skillkit.core.values.text import visible
from skillkit.integrations.inline.syntax import Text

__all__ = ["Entry", "Transcript"]

WRITING = os.O_WRONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
HEADINGS = {"user": "You", "assistant": "Model"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that was said or done: who, when, what, and for a command how it ended."""

    kind: str
    """user, assistant, command or note."""
    time: str
    text: str
    status: str = ""
    round: int = 0
    """Which answer of the model to one question it belongs to."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Of a command: what was called, with what, as data."""


class Transcript:
    """Grows while the chat goes on; everything that is written has its secrets masked."""

    def __init__(self, secret: str = "") -> None:
        self._entries: list[Entry] = []
        self._saying: list[str] = []
        self._round = 0
        self._secret = secret
        self._path: Path | None = None
        self._file: tuple[int, int] | None = None

    @property
    def entries(self) -> list[Entry]:
        """In their order; the pieces of one answer are one entry, so that no secret is cut in two."""
        if self._saying:
            text, self._saying = "".join(self._saying), []
            self._entries.append(Entry("assistant", _now(), text, round=self._round))
        return self._entries

    def begin_round(self) -> None:
        """What was said so far is an entry of its own."""
        _ = self.entries
        self._round += 1

    def add_question(self, text: str) -> None:
        self._round = 0
        self._add("user", text)

    def add_event(self, event: Event) -> None:
        if isinstance(event, Text):
            self._saying.append(event.text)
        elif isinstance(event, Note):
            self._add("note", event.text)
        else:
            self._add("command", event.line, event.status, event.data)

    def save_to(self, path: Path) -> None:
        """From now on what is there and what comes; a file that exists is never overwritten."""
        if path != self._path:
            try:
                with Folder.named(path.parent) as folder:
                    descriptor = folder.new_file(path.name, 0o600)
            except FileExistsError as error:
                raise ConfigurationError(f"{path} exists already. Name another file for the transcript.") from error
            except OSError as error:
                raise _unwritable(path, error) from error
            self._path, self._file = path, _identity(descriptor)
            os.close(descriptor)
        self.write()

    def write(self) -> None:
        """As it is now, if there is a file for it; never to what somebody has put in its place."""
        if self._path is None:
            return
        text = self.as_json_lines() if self._path.suffix == ".jsonl" else self.as_markdown()
        try:
            # Neither a link is followed nor a pipe waited for: scripts may be able to write there.
            with open(os.open(self._path, WRITING), "wb") as file:
                _require_same(_identity(file.fileno()), self._file)
                file.write(text.encode("utf-8", "backslashreplace"))
                file.truncate()
        except OSError as error:
            raise _unwritable(self._path, error) from error

    def as_json_lines(self) -> str:
        lines = []
        for entry in self.entries:
            fields = {"kind": entry.kind, "time": entry.time, "text": self._masked(entry.text)}
            lines.append(json.dumps(fields | ({"status": entry.status} if entry.status else {}), ensure_ascii=False))
        return "".join(f"{line}\n" for line in lines)

    def as_markdown(self) -> str:
        parts, speaker = [], ""
        for entry in self.entries:
            text = visible(self._masked(entry.text)).strip()
            if entry.kind in HEADINGS:
                if entry.kind != speaker:
                    parts.append(f"## {HEADINGS[entry.kind]}")
                speaker = entry.kind
                parts.append(text)
            else:
                parts.append("\n".join(f"> {line}" for line in text.split("\n")))
        return "\n\n".join(part for part in parts if part) + "\n"

    def _masked(self, text: str) -> str:
        """The key by its text, whatever it looks like; other secrets by their names and shapes."""
        return redacted_text(text.replace(self._secret, MASK) if self._secret else text)

    def _add(self, kind: str, text: str, status: str = "", data: Mapping[str, Any] | None = None) -> None:
        self.entries.append(Entry(kind, _now(), text, status, self._round, data or {}))


def _identity(descriptor: int) -> tuple[int, int]:
    """Two names of one file have the same."""
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _require_same(found: tuple[int, int], made: tuple[int, int] | None) -> None:
    if found != made:
        raise OSError(errno.ESTALE, "it is another file now")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _unwritable(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"The transcript cannot be written to {path}: {error.strerror or error}. Name another file: /save FILE"
    )
