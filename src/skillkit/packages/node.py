"""Wanted packages of Node -> a lock with versions and hashes, and the `node_modules` that it makes. The tool is npm.

No script of a package runs, neither when it is looked up nor when it is installed.
"""

from __future__ import annotations

import json
import os
import urllib.error
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from skillkit.core.paths import real_path
from skillkit.core.run.unwalled import read_output
from skillkit.core.store.environments import TREE
from skillkit.packages.index import AT_ONCE, Index, hosts_for, npm_registry
from skillkit.packages.pages import read_address
from skillkit.packages.tools import TOOL_SECONDS, Said, failure_of, node_program, npm_program
from skillkit.packages.values import Locked, PackagesError, Plan, Wanted, common_name_near, known_of, locked_in
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
    known = _told_by(registry, [each.name for each in wanted], patience)
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
    packages = locked_in(text, "node")
    known |= _told_by(registry, [each.name for each in packages if each.name not in known], patience)
    sources = {each.name: each for each in wanted}
    told = tuple(sorted(_told(each, known[each.name], sources.get(each.name)) for each in packages))
    untimed = registry.names if any(each.uploaded_at is None for each in told) else ()
    key = key_of(text, node.path, node.version, node.platform)
    unknown = tuple(each.name for each in wanted if each not in found)
    return Plan("node", key, text, node.path, wanted, told, registry.names, untimed, unknown, {"package.json": listed})


def build_node(shop: Workshop, plan: Plan, node: Node, patience: float, on_bytes: Callable[[int], None] | None) -> None:
    """`node_modules` from the lock alone."""
    del patience
    registry = npm_registry(shop.new_folder("npm-settings"))
    tree = shop.made / TREE
    tree.mkdir()
    lock = json.loads(plan.lock)
    listed = plan.extra.get("package.json") or json.dumps({"private": True, **lock["packages"].get("", {})})
    (tree / "package.json").write_text(listed, encoding="utf-8")
    (tree / "package-lock.json").write_text(plan.lock, encoding="utf-8")
    files = [str(each["resolved"]) for each in lock["packages"].values() if each.get("resolved")]
    said = _npm(shop, ("ci",), tree, node, registry, files, on_bytes=on_bytes)
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
        if (known["version"], known["integrity"]) != (entry.get("version"), entry.get("integrity")):
            raise PackagesError(
                f"{place}: the registry has another file than the skill's package-lock.json names. Somebody changed "
                "one of them: do not use it until you know who."
            )


def _told_by(registry: Index, names: Iterable[str], patience: float) -> dict[str, dict[str, Any]]:
    def read(name: str) -> dict[str, Any]:
        address = f"{registry.addresses[0].rstrip('/')}/{quote(name, safe='@')}"
        try:
            content, _, _ = read_address(address, "application/json", seconds=patience)
            told = json.loads(content)
        except urllib.error.HTTPError as error:
            if error.code in (404, 410):
                return {}
            raise _silent(registry, str(error)) from error
        except (OSError, ValueError) as error:
            raise _silent(registry, str(getattr(error, "reason", "") or error)) from error
        return told if isinstance(told, dict) else {}

    wanted = list(dict.fromkeys(names))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(wanted, pool.map(read, wanted), strict=True))


def _silent(registry: Index, reason: str) -> PackagesError:
    return PackagesError(
        f"The registry {', '.join(registry.names)} does not answer: {reason[:200]}. Check the network, or the registry."
    )


def _told(locked: Locked, known: Mapping[str, Any], wanted: Wanted | None) -> Locked:
    released = known.get("time")
    moment = released.get(locked.version) if isinstance(released, dict) else None
    versions = known.get("versions")
    version = versions.get(locked.version, {}) if isinstance(versions, dict) else {}
    size = version.get("dist", {}).get("unpackedSize") if isinstance(version, dict) else None
    return Locked(
        locked.name,
        locked.version,
        locked.hashes,
        wanted.source if wanted else "",
        wanted.where if wanted else "",
        size if isinstance(size, int) else None,
        _seconds(moment),
        common_name_near(locked.name, "node") if wanted else "",
    )


def _seconds(moment: object) -> float | None:
    try:
        return datetime.fromisoformat(str(moment)).timestamp() if moment else None
    except ValueError:
        return None
