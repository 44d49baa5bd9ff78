"""Bytes that a terminal sent -> the keys that were pressed."""

from __future__ import annotations

import re

__all__ = ["ESCAPE", "INTERRUPTS", "SUSPEND", "UNKNOWN", "is_unfinished", "keys_of"]

ESCAPE = "escape"
UNKNOWN = "unknown"
INTERRUPTS = ("\x03", "\x04", "\x1c")
"""Ctrl-C, Ctrl-D and Ctrl-\\, as bytes: the terminal is told to make no signals of them."""
SUSPEND = "\x1a"

# A control sequence, a function key, a key with Alt, or a single byte.
PRESS = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO[@-~]|\x1b[^\x1b\[O]|.", re.DOTALL)
UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|O)?\Z")
NAMES = {
    b"\x1b": ESCAPE,
    b"\x1b[A": "up",
    b"\x1bOA": "up",
    b"\x1b[B": "down",
    b"\x1bOB": "down",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    b"\x1b[H": "home",
    b"\x1bOH": "home",
    b"\x1b[1~": "home",
    b"\x1b[F": "end",
    b"\x1bOF": "end",
    b"\x1b[4~": "end",
}


def keys_of(data: bytes) -> tuple[str, ...]:
    """One name for each key; a sequence that nobody here knows is one unknown key, never several plain ones."""
    return tuple(NAMES.get(press) or name_of(press) for press in PRESS.findall(data))


def name_of(press: bytes) -> str:
    return press.decode("latin-1") if len(press) == 1 else UNKNOWN


def is_unfinished(data: bytes) -> bool:
    """Whether the rest of a sequence may still be on its way."""
    return UNFINISHED.search(data) is not None
