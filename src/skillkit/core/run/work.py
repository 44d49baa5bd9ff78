"""The folders that a run may fill: its private work folder and its home, and what the script left in them."""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from skillkit.core.exceptions import ScriptPermissionError, ScriptRefusedError, StateUnavailableError
from skillkit.core.models.digest import SETTLED_NANOSECONDS
from skillkit.core.paths.files import Folder
from skillkit.core.paths.forbidden import WORK_FOLDER_PREFIX
from skillkit.core.paths.temporary import new_held_folder, remove_abandoned, remove_held_folder
from skillkit.core.paths.trees import files_below, remove_entry, remove_tree
from skillkit.core.run.sandbox.base import PRIVATE_FOLDERS
from skillkit.core.store.homes import Home, Homes, HomeSize
from skillkit.core.values.policy import Limits, ScriptPolicy
from skillkit.core.values.runs import Artifact, ScriptCommand, ScriptExecutionResult

__all__ = ["WorkFolders", "environment_with", "open_home", "told_of_home"]

LISTED_ARTIFACTS = 1_000

run_log = logging.getLogger("skillkit.run")


class _Stamp(NamedTuple):
    """Of a folder that was seen empty: while it stays the same, so does the folder.

    Two changes within one tick of a folder's clock look like one, so only a settled stamp counts.
    """

    device: int
    inode: int
    changed: int
    modified: int


class WorkFolders:
    """The folders of one manager's runs; kept while they hold something, all removed by `close`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._root: Path | None = None
        self._cleaner: weakref.finalize[..., WorkFolders] | None = None
        self._empty: list[tuple[Path, _Stamp]] = []
        self._in_use: dict[Path, _Stamp] = {}
        self._given: set[Path] = set()
        """Those that some run, or what is made ready for one, has now."""

    def new(self) -> Path:
        """Private to its run; one that an earlier run left empty is used again, for making one takes time."""
        folder = self._made_or_used_again()
        with self._lock:
            self._given.add(folder)
        return folder

    def _made_or_used_again(self) -> Path:
        with self._lock:
            while self._empty:
                folder, stamp = self._empty.pop()
                if _stamp_of(folder) == stamp:
                    if time.time_ns() - stamp.changed > SETTLED_NANOSECONDS:
                        self._in_use[folder] = stamp
                    return folder
            if self._root is None or not os.path.isdir(self._root):
                remove_abandoned()
                self._root, descriptor = new_held_folder(WORK_FOLDER_PREFIX)
                self._cleaner = weakref.finalize(self, remove_held_folder, str(self._root), os.getpid(), descriptor)
            root = self._root
        return Path(tempfile.mkdtemp(dir=root))

    def new_for(self, command: ScriptCommand) -> Path:
        """The same for a run, with an error that says what to look at."""
        try:
            return self.new()
        except OSError as error:
            raise ScriptPermissionError(
                f"{command.script_name!r} of {command.skill_name!r} gets no work folder: {error.strerror or error}. "
                "Check the folder for temporary files (TMPDIR) and its free space."
            ) from error

    def artifacts(self, folder: Path) -> tuple[Artifact, ...]:
        """What a run left: regular files by path, no links, because those may lead anywhere. Removes nothing."""
        with self._lock:
            stamp = self._in_use.get(folder)
        if (stamp is not None and _stamp_of(folder) == stamp) or empty_stamp_of(folder) is not None:
            return ()
        found = sorted(_files_in(folder), key=lambda artifact: artifact.path)
        if len(found) > LISTED_ARTIFACTS:
            run_log.warning("A script left %d files or more; the first %d are listed", len(found), LISTED_ARTIFACTS)
        return tuple(found[:LISTED_ARTIFACTS])

    def tidy(self, folder: Path) -> None:
        """After a run: a folder that holds no file is used again, or goes. Once: the next time it may be another's."""
        with self._lock:
            if folder not in self._given:
                return
            self._given.discard(folder)
            stamp = self._in_use.pop(folder, None)
        if stamp is None or _stamp_of(folder) != stamp:
            stamp = empty_stamp_of(folder) or empty_stamp_of(_without_private_folders(folder))
        if stamp is not None:
            with self._lock:
                self._empty.append((folder, stamp))
        elif next(_files_in(folder), None) is None:
            remove_tree(folder)

    def close(self) -> None:
        with self._lock:
            if self._cleaner is not None:
                self._cleaner()
            self._root = self._cleaner = None
            self._empty.clear()
            self._in_use.clear()
            self._given.clear()


