"""The arguments of a call -> the paths they name, which the script may therefore read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from skillkit.core.paths import is_inside
from skillkit.core.runs import ScriptCommand

__all__ = ["granted_paths", "is_never_granted"]

LOOKED_AT = 10_000  # texts
GRANTED = 64  # paths; each costs a mount
PATH_LIMIT = 4096  # characters, the kernel's
# What holds keys, passwords and sessions, below the home folder.
CREDENTIALS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".password-store"),
    *(".netrc", ".git-credentials", ".npmrc", ".pypirc", ".cargo/credentials.toml", ".local/share/keyrings"),
    *(".mozilla", ".config/google-chrome", ".config/chromium", ".bash_history", ".zsh_history"),
)
# What is the machine's, not the user's: processes, devices, sockets, and who may log in.
MACHINE = ("/proc", "/sys", "/dev", "/run", "/var/run", "/etc", "/boot")


def granted_paths(command: ScriptCommand, state_folder: Path) -> tuple[str, ...]:
    """Existing absolute paths, resolved; the argument that a person saw is the permission."""
    granted: dict[str, None] = {}
    for text in texts_in(command):
        path = named_path(text)
        if path and not is_never_granted(path, state_folder):
            granted[path] = None
        if len(granted) == GRANTED:
            break
    return tuple(granted)


def texts_in(command: ScriptCommand) -> Iterator[str]:
    pending: list[object] = [command.arguments, *reversed(command.script_arguments)]
    for _ in range(LOOKED_AT):
        if not pending:
            return
        value = pending.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, list | tuple):
            pending.extend(value)


def named_path(text: str) -> str:
    """The path in `/data/a.csv` or `--file=/data/a.csv`; empty when there is none on this machine."""
    for candidate in (text, text.partition("=")[2]):
        if candidate.startswith("/") and "\0" not in candidate and len(candidate) < PATH_LIMIT:
            try:
                if os.path.exists(candidate):
                    return os.path.realpath(candidate)
            except (OSError, ValueError):
                continue
    return ""


def is_never_granted(path: str, state_folder: Path) -> bool:
    """The root, home and its parents, the world's state, credentials, and the machine's own folders."""
    homes = {os.path.realpath(home) for home in (os.path.expanduser("~"), os.environ.get("HOME", "")) if home}
    state = os.path.realpath(state_folder)
    closed = [state, *(os.path.join(home, name) for home in homes for name in CREDENTIALS), *MACHINE]
    holds = [state, *homes, *closed]
    return any(is_inside(path, os.path.realpath(each)) for each in closed) or any(
        is_inside(each, path) for each in holds
    )
