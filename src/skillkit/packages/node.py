"""Wanted packages of Node -> a lock with versions and hashes, and the `node_modules` that it makes. The tool is npm.

No script of a package runs, neither when it is looked up nor when it is installed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from skillkit.core.paths import real_path
from skillkit.core.run.unwalled import read_output
from skillkit.core.store.environments import TREE
from skillkit.packages.index import Index, hosts_for, npm_registry
from skillkit.packages.registry import SHORT, Page, addresses_in, lock_held_to, release_of, told_by
from skillkit.packages.tools import TOOL_SECONDS, Said, failure_of, node_program, npm_program
from skillkit.packages.values import (
    Locked,
    PackagesError,
    Plan,
    Wanted,
    common_name_near,
    known_of,
    locked_in,
    npm_name,
)
from skillkit.packages.workshop import Workshop, key_of

__all__ = ["Node", "build_node", "node_here", "plan_node"]

QUIET = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
QUESTION = "console.log(JSON.stringify([process.execPath, process.version, process.platform + '-' + process.arch]))"


@dataclass(frozen=True, slots=True)
class Node:
    """The interpreter that packages are installed for."""

    path: str
    version: str
    platform: str


def node_here() -> Node:
    try:
        path, version, platform = json.loads(read_output((node_program(), "-e", QUESTION), os.environ.get("PATH", "")))
    except ValueError:
        raise PackagesError("The node on PATH does not say which it is. Check that it runs.") from None
    return Node(real_path(path), version, platform)


def plan_node(shop: Workshop, wanted: tuple[Wanted, ...], own_lock: str, node: Node, patience: float) -> Plan:
    """The lock that these give today, with what the registry tells of each package."""
    registry = npm_registry(shop.new_folder("npm-settings"))
    known = told_by(registry, [each.name for each in wanted], patience)
    found = known_of(
        wanted, [name for name, told in known.items() if told], f"The registry {', '.join(registry.names)}"
    )
    listed = json.dumps({"private": True, "dependencies": {each.name: each.requirement for each in found}})
    folder = shop.new_folder("npm")
    (folder / "package.json").write_text(listed, encoding="utf-8")
    if own_lock:
        lock = json.loads(own_lock)
        lock["packages"] = {"": json.loads(listed), **lock["packages"]}
        (folder / "package-lock.json").write_text(json.dumps(lock), encoding="utf-8")
    said = _npm(shop, ("install", "--package-lock-only"), folder, node, registry, (), patience * 5)
    if said.status:
        raise failure_of("npm", said, "No versions fit together")
    text = (folder / "package-lock.json").read_text(encoding="utf-8")
    _require_same_versions(text, own_lock)
    known |= told_by(registry, [each.name for each in locked_in(text, "node") if each.name not in known], patience)
    lock = lock_held_to(known, text)
    sources = {each.name: each for each in wanted}
    told = tuple(sorted(_told(each, known[each.name], sources.get(each.name)) for each in locked_in(lock, "node")))
    untimed = registry.names if any(each.uploaded_at is None for each in told) else ()
    key = key_of(lock, node.path, node.version, node.platform)
    unknown = tuple(each.name for each in wanted if each not in found)
    return Plan("node", key, lock, node.path, wanted, told, registry.names, untimed, unknown)


def build_node(shop: Workshop, plan: Plan, node: Node, patience: float, on_bytes: Callable[[int], None] | None) -> None:
    """`node_modules` from the lock alone, and from where the registry here says that its files are."""
    registry = npm_registry(shop.new_folder("npm-settings"))
    pages = told_by(registry, [each.name for each in plan.packages], patience, SHORT)
    lock = lock_held_to(pages, plan.lock)
    tree = shop.made / TREE
    tree.mkdir()
    (tree / "package.json").write_text(json.dumps({"private": True, **json.loads(lock)["packages"][""]}), "utf-8")
    (tree / "package-lock.json").write_text(lock, encoding="utf-8")
    said = _npm(shop, ("ci",), tree, node, registry, addresses_in(lock), on_bytes=on_bytes)
    if said.status:
        raise failure_of("npm", said, "The packages were not installed")
    (tree / "node_modules").mkdir(exist_ok=True)


def _npm(
    shop: Workshop,
    words: tuple[str, ...],
    folder: Path,
    node: Node,
    registry: Index,
    files: Iterable[str],
    seconds: float = TOOL_SECONDS,
    on_bytes: Callable[[int], None] | None = None,
) -> Said:
    npm = npm_program()
    settings = {
        "npm_config_registry": registry.addresses[0],
        "npm_config_cache": f"{real_path(shop.work)}/npm-cache",
        # Files that are not there: npm wants two different ones.
        "npm_config_userconfig": f"{real_path(shop.work)}/no-user-settings",
        "npm_config_globalconfig": f"{real_path(shop.work)}/no-global-settings",
        "npm_config_fetch_timeout": "30000",
        "npm_config_fetch_retries": "1",
        "npm_config_allow_remote": "all",  # a registry's files may lie at another host than itself
        "PATH": os.pathsep.join((os.path.dirname(node.path), os.path.dirname(npm), os.defpath)),
    }
    return shop.run(
        (npm, *words, *QUIET, "--prefix", real_path(folder)),
        programs=(npm, node.path),
        environment=settings,
        hosts=hosts_for(registry, files),
        on_bytes=on_bytes,
        timeout=seconds,
    )


def _require_same_versions(text: str, own_lock: str) -> None:
    """What the skill's lock names is what is installed, with the hash that it names."""
    if not own_lock:
        return
    own = json.loads(own_lock)["packages"]
    for place, entry in json.loads(text)["packages"].items():
        if not place:
            continue
        known = own.get(place)
        if known is None:
            raise PackagesError(f"The skill's package-lock.json does not name {place}. Make the lock anew with npm.")
        if _identity(place, known) != _identity(place, entry):
            raise PackagesError(
                f"{place}: npm takes another file than the skill's package-lock.json names, which is none that its "
                "packages ask for. Make the lock anew with npm."
            )


def _identity(place: str, entry: Mapping[str, Any]) -> tuple[str, str, str]:
    return npm_name(place, entry), str(entry.get("version")), str(entry.get("integrity"))


def _told(locked: Locked, page: Page, wanted: Wanted | None) -> Locked:
    release = release_of(page, locked.version)
    return replace(
        locked,
        source=wanted.source if wanted else "",
        where=wanted.where if wanted else "",
        size=release.size,
        uploaded_at=release.uploaded_at,
        resembles=common_name_near(locked.name, "node") if wanted else "",
    )
