"""A skill and the name of a key -> its value: from the caller's environment, a secrets folder, or the keyring.

The folder holds `SKILL/NAME`, as containers and service managers give it; only its owner may read or write there. The
keyring is the system's, by the library `keyring` where that is installed; it keeps a list of names beside the values.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.paths.files import Folder
from skillkit.core.paths.forbidden import SECRETS_VARIABLE, secrets_folder
from skillkit.core.values.names import is_grantable_name

__all__ = ["Secrets", "has_keyring"]

SERVICE = "skillkit"
VALUE_BYTES = 16_384
OF_OTHERS = stat.S_IRWXG | stat.S_IRWXO
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
FOLDER = f"name a folder of your own with {SECRETS_VARIABLE}."
INSTALL = f"Install the keyring extra (pip install 'skillkit-runtime[keyring]'), or {FOLDER}"
KEEPS_NOTHING = ("keyring.backends.fail", "keyring.backends.null")
"""What the library falls back to where a machine has no keyring, or was told to have none."""

_logger = logging.getLogger("skillkit.run")


class Secrets:
    """Keys of skills. Nothing here says a value but `value`, and no value is ever logged."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment

    def value(self, skill: str, name: str) -> str | None:
        """None where there is none; ConfigurationError for one that others could have read or written."""
        if not is_grantable_name(name):
            return None
        given = self._environment.get(name)
        if given is not None:
            return given
        found = self._in_folder(skill, name)
        return found if found is not None else _from_keyring(skill, name)

    def has(self, skill: str, name: str) -> bool:
        """Whether there is a value beside the environment's that a run would take; none is read."""
        if self.problem(skill, name):
            return False
        path = _place(secrets_folder(self._environment), skill, name)
        return (path is not None and os.path.isfile(path)) or name in _names_in_keyring().get(skill, ())

    def problem(self, skill: str, name: str) -> str:
        """What to do about a key in the folder that no run takes; empty where it is taken, or none is there."""
        path = _place(secrets_folder(self._environment), skill, name)
        with suppress(OSError):
            if path is not None and os.path.isfile(path):
                return next(filter(None, (_remedy(*each) for each in _looked_at(path))), "")
        return ""

    def names(self) -> list[tuple[str, str, str]]:
        """Skill, name and place of every key that is kept."""
        found = {(skill, name): "keyring" for skill, names in _names_in_keyring().items() for name in names}
        folder = secrets_folder(self._environment)
        with suppress(OSError):
            for path in sorted(folder.glob("*/*")) if folder else ():
                if os.path.isfile(path) and is_grantable_name(path.name):
                    found[path.parent.name, path.name] = "folder"
        return sorted((skill, name, place) for (skill, name), place in found.items())

    def keep(self, skill: str, name: str, value: str) -> str:
        """Where it is kept from now on: the folder if one is named, else the keyring."""
        _require_keepable(skill, name, value)
        folder = secrets_folder(self._environment)
        if folder is None:
            _into_keyring(skill, name, value)
            return "keyring"
        try:
            with Folder.named(folder, make=True) as top:
                with suppress(FileExistsError), top.new_folder(skill, 0o700):
                    pass
                with top.folder(skill) as place:
                    place.replace(name, os.fsencode(value), 0o600)
        except OSError as error:
            raise ConfigurationError(
                f"{folder / skill / name} cannot be written: {error.strerror or error}. "
                f"Make {SECRETS_VARIABLE} a folder of yours."
            ) from error
        return "folder"

    def remove(self, skill: str, name: str) -> list[str]:
        """The places it was in."""
        gone = []
        path = _place(secrets_folder(self._environment), skill, name)
        with suppress(OSError):
            if path is not None:
                with Folder.named(path.parent) as place:
                    gone += ["folder"] if place.remove(name) else []
        if _out_of_keyring(skill, name):
            gone.append("keyring")
        return gone

    def _in_folder(self, skill: str, name: str) -> str | None:
        path = _place(secrets_folder(self._environment), skill, name)
        if path is None:
            return None
        try:
            for folder in (path.parent.parent, path.parent):
                _require_own(folder, os.stat(folder), WRITABLE_BY_OTHERS)
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ConfigurationError(f"The key {path} cannot be read: {error.strerror or error}.") from error
        with os.fdopen(descriptor, "rb") as file:
            seen = os.fstat(file.fileno())
            _require_own(path, seen, OF_OTHERS)
            if not stat.S_ISREG(seen.st_mode) or seen.st_size > VALUE_BYTES:
                raise ConfigurationError(f"The key {path} is no file of at most {VALUE_BYTES:,} bytes. Replace it.")
            content = file.read()
        if b"\0" in content:
            raise ConfigurationError(f"The key {path} holds a NUL, which no variable can. Replace it.")
        return os.fsdecode(content).removesuffix("\n").removesuffix("\r")


def _place(folder: Path | None, skill: str, name: str) -> Path | None:
    """Inside the folder whatever the names are; None where there cannot be one."""
    is_plain = skill not in ("", ".", "..") and not {"/", "\\", "\0"} & set(skill)
    return folder / skill / name if folder is not None and is_plain and is_grantable_name(name) else None


