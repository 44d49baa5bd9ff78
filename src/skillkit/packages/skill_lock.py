"""A lock inside a skill -> name, version and hashes of each package; nothing else of it is taken.

Read are `requirements.lock`, `*.py.lock` of uv and `package-lock.json`. An entry that names an address, an option, a
repository or a path is refused by name.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from skillkit.core.values.text import toml_of
from skillkit.packages.values import INNER, PackagesError, npm_name
from skillkit.packages.wanted import require_plain

__all__ = ["KEPT_OF_NPM", "NPM_PLACE", "Pin", "npm_lock_of", "python_pins_of"]

Pin = tuple[str, tuple[str, ...]]
"""Version, and `sha256:...` of each file that it may be."""
MOST_BYTES = 4_000_000
FOLDERS = ("", "scripts")
HASH = re.compile(r"--hash[= ](\S+)")
SHA256 = re.compile(r"sha256:[0-9a-f]{64}")
EXACT = re.compile(r"[\w.+!-]{1,80}")
INTEGRITY = re.compile(r"(?:sha(?:512|384|256|1)-[A-Za-z0-9+/=]{20,100}\s?){1,4}")
NPM_NAME = re.compile(r"(?:@[\w.-]{1,100}/)?(?!\.)[\w.-]{1,200}")
NPM_PLACE = re.compile(rf"(?:{INNER}{NPM_NAME.pattern}/)*{INNER}{NPM_NAME.pattern}")
OTHER_SOURCES = {"git": "a git repository", "url": "an address", "path": "a path", "directory": "a path"}
KEPT_OF_NPM = (
    "name version integrity dependencies optionalDependencies peerDependencies peerDependenciesMeta optional peer dev "
    "devOptional engines os cpu libc bin"
).split()


def python_pins_of(folder: Path) -> dict[str, Pin]:
    """By the name that indexes compare; empty where the skill has no lock."""
    pins: dict[str, Pin] = {}
    for path in _locks(folder, "requirements.lock", "*.py.lock"):
        text, name = _text_of(path), path.relative_to(folder).as_posix()
        found = _of_requirements(text, name) if path.name == "requirements.lock" else _of_uv(text, name)
        for package, pin in found:
            if pins.setdefault(package, pin)[0] != pin[0]:
                raise PackagesError(f"{name}: {package} is locked twice, as {pins[package][0]} and as {pin[0]}.")
    return pins


def npm_lock_of(folder: Path) -> str:
    """The same lock with names, versions and hashes alone; empty where there is none."""
    for path in _locks(folder, "package-lock.json"):
        name = path.relative_to(folder).as_posix()
        content = _parsed(_text_of(path), name)
        listed = content.get("packages")
        if not isinstance(listed, dict):
            raise PackagesError(f"{name}: it has no 'packages'. Make it anew with npm 7 or later.")
        kept = {place: _npm_entry(place, entry, name) for place, entry in listed.items() if place}
        return json.dumps({"lockfileVersion": 3, "requires": True, "packages": kept})
    return ""


def _locks(folder: Path, *patterns: str) -> Iterator[Path]:
    """Beside the scripts or at the top; no links."""
    for inner in FOLDERS:
        for pattern in patterns:
            found = sorted((folder / inner).glob(pattern)) if os.path.isdir(folder / inner) else []
            yield from (path for path in found if os.path.isfile(path) and not os.path.islink(path))


def _text_of(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise PackagesError(f"{path.name} is longer than {MOST_BYTES:,} bytes.")
    return content.decode("utf-8", "replace")


def _of_requirements(text: str, name: str) -> Iterator[tuple[str, Pin]]:
    number = 0
    waiting = ""
    for number, line in enumerate(text.splitlines(), 1):
        written = waiting + re.sub(r"(^|\s)#.*", "", line).strip()
        waiting = f"{written[:-1]} " if written.endswith("\\") else ""
        if written and not waiting:
            yield _pin_in(written, f"{name}:{number}")
    if waiting:
        yield _pin_in(waiting, f"{name}:{number}")


def _pin_in(written: str, place: str) -> tuple[str, Pin]:
    hashes = tuple(HASH.findall(written))
    bare = HASH.sub("", written).strip()
    require_plain(bare, place)
    for option in re.findall(r"(?:^|\s)(-{1,2}[a-z][\w-]*)", bare):
        require_plain(option, place)
    try:
        found = Requirement(bare)
    except InvalidRequirement:
        raise PackagesError(f"{place}: {bare[:100]!r} is no package with a version. Write NAME==VERSION.") from None
    exact = [each.version for each in found.specifier if each.operator in ("==", "===") and "*" not in each.version]
    if len(exact) != 1 or len(found.specifier) != 1:
        raise PackagesError(f"{place}: {bare[:100]!r} names no single version. Write {found.name}==VERSION.")
    _require_hashes(hashes, place)
    return canonicalize_name(found.name), (exact[0], hashes)


def _of_uv(text: str, name: str) -> Iterator[tuple[str, Pin]]:
    try:
        listed = toml_of(text).get("package", [])
    except ValueError as error:
        raise PackagesError(f"{name}: it is no lock of uv's: {error}.") from error
    for each in listed if isinstance(listed, list) else ():
        package, source = str(each.get("name", "")), each.get("source", {})
        for kind, words in OTHER_SOURCES.items():
            if kind in source:
                raise PackagesError(f"{name}: {package} comes from {words}. Only packages of an index are prepared.")
        if "editable" in source or "virtual" in source:
            raise PackagesError(f"{name}: {package} is an editable installation. Only packages of an index are.")
        if "registry" in source and EXACT.fullmatch(str(each.get("version", ""))):
            hashes = tuple(str(wheel.get("hash", "")) for wheel in each.get("wheels", []) if isinstance(wheel, dict))
            _require_hashes(hashes, f"{name}: {package}")
            yield canonicalize_name(package), (str(each["version"]), hashes)


def _require_hashes(hashes: tuple[str, ...], place: str) -> None:
    for each in hashes:
        if SHA256.fullmatch(each) is None:
            raise PackagesError(f"{place}: {each[:90]!r} is no sha256 hash.")


def _npm_entry(place: str, entry: Any, name: str) -> dict[str, Any]:  # noqa: ANN401 - as the file has it
    if not isinstance(entry, dict) or entry.get("link") or NPM_PLACE.fullmatch(place) is None:
        raise PackagesError(f"{name}: {place[:100]!r} is a path. Only packages of the registry are prepared.")
    package = npm_name(place, entry)
    resolved = str(entry.get("resolved", ""))
    if resolved and not _is_registry_file(resolved, package, str(entry.get("version", ""))):
        raise PackagesError(
            f"{name}: {package} comes from an address, a repository or a path ({_shown(resolved)}). Only packages of "
            "the registry are prepared."
        )
    is_named = NPM_NAME.fullmatch(package) and EXACT.fullmatch(str(entry.get("version", "")))
    if not is_named or INTEGRITY.fullmatch(str(entry.get("integrity", ""))) is None:
        raise PackagesError(f"{name}: {place[:100]!r} has no version and hash. Make the lock anew with npm.")
    return {key: entry[key] for key in KEPT_OF_NPM if key in entry}


def _is_registry_file(resolved: str, package: str, version: str) -> bool:
    """By the forms that registries' files have; the host does not count, since it is not taken."""
    files = (f"/{package}/-/{name}-{version}.tgz" for name in (package.rpartition("/")[2], package))
    parts = urlsplit(resolved)
    return parts.scheme == "https" and unquote(parts.path).endswith(tuple(files))


def _shown(resolved: str) -> str:
    return repr(resolved.partition("?")[0][:80])


def _parsed(text: str, name: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PackagesError(f"{name}: it is no JSON: {error}.") from error
    return content if isinstance(content, dict) else {}
