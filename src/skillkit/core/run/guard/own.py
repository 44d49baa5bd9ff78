"""This program -> the folders it runs from: whoever changes them changes what it does next, outside all walls."""

from __future__ import annotations

import os
import sys
from functools import lru_cache

from skillkit.core.paths import real_path

__all__ = ["importable_names", "own_folders"]

PACKAGE = os.path.abspath(__file__).rsplit(os.sep, 4)[0]


def own_folders() -> tuple[str, ...]:
    """skillkit, its interpreter and environment, and every folder from which programs or modules are taken."""
    path = os.environ.get("PATH", "")
    return _own_folders(path, tuple(sys.path), os.environ.get("VIRTUAL_ENV", ""))


@lru_cache(maxsize=4)
def _own_folders(programs: str, modules: tuple[str, ...], environment: str) -> tuple[str, ...]:
    named = (
        PACKAGE,
        *(sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, environment),
        os.path.dirname(sys.executable or ""),
        *(each for each in programs.split(os.pathsep) if os.path.isabs(each)),
        *(os.path.abspath(each) for each in modules),
    )
    absolute = [each for each in named if os.path.isabs(each)]
    return tuple(dict.fromkeys(each for path in absolute for each in (os.path.normpath(path), real_path(path))))


def importable_names() -> frozenset[str]:
    """Names of modules that this program has or may still load, wherever it finds them first."""
    return frozenset(sys.stdlib_module_names) | {name.partition(".")[0] for name in tuple(sys.modules)}
