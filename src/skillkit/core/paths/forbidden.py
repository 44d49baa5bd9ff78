"""Which paths no script ever gets, and the folder that a person opens to scripts: a Workspace.

Theory of operation. Whatever a call's arguments or a policy name, some places stay closed: home, keys, the world's
state, the machine. They are looked up as the machine is now, because a home folder or a key folder may be a link.

Scripts may write their workspace, and one workspace may lie in another. Whoever looks a folder up by name again could
be led elsewhere by then. So a folder is opened once, when it is named, and judged by what was opened; from then on its
device and inode go along, and each run compares them with what the name leads to. The descriptor stays open: a removed
folder's number could otherwise be given to the next one.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.paths import (
    SETTLED_NANOSECONDS,
    Judged,
    is_inside,
    judge,
    judge_opened,
    open_place,
    real_path,
)
from skillkit.core.values.skills import Workspace

__all__ = [
    "CREDENTIALS",
    "SECRETS_VARIABLE",
    "WORK_FOLDER_PREFIX",
    "ForbiddenPaths",
    "forbidden_paths",
    "named_workspace",
    "note_writable",
    "open_paths",
    "require_open",
    "require_same",
    "secrets_folder",
    "writable_by_scripts",
]

WORK_FOLDER_PREFIX = "skillkit-work-"
"""Begins the name of the folder that holds a manager's work folders; what is below was made by scripts."""

SECRETS_VARIABLE = "SKILLKIT_SECRETS_DIR"
"""Names a folder with keys of skills, `SKILL/NAME`: none of them sees it."""

CREDENTIALS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".password-store"),
    *(".netrc", ".git-credentials", ".npmrc", ".pypirc", ".cargo/credentials.toml", ".local/share/keyrings"),
    *(".mozilla", ".config/google-chrome", ".config/chromium", ".bash_history", ".zsh_history"),
    *(".pgpass", ".my.cnf", ".vault-token", ".config/op", ".config/rclone", ".config/containers/auth.json"),
    *(
        ".local/share/python_keyring",
        ".thunderbird",
        "Library/Keychains",
        "Library/Cookies",
        "Library/Application Support/Google/Chrome",
    ),
)
"""What holds keys, passwords and sessions, below a home folder."""
# These hold keys wherever they lie: in another user's home, in a copy of one.
KEY_FOLDERS = frozenset((".ssh", ".gnupg", ".aws", ".password-store"))
# What is the machine's, not the user's: processes, devices, sockets, and who may log in.
MACHINE = ("/proc", "/sys", "/dev", "/run", "/var/run", "/etc", "/boot")
# Where users have their homes, whoever runs this.
HOMES = ("/home", "/Users", "/root")
REMEDY = "Name a folder that holds only what the agent works on."


@dataclass(frozen=True, slots=True)
class ForbiddenPaths:
    """Real paths: neither these, nor what is below `closed`, nor what holds one of `kept`."""

    closed: tuple[str, ...]
    kept: tuple[str, ...]

    def covers(self, path: str) -> bool:
        """Whether `path`, which is real, is never granted."""
        return bool(self.reason_against(path))

    def reason_against(self, path: str) -> str:
        """Which closed place `path` is, holds or lies in, in words; empty where there is none."""
        if key_folder := next((name for name in path.split(os.sep) if name in KEY_FOLDERS), ""):
            return f"it lies in a folder of keys ({key_folder})"
        # What tells a home folder, of whomever.
        held = (name for name in sorted(KEY_FOLDERS) if os.path.lexists(os.path.join(path, name)))
        if key_folder := next(held, ""):
            return f"it holds a folder of keys ({key_folder})"
        for each in self.closed:
            if is_inside(path, each):
                return f"it is {each}" if path == each else f"it lies in {each}"
        around = next((each for each in self.kept if is_inside(each, path)), "")
        return f"it is or holds {around}, where users have their files and keys" if around else ""


def forbidden_paths(state_folder: Path | None) -> ForbiddenPaths:
    """As the machine is now: what was found before counts while nothing around these places changed."""
    homes, secrets = _home_folders(os.path.expanduser("~")), secrets_folder()
    asked = (state_folder, homes, secrets)
    known = _known_places.get(asked)
    if known is not None and known.around == tuple(map(_stamp_of, known.folders)):
        return known.places
    began = time.time_ns()
    places, looked_at = _looked_up(state_folder, homes, secrets)
    folders = tuple(sorted({os.path.dirname(each) for each in looked_at}))
    around = tuple(map(_stamp_of, folders))
    # What a link leads to can change without a sign here, and of two changes within a moment one may not show.
    is_settled = all(began - max(stamp[2:]) > SETTLED_NANOSECONDS for stamp in around if stamp)
    if is_settled and not any(os.path.islink(each) for each in (*looked_at, *folders) if each not in MACHINE):
        _known_places.clear()
        _known_places[asked] = _Known(places, folders, around)
    return places


