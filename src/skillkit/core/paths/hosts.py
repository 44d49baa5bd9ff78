"""Agent hosts -> the folders in which each keeps skills: one table for search, walls and docs.

Where skills are looked for is where nothing may be planted: `find` searches these folders, and their names are guarded
wherever a script may write.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

__all__ = ["HOSTS", "PROJECT_LEVEL", "SYSTEM_LEVEL", "USER_LEVEL", "Host", "folders_at", "guarded_first_names"]

PROJECT_LEVEL, USER_LEVEL, SYSTEM_LEVEL = "project", "user", "system"


class Host(NamedTuple):
    """One host: folders below a project, below the user's home, and of the whole machine."""

    name: str
    """Empty for folders that are no single host's."""
    project: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    system: tuple[str, ...] = ()


def _usual(name: str, folder: str, *more: str) -> Host:
    """A host with one folder of the same name below project and home."""
    return Host(name, (f"{folder}/skills", *more), (f"{folder}/skills",))


HOSTS: tuple[Host, ...] = (
    Host("", ("skills",)),
    Host("", (".agents/skills",), (".agents/skills",)),
    Host("claude", (".claude/skills",), (".claude/skills",), ("/etc/claude-code/.claude/skills",)),
    _usual("augment", ".augment"),
    _usual("cline", ".cline", ".clinerules/skills"),
    Host("codex", (".codex/skills",), (".codex/skills",), ("/etc/codex/skills",)),
    _usual("continue", ".continue"),
    Host("copilot", (".github/skills",), (".copilot/skills",)),
    _usual("cursor", ".cursor"),
    _usual("factory", ".factory"),
    _usual("gemini", ".gemini"),
    Host("goose", (".goose/skills",), (".config/goose/skills", ".config/agents/skills")),
    Host(
        "opencode",
        (".opencode/skill", ".opencode/skills"),
        (".opencode/skill", ".opencode/skills", ".config/opencode/skill", ".config/opencode/skills"),
    ),
    _usual("qwen", ".qwen"),
)
# What was searched before hosts had folders of their own, in order of precedence.
FIRST = ("skills", ".agents/skills", ".claude/skills")


@cache
def folders_at(level: str, *, of_all_hosts: bool = True) -> tuple[tuple[str, str], ...]:
    """Folder and host, in order of precedence: `skills`, `.agents`, `.claude`, then the rest by name."""
    if level == SYSTEM_LEVEL and os.name == "nt":  # there anybody may make a folder `/etc`
        return ()
    found = [(folder, host.name) for host in HOSTS for folder in getattr(host, level)]
    first = [each for name in FIRST for each in found if each[0] == name]
    return (*first, *(sorted(each for each in found if each not in first) if of_all_hosts else ()))


def guarded_first_names() -> dict[str, frozenset[str]]:
    """The first name of each folder below a project or a home, and the second names below it; not `skills` itself."""
    parts = [folder.split("/") for host in HOSTS for folder in (*host.project, *host.user)]
    return {first: _second_names(first, parts) for first, *rest in parts if rest}


def _second_names(first: str, parts: Iterable[list[str]]) -> frozenset[str]:
    return frozenset(names[1] for names in parts if names[0] == first and len(names) > 1)
