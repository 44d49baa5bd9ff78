"""What no call opens to a script, whatever its arguments name: home, keys, the world's state, the machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from skillkit.core.paths import is_inside, real_path

__all__ = ["WORK_FOLDER_PREFIX", "ClosedPlaces", "closed_places"]

WORK_FOLDER_PREFIX = "skillkit-work-"
"""Begins the name of the folder that holds a manager's work folders; what is below was made by scripts."""

# What holds keys, passwords and sessions, below the home folder.
CREDENTIALS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".password-store"),
    *(".netrc", ".git-credentials", ".npmrc", ".pypirc", ".cargo/credentials.toml", ".local/share/keyrings"),
    *(".mozilla", ".config/google-chrome", ".config/chromium", ".bash_history", ".zsh_history"),
    *(".pgpass", ".my.cnf", ".vault-token", ".config/op", ".config/rclone", ".config/containers/auth.json"),
    *(".thunderbird", "Library/Keychains", "Library/Cookies", "Library/Application Support/Google/Chrome"),
)
# These hold keys wherever they lie: in another user's home, in a copy of one.
KEY_FOLDERS = frozenset((".ssh", ".gnupg", ".aws", ".password-store"))
# What is the machine's, not the user's: processes, devices, sockets, and who may log in.
MACHINE = ("/proc", "/sys", "/dev", "/run", "/var/run", "/etc", "/boot")
# Where users have their homes, whoever runs this.
HOMES = ("/home", "/Users", "/root")


@dataclass(frozen=True, slots=True)
class ClosedPlaces:
    """Real paths: neither these, nor what is below `closed`, nor what holds one of `kept`."""

    closed: tuple[str, ...]
    kept: tuple[str, ...]

    def hold(self, path: str) -> bool:
        """Whether `path`, which is real, is never granted."""
        return bool(self.reason_against(path))

    def reason_against(self, path: str) -> str:
        """Which closed place `path` is, holds or lies in, in words; empty where there is none."""
        if key_folder := next((name for name in path.split(os.sep) if name in KEY_FOLDERS), ""):
            return f"it lies in a folder of keys ({key_folder})"
        if key_folder := key_folder_in(path):
            return f"it holds a folder of keys ({key_folder})"
        for each in self.closed:
            if is_inside(path, each):
                return f"it is {each}" if path == each else f"it lies in {each}"
        around = next((each for each in self.kept if is_inside(each, path)), "")
        return f"it is or holds {around}, where users have their files and keys" if around else ""


def closed_places(state_folder: Path | None) -> ClosedPlaces:
    """As the machine is now: a home folder or a key folder may be a link."""
    homes = tuple(real_path(home) for home in home_folders(os.path.expanduser("~")))
    named = [*([str(state_folder)] if state_folder else []), *MACHINE]
    named += [os.path.join(home, name) for home in homes for name in CREDENTIALS]
    closed = tuple(dict.fromkeys((*map(_real_places(), named), *named)))
    return ClosedPlaces(closed, (*homes, *HOMES, *closed))


def _real_places() -> Callable[[str], str]:
    """As `real_path`; of what is not there, the folder around it is looked up once."""
    around = cache(real_path)

    def real(path: str) -> str:
        if os.path.lexists(path):
            return real_path(path)
        folder, name = os.path.split(path)
        return os.path.join(around(folder), name)

    return real


@lru_cache(maxsize=8)
def home_folders(expanded: str) -> tuple[str, ...]:
    """What `~` means, and the account's own folder: a caller may have set HOME to another."""
    try:
        import pwd

        account = pwd.getpwuid(os.getuid()).pw_dir
    except (ImportError, KeyError):  # another system; an account without an entry
        account = ""
    return tuple(dict.fromkeys(home for home in (expanded, account) if os.path.isabs(home)))


def key_folder_in(path: str) -> str:
    """What tells a home folder, of whomever."""
    return next((name for name in sorted(KEY_FOLDERS) if os.path.lexists(os.path.join(path, name))), "")
