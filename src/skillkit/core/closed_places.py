"""What no call opens to a script, whatever its arguments name: home, keys, the world's state, the machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
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


@dataclass(frozen=True, slots=True)
class ClosedPlaces:
    """Real paths: neither these, nor what is below `closed`, nor what holds one of `kept`."""

    closed: tuple[str, ...]
    kept: tuple[str, ...]

    def hold(self, path: str) -> bool:
        """Whether `path`, which is real, is never granted."""
        if not KEY_FOLDERS.isdisjoint(path.split(os.sep)) or is_somebodys_home(path):
            return True
        return any(is_inside(path, each) for each in self.closed) or any(is_inside(each, path) for each in self.kept)


def closed_places(state_folder: Path | None) -> ClosedPlaces:
    """As the machine is now: a home folder or a key folder may be a link."""
    homes = tuple(real_path(home) for home in home_folders(os.path.expanduser("~")))
    named = [*([str(state_folder)] if state_folder else []), *MACHINE]
    named += [os.path.join(home, name) for home in homes for name in CREDENTIALS]
    closed = tuple(dict.fromkeys((*map(real_path, named), *named)))
    return ClosedPlaces(closed, (*homes, *closed))


@lru_cache(maxsize=8)
def home_folders(expanded: str) -> tuple[str, ...]:
    """What `~` means, and the account's own folder: a caller may have set HOME to another."""
    try:
        import pwd

        account = pwd.getpwuid(os.getuid()).pw_dir
    except (ImportError, KeyError):  # another system; an account without an entry
        account = ""
    return tuple(dict.fromkeys(home for home in (expanded, account) if os.path.isabs(home)))


def is_somebodys_home(path: str) -> bool:
    return any(os.path.lexists(os.path.join(path, name)) for name in KEY_FOLDERS)
