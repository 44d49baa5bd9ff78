"""An interpreter's path -> the folders it needs beside the system's, never a whole home folder."""

from __future__ import annotations

import os

from skillkit.core.paths import is_inside

__all__ = ["interpreter_paths"]

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix/store", "/gnu/store", "/System", "/Library")
PROGRAM_FOLDERS = ("bin", "sbin", "Scripts")
HOMEBREW = "/Cellar/"  # its programs use libraries of other packages beside their own
LINK_LIMIT = 40  # the kernel's
LEAST_DEPTH = 2  # a folder at the top of the tree holds more than one program


def interpreter_paths(program: str, *, home: str) -> tuple[str, ...]:
    """Absolute paths, sorted, none inside another; empty for an interpreter of the system.

    Where the installation is not a folder of its own (`~/.local/bin/node`), only the program itself and the
    library named after it.
    """
    needed: set[str] = set()
    for hop in _hops(program):
        needed.update(_places(hop, home))
    needed.update(_base_of_venv(program, home))
    kept = {path for path in needed if not any(is_inside(path, each) for each in SYSTEM)}
    return tuple(sorted(path for path in kept if not any(path != each and is_inside(path, each) for each in kept)))


def _hops(program: str) -> list[str]:
    """The program, each link on the way, and the file they end at: all have to be visible."""
    hops = [os.path.normpath(program)]
    while os.path.islink(hops[-1]) and len(hops) < LINK_LIMIT:
        hops.append(os.path.normpath(os.path.join(os.path.dirname(hops[-1]), os.readlink(hops[-1]))))
    return [*hops, os.path.realpath(program)]


def _places(hop: str, home: str) -> list[str]:
    if HOMEBREW in hop:
        return [hop.partition(HOMEBREW)[0]]
    folder = os.path.dirname(hop)
    prefix = os.path.dirname(folder) if os.path.basename(folder) in PROGRAM_FOLDERS else folder
    if not _is_too_much(prefix, home):
        return [prefix]
    library = os.path.join(prefix, "lib", os.path.basename(hop))
    return [hop, library] if os.path.isdir(library) else [hop]


def _is_too_much(prefix: str, home: str) -> bool:
    """Whether it holds a person's files beside the installation."""
    shared = (home, os.path.realpath(home), os.path.join(home, ".local"), os.path.join(home, "bin"))
    return prefix.count("/") < LEAST_DEPTH or any(is_inside(each, prefix) for each in shared)


def _base_of_venv(program: str, home: str) -> list[str]:
    """Where the virtual environment that the program belongs to was made from."""
    settings = os.path.join(os.path.dirname(os.path.dirname(os.path.normpath(program))), "pyvenv.cfg")
    try:
        with open(settings, encoding="utf-8", errors="replace") as file:
            lines = file.read(65_536).splitlines()
    except OSError:
        return []
    for line in lines:
        name, _, value = line.partition("=")
        if name.strip() == "home" and os.path.isabs(value.strip()):
            return _places(os.path.join(value.strip(), os.path.basename(program)), home)
    return []
