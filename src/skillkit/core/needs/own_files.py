"""Names in a skill's code -> the files of the skill that they mean."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import PurePath

from skillkit.core.needs.files import SkillFiles
from skillkit.core.needs.found import Facts
from skillkit.core.needs.packages import is_standard

__all__ = ["OwnFiles"]

SCRIPT_ENDINGS = (
    "",
    ".js",
    ".mjs",
    ".cjs",
    ".ts",
    ".mts",
    ".cts",
    ".jsx",
    ".tsx",
    "/index.js",
    "/index.mjs",
    "/index.ts",
)
MODULE_PARTS = 6


class OwnFiles:
    """The code of one skill, by path, by file name and by the name under which Python imports it."""

    def __init__(self, files: SkillFiles) -> None:
        self._code = files.code
        self._folders = files.folders
        self._by_name: dict[str, list[str]] = {}
        self._modules: dict[str, list[str]] = {}
        for path in files.code:
            name = path.rpartition("/")[2]
            self._by_name.setdefault(name, []).append(path)
            if name.endswith(".py"):
                self._modules.setdefault(name[:-3], []).append(path)

    def script(self, named: str | PurePath) -> str | None:
        """By its path inside the skill, below scripts/, its file name or its stem, if that means one file."""
        written = posixpath.normpath(named.as_posix() if isinstance(named, PurePath) else str(named))
        for path in (written, f"scripts/{written}"):
            if path in self._code:
                return path
        fitting = self._by_name.get(written) or [path for path in self._code if PurePath(path).stem == written]
        return fitting[0] if len(fitting) == 1 else None

    def used_by(self, path: str, facts: Facts) -> Iterator[str]:
        """The files that one file imports, sources or starts."""
        for module in facts.imports:
            yield from self._module(path, module)
        for name in facts.uses:
            if name.startswith(("./", "../")):
                yield from self._beside(path, name)
            elif name.startswith("."):
                yield from self._relative_module(path, name)
            else:
                yield from self._named(path, name)

    def is_foreign(self, path: str, module: str) -> bool:
        """Whether neither Python nor the skill has the module."""
        top = module.partition(".")[0]
        return not is_standard(module) and top not in self._folders and not any(self._module(path, module))

    def _module(self, path: str, module: str) -> Iterator[str]:
        """Beside the file, from the skill's folder, or wherever the skill has one of that name: paths are changed."""
        folder = posixpath.dirname(path)
        parts = module.split(".")[:MODULE_PARTS]
        is_found = False
        for base in dict.fromkeys((folder, "", "scripts")):
            for each in self._in_package(base, parts):
                is_found = True
                yield each
        if not is_found and not is_standard(module):
            yield from self._modules.get(parts[0], ())[:1]
            if len(parts) > 1 and parts[0] in self._folders:
                yield from (each for part in parts[1:] for each in self._modules.get(part, ())[:1])

    def _in_package(self, base: str, parts: list[str]) -> Iterator[str]:
        for length in range(1, len(parts) + 1):
            place = posixpath.join(base, *parts[:length])
            for path in (f"{place}.py", f"{place}/__init__.py"):
                if path in self._code:
                    yield path

    def _relative_module(self, path: str, name: str) -> Iterator[str]:
        module = name.lstrip(".")
        folder = posixpath.dirname(path)
        for _ in range(min(len(name) - len(module) - 1, MODULE_PARTS)):
            folder = posixpath.dirname(folder)
        yield from self._in_package(folder, module.split(".")[:MODULE_PARTS])

    def _beside(self, path: str, name: str) -> Iterator[str]:
        place = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        bare = place.removesuffix(".js")
        candidates = (f"{each}{ending}" for each in dict.fromkeys((place, bare)) for ending in SCRIPT_ENDINGS)
        yield from [found for found in candidates if found in self._code][:1]

    def _named(self, path: str, name: str) -> Iterator[str]:
        """One file of that name, the one beside it first; where several are meant, all might be."""
        fitting = [each for each in self._by_name.get(name, ()) if each != path]
        beside = posixpath.join(posixpath.dirname(path), name)
        yield from [beside] if beside in fitting else fitting
