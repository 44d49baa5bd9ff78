"""What the caller configured -> the folders to search, in order of precedence.

Theory of operation. A repository's skills lie at its top, and people work further down; so the folders above the
project are searched too, up to the top of its repository. Who can write one of them can offer skills, and a folder such
as /tmp is everybody's: a folder above counts only if it, what marks the repository, and the folders of skills in it
belong to this user or to root, and not everybody may write there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.paths import real_path, reason_to_doubt
from skillkit.core.paths.hosts import PROJECT_LEVEL, SYSTEM_LEVEL, USER_LEVEL, folders_at
from skillkit.core.values.skills import Diagnostic

__all__ = [
    "AGENT",
    "OWN_SOURCES",
    "PATH",
    "PROJECT",
    "SYSTEM",
    "PathLike",
    "Root",
    "agent_roots",
    "existing_folder",
    "path_list",
    "path_roots",
    "project_roots",
    "system_roots",
    "user_skills_folder",
]

PROJECT = "project"
AGENT = "agent"
SYSTEM = "system"
PATH = "path"
OWN_SOURCES = frozenset((PROJECT, AGENT, SYSTEM, PATH))
"""No plugin may have one of these as its name."""
REPOSITORY_MARK = ".git"
SEARCH_SETTING = "additional_search_paths"

PathLike = str | Path


@dataclass(frozen=True, slots=True)
class Root:
    """One folder to search; `source` qualifies the names found there."""

    path: Path
    source: str
    plugin_root: Path | None = None
    host: str = ""
    """The agent host that keeps skills there; empty where it is no single one's."""


def project_roots(
    given: PathLike | None, *, of_all_hosts: bool = True, problems: list[Diagnostic] | None = None
) -> list[Root]:
    """The given folder, or those of the current folder that exist, then those above it in its repository."""
    if given is not None:
        return _given_roots(given, PROJECT, "project_skill_dir")
    try:
        here = Path.cwd()
    except OSError:  # the current folder was deleted
        return []
    found = list(_existing(here, PROJECT_LEVEL, PROJECT, of_all_hosts=of_all_hosts))
    if of_all_hosts:
        top, above = _folders_above(here)
        noted = [] if problems is None else problems
        found += [root for level in above for root in _trusted(level, top, noted)]
    return found


def agent_roots(given: PathLike | None, *, of_all_hosts: bool = True) -> list[Root]:
    """The given folder, or skillkit's own and those of the home folder that exist."""
    if given is not None:
        return _given_roots(given, AGENT, "anthropic_config_dir")
    try:
        own = user_skills_folder()
        first = [Root(own, AGENT)] if os.path.isdir(own) else []
        return [*first, *_existing(Path.home(), USER_LEVEL, AGENT, of_all_hosts=of_all_hosts)]
    except RuntimeError:  # the user has no home
        return []


def user_skills_folder() -> Path:
    """Where `skillkit add --user` puts skills: in the data folder that the platform gives each user."""
    import platformdirs

    return Path(platformdirs.user_data_dir("skillkit", appauthor=False)) / "skills"


def system_roots(problems: list[Diagnostic]) -> list[Root]:
    """Those of the whole machine that exist, as far as only its owner can write them."""
    return [
        root for root in _existing(Path("/"), SYSTEM_LEVEL, SYSTEM) if _is_trusted(root.path, (root.path,), problems)
    ]


def path_roots(given: Sequence[PathLike] | None) -> list[Root]:
    return [Root(existing_folder(path, SEARCH_SETTING), PATH) for path in path_list(given, SEARCH_SETTING)]


def path_list(given: Sequence[PathLike] | None, setting: str) -> tuple[PathLike, ...]:
    """One text would be a list of its characters."""
    if isinstance(given, PathLike):
        raise ConfigurationError(f"{setting} is a list of paths; {str(given)!r} is one path. Write [{str(given)!r}].")
    return tuple(given or ())


def _given_roots(given: PathLike, source: str, setting: str) -> list[Root]:
    """An empty text means off, anything else must exist."""
    return [] if given == "" else [Root(existing_folder(given, setting), source)]


def _existing(base: Path, level: str, source: str, *, of_all_hosts: bool = True) -> Iterator[Root]:
    start = str(base)
    for relative, host in folders_at(level, of_all_hosts=of_all_hosts):
        folder = os.path.join(start, relative)
        if os.path.isdir(folder):
            yield Root(Path(folder), source, host=host)


def _folders_above(here: Path) -> tuple[Path, list[Path]]:
    """The top of the repository around `here`, and the folders above `here` up to it; none without a repository.

    The home folder is the user's own level and no project's, even if a repository keeps its settings.
    """
    home = real_path(os.path.expanduser("~"))
    passed: list[Path] = []
    for folder in (here, *here.parents):
        is_home = str(folder) == home and folder != here
        if not is_home:
            passed.append(folder)
        if os.path.lexists(folder / REPOSITORY_MARK):
            return folder, passed[1:]
        if is_home:
            break
    return here, []


def _trusted(level: Path, top: Path, problems: list[Diagnostic]) -> Iterator[Root]:
    for root in _existing(level, PROJECT_LEVEL, PROJECT):
        steps = (root.path, *(step for step in root.path.parents if step.is_relative_to(level)))
        if _is_trusted(root.path, (top / REPOSITORY_MARK, top, *steps), problems):
            yield root


def _is_trusted(folder: Path, steps: Sequence[Path], problems: list[Diagnostic]) -> bool:
    """Whether none of `steps` can have been made by others than this user and root."""
    for step in steps:
        if reason := reason_to_doubt(step):
            message = f"Not searched, because {step} {reason}: {folder}."
            remedy = "If you trust it, name it with --skills, or give it to yourself."
            problems.append(Diagnostic("warning", "folder-of-others", message, folder, remedy=remedy))
            return False
    return True


def existing_folder(path: PathLike, setting: str) -> Path:
    try:
        folder = Path(path).expanduser().absolute()
        if ".." in folder.parts:  # a folder's name is shown, and may become a skill's
            folder = Path(os.path.realpath(folder))
    except (OSError, RuntimeError, ValueError) as error:  # `~nobody`; no current folder; half a character
        raise ConfigurationError(f"{setting}: {str(path)!r} cannot be found: {error} Give an absolute path.") from error
    if not os.path.isdir(folder):
        raise ConfigurationError(
            f"{setting}: {folder} is not a folder. Create it, correct the path, or leave the setting out."
        )
    return folder
