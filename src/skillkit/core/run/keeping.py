"""What a script left in its work folder -> copies in a folder that a person named, among things that scripts wrote.

The folder is opened before the script starts and written by descriptor, so that no link the script leaves there is
followed. Only new files are made. A name that others would obey is changed: the person chose the folder, not the names.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple, Self

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.paths.files import Folder, copy_content
from skillkit.core.paths.guarded_names import (
    ENVIRONMENT_MARK,
    SKILL_MARK,
    SKILLS_FOLDER,
    guarded_inside,
    is_guarded_name,
    of_repository,
)
from skillkit.core.run.guard import importable_names, own_folders
from skillkit.core.values.runs import Artifact

__all__ = ["HARMLESS", "KEPT_BYTES", "Kept", "KeptFolder"]

KEPT_BYTES = 10_000_000_000
"""In total, holes not counted."""
HARMLESS = ".kept"
"""Is added to a name that agents, editors, shells or git would obey."""


class Kept(NamedTuple):
    """What was saved, and where, as the person named it."""

    paths: list[Path]
    renamed: list[Path]
    """Of `paths`, those whose names were changed."""
    folder: Path
    in_the_way: Path | None = None
    """A file that was there already, so that all went into another folder."""


class KeptFolder:
    """A folder held open from before a run until its files are saved."""

    def __init__(self, given: Path) -> None:
        path = os.path.abspath(given)
        self._given = given
        self._held = ExitStack()
        # `.`, `..` and the root have no name beside which another could stand.
        self._is_itself = given.name in ("", os.pardir) or os.path.dirname(path) == path
        self._name = "kept" if self._is_itself else os.path.basename(path)
        self._is_new = False
        try:
            if self._is_itself:
                self._around = self._folder = self._held.enter_context(Folder.named(path, make=True))
            else:
                self._around = self._held.enter_context(Folder.named(os.path.dirname(path), make=True))
                self._is_new = self._around.status(self._name) is None
                self._folder = self._held.enter_context(self._around.folder(self._name, make=True))
        except OSError as error:
            self._held.close()
            raise ConfigurationError(f"--keep: {path} cannot be used: {error.strerror}. {_remedy(error)}") from error

    def save(self, artifacts: Sequence[Artifact]) -> Kept:
        """New files only: where one of them is there already, all go into a new folder beside it."""
        if not artifacts:
            return Kept([], [], self._given)
        self._require_in_place()
        names = _harmless(self._folder.path, [artifact.relative_path.parts for artifact in artifacts])
        taken = next((parts for parts in names if _exists(self._folder, parts)), None)
        folder, shown = (self._folder, self._given) if taken is None else self._new_beside()
        left, saved, renamed = KEPT_BYTES, list[Path](), list[Path]()
        for artifact, parts in zip(artifacts, names, strict=True):
            path = shown.joinpath(*parts)
            try:
                left -= _copy(artifact, folder, parts, limit=left)
            except OSError as error:
                raise _unsaved(artifact, path, error) from error
            saved.append(path)
            if parts != artifact.relative_path.parts:
                renamed.append(path)
        return Kept(saved, renamed, shown, self._given.joinpath(*taken) if taken else None)

    def close(self) -> None:
        """A folder that was made for nothing goes again."""
        with suppress(OSError):
            status = self._around.status(self._name) if self._is_new else None
            if status is not None and stat.S_ISDIR(status.st_mode):
                self._around.remove(self._name)
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _require_in_place(self) -> None:
        """What it is called now may be another folder; and this one may have become part of something else."""
        with suppress(OSError), Folder.named(self._folder.path) as now:
            if self._folder.is_still_at(now.path):
                return
        raise ConfigurationError(
            f"--keep: {self._folder.path} was moved or replaced while the script ran, so nothing was saved there. "
            "Look at what the script did before you name a folder again."
        )

    def _new_beside(self) -> tuple[Folder, Path]:
        """And what a person calls it."""
        for number in count(2):
            name = f"{self._name}-{number}"
            with suppress(FileExistsError):
                folder = self._held.enter_context(self._around.new_folder(name))
                return folder, self._given / name if self._is_itself else self._given.with_name(name)
        raise AssertionError  # there is always a further number


def _copy(artifact: Artifact, target: Folder, parts: tuple[str, ...], *, limit: int) -> int:
    """How many bytes; nothing that has the name where it fails."""
    work = artifact.path.parents[len(artifact.relative_path.parts) - 1]
    *above, name = artifact.relative_path.parts
    with ExitStack() as held:
        top = held.enter_context(Folder.of(work))
        source = held.enter_context(top.below(above)).open_file(name)
        held.callback(os.close, source)
        folder = held.enter_context(target.below(parts[:-1], make=True))
        copy = folder.new_file(parts[-1])
        held.callback(os.close, copy)
        try:
            return copy_content(source, copy, limit=limit)
        except BaseException:
            folder.remove(parts[-1])
            raise


def _exists(folder: Folder, parts: tuple[str, ...]) -> bool:
    """Also where a file or a link stands in the place of a folder on the way."""
    try:
        with folder.below(parts[:-1]) as inner:
            return inner.status(parts[-1]) is not None
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _harmless(folder: str, paths: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The names that lead to each file below `folder`, changed where they would be obeyed."""
    entries: dict[tuple[str, ...], set[str]] = {}
    for path in paths:
        for place, name in enumerate(path):
            entries.setdefault(path[:place], set()).add(name)
    obeyed = {above: _obeyed((*Path(folder).parts, *above), names) for above, names in entries.items()}
    if folder in own_folders():
        obeyed[()] |= {name for name in entries[()] if name.partition(".")[0] in importable_names()}
    return [
        tuple(name + HARMLESS if name in obeyed[path[:place]] else name for place, name in enumerate(path))
        for path in paths
    ]


def _obeyed(folder: tuple[str, ...], names: set[str]) -> set[str]:
    """Of the names in a folder, those that agents, editors, shells, git or skillkit go by."""
    marks = {ENVIRONMENT_MARK, *([SKILL_MARK] if SKILLS_FOLDER in (part.lower() for part in folder) else [])}
    obeyed = {name for name in names if is_guarded_name(name) or name.lower() in marks}
    return obeyed | set(guarded_inside(folder[-1], names)) | set(of_repository(names))


def _remedy(error: OSError) -> str:
    return "Name the folder itself, without a link." if error.errno == errno.ELOOP else "Name another folder."


def _unsaved(artifact: Artifact, path: Path, error: OSError) -> ConfigurationError:
    reason = error.strerror
    if error.errno == errno.EFBIG:
        reason = f"all that is kept together may have {KEPT_BYTES / 1e9:g} GB"
    return ConfigurationError(
        f"--keep: {artifact.relative_path} cannot be saved as {path}: {reason}. "
        "Name another folder, or let the script leave less."
    )
