"""What a host and a model said to each other, and what stood on the screen -> one text file for a person to read."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["Transcript"]

SHOWN_CHARACTERS = 1_500


class Transcript:
    def __init__(self, file: Path, title: str) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self.file = file
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._seen: set[tuple[str, str, str]] = set()
        file.write_text(f"{title}\n{'=' * len(title)}\n", encoding="utf-8")

    def write(self, line: str, more: Iterable[str] = ()) -> None:
        with self._lock, self.file.open("a", encoding="utf-8") as file:
            file.write(f"\n[{time.monotonic() - self._began:6.1f} s] {line}\n")
            file.writelines(f"    {each}\n" for each in more)

    def screen(self, what: str, rows: Iterable[str]) -> None:
        self.write(f"SCREEN: {what}", [f"| {row.rstrip()}" for row in rows])

    def conversed(self, path: str, conversation: Any, said: Any) -> None:
        """What the model was told that it did not know yet, and what it said."""
        told = [f"tools: {', '.join(tool.name for tool in conversation.tools) or 'none'}"]
        told += [
            f"tool {tool.name}: {_cut(tool.description)}"
            for tool in conversation.tools
            if self._is_new("tool", tool.name, tool.description) and "skill" in tool.name
        ]
        told += [
            f"{turn.kind} {turn.tool}: {_cut(turn.text)}"
            for turn in conversation.turns
            if self._is_new(turn.kind, turn.tool, turn.text)
        ]
        answer = said.text if said.tool is None else f"calls {said.tool.name} {said.arguments}"
        self.write(
            f"MODEL {path.partition('?')[0]}", [line for each in [*told, f"=> {answer}"] for line in each.splitlines()]
        )

    def _is_new(self, *what: str) -> bool:
        key = (what[0], what[1], what[2])
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]} [... {len(text)} characters]"
