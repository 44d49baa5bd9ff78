"""Wanted packages of Python -> a lock with versions and hashes, and the environment that it makes. The tool is uv."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from skillkit.core.paths import real_path
from skillkit.core.resolve.environment import interpreter_for, search_path
from skillkit.core.run.unwalled import read_output
from skillkit.core.store.environments import TREE, names_below
from skillkit.core.values.policy import ScriptPolicy
from skillkit.packages.index import File, Index, hosts_for, pages_of, python_index
from skillkit.packages.skill_lock import Pin
from skillkit.packages.tools import Hosts, failure_of, uv_program
from skillkit.packages.values import Locked, PackagesError, Plan, Wanted, known_of, locked_in
from skillkit.packages.wheels import hashes_of, told
from skillkit.packages.workshop import Workshop, key_of

__all__ = ["Python", "build_python", "plan_python", "python_here"]

QUESTION = (
    "import json, platform, sys, sysconfig; "
    "print(json.dumps([sys._base_executable, platform.python_version(), sysconfig.get_platform()]))"
)
CLOSED = ("--no-config", "--no-python-downloads", "--quiet")
WHEELS = ("--only-binary", ":all:")
ANSWER_SECONDS = "30"


@dataclass(frozen=True, slots=True)
class Python:
    """The interpreter that environments are made for: never a virtual environment's own."""

    path: str
    version: str
    platform: str


def python_here(folder: Path, policy: ScriptPolicy) -> Python:
    """The one that would run a script of the skill in this folder."""
    path = search_path(os.environ, folder, None)
    found = interpreter_for("python", path, policy.allowed_interpreters, read_output, closed=(folder,))
    status = os.stat(found.path)
    return _python_at(found.path, path, (status.st_dev, status.st_ino, status.st_mtime_ns))


@lru_cache(maxsize=16)
def _python_at(program: str, path: str, identity: tuple[int, ...]) -> Python:
    """Asked once, as long as it is the same file."""
    del identity
    try:
        base, version, platform = json.loads(read_output((program, "-I", "-c", QUESTION), path))
    except ValueError:
        raise PackagesError(
            f"{program} does not say which Python it is: it does not run, or it lies in a project, where a script may "
            "have put it. Put one from elsewhere first on PATH."
        ) from None
    return Python(real_path(base), version, platform)


def plan_python(
    shop: Workshop, wanted: tuple[Wanted, ...], pins: Mapping[str, Pin], python: Python, patience: float
) -> Plan:
    """The lock that these give today, with what the index tells of each package."""
    index = python_index(shop.new_folder("settings"))
    names = [each.name for each in wanted]
    pages = pages_of(names, index.addresses, seconds=patience)
    found = known_of(wanted, [name for name in names if pages[name]], f"The index {', '.join(index.names)}")
    hosts = _hosts(index, pages)
    lock = _lock(shop, found, pins, python, index, hosts, patience)
    packages = locked_in(lock, "python")
    _require_pinned(packages, pins)
    pages |= pages_of([each.name for each in packages if each.name not in pages], index.addresses, seconds=patience)
    sources = {each.name: each for each in wanted}
    known = tuple(told(each, pages[each.name], sources.get(each.name), python.version) for each in packages)
    untimed = index.names if any(each.uploaded_at is None for each in known) else ()
    key = key_of(lock, python.path, python.version, python.platform)
    unknown = tuple(each.name for each in wanted if each not in found)
    return Plan("python", key, lock, python.path, wanted, known, index.names, untimed, unknown)


def build_python(
    shop: Workshop, plan: Plan, python: Python, patience: float, on_bytes: Callable[[int], None] | None
) -> None:
    """The tree of the environment, from the lock alone: hashes are required, and nothing is built."""
    index = python_index(shop.new_folder("settings"))
    pages = pages_of([each.name for each in plan.packages], index.addresses, seconds=patience)
    lock = _lock_text(replace(each, hashes=hashes_of(each, pages[each.name], python.version)) for each in plan.packages)
    (shop.work / "lock.txt").write_text(lock, encoding="utf-8")
    tree = shop.made / TREE
    uv = uv_program()
    inside = f"{real_path(shop.made)}/tree"
    make = (uv, "venv", "--relocatable", "--no-project", *CLOSED, "--python", python.path, inside)
    install = (
        *(uv, "pip", "install", "--python", f"{inside}/bin/python", "--requirements", "lock.txt"),
        *("--require-hashes", "--no-deps", *WHEELS, "--link-mode", "copy", *CLOSED),
    )
    _run(shop, make, python, index, Hosts())
    empty = _frame_of(tree, names_below(tree))
    if "bin/python" not in empty:
        raise PackagesError("uv made no environment, and said no reason.")
    _run(shop, install, python, index, _hosts(index, pages), on_bytes)
    _require_frame(tree, empty, plan)
    # Not the environment's own Python: that would start code of packages while the way to the index is open.
    compiler = (python.path, "-I", "-S", "-m", "compileall", "-qq", f"{inside}/lib")
    shop.run(compiler, programs=(python.path,), environment={}, hosts=Hosts())  # what is no Python stays as it is


