"""What one file was seen to use, before anybody asks who says so and whether it is there."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from skillkit.core.values.names import is_grantable_name, is_secret_name

__all__ = ["PACKAGE_NAME", "PROGRAM_NAME", "Facts", "Found", "package_name"]

PROGRAM_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]{0,49}")
PACKAGE_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,98}[a-z0-9])?")
NPM_NAME = re.compile(r"(?:@[a-z0-9][a-z0-9._-]{0,60}/)?[a-z0-9][a-z0-9._-]{0,100}")
SEPARATORS = re.compile(r"[-_.]+")
LOUD = re.compile(r"[A-Z][A-Z0-9_]{1,99}")
# Of the terminal and the machine; nobody gives them to a skill, and scripts do without.
ORDINARY_VARIABLES = frozenset(
    "USER USERNAME LOGNAME HOSTNAME TERM COLUMNS LINES NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE COLORTERM CI DEBUG "
    "VERBOSE DISPLAY WAYLAND_DISPLAY EDITOR VISUAL PAGER APPDATA LOCALAPPDATA PROGRAMFILES PROGRAMDATA WINDIR "
    "XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME NODE_ENV OSTYPE MACHTYPE HOSTTYPE BASH BASHPID UID "
    "EUID PPID RANDOM SECONDS LINENO FUNCNAME PIPESTATUS REPLY OPTARG OPTIND DIRSTACK GROUPS".split()
)


# Started where they are, beside the same for other systems.
OF_WINDOWS = frozenset(("cmd", "cmd.exe", "explorer", "explorer.exe", "powershell.exe", "winget"))


class Found(NamedTuple):
    """One need in one line of a file."""

    kind: str
    name: str
    line: int


@dataclass(slots=True)
class Facts:
    """Of one file: what it needs, which of the skill's own files it uses, and where it first talks to others."""

    found: dict[tuple[str, str], Found] = field(default_factory=dict)
    uses: dict[str, None] = field(default_factory=dict)
    """Names of modules and files as written; whether the skill has them is for others to say."""
    talks: int = 0
    """The first line that uses the network; 0 where none does."""
    inner: list[tuple[int, str]] = field(default_factory=list)
    """Python inside another language, each text with its first line."""
    reaches: dict[tuple[str, str], int] = field(default_factory=dict)
    """Paths that may lead out of the skill, each with its line: from the `file`, from `anywhere`, or the `plugin`."""
    imports: dict[str, int] = field(default_factory=dict)
    """Modules of Python by their dotted name, each with its first line."""

    def add(self, kind: str, name: str, line: int) -> None:
        self.found.setdefault((kind, name), Found(kind, name, line))

    def add_variable(self, name: str, line: int, *, has_default: bool = False) -> None:
        """A key, or a setting without which the script does something else; not what every run has."""
        if not is_grantable_name(name) or not LOUD.fullmatch(name) or name in ORDINARY_VARIABLES:
            return
        if is_secret_name(name):
            self.add("secret", name, line)
        elif not has_default:
            self.add("variable", name, line)

    def add_program(self, name: str, line: int) -> None:
        if PROGRAM_NAME.fullmatch(name) and name not in OF_WINDOWS:
            self.add("program", name, line)

    def add_package(self, name: str, line: int) -> None:
        """Of Python, by the name that the index knows."""
        if normal := package_name(name):
            self.add("package", normal, line)

    def add_npm_package(self, name: str, line: int) -> None:
        if NPM_NAME.fullmatch(name):
            self.add("package", f"npm:{name}", line)

    def note_talk(self, line: int) -> None:
        self.talks = min(self.talks, line) if self.talks else line

    def merge(self, other: Facts) -> None:
        """What another text of the same file uses."""
        for each in other.found.values():
            self.add(*each)
        self.uses |= other.uses
        self.reaches = {**other.reaches, **self.reaches}
        self.inner += other.inner
        for module, line in other.imports.items():
            self.imports.setdefault(module, line)
        if other.talks:
            self.note_talk(other.talks)


def package_name(written: str) -> str:
    """As indexes compare names: `PyYAML` and `py_yaml` alike in small letters and single dashes; empty for no name."""
    normal = SEPARATORS.sub("-", written[:200]).lower()
    return normal if PACKAGE_NAME.fullmatch(normal) else ""
