"""One SKILL.md -> what it says, kept as text until somebody asks, and on disk for the next discovery.

What is on disk may be deleted at any time; only parsing is saved, every file is still checked by stat.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillkit._version import __version__
from skillkit.core.exceptions import InvalidFrontmatterError, MissingRequiredFieldError, SkillParsingError
from skillkit.core.find.roots import Root
from skillkit.core.models import SKILL_FILE_LIMIT_BYTES, SkillMetadata, open_at_once
from skillkit.core.paths import is_own_state
from skillkit.core.paths.files import replace_file
from skillkit.core.values.skills import Diagnostic
from skillkit.core.values.text import grouped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.core.models.frontmatter import Frontmatter

__all__ = ["NAME_LIMIT", "Reading", "ReadingCache", "file_key", "read_skill_file"]

HEAD_BYTES = 4096
NAME_LIMIT = 64
STANDARD_FIELDS = frozenset(("name", "description", "license", "compatibility", "metadata", "allowed-tools", "version"))
NOTHING = "[]"
FORMAT = f"skillkit readings 1 {__version__}"
# A file changed twice within one tick of its clock looks unchanged; so a fresh file is read again.
SETTLED_NANOSECONDS = 2_000_000_000
KEPT_ROOTS = 64

NoteRow = list[Any]


@dataclass(frozen=True, slots=True)
class Reading:
    """`fields` and `notes` are JSON; an empty `name` means that the file cannot be used."""

    name: str
    fields: str
    notes: str

    def metadata(self, path: str, root: Root) -> SkillMetadata:
        description, tools, version, licence, compatibility, metadata, extra = json.loads(self.fields)
        return SkillMetadata(
            name=self.name,
            description=description,
            skill_path=Path(path),
            allowed_tools=tuple(tools),
            version=version,
            license=licence,
            compatibility=compatibility,
            metadata=metadata,
            extra=extra,
            source=root.source,
            plugin_root=root.plugin_root,
            host=root.host,
        )

    def diagnostics(self, path: str) -> list[Diagnostic]:
        if self.notes == NOTHING:
            return []
        place = Path(path)
        return [
            Diagnostic(severity, code, message, place, line, remedy)
            for severity, code, message, line, remedy in json.loads(self.notes)
        ]


def read_skill_file(path: str, status: os.stat_result) -> Reading:
    """Never raises for what a file holds: a file that cannot be used gives a note that says why."""
    from skillkit.core.models.frontmatter import read_frontmatter  # a cached discovery parses nothing

    try:
        frontmatter = read_frontmatter(_head_of(path, status))
        notes = [["warning", note.code, note.message, note.line, note.remedy] for note in frontmatter.notes]
        fields = fields_of(frontmatter, notes)
        name = _skill_name(frontmatter, path.split("/")[-2], notes)
        return Reading(name, json.dumps(fields), json.dumps(notes) if notes else NOTHING)
    except SkillParsingError as error:
        return _unusable(error.code, str(error), error.line, error.remedy)
    except OSError as error:
        message = f"The file cannot be read ({error.strerror})."
        return _unusable("unreadable-file", message, None, "Make it readable or remove it.")


def _unusable(code: str, message: str, line: int | None, remedy: str) -> Reading:
    return Reading("", NOTHING, json.dumps([["error", code, message, line, remedy]]))


def _head_of(path: str, status: os.stat_result) -> bytes:
    """As much of the file as holds its frontmatter; the rest stays unread until somebody loads the skill."""
    if not stat.S_ISREG(status.st_mode):
        raise InvalidFrontmatterError("It is not a regular file.", remedy="Replace it by a text file.")
    if status.st_size > SKILL_FILE_LIMIT_BYTES:
        raise InvalidFrontmatterError(
            f"The file has {grouped(status.st_size)} bytes; the limit is {grouped(SKILL_FILE_LIMIT_BYTES)}.",
            remedy="Move long texts into references/.",
        )
    from skillkit.core.models.frontmatter import is_closed

    with open(path, "rb", buffering=0, opener=open_at_once) as file:
        head = file.read(HEAD_BYTES) or b""
        whole_lines = head[: head.rfind(b"\n") + 1]
        if len(head) < HEAD_BYTES or not is_closed(whole_lines):
            return head + (file.read(SKILL_FILE_LIMIT_BYTES) or b"")
    return whole_lines


def fields_of(frontmatter: Frontmatter, notes: list[NoteRow]) -> list[Any]:
    """Everything but the name, in the order in which SkillMetadata takes it."""
    from skillkit.core.models.frontmatter import split_tools, text_of

    fields = frontmatter.fields
    description = text_of(fields.get("description"))
    if not description:
        raise MissingRequiredFieldError(
            "The field 'description' is missing or empty.",
            field_name="description",
            line=frontmatter.lines.get("description", 1),
            remedy="Add 'description: what the skill does and when to use it'.",
        )
    metadata = fields.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        line = frontmatter.lines.get("metadata", 1)
        message = "'metadata' is not a map; it is left out."
        notes.append(["warning", "odd-metadata", message, line, "Write it as 'key: value' lines."])
    metadata = metadata if isinstance(metadata, dict) else {}
    return [
        description,
        split_tools(fields.get("allowed-tools")),
        text_of(fields.get("version")) or text_of(metadata.get("version")) or None,
        text_of(fields.get("license")) or None,
        text_of(fields.get("compatibility")) or None,
        metadata,
        {key: value for key, value in fields.items() if key not in STANDARD_FIELDS},
    ]


def _skill_name(frontmatter: Frontmatter, folder: str, notes: list[NoteRow]) -> str:
    """The label it gives itself; the folder's name when it gives none."""
    from skillkit.core.models.frontmatter import text_of

    name = text_of(frontmatter.fields.get("name"))
    line = frontmatter.lines.get("name", 1)
    if not name:
        message = f"It has no name; the folder's is used: {folder!r}."
        notes.append(["warning", "missing-name", message, line, "Add 'name:'."])
        # A folder's name may be no UTF-8, but a skill's is sent to models, clients and pages.
        readable = os.fsencode(folder).decode("utf-8", "replace")
        return text_of(readable) or readable
    if name != folder:
        message = f"The name {name!r} is not the folder's name {folder!r}."
        notes.append(["warning", "name-mismatch", message, line, "Rename one of them."])
    if len(name) > NAME_LIMIT:
        message = f"The name has {grouped(len(name))} characters."
        notes.append(["warning", "long-name", message, line, f"Use at most {NAME_LIMIT}."])
    return name


