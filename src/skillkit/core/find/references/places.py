"""A path as instructions write it -> the script of the skill that it means."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from skillkit.core.find.walk import SKILL_FILE
from skillkit.core.models import Skill
from skillkit.core.models.detect import INTERPRETER_MAP, language_at
from skillkit.core.paths import is_inside, real_path

__all__ = ["PLUGIN", "SKILL", "SkillPlaces", "with_folders_marked"]

# Private characters that stand for the skill's own folder and for its plugin's.
SKILL, PLUGIN = "\ue000", "\ue001"
NAMES = r"(?:CLAUDE_)?SKILL_(?:DIR|BASE_DIR|ROOT|PATH|FOLDER)"
PROSE = (
    r"(?:path[-_ ]to[-_ ])?(?:the[-_ ]|this[-_ ])?skill(?:'s)?"
    r"(?:[-_ ](?:base[-_ ]?)?(?:dir(?:ectory)?|path|root|folder))?"
)
SKILL_FOLDER = re.compile(
    rf"\$\{{{NAMES}\}}|\${NAMES}\b|\{{\{{?baseDir\}}?\}}|(?<![\w$]){NAMES}(?=/)"
    rf"|<(?i:{PROSE}|base[-_ ]?dir)>(?=[/\\])|\{{\{{?(?i:{PROSE}|base_dir)\}}?\}}(?=[/\\])|\[(?i:{PROSE})\](?=[/\\])"
    r"|(?<![\w/])/?path/to/(?i:(?:the[-_]|this[-_])?skill(?:[-_]dir(?:ectory)?)?)(?=/)"
)
PLUGIN_FOLDER = re.compile(r"\$\{CLAUDE_PLUGIN_ROOT\}|\$CLAUDE_PLUGIN_ROOT\b")
AMONG_SKILLS = re.compile(r"(?:.*/)?skills/([^/]+)/(.+)", re.DOTALL)


def with_folders_marked(text: str) -> str:
    plain = text.replace(SKILL, "").replace(PLUGIN, "")
    return PLUGIN_FOLDER.sub(PLUGIN, SKILL_FOLDER.sub(SKILL, plain))


class SkillPlaces:
    """The scripts of one skill, by every spelling; what leads to another place is none of them."""

    def __init__(self, skill: Skill) -> None:
        self.base = Path(real_path(skill.base_directory))
        self.names = {skill.name, skill.base_directory.name, self.base.name}
        self.paths = frozenset(script.path.as_posix() for script in skill.scripts)
        # Of those that several have, none is meant.
        self.stems = _single(self.paths, lambda path: posixpath.splitext(path)[0])
        self.file_names = _single(self.paths, posixpath.basename)

    def script(self, written: str, folder: str = "") -> str | None:
        """`folder` is where the text stands, relative to the skill; paths may be relative to either."""
        for path in self.candidates(written, folder):
            found = self.detected(path)
            if found is None and "/" in path and language_at(self.base / path) and self.is_own(path):
                found = path
            if found is not None:
                return found
        return None

    def is_missing(self, written: str, folder: str = "") -> bool:
        """Whether it names a script of this skill that is not there."""
        return any(
            posixpath.splitext(path)[1] in INTERPRETER_MAP and (path.startswith("scripts/") or SKILL in written)
            for path in self.candidates(written, folder)
        )

    def module(self, name: str) -> str | None:
        """`scripts.x` of `python -m scripts.x`."""
        path = f"{name.replace('.', '/')}.py"
        return path if path in self.paths else None

    def candidates(self, written: str, folder: str) -> Iterator[str]:
        path = written.replace("\\", "/")
        if "://" in path or not path or "\0" in path:
            return
        if path.startswith(f"{SKILL}/"):
            yield from _inside(path[2:])
        elif path.startswith("/") and is_inside(path, str(self.base)):
            yield from _inside(posixpath.relpath(path, self.base))
        elif among := AMONG_SKILLS.fullmatch(path):
            yield from _inside(among[2]) if among[1] in self.names else ()
        elif path[0] not in f"/~{SKILL}{PLUGIN}":
            yield from _inside(path)
            if folder:
                yield from _inside(f"{folder}/{path}")

    def detected(self, path: str) -> str | None:
        """By path, path below `scripts/`, path without its extension, or a file name that only one has."""
        for exact in (path, f"scripts/{path}"):
            if exact in self.paths:
                return exact
        if "/" not in path:
            return self.file_names.get(path) if "." in path else None
        fits = [self.stems[stem] for stem in (path, f"scripts/{path}") if stem in self.stems]
        return fits[0] if len(fits) == 1 else None

    def text_file(self, written: str, folder: str) -> str | None:
        """A markdown file of the skill that a link or a code span names."""
        path = written.partition("#")[0]
        if not path.lower().endswith((".md", ".markdown")) or posixpath.basename(path).lower() == "skill.md":
            return None
        own_first = [*_inside(f"{folder}/{path}")] if folder and "://" not in path and path[0] not in "/~" else []
        for candidate in (*own_first, *self.candidates(path, folder)):
            if os.path.isfile(self.base / candidate) and self.is_own(candidate):
                return candidate
        return None

    def is_own(self, path: str) -> bool:
        """Inside the skill by its real path, and not in another skill's folder below it."""
        real = real_path(self.base / path)
        if not is_inside(real, str(self.base)):
            return False
        folders = Path(os.path.relpath(real, self.base)).parents
        return not any(str(folder) != "." and os.path.exists(self.base / folder / SKILL_FILE) for folder in folders)


def _single(paths: Iterable[str], key: Callable[[str], str]) -> dict[str, str | None]:
    """Each path by its key; None where several have the same."""
    found: dict[str, str | None] = {}
    for path in paths:
        found[key(path)] = None if key(path) in found else path
    return found


def _inside(path: str) -> Iterator[str]:
    """Without detours; nothing for what leaves the skill."""
    plain = posixpath.normpath(path)
    if not plain.startswith(("../", "/")) and plain not in (".", ".."):
        yield plain
