"""`skills.lock` <-> where each skill came from and what it has to be. Anybody may have written it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.paths.files import Folder
from skillkit.core.paths.hosts import PROJECT_LEVEL, USER_LEVEL, folders_at
from skillkit.core.values.text import toml_of
from skillkit.sources.choosing import NAME
from skillkit.sources.given import Source, locked_source

__all__ = ["LOCK_FILE", "USUAL_FOLDER", "Locked", "lock_text", "read_lock", "write_lock"]

LOCK_FILE = "skills.lock"
USUAL_FOLDER = "skills"
VERSION = 1
LOCK_BYTES = 10_000_000
DIGEST = re.compile(r"[0-9a-f]{64}")
COMMIT = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64}|sha256:[0-9a-f]{64})?")
HEAD = """# Written by skillkit: where each skill came from, and the digest it must have. Commit this file.
# It gives no trust: what it names is asked about like any other skill.
"""


class Locked(NamedTuple):
    """One skill; `folder` only where it does not lie in `skills`."""

    source: str
    digest: str
    ref: str = ""
    commit: str = ""
    path: str = ""
    signer: str = ""
    folder: str = USUAL_FOLDER

    def as_source(self) -> Source:
        return locked_source(self.source, self.ref, self.path)


FIELDS = ("source", "ref", "commit", "path", "digest", "signer", "folder")


def read_lock(path: Path) -> dict[str, Locked]:
    """By name; nothing where there is no file, an error where there is another thing or what it says is not plain."""
    try:
        with Folder.named(path.parent) as folder, open(folder.open_file(path.name), "rb") as file:
            raw = file.read(LOCK_BYTES + 1)
        if len(raw) > LOCK_BYTES:
            raise ValueError(f"it has more than {LOCK_BYTES:,} bytes")  # noqa: TRY301
        return _locked(toml_of(raw.decode("utf-8")))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}. Make it a plain file.") from error
    except (ValueError, RecursionError, ConfigurationError) as error:
        raise ConfigurationError(
            f"{path} is no lock: {str(error).rstrip('.')}. Take back what was edited in it."
        ) from error


def write_lock(path: Path, skills: Mapping[str, Locked], draft: str = "") -> None:
    """In one step, by way of a file named `draft`; with no skills left, no file."""
    with Folder.named(path.parent) as folder:
        if skills:
            folder.replace(path.name, lock_text(skills).encode(), 0o666, draft)
        elif folder.status(path.name) is not None:
            folder.remove(path.name)


def lock_text(skills: Mapping[str, Locked]) -> str:
    """The same text for the same skills, whoever writes it."""
    parts = [HEAD, f"version = {VERSION}\n"]
    for name, locked in sorted(skills.items()):
        values = locked._asdict()
        rows = [f"{key} = {_quoted(values[key])}" for key in FIELDS if key != "folder" or locked.folder != USUAL_FOLDER]
        parts.append("\n".join([f"[skill.{_key(name)}]", *rows]) + "\n")
    return "\n".join(parts)


def _key(name: str) -> str:
    return name if "." not in name else _quoted(name)


def _quoted(text: str) -> str:
    """A JSON text is a TOML text too, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _locked(content: dict[str, Any]) -> dict[str, Locked]:
    if content.get("version") != VERSION:
        raise ValueError(f"its version is {content.get('version')!r}, not {VERSION}.")
    skills = content.get("skill", {})
    if not isinstance(skills, dict) or content.keys() - {"version", "skill"}:
        raise ValueError("it has keys that no lock has.")
    found = {name: _entry(name, entry) for name, entry in skills.items()}
    if len({name.casefold() for name in found}) < len(found):
        raise ValueError("it has two skills whose names differ only in case.")
    return found


def _entry(name: str, entry: object) -> Locked:
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name for a skill.")
    if not isinstance(entry, dict) or entry.keys() - set(FIELDS) or not {"source", "digest"} <= entry.keys():
        raise ValueError(f"[skill.{name}] needs source and digest, and may have {', '.join(FIELDS)}.")
    if any(not isinstance(value, str) for value in entry.values()):
        raise ValueError(f"[skill.{name}] has a value that is no text.")
    locked = Locked(**entry)
    if not DIGEST.fullmatch(locked.digest) or not COMMIT.fullmatch(locked.commit):
        raise ValueError(f"[skill.{name}] has a digest or a commit that is none.")
    if locked.folder not in _known_folders():
        raise ValueError(f"[skill.{name}] names the folder {locked.folder!r}, in which no host keeps skills.")
    locked.as_source()
    return locked


def _known_folders() -> frozenset[str]:
    """No other: a lock must not say where else to write."""
    return frozenset(folder for level in (PROJECT_LEVEL, USER_LEVEL) for folder, _ in folders_at(level))
