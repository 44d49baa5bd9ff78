"""One folder -> the SKILL.md files below it, in a stable order, whatever links and limits it meets."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from skillkit.core.paths import is_inside
from skillkit.core.paths.hosts import PROJECT_LEVEL, folders_at
from skillkit.core.values.skills import Diagnostic
from skillkit.core.values.text import grouped, plural

__all__ = ["DEPTH_LIMIT", "FOLDER_LIMIT", "SKILL_FILE", "FoundFile", "Walk"]

DEPTH_LIMIT = 6
FOLDER_LIMIT = 100_000
PROGRESS_STEP = 256

SKILL_FILE = "SKILL.md"
SKIPPED_FOLDERS = frozenset(("node_modules", "__pycache__", "venv", "site-packages"))
# Hidden folders are left alone, except those where agents keep skills.
HOST_FOLDERS = frozenset(folder.partition("/")[0] for folder, _ in folders_at(PROJECT_LEVEL))
# What a skill keeps for itself; other folders of a skill may hold further skills.
OWN_FOLDERS = frozenset(("scripts", "references", "assets"))

FoundFile = tuple[str, str, os.stat_result]
"""Path of the SKILL.md, real path of its folder, and what stat says of the file."""


class Walk:
    """Breadth first, names in order, real folders before links, each real folder once."""

    def __init__(self, root: str, on_progress: Callable[[int], None] | None = None) -> None:
        self.root = root
        self.real_root = os.path.realpath(root)
        self.on_progress = on_progress
        self.problems: list[Diagnostic] = []
        self.folders = 0
        self._too_deep: list[str] = []

    def files(self) -> Iterator[FoundFile]:
        seen = {self.real_root}
        pending = deque([(self.root, self.real_root, 0)])
        links: deque[tuple[str, int]] = deque()
        while pending or links:
            if pending:
                folder, real, depth = pending.popleft()
            else:
                folder, depth = links.popleft()
                real = self.link_target(folder)
                if not real or real in seen:
                    continue
                seen.add(real)
            if not self.may_enter(folder):
                return
            file_name, children, linked = self.listing(folder)
            if file_name and (found := self.found_file(f"{folder}/{file_name}", real)):
                yield found
            if depth == DEPTH_LIMIT:
                if children or any(os.path.isdir(f"{folder}/{name}") for name in linked):
                    self._too_deep.append(folder)
                continue
            for name in children:
                real_child = f"{real}/{name}"
                if real_child not in seen:
                    seen.add(real_child)
                    pending.append((f"{folder}/{name}", real_child, depth + 1))
            links.extend((f"{folder}/{name}", depth + 1) for name in linked)
        self._tell_too_deep()

    def may_enter(self, folder: str) -> bool:
        self.folders += 1
        if self.on_progress is not None and self.folders % PROGRESS_STEP == 0:
            self.on_progress(self.folders)
        if self.folders <= FOLDER_LIMIT:
            return True
        message = f"More than {grouped(FOLDER_LIMIT)} folders; stopped at"
        self.problem("too-many-folders", message, folder, "Name a narrower path.")
        return False

    def listing(self, folder: str) -> tuple[str, list[str], list[str]]:
        """(name of the skill file or '', subfolders to enter, links to look at)."""
        files, children, linked = list[str](), list[str](), list[str]()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = entry.name
                    if name == SKILL_FILE or (name[0] in "Ss" and name.upper() == "SKILL.MD"):
                        files.append(name)
                    elif entry.is_dir(follow_symlinks=False):
                        children.append(name)
                    elif entry.is_symlink():
                        linked.append(name)
        except OSError as error:
            message = f"The folder cannot be read ({error.strerror}):"
            self.problem("unreadable-folder", message, folder, READABLE)
        file_name = SKILL_FILE if SKILL_FILE in files else min(files, default="")
        own = OWN_FOLDERS if files else ()
        if children:
            children = sorted([name for name in children if name not in own and _is_entered(name)])
        if linked:
            linked = sorted([name for name in linked if name not in own and _is_entered(name)])
        return file_name, children, linked

    def link_target(self, folder: str) -> str:
        """The real folder behind a link; empty for a link to a file or to nowhere."""
        try:
            os.stat(folder)
        except OSError as error:
            message = f"The link leads nowhere ({error.strerror}):"
            self.problem("broken-link", message, folder, "Remove or correct it.")
            return ""
        real = os.path.realpath(folder)
        if not os.path.isdir(real):
            return ""
        if real != self.real_root and is_inside(self.real_root, real):
            message = "The link leads to a folder that holds the searched one:"
            self.problem("link-upwards", message, folder, "Remove it, or search that folder instead.")
            return ""
        return real

    def _tell_too_deep(self) -> None:
        """Once for a root, naming where the walk stopped first."""
        if not self._too_deep:
            return
        first, more = self._too_deep[0], len(self._too_deep) - 1
        places = f"{first} and {plural(more, 'more folder')}" if more else first
        message = f"Folders more than {DEPTH_LIMIT} levels below {self.root} are not searched; stopped at {places}."
        remedy = "If skills lie there, name a folder further down as well: --skills, or 'skills.paths' in the settings."
        self.problems.append(Diagnostic("warning", "too-deep", message, Path(first), remedy=remedy))

    def found_file(self, path: str, real_folder: str) -> FoundFile | None:
        try:
            return path, real_folder, os.stat(path)
        except OSError as error:
            self.problem("unreadable-file", f"The file cannot be read ({error.strerror}):", path, READABLE)
            return None

    def problem(self, code: str, message: str, path: str, remedy: str) -> None:
        severity = "warning" if code in ("broken-link", "link-upwards") else "error"
        self.problems.append(Diagnostic(severity, code, f"{message} {path}.", Path(path), remedy=remedy))


READABLE = "Make it readable or remove it."


def _is_entered(name: str) -> bool:
    return name in HOST_FOLDERS if name[0] == "." else name not in SKIPPED_FOLDERS