def _run(
    shop: Workshop,
    words: tuple[str, ...],
    python: Python,
    index: Index,
    hosts: Hosts,
    on_bytes: Callable[[int], None] | None = None,
) -> None:
    said = shop.run(
        words,
        programs=(words[0], python.path),
        environment=_environment(shop, index),
        hosts=hosts,
        on_bytes=on_bytes,
    )
    if said.status:
        raise failure_of("uv", said, "The packages were not installed")


def _frame_of(tree: Path, names: Iterable[str]) -> dict[str, str]:
    """How each of these looks, with its content; what is not there is left out."""
    found = {}
    for name in names:
        path = tree / name
        if os.path.islink(path):
            found[name] = f"link {os.readlink(path)}"
        elif os.path.isfile(path):
            found[name] = sha256(path.read_bytes()).hexdigest()
        elif os.path.isdir(path):
            found[name] = "folder"
    return found


def _require_frame(tree: Path, empty: Mapping[str, str], plan: Plan) -> None:
    """Which Python an environment starts, and from where, stands in files of its own: no package may bring others."""
    now = _frame_of(tree, empty)
    changed = [name for name in sorted(empty) if now.get(name) != empty[name]]
    if changed:
        raise PackagesError(
            f"One of {', '.join(each.name for each in plan.packages)} brings {changed[0]}, which says what the "
            "environment is and which Python it starts. Nothing was installed. Do without that package."
        )


def _hosts(index: Index, pages: Mapping[str, list[File]]) -> Hosts:
    """The index's, and those where its own pages say that files are."""
    return hosts_for(index, (file.address for files in pages.values() for file in files))


def _environment(shop: Workshop, index: Index) -> dict[str, str]:
    """Addresses go here and not into words, which everybody can see: they may hold a password."""
    return {
        "UV_DEFAULT_INDEX": index.addresses[0],
        "UV_INDEX": " ".join(index.addresses[1:]),
        "UV_CACHE_DIR": f"{real_path(shop.work)}/cache",
        "UV_HTTP_TIMEOUT": ANSWER_SECONDS,
        "UV_HTTP_RETRIES": "1",
    }


def _lock(
    shop: Workshop,
    wanted: tuple[Wanted, ...],
    pins: Mapping[str, Pin],
    python: Python,
    index: Index,
    hosts: Hosts,
    patience: float,
) -> str:
    (shop.work / "wanted.in").write_text("".join(f"{each.requirement}\n" for each in wanted), encoding="utf-8")
    (shop.work / "pins.txt").write_text("".join(f"{name}=={pin[0]}\n" for name, pin in pins.items()), encoding="utf-8")
    uv = uv_program()
    words = (
        *(uv, "pip", "compile", "wanted.in", "--constraints", "pins.txt", "--generate-hashes", *WHEELS, *CLOSED),
        *("--no-header", "--no-annotate", "--no-strip-extras", "--python", python.path),
    )
    said = shop.run(
        words,
        programs=(uv, python.path),
        environment=_environment(shop, index),
        hosts=hosts,
        timeout=max(patience, 1.0) * 5,
    )
    if said.status:
        raise failure_of("uv", said, "No versions fit together")
    return _with_pinned_hashes(said.stdout, pins)


def _with_pinned_hashes(lock: str, pins: Mapping[str, Pin]) -> str:
    """As the tool gave it, in one form; where the skill's own lock has hashes, those alone count."""
    found = []
    for package in locked_in(lock, "python"):
        pinned = pins.get(package.name, ("", ()))[1]
        hashes = tuple(each for each in package.hashes if each in pinned) if pinned else package.hashes
        if not hashes:
            raise PackagesError(
                f"{package.name} {package.version}: no file of the index has a hash that the skill's own lock names. "
                "Somebody changed one of them: do not use it until you know who."
            )
        found.append(replace(package, hashes=hashes))
    return _lock_text(found)


def _lock_text(packages: Iterable[Locked]) -> str:
    rows = (
        (f"{each.name}=={each.version}", *(f"    --hash={one}" for one in sorted(each.hashes))) for each in packages
    )
    return "".join(" \\\n".join(row) + "\n" for row in rows)


def _require_pinned(packages: tuple[Locked, ...], pins: Mapping[str, Pin]) -> None:
    for each in packages if pins else ():
        if each.name not in pins:
            raise PackagesError(
                f"The skill's own lock does not name {each.name}, which its packages need here. Make the lock anew."
            )
