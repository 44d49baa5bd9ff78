"""Plugin folders -> the roots of the skills they bring, read from `.claude-plugin/plugin.json`."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from skillkit.core.exceptions import (
    ManifestNotFoundError,
    ManifestParseError,
    ManifestValidationError,
    PathSecurityError,
    PluginError,
)
from skillkit.core.find.roots import AGENT, PATH, PROJECT, PathLike, Root, existing_folder
from skillkit.core.paths import FilePathResolver
from skillkit.core.values import Diagnostic

__all__ = ["plugin_roots", "read_manifest"]

MANIFEST = ".claude-plugin/plugin.json"
MANIFEST_LIMIT_BYTES = 1_000_000
REMEDY = "Correct the plugin or leave it out of plugin_dirs."


def plugin_roots(given: Sequence[PathLike] | None, problems: list[Diagnostic]) -> list[Root]:
    """A bad plugin becomes a problem and never stops the others."""
    found: list[Root] = []
    for path in given or ():
        folder = existing_folder(path, "plugin_dirs")
        for plugin in plugins_in(folder):
            try:
                found.extend(roots_of(plugin))
            except PluginError as error:
                line = getattr(error.__cause__, "lineno", None)
                problems.append(Diagnostic("error", "bad-plugin", str(error), plugin / MANIFEST, line, REMEDY))
    return found


def plugins_in(folder: Path) -> list[Path]:
    """The folder itself, or, when it is a collection, the plugins one level below it."""
    if has_manifest(folder):
        return [folder]
    try:
        nested = sorted(child for child in folder.iterdir() if has_manifest(child))
    except OSError:
        nested = []
    return nested or [folder]


def has_manifest(folder: Path) -> bool:
    """Also when it cannot be looked at: reading it says what is wrong."""
    try:
        os.stat(folder / MANIFEST)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def roots_of(plugin: Path) -> Iterator[Root]:
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
