"""An entry of `allowed_commands` and a script -> whether the entry names it."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

__all__ = ["is_script_pattern", "names_script"]

ANY_FOLDERS = "**"


def is_script_pattern(entry: str) -> bool:
    """Entries with a `/` are about scripts, all others about programs."""
    return "/" in entry


def names_script(entry: str, skill_name: str, script_name: str) -> bool:
    """`scripts/*.py`, `scripts/**`, `skill:scripts/x.sh`: `*` stays in one folder, `**` is any number of folders."""
    head, _, tail = entry.partition("/")
    # What stands before a colon is a skill and never part of a path, which a hostile skill could spell likewise.
    skill, colon, first = head.rpartition(":")
    if colon and not fnmatchcase(skill_name, skill):
        return False
    path = f"{first}/{tail}"
    return not path.startswith("/") and fits(script_name.split("/"), plain_parts(path))


def plain_parts(path: str) -> list[str]:
    """`./scripts//x.sh` is `scripts/x.sh`."""
    return [part for part in path.split("/") if part not in ("", ".")]


def fits(parts: Sequence[str], patterns: Sequence[str]) -> bool:
    if not patterns:
        return not parts
    first, *others = patterns
    if first == ANY_FOLDERS:
        return any(fits(parts[start:], others) for start in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], first) and fits(parts[1:], others)
