"""What the caller configured -> the folders to search, in order of precedence; plugins bring theirs in a manifest."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillkit.core.exceptions import (
    ConfigurationError,
    ManifestNotFoundError,
    ManifestParseError,
    ManifestValidationError,
    PathSecurityError,
    PluginError,
)
from skillkit.core.paths import FilePathResolver
from skillkit.core.values.skills import Diagnostic

__all__ = [
    "AGENT",
    "PATH",
    "PROJECT",
    "PathLike",
    "Root",
    "agent_roots",
    "existing_folder",
    "path_roots",
    "plugin_roots",
    "project_roots",
    "read_manifest",
]

PROJECT = "project"
AGENT = "agent"
PATH = "path"

MANIFEST = ".claude-plugin/plugin.json"
MANIFEST_LIMIT_BYTES = 1_000_000
REMEDY = "Correct the plugin or leave it out of plugin_dirs."

PathLike = str | Path


@dataclass(frozen=True, slots=True)
class Root:
    """One folder to search; `source` qualifies the names found there."""

    path: Path
    source: str
    plugin_root: Path | None = None


def project_roots(given: PathLike | None) -> list[Root]:
    """The given folder, or those of the current folder that exist."""
    return _roots(given, PROJECT, "project_skill_dir", Path.cwd, ("skills", ".claude/skills", ".agents/skills"))


def agent_roots(given: PathLike | None) -> list[Root]:
    """The given folder, or those of the home folder that exist."""
    return _roots(given, AGENT, "anthropic_config_dir", Path.home, (".claude/skills", ".agents/skills"))


def path_roots(given: Sequence[PathLike] | None) -> list[Root]:
    return [Root(existing_folder(path, "additional_search_paths"), PATH) for path in given or ()]


def _roots(
    given: PathLike | None, source: str, setting: str, base: Callable[[], Path], defaults: Sequence[str]
) -> list[Root]:
    """None means the defaults that exist, an empty text means off, anything else must exist."""
    if given == "":
        return []
    if given is not None:
        return [Root(existing_folder(given, setting), source)]
    try:
        folders = [base() / relative for relative in defaults]
    except (OSError, RuntimeError):  # the current folder was deleted; the user has no home
        return []
    return [Root(folder, source) for folder in folders if os.path.isdir(folder)]


def existing_folder(path: PathLike, setting: str) -> Path:
    try:
        folder = Path(path).expanduser().absolute()
        if ".." in folder.parts:  # a folder's name is shown, and may become a skill's
            folder = Path(os.path.realpath(folder))
    except (OSError, RuntimeError, ValueError) as error:  # `~nobody`; no current folder; half a character
        raise ConfigurationError(f"{setting}: {str(path)!r} cannot be found: {error} Give an absolute path.") from error
    if not os.path.isdir(folder):
        raise ConfigurationError(
            f"{setting}: {folder} is not a folder. Create it, correct the path, or leave the setting out."
        )
    return folder


def plugin_roots(given: Sequence[PathLike] | None, problems: list[Diagnostic]) -> list[Root]:
    """A bad plugin becomes a problem and never stops the others."""
    found: list[Root] = []
    for path in given or ():
        folder = existing_folder(path, "plugin_dirs")
        for plugin in _plugins_in(folder):
            try:
                found.extend(_roots_of(plugin))
            except PluginError as error:
                line = getattr(error.__cause__, "lineno", None)
                problems.append(Diagnostic("error", "bad-plugin", str(error), plugin / MANIFEST, line, REMEDY))
    return found


def _plugins_in(folder: Path) -> list[Path]:
    """The folder itself, or, when it is a collection, the plugins one level below it."""
    if _has_manifest(folder):
        return [folder]
    try:
        nested = sorted(child for child in folder.iterdir() if _has_manifest(child))
    except OSError:
        nested = []
    return nested or [folder]


def _has_manifest(folder: Path) -> bool:
    """Also when it cannot be looked at: reading it says what is wrong."""
    try:
        os.stat(folder / MANIFEST)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _roots_of(plugin: Path) -> Iterator[Root]:
    manifest = read_manifest(plugin)
    paths = manifest.get("skills", [])
    paths = [paths] if isinstance(paths, str) else paths
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise ManifestValidationError(f"{plugin / MANIFEST}: 'skills' must be a path or a list of paths.")
    given = set[Path]()
    for relative in dict.fromkeys(["skills", *(path.removeprefix("./").rstrip("/") for path in paths)]):
        try:
            folder = FilePathResolver.resolve_path(plugin, relative)
        except PathSecurityError as error:
            raise ManifestValidationError(f"{plugin / MANIFEST}: {error}") from error
        if os.path.isdir(folder):
            if folder not in given:
                given.add(folder)
                yield Root(folder, manifest["name"], plugin)
        elif relative != "skills":
            raise ManifestValidationError(
                f"{plugin / MANIFEST}: 'skills' names {relative!r}, which is not a folder. Correct the path."
            )


def read_manifest(plugin: Path) -> dict[str, Any]:
    """The manifest as an object with a usable `name`."""
    file = plugin / MANIFEST
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ManifestParseError(f"{file} is not a regular file. Replace it by a text file.")
        if status.st_size > MANIFEST_LIMIT_BYTES:
            raise ManifestParseError(f"{file} is larger than {MANIFEST_LIMIT_BYTES} bytes. Shorten it.")
        manifest = json.loads(file.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise ManifestNotFoundError(
            f"{plugin} has no {MANIFEST}. Add one with a name, or give the folder as a search path."
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ManifestParseError(f"{file} cannot be read as JSON: {error}. Correct it.") from error
    if not isinstance(manifest, dict):
        raise ManifestParseError(f"{file} is not a JSON object. Write {{'name': ...}}.")
    name = manifest.get("name")
    if not isinstance(name, str) or not name.strip() or ":" in name or not name.isprintable():
        raise ManifestValidationError(f"{file}: 'name' must be a text on one line without ':'.")
    if name in (PROJECT, AGENT, PATH):
        # Names found there would pass for skills of the project or the user.
        raise ManifestValidationError(f"{file}: 'name' is {name!r}, which skillkit uses for its own. Choose another.")
    return manifest