def _looked_at(path: Path) -> Iterator[tuple[Path, os.stat_result, int]]:
    """All that a key in the folder depends on, with what others may not do with it."""
    for folder in (path.parent.parent, path.parent):
        yield folder, os.stat(folder), WRITABLE_BY_OTHERS
    yield path, os.stat(path), OF_OTHERS


def _is_open(seen: os.stat_result, forbidden: int) -> bool:
    return os.name == "posix" and (seen.st_uid not in (os.geteuid(), 0) or bool(seen.st_mode & forbidden))


def _mode_of(seen: os.stat_result) -> str:
    return "700" if stat.S_ISDIR(seen.st_mode) else "600"


def _remedy(path: Path, seen: os.stat_result, forbidden: int) -> str:
    """As it is typed; empty where nothing is wrong."""
    if not _is_open(seen, forbidden):
        return ""
    owner = "" if seen.st_uid in (os.geteuid(), 0) else f"sudo chown $USER {shlex.quote(str(path))} && "
    return f"{owner}chmod {_mode_of(seen)} {shlex.quote(str(path))}"


def _require_own(path: Path, seen: os.stat_result, forbidden: int) -> None:
    """Who else could read a key has it; who could write one chooses what the script is told."""
    if _is_open(seen, forbidden):
        mode = _mode_of(seen)
        raise ConfigurationError(
            f"{path} is open to others or not yours, so no key is taken from it. Make it yours, with 'chmod {mode}'."
        )


def _require_keepable(skill: str, name: str, value: str) -> None:
    if not is_grantable_name(name):
        raise ConfigurationError(
            f"No key is kept as {name!r}: it is no name of a variable, or it steers what a program loads or where it "
            "connects, and could never be granted. Choose another name, as SERVICE_API_KEY."
        )
    if _place(Path("/"), skill, name) is None:
        raise ConfigurationError(f"No key is kept for {skill!r}: no skill can have that name. See 'skillkit list'.")
    if not value or "\0" in value or len(os.fsencode(value)) > VALUE_BYTES:
        raise ConfigurationError(f"A key has 1 to {VALUE_BYTES:,} bytes and no NUL; this one does not. Give another.")


# The system's keyring. The library is an extra, and its start takes a tenth of a second.


def _keyring() -> Any:  # noqa: ANN401 - an extra's module
    """None where the library is not installed."""
    if find_spec("keyring") is None:
        return None
    import keyring

    return keyring


def has_keyring() -> bool:
    """Whether something here keeps keys: the library alone does not."""
    keyring = _keyring()
    try:
        return keyring is not None and type(keyring.get_keyring()).__module__ not in KEEPS_NOTHING
    except Exception:  # noqa: BLE001 - backends raise what they like
        return False


def _service(skill: str) -> str:
    return f"{SERVICE}:{skill}"


def _from_keyring(skill: str, name: str) -> str | None:
    """A keyring that cannot be asked has no keys."""
    keyring = _keyring()
    if keyring is None or name not in _names_in_keyring().get(skill, ()):
        return None
    try:
        found = keyring.get_password(_service(skill), name)
    except Exception as error:  # noqa: BLE001 - backends raise what they like
        _logger.warning("the keyring cannot be asked: %s", type(error).__name__)
        return None
    return None if found is None else str(found)


def _names_in_keyring() -> dict[str, list[str]]:
    keyring = _keyring()
    if keyring is None:
        return {}
    try:
        kept = json.loads(keyring.get_password(SERVICE, "names") or "{}")
    except Exception:  # noqa: BLE001 - backends raise what they like
        return {}
    return {str(skill): [*map(str, names)] for skill, names in kept.items()} if isinstance(kept, dict) else {}


def _into_keyring(skill: str, name: str, value: str) -> None:
    keyring = _keyring()
    if keyring is None:
        raise ConfigurationError(f"The key {name} cannot be kept: there is no keyring here. {INSTALL}")
    if not has_keyring():
        raise ConfigurationError(f"The key {name} cannot be kept: this machine has no keyring. To keep it, {FOLDER}")
    try:
        keyring.set_password(_service(skill), name, value)
        _keep_names(keyring, skill, {*_names_in_keyring().get(skill, ()), name})
    except Exception as error:
        raise ConfigurationError(
            f"The keyring does not take the key {name} ({type(error).__name__}). Unlock it, or {FOLDER}"
        ) from error


def _out_of_keyring(skill: str, name: str) -> bool:
    keyring = _keyring()
    names = {*_names_in_keyring().get(skill, ())}
    if keyring is None or name not in names:
        return False
    with suppress(Exception):  # gone already
        keyring.delete_password(_service(skill), name)
    _keep_names(keyring, skill, names - {name})
    return True


def _keep_names(keyring: Any, skill: str, names: Iterable[str]) -> None:  # noqa: ANN401
    kept = {**_names_in_keyring(), skill: sorted(names)}
    keyring.set_password(SERVICE, "names", json.dumps({each: kept[each] for each in sorted(kept) if kept[each]}))
