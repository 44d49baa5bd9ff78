"""A script that looked for something where it is not -> where it started, and where that thing is."""

from __future__ import annotations

import os
import re

from skillkit.core.paths import is_inside
from skillkit.core.run.hints.failure import Failure, tail
from skillkit.core.run.sandbox.explain import can_be_shown

__all__ = ["file_elsewhere", "no_repository"]

NO_REPOSITORY = re.compile(r"^fatal: not a git repository\b", re.MULTILINE)
START_THERE = "set the policy key working_directory to 'workspace'"


def no_repository(failure: Failure, text: str) -> str:
    """By where the script started and where a repository is."""
    if not NO_REPOSITORY.search("\n".join(tail(text))):
        return ""
    command, workspace = failure.command, str(failure.command.workspace or "")
    if not workspace:
        return "git was called in the skill's folder; the script has no workspace. Start skillkit in the repository."
    top = _repository_of(workspace)
    if command.working_directory == "skill":
        there = f"; {workspace} is in one" if top else ""
        return f"git was called in the skill's folder, which is no repository{there}. To start it there, {START_THERE}."
    if top and top != workspace and can_be_shown(top):
        return f"The repository's own folder {top} lies outside the workspace {workspace}; start skillkit in {top}."
    return (
        "" if top else f"The workspace {workspace} is in no git repository; start skillkit in one, or run 'git init'."
    )


def _repository_of(folder: str) -> str:
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return ""
        folder = above
    return folder


def file_elsewhere(failure: Failure) -> str:
    """People name files from where they are; a script starts elsewhere."""
    command = failure.command
    workspace, skill = str(command.workspace or ""), str(command.base_directory)
    for word in command.script_arguments if workspace else ():
        if os.path.isabs(word) or not word or os.path.lexists(os.path.join(command.cwd, word)):
            continue
        other = skill if command.working_directory == "workspace" else workspace
        meant = os.path.normpath(os.path.join(other, word))
        if not (is_inside(meant, other) and meant != other and can_be_shown(meant) and os.path.lexists(meant)):
            continue
        if other == skill:
            return f"{word!r} is a file of the skill, but the script starts in the workspace; name it as {meant}."
        return (
            f"{word!r} is in the workspace, but the script starts in its skill's folder; name it as {meant}, "
            f"or {START_THERE}."
        )
    return ""