def _looked_up(
    state_folder: Path | None, home_folders: tuple[str, ...], secrets: Path | None
) -> tuple[ForbiddenPaths, list[str]]:
    """The places, and the paths that they were looked up by."""
    real_folder = cache(real_path)  # of what is not there, the folder around it is looked up once

    def real_place(path: str) -> str:
        folder, name = os.path.split(path)
        return real_path(path) if os.path.lexists(path) else os.path.join(real_folder(folder), name)

    homes = tuple(real_path(home) for home in home_folders)
    named = [*([str(state_folder)] if state_folder else []), *MACHINE]
    named += [os.path.join(home, name) for home in homes for name in CREDENTIALS]
    closed = tuple(dict.fromkeys((*map(real_place, named), *named)))
    # Around the keys of skills a folder may lie, as around the state: the walls hide them.
    keys = (real_place(str(secrets)),) if secrets else ()
    looked_at = [*home_folders, *named, *([str(secrets)] if secrets else [])]
    return ForbiddenPaths((*closed, *keys), (*homes, *HOMES, *closed)), looked_at


class _Known(NamedTuple):
    """Places, and what tells that they still are where they were: the folders around them, as they were then."""

    places: ForbiddenPaths
    folders: tuple[str, ...]
    around: tuple[tuple[int, ...] | None, ...]


_known_places: dict[object, _Known] = {}


def _stamp_of(folder: str) -> tuple[int, ...] | None:
    try:
        seen = os.lstat(folder)
    except OSError:
        return None
    return seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns


def secrets_folder(environment: Mapping[str, str] | None = None) -> Path | None:
    """Where keys of skills are kept as files, if somebody says so."""
    named = (os.environ if environment is None else environment).get(SECRETS_VARIABLE)
    return Path(named).expanduser().absolute() if named else None


@lru_cache(maxsize=8)
def _home_folders(expanded: str) -> tuple[str, ...]:
    """What `~` means, and the account's own folder: a caller may have set HOME to another."""
    try:
        import pwd

        account = pwd.getpwuid(os.getuid()).pw_dir
    except (ImportError, KeyError):  # another system; an account without an entry
        account = ""
    return tuple(dict.fromkeys(home for home in (expanded, account) if os.path.isabs(home)))


class _Hold:
    """An open descriptor, closed with the value that has it."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self) -> None:
        os.close(self.descriptor)


def named_workspace(path: str | Path, state_folder: Path | None, *, setting: str = "workspace") -> Workspace:
    """The folder that `path` leads to now; ConfigurationError if there is none, or if scripts may not work in it."""
    try:
        folder = Path(path).expanduser().absolute()
    except (OSError, RuntimeError, ValueError) as error:  # `~nobody`; no current folder
        raise ConfigurationError(f"{setting}: {str(path)!r} cannot be found: {error} Give an absolute path.") from error
    workspace = _open_folder(folder, setting)
    require_open(workspace, state_folder, setting=setting)
    return workspace


def require_open(workspace: Workspace, state_folder: Path | None, *, setting: str = "workspace") -> None:
    """It may not be, hold or lie in what stays closed to scripts."""
    _refuse_closed(str(workspace.path), forbidden_paths(None), state_folder, setting)


def open_paths(paths: Sequence[Path], state_folder: Path | None, *, setting: str) -> dict[Path, Judged]:
    """What policy opens beside the workspace, as it is now; one that is not there cannot be opened."""
    if not paths:
        return {}
    places = forbidden_paths(None)
    found = {path: judged for path in paths if (judged := judge(path)) is not None}
    for each in found.values():
        _refuse_closed(each.path, places, state_folder, setting)
    return found


def _refuse_closed(path: str, places: ForbiddenPaths, state_folder: Path | None, setting: str) -> None:
    """Around the state folder it may be: the walls hide that."""
    state = real_path(state_folder) if state_folder else ""
    reason = places.reason_against(path)
    if state and is_inside(path, state):
        reason = f"it lies in the state folder {state}"
    if reason:
        raise ConfigurationError(f"{setting}: {path} is never opened to scripts: {reason}. {REMEDY}")


def require_same(workspace: Workspace) -> None:
    """What stands in its place now must be the folder that was named."""
    try:
        found = _open_folder(workspace.path, "workspace")
    except ConfigurationError as error:
        raise ConfigurationError(
            f"workspace: {workspace} is not there any more. Create it again and name it again."
        ) from error
    if found != workspace:
        elsewhere = f" and leads to {found} now" if found.path != workspace.path else ""
        raise ConfigurationError(
            f"workspace: {workspace} was replaced since it was named{elsewhere}. Look at what is there; "
            "if it is the folder that you want, name it again (start anew)."
        )


def _open_folder(path: Path, setting: str) -> Workspace:
    try:
        hold = _Hold(open_place(path))
    except (OSError, ValueError) as error:
        if os.name == "nt" and os.path.isdir(path):  # no folder can be opened there
            seen = os.stat(path)
            return Workspace(Path(os.path.realpath(path)), seen.st_dev, seen.st_ino)
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            raise ConfigurationError(f"{setting}: {path} is not a folder. Create it, or name another.") from error
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"{setting}: {path} cannot be opened: {reason}. Name a folder that exists.") from error
    if not stat.S_ISDIR(os.fstat(hold.descriptor).st_mode):
        raise ConfigurationError(f"{setting}: {path} is not a folder. Name one that exists.")
    judged = judge_opened(hold.descriptor, path)
    return Workspace(Path(judged.path), judged.device, judged.inode, hold)


_writable: set[str] = set()


def note_writable(folders: Iterable[str | os.PathLike[str] | None]) -> None:
    """From now on no program that this process starts for itself comes from these: its scripts may write there."""
    _writable.update(os.fspath(folder) for folder in folders if folder is not None)


def writable_by_scripts() -> frozenset[str]:
    return frozenset(_writable)
