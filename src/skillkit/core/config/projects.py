"""A project's file beside the user's -> an error for whatever it would loosen, unless the user trusts the project."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from skillkit.core.config.files import CONFIG_VARIABLE, Place
from skillkit.core.config.keys import FOLDER_KEYS, SHOWN_PROBLEMS, TRUSTED_KEY, ConfigFile, shortened, written
from skillkit.core.config.strictness import Loosening, loosenings
from skillkit.core.exceptions import ConfigurationError
from skillkit.core.policy import ScriptPolicy

__all__ = ["is_trusted", "refuse_loosening"]


def is_trusted(project_file: Path, user: ConfigFile | None) -> bool:
    """The very folder must be listed; one above it is not enough."""
    listed = user.values.get(TRUSTED_KEY, ()) if user else ()
    return os.path.realpath(project_file.parent) in map(os.path.realpath, listed)


def refuse_loosening(
    project: ConfigFile,
    user: ConfigFile | None,
    user_path: Path | None,
    *,
    own: ScriptPolicy,
    own_places: Mapping[str, object],
    given: ScriptPolicy,
) -> None:
    """A repository comes from anywhere: its word counts where it asks for less, never where it asks for more."""
    found = [*policy_problems(project, own, own_places, given), *islice(folder_problems(project), SHOWN_PROBLEMS)]
    if found:
        remedy = trusting_remedy(project.path.parent, user, user_path)
        raise ConfigurationError("\n".join([*found, remedy]))


def policy_problems(
    project: ConfigFile, own: ScriptPolicy, own_places: Mapping[str, object], given: ScriptPolicy
) -> Iterator[str]:
    for each in loosenings(own, given):
        ours, theirs = (shortened(written(value)) for value in (each.own, each.given))
        yield (
            f"{blamed(project, each)} {theirs}, but your settings ({own_places[each.key]}) say {ours}. "
            f"A project may only tighten: {each.reason}."
        )


def blamed(project: ConfigFile, each: Loosening) -> str:
    """The line that does it: the field's own, or that of the profile."""
    if each.key in project.values:
        return f"{project.place(each.key)}: {each.key!r} is"
    return f"{project.place('profile')}: profile {project.values['profile']!r} makes {each.key!r}"


def folder_problems(project: ConfigFile) -> Iterator[str]:
    """Skills of its own a project may bring; those elsewhere on the machine are not its to offer."""
    folder = os.path.realpath(project.path.parent)
    for key in FOLDER_KEYS:
        for path in project.values.get(key, ()):  # real paths, as everything that a project's file names
            if not path.is_relative_to(folder):
                name = shortened(written(path))
                yield f"{project.place(key)}: {key!r} names {name}, which is outside the project's own folder."


def trusting_remedy(folder: Path, user: ConfigFile | None, user_path: Path | None) -> str:
    name = written(os.path.realpath(folder))
    start = "Correct it, or, if you trust this project,"
    if user and TRUSTED_KEY in user.values:
        return f"{start} add {name} to {TRUSTED_KEY!r} in {user.place(TRUSTED_KEY)}"
    file = Place("user", user_path) if user_path else f"a file of yours that ${CONFIG_VARIABLE} names"
    return f"{start} write into {file}:\n\n  [projects]\n  trusted = [{name}]"
