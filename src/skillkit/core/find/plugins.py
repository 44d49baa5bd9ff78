"""A plugin's folder, or Claude's list of installed ones -> the folders of skills that plugins bring."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from skillkit.core.exceptions import (
    ManifestNotFoundError,
    ManifestParseError,
    ManifestValidationError,
    PathSecurityError,
    PluginError,
)
from skillkit.core.find.roots import OWN_SOURCES, PathLike, Root, existing_folder, path_list
from skillkit.core.paths import FilePathResolver, is_inside, real_path
from skillkit.core.values.skills import Diagnostic
from skillkit.core.values.text import grouped

__all__ = ["installed_plugin_roots", "plugin_roots", "read_manifest"]

HOST = "claude"
MANIFEST = ".claude-plugin/plugin.json"
MARKETPLACE = ".claude-plugin/marketplace.json"
INSTALLED = "installed_plugins.json"
PLUGINS_FOLDER = ".claude/plugins"
MANIFEST_LIMIT_BYTES = 1_000_000
REMEDY = "Correct the plugin or leave it out of plugin_dirs."
REINSTALL = "Install the plugin again, or remove it."


class _Plugin(NamedTuple):
    """A plugin's folder; `name` is what its installation calls it, for one without a manifest."""

    folder: Path
    name: str = ""
    host: str = ""


def plugin_roots(given: Sequence[PathLike] | None, problems: list[Diagnostic]) -> list[Root]:
    """A bad plugin becomes a problem and never stops the others."""
    folders = [existing_folder(path, "plugin_dirs") for path in path_list(given, "plugin_dirs")]
    return _roots_of_all((plugin for folder in folders for plugin in _plugins_in(folder, problems)), problems)


def installed_plugin_roots(problems: list[Diagnostic]) -> list[Root]:
    """Of the plugins that Claude has installed for this user, everywhere or for the current folder."""
    try:
        folder = Path.home() / PLUGINS_FOLDER
    except RuntimeError:  # the user has no home
        return []
    return _roots_of_all(_installed_in(folder, problems), problems) if os.path.lexists(folder / INSTALLED) else []


def _roots_of_all(plugins: Iterator[_Plugin], problems: list[Diagnostic]) -> list[Root]:
    found: list[Root] = []
    for plugin in plugins:
        try:
            found.extend(_roots_of(plugin))
        except PluginError as error:
            line = getattr(error.__cause__, "lineno", None)
            problems.append(Diagnostic("error", "bad-plugin", str(error), plugin.folder / MANIFEST, line, REMEDY))
    return found


def _plugins_in(folder: Path, problems: list[Diagnostic]) -> Iterator[_Plugin]:
    """The folder itself, what is installed in it, or, when it is a collection, the plugins one level below it."""
    if _has_manifest(folder):
        yield _Plugin(folder)
        return
    if os.path.lexists(folder / INSTALLED):
        yield from _installed_in(folder, problems)
        return
    try:
        nested = sorted(child for child in folder.iterdir() if _has_manifest(child))
    except OSError:
        nested = []
    yield from map(_Plugin, nested or [folder])


def _has_manifest(folder: Path) -> bool:
    """Also when it cannot be looked at: reading it says what is wrong."""
    try:
        os.stat(folder / MANIFEST)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _installed_in(folder: Path, problems: list[Diagnostic]) -> Iterator[_Plugin]:
    """As listed, each once; those of other projects are left out."""
    file = folder / INSTALLED
    try:
        listed = _read_object(file).get("plugins", {})
        if not isinstance(listed, dict):
            raise ManifestParseError(f"{file}: 'plugins' is not an object.")
    except PluginError as error:
        line = getattr(error.__cause__, "lineno", None)
        problems.append(Diagnostic("error", "bad-plugin", str(error), file, line, "Correct it."))
        return
    for key, entries in listed.items():
        # An earlier format has one entry where the later one has a list.
        for entry in entries if isinstance(entries, list) else [entries]:
            if not isinstance(entry, dict) or not _is_for_this_folder(entry):
                continue
            place = _installed_place(folder, key, entry)
            if place is None:
                message = f"The installed plugin {key!r} is not in {folder}."
                problems.append(Diagnostic("warning", "missing-plugin", message, file, None, REINSTALL))
            else:
                yield _Plugin(place, key.partition("@")[0], HOST)


