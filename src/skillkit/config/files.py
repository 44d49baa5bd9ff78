"""A folder and the environment -> where the configuration files are, and their text if they may be believed."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from functools import reduce
from operator import or_
from pathlib import Path
from typing import NamedTuple

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.values.text import grouped

__all__ = [
    "CONFIG_VARIABLE",
    "PROJECT",
    "PROJECT_FILE",
    "SIZE_LIMIT_BYTES",
    "USER",
    "Place",
    "current_folder",
    "may_be_written_by_others",
    "project_file",
    "read_text",
    "searched_folders",
    "user_file_place",
]

CONFIG_VARIABLE = "SKILLKIT_CONFIG"
PROJECT_FILE = "skillkit.toml"
USER = "user"
PROJECT = "project"
# Far more than anybody writes, and little enough that no text takes tomllib long.
SIZE_LIMIT_BYTES = 64_000


class Place(NamedTuple):  # every command imports this, and a dataclass takes seven times as long to make
    """Where a value stands: a line of a file, or a word such as `default` or `profile guarded`."""

    kind: str
    file: Path | None = None
    line: int | None = None

    def __str__(self) -> str:
        """`/path/skillkit.toml:3`, on one line whatever the path is."""
        if self.file is None:
            return self.kind
        return f"{self.file}:{self.line}".replace("\n", "\\n") if self.line else str(self.file).replace("\n", "\\n")


def user_file_place(environ: Mapping[str, str], given: Path | None = None) -> tuple[Path | None, bool]:
    """The user's file, and whether somebody named it, so that it must be there."""
    chosen = given or environ.get(CONFIG_VARIABLE)
    if chosen:
        try:
            return Path(chosen).expanduser().absolute(), True
        except (OSError, RuntimeError) as error:  # `~nobody`; the current folder was deleted
            raise ConfigurationError(
                f"{CONFIG_VARIABLE}: {str(chosen)!r} cannot be found: {error}. Write its whole path, or leave it out."
            ) from error
    folder = user_folder(environ)
    return (Path(folder, "config.toml") if folder else None), False


def user_folder(environ: Mapping[str, str]) -> str:
    """Empty for a user without a home. A relative one is none: the project could have put a file there."""
    if sys.platform == "linux":  # what platformdirs says too, for a tenth of a command's start
        named, usual = environ.get("XDG_CONFIG_HOME", ""), os.path.expanduser("~/.config")
        folder = os.path.join(named if os.path.isabs(named) else usual, "skillkit")
    else:
        import platformdirs

        folder = platformdirs.user_config_dir("skillkit", appauthor=False)
    return folder if os.path.isabs(folder) else ""


def current_folder() -> Path | None:
    """None when it was deleted: then no project is there either."""
    try:
        return Path.cwd()
    except OSError:
        return None


def project_file(start: Path | None) -> Path | None:
    """The nearest `skillkit.toml`, a link too: it is found here and refused when it is read."""
    for folder in searched_folders(start):
        path = folder / PROJECT_FILE
        try:
            path.lstat()
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigurationError(
                f"{folder} cannot be searched for {PROJECT_FILE}: {reason}. Start skillkit in another folder."
            ) from error
        return path
    return None


def searched_folders(start: Path | None) -> list[Path]:
    """From the start upwards to the top of a repository; never the home folder, nor what holds it.

    The search also ends at another filesystem, and below a folder in which everybody may put a file.
    """
    if start is None:
        return []
    home_text = os.path.expanduser("~")
    folder, home = _real(start), _real(Path(home_text if os.path.isabs(home_text) else os.sep))
    searched: list[Path] = []
    while not home.is_relative_to(folder) and not (searched and _is_border(searched[-1], folder)):
        searched.append(folder)
        if os.path.lexists(folder / ".git"):
            break
        folder = folder.parent
    return searched


def _is_border(below: Path, folder: Path) -> bool:
    try:
        status = folder.stat()
        return status.st_dev != below.stat().st_dev or bool(status.st_mode & stat.S_IWOTH)
    except OSError:
        return False  # looking for the file there says what is wrong


def _real(path: Path) -> Path:
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{str(path)!r} is no folder that can be searched: {error}. Start skillkit in another folder."
        ) from error


def read_text(place: Place, *, may_loosen: bool) -> str:
    """Refuses what is not a plain text file, and what somebody else could have written."""
    path = place.file
    assert path is not None  # noqa: S101 - a file's place has one
    try:
        descriptor = os.open(path, _open_flags(follow_links=place.kind == USER))
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise ConfigurationError(f"{place} is not a regular file. Replace it by a text file.")
            _refuse_written_by_others(path, status, may_loosen=may_loosen)
            content = file.read(SIZE_LIMIT_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"{place} cannot be read: {_unreadable_reason(place, error)}") from error
    if len(content) > SIZE_LIMIT_BYTES:
        raise ConfigurationError(
            f"{place} is larger than {grouped(SIZE_LIMIT_BYTES)} bytes. Leave out what is no setting."
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(
            f"{Place(place.kind, path, line)}: byte {error.start} is not UTF-8. Save the file as UTF-8."
        ) from error


def _open_flags(*, follow_links: bool) -> int:
    """A pipe in the file's place must not keep us waiting. Names that a system lacks count as nothing."""
    # A repository's link could make an error message show lines of any file of the user's.
    names = ["O_CLOEXEC", "O_NOCTTY", "O_NONBLOCK", "O_BINARY", *([] if follow_links else ["O_NOFOLLOW"])]
    return os.O_RDONLY | reduce(or_, (getattr(os, name, 0) for name in names))


def _unreadable_reason(place: Place, error: OSError) -> str:
    if place.kind == PROJECT and os.path.islink(str(place.file)):
        return "a project's file may not be a link. Replace the link by a copy."
    if isinstance(error, FileNotFoundError):
        return f"it is not there. Create it, or leave {CONFIG_VARIABLE} out."
    if isinstance(error, IsADirectoryError):
        return "it is a folder. Replace it by a text file."
    return f"{error.strerror}. Make it readable for this user."


def _refuse_written_by_others(path: Path, status: os.stat_result, *, may_loosen: bool) -> None:
    """What may loosen must be the user's own word; a file that only tightens must at least be somebody's."""
    if not hasattr(os, "geteuid"):
        return
    if status.st_mode & stat.S_IWOTH:
        raise ConfigurationError(f"{path} can be written by everybody. Take that away: chmod o-w {path}")
    if not may_loosen:
        return
    if status.st_uid not in (os.geteuid(), 0):
        raise ConfigurationError(
            f"{path} belongs to user {status.st_uid}, and only your own settings may loosen. "
            "Make it yours, or run skillkit as that user."
        )
    folders = {path.parent: None, _real(path).parent: None}
    for each, its_status in ((path, status), *((folder, folder.stat()) for folder in folders)):
        if may_be_written_by_others(its_status):
            raise ConfigurationError(f"{each} can be written by others. Take that away: chmod go-w {each}")


def may_be_written_by_others(status: os.stat_result) -> bool:
    """A group with its owner's number is private by custom. In a sticky folder nobody replaces another's file."""
    mode = status.st_mode
    if stat.S_ISDIR(mode) and mode & stat.S_ISVTX:
        return False
    return bool(mode & stat.S_IWOTH or (mode & stat.S_IWGRP and status.st_gid != status.st_uid))
