"""What is known of a skill, its scripts and the folder an agent works in: frozen values that check themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["SCRIPT_TYPES", "Diagnostic", "ScriptMetadata", "Workspace"]

SCRIPT_TYPES = frozenset(("python", "shell", "javascript", "typescript", "ruby", "perl", "powershell", "batch"))


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that was skipped (`error`) or repaired (`warning`) while reading, and what to do about it."""

    severity: str
    code: str
    message: str
    path: Path
    line: int | None = None
    remedy: str = ""

    def __str__(self) -> str:
        """`file:line: severity: message. remedy` on one line."""
        place = f"{self.path}:{self.line}" if self.line else str(self.path)
        remedy = f" {self.remedy}" if self.remedy else ""
        return f"{place}: {self.severity}: {self.message}{remedy}".replace("\n", "\\n")


@dataclass(frozen=True, slots=True)
class ScriptMetadata:
    """A script as detection sees it: where it is, what runs it, what it says of itself."""

    name: str
    path: Path
    script_type: str
    description: str = ""

    def __post_init__(self) -> None:
        if self.path.is_absolute():
            raise ValueError(f"A script's path is relative to its skill; {self.path} is absolute.")
        if self.script_type not in SCRIPT_TYPES:
            raise ValueError(f"{self.script_type!r} is no script type; known: {', '.join(sorted(SCRIPT_TYPES))}.")
        if self.name != self.path.stem:
            raise ValueError(f"A script is named by its file: {self.name!r} is not the stem of {self.path.name!r}.")

    def get_fully_qualified_name(self, skill_name: str) -> str:
        """`pdf-extractor.extract`: the skill and the script in one word."""
        return f"{skill_name}.{self.name}"


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folder an agent works in, as it was when it was named: another folder in its place is not this one."""

    path: Path
    """Without links."""
    device: int
    inode: int
    hold: object = field(default=None, repr=False, compare=False)
    """While this lives, no other folder gets the same numbers."""
    is_named: bool = field(default=True, compare=False)
    """False for the current folder, which nobody named: where it cannot be had, a run goes without."""

    def __str__(self) -> str:
        return str(self.path)

    def __fspath__(self) -> str:
        return str(self.path)
