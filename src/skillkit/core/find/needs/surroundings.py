"""What there is for a skill: policy, grants, variables that are set, programs on PATH, installed packages, walls."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from skillkit.core.find.needs.found import package_name
from skillkit.core.values.policy import ScriptPolicy

__all__ = ["Surroundings", "surroundings_here"]

DISTRIBUTION = re.compile(r"(.+?)-[^-]+(?:-py[\d.]+)?\.(?:dist|egg)-info")
PYTHON_FOLDERS = ("lib", "lib64", "local/lib")
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
PACKAGES_SEEN = 20_000
NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Names only, never a value of a variable."""

    skill_name: str
    policy: ScriptPolicy
    environment: frozenset[str] = frozenset()
    """Variables that are set here."""
    granted: frozenset[str] = frozenset()
    """Ids of grants that hold for the skill."""
    stored: frozenset[str] = frozenset()
    """Secrets that are kept for the skill, beside those in the environment."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Secrets that are kept where others could read them, and what makes a run take each."""
    programs: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    """Installed or prepared: of Python by the index's name, of npm as `npm:NAME`."""
    tier: str = ""
    """Which walls runs get; empty where nobody asked."""
    runs_types: bool = field(default=False)
    """Whether node runs TypeScript by itself here."""
    folder: str = ""
    """The skill's."""
    plugin_root: str = ""
    workspace: str = ""
    """What the script may see and write anyway."""


def surroundings_here(
    skill_name: str,
    policy: ScriptPolicy,
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    granted: Collection[str] = (),
    stored: Collection[str] = (),
    refused: Mapping[str, str] = NONE,
    prepared: Collection[str] = (),
    tier: str = "",
    runs_types: bool = False,
    plugin_root: Path | None = None,
    workspace: Path | None = None,
) -> Surroundings:
    """Of this machine, by listing folders; nothing is started. `folder` is the skill's own."""
    own = os.environ if environment is None else environment
    path = own.get("PATH") or DEFAULT_PATH
    packages = _python_packages(path) | (_npm_packages(folder) if folder is not None else frozenset()) | {*prepared}
    return Surroundings(
        skill_name,
        policy,
        environment=frozenset(own),
        granted=frozenset(granted),
        stored=frozenset(stored),
        refused=refused,
        programs=_programs(path),
        packages=packages,
        tier=tier,
        runs_types=runs_types,
        folder=str(folder or ""),
        plugin_root=str(plugin_root or ""),
        workspace=str(workspace or ""),
    )


@lru_cache(maxsize=4)
def _programs(path: str) -> frozenset[str]:
    """Looked at once: a long PATH has thousands."""
    folders = [folder for folder in path.split(os.pathsep) if os.path.isabs(folder)]
    return frozenset(name.removesuffix(".exe") for folder in folders for name in _names_in(folder))


@lru_cache(maxsize=4)
def _python_packages(path: str) -> frozenset[str]:
    """Of the python3 that PATH gives, by the folders beside it."""
    for folder in path.split(os.pathsep):
        if os.path.isabs(folder) and os.path.isfile(os.path.join(folder, "python3")):
            prefix = os.path.dirname(folder)
            real = os.path.dirname(os.path.dirname(os.path.realpath(os.path.join(folder, "python3"))))
            is_closed = os.path.isfile(os.path.join(prefix, "pyvenv.cfg"))
            return frozenset(_distributions((prefix,) if is_closed else (prefix, real, "/usr", "/usr/local")))
    return frozenset()


def _distributions(prefixes: Iterable[str]) -> Iterable[str]:
    for prefix in dict.fromkeys(prefixes):
        for library in PYTHON_FOLDERS:
            base = os.path.join(prefix, library)
            for version in _names_in(base):
                if version.startswith("python3"):
                    for kind in ("site-packages", "dist-packages"):
                        for name in _names_in(os.path.join(base, version, kind)):
                            if found := DISTRIBUTION.fullmatch(name):
                                yield package_name(found[1])


def _npm_packages(folder: Path) -> frozenset[str]:
    """In the skill's own folder: inside walls there is no other."""
    found = set[str]()
    for base in (folder, folder / "scripts"):
        for name in _names_in(base / "node_modules"):
            scoped = _names_in(base / "node_modules" / name) if name.startswith("@") else ()
            found.update(f"npm:{name}/{each}" for each in scoped)
            found.add(f"npm:{name}")
    return frozenset(found)


def _names_in(folder: str | Path) -> list[str]:
    try:
        return os.listdir(folder)[:PACKAGES_SEEN]
    except (OSError, ValueError):
        return []