def _is_for_this_folder(entry: Mapping[str, Any]) -> bool:
    """A plugin can be installed for one project alone."""
    project = entry.get("projectPath")
    if entry.get("scope", "user") not in ("project", "local") or not isinstance(project, str):
        return True
    return os.path.isabs(project) and is_inside(real_path(os.curdir), real_path(project))


def _installed_place(folder: Path, key: str, entry: Mapping[str, Any]) -> Path | None:
    """Where its files are, below the folder of plugins only: by its own word, else at the usual place."""
    name, _, market = key.partition("@")
    named = entry.get("installPath"), os.path.join("cache", market, name, str(entry.get("version", "")))
    for path in named:
        place = folder / path if isinstance(path, str) and path and "\0" not in path else None
        if place is not None and is_inside(real_path(place), real_path(folder)) and os.path.isdir(place):
            return place
    return None


def _roots_of(plugin: _Plugin) -> Iterator[Root]:
    try:
        manifest = read_manifest(plugin.folder)
        standard = ["skills"]
    except ManifestNotFoundError:
        if not plugin.name:
            raise
        file = plugin.folder / MARKETPLACE
        manifest = {**_of_marketplace(file, plugin.name), "name": plugin.name}
        _require_name(file, plugin.name)
        standard = [] if manifest.get("skills") else ["skills"]
    for folder in _named_folders(plugin.folder, manifest, standard):
        yield Root(folder, manifest["name"], plugin.folder, plugin.host)


def _named_folders(plugin: Path, manifest: Mapping[str, Any], standard: list[str]) -> Iterator[Path]:
    paths = manifest.get("skills", [])
    paths = [paths] if isinstance(paths, str) else paths
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise ManifestValidationError(f"{plugin / MANIFEST}: 'skills' must be a path or a list of paths.")
    given = set[Path]()
    for relative in dict.fromkeys([*standard, *(path.removeprefix("./").rstrip("/") for path in paths)]):
        try:
            folder = FilePathResolver.resolve_path(plugin, relative)
        except PathSecurityError as error:
            raise ManifestValidationError(f"{plugin / MANIFEST}: {error}") from error
        if os.path.isdir(folder):
            if folder not in given:
                given.add(folder)
                yield folder
        elif relative != "skills":
            raise ManifestValidationError(
                f"{plugin / MANIFEST}: 'skills' names {relative!r}, which is not a folder. Correct the path."
            )


def _of_marketplace(file: Path, name: str) -> dict[str, Any]:
    """What a marketplace says of a plugin that has no manifest of its own; empty where it says nothing."""
    if not os.path.lexists(file):
        return {}
    plugins = _read_object(file).get("plugins", [])
    entries = plugins if isinstance(plugins, list) else []
    return next((each for each in entries if isinstance(each, dict) and each.get("name") == name), {})


def read_manifest(plugin: Path) -> dict[str, Any]:
    """The manifest as an object with a usable `name`."""
    file = plugin / MANIFEST
    try:
        manifest = _read_object(file)
    except ManifestNotFoundError:
        raise ManifestNotFoundError(
            f"{plugin} has no {MANIFEST}. Add one with a name, or give the folder as a search path."
        ) from None
    _require_name(file, manifest.get("name"))
    return manifest


def _read_object(file: Path) -> dict[str, Any]:
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ManifestParseError(f"{file} is not a regular file. Replace it by a text file.")
        if status.st_size > MANIFEST_LIMIT_BYTES:
            raise ManifestParseError(f"{file} is larger than {grouped(MANIFEST_LIMIT_BYTES)} bytes. Shorten it.")
        found = json.loads(file.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise ManifestNotFoundError(f"{file} is not there.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ManifestParseError(f"{file} cannot be read as JSON: {error}. Correct it.") from error
    if not isinstance(found, dict):
        raise ManifestParseError(f"{file} is not a JSON object. Write {{'name': ...}}.")
    return found


def _require_name(file: Path, name: object) -> None:
    if not isinstance(name, str) or not name.strip() or ":" in name or not name.isprintable():
        raise ManifestValidationError(f"{file}: 'name' must be a text on one line without ':'.")
    if name.partition("/")[0] in OWN_SOURCES:
        # Names found there would pass for skills of the project or the user.
        raise ManifestValidationError(f"{file}: 'name' is {name!r}, which skillkit uses for its own. Choose another.")
