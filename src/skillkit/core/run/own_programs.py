"""The person's PATH and environment -> the programs skillkit starts for itself, none that a script can have written.

What is started here runs outside all walls, with a link that logs in or with the user's rights: a browser, a
notification, a version manager. An activated environment puts a folder of the project first on PATH.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path

from skillkit.core.paths import is_decided_inside, is_inside, is_of_packages, real_path
from skillkit.core.paths.forbidden import writable_by_scripts
from skillkit.core.paths.guarded_names import ENVIRONMENT_MARK

__all__ = ["find_own_program", "own_environment", "own_path", "startable_path", "startable_program"]

# What tells a folder that somebody works in; programs of the machine lie in none.
PROJECT_MARKS = (ENVIRONMENT_MARK, ".git", ".hg", ".jj", "pyproject.toml", "package.json", "skillkit.toml")
# Nobody works in these, though they are repositories: people install version managers with git.
MANAGERS = frozenset(
    ".asdf .goenv .jenv .nodenv .nvm .phpenv .plenv .pyenv .rbenv homebrew Homebrew .linuxbrew".split()
)
ROOTS_OF_MANAGERS = ("ASDF_DIR", "NODENV_ROOT", "NVM_DIR", "PYENV_ROOT", "RBENV_ROOT")
GLOBAL_PACKAGES = ("/lib/node_modules/", "/share/nodejs/")
"""npm itself is a package, and has a package.json like any project."""
ALWAYS_PASSED = frozenset(("HOME", "PATH", "USER", "LOGNAME"))
# Where a path may begin and end in a variable's value: lists, options and quotes, each on its own, for spaces in names.
BORDERS = tuple(
    map(re.compile, ("$^", re.escape(os.pathsep), r"\s+", "=", """["'`]""", r"""[\s"'`=,;:|&()<>\[\]{}]+"""))
)
ADDRESS = re.compile(r"\b(?!file:)[a-z][a-z0-9+.-]*://[^\s\"']*")


def find_own_program(*names: str) -> str:
    """The first of these on PATH that no script can have written; "" for none."""
    folders, closed = own_path().split(os.pathsep), _closed()
    found = (shutil.which(name, path=folder) for name in names for folder in folders)
    return next((program for program in found if program and not _is_written(program, closed)), "")


def own_path() -> str:
    """The folders of PATH that are named from the root and lie in no project."""
    closed = _closed()
    entries = (entry for entry in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(entry))
    return os.pathsep.join(entry for entry in entries if not _is_written(entry, closed))


def startable_program(program: str) -> str:
    """What to start, without walls, to ask an interpreter something; empty for what may be a script's work.

    For an environment's Python, which is a link, the one that it leads to. Started as itself it would read the
    environment's settings and start-up lines, and a script could have made what looks like an environment.
    """
    closed = _closed()
    if not _is_written(program, closed):
        return program
    real = real_path(program)
    return real if _is_of_an_environment(program) and not _is_written(real, closed) else ""


def startable_path(path: str) -> str:
    """Of these folders those whose programs may be started without walls."""
    closed = _closed()
    return os.pathsep.join(
        folder for folder in path.split(os.pathsep) if os.path.isabs(folder) and not _is_written(folder, closed)
    )


def own_environment() -> dict[str, str]:
    """The caller's, without what would make a program run or read something that a script may have written.

    `BROWSER`, `LD_PRELOAD`, `PYTHONPATH` and many others name such places; so all that do are left out.
    """
    closed = _closed()
    own = {name: value for name, value in os.environ.items() if name in ALWAYS_PASSED or not _names_any(value, closed)}
    return {**own, "PATH": own_path()}


def _closed() -> list[str]:
    """As real paths: where scripts may write, and where the person works now."""
    return [*map(real_path, writable_by_scripts()), *map(real_path, _here())]


def _here() -> list[str]:
    """Not the home folder, nor one around it: there the person does everything."""
    try:
        folders = (os.getcwd(), os.environ.get("VIRTUAL_ENV", ""))
    except OSError:  # it was deleted
        return []
    return [folder for folder in folders if folder and not is_inside(_home(), real_path(folder))]


def _home() -> str:
    return real_path(os.path.expanduser("~"))


def _is_written(path: str, closed: list[str]) -> bool:
    """Whether a script may have made it what it is: by its place, by a link on the way, by the project around it."""
    real = real_path(path)
    return _is_left_by_scripts(path, closed) or (_is_open_to_all(real) and not _is_the_systems(real))


def _is_the_systems(path: str) -> bool:
    """Only root can change it or what is on the way to it, links included, and we are somebody else."""
    if not hasattr(os, "geteuid") or os.geteuid() == 0:
        return False
    found = [_status(str(each), follow=False) for each in (Path(path), *Path(path).parents)]
    return all(each.st_uid == 0 and (stat.S_ISLNK(each.st_mode) or not each.st_mode & stat.S_IWOTH) for each in found)


def _is_open_to_all(real: str) -> bool:
    return os.name == "posix" and bool(_status(real).st_mode & stat.S_IWOTH)


def _is_of_an_environment(program: str) -> bool:
    folder = os.path.dirname(program)
    return os.path.basename(folder) in ("bin", "Scripts") and os.path.isfile(
        os.path.join(os.path.dirname(folder), ENVIRONMENT_MARK)
    )


def _is_in_a_project(path: str) -> bool:
    if is_of_packages(path):
        return True
    home = _home()
    named = {each for name in ROOTS_OF_MANAGERS if os.path.isabs(each := os.environ.get(name, "").rstrip(os.sep))}
    managers = named.union(map(real_path, named))
    place = min((path.partition(each)[0] for each in GLOBAL_PACKAGES), key=len)
    above = [str(folder) for folder in (Path(place), *Path(place).parents)]
    above = [folder for folder in above if not is_inside(home, folder) and folder not in managers]
    above = [folder for folder in above if os.path.basename(folder) not in MANAGERS]
    return any(os.path.lexists(os.path.join(folder, mark)) for folder in above for mark in PROJECT_MARKS)


def _names_any(value: str, closed: list[str]) -> bool:
    """Whether a value, or a part of it as in lists of paths and in commands, is a place that a script may write."""
    text = ADDRESS.sub(" ", value)
    words = {word for border in BORDERS for word in border.split(text)} if os.sep in text else set()
    paths = {word[word.index(os.sep) :] for word in words if os.sep in word and "\0" not in word}
    return any(_is_left_by_scripts(path, closed) for path in paths)


def _is_left_by_scripts(path: str, closed: list[str]) -> bool:
    """As of a program, but for places where only other users could have put something.

    A link in a project may be a script's work whatever it leads to: many programs look around where they are named.
    """
    if is_decided_inside(path, closed):
        return True
    return any(_is_in_a_project(each) and not _is_the_systems(each) for each in {real_path(path), path})


def _status(path: str, *, follow: bool = True) -> os.stat_result:
    try:
        return os.stat(path, follow_symlinks=follow)
    except OSError:
        return os.stat_result((stat.S_IWOTH, *(0,) * 9))  # what cannot be looked at is nobody's own