def _without_private_folders(folder: Path) -> Path:
    """What walls put there for themselves goes with the run; nothing where a link stands in the folder's place."""
    with contextlib.suppress(OSError), Folder.of(folder) as top:
        for name in PRIVATE_FOLDERS:
            remove_entry(top, name)
    return folder


def _stamp_of(folder: Path) -> _Stamp | None:
    """None when it is gone, no folder, or not ours alone any more."""
    try:
        status = os.lstat(folder)
    except OSError:
        return None
    if status.st_mode != stat.S_IFDIR | 0o700:
        return None
    return _Stamp(status.st_dev, status.st_ino, status.st_ctime_ns, status.st_mtime_ns)


def empty_stamp_of(folder: Path) -> _Stamp | None:
    """Taken before looking: whoever puts something in afterwards changes it."""
    stamp = _stamp_of(folder)
    try:
        return None if stamp is None or os.listdir(folder) else stamp
    except OSError:
        return None


def _files_in(folder: Path) -> Iterator[Artifact]:
    """Nothing where the script put a link in place of the folder itself; what walls put there is not the script's."""
    with contextlib.suppress(OSError), Folder.of(folder) as top:
        for names, status in files_below(top, left_out=PRIVATE_FOLDERS):
            relative = Path(*names)
            yield Artifact(folder / relative, status.st_size, relative)


def environment_with(command: ScriptCommand, work: Path, *, has_walls: bool) -> dict[str, str]:
    """Its environment, the work folder, and inside walls for Ruby the one list of gems that is the skill's own."""
    environment = {**command.environment, "SKILL_WORK_DIR": str(work)}
    if has_walls and command.interpreter == "ruby" and not command.is_program:
        names = [name for name in ("gems.rb", "Gemfile") if os.path.exists(command.base_directory / name)]
        # Else Bundler looks for one from the working directory upwards, and runs it.
        environment["BUNDLE_GEMFILE"] = str(command.base_directory / (names or ["Gemfile"])[0])
    return environment


def open_home(homes: Homes, command: ScriptCommand, policy: ScriptPolicy) -> Home | None:
    """The home that stays, or None for a new one; one that holds too much is refused."""
    if policy.home != "kept" or policy.allow_filesystem or command.is_program:
        return None
    skill, folder = command.skill_name, command.base_directory
    try:
        home = homes.open(skill, folder, command.digest, stays=policy.approval == "never")
    except OSError as error:
        raise StateUnavailableError(
            f"The home of {skill!r} cannot be opened: {error.strerror or error}. {_remedy(homes, skill)}"
        ) from error
    if home.above:
        size = homes.measure(home.path)
        if homes.note_size(skill, folder, home.path, size, policy.limits.home_megabytes):
            raise ScriptRefusedError.because(_too_much(skill, size, policy.limits), _remedy(homes, skill))
    return home


def told_of_home(
    homes: Homes, command: ScriptCommand, home: Home, limits: Limits, result: ScriptExecutionResult
) -> ScriptExecutionResult:
    """The result, and in its hint that the home is a new one, or holds too much for another run."""
    skill, said = command.skill_name, []
    if home.is_after_change:
        where = homes.command(skill)
        said.append(f"{skill!r} changed, so it began with an empty home; what it kept before is set aside: {where}")
    if empty_stamp_of(home.path) is None:
        size = homes.measure(home.path)
        try:
            is_above = homes.note_size(skill, command.base_directory, home.path, size, limits.home_megabytes)
        except StateUnavailableError:  # the next run finds out by itself
            is_above = size.is_above(limits.home_megabytes)
        if is_above:
            said.append(f"{_too_much(skill, size, limits)}: its next run is refused. {_remedy(homes, skill)}")
    return replace(result, hint=" ".join(filter(None, (result.hint, *said)))) if said else result


def _too_much(skill: str, size: HomeSize, limits: Limits) -> str:
    if not size.is_whole:
        return f"The home that is kept for {skill!r} holds more, or deeper, than can be looked through"
    return (
        f"The home that is kept for {skill!r} holds {size.megabytes:,.0f} MB, more than the "
        f"{limits.home_megabytes:,} MB of the policy key limits.home_megabytes"
    )


def _remedy(homes: Homes, skill: str) -> str:
    return f"Empty it with: {homes.command(skill)} --clear"
