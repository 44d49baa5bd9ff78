"""A script that lacks a variable, input, time, or a file where it looked -> what it waited for, and how it gets it."""

from __future__ import annotations

import os
import re

from skillkit.core.paths import is_inside
from skillkit.core.run.hints.failure import Failure, tail
from skillkit.core.run.sandbox.explain import can_be_shown, is_served_here, not_this_machines
from skillkit.core.values.policy import TIMEOUT_RANGE_SECONDS

__all__ = ["file_elsewhere", "needs_input", "no_repository", "timed_out", "unset_variable"]

_VARIABLE = r"(?P<name>[A-Z][A-Z0-9]*_[A-Z0-9_]{1,60}|[A-Z][A-Z0-9_]{3,60})"
_LACK = r"(?:not set|n't set|unset|missing|required|not found|not defined|undefined|must be set|not configured|empty)"
SPOKEN = (
    re.compile(rf"^KeyError: '{_VARIABLE}'$", re.ASCII),
    re.compile(rf": (?:line )?\d+: {_VARIABLE}: ", re.ASCII),
    re.compile(rf"\b{_VARIABLE}\b[^.\n]{{0,60}}\b{_LACK}\b", re.ASCII),
    re.compile(
        rf"(?:\b[Mm]issing|\b[Ss]et|\b[Ee]xport|\b[Rr]equires?|\b[Nn]eeds?|\b[Pp]rovide|\b[Nn]o)\b[^.\n]{{0,60}}\b{_VARIABLE}\b",
        re.ASCII,
    ),
)
EOF = re.compile(r"^EOFError: EOF when reading a line", re.MULTILINE)
PORT = re.compile(
    r"(?:localhost|127\.0\.0\.1|\[?::1\]?|0\.0\.0\.0|\b[Pp](?:ort|ORT))[\"']?[,:= ]{1,3}(?P<port>\d{2,5})\b"
)
LOOPBACK = re.compile(r"\blocalhost\b|127\.0\.0\.1|::1")
LONGEST = TIMEOUT_RANGE_SECONDS[1]


def unset_variable(failure: Failure, text: str) -> str:
    """Only a name that the script itself reads from its environment, and that is not there."""
    for line in reversed(tail(text)):
        for spoken in SPOKEN:
            found = spoken.search(line)
            name = found["name"] if found else ""
            if name and name not in failure.command.environment and _reads(failure.script, name):
                if name in failure.caller:
                    return f"{name} is set here, but scripts do not get it; name it in the policy key pass_environment."
                return f"{name} is not set; set it here, and name it in the policy key pass_environment."
    return ""


def _reads(script: str, name: str) -> bool:
    quoted = rf"['\"]{name}['\"]"
    return bool(
        re.search(
            rf"environ(?:\.get)?\s*[\[(]\s*{quoted}|getenv\(\s*{quoted}|process\.env(?:\.{name}\b|\[\s*{quoted})"
            rf"|ENV(?:\.fetch\(|[\[{{])\s*['\"]?{name}\b|\$\{{?{name}\b|\$env:{name}\b",
            script,
        )
    )


def needs_input(failure: Failure, text: str) -> str:
    del failure
    if not EOF.search("\n".join(tail(text))):
        return ""
    return "The script reads more from its stdin than it was given; pass it as 'arguments' or 'stdin' (--input)."


def timed_out(failure: Failure) -> str:
    """A port it waited for, where one is known; else that it may take longer."""
    said = "\n".join((*tail(failure.stdout), *tail(failure.stderr), failure.script))
    ports = [int(found["port"]) for found in PORT.finditer(said)]
    if not failure.has_network and failure.tier != "none":
        served = next((port for port in ports if is_served_here(port)), 0)
        if served:
            return not_this_machines(served)
        if failure.tier == "landlock" and LOOPBACK.search(said):
            return (
                "Loopback is closed in the landlock walls, so the script cannot reach a server of its own; with "
                "bubblewrap it can (Debian and Ubuntu: sudo apt-get install bubblewrap), or allow it with --network."
            )
    longer = f"; --timeout SECONDS allows up to {LONGEST}" if failure.command.timeout < LONGEST else ""
    unit = "second" if failure.command.timeout == 1 else "seconds"
    return f"It was stopped after {failure.command.timeout:g} {unit}, its limit{longer}."


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
