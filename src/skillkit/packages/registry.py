"""npm's registry -> what it tells of each release; a lock of npm's -> the same lock, held to that.

An entry of a lock is somebody's word: the skill's, or that of a package with an `npm-shrinkwrap.json` in it. Of it
count name, version and what it needs in turn. Its hash has to be the one that the registry tells of that name and
version, and its address is the registry's. All else is left out: that an entry has a shrinkwrap or bundled packages
would let npm install what no entry names.
"""

from __future__ import annotations

import json
import urllib.error
from base64 import b64encode
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlsplit

from skillkit.packages.index import AT_ONCE, Index
from skillkit.packages.pages import PORTS, read_address
from skillkit.packages.skill_lock import KEPT_OF_NPM, NPM_PLACE
from skillkit.packages.values import PackagesError, npm_name

__all__ = ["SHORT", "WHOLE", "Page", "Release", "addresses_in", "lock_held_to", "release_of", "told_by"]

WHOLE = "application/json"
SHORT = "application/vnd.npm.install-v1+json, application/json;q=0.5"
"""Without times, which only a question needs."""

Page = Mapping[str, Any]
"""What a registry tells of all versions of one package; empty where it has no such package."""


@dataclass(frozen=True, slots=True)
class Release:
    """One version, as far as the registry tells of it."""

    integrity: str = ""
    hashes: frozenset[str] = frozenset()
    """Those of `integrity`, and the older one that old locks have."""
    tarball: str = ""
    size: int | None = None
    uploaded_at: float | None = None


def told_by(registry: Index, names: Iterable[str], patience: float, form: str = WHOLE) -> dict[str, Page]:
    """By name."""

    def read(name: str) -> Page:
        address = f"{registry.addresses[0].rstrip('/')}/{quote(name, safe='@')}"
        try:
            content, _, _ = read_address(address, form, seconds=patience)
            return _object(json.loads(content))
        except urllib.error.HTTPError as error:
            if error.code in (404, 410):
                return {}
            raise _silent(registry, str(error)) from error
        except (OSError, ValueError, RecursionError) as error:
            raise _silent(registry, str(getattr(error, "reason", "") or error)) from error

    wanted = list(dict.fromkeys(names))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(wanted, pool.map(read, wanted), strict=True))


def release_of(page: Page, version: str) -> Release:
    dist = _object(_object(_object(page.get("versions")).get(version)).get("dist"))
    size, tarball = dist.get("unpackedSize"), str(dist.get("tarball", ""))
    sha1, integrity = _sha1(dist.get("shasum")), dist.get("integrity")
    told = integrity if isinstance(integrity, str) and integrity.strip() else sha1
    return Release(
        told,
        frozenset((*told.split(), *sha1.split())),
        tarball if urlsplit(tarball).scheme in PORTS else "",
        size if isinstance(size, int) else None,
        _seconds(_object(page.get("time")).get(version)),
    )


def lock_held_to(pages: Mapping[str, Page], lock: str) -> str:
    """Raises where an entry is not what the registry has."""
    listed = json.loads(lock)["packages"]
    held = {place: _held(place, entry, pages) for place, entry in listed.items() if place}
    top = {"dependencies": listed.get("", {}).get("dependencies", {})}
    return json.dumps({"lockfileVersion": 3, "requires": True, "packages": {"": top, **held}})


def addresses_in(lock: str) -> list[str]:
    """Of the files that a lock which was held to the registry names."""
    return [each["resolved"] for place, each in json.loads(lock)["packages"].items() if place]


def _held(place: str, entry: Mapping[str, Any], pages: Mapping[str, Page]) -> dict[str, Any]:
    name, version = npm_name(place, entry), str(entry["version"])
    release = release_of(pages[name], version)
    if NPM_PLACE.fullmatch(place) is None:
        raise PackagesError(f"{place[:100]!r} is a path. Only packages of the registry are prepared.")
    if not release.hashes or not release.tarball:
        raise PackagesError(f"{name} {version}: the registry gives no file with a hash for it; it is not installed.")
    if not release.hashes.issuperset(str(entry["integrity"]).split()):
        raise PackagesError(
            f"{place}: the registry has another file of {name} {version} than a lock names, the skill's or that of a "
            "package. Somebody changed one of them: do not use it until you know who."
        )
    kept = {key: entry[key] for key in KEPT_OF_NPM if key in entry}
    return {**kept, "resolved": release.tarball, "integrity": release.integrity}


def _silent(registry: Index, reason: str) -> PackagesError:
    return PackagesError(
        f"The registry {', '.join(registry.names)} does not answer: {reason[:200]}. Check the network, or the registry."
    )


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _sha1(text: object) -> str:
    try:
        return f"sha1-{b64encode(bytes.fromhex(str(text))).decode()}" if text else ""
    except ValueError:
        return ""


def _seconds(moment: object) -> float | None:
    try:
        return datetime.fromisoformat(str(moment)).timestamp() if moment else None
    except ValueError:
        return None
