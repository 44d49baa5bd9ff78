"""What a source lists -> what of it may become a skill's file; the rest is refused by its name.

Theory of operation. Nothing is written before all of it was judged by name, kind and size. A link may only lead to
what lies in the same skill: it is relative, and its `..` stand at its beginning, where only real folders are. So a
chain of links stays inside too, because each of them does. Two names that some file system takes for one are refused,
because on such a machine one of the files would silently be the other.
"""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from skillkit.core.exceptions import SizeLimitExceededError, SourceRefusedError
from skillkit.core.values.text import grouped

__all__ = [
    "FILES",
    "FILE_BYTES",
    "LISTED",
    "SKILL_BYTES",
    "Listed",
    "Tree",
    "read_within",
    "require_content",
    "require_listed",
]

LISTED = 1_000_000
"""Entries of a whole source."""
FILES = 20_000
FILE_BYTES = 50_000_000
SKILL_BYTES = 200_000_000
SOURCE_BYTES = 400_000_000
"""Held in memory at a time; the same file many times over is a few bytes in a repository or an archive."""
DEPTH = 50
NAME_BYTES = 255
PATH_BYTES = 1024
POINTER_BYTES = 1024
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
# What Windows takes for a device, whatever stands behind its dot.
DEVICES = frozenset(
    ("con", "prn", "aux", "nul", *(f"com{n}" for n in range(1, 10)), *(f"lpt{n}" for n in range(1, 10)))
)
REFUSED_CHARACTERS = frozenset('\\:*?"<>|')
REFUSED_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
KINDS = {
    "submodule": "is another repository (a submodule), which is not fetched",
    "special": "is neither a file nor a link nor a folder of usual depth",
}

Kind = Literal["file", "program", "link", "submodule", "special"]


class Listed(NamedTuple):
    """One entry of a source; `key` is what its tree reads it by."""

    path: str
    kind: Kind
    size: int
    key: Any


class Tree(Protocol):
    """A source as it was at one moment: listed at once, read when asked."""

    @property
    def listed(self) -> Sequence[Listed]: ...

    def version_of(self, path: str) -> str:
        """A commit, or the hash of an archive; empty for a folder."""
        ...

    def read(self, entries: Sequence[Listed]) -> list[bytes]:
        """In their order; of a link, where it leads."""
        ...


def read_within(tree: Tree, entries: Sequence[Listed], what: str) -> list[bytes]:
    """All of these, if they are not too much together by what the listing says; trees give no more than that."""
    total = sum(entry.size for entry in entries)
    if total > SOURCE_BYTES:
        raise SizeLimitExceededError(
            f"Nothing is added: {what} {grouped(total)} bytes together; the limit is {grouped(SOURCE_BYTES)}. "
            "Name fewer by --skill, or the folder of the one that you want.",
            size=total,
            limit=SOURCE_BYTES,
        )
    return tree.read(entries)


def require_listed(skill: str, entries: Sequence[Listed]) -> None:
    """Before anything is read; `path` of each is already relative to the skill."""
    if len(entries) > FILES:
        raise _too_large(skill, f"{grouped(len(entries))} files", len(entries), FILES)
    for entry in entries:
        if reason := _reason_against(entry):
            raise _refused(skill, entry.path, reason)
    total = sum(entry.size for entry in entries)
    if total > SKILL_BYTES:
        raise _too_large(skill, f"{grouped(total)} bytes", total, SKILL_BYTES)
    _require_distinct(skill, entries)


def require_content(skill: str, entry: Listed, content: bytes) -> None:
    """What can only be told by what is in it."""
    if entry.kind == "link":
        if reason := _reason_against_link(entry.path, content):
            raise _refused(skill, entry.path, reason)
    elif len(content) <= POINTER_BYTES and content.startswith(LFS_POINTER):
        raise _refused(skill, entry.path, "is a pointer of Git LFS, and the file itself is not fetched")


def _reason_against(entry: Listed) -> str:
    if entry.kind in KINDS:
        return KINDS[entry.kind]
    if entry.size > FILE_BYTES:
        return f"has {grouped(entry.size)} bytes, more than {grouped(FILE_BYTES)}"
    names = entry.path.split("/")
    if len(names) > DEPTH or len(entry.path.encode("utf-8", "surrogateescape")) > PATH_BYTES:
        return "lies too deep, or its path is too long"
    return next(filter(None, map(_reason_against_name, names)), "")


def _reason_against_name(name: str) -> str:
    if name in ("", ".", ".."):
        return "has a path that may lead out of the skill"
    if len(name.encode("utf-8", "surrogateescape")) > NAME_BYTES:
        return "has a name that is too long"
    if any(letter in REFUSED_CHARACTERS or unicodedata.category(letter) in REFUSED_CATEGORIES for letter in name):
        return "has a name with characters that are not shown, or that some systems do not allow"
    if name[-1] in " ." or name[0] == " ":
        return "has a name that begins or ends with a space, or ends with a dot"
    plain = _plain(name)
    if plain == ".git":
        return "is inside '.git', which is no part of a skill"
    return "has the name of a device" if plain.partition(".")[0] in DEVICES else ""


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKD", name).casefold())


def _require_distinct(skill: str, entries: Iterable[Listed]) -> None:
    """Files and the folders above them: no two that differ only in case or in the normal form of their letters."""
    known: dict[str, str] = {}
    files = set[str]()
    for entry in entries:
        for path in _with_folders(entry.path):
            other = known.setdefault(_plain(path), path)
            if other != path:
                raise _refused(skill, path, f"differs from {other!r} only in case or in the form of its letters")
        if entry.path in files:
            raise _refused(skill, entry.path, "is there twice")
        files.add(entry.path)
    for path in known.values():
        if above := next((folder for folder in _with_folders(posixpath.dirname(path)) if folder in files), ""):
            raise _refused(skill, path, f"lies below {above!r}, which is a file or a link")


def _with_folders(path: str) -> Iterator[str]:
    while path:
        yield path
        path = posixpath.dirname(path)


def _reason_against_link(path: str, content: bytes) -> str:
    try:
        target = content.decode("utf-8")
    except UnicodeDecodeError:
        return "is a link to a name that is no text"
    names = target.split("/")
    above = next((place for place, name in enumerate(names) if name != ".."), len(names))
    leads_out = target.startswith("/") or above > path.count("/") or ".." in names[above:]
    if leads_out or not target.isprintable():
        return f"is a link that leads out of the skill, to {target!r}"
    return next(filter(None, (_reason_against_name(name) for name in names[above:] if name not in ("", "."))), "")


def _refused(skill: str, path: str, reason: str) -> SourceRefusedError:
    return SourceRefusedError(
        f"{skill!r} is not added: {path!r} {reason}. Nothing was changed. Tell the skill's author, or add others of "
        "its source by --skill."
    )


def _too_large(skill: str, what: str, size: int, limit: int) -> SizeLimitExceededError:
    return SizeLimitExceededError(
        f"{skill!r} is not added: it has {what}; the limit is {grouped(limit)}. Nothing was changed. "
        "Name the folder of the skill itself, if the source holds more than that.",
        size=size,
        limit=limit,
    )
