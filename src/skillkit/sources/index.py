"""A site's index of skills (`/.well-known/agent-skills/index.json`) -> a tree with one folder for each of them.

Each artifact is named with its `sha256:`, and one that has another content is refused. A client can only know that the
site says so: index and artifacts come from the same place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import urljoin

from skillkit.core.exceptions import SourceRefusedError, SourceUnavailableError
from skillkit.core.values.text import visible
from skillkit.sources.archives import ARCHIVE_BYTES, ArchiveTree
from skillkit.sources.downloads import download
from skillkit.sources.listing import Listed

__all__ = ["IndexTree"]

INDEX_BYTES = 5_000_000
SKILL_FILE_BYTES = 10_000_000
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
SKILLS = 1000


class IndexTree:
    """Only what is wanted is fetched; all of it where nothing is named."""

    def __init__(
        self, url: str, wanted: Collection[str], *, seconds: float, on_progress: Callable[[str], None] | None = None
    ) -> None:
        self._url = url
        self._seconds = seconds
        self._on_progress = on_progress
        self._contents: list[bytes] = []
        self._versions: dict[str, str] = {}
        listed: list[Listed] = []
        for entry in self._entries():
            if not wanted or entry["name"] in wanted:
                listed += self._fetched(entry)
        self.listed: Sequence[Listed] = listed

    def version_of(self, path: str) -> str:
        """The hash of the artifact from which this came."""
        return self._versions[path.partition("/")[0]]

    def read(self, entries: Sequence[Listed]) -> list[bytes]:
        return [self._contents[entry.key] for entry in entries]

    def _entries(self) -> list[dict[str, str]]:
        raw = download(self._url, INDEX_BYTES, seconds=self._seconds)
        try:
            skills = json.loads(raw)["skills"]
            entries = [self._checked(entry) for entry in skills]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise SourceUnavailableError(
                f"{visible(self._url)} is no index of skills: it has no list 'skills' of objects with name, type, url "
                "and digest. Check the address."
            ) from error
        if len(entries) > SKILLS:
            raise SourceRefusedError(f"{visible(self._url)} lists more than {SKILLS} skills. Name some by --skill.")
        return entries

    def _checked(self, entry: dict[str, Any]) -> dict[str, str]:
        name, kind, url, digest = (str(entry[key]) for key in ("name", "type", "url", "digest"))
        if not NAME.fullmatch(name) or kind not in ("skill-md", "archive") or not DIGEST.fullmatch(digest):
            raise SourceRefusedError(
                f"{visible(self._url)}: {name!r} cannot be taken: its name, its type ({kind!r}) or its digest "
                f"({digest[:80]!r}) is none that the format knows. Tell the site's owner."
            )
        return {"name": name, "type": kind, "url": urljoin(self._url, url), "digest": digest}

    def _fetched(self, entry: dict[str, str]) -> list[Listed]:
        name, limit = entry["name"], SKILL_FILE_BYTES if entry["type"] == "skill-md" else ARCHIVE_BYTES
        content = download(entry["url"], limit, seconds=self._seconds, on_progress=self._on_progress)
        found = f"sha256:{sha256(content).hexdigest()}"
        if found != entry["digest"]:
            raise SourceRefusedError(
                f"{visible(entry['url'])} has the digest {found}, and the index says {entry['digest']}: somebody "
                "changed one of them. Nothing was changed here. Ask the site's owner."
            )
        self._versions[name] = found
        if entry["type"] == "skill-md":
            return [self._kept(Listed(f"{name}/SKILL.md", "file", len(content), None), content)]
        tree = ArchiveTree(entry["url"], content)
        contents = tree.read(tree.listed)
        top = _common_folder(tree.listed)
        inside = [each._replace(path=f"{name}/{each.path.removeprefix(top)}") for each in tree.listed]
        return [self._kept(each, held) for each, held in zip(inside, contents, strict=True)]

    def _kept(self, entry: Listed, content: bytes) -> Listed:
        self._contents.append(content)
        return entry._replace(key=len(self._contents) - 1)


def _common_folder(listed: Sequence[Listed]) -> str:
    """The one folder around everything, if the skill does not lie at the top."""
    if any("/" not in entry.path for entry in listed):
        return ""
    tops = {entry.path.partition("/")[0] for entry in listed}
    return f"{tops.pop()}/" if len(tops) == 1 else ""
