"""Skills -> what is published of them: `skill://` addresses, digests, the bytes behind an address."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from skillkit.core.digest import LEFT_OUT, file_hash, manifest_of
from skillkit.core.exceptions import SkillKitError, SkillNotFoundError
from skillkit.core.find.validation import NAME, NAME_LIMIT
from skillkit.core.find.walk import SKILL_FILE
from skillkit.core.frontmatter import read_frontmatter
from skillkit.core.manager import SkillManager
from skillkit.core.models import SkillMetadata, open_at_once, skill_file_bytes
from skillkit.core.paths import FilePathResolver, real_path

__all__ = ["NoSuchAddressError", "PublishedFile", "SkillCatalog"]

SCHEME = "skill://"
# What every host must accept; a larger skill may be loadable by none (SEP-2640).
FILE_LIMIT = 512
BYTE_LIMIT = 16 * 1024 * 1024


class NoSuchAddressError(SkillKitError):
    """Nothing is published there."""


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """One file of a skill, by its address."""

    uri: str
    path: str
    """Below the skill's folder."""
    digest: str
    """`sha256:...` of its bytes."""
    size: int


class SkillCatalog:
    """The skills of one manager as their addresses; every look is at the files as they are now."""

    def __init__(self, manager: SkillManager) -> None:
        self.manager = manager

    def skills(self) -> list[SkillMetadata]:
        """In order of precedence, found again: what was installed meanwhile is there."""
        self.manager.discover()
        return self.manager.list_skills()

    def files(self, skill: SkillMetadata) -> list[PublishedFile]:
        """SKILL.md first, then by path; what is no readable file inside the skill is left out."""
        found = [
            PublishedFile(address(skill, relative), relative, *measured)
            for relative, content in manifest_of(skill.base_directory).entries
            if (measured := digest_and_size(skill.base_directory, relative, content)) is not None
        ]
        return sorted(found, key=lambda file: (file.path != SKILL_FILE, file.path))

    def entry(self, skill: SkillMetadata) -> dict[str, Any] | None:
        """As the skills extension describes one; None for a skill that it does not allow to be served."""
        try:
            fields = read_frontmatter(skill_file_bytes(skill.skill_path)).fields
            files = self.files(skill)
        except SkillKitError:
            return None
        is_named = NAME.fullmatch(skill.name) and len(skill.name) <= NAME_LIMIT
        is_small = len(files) <= FILE_LIMIT and sum(file.size for file in files) <= BYTE_LIMIT
        if not (is_named and is_small and fields.get("name") == skill.name and fields.get("description")):
            return None
        resources = [{"uri": file.uri, "digest": file.digest, "size": file.size} for file in files]
        return {"uri": address(skill, SKILL_FILE), "frontmatter": fields, "resources": resources}

    def entry_at(self, uri: str) -> dict[str, Any]:
        """For the address of a SKILL.md."""
        skill, relative = self._located(uri)
        entry = self.entry(skill) if relative == SKILL_FILE else None
        if entry is None:
            raise no_such(uri)
        return entry

    def read(self, uri: str) -> tuple[str, bytes]:
        """A file's path in its skill, and its bytes."""
        skill, relative = self._located(uri)
        try:
            path = published_path(skill.base_directory, relative)
            if path is None:
                raise no_such(uri)
            with open(path, "rb", opener=open_at_once) as file:
                content = file.read(BYTE_LIMIT + 1) or b""
        except (OSError, SkillKitError) as error:
            raise no_such(uri) from error
        if len(content) > BYTE_LIMIT:
            raise NoSuchAddressError(f"{uri!r} has more than {BYTE_LIMIT} bytes, which is more than can be read.")
        return relative, content

    def children(self, uri: str) -> tuple[SkillMetadata, list[PublishedFile], list[str]]:
        """Of a folder's address: its skill, the files that lie directly in it, and the addresses of its folders."""
        name, slash, path = uri.removeprefix(SCHEME).partition("/")
        skill, _ = self._located(f"{SCHEME}{name}/{SKILL_FILE}")
        try:
            below = [file for file in self.files(skill) if file.uri.startswith(f"{uri}/")]
        except SkillKitError as error:
            raise no_such(uri) from error
        if not below or bool(slash) != bool(path):
            raise no_such(uri)
        rest = {file: file.uri.removeprefix(f"{uri}/") for file in below}
        folders = sorted({left.partition("/")[0] for left in rest.values() if "/" in left})
        return skill, [file for file in below if "/" not in rest[file]], [f"{uri}/{folder}" for folder in folders]

    def _located(self, uri: str) -> tuple[SkillMetadata, str]:
        """By the skill's whole name: no other spelling of an address is the same one."""
        name, slash, path = uri.removeprefix(SCHEME).partition("/")
        relative = os.fsdecode(unquote_to_bytes(path))
        wanted = os.fsdecode(unquote_to_bytes(name))
        try:
            skill = self.manager.get_skill(wanted)
        except SkillNotFoundError as error:
            raise no_such(uri) from error
        if not slash or skill.name != wanted or address(skill, relative) != uri:
            raise no_such(uri)
        return skill, relative


def address(skill: SkillMetadata, relative: str) -> str:
    return f"{SCHEME}{quote(skill.name, safe='')}/{quote(os.fsencode(relative), safe='/')}"


def published_path(folder: Path, relative: str) -> Path | None:
    """Where the file behind this path really is; None for what is no file, and for a repository's own."""
    path = FilePathResolver.resolve_path(folder, relative)
    inside = (Path(relative), path.relative_to(real_path(folder)))
    return path if path.is_file() and not any(LEFT_OUT in each.parts for each in inside) else None


def digest_and_size(folder: Path, relative: str, content: str) -> tuple[str, int] | None:
    """Of what a reader of this path gets; a link counts as the file it leads to, inside the skill."""
    try:
        path = published_path(folder, relative)
        if path is None:
            return None
        known = content.removeprefix("sha256 ") if content.startswith("sha256 ") else file_hash(str(path))[1]
        return f"sha256:{known}", path.stat().st_size
    except (OSError, SkillKitError):  # it leads out, or cannot be read
        return None


def no_such(uri: str) -> NoSuchAddressError:
    return NoSuchAddressError(f"Nothing is published at {uri!r}. `resources/list` tells what is.")
