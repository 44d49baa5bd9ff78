"""ScriptPolicy and the named profiles: plain values that say what may run and how."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path

from skillkit.core.exceptions import ConfigurationError

__all__ = [
    "GUARDED",
    "LOCKED",
    "PATH_LISTS",
    "PROFILES",
    "STANDARD",
    "TIMEOUT_RANGE_SECONDS",
    "TRUSTED",
    "Limits",
    "ScriptPolicy",
    "require_timeout",
]

TIMEOUT_RANGE_SECONDS = (1, 600)
INTERPRETERS = ("python3", "bash", "node", "ruby", "perl")
CHOICES = {
    "allowed_tools_mode": ("restrict", "grant", "ignore"),
    "approval": ("never", "first_run", "always"),
    "working_directory": ("skill", "workspace"),
    "sandbox": ("required", "preferred", "off"),
}
SWITCHES = ("allow_scripts", "allow_network", "allow_filesystem", "inherit_environment", "grant_argument_paths")
NAME_LISTS = ("allowed_commands", "allowed_interpreters", "pass_environment")
PATH_LISTS = ("readable_paths", "writable_paths")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use; each holds for one process, the number of processes for the whole run."""

    data_megabytes: int = 1024
    file_megabytes: int = 100
    processes: int = 64
    open_files: int = 256
    temporary_megabytes: int = 64

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigurationError(f"limits.{each.name} is {value!r}; it must be a whole number above 0.")


@dataclass(frozen=True, slots=True)
class ScriptPolicy:
    """What scripts may do. A bare one allows nothing; an empty list means nothing, never everything."""

    allow_scripts: bool = False
    allow_network: bool = False
    allow_filesystem: bool = False
    timeout_seconds: float = 30
    allowed_commands: tuple[str, ...] = ()
    allowed_interpreters: tuple[str, ...] = INTERPRETERS
    allowed_tools_mode: str = "restrict"
    approval: str = "first_run"
    working_directory: str = "skill"
    pass_environment: tuple[str, ...] = ()
    inherit_environment: bool = False
    readable_paths: tuple[Path, ...] = ()
    writable_paths: tuple[Path, ...] = ()
    grant_argument_paths: bool = True
    sandbox: str = "required"
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                known = ", ".join(choices)
                raise ConfigurationError(f"{name} is {getattr(self, name)!r}; it must be one of: {known}.")
        for name in SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise ConfigurationError(f"{name} is {getattr(self, name)!r}; it must be true or false.")
        for name in (*NAME_LISTS, *PATH_LISTS):
            object.__setattr__(self, name, self._tuple(name))
        if not isinstance(self.limits, Limits):
            raise ConfigurationError(f"limits is {self.limits!r}; it must be Limits(...).")
        require_timeout(self.timeout_seconds)

    def _tuple(self, name: str) -> tuple[str, ...] | tuple[Path, ...]:
        given = getattr(self, name)
        items = None if isinstance(given, str | bytes) or not isinstance(given, Iterable) else tuple(given)
        if items is None or not all(isinstance(item, str | Path) for item in items):
            raise ConfigurationError(f"{name} is {given!r}; it must be a list of texts.")
        if name in PATH_LISTS:
            return tuple(Path(item).expanduser().absolute() for item in items)
        return tuple(str(item) for item in items)


def require_timeout(seconds: object) -> None:
    lowest, highest = TIMEOUT_RANGE_SECONDS
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not lowest <= seconds <= highest:
        raise ConfigurationError(
            f"A timeout is {lowest} to {highest} seconds; {seconds!r} is not. Choose one in that range."
        )


LOCKED = ScriptPolicy(approval="always")
"""Nothing runs."""

GUARDED = ScriptPolicy(allow_scripts=True)
"""Walls required, a person asked on the first run; what agents get unless told otherwise."""

STANDARD = ScriptPolicy(allow_scripts=True, approval="never", sandbox="preferred")
"""Walls where the machine has them, nobody asked; what Python callers get."""

TRUSTED = ScriptPolicy(allow_scripts=True, allow_network=True, allow_filesystem=True, approval="never", sandbox="off")
"""No walls: scripts run with the caller's own rights."""

PROFILES = {"locked": LOCKED, "guarded": GUARDED, "standard": STANDARD, "trusted": TRUSTED}