def file_key(status: os.stat_result) -> str:
    """What must be unchanged for an earlier reading to count."""
    return f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


class ReadingCache:
    """The readings of one root, a line each."""

    def __init__(self, folder: Path, root: str) -> None:
        self.folder = folder
        self.root = root
        self._known: dict[str, str] = {}
        self._current: list[str] = []
        self._is_changed = False

    @property
    def file(self) -> Path:
        root = os.fsencode(self.root)
        return self.folder / f"{zlib.crc32(root):08x}{zlib.adler32(root):08x}"

    def load(self) -> None:
        """A file that is not exactly what was saved counts as none; so does what another user can have written."""
        if not is_own_state(self.folder.parent, self.folder, self.file):
            return
        with contextlib.suppress(OSError, ValueError):
            header, _, body = self.file.read_bytes().partition(b"\n")
            if header.decode() == _header_of(body):
                lines = body.decode("utf-8", "surrogateescape").split("\n")
                self._known = {line.split("\t", 1)[0]: line for line in lines if line}

    def get(self, path: str, key: str) -> Reading | None:
        line = self._known.get(path)
        if line is None:
            return None
        _, known_key, name, fields, notes = line.split("\t")
        if known_key != key:
            return None
        self._current.append(line)
        return Reading(name, fields, notes)

    def put(self, path: str, status: os.stat_result, reading: Reading) -> None:
        is_settled = time.time_ns() - status.st_ctime_ns > SETTLED_NANOSECONDS
        # A tab or line break in a path or name would end its column; such a file is read every time.
        if is_settled and (path + reading.name).isprintable():
            self._current.append("\t".join((path, file_key(status), reading.name, reading.fields, reading.notes)))
            self._is_changed = True

    def save(self) -> None:
        """Only when something changed; failing costs time at the next discovery, nothing else."""
        if not self._is_changed and len(self._current) == len(self._known):
            return
        with contextlib.suppress(OSError, ValueError):
            body = "\n".join(self._current).encode("utf-8", "surrogateescape")
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self.file, _header_of(body).encode() + b"\n" + body)
            drop_oldest(self.folder)


def _header_of(body: bytes) -> str:
    return f"{FORMAT} {zlib.crc32(body):08x}"


def drop_oldest(folder: Path) -> None:
    files = sorted(folder.glob("[0-9a-f]*"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files[KEPT_ROOTS:]:
        file.unlink(missing_ok=True)
