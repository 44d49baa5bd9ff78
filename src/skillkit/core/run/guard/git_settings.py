"""A repository -> what its configuration makes git start or read that lies elsewhere: hooks, filters, further settings.

A script may have written all of it, so nothing here follows a link of folders or takes more than one pass over a text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

__all__ = ["named_by_git"]

CONFIG_BYTES = 1 << 18
CONFIGURED = 100  # files of one repository, its submodules, its worktrees and what they include
LOOKED_INTO = 1_000  # folders in which those are looked for
# What git starts or reads by a path.
KEYS = frozenset(
    """
    hookspath path fsmonitor sshcommand askpass editor pager textconv clean smudge process driver command cmd helper
    program attributesfile excludesfile templatedir gitproxy alternaterefscommand external difffilter uploadpack
    receivepack vcs defaultkeycommand recentobjectshook packobjectshook tocmd cccmd sendmailcmd smtpserver update
    """.split()
)
# Of these, what the others leave to the search path: a bare name is a path here.
PATH_KEYS = frozenset(("hookspath", "path", "attributesfile", "excludesfile", "templatedir"))
INCLUDED, WORKTREE = "path", "worktree"


def named_by_git(repository: str) -> tuple[list[str], list[str]]:
    """The paths that are named, there or not, and the files that were read to tell."""
    waiting = list(_configurations(repository))[::-1]
    above = os.path.dirname(repository)
    named: dict[str, None] = {}
    read: dict[str, None] = {}
    while waiting and len(read) < CONFIGURED:
        config = waiting.pop()
        if config in read:
            continue
        read[config] = None
        settings = list(_settings(_text_of(config)))
        own = os.path.dirname(config)
        starts = [above, own, *(os.path.join(own, value) for key, value in settings if key == WORKTREE)]
        for key, value in settings:
            if key in KEYS:
                named.update((path, None) for path in _paths(value, starts, is_path=key in PATH_KEYS))
            if key == INCLUDED:
                waiting += [path for path in _paths(value, [own], is_path=True) if os.path.isfile(path)]
    return list(named), list(read)


def _paths(value: str, starts: list[str], *, is_path: bool) -> Iterator[str]:
    """Of a path, or of a command that begins with one."""
    for word in {value, value.lstrip("!").split(" ")[0]} - {""}:
        for start in starts:
            path = os.path.normpath(os.path.join(start, os.path.expanduser(word)))
            if "\0" not in path and (is_path or os.sep in word or os.path.lexists(path)):
                yield path


def _settings(text: str) -> Iterator[tuple[str, str]]:
    """Keys in small letters, without their sections, and values."""
    for line in text.replace("\\\n", "").split("\n"):
        words = line.strip()
        if words.startswith("["):
            words = words.partition('"]' if '"]' in words else "]")[2]
        key, sign, value = words.partition("=")
        if sign:
            yield key.strip().lower(), _plain(value)


def _plain(value: str) -> str:
    """Without quotes, and without what follows as a comment."""
    plain: list[str] = []
    is_quoted = is_escaped = False
    for character in value.strip():
        if is_escaped or character not in '"\\#;':
            plain.append(character)
            is_escaped = False
        elif character == "\\":
            is_escaped = True
        elif character == '"':
            is_quoted = not is_quoted
        elif is_quoted:
            plain.append(character)
        else:
            break
    return "".join(plain).strip()


def _configurations(repository: str) -> Iterator[str]:
    """Of a repository, its worktrees and its submodules, however they are nested."""
    pending, left = [repository], LOOKED_INTO
    while pending and left:
        folder = pending.pop()
        left -= 1
        names = _listed(folder)
        if "HEAD" not in names:
            if folder != repository:  # a submodule's name may have several parts
                pending += _folders(folder, names)
            continue
        yield from (os.path.join(folder, name) for name in ("config", "config.worktree") if name in names)
        for inner in _folders(folder, {"modules", "worktrees"} & names):
            pending += _folders(inner, _listed(inner))


def _folders(folder: str, names: set[str]) -> list[str]:
    paths = [os.path.join(folder, name) for name in sorted(names)]
    return [path for path in paths if os.path.isdir(path) and not os.path.islink(path)]


def _listed(folder: str) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def _text_of(config: str) -> str:
    """Empty for what is no plain file: a pipe would be waited for."""
    if not os.path.isfile(config):
        return ""
    try:
        with open(config, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(CONFIG_BYTES)
    except OSError:
        return ""
