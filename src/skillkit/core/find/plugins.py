"""Plugin folders -> the roots of the skills they bring, read from `.claude-plugin/plugin.json`."""

from __future__ import annotations

import json
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
from skillkit.core.find.roots import PathLike, Root, existing_folder
from skillkit.core.paths import FilePathResolver
from skillkit.core.values import Diagnostic

__all__ = ["plugin_roots", "read_manifest"]

MANIFEST = ".claude-plugin/plugin.json"
MANIFEST_LIMIT_BYTES = 1_000_000


def plugin_roots(given: Sequence[PathLike] | None, problems: list[Diagnostic]) -> list[Root]:
    """A bad plugin becomes a problem and never stops the others."""
    found: list[Root] = []
    for path in given or ():
        folder = existing_folder(path, "plugin_dirs")
        for plugin in plugins_in(folder):
            try:
                found.extend(roots_of(plugin))
            except PluginError as error:
                problems.append(Diagnostic("error", "bad-plugin", str(error), plugin / MANIFEST))
    return found


def plugins_in(folder: Path) -> list[Path]:
    """The folder itself, or, when it is a collection, the plugins one level below it."""
    if (folder / MANIFEST).exists():
        return [folder]
    try:
        nested = sorted(child for child in folder.iterdir() if (child / MANIFEST).exists())
    except OSError:
        nested = []
    return nested or [folder]


def roots_of(plugin: Path) -> Iterator[Root]:
    manifest = read_manifest(plugin)
    paths = manifest.get("skills", [])
    paths = [paths] if isinstance(paths, str) else paths
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise ManifestValidationError(f"{plugin / MANIFEST}: 'skills' must be a path or a list of paths.")
    for relative in dict.fromkeys(["skills", *(path.removeprefix("./").rstrip("/") for path in paths)]):
        try:
            folder = FilePathResolver.resolve_path(plugin, relative)
        except PathSecurityError as error:
            raise ManifestValidationError(f"{plugin / MANIFEST}: {error}") from error
        if folder.is_dir():
            yield Root(folder, manifest["name"], plugin)
        elif relative != "skills":
            raise ManifestValidationError(
                f"{plugin / MANIFEST}: 'skills' names {relative!r}, which is not a folder. Correct the path."
            )


def read_manifest(plugin: Path) -> dict[str, Any]:
    """The manifest as an object with a usable `name`."""
    file = plugin / MANIFEST
    try:
        if file.stat().st_size > MANIFEST_LIMIT_BYTES:
            raise ManifestParseError(f"{file} is larger than {MANIFEST_LIMIT_BYTES} bytes.")
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
    if not isinstance(name, str) or not name.strip() or ":" in name:
        raise ManifestValidationError(f"{file}: 'name' must be a text without ':'.")
    return manifest
